"""Surfaces of units behind a layer whose signs are open: points on them, followed from region to region.

Let h be the activations of the known layers and z = Vh + c the units of the next one, each known up to its sign. With
relu(ξz) = (|z| + ξz)/2, a unit of the layer behind it is *linear* in φ(x) = (|z|, h, 1), whatever the signs ξ: f bends
on the surface {θ·φ(x) = 0}. Inside a region of the layers in front the surface is a hyperplane n·x + e = 0. Where it
meets the hyperplane g·x + o = 0 of a unit it bends, and only its slope across that hyperplane is new:

    n' = n + t g,   e' = e + t o.                                                                               (1)

One kink found on the other side gives t. Rays in the surface, followed across one hyperplane after the other, collect
points until a single θ is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.deep.box import ROUNDING, Asked
from relumine.extraction.deep.charts import Known

Array = NDArray[np.float64]
Rng = np.random.Generator

__all__ = ["Lift", "Surface", "followed", "only"]

_FAR = 100.0  # distance from the origin over √d at which a ray ends: nearly all crossings are nearer
_SHARP = 1e-8  # least change by the bend over the size of the answers: seven digits of its place
_SHARES = (0.4, 0.1, 0.02, 0.004)  # how deep into the next region the bend is looked for, over its size
_WIDER = (3.0, 6.0, 12.0, 24.0)  # how far to each side, over that depth: t in (1) may be large
_AHEAD = 0.5  # place of the second look, over the way to the next hyperplane
_NARROW = 0.02  # how far to each side then, over the way from the first
_STRAY = 1e-3  # how far from where (1) puts it the second kink may be, over the distance between the two
_SPARE = 4  # points beyond those that determine θ
_NOTHING = 1e-6  # smallest over second smallest singular value: measured 1e-12 … 1e-9 for the points of one unit
_MISSES = 8  # rays that may end where no kink is, beyond one for every four points found
_IDLE = 10  # times that all rays end without a hyperplane that is new
_CROSSINGS = 40  # hyperplanes that a ray may cross, those whose bend is known included


class Lift:
    """φ(x) = (|z|, h, 1) with h = known(x) and z = Vh + c: (n, m + width + 1)."""

    def __init__(self, known: Known, V: Array, c: Array) -> None:
        self.known, self.V, self.c = known, V, c
        self.all = Known(known.d, (*known.layers, (V, c)))  # as to regions, the signs make no difference
        self.first = sum(len(b) for _, b in known.layers)  # number of the first unit of the open layer
        self.size = len(c) + known.width + 1

    def __call__(self, X: Array) -> Array:
        """φ at the rows of X."""
        H = self.known(X)
        return np.column_stack([np.abs(H @ self.V.T + self.c), H, np.ones(len(X))])

    def off(self, theta: Array, X: Array) -> Array:
        """|θ·φ| over ‖θ‖‖φ‖ at the rows of X: zero on the surface."""
        F = self(X)
        return np.asarray(np.abs(F @ theta) / (np.linalg.norm(F, axis=1) * np.linalg.norm(theta)))


@dataclass
class _Ray:
    """At x, on the way along u, inside the hyperplane n·x + e = 0 of the surface."""

    x: Array
    u: Array
    n: Array
    e: float
    crossed: int = 0


@dataclass
class _Crossing:
    """Where a ray leaves its region: at ``x``, through g·x + o = 0 (positive behind it) of unit ``number``."""

    ray: _Ray
    x: Array
    number: int
    g: Array
    o: float
    rows: Array
    offsets: Array
    depth: float


@dataclass
class Surface:
    """``points`` on it; ``bends``: t of (1) at the units of the open layer, the same wherever it meets them."""

    lift: Lift
    points: list[Array] = field(default_factory=list)
    bends: dict[int, float] = field(default_factory=dict)
    theta: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def met(self) -> NDArray[np.bool_]:
        """Which units of the open layer it was seen to cross, (m,)."""
        return np.isin(np.arange(len(self.lift.c)), np.array(list(self.bends), dtype=int) - self.lift.first)

    def solved(self) -> bool:
        """Whether a single θ has θ·φ = 0 at all points. Where a unit was never met, |z| is linear, and its θ_j is 0."""
        use = np.concatenate([self.met, np.ones(self.lift.size - len(self.lift.c), dtype=bool)])
        theta = only(self.lift(np.array(self.points)) * use)
        if theta is not None:
            self.theta = theta
        return theta is not None


def only(F: Array) -> Array | None:
    """The one direction θ with Fθ = 0 (n, p), zero at columns that are; None if there is no such θ, or several."""
    F = F / np.linalg.norm(F, axis=1, keepdims=True)
    scale = np.linalg.norm(F, axis=0)
    use = scale > 0.0
    if use.sum() < 2 or len(F) < use.sum() + _SPARE:
        return None
    s, Vt = np.linalg.svd(F[:, use] / scale[use], full_matrices=False)[1:]
    if s[-1] > _NOTHING * s[-2] or s[-2] < 1e-7 * s[0]:
        return None
    theta = np.zeros(len(scale))
    theta[use] = Vt[-1] / scale[use]
    return np.asarray(theta / np.linalg.norm(theta))


def followed(ask: Asked, lift: Lift, start: Array, normal: Array, rng: Rng) -> Surface | None:
    """The surface of the unit that bends f at ``start``, with this ``normal`` (d,) there; None: it has no θ.

    A unit of a layer further behind bends at places where nothing is known to be, so its points lie on no such surface.
    """
    surface, n = Surface(lift), normal / np.linalg.norm(normal)
    rays, missed, idle = _rays(start, n, len(start) + 1, rng), 0, 0
    _, _, _, rows, offsets = lift.all.region(start)
    # the normal has all digits: its hyperplane need not be asked about in this region
    surface.points = [start, *(r.x + _AHEAD * min(_room(rows, offsets, r.x, r.u), _size(r.x)) * r.u for r in rays)]
    for _ in range(3 * len(lift.c) + 20):
        crossings = {c.number: c for c in (_next(surface, ray) for ray in rays) if c is not None}
        # rays that wait for the same unit would learn the same
        kept = _bend(ask, surface, list(crossings.values()))
        missed, idle = missed + len(crossings) - len(kept), idle + (not crossings)
        if surface.met.all() and surface.solved():
            return surface
        if missed > _MISSES + len(surface.points) // 4:
            return None
        if idle > _IDLE:
            break
        gone = {id(c.ray) for c in crossings.values()} - {id(ray) for ray in kept}
        rays = [ray for ray in rays if id(ray) not in gone and ray.crossed < _CROSSINGS]
        rays += _rays(start, n, 4 - len(rays), rng)
    return surface if surface.met.mean() > 0.5 and surface.solved() else None


def _rays(start: Array, n: Array, count: int, rng: Rng) -> list[_Ray]:
    return [_Ray(start, _tangent(rng.normal(size=len(n)), n), n, -float(n @ start)) for _ in range(count)]


def _size(x: Array) -> float:
    """What is a long way at x."""
    return 0.5 * (1.0 + float(np.linalg.norm(x)))


def _tangent(u: Array, n: Array) -> Array:
    u = u - n * (n @ u) / (n @ n)
    return np.asarray(u / np.linalg.norm(u))


def _room(rows: Array, offsets: Array, x: Array, u: Array, but: int = -1) -> float:
    """How far one can go from x along u within {rows·x + offsets ≥ 0}."""
    speed, room = rows @ u, rows @ x + offsets
    ahead = speed < 0.0
    if but >= 0:
        ahead[but] = False
    return float(np.min(np.maximum(room[ahead], 0.0) / -speed[ahead], initial=np.inf))


def _next(surface: Surface, ray: _Ray) -> _Crossing | None:
    """The next hyperplane on a ray's way whose bend is not known; the ray is moved across those that are."""
    lift = surface.lift
    while ray.crossed < _CROSSINGS:
        ray.crossed += 1
        _, _, _, rows, offsets = lift.all.region(ray.x)
        speed, room = rows @ ray.u, np.maximum(rows @ ray.x + offsets, 0.0)
        way = np.where(speed < 0.0, room / np.where(speed < 0.0, -speed, 1.0), np.inf)
        number = int(way.argmin())
        x = ray.x + way[number] * ray.u
        if not np.isfinite(way[number]) or np.linalg.norm(x) > _FAR * np.sqrt(len(x)):
            break
        _, _, _, rows, offsets = lift.all.region(x + 1e-7 * (1.0 + np.linalg.norm(x)) * ray.u)
        g, o = rows[number], float(offsets[number])
        depth = min(_room(rows, offsets, x, ray.u, number), _size(x))
        if g @ ray.u <= 0.0 or depth < 1e-6 * (1.0 + np.linalg.norm(x)):
            break  # two hyperplanes at once
        t = surface.bends.get(number)
        if t is None:
            return _Crossing(ray, x, number, g, o, rows, offsets, depth)
        n, e = ray.n + t * g, ray.e + t * o
        u = _tangent(ray.u, n)
        if g @ u <= 0.0:
            break
        depth = min(_room(rows, offsets, x, u, number), _size(x))
        ray.x, ray.u, ray.n, ray.e = x + 0.5 * depth * u, u, n, e
    ray.crossed = _CROSSINGS
    return None


def _bend(ask: Asked, surface: Surface, crossings: list[_Crossing]) -> list[_Ray]:
    """t of (1) at each crossing by a kink behind it, and once more further on; the rays that go on."""
    seen: list[tuple[_Crossing, Array]] = []
    for share, wider in zip(_SHARES, _WIDER):
        bases, ways = [], []
        for c in crossings:
            base = c.x + share * c.depth * c.ray.u
            p = c.ray.n - c.g * (c.g @ c.ray.n) / (c.g @ c.g)
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


def _confirmed(ask: Asked, surface: Surface, seen: list[tuple[_Crossing, Array]]) -> list[_Ray]:
    bases, ways, tried = [], [], []
    for c, x in seen:
        t = -float(c.ray.n @ x + c.ray.e) / float(c.g @ x + c.o)
        n = c.ray.n + t * c.g
        u = _tangent(c.ray.u, n)
        if c.g @ u <= 0.0:
            continue
        ahead = _AHEAD * min(_room(c.rows, c.offsets, x, u, c.number), c.depth + float(np.linalg.norm(x - c.x)))
        base = x + ahead * u
        n = n / np.linalg.norm(n)
        room = min(_room(c.rows, c.offsets, base, n), _room(c.rows, c.offsets, base, -n))
        bases.append(base)
        ways.append(min(0.45 * room, _NARROW * ahead) * n)
        tried.append((c, x, u))
    kept = []
    for (c, x, u), base, y in zip(tried, bases, _kinks(ask, bases, ways)):
        if y is None or np.linalg.norm(y - base) > _STRAY * np.linalg.norm(base - x):
            continue
        t = -float(c.ray.n @ y + c.ray.e) / float(c.g @ y + c.o)  # further from the hyperplane: more digits
        n, e = c.ray.n + t * c.g, c.ray.e + t * c.o
        surface.points += [x, y]
        if c.number >= surface.lift.first:
            surface.bends[c.number] = t
        c.ray.x, c.ray.n, c.ray.e, c.ray.u = y, n, e, _tangent(u, n)
        kept.append(c.ray)
    return kept


def _kinks(ask: Asked, bases: list[Array], ways: list[Array]) -> list[Array | None]:
    """The one kink of each base + τ·way, |τ| ≤ 1: two points on each side give its place, and one there confirms it."""
    if not bases:
        return []
    P, U = np.array(bases), np.array(ways)
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
