"""One hidden layer or more: on parallel lines a single layer bends by the same amounts."""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.lines import Ask, kinks
from relumine.extraction.pieces import Crossings, Line
from relumine.extraction.sampling import Domain
from relumine.run import Run

_SHARE = 0.34  # of the jumps of a line that may have no partner on its parallel: kinks that coincide, or are missed
_FEW = 5  # kinks of the first line next to which the second is searched: in deep networks nearly all jumps differ
_SAME = 1e-6  # relative difference of two jumps that are one: measured 1e-9 … 1e-12
_BESIDE, _ENOUGH = 3, 5  # lines beside the first, until so many jumps were seen: three may be alike by chance
# Times as long is the next one where none was seen: for one of twelve 20-10-10-1 all three were too short.
_LONGER = 3.0
_MOST = 30_000  # queries for the second line


def is_deep(ask: Ask, domain: Domain, run: Run, one: Crossings) -> bool:
    """Whether f has more than one hidden layer, as far as lines parallel to one that was searched show.

    For one hidden layer the slope along u changes by a_i|w_i·u| at the kink of unit i, on every line in direction u. A
    unit behind another layer, or one that is seen through another layer, changes by other amounts elsewhere.
    """
    line = one.line
    if domain.room is not None or not len(one.t):
        return False
    few = min(_FEW / len(one.t), 1.0)
    lo, hi = np.quantile(one.t, [0.5 - 0.5 * few, 0.5 + 0.5 * few])
    away = 0.5 * (hi - lo) + 0.1 * line.scale
    jumps = np.zeros((0, one.jump.shape[1]))
    for _ in range(_BESIDE):
        reach = (max(float(lo - away), line.reach[0]), min(float(hi + away), line.reach[1]))
        shift = domain.draw(run.rng, 1)[0]
        shift -= (shift @ line.direction) * line.direction
        beside = Line(line.origin + shift, line.direction, reach, line.scale)
        if not np.isfinite(ask(beside.at(np.array(reach)))).all():  # a link has no digits there
            return False
        (two,) = kinks(ask, [beside], most=_MOST, over=lambda: run.over)
        if not two.whole:
            return False
        jumps = np.vstack([jumps, two.jump])
        if _unlike(jumps, one.jump) > _SHARE:
            return True
        if len(jumps) >= _ENOUGH or run.over:
            break
        away *= 1.0 if len(jumps) else _LONGER
    return False


def _unlike(one: Array, two: Array) -> float:
    """Share of the jumps (k, q) of one line that the other does not have."""
    if not len(one):
        return 0.0
    if not len(two):
        return 1.0
    apart = np.linalg.norm(one[:, None, :] - two[None, :, :], axis=2).min(axis=1)
    return float((apart > _SAME * np.linalg.norm(one, axis=1)).mean())
