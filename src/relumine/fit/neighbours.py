"""Are rows next to each other off alike? Noise is not; a function that was missed is, however often it turns.

Units at random see what bends a few times over all rows. What turns faster than that has no correlation with any of
them, but two rows close to each other still show it alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from relumine.arrays import Array
from relumine.fit.passes import Model
from relumine.fit.rows import Block, MemoryRows

_ROWS = 20_000  # at random, that are enough: a correlation of 0.05 has t = 7 there
_NEAREST = 8  # inputs up to which the nearest row is near: beyond, as far away as most others
_UNITS = 64  # along whose directions rows are put in order
# Standard deviations that clusters are apart from all other rows, and how much less their own rows may be from each
# other. Neighbours a row may have on average: where rows are that dense, none are a cluster.
_APART, _TIGHT, _DENSE = (0.1, 0.03, 0.01, 0.003, 0.001), 0.5, 10.0
_BENT = 0.001  # the same where a fit is exact: a curve of extent e is seen there by e², unless that is rounding error
_INSIDE = 0.1  # of what the network does inside a cluster, left over there: then it is not confirmed in between

Numbers = NDArray[np.intp]


class Alike(NamedTuple):
    """``score``: the largest t; ``along``: the input in whose order rows are off alike, None for another order."""

    score: float
    along: int | None = None


def alike(rows: MemoryRows, model: Model, X: Array, W: Array, groups: Numbers | None = None) -> Alike:
    """The largest t = Σ r_i·r_j / √Σ(r_i·r_j)² over pairs (i, j) of neighbours, r (q,) the residuals of the model.

    Neighbours are rows that follow each other in the order of an input, a column of X (n, d), or of a unit W x, or
    nearest in all inputs. If the noise is as likely to be −r as r, whatever its size at each row, the signs of the
    products are independent (the pairs have no cycles), so P(t > s) ≤ exp(−s²/2): 4e-6 for s = 5. ``groups`` (n,): the
    same number for equal rows, of which one counts.
    """
    some = np.random.default_rng(0).permutation(rows.n)  # so that rows with equal values are in no order
    if groups is not None:
        some = some[np.sort(np.unique(groups[some], return_index=True)[1])]
    some = some[:_ROWS]
    weight = None if rows.weight is None else rows.weight[some]
    R = model.residual(Block(rows.X[some], rows.Y[some]))
    R = R if weight is None else R * np.sqrt(weight)
    found = (Alike(_score(R, i, j), along) for along, i, j in _pairs(X[some], W))
    return max(found, key=lambda one: one.score, default=Alike(0.0))


def _pairs(X: Array, W: Array) -> Iterator[tuple[int | None, Numbers, Numbers]]:
    """Which order it is, and the pairs of neighbours in it."""
    n, d = X.shape
    for k in range(d):
        order = np.argsort(X[:, k], kind="stable")
        yield k, order[:-1], order[1:]
    for w in W[:_UNITS]:
        order = np.argsort(X @ w, kind="stable")
        yield None, order[:-1], order[1:]
    if 1 < d <= _NEAREST and n > 2:
        spread = X.std(axis=0)
        Z = X / np.where(spread > 0.0, spread, 1.0)
        near = np.asarray(KDTree(Z).query(Z, 2)[1])  # itself, and the other
        other = np.where(near[:, 1] == np.arange(n), near[:, 0], near[:, 1])
        once = np.unique(np.sort(np.column_stack([np.arange(n), other]), axis=1), axis=0)  # two may be each other's
        yield None, once[:, 0], once[:, 1]


def _score(R: Array, i: Numbers, j: Numbers) -> float:
    """t of the pairs, R (q, n), r_i·r_j over all outputs.

    Not one by one: where one output is noisy, its noise moves the fit, which shows alike in the others.
    """
    products = np.einsum("qi,qi->i", R[:, i], R[:, j])
    return float(products.sum() / max(np.linalg.norm(products), np.finfo(float).tiny))


def clusters_of(rows: MemoryRows, groups: Numbers | None, exact: bool) -> Numbers:
    """A number for every row, the same for those of a tight cluster; ``groups`` (n,): the same number for equal rows.

    Of an ``exact`` fit only clusters so tight that a curve inside them is rounding error. Most rows have no other so
    near, and a grid tells in a hundredth of the time which do.
    """
    if groups is None:
        Z, groups = rows.X[:, :-1], np.arange(rows.n)
    else:
        _, first, groups = np.unique(groups, return_index=True, return_inverse=True)
        Z = rows.X[first, :-1]
    if not exact:
        return close_together(Z, _APART)[groups]
    some = np.flatnonzero(_crowded(Z, _TIGHT * _BENT))
    if not some.size:
        return groups
    found = np.arange(len(Z))
    found[some] = len(Z) + close_together(Z[some], (_BENT,))
    return np.asarray(np.unique(found, return_inverse=True)[1][groups])


def _crowded(Z: Array, extent: float) -> NDArray[np.bool_]:
    """Whether a row shares a cell of a grid with two others: true for all rows of larger clusters of this extent.

    Grids of three coordinates at random; a cluster half as wide as a cell lies within one cell of a grid or of the same
    moved by half a cell, along each of them.
    """
    n, d = Z.shape
    G = np.eye(d) if d <= 3 else np.random.default_rng(0).normal(size=(d, 3))
    cells = Z @ G / (2.0 * extent * np.abs(G).sum(axis=0))
    crowded = np.zeros(n, dtype=bool)
    for shift in product((0.0, 0.5), repeat=G.shape[1]):
        at = np.floor(cells + np.array(shift)) @ np.array([1.0, 1e5, 1e10])[: G.shape[1]]
        in_order = np.sort(at)
        full = in_order[2:][in_order[2:] == in_order[:-2]]
        if full.size:  # seldom, and looking up who is in them takes longer
            crowded |= np.isin(at, full)
    return crowded


def pieces(rows: MemoryRows, values: Array, left: Array, clusters: Numbers, groups: Numbers | None) -> Numbers | None:
    """A number for every row, the same for those of a tight cluster that shows its mean alone; None if there is none.

    ``values``, ``left`` (n, q): of the network at these rows, and what it leaves. A cluster is more than one piece of
    information if the differences between its rows are explained to a tenth, in some output. ``clusters`` (n,): the
    same number for those of one; ``groups`` (n,): for equal rows, which are one piece anyhow.
    """
    groups = np.arange(rows.n) if groups is None else np.unique(groups, return_inverse=True)[1]
    open_inside = _INSIDE**2 * _inside(values, clusters) <= _inside(left, clusters)
    one = np.asarray(open_inside.all(axis=1))[clusters]
    found = np.unique(np.where(one, clusters, rows.n + groups), return_inverse=True)[1]
    return found if found.max() < groups.max() else None


def close_together(Z: Array, distances: Sequence[float] = _APART) -> Numbers:
    """A number for every row of Z (n, d), the same for rows of a cluster; how far is the largest difference of all."""
    n, d = Z.shape
    found, tree = np.arange(n), KDTree(Z)
    for apart in distances:
        if n * apart ** min(d, 2) > _DENSE or not d:
            continue
        i, j = tree.query_pairs(apart, p=np.inf, output_type="ndarray").T
        label = connected_components(coo_array((np.ones(len(i)), (i, j)), (n, n)), directed=False)[1]
        order = np.argsort(label, kind="stable")
        start = np.flatnonzero(np.diff(label[order], prepend=-1))
        sorted_rows = Z[order]
        extent = (np.maximum.reduceat(sorted_rows, start) - np.minimum.reduceat(sorted_rows, start)).max(axis=1)
        tight = (extent <= _TIGHT * apart)[label]
        found = np.where(tight & (found < n), n + order[start][label], found)  # of clusters in clusters the largest
    return np.asarray(np.unique(found, return_inverse=True)[1])


def _inside(values: Array, clusters: Numbers) -> Array:
    """Σ(x − x̄)² of every cluster and column, (clusters, q)."""
    count = np.bincount(clusters)
    means = np.stack([np.bincount(clusters, column) / count for column in values.T], axis=1)
    return np.stack([np.bincount(clusters, column) for column in ((values - means[clusters]) ** 2).T], axis=1)


def condensed(rows: MemoryRows, groups: Numbers) -> MemoryRows:
    """One row for each of the ``groups`` (n,): their mean, with the weight of all of them."""
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    total = np.asarray(np.bincount(groups, weight), dtype=np.float64)
    X, Y = (
        np.stack([np.bincount(groups, weight * column) / total for column in part.T], axis=1)
        for part in (rows.X, rows.Y)
    )
    return MemoryRows(X, Y, total, rows.free)
