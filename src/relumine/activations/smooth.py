"""Smooth activations: sigmoid, tanh, erf, GELU, SiLU, and polynomials (the negative examples of Zhong 2017)."""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from relumine.activations.base import Elementwise, Reflection, Step
from relumine.activations.quadrature import broadcast, normal_pdf
from relumine.arrays import Array
from relumine.results import InvalidInput


class Sigmoid(Elementwise):
    """σ(z) = 1/(1 + e^−z). σ(−z) = 1 − σ(z): a flip moves the constant a into c."""

    name = "sigmoid"
    reflection = Reflection(-1.0, 0.0, 1.0)
    steps = (Step("Sigmoid", ("z",), "h"),)
    torch = ("Sigmoid", ())

    def __call__(self, z: Array) -> Array:
        """1/(1 + e^−z), without overflow."""
        return np.asarray(special.expit(z))

    def derivative(self, z: Array) -> Array:
        """σ(z) σ(−z), which keeps its digits on both sides."""
        return np.asarray(special.expit(z) * special.expit(-np.asarray(z)))


class Tanh(Elementwise):
    """σ(z) = tanh z, odd: (w, b, a) and (−w, −b, −a) are the same unit."""

    name = "tanh"
    reflection = Reflection(-1.0, 0.0, 0.0)
    steps = (Step("Tanh", ("z",), "h"),)
    torch = ("Tanh", ())

    def __call__(self, z: Array) -> Array:
        """The hyperbolic tangent."""
        return np.tanh(z)

    def derivative(self, z: Array) -> Array:
        """1/cosh² z = 4 s(2z) s(−2z) with s the sigmoid."""
        twice = 2.0 * np.asarray(z)
        return np.asarray(4.0 * special.expit(twice) * special.expit(-twice))


class Erf(Elementwise):
    """σ(z) = (2/√π) ∫₀^z e^{−t²} dt, odd. (Zhong 2017 leaves the factor 2/√π out; a takes it.)

    Examples
    --------
    >>> round(float(Erf().hermite(1, 0.0) * np.sqrt(3.0 * np.pi)), 12)
    2.0
    """

    name = "erf"
    reflection = Reflection(-1.0, 0.0, 0.0)
    steps = (Step("Erf", ("z",), "h"),)

    def __call__(self, z: Array) -> Array:
        """The error function."""
        return np.asarray(special.erf(z))

    def derivative(self, z: Array) -> Array:
        """(2/√π) e^{−z²}."""
        return np.asarray(2.0 / np.sqrt(np.pi) * np.exp(-np.square(z)))

    def hermite(self, k: int, b: ArrayLike, r: ArrayLike = 1.0) -> Array:
        """c_0 = erf(tb/√2) with t² = 2/(1 + 2r²); c_k = r^k ∂_b^k c_0 = 2 (−1)^{k−1} (rt)^k He_{k−1}(tb) φ(tb)."""
        b, r = broadcast(b, r)
        scale = np.sqrt(2.0 / (1.0 + 2.0 * r * r))
        u = scale * b
        if k == 0:
            return np.asarray(special.erf(u / np.sqrt(2.0)))
        return np.asarray(
            2.0 * (-1.0) ** (k - 1) * (r * scale) ** k * special.eval_hermitenorm(k - 1, u) * normal_pdf(u)
        )


class GELU(Elementwise):
    """σ(z) = z Φ(z), the exact form. σ(−z) = σ(z) − z, so a flip moves an affine part, as for ReLU.

    Examples
    --------
    >>> GELU()(np.array([0.0, 10.0]))
    array([ 0., 10.])
    """

    name = "gelu"
    reflection = Reflection(1.0, -1.0, 0.0)
    steps = (
        Step("Mul", ("z", 0.5**0.5), "scaled"),
        Step("Erf", ("scaled",), "odd"),
        Step("Add", ("odd", 1.0), "twice"),
        Step("Mul", ("twice", 0.5), "share"),
        Step("Mul", ("z", "share"), "h"),
    )
    torch = ("GELU", ())

    def __call__(self, z: Array) -> Array:
        """z Φ(z)."""
        return np.asarray(z * special.ndtr(z))

    def derivative(self, z: Array) -> Array:
        """Φ(z) + z φ(z)."""
        return np.asarray(special.ndtr(z) + z * normal_pdf(z))

    def hermite(self, k: int, b: ArrayLike, r: ArrayLike = 1.0) -> Array:
        """c_0 = bΦ(tb) + r²t φ(tb) with t² = 1/(1 + r²), and c_k = r^k ∂_b^k c_0.

        With u = tb: ∂_b Φ(u) = tφ(u) and ∂_b^k φ(u) = (−t)^k He_k(u) φ(u), so for k ≥ 1
        c_k = r^k (b ∂^k Φ + k ∂^{k−1} Φ + r²t ∂^k φ).
        """
        b, r = broadcast(b, r)
        t = 1.0 / np.sqrt(1.0 + r * r)
        u = t * b

        def density(j: int) -> Array:
            return np.asarray((-t) ** j * special.eval_hermitenorm(j, u) * normal_pdf(u))

        def share(j: int) -> Array:
            return np.asarray(special.ndtr(u)) if j == 0 else t * density(j - 1)

        total = b * share(k) + r * r * t * density(k) + (k * share(k - 1) if k else 0.0)
        return np.asarray(r**k * total)


class SiLU(Elementwise):
    """σ(z) = z/(1 + e^−z), also called swish. σ(−z) = σ(z) − z, so a flip moves an affine part, as for ReLU.

    Examples
    --------
    >>> SiLU()(np.array([0.0, 100.0]))
    array([  0., 100.])
    """

    name = "silu"
    reflection = Reflection(1.0, -1.0, 0.0)
    steps = (Step("Sigmoid", ("z",), "share"), Step("Mul", ("z", "share"), "h"))
    torch = ("SiLU", ())

    def __call__(self, z: Array) -> Array:
        """z s(z) with s the sigmoid."""
        return np.asarray(z * special.expit(z))

    def derivative(self, z: Array) -> Array:
        """s(z) + z s(z) s(−z)."""
        s = special.expit(z)
        return np.asarray(s + z * s * special.expit(-np.asarray(z)))


class Polynomial(Elementwise):
    """σ(z) = Σ_j coefficients_j z^j. ``linear`` is (0, 1) and ``quadratic`` (0, 0, 1).

    A network of polynomial units of degree p is one polynomial of degree p: its units are the terms of a tensor
    decomposition, which for p ≤ 2 is not unique.

    Examples
    --------
    >>> Polynomial(0.0, 0.0, 1.0).name, Polynomial(1.0, 0.0, 0.0, 2.0).name
    ('quadratic', 'polynomial(1.0,0.0,0.0,2.0)')
    >>> Polynomial(0.0, 0.0, 0.0, 1.0).hermite(3, 0.0)           # z³ = He_3 + 3 He_1
    array(6.)
    """

    def __init__(self, *coefficients: float) -> None:
        c = np.trim_zeros(np.asarray(coefficients, dtype=np.float64), "b")
        if c.ndim != 1 or c.size < 2 or not np.isfinite(c).all():
            raise InvalidInput(f"a polynomial activation needs finite coefficients of degree ≥ 1, got {coefficients}")
        self.coefficients: tuple[float, ...] = tuple(c.tolist())
        self._p = np.polynomial.Polynomial(c)
        known = {(0.0, 1.0): "linear", (0.0, 0.0, 1.0): "quadratic"}
        self.name = known.get(self.coefficients, f"polynomial({','.join(map(repr, self.coefficients))})")
        self.steps, self.torch = _horner(self.coefficients), ("Identity", ()) if self.name == "linear" else None
        self.homogeneity = c.size - 1 if np.count_nonzero(c) == 1 else None
        if not c[3::2].any():  # even up to a linear term
            self.reflection = Reflection(1.0, -2.0 * self.coefficients[1], 0.0)
        elif not c[2::2].any():  # odd up to a constant
            self.reflection = Reflection(-1.0, 0.0, 2.0 * self.coefficients[0])

    def __call__(self, z: Array) -> Array:
        """Σ_j c_j z^j, by Horner's rule."""
        return np.asarray(self._p(np.asarray(z, dtype=np.float64)))

    def derivative(self, z: Array) -> Array:
        """Σ_j j c_j z^{j−1}."""
        return np.asarray(self._p.deriv()(np.asarray(z, dtype=np.float64)))

    def hermite(self, k: int, b: ArrayLike, r: ArrayLike = 1.0) -> Array:
        """c_k(r, b) = r^k Σ_j p^{(k+2j)}(b) r^{2j}/(2^j j!): k-fold Stein, then the heat flow of p."""
        b, r = broadcast(b, r)
        total = np.zeros(b.shape)
        for j in range((len(self.coefficients) - 1 - k) // 2 + 1):
            total = total + self._p.deriv(k + 2 * j)(b) * r ** (k + 2 * j) / (2.0**j * factorial(j))
        return np.asarray(total)


def _horner(coefficients: tuple[float, ...]) -> tuple[Step, ...]:
    """(…(c_p z + c_{p−1}) z + …) z + c_0."""
    *lower, top = coefficients
    steps: list[Step] = []
    value: str | float = top
    for k in range(len(lower) - 1, -1, -1):
        steps.append(Step("Mul", (value, "z"), f"product{k}"))
        value = f"sum{k}" if k else "h"
        steps.append(Step("Add", (f"product{k}", lower[k]), value))
    return tuple(steps)
