"""What no row asked has brought into play: inputs that do, found on the network, before the box is asked there.

A weight A_ij counts only where unit i and unit j in front of it are both on. Random inputs may never be such: then the
box is asked where the network says that both are, whatever the weight. A unit that is always on is an affine part v·h
of the head, and one that is always off is nothing; so the box is also asked in corners: where the activations h in
front of the head are as far as possible in one direction r, r·h/‖h‖, for r = −v, for each unit and for random pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.deep import DeepNetwork
from relumine.extraction.deep.climb import before, climbed, directions, furthest
from relumine.extraction.deep.inquiry import Inquiry, Pairs
from relumine.fit.layers import Sweeps

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

__all__ = ["covering", "idle", "played"]

_PAIRS = 200  # weights brought into play at a time
_STARTS = 8  # for each of them
_SCARCE, _EACH = 0.02, 10  # share of the rows below which what brings two units into play is scarce; rows kept of it
_SEEN = 4  # rows that bring a weight into play: fewer are too few
_SPREAD = 2000  # inputs near and far: of 5-15-10-1, units that are on for one in two thousand were missed without them
_WRONG = 1e-7  # relative error of a row that contradicts: measured 1e-15 … 1e-10 where nothing is missing


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
    old, answers = at.ask.data()
    use = np.linalg.norm(old, axis=1) <= 60.0 * np.sqrt(at.dim)
    near, y = old[use], answers[use]
    slack = max(_WRONG, 100.0 * float(np.quantile(_error(net, near, y), 0.9)))
    net = _without_affine(at, net, near, y, slack)
    open_ = [count < _SEEN for count in _together(net, near)]
    P = np.concatenate([_joint(net, open_, near, at.rng), _corners(net, at.rng)])
    Y = at.ask.values(P)
    wrong = _error(net, P, Y) > slack
    at.tell(f"  {sum(int(m.sum()) for m in open_)} weights idle: {int(wrong.sum())} of {len(P)} rows differ")
    if wrong.any():
        net = _weighed(net, open_, P, Y)
        wrong = _error(net, P, Y) > slack
        at.tell(f"  {int(wrong.sum())} of {len(P)} rows still differ")
    if not wrong.any():
        P = at.rng.normal(size=(_SPREAD, at.dim)) * 2.0 ** at.rng.uniform(0.0, 6.0, size=(_SPREAD, 1))
        wrong = _error(net, P, at.ask.values(P)) > slack
        at.tell(f"  {int(wrong.sum())} of {len(P)} rows near and far differ")
    if not wrong.any():
        return net, None
    some = at.rng.permutation(np.flatnonzero(wrong))[:4]
    right = near[at.rng.permutation(len(near))[:1000]]
    nearest = [np.linalg.norm(right - P[i], axis=1).argmin() for i in some]
    return net, (P[some], right[nearest])


def _error(net: DeepNetwork, X: Array, Y: Array) -> Array:
    """Of each row, over the size of the answers; far out f grows like ‖x‖, and so do errors."""
    size = 1.0 + np.linalg.norm(X, axis=1) / np.sqrt(X.shape[1])
    error = np.abs(net(X).reshape(Y.shape) - Y).max(axis=1) / size
    return np.asarray(error / max(float((np.abs(Y).max(axis=1) / size).max()), 1e-300))


def _without_affine(at: Inquiry, net: DeepNetwork, X: Array, Y: Array, slack: float) -> DeepNetwork:
    """The head's affine part v·h moved into one unit, if all rows allow that: one that is off only where v·h is 0.

    A weight of a unit that is nearly always on shows in v alone where the unit in front is never on while it is off.
    """
    head, v = net.head, np.atleast_2d(net.head.v)
    a = np.atleast_2d(head.a)  # (q, m)
    for i in range(head.m if v.any() else 0):
        w = a[:, i] @ v / max(float(a[:, i] @ a[:, i]), 1e-300)
        if np.abs(np.outer(a[:, i], w) - v).max() > 1e-6 * np.abs(v).max():
            continue
        W = np.array(head.W)
        W[i] += w
        trial = DeepNetwork(net.layers, head.replace(W=W, v=np.zeros_like(head.v)))
        if (_error(trial, X, Y) > slack).any():
            continue
        P = np.concatenate([_off(net, i, X, at.rng), _off(trial, i, X, at.rng)])
        if not (_error(trial, P, at.ask.values(P)) > slack).any():
            return trial
    return net


def _weighed(net: DeepNetwork, open_: list[Mask], X: Array, Y: Array) -> DeepNetwork:
    """The idle weights by least squares on rows that bring them into play: f is linear in each."""
    places = [(k + 1, i, j) for k, mask in enumerate(open_) for i, j in np.argwhere(mask)]
    for _ in range(4 if places else 0):
        sweeps = Sweeps(net, X)
        columns = []
        for q in range(Y.shape[1]):
            G = np.zeros_like(Y)
            G[:, q] = 1.0
            signals = sweeps.signals(G)
            columns.append(np.stack([signals[k][:, i] * sweeps.h[k][:, j] for k, i, j in places], axis=1))
        J, r = np.concatenate(columns), (Y - sweeps.value).T.ravel()
        change = np.linalg.lstsq(J, r, rcond=1e-12)[0]
        maps = [(np.array(W), b) for W, b in net.maps]
        for (k, i, j), value in zip(places, change):
            maps[k][0][i, j] += value
        net = DeepNetwork.of(maps, net.activation, net.head.v)
    return net


# -- where to ask ----------------------------------------------------------------------------------------------


def _joint(net: DeepNetwork, open_: list[Mask], old: Array, rng: np.random.Generator) -> Array:
    """Inputs at which both units of idle weights are on, whatever the weight; four for each weight, where there are."""
    places = [(k + 1, i, j) for k, mask in enumerate(open_) for i, j in np.argwhere(mask)]
    places = [places[i] for i in rng.permutation(len(places))[:_PAIRS]]
    if not places:
        return np.zeros((0, net.d))
    maps = [(np.array(W), b) for W, b in net.maps]
    for (W, _), mask in zip(maps[1:], open_):
        W[mask] = 0.0
    blind = DeepNetwork.of(maps, net.activation, net.head.v)
    layer, i, j = np.repeat(np.array(places).T, _STARTS, axis=1)
    n = np.arange(len(i))

    def score(zs: list[Array]) -> tuple[Array, list[Array]]:
        one, two = np.zeros(len(n)), np.zeros(len(n))
        for k in range(1, len(zs)):
            here = layer == k
            one[here], two[here] = zs[k][n[here], i[here]], zs[k - 1][n[here], j[here]]
        seeds = [np.zeros_like(z) for z in zs]
        first = one <= two
        for k in range(1, len(zs)):
            up, down = (layer == k) & first, (layer == k) & ~first
            seeds[k][n[up], i[up]] = 1.0
            seeds[k - 1][n[down], j[down]] = 1.0
        return np.minimum(one, two), seeds

    found = climbed(blind, _starts(blind, places, old), score, rng)
    chosen = found.score.reshape(-1, _STARTS).argmax(axis=1) + _STARTS * np.arange(len(places))
    points = []
    for at, x in zip(chosen, found.X[chosen]):
        if found.score[at] <= 0.0:
            continue
        # towards the edge at which unit j turns off: there the weight matters little, and i is still on
        g = _gradient(blind, x, int(layer[at]) - 1, int(j[at]))
        z = before(blind, x[None])[layer[at] - 1][0, j[at]]
        points += [x - share * z / max(float(g @ g), 1e-300) * g for share in (0.0, 0.5, 0.8, 0.95)]
    return np.reshape(points, (-1, net.d))


def _off(net: DeepNetwork, i: int, old: Array, rng: np.random.Generator) -> Array:
    """Inputs at which unit i of the head is off, as far as there are such."""
    front = len(net.layers) - 1

    def score(zs: list[Array]) -> tuple[Array, list[Array]]:
        h, z = np.maximum(zs[front], 0.0), zs[-1][:, i]
        size = 1.0 + np.linalg.norm(h, axis=1)
        seeds = [np.zeros_like(z) for z in zs]
        seeds[-1][:, i] = -1.0 / size
        seeds[front] = (z / size**3)[:, None] * h
        return -z / size, seeds

    z = before(net, old)[-1][:, i]
    start = np.concatenate([old[z.argsort()[:_STARTS]], old[rng.integers(len(old), size=4 * _STARTS)]])
    return climbed(net, start, score, rng).X


def _starts(net: DeepNetwork, places: list[tuple[int, int, int]], old: Array) -> Array:
    """For each weight the inputs asked so far that come nearest to both units being on."""
    zs = before(net, old)
    size = [1.0 + np.linalg.norm(z, axis=1) for z in zs]
    first = [
        np.minimum(zs[k][:, i] / size[k], zs[k - 1][:, j] / size[k - 1]).argsort()[-_STARTS:] for k, i, j in places
    ]
    return np.asarray(old[np.concatenate(first)])


def _gradient(net: DeepNetwork, x: Array, layer: int, unit: int) -> Array:
    """Of z_unit of a layer at x."""
    zs = before(net, x[None])
    g = np.array(net.hidden[layer][0][unit])
    for k in range(layer - 1, -1, -1):
        g = (g * (zs[k][0] > 0.0)) @ net.hidden[k][0]
    return np.asarray(g)


def _corners(net: DeepNetwork, rng: np.random.Generator) -> Array:
    """Corners of the layers in front of the head, also towards −v."""
    if not net.layers:
        return np.zeros((0, net.d))
    v, m = np.atleast_2d(net.head.v), len(net.layers[-1][1])
    ways = [directions(m, 8 * m, rng), np.repeat(-v[v.any(axis=1)], 2 * m, axis=0)]
    return furthest(net, np.concatenate(ways), rng)
