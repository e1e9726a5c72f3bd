"""`relumine report`: from a saved result to a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relumine.cli.options import AsJson, Images, Quiet, image_shape
from relumine.cli.outcome import check_file
from relumine.cli.talk import Talk
from relumine.report import load, write


def report(
    result: Annotated[Path, typer.Argument(help="A result saved by `recover --save` or `extract --save`, .json.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="What the data are; default: the file they came from.")] = None,
    images: Images = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a report, one HTML page, from a saved result."""
    check_file(out, (".html", ".htm"), sources=(result,))
    found = load(result)
    shape = image_shape(images, found.network.d)
    write(found, out, image_shape=shape, title=found.origin.source if title is None else title)
    Talk(as_json, quiet).answer(f"report: {out}", {"status": found.status.value, "written": {"report": str(out)}})
