"""Gauss–Newton refinement of a simultaneous rank-one decomposition of several symmetric tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relumine.arrays import Array, unit_rows
from relumine.tensors.symmetric import SymmetricTensor, best_weights, power_derivatives, powers


def refine_terms(
    U: Array, tensors: Sequence[SymmetricTensor], scales: Sequence[float] | None = None, *, steps: int = 20
) -> Array:
    """Unit rows U that minimise Σ_k ‖T_k − Σ_i ζ_k(i) u_i^{⊗k}‖² / scale_k², the weights ζ_k free.

    All tensors share the directions, so a direction that one of them sees badly (a weight near zero) is
    determined by the others. Each step solves the linearised problem in (U, ζ) by least squares, with ζ at
    its optimum, and is halved until the sum falls; it never grows. Removes the rounding that Jennrich's
    eigenproblem amplifies, and on estimated tensors averages the sampling errors of all orders.

    Examples
    --------
    >>> from relumine.tensors.symmetric import rank_one_sum
    >>> T = rank_one_sum(np.array([2.0, -1.0]), np.eye(2), 3)
    >>> refine_terms(np.array([[1.0, 0.02], [0.01, 1.0]]), [T]).round(12) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    scales = [max(T.norm, np.finfo(float).tiny) for T in tensors] if scales is None else scales
    U = unit_rows(U)
    m, d = U.shape
    loss, zetas, rest = _residual(U, tensors, scales)
    for _ in range(steps):
        if m == 0 or loss < 1e-31:  # residuals of 3e-16 of each tensor: rounding error
            break
        # unknowns: all of U, and a ζ_k for each tensor; a change of ζ_k moves the residual of T_k alone
        J = np.concatenate([_jacobian(U, zeta, T.order) / s for T, zeta, s in zip(tensors, zetas, scales)])
        offsets = np.cumsum([0, *(T.entries.size for T in tensors)])
        blocks = np.zeros((J.shape[0], m * len(tensors)))
        for j, (T, s) in enumerate(zip(tensors, scales)):
            blocks[offsets[j] : offsets[j + 1], j * m : (j + 1) * m] = powers(U, T.order).T / s
        # rcond drops only what rounding made: directions that no tensor sees stay where they are
        step = np.linalg.lstsq(np.column_stack([J, blocks]), rest, rcond=1e-13)[0][: m * d].reshape(m, d)
        for _ in range(12):
            trial = unit_rows(U + step)
            new = _residual(trial, tensors, scales)
            if new[0] < loss:
                break
            step = 0.5 * step
        else:
            break
        gain, U, (loss, zetas, rest) = loss - new[0], trial, new
        if gain < 1e-9 * loss:
            break
    return np.asarray(U)


def _residual(
    U: Array, tensors: Sequence[SymmetricTensor], scales: Sequence[float]
) -> tuple[float, list[Array], Array]:
    """The scaled sum of squares with the best weights, those weights, and the stacked residual."""
    zetas, rest = [], []
    for T, s in zip(tensors, scales):
        zeta, left = best_weights(U, T)
        zetas.append(zeta)
        rest.append(left / s)
    stacked = np.concatenate(rest)
    return float(stacked @ stacked), zetas, stacked


def _jacobian(U: Array, zeta: Array, k: int) -> Array:
    """∂(Σ_i ζ_i u_i^{⊗k})/∂U, packed rows × (m·d)."""
    return np.concatenate([z * power_derivatives(u, k) for u, z in zip(U, zeta)], axis=1)
