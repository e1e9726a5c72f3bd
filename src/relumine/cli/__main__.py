"""``python -m relumine.cli``."""

from relumine.cli import app

app()
