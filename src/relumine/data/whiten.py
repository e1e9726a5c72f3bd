"""Whitening: inputs with any mean and covariance become standard, and networks found there are carried back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from relumine.network import Network
from relumine.results import InvalidInput

Array = NDArray[np.float64]

__all__ = ["Whitening", "whitening"]


@dataclass(frozen=True)
class Whitening:
    """x ↦ z = L⁻¹(x − mean), with L Lᵀ the covariance (L lower triangular)."""

    mean: Array
    L: Array

    def apply(self, X: Array, rows: NDArray[np.intp] | None = None, out: Array | None = None) -> Array:
        """Z with rows L⁻¹(x − mean) for the given rows of X (all by default), in ``out`` or a fresh array."""
        count = len(X) if rows is None else len(rows)
        Z = np.empty((count, X.shape[1])) if out is None else out
        for s in _chunks(count, X.shape[1]):
            centred = (X[s] if rows is None else X[rows[s]]) - self.mean
            Z[s] = solve_triangular(self.L, centred.T, lower=True, overwrite_b=True).T
        return Z

    def undo(self, net: Network) -> Network:
        """The network g with g(x) = net(L⁻¹(x − mean)): rows w ↦ wL⁻¹, b ↦ b − w·mean."""
        W = solve_triangular(self.L, net.W.T, lower=True, trans="T").T
        v = solve_triangular(self.L, np.atleast_2d(net.v).T, lower=True, trans="T").T.reshape(net.v.shape)
        return net.replace(W=W, b=net.b - W @ self.mean, v=v, c=net.c - v @ self.mean)

    def redo(self, net: Network) -> Network:
        """The inverse of :meth:`undo`: a network of x as a network of z, rows w ↦ wL."""
        return net.replace(W=net.W @ self.L, b=net.b + net.W @ self.mean, v=net.v @ self.L, c=net.c + net.v @ self.mean)


def whitening(X: Array, weight: Array | None = None, rows: NDArray[np.intp] | None = None) -> Whitening:
    """Estimate mean and covariance of X; an error names inputs that are constant or dependent.

    ``rows``: use only these rows of X; ``weight``: one weight for each row used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) * [1.0, 10.0] + 3.0
    >>> Z = whitening(X).apply(X)
    >>> np.allclose(Z.mean(axis=0), 0.0), np.allclose(Z.T @ Z / 500, np.eye(2))
    (True, True)
    """
    n, d = len(X) if rows is None else len(rows), X.shape[1]
    if n <= d:
        raise InvalidInput(
            f"{n} samples cannot span {d} inputs; at least {d + 1} are needed (about 5·width·(d+1) to recover)"
        )
    total = float(n if weight is None else weight.sum())
    mean, gram = np.zeros(d), np.zeros((d, d))
    for s in _chunks(n, d):
        part = X[s] if rows is None else X[rows[s]]
        mean += (part.sum(axis=0) if weight is None else weight[s] @ part) / total
    for s in _chunks(n, d):
        centred = (X[s] if rows is None else X[rows[s]]) - mean
        gram += (centred if weight is None else centred * weight[s, None]).T @ centred / total
    scale = np.sqrt(np.diag(gram))
    constant = np.flatnonzero(scale <= 1e-14 * (np.abs(mean) + np.finfo(float).tiny))
    if constant.size:
        raise InvalidInput(
            f"input column {constant[0]} is constant ({constant.size} such): it carries no information; drop it"
        )
    correlation = gram / np.outer(scale, scale)
    smallest = np.linalg.eigvalsh(correlation)[0]
    if smallest < 1e-12 * d:
        raise InvalidInput(
            "the input columns are linearly dependent (or nearly: smallest eigenvalue of their correlation "
            f"{smallest:.1e}); drop redundant columns or project on fewer"
        )
    return Whitening(mean, scale[:, None] * np.linalg.cholesky(correlation))


def _chunks(n: int, d: int) -> list[slice]:
    step = max(1, (1 << 18) // d)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
