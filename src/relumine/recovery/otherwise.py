"""Another explanation, tried briefly: classes, steps, a target without kinks, or one behind a logistic function.

Where as many other units, or the same units of another target, leave a fraction of what these leave, no number of
starts will find a network of the kind asked for. A second of work, asked for when the first starts did not succeed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit

from relumine.activations import Activation, get
from relumine.data.digits import digits_of
from relumine.data.holdout import same_rows
from relumine.data.sources import Samples
from relumine.fit.levenberg import minimise
from relumine.fit.prune import SEARCH
from relumine.fit.sign_free import shape_of
from relumine.fit.starts import random_directions
from relumine.recovery.task import MemoryTask, make_task
from relumine.results import Cause, InvalidInput

_UNITS, _ROWS = 16, 1500  # a look of a second or two; enough to tell what BETTER tells
_FEW = 20  # values up to which a target is a set of classes
# Rows from which on steps are told; the share of them, beside those of the commonest value, whose value so many rows
# have; and of the numbers that rounding would leave between the least and the largest value, the share that steps take
_MANY, _SHARING, _EACH, _OF_GRID = 1000, 0.9, 5, 0.1
_STARTS = 3  # one tanh start in four sticks
# What is left, over what the other explanation leaves: with 16 units, d = 3, 6, 10 and 2000 rows 19 … 9000 times for
# sines, products and tanh networks, at most 1.7 times for ReLU networks of one or two hidden layers and for steps.
# With noise of 5 to 10 % of the spread the sines and products leave 2.3 times as much; that is for a diagnosis, not for
# the end of a search.
BETTER, RATHER = 5.0, 2.0
_BRIEF = replace(SEARCH, steps=60, plateau=15)


@dataclass(frozen=True)
class Otherwise:
    """Another explanation: its ``cause``, and how many ``times`` less it leaves of the target."""

    cause: Cause
    times: float


def otherwise(samples: Samples, sigma: Activation, better: float = BETTER) -> Otherwise | None:
    """An explanation of the rows so many times ``better`` than units of this activation, if one of those tried is.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(600, 2))
    >>> otherwise(Samples(X, X[:, 0] * X[:, 1]), get("relu")).cause.name
    'SMOOTH'
    >>> otherwise(Samples(X, np.abs(X @ [1.0, 2.0])), get("relu")) is None
    True
    """
    few = samples if samples.n <= _ROWS else Samples(samples.X[:_ROWS], samples.y[:_ROWS])
    if classes(samples.Y):
        return Otherwise(Cause.CLASSES, float("nan"))
    if steps(samples):
        return Otherwise(Cause.STEPS, float("nan"))
    try:
        task = make_task(few, sigma, np.random.default_rng(0))
        if not task.bent.any() or task.widest(0.5) < 4:
            return None
        left, found = _left(task, sigma, 1), []
        if (whole := probabilities(few.Y)) and few.q == 1:
            share = np.clip(few.y / whole, 1e-9, 1.0 - 1e-9)
            behind = make_task(Samples(few.X, logit(share)), sigma, np.random.default_rng(0))
            found.append(Otherwise(Cause.PROBABILITIES, left / _left(behind, sigma, 1, below=left / BETTER)))
        if sigma.kinks:
            # what lies between 0 and 1 may be smooth and no probability: the better of both explanations
            below = left / max(BETTER, *(other.times for other in found), 0.0)
            found.append(Otherwise(Cause.SMOOTH, left / _left(task, get("tanh"), _STARTS, below)))
        best = max(found, key=lambda other: other.times, default=None)
        return best if best is not None and best.times > better else None
    except InvalidInput:  # the first rows may be special: a column that is constant there
        return None


def classes(Y: np.ndarray) -> int:
    """How many values the outputs (n, q) take, if they are few enough, 20 rows for each, to be classes; else 0."""
    values = max(int(np.unique(column).size) for column in Y.T)
    return values if 2 <= values <= max(2, min(_FEW, len(Y) // _FEW)) else 0


def steps(samples: Samples) -> int:
    """How many values a target takes that is constant in pieces, as the output of a decision tree is; 0 if it is not.

    Nearly every row shares its value with others that are different rows, and the values are not just numbers that were
    rounded. The commonest value does not count: it may be that of a network whose units are off at most rows. Nor do
    values that inputs with few values alone can account for.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> stairs = np.sqrt(np.clip(np.floor(9.0 * X[:, 0]) + 30.0, 0.0, None))
    >>> steps(Samples(X, stairs)) > 20, steps(Samples(X, np.floor(9.0 * X[:, 0]))), steps(Samples(X, X[:, 0]))
    (True, 0, 0)
    """
    some = np.unique(same_rows(samples.X)[0], return_index=True)[1]
    X, Y = samples.X[some], samples.Y[some]
    if len(Y) < _MANY or Y.shape[1] > 1:
        return 0
    values, times = np.unique(Y, return_counts=True)
    others = np.delete(times, np.argmax(times))
    if len(values) <= _FEW or others[others >= _EACH].sum() < _SHARING * others.sum():
        return 0
    coarse = [column for column in X.T if np.unique(column).size * _EACH <= len(X)]
    by_themselves = same_rows(np.column_stack(coarse))[1] if coarse else 1
    between = float(np.ptp(values)) / (float(np.sqrt(12.0)) * float(digits_of(Y).rounding[0]))
    return len(values) if by_themselves < len(values) <= _OF_GRID * between else 0


def probabilities(Y: np.ndarray) -> float:
    """What is certain in values (n, q) that may be probabilities: 1, or 100 for percentages; 0 if they are none.

    All lie between 0 and that number, use most of the range and, for q > 1, add up to it in each row.

    Examples
    --------
    >>> p = np.array([[0.1], [0.95], [0.5]])
    >>> probabilities(p), probabilities(100 * p), probabilities(p - 0.5)
    (1.0, 100.0, 0.0)
    """
    whole = 1.0 if Y.max() <= 1.0 else 100.0
    if Y.min() < 0.0 or Y.max() > whole or float(np.ptp(Y)) < 0.5 * whole:
        return 0.0
    return whole if Y.shape[1] == 1 or np.allclose(Y.sum(axis=1), whole, atol=1e-6 * whole) else 0.0


def _left(task: MemoryTask, sigma: Activation, starts: int, below: float = 0.0) -> float:
    """The relative loss of a few units: the least of so many starts, or the first that is below."""
    rng, least = np.random.default_rng(0), float("inf")  # always the same, whatever the seed of the search
    for _ in range(starts):
        U = random_directions(rng, min(_UNITS, task.widest(0.5)), task.rows.columns)
        least = min(least, minimise(task.rows, shape_of(sigma), U, _BRIEF).loss)
        if least < below:
            break
    return max(least, 1e-30)
