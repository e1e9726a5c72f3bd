"""The command line, called in the tests' process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from relumine.cli import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])
