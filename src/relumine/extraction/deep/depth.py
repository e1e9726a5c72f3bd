"""One hidden layer or more: on parallel lines a single layer bends by the same amounts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.lines import Ask, Line, kinks
from relumine.extraction.sampling import Domain
from relumine.run import Run

Array = NDArray[np.float64]

__all__ = ["is_deep"]

_SHARE = 0.2  # of the jumps of a line that may have no partner on its parallel: kinks that coincide, or are missed
_SAME = 1e-6  # relative difference of two jumps that are one: measured 1e-9 … 1e-12
_MOST = 30_000  # queries for the two lines


def is_deep(ask: Ask, domain: Domain, run: Run) -> tuple[bool, list[Line]]:
    """Whether f has more than one hidden layer, and the lines that were searched.

    For one hidden layer the slope along u changes by a_i|w_i·u| at the kink of unit i, on every line in direction u. A
    unit behind another layer, or a layer whose units are seen through another, changes by other amounts elsewhere.
    """
    line = domain.line(run.rng)
    shift = domain.draw(run.rng, 1)[0]
    shift -= (shift @ line.direction) * line.direction
    beside = Line(line.origin + shift * (0.3 if domain.limited else 1.0), line.direction, line.reach, line.scale)
    if domain.limited:
        beside = domain_line(domain, beside)
    # one after the other, so that a search that begins with the first line finds all its answers in the log
    (one,) = kinks(ask, [line], most=_MOST, over=lambda: run.over)
    if not one.whole or run.over:
        return False, [line]
    (two,) = kinks(ask, [beside], most=_MOST, over=lambda: run.over)
    lines = [line, beside]
    if not two.whole or not len(one.t) or domain.limited:
        # within a range a line need not meet every unit: only what both lines bend by can be compared
        return _unlike(one.jump, two.jump) > 0.5, lines
    return max(_unlike(one.jump, two.jump), _unlike(two.jump, one.jump)) > _SHARE, lines


def domain_line(domain: Domain, line: Line) -> Line:
    """The part of a line that lies within the range."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([(-1.0 - line.origin) / line.direction, (1.0 - line.origin) / line.direction]), axis=0)
    reach = (0.999 * float(ends[0].max()), 0.999 * float(ends[1].min()))
    return Line(line.origin, line.direction, reach, line.scale) if reach[0] < reach[1] else line


def _unlike(one: Array, two: Array) -> float:
    """Share of the jumps (k, q) of one line that the other does not have."""
    if not len(one):
        return 0.0
    if not len(two):
        return 1.0
    apart = np.linalg.norm(one[:, None, :] - two[None, :, :], axis=2).min(axis=1)
    return float((apart > _SAME * np.linalg.norm(one, axis=1)).mean())
