"""A figure is a JSON file of cells: missing ones are computed, each is saved as it comes, pictures read the file."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from relumine.formats.files import write_atomically

Cells = dict[str, Any]
Task = tuple[str, Callable[..., Cells], tuple[Any, ...]]
Compute = Callable[..., None]
Plot = Callable[[Path], Path | None]

Name = Annotated[str, typer.Option(help="Which figure, as the paper numbers it, or all.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small sizes and few trials.")]
PlotOnly = Annotated[bool, typer.Option("--plot-only", help="Draw the JSON that is there.")]
Workers = Annotated[int, typer.Option(help="Processes.")]
Out = Annotated[Path, typer.Option(help="Folder for JSON and PNG.")]


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
    write_atomically(path, json.dumps(content).encode())


def picture(path: Path, draw: Callable[[Cells, Any], Any]) -> Path:
    """PNG beside the JSON at ``path``: ``draw(content, pyplot)`` returns the figure, and computes nothing."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig = draw(json.loads(path.read_text()), plt)
    image, content = path.with_suffix(".png"), io.BytesIO()
    fig.savefig(content, dpi=110, format="png")
    plt.close(fig)
    write_atomically(image, content.getvalue())
    return image


def command(names: Sequence[str], folder: Path, compute: Compute, plot: Plot) -> Callable[..., None]:
    """The command line of a paper's figures ``names``: compute them to JSON in ``folder``, then plot."""

    def main(
        figure: Name = "all", quick: Quick = False, plot_only: PlotOnly = False, workers: Workers = 2, out: Out = folder
    ) -> None:
        """Compute a figure to JSON (resuming), then plot it from the JSON."""
        show(names, figure, quick, out, None if plot_only else partial(compute, workers=workers), plot)

    return main


def short(x: float) -> float:
    """Four digits are plenty for a plot and keep the JSON small."""
    return float(f"{x:.4g}")


def show(names: Sequence[str], figure: str, quick: bool, out: Path, compute: Compute | None, plot: Plot) -> None:
    """Compute (unless ``compute`` is None) and draw one figure of ``names``, or all of them, in the folder ``out``."""
    console = Console(stderr=True)
    if figure != "all" and figure not in names:
        raise typer.BadParameter(f"figure must be one of {', '.join(names)} or all, got {figure!r}")
    for name in names if figure == "all" else (figure,):
        path = out / (f"figure{name}-quick.json" if quick else f"figure{name}.json")
        if compute is not None:
            compute(name, quick, path, console)
        console.print(f"figure {name}: {plot(path) or path}")
