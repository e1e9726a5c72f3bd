"""Jennrich's simultaneous diagonalisation for T = Σ_i α_i u_i^{⊗(2ℓ+z)} seen as flatten(T, ℓ, ℓ, z)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eig

from relumine.arrays import Array
from relumine.results import InvalidInput
from relumine.tensors.symmetric import SymmetricTensor, best_weights


@dataclass(frozen=True)
class RankOneTerms:
    """T ≈ Σ_i ``weights``_i · ``vectors``_i^{⊗k}, unit rows.

    Attributes
    ----------
    vectors : (r, d) array
    weights : (r,) array
    singular_values : array
        Of flatten(T, ℓ, ℓ+z): what the rank was read from.
    condition : float
        Sensitivity of the eigenvectors, cond(V)/gap, for the contraction that was chosen.
    complex_pairs : int
        Conjugate pairs of eigenvalues there: each is two units that this tensor cannot tell apart, and is
        left out.
    residual : float
        ‖T − Σ α_i u_i^{⊗k}‖_F / ‖T‖_F.
    """

    vectors: Array
    weights: Array
    singular_values: Array
    condition: float
    complex_pairs: int
    residual: float


def singular_values(T: SymmetricTensor, order: int) -> Array:
    """Of flatten(T, ℓ, k−ℓ), decreasing; the number of non-zero ones is the number of terms (Claim 4.4)."""
    return np.asarray(np.linalg.svd(T.flatten(order, T.order - order), compute_uv=False), dtype=np.float64)


def jennrich(
    T: SymmetricTensor, order: int, rank: int, rng: int | np.random.Generator | None = None, *, contractions: int = 12
) -> RankOneTerms:
    """Decompose T = Σ_{i≤rank} α_i u_i^{⊗(2ℓ+z)} with {u_i^{⊗ℓ}} linearly independent (Awasthi, Claim 4.4).

    With p_i = packed(u_i^{⊗ℓ}) and two random contractions of the last z modes,

        M_x = Σ_i α_i ⟨x, u_i^{⊗z}⟩ p_i p_iᵀ,   M_y = Σ_i α_i ⟨y, u_i^{⊗z}⟩ p_i p_iᵀ,

    the eigenvectors of the pencil (M_x, M_y) are dual to the p_i; their eigenvalues are the ratios
    ⟨x, u_i^{⊗z}⟩/⟨y, u_i^{⊗z}⟩. The problem is first compressed to the column space of flatten(T, ℓ, ℓ+z), so
    it has size ``rank``.

    Parameters
    ----------
    T : SymmetricTensor
        Of order 2ℓ+z with z ≥ 1.
    order : int
        ℓ.
    rank : int
        Number of terms.
    rng : int or Generator, optional
    contractions : int
        Random pairs that are tried; the best conditioned is used, one with real eigenvalues if there is any. With
        three or more 1 − |cos| of the worst direction is a quarter of that of one pair, and in one case of twenty a
        tenth (6 units in 6 dimensions, noise 1e-6); twelve are for larger ones.

    Examples
    --------
    >>> from relumine.tensors.symmetric import rank_one_sum
    >>> T = rank_one_sum(np.array([2.0, -1.0]), np.eye(2), 3)
    >>> terms = jennrich(T, order=1, rank=2, rng=0)
    >>> bool(terms.residual < 1e-14), np.sort(np.abs(terms.weights)).round(12)
    (True, array([1., 2.]))
    """
    z = T.order - 2 * order
    if order < 1 or z < 1:
        raise InvalidInput(f"Jennrich needs a tensor of order 2ℓ+z with ℓ, z ≥ 1; got order {T.order}, ℓ={order}")
    rng = np.random.default_rng(rng)
    left, s, _ = np.linalg.svd(T.flatten(order, order + z), full_matrices=False)
    if not 0 <= rank <= s.size:
        raise InvalidInput(f"rank must lie between 0 and {s.size} for order ℓ={order}, d={T.d}; got {rank}")
    if rank == 0:
        return RankOneTerms(np.zeros((0, T.d)), np.zeros(0), s, 1.0, 0, 1.0)
    basis = left[:, :rank]  # spans the p_i; in its coordinates M_x and M_y are rank × rank and invertible
    slices = np.einsum("ai,abz,bj->zij", basis, T.flatten(order, order, z), basis, optimize=True)
    tries = [common_factors(slices, rng) for _ in range(contractions)]
    vectors, condition, complex_pairs = min(tries, key=lambda t: (t[2], t[1]))
    U = np.array([_root(basis @ p, T.d, order) for p in vectors.T]).reshape(-1, T.d)
    weights, rest = best_weights(U, T)
    residual = float(np.linalg.norm(rest) / max(T.norm, np.finfo(float).tiny))
    return RankOneTerms(U, weights, s, condition, complex_pairs, residual)


def common_factors(slices: Array, rng: np.random.Generator) -> tuple[Array, float, int]:
    """Real common factors p_i (columns) of Σ_i c_{zi} p_i p_iᵀ, their sensitivity, and complex pairs."""
    x, y = rng.normal(size=(2, slices.shape[0]))
    A, B = np.tensordot(x, slices, 1), np.tensordot(y, slices, 1)
    (alpha, beta), V = eig(A, B, homogeneous_eigvals=True)
    # a double eigenvalue splits by the square root of rounding, 1e-8 apart: imaginary parts of 1e-12 are none
    real = np.abs((alpha * np.conj(beta)).imag) <= 1e-12 * (np.abs(alpha) ** 2 + np.abs(beta) ** 2)
    # the pencil's eigenvectors are dual to the factors: B V = P · diag
    V = V / np.linalg.norm(V, axis=0)
    P = (B @ V)[:, real].real
    P = P / np.maximum(np.linalg.norm(P, axis=0), np.finfo(float).tiny)
    # eigenvalues are points (α : β) on a projective line; gaps there are sines of angles, also at infinity
    scale = np.hypot(np.abs(alpha), np.abs(beta))
    line = np.stack([alpha, beta]) / np.where(scale > 0.0, scale, 1.0)
    sine = np.abs(np.outer(line[0], line[1]) - np.outer(line[1], line[0])) + 2.0 * np.eye(len(alpha))
    with np.errstate(divide="ignore", over="ignore"):
        sensitivity = float(np.linalg.cond(V)) / float(sine.min())
    return P, sensitivity if np.isfinite(sensitivity) else np.inf, int((~real).sum()) // 2


def _root(p: Array, d: int, order: int) -> Array:
    """The unit u with u^{⊗ℓ} closest in direction to the packed tensor p: the leading left singular vector."""
    if order == 1:
        return np.asarray(p / max(float(np.linalg.norm(p)), np.finfo(float).tiny))
    left, _, _ = np.linalg.svd(SymmetricTensor(p, d, order).flatten(1, order - 1), full_matrices=False)
    return np.asarray(left[:, 0])
