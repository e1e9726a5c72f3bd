"""The span of the weights from the second Hermite tensor (Zhong 2017; f̂₂ = Σ a_i φ(b_i) w_i w_iᵀ never
vanishes).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.results import InvalidInput
from relumine.tensors.symmetric import SymmetricTensor

Array = NDArray[np.float64]

__all__ = ["weight_subspace"]


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
        raise InvalidInput(
            f"needs an order-2 tensor and 1 ≤ width ≤ d={T2.d}; got order {T2.order}, width {width}"
        )
    values, vectors = np.linalg.eigh(T2.dense())
    rank = np.argsort(-np.abs(values), kind="stable")
    return np.ascontiguousarray(vectors.T[rank[:width]]), values[rank]
