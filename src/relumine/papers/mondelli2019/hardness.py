"""Why a network whose weights are not found does not predict either (Mondelli & Montanari 2019, Theorems 2 and 3).

y(x) = Σ_i σ(w_i·x) with unit weights and Gaussian x. In the Hermite basis, with σ̂_k = c_k(1, 0)/√k!,

    E[y ŷ] = Σ_k σ̂_k² Σ_ij ⟨w_i, ŵ_j⟩^k,

so weights that are nearly orthogonal to all estimates leave ŷ nearly uncorrelated with y in every degree k ≥ 3, and
what degrees 1 and 2 can tell about isotropic weights is next to nothing. Then no ŷ beats a predictor that hardly looks
at x.

The product (floor − c₁)(1 − c₂) of Eq. (8) is meaningless where both factors are negative; here the bound is then 0. In
Eq. (14) and (15) the supremum must be read as an infimum: the bound holds for every estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relumine import activations
from relumine.activations import Activation, gaussian_mean
from relumine.arrays import Array, unit_rows
from relumine.metrics import quadrature_kernel
from relumine.papers.mondelli2019.isotropy import assumptions, correlation, weight_rows
from relumine.results import InvalidInput

# Terms of the Hermite series, which falls like ρ^k: 0.75^100 = 3e-13. For larger correlations integrate instead.
_ORDERS, _CLOSE, _TAIL = 100, 0.75, 1e-14


def hermite_number(activation: str | Activation, k: int) -> float:
    """σ̂_k = E[σ(G) He_k(G)]/√k! (Eq. 5).

    Examples
    --------
    >>> round(hermite_number("quadratic", 2) ** 2, 12)
    2.0
    """
    return float(activations.get(activation).hermite(k, 0.0)) / sqrt(factorial(k))


def mean_products(W: ArrayLike, V: ArrayLike, activation: str | Activation) -> Array:
    """E[σ(w_i·x) σ(v_j·x)] for every pair of rows, (r, R): Σ_k c_k(‖w_i‖) c_k(‖v_j‖) ρ_ij^k/k!.

    Examples
    --------
    >>> mean_products(np.eye(2), [[0.6, 0.8]], "quadratic").ravel()          # 1 + 2ρ²
    array([1.72, 2.28])
    """
    sigma, W, V = activations.get(activation), weight_rows(W), weight_rows(V)
    if W.shape[1] != V.shape[1]:
        raise InvalidInput(f"the weights have different dimensions, {W.shape[1]} and {V.shape[1]}")
    r, s = np.linalg.norm(W, axis=1), np.linalg.norm(V, axis=1)
    rho = np.clip((W @ V.T) / np.outer(np.maximum(r, 1e-300), np.maximum(s, 1e-300)), -1.0, 1.0)
    lengths, at = np.unique(np.round(np.concatenate([r, s]), 13), return_inverse=True)  # usually one: integrate once
    square = gaussian_mean(lambda z, u: sigma(u) ** 2, sigma.kinks, 0.0, lengths)
    K, power, left = np.zeros_like(rho), np.ones_like(rho), square.copy()
    # Mehler: E[σ(r z) σ(s z')] = Σ_k c_k(r) c_k(s) ρ^k/k!, until what is left of E σ² is rounding error
    for k in range(_ORDERS):
        c = sigma.hermite(k, 0.0, lengths)
        K += np.outer(c[at[: len(r)]] / factorial(k), c[at[len(r) :]]) * power
        power *= rho
        left -= c**2 / factorial(k)
        if left.max() < _TAIL * square.max():
            return K  # a polynomial: nothing is left
    same = (rho > 1.0 - 1e-14) & (at[: len(r), None] == at[None, len(r) :])
    K[same] = np.broadcast_to(square[at[: len(r)], None], K.shape)[same]
    zero = np.zeros(1)
    for i, j in np.argwhere((np.abs(rho) > _CLOSE) & ~same):  # where the series converges slowly
        pair = quadrature_kernel(sigma, sigma, zero, r[i : i + 1], zero, s[j : j + 1], rho[i : i + 1, j : j + 1])
        K[i, j] = pair[0, 0]
    return K


def risk(W: ArrayLike, W_hat: ArrayLike, activation: str | Activation) -> float:
    """E|y − ŷ|² for the networks Σ σ(w_i·x) and Σ σ(ŵ_j·x), x ~ N(0, I), in closed form.

    Examples
    --------
    >>> risk([[1.0, 0.0]], [[0.0, 1.0]], "linear")
    2.0
    """
    own, other = mean_products(W, W, activation).sum(), mean_products(W_hat, W_hat, activation).sum()
    return float(own + other - 2.0 * mean_products(W, W_hat, activation).sum())


# What is reached without knowing the weights


class TrivialRisks(NamedTuple):
    """Mean square errors of the best constant, of the best a + b‖x‖², and of the best a + xᵀAx."""

    mean: float
    norm: float
    quadratic: float


def trivial_risks(W: ArrayLike, activation: str | Activation) -> TrivialRisks:
    """The trivial predictors' risks for y = Σ σ(w_i·x), x ~ N(0, I), in closed form.

    With f̂_2 = Σ c_2(‖w_i‖) u_iu_iᵀ, u_i = w_i/‖w_i‖: the predictors' risks are Var y, Var y − (tr f̂_2)²/2d, and
    Var y − ½‖f̂_2‖_F².

    Examples
    --------
    >>> trivial_risks(np.eye(3), "quadratic")                # y = ‖x‖²: its norm is enough
    TrivialRisks(mean=6.0, norm=0.0, quadratic=0.0)
    """
    sigma, W = activations.get(activation), weight_rows(W)
    norms, U = np.linalg.norm(W, axis=1), unit_rows(W)
    second = (U.T * sigma.hermite(2, 0.0, norms)) @ U
    mean = float(mean_products(W, W, sigma).sum() - sigma.hermite(0, 0.0, norms).sum() ** 2)
    norm = mean - float(np.trace(second)) ** 2 / (2.0 * W.shape[1])
    quadratic = mean - 0.5 * float((second**2).sum())
    return TrivialRisks(max(mean, 0.0), max(norm, 0.0), max(quadratic, 0.0))


# The theorems


@dataclass(frozen=True)
class Bound:
    """E|y − ŷ|² ≥ ``value``. ``floor``: the trivial predictor's risk; the bound is (floor − ``c1``)(1 − ``c2``).

    ``epsilon``: largest correlation of an estimate with a weight. ``applies``: the theorem's condition on δ holds.
    ``vacuous``: the value is 0, which says nothing.
    """

    value: float
    floor: float
    c1: float
    c2: float
    epsilon: float
    applies: bool

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing."""
        return self.value <= 0.0


def separated_weights_bound(W: ArrayLike, W_hat: ArrayLike, activation: str | Activation) -> Bound:
    """Theorem 2: the risk of any unit-norm estimate Ŵ (R, d) of separated, isotropic unit weights W (r, d).

    c₁ = 2σ̂_1² η_avg r + 2σ̂_2² η_var² r²/d and c₂ = 2ε(1 + η_var)(R/d) / (1 − δ(1 + η_var) r/d)    (Eq. 9);
    for even σ the ε and δ in c₂ are squared (Eq. 10; σ̂_1 = 0 then).

    Examples
    --------
    >>> from scipy.linalg import hadamard
    >>> bound = separated_weights_bound(np.eye(64), hadamard(64) / 8.0, "polynomial(0,0,0,0,1)")     # σ = x⁴
    >>> bound.value > 0.9 * bound.floor, risk(np.eye(64), hadamard(64) / 8.0, "polynomial(0,0,0,0,1)") >= bound.value
    (True, True)
    """
    sigma, W, W_hat = activations.get(activation), weight_rows(W), weight_rows(W_hat)
    of_truth = _unit(W, "W")
    _unit(W_hat, "W_hat")
    (r, d), R, epsilon = W.shape, len(W_hat), correlation(W, W_hat)
    _, delta, eta_avg, eta_var = of_truth
    one, two = hermite_number(sigma, 1), hermite_number(sigma, 2)
    c1 = 2.0 * one**2 * eta_avg * r + 2.0 * two**2 * eta_var**2 * r**2 / d
    p = 2 if sigma.reflection is not None and tuple(sigma.reflection) == (1.0, 0.0, 0.0) else 1
    room = 1.0 - delta**p * (1.0 + eta_var) * r / d
    c2 = 2.0 * epsilon**p * (1.0 + eta_var) * R / d / room if room > 0.0 else np.inf
    floor = trivial_risks(W, sigma).norm
    value = (floor - c1) * (1.0 - c2) if floor > c1 and c2 < 1.0 else 0.0
    return Bound(float(value), floor, float(c1), float(c2), epsilon, room > 0.0)


def random_weights_bound(W: ArrayLike, W_hat: ArrayLike, activation: str | Activation) -> Bound:
    """Theorem 3 with its η(r, d) measured: the floor is that of a + xᵀAx (Eq. 15), or Var y where σ̂_2 = 0 (Eq. 14).

    The theorem says that for weights of the form (11), r ≪ d², and estimates with ε → 0 there is a vanishing η with
    risk ≥ (floor − rη)(1 − (R/r)η). For given W and Ŵ both terms can be computed: rη is the linear part of y,
    c₁ = σ̂_1²‖Σw_i‖², and (R/r)η is c₂ = 2B/A, where A and B are the parts of E y² and E yŷ of degree ≥ 3. So the bound
    holds for any unit weights and estimates; that it is not vacuous is what the theorem proves.

    Examples
    --------
    >>> from relumine.planted import weights
    >>> W, guess = weights(60, 300, 0), weights(60, 300, 1)
    >>> bound = random_weights_bound(W, guess, "polynomial(0,0,0,1)")                 # σ = x³
    >>> bound.value > 0.7 * bound.floor, risk(W, guess, "polynomial(0,0,0,1)") >= bound.value
    (True, True)
    """
    sigma, W, W_hat = activations.get(activation), weight_rows(W), weight_rows(W_hat)
    _unit(W, "W")
    _unit(W_hat, "W_hat")
    floor = trivial_risks(W, sigma).quadratic
    c1 = hermite_number(sigma, 1) ** 2 * float((W.sum(axis=0) ** 2).sum())
    cross = mean_products(W, W_hat, sigma).sum()
    for k in range(3):  # degrees 0, 1 and 2 of E yŷ do not count in B
        cross -= hermite_number(sigma, k) ** 2 * ((W @ W_hat.T) ** k).sum()
    high = floor - c1  # the part of E y² of degree ≥ 3
    tiny = 1e-12 * max(floor, 1.0)
    c2 = 2.0 * max(float(cross), 0.0) / high if high > tiny else np.inf
    value = high * (1.0 - c2) if c2 < 1.0 else 0.0
    return Bound(float(value), floor, c1, float(c2), correlation(W, W_hat), True)


def _unit(W: Array, name: str) -> tuple[float, float, float, float]:
    found = assumptions(W)
    if found.unit > 1e-8:
        raise InvalidInput(f"the theorems are about unit weights (A1); a row of {name} is off by {found.unit:.2g}")
    return found
