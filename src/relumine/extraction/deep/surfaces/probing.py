"""A surface held against the box all over: does the box bend wherever the surface should be?

A unit of the next layer bends the box at every place of its surface, except where the answers do not move at all: there
all units of some layer further behind are off. A unit further behind bends it only where no unit in between has changed
sides. So single places far from each other, chosen on both sides of every other surface, tell the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import ROUNDING, Asked
from relumine.extraction.deep.known.places import breaks
from relumine.extraction.deep.surfaces.surface import Lift, Surface
from relumine.extraction.deep.surfaces.walking import sizes

Rng = np.random.Generator

_WINDOWS = (0.3, 0.03, 0.003, 3e-4)  # how far to each side of a place, over the way to the next known kink
_SHARP = 1e-8  # least change by a bend over the size of the answers: seven digits of its place
_STRAIGHT = 8.0 * ROUNDING  # largest departure from a straight line, over the size of the answers, that is none
_OUT = 30.0  # distance from the origin over √d up to which places are asked
_STRAY, _ROUND = 30.0, 1e-12  # how far off a kink may be, over half of the others; and that which is rounding
_STEPS = 30  # of least squares: with 3, one kink of another unit among 50 cost five digits
# How far apart two surfaces of one unit may be, θ of length one: some were 2e-6 from the truth, and said 1e-8.
_ALIKE = 1e-4
_SIDES = 3  # places on each side of every other surface


class Lines:
    """Lines through known layers, cut where a known unit changes sides: φ is affine on every piece."""

    def __init__(self, lift: Lift, starts: Array, ends: Array) -> None:
        self.lift, self.starts, self.ends = lift, starts, ends
        ts = [breaks(lift.all, a, b) for a, b in zip(starts, ends)]
        self.t = np.concatenate([np.zeros(0), *ts])
        self.line = np.repeat(np.arange(len(ts)), [len(t) for t in ts])
        F = [lift(a + t[:, None] * (b - a), np.ones(lift.m)) for t, a, b in zip(ts, starts, ends)]
        self.F = np.concatenate([np.zeros((0, lift.size)), *F])

    def crossings(self, surface: Surface) -> tuple[Array, Array]:
        """Where they cross a surface, as far as it is known: inputs (n, d), and φ there."""
        z = self.F @ surface.theta
        i = np.flatnonzero((z[:-1] * z[1:] < 0.0) & (self.line[:-1] == self.line[1:]))
        share = (z[i] / (z[i] - z[i + 1]))[:, None]
        F = (1.0 - share) * self.F[i] + share * self.F[i + 1]
        t = (1.0 - share) * self.t[i, None] + share * self.t[i + 1, None]
        X = (1.0 - t) * self.starts[self.line[i]] + t * self.ends[self.line[i]]
        free = np.linalg.norm(F @ surface.unknown, axis=1) <= 1e-7 * np.linalg.norm(F, axis=1)
        near = np.linalg.norm(X, axis=1) <= _OUT * np.sqrt(X.shape[1])
        return X[free & near], F[free & near]


@dataclass
class Shown:
    """Places of a surface: where the box bends there (n, d), where it is straight, and where nothing can be told."""

    hits: list[Array] = field(default_factory=list)
    missed: list[Array] = field(default_factory=list)
    open: int = 0

    @property
    def score(self) -> float:
        """Share of the places that tell."""
        return len(self.hits) / max(len(self.hits) + len(self.missed), 1)


def chosen(lines: Lines, surface: Surface, others: list[Surface], count: int, rng: Rng) -> Array:
    """Places of a surface: some on both sides of each of the others, the rest anywhere."""
    X, F = lines.crossings(surface)
    order = rng.permutation(len(X))
    X, F = X[order], F[order]
    pick: list[int] = []
    for other in others:
        if other is surface:
            continue
        side = F @ other.theta > 0.0
        for on in (True, False):
            have = sum(side[i] == on for i in pick)
            pick += [i for i in np.flatnonzero(side == on).tolist() if i not in pick][: max(_SIDES - have, 0)]
    pick += [i for i in range(len(X)) if i not in pick][: max(count - len(pick), 0)]
    return np.asarray(X[pick])


def one_sided(surface: Surface, others: list[Surface]) -> Array:
    """The signs (n,) of the others where the box bent on a surface, if none of them has both there; else empty.

    A unit further behind looks so: where a unit in front of it changes sides, it is elsewhere.
    """
    T = np.reshape([other.theta for other in others], (-1, surface.lift.size))
    if not len(T) or not surface.points:
        return np.zeros(0)
    up = surface.lift(np.array(surface.points), surface.s) @ T.T > 0.0
    if not (up.all(axis=0) | ~up.any(axis=0)).all():
        return np.zeros(0)
    return np.where(up[0], 1.0, -1.0)


def across(lines: Lines, surface: Surface, others: list[Surface], count: int) -> Array:
    """Places of a surface that is on one side of all others, beyond one of these; none if it is not."""
    sides = one_sided(surface, others)
    X, F = lines.crossings(surface)
    T = np.reshape([other.theta for other in others], (-1, surface.lift.size))[: len(sides)]
    return np.asarray(X[(F @ T.T * sides < 0.0).any(axis=1)][:count])


def beyond(surface: Surface, X: list[Array], others: list[Surface], count: int) -> list[Array]:
    """Those of the places X from where the surface was begun to which most of the others are crossed.

    A unit further behind bends at each of these, and is elsewhere then.
    """
    if len(X) <= count or not others:
        return X[:count]
    T = np.array([other.theta for other in others])
    sides = surface.lift(np.array([surface.points[0], *X]), surface.s) @ T.T > 0.0
    order = np.argsort(-(sides[1:] != sides[0]).sum(axis=1), kind="stable")
    return [X[i] for i in order[:count]]


def shown(ask: Asked, surface: Surface, X: Array | list[Array], slack: float = 1e-6) -> Shown:
    """What the box does at places (n, d) of a surface; ``slack``: how far off it may bend, |θ·φ| over ‖θ‖‖φ‖."""
    return all_shown(ask, [(surface, X)], slack)[0]


def all_shown(ask: Asked, asked: Sequence[tuple[Surface, Array | list[Array]]], slack: float) -> list[Shown]:
    """The same for many surfaces, each with its places, together."""
    found, left = [Shown() for _ in asked], []
    for i, (surface, X) in enumerate(asked):
        X = np.reshape(X, (-1, surface.lift.known.d))
        left += [(i, x, way) for x, way, there in zip(X, *_across(surface, X)) if there]
    for window in _WINDOWS:
        if not left:
            break
        P, U = np.array([x for _, x, _ in left]), 0.5 * window * np.array([way for _, _, way in left])
        kinks, straight, flat = _bends(ask, P, U)
        again = []
        for one, kink, no_bend, no_slope in zip(left, kinks, straight, flat):
            i, surface = one[0], asked[one[0]][0]
            if kink is not None and _off(surface.lift(kink[None], surface.s), surface.theta)[0] <= slack:
                found[i].hits.append(kink)
            elif no_bend and not no_slope:
                found[i].missed.append(one[1])
            elif no_bend:
                found[i].open += 1
            else:
                again.append(one)
        left = again
    for i, _, _ in left:
        found[i].open += 1
    return found


def _across(surface: Surface, X: Array) -> tuple[Array, Array]:
    """The ways from places X (n, d) across the surface to the next known kink; where there is a surface, (n,)."""
    at = surface.lift.all.regions(X)
    N = surface.lift.slopes(surface.theta, surface.s, X, at)
    size = np.linalg.norm(N, axis=1)
    N = N / np.where(size > 0.0, size, 1.0)[:, None]
    far = np.minimum(at.room(X, N)[0], at.room(X, -N)[0])
    return N * np.minimum(far, sizes(X))[:, None], size > 0.0


def _bends(ask: Asked, P: Array, U: Array) -> tuple[list[Array | None], Array, Array]:
    """The one kink of each P + τU, |τ| ≤ 1; where there is none at all; where not even the answers move."""
    tau = np.array([-2.0, -1.0, 1.0, 2.0])
    y = ask((P[:, None, :] + tau[:, None] * U[:, None, :]).reshape(-1, P.shape[1])).reshape(-1, 4)
    size = np.abs(y).max(axis=1)
    before, after = y[:, 1] - y[:, 0], y[:, 3] - y[:, 2]
    jump = after - before
    clear = np.abs(jump) > _SHARP * size
    place = np.where(clear, (y[:, 1] + before - y[:, 2] + after) / np.where(clear, jump, 1.0), np.inf)
    bent = np.flatnonzero(np.abs(place) <= 1.0)
    kinks: list[Array | None] = [None] * len(P)
    if len(bent):
        points = P[bent] + place[bent, None] * U[bent]
        wanted = y[bent, 1] + before[bent] * (place[bent] + 1.0)
        for i, x, fits in zip(bent, points, np.abs(ask(points) - wanted) <= _STRAIGHT * size[bent]):
            kinks[i] = x if fits else None
    chord = np.abs(y[:, 2] - y[:, 1] - before - after)
    straight = (np.abs(jump) <= _STRAIGHT * size) & (chord <= 2.0 * _STRAIGHT * size)
    return kinks, straight, np.abs(y - y[:, :1]).max(axis=1) <= _STRAIGHT * size


def sharpened(surface: Surface, hits: list[Array]) -> Surface | None:
    """θ from these kinks together with the ones that it had; None where they do not agree."""
    points = [*surface.points, *hits]
    both = Surface(surface.lift, surface.s, surface.theta, surface.seen, points, surface.error, surface.free)
    off = _off(both.lift(np.array(points), both.s), both.theta)
    both.points = [x for x, far in zip(points, off > max(_STRAY * float(np.median(off)), _ROUND)) if not far]
    solved = both.solved()
    if solved is None:
        return None
    both.theta, both.error = solved
    return both.settled()  # a weight that only points left out have shown is not seen any more


def alike(one: Surface, two: Surface) -> bool:
    """Whether two surfaces are nearly the same in all that is known of both, which is at least a half."""
    both = one.seen & two.seen
    a, b = one.theta[both], two.theta[both]
    long, size = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if 2 * both.sum() < len(both) or long < 0.1 * np.linalg.norm(one.theta) or size < 0.1 * np.linalg.norm(two.theta):
        return False
    a, b = a / long, b / size
    return bool(min(np.linalg.norm(a - b), np.linalg.norm(a + b)) <= _ALIKE)


def united(one: Surface, two: Surface) -> Surface:
    """One surface of two that are alike: that which fits its own kinks better, with those of the other that fit it."""
    better, other = sorted((one, two), key=lambda s: float(np.median(_off(s.lift(np.array(s.points), s.s), s.theta))))
    both = Surface(better.lift, better.s, better.theta, better.seen, better.points, better.error, better.free)
    if other.seen[~better.seen].any():
        for x in other.points:
            both.learn(x)
    return sharpened(both, other.points) or better


def corrected(surface: Surface, hits: list[Array], error: float | Array) -> Array:
    """θ, so far right up to ``error``, from these kinks: δ of least Σ w|F(θ + δ)|²/σ² + |δ|²/error², rows of F = φ/‖φ‖.

    Weights that hardly count at any of the kinks stay as they are. A kink of another unit that happens to be close is
    no smaller than ``error``, but all others come closer with each step; with w = 1/(1 + (F·θ/2σ)²) its part vanishes.
    """
    theta = surface.theta / np.linalg.norm(surface.theta)
    if not hits:
        return theta
    F = surface.lift(np.array(hits), surface.s)
    F = F / np.linalg.norm(F, axis=1, keepdims=True)
    for _ in range(_STEPS):
        off = _off(F, theta)
        sigma = max(float(np.median(off)), _ROUND)
        use = F / (sigma * np.hypot(1.0, off / (2.0 * sigma)))[:, None]
        A = np.vstack([use, np.diag(np.broadcast_to(1.0 / np.asarray(error), theta.shape))])
        step = np.linalg.lstsq(A, np.append(-use @ theta, np.zeros(len(theta))), rcond=None)[0]
        theta = theta + step
        if np.linalg.norm(step) <= _ROUND:
            break
    return np.asarray(theta * np.linalg.norm(surface.theta))


def _off(F: Array, theta: Array) -> Array:
    """How far points with φ = F (n, p) are from a surface, |θ·φ| over ‖θ‖‖φ‖."""
    return np.asarray(np.abs(F @ theta) / (np.linalg.norm(F, axis=1) * np.linalg.norm(theta)))
