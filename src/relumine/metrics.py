"""How far apart two networks are: in their parameters up to symmetry, and as functions of a Gaussian input."""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr, owens_t

from relumine.activations import Activation, normal_pdf
from relumine.arrays import Array, unit_rows
from relumine.deep import DeepNetwork
from relumine.network import Network
from relumine.results import InvalidInput

__all__ = [
    "Match",
    "coefficient_loss",
    "deep_match",
    "gaussian_distance",
    "gaussian_inner",
    "match",
    "parameter_error",
    "unit_errors",
]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)  # of a panel, on which both integrands are smooth


class Match(NamedTuple):
    """``network``: the second network rewritten to lie as close as possible to the first; ``units``: error per unit."""

    network: Network
    units: Array
    affine: float


def match(truth: Network, found: Network) -> Match:
    """Rewrite ``found`` by permutation, scale and flips so that its units stand beside those of ``truth``.

    Errors are |Δw| + |Δb| + |Δa| per unit (w of length 1 for homogeneous σ) and |Δv| + |Δc| for the affine part,
    after the same flips: a flip changes the affine part, so a wrong sign shows there.
    """
    if (truth.m, truth.d, truth.q) != (found.m, found.d, found.q):
        raise InvalidInput(f"cannot match {truth!r} with {found!r}: the shapes differ")
    if truth.activation != found.activation:
        raise InvalidInput(f"cannot match {truth.activation.name} units with {found.activation.name} units")
    truth, found = truth.scaled(), found.scaled()
    straight = _costs(truth, found)
    cost = straight  # of each pair: the cheaper of the unit as it stands and flipped
    if found.activation.reflection is not None:
        cost = np.minimum(straight, _costs(truth, found.flip()))
    rows, columns = linear_sum_assignment(cost)
    aligned = found.permuted(columns)
    opposed = np.flatnonzero(cost[rows, columns] < straight[rows, columns])
    if opposed.size:
        aligned = aligned.flip(opposed)
    affine = np.linalg.norm(np.atleast_1d(truth.v - aligned.v)) + np.linalg.norm(np.atleast_1d(truth.c - aligned.c))
    return Match(aligned, cost[rows, columns], float(affine))


def _costs(truth: Network, found: Network) -> Array:
    """|Δw| + |Δb| + |Δa| for every pair of units, (m, m); the units are compared as they stand."""

    def apart(P: Array, Q: Array) -> Array:
        return np.asarray(np.linalg.norm(P[:, None, :] - Q[None, :, :], axis=2))

    return (
        apart(truth.W, found.W)
        + apart(truth.b[:, None], found.b[:, None])
        + apart(np.atleast_2d(truth.a).T, np.atleast_2d(found.a).T)
    )


def unit_errors(truth: Network, found: Network) -> Array:
    """|Δw| + |Δb| + |Δa| for each unit of ``truth`` after matching up to symmetry."""
    return match(truth, found).units


def deep_match(truth: DeepNetwork, found: DeepNetwork) -> tuple[DeepNetwork, tuple[Array, ...]]:
    """Rewrite ``found`` by order and positive scale so that its units stand beside those of ``truth``, layer by layer.

    Returns the rewritten network (unit rows) and, for each layer in front of the head, |Δw| + |Δb| of every unit. The
    units of layer l are matched after the columns of W_l have been put in the order found for layer l−1.
    """
    if truth.sizes != found.sizes or truth.q != found.q:
        raise InvalidInput(f"cannot match {truth!r} with {found!r}: the shapes differ")
    if truth.activation != found.activation:
        raise InvalidInput(f"cannot match {truth.activation.name} units with {found.activation.name} units")
    truth, found = truth.scaled(), found.scaled()
    orders, errors, columns = [], [], np.arange(truth.d)
    for (W, b), (V, e) in zip(truth.layers, found.layers):
        V = V[:, columns]
        cost = np.linalg.norm(W[:, None, :] - V[None, :, :], axis=2) + np.abs(b[:, None] - e[None, :])
        rows, columns = linear_sum_assignment(cost)
        errors.append(cost[rows, columns])
        orders.append(columns)
    return found.permuted([*orders, np.arange(found.head.m)]), tuple(errors)


def parameter_error(truth: Network | DeepNetwork, found: Network | DeepNetwork) -> float:
    """Largest parameter error up to all symmetries of the model; infinite if the widths differ.

    The maximum over units of |Δw| + |Δb| + |Δa|, and of |Δv| + |Δc| for the affine part, after matching by
    permutation, positive scale (homogeneous σ) and flips (σ with a reflection). For deep networks the same in the head,
    and |Δw| + |Δb| for the units of the layers before it, matched layer by layer up to order and positive scale.

    Examples
    --------
    >>> net = Network([[3.0, 0.0], [0.0, 1.0]], [1.0, 2.0], [1.0, -1.0])
    >>> parameter_error(net, net.flip([1]).canonical()) < 1e-15
    True
    """
    if isinstance(truth, DeepNetwork) or isinstance(found, DeepNetwork):
        return _deep_error(truth, found)
    if truth.m != found.m:
        return float("inf")
    result = match(truth, found)
    return float(max(result.units.max(initial=0.0), result.affine))


def _deep_error(truth: Network | DeepNetwork, found: Network | DeepNetwork) -> float:
    """As :func:`parameter_error`, for networks at least one of which is deep."""
    truth, found = (net if isinstance(net, DeepNetwork) else DeepNetwork((), net) for net in (truth, found))
    if truth.widths != found.widths:
        return float("inf")
    matched, errors = deep_match(truth, found)
    worst = max((float(layer.max()) for layer in errors), default=0.0)
    return max(worst, parameter_error(truth.scaled().head, matched.head))


# -- as functions of x ~ N(0, I) ----------------------------------------------------------------------------


def gaussian_inner(f: Network, g: Network) -> Array:
    """E[f(x) g(x)ᵀ] for x ~ N(0, I): a number, or (q_f, q_g) for several outputs. Exact up to rounding for ReLU."""
    if f.d != g.d:
        raise InvalidInput(f"the networks have different input dimensions, {f.d} and {g.d}")
    af, ag = np.atleast_2d(f.a), np.atleast_2d(g.a)
    vf, vg, cf, cg = np.atleast_2d(f.v), np.atleast_2d(g.v), np.atleast_1d(f.c), np.atleast_1d(g.c)
    total = af @ _unit_kernel(f, g) @ ag.T + vf @ vg.T + np.outer(cf, cg)
    total += af @ _affine_moments(f, vg, cg) + (ag @ _affine_moments(g, vf, cf)).T
    return np.asarray(total.reshape(f.a.shape[:-1] + g.a.shape[:-1]))


def gaussian_distance(f: Network, g: Network) -> float:
    """(E‖f(x) − g(x)‖²)^½ for x ~ N(0, I).

    Exact for ReLU (bivariate normal moments), quadrature for other activations. It is a difference of large
    numbers, so distances below about 1e-8·(E‖f‖²)^½ come out as rounding noise.

    Examples
    --------
    >>> relu, zero = Network([[1.0]], [0.0], [1.0]), Network([[1.0]], [0.0], [0.0])
    >>> round(gaussian_distance(relu, zero) ** 2, 12)
    0.5
    """
    if (f.d, f.q) != (g.d, g.q):
        raise InvalidInput(f"{f!r} and {g!r} have different numbers of inputs or outputs")
    if f.activation == g.activation:
        # f − g as one network: one kernel instead of three
        both = Network(
            W=np.concatenate([f.W, g.W]),
            b=np.concatenate([f.b, g.b]),
            a=np.concatenate([f.a, -g.a], axis=-1),
            activation=f.activation,
            v=f.v - g.v,
            c=f.c - g.c,
        )
        square = np.trace(np.atleast_2d(gaussian_inner(both, both)))
    else:
        pairs = ((f, f, 1.0), (g, g, 1.0), (f, g, -2.0))
        square = sum(s * np.trace(np.atleast_2d(gaussian_inner(p, q))) for p, q, s in pairs)
    return float(np.sqrt(max(square, 0.0)))


def coefficient_loss(f: Network, g: Network, order: int) -> float:
    """Σ_{k ≤ order} ‖f̂_k − ĝ_k‖_F²/k!: the population loss E(f − g)² truncated (Awasthi 2021, Prop. B.1)."""
    if order < 0:
        raise InvalidInput(f"order must be ≥ 0, got {order}")
    return float(sum(np.sum((f.hermite(k) - g.hermite(k)) ** 2) / factorial(k) for k in range(order + 1)))


def _affine_moments(f: Network, v: Array, c: Array) -> Array:
    """E[σ(w_i·x + b_i)(v·x + c)] = c_0 c + c_1 ŵ_i·v, shape (m, q)."""
    norms, U = np.linalg.norm(f.W, axis=1), unit_rows(f.W)
    c0, c1 = f.activation.hermite(0, f.b, norms), f.activation.hermite(1, f.b, norms)
    return np.asarray(np.outer(c0, c) + c1[:, None] * (U @ v.T))


def _unit_kernel(f: Network, g: Network) -> Array:
    """K_ij = E[σ(w_i·x + b_i) τ(u_j·x + e_j)], shape (m_f, m_g)."""
    r, s = np.linalg.norm(f.W, axis=1), np.linalg.norm(g.W, axis=1)
    U, V = unit_rows(f.W), unit_rows(g.W)
    # 1 − ρ from ‖u − v‖², which keeps its digits for nearly parallel units
    gap = 0.5 * np.sum((U[:, None, :] - V[None, :, :]) ** 2, axis=2)
    rho = np.clip(1.0 - gap, -1.0, 1.0)
    if f.activation.name == g.activation.name == "relu" and r.all() and s.all():
        return np.outer(r, s) * relu_kernel((f.b / r)[:, None], (g.b / s)[None, :], rho)
    return quadrature_kernel(f.activation, g.activation, f.b, r, g.b, s, rho)


def relu_kernel(b: Array, e: Array, rho: Array) -> Array:
    """E[(X + b)₊ (Y + e)₊] for standard normal X, Y with correlation ρ, elementwise.

    = (ρ + b e) P(X > −b, Y > −e) + b φ(e) Φ((b − ρe)/s) + e φ(b) Φ((e − ρb)/s) + s² φ₂(b, e; ρ),  s² = 1 − ρ².
    """
    b, e, rho = np.broadcast_arrays(b, e, rho)
    s = np.sqrt(np.maximum((1.0 - rho) * (1.0 + rho), 0.0))
    flat = s < 1e-10  # there (b − ρe)/s has lost all digits, and the limits below are right to 1e-10 themselves
    t = np.where(flat, 1.0, s)
    both = _orthant(b, e, np.where(flat, 0.0, rho), t)
    density = normal_pdf(b) * normal_pdf((e - rho * b) / t)  # = s φ₂(b, e; ρ)
    general = (
        (rho + b * e) * both
        + b * normal_pdf(e) * ndtr((b - rho * e) / t)
        + e * normal_pdf(b) * ndtr((e - rho * b) / t)
        + s * density
    )
    # ρ = 1: E[(X + b)₊(X + e)₊] with the kink at the smaller of b, e; ρ = −1: both active only for −b < X < e
    low = np.minimum(b, e)
    parallel = (1.0 + b * e) * ndtr(low) + np.maximum(b, e) * normal_pdf(low)
    width = np.maximum(b + e, 0.0)
    opposed = np.where(width > 0.0, (b * e - 1.0) * (ndtr(e) - ndtr(-b)) + b * normal_pdf(e) + e * normal_pdf(b), 0.0)
    return np.asarray(np.where(flat, np.where(rho > 0.0, parallel, opposed), general))


def _orthant(b: Array, e: Array, rho: Array, s: Array) -> Array:
    """P(X > −b, Y > −e) = P(X < b, Y < e) for correlation ρ, by Owen's T; s = √(1 − ρ²) > 0."""
    tiny = 1e-150  # stands in for a zero threshold: Owen's T is continuous there, and the ratios stay finite
    h, k = np.where(np.abs(b) < tiny, tiny, b), np.where(np.abs(e) < tiny, tiny, e)
    # P(X < h, Y < k) = ½Φ(h) + ½Φ(k) − T(h, a_h) − T(k, a_k) − jump (Owen 1956)
    ah, ak = (k / h - rho) / s, (h / k - rho) / s
    jump = np.where(h * k > 0.0, 0.0, 0.5)
    jump = np.where(
        (b == 0.0) & (e == 0.0), 0.0, np.where((b == 0.0) | (e == 0.0), np.where(h + k >= 0.0, 0.0, 0.5), jump)
    )
    value = 0.5 * (ndtr(h) + ndtr(k)) - owens_t(h, ah) - owens_t(k, ak) - jump
    # both thresholds at zero: Sheppard's formula (h/k above is then arbitrary)
    sheppard = 0.25 + np.arcsin(np.clip(rho, -1.0, 1.0)) / (2.0 * np.pi)
    return np.asarray(np.where((b == 0.0) & (e == 0.0), sheppard, value))


def quadrature_kernel(sigma: Activation, tau: Activation, b: Array, r: Array, e: Array, s: Array, rho: Array) -> Array:
    """E[σ(r_i X + b_i) τ(s_j Y + e_j)] for every pair, corr(X, Y) = ρ_ij: the inner integral is c_0 of τ.

    = ∫ φ(x) σ(r x + b) c_0(s√(1−ρ²), sρx + e) dx, by Gauss–Legendre panels split at the kinks of σ and refined
    around those of τ, which are smoothed over a width √(1−ρ²)/|ρ|.
    """
    K = np.empty((b.size, e.size))
    for i in range(b.size):
        for j in range(e.size):
            root = float(np.sqrt(max(1.0 - rho[i, j] ** 2, 0.0)))
            # φ(12) = 2e-32: nothing of the integral is left beyond; a smoothed kink is straight after thirty widths
            cuts = {-12.0, -6.0, -3.0, 0.0, 3.0, 6.0, 12.0}
            cuts |= {(k - b[i]) / r[i] for k in sigma.kinks if r[i] > 0.0}
            slope = s[j] * rho[i, j]
            if slope != 0.0:
                for k in tau.kinks:
                    centre, spread = (k - e[j]) / slope, max(root / abs(rho[i, j]), 1e-12)
                    cuts |= {centre + q * spread for q in (-30.0, -8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0, 30.0)}
            edges = np.array(sorted(q for q in cuts if -12.0 <= q <= 12.0))
            half = 0.5 * np.diff(edges)
            x = (half[:, None] * _NODES + 0.5 * (edges[1:] + edges[:-1])[:, None]).ravel()
            weight = (half[:, None] * _WEIGHTS).ravel() * normal_pdf(x)
            inner = tau.hermite(0, slope * x + e[j], s[j] * root)
            K[i, j] = np.sum(weight * sigma(r[i] * x + b[i]) * inner)
    return K
