"""The subspace power method: rank-one tensors u^{⊗ℓ} in a linear space of symmetric tensors.

The columns of flatten(T_k, ℓ, k−ℓ), k > ℓ, all lie in span{w_i^{⊗ℓ}}. Stacking several orders k repairs
coefficients that vanish in one of them, and only orders up to ℓ+2 are needed where Jennrich needs 2ℓ+2.
(Kileel, Pereira 2019.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relumine.arrays import Array, unit_rows
from relumine.results import InvalidInput
from relumine.tensors.symmetric import SymmetricTensor, contraction, packed_size, powers


def span_of_powers(
    tensors: Sequence[SymmetricTensor], order: int, rank: int, scales: Sequence[float] | None = None
) -> Array:
    """Orthonormal rows (rank, C(d+ℓ−1, ℓ)) for the common column space of flatten(T_k, ℓ, k−ℓ).

    ``scales``: noise level of each tensor, by which it is divided; its norm by default.
    """
    if not tensors or min(T.order for T in tensors) < order:
        raise InvalidInput(f"needs tensors of order ≥ {order}")
    scales = [max(T.norm, np.finfo(float).tiny) for T in tensors] if scales is None else scales
    stacked = np.concatenate([T.flatten(order, T.order - order) / s for T, s in zip(tensors, scales)], axis=1)
    left = np.linalg.svd(stacked, full_matrices=False)[0]
    if not 1 <= rank <= left.shape[1]:
        raise InvalidInput(f"rank must lie between 1 and {left.shape[1]}, got {rank}")
    return np.ascontiguousarray(left[:, :rank].T)


def subspace_power(
    basis: Array,
    d: int,
    order: int,
    rng: int | np.random.Generator | None = None,
    *,
    starts: int | None = None,
    steps: int = 2000,
    distance: float = 1e-2,
) -> tuple[Array, Array]:
    """Unit rows u with u^{⊗ℓ} in (or nearly in) the span of ``basis``, and ‖P u^{⊗ℓ}‖ ≤ 1 for each, best first.

    x ← normalise(P(x^{⊗ℓ})·x^{ℓ−1} + γx) climbs ‖P x^{⊗ℓ}‖ on the sphere; the value is 1 exactly at the
    powers in the span. Convergence is linear; :func:`~relumine.tensors.refine.refine_terms` adds the last
    digits. All random starts run together; copies (up to sign) within ``distance`` count once.

    Parameters
    ----------
    basis : (r, C(d+ℓ−1, ℓ)) array
        Orthonormal rows, as :func:`span_of_powers` gives them; r < C(d+ℓ−1, ℓ), or every vector would do.
    d, order : int
        ℓ = ``order`` ≥ 2.
    starts : int, optional
        Random starts; 20 r by default. Some powers attract few starts: of 30 spans of 9 powers in 5 dimensions, 2 r
        starts found all powers in 6, 5 r in 21, 20 r in 23.

    Examples
    --------
    >>> U = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]])
    >>> basis = np.linalg.qr(powers(U, 2).T)[0].T
    >>> found, score = subspace_power(basis, d=3, order=2, rng=0)
    >>> len(found), score.round(9), np.abs(found @ U.T).max(axis=0).round(9)
    (3, array([1., 1., 1.]), array([1., 1., 1.]))
    """
    size = packed_size(d, order)
    if order < 2 or basis.ndim != 2 or basis.shape[1] != size or basis.shape[0] >= size:
        raise InvalidInput(f"needs order ≥ 2 and a basis of shape (r, {size}) with r < {size}, got {basis.shape}")
    rng = np.random.default_rng(rng)
    X = unit_rows(rng.normal(size=(20 * len(basis) if starts is None else starts, d)))
    # the map is a gradient ascent; this shift makes it monotone (for ℓ = 2; enough in practice beyond)
    gamma = float(np.sqrt((order - 1.0) / order))
    for _ in range(steps):
        Q = (powers(X, order) @ basis.T) @ basis
        new = unit_rows(contraction(Q, X, order) + gamma * X)
        moved = float(np.abs(new - X).max(initial=0.0))
        X = new
        if moved < 1e-14:
            break
    score = np.linalg.norm(powers(X, order) @ basis.T, axis=1)
    kept: list[int] = []
    for i in np.argsort(-score, kind="stable").tolist():
        near = np.minimum(*(np.linalg.norm(X[kept] - s * X[i], axis=1) for s in (1.0, -1.0)))
        if not (near < distance).any():
            kept.append(i)
    return X[kept], score[kept]
