"""How the loss curves around the truth: the Hessian in W for fixed output weights, and Theorem 4.2's quantities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relumine.activations import Activation, gaussian_mean
from relumine.arrays import Array, slices
from relumine.network import Network
from relumine.papers.zhong2017.conditions import constants, properties, second_derivative
from relumine.results import InvalidInput

_MOST = 6000  # rows of a Hessian that is formed: 288 MB
_JACOBIAN = 1 << 21  # numbers of the Jacobian held at once: 16 MB


class Conditioning(NamedTuple):
    """Definition 4.1: κ = σ_1/σ_k, λ = Πσ_i/σ_k^k, ν = v_max/v_min, ρ(σ_k), τ; and the two bounds of Theorem 4.2.

    The Hessian lies between constants times ``lower`` = v_min² ρ(σ_k)/(κ²λ) and ``upper`` = k v_max² σ_1^{2p}.
    """

    kappa: float
    lam: float
    nu: float
    rho: float
    tau: float
    lower: float
    upper: float


def conditioning(net: Network) -> Conditioning:
    """The quantities of Theorem 4.2 for a network without biases (k ≤ d).

    Examples
    --------
    >>> c = conditioning(Network(2.0 * np.eye(3), np.zeros(3), [1.0, -1.0, 2.0], "squared_relu"))
    >>> c.kappa, c.lam, c.nu
    (1.0, 1.0, 2.0)
    """
    _without_bias(net)
    s = np.linalg.svd(net.W, compute_uv=False)
    v = np.abs(net.a)
    if net.m > net.d or s[-1] <= 1e-12 * s[0] or not v.all():
        raise InvalidInput("Theorem 4.2 needs linearly independent weights (k ≤ d) and output weights other than 0")
    p = properties(net.activation).p
    kappa, lam = float(s[0] / s[-1]), float(np.prod(s / s[-1]))
    rho = float(constants(net.activation, s[-1]).rho)
    scales = np.linspace(0.5 * s[-1], 1.5 * s[0], 50)
    least = float(np.min(constants(net.activation, scales).rho))
    tau = float((1.5 * s[0]) ** (4 * p) / least**2) if least > 0.0 else float("inf")
    return Conditioning(
        kappa,
        lam,
        float(v.max() / v.min()),
        rho,
        tau,
        float(v.min() ** 2 * rho / (kappa**2 * lam)),
        float(net.m * v.max() ** 2 * s[0] ** (2 * p)),
    )


def empirical_hessian(net: Network, X: Array, y: Array) -> Array:
    """∇² of f̂_S(W) = (1/2n) Σ (f(x) − y)² in W at the network, (kd, kd), rows in the order of W.ravel().

    With many fresh samples of another network's labels it is the population Hessian away from the truth.
    """
    k, d = _hessian_size(net)
    sigma, H = net.activation, np.zeros((k * d, k * d))
    for rows in slices(len(y), max(_JACOBIAN // (k * d), 64)):
        Xs = X[rows]
        Z = Xs @ net.W.T
        r = sigma(Z) @ net.a - y[rows]
        J = ((sigma.derivative(Z) * net.a)[:, :, None] * Xs[:, None, :]).reshape(len(Xs), k * d)
        H += J.T @ J
        # the second part of ∇²: r v_j φ''(w_j·x) xxᵀ, in the blocks on the diagonal only
        bend = second_derivative(sigma, Z) * net.a * r[:, None]
        for j in range(k):
            block = slice(j * d, (j + 1) * d)
            H[block, block] += (Xs * bend[:, j : j + 1]).T @ Xs
    return H / len(y)


def population_hessian(net: Network) -> Array:
    """∇²f_D(W*) at the truth for x ~ N(0, I), by quadrature: blocks v_jv_l E[φ'(w_j·x)φ'(w_l·x) xxᵀ], (kd, kd).

    In the plane of w_j and w_l, s = w̄_j·x and w̄_l·x = c s + √(1−c²) t with independent normal s, t.
    """
    k, d = _hessian_size(net)
    norms = np.linalg.norm(net.W, axis=1)
    if not norms.all():
        raise InvalidInput("a unit with w = 0 is a constant: drop it first")
    U = net.W / norms[:, None]
    H = np.zeros((k, d, k, d))
    for j in range(k):
        for i in range(j, k):
            block = net.a[j] * net.a[i] * _block(net.activation, U[j], U[i], norms[j], norms[i])
            H[j, :, i, :] = block
            H[i, :, j, :] = block.T
    return H.reshape(k * d, k * d)


def _block(sigma: Activation, u: Array, w: Array, r: float, s: float) -> Array:
    """E[φ'(r u·x) φ'(s w·x) xxᵀ] for unit u, w."""
    d = len(u)
    c = float(np.clip(u @ w, -1.0, 1.0))
    across = w - c * u
    root = float(np.linalg.norm(across))

    def inner(z: Array, q: int) -> Array:
        return gaussian_mean(lambda t, b: sigma.derivative(b) * t**q, sigma.kinks, s * c * z, s * root)

    def mean(p: int, q: int) -> float:
        return float(gaussian_mean(lambda z, b: sigma.derivative(b) * z**p * inner(z, q), sigma.kinks, 0.0, r))

    # E[g xxᵀ] = E[g] I + (E[g s²] − E[g]) uuᵀ + (E[g t²] − E[g]) eeᵀ + E[g st] (ueᵀ + euᵀ), g = φ'(s)φ'(t), e ⊥ u
    base = mean(0, 0)
    block = base * np.eye(d) + (mean(2, 0) - base) * np.outer(u, u)
    if root > 1e-9:
        e = across / root
        cross = mean(1, 1)
        block += (mean(0, 2) - base) * np.outer(e, e) + cross * (np.outer(u, e) + np.outer(e, u))
    return np.asarray(block)


def extremes(H: Array) -> tuple[float, float]:
    """Smallest and largest eigenvalue of a symmetric matrix."""
    values = np.linalg.eigvalsh(H)
    return float(values[0]), float(values[-1])


def _hessian_size(net: Network) -> tuple[int, int]:
    """(k, d) of a network whose Hessian, kd × kd, can be formed."""
    _without_bias(net)
    k, d = net.W.shape
    if k * d > _MOST:
        raise InvalidInput(f"the Hessian of {k}·{d} weights would have {k * d} rows; at most {_MOST} are formed")
    return k, d


def _without_bias(net: Network) -> None:
    if np.any(net.b) or np.any(net.v) or np.any(net.c) or net.q is not None or not net.m:
        raise InvalidInput("the theory of Zhong 2017 is for networks with one output, without biases and affine part")
