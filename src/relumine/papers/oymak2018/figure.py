"""Figures 2(a,b) and 3(a,b) of Oymak & Asif 2018, "Exactly decoding a vector through ReLU activation".

    python -m relumine.papers.oymak2018.figure --figure 2a            # compute (resuming what the JSON has), then plot
    python -m relumine.papers.oymak2018.figure --figure all --quick   # minutes become seconds
    python -m relumine.papers.oymak2018.figure --figure 3b --plot-only

Protocol (section 4 there): w uniform in [−1, 1]^d, x normal with deviation σ, Θ = 1, start at 0, ten trials,
relative recovery error ‖ŵ − w‖²/‖w‖². Each iteration sees all n rows, as in the paper. Added: damped
Gauss–Newton, 20 steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from relumine.papers.cells import Cells, command, fill, picture, short
from relumine.papers.oymak2018.additive import Additive, Iterate, descend, gauss_newton, largest_eigenvalue

FOLDER = Path("oymak2018")  # where JSON and pictures go unless told otherwise
SIGMA = {"2a": 1.0, "2b": 5.0, "3a": 5.0, "3b": 5.0}
SIZE = {"3a": (100, 200), "3b": (500, 1000)}
CAP = {"3a": 60_000, "3b": 25_000}  # iterations of the plain gradient
# n/d: dense where the paper's curves fall
RATIOS = (1.0, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0)
TARGET = 1e-8  # squared relative error that counts as recovered


def planted(d: int, n: int, sigma: float, seed: int) -> tuple[Additive, np.ndarray]:
    rng = np.random.default_rng([seed, d, n])
    w = rng.uniform(-1.0, 1.0, d)
    X = sigma * rng.standard_normal((n, d))
    return Additive(X, np.maximum(X + w, 0.0).sum(axis=1), np.ones(d)), w


def relative_error(w: np.ndarray, truth: np.ndarray) -> float:
    return float(((w - truth) ** 2).sum() / (truth @ truth))


def centred(problem: Additive, steps: int) -> Iterator[Iterate]:
    """Eq. (4) with the fixed step 1.5/λ_max of the centred curvature at the start."""
    start, theta = np.zeros(problem.d), np.ones(problem.d)
    step = 1.5 / largest_eigenvalue(problem, start, centred=True)
    return islice(descend([problem], start, theta, step, centred=True), steps + 1)


def plain(problem: Additive, truth: np.ndarray, steps: int) -> Iterator[Iterate]:
    """Eq. (3) with projection and its largest stable step: below 2/λ_max at w*, stable on the way."""
    start, theta = np.zeros(problem.d), np.ones(problem.d)
    equations = problem.normal_equations(truth)
    limit = 2.0 * equations.n / float(np.linalg.eigvalsh(equations.G)[-1])
    for factor in (0.99, 0.97, 0.95, 0.9, 0.8, 0.5):
        trial = [it.rms for it in islice(descend([problem], start, theta, factor * limit, centred=False), 301)]
        if np.all(np.diff(trial[-100:]) <= 0.0):
            break
    return islice(descend([problem], start, theta, factor * limit, centred=False), steps + 1)


def newton(problem: Additive, steps: int) -> Iterator[Iterate]:
    return islice(gauss_newton(problem, np.zeros(problem.d), np.ones(problem.d)), steps + 1)


def final(iterates: Iterable[Iterate], truth: np.ndarray) -> tuple[float, int]:
    """The relative error where an iteration ends, and its steps; stops early once far below the target."""
    error, steps = np.inf, -1
    for steps, it in enumerate(iterates):  # noqa: B007
        error = relative_error(it.w, truth)
        if error < 1e-26:
            break
    return error, steps


# Figure 2: relative error against n/d


def figure2_cell(sigma: float, d: int, ratio: float, trials: int, steps: int) -> Cells:
    results: Cells = {"d": d, "ratio": ratio, "n": round(ratio * d)}
    runs: dict[str, Callable[[Additive], Iterator[Iterate]]] = {
        "centred": lambda problem: centred(problem, steps),
        "gauss-newton": lambda problem: newton(problem, 20),
    }
    for name, run in runs.items():
        ends = []
        for seed in range(trials):
            problem, truth = planted(d, round(ratio * d), sigma, seed)
            ends.append(final(run(problem), truth))
        results[name] = {"errors": [short(e) for e, _ in ends], "steps": [s for _, s in ends]}
    return results


def figure2_grid(quick: bool) -> list[tuple[str, tuple[Any, ...]]]:
    sizes, ratios = ((20, 40), (1.5, 2.0, 3.0)) if quick else ((50, 100, 200, 500), RATIOS)
    return [(f"d={d} n/d={ratio}", (d, ratio, 2 if quick else 10, 1000)) for d in sizes for ratio in ratios]


# Figure 3: loss and error against the iteration


def figure3_cell(sigma: float, d: int, n: int, seed: int, cap: int) -> Cells:
    problem, truth = planted(d, n, sigma, seed)
    runs = {
        "centred": centred(problem, 1000),
        "plain": plain(problem, truth, cap),
        "gauss-newton": newton(problem, 20),
    }
    return {"d": d, "n": n, "seed": seed} | {name: curve(run, truth) for name, run in runs.items()}


def curve(iterates: Iterable[Iterate], truth: np.ndarray) -> Cells:
    """Loss (Eq. 2) and relative error at all early and then about 60 logarithmic points a decade."""
    kept: Cells = {"iteration": [], "loss": [], "error": [], "reached": None}
    nxt, step = 0, float("nan")
    for tau, it in enumerate(iterates):
        error, step = relative_error(it.w, truth), it.step
        if kept["reached"] is None and error <= TARGET:
            kept["reached"] = tau
        done = error < 1e-26
        if tau >= nxt or done:
            kept["iteration"].append(tau)
            kept["loss"].append(short(0.5 * it.rms**2))
            kept["error"].append(short(error))
            nxt = max(tau + 1, int(tau * 1.04))
        if done:
            break
    return kept | {"step": step}


def figure3_grid(figure: str, quick: bool) -> list[tuple[str, tuple[Any, ...]]]:
    d, n = (20, 40) if quick else SIZE[figure]
    return [(f"trial {seed}", (d, n, seed, 3000 if quick else CAP[figure])) for seed in range(2 if quick else 10)]


# Compute to JSON, plot from JSON


def compute(figure: str, quick: bool, path: Path, console: Console, workers: int = 1) -> None:
    """Fill the missing cells of the JSON at ``path``."""
    header: Cells = {"figure": figure, "sigma": SIGMA[figure], "bound": 1.0, "quick": quick}
    two = figure.startswith("2")
    cell, grid = (figure2_cell, figure2_grid(quick)) if two else (figure3_cell, figure3_grid(figure, quick))
    fill(path, header, [(key, cell, (SIGMA[figure], *arguments)) for key, arguments in grid], console, workers)


def plot(path: Path) -> Path:
    """Draw the figure that the JSON at ``path`` describes; nothing is computed here."""
    return picture(path, lambda content, plt: (_plot2 if "2" in content["figure"] else _plot3)(content, plt))


COLOURS = ("#1b6ca8", "#2a9d6f", "#d98c1f", "#b23a48")


def _plot2(content: Cells, plt: Any) -> Any:
    fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    cells = list(content["cells"].values())
    titles = {
        "centred": "centred gradient, ≤ 1000 iterations",
        "gauss-newton": "Gauss–Newton, ≤ 20 steps (added)",
    }
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        for colour, d in zip(COLOURS, sorted({cell["d"] for cell in cells}), strict=False):
            rows = sorted((c["ratio"], max(np.mean(c[name]["errors"]), 1e-32)) for c in cells if c["d"] == d)
            ax.semilogy(*zip(*rows, strict=True), "o-", ms=4, lw=1.4, color=colour, label=f"d = {d}")
        ax.axhline(TARGET, color="0.6", lw=0.8, ls=":")
        ax.set(title=title, xlabel="n/d")
        ax.grid(alpha=0.25, lw=0.5)
    axes[0].set_ylabel("mean relative error  ‖ŵ − w‖² / ‖w‖²")
    fig.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside upper right", ncols=4)
    fig.suptitle(f"Figure {content['figure'][0]}({content['figure'][1]}): σ = {content['sigma']:g}", x=0.01, ha="left")
    return fig


def _plot3(content: Cells, plt: Any) -> Any:
    fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    trials = list(content["cells"].values())
    styles = {"centred": ("#b23a48", "-"), "plain": ("#1b6ca8", "--"), "gauss-newton": ("#2a9d6f", "-.")}
    for ax, quantity, label in zip(axes, ("loss", "error"), ("loss (2)", "relative error"), strict=True):
        for name, (colour, style) in styles.items():
            last = max(t[name]["iteration"][-1] for t in trials)
            grid = np.unique(np.geomspace(1, last, 300).astype(int))
            # a finished trial keeps its last value, as its iteration no longer moves
            logs = np.array(
                [np.interp(grid, t[name]["iteration"], np.log10(np.maximum(t[name][quantity], 1e-32))) for t in trials]
            )
            mean, spread = logs.mean(axis=0), logs.std(axis=0)
            ax.loglog(grid, 10.0**mean, style, color=colour, lw=1.6, label=name)
            ax.fill_between(grid, 10.0 ** (mean - spread), 10.0 ** (mean + spread), color=colour, alpha=0.15, lw=0)
        ax.set(xlabel="iteration", ylabel=label)
        ax.grid(alpha=0.25, lw=0.5)
    axes[1].axhline(TARGET, color="0.6", lw=0.8, ls=":")
    fig.legend(*axes[0].get_legend_handles_labels(), frameon=False, loc="outside upper right", ncols=3)
    d, n, figure = trials[0]["d"], trials[0]["n"], content["figure"]
    fig.suptitle(f"Figure {figure[0]}({figure[1]}): d = {d}, n = {n}, σ = {content['sigma']:g}", x=0.01, ha="left")
    return fig


main = command(tuple(SIGMA), FOLDER, compute, plot)

if __name__ == "__main__":
    typer.run(main)
