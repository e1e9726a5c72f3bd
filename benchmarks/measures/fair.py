"""The rule of every comparison: relumine first; then each alternative five times as long, on the same data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from math import inf

import numpy as np
from tests.catalogue.base import Planted, Problem, random_network

import relumine as rl
from benchmarks.clock import now
from benchmarks.methods import METHODS, OURS
from benchmarks.methods.best import relative_loss
from benchmarks.results import Row

TIMES, LEAST = 5.0, 1.0  # an alternative gets so many times relumine's time, and at least so many seconds
EXACT, CLOSE = 1e-8, 1e-3  # largest parameter error


def attempt(name: str, planted: Planted, seconds: float, seed: int) -> Row:
    """One method on one set of samples: seconds of CPU time, relative loss, largest parameter error."""
    truth, X, y = planted
    warm(name)
    began = now()
    try:  # not the seed of the network: a method that drew from the same stream would start at the answer
        found = METHODS[name].run(X, y, truth.m, seconds, rng=seed + 2)
    except rl.InvalidInput as error:  # a reason the method gives itself, too few samples for it, say
        return {"seconds": now() - began, "loss": None, "error": None, "refused": str(error).split(". ")[0]}
    spent = now() - began
    error = rl.metrics.parameter_error(truth, found)
    return {"seconds": spent, "loss": relative_loss(found, X, y), "error": error if np.isfinite(error) else None}


def contest(problem: Problem, seed: int, names: Iterable[str], cap: float = inf) -> dict[str, Row]:
    """relumine and the named others on the data of one seed; a method that does not apply is left out."""
    planted = problem.make(seed)
    results = {OURS: attempt(OURS, planted, inf, seed)}
    allowance = min(max(LEAST, TIMES * results[OURS]["seconds"]), cap)
    for name in names:
        if name != OURS and METHODS[name].skip(problem) is None:
            results[name] = attempt(name, planted, allowance, seed)
    return results


def gather(report: Row, what: str) -> dict[str, dict[str, list[Row]]]:
    """Results by problem and name; ``what``: the entry of a row that holds them, "methods" or "variants"."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in report["rows"]:
        for name, result in row[what].items():
            found[row["problem"]][name].append(result)
    return found


def exact(result: Row, within: float = EXACT) -> bool:
    """Whether every parameter is right."""
    return result["error"] is not None and result["error"] <= within


@cache
def warm(name: str) -> None:
    """Whatever a library loads at its first use is loaded before the clock runs."""
    problem = random_network(4, 2, 20)
    _, X, y = problem.make(0)
    if METHODS[name].skip(problem) is None:
        METHODS[name].run(X, y, 2, 0.5)
