"""Decoding w from y = Σ_j relu(w_j + x_j), two thousand coordinates: every method, and what it costs in copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.clock import best_of, timed
from benchmarks.compare import Speed
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table
from relumine.methods.oymak import decode

NAME = "decoding"
FULL: Row = {"size": [2000, 4000], "methods": ["gauss-newton", "centered"], "first": 0}
QUICK: Row = {"size": [500, 1000], "methods": ["gauss-newton", "centered"], "first": 0}
MINUTES = (0.5, 0.1)


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    d, n = settings["size"]
    for method in settings["methods"]:

        def work(method: Any = method) -> Row:
            rng = np.random.default_rng(settings["first"])
            w = rng.uniform(-1.0, 1.0, d)
            X = 5.0 * rng.standard_normal((n, d))
            y = np.maximum(X + w, 0.0).sum(axis=1)
            found, seconds = timed(lambda: decode(X, y, 1.0, method))
            (copy,) = best_of(X.copy, seconds=0.2)
            row = {"method": method, "d": d, "n": n, "seconds": seconds, "copies": seconds / copy}
            row |= {"iterations": found.iterations, "status": found.status.value}
            return row | {"error": float(np.linalg.norm(found.w - w) / np.linalg.norm(w))}

        yield f"{method} ({d}, {n})", work


def section(report: Row) -> str:
    rows = [
        [
            r["method"],
            f"({r['d']:,}, {r['n']:,})",
            r["status"],
            f"{r['error']:.0e}",
            str(r["iterations"]),
            duration(r["seconds"]),
            f"{r['copies']:.0f}",
        ]
        for r in report["rows"]
    ]
    header = ["method", "(d, n)", "status", "relative error", "iterations", "time", "copies of the data"]
    return "\n\n".join(
        [
            "## Decoding",
            "`decode` on Σ_j relu(w_j + x_j); time also as the number of copies of X that would take as long. "
            f"{seeds_of(report)}",
            table(header, rows),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    return {f"{r['key']}: time in copies": Speed(1.0 / r["copies"], 1.5) for r in report["rows"]}
