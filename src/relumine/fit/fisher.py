"""The Fisher matrix JᵀωJ of a network at its rows, scaled and factored: for standard errors and for leverages.

Parameters come unit by unit, (w_i, b_i, a_·i) of length d+1+q, then the columns ``free`` of (v, c), output by output: P
numbers. The scale of a homogeneous unit is no parameter; its direction is fixed by adding a gauge term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, eigh_tridiagonal
from scipy.linalg.lapack import dpotrs

from relumine.arrays import Array
from relumine.fit.parallel import scratch
from relumine.fit.rows import Block, Rows, Sums
from relumine.network import Network

_LANCZOS = 300  # parameters up to which all eigenvalues are computed, in 5 ms


def parameter_count(net: Network, free: slice) -> int:
    """Parameters: d+q per homogeneous unit (its scale is not one), one more otherwise; of (v, c) those in ``free``."""
    q = net.q or 1
    per_unit = net.d + q + (0 if net.activation.homogeneity is not None else 1)
    return net.m * per_unit + q * columns(net, free)


def columns(net: Network, free: slice) -> int:
    """How many columns of x̃ the affine part may use."""
    return len(range(*free.indices(net.d + 1)))


def tangents(X: Array, net: Network, free: slice) -> Array:
    """(σ'(z_i)x̃, σ(z_i)) unit by unit, then the columns ``free`` of x̃: (n, S), which all outputs share.

    Columns are contiguous: written row by row, a few numbers at a time, this takes ten times as long. It is a work
    array, valid until the next call.
    """
    n, (m, d), across = X.shape[0], net.W.shape, np.ascontiguousarray(X.T)
    Z, used = net.W @ across[:-1] + net.b[:, None], across[free]
    T = scratch("tangents", m * (d + 2) + len(used), n)
    units = T[: m * (d + 2)].reshape(m, d + 2, n)
    np.multiply(net.activation.derivative(Z)[:, None, :], across, out=units[:, :-1])
    units[:, -1] = net.activation(Z)
    T[m * (d + 2) :] = used
    return T.T


def placed(net: Network, free: slice, o: int) -> tuple[NDArray[np.intp], Array]:
    """∂f_o/∂θ_k = φ T with k, φ (S,): where the columns of :func:`tangents` go, and by what they are multiplied."""
    (m, d), q, used = net.W.shape, net.a.shape[0], columns(net, free)
    unit = np.append(np.arange(d + 1), d + 1 + o)
    numbers = (np.arange(m)[:, None] * (d + 1 + q) + unit).ravel()
    factors = np.repeat(net.a[o], d + 2)
    factors[d + 1 :: d + 2] = 1.0
    affine = m * (d + 1 + q) + o * used + np.arange(used)
    return np.concatenate([numbers, affine]), np.concatenate([factors, np.ones(used)])


def jacobian(X: Array, net: Network, o: int, free: slice) -> Array:
    """∂f_o/∂(w_i, b_i, a_·i, v, c) at the rows of x̃: (n, P)."""
    return spread(tangents(X, net, free), net, o, free)


def spread(T: Array, net: Network, o: int, free: slice) -> Array:
    """The same from the tangents at those rows."""
    numbers, factors = placed(net, free, o)
    if net.a.shape[0] == 1:
        return T * factors
    J = np.zeros((len(T), _size(net, free)))
    J[:, numbers] = T * factors
    return J


def tangent_gram(rows: Rows, net: Network, free: slice) -> Array:
    """TᵀωT (S, S): one product for all outputs."""
    return rows.sum(partial(_products, net=net, free=free), net.m * (net.d + 2) + columns(net, free))[0]


def _products(B: Block, net: Network, free: slice) -> Sums:
    T = tangents(B.X, net, free)
    return ((T if B.weight is None else T * B.weight[:, None]).T @ T,)


def fisher(gram: Array, net: Network, free: slice, sizes: Array | None = None) -> Array:
    """Σ_o s_o Σ ω j_o j_oᵀ (P, P) from :func:`tangent_gram`; ``sizes`` (q,): s_o of the outputs o, 1 if not given."""
    (m, d), q, used = net.W.shape, net.a.shape[0], columns(net, free)
    D, inner, affine = d + 1, m * (d + 2), m * (d + 1 + q)
    s = np.ones(q) if sizes is None else sizes
    G = np.zeros((_size(net, free),) * 2)
    units = G[:affine, :affine].reshape(m, D + q, m, D + q)
    K = gram[:inner, :inner].reshape(m, D + 1, m, D + 1)
    across, edge = gram[:inner, inner:].reshape(m, D + 1, used), G[:affine, affine:].reshape(m, D + q, q * used)
    units[:, :D, :, :D] = K[:, :D, :, :D] * ((net.a.T * s) @ net.a)[:, None, :, None]
    for o in range(q):
        a, v = (s[o] * net.a[o])[:, None, None], slice(o * used, (o + 1) * used)
        units[:, :D, :, D + o] = a * K[:, :D, :, D]
        units[:, D + o, :, :D] = units[:, :D, :, D + o].transpose(2, 0, 1)
        units[:, D + o, :, D + o] = s[o] * K[:, D, :, D]
        edge[:, :D, v], edge[:, D + o, v] = a * across[:, :D], s[o] * across[:, D]
        G[affine:, affine:][v, v] = s[o] * gram[inner:, inner:]
    G[affine:, :affine] = G[:affine, affine:].T
    return G


def _size(net: Network, free: slice) -> int:
    """P."""
    q = len(net.a)
    return net.m * (net.d + 1 + q) + q * columns(net, free)


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


def factor(net: Network, free: slice, total: Array) -> Factor | None:
    """Factor ``total`` (P, P), as :func:`fisher` gives it and written over; None where it is singular to rounding."""
    P = len(total)
    if not np.isfinite(total).all():  # an activation whose slope overflows: nothing can be said
        return None
    if net.activation.homogeneity is not None:
        _add_gauge(total, net, np.trace(total) / max(P, 1))
    root = np.sqrt(np.maximum(np.diag(total), np.finfo(float).tiny))
    total /= root
    total /= root[:, None]
    if P == 0:
        return Factor(net, free, root, total, 1.0)
    try:
        L = cholesky(total, lower=True, check_finite=False)
    except LinAlgError:
        return None
    condition = _condition(total, L)
    return Factor(net, free, root, L, condition) if np.isfinite(condition) else None


def _condition(A: Array, L: Array) -> float:
    """λ_max/λ_min of A = LLᵀ (P, P); infinite where rounding leaves no sign to the smallest.

    Of large matrices by Lanczos with A and with A⁻¹, which takes a fifth of the time at P = 960 and is right to 1 %.
    """
    P = len(A)
    if P <= _LANCZOS:
        values = np.linalg.eigvalsh(A)
        return float(values[-1] / values[0]) if values[0] > 0.0 else float("inf")
    return _largest(A.__matmul__, P) * _largest(lambda x: dpotrs(L, x, lower=True)[0], P)


def _largest(product: Callable[[Array], Array], P: int, steps: int = 20, apart: int = 3) -> float:
    """The largest eigenvalue of a symmetric positive operator, by so many steps of Lanczos.

    It ends earlier if so many steps ``apart`` from each other two values agree to half a percent.
    """
    q, found = np.random.default_rng(0).normal(size=P), 0.0
    Q, diagonal, beside = np.empty((steps + 1, P)), list[float](), list[float]()
    Q[0] = q / np.linalg.norm(q)
    for k in range(steps):
        z, basis = product(Q[k]), Q[: k + 1]
        diagonal.append(float(Q[k] @ z))
        z -= (basis @ z) @ basis
        z -= (basis @ z) @ basis  # twice is enough to stay orthogonal
        size = float(np.linalg.norm(z))
        ended = size <= 1e-12 * abs(diagonal[0]) or k + 1 == steps
        if ended or k % apart == apart - 1:
            found, before = float(eigh_tridiagonal(diagonal, beside, eigvals_only=True)[-1]), found
            if ended or found <= 1.005 * before:
                break
        beside.append(size)
        Q[k + 1] = z / size
    return found


def _add_gauge(total: Array, net: Network, scale: float) -> None:
    """Add Σ_i g_i g_iᵀ with g_i the change that scales (w_i, b_i) up and a_i down, which no data can see."""
    degree, m, size = net.activation.homogeneity or 0, net.m, net.d + 1 + net.a.shape[0]
    g = np.column_stack([net.W, net.b, -degree * net.a.T])
    g /= np.linalg.norm(g, axis=1)[:, None]
    blocks = total[: m * size, : m * size].reshape(m, size, m, size)
    blocks[range(m), :, range(m)] += scale * g[:, :, None] * g[:, None, :]
