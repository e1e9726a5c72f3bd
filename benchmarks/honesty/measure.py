"""One problem: what `recover` claims, and what is true on fresh inputs of the same distribution."""

from __future__ import annotations

import time
import warnings
import zlib
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.honesty import labels, networks, shapes  # noqa: F401  (each puts its families on the list)
from benchmarks.honesty.problem import FAMILIES, Array, Problem
from relumine.results import InvalidInput, Recovery, Status

Row = dict[str, Any]

FRESH = 20_000  # fresh inputs: a share of 3/600 is seen to a tenth
SECONDS = 3.0  # time limit of a recovery: what it ends makes no claim


def names() -> list[str]:
    """All families, in alphabetical order."""
    return sorted(FAMILIES)


def draw(name: str, seed: int) -> Problem:
    """The problem of this family and seed; neither depends on what other families there are."""
    return FAMILIES[name](np.random.default_rng([seed, zlib.crc32(name.encode())]))


def measure(name: str, seed: int, *, fresh: int = FRESH, seconds: float = SECONDS) -> Row:
    """The claim and the truth as one line of the record."""
    problem, rng = draw(name, seed), np.random.default_rng([seed, 1])
    y = problem.labels(rng, problem.X)
    weight = None if problem.weight is None else problem.weight(problem.X)
    row: Row = {"family": name, "seed": seed, "n": len(problem.X), "d": problem.X.shape[1]}
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = rl.recover(
                problem.X, y, sample_weight=weight, rng=seed, seconds=seconds, on_failure="return", **problem.options
            )
    except InvalidInput as error:  # a refusal is no claim
        return row | {"status": "refused", "message": str(error)[:200], "seconds": time.perf_counter() - began}
    except Exception as error:  # a fault, and on record as one
        return row | {"status": "crashed", "message": repr(error)[:200], "seconds": time.perf_counter() - began}
    row |= {"status": found.status.value, "units": found.network.m, "seconds": round(time.perf_counter() - began, 3)}
    row |= {"confirmed": found.certificate.confirmed, "message": found.message[:200]}
    return row | _truth(problem, found, y, np.random.default_rng([seed, 2]), fresh)


def _truth(problem: Problem, found: Recovery, y: Array, rng: np.random.Generator, fresh: int) -> Row:
    """``wrong``: share of fresh inputs whose answer differs beyond rounding; ``ratio``: fresh error over the claim."""
    if found.status not in (Status.EXACT, Status.NOISY):
        return {}
    X = problem.inputs(rng, fresh)
    predicted = found.network(X)
    if found.status is Status.EXACT:
        truth = problem.target(X)
        # "beyond rounding": a millionth of the spread, or a few units in the last place of y
        size = np.abs(y).max(axis=0)
        tolerance = 1e-6 * y.std(axis=0) + 32.0 * np.spacing(np.maximum(size, np.abs(truth)))
        off = np.abs(predicted - truth) > tolerance
        unseen = found.certificate.unseen
        claimed = float(unseen) if np.isfinite(unseen) else 3.0 / len(y)
        wrong = float((off if off.ndim == 1 else off.any(axis=1)).mean())
        return {"unseen": round(claimed, 6), "wrong": wrong, "saturated": _saturated(problem, found)}
    error = predicted - problem.labels(rng, X)
    if problem.weight is not None:  # the claim is about a row of mean weight
        weight = problem.weight(X) / problem.weight(problem.X).mean()
        error = error * np.sqrt(weight if error.ndim == 1 else weight[:, None])
    claim = max(found.certificate.noise, 1e-300)
    return {"noise": claim, "ratio": float(np.sqrt(np.mean(error**2))) / claim}


def _saturated(problem: Problem, found: Recovery) -> bool:
    """Whether some unit has no more different rows on one side of its kink than that side has parameters."""
    net = found.network
    if not net.m or not net.activation.kinks:
        return False
    rows = np.unique(problem.X, axis=0)
    on = (rows @ net.W.T + net.b > 0.0).sum(axis=0)
    q = net.q or 1
    return bool((q * np.minimum(on, len(rows) - on) <= net.d + q).any())
