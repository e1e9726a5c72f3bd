"""What `advise` says a start will take, against what it took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.clock import now
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table

NAME = "advice"
FULL: Row = {
    # d, m, samples for each of the m(d+1) parameters, σ
    "sizes": [
        *([d, m, 5, "relu"] for d, m in ((10, 5), (20, 20), (10, 20), (50, 20), (100, 10))),
        [10, 40, 8, "relu"],
        [50, 50, 6, "relu"],
        [10, 10, 20, "tanh"],
    ],
    "seeds": 3,
    "first": 80000,
}
QUICK: Row = FULL | {"sizes": [[10, 5, 5, "relu"], [10, 10, 20, "tanh"]], "seeds": 1}
MINUTES = (1.1, 0.03)


def compare(d: int, m: int, ratio: int, activation: str, seed: int) -> Row:
    """The estimate, and CPU seconds over starts."""
    truth = rl.planted.network(d, m, rng=seed, activation=activation)
    X, y = rl.planted.sample(truth, ratio * m * (d + 1), rng=seed + 1)
    estimate = rl.advise(dim=d, width=m, activation=activation, samples=len(y)).seconds
    began = now()
    found = rl.recover(X, y, width=m, activation=activation, rng=seed + 2, on_failure="return")
    row: Row = {"d": d, "m": m, "n": len(y), "activation": activation, "seed": seed, "seconds": now() - began}
    return row | {"estimate": estimate, "starts": max(int(found.search.starts), 1)}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for size in settings["sizes"]:
        for seed in range(settings["first"], settings["first"] + settings["seeds"]):
            yield f"{size} seed {seed}", partial(compare, *size, seed)


def gather(report: Row) -> dict[tuple[int, int, int, str], tuple[float, float]]:
    """Median estimate and median time of a start, by size."""
    found: dict[tuple[int, int, int, str], list[Row]] = defaultdict(list)
    for row in report["rows"]:
        found[row["d"], row["m"], row["n"], row["activation"]].append(row)
    return {
        size: (
            float(np.median([row["estimate"] for row in rows])),
            float(np.median([row["seconds"] / row["starts"] for row in rows])),
        )
        for size, rows in found.items()
    }


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/advise.md."""
    rows = [
        [f"({d}, {m})", name, f"{n:,}", duration(estimate), duration(taken), f"{estimate / taken:.1f}"]
        for (d, m, n, name), (estimate, taken) in gather(report).items()
    ]
    header = ["(d, m)", "σ", "n", "estimate", "CPU time of a start", "estimate over time"]
    text = f"Estimate and time of one start, medians of {report['settings']['seeds']} networks. {seeds_of(report)}"
    return {"docs/advise.md": "\n\n".join([text, table(header, rows)])}


def comparable(report: Row) -> dict[str, Any]:
    """Nothing: an estimate may be off by a factor, and times are compared elsewhere."""
    return {}
