"""Options that several commands share."""

from __future__ import annotations

import re
from math import isqrt
from pathlib import Path
from typing import Annotated

import typer

from relumine import activations
from relumine.results import InvalidInput

__all__ = [
    "AsJson",
    "Force",
    "Images",
    "Out",
    "Quiet",
    "ReportFile",
    "Save",
    "Seconds",
    "Seed",
    "SkipBadRows",
    "activation_names",
    "image_shape",
    "methods",
]

Seed = Annotated[int, typer.Option(help="The same seed gives the same answer.", min=0, max=2**63 - 1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless it fails.")]

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Save the network: .safetensors, .onnx, .npz or .json.")]
ReportFile = Annotated[Path | None, typer.Option("--report", help="Write a page to look at, .html.")]
Save = Annotated[Path | None, typer.Option(help="Save the whole result, .json, for `relumine report`.")]
Force = Annotated[bool, typer.Option("--force", help="Write --out even if the network was not recovered.")]
Seconds = Annotated[float | None, typer.Option(help="Time limit; then the best so far is kept.")]
Images = Annotated[str | None, typer.Option(help="Show units as images: HEIGHTxWIDTH or 'square'.")]
SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave out rows with missing values or text instead of numbers.")
]


def activation_names() -> list[str]:
    """For shell completion."""
    return [name for name in activations.names() if "(" not in name]


def methods() -> list[str]:
    """For shell completion."""
    return ["auto", "awasthi", "zhong"]


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
