"""Non-orthogonal joint diagonalisation of symmetric, possibly indefinite matrices: M_l = Σ_i d_{li} u_i u_iᵀ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relumine.arrays import Array, unit_rows
from relumine.results import InvalidInput
from relumine.tensors.jennrich import common_factors


@dataclass(frozen=True)
class JointDiagonal:
    """M_l ≈ Σ_i ``diagonals``_{li} u_i u_iᵀ with unit rows u_i of ``factors``.

    ``off`` is the relative size of what is not diagonal, (Σ_l ‖off(B M_l Bᵀ)‖²/Σ_l ‖B M_l Bᵀ‖²)^½ with B =
    (Uᵀ)⁻¹.
    """

    factors: Array
    diagonals: Array
    off: float
    iterations: int


def joint_diagonalise(
    matrices: Array,
    rng: int | np.random.Generator | None = None,
    *,
    start: Array | None = None,
    steps: int = 200,
    contractions: int = 12,
) -> JointDiagonal:
    """Find k unit vectors u_i with all M_l ≈ Σ_i d_{li} u_i u_iᵀ at once (L ≥ 2 matrices, k × k).

    Starts from the factors ``start`` (k, k) or from the best of several random pairs (Jennrich), then, in the
    current coordinates C_l = B M_l Bᵀ, solves for the A = I + E that best explains all C_l ≈ A diag(C_l) Aᵀ: to
    first order C_l[i,j] = E_ij C_l[j,j] + E_ji C_l[i,i], a 2 × 2 least-squares problem for each pair (Tichavský,
    Yeredor 2009). No matrix need be positive definite. All matrices share the noise, where Jennrich trusts one pair.

    Examples
    --------
    >>> U = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> M = np.einsum("li,ia,ib->lab", np.array([[1.0, -2.0], [3.0, 1.0], [0.5, 0.1]]), U, U)
    >>> found = joint_diagonalise(M, rng=0)
    >>> found.off < 1e-12, np.abs(found.factors @ U.T).max(axis=0).round(12)
    (True, array([1., 1.]))
    """
    M = np.asarray(matrices, dtype=np.float64)
    if M.ndim != 3 or M.shape[0] < 2 or M.shape[1] != M.shape[2]:
        raise InvalidInput(f"needs at least two square matrices, shape (L, k, k); got {M.shape}")
    if not np.isfinite(M).all() or not np.allclose(M, M.transpose(0, 2, 1), atol=1e-10 * np.abs(M).max(initial=0.0)):
        raise InvalidInput("the matrices must be finite and symmetric")
    B = _start(M, np.random.default_rng(rng), contractions) if start is None else _dual(np.asarray(start).T)
    off, done = _off(B, M), 0
    while done < steps:
        done += 1
        # B M_l Bᵀ ≈ A diag Aᵀ, so A⁻¹B diagonalises better than B
        trial = unit_rows(np.linalg.solve(_explain(B @ M @ B.T), B))
        new = _off(trial, M)
        if not new < off * (1.0 - 1e-12):
            break
        B, off = trial, new
    A = np.linalg.inv(B)  # columns are the factors: M_l = A C_l Aᵀ
    norms = np.linalg.norm(A, axis=0)
    diagonals = np.einsum("ia,lab,ib->li", B, M, B) * norms**2
    return JointDiagonal(np.ascontiguousarray((A / norms).T), diagonals, off, done)


def _start(M: Array, rng: np.random.Generator, contractions: int) -> Array:
    """B = (factors)⁻¹ from the pair with real eigenvalues and the least left over; else from one eigenbasis."""
    tries = []
    for _ in range(contractions):
        P, _, complex_pairs = common_factors(M, rng)
        if not complex_pairs and np.linalg.cond(P) < 1e12:  # beyond, the dual has no digits
            tries.append(_dual(P))
    tries.append(np.linalg.eigh(M.sum(axis=0))[1].T)
    return min(tries, key=lambda B: _off(B, M))


def _dual(P: Array) -> Array:
    """Unit rows B with B P diagonal; the columns of P are factors."""
    return unit_rows(np.linalg.inv(P))


def _off(B: Array, M: Array) -> float:
    C = B @ M @ B.T
    total = float(np.sum(C * C))
    diagonal = float(np.sum(np.einsum("lii->li", C) ** 2))
    return float(np.sqrt(max(total - diagonal, 0.0) / total)) if total > 0.0 else 0.0


def _explain(C: Array) -> Array:
    """A = I + E with C_l[i,j] ≈ E_ij d_lj + E_ji d_li, d_l the diagonal of C_l."""
    d = np.einsum("lii->li", C)
    gram = d.T @ d  # [i, j] = Σ_l d_li d_lj
    right = np.einsum("lij,lj->ij", C, d)  # Σ_l C_l[i,j] d_lj
    energy = np.diag(gram)
    det = np.outer(energy, energy) - gram**2
    # proportional diagonals: the pair cannot be told apart by these matrices, and stays as it is
    floor = 1e-14 * np.outer(energy, energy) + np.finfo(float).tiny
    E = (energy[:, None] * right - gram * right.T) / np.where(det > floor, det, np.inf)
    np.fill_diagonal(E, 0.0)
    return np.asarray(np.eye(len(E)) + E)
