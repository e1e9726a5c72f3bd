"""What the papers' figures show, in words: sentences and tables from the JSON that `relumine paper` wrote.

Each file is called like its paper and has ``PAGE``, where it speaks, and ``blocks(folder)``: Markdown by name, put
between the marks ``<!-- name: begin -->`` and ``<!-- name: end -->``; ``folder`` holds the paper's JSON files.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

__all__ = ["blocks"]


def blocks(figures: Path) -> Iterator[tuple[str, str, str]]:
    """Page, name and text of everything that is said about the figures in this folder (docs/figures)."""
    for name in sorted(module.name for module in iter_modules(__path__)):
        paper = import_module(f"{__name__}.{name}")
        if (figures / name).exists():
            for mark, text in paper.blocks(figures / name).items():
                yield paper.PAGE, mark, text
