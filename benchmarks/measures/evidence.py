"""What the evidence costs: the share of a recovery's CPU time that goes into standard errors and confirmations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.catalogue import CATALOGUE, Problem
from tests.catalogue.base import random_network
from tests.catalogue.shipped import FOLDER

import relumine as rl
from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import seeds_of, table

NAME = "evidence"
FULL: Row = {"seeds": 5, "first": 23000, "least": 1.0, "leave_out": []}
QUICK: Row = {"seeds": 1, "first": 23000, "least": 0.1, "leave_out": ["(50,", "(100,", "784", "2048", "3072"]}
MINUTES = (12.0, 0.2)
STAGES = ("certificate", "all rows")  # what comes after the search
BAR = 0.15
PROBLEMS: tuple[Problem, ...] = (*CATALOGUE.values(), random_network(30, 30, 5))


def share(problem: Problem, seed: int, least: float) -> Row:
    """CPU seconds of the whole and of the evidence, on average over at least so many seconds of recoveries."""
    truth, X, y = problem.make(seed)
    whole = evidence = 0.0
    with patch("time.perf_counter", time.process_time):  # by which a recovery times its stages
        while whole < least:
            began = time.process_time()
            found = rl.recover(X, y, width=truth.m, rng=seed + 2, on_failure="return")
            whole += time.process_time() - began
            evidence += sum(stage.seconds for stage in found.stages if stage.name in STAGES)
    row: Row = {"problem": problem.name, "seed": seed, "status": found.status.value}
    return row | {"seconds": whole, "evidence": evidence, "confirmed": found.certificate.confirmed}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for problem in PROBLEMS:
        away = any(part in problem.name for part in settings["leave_out"])
        if away or not problem.m or ("-1 n/p" in problem.name and not FOLDER.exists()):
            continue
        for seed in range(settings["first"], settings["first"] + min(settings["seeds"], problem.most)):
            yield f"{problem.name} seed {seed}", partial(share, problem, seed, settings["least"])


def shares(report: Row) -> dict[str, list[float]]:
    """By problem, of each seed."""
    found: dict[str, list[float]] = {}
    for row in report["rows"]:
        found.setdefault(row["problem"], []).append(row["evidence"] / row["seconds"])
    return found


def section(report: Row) -> str:
    found = shares(report)
    lines = [
        [name.replace("|", "\\|"), f"{100 * np.median(part):.1f} %", f"{100 * max(part):.1f} %", str(len(part))]
        for name, part in found.items()
    ]
    above = [name for name, part in found.items() if np.median(part) > BAR]
    return "\n\n".join(
        [
            "## What the evidence costs",
            "Standard errors, which rows confirm the network, and the score of what is left: their share of the CPU "
            f"time of `recover`. Above {100 * BAR:.0f} %: {', '.join(above) or 'none'}. {seeds_of(report)}",
            table(["planted network (d, m)", "median", "largest", "seeds"], lines),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    found = shares(report).values()
    return {"evidence below 15 %": Count(sum(bool(np.median(part) <= BAR) for part in found), len(found))}
