"""Whether standard errors can be believed: is the model nearly linear as far as they reach?

Standard errors come from f(θ̂ + δ) ≈ f(θ̂) + Jδ. A kink that may lie on either side of many rows, or a smooth unit that is
almost a straight line, is not linear over one standard error, and intervals are then too short (Bates & Watts 1980).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from relumine.fit.fisher import Factor, jacobian
from relumine.fit.rows import MemoryRows
from relumine.network import Network

Array = NDArray[np.float64]

__all__ = ["curvature"]

_ROWS = 2000  # rows looked at; a ratio needs no more
_DRAWS = 16


def curvature(rows: MemoryRows, at: Factor, noise: Array, draws: int = _DRAWS) -> Array:
    """κ_i = rms(f_i(θ̂+δ) − f_i(θ̂) − J_iδ)/rms(J_iδ) of each unit i, (m,), for δ ~ N(0, σ²(JᵀωJ)⁻¹).

    f_i is the unit's own term a_i σ(w_i·x + b_i); ``noise`` (q,): σ, in the units of the rows.
    """
    net, (P, m) = at.net, (len(at.root), at.net.m)
    size = net.d + 1 + net.a.shape[0]
    rng = np.random.default_rng(0)
    pick = slice(None) if rows.n <= _ROWS else rng.choice(rows.n, size=_ROWS, replace=False)
    X = rows.X[pick]
    sigma = float(np.sqrt(np.mean(noise**2)))
    steps = solve_triangular(at.L, rng.normal(size=(P, draws)), lower=True, trans="T") / at.root[:, None] * sigma
    linear, bent = np.zeros(m), np.zeros(m)
    J = [jacobian(X, net, o, at.free)[:, : m * size].reshape(len(X), m, size) for o in range(net.a.shape[0])]
    F = _terms(net, X)
    for step in steps.T:
        change = step[: m * size].reshape(m, size)
        moved = Network(
            net.W + change[:, : net.d], net.b + change[:, net.d], net.a + change[:, net.d + 1 :].T, net.activation
        )
        G = _terms(moved, X) - F
        for o, Jo in enumerate(J):
            flat = np.einsum("nms,ms->nm", Jo, change)
            linear += (flat**2).sum(axis=0)
            bent += ((G[o] - flat) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(bent / np.maximum(linear, np.finfo(float).tiny)))


def _terms(net: Network, X: Array) -> Array:
    """a_oi σ(w_i·x + b_i), (q, n, m)."""
    return np.asarray(net.a[:, None, :] * net.activation(X[:, :-1] @ net.W.T + net.b))
