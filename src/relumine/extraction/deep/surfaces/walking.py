"""Ways in surfaces, many at a time: from region to region, as far as a surface is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.known.charts import Regions
from relumine.extraction.deep.surfaces.surface import Lift, Surface

Rng = np.random.Generator
Mask = NDArray[np.bool_]

AHEAD = 0.5  # place of a second look, over the way to the next hyperplane
_FAR = 100.0  # distance from the origin over √d at which a ray ends: nearly all crossings are nearer
_BEHIND = 1e-7  # how far behind an edge the next region is looked up, over the size of x
_THIN = 1e-6  # of a region, over the size of x: there two hyperplanes meet
_TRIES = 4  # for each place of a walk
_NEW, _OLD = 1e-3, 1e-7  # the free share of what changes at a hyperplane from which it can be measured; that is none


def walked(asked: Sequence[tuple[Surface, int]], rng: Rng, away: int) -> list[list[Array]]:
    """So many places of each surface, up to ``away`` regions from where it was asked, as far as all of it is known."""
    found: list[list[Array]] = [[] for _ in asked]
    for _ in range(_TRIES):
        lacking = [i for i, (_, count) in enumerate(asked) for _ in range(count - len(found[i]))]
        if not lacking:
            break
        surfaces = [asked[i][0] for i in lacking]
        starts = np.array([s.points[rng.integers(len(s.points))] for s in surfaces])
        ends, arrived = _walk(surfaces, starts, rng.integers(1, away + 1, size=len(starts)), rng)
        for i, x, good in zip(lacking, ends, arrived):
            if good:
                found[i].append(x)
    return found


def _walk(surfaces: Sequence[Surface], X: Array, steps: NDArray[np.intp], rng: Rng) -> tuple[Array, Mask]:
    """From the rows of X (n, d), each in its surface, so many regions further; and which arrive."""
    lift, X, good = surfaces[0].lift, X.copy(), np.ones(len(X), dtype=bool)
    T, S = np.array([s.theta for s in surfaces]), np.array([s.s for s in surfaces])
    for turn in range(int(steps.max(initial=0))):
        i = np.flatnonzero(good & (steps > turn))
        if not len(i):
            break
        at = lift.all.regions(X[i])
        ways = tangents(rng.normal(size=(len(i), X.shape[1])), lift.slopes(T[i], S[i], X[i], at))
        edges, number, _, met = _edges(at, X[i], ways)
        behind = _behind(lift, edges, ways)
        inside, fits = onto(lift, T[i], S[i], edges, ways, number, behind)
        good[i] = met & fits & _covered([surfaces[j] for j in i.tolist()], lift(inside, S[i]))
        X[i] = inside
    ends = lift.slopes(T, S, X, lift.all.regions(X)) if len(X) else X
    return X, good & ends.any(axis=1)  # else all units in front are off: there is no surface here


def _covered(surfaces: Sequence[Surface], F: Array) -> Mask:
    """At which inputs with φ = F, one for each of these surfaces, all of it is known."""
    found = np.zeros(len(F), dtype=bool)
    for one, mine in _each(surfaces):
        found[mine] = one.covers(F[mine])
    return found


def _edges(at: Regions, X: Array, ways: Array) -> tuple[Array, NDArray[np.intp], Array, Mask]:
    """Where ways from X end in their regions, the unit that changes sides there, how far that is; which end near by."""
    steps, number = at.room(X, ways)
    near = np.isfinite(steps)
    steps = np.where(near, steps, 0.0)
    edges = X + steps[:, None] * ways
    return edges, number, steps, near & (np.linalg.norm(edges, axis=1) <= _FAR * np.sqrt(X.shape[1]))


def _behind(lift: Lift, edges: Array, ways: Array) -> tuple[Array, Regions]:
    """Inputs just behind edges, and their regions."""
    X = edges + _BEHIND * (1.0 + np.linalg.norm(edges, axis=1, keepdims=True)) * ways
    return X, lift.all.regions(X)


def onto(
    lift: Lift,
    T: Array,
    S: Array,
    edges: Array,
    ways: Array,
    number: NDArray[np.intp],
    behind: tuple[Array, Regions],
) -> tuple[Array, Mask]:
    """Places of surfaces (T, S), one each, in the regions behind edges of them; and which are such."""
    X, at = behind
    N = lift.slopes(T, S, X, at)
    ways, size = tangents(ways, N), np.sum(N * N, axis=1)
    good = (size > 0.0) & (np.sum(at.rows[np.arange(len(X)), number] * ways, axis=1) > 0.0)
    X = edges + AHEAD * np.minimum(at.room(edges, ways, number)[0], sizes(edges))[:, None] * ways
    off = np.sum(lift(X, S) * T, axis=1) / np.where(size > 0.0, size, 1.0)
    return X - off[:, None] * N, good


@dataclass
class Crossing:
    """Where a ray along ``u`` in a surface of normal ``n`` meets the hyperplane ``number``, g·x + o = 0, at ``x``."""

    surface: Surface
    number: int
    x: Array
    u: Array
    n: Array
    g: Array
    rows: Array
    offsets: Array
    depth: float


def rays(surfaces: Sequence[Surface], X: Array, units: NDArray[np.intp], rng: Rng, most: int) -> list[Crossing]:
    """From each row of X in its surface towards where one of the ``units`` changes sides, as far as all is known.

    ``surfaces``: one for each row; ``most``: hyperplanes that a ray may cross.
    """
    found, own = list[Crossing](), np.arange(len(X))
    T, S = np.array([s.theta for s in surfaces]), np.array([s.s for s in surfaces])
    for _ in range(most):
        if not len(X):
            break
        lift = surfaces[0].lift
        at = lift.all.regions(X)
        N = lift.slopes(T[own], S[own], X, at)
        # uphill for that unit, and a little anywhere: straight uphill may end in a corner
        aim = -at.rows[np.arange(len(X)), units]
        noise = rng.normal(size=X.shape) * np.maximum(np.linalg.norm(aim, axis=1), 1e-12)[:, None] / np.sqrt(X.shape[1])
        ways = tangents(aim + rng.uniform(0.2, 2.0, size=(len(X), 1)) * noise, N)
        edges, number, steps, met = _edges(at, X, ways)
        behind = _behind(lift, edges, ways)
        at = behind[1]
        across = np.sum(at.rows[np.arange(len(X)), number] * ways, axis=1)
        depth = np.minimum(at.room(edges, ways, number)[0], sizes(edges))
        met &= (across > 0.0) & (depth >= _THIN * (1.0 + np.linalg.norm(edges, axis=1)))
        mine = [surfaces[i] for i in own.tolist()]
        new = _news(mine, edges, AHEAD * np.minimum(depth, steps)[:, None] * ways)
        for i in np.flatnonzero(met & (new > _NEW)).tolist():
            g, rows, offsets = at.rows[i, number[i]], at.rows[i], at.offsets[i]
            way = int(number[i]), edges[i], ways[i], N[i], g, rows, offsets, float(depth[i])
            found.append(Crossing(mine[i], *way))
        inside, fits = onto(lift, T[own], S[own], edges, ways, number, behind)
        on = met & (new <= _OLD) & fits
        X, units, own = inside[on], units[on], own[on]
    return found


def _news(surfaces: Sequence[Surface], edges: Array, ways: Array) -> Array:
    """The share of the change of φ's slope at edges that is free: 0 where a surface is known behind them, too."""
    lift, S = surfaces[0].lift, np.array([s.s for s in surfaces])
    F = lift(np.concatenate([edges - ways, edges, edges + ways]), np.tile(S, (3, 1))).reshape(3, len(edges), -1)
    change = F[0] - 2.0 * F[1] + F[2]
    size = np.linalg.norm(change, axis=1)
    bent = size > 1e-9 * np.linalg.norm(F[1], axis=1)
    free = np.zeros(len(edges))
    for one, mine in _each(surfaces):
        free[mine] = np.linalg.norm(change[mine] @ one.unknown, axis=1)
    return np.where(bent, free / np.where(bent, size, 1.0), 0.0)


def _each(surfaces: Sequence[Surface]) -> list[tuple[Surface, Mask]]:
    """Each of these once, and where it is among them."""
    number = np.array([id(s) for s in surfaces])
    return [(s, number == id(s)) for s in {id(s): s for s in surfaces}.values()]


def sizes(X: Array) -> Array:
    """What is a long way at the rows of X, (n,)."""
    return np.asarray(0.5 * (1.0 + np.linalg.norm(X, axis=1)))


def tangents(ways: Array, N: Array) -> Array:
    """Directions (n, d) in planes with the normals N (n, d), along ``ways`` as far as can be."""
    ways = ways - N * (np.sum(N * ways, axis=1) / np.maximum(np.sum(N * N, axis=1), 1e-300))[:, None]
    return np.asarray(ways / np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 1e-300))
