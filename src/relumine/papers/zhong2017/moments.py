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
from numpy.typing import NDArray
from scipy.sparse.linalg import aslinearoperator

from relumine.data.moments import MomentSums, estimate_tensors
from relumine.papers.zhong2017.span import Orders, affine_residual, weight_span
from relumine.tensors.hermite import feature_count, hermite_features
from relumine.tensors.symmetric import SymmetricTensor

Array = NDArray[np.float64]
Moments = Literal["plain", "debiased", "regressed"]
Sample = tuple[Array, Array]

__all__ = ["Moments", "Sample", "contract", "find_span", "moments_inside"]

_ROUNDS = 20  # of fit and span in turn
_GAIN = 0.01  # share of the variance left that a round must take away to be followed by another
_CHUNK = 4096  # rows at once


@dataclass(frozen=True)
class Explained:
    """g = constant + slope·x + p(Vx): the tensors of p, the values p(Vx_n), and what g leaves of y."""

    tensors: list[SymmetricTensor]
    values: Array
    slope: Array
    constant: float
    rest: Array


def find_span(
    S: Sample, width: int, orders: Orders, alpha: Array, rng: np.random.Generator, moments: Moments = "debiased"
) -> tuple[Array, Array]:
    """PowerMethod(P̂₂, k): orthonormal rows V (k, d) and the eigenvalues of P̂₂, with plain moments as in the paper.

    Otherwise P̂₂(y − g) + P₂(g), g fitted inside the V before, until g leaves no less of y than with the V before.

    Examples
    --------
    >>> from relumine import planted
    >>> from relumine.papers.zhong2017.span import moment_orders
    >>> net = planted.network(d=40, m=5, rng=2, family="conditioned", activation="squared_relu")
    >>> S, orders, alpha = planted.sample(net, 1000, rng=3), moment_orders(net.activation), np.ones(40) / 40**0.5
    >>> for moments in ("plain", "debiased"):
    ...     V, _ = find_span(S, 5, orders, alpha, np.random.default_rng(0), moments)
    ...     print(np.round(np.linalg.norm(V @ net.W.T, axis=0) / np.linalg.norm(net.W, axis=1), 1))
    [0.8 0.6 0.7 0.8 0.8]
    [1. 1. 1. 1. 1.]
    """
    X, y = S
    first = y if moments == "plain" else affine_residual(X, y)[0]
    V, values = weight_span(X, first, width, orders.second, alpha, rng)
    degree = _degree(width, len(y))
    if moments == "plain" or degree < orders.second:
        return V, values
    found, left, explained = (V, values), np.inf, np.zeros(len(y))
    for _ in range(_ROUNDS):
        g = _explain(S, V, degree, explained)
        if not g.rest @ g.rest < (1.0 - _GAIN) * left:
            break
        found, left, explained = (V, values), float(g.rest @ g.rest), g.values
        inside = contract(g.tensors[orders.second], V @ alpha, 2).dense()
        known = aslinearoperator(V.T) @ aslinearoperator(inside) @ aslinearoperator(V)
        V, values = weight_span(X, g.rest, width, orders.second, alpha, rng, known=known)
    return found


def moments_inside(S: Sample, V: Array, order: int, moments: Moments = "debiased") -> list[SymmetricTensor]:
    """M_0 … M_order of z = Vx, C(k+order, order) numbers at most; the affine part is fitted in all d dimensions."""
    X, y = S
    Z = X @ V.T
    if moments == "plain":
        return estimate_tensors(Z, y, order, "plain").tensors
    if moments == "regressed":
        rest, slope, constant = affine_residual(X, y)
        T = list(estimate_tensors(Z, rest, order, "regressed").tensors)
    else:
        g = _explain(S, V, _degree(len(V), len(y)), np.zeros(len(y)), sweeps=4)
        slope, constant = g.slope, g.constant
        T = list(estimate_tensors(Z, g.rest, order, "plain").tensors)
        T = [t + s for t, s in zip(T, g.tensors)] + T[len(g.tensors) :]
    T[0] = T[0] + SymmetricTensor(np.array([constant]), len(V), 0)
    T[1] = T[1] + SymmetricTensor(V @ slope, len(V), 1)
    return T


def contract(T: SymmetricTensor, alpha: Array, order: int) -> SymmetricTensor:
    """T(I, …, I, α, …, α) with ``order`` places left."""
    return T.contract(*[alpha] * (T.order - order)) if T.order > order else T


def _explain(S: Sample, V: Array, degree: int, explained: Array, sweeps: int = 1) -> Explained:
    """Least squares of y on affine functions of x and polynomials of Vx, one after the other in ``sweeps``.

    ``explained``: what a polynomial explains already, by a guess.
    """
    X, y = S
    Z = X @ V.T
    for _ in range(sweeps):
        _, slope, constant = affine_residual(X, y - explained)
        target = y - X @ slope - constant
        sums = MomentSums(len(V), degree, "regressed").add(Z, target)
        beta = sums.coefficients()
        explained = np.concatenate(
            [beta @ hermite_features(Z[start : start + _CHUNK], degree) for start in range(0, len(Z), _CHUNK)]
        )
    return Explained(sums.estimate().tensors, explained, slope, constant, target - explained)


def _degree(k: int, n: int, most: int = 5, features: int = 300) -> int:
    """Of the polynomial in the span: four rows or more a coefficient, and few enough beyond degree 2 to be cheap."""
    sizes = {D: feature_count(k, D) for D in range(1, most + 1)}
    return max([D for D, size in sizes.items() if 4 * size <= n and (D <= 2 or size <= features)], default=1)
