"""Moments for Algorithm 1 of Zhong et al. 2017: the span of the weights, and the tensors of y inside it.

The paper averages: M̂_j = mean of y He_j(x), and all of y is noise in it. Ours ("debiased"): for g(x) = an affine
function of x + a polynomial in Vx, fitted to y by least squares, M̂_j(y − g) + M_j(g) has the same expectation, and
only what g leaves is noise. V is an estimate itself; a unit that the first P̂₂ loses in the noise stands out of the
next one, where what the other units explain is gone. So fit and span are found in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse.linalg import aslinearoperator

from relumine.arrays import Array, slices
from relumine.data.moments import estimate_from, sums_of
from relumine.data.sources import Source, count
from relumine.data.views import Affine, Less, Projected, seen
from relumine.papers.samples import mean_square
from relumine.papers.zhong2017.span import Orders, affine_fit, weight_span
from relumine.tensors.hermite import feature_count, hermite_features
from relumine.tensors.symmetric import SymmetricTensor

Moments = Literal["plain", "debiased", "regressed"]


_ROUNDS = 20  # of fit and span in turn, a cap: three to six are usual
_GAIN = 0.01  # share of the variance left that a round must take away to be followed by another
_HIGHEST, _FEATURES = 5, 300  # degree and coefficients of the polynomial, at most
_BLOCK = 4096  # rows whose features are held at once: 10 MB at 300 features


@dataclass(frozen=True)
class HermitePolynomial:
    """p(x) = Σ_α β_α h_α(Vx), h_α the orthonormal Hermite polynomials of degree ≤ ``degree``."""

    V: Array
    beta: Array
    degree: int

    def __call__(self, X: Array) -> Array:
        """Values (n,) for X (n, d)."""
        blocks = [X[s] @ self.V.T for s in slices(len(X), _BLOCK)]
        return np.concatenate([np.zeros(0), *(self.beta @ hermite_features(Z, self.degree) for Z in blocks)])


@dataclass(frozen=True)
class Explained:
    """g = constant + slope·x + p(Vx): the tensors of p; rows with y − p, and rows with ``rest`` = y − g."""

    tensors: list[SymmetricTensor]
    slope: Array
    constant: float
    without_p: Source
    rest: Source


def find_span(
    rows: Source, width: int, orders: Orders, alpha: Array, rng: np.random.Generator, moments: Moments = "debiased"
) -> tuple[Array, Array]:
    """PowerMethod(P̂₂, k): orthonormal rows V (k, d) and the eigenvalues of P̂₂, with plain moments as in the paper.

    Otherwise P̂₂(y − g) + P₂(g), g fitted inside the V before, until g leaves no less of y than with the V before.

    Examples
    --------
    >>> from relumine import planted
    >>> from relumine.data.views import rows_of
    >>> from relumine.papers.zhong2017.span import moment_orders
    >>> net = planted.network(d=40, m=5, rng=2, family="conditioned", activation="squared_relu")
    >>> rows, orders = rows_of(*planted.sample(net, 1000, rng=3)), moment_orders(net.activation)
    >>> for moments in ("plain", "debiased"):
    ...     V, _ = find_span(rows, 5, orders, np.ones(40) / 40**0.5, np.random.default_rng(0), moments)
    ...     print(np.round(np.linalg.norm(V @ net.W.T, axis=0) / np.linalg.norm(net.W, axis=1), 1))
    [0.8 0.6 0.7 0.8 0.8]
    [1. 1. 1. 1. 1.]
    """
    first = rows if moments == "plain" else seen(rows, Less(Affine(*affine_fit(rows))))
    V, values = weight_span(first, width, orders.second, alpha, rng)
    degree = _degree(width, count(rows))
    if moments == "plain" or degree < orders.second:
        return V, values
    # fit and span in turn: y − g loses what the found units explain, and hidden ones come out of the noise
    found, left, without_p = (V, values), np.inf, rows
    for _ in range(_ROUNDS):
        g = _explain(rows, V, degree, without_p)
        now = mean_square(g.rest)
        if not now < (1.0 - _GAIN) * left:
            break
        found, left, without_p = (V, values), now, g.without_p
        inside = contract(g.tensors[orders.second], V @ alpha, 2).dense()
        known = aslinearoperator(V.T) @ aslinearoperator(inside) @ aslinearoperator(V)
        V, values = weight_span(g.rest, width, orders.second, alpha, rng, known=known)
    return found


def moments_inside(rows: Source, V: Array, order: int, moments: Moments = "debiased") -> list[SymmetricTensor]:
    """M_0 … M_order of z = Vx, C(k+order, order) numbers at most; the affine part is fitted in all d dimensions."""
    if moments == "plain":
        return estimate_from(seen(rows, Projected(V)), order, "plain").tensors
    if moments == "regressed":
        slope, constant = affine_fit(rows)
        rest = seen(rows, Less(Affine(slope, constant)), Projected(V))
        T = list(estimate_from(rest, order, "regressed").tensors)
    else:
        g = _explain(rows, V, _degree(len(V), count(rows)), rows, sweeps=4)
        slope, constant = g.slope, g.constant
        T = list(estimate_from(seen(g.rest, Projected(V)), order, "plain").tensors)
        T = [t + s for t, s in zip(T, g.tensors)] + T[len(g.tensors) :]
    T[0] = T[0] + SymmetricTensor(np.array([constant]), len(V), 0)
    T[1] = T[1] + SymmetricTensor(V @ slope, len(V), 1)
    return T


def contract(T: SymmetricTensor, alpha: Array, order: int) -> SymmetricTensor:
    """T(I, …, I, α, …, α) with ``order`` places left."""
    return T.contract(*[alpha] * (T.order - order)) if T.order > order else T


def _explain(rows: Source, V: Array, degree: int, without_p: Source, sweeps: int = 1) -> Explained:
    """Least squares of y on affine functions of x and polynomials of Vx, one after the other in ``sweeps``.

    ``without_p``: the rows less what a polynomial explains already, by a guess.
    """
    for _ in range(sweeps):
        slope, constant = affine_fit(without_p)
        less = Less(Affine(slope, constant))
        sums = sums_of(seen(rows, less, Projected(V)), degree)
        without_p = seen(rows, Less(HermitePolynomial(V, sums.coefficients(), degree)))
    return Explained(sums.estimate().tensors, slope, constant, without_p, seen(without_p, less))


def _degree(k: int, n: int) -> int:
    """Of the polynomial in the span: four rows or more a coefficient, and few enough beyond degree 2 to be cheap."""
    sizes = {D: feature_count(k, D) for D in range(1, _HIGHEST + 1)}
    return max([D for D, size in sizes.items() if 4 * size <= n and (D <= 2 or size <= _FEATURES)], default=1)
