"""How many samples a smooth activation takes: σ(x) = tanh(5x/2), random units with biases, and orthonormal ones.

The third moment shows orthonormal units of an odd σ at once; "blind" is the same search with random directions instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import relumine as rl
from benchmarks.counting import Count
from benchmarks.measures.fair import EXACT
from benchmarks.results import Row
from benchmarks.text import seeds_of, table
from relumine.fit.rows import MemoryRows
from relumine.fit.starts import random_directions
from relumine.papers.mondelli2019.figure_recover import SteepTanh
from relumine.recovery import begin

NAME = "smooth"
FULL: Row = {
    "m": 10,
    "kinds": ["random", "orthonormal", "blind"],
    "ratios": [6, 12, 20, 30],
    "seeds": 5,
    "first": 70000,
}
QUICK: Row = FULL | {"ratios": [30], "seeds": 2}
MINUTES = (3.0, 0.03)
KINDS = {
    "random": "random directions, b in [−1, 1]",
    "orthonormal": "orthonormal, b = 0, a = 1",
    "blind": "orthonormal, without the third moment",
}


def at_random(rng: np.random.Generator, k: int, rows: MemoryRows) -> np.ndarray:
    """In place of the directions that the third moment shows."""
    return random_directions(rng, k, rows.columns)


def solve(kind: str, m: int, ratio: int, seed: int) -> Row:
    """One recovery, d = m, from ``ratio`` samples for each of the m(d+2) parameters."""
    family: Row = {} if kind == "random" else {"family": "orthonormal"}
    truth = rl.planted.network(m, m, rng=seed, activation=SteepTanh(), **family)
    n = ratio * m * (m + 2)
    X, y = rl.planted.sample(truth, n, rng=seed + 1)
    with patch.object(begin, "third_moment_directions", at_random) if kind == "blind" else nullcontext():
        found = rl.recover(X, y, width=m, activation=truth.activation, rng=seed + 2, on_failure="return")
    error = rl.metrics.parameter_error(truth, found.network)
    row = {"kind": kind, "ratio": ratio, "n": n, "seed": seed, "starts": int(found.search.starts)}
    return row | {"status": found.status.value, "error": error, "exact": error <= EXACT}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for kind in settings["kinds"]:
        for ratio in settings["ratios"]:
            for seed in range(settings["first"], settings["first"] + settings["seeds"]):
                yield f"{kind} {ratio} seed {seed}", partial(solve, kind, settings["m"], ratio, seed)


def gather(report: Row, kind: str) -> dict[int, list[Row]]:
    """Recoveries by samples per parameter."""
    ratios = report["settings"]["ratios"]
    found = {ratio: [r for r in report["rows"] if (r["kind"], r["ratio"]) == (kind, ratio)] for ratio in ratios}
    return {ratio: rows for ratio, rows in found.items() if rows}


def exact(rows: list[Row]) -> Count:
    return Count(sum(row["exact"] for row in rows), len(rows))


def elsewhere(report: Row) -> dict[str, str]:
    """One table for two pages."""
    m, ratios = report["settings"]["m"], report["settings"]["ratios"]
    found = {
        kind: {ratio: f"{exact(rows).hits} of {len(rows)} ({_starts(rows)})" for ratio, rows in by_ratio.items()}
        for kind in KINDS
        if (by_ratio := gather(report, kind))
    }
    header = [f"d = m = {m}; samples:", *(f"{ratio} per parameter" for ratio in ratios)]
    lines = [[KINDS[kind], *(cells.get(ratio, "") for ratio in ratios)] for kind, cells in found.items()]
    text = f"`recover` for σ(x) = tanh(5x/2), exact to 1e-8 (and the median number of starts). {seeds_of(report)}"
    return dict.fromkeys(["docs/advise.md", "docs/hardness.md"], f"{text}\n\n{table(header, lines)}")


def _starts(rows: list[Row]) -> str:
    starts = float(np.median([row["starts"] for row in rows]))
    return f"{starts:g} start" + ("" if starts == 1.0 else "s")


def comparable(report: Row) -> dict[str, Any]:
    return {
        f"{kind}, {ratio} samples per parameter": exact(rows)
        for kind in KINDS
        for ratio, rows in gather(report, kind).items()
    }
