"""Options that several commands share."""

from __future__ import annotations

import re
from math import isqrt
from pathlib import Path
from typing import Annotated

import typer

from relumine import activations
from relumine.links import LINKS
from relumine.results import InvalidInput


def _activations() -> list[str]:
    """For shell completion."""
    return [name for name in activations.names() if "(" not in name]


def _methods() -> list[str]:
    """For shell completion."""
    return ["auto", "awasthi", "zhong"]


Seed = Annotated[int, typer.Option(help="The same seed gives the same answer.", min=0, max=2**63 - 1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless it fails.")]

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Save the network: .safetensors, .onnx, .npz or .json.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write a report, .html, to open in a browser.")]
Save = Annotated[Path | None, typer.Option(help="Save the whole result, .json, for `relumine report`.")]
Force = Annotated[bool, typer.Option("--force", help="Write --out even if the network was not recovered.")]
Seconds = Annotated[float | None, typer.Option(help="Time limit; then the best so far is kept.")]
Images = Annotated[str | None, typer.Option(help="Show units as images: HEIGHTxWIDTH or 'square'.")]
Delimiter = Annotated[str | None, typer.Option(help="What separates the columns of a csv file; default: recognised.")]
DecimalMark = Annotated[str | None, typer.Option("--decimal", help="'.' or ',' in numbers; default: recognised.")]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave out rows with missing values or text instead of numbers.")
]
OneHot = Annotated[
    bool,
    typer.Option(
        "--one-hot", help="Turn columns of text into columns of 0 and 1: one for each category but the first."
    ),
]
Impute = Annotated[str | None, typer.Option(help="'median': fill missing inputs with the median of their column.")]
Width = Annotated[int | None, typer.Option(help="Hidden units; default: found from the data.", min=0, max=100_000)]
ActivationName = Annotated[str, typer.Option(help="Activation of the units.", autocompletion=_activations)]
Link = Annotated[
    str | None, typer.Option(help=f"The outputs are probabilities, or exponentials (log): {', '.join(LINKS)}.")
]
Method = Annotated[str, typer.Option(help="auto; awasthi or zhong: as printed in a paper.", autocompletion=_methods)]
Starts = Annotated[
    int | None,
    typer.Option(
        help="Random starts, at most; default: 20, or 1 where theory says that no method can work.",
        min=1,
        max=100_000,
    ),
]
Target = Annotated[str | None, typer.Option(help="Output column; default: 'y', or the last one. Several: u,v.")]
Features = Annotated[str | None, typer.Option(help="Input columns, a,b,c; default: all others.")]
Ignore = Annotated[str | None, typer.Option(help="Columns to leave out, a,b,c.")]
Checkpoint = Annotated[
    Path | None, typer.Option(help="Save the state of a long run here; the same command goes on from it.")
]
CheckpointEvery = Annotated[float, typer.Option(help="Seconds between two writes of --checkpoint.", min=0.0)]


def image_shape(text: str | None, d: int) -> tuple[int, int] | None:
    """HEIGHTxWIDTH as numbers, 'square' for a square image."""
    if text is None:
        return None
    if text == "square":
        if isqrt(d) ** 2 != d:
            raise InvalidInput(f"--images square: {d} inputs are no square image")
        return isqrt(d), isqrt(d)
    match = re.fullmatch(r"(\d{1,6})[x×](\d{1,6})", text)
    if match is None:
        raise InvalidInput(f"--images is HEIGHTxWIDTH, such as 28x28, or 'square'; got {text!r}")
    height, width = int(match[1]), int(match[2])
    if height * width != d:
        raise InvalidInput(f"--images {text} has {height * width} pixels, but there are {d} inputs")
    return height, width


def whole_numbers(text: str, option: str) -> list[int]:
    """Numbers separated by commas."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--{option} takes a whole number, or several with commas between; got {text!r}", argument=option
        ) from None
