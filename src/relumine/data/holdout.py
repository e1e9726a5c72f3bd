"""Rows set aside to judge a fit that has never seen them: how many, which ones, and the samples without them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.data.sources import Samples, Source, count, take
from relumine.data.views import Without, seen

Numbers = NDArray[np.intp]

# Rows closer than this share of the middle half of every input count as one: a slope that is wrong by a tenth would
# hardly show between them against an exact fit's 1e-9. Many rows of one input crowd: of those less, one pair in 100.
_SAME, _CROWDED = 6e-7, 0.02
_SHARE = 0.02  # of the rows, set aside: it costs the fit next to nothing
_SOME = 1000  # rows that show how far an input spreads
_GLANCE = 8  # columns that are compared first


def how_many(n: int, share: float = _SHARE, least: int = 4, most: int = 2000, leave: int = 1) -> int:
    """How many of n rows to set aside: a share, within bounds, and never so many that fewer than ``leave`` remain.

    Examples
    --------
    >>> how_many(5), how_many(8), how_many(9), how_many(100), how_many(5000), how_many(10**6)
    (1, 1, 4, 4, 100, 2000)
    """
    # 2000 rows tell a residual to 2 %; four show that a fit is not chance, but they must not be half of all rows
    least = least if n > 2 * least else 1
    return max(min(max(round(share * n), least), most, n - leave), 0)


def hold_out(n: int, rng: np.random.Generator, count: int) -> Numbers:
    """Numbers, increasing, of ``count`` rows out of n at random.

    Examples
    --------
    >>> numbers = hold_out(10, np.random.default_rng(0), 3)
    >>> len(numbers), bool((np.diff(numbers) > 0).all())
    (3, True)
    """
    return np.sort(rng.choice(n, size=count, replace=False))


def set_aside(X: Array, rng: np.random.Generator) -> tuple[Numbers, int]:
    """Numbers of rows of X (n, d) to set aside, and how many different rows are left.

    Copies of a row stay together: one that is set aside must have no copy among the rows that are used.
    """
    groups, distinct = same_rows(X)
    # the usual case, no copies; and data with one or two different rows, where no group can be spared
    if not 3 <= distinct < len(X):
        aside = hold_out(len(X), rng, how_many(len(X)))
        return aside, distinct - (np.unique(groups[aside]).size if distinct < len(X) else len(aside))
    chosen = hold_out(distinct, rng, min(max(round(_SHARE * distinct), 4), distinct // 3))
    return np.flatnonzero(np.isin(groups, chosen)), distinct - len(chosen)


def kept_apart(rows: Source, rng: np.random.Generator, spare: int) -> tuple[Source, Samples]:
    """(All other rows, ``spare`` random ones): the second are for the certificate, and nothing else sees them.

    Examples
    --------
    >>> from relumine.data.views import rows_of
    >>> rest, held = kept_apart(rows_of(np.ones((10, 2)), np.arange(10.0)), np.random.default_rng(0), 3)
    >>> rest.n, held.n, sorted([*held.y, *rest.head().Y[:, 0]]) == list(range(10))
    (7, 3, True)
    """
    numbers = hold_out(count(rows), rng, spare)
    held, _ = take(rows, numbers)
    return seen(rows, Without(numbers)), held


def different_rows(n: int, some: Array) -> int:
    """How many of n rows differ, as ``some`` (s, d) of them at random show: D with 1/D = 1/n + 2·(equal pairs)/s².

    Without one equal pair it is all of them, as far as s rows can tell: with D different ones fewer than 3 of the
    s²/(2D) pairs expected are missed by chance, at 95 %.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> different_rows(5000, X), different_rows(10**9, X), different_rows(5000, np.repeat(X[:100], 10, axis=0))
    (5000, 166666, 108)
    """
    copies, s = np.bincount(same_rows(some)[0]).astype(np.float64), len(some)
    pairs = float(copies @ (copies - 1.0)) / 2.0
    return int(min(1.0 / (1.0 / n + 2.0 * pairs / s**2), max(s**2 / 6.0, s)))


def same_rows(X: Array) -> tuple[Numbers, int]:
    """A group number for every row, the same for rows that are equal or nearly so, and the number of groups.

    Two rows so close that no function bends noticeably in between show one thing: the second is a copy. Rows are told
    apart by a random combination of their entries, which is enough and needs no sort of whole rows.

    Examples
    --------
    >>> groups, distinct = same_rows(np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]))
    >>> bool(groups[0] == groups[2] != groups[1]), distinct
    (True, 2)
    """
    size = np.maximum(X.max(axis=0), -X.min(axis=0)) + 1e-300  # of the largest entry of each column
    mix = np.random.default_rng(0).normal(size=X.shape[1]) / size
    keys = np.einsum("ij,j->i", X, mix)
    order = np.argsort(keys, kind="stable")
    some = np.sort(X[:: -(-len(X) // _SOME)], axis=0)
    low, high = some[len(some) // 4], some[3 * len(some) // 4]  # a few huge rows do not bring the others together
    apart = min(_SAME, _CROWDED / len(X)) * (0.5 * high - 0.5 * low)
    # sums of d products differ by rounding even for equal rows; which are equal is decided on the rows themselves
    near = np.abs(np.diff(keys[order])) <= 1e-13 * (1.0 + np.abs(keys[order][1:])) + np.abs(mix) @ apart
    equal = near
    for some_columns in (slice(_GLANCE), slice(_GLANCE, None)):  # a few columns tell most rows apart
        pairs = np.flatnonzero(equal)
        one, other = (X[order[pairs + k], some_columns] for k in (0, 1))
        equal[pairs] = (np.abs(one - other) <= apart[some_columns]).all(axis=1)
    groups = np.empty(len(X), dtype=np.intp)
    groups[order] = np.concatenate([[0], np.cumsum(~equal)])
    return groups, int(groups[order[-1]]) + 1
