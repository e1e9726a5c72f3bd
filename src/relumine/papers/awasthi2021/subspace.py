"""The span of the weights from the second Hermite tensor, and Hermite tensors estimated inside it.

f̂₂ = Σ a_i φ(b_i) w_i w_iᵀ has no vanishing coefficient (Zhong 2017 starts here), so for m < d everything
else can be done in m dimensions: C(m+K, K) features instead of C(d+K, K), and far less variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.data.moments import Estimator, estimate_tensors
from relumine.results import InvalidInput
from relumine.tensors.hermite import feature_count
from relumine.tensors.symmetric import SymmetricTensor

Array = NDArray[np.float64]

_MANY = 1000  # features

__all__ = ["SubspaceMoments", "estimate_in_subspace", "weight_subspace"]


def weight_subspace(T2: SymmetricTensor, width: int) -> tuple[Array, Array]:
    """Orthonormal rows V (width, d) that span the w_i, and all eigenvalues of T₂ by decreasing magnitude.

    f̂₂ is indefinite (a_i of either sign), so eigenvectors are ranked by |eigenvalue|. A clear drop after the
    first ``width`` says that the span is well determined.

    Examples
    --------
    >>> T2 = SymmetricTensor.from_dense(np.diag([0.0, -2.0, 1.0]))
    >>> V, s = weight_subspace(T2, 2)
    >>> np.abs(V), s
    (array([[0., 1., 0.],
           [0., 0., 1.]]), array([-2.,  1.,  0.]))
    """
    if T2.order != 2 or not 1 <= width <= T2.d:
        raise InvalidInput(f"needs an order-2 tensor and 1 ≤ width ≤ {T2.d}; got order {T2.order}, width {width}")
    values, vectors = np.linalg.eigh(T2.dense())
    rank = np.argsort(-np.abs(values), kind="stable")
    return np.ascontiguousarray(vectors.T[rank[:width]]), values[rank]


@dataclass(frozen=True)
class SubspaceMoments:
    """Tensors of f restricted to the span of the rows of ``basis`` (r, d), and their RMS errors.

    ``residual`` is the variance of y that the fitted polynomial leaves (NaN: none was fitted).
    """

    basis: Array
    tensors: list[SymmetricTensor]
    errors: Array
    residual: float


def estimate_in_subspace(
    X: Array, y: Array, order: int, estimator: Estimator = "regressed", width: int | None = None
) -> SubspaceMoments:
    """T₀ … T_K in the span of the weights when ``width`` < d is given, else in all dimensions.

    The affine part of y is fitted in all dimensions and taken out first: units with a large |b| are affine,
    do not show in T₂, and would be noise outside the subspace.
    """
    d = X.shape[1]
    if width is None or width >= d:
        full = estimate_tensors(X, y, order, estimator)
        return SubspaceMoments(np.eye(d), full.tensors, full.errors, full.residual)
    # all quadratic coefficients at once where that is cheap; else the linear part first, then averages
    cheap = estimator == "regressed" and feature_count(d, 2) <= min(_MANY, len(X) // 4)
    quadratic = estimate_tensors(X, y, 2, "regressed" if cheap else "debiased")
    constant, slope = quadratic.tensors[0].entries[0], quadratic.tensors[1].entries
    V, _ = weight_subspace(quadratic.tensors[2], width)
    inside = estimate_tensors(X @ V.T, y - X @ slope - constant, order, estimator)
    T = list(inside.tensors)
    T[0] = T[0] + SymmetricTensor(np.array([constant]), width, 0)
    T[1] = T[1] + SymmetricTensor(V @ slope, width, 1)
    return SubspaceMoments(V, T, inside.errors, inside.residual)
