"""Activations with a kink at 0: ReLU, leaky ReLU, squared ReLU. All have their Hermite coefficients in closed form."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import eval_hermitenorm, ndtr

from relumine.activations.base import Elementwise, Reflection, Step
from relumine.activations.quadrature import broadcast, normal_pdf
from relumine.arrays import Array
from relumine.results import InvalidInput


class ReLU(Elementwise):
    """σ(z) = max(z, 0).

    Examples
    --------
    >>> import numpy as np
    >>> ReLU()(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    name = "relu"
    homogeneity = 1
    reflection = Reflection(1.0, -1.0, 0.0)
    kinks = (0.0,)
    steps = (Step("Relu", ("z",), "h"),)
    torch = ("ReLU", ())

    def __call__(self, z: Array) -> Array:
        """max(z, 0)."""
        return np.maximum(z, 0.0)

    def derivative(self, z: Array) -> Array:
        """1 where z ≥ 0, else 0."""
        return np.asarray(z >= 0.0, dtype=np.float64)

    def hermite(self, k: int, b: ArrayLike, r: ArrayLike = 1.0) -> Array:
        """c_0 = bΦ(b) + φ(b), c_1 = Φ(b), c_k = (−1)^k He_{k−2}(b) φ(b) at r = 1 (Awasthi 2021, Lemma 3.5).

        For r ≠ 1, σ(r z + b) = r σ(z + b/r); for r = 0 only c_0 = σ(b) is left.
        """
        t, scale, at_zero = _unit_scale(self, k, b, r)
        if k == 0:
            unit = t * ndtr(t) + normal_pdf(t)
        elif k == 1:
            unit = ndtr(t)
        else:
            unit = (-1.0) ** k * eval_hermitenorm(k - 2, t) * normal_pdf(t)
        return np.asarray(np.where(scale > 0.0, scale * unit, at_zero))

    def __repr__(self) -> str:
        return "ReLU()"


class LeakyReLU(Elementwise):
    """σ(z) = z for z ≥ 0, slope·z below; any slope but 1 (that is ``linear``). Slope −1 is |z|.

    Examples
    --------
    >>> import numpy as np
    >>> LeakyReLU(0.1)(np.array([-1.0, 2.0]))
    array([-0.1,  2. ])
    """

    homogeneity = 1
    kinks = (0.0,)

    def __init__(self, slope: float = 0.01) -> None:
        slope = float(slope)
        if not np.isfinite(slope) or slope == 1.0:
            raise InvalidInput(f"leaky_relu needs a finite slope other than 1 (for slope 1 use 'linear'), got {slope}")
        self.slope: Final = slope
        self.name = f"leaky_relu({slope!r})"
        # σ = ((1+s) z + (1−s)|z|)/2, and |z| does not see the sign
        self.reflection = Reflection(1.0, -(1.0 + slope), 0.0)
        self.torch = ("LeakyReLU", (slope,))
        # not ONNX's LeakyRelu, which keeps its slope in single precision: relu(z) − slope·relu(−z)
        self.steps = (
            Step("Relu", ("z",), "on"),
            Step("Neg", ("z",), "minus"),
            Step("Relu", ("minus",), "off"),
            Step("Mul", ("off", slope), "leak"),
            Step("Sub", ("on", "leak"), "h"),
        )

    def __call__(self, z: Array) -> Array:
        """z where z ≥ 0, else slope·z."""
        return np.where(z >= 0.0, z, self.slope * np.asarray(z))

    def derivative(self, z: Array) -> Array:
        """1 where z ≥ 0, else the slope."""
        return np.where(np.asarray(z) >= 0.0, 1.0, self.slope)

    def hermite(self, k: int, b: ArrayLike, r: ArrayLike = 1.0) -> Array:
        """σ(z) = slope·z + (1 − slope)·relu(z), and c_k(z) is b, r, 0, 0, …"""
        b, r = broadcast(b, r)
        linear = b if k == 0 else r if k == 1 else np.zeros_like(b)
        return np.asarray(self.slope * linear + (1.0 - self.slope) * RELU.hermite(k, b, r))

    def __repr__(self) -> str:
        return f"LeakyReLU({self.slope!r})"


class SquaredReLU(Elementwise):
    """σ(z) = max(z, 0)²: smooth once, homogeneous of degree 2.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredReLU()(np.array([-1.0, 2.0]))
    array([0., 4.])
    """

    name = "squared_relu"
    homogeneity = 2
    kinks = (0.0,)
    steps = (Step("Relu", ("z",), "on"), Step("Mul", ("on", "on"), "h"))

    def __call__(self, z: Array) -> Array:
        """max(z, 0)²."""
        positive = np.maximum(z, 0.0)
        return np.asarray(positive * positive)

    def derivative(self, z: Array) -> Array:
        """2 max(z, 0)."""
        return np.asarray(2.0 * np.maximum(z, 0.0))

    def hermite(self, k: int, b: ArrayLike, r: ArrayLike = 1.0) -> Array:
        """c_0 = (1 + b²)Φ(b) + bφ(b) and its derivatives in b: c_1 = 2(bΦ + φ), c_2 = 2Φ, c_3 = 2φ, … at r = 1."""
        t, scale, at_zero = _unit_scale(self, k, b, r)
        if k == 0:
            unit = (1.0 + t * t) * ndtr(t) + t * normal_pdf(t)
        elif k == 1:
            unit = 2.0 * (t * ndtr(t) + normal_pdf(t))
        elif k == 2:
            unit = 2.0 * ndtr(t)
        else:
            unit = 2.0 * (-1.0) ** (k - 3) * eval_hermitenorm(k - 3, t) * normal_pdf(t)
        return np.asarray(np.where(scale > 0.0, scale**2 * unit, at_zero))

    def __repr__(self) -> str:
        return "SquaredReLU()"


def _unit_scale(sigma: Elementwise, k: int, b: Any, r: Any) -> tuple[Array, Array, Array]:
    """(b/r, r, the value at r = 0), broadcast; b/r is harmless where r = 0."""
    b, r = broadcast(b, r)
    at_zero = sigma(b) if k == 0 else np.zeros_like(b)
    return b / np.where(r > 0.0, r, 1.0), r, at_zero


RELU: Final = ReLU()
