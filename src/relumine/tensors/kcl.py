"""A symmetric k×k×k tensor of rank k by joint diagonalisation of its projections (Kuleshov, Chaganty, Liang 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from relumine.arrays import Array, unit_rows
from relumine.results import InvalidInput
from relumine.tensors.jointdiag import JointDiagonal, joint_diagonalise
from relumine.tensors.refine import refine_terms
from relumine.tensors.symmetric import SymmetricTensor, best_weights

_STEPS = 12  # of Gauss–Newton, a cap: from KCL's factors it converges in three to six


def kcl(
    T: SymmetricTensor,
    rng: int | np.random.Generator | None = None,
    *,
    projections: int = 100,
    plugin: bool = True,
    refine: bool = True,
    beside: Sequence[SymmetricTensor] = (),
) -> JointDiagonal:
    """Unit rows u_i with T ≈ Σ_i ζ_i u_i^{⊗3}, dimension = rank = k; the factors need not be orthogonal.

    1. Project on L random directions: T(I, I, g_l) = Σ_i ζ_i (u_i·g_l) u_iu_iᵀ, and diagonalise all at once.
    2. ``plugin``: once more with the g_l replaced by the duals of the factors found: every matrix is then nearly
       rank one, and every pair of factors well separated by some matrix. The duals of nearly dependent factors
       amplify the noise, so the stage that explains T better is kept.
    3. ``refine`` (ours): Gauss–Newton on ‖T − Σ ζ_i u_i^{⊗3}‖², the maximum-likelihood fit for white noise. Tensors
       ``beside`` T of the same factors and any order (from the same samples) are fitted too, with weights of their
       own: a factor that T shows badly they may show well.

    ``diagonals`` and ``off`` are those of the projections that were kept.

    Examples
    --------
    >>> from relumine.tensors.symmetric import rank_one_sum
    >>> U = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> found = kcl(rank_one_sum(np.array([2.0, -1.0]), U, 3), rng=0)
    >>> np.abs(found.factors @ U.T).max(axis=0).round(12)
    array([1., 1.])
    """
    if T.order != 3 or T.d < 1:
        raise InvalidInput(f"KCL needs a symmetric tensor of order 3, got order {T.order}")
    if projections < 2:
        raise InvalidInput(f"KCL needs at least 2 projections, got {projections}")
    rng = np.random.default_rng(rng)
    dense = T.dense()
    G = rng.normal(size=(projections, T.d))
    found = joint_diagonalise(_project(dense, unit_rows(G)), rng)
    if plugin and T.d > 1:
        duals = unit_rows(np.linalg.inv(found.factors).T)
        second = joint_diagonalise(_project(dense, duals), rng, start=found.factors)
        found = min(found, second, key=lambda stage: _misfit(T, stage.factors))
    if refine:
        # the entries of a moment of order j have noise in proportion to √j!
        tensors = [T, *beside]
        factors = refine_terms(found.factors, tensors, [factorial(t.order) ** 0.5 for t in tensors], steps=_STEPS)
        found = JointDiagonal(factors, found.diagonals, found.off, found.iterations)
    return found


def _project(T: Array, G: Array) -> Array:
    """T(I, I, g_l) for every row g_l: (L, k, k), symmetric to the last digit."""
    M = np.tensordot(G, T, axes=(1, 2))
    return np.asarray(0.5 * (M + M.transpose(0, 2, 1)))


def _misfit(T: SymmetricTensor, U: Array) -> float:
    """‖T − Σ_i ζ_i u_i^{⊗3}‖ with the best ζ."""
    return float(np.linalg.norm(best_weights(U, T)[1]))
