"""`relumine demo`: hide a network, show samples of it, recover it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

import relumine as rl
from relumine.cli.exits import FAILED
from relumine.cli.words import advice
from relumine.results import InvalidInput, MissingPackage, Progress

_MOST = 20_000_000  # numbers drawn


def demo(
    dim: Annotated[int, typer.Option(help="Number of inputs.", min=1, max=200)] = 10,
    width: Annotated[int, typer.Option(help="Number of hidden units.", min=1, max=200)] = 20,
    samples: Annotated[int, typer.Option(help="Samples; 0: five per parameter.", min=0, max=10**9)] = 0,
    noise: Annotated[float, typer.Option(help="Standard deviation of label noise.", min=0.0)] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of everything.", min=0, max=2**62)] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the picture goes.")] = Path("relumine-demo.png"),
) -> None:
    """Hide a network, then find it again from samples."""
    if samples * dim > _MOST:
        raise InvalidInput(
            f"{samples} samples of {dim} inputs are more than a demo should draw; at most {_MOST // dim}"
        )
    if not noise < 1e50:
        raise InvalidInput(f"--noise is a standard deviation, got {noise}")
    console = Console()
    truth = rl.planted.network(dim, width, rng=seed)
    n = samples or 5 * truth.parameters
    X, y = rl.planted.sample(truth, n, noise=noise, rng=seed + 1)
    console.print(
        f"A hidden network: {dim} inputs, {width} ReLU units, {truth.parameters} parameters"
        + (f", {width / dim:g} units per input." if width > dim else ".")
    )
    console.print(f"All that is shown: {n} random inputs and its {n} answers.\n")
    losses: list[float] = []
    began = time.perf_counter()
    with Live(Text("…"), console=console, refresh_per_second=12) as live:

        def show(step: Progress) -> None:
            losses.append(step.loss)
            bar = "█" * int(np.clip(-2.0 * np.log10(max(step.loss, 1e-12)), 0, 24))
            loss = f"loss {step.loss:8.1e} of the affine fit's"
            live.update(Text(f"{step.stage:9s} step {step.iteration:3d}   {loss}  {bar}"))

        found = rl.recover(X, y, width=width, rng=seed, on_failure="return", progress=show)
    if not console.is_terminal:
        console.print()  # where nothing is redrawn, the last line still waits for its end
    seconds = time.perf_counter() - began
    if found.network.m == truth.m:
        console.print(_comparison(truth, found.network))
        largest = rl.metrics.parameter_error(truth, found.network)
        console.print(f"Largest parameter error: [bold]{largest:.1e}[/]   ({seconds:.1f} s)")
    console.print(f"Status: [bold]{found.status.value}[/]. {found.message}")
    if found.network.m == truth.m:
        _picture(console, truth, found.network, losses, out)
    if not found.ok:
        console.print(advice(found))
        raise typer.Exit(FAILED)
    program = "relumine" if shutil.which("relumine") else os.path.relpath(sys.argv[0])
    console.print(
        f"\nTry next:\n"
        f"  {program} demo --dim 20 --width 40 --seed 7    a larger one\n"
        f"  {program} demo --noise 0.05 --samples 8000     noisy answers\n"
        f"  {program} demo --samples 150                   too few samples: it says so\n"
        f"  {program} recover your.csv --report out.html   your own rows, and a report\n"
        "  python: found = relumine.recover(X, y); print(found)",
        highlight=False,
        soft_wrap=True,
    )


def _comparison(truth: rl.Network, found: rl.Network, most: int = 10) -> Table:
    """True and found parameters side by side."""
    truth, matched = truth.scaled(), rl.metrics.match(truth, found)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("unit", "w true", "found", "b true", "found", "a true", "found", "error"):
        table.add_column(column, justify="right", no_wrap=True)
    for i in range(min(truth.m, most)):
        w, u = (" ".join(f"{x:+.3f}" for x in net.W[i, :2]) for net in (truth, matched.network))
        numbers = (truth.b[i], matched.network.b[i], truth.a[i], matched.network.a[i])
        table.add_row(str(i), w, u, *(f"{x:+.3f}" for x in numbers), f"{matched.units[i]:.0e}")
    if truth.m > most:
        table.add_row("…", *[""] * 6, f"{matched.units.max():.0e}")
    return table


def _picture(console: Console, truth: rl.Network, found: rl.Network, losses: list[float], out: Path) -> None:
    try:
        from relumine.report.plots import true_and_found

        true_and_found(truth, found, losses, out)
    except (MissingPackage, OSError) as error:
        console.print(f"(No picture: {error}.)", markup=False)
    else:
        console.print(f"Picture: {out}", markup=False)
