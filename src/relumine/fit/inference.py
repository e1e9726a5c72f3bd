"""What the residual says: is it noise, how well is each parameter known, how well conditioned is the fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from relumine.arrays import Array, unit_rows
from relumine.data.whiten import Whitening
from relumine.fit.fisher import Factor, columns, factor, fisher, parameter_count, tangent_gram
from relumine.fit.leverage import Confirmation, leverages, residuals, without_clusters
from relumine.fit.leverage import confirmation as confirm
from relumine.fit.neighbours import clusters_of, condensed, pieces
from relumine.fit.passes import Model
from relumine.fit.rows import Block, MemoryRows, Rows, Sums
from relumine.fit.sign_free import Shape
from relumine.network import Network
from relumine.results import StandardErrors

_TANGENT = 1500  # parameters up to which the score test projects off all first-order changes

_FREE = 1e-3  # least 1 − h: a row with more leverage says nothing about its own noise


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
    w = unit_rows(U[:64, :-1])
    along = np.column_stack([np.repeat(w, biases.size, axis=0), np.tile(biases, len(w))])
    return unit_rows(np.concatenate([V, along]))


class Inference(NamedTuple):
    """``noise`` (q,): residual standard deviations; ``condition``: of the scaled Fisher matrix; ``errors``: in the
    coordinates of the user, or None where the matrix is singular; ``confirmation``: what the rows say one by one, for
    rows in memory.
    """

    noise: Array
    condition: float
    errors: StandardErrors | None
    confirmation: Confirmation | None = None


class Fitted(NamedTuple):
    """A fit as inference needs it.

    ``net``: in white coordinates with (q, m) output weights; ``model``: the same function as a model of ``rows``;
    ``squares`` (q,): Σω r² of each output; ``free``: which of (v, c) are parameters; ``exact``: the residual is
    rounding error. ``groups`` (n,): the same number for equal rows, None if all differ.
    """

    rows: Rows
    net: Network
    model: Model
    squares: Array
    free: slice
    exact: bool = False
    groups: NDArray[np.intp] | None = None


def infer(fit: Fitted, white: Whitening, scale: Array) -> Inference:
    """Standard errors of every parameter, carried from white coordinates to the user's, and what each row confirms.

    G⁻¹(Σ ω j jᵀ σ²/(1 − h))G⁻¹ with G = JᵀωJ: a row moves the fit by its leave-one-out residual, whose variance is
    σ²/(1 − h) (MacKinnon & White 1985, with the variance of the noise instead of each row's square). Without 1 − h,
    95 % intervals cover 92 % at n/p = 5 and 93 % at 10; with it 96 % and 95 %. ``scale`` (q,): what the outputs were
    divided by. The scale of a homogeneous unit is fixed by its gauge; the answer is for unit rows w in the user's
    coordinates.
    """
    net, free = fit.net, fit.free
    q = net.a.shape[0]
    spread2 = fit.squares / max(fit.rows.n - parameter_count(net, free) / q, 1.0)
    noise = np.sqrt(spread2) * scale
    gram = tangent_gram(fit.rows, net, free)
    at = factor(net, free, fisher(gram, net, free))
    if at is None:
        return Inference(noise, float("inf"), None)
    confirmation, meat = None, None if fit.exact else fisher(gram, net, free, spread2)
    if isinstance(fit.rows, MemoryRows):
        h = leverages(fit.rows, at)
        confirmation = confirm(fit.rows, fit.model, at, fit.groups, h)
        clusters = clusters_of(fit.rows, fit.groups, fit.exact) if net.m else np.arange(fit.rows.n)
        confirmation = without_clusters(fit.rows, at, clusters, h, confirmation)
        if not fit.exact:
            confirmation = _of_pieces(fit.rows, fit, clusters, confirmation)
            meat = _enlarged(fit.rows, at, h, spread2)
    T = _to_user(net, white, scale, free) / at.root
    if meat is None:  # nothing is left to weigh: σ²TG⁻¹Tᵀ, with the largest σ of all outputs
        half = solve_triangular(at.L, T.T, lower=True, overwrite_b=True, check_finite=False)
        variance = spread2.max() * np.einsum("pi,pi->i", half, half)
    else:
        meat /= np.outer(at.root, at.root)
        half = cho_solve((at.L, True), T.T)  # G⁻¹Tᵀ in scaled coordinates
        variance = np.einsum("pi,pi->i", half, meat @ half)
    errors = _unpack(np.sqrt(np.maximum(variance, 0.0)), net.m, net.d, q, free)
    return Inference(noise, at.condition, errors, confirmation)


def _of_pieces(rows: MemoryRows, fit: Fitted, clusters: NDArray[np.intp], found: Confirmation) -> Confirmation:
    """What nothing confirms if a cluster of rows next to each other is one piece of information: its mean.

    The differences between its rows are as small as the noise. d+1 clusters behind a kink are fitted whatever they say,
    as d+1 rows are: relu(z)² behind three of them was called one unit and noise of a thousandth, and a fiftieth of the
    inputs was off by 70 times that.
    """
    net, free = fit.net, fit.free
    values = net(rows.X[:, :-1]).reshape(rows.n, -1)
    groups = pieces(rows, values, residuals(rows, fit.model), clusters, fit.groups)
    if groups is None:
        return found
    few = condensed(rows, groups)
    at = factor(net, free, fisher(tangent_gram(few, net, free), net, free))
    if at is None:  # as many means cannot even determine it
        alone, units = np.bincount(groups)[groups] > 1, set(range(net.m))
    else:
        of_few = confirm(few, fit.model, at)
        alone, units = np.isin(groups, of_few.alone), set(of_few.units)
    together = np.union1d(np.flatnonzero(alone), np.array(found.alone, dtype=np.intp))
    return replace(found, alone=tuple(together.tolist()), units=tuple(sorted(units | set(found.units))))


def _enlarged(rows: MemoryRows, at: Factor, h: Array, spread2: Array) -> Array:
    """Σ_o σ_o² Σ ω j_o j_oᵀ/(1 − h_o), (P, P)."""
    weight = 1.0 if rows.weight is None else rows.weight
    each = [replace(rows, weight=weight / np.maximum(1.0 - column, _FREE), kept=()) for column in h.T]
    sizes = np.diag(spread2)
    parts = [fisher(tangent_gram(part, at.net, at.free), at.net, at.free, size) for part, size in zip(each, sizes)]
    return np.asarray(np.sum(parts, axis=0))


def _to_user(net: Network, white: Whitening, scale: Array, free: slice) -> Array:
    """Jacobian (P, P) of the user's parameters with respect to the white ones (delta method)."""
    (m, d), q = net.W.shape, net.a.shape[0]
    D, size = d + 1, d + 1 + q
    P = m * size + q * columns(net, free)
    unwhiten = np.linalg.inv(white.L).T  # w_x = L⁻ᵀ w_z, b_x = b_z − mean·w_x
    linear = np.block([[unwhiten, np.zeros((d, 1))], [-white.mean @ unwhiten, np.ones((1, 1))]])
    N = np.zeros((m, size, size))  # of every unit, on its own
    N[:, :D, :D] = linear
    N[:, range(D, size), range(D, size)] = scale
    degree = net.activation.homogeneity
    if degree is not None:
        N = _of_unit_rows(net.W @ unwhiten.T, net.b - net.W @ unwhiten.T @ white.mean, net.a.T * scale, degree) @ N
    T = np.zeros((P, P))
    T[: m * size, : m * size].reshape(m, size, m, size)[range(m), :, range(m)] = N
    T[m * size :, m * size :] = np.kron(np.diag(scale), linear[free, free])
    return T


def _of_unit_rows(W: Array, b: Array, A: Array, degree: int) -> Array:
    """Jacobians (m, d+1+q, d+1+q) of (w, b, a) ↦ (w/r, b/r, r^degree a) with r = |w|, for every unit."""
    (m, d), q = W.shape, A.shape[1]
    r = np.linalg.norm(W, axis=1)[:, None, None]
    w, D = W[:, None, :], d + 1
    N = np.zeros((m, D + q, D + q))
    N[:, :d, :d] = (np.eye(d) - np.swapaxes(w, 1, 2) * w / r**2) / r
    N[:, d, :d], N[:, d, d] = (-b[:, None, None] * w / r**3)[:, 0], (1.0 / r)[:, 0, 0]
    N[:, D:, :d] = A[:, :, None] * w * degree * r ** (degree - 2)
    N[:, range(D, D + q), range(D, D + q)] = r[:, :, 0] ** degree
    return N


def _unpack(errors: Array, m: int, d: int, q: int, free: slice) -> StandardErrors:
    D, size = d + 1, d + 1 + q
    table = errors[: m * size].reshape(m, size)
    rest = np.zeros((q, D))
    rest[:, free] = errors[m * size :].reshape(q, -1)
    W, b, a = table[:, :d].copy(), table[:, d].copy(), table[:, D:].T.copy()
    return StandardErrors(W, b, a, rest[:, :d].copy(), rest[:, d].copy())
