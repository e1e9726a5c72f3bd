"""One problem: what `recover` claims, and what is true on fresh inputs of the same distribution."""

from __future__ import annotations

import time
import warnings
import zlib
from functools import partial
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.honesty import columns, labels, networks, records, shapes, traps  # noqa: F401  (they list families)
from benchmarks.honesty.problem import FAMILIES, Array, Problem
from relumine.results import InvalidInput, Progress, Recovery, Status

Row = dict[str, Any]

FRESH = 20_000  # fresh inputs: a share of 3/600 is seen to a tenth
SECONDS = 2.0  # processor time of a recovery: what it ends makes no claim


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
    row: Row = {"family": name, "seed": seed, "n": len(problem.X), "d": problem.X.shape[1], "limit": seconds}
    began = time.process_time()
    options = problem.options | {"sample_weight": weight, "rng": seed, "progress": partial(_stop, began + seconds)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = rl.recover(problem.X, y, on_failure="return", **options)
    except InvalidInput as error:  # a refusal is no claim
        return row | {"status": "refused", "message": str(error)[:200], "seconds": time.process_time() - began}
    except Exception as error:  # a fault, and on record as one
        return row | {"status": "crashed", "message": repr(error)[:200], "seconds": time.process_time() - began}
    row |= {"status": found.status.value, "units": found.network.m, "seconds": round(time.process_time() - began, 3)}
    row |= {"confirmed": found.certificate.confirmed, "message": found.message[:200]}
    return row | _truth(problem, found, y, np.random.default_rng([seed, 2]), fresh)


def _stop(deadline: float, _: Progress) -> None:
    """End a search whose processor time is over; a busy machine changes nothing."""
    if time.process_time() > deadline:
        raise KeyboardInterrupt


def _truth(problem: Problem, found: Recovery, y: Array, rng: np.random.Generator, fresh: int) -> Row:
    """``wrong``: share of fresh inputs whose answer differs beyond rounding; ``ratio``: fresh error over the claim,
    ``beyond``: the share of inputs without which that is at most 3.
    """
    if found.status not in (Status.EXACT, Status.NOISY):
        return {}
    X = problem.inputs(rng, fresh)
    predicted = found.network(X)
    if found.status is Status.EXACT:
        truth = problem.truth(rng, X)
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
    claim, squares = max(found.certificate.noise, 1e-300), (error**2).reshape(fresh, -1).mean(axis=1)
    unseen = round(float(found.certificate.unseen), 6)
    return {
        "noise": claim,
        "ratio": np.sqrt(squares.mean()) / claim,
        "beyond": _beyond(squares, claim),
        "unseen": unseen,
    }


def _beyond(squares: Array, claim: float) -> float:
    """The smallest share of the inputs without which the error is within three times the claim."""
    mean = np.cumsum(np.sort(squares)) / np.arange(1, len(squares) + 1)
    return float(np.mean(mean > (3.0 * claim) ** 2))


def _saturated(problem: Problem, found: Recovery) -> bool:
    """Whether some unit has no more different rows behind its kink than parameters.

    Beside an affine part that is fitted, too, a unit can be turned over, and both sides count.
    """
    net = found.network
    if not net.m or not net.activation.kinks:
        return False
    rows = np.unique(problem.X, axis=0)
    on = (rows @ net.W.T + net.b > 0.0).sum(axis=0)
    least = np.minimum(on, len(rows) - on) if np.any(net.v) else on
    q = net.q or 1
    return bool((q * least <= net.d + q).any())
