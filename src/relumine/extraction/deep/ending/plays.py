"""Inputs that bring into play what no row has shown yet: found on the known network, and then the box is asked there.

A weight A_ij counts only where unit i and unit j in front of it are both on. Random inputs may never be such: then the
box is asked where the network says that both are, whatever the weight. A unit that is always on is an affine part v·h
of the head, and one that is always off is nothing; so the box is also asked in corners: where the activations h in
front of the head are as far as possible in one direction r of (h, 1), for r = −v, for each unit and at random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs
from relumine.extraction.deep.ending.linear import contradiction, error, into_units
from relumine.extraction.deep.ending.missing import completed
from relumine.extraction.deep.ending.showing import Place, beyond, corners, joint, mixed
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.climb import before
from relumine.extraction.deep.known.places import extremes
from relumine.fit.layers import Sweeps

Mask = NDArray[np.bool_]


_PAIRS = 200  # weights brought into play at a time
_TURNS = 4  # times that weights are brought into play: those of one turn may open the way to others
_SCARCE, _EACH = 0.02, 10  # share of the rows below which what brings two units into play is scarce; rows kept of it
_SEEN = 4  # rows that bring a weight into play: fewer are too few
_SPREAD = 2000  # inputs near and far: of 5-15-10-1, units that are on for one in two thousand were missed without them
# Corners with a few units in front on, over the number of parameters: one unit of a 64-16-16-16-1 of the digits was
# on at three of a million inputs near and far, one corner of six hundred, and one of 230 such.
_CORNERS = 2.0
_LOOSE = 1e-5  # the same in a corner far out, where the errors of large networks show: measured up to 1e-8


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
    near, y = at.near()
    slack = contradiction(net, near, y)
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
        P, Y = at.ask.answered(mixed(net, int(_CORNERS * net.parameters), at.rng))
        wrong = error(net, P, Y) > slack
        at.tell(f"  {int(wrong.sum())} of {len(P)} rows in corners differ")
    if not wrong.any():
        return net, None
    return net, _between(at, P[wrong], near)


def rejoined(at: Inquiry, net: DeepNetwork) -> tuple[DeepNetwork, bool]:
    """The network with v·h in its units, as far as all rows asked allow it; whether it is right where these are off.

    There the box was asked for the first time, and other weights may have shown.
    """
    near, y = at.near()
    slack = contradiction(net, near, y)
    net = into_units(at, net, near, y, slack)
    return net, not (error(net, *at.near()) > slack).any()


def _brought(at: Inquiry, net: DeepNetwork, slack: float) -> tuple[DeepNetwork, Array, Mask, bool]:
    """The network with its idle weights as the box shows them; where it was asked, which rows are still wrong.

    Last, whether weights were changed: others may then be brought into play by inputs that were none before.
    """
    near, _ = at.near()
    open_ = _unseen(net, near, at.rng)
    shown = joint(net, open_, near, at.rng)
    P = np.concatenate([*[points for _, points in shown], corners(net, at.rng), beyond(net, near, at.rng)])
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
        net = completed(at, net, slack)
        wrong = error(net, P, Y) > slack
        at.tell(f"  {int(wrong.sum())} of {len(P)} rows still differ")
    return net, P, wrong, changed


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


def _kept(shown: list[tuple[Place, Array]], has: Mask) -> list[tuple[Place, Array]]:
    """Those of the points, in order, that have digits."""
    ends = np.cumsum([len(points) for _, points in shown])
    return [(place, points[has[end - len(points) : end]]) for (place, points), end in zip(shown, ends)]


def _unseen(net: DeepNetwork, X: Array, rng: np.random.Generator) -> list[Place]:
    """Weights that too few rows bring into play; and those of several units of the last layer seldom off with j on.

    Where j is on, so are all of these: only the sum of their weights from j counts, as long as none of them is off.
    With more of them than outputs, or beside a linear part v·h, their weights cannot be told apart.
    """
    counts, found = _together(net, X), []
    for k, count in enumerate(counts, 1):
        found += [Place(k, int(i), int(j)) for i, j in np.argwhere(count < _SEEN)]
    if counts:
        on = (before(net, X)[-2] > 0.0).sum(axis=0)
        always, left = on - counts[-1] < _SEEN, bool(net.head.v.any())
        if not left:
            always &= (counts[-1] >= _SEEN) & (always.sum(axis=0) > (net.q or 1))
        found += [Place(len(counts), int(i), int(j), -1.0) for i, j in np.argwhere(always)]
    return [found[i] for i in rng.permutation(len(found))[:_PAIRS]]


def _started(net: DeepNetwork, shown: list[tuple[Place, Array]], wrong: Mask) -> DeepNetwork:
    """With weights large enough to count where the box says that they do."""
    maps, at = [(np.array(W), b) for W, b in net.maps], 0
    for place, points in shown:
        if place.weight and wrong[at : at + len(points)].any():
            maps[place.layer][0][place.i, place.j] = place.weight
        at += len(points)
    return DeepNetwork.of(maps, net.activation, net.head.v)


def _weighed(net: DeepNetwork, places: list[Place], X: Array, Y: Array, slack: float) -> DeepNetwork:
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


def _without(net: DeepNetwork, places: list[Place], X: Array, Y: Array, slack: float) -> Mask:
    """Rows of X that fit with one unit of these places off, which is on there in the network."""
    zs, found = before(net, X), np.zeros(len(X), dtype=bool)
    for layer, i in {(p.layer, p.i) for p in places if p.side > 0.0}:
        maps = [(np.array(W), np.array(b)) for W, b in net.maps]
        maps[layer][0][i], maps[layer][1][i] = 0.0, 0.0
        found |= (zs[layer][:, i] > 0.0) & (error(DeepNetwork.of(maps, net.activation, net.head.v), X, Y) <= slack)
    return found
