"""Figures 1(a), 1(b), 1(c) of Zhong et al. 2017, "Recovery guarantees for one-hidden-layer neural networks".

    python -m relumine.papers.zhong2017.figure --figure 1a            # compute (resuming what the JSON has), then plot
    python -m relumine.papers.zhong2017.figure --figure all --quick   # minutes become seconds
    python -m relumine.papers.zhong2017.figure --figure 1c --plot-only

Protocol (section 7 there): squared ReLU, k = 5, W* = U diag(linspace(1, κ, k)) Vᵀ with κ = 2, v* = ±1, L = 100
projections, η = 0.02, no resampling; random starts are standard normal. A trial recovers if
max_j ‖w_j − w*_j‖/‖w*_j‖ ≤ 0.01 after matching and v is exact. Descent ends at relative loss 1e-9 or after 4000
iterations. Added: plain beside debiased moments in 1(b); figure "line", the smallest n for 100 % recovery on the grid
n = 250, 500, …, 2500 with thirty trials (``select`` on, relative loss 1e-7); and figure "auto", the grid of 1(a)
for relumine's own method, with its error in all parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from scipy.optimize import linear_sum_assignment

from relumine import Network, metrics, planted, recover
from relumine.data.views import rows_of
from relumine.papers.cells import Cells, command, fill, picture, short
from relumine.papers.zhong2017.algorithms import initialise, learn
from relumine.papers.zhong2017.descent import descend

FOLDER = Path("zhong2017")  # where JSON and pictures go unless told otherwise
FIGURES = ("1a", "1b", "1c", "line", "auto")
K, KAPPA, STEP, RECOVERED = 5, 2.0, 0.02, 0.01  # the paper's
LINE_STEP, LINE_TOP = 250, 2500  # the grid of n on which the line is looked for
TRIALS = {"1a": 10, "1b": 10, "auto": 2}


def problem(d: int, n: int, seed: int) -> tuple[Network, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, d, n])
    truth = planted.network(d, K, rng, family="conditioned", activation="squared_relu", condition=KAPPA)
    return truth, *planted.sample(truth, n, rng=rng)


def distance(truth: Network, W: np.ndarray, v: np.ndarray) -> tuple[float, bool]:
    """The paper's error max_j ‖w_j − w*_j‖/‖w*_j‖ under the best matching, and whether v is exact under it."""
    apart = np.linalg.norm(truth.W[:, None] - W[None], axis=2) / np.linalg.norm(truth.W, axis=1)[:, None]
    rows, columns = linear_sum_assignment(apart)
    return float(apart[rows, columns].max()), bool(np.array_equal(v[columns], truth.a))


# One cell of each figure


def trial(d: int, n: int, seed: int, select: bool = False, tol: float = 1e-9) -> tuple[float, bool, int]:
    """Algorithm 2 on one problem: error, whether v is exact, steps."""
    truth, X, y = problem(d, n, seed)
    start = initialise(X, y, K, truth.activation, np.random.default_rng(seed), select=select)
    end, losses = learn(X, y, start, truth.activation, step=STEP, iterations=4000, tol=tol)
    return (*distance(truth, end.W, end.v), len(losses) - 1)


def cell_1a(d: int, n: int, trials: int) -> Cells:
    errors, exact, steps = zip(*(trial(d, n, seed) for seed in range(trials)), strict=True)
    rate = float(np.mean([e <= RECOVERED and v for e, v in zip(errors, exact, strict=True)]))
    return {"d": d, "n": n, "rate": rate, "errors": [short(e) for e in errors], "v": exact, "steps": steps}


def cell_1b(d: int, n: int, trials: int) -> Cells:
    result: Cells = {"d": d, "n": n}
    for moments in ("debiased", "plain"):
        ends = []
        for seed in range(trials):
            truth, X, y = problem(d, n, seed)
            start = initialise(X, y, K, truth.activation, np.random.default_rng(seed), moments=moments)
            ends.append((*distance(truth, start.W, start.v), bool(start.v.sum() == truth.a.sum())))
        errors, _, sums = zip(*ends, strict=True)
        result[moments] = {"errors": [short(e) for e in errors], "sums": sums}
    return result


def cell_1c(d: int, n: int, seed: int, iterations: int) -> Cells:
    truth, X, y = problem(d, n, seed)
    rng = np.random.default_rng(seed)
    tensor = initialise(X, y, K, truth.activation, rng)
    W, v = rng.normal(size=(K, d)), rng.normal(size=K)
    runs = {
        "tensor": (tensor.W, tensor.v, False),
        "random W and v": (W, v, True),
        "random W, v known": (W, truth.a, False),
        "small random W and v": (W / np.sqrt(d), v, True),
    }
    curves = {}
    rows = rows_of(X, y)
    for name, (W0, v0, both) in runs.items():
        losses = []
        for it in islice(descend(rows, W0, v0, truth.activation, STEP, both=both), iterations + 1):
            losses.append(it.loss)
            if it.loss > 1e9:  # diverged
                break
        kept = np.unique(np.linspace(0, len(losses) - 1, 250).astype(int))
        curves[name] = {"iteration": kept.tolist(), "loss": [short(losses[t]) for t in kept]}
    return {"d": d, "n": n, "seed": seed, "curves": curves}


def cell_line(d: int, trials: int, top: int = LINE_TOP) -> Cells:
    """Down from ``top`` in equal steps while every trial recovers: the smallest n from which on all of them do."""
    tried: list[tuple[int, int]] = []
    for n in range(top, 0, -LINE_STEP):
        ends = (trial(d, n, seed, select=True, tol=1e-7) for seed in range(trials))
        # up to the first failure
        recovered = sum(1 for _ in takewhile(lambda end: end[0] <= RECOVERED and end[1], ends))
        tried.append((n, recovered))
        if recovered < trials:
            break
    good = [n for n, recovered in tried if recovered == trials]
    return {"d": d, "tried": tried, "least": min(good, default=None)}


def cell_auto(d: int, n: int, trials: int) -> Cells:
    ends = []
    for seed in range(trials):
        truth, X, y = problem(d, n, seed)
        found = recover(X, y, width=K, activation="squared_relu", rng=seed, on_failure="return")
        ends.append((metrics.parameter_error(truth, found.network), found.seconds))
    errors, seconds = zip(*ends, strict=True)
    rate = float(np.mean(np.array(errors) <= 1e-8))
    return {"d": d, "n": n, "rate": rate, "errors": [short(e) for e in errors], "seconds": short(np.mean(seconds))}


CELL: dict[str, Callable[..., Cells]] = {
    "1a": cell_1a,
    "1b": cell_1b,
    "1c": cell_1c,
    "line": cell_line,
    "auto": cell_auto,
}


def grid(figure: str, quick: bool) -> list[tuple[str, tuple[Any, ...]]]:
    if figure == "1c":
        return [(f"trial {seed}", (10, 4000 if quick else 10_000, seed, 3000)) for seed in range(1 if quick else 5)]
    if figure == "line":
        return [(f"d={d}", (d, 2, 1000) if quick else (d, 30)) for d in ((10, 20) if quick else range(10, 101, 10))]
    sizes, samples = ((10, 20), (1000, 3000)) if quick else (range(10, 101, 10), range(1000, 10_001, 1000))
    trials = 2 if quick else TRIALS[figure]
    cells = [(d, n) for d in sizes for n in samples]
    if figure == "auto" and not quick:  # down to n = 3kd, which is below the paper's smallest n for d < 67
        cells = sorted({(d, n) for d, n in cells if n > 3 * K * d} | {(d, c * K * d) for d in sizes for c in (3, 4)})
    return [(f"d={d} n={n}", (d, n, trials)) for d, n in cells]


# Compute to JSON, plot from JSON


def compute(figure: str, quick: bool, path: Path, console: Console, workers: int = 1) -> None:
    """Fill the missing cells of the JSON at ``path``."""
    header: Cells = {"figure": figure, "k": K, "kappa": KAPPA, "step": STEP, "quick": quick}
    tasks = [(key, CELL[figure], arguments) for key, arguments in grid(figure, quick)]
    fill(path, header, tasks, console, workers)


def line(points: dict[int, int]) -> tuple[float, float, float]:
    """Slope, intercept and R² of the straight line through (d, n)."""
    d, n = np.array(list(points)), np.array(list(points.values()))
    slope, intercept = np.polyfit(d, n, 1)
    rest = n - slope * d - intercept
    spread = float(((n - n.mean()) ** 2).sum())
    return float(slope), float(intercept), 1.0 - float(rest @ rest) / spread if spread > 0.0 else 0.0


def plot(path: Path) -> Path:
    """Draw the figure that the JSON at ``path`` describes; nothing is computed here."""
    return picture(path, lambda content, plt: PLOT[content["figure"]](content, plt))


def _image(ax: Any, cells: list[Cells], values: list[float], **options: Any) -> Any:
    sizes, samples = sorted({c["d"] for c in cells}), sorted({c["n"] for c in cells})
    table = np.full((len(samples), len(sizes)), np.nan)
    for cell, value in zip(cells, values, strict=True):
        table[samples.index(cell["n"]), sizes.index(cell["d"])] = value
    shown = ax.imshow(table, origin="lower", aspect="auto", **options)
    ax.set_xticks(range(len(sizes)), sizes)
    ax.set_yticks(range(len(samples)), samples)
    ax.set(xlabel="d", ylabel="n")
    return shown


def _plot_a(content: Cells, plt: Any) -> Any:
    cells = list(content["cells"].values())
    fig, ax = plt.subplots(figsize=(5.4, 4), layout="constrained")
    fig.colorbar(_image(ax, cells, [c["rate"] for c in cells], cmap="gray", vmin=0.0, vmax=1.0), label="recovered")
    ax.set_title("Figure 1(a): tensor start and descent", loc="left", fontsize=10)
    return fig


def _plot_b(content: Cells, plt: Any) -> Any:
    cells = list(content["cells"].values())
    fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for ax, name in zip(axes, ("debiased", "plain"), strict=True):
        # as in the paper, black where the signs were wrong in any trial
        values = [np.mean(c[name]["errors"]) if all(c[name]["sums"]) else 1.0 for c in cells]
        shown = _image(ax, cells, values, cmap="gray_r", vmin=0.0, vmax=1.0)
        ax.set_title(f"{name} moments", loc="left", fontsize=10)
    fig.colorbar(shown, ax=axes, label="mean error of the start (black: signs wrong)")
    fig.suptitle("Figure 1(b): tensor start", x=0.01, ha="left")
    return fig


def _plot_c(content: Cells, plt: Any) -> Any:
    fig, ax = plt.subplots(figsize=(5.4, 4), layout="constrained")
    styles = {
        "tensor": ("#1b6ca8", "(I) tensor start"),
        "random W and v": ("#b23a48", "(II) random W and v"),
        "random W, v known": ("#2a9d6f", "(III) random W, v known"),
        "small random W and v": ("#d98c1f", "(II) with w divided by √d (added)"),
    }
    for index, trial in enumerate(content["cells"].values()):
        for name, (colour, label) in styles.items():
            curve = trial["curves"][name]
            loss = np.maximum(curve["loss"], 1e-32)
            ax.semilogy(curve["iteration"], loss, color=colour, lw=1.2, label=label if index == 0 else None)
    title = f"Figure 1(c): d = {trial['d']}, k = {content['k']}, n = {trial['n']}, η = {content['step']:g}"
    ax.set(xlabel="iteration", ylabel="loss", title=title)
    ax.grid(alpha=0.25, lw=0.5)
    ax.set_ylim(1e-30, 1e9)
    ax.legend(frameon=False)
    return fig


def _plot_line(content: Cells, plt: Any) -> Any:
    fig, ax = plt.subplots(figsize=(5.4, 4), layout="constrained")
    least = {c["d"]: c["least"] for c in content["cells"].values() if c["least"] is not None}
    ax.plot(list(least), list(least.values()), "o", color="#1b6ca8")
    if len(least) > 1:
        slope, intercept, fit = line(least)
        sizes = np.array(sorted(least))
        label = f"n = {slope:.0f} d {intercept:+.0f}, R² = {fit:.2f}"
        ax.plot(sizes, slope * sizes + intercept, "--", color="0.5", lw=1, label=label)
        ax.legend(frameon=False)
    ax.set(xlabel="d", ylabel="n", title="smallest n from which every trial recovers")
    return fig


def _plot_auto(content: Cells, plt: Any) -> Any:
    cells = list(content["cells"].values())
    fig, ax = plt.subplots(figsize=(5.4, 4), layout="constrained")
    for colour, good in (("#1b6ca8", True), ("#b23a48", False)):
        points = [(c["d"], c["n"]) for c in cells if (c["rate"] == 1.0) == good]
        if points:
            d, n = zip(*points, strict=True)
            ax.scatter(d, n, color=colour, s=24, label="every trial exact to 1e-8" if good else "some trial failed")
    sizes = np.array(sorted({c["d"] for c in cells}))
    ax.plot(sizes, 3 * K * sizes, "--", color="0.6", lw=1, label="n = 3kd")
    ax.set(xlabel="d", ylabel="n", yscale="log", title="method='auto' on the same problems")
    ax.legend(frameon=False)
    return fig


PLOT: dict[str, Callable[[Cells, Any], Any]] = {
    "1a": _plot_a,
    "1b": _plot_b,
    "1c": _plot_c,
    "line": _plot_line,
    "auto": _plot_auto,
}
main = command(FIGURES, FOLDER, compute, plot)

if __name__ == "__main__":
    typer.run(main)
