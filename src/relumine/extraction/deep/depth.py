"""One hidden layer or more: on parallel lines a single layer bends by the same amounts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.lines import Ask, Crossings, Line, kinks
from relumine.extraction.sampling import Domain
from relumine.run import Run

Array = NDArray[np.float64]

__all__ = ["is_deep"]

_SHARE = 0.34  # of the jumps of a line that may have no partner on its parallel: kinks that coincide, or are missed
_FEW = 5  # kinks of the first line next to which the second is searched: in deep networks nearly all jumps differ
_SAME = 1e-6  # relative difference of two jumps that are one: measured 1e-9 … 1e-12
_MOST = 30_000  # queries for the second line
_WORTH = 201  # rows that the gradients of all pieces would take: fewer are spent rather than a second line


def is_deep(ask: Ask, domain: Domain, run: Run, one: Crossings, worth: bool = False) -> bool:
    """Whether f has more than one hidden layer, as far as a line parallel to one that was searched shows.

    For one hidden layer the slope along u changes by a_i|w_i·u| at the kink of unit i, on every line in direction u. A
    unit behind another layer, or one that is seen through another layer, changes by other amounts elsewhere. ``worth``:
    a second line is worth its rows, however small the network.
    """
    line = one.line
    # behind a link (limited, without a range) the search for one layer takes many lines before it gives up
    small = len(one.t) * domain.d < _WORTH and not (domain.limited or worth)
    if domain.room is not None or small or not len(one.t):
        return False
    shift = domain.draw(run.rng, 1)[0]
    shift -= (shift @ line.direction) * line.direction
    few = min(_FEW / len(one.t), 1.0)
    lo, hi = np.quantile(one.t, [0.5 - 0.5 * few, 0.5 + 0.5 * few])
    away = 0.5 * (hi - lo) + 0.1 * line.scale
    reach = (max(float(lo - away), line.reach[0]), min(float(hi + away), line.reach[1]))
    beside = Line(line.origin + shift, line.direction, reach, line.scale)
    if not np.isfinite(ask(beside.at(np.array(reach)))).all():  # a link has no digits there
        return False
    (two,) = kinks(ask, [beside], most=_MOST, over=lambda: run.over)
    return two.whole and _unlike(two.jump, one.jump) > _SHARE


def _unlike(one: Array, two: Array) -> float:
    """Share of the jumps (k, q) of one line that the other does not have."""
    if not len(one):
        return 0.0
    if not len(two):
        return 1.0
    apart = np.linalg.norm(one[:, None, :] - two[None, :, :], axis=2).min(axis=1)
    return float((apart > _SAME * np.linalg.norm(one, axis=1)).mean())
