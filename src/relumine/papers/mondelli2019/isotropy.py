"""How isotropic a set of weights is: the numbers of assumptions (A1)–(A4) in Mondelli & Montanari 2019."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relumine.arrays import Array
from relumine.results import InvalidInput


class Assumptions(NamedTuple):
    """The smallest δ, η_avg and η_var with which (A2)–(A4) hold; ``unit`` = max |‖w_i‖ − 1| measures (A1)."""

    unit: float
    delta: float
    eta_avg: float
    eta_var: float


def assumptions(W: ArrayLike) -> Assumptions:
    """Measure (A1)–(A4) for the rows of W (r, d).

    - (A1) ‖w_i‖ = 1
    - (A2) |⟨w_i, w_j⟩| ≤ δ for i ≠ j
    - (A3) ‖Σ w_i‖² ≤ η_avg r
    - (A4) ‖Σ w_i w_iᵀ − (r/d) I‖_op ≤ η_var r/d

    Examples
    --------
    >>> assumptions(np.eye(5))
    Assumptions(unit=0.0, delta=0.0, eta_avg=1.0, eta_var=0.0)
    """
    W = weight_rows(W)
    r, d = W.shape
    gram = W @ W.T
    np.fill_diagonal(gram, 0.0)
    spread = np.linalg.eigvalsh(W.T @ W) - r / d
    return Assumptions(
        unit=float(np.abs(np.linalg.norm(W, axis=1) - 1.0).max()),
        delta=float(np.abs(gram).max()),
        eta_avg=float((W.sum(axis=0) ** 2).sum() / r),
        eta_var=float(np.abs(spread).max() * d / r),
    )


def correlation(W: ArrayLike, W_hat: ArrayLike) -> float:
    """ε = max_ij |⟨w_i, ŵ_j⟩|, the largest correlation of an estimate with a true weight."""
    return float(np.abs(weight_rows(W) @ weight_rows(W_hat).T).max())


def weight_rows(W: ArrayLike) -> Array:
    """W as a finite (r, d) array with at least one row."""
    rows = np.asarray(W, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
        raise InvalidInput(f"weights are a matrix of finite numbers with a row for each unit; got shape {rows.shape}")
    return rows
