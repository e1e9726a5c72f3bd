"""Where in the map of (d, r, σ) a problem lies: determined by its function at all, easy, or believed to be hard.

The facts behind the map:

- Counting. A network of polynomial units of degree p is one polynomial; its r·d weights are not determined if they
  outnumber the entries of the tensors T^{(k)} = Σ w_i^{⊗k} that it shows. Degrees 1 and 2 never determine them.
- Awasthi et al. 2021. ReLU units are determined, and found from tensors up to order 2ℓ + 2, where the w_i^{⊗ℓ} are
  linearly independent: for weights in general position where r ≤ C(d+ℓ−1, ℓ).
- Mondelli & Montanari 2019. For σ = a₀ + a₁x + a₃x³ and random weights nothing better than the mean can be learned in
  polynomial time when d^{3/2} ≪ r ≪ d² (Theorem 1, if tensor decomposition is as hard as it is believed to be). For
  separated isotropic weights the same holds for any polynomial σ of fixed degree when r ≫ d (Corollary 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from relumine import activations
from relumine.activations import Activation, Polynomial
from relumine.arguments import one_of, whole
from relumine.tensors.symmetric import packed_size

Weights = Literal["random", "separated"]
Verdict = Literal["not determined", "easy", "known", "hard", "open"]


@dataclass(frozen=True)
class Regime:
    """``verdict`` and, in words, ``reason``; ``order`` is the ℓ at which the weights are determined (None: at none).

    - "not determined": different weights have the same function, so no algorithm can tell them apart.
    - "easy": r ≤ d, where a polynomial-time algorithm with a proof exists.
    - "known": r > d, where one exists for weights in general position, at a cost that grows quickly.
    - "hard": believed to have no polynomial-time algorithm, whatever the number of samples.
    - "open": no theorem either way.
    """

    verdict: Verdict
    reason: str
    order: int | None


def least_order(d: int, r: int) -> int | None:
    """The smallest ℓ with r ≤ C(d+ℓ−1, ℓ): r vectors in general position then have independent ℓ-th powers.

    Examples
    --------
    >>> least_order(10, 10), least_order(10, 20), least_order(10, 100)
    (1, 2, 3)
    """
    if d == 1:
        return 1 if r <= 1 else None  # powers of numbers are never independent
    order = 1
    while packed_size(d, order) < r:
        order += 1
    return order


def regime(d: int, r: int, activation: str | Activation = "relu", weights: Weights = "random") -> Regime:
    """Classify r units in d dimensions with this activation; ``weights`` are random, or any separated isotropic ones.

    Examples
    --------
    >>> regime(50, 1000, "polynomial(0,0,0,1)").verdict, regime(50, 1000, "quadratic").verdict
    ('hard', 'not determined')
    >>> regime(10, 20).verdict, regime(10, 20).order
    ('known', 2)
    """
    _check(d, r, weights)
    sigma = activations.get(activation)
    if isinstance(sigma, Polynomial):
        return _polynomial(d, r, sigma, weights)
    order = least_order(d, r)
    if r <= d:
        return Regime("easy", f"{r} units in {d} dimensions: no more units than inputs.", order)
    name = "ReLU" if sigma.name == "relu" else sigma.name
    if order is None:
        return Regime("open", f"One input and {r} units: the tensor methods need d ≥ 2; a fit has to find them.", None)
    where = f"{r} {name} units in {d} dimensions are {r / d:.3g} times as many units as inputs"
    if sigma.name == "relu":
        reason = f"{where}. Almost all of these are determined by their tensors of order {2 * order + 2}."
        return Regime("known", reason, order)
    return Regime(
        "open",
        f"{where}. No theorem says that this is hard for {name}, and none that it is easy; in "
        "experiments stochastic gradient descent slows down with r and all but stops near d² units.",
        order,
    )


def _polynomial(d: int, r: int, sigma: Polynomial, weights: Weights) -> Regime:
    """Polynomial units: the function is one polynomial, its weights the terms of a tensor decomposition."""
    s, p = np.array(sigma.coefficients), len(sigma.coefficients) - 1
    if p == 1:
        return Regime("not determined", "A sum of linear units is one linear function: it shows only Σ a_i w_i.", None)
    if p == 2:
        reason = "A sum of quadratic units is one quadratic form, and many sets of units give the same form."
        return Regime("not determined", reason, None)
    cubic = p == 3 and not s[2]  # a₀ + a₁x + a₃x³, the case of Theorem 1
    numbers = sum(packed_size(d, k) for k in range(1, p + 1) if s[k])
    counts = f"a polynomial of degree {p} has {numbers:,} coefficients to show, the units have {r * d:,} weights"
    lost = f" Besides, {counts}: they are not even determined." if r * d > numbers else ""
    if cubic and weights == "random" and d**1.5 < r < d**2:
        return Regime("hard", _THEOREM_1.format(r=r, d=d, low=round(d**1.5), high=d**2) + lost, None if lost else 3)
    if lost:
        reason = f"{counts[0].upper()}{counts[1:]}: different weights give the same function."
        return Regime("not determined", reason, None)
    if r <= d:
        return Regime("easy", f"{r} units in {d} dimensions: no more units than inputs.", 3)
    if weights == "separated":
        return Regime("hard", _COROLLARY_1.format(r=r, d=d, p=p), p)
    if cubic:
        reason = f"{r} ≤ d^1.5 ≈ {d**1.5:.0f} random cubic units: sum-of-squares methods can decompose their tensor."
        return Regime("known", reason, 3)
    reason = (
        f"{r} units of degree {p} in {d} dimensions. For random weights no theorem says that this is hard; for "
        "separated weights chosen against you it is believed to be."
    )
    return Regime("open", reason, p)


_THEOREM_1 = (
    "{r} cubic units in {d} dimensions lie between d^1.5 ≈ {low} and d² = {high}. There, for random weights, no "
    "algorithm of polynomial time is believed to find units that predict better than the mean of y, however many "
    "samples it gets: it would decompose third-order tensors that no known method can (Mondelli & Montanari 2019, "
    "Theorem 1). The function itself is a cubic polynomial and can be fitted; its units cannot be found."
)
_COROLLARY_1 = (
    "{r} units of degree {p} in {d} dimensions: for separated isotropic weights with more units than inputs, learning "
    "the network would decompose tensors of order {p}, which is believed to take more than polynomial time (Mondelli & "
    "Montanari 2019, Corollary 1)."
)


def _check(d: int, r: int, weights: str) -> None:
    whole("the dimension", d, 1)
    whole("the width", r, 1)
    one_of("weights", weights, get_args(Weights))
