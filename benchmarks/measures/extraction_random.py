"""Random rows, the way of `extract` before it chose them: the width is given, and the search takes minutes.

[d, m, most rows]; all cores (OPENBLAS_NUM_THREADS). Shown beside the chosen rows, by `extraction`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.child import run_alone
from benchmarks.counting import Count
from benchmarks.measures.extraction import looked_into, random_network
from benchmarks.results import Row

NAME = "extraction_random"
FULL: Row = {
    "shapes": [[20, 10, 20_000], [64, 16, 100_000], [784, 32, 185_363], [784, 64, 301_440]],
    "limit": 3600.0,
    "first": 46000,
}
QUICK: Row = {"shapes": [[10, 5, 5_000]], "limit": 60.0, "first": 46000}
MINUTES = (30.0, 0.06)


def extraction(d: int, m: int, budget: int, seed: int, limit: float) -> Row:
    """One network with N(0, 1) parameters, from random rows."""
    return looked_into(random_network(d, m, 1, seed), "random", budget, seed, limit)


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    for d, m, budget in settings["shapes"]:

        def work(d: int = d, m: int = m, budget: int = budget) -> Row:
            done = run_alone(f"{__name__}:extraction", d, m, budget, settings["first"], settings["limit"])
            return {"threads": threads} | done

        yield f"{d}-{m}-1", work


def comparable(report: Row) -> dict[str, Any]:
    hits = sum(r["error"] is not None and r["error"] <= 1e-8 for r in report["rows"])
    return {"extracted exactly from random rows": Count(hits, len(report["rows"]))}
