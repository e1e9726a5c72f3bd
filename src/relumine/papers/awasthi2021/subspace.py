"""The span of the weights from the second Hermite tensor, and Hermite tensors estimated inside it.

f̂₂ = Σ a_i φ(b_i) w_i w_iᵀ has no vanishing coefficient (Zhong 2017 starts here), so for m < d everything
else can be done in m dimensions: C(m+K, K) features instead of C(d+K, K), and far less variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relumine.arrays import Array
from relumine.data.moments import Estimator, estimate_from
from relumine.data.sources import Source, count
from relumine.data.views import Affine, Less, Projected, seen
from relumine.tensors.hermite import feature_count
from relumine.tensors.span import dominant_span
from relumine.tensors.symmetric import SymmetricTensor

_MANY = 1000  # features up to which one regression costs less than debiasing's two passes (d ≤ 43 inputs)


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
    rows: Source, order: int, estimator: Estimator = "regressed", width: int | None = None
) -> SubspaceMoments:
    """T₀ … T_K in the span of the weights when ``width`` < d is given, else in all dimensions; x ~ N(0, I).

    The affine part of y is fitted in all dimensions and taken out first: units with a large |b| are affine,
    do not show in T₂, and would be noise outside the subspace. Two to four passes over the rows.

    Examples
    --------
    >>> from relumine import planted
    >>> from relumine.data.views import rows_of
    >>> truth = planted.network(d=6, m=2, rng=0)
    >>> found = estimate_in_subspace(rows_of(*planted.sample(truth, 20_000, rng=1)), 4, width=2)
    >>> bool(np.linalg.norm(truth.W @ found.basis.T, axis=1).min() > 0.99), [T.d for T in found.tensors]
    (True, [2, 2, 2, 2, 2])
    """
    d = rows.d
    if width is None or width >= d:
        full = estimate_from(rows, order, estimator)
        return SubspaceMoments(np.eye(d), full.tensors, full.errors, full.residual)
    # all quadratic coefficients at once where that is cheap; else the linear part first, then averages
    cheap = estimator == "regressed" and feature_count(d, 2) <= min(_MANY, count(rows) // 4)
    quadratic = estimate_from(rows, 2, "regressed" if cheap else "debiased")
    constant, slope = quadratic.tensors[0].entries[0], quadratic.tensors[1].entries
    V, _ = dominant_span(quadratic.tensors[2].dense(), width)
    inside = estimate_from(seen(rows, Less(Affine(slope, constant)), Projected(V)), order, estimator)
    T = list(inside.tensors)
    T[0] = T[0] + SymmetricTensor(np.array([constant]), width, 0)
    T[1] = T[1] + SymmetricTensor(V @ slope, width, 1)
    return SubspaceMoments(V, T, inside.errors, inside.residual)
