"""Segments of input space and the kinks on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.lines import Crossings, Line, kinks

Array = NDArray[np.float64]

__all__ = ["Segment", "on_lines", "segments"]


@dataclass
class Segment:
    """x(t) = start + t·direction, t in [0, 1]: where f bends, sorted, and the slopes on both sides of each bend.

    ``unresolved``: stretches that were neither straight nor a single bend; ``step``: the largest change of the value
    across one of them; ``curved``: f bends a little everywhere.
    """

    start: Array
    direction: Array
    t: Array
    left: Array
    right: Array
    unresolved: int = 0
    step: float = 0.0
    curved: bool = False

    def at(self, t: Array) -> Array:
        """Points on the segment."""
        return np.asarray(self.start + np.multiply.outer(t, self.direction))


def on_lines(ask: Callable[[Array], Array], lines: list[Line], most: int) -> list[Segment]:
    """All kinks of lines that were given as such, one after the other: what was asked of them before is asked again."""
    found = [kinks(lambda X: ask(X).reshape(len(X), -1), [line], most=most)[0] for line in lines]
    ends = [(line.at(np.array(line.reach[0])), line.at(np.array(line.reach[1]))) for line in lines]
    return [_segment(a, b, line.reach, crossings) for line, (a, b), crossings in zip(lines, ends, found)]


def segments(ask: Callable[[Array], Array], starts: Array, ends: Array, scale: float, most: int) -> list[Segment]:
    """All kinks between ``starts`` and ``ends`` (n, d); ``scale``: distance from the middle within which most are."""
    lines, half, nothing = [], 0.5 * np.linalg.norm(ends - starts, axis=1), np.zeros(0)
    real = half > 1e-12 * (1.0 + np.linalg.norm(starts, axis=1))  # two ends in one place: no line, and nothing to ask
    for a, b, r in zip(starts[real], ends[real], half[real]):
        lines.append(Line(0.5 * (a + b), (b - a) / (2.0 * r), (-r, r), min(scale, r)))
    found = iter(kinks(lambda X: ask(X).reshape(len(X), -1), lines, most=most) if lines else ())
    return [
        _segment(a, b, (-r, r), next(found)) if line else Segment(a, b - a, nothing, nothing, nothing)
        for a, b, r, line in zip(starts, ends, half, real)
    ]


def _segment(start: Array, end: Array, reach: tuple[float, float], found: Crossings) -> Segment:
    length = reach[1] - reach[0]
    slopes = np.array([float(piece.slope[0]) for piece in found.pieces]) * length
    t = (found.t - reach[0]) / length
    step = 0.0
    for lo, hi in found.doubts:
        before = [p for p in found.pieces if p.hi <= 0.5 * (lo + hi)]
        after = [p for p in found.pieces if p.lo >= 0.5 * (lo + hi)]
        if before and after:
            middle = 0.5 * (lo + hi)
            step = max(step, float(abs(after[0].value(middle)[0] - before[-1].value(middle)[0])))
    return Segment(start, end - start, t, slopes[:-1], slopes[1:], len(found.doubts), step, found.noise.curved)
