"""A figure is a JSON file of cells: missing ones are computed, each is saved as it comes, pictures read the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import track

Cells = dict[str, Any]
Task = tuple[str, Callable[..., Cells], tuple[Any, ...]]

__all__ = ["Cells", "Task", "fill", "finished", "save", "show"]


def fill(path: Path, header: Cells, tasks: Sequence[Task], console: Console, workers: int = 1) -> None:
    """Compute the cells (key, function, arguments) that the JSON at ``path`` lacks, saving it whole after each one.

    ``header`` says what run it is: a file of another one is refused.
    """
    content: Cells = json.loads(path.read_text()) if path.exists() else {}
    if content and {key: content.get(key) for key in header} != header:
        raise typer.BadParameter(f"{path} holds another run ({content.get('figure')}); move it away first")
    content = header | {"cells": content.get("cells", {})}
    missing = [task for task in tasks if task[0] not in content["cells"]]
    done = track(finished(missing, workers), f"figure {header['figure']}", total=len(missing), console=console)
    for key, cell in done:
        content["cells"][key] = cell
        save(content, path)


def finished(missing: list[Task], workers: int) -> Iterator[tuple[str, Cells]]:
    """Cells as they are finished; with several workers, one BLAS thread each."""
    if workers < 2 or len(missing) < 2:
        for key, function, arguments in missing:
            yield key, function(*arguments)
        return
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")  # seen by the processes spawned below
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(function, *arguments): key for key, function, arguments in missing}
        for future in as_completed(futures):
            yield futures[future], future.result()


def save(content: Cells, path: Path) -> None:
    """The cells as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content))
    os.replace(partial, path)


def show(
    names: Sequence[str],
    figure: str,
    quick: bool,
    out: Path,
    compute: Callable[[str, bool, Path, Console], None] | None,
    plot: Callable[[Path], Path | None],
) -> None:
    """Compute (unless ``compute`` is None) and draw one figure of ``names``, or all of them, in the folder ``out``."""
    console = Console(stderr=True)
    if figure != "all" and figure not in names:
        raise typer.BadParameter(f"figure must be one of {', '.join(names)} or all, got {figure!r}")
    for name in names if figure == "all" else (figure,):
        path = out / (f"figure{name}-quick.json" if quick else f"figure{name}.json")
        if compute is not None:
            compute(name, quick, path, console)
        console.print(f"figure {name}: {plot(path) or path}")
