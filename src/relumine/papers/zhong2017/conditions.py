"""Which activations have guarantees: α_q, β_q, ρ, Properties 3.1–3.3 and Assumption 5.3 (Zhong 2017).

Numerical verdicts: inequalities "for all σ" or "for all z" are checked on grids, so a failure is certain and a success
is as good as the grid (σ from 0.1 to 10, |z| up to 10³).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relumine import activations
from relumine.activations import Activation, gaussian_mean
from relumine.arrays import Array

_SCALES = np.geomspace(0.1, 10.0, 13)  # |w|: two decades, each step less than a factor 1.5
_STEP = 1e-5  # near the cube root of rounding error, where a central difference loses least


class Constants(NamedTuple):
    """α_0, α_1, α_2, β_0, β_2 and ρ of Property 3.2 at one or several scales σ."""

    alpha0: Array
    alpha1: Array
    alpha2: Array
    beta0: Array
    beta2: Array
    rho: Array


class Holds(NamedTuple):
    """Whether a property holds, and why (or why not)."""

    holds: bool
    reason: str


class Properties(NamedTuple):
    """What Zhong 2017 asks of an activation: 0 ≤ σ' ≤ ``L1``|z|^``p``; |σ''| ≤ ``L2``; verdicts with reasons.

    ``smooth`` is Property 3.3(a), which the convergence of gradient descent needs (Theorem 4.4); ``tensor`` is
    Assumption 5.3; ``moments`` says which of M_1 … M_4 do not vanish.
    """

    name: str
    p: float
    L1: float
    L2: float
    monotone: Holds  # 3.1
    nonlinear: Holds  # 3.2
    piecewise: Holds  # 3.3
    smooth: bool
    tensor: Holds  # Assumption 5.3
    moments: tuple[bool, bool, bool, bool]

    @property
    def all_hold(self) -> bool:
        """Properties 3.1, 3.2 and 3.3 together, as in Theorem 3.5: the Hessian at the truth is positive definite."""
        return self.monotone.holds and self.nonlinear.holds and self.piecewise.holds


def constants(sigma: Activation, scale: ArrayLike = 1.0) -> Constants:
    """α_q(σ) = E[φ'(σz) z^q], β_q(σ) = E[φ'²(σz) z^q] and ρ(σ), elementwise in the scale (Property 3.2).

    ρ = min(β_0 − α_0² − α_1², β_2 − α_1² − α_2², α_0α_2 − α_1²).

    Examples
    --------
    >>> from relumine.activations import RELU
    >>> round(float(constants(RELU).rho), 4)             # ½ − ¼ − 1/2π
    0.0908
    """

    def mean(power: int, q: int) -> Array:
        return gaussian_mean(lambda z, u: sigma.derivative(u) ** power * z**q, sigma.kinks, 0.0, scale)

    a0, a1, a2, b0, b2 = mean(1, 0), mean(1, 1), mean(1, 2), mean(2, 0), mean(2, 2)
    rho = np.minimum(np.minimum(b0 - a0**2 - a1**2, b2 - a1**2 - a2**2), a0 * a2 - a1**2)
    return Constants(a0, a1, a2, b0, b2, np.asarray(rho))


def properties(activation: str | Activation) -> Properties:
    """Properties 3.1, 3.2, 3.3 and Assumption 5.3 of an activation (Theorem 3.5 is about the first three).

    Examples
    --------
    >>> properties("relu").all_hold, properties("quadratic").monotone.reason
    (True, "σ'(-0.1) = -0.2 is negative")
    """
    sigma = activations.get(activation)
    p, L1, monotone = _monotone(sigma)
    L2, smooth, piecewise = _curved(sigma)
    moments, tensor = _tensor(sigma)
    return Properties(sigma.name, p, L1, L2, monotone, _nonlinear(sigma), piecewise, smooth, tensor, moments)


def second_derivative(sigma: Activation, z: Array) -> Array:
    """σ''(z) by differences of σ' that never reach across a kink (at which σ'' is not a function)."""
    left, right = np.full_like(z, _STEP), np.full_like(z, _STEP)
    for kink in sigma.kinks:
        right = np.where((z < kink) & (z + _STEP >= kink), 0.0, right)
        left = np.where((z >= kink) & (z - _STEP <= kink), 0.0, left)
    span = np.where(left + right > 0.0, left + right, 1.0)
    return np.asarray((sigma.derivative(z + right) - sigma.derivative(z - left)) / span)


def _grid(sigma: Activation, reach: float) -> Array:
    half = np.concatenate([np.geomspace(1e-6, 0.05, 60), np.linspace(0.1, 10.0, 400), np.geomspace(10.0, reach, 100)])
    z = np.concatenate([-half[::-1], half[half <= reach]])
    return np.asarray(z[np.abs(z) <= reach])


def _monotone(sigma: Activation) -> tuple[float, float, Holds]:
    """Property 3.1: 0 ≤ σ'(z) ≤ L₁|z|^p."""
    z = _grid(sigma, 1e3)
    slope = sigma.derivative(z)
    ends = np.abs(sigma.derivative(np.array([-1e3, -1e2, 1e2, 1e3])))
    growth = np.log10(np.maximum(ends[[0, 3]], 1e-300)) - np.log10(np.maximum(ends[[1, 2]], 1e-300))
    p = float(max(round(float(growth.max()), 6), 0.0))
    L1 = float(np.max(np.abs(slope) / np.abs(z) ** p))
    if slope.min() < -1e-12 * np.abs(slope).max():
        visible = z[(slope < 0.0) & (np.abs(z) >= 0.1)]
        at = float(visible[np.abs(visible).argmin()]) if visible.size else float(z[slope.argmin()])
        value = float(sigma.derivative(np.array([at]))[0])
        return p, L1, Holds(False, f"σ'({at:.3g}) = {value:.3g} is negative")
    # with p > 0 the slope must vanish at 0 at least as fast as |z|^p
    near = np.abs(z) < 1e-3
    if p > 0.0 and np.max(np.abs(slope[near]) / np.abs(z[near]) ** p) > 100.0 * np.max(
        np.abs(slope[~near]) / np.abs(z[~near]) ** p
    ):
        return p, float("inf"), Holds(False, f"σ' grows like abs(z)^{p:g} but does not vanish at 0")
    return (
        p,
        L1,
        Holds(True, f"0 ≤ σ' ≤ {L1:.3g}" + ("" if p == 0.0 else " abs(z)" if p == 1.0 else f" abs(z)^{p:g}")),
    )


def _nonlinear(sigma: Activation) -> Holds:
    """Property 3.2: ρ(σ) > 0 for every σ > 0."""
    c = constants(sigma, _SCALES)
    # differences of numbers of the size of β: below 1e-10 of that it is rounding error around 0
    rho = np.where(np.abs(c.rho) <= 1e-10 * (c.beta0 + c.beta2), 0.0, c.rho)
    failing = np.flatnonzero(rho <= 0.0)
    if failing.size:
        at = failing[np.abs(np.log(_SCALES[failing])).argmin()]
        return Holds(False, f"ρ({_SCALES[at]:.3g}) = {rho[at]:.3g}, not positive")
    return Holds(True, f"ρ(1) = {float(constants(sigma).rho):.3g}")


def _curved(sigma: Activation) -> tuple[float, bool, Holds]:
    """Property 3.3: (a) |σ''| ≤ L₂, or (b) σ'' = 0 but for finitely many points."""
    kinks = np.array(sigma.kinks)
    jumps = np.abs(sigma.derivative(kinks + 1e-9) - sigma.derivative(kinks - 1e-9)) if kinks.size else np.zeros(1)
    near, far = (np.abs(second_derivative(sigma, _grid(sigma, reach))) for reach in (10.0, 1e3))
    scale = float(np.abs(sigma.derivative(_grid(sigma, 10.0))).max())
    noise = 1e-8 * max(scale, 1.0)
    L2 = float(far.max()) if jumps.max() < 1e-6 else float("inf")
    if jumps.max() < 1e-6 and far.max() <= 1.5 * near.max() + 1e-3 * scale:
        return L2, True, Holds(True, f"(a) σ'' is bounded by {near.max() if near.max() > noise else 0.0:.3g}")
    if near.max() <= noise and far.max() <= 1e3 * noise:
        return L2, False, Holds(True, f"(b) σ'' = 0 but at {len(sigma.kinks)} point(s)")
    if jumps.max() >= 1e-6:
        return L2, False, Holds(False, "σ' jumps and σ'' is not 0 elsewhere")
    return float("inf"), False, Holds(False, "σ'' is not bounded")


def _tensor(sigma: Activation) -> tuple[tuple[bool, bool, bool, bool], Holds]:
    """Assumption 5.3: which moments vanish, and whether those that do not, vanish at no scale."""
    m = np.abs([sigma.hermite(k, np.zeros_like(_SCALES), _SCALES) for k in range(1, 5)])
    size = np.sqrt(gaussian_mean(lambda z, u: sigma(u) ** 2, sigma.kinks, 0.0, _SCALES))
    seen = m > 1e-9 * size
    one, two, three, four = (bool(row.any()) for row in seen)
    z = np.linspace(0.01, 5.0, 100)
    even = bool(np.allclose(sigma(-z), sigma(z), atol=1e-12))
    odd = bool(np.allclose(sigma(-z), -sigma(z), atol=1e-12))
    # c_k is a function of |w|: it must vanish for every |w| or for none
    mixed = [k + 1 for k, row in enumerate(seen) if row.any() and not row.all()]
    if mixed:
        verdict = Holds(False, f"M_{mixed[0]} vanishes for some |w| only")
    elif not (three or four):
        verdict = Holds(False, "M_3 = M_4 = 0")
    elif not (one or three) and not even:
        verdict = Holds(False, "M_1 = M_3 = 0, but σ is not even")
    elif not (two or four) and not odd:
        verdict = Holds(False, "M_2 = M_4 = 0, but σ is not odd (a constant apart)")
    else:
        verdict = Holds(True, "P_2, P_3 from M_" + f"{2 if two else 3}, M_{3 if three else 4}")
    return (one, two, three, four), verdict


def table(names: Iterable[str | Activation] | None = None) -> str:
    """The properties of several activations as a Markdown table.

    Examples
    --------
    >>> print(table(["linear"]))
    | σ | 3.1 | 3.2 | 3.3 | Theorem 3.5 | 5.3 | M_j ≠ 0 |
    |---|---|---|---|---|---|---|
    | linear | yes: 0 ≤ σ' ≤ 1 | no: ρ(1) = 0, not positive | yes: ... | no | no: M_3 = M_4 = 0 | 1 |
    """
    known = ("relu", "leaky_relu", "squared_relu", "sigmoid", "tanh", "erf", "linear", "quadratic")
    lines = ["| σ | 3.1 | 3.2 | 3.3 | Theorem 3.5 | 5.3 | M_j ≠ 0 |", "|---" * 7 + "|"]
    for name in known if names is None else names:
        found = properties(name)
        cells = [
            f"{'yes' if v.holds else 'no'}: {v.reason}" for v in (found.monotone, found.nonlinear, found.piecewise)
        ]
        tensor = f"{'yes' if found.tensor.holds else 'no'}: {found.tensor.reason}"
        seen = ", ".join(str(j + 1) for j, there in enumerate(found.moments) if there)
        lines.append(f"| {' | '.join([found.name, *cells, 'yes' if found.all_hold else 'no', tensor, seen])} |")
    return "\n".join(lines)
