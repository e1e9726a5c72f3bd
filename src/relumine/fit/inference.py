"""What the residual says: is it noise, how well is each parameter known, how well conditioned is the fit."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from relumine.data.whiten import Whitening
from relumine.fit.passes import Model
from relumine.fit.rows import Block, Rows, Sums
from relumine.fit.sign_free import Shape
from relumine.network import Network
from relumine.results import StandardErrors

Array = NDArray[np.float64]

_TANGENT = 1500  # parameters up to which the score test projects off all first-order changes

__all__ = ["Inference", "infer", "parameter_count", "structure_score"]


def parameter_count(net: Network, free: slice) -> int:
    """Parameters: d+q per homogeneous unit (its scale is not one), one more otherwise; of (v, c) those in ``free``."""
    q = net.q or 1
    per_unit = net.d + q + (0 if net.activation.homogeneity is not None else 1)
    return net.m * per_unit + q * _columns(net, free)


def _columns(net: Network, free: slice) -> int:
    return len(range(*free.indices(net.d + 1)))


def structure_score(rows: Rows, shape: Shape, model: Model, probes: int = 256) -> float:
    """Largest |t| of a model's residual against other hidden units e: about 3 for noise, above 5 is structure.

    The probes φ = e(u·x̃) are units at random and, in the directions of the fitted U (m, d+1), units with other biases:
    a target that bends where the network is straight shows there. t = ⟨φ⊥, r⟩/(‖φ⊥‖ rms(r)), the score test for one
    more unit; φ⊥ is φ freed of what the model can express to first order, the columns x̃, e(z_i) and e'(z_i)x̃.
    """
    U = model.U
    P = _probes(U, probes)
    m, D = U.shape
    tangent = m * D <= _TANGENT
    size = D + m + m * D * tangent
    part = partial(_score_sums, shape=shape, model=model, P=P, tangent=tangent)
    G, N, dot, BR, square, rr = rows.sum(part, max(size, len(P)))
    if not np.isfinite(G).all():  # an activation whose slope overflows: nothing passes for noise
        return float("inf")
    G[np.diag_indices(size)] += 1e-10 * np.trace(G) / size  # homogeneous units make the columns dependent
    GN = cho_solve(cho_factor(G), N)
    free, dot = square - np.einsum("ij,ij->j", N, GN), dot - GN.T @ BR
    visible = free > 1e-4 * square
    spread = np.sqrt(rr / max(rows.n - size, 1))
    t = dot[visible] / np.sqrt(free[visible])[:, None] / np.maximum(spread, np.finfo(float).tiny)
    return float(np.abs(t).max(initial=0.0))


def _score_sums(B: Block, shape: Shape, model: Model, P: Array, tangent: bool) -> Sums:
    """Products of the tangent columns T, the probes F and the residual r with each other, as the score test needs."""
    Z = B.X @ model.U.T
    slopes = (shape.derivative(Z)[:, :, None] * B.X[:, None, :]).reshape(len(B.X), -1) if tangent else B.X[:, :0]
    T, F, R = np.hstack([B.X, shape.value(Z), slopes]), shape.value(B.X @ P.T), model.residual(B)
    r, weight = B.weigh(R).T, 1.0 if B.weight is None else B.weight[:, None]
    weighted = weight * F
    square, rr = np.einsum("ij,ij->j", weighted, F), np.einsum("ij,ji->j", r, R)
    return (weight * T).T @ T, T.T @ weighted, F.T @ r, T.T @ r, square, rr


def _probes(U: Array, count: int) -> Array:
    """Unit vectors (w, b): ``count`` at random, and nine biases along each of the first 64 fitted directions."""
    V = np.random.default_rng(0).normal(size=(count, U.shape[1]))
    biases = np.linspace(-2.0, 2.0, 9)
    w = U[:64, :-1] / np.maximum(np.linalg.norm(U[:64, :-1], axis=1, keepdims=True), np.finfo(float).tiny)
    along = np.column_stack([np.repeat(w, biases.size, axis=0), np.tile(biases, len(w))])
    P = np.concatenate([V, along])
    return np.asarray(P / np.linalg.norm(P, axis=1, keepdims=True))


class Inference(NamedTuple):
    """``noise`` (q,): residual standard deviations; ``condition``: of the scaled Fisher matrix; ``errors``: in the
    coordinates of the user, or None where the matrix is singular.
    """

    noise: Array
    condition: float
    errors: StandardErrors | None


def infer(rows: Rows, squares: Array, net: Network, white: Whitening, units: Array, free: slice) -> Inference:
    """Standard errors σ²(JᵀJ)⁻¹ of every parameter, carried from white coordinates to the user's.

    ``net``: the fitted network in white coordinates with (q, m) output weights, outputs divided by ``units`` (q,).
    ``squares`` (q,): Σω r² of each output's residual. Each unit's scale is fixed by adding its gauge direction to the
    Fisher matrix; the answer is for unit rows w in the user's coordinates.
    """
    m, d, q = net.m, net.d, net.a.shape[0]
    size = d + 1 + q
    P = m * size + q * _columns(net, free)
    fisher, meat = np.zeros((P, P)), np.zeros((P, P))
    freedom = max(rows.n - parameter_count(net, free) / q, 1.0)
    spread2 = squares / freedom
    for o in range(q):
        (H,) = rows.sum(partial(_fisher, net=net, o=o, free=free), P)
        fisher += H
        meat += spread2[o] * H
    if net.activation.homogeneity is not None:
        fisher += _gauge(net, P, np.trace(fisher) / max(P, 1))
    noise = np.sqrt(spread2) * units
    if not np.isfinite(fisher).all():  # an activation whose slope overflows: nothing can be said
        return Inference(noise, float("inf"), None)
    root = np.sqrt(np.maximum(np.diag(fisher), np.finfo(float).tiny))
    scaled = fisher / np.outer(root, root)
    eigenvalues = np.linalg.eigvalsh(scaled)
    condition = float(eigenvalues[-1] / eigenvalues[0]) if eigenvalues[0] > 0.0 else float("inf")
    try:
        factor = cho_factor(scaled)
    except LinAlgError:
        return Inference(noise, float("inf"), None)
    T = _to_user(net, white, units, free) / root
    half = cho_solve(factor, T.T)  # Fisher⁻¹Tᵀ in scaled coordinates
    variance = np.einsum("pi,pi->i", half, (meat / np.outer(root, root)) @ half)
    return Inference(noise, condition, _unpack(np.sqrt(np.maximum(variance, 0.0)), m, d, q, free))


def _fisher(B: Block, net: Network, o: int, free: slice) -> Sums:
    """Σ ω j jᵀ for output o."""
    J = _jacobian(B.X, net, o, free)
    return ((J if B.weight is None else J * B.weight[:, None]).T @ J,)


def _jacobian(X: Array, net: Network, o: int, free: slice) -> Array:
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


def _to_user(net: Network, white: Whitening, units: Array, free: slice) -> Array:
    """Jacobian (P, P) of the user's parameters with respect to the white ones (delta method)."""
    (m, d), q = net.W.shape, net.a.shape[0]
    D, size = d + 1, d + 1 + q
    P = m * size + q * _columns(net, free)
    unwhiten = np.linalg.inv(white.L).T  # w_x = L⁻ᵀ w_z, b_x = b_z − mean·w_x
    linear = np.block([[unwhiten, np.zeros((d, 1))], [-white.mean @ unwhiten, np.ones((1, 1))]])
    T = np.zeros((P, P))
    degree = net.activation.homogeneity
    for i in range(m):
        s = i * size
        T[s : s + D, s : s + D] = linear
        T[s + D : s + size, s + D : s + size] = np.diag(units)
        if degree is not None:
            w, b = unwhiten @ net.W[i], net.b[i] - white.mean @ (unwhiten @ net.W[i])
            r, a = float(np.linalg.norm(w)), net.a[:, i] * units
            N = np.eye(size)
            N[:d, :d] = (np.eye(d) - np.outer(w, w) / r**2) / r
            N[d, :d], N[d, d] = -b * w / r**3, 1.0 / r
            N[D:, :d] = np.outer(a, w) * degree * r ** (degree - 2)
            N[D:, D:] *= r**degree
            T[s : s + size, s : s + size] = N @ T[s : s + size, s : s + size]
    T[m * size :, m * size :] = np.kron(np.diag(units), linear[free, free])
    return T


def _unpack(errors: Array, m: int, d: int, q: int, free: slice) -> StandardErrors:
    D, size = d + 1, d + 1 + q
    table = errors[: m * size].reshape(m, size)
    rest = np.zeros((q, D))
    rest[:, free] = errors[m * size :].reshape(q, -1)
    W, b, a = table[:, :d].copy(), table[:, d].copy(), table[:, D:].T.copy()
    return StandardErrors(W, b, a, rest[:, :d].copy(), rest[:, d].copy())
