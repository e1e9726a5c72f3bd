"""RecMagSign: magnitudes and signs of the weights of homogeneous units, from two more moments (Zhong 2017)."""

from __future__ import annotations

import numpy as np

from relumine.activations import Activation
from relumine.arrays import Array
from relumine.papers.zhong2017.span import Orders
from relumine.results import InvalidInput


def recover_magnitudes(
    U: Array, Q1: Array, Q2: Array, sigma: Activation, orders: Orders, alpha: Array
) -> tuple[Array, Array]:
    """(W, v): k weights in the subspace and their output weights ±1, from unit directions of unknown sign.

    With w̄_i = s_i u_i and |w_i| = ρ_i, M_j = Σ_i v_i c_j ρ_i^p w̄_i^{⊗j}, so the least-squares solutions of
    Σ_i z_i u_i = Q₁ and Σ_i r_i u_iu_iᵀ = Q₂ are z_i = v_i c_{l₁} ρ_i^p s_i^{l₁} (α·u_i)^{l₁−1} and
    r_i = v_i c_{l₂} ρ_i^p s_i^{l₂} (α·u_i)^{l₂−2}.

    Parameters
    ----------
    U : (k, k) array
        Unit rows û_i, in the coordinates of the subspace.
    Q1 : (k,) array
        M_{l₁}(V, α, …, α).
    Q2 : (k, k) array
        M_{l₂}(V, V, α, …, α).
    sigma : Activation
        Homogeneous of degree p.
    orders : Orders
        l₁ = ``orders.first``, l₂ = ``orders.second``.
    alpha : (k,) array
        α in the subspace.

    Examples
    --------
    >>> from relumine.activations import get
    >>> from relumine.papers.zhong2017.span import moment_orders
    >>> sigma, W, v = get("squared_relu"), np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([-1.0, 1.0])
    >>> c1, c2 = (float(sigma.hermite(k, 0.0)) for k in (1, 2))
    >>> Q1, Q2 = c1 * v @ (W * [[2.0], [1.0]]), c2 * (W.T * v) @ W
    >>> recover_magnitudes(-np.eye(2), Q1, Q2, sigma, moment_orders(sigma), np.ones(2))
    (array([[2., 0.],
           [0., 1.]]), array([-1.,  1.]))
    """
    p = sigma.homogeneity
    if p is None:
        raise InvalidInput(f"RecMagSign needs a homogeneous activation, {sigma.name} is not; use method='auto'")
    l1, l2 = orders.first, orders.second
    c1, c2 = (float(sigma.hermite(order, 0.0)) for order in (l1, l2))
    k = U.shape[0]
    # the two least-squares problems above
    z = np.linalg.lstsq(U.T, Q1, rcond=None)[0]
    r = np.linalg.lstsq(np.einsum("ia,ib->abi", U, U).reshape(-1, k), Q2.ravel(), rcond=None)[0]
    r = r / (c2 * (U @ alpha) ** (l2 - 2))  # v_i ρ_i^p s_i^{l₂}
    if l2 % 2:  # odd σ: only v_i s_i matters, so v_i = 1
        v, s = np.ones(k), np.sign(r)
    else:
        v = np.sign(r)
        # even σ: s_i does not matter
        s = np.sign(z * v * c1) if l1 % 2 else np.ones(k)
    v, s = np.where(v == 0.0, 1.0, v), np.where(s == 0.0, 1.0, s)
    return (s * np.abs(r) ** (1.0 / p))[:, None] * U, v
