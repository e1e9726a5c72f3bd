"""Inputs that bring into play what no row has shown yet: found on the known network, and then the box is asked there.

A weight A_ij counts only where unit i and unit j in front of it are both on. Random inputs may never be such: then the
box is asked where the network says that both are, whatever the weight. A unit that is always on is an affine part v·h
of the head, and one that is always off is nothing; so the box is also asked in corners: where the activations h in
front of the head are as far as possible in one direction r of (h, 1), for r = −v, for each unit and at random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.climb import before, climbed, directions, furthest
from relumine.extraction.deep.inquiry import Inquiry, Pairs
from relumine.extraction.deep.linear import error, into_units, one_sided, seldom_off
from relumine.extraction.deep.places import extremes
from relumine.extraction.deep.reach import reach
from relumine.fit.layers import Sweeps

Mask = NDArray[np.bool_]


_PAIRS = 200  # weights brought into play at a time
_STARTS = 8  # for each of them
_EXACT, _MOST = 40, 80  # of them that a proof is looked for, and units of a network up to which it is: a second
# Over the length of the row: weights with which one may bring itself into play, and how often that range is halved.
_LEAST_WEIGHT, _MOST_WEIGHT, _HALVES = 0.02, 2.0, 5
# Over the same: weights against which a place is still to be one. In 10-20-20-1 one of −0.08 was taken for −0.02: the
# box was asked only where it turns its unit off.
_AGAINST = (2.0, 0.5, 0.1, 0.02)
_EDGE, _FURTHER = (0.0, 0.5, 0.8, 0.95), (0.0, -0.1, -0.2, -0.3)  # of the way to where the unit in front turns off
_NEARER = np.geomspace(1e-6, 1.0, 61)  # of the way from the origin: of an input that is far out, nearer ones may do
_TURNS = 4  # times that weights are brought into play: those of one turn may open the way to others
_SCARCE, _EACH = 0.02, 10  # share of the rows below which what brings two units into play is scarce; rows kept of it
_SEEN = 4  # rows that bring a weight into play: fewer are too few
_MIXED = 16  # corners for each unit in front, twice: of 30-13-7-7-1, one unit was on in one corner of a hundred
_SPREAD = 2000  # inputs near and far: of 5-15-10-1, units that are on for one in two thousand were missed without them
_WRONG = 1e-7  # relative error of a row that contradicts: measured 1e-15 … 1e-10 where nothing is missing
# How far beyond the rows asked so far an input is to be, over where they end; nodes of the search for it, and searches,
# each beyond the last; rows asked beside one that differs.
_BEYOND, _NODES, _SEARCHES, _BESIDE = 1e-3, 60, 4, 5
_LOOKED, _CLIMBS = 24, 6  # directions for which it is looked for in this way, and climbs for each of the others
_LOOSE = 1e-5  # and in a corner far out, where the errors of large networks show: measured up to 1e-8


def idle(net: DeepNetwork, X: Array) -> list[Mask]:
    """For each hidden layer behind the first: which weights join two units that are on together at no row of X."""
    return [count == 0.0 for count in _together(net, X)]


def _together(net: DeepNetwork, X: Array) -> list[Array]:
    """(m_l, m_{l−1}) for each hidden layer behind the first: at how many rows both units are on."""
    counts, H = [], X
    for k, (W, b) in enumerate(net.hidden):
        Z = H @ W.T + b
        if k:
            counts.append((Z > 0.0).T.astype(np.float64) @ (H > 0.0).astype(np.float64))
        H = np.maximum(Z, 0.0)
    return counts


def covering(net: DeepNetwork, X: Array, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """At most ``most`` rows of X, those first that bring into play what few others do, the loudest of them."""
    first, H, order = [np.zeros(0, dtype=np.intp)], X, rng.permutation(len(X))
    scarce = _SCARCE * len(X)
    for k, ((W, b), count) in enumerate(zip(net.hidden, [np.zeros((0, 0)), *_together(net, X)])):
        Z = H @ W.T + b
        size = 1.0 + np.linalg.norm(H, axis=1)
        off = (Z < 0.0).sum(axis=0)
        first += [(Z[:, i] / size).argsort()[: min(_EACH, off[i])] for i in np.flatnonzero(off < scarce)]
        rare = np.argwhere((count > 0.0) & (count < scarce)) if k else np.zeros((0, 2), dtype=np.intp)
        for i, j in rare[rng.permutation(len(rare))[: 10 * _PAIRS]]:
            loud = np.minimum(Z[:, i], H[:, j]) / size
            first.append((-loud).argsort()[: min(_EACH, int(count[i, j]))])
        H = np.maximum(Z, 0.0)
    chosen = rng.permutation(np.unique(np.concatenate(first)))[: 2 * most // 3]
    return np.concatenate([chosen, order[~np.isin(order, chosen)][: most - len(chosen)]])


def played(at: Inquiry, net: DeepNetwork) -> tuple[DeepNetwork, Pairs | None]:
    """The network, right also where the box was asked for the first time; pairs to look between where it is not."""
    near, y = _near(at)
    slack = _slack(net, near, y)
    net = into_units(at, net, near, y, slack)
    for _ in range(_TURNS):
        net, P, wrong, changed = _brought(at, net, slack)
        if wrong.any() or not changed:
            break
    if not wrong.any():
        P, Y = at.ask.data()  # all of them, however far out: the layers in front have all their digits now
        wrong = error(net, P, Y) > max(slack, _LOOSE)
        at.tell(f"  {int(wrong.sum())} of all {len(P)} rows asked differ")
    if not wrong.any():
        P = at.rng.normal(size=(_SPREAD, at.dim)) * 2.0 ** at.rng.uniform(0.0, 6.0, size=(_SPREAD, 1))
        P, Y = at.ask.answered(P)
        wrong = error(net, P, Y) > slack
        at.tell(f"  {int(wrong.sum())} of {len(P)} rows near and far differ")
    if not wrong.any():
        return net, None
    return net, _between(at, P[wrong], near)


def rejoined(at: Inquiry, net: DeepNetwork) -> tuple[DeepNetwork, bool]:
    """The network with v·h in its units, as far as all rows asked allow it; whether it is right where these are off.

    There the box was asked for the first time, and other weights may have shown.
    """
    near, y = _near(at)
    slack = _slack(net, near, y)
    net = into_units(at, net, near, y, slack)
    return net, not (error(net, *_near(at)) > slack).any()


def _slack(net: DeepNetwork, X: Array, Y: Array) -> float:
    """The error of a row that contradicts."""
    return max(_WRONG, 100.0 * float(np.quantile(error(net, X, Y), 0.9)))


def _near(at: Inquiry) -> tuple[Array, Array]:
    """The rows asked so far and their answers, but for those far out."""
    X, Y = at.ask.data()
    use = np.linalg.norm(X, axis=1) <= 60.0 * np.sqrt(at.dim)
    return X[use], Y[use]


def _brought(at: Inquiry, net: DeepNetwork, slack: float) -> tuple[DeepNetwork, Array, Mask, bool]:
    """The network with its idle weights as the box shows them; where it was asked, which rows are still wrong.

    Last, whether weights were changed: others may then be brought into play by inputs that were none before.
    """
    near, _ = _near(at)
    open_ = _unseen(net, near, at.rng)
    shown = _joint(net, open_, near, at.rng)
    P = np.concatenate([*[points for _, points in shown], _corners(net, at.rng), _beyond(net, near, at.rng)])
    has = at.ask.digits(P)
    shown = _kept(shown, has)
    P, Y = at.ask.answered(P)
    wrong = error(net, P, Y) > slack
    changed = bool(wrong.any())
    at.tell(f"  {len(open_)} weights idle: {int(wrong.sum())} of {len(P)} rows differ")
    if changed:
        better = _weighed(_started(net, shown, wrong), open_, P, Y, slack)
        if (error(better, P, Y) > slack).sum() < wrong.sum():  # else a unit is missing, not a weight
            net = better
        net = _completed(at, net, P[error(net, P, Y) > slack], slack)
        wrong = error(net, P, Y) > slack
        at.tell(f"  {int(wrong.sum())} of {len(P)} rows still differ")
    return net, P, wrong, changed


def _completed(at: Inquiry, net: DeepNetwork, out: Array, slack: float) -> DeepNetwork:
    """With one more unit in place of v·h, if that is off at all rows asked that differ, and on at the others.

    ``out``: some that do; beside them there are more.
    """
    if not len(out) or not net.head.v.any():
        return net
    out = np.repeat(out[at.rng.permutation(len(out))[:4]], _BESIDE, axis=0)
    far = np.geomspace(1e-4, 1e-2, _BESIDE)[np.arange(len(out)) % _BESIDE] * np.linalg.norm(out, axis=1)
    at.ask.answered(out + far[:, None] * at.rng.normal(size=out.shape) / np.sqrt(at.dim))
    X, Y = at.ask.data()
    size = 1.0 + np.linalg.norm(X, axis=1) / np.sqrt(X.shape[1])
    level = slack * size * float((np.abs(Y[:, 0]) / size).max())
    off = np.abs(net(X).reshape(Y.shape) - Y)[:, 0] > level
    head = seldom_off(net.head, Known(at.dim, net.layers)(X), Y[:, 0], off, level) if at.ask.plain else None
    if head is None:
        return net
    at.tell(f"  {int(off.sum())} rows show one more unit, which is on at all others")
    return DeepNetwork(net.layers, head)


def cornered(at: Inquiry, net: DeepNetwork) -> Pairs | None:
    """Pairs to look between where the network of two hidden layers is wrong with one unit in front alone large.

    A unit that is on anywhere with all units in front on is so at one of these, and one that is off anywhere is, too.
    """
    P, Y = at.ask.answered(extremes(Known(at.dim, net.layers)))
    if not len(P):
        return None
    wrong = error(net, P, Y) > _LOOSE
    at.tell(f"  {int(wrong.sum())} of {len(P)} rows in corners differ")
    return _between(at, P[wrong], at.pool[0]) if wrong.any() else None


def _between(at: Inquiry, wrong: Array, right: Array) -> Pairs:
    """Some of the rows that are wrong, each with the nearest of some that are right."""
    some = wrong[at.rng.permutation(len(wrong))[:4]]
    right = right[at.rng.permutation(len(right))[:1000]]
    return some, right[[np.linalg.norm(right - x, axis=1).argmin() for x in some]]


def _kept(shown: list[tuple[_Place, Array]], has: Mask) -> list[tuple[_Place, Array]]:
    """Those of the points, in order, that have digits."""
    ends = np.cumsum([len(points) for _, points in shown])
    return [(place, points[has[end - len(points) : end]]) for (place, points), end in zip(shown, ends)]


@dataclass(frozen=True)
class _Place:
    """The weight from unit j to unit i of a layer, and the side of i on which it is to count.

    ``weight``: that with which there is such an input, where there is none without it. j = −1: any input.
    """

    layer: int
    i: int
    j: int = -1
    side: float = 1.0
    weight: float = 0.0


def _unseen(net: DeepNetwork, X: Array, rng: np.random.Generator) -> list[_Place]:
    """Weights that too few rows bring into play; and those of several units of the last layer seldom off with j on.

    Where j is on, so are all of these: only the sum of their weights from j counts, as long as none of them is off.
    With more of them than outputs, or beside a linear part v·h, their weights cannot be told apart.
    """
    counts, found = _together(net, X), []
    for k, count in enumerate(counts, 1):
        found += [_Place(k, int(i), int(j)) for i, j in np.argwhere(count < _SEEN)]
    if counts:
        on = (before(net, X)[-2] > 0.0).sum(axis=0)
        always, left = on - counts[-1] < _SEEN, bool(net.head.v.any())
        if not left:
            always &= (counts[-1] >= _SEEN) & (always.sum(axis=0) > (net.q or 1))
        found += [_Place(len(counts), int(i), int(j), -1.0) for i, j in np.argwhere(always)]
    return [found[i] for i in rng.permutation(len(found))[:_PAIRS]]


def _started(net: DeepNetwork, shown: list[tuple[_Place, Array]], wrong: Mask) -> DeepNetwork:
    """With weights large enough to count where the box says that they do."""
    maps, at = [(np.array(W), b) for W, b in net.maps], 0
    for place, points in shown:
        if place.weight and wrong[at : at + len(points)].any():
            maps[place.layer][0][place.i, place.j] = place.weight
        at += len(points)
    return DeepNetwork.of(maps, net.activation, net.head.v)


def _weighed(net: DeepNetwork, places: list[_Place], X: Array, Y: Array, slack: float) -> DeepNetwork:
    """The idle weights by least squares on rows that bring some of them into play: f is linear in each, and in v.

    A row at which the box is as if a unit of theirs were off says only that it is, which is no equation.
    """
    places = list({(p.layer, p.i, p.j): p for p in places}.values())
    free = sorted({p.j for p in places if p.side < 0.0}) if net.head.v.any() else []
    size = 1.0 + np.linalg.norm(X, axis=1) / np.sqrt(X.shape[1])  # far out f is large, and so are its errors
    for _ in range(4 if places else 0):
        sweeps = Sweeps(net, X)
        columns = []
        for q in range(Y.shape[1]):
            G = np.zeros_like(Y)
            G[:, q] = 1.0
            signals = sweeps.signals(G)
            own = [signals[p.layer][:, p.i] * sweeps.h[p.layer][:, p.j] for p in places]
            own += [sweeps.h[-2][:, j] * float(q == r) for j in free for r in range(Y.shape[1])]
            columns.append(np.stack(own, axis=1) / size[:, None])
        tells = np.tile(~_without(net, places, X, Y, slack), Y.shape[1])
        J, r = np.concatenate(columns)[tells], ((Y - sweeps.value) / size[:, None]).T.ravel()[tells]
        change = np.linalg.lstsq(J, r, rcond=1e-12)[0]
        maps = [(np.array(W), b) for W, b in net.maps]
        for p, value in zip(places, change):
            maps[p.layer][0][p.i, p.j] += value
        v = np.array(np.atleast_2d(net.head.v))
        v[:, free] += change[len(places) :].reshape(len(free), Y.shape[1]).T
        net = DeepNetwork.of(maps, net.activation, v.reshape(np.shape(net.head.v)))
    return net


def _without(net: DeepNetwork, places: list[_Place], X: Array, Y: Array, slack: float) -> Mask:
    """Rows of X that fit with one unit of these places off, which is on there in the network."""
    zs, found = before(net, X), np.zeros(len(X), dtype=bool)
    for layer, i in {(p.layer, p.i) for p in places if p.side > 0.0}:
        maps = [(np.array(W), np.array(b)) for W, b in net.maps]
        maps[layer][0][i], maps[layer][1][i] = 0.0, 0.0
        found |= (zs[layer][:, i] > 0.0) & (error(DeepNetwork.of(maps, net.activation, net.head.v), X, Y) <= slack)
    return found


# -- where to ask ----------------------------------------------------------------------------------------------


def _joint(net: DeepNetwork, places: list[_Place], old: Array, rng: np.random.Generator) -> list[tuple[_Place, Array]]:
    """Inputs at which both units of idle weights are on, whatever the weight; four for each, where there are such."""
    if not places:
        return []
    maps = [(np.array(W), b) for W, b in net.maps]
    for p in places:
        maps[p.layer][0][p.i, p.j] = 0.0
    blind = DeepNetwork.of(maps, net.activation, net.head.v)
    found = _climb(blind, places, old, rng)
    shown, tried = [], 0
    for place, x in zip(places, found):
        exact = tried < _EXACT and blind.m <= _MOST
        tried += exact
        if x is None and exact:
            place, x = _reached(blind, place)
        further = _against(blind, place) if x is not None and exact and not place.weight else None
        shown += [(place, _towards(blind, place, each)) for each in (x, further) if each is not None]
    return shown


def _climb(net: DeepNetwork, places: list[_Place], old: Array, rng: np.random.Generator) -> list[Array | None]:
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


def _reached(net: DeepNetwork, place: _Place) -> tuple[_Place, Array | None]:
    """An input for one place by branch and bound; where there is none without the weight, with one that opens it.

    Then with the least that does: where it opens the place, every larger one does, too.
    """
    layers = list(net.hidden[: place.layer + 1])
    x, sure = reach(layers, place.i, place.side, place.j)
    if x is not None or not sure or place.side < 0.0:
        return place, None if x is None else _nearer(layers, place, x)
    W, b = layers[-1]
    V, size = np.array(W), float(np.linalg.norm(W[place.i]))
    low, high, best = _LEAST_WEIGHT, _MOST_WEIGHT, None
    for turn in range(_HALVES + 1):
        share = float(np.sqrt(low * high)) if turn else high
        V[place.i, place.j] = share * size
        x, _ = reach([*layers[:-1], (V, b)], place.i, 1.0, place.j)
        if x is not None:
            place, best, high = replace(place, weight=share * size), _nearer([*layers[:-1], (V, b)], place, x), share
        elif not turn:
            break
        else:
            low = share
    return place, best


def _against(net: DeepNetwork, place: _Place) -> Array | None:
    """An input for one place that stays one with a weight that works against it, the largest with which there is such.

    Where the weight itself turns unit i off, the box says no more of it than that.
    """
    layers = list(net.hidden[: place.layer + 1])
    W, b = layers[-1]
    V, size = np.array(W), float(np.linalg.norm(W[place.i]))
    for share in _AGAINST:
        V[place.i, place.j] = -place.side * share * size
        trial = [*layers[:-1], (V, b)]
        x, _ = reach(trial, place.i, place.side, place.j)
        if x is not None:
            return _nearer(trial, place, x)
    return None


def _nearer(layers: list[tuple[Array, Array]], place: _Place, x: Array) -> Array:
    """x, or an input on the way to it from the origin that does as well: far out, answers have fewer digits."""
    X = _NEARER[:, None] * x
    *_, front, z = Known(len(x), tuple(layers)).before(X)
    good = np.flatnonzero((place.side * z[:, place.i] > 0.0) & (True if place.j < 0 else front[:, place.j] > 0.0))
    # not the first of them: there it is on the edge
    return np.asarray(X[min(good[0] + 1, len(X) - 1)] if len(good) and good[0] + 1 in good else x)


def _towards(net: DeepNetwork, place: _Place, x: Array) -> Array:
    """x, and nearer to the edge at which unit j turns off: there the weight matters little, and i stays as it is.

    Where the weight is what turns i on, further from that edge.
    """
    g = _gradient(net, x, place.layer - 1, place.j)
    z = before(net, x[None])[place.layer - 1][0, place.j]
    shares = _FURTHER if place.weight else _EDGE
    return np.stack([x - share * z / max(float(g @ g), 1e-300) * g for share in shares])


def _gradient(net: DeepNetwork, x: Array, layer: int, unit: int) -> Array:
    """Of z_unit of a layer at x."""
    zs = before(net, x[None])
    g = np.array(net.hidden[layer][0][unit])
    for k in range(layer - 1, -1, -1):
        g = (g * (zs[k][0] > 0.0)) @ net.hidden[k][0]
    return np.asarray(g)


def _beyond(net: DeepNetwork, X: Array, rng: np.random.Generator) -> Array:
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
            best = _nearer(layers, _Place(len(layers) - 1, 0), x)
            low = float(Known(net.d, net.layers)(best[None])[0] @ v)
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


def _corners(net: DeepNetwork, rng: np.random.Generator) -> Array:
    """Corners of the layers in front of the head, also towards −v."""
    if not net.layers:
        return np.zeros((0, net.d))
    v, m = np.atleast_2d(net.head.v), len(net.layers[-1][1])
    down = np.repeat(-v[v.any(axis=1)], 2 * m, axis=0)
    ways = [directions(m, _MIXED * m, rng), np.column_stack([down, np.zeros(len(down))])]
    return furthest(net, np.concatenate(ways), rng)
