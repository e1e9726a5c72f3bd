"""Preconditioners for the Gauss–Newton matrix H of a linearisation, for conjugate gradients in (U, A, τ).

For Gaussian white x̃ the slopes e'(z_i) depend on the part of x̃ in the span of the weights alone. Across it H is exactly
K ⊗ I, with K_ij = (A_i·A_j) E[e'(z_i)e'(z_j)]; in the span it is a matrix of m(r+1) + mq + (r+1)q unknowns, which one
pass over the rows gives. Where there are many units, K ⊗ I serves everywhere, or, where a pass over the rows costs
much, a solve with what H is on average (:mod:`relumine.fit.expected`).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotrs

from relumine.arrays import Array
from relumine.fit import passes
from relumine.fit.conjugate import Preconditioner, conjugate_gradients
from relumine.fit.expected import Expected
from relumine.fit.projection import Linearisation, Unknowns
from relumine.fit.rows import NOTHING

_SHIFT = 1e-12  # of the mean diagonal: far below anything that matters, it keeps K positive definite against rounding
_AFFINE = 1e-10  # of the largest square of a feature: its rounding error is 1e-14 of it, far below the next number
_PARALLEL = 1e-3  # smallest over largest pivot of the weights
# shift of the block in the span, its diagonal 1: along (u_i, −A_i) it is singular, and 1e-4 took twice the products
_SINGULAR = 1e-2
# flops of a pass over the rows from which on a solve with the expected matrix costs less than the passes it saves, half
# of them: (50,50) at n/p = 6, 2.4e8, takes 0.8 of the time, (200,32) 0.7; (100,20), 1e8, and (60,10) the same time
_PASS = 2e8
_ROUGHLY, _CAP = 0.1, 60  # relative tolerance of such a solve, and its products, of which it takes a dozen or two


def precondition(lin: Linearisation, damping: Array) -> Preconditioner:
    """An approximate inverse of H + diag(damping) ⊗ I, damping (m,)."""
    if _pays(lin):
        return inside(lin, damping)
    if Expected.knows(lin.rows, lin.at) and 4.0 * lin.rows.n * lin.at.U.size >= _PASS:
        average = Expected(lin)
        if average.holds(lin.slopes[0]):
            return on_average(lin, damping, average)
    return across(lin, damping)


def _pays(lin: Linearisation) -> bool:
    """Whether the pass for the block in the span, about n (m²)² flops, costs less than a product, 4 n m d."""
    m, D = lin.at.U.shape
    return bool(m**3 <= 4 * D and 2 * (m + 1) < D)


def on_average(lin: Linearisation, damping: Array, average: Expected | None = None) -> Preconditioner:
    """A solve with the matrix that Gaussian inputs have on average, by conjugate gradients of its own."""
    matrix, near = average or Expected(lin), across(lin, damping)

    def apply(x: Unknowns) -> Unknowns:
        return conjugate_gradients(matrix, x, damping, _ROUGHLY, _CAP, near).x

    return apply


def across(lin: Linearisation, damping: Array) -> Preconditioner:
    """(K + diag(damping)) ⊗ I; the affine part joins as q more "units" with slope 1, and A has its Gram matrix."""
    at, free = lin.at, lin.rows.free
    second, first = lin.slopes
    m, q = at.A.shape
    K = np.zeros((m + q, m + q))
    K[:m, :m] = second * (at.A @ at.A.T) + np.diag(damping)
    K[m:, m:] = np.eye(q)
    if free != NOTHING:
        K[:m, m:] = first[:, None] * at.A
        K[m:, :m] = K[:m, m:].T
    K[np.diag_indices(m)] += _SHIFT * np.trace(K[:m, :m]) / m
    # G is what is left of the squares of the features without their affine part: rounding is relative to all of them
    squares = float(np.trace(at.G)) + float(np.sum(at.C**2))
    factor, gram = cho_factor(K), cho_factor(at.G + _SHIFT * squares / m * np.eye(m))

    def apply(x: Unknowns) -> Unknowns:
        stacked = _solved(factor, np.concatenate([x.U, np.swapaxes(x.tau, -1, -2)], axis=-2))
        tau = np.zeros_like(x.tau)
        tau[..., free, :] = np.swapaxes(stacked[..., m:, free], -1, -2)
        return Unknowns(stacked[..., :m, :], _solved(gram, x.A), tau)

    return apply


def _solved(factor: tuple[Array, bool], B: Array) -> Array:
    """The solution for B (s, t) or several of them, (k, s, t).

    By LAPACK itself: for small systems the checks of cho_solve take longer than the product over the rows.
    """
    if B.ndim == 2:
        return np.asarray(dpotrs(factor[0], B, lower=factor[1])[0])
    side = np.concatenate(list(B), axis=1)
    return np.stack(np.split(dpotrs(factor[0], side, lower=factor[1])[0], len(B), axis=1))


def inside(lin: Linearisation, damping: Array) -> Preconditioner:
    """K ⊗ I across the span of the weights, and in it the matrix itself."""
    at, free = lin.at, lin.rows.free
    (m, D), q = at.U.shape, lin.rows.outputs
    Q = np.zeros((D, min(m, D - 1) + 1))  # the last column is the constant
    Q[:-1, :-1], R = np.linalg.qr(at.U[:, :-1].T)
    Q[-1, -1] = 1.0
    s = Q.shape[1]
    pivots = np.abs(np.diag(R))
    # z − b = RᵀQᵀx: hidden values show Qᵀx, if no two weights are nearly parallel
    B = block(lin, Q, np.linalg.inv(R.T) if pivots.min() > _PARALLEL * pivots.max() else None)
    B[np.diag_indices(m * s)] += np.repeat(damping, s)
    size = np.diag(B).copy()
    features = size[m * s : m * (s + q)]
    # without its affine part the feature of a unit whose kink no row passes is rounding error, which must stay small
    np.maximum(features, _AFFINE * features.max(), out=features)
    scale = 1.0 / np.sqrt(np.maximum(size, np.finfo(float).tiny))
    factor = cho_factor(B * np.outer(scale, scale) + _SINGULAR * np.eye(len(B)))
    outer = across(lin, damping)

    def apply(x: Unknowns) -> Unknowns:
        U, tau, one = x.U @ Q, Q.T @ x.tau, x.U.shape[:-2]
        flat = (part.reshape(*one, -1) for part in (U, x.A, tau[..., free, :]))
        right = scale * np.concatenate(list(flat), axis=-1)
        y = scale * cho_solve(factor, right.T).T
        dU, dA, rest = np.split(y, [m * s, m * (s + q)], axis=-1)
        dtau = np.zeros_like(tau)
        dtau[..., free, :] = rest.reshape(dtau[..., free, :].shape)
        far = outer(Unknowns(x.U - U @ Q.T, np.zeros_like(x.A), x.tau - Q @ tau))
        return Unknowns(far.U + dU.reshape(U.shape) @ Q.T, dA.reshape(x.A.shape), far.tau + Q @ dtau)

    return apply


def block(lin: Linearisation, Q: Array, back: Array | None = None) -> Array:
    """H in the coordinates Q (d+1, s): of U (ms), A (mq) and the free part of τ, over Σω; ``back``: u·x to Qᵀx.

    E = Σ_i A_i e'(z_i)(δu_i·x̃) + Σ_i δA_i e⊥(z_i) + δτᵀx̃, so with H, N, M the moments of e'(z_i)x̃ with themselves, with
    e⊥ and with x̃: UU has (A_i·A_j) H, U and A_jo have A_io N, U and τ_lo have A_io M, and e⊥ is orthogonal to x̃.
    """
    at, (m, s), q = lin.at, (len(lin.at.U), Q.shape[1]), lin.rows.outputs
    sums = lin.known.sum(partial(passes.jacobian_gram_inside, model=at.model, Q=Q, back=back), m * s)
    H, N, M = (part / lin.rows.total for part in sums)
    M = M[:, lin.rows.free]
    C = at.C @ Q
    N -= M @ C[:, lin.rows.free].T
    far = at.C - C @ Q.T
    G = at.G + far @ far.T  # of the features without their affine part in Q alone: the block is a Gram matrix
    t = M.shape[1]
    UU = (H.reshape(m, s, m, s) * (at.A @ at.A.T)[:, None, :, None]).reshape(m * s, m * s)
    UA = np.einsum("io,ikj->ikjo", at.A, N.reshape(m, s, m)).reshape(m * s, m * q)
    Ut = np.einsum("io,ikl->iklo", at.A, M.reshape(m, s, t)).reshape(m * s, t * q)
    zero, one = np.zeros((m * q, t * q)), np.eye(t * q)
    return np.block([[UU, UA, Ut], [UA.T, np.kron(G, np.eye(q)), zero], [Ut.T, zero.T, one]])
