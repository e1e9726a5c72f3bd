"""Surfaces of units, followed from region to region: the weights of a unit behind known layers, one after the other.

Behind known layers h = known(x) a unit bends f on the surface {θ·φ(x) = 0} with φ = (h, 1). Behind a layer z = Vh + c
that is known up to signs, as relu(ξz) = (|z| + ξz)/2, it is linear in φ = (relu(sz), h, 1), *whatever* the signs s.

Where the surface is met first, its normal n = DφᵀΘ gives θ on the entries of φ that are on there. The surface is then
known as far as no other entry turns on, also in regions nobody has asked about. Where entry p turns on, a kink x' found
behind that place gives its weight, and a second one further on must be where that weight puts it:

    θ_p = −θ·φ(x') / φ_p(x').                                                                                   (1)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.deep.box import ROUNDING, Asked
from relumine.extraction.deep.charts import Known

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rng = np.random.Generator

__all__ = ["Lift", "Surface", "extended", "followed", "only"]

_FAR = 100.0  # distance from the origin over √d at which a ray ends: nearly all crossings are nearer
_SHARP = 1e-8  # least change by the bend over the size of the answers: seven digits of its place
# How deep into the next region the bend is looked for, over its size, and how far to each side, over that depth, as the
# weight may be large: next to the edge the window holds no other kink, however many there are. In acasxu (600 kinks on
# a line) 40 of 50 weights of a unit were found so, and 25 with the first window at 0.4.
_SHARES, _WIDER = (1e-2, 1e-3, 1e-4), (5.0, 15.0, 50.0)
# Places beside each kink with a new weight; how many must show it; how far off they are, over the way to the next
# hyperplane; how far to each side, over that way: wider windows took kinks of other units for this one's.
_MORE, _NEEDED, _FURTHER, _TIGHT = 3, 2, 0.8, 1e-4
_AHEAD = 0.5  # place of the second look, over the way to the next hyperplane
_NARROW = 0.02  # how far to each side then, over the way from the first
_STRAY = 1e-3  # how far from where (1) puts it the second kink may be, over the distance between the two
_CROSSINGS = 60  # hyperplanes that a ray may cross
_ROUNDS, _IDLE = 40, 6  # of rays; of them without a weight that is new
_MISSES = 8  # kinks that may not be where they should, beyond one for every weight found: they need not show everywhere
_CHECKS, _SHOWN = 6, 0.6  # places in other regions where the surface is held against the box; share that must show it
_NOTHING = 1e-5  # smallest over second smallest singular value: measured 1e-12 … 1e-9 for the points of one unit


class Lift:
    """φ = (relu(sz), h, 1) with h = known(x), z = Vh + c; without V and c, φ = (h, 1)."""

    def __init__(self, known: Known, V: Array | None = None, c: Array | None = None) -> None:
        self.known, self.V, self.c, self.all = known, np.zeros((0, known.width)), np.zeros(0), known
        if V is not None and c is not None:
            self.V, self.c = V, c
            self.all = Known(known.d, (*known.layers, (V, c)))  # as to regions, the signs make no difference
        self.m = len(self.c)
        self.size = self.m + known.width + 1
        # for each unit of all layers its entry of φ; none for those further in front
        layers = [len(b) for _, b in known.layers]
        entries = [np.full(k, -1) for k in layers[:-1]]
        entries += [self.m + np.arange(k) for k in layers[-1:]] + [np.arange(self.m)]
        self.entry = np.concatenate(entries)

    def __call__(self, X: Array, s: Array) -> Array:
        """φ at the rows of X, (n, m + width + 1)."""
        H = self.known(X)
        return np.column_stack([np.maximum(s * (H @ self.V.T + self.c), 0.0), H, np.ones(len(X))])

    def slope(self, theta: Array, s: Array, x: Array) -> Array:
        """The gradient of θ·φ at x, (d,)."""
        active, J, shift, _, _ = self.known.region(x)
        h = np.zeros(self.known.width)
        h[active] = J @ x + shift
        on = s * (self.V @ h + self.c) > 0.0
        return np.asarray(((theta[: self.m] * s * on) @ self.V + theta[self.m : -1])[active] @ J)


@dataclass
class Surface:
    """{θ·φ = 0} with signs ``s`` (m,); ``seen``: entries of φ that are on somewhere on it; ``points`` on it.

    ``error``: that of θ, about.
    """

    lift: Lift
    s: Array
    theta: Array
    seen: Mask
    points: list[Array] = field(default_factory=list)
    error: float = 1e-5

    def value(self, X: Array) -> Array:
        """θ·φ at the rows of X."""
        return np.asarray(self.lift(X, self.s) @ self.theta)

    def slope(self, x: Array) -> Array:
        """Its gradient at x."""
        return self.lift.slope(self.theta, self.s, x)

    def shows(self, x: Array) -> bool:
        """Whether x is on it, in a region where all of it is known."""
        F = self.lift(x[None], self.s)[0]
        size = float(np.linalg.norm(F) * np.linalg.norm(self.theta))
        return bool(abs(F @ self.theta) <= _SAME * size and not F[~self.seen].any())

    @property
    def even(self) -> tuple[Array, Array]:
        """θ on (|z|, h): θ_j relu(s_j z_j) = ½θ_j|z_j| + ½θ_j s_j z_j."""
        a, m = self.theta[: self.lift.m], self.lift.m
        return 0.5 * a, self.theta[m:-1] + 0.5 * (a * self.s) @ self.lift.V


_FINE = 1e-8  # error of weights that all points determine well; of others it was up to 1e-4
_SAME = 1e-8  # |θ·φ| over ‖θ‖‖φ‖ at a kink of the surface: measured 1e-12 … 1e-10


def only(F: Array) -> tuple[Array, float] | None:
    """The one direction θ with Fθ = 0 (n, p), zero at columns that are, and its error, about.

    None if there is no such θ, or several.
    """
    F = F / np.linalg.norm(F, axis=1, keepdims=True)
    scale = np.linalg.norm(F, axis=0)
    use = scale > 0.0
    if use.sum() < 2 or len(F) < use.sum():
        return None
    s, Vt = np.linalg.svd(F[:, use] / scale[use], full_matrices=False)[1:]
    if s[-1] > _NOTHING * s[-2] or s[-2] < 1e-6 * s[0]:
        return None
    theta = np.zeros(len(scale))
    theta[use] = Vt[-1] / scale[use]
    # what is left of a direction that should vanish, over what the next one keeps: how far θ may have turned
    return theta / np.linalg.norm(theta), max(_FINE, float(s[-1] / s[-2]))


def followed(ask: Asked, lift: Lift, start: Array, normal: Array, rng: Rng) -> Surface | None:
    """The surface of the unit that bends f at ``start``, with this ``normal`` (d,) there; None: it has none.

    A unit of a layer further behind bends at places where nothing is known to be, so kinks are not where they should.
    """
    surface = _begun(lift, start, normal, rng)
    if not extended(ask, surface, rng):
        return None
    # a unit further behind is followed for a while, too
    half = surface.seen[: lift.m].sum() >= 0.5 * lift.m
    if not half or not _holds(ask, surface, rng):
        return None
    found = only(lift(np.array(surface.points), surface.s))  # weights were found one after the other: now together
    if found is not None:
        surface.theta, surface.error = found
    return surface


def extended(ask: Asked, surface: Surface, rng: Rng) -> bool:
    """The weights that are still open, by rays in the surface; False: too many kinks are not where they should be."""
    lift = surface.lift
    missed = idle = gained = 0
    for _ in range(_ROUNDS):
        if surface.seen.all() or idle > _IDLE:
            break
        crossings: dict[int, _Crossing] = {}
        for unit in np.flatnonzero(~surface.seen[np.maximum(lift.entry, 0)] & (lift.entry >= 0)):
            found = _ray(surface, surface.points[rng.integers(len(surface.points))], int(unit), rng)
            if found is not None:
                crossings[found.entry] = found  # rays that end at the same unit would learn the same
        new = _kept(ask, surface, _bend(ask, surface, list(crossings.values())), rng)
        missed, gained, idle = missed + len(crossings) - new, gained + new, 0 if new else idle + 1
        if missed > _MISSES + gained:
            return False
    return True


def _begun(lift: Lift, start: Array, normal: Array, rng: Rng) -> Surface:
    """θ on the entries that are on at the start, and points of its hyperplane there."""
    h = lift.known(start[None])[0]
    s = -np.sign(lift.V @ h + lift.c)  # all of the open layer off
    active, J, _, _, _ = lift.known.region(start)
    theta, seen = np.zeros(lift.size), np.zeros(lift.size, dtype=bool)
    on = lift.m + active
    theta[on] = np.linalg.lstsq(J.T, normal / np.linalg.norm(normal), rcond=None)[0]
    theta[-1] = -float(theta[lift.m : -1] @ h)
    seen[on] = seen[-1] = True
    surface = Surface(lift, s, theta, seen, [start])
    _, _, _, rows, offsets = lift.all.region(start)
    n = surface.slope(start)
    for u in rng.normal(size=(len(on) + 1, len(on))) @ np.linalg.pinv(J).T:
        u = _tangent(u, n)
        surface.points.append(start + _AHEAD * min(_room(rows, offsets, start, u), _size(start)) * u)
    return surface


@dataclass
class _Crossing:
    """Where a ray along ``u`` meets g·x + o = 0 at ``x``, and ``entry`` of φ turns on behind it."""

    entry: int
    number: int
    x: Array
    u: Array
    g: Array
    rows: Array
    offsets: Array
    depth: float


@dataclass
class _Weight:
    """That of the entry that turns on behind a crossing, by two points in the region behind it."""

    crossing: _Crossing
    points: list[Array]


def _ray(surface: Surface, x: Array, unit: int, rng: Rng) -> _Crossing | None:
    """From x in the surface, towards where a unit turns on, as far as all of the surface is known."""
    lift = surface.lift
    for _ in range(_CROSSINGS):
        n = surface.slope(x)
        _, _, _, rows, offsets = lift.all.region(x)
        # uphill for that unit, and a little anywhere: straight uphill may end in a corner
        aim = -rows[unit] if lift.entry[unit] >= 0 else np.zeros(len(x))
        noise = rng.normal(size=len(x)) * max(float(np.linalg.norm(aim)), 1e-12) / np.sqrt(len(x))
        u = _tangent(aim + rng.uniform(0.2, 2.0) * noise, n)
        speed, room = rows @ u, np.maximum(rows @ x + offsets, 0.0)
        way = np.where(speed < 0.0, room / np.where(speed < 0.0, -speed, 1.0), np.inf)
        number = int(way.argmin())
        step = float(way[number])
        edge = x + step * u
        if not np.isfinite(step) or np.linalg.norm(edge) > _FAR * np.sqrt(len(x)):
            return None
        _, _, _, rows, offsets = lift.all.region(edge + 1e-7 * (1.0 + np.linalg.norm(edge)) * u)
        depth = min(_room(rows, offsets, edge, u, number), _size(edge))
        if rows[number] @ u <= 0.0 or depth < 1e-6 * (1.0 + np.linalg.norm(edge)):
            return None  # two hyperplanes at once
        entry = int(lift.entry[number])
        behind = edge + _AHEAD * depth * u
        if entry >= 0 and not surface.seen[entry] and lift(behind[None], surface.s)[0, entry] > 0.0:
            return _Crossing(entry, number, edge, u, rows[number], rows, offsets, depth)
        inside = _onto(surface, edge, u, rows, offsets, number)
        if inside is None:
            return None
        x = inside
    return None


def _onto(surface: Surface, edge: Array, u: Array, rows: Array, offsets: Array, number: int) -> Array | None:
    """A point of the surface in the region behind an edge of it."""
    n = surface.slope(edge + 1e-7 * (1.0 + np.linalg.norm(edge)) * u)
    u = _tangent(u, n)
    if rows[number] @ u <= 0.0 or not n.any():
        return None
    x = edge + _AHEAD * min(_room(rows, offsets, edge, u, number), _size(edge)) * u
    return np.asarray(x - n * float(surface.value(x[None])[0]) / (n @ n))


def _bend(ask: Asked, surface: Surface, crossings: list[_Crossing]) -> list[_Weight]:
    """θ_p of (1) at each crossing by a kink behind it, and once more further on."""
    seen: list[tuple[_Crossing, Array]] = []
    for share, wider in zip(_SHARES, _WIDER):
        bases, ways = [], []
        for c in crossings:
            base, n = c.x + share * c.depth * c.u, surface.slope(c.x + 1e-7 * c.u)
            p = n - c.g * (c.g @ n) / (c.g @ c.g)
            p /= max(float(np.linalg.norm(p)), 1e-300)
            room = min(_room(c.rows, c.offsets, base, p), _room(c.rows, c.offsets, base, -p))
            bases.append(base)
            ways.append(min(wider * share * c.depth, 0.45 * room) * p)
        found = _kinks(ask, bases, ways)
        seen += [(c, x) for c, x in zip(crossings, found) if x is not None]
        crossings = [c for c, x in zip(crossings, found) if x is None]
        if not crossings:
            break
    return _confirmed(ask, surface, seen)


def _confirmed(ask: Asked, surface: Surface, seen: list[tuple[_Crossing, Array]]) -> list[_Weight]:
    """The weights that put a second kink where it is."""
    bases, ways, tried = [], [], []
    for c, x in seen:
        trial = _with(surface, c.entry, x)
        n = trial.slope(x)
        u = _tangent(c.u, n)
        if c.g @ u <= 0.0:
            continue
        ahead = _AHEAD * min(_room(c.rows, c.offsets, x, u, c.number), c.depth + float(np.linalg.norm(x - c.x)))
        base, n = x + ahead * u, n / np.linalg.norm(n)
        room = min(_room(c.rows, c.offsets, base, n), _room(c.rows, c.offsets, base, -n))
        bases.append(base)
        ways.append(min(0.45 * room, _NARROW * ahead) * n)
        tried.append((c, x))
    return [
        _Weight(c, [x, y])
        for (c, x), base, y in zip(tried, bases, _kinks(ask, bases, ways))
        if y is not None and np.linalg.norm(y - base) <= _STRAY * np.linalg.norm(base - x)
    ]


def _kept(ask: Asked, surface: Surface, new: list[_Weight], rng: Rng) -> int:
    """Hold new weights against the box at more places of their regions, and keep those that pass; how many.

    Then θ from all places. Weights found one after the other lose a digit or two at each: the error of the normal so
    far, times the way from where it was measured, over that into the next region. More places than weights in each
    region win it back.
    """
    bases, ways = [], []
    for found in new:
        c, y = found.crossing, found.points[-1]
        n = _with(surface, c.entry, y).slope(y)  # further from the edge: more digits
        n = n / np.linalg.norm(n)
        for u in rng.normal(size=(_MORE, len(y))):
            u = _tangent(u, n)
            ahead = _FURTHER * min(_room(c.rows, c.offsets, y, u), _size(y))
            room = min(_room(c.rows, c.offsets, y + ahead * u, n), _room(c.rows, c.offsets, y + ahead * u, -n))
            bases.append(y + ahead * u)
            ways.append(min(0.45 * room, _TIGHT * ahead) * n)
    shown, points, before, kept = _kinks(ask, bases, ways), list(surface.points), surface.seen.copy(), 0
    for i, found in enumerate(new):
        more = [x for x in shown[_MORE * i : _MORE * (i + 1)] if x is not None]
        if len(more) < _NEEDED:
            continue
        surface.theta = _with(surface, found.crossing.entry, found.points[-1]).theta
        surface.seen[found.crossing.entry] = True
        surface.points += [*found.points, *more]
        kept += 1
    theta = only(surface.lift(np.array(surface.points), surface.s) * surface.seen) if kept else None
    if theta is not None:
        surface.theta, surface.error = theta
    elif kept:  # some of them are another unit's
        surface.points, surface.seen, kept = points, before, 0
        surface.theta = surface.theta * before
    return kept


def _with(surface: Surface, entry: int, x: Array) -> Surface:
    """The surface with the weight of one more entry of φ, from a point x on it."""
    F = surface.lift(x[None], surface.s)[0]
    theta = surface.theta.copy()
    theta[entry] = 0.0
    theta[entry] = -float(F @ theta) / float(F[entry])
    return Surface(surface.lift, surface.s, theta, surface.seen)


def _holds(ask: Asked, surface: Surface, rng: Rng) -> bool:
    """Whether the box bends where the surface should be, in regions that nobody has asked about."""
    lift, bases, ways = surface.lift, [], []
    for _ in range(4 * _CHECKS):
        x = surface.points[rng.integers(len(surface.points))]
        for _ in range(int(rng.integers(1, 4))):
            _, _, _, rows, offsets = lift.all.region(x)
            u = _tangent(rng.normal(size=len(x)), surface.slope(x))
            step = _room(rows, offsets, x, u)
            if not np.isfinite(step) or np.linalg.norm(x + step * u) > _FAR * np.sqrt(len(x)):
                break
            edge = x + step * u
            behind = edge + 1e-7 * (1.0 + np.linalg.norm(edge)) * u
            _, _, _, rows, offsets = lift.all.region(behind)
            number = int(np.abs((rows @ edge + offsets) / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)).argmin())
            inside = _onto(surface, edge, u, rows, offsets, number)
            if inside is None or lift(inside[None], surface.s)[0][~surface.seen].any():
                break
            x = inside
        else:
            n = surface.slope(x)
            if not n.any():
                continue  # all units in front are off: there is no surface here
            n = n / np.linalg.norm(n)
            room = min(_room(rows, offsets, x, n), _room(rows, offsets, x, -n), _size(x))
            bases.append(x)
            ways.append(_NARROW * room * n)
        if len(bases) == _CHECKS:
            break
    found = _kinks(ask, bases, ways)
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


def _kinks(ask: Asked, bases: list[Array], ways: list[Array]) -> list[Array | None]:
    """The one kink of each base + τ·way, |τ| ≤ 1: two points on each side give its place, and one there confirms it."""
    if not bases:
        return []
    P, U = np.array(bases), np.array(ways)
    lost = ~(np.isfinite(P).all(axis=1) & np.isfinite(U).all(axis=1))  # no direction is left in a corner
    P[lost], U[lost] = 0.0, 0.0
    tau = np.array([-2.0, -1.0, 1.0, 2.0])
    y = ask((P[:, None, :] + tau[:, None] * U[:, None, :]).reshape(-1, P.shape[1])).reshape(-1, 4)
    size = np.abs(y).max(axis=1)
    left, right = y[:, 1] - y[:, 0], y[:, 3] - y[:, 2]
    jump = right - left
    clear = np.abs(jump) > _SHARP * size
    place = np.where(clear, (y[:, 1] + left - y[:, 2] + right) / np.where(clear, jump, 1.0), np.inf)
    good = np.flatnonzero(np.abs(place) <= 1.0)
    if not len(good):
        return [None] * len(P)
    points = P[good] + place[good, None] * U[good]
    wanted = y[good, 1] + left[good] * (place[good] + 1.0)
    fits = np.abs(ask(points) - wanted) <= 16.0 * ROUNDING * size[good]
    found: list[Array | None] = [None] * len(P)
    for i, x, fit in zip(good, points, fits):
        if fit:
            found[i] = x
    return found
