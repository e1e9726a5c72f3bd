"""Segments of input space and the kinks on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relumine.arrays import Array
from relumine.extraction.lines import kinks
from relumine.extraction.pieces import Crossings, Line, Noise

SIDE = 0.25  # how far from a kink the base points of differences are, over the gap to the next kink
_SURE = 4.0  # standard deviations of a slope that are taken for its error


@dataclass
class Segment:
    """x(t) = start + t·direction, t in [0, 1]: where f bends, sorted, and the slopes on both sides of each bend.

    ``points`` (k, d) where it bends; ``error``: of the change of the slope; ``sigma``: of the answers; ``gap``: from
    each bend to the next; ``before``, ``after``: f `SIDE` gaps off, which the pieces know.
    ``unresolved``: stretches that were neither straight nor a single bend; ``step``: the largest change of the value
    across one of them; ``curved``: f bends a little everywhere.
    """

    start: Array
    direction: Array
    t: Array
    left: Array
    right: Array
    points: Array
    error: Array
    sigma: Array
    gap: Array
    before: Array
    after: Array
    unresolved: int = 0
    step: float = 0.0
    curved: bool = False

    def slope(self, x: Array) -> float:
        """That of f along it on the piece with the point x of it, over the largest of any piece; 1 without a bend."""
        most = float(np.abs([self.left, self.right]).max(initial=0.0))
        if most == 0.0:
            return 1.0
        i = int(np.searchsorted(self.t, (x - self.start) @ self.direction / (self.direction @ self.direction)))
        return abs(float(self.right[i - 1] if i else self.left[0])) / most


def on_lines(ask: Callable[[Array], Array], mix: Array, lines: list[Line], most: int) -> list[Segment]:
    """All kinks of lines that were given as such, one after the other: what was asked of them before is asked again.

    ``ask``: all outputs (n, q), so that the questions are the same to the last bit; ``mix`` (q,) makes them one.
    """
    found = [kinks(ask, [line], most=most)[0] for line in lines]
    ends = [(line.at(np.array(line.reach[0])), line.at(np.array(line.reach[1]))) for line in lines]
    return [_segment(a, b, line.reach, crossings, mix) for line, (a, b), crossings in zip(lines, ends, found)]


def segments(
    ask: Callable[[Array], Array], starts: Array, ends: Array, scale: float, most: int, floor: Noise | None = None
) -> list[Segment]:
    """All kinks between ``starts`` and ``ends`` (n, d); ``scale``: distance from the middle within which most are.

    ``floor``: error of the answers beyond their rounding.
    """
    lines, half = [], 0.5 * np.linalg.norm(ends - starts, axis=1)
    real = half > 1e-12 * (1.0 + np.linalg.norm(starts, axis=1))  # two ends in one place: no line, and nothing to ask
    for a, b, r in zip(starts[real], ends[real], half[real]):
        lines.append(Line(0.5 * (a + b), (b - a) / (2.0 * r), (-r, r), min(scale, r)))
    found = iter(kinks(lambda X: ask(X).reshape(len(X), -1), lines, most=most, floor=floor) if lines else ())
    return [
        _segment(a, b, (-r, r), next(found), np.ones(1)) if line else straight(a, b)
        for a, b, r, line in zip(starts, ends, half, real)
    ]


def straight(a: Array, b: Array) -> Segment:
    """From a to b, without a kink."""
    o = np.zeros(0)
    return Segment(a, b - a, o, o, o, np.zeros((0, len(a))), o, o, o, o, o)


def _segment(start: Array, end: Array, reach: tuple[float, float], found: Crossings, mix: Array) -> Segment:
    length, pieces = reach[1] - reach[0], found.pieces
    slopes = np.array([float(piece.slope @ mix) for piece in pieces]) * length
    errors = np.array([float(np.linalg.norm(piece.error * mix)) for piece in pieces]) * length
    edges = np.diff(np.concatenate([[reach[0]], found.t, [reach[1]]]))
    gap = np.minimum(edges[:-1], edges[1:])
    before = np.array([p.nearby(t - SIDE * g) @ mix for p, t, g in zip(pieces[:-1], found.t, gap)])
    after = np.array([p.nearby(t + SIDE * g) @ mix for p, t, g in zip(pieces[1:], found.t, gap)])
    step = 0.0
    for lo, hi in found.doubts:
        one = [p for p in pieces if p.hi <= 0.5 * (lo + hi)]
        two = [p for p in pieces if p.lo >= 0.5 * (lo + hi)]
        if one and two:
            middle = 0.5 * (lo + hi)
            step = max(step, float(np.abs(two[0].value(middle) - one[-1].value(middle)).max()))
    t, doubts = (found.t - reach[0]) / length, len(found.doubts)
    return Segment(
        start,
        end - start,
        t,
        slopes[:-1],
        slopes[1:],
        found.line.at(found.t),  # and not by t: of a long line that has fewer digits
        _SURE * np.hypot(errors[:-1], errors[1:]),
        np.linalg.norm(found.noise(found.t) * mix, axis=1),
        gap / length,
        before,
        after,
        doubts,
        step,
        found.noise.curved,
    )
