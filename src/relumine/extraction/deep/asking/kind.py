"""What kind of function a box is, from short differences at random places: before any line is searched."""

from __future__ import annotations

import numpy as np

from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.queries import Unanswered

_PLACES, _FEW, _STEP = 40, 12, 1e-3  # a ReLU network with a thousand kinks on a line bends at one place in a hundred
_BENT = 1e-11  # second difference over the size of the answers: rounding leaves 1e-15
_AGAIN = 20  # places of a second look, two rows each
_SHORTER = 0.05  # of its way: of a smooth function the second difference is then 400 times less,
_ROUND = 2e-14  # and still more than this


def kind(ask: Asked, dim: int, rng: np.random.Generator, seen: bool = False) -> str:
    """Which of "piecewise linear", "constant", "noisy", "steps" and "smooth" the box is.

    At random places f is asked at x − εu, x, x + εu. A piecewise linear function is straight at nearly all of them, a
    smooth one bends at nearly all, one made of steps does not move at all; a noisy one gives another answer the second
    time. ``seen``: a line was searched already, and was piecewise linear.
    """
    n = _FEW if seen else _PLACES
    x = rng.normal(size=(n, dim)) * 2.0 ** rng.uniform(-1.0, 1.0, size=(n, 1))
    u = rng.normal(size=(n, dim))
    u *= _STEP * np.sqrt(dim) / np.linalg.norm(u, axis=1, keepdims=True)
    has = np.all([ask.digits(rows) for rows in (x - u, x, x + u)], axis=0)
    if not has.any():
        raise Unanswered("the rows it needs have probabilities of 0 or 1 to rounding, which say nothing")
    x, u = x[has], u[has]
    before, here, after = np.split(ask.values(np.concatenate([x - u, x, x + u])), 3)
    size = max(float(np.abs(here).max()), 1e-300)
    if float(np.ptp(np.concatenate([before, here, after]), axis=0).max()) <= 1e-14 * size:
        return "constant"
    if np.abs(ask.values(x) - here).max() > 1e-14 * size:
        return "noisy"
    still = np.abs(after - before).max(axis=1) <= 1e-14 * size
    bent = np.abs(after + before - 2.0 * here).max(axis=1) > _BENT * size
    # a network that is mostly off slopes elsewhere; a step is as high on a shorter way, or not on it
    if (still | bent).all() and still.mean() > 0.5:
        far, short = (after - before)[bent], np.concatenate([x - 0.1 * u, x + 0.1 * u])[np.tile(bent, 2)]
        rise = -np.subtract(*np.split(ask.values(short), 2)) if bent.any() else far
        if (np.minimum(np.abs(rise), np.abs(rise - far)) <= 1e-9 * size).all():
            return "steps"
    if bent.mean() <= 0.5:
        return "piecewise linear"
    # hundreds of units in several layers may bend at most places, too, but hardly on a shorter way
    some = np.flatnonzero(bent)[:_AGAIN]
    x, u = x[some], _SHORTER * u[some]
    before, after = np.split(ask.values(np.concatenate([x - u, x + u])), 2)
    still_bent = np.abs(after + before - 2.0 * here[some]).max(axis=1) > _ROUND * size
    return "smooth" if still_bent.mean() > 0.5 else "piecewise linear"
