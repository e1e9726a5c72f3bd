"""The span of the weights from a second moment: one definition for every method that begins with it.

P = Σ_i α_i w_i w_iᵀ has rank k and the range span{w_i}; α_i of either sign makes it indefinite. Estimates of it differ
(plain, debiased, regressed; contracted from M₃ or M₄ where M₂ vanishes), what is done with them does not.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from relumine.arrays import Array
from relumine.results import InvalidInput


def dominant_span(P: Array | LinearOperator, width: int, start: Array | None = None) -> tuple[Array, Array]:
    """V (k, d) with orthonormal rows: eigenvectors of symmetric P by decreasing |eigenvalue|; and those k eigenvalues.

    Parameters
    ----------
    P : (d, d) array or LinearOperator
        A matrix is diagonalised; an operator is met by Lanczos, which never forms it.
    width : int
        k ≤ d.
    start : (d,) array, optional
        Where Lanczos begins; given, the answer is always the same.

    Examples
    --------
    >>> V, values = dominant_span(np.diag([0.0, -2.0, 1.0]), 2)
    >>> np.abs(V), values
    (array([[0., 1., 0.],
           [0., 0., 1.]]), array([-2.,  1.]))
    """
    d = P.shape[0]
    if P.shape != (d, d) or not 1 <= width <= d:
        raise InvalidInput(
            f"the span of {width} weights needs a square moment and 1 ≤ width ≤ {d}, got shape {P.shape}",
            argument="width",
            remedy="for width > d use method='auto'",
        )
    if isinstance(P, LinearOperator) and width < d - 1:
        # Lanczos in a fixed number of products: 1e-6 is far below the sampling error of any moment
        values, vectors = eigsh(P, k=width, which="LM", v0=start, tol=1e-6, maxiter=300)
    else:
        values, vectors = np.linalg.eigh(P @ np.eye(d))
    rank = np.argsort(-np.abs(values), kind="stable")[:width]
    return np.ascontiguousarray(vectors.T[rank]), np.asarray(values[rank])
