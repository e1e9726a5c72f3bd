"""Are rows next to each other off alike? Noise is not; a function that was missed is, however often it turns.

Units at random see what bends a few times over all rows. What turns faster than that has no correlation with any of
them, but two rows close to each other still show it alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from relumine.arrays import Array
from relumine.fit.passes import Model
from relumine.fit.rows import Block, MemoryRows

_ROWS = 20_000  # at random, that are enough: a correlation of 0.05 has t = 7 there
_NEAREST = 8  # inputs up to which the nearest row is near: beyond, as far away as most others
_UNITS = 64  # along whose directions rows are put in order

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
