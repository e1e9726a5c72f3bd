"""On a CI machine hypothesis draws the same examples every time; elsewhere fresh ones."""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None)
settings.load_profile("repeatable" if os.environ.get("CI") else "fresh")
