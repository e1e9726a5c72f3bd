"""A line, the pieces of a piecewise linear function along it, and where they meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from relumine.arrays import Array

SURE = 12.0  # standard deviations of noise within which a value fits: rounding errors are not normal
_POINT = 1e-12  # two points no further apart than this, relative to where they are, are one place,
_LEAP = 1e4  # and values that differ there by so many standard deviations are a jump of f


@dataclass(frozen=True)
class Line:
    """x(t) = ``origin`` + t·``direction`` for t in ``reach``; ``scale`` τ: φ = arctan(t/τ) spreads the kinks evenly."""

    origin: Array
    direction: Array
    reach: tuple[float, float]
    scale: float = 1.0

    def at(self, t: Array) -> Array:
        """Points (n, d)."""
        return np.asarray(self.origin + np.asarray(t, dtype=np.float64)[..., None] * self.direction)

    def angle(self, t: float) -> float:
        """φ = arctan(t/τ)."""
        return float(np.arctan2(t, self.scale))

    def place(self, angle: float) -> float:
        """The place τ tan φ, within reach."""
        return float(np.clip(self.scale * np.tan(angle), *self.reach))


@dataclass
class Noise:
    """σ(t) = ``level`` + ``growth``·|t|, (q,): rounding grows with the numbers it rounds.

    ``relative``: to the values. ``curved``: it grew with the stubs, so the function bends everywhere, a little.
    """

    level: Array
    growth: Array
    relative: float = 0.0
    curved: bool = False

    def __call__(self, t: float | Array) -> Array:
        """σ at t: (q,) for a number, (n, q) for n of them."""
        return np.asarray(self.level + np.multiply.outer(np.abs(t), self.growth))


class Piece:
    """A stretch of a line on which f is affine, known by points on it: ``t`` (n,) increasing, ``v`` (n, q)."""

    def __init__(self, t: Array, v: Array, noise: Noise) -> None:
        order = np.argsort(t)
        self.t, self.v, self.noise = t[order], v[order], noise
        self.into: Piece | None = None

    def find(self) -> Piece:
        """The piece that this one has become part of."""
        piece = self
        while piece.into is not None:
            piece = piece.into
        return piece

    def add(self, t: float, v: Array) -> None:
        """One more point on this piece."""
        at = int(np.searchsorted(self.t, t))
        self.t, self.v = np.insert(self.t, at, t), np.insert(self.v, at, v, axis=0)

    def join(self, other: Piece) -> None:
        """The same piece after all."""
        joined = Piece(np.concatenate([self.t, other.t]), np.concatenate([self.v, other.v]), self.noise)
        self.t, self.v, other.into = joined.t, joined.v, self

    @property
    def lo(self) -> float:
        """The leftmost point known."""
        return float(self.t[0])

    @property
    def hi(self) -> float:
        """The rightmost point known."""
        return float(self.t[-1])

    @property
    def slope(self) -> Array:
        """∂f/∂t, (q,): between the outermost points, where a difference has the most digits."""
        return np.asarray((self.v[-1] - self.v[0]) / (self.t[-1] - self.t[0]))

    @property
    def error(self) -> Array:
        """Standard deviation of the slope, (q,)."""
        return np.asarray(np.hypot(self.noise(self.hi), self.noise(self.lo)) / (self.hi - self.lo))

    def value(self, t: float) -> Array:
        """The piece's affine function at t, (q,)."""
        end = -1 if abs(t - self.t[-1]) < abs(t - self.t[0]) else 0
        return np.asarray(self.v[end] + (t - self.t[end]) * self.slope)

    def nearby(self, t: float) -> Array:
        """The same from the point known nearest to t: far out rounding is a thousand times more."""
        at = int(np.argmin(np.abs(self.t - t)))
        return np.asarray(self.v[at] + (t - self.t[at]) * self.slope)

    def doubt(self, t: float) -> Array:
        """Standard deviation of ``value(t)`` minus an answer at t, (q,)."""
        away = max(self.lo - t, t - self.hi, 0.0)
        ends = np.maximum(self.noise(self.lo), self.noise(self.hi))
        return np.asarray(np.hypot(self.noise(t), ends) + away * self.error)

    def fits(self, t: float, v: Array) -> bool:
        """Whether an answer at t may belong to this piece."""
        return bool((np.abs(v - self.value(t)) <= SURE * self.doubt(t)).all())

    def straight(self) -> bool:
        """Whether all points known fit the line through the outermost two: `fits` of all of them at once."""
        if len(self.t) < 3:
            return True
        t, v = self.t[1:-1], self.v[1:-1]
        end = np.where(np.abs(t - self.t[-1]) < np.abs(t - self.t[0]), -1, 0)
        value = self.v[end] + (t - self.t[end])[:, None] * self.slope
        doubt = np.hypot(self.noise(t), np.maximum(self.noise(self.lo), self.noise(self.hi)))
        return bool((np.abs(v - value) <= SURE * doubt).all())


def crossing(left: Piece, right: Piece) -> float | None:
    """Where the lines of two pieces meet, least squares over the outputs in units of their noise; None if not between.

    Examples
    --------
    >>> noise = Noise(np.ones(1), np.zeros(1))
    >>> left = Piece(np.array([-2.0, -1.0]), np.array([[0.0], [0.0]]), noise)
    >>> right = Piece(np.array([1.0, 2.0]), np.array([[0.5], [1.5]]), noise)
    >>> crossing(left, right)
    0.5
    """
    a, b = left.hi, right.lo
    sigma = left.noise(0.5 * (a + b))
    bend = (right.slope - left.slope) / sigma
    size = float(bend @ bend)
    if not size > 0.0:
        return None
    gap = (left.value(a) - right.value(a)) / sigma
    t = a + float(gap @ bend) / size
    return t if a < t < b else None


@dataclass(frozen=True)
class Crossings:
    """The kinks of one line; see :mod:`relumine.extraction.lines`."""

    line: Line
    t: Array
    jump: Array
    pieces: tuple[Piece, ...]
    noise: Noise
    doubts: tuple[tuple[float, float], ...] = ()

    def without(self, r: int) -> Crossings:
        """The same without piece r (not an outer one): its two kinks become one, where the pieces beside it meet."""
        one, two = self.pieces[r - 1], self.pieces[r + 1]
        meet = crossing(one, two)
        t = 0.5 * (one.hi + two.lo) if meet is None else meet
        return replace(
            self,
            t=np.concatenate([self.t[: r - 1], [t], self.t[r + 1 :]]),
            jump=np.concatenate([self.jump[: r - 1], [two.slope - one.slope], self.jump[r + 1 :]]),
            pieces=self.pieces[:r] + self.pieces[r + 1 :],
        )

    @property
    def leaps(self) -> bool:
        """Whether f itself jumps somewhere, by more than any noise and slope: between two points next to each other."""
        for one, two in pairwise(self.pieces):
            gap = two.lo - one.hi
            steep = gap * (np.abs(one.slope) + np.abs(two.slope))  # what a continuous f may change by on the way
            most = _LEAP * np.maximum(one.doubt(two.lo), two.doubt(one.hi)) + steep
            if gap <= _POINT * (self.line.scale + abs(one.hi)) and (np.abs(two.v[0] - one.v[-1]) > most).any():
                return True
        return False

    @property
    def whole(self) -> bool:
        """Whether every stretch was resolved: no kink between the ends of reach is missing but by coincidence."""
        return not self.doubts
