"""``python -m relumine``."""

from relumine.cli import app

app()
