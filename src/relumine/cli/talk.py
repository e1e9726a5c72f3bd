"""What a command says: the answer on stdout (text or one JSON object), everything else on stderr."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from relumine.cli.words import spoken
from relumine.results import RelumineWarning


@dataclass(frozen=True)
class Talk:
    """Where words go. ``as_json``: stdout holds one JSON object and nothing else; ``quiet``: only errors are said."""

    as_json: bool = False
    quiet: bool = False

    def note(self, words: str) -> None:
        """A remark on the way: what was assumed, what was written."""
        if not self.quiet:
            typer.echo(words, err=True)

    def warn(self, words: str) -> None:
        """What must be said even quietly."""
        typer.echo(words, err=True)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While something runs: what the library warns of is said at its end."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RelumineWarning)
            yield
        for warning in caught:
            self.warn(f"warning: {spoken(str(warning.message))}")

    def answer(self, words: str, content: dict[str, Any]) -> None:
        """The answer, in words or as JSON."""
        if self.as_json:
            typer.echo(json.dumps(content, ensure_ascii=False, allow_nan=False, default=str))
        elif not self.quiet:
            typer.echo(words)
