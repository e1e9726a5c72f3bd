"""Inputs that show what no row has shown yet, found on the known network; the box is not asked.

Those at which two units are on together are found uphill on the network, or by branch and bound; those at which the
activations in front of the head are as far as possible in one direction, by climbs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.ending.linear import one_sided
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.climb import before, climbed, directions, furthest
from relumine.extraction.deep.known.reach import opened, reach

Mask = NDArray[np.bool_]


_STARTS = 8  # rows from which an input is looked for, for each weight
_EXACT, _MOST = 40, 80  # of them that a proof is looked for, and units of a network up to which it is: a second
# Nodes of a proof, at the least, and of all of them together: the only weight that was left of a 40-12-12-12-12-1 took
# 5,500, some eight seconds.
_PROOF, _PROOFS = 300, 6000
# Over the length of the row: weights against which a place is still to be one. In 10-20-20-1 one of −0.08 was taken for
# −0.02: the box was asked only where it turns its unit off.
_AGAINST = (2.0, 0.5, 0.1, 0.02)
_EDGE, _FURTHER = (0.0, 0.5, 0.8, 0.95), (0.0, -0.1, -0.2, -0.3)  # of the way to where the unit in front turns off
_MIXED = 16  # corners for each unit in front, twice: of 30-13-7-7-1, one unit was on in one corner of a hundred
# How far beyond the rows asked so far an input is to be, over where they end; nodes of the search for it, and searches,
# each beyond the last.
_BEYOND, _NODES, _SEARCHES = 1e-3, 60, 4
_LOOKED, _CLIMBS = 24, 6  # directions for which it is looked for in this way, and climbs for each of the others


@dataclass(frozen=True)
class Place:
    """The weight from unit j to unit i of a layer, and the side of i on which it is to count.

    ``weight``: that with which there is such an input, where there is none without it. j = −1: any input.
    """

    layer: int
    i: int
    j: int = -1
    side: float = 1.0
    weight: float = 0.0


def joint(net: DeepNetwork, places: list[Place], old: Array, rng: np.random.Generator) -> list[tuple[Place, Array]]:
    """Inputs at which both units of idle weights are on, whatever the weight; four for each, where there are such."""
    if not places:
        return []
    maps = [(np.array(W), b) for W, b in net.maps]
    for p in places:
        maps[p.layer][0][p.i, p.j] = 0.0
    blind = DeepNetwork.of(maps, net.activation, net.head.v)
    found = _climb(blind, places, old, rng)
    shown, tried, nodes = [], 0, max(_PROOF, _PROOFS // len(places))
    for place, x in zip(places, found):
        exact = tried < _EXACT and blind.m <= _MOST
        tried += exact
        if x is None and exact:
            x, weight = opened(blind.hidden[: place.layer + 1], place.i, place.j, place.side, nodes)
            place = replace(place, weight=weight)
        further = against(blind, place) if x is not None and exact and not place.weight else None
        shown += [(place, _towards(blind, place, each)) for each in (x, further) if each is not None]
    return shown


def _climb(net: DeepNetwork, places: list[Place], old: Array, rng: np.random.Generator) -> list[Array | None]:
    """An input for each place, uphill from rows asked so far that come nearest; None where that does not get there."""
    zs = before(net, old)
    size = [1.0 + np.linalg.norm(z, axis=1) for z in zs]
    first = [
        np.minimum(p.side * zs[p.layer][:, p.i] / size[p.layer], zs[p.layer - 1][:, p.j] / size[p.layer - 1])
        for p in places
    ]
    start = old[np.concatenate([near.argsort()[-_STARTS:] for near in first])]
    layer, i, j = (np.repeat([getattr(p, name) for p in places], _STARTS) for name in ("layer", "i", "j"))
    side, n = np.repeat([p.side for p in places], _STARTS), np.arange(len(start))

    def score(zs: list[Array]) -> tuple[Array, list[Array]]:
        one, two = np.zeros(len(n)), np.zeros(len(n))
        for k in range(1, len(zs)):
            here = layer == k
            one[here], two[here] = side[here] * zs[k][n[here], i[here]], zs[k - 1][n[here], j[here]]
        seeds = [np.zeros_like(z) for z in zs]
        low = one <= two
        for k in range(1, len(zs)):
            up, down = (layer == k) & low, (layer == k) & ~low
            seeds[k][n[up], i[up]] = side[up]
            seeds[k - 1][n[down], j[down]] = 1.0
        return np.minimum(one, two), seeds

    found = climbed(net, start, score, rng)
    best = found.score.reshape(-1, _STARTS).argmax(axis=1) + _STARTS * np.arange(len(places))
    return [found.X[k] if found.score[k] > 0.0 else None for k in best]


def against(net: DeepNetwork, place: Place) -> Array | None:
    """An input for one place that stays one with a weight that works against it, the largest with which there is such.

    Where the weight itself turns unit i off, the box says no more of it than that.
    """
    layers = list(net.hidden[: place.layer + 1])
    W, b = layers[-1]
    V, size = np.array(W), float(np.linalg.norm(W[place.i]))
    for share in _AGAINST:
        V[place.i, place.j] = -place.side * share * size
        x, _ = reach([*layers[:-1], (V, b)], place.i, place.side, place.j)
        if x is not None:
            return x
    return None


def _towards(net: DeepNetwork, place: Place, x: Array) -> Array:
    """x, and nearer to the edge at which unit j turns off: there the weight matters little, and i stays as it is.

    Where the weight is what turns i on, further from that edge.
    """
    g = _gradient(net, x, place.layer - 1, place.j)
    z = before(net, x[None])[place.layer - 1][0, place.j]
    shares = _FURTHER if place.weight else _EDGE
    return np.stack([x - share * z / max(float(g @ g), 1e-300) * g for share in shares])


def _gradient(net: DeepNetwork, x: Array, layer: int, unit: int) -> Array:
    """Of z_unit of a layer at x."""
    return np.asarray(Known(net.d, net.hidden[:layer]).gradient(x[None], net.hidden[layer][0][unit][None])[0])


def beyond(net: DeepNetwork, X: Array, rng: np.random.Generator) -> Array:
    """Inputs at which v·h is lower than at all rows of X, or higher; none where branch and bound proves it.

    If all of v is one unit that was on at all rows, v = aw, that unit is off beyond them, if anywhere; of two such
    units, one may be. The signs of the other units are those by which the rows keep v_ξ·h from going far to one side.
    Where climbing does not get beyond the rows, branch and bound may, for the first of these.
    """
    H = Known(net.d, net.layers)(X)
    ways = one_sided(net.head, H) if net.head.v.any() and net.m <= _MOST else []
    if not ways:
        return X[:0]
    climbed, there = _lowest(net, H, np.array(ways), rng)
    found = list(climbed[there])
    for v in [v for v, beyond in zip(ways[:_LOOKED], there) if not beyond]:
        low, best = float((H @ v).min()), None
        for _ in range(_SEARCHES):
            layers = [*net.layers, (-v[None], np.array([low - _BEYOND * (1.0 + abs(low))]))]
            x, _ = reach(layers, 0, nodes=_NODES)
            if x is None:
                break
            best, low = x, float(Known(net.d, net.layers)(x[None])[0] @ v)
        if best is not None:
            found.append(best)
    return np.reshape(found, (-1, net.d))


def _lowest(net: DeepNetwork, H: Array, ways: Array, rng: np.random.Generator) -> tuple[Array, Mask]:
    """For each direction (n, m) of h the input at which v·h/‖(h, 1)‖ is lowest, by climbs; is it so at no row of H."""

    def share(H: Array, V: Array) -> Array:
        return np.asarray((H @ V.T) / np.sqrt(1.0 + np.sum(H * H, axis=1, keepdims=True)))

    down = np.repeat(np.column_stack([-ways, np.zeros(len(ways))]), _CLIMBS, axis=0)
    X = furthest(net, down, rng).reshape(len(ways), _CLIMBS, net.d)
    each = [share(Known(net.d, net.layers)(x), v[None])[:, 0] for x, v in zip(X, ways)]
    best = np.argmin(each, axis=1)
    low = np.min(each, axis=1)
    return X[np.arange(len(ways)), best], np.asarray(low < share(H, ways).min(axis=0) - _BEYOND)


def corners(net: DeepNetwork, rng: np.random.Generator) -> Array:
    """Corners of the layers in front of the head, also towards −v."""
    if not net.layers:
        return np.zeros((0, net.d))
    v, m = np.atleast_2d(net.head.v), len(net.layers[-1][1])
    down = np.repeat(-v[v.any(axis=1)], 2 * m, axis=0)
    ways = [directions(m, _MIXED * m, rng), np.column_stack([down, np.zeros(len(down))])]
    return furthest(net, np.concatenate(ways), rng)


def mixed(net: DeepNetwork, count: int, rng: np.random.Generator) -> Array:
    """Corners of the layers in front of the head in random directions of one to three units."""
    if not net.layers:
        return np.zeros((0, net.d))
    m = len(net.layers[-1][1]) + 1
    R = rng.normal(size=(count, m)) * (rng.random((count, m)).argsort(axis=1) < rng.integers(1, 4, size=(count, 1)))
    return furthest(net, R, rng)
