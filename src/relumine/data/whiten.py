"""Whitening: inputs with any mean and covariance become standard, and networks found there are carried back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from relumine.arrays import Array, slices
from relumine.data.sources.chunks import Chunk, Source
from relumine.data.sources.samples import Samples
from relumine.network import Network
from relumine.results import InvalidInput

_OFF = 1e3  # standard deviations between pivot and mean beyond which squares have lost six digits
_INVERSE, _CLEAR = 6, 1e4  # steps of inverse iteration, and how far above the limit its estimate is clear
# numbers whitened at once, 2 MB: in and out of the solve they stay in the cache; and rows at least: a solve for 128 of
# 2048 inputs took a tenth longer for each
_BLOCK, _ROWS = 1 << 18, 512


@dataclass(frozen=True)
class Whitening:
    """x ↦ z = L⁻¹(x − mean), with L Lᵀ the covariance, L (d, r).

    ``inverse`` None: L is lower triangular, r = d. Else ``inverse`` (r, d) is the left inverse of L: directions in
    which x does not vary are left out.
    """

    mean: Array
    L: Array
    inverse: Array | None = None

    def _solve(self, B: Array) -> Array:
        """L⁻¹ B for B (d, k), which may be overwritten."""
        if self.inverse is not None:
            return np.asarray(self.inverse @ B)
        # inputs are finite by now; to look at all of L for every block took a sixth of the time at d = 2048
        return np.asarray(solve_triangular(self.L, B, lower=True, overwrite_b=True, check_finite=False))

    def _back(self, W: Array) -> Array:
        """W L⁻¹ for W (k, r)."""
        if self.inverse is not None:
            return np.asarray(W @ self.inverse)
        return np.asarray(solve_triangular(self.L, W.T, lower=True, trans="T").T)

    def apply(self, X: Array, out: Array | None = None) -> Array:
        """Z with rows L⁻¹(x − mean), in ``out`` (n, r) or a fresh array."""
        Z = np.empty((len(X), self.L.shape[1])) if out is None else out
        for s in slices(len(X), max(_ROWS, _BLOCK // X.shape[1])):
            Z[s] = self._solve((X[s] - self.mean).T).T
        return Z

    def undo(self, net: Network) -> Network:
        """The network g with g(x) = net(L⁻¹(x − mean)): rows w ↦ wL⁻¹, b ↦ b − w·mean."""
        W, v = self._back(net.W), self._back(np.atleast_2d(net.v))
        v = v.reshape(*net.v.shape[:-1], v.shape[-1])
        return net.replace(W=W, b=net.b - W @ self.mean, v=v, c=net.c - v @ self.mean)

    def redo(self, net: Network) -> Network:
        """The inverse of :meth:`undo`: a network of x as a network of z, rows w ↦ wL."""
        return net.replace(W=net.W @ self.L, b=net.b + net.W @ self.mean, v=net.v @ self.L, c=net.c + net.v @ self.mean)

    def affine(self, summary: Summary) -> Array:
        """The affine part of y in white coordinates, (r+1, q): slopes E[z yᵀ] and the mean of y below them."""
        return np.vstack([self._solve(summary.cross.copy()), summary.y_mean])


@dataclass(frozen=True)
class Summary:
    """First and second moments of all rows: ``n`` of them, of weight ``total``; covariances divide by the weight.

    ``mean`` (d,), ``covariance`` (d, d) of the inputs, ``y_mean`` (q,), ``y_covariance`` (q, q) of the outputs,
    ``cross`` (d, q) between them.
    """

    n: int
    total: float
    mean: Array
    covariance: Array
    y_mean: Array
    y_covariance: Array
    cross: Array


def whitening_of(source: Source) -> tuple[Whitening, Summary]:
    """Mean and covariance of a source in one pass, as a whitening; an error names constant or dependent inputs.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) * [1.0, 10.0] + 1e6
    >>> white, summary = whitening_of(open_source(X, X[:, 0], chunk=70))
    >>> np.allclose(white.L, whitening(X).L, rtol=1e-10), summary.n
    (True, 500)
    """
    summary = summary_of(source)
    return _standard(summary.n, summary.mean, summary.covariance, source.names), summary


def summary_of(source: Source) -> Summary:
    """Shifted sums over one pass: the pivot, a mean of the first rows, keeps large means from cancelling.

    Where the first rows turn out to lie far from the others, a second pass takes the mean as the pivot.
    """
    head = source.head()
    pivot = np.concatenate([head.X.mean(axis=0, dtype=np.float64), head.Y.mean(axis=0)])
    for attempt in range(2):  # a second pass only where the first pivot was far from the mean
        n, total, first, second = source.reduce(partial(_shifted, pivot=pivot))
        shift = first / total
        covariance = second / total - np.outer(shift, shift)
        off = np.abs(shift) > _OFF * np.sqrt(np.maximum(np.diag(covariance), 0.0)) + 1e-9 * np.abs(pivot)
        if not off.any() or attempt or source.passes is not None:
            break
        pivot = pivot + shift
    mean, x, y = pivot + shift, slice(0, source.d), slice(source.d, None)
    return Summary(
        int(n),
        float(total),
        mean[x],
        covariance[x, x],
        mean[y],
        covariance[y, y],
        np.ascontiguousarray(covariance[x, y]),
    )


def _shifted(chunk: Chunk, pivot: Array) -> tuple[Array, ...]:
    """Number and weight of the rows, Σ ω(z − p), Σ ω(z − p)(z − p)ᵀ with z = (x, y)."""
    d = chunk.X.shape[1]
    Z = np.empty((len(chunk.Y), pivot.size))
    np.subtract(chunk.X, pivot[:d], out=Z[:, :d])
    np.subtract(chunk.Y, pivot[d:], out=Z[:, d:])
    n = np.array(float(len(Z)))
    if chunk.weight is None:
        return n, n.copy(), Z.sum(axis=0), Z.T @ Z
    return n, chunk.weight.sum(), chunk.weight @ Z, (Z * chunk.weight[:, None]).T @ Z


def whitening(X: Array, weight: Array | None = None) -> Whitening:
    """The whitening of an array (n, d), with a weight for each row.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2)) * [1.0, 10.0] + 3.0
    >>> Z = whitening(X).apply(X)
    >>> np.allclose(Z.mean(axis=0), 0.0), np.allclose(Z.T @ Z / 500, np.eye(2))
    (True, True)
    """
    return whitening_of(Samples(X, None, weight))[0]


def spanning(source: Source) -> tuple[Whitening, Array, Summary]:
    """A whitening that leaves out constant and dependent columns; variances (r,) along its standardised directions.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) @ [[1.0, 1.0, 0.0], [0.0, 2.0, 0.0]]
    >>> spanning(Samples(X))[0].apply(X).shape
    (100, 2)
    """
    summary = summary_of(source)
    mean, gram = summary.mean, summary.covariance
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    # sums of squares about a pivot keep six digits or more (_OFF): below 1e-10 of the mean a deviation is rounding
    varies = scale > 1e-10 * (np.abs(mean) + scale + np.finfo(float).tiny)
    scale = np.where(varies, scale, 1.0)
    values, V = np.linalg.eigh(np.where(np.outer(varies, varies), gram / np.outer(scale, scale), 0.0))
    # less than 1e-4 of the largest deviation: nearly dependent columns, whose weights would be 1e4 times the others
    keep = values > 1e-8 * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
    root, V = np.sqrt(values[keep]), V[:, keep]
    L, inverse = V * root * scale[:, None], (V / scale[:, None] / root).T
    return Whitening(mean, L, np.ascontiguousarray(inverse)), values[keep], summary


def _standard(n: int, mean: Array, gram: Array, names: tuple[str, ...] | None = None) -> Whitening:
    """The whitening of a mean and a covariance; an error names inputs that are constant or depend on each other."""
    d = len(mean)
    if n <= d:
        raise InvalidInput(
            f"{n} samples cannot span {d} inputs; at least {d + 1} are needed (about 5·width·(d+1) to recover)"
        )
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    constant = np.flatnonzero(scale <= 1e-14 * (np.abs(mean) + np.finfo(float).tiny))
    if constant.size:
        raise InvalidInput(
            f"input column {_called(constant[0], names)} is constant ({constant.size} such): it carries no "
            "information; drop it"
        )
    correlation = gram / np.outer(scale, scale)
    # rounding moves eigenvalues of a d × d correlation by some d·2e-16; with 1e-12 d a direction keeps three digits
    root = clear_root(correlation, 1e-12 * d)
    if root is not None:
        return Whitening(mean, scale[:, None] * root)
    values, vectors = np.linalg.eigh(correlation)
    if values[0] < 1e-12 * d:
        involved = np.flatnonzero(np.abs(vectors[:, 0]) > 0.1 * np.abs(vectors[:, 0]).max())[:8]
        last = _called(involved[-1], names)
        raise InvalidInput(
            f"the input columns {', '.join(_called(j, names) for j in involved)} are linearly dependent, or nearly: "
            "each follows from the others",
            argument="features" if names else "X",
            remedy=f"leave one of them out: ignore=[{last}]" if names else f"leave one of them out: column {last}, say",
        )
    return Whitening(mean, scale[:, None] * np.linalg.cholesky(correlation))


def clear_root(A: Array, least: float) -> Array | None:
    """The Cholesky factor of A (d, d) if its smallest eigenvalue is far above ``least``; None where that is not clear.

    The eigenvalue is estimated, from above, by a few steps of inverse iteration: all of them take, at d = 3072, as long
    as whitening itself.
    """
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None
    x = np.random.default_rng(0).normal(size=len(A))
    size = 1.0
    for _ in range(_INVERSE):
        x = cho_solve((L, True), x / np.linalg.norm(x), check_finite=False)
        size = float(np.linalg.norm(x))
    return np.asarray(L, dtype=np.float64) if np.isfinite(size) and 1.0 / size > _CLEAR * least else None


def _called(j: int, names: tuple[str, ...] | None) -> str:
    return str(j) if names is None else repr(names[j])
