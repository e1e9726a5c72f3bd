"""Figure 1 of Mondelli & Montanari 2019, "On the connection between learning two-layer neural networks and tensors".

    python -m relumine.papers.mondelli2019.figure --figure 1           # compute (resuming), then plot
    python -m relumine.papers.mondelli2019.figure --quick              # seconds
    python -m relumine.papers.mondelli2019.figure --plot-only

Protocol (section 6 there): d = 50, r ∈ {50, 350, 2500}, σ(x) = tanh(5x/2), y = Σ σ(w_i·x); the weights are r/d Haar
matrices, centred; n = 5·10⁶ samples, each used once, fixed step s, Polyak–Ruppert averaging. Errors are those of the
average: (y − ŷ)² over that of the best a + b‖x‖², both summed over windows of 10⁴ samples, each sample predicted
before it is used; and ½ mean_i min_j ‖ŵ_i − w_j‖² + ½ mean_j min_i ‖ŵ_i − w_j‖².

The paper's text does not give the steps or the start. Here s = c/(rd), c ∈ {0.05, 0.1, 0.2} (from c = 0.4 on the
weights of r = 50 run away), and the start is uniform on the unit sphere, so the generalisation error begins near 2: two
independent networks. Figure "small" starts from length 0.1 instead, near the predictor 0. Figure "recover" is
``relumine.recover`` on the same three teachers, with a time limit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from relumine import planted
from relumine.arrays import Array, unit_rows
from relumine.formats.files import write_atomically
from relumine.papers.cells import Cells, command, fill, picture, short

FOLDER = Path("mondelli2019")  # where JSON and pictures go unless told otherwise
FIGURES = ("1", "small", "recover")
SLOPE, SEED = 2.5, 0  # the slope is the paper's
FULL: Cells = {"d": 50, "widths": [50, 350, 2500], "n": 5_000_000, "window": 10_000}
QUICK: Cells = {"d": 6, "widths": [6, 18, 36], "n": 40_000, "window": 2_000}
STEPS = (0.05, 0.1, 0.2)  # times 1/(rd)
START = {"1": 1.0, "small": 0.1}  # length of the first weights
SAVE_EVERY = 20.0  # seconds: what an interrupted run loses
COLUMNS = ("one", "q", "qq", "y", "yq", "yy", "loss", "weights", "weights_last", "cpu")  # of a window's record


def teacher(d: int, r: int) -> Array:
    return planted.weights(d, r, np.random.default_rng([SEED, r]), family="centred_haar")


def weight_error(W: Array, estimate: Array) -> float:
    """½ mean_i min_j ‖ŵ_i − w_j‖² + ½ mean_j min_i ‖ŵ_i − w_j‖²."""
    apart = (W**2).sum(axis=1)[:, None] + (estimate**2).sum(axis=1) - 2.0 * W @ estimate.T
    return float(0.5 * apart.min(axis=0).mean() + 0.5 * apart.min(axis=1).mean())


# One run of stochastic gradient descent, a window at a time


def run_sgd(d: int, r: int, c: float, n: int, window: int, start: float, saved: str) -> Cells:
    """All windows of one run; ``saved`` holds what an interrupted run had reached."""
    state, records = _resume(saved, d, r, start)
    W, last_save = teacher(d, r), time.monotonic()
    while len(records) * window < n:  # a window a time: its record and the state are all that a resumed run needs
        records.append(_window(W, state, len(records), window, c / (r * d)))
        if not np.isfinite(state).all():
            break
        if time.monotonic() - last_save > SAVE_EVERY:
            _keep(saved, state, records)
            last_save = time.monotonic()
    Path(saved).unlink(missing_ok=True)
    table = np.array(records)
    measured = np.isfinite(table[:, COLUMNS.index("weights")])
    return {
        "d": d,
        "r": r,
        "c": c,
        "step": c / (r * d),
        "samples": [window * (k + 1) for k in range(len(table))],
        "error": [short(e) for e in relative_error(table)],
        "weights_samples": [window * (k + 1) for k in np.flatnonzero(measured).tolist()],
        "weights": [short(e) for e in table[measured, COLUMNS.index("weights")]],
        "weights_last": [short(e) for e in table[measured, COLUMNS.index("weights_last")]],
        "start": short(weight_error(W, _first(d, r, start))),
        "variance": short(table[:, COLUMNS.index("yy")].sum() / table[:, 0].sum()),
        "cpu_seconds": short(table[:, COLUMNS.index("cpu")].sum()),
        "diverged": not bool(np.isfinite(state).all()),
    }


def _window(W: Array, state: Array, index: int, window: int, step: float) -> list[float]:
    from relumine.papers.mondelli2019 import sgd

    begin, r = time.process_time(), len(W)
    X = np.random.default_rng([SEED, r, index]).normal(size=(window, W.shape[1]))
    y = sgd.labels(X, W, SLOPE)
    predictions = sgd.descend(X, y, state, index * window, step, SLOPE)
    q, seen = (X**2).sum(axis=1), (index + 1) * window
    sums = [float(window), q.sum(), (q**2).sum(), y.sum(), y @ q, y @ y, ((y - predictions) ** 2).sum()]
    errors = [np.nan, np.nan]  # r² distances are not worth their time in every window
    if (index + 1) % max(1, r // 250) == 0:
        errors = [weight_error(W, state[r:] / seen), weight_error(W, state[:r])]
    return [float(s) for s in sums] + errors + [time.process_time() - begin]


def relative_error(table: Array) -> Array:
    """Σ(y − ŷ)² of each window over that of the best a + b‖x‖², which is fitted to all windows together."""
    one, q, qq, y, yq, yy, loss = table[:, :7].T
    a, b = np.linalg.solve([[one.sum(), q.sum()], [q.sum(), qq.sum()]], [y.sum(), yq.sum()])
    norm_only = yy - 2 * (a * y + b * yq) + a * a * one + 2 * a * b * q + b * b * qq
    return np.asarray(loss / norm_only)


def _first(d: int, r: int, length: float) -> Array:
    return np.asarray(length * unit_rows(np.random.default_rng([SEED, r, 10**9]).normal(size=(r, d))))


def _resume(saved: str, d: int, r: int, start: float) -> tuple[Array, list[list[float]]]:
    if Path(saved).exists():
        with np.load(saved, allow_pickle=False) as arrays:
            return arrays["state"], arrays["records"].tolist()
    W = _first(d, r, start)
    return np.concatenate([W, np.zeros_like(W)]), []


def _keep(saved: str, state: Array, records: list[list[float]]) -> None:
    Path(saved).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(Path(saved), lambda file: np.savez(file, state=state, records=np.array(records)))


# The figures


def grid(figure: str, quick: bool, out: Path) -> list[tuple[str, Callable[..., Cells], tuple[Any, ...]]]:
    size = QUICK if quick else FULL
    if figure == "recover":
        from relumine.papers.mondelli2019.figure_recover import cells

        return cells(size["d"], size["widths"], quick)
    steps = STEPS if figure == "1" else STEPS[-1:]
    result = []
    for c in reversed(steps):  # a curve for every r first
        for r in size["widths"]:
            saved = out / f"state-{figure}-{'quick-' if quick else ''}{r}-{c}.npz"
            arguments = (size["d"], r, c, size["n"], size["window"], START[figure], str(saved))
            result.append((f"{r},{c}", run_sgd, arguments))
    return result


def compute(figure: str, quick: bool, path: Path, console: Console, workers: int = 1) -> None:
    """Fill the missing cells of the JSON at ``path``."""
    header: Cells = {"figure": figure, "seed": SEED, "quick": quick} | (QUICK if quick else FULL)
    fill(path, header, grid(figure, quick, path.parent), console, workers)


# Pictures, from the JSON alone

_COLOURS = {0.05: "#d98c1f", 0.1: "#2a9d6f", 0.2: "#1b6ca8"}


def plot(path: Path) -> Path | None:
    """Draw what the JSON at ``path`` holds; nothing is computed here. "recover" has numbers only."""
    return None if json.loads(path.read_text())["figure"] == "recover" else picture(path, _plot)


def _plot(content: Cells, plt: Any) -> Any:
    widths = content["widths"]
    fig, axes = plt.subplots(2, len(widths), figsize=(3.6 * len(widths), 5.6), sharex=True, layout="constrained")
    for column, r in zip(axes.T, widths, strict=True):
        for cell in sorted((c for c in content["cells"].values() if c["r"] == r), key=lambda c: c["c"]):
            style = {"color": _COLOURS[cell["c"]], "lw": 1.2, "label": f"s = {cell['step']:.2g}"}
            column[0].semilogy(cell["samples"], cell["error"], **style)
            column[1].semilogy([0, *cell["weights_samples"]], [cell["start"], *cell["weights"]], **style)
        column[0].axhline(1.0, color="0.6", lw=0.8, ls="--")
        column[0].set_title(f"r = {r}", loc="left", fontsize=10)
        column[1].set_xlabel("samples")
        if column[0].get_legend_handles_labels()[0]:  # a run may not be finished
            column[0].legend(frameon=False, fontsize=8)
        for ax in column:
            ax.grid(alpha=0.25, lw=0.5)
    for row, label in zip(axes, ("error relative to the norm-only predictor", "weight error"), strict=True):
        lows, highs = zip(*(ax.get_ylim() for ax in row), strict=True)
        for ax in row:
            ax.set_ylim(min(lows), max(highs))
        row[0].set_ylabel(label)
    return fig


main = command(FIGURES, FOLDER, compute, plot)

if __name__ == "__main__":
    typer.run(main)
