"""Is what an additive fit leaves over noise? Standard errors, and the tests that come before a verdict.

Everything here is the linear regression at the fitted w: y − f(·; w) on the columns of the Jacobian J.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.linalg.lapack import dpocon
from scipy.special import fdtri

from relumine.arrays import Array
from relumine.papers.oymak2018.additive import GEMM_BLOCK, Additive


class Evidence(NamedTuple):
    """What the data say about a fitted w.

    Attributes
    ----------
    noise : float
        Residual standard deviation with n − d degrees of freedom.
    standard_errors : (d,) array
        noise · sqrt diag (J'J)⁻¹; infinite where J'J is singular.
    condition : float
        Condition number (1-norm estimate) of J'J scaled to unit diagonal; infinite where singular.
    remaining : (d,) array
        The Gauss–Newton step still to go: zero at a minimum inside the bounds.
    structure : float
        Largest |z| of the residual against functions of x that noise knows nothing of.
    held_out : float
        Mean squared standardised residual of the held-out rows over what noise makes plausible; above 1 it
        is implausible.
    G : (d, d) array
        J'J.
    """

    noise: float
    standard_errors: Array
    condition: float
    remaining: Array
    structure: float
    held_out: float
    G: Array


def evidence(problem: Additive, w: Array, centred: bool = False) -> Evidence:
    """Judge w (d,) on the rows in use; rows marked ``out`` are the held-out rows. Needs n > d."""
    G, g, n, rms = problem.normal_equations(w, centred)
    d = problem.d
    scale, L, condition = _factor(G)
    if np.isinf(condition):
        blind = np.full(d, np.inf)
        return Evidence(rms, blind, np.inf, np.zeros(d), np.inf, np.inf, G)

    inverse = cho_solve((L, True), np.eye(d), check_finite=False)
    remaining = -scale * (inverse @ (scale * g))
    residual = problem.residual(w)
    # ‖r + JΔ‖² = ‖r‖² + g·Δ for Δ = −(J'J)⁻¹g: what would be left after the remaining step
    squares = float(residual @ residual) + float(g @ remaining)
    if centred:
        squares -= float(residual.sum()) ** 2 / n
    noise = float(np.sqrt(max(squares, 0.0) / max(n - d - int(centred), 1)))
    errors = noise * scale * np.sqrt(inverse.diagonal())
    structure = _structure(problem, w, residual, remaining, scale[:, None] * inverse * scale, centred)
    structure = structure / noise if noise > 0.0 else 0.0
    held = _held_out(problem, w, noise, scale[:, None] * inverse * scale, n - d)
    return Evidence(noise, errors, condition, remaining, structure, held, G)


def _factor(G: Array) -> tuple[Array, Array, float]:
    """Scale G to unit diagonal and factor it: (scale, Cholesky factor, condition, infinite if singular)."""
    scale = 1.0 / np.sqrt(np.where(G.diagonal() > 0.0, G.diagonal(), 1.0))
    C = scale[:, None] * G * scale
    try:
        L = cholesky(C, lower=True, check_finite=False)
    except LinAlgError:
        return scale, C, float("inf")
    reciprocal = float(dpocon(L, np.abs(C).sum(axis=0).max(), uplo="L")[0])
    return scale, L, 1.0 / reciprocal if reciprocal > 1e-13 else float("inf")


def conditioning(problem: Additive, w: Array) -> float:
    """Condition number of J'J at w, scaled to unit diagonal; infinite if singular."""
    return _factor(problem.normal_equations(w).G)[2]


def determined(problem: Additive, w: Array, margin: Array) -> bool:
    """Whether J keeps its rank at w ∓ margin (d,) too: a w on a kink is known from one side only."""
    counts = problem.sums(w).M1
    for shifted in (w - margin, w + margin):
        crossed = not np.array_equal(problem.sums(shifted).M1, counts)
        if crossed and np.isinf(conditioning(problem, shifted)):
            return False
    return True


def _structure(problem: Additive, w: Array, residual: Array, remaining: Array, inverse: Array, centred: bool) -> float:
    """How far the residual is from noise, as |z|·noise, for sums and single coordinates.

    Wrong models leave functions of x outside the span of J. The score of each sum over k of 1, z_k,
    max(z_k, 0) and 1/(1 + z_k²) (a shift, a slope, a scale, a bump) is normal if r is noise. The d scores of
    max(z_k, 0) see errors that differ between coordinates; the sum of their squares has mean d, and a
    variance that grows when d scores share n − d degrees of freedom.
    """
    d, freedom = problem.d, problem.n - problem.d
    together = _scores(problem, w, residual, remaining, inverse, centred, _sums)
    each = _scores(problem, w, residual, remaining, inverse, centred, lambda z, a: np.maximum(z, 0.0))
    noise = float(np.sqrt(residual @ residual / freedom))
    excess = float(each @ each) / noise**2 - d if noise > 0.0 else 0.0
    return max(float(np.abs(together).max()), noise * excess / float(np.sqrt(2.0 * d * (1.0 + d / freedom))))


def _sums(z: Array, a: Array) -> Array:
    return np.stack([np.ones(len(z)), z @ a, np.maximum(z, 0.0) @ a, (1.0 / (1.0 + z * z)) @ a], axis=1)


def _scores(
    problem: Additive,
    w: Array,
    residual: Array,
    remaining: Array,
    inverse: Array,
    centred: bool,
    features: Callable[[Array, Array], Array],
) -> Array:
    """φ'Pr / sqrt(φ'Pφ) for each feature φ, P = I − J(J'J)⁻¹J': as scattered as the noise if r is noise."""
    s, n, q = problem.slope, problem.n, features(np.zeros((1, problem.d)), problem.a).shape[1]
    DF, M1 = np.zeros((problem.d, q)), np.zeros(problem.d)
    FF, Fr, F1 = np.zeros(q), np.zeros(q), np.zeros(q)
    for block, _, M in problem.blocks(w, GEMM_BLOCK):
        F = features(problem.X[block] + w, problem.a)
        if problem.out is not None:
            F[problem.out[block]] = 0.0
        total = F.sum(axis=0)
        DF += (1.0 - s) * (M.T @ F) + s * total
        FF, Fr = FF + np.einsum("ij,ij->j", F, F), Fr + F.T @ residual[block]
        F1, M1 = F1 + total, M1 + M.sum(axis=0)
    if centred:
        DF -= np.outer((1.0 - s) * M1 + s * n, F1) / n
        FF, Fr = FF - F1 * F1 / n, Fr - F1 * float(residual.sum()) / n
    JF = problem.a[:, None] * DF
    variance = FF - np.einsum("kj,kj->j", JF, inverse @ JF)
    # what J explains of a feature leaves rounding error, and a score of that would be a division of nothing by nothing
    visible = variance > 1e-9 * (FF + 1e-300)
    return np.where(visible, (Fr + JF.T @ remaining) / np.sqrt(np.where(visible, variance, 1.0)), 0.0)


def held_out(problem: Additive) -> Additive:
    """The rows marked ``out``, as a problem of their own."""
    rows = np.flatnonzero(np.zeros(len(problem.y)) if problem.out is None else problem.out)
    return Additive(problem.X[rows], problem.y[rows], problem.a, problem.slope)


def _held_out(problem: Additive, w: Array, noise: float, inverse: Array, freedom: int) -> float:
    """Mean of (e/sd(e))² over the held-out rows, in units of the F quantile one fit in 10⁶ exceeds."""
    test = held_out(problem)
    if test.n == 0 or noise == 0.0:
        return 0.0
    J = (problem.slope + (1.0 - problem.slope) * (test.X + w >= 0.0)) * problem.a
    leverage = np.einsum("ik,ik->i", J @ inverse, J)
    t = test.residual(w) / (noise * np.sqrt(1.0 + leverage))
    return float(np.mean(t * t) / fdtri(test.n, max(freedom, 1), 1.0 - 1e-6))
