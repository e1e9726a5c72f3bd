"""Surfaces followed from region to region: the weights of a unit behind known layers, one after the other.

Where a surface is met first, its normal n = DφᵀΘ says something about θ. The surface is then known as far as no unit in
front changes sides of which it says nothing: also in regions nobody has asked about. Where one does, at its hyperplane
g·x + o = 0, the normal changes by κg with κ unknown. A kink x' found behind that place gives κ, and with it one more
equation for θ; a second one further on, and more of them beside it, must be where it puts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.surfaces.surface import Lift, Surface, bends
from relumine.extraction.deep.surfaces.walking import AHEAD, Crossing, rays, walked

Rng = np.random.Generator


# How deep into the next region the bend is looked for, over its size, and how far to each side, over that depth, as the
# weight may be large: next to the edge the window holds no other kink, however many there are. In acasxu (600 kinks on
# a line) 40 of 50 weights of a unit were found so, and 25 with the first window at 0.4.
_SHARES, _WIDER = (1e-2, 1e-3, 1e-4), (5.0, 15.0, 50.0)
_NARROW = 0.02  # how far to each side then, over the way from the first
_STRAY = 1e-3  # how far from where the first puts it the second kink may be, over the distance between the two
# Places beside each kink with a new weight; how many must show it; how far off they are, over the way to the next
# hyperplane; how far to each side, over that way: wider windows took kinks of other units for this one's.
_MORE, _NEEDED, _FURTHER, _TIGHT = 3, 2, 0.8, 1e-4
_STARTS = 6  # points of a surface nearest to where a unit changes sides, of which a ray starts at one
_ROUNDS, _IDLE, _CROSSINGS = 40, 6, 60  # of rays; of them without a weight that is new; hyperplanes that each may cross
# The last two for kinks of which few are a unit's. In 100-16×8-1 and a trained 784-8×8-1 of all weights 94 % came so,
# in a third of the time.
_BRIEF = 2, 12
_MISSES = 8  # kinks that may not be where they should, beyond one for every weight found: they need not show everywhere
_CHECKS, _SHOWN = 6, 0.6  # places in other regions where the surface is held against the box; share that must show it
_OLD = 1e-7  # of an entry that is free: none
_LEAST = 0.5  # of what was free at the start that must be found: a unit further behind is followed for a while, too


def followed(ask: Asked, lift: Lift, start: Array, normal: Array, rng: Rng) -> Surface | None:
    """The surface of the unit that bends f at ``start``, with this ``normal`` (d,) there; None: it has none.

    A unit of a layer further behind bends at places where nothing is known to be, so kinks are not where they should.
    """
    surface = begun(lift, start, normal, rng)
    open_ = surface.unknown.shape[1]
    if not extended(ask, [surface], rng)[0]:
        return None
    few = surface.unknown.shape[1] > (1.0 - _LEAST) * open_ and (lift.m > 0 or lift.known.width > lift.known.d)
    if few or not holds(ask, surface, rng):
        return None
    found = surface.solved()
    if found is not None:
        surface.theta, surface.error = found
    return surface


@dataclass
class _Progress:
    """Of a surface the kinks that were not where they should be, weights gained, and rounds without one."""

    surface: Surface
    missed: int = 0
    gained: int = 0
    idle: int = 0

    def starts(self, rng: Rng) -> tuple[list[Array], list[int]]:
        """Of each open weight a point of the surface near to where its unit changes sides, and that unit."""
        lift, points = self.surface.lift, np.array(self.surface.points)
        far = np.abs(np.concatenate(lift.all.before(points), axis=1))  # (points, units)
        units = np.flatnonzero(~self.surface.seen[np.maximum(lift.entry, 0)] & (lift.entry >= 0))
        return [points[rng.choice(np.argsort(far[:, unit])[:_STARTS])] for unit in units], units.tolist()


def extended(
    ask: Asked, surfaces: Sequence[Surface], rng: Rng, misses: int = _MISSES, brief: bool = False
) -> list[bool]:
    """The weights of each that are still open, by rays in it; False: too many kinks are not where they should be.

    ``misses``: how many may not, beyond one for every weight found; ``brief``: some weights may stay open.
    """
    patience, steps = _BRIEF if brief else (_IDLE, _CROSSINGS)
    each = [_Progress(surface) for surface in surfaces]
    for _ in range(_ROUNDS):
        going = [p for p in each if not p.surface.seen.all() and p.idle <= patience and p.missed <= misses + p.gained]
        starts = [(p.surface, x, unit) for p in going for x, unit in zip(*p.starts(rng))]
        if not starts:
            break
        some, X, units = zip(*starts)
        # rays that end at the same unit would learn the same
        crossings = {
            (id(found.surface), found.number): found
            for found in rays(some, np.array(X), np.array(units, dtype=np.intp), rng, steps)
        }
        tried = [found.surface for found in crossings.values()]
        new = _kept(ask, _bend(ask, list(crossings.values())), rng)
        for p in going:
            more = new.get(id(p.surface), 0)
            p.missed += sum(surface is p.surface for surface in tried) - more
            p.gained, p.idle = p.gained + more, 0 if more else p.idle + 1
    return [p.missed <= misses + p.gained for p in each]


def begun(lift: Lift, start: Array, normal: Array, rng: Rng) -> Surface:
    """What the normal at the start says about θ, and points of its hyperplane there."""
    h = lift.known(start[None])[0]
    s = -np.sign(lift.V @ h + lift.c)  # all of the open layer off
    active, J, shift, rows, offsets = lift.known.region(start)
    n = normal / np.linalg.norm(normal)
    on = np.append(lift.m + active, lift.size - 1)
    # (n, −n·start) = Φᵀθ with φ = Φ(x, 1) on the entries that are on
    Phi = np.column_stack([np.vstack([J, np.zeros(len(start))]), np.append(shift, 1.0)])
    U, size, Wt = np.linalg.svd(Phi, full_matrices=len(Phi) > Phi.shape[1])  # all of U; of Wt only what θ sees
    rank = int((size > 1e-9 * size[0]).sum())
    theta, free = np.zeros(lift.size), np.zeros((lift.size, lift.size - rank))
    theta[on] = U[:, :rank] @ ((Wt[:rank] @ np.append(n, -n @ start)) / size[:rank])
    off = np.setdiff1d(np.arange(lift.size), on)
    free[off, np.arange(len(off))] = 1.0
    free[on, len(off) :] = U[:, rank:]
    surface = Surface(lift, s, theta, np.linalg.norm(free, axis=1) <= _OLD, [start], free=free)
    _, _, _, rows, offsets = lift.all.region(start)
    basis = np.linalg.pinv(J).T if rank > len(active) else np.eye(len(start))
    for u in rng.normal(size=(rank, len(basis))) @ basis:
        u = _tangent(u, n)
        surface.points.append(start + AHEAD * min(_room(rows, offsets, start, u), _size(start)) * u)
    return surface


@dataclass
class _Weight:
    """What a surface does behind a crossing, by two points in the region behind it."""

    crossing: Crossing
    points: list[Array]


def _bend(ask: Asked, crossings: list[Crossing]) -> list[_Weight]:
    """At each crossing a kink behind it, and a second one further on that is where the first puts it."""
    seen: list[tuple[Crossing, Array]] = []
    for share, wider in zip(_SHARES, _WIDER):
        bases, ways = [], []
        for c in crossings:
            base = c.x + share * c.depth * c.u
            p = c.n - c.g * (c.g @ c.n) / (c.g @ c.g)
            p /= max(float(np.linalg.norm(p)), 1e-300)
            room = min(_room(c.rows, c.offsets, base, p), _room(c.rows, c.offsets, base, -p))
            bases.append(base)
            ways.append(min(wider * share * c.depth, 0.45 * room) * p)
        found = bends(ask, bases, ways)
        seen += [(c, x) for c, x in zip(crossings, found) if x is not None]
        crossings = [c for c, x in zip(crossings, found) if x is None]
        if not crossings:
            break
    return _confirmed(ask, seen)


def _confirmed(ask: Asked, seen: list[tuple[Crossing, Array]]) -> list[_Weight]:
    """Those with a second kink."""
    bases, ways, tried = [], [], []
    for c, x in seen:
        n = c.surface.through(x).slope(x)
        u = _tangent(c.u, n)
        if c.g @ u <= 0.0 or not n.any():
            continue
        ahead = AHEAD * min(_room(c.rows, c.offsets, x, u, c.number), c.depth + float(np.linalg.norm(x - c.x)))
        base, n = x + ahead * u, n / np.linalg.norm(n)
        room = min(_room(c.rows, c.offsets, base, n), _room(c.rows, c.offsets, base, -n))
        bases.append(base)
        ways.append(min(0.45 * room, _NARROW * ahead) * n)
        tried.append((c, x))
    return [
        _Weight(c, [x, y])
        for (c, x), base, y in zip(tried, bases, bends(ask, bases, ways))
        if y is not None and np.linalg.norm(y - base) <= _STRAY * np.linalg.norm(base - x)
    ]


def _kept(ask: Asked, new: list[_Weight], rng: Rng) -> dict[int, int]:
    """Hold new weights against the box at more places of their regions, and keep those that pass; how many, by id.

    Then θ from all places. Weights found one after the other lose a digit or two at each: the error of the normal so
    far, times the way from where it was measured, over that into the next region. More places than weights in each
    region win it back.
    """
    bases, ways = [], []
    for found in new:
        c, y = found.crossing, found.points[-1]
        n = c.surface.through(y).slope(y)  # further from the edge: more digits
        n = n / np.linalg.norm(n)
        for u in rng.normal(size=(_MORE, len(y))):
            u = _tangent(u, n)
            ahead = _FURTHER * min(_room(c.rows, c.offsets, y, u), _size(y))
            room = min(_room(c.rows, c.offsets, y + ahead * u, n), _room(c.rows, c.offsets, y + ahead * u, -n))
            bases.append(y + ahead * u)
            ways.append(min(0.45 * room, _TIGHT * ahead) * n)
    shown, kept = bends(ask, bases, ways), dict[int, int]()
    good: dict[int, list[tuple[_Weight, list[Array]]]] = {}
    for i, found in enumerate(new):
        more = [x for x in shown[_MORE * i : _MORE * (i + 1)] if x is not None]
        if len(more) >= _NEEDED:
            good.setdefault(id(found.crossing.surface), []).append((found, more))
    for one, some in good.items():
        surface = some[0][0].crossing.surface
        before = surface.theta, surface.seen, surface.free, list(surface.points)
        for found, more in some:
            surface.learn(found.points[-1])
            surface.points += [*found.points, *more]
        theta = surface.solved()
        if theta is not None:
            (surface.theta, surface.error), kept[one] = theta, len(some)
        else:  # some of them are another unit's
            surface.theta, surface.seen, surface.free, surface.points = before
    return kept


def holds(ask: Asked, surface: Surface, rng: Rng, places: int = _CHECKS, away: int = 3) -> bool:
    """Whether the box bends where the surface should be, up to so many regions ``away`` from where it was asked."""
    bases, ways = [], []
    for x in walked([(surface, places)], rng, away)[0]:
        n = surface.slope(x)
        n = n / np.linalg.norm(n)
        _, _, _, rows, offsets = surface.lift.all.region(x)
        room = min(_room(rows, offsets, x, n), _room(rows, offsets, x, -n), _size(x))
        bases.append(x)
        ways.append(_NARROW * room * n)
    found = bends(ask, bases, ways)
    shown = [y for x, w, y in zip(bases, ways, found) if y is not None and abs((y - x) @ w) <= 0.5 * (w @ w)]
    surface.points += shown
    return len(bases) > 0 and len(shown) >= _SHOWN * len(bases)


def _size(x: Array) -> float:
    """What is a long way at x."""
    return 0.5 * (1.0 + float(np.linalg.norm(x)))


def _tangent(u: Array, n: Array) -> Array:
    u = u - n * (n @ u) / max(float(n @ n), 1e-300)
    return np.asarray(u / max(float(np.linalg.norm(u)), 1e-300))


def _room(rows: Array, offsets: Array, x: Array, u: Array, but: int = -1) -> float:
    """How far one can go from x along u within {rows·x + offsets ≥ 0}."""
    speed, room = rows @ u, rows @ x + offsets
    ahead = speed < 0.0
    if but >= 0:
        ahead[but] = False
    return float(np.min(np.maximum(room[ahead], 0.0) / -speed[ahead], initial=np.inf))
