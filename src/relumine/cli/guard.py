"""What every command shares: errors in words and not in tracebacks; --debug and --traceback, which show them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from traceback import format_exception
from typing import Any

import typer
from typer.core import TyperGroup

from relumine.cli.exits import ABORTED, BAD_INPUT, FAILED, FAULT, MISSING_PACKAGE, NOT_WRITTEN
from relumine.cli.words import in_options
from relumine.extraction.queries import BlackBoxFailed
from relumine.results import InvalidInput, MissingPackage, NotWritten, RecoveryFailed, RelumineError

# errors of the command line itself (and typer.Exit) have their own words; typer brings its own copy of click
_OWN: tuple[type[BaseException], ...] = (typer.BadParameter.__mro__[2], typer.Exit, typer.Abort)
assert _OWN[0].__name__ == "ClickException"

# the first kind that fits
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (RecoveryFailed, FAILED),
    (MissingPackage, MISSING_PACKAGE),
    (NotWritten, NOT_WRITTEN),
    (RelumineError, BAD_INPUT),
    (ImportError, MISSING_PACKAGE),
    (OSError, BAD_INPUT),
    (MemoryError, BAD_INPUT),
)


class Guard(TyperGroup):
    """A group of commands whose errors become one line on stderr and an exit code."""

    debug = False
    traceback = False
    as_json = False

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Take --debug and --traceback out, wherever they stand, and go on."""
        words = list(sys.argv[1:] if args is None else args)
        self.debug, self.traceback, self.as_json = (f"--{name}" in words for name in ("debug", "traceback", "json"))
        return super().main([word for word in words if word not in ("--debug", "--traceback")], *rest, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error becomes words."""
        try:
            return super().invoke(ctx)
        except _OWN:
            raise
        except KeyboardInterrupt:
            self._say("aborted", ABORTED)
            raise typer.Exit(ABORTED) from None
        except BrokenPipeError:  # `relumine … | head`: the runner ends quietly
            raise
        except Exception as error:
            if self.debug:
                raise
            code, words = _explain(error)
            cause = error.__cause__
            if cause is not None and self.traceback:
                typer.echo("".join(format_exception(cause)), err=True, nl=False)
            hint = isinstance(error, BlackBoxFailed) and cause is not None and not self.traceback
            self._say(words + ("; --traceback shows where" if hint else ""), code)
            raise typer.Exit(code) from None

    def _say(self, words: str, code: int) -> None:
        typer.echo(f"relumine: {words}", err=True)
        if self.as_json:
            typer.echo(json.dumps({"status": "error", "error": words, "exit_code": code}))


def _explain(error: Exception) -> tuple[int, str]:
    """Exit code and words for an error, by its type."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), FAULT)
    if isinstance(error, InvalidInput):
        return code, in_options(error)
    if isinstance(error, RelumineError):
        return code, str(error)
    if isinstance(error, ImportError):
        return code, f"{error}; install the package that is missing"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return code, f"{where}{error.strerror or error}"
    if isinstance(error, MemoryError):
        return code, f"this does not fit into memory ({error or 'allocation failed'}); use fewer rows or columns"
    return code, f"a fault of relumine itself: {type(error).__name__}: {error}\nRun again with --debug and report it."
