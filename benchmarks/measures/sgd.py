"""Compiled stochastic gradient descent (Figure 1 of Mondelli & Montanari) against a numpy loop: steps a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.clock import best_of
from benchmarks.compare import Speed
from benchmarks.results import Row
from benchmarks.text import table
from relumine import planted

NAME = "sgd"
FULL: Row = {"sizes": [[50, 4000], [350, 2000], [2500, 400]], "d": 50, "seconds": 3.0}
QUICK: Row = {"sizes": [[50, 500], [350, 200]], "d": 50, "seconds": 0.2}
MINUTES = (0.2, 0.02)
SLOPE = 2.5


def case(r: int, n: int, d: int, seconds: float) -> Row:
    """Both loops on the same samples, in turns; the best of each, so that a busy machine matters little."""
    from relumine.papers.mondelli2019 import sgd  # numba

    rng = np.random.default_rng(r)
    W, start = planted.weights(d, r, rng, family="centred_haar"), planted.weights(d, r, rng)
    X = rng.normal(size=(n, d))
    y, step = sgd.labels(X, W, SLOPE), 0.1 / (r * d)

    def compiled() -> None:
        sgd.descend(X, y, np.vstack([start, np.zeros_like(start)]), 0, step, SLOPE)

    def plainly() -> None:
        sgd.descend_plainly(X, y, start.copy(), np.zeros_like(start), 0, step, SLOPE)

    ours, theirs = best_of(compiled, plainly, seconds=seconds)
    return {"r": r, "n": n, "steps_a_second": n / ours, "numpy_steps_a_second": n / theirs, "ratio": theirs / ours}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for r, n in settings["sizes"]:
        yield f"r={r}", partial(case, r, n, settings["d"], settings["seconds"])


def elsewhere(report: Row) -> dict[str, str]:
    rows = [
        [str(r["r"]), f"{r['steps_a_second']:,.0f}", f"{r['numpy_steps_a_second']:,.0f}", f"{r['ratio']:.1f}"]
        for r in report["rows"]
    ]
    text = (
        f"Steps a second of the compiled descent and of a numpy loop, d = {report['settings']['d']}, one thread, "
        "CPU time (`python -m benchmarks run --only sgd`):"
    )
    return {"docs/hardness.md": text + "\n\n" + table(["r", "compiled", "numpy", "ratio"], rows)}


def comparable(report: Row) -> dict[str, Any]:
    return {f"against numpy, {r['key']}": Speed(r["ratio"], 1.4) for r in report["rows"]}
