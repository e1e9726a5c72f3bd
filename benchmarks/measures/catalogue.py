"""The catalogue: how often `recover` finds the network of each problem, and what it costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tests.catalogue import CATALOGUE, Problem
from tests.catalogue.shipped import FOLDER

import relumine as rl
from benchmarks.clock import now
from benchmarks.compare import Speed
from benchmarks.counting import Count
from benchmarks.measures.fair import EXACT
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table

NAME = "catalogue"
FULL: Row = {"seeds": 10, "first": 20000, "leave_out": []}
QUICK: Row = {"seeds": 1, "first": 20000, "leave_out": ["(50,", "(100,", "784", "2048", "3072"]}
MINUTES = (20.0, 0.2)
HEADER = ["planted network (d, m)", "exact", "median error", "median time", "starts"]


def solve(problem: Problem, seed: int, *, width_known: bool = True) -> Row:
    """One recovery: error, CPU seconds, starts, what was claimed."""
    truth, X, y = problem.make(seed)
    began = now()
    found = rl.recover(X, y, width=truth.m if width_known else None, rng=seed + 2, on_failure="return")
    seconds = now() - began
    error = rl.metrics.parameter_error(truth, found.network)
    return {
        "problem": problem.name,
        "seed": seed,
        "seconds": seconds,
        "error": error if np.isfinite(error) else None,
        "starts": int(found.search.starts),
        "status": found.status.value,
        "right_width": found.network.m == truth.m,
    }


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for problem in CATALOGUE.values():
        away = any(part in problem.name for part in settings["leave_out"])
        if away or ("-1 n/p" in problem.name and not FOLDER.exists()):
            continue
        for seed in range(settings["first"], settings["first"] + min(settings["seeds"], problem.most)):
            yield f"{problem.name} seed {seed}", lambda problem=problem, seed=seed: solve(problem, seed)  # type: ignore[misc]


def gather(report: Row) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in report["rows"]:
        found[row["problem"]].append(row)
    return found


def hits(rows: list[Row]) -> Count:
    return Count(sum(r["error"] is not None and r["error"] <= EXACT for r in rows), len(rows))


def lines(report: Row) -> dict[str, list[str]]:
    """A line of the table for each problem."""
    return {
        name: [
            name.replace("|", "\\|"),
            str(hits(rows)),
            f"{np.median([np.inf if r['error'] is None else r['error'] for r in rows]):.0e}",
            duration(float(np.median([r["seconds"] for r in rows]))),
            f"{np.mean([r['starts'] for r in rows]):.1f}",
        ]
        for name, rows in gather(report).items()
    }


def wrong(report: Row) -> int:
    """Called exact, and wrong by more than 1e-6: must never happen."""
    return sum(r["status"] == "exact" and (r["error"] is None or r["error"] > 1e-6) for r in report["rows"])


def section(report: Row) -> str:
    return "\n\n".join(
        [
            "## The catalogue",
            "`recover` with the width given, CPU time of one thread. *Exact*: every parameter within 1e-8 after "
            f"matching, with Wilson's 95 % interval. Called exact but wrong by more than 1e-6: {wrong(report)} of "
            f"{len(report['rows'])} runs. {seeds_of(report)}",
            table(HEADER, list(lines(report).values())),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    speed, found = report["machine"]["gemm_gflops"], {}
    for name, rows in gather(report).items():
        found[f"exact, {name}"] = hits(rows)
        seconds = float(np.median([r["seconds"] for r in rows]))
        if len(rows) >= 5 and seconds > 0.05:
            found[f"time, {name}"] = Speed(1.0 / (seconds * speed), 1.6)
    found["claims that hold"] = Count(len(report["rows"]) - wrong(report), len(report["rows"]))
    return found
