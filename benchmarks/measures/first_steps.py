"""Bold or careful first steps: single starts of the search that end at the network, by the initial damping λ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from tests.catalogue.base import random_network

from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import seeds_of
from relumine.activations import RELU
from relumine.data.sources import as_samples
from relumine.fit.levenberg import minimise
from relumine.fit.prune import SEARCH, polish, prune
from relumine.fit.starts import random_directions
from relumine.recovery.task import make_task

NAME = "first_steps"
FULL: Row = {"d": 10, "m": 10, "ratio": 3, "dampings": [1e-3, 1e-2, 1e-1], "seeds": 40, "first": 50000}
QUICK: Row = FULL | {"dampings": [1e-3, 1e-1], "seeds": 3}
MINUTES = (0.6, 0.02)


def single_start(d: int, m: int, ratio: float, dampings: list[float], seed: int) -> Row:
    """The same random directions, 1.5 times the units, for each λ: whether the polished fit is exact."""
    truth, X, y = random_network(d, m, ratio).make(seed)
    task = make_task(as_samples(X, y), RELU, np.random.default_rng(seed + 2))
    U = random_directions(np.random.default_rng(seed + 3), ceil(1.5 * m), task.rows.columns)
    exact = {}
    for damping in dampings:
        student = minimise(task.rows, task.shape, U, replace(SEARCH, damping=damping))
        fit = polish(task.rows, task.shape, prune(task.rows, task.shape, student, truth.m))
        exact[f"{damping:g}"] = task.is_exact(fit.at.squares)
    return {"seed": seed, "exact": exact}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    problem = [settings[key] for key in ("d", "m", "ratio", "dampings")]
    for seed in range(settings["first"], settings["first"] + settings["seeds"]):
        yield f"seed {seed}", partial(single_start, *problem, seed)


def counts(report: Row) -> dict[str, Count]:
    """Starts that were exact, by λ."""
    rows = [row["exact"] for row in report["rows"]]
    return {damping: Count(sum(row[damping] for row in rows), len(rows)) for damping in rows[0]}


def elsewhere(report: Row) -> dict[str, str]:
    """A sentence for docs/recover.md."""
    s, words = report["settings"], [f"λ = {damping}: {c.hits} of {c.runs}" for damping, c in counts(report).items()]
    return {
        "docs/recover.md": f"Single random starts that end at the network, (d, m) = ({s['d']}, {s['m']}), n/p = "
        f"{s['ratio']:g}, the same directions for each first damping: {'; '.join(words)}. {seeds_of(report)}"
    }


def comparable(report: Row) -> dict[str, Any]:
    return {f"single start, λ = {damping}": found for damping, found in counts(report).items()}
