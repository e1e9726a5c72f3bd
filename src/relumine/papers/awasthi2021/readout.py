"""The regression of Awasthi 2021, Algorithm 5: two features per unit, (x, 1), truncation, and a norm ball."""

from __future__ import annotations

from functools import partial
from math import e

import numpy as np
from scipy.optimize import brentq

from relumine.arrays import Array, slices
from relumine.data.sources import Chunk, Source
from relumine.network import Network
from relumine.papers.samples import mean_square
from relumine.results import InvalidInput

_CHUNK_NUMBERS = 1 << 20  # features held at once: 8 MB
_DEPENDENT = 1e-12  # eigenvalues below this part of the largest are rounding error of exact zeros


def fit_readout(
    rows: Source,
    W: Array,
    b: Array,
    a: Array,
    *,
    radius: float | None = None,
    truncation: float | None = None,
    accuracy: float = 0.01,
) -> Network:
    """Steps 3 and 4 of Algorithm 5: fit y by the features a_iσ(w_i·x + b_i), a_iσ(−w_i·x − b_i), x and 1.

    argmin Σ (y − β·φ(x))² 1[‖φ(x)‖ ≤ τ] over ‖β‖ ≤ R. Two passes collect the size of y and the normal equations;
    the paper's projected gradient descent is replaced by their exact solution. Both signs of every unit are offered, so
    the signs of (w, b) need not be known, and units that were not found may live in the affine part (Lemma
    D.13).

    Parameters
    ----------
    rows : Source
        (x, y), one output.
    W, b, a : (m, d), (m,), (m,) arrays
        The units, up to sign; m = 0 is allowed and leaves the affine fit.
    radius, truncation : float, optional
        R and τ, for y scaled to root mean square 1; by default √(8m) + m(1+B) + 2 and 20 m(8m+d) B √log(m d
        B/ε) (Lemma D.12), with B the largest of |a|, |b| and 1. The 2 is for affine parts of units that were
        not found.
    accuracy : float
        ε.

    Returns
    -------
    Network
        2m units and an affine part; :meth:`Network.merge` leaves at most m units and the affine part,
        :meth:`Network.consolidate` at most m + 2 units (Claim D.14).

    Examples
    --------
    >>> from relumine.data.views import rows_of
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> W, b, a = np.array([[1.0, 0.0]]), np.array([-1.0]), np.ones(1)
    >>> net = fit_readout(rows_of(X, np.maximum(1.0 - X[:, 0], 0.0)), W, b, a)
    >>> net.merge().W.round(6), net.consolidate().m
    (array([[1., 0.]]), 3)
    """
    m, d = W.shape
    size = float(np.sqrt(mean_square(rows))) or 1.0
    a = a / size  # the ball and the truncation are for outputs of size 1
    B = max(1.0, float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    units = max(m, 1)
    # 2‖y‖ bounds the affine part of standard inputs also where more units hide in it than were found
    R = float(np.sqrt(8.0 * m)) + units * (1.0 + B) + 2.0 if radius is None else radius
    logarithm = np.log(max(units * d * B / accuracy, e))
    tau = 20.0 * units * (8.0 * m + d) * B * float(np.sqrt(logarithm)) if truncation is None else truncation
    used, gram, cross = rows.reduce(partial(_normal_equations, W=W, b=b, a=a, tau=tau))
    if used == 0:
        raise InvalidInput(f"no row has features of norm ≤ τ = {tau:.3g}; raise the truncation")
    beta = size * minimise_in_ball(gram / used, cross / (used * size), R)
    pair = np.concatenate([a, a]) * beta[: 2 * m]
    return Network(np.concatenate([W, -W]), np.concatenate([b, -b]), pair, v=beta[2 * m : -1], c=beta[-1])


def _normal_equations(chunk: Chunk, W: Array, b: Array, a: Array, tau: float) -> tuple[Array, ...]:
    """Number of rows with ‖φ(x)‖ ≤ τ, and over them Σ φφᵀ, Σ yφ."""
    size = 2 * len(W) + W.shape[1] + 1
    used, gram, cross = 0, np.zeros((size, size)), np.zeros(size)
    for s in slices(len(chunk.Y), max(1, _CHUNK_NUMBERS // size)):
        X, y = chunk.X[s], chunk.Y[s, 0]
        Z = X @ W.T + b
        features = np.column_stack([a * np.maximum(Z, 0.0), a * np.maximum(-Z, 0.0), X, np.ones(len(Z))])
        seen = np.einsum("np,np->n", features, features) <= tau**2
        features = features[seen]
        gram += features.T @ features
        cross += features.T @ y[seen]
        used += len(features)
    return np.array(float(used)), gram, cross


def minimise_in_ball(G: Array, c: Array, radius: float) -> Array:
    """argmin ½βᵀGβ − c·β over ‖β‖ ≤ R for positive semidefinite G; the shortest one where it is not unique.

    β(μ) = (G + μI)⁻¹c with μ ≥ 0 and ‖β(μ)‖ = R if the free minimum lies outside.

    Examples
    --------
    >>> minimise_in_ball(np.diag([1.0, 0.0]), np.array([3.0, 0.0]), radius=2.0).round(9)
    array([2., 0.])
    """
    if not radius > 0.0:
        raise InvalidInput(f"the radius of the norm ball must be positive, got {radius}")
    values, Q = np.linalg.eigh(G)
    # the features σ(z), σ(−z), x, 1 are dependent (σ(z) − σ(−z) = z): null directions carry nothing
    good = values > _DEPENDENT * max(values.max(initial=0.0), np.finfo(float).tiny)
    values, t, Q = values[good], (Q.T @ c)[good], Q[:, good]

    # in the eigenbasis β(μ)_j = t_j/(λ_j + μ), so ‖β(μ)‖ falls with μ: one root
    def excess(log_mu: float) -> float:
        return float(np.linalg.norm(t / (values + np.exp(log_mu)))) - radius

    if np.linalg.norm(t / values) <= radius:
        return np.asarray(Q @ (t / values))
    upper = np.log(np.linalg.norm(t) / radius) + 1.0  # there ‖β‖ < R
    lower = min(upper, float(np.log(values.min()))) - 60.0
    mu = np.exp(brentq(excess, lower, upper)) if excess(lower) > 0.0 else 0.0
    return np.asarray(Q @ (t / (values + mu)))
