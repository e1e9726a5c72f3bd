"""`relumine report`: from a saved result to a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relumine.cli.options import AsJson, Quiet, image_shape
from relumine.cli.talk import Talk
from relumine.report import load, write

__all__ = ["report"]


def report(
    result: Annotated[Path, typer.Argument(help="A result saved by `recover --save` or `extract --save`, .json.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="What the data are; default: the file they came from.")] = None,
    images: Annotated[str | None, typer.Option(help="Show units as images: HEIGHTxWIDTH or 'square'.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a page to look at from a saved result."""
    found = load(result)
    shape = image_shape(images, found.network.d)
    write(found, out, image_shape=shape, title=title if title is not None else str(found.details.get("source") or ""))
    Talk(as_json, quiet).answer(f"report: {out}", {"status": found.status.value, "written": {"report": str(out)}})
