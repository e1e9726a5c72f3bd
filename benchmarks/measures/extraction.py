"""Queries that `extract` needs, beside the published figures of attacks that choose their queries.

Random networks: every weight, bias and output weight N(0, 1). Rows are standard Gaussian, at most 2^17.5 of them for
784-32-1 and six per parameter for 784-64-1 (784-128-1 takes about an hour on two idle cores, if not more). Each shape
runs in a process of its own, for its peak memory, with at most ``limit`` seconds of wall time; give it all cores
(OPENBLAS_NUM_THREADS).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from math import log2
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.child import peak_bytes, run_alone
from benchmarks.clock import now
from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "extraction"
# [d, m, most queries]
FULL: Row = {
    "shapes": [[20, 10, 20_000], [64, 16, 100_000], [784, 32, int(2**17.5)], [784, 64, 301_440]],
    "limit": 3600.0,
    "first": 46000,
}
QUICK: Row = {"shapes": [[10, 5, 5_000], [20, 10, 20_000]], "limit": 60.0, "first": 46000}
MINUTES = (40.0, 0.1)
# log2 of the queries of Carlini, Jagielski, Mironov 2020 (Table 1), whose attack chooses every query
PUBLISHED = {(784, 32): 19.2, (784, 128): 21.5}


def extraction(d: int, m: int, budget: int, seed: int, limit: float) -> Row:
    """One network with N(0, 1) parameters, looked into."""
    rng = np.random.default_rng(seed)
    truth = rl.Network(rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=m))
    wall, cpu = time.perf_counter(), now()

    def say(p: rl.results.Progress) -> None:
        line = f"{time.perf_counter() - wall:8.0f} s  {p.stage}  step {p.iteration}  relative loss {p.loss:.2e}"
        print(line, file=sys.stderr, flush=True)

    asked = {"dim": d, "width": m, "budget": budget, "seconds": limit, "rng": seed + 1}
    found = rl.extract(truth, **asked, on_failure="return", progress=say)
    error = rl.metrics.parameter_error(truth, found.network)
    return {
        "queries": found.queries,
        "status": found.status.value,
        "error": error if np.isfinite(error) else None,
        "residual": float(found.certificate.residual),
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": now() - cpu,
        "starts": found.search.starts,
        "peak_bytes": peak_bytes(),
    }


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    for d, m, budget in settings["shapes"]:

        def work(d: int = d, m: int = m, budget: int = budget) -> Row:
            found = run_alone(f"{__name__}:extraction", d, m, budget, settings["first"], settings["limit"])
            return {"d": d, "m": m, "parameters": m * (d + 1), "budget": budget, "threads": threads} | found

        yield f"{d}-{m}-1", work


def section(report: Row) -> str:
    rows = []
    for r in report["rows"]:
        published = PUBLISHED.get((r["d"], r["m"]))
        error = "not recovered" if r["error"] is None else f"{r['error']:.0e}"
        rows.append(
            [
                f"{r['d']}-{r['m']}-1",
                f"{r['parameters']:,}",
                f"{r['queries']:,} = 2^{log2(r['queries']):.1f}",
                f"{r['queries'] / r['parameters']:.1f}",
                "" if published is None else f"2^{published}",
                f"{error} ({r['status']})",
                duration(r["wall_seconds"]),
                f"{r['peak_bytes'] / 2**30:.2g} GB",
            ]
        )
    measured = {(r["d"], r["m"]) for r in report["rows"]}
    missing = [f"{d}-{m}-1 (published: 2^{bits})" for (d, m), bits in PUBLISHED.items() if (d, m) not in measured]
    word = f" Not run here, for want of time or memory: {', '.join(missing)}." if missing else ""
    threads = sorted({str(r["threads"]) for r in report["rows"]})
    header = ["shape", "parameters", "queries", "per parameter", "published", "largest parameter error", "time", "peak"]
    return "\n\n".join(
        [
            "## Queries to look inside a black box",
            "`extract` on random networks, every weight and bias N(0, 1), the width given; queries are random Gaussian "
            "rows, none chosen. *Published*: queries of the attack of Carlini, Jagielski and Mironov (2020), which "
            "chooses each query by the answers before and needs far less arithmetic; its networks are random, too. "
            f"Wall time, BLAS threads: {', '.join(threads)}; at most {duration(report['settings']['limit'])} each. "
            f"`python -m benchmarks run --only extraction`.{word}",
            table(header, rows),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    hits = sum(r["error"] is not None and r["error"] <= 1e-8 for r in report["rows"])
    return {"extracted exactly": Count(hits, len(report["rows"]))}
