"""Wrong entries of x: far beyond the tail of their column, on either side. A zero that stands for "missing" is one.

Such an entry says nothing about its row, and a network goes on linearly to wherever it leads. What is known is what the
other entries of the row say about it, and the range of its column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.estimators.outliers import exceeded, few, tail_end

_MOST = 0.1  # of the rows: if more of them have such entries, these are not wrong
_ENDLESS = np.finfo(float).max  # a range without end; not inf, which times a share of 0 would be NaN


@dataclass(frozen=True)
class Entries:
    """What the columns of x looked like: plausible entries from ``low`` to ``high``, ``mean`` and ``spread``, all (d,).

    ``correlation`` (d, d), with ``ridge`` = d/n on its diagonal: what n rows leave open about it.
    """

    low: Array
    high: Array
    mean: Array
    spread: Array
    correlation: Array
    ridge: float

    @classmethod
    def of(cls, X: Array, weight: Array | None = None) -> Entries:
        """From rows X (n, d): a range ends where one entry is expected among ten times as many, all columns counted."""
        d = X.shape[1]
        low, high = np.full(d, -_ENDLESS), np.full(d, _ENDLESS)
        for j, column in enumerate(X.T):
            middle = exceeded(column, weight, 0.5)
            down, up = (tail_end(np.maximum(side, 0.0), weight, 2.0 * d) for side in (middle - column, column - middle))
            if np.isfinite(down) and few(column < middle - down, weight):
                low[j] = middle - down
            if np.isfinite(up) and few(column > middle + up, weight):
                high[j] = middle + up
        within = (np.clip(X, low, high) == X).all(axis=1)
        ones = np.ones(len(X)) if weight is None else weight
        if ones[~within].sum() > _MOST * ones.sum():
            low, high, within = np.full(d, -_ENDLESS), np.full(d, _ENDLESS), np.ones_like(within)
        w = np.where(within, ones, 0.0)
        mean = np.average(X, axis=0, weights=w)
        C = (X - mean).T * w @ (X - mean) / w.sum()
        spread = np.sqrt(np.diag(C))
        varies = np.where(spread > 0.0, spread, 1.0)
        return cls(low, high, mean, spread, C / np.outer(varies, varies), d / float(w.sum()))

    def wrong(self, X: Array) -> NDArray[np.bool_]:
        """Which entries of X (n, d) lie far beyond their column."""
        return np.not_equal(np.clip(X, self.low, self.high), X)

    def __call__(self, X: Array) -> Array:
        """X (n, d) with wrong entries moved to the nearest value that the others of their row allow."""
        wrong = self.wrong(X)
        rows = np.flatnonzero(wrong.any(axis=1))
        if not len(rows):
            return X
        X = X.copy()
        patterns, which = np.unique(wrong[rows], axis=0, return_inverse=True)
        for k, out in enumerate(patterns):
            X[np.ix_(rows[which.ravel() == k], out)] = self._allowed(X[rows[which.ravel() == k]], out)
        return X

    def _allowed(self, X: Array, out: NDArray[np.bool_]) -> Array:
        """Entries ``out`` (d,) of rows X (n, d), moved into the range of their columns given the others.

        Given the others the expected entry is μ + R_og(R_gg + λ)⁻¹z_g, in units of the spread; the range around it is
        that of the column, narrower by the share √(1 − R_og(R_gg + λ)⁻¹R_go) of the spread that they leave open.
        """
        R, z = self.correlation, (X - self.mean) / np.where(self.spread > 0.0, self.spread, 1.0)
        known = R[np.ix_(~out, ~out)] + self.ridge * np.eye(int((~out).sum()))
        slopes = np.linalg.solve(known, R[np.ix_(~out, out)])  # (g, o)
        left = np.sqrt(np.clip(1.0 - (slopes * R[np.ix_(~out, out)]).sum(axis=0), 0.0, 1.0))
        expected = self.mean[out] + self.spread[out] * (z[:, ~out] @ slopes)
        low, high = ((end[out] - self.mean[out]) * left for end in (self.low, self.high))
        return np.clip(X[:, out], expected + low, expected + high)
