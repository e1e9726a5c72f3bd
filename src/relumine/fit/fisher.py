"""The Fisher matrix JᵀωJ of a network at its rows, scaled and factored: for standard errors and for leverages.

Parameters come unit by unit, (w_i, b_i, a_·i) of length d+1+q, then the columns ``free`` of (v, c), output by output: P
numbers. The scale of a homogeneous unit is no parameter; its direction is fixed by adding a gauge term.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from relumine.fit.rows import Block, Rows, Sums
from relumine.network import Network

Array = NDArray[np.float64]

__all__ = ["Factor", "columns", "factor", "fisher", "jacobian", "parameter_count"]


def parameter_count(net: Network, free: slice) -> int:
    """Parameters: d+q per homogeneous unit (its scale is not one), one more otherwise; of (v, c) those in ``free``."""
    q = net.q or 1
    per_unit = net.d + q + (0 if net.activation.homogeneity is not None else 1)
    return net.m * per_unit + q * columns(net, free)


def columns(net: Network, free: slice) -> int:
    """How many columns of x̃ the affine part may use."""
    return len(range(*free.indices(net.d + 1)))


def fisher(rows: Rows, net: Network, free: slice, o: int | None = None) -> Array:
    """Σ ω j jᵀ of each output, (q, P, P), or of output o alone, (P, P)."""
    q = net.a.shape[0]
    P = net.m * (net.d + 1 + q) + q * columns(net, free)
    if o is not None:
        return rows.sum(partial(_products, net=net, o=o, free=free), P)[0]
    return np.stack([fisher(rows, net, free, o) for o in range(q)])


def _products(B: Block, net: Network, o: int, free: slice) -> Sums:
    J = jacobian(B.X, net, o, free)
    return ((J if B.weight is None else J * B.weight[:, None]).T @ J,)


def jacobian(X: Array, net: Network, o: int, free: slice) -> Array:
    """∂f_o/∂(w_i, b_i, a_·i, v, c) at the rows of x̃: (n, P)."""
    n, (m, d), q = X.shape[0], net.W.shape, net.a.shape[0]
    D, size = d + 1, d + 1 + q
    Z = X[:, :-1] @ net.W.T + net.b
    used = X[:, free]
    J = np.zeros((n, m * size + q * used.shape[1]))
    units = J[:, : m * size].reshape(n, m, size)
    units[:, :, :D] = (net.activation.derivative(Z) * net.a[o])[:, :, None] * X[:, None, :]
    units[:, :, D + o] = net.activation(Z)
    first = m * size + o * used.shape[1]
    J[:, first : first + used.shape[1]] = used
    return J


@dataclass(frozen=True)
class Factor:
    """R L Lᵀ R = JᵀωJ + gauge with R = diag(``root``) (P,) and ``L`` lower triangular (P, P).

    ``condition``: of the scaled matrix LLᵀ.
    """

    net: Network
    free: slice
    root: Array
    L: Array
    condition: float


def factor(net: Network, free: slice, matrices: Array) -> Factor | None:
    """Factor Σ_o of ``matrices`` (q, P, P), as :func:`fisher` gives them; None where it is singular to rounding."""
    total = np.asarray(matrices.sum(axis=0))
    P = len(total)
    if not np.isfinite(total).all():  # an activation whose slope overflows: nothing can be said
        return None
    if net.activation.homogeneity is not None:
        total += _gauge(net, P, np.trace(total) / max(P, 1))
    root = np.sqrt(np.maximum(np.diag(total), np.finfo(float).tiny))
    total /= np.outer(root, root)
    eigenvalues = np.linalg.eigvalsh(total) if P else np.ones(1)
    if eigenvalues[0] <= 0.0:
        return None
    try:
        L = cholesky(total, lower=True) if P else total
    except LinAlgError:
        return None
    return Factor(net, free, root, L, float(eigenvalues[-1] / eigenvalues[0]))


def _gauge(net: Network, P: int, scale: float) -> Array:
    """Σ_i g_i g_iᵀ with g_i the change that scales (w_i, b_i) up and a_i down, which no data can see."""
    (m, d), q = net.W.shape, net.a.shape[0]
    degree = net.activation.homogeneity or 0
    size, total = d + 1 + q, np.zeros((P, P))
    for i in range(m):
        g = np.concatenate([net.W[i], net.b[i : i + 1], -degree * net.a[:, i]])
        block = slice(i * size, (i + 1) * size)
        total[block, block] = scale * np.outer(g, g) / (g @ g)
    return total
