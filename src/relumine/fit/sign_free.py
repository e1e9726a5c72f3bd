"""The sign-free form: a unit without its sign, and the way back to the network.

Where σ(−z) = σ(z) + p z + q, the even part e(z) = σ(z) + (p z + q)/2 does not care about the sign of (w, b), and
σ differs from it by an affine function only. The fit uses e; the affine part of the model takes the rest.
For ReLU, e(z) = |z|/2. Other activations are used as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relumine.activations import Activation
from relumine.arrays import Array
from relumine.network import Network


@dataclass(frozen=True)
class Shape:
    """The function e that the fit places along each direction, with its derivative.

    ``half`` = (p/2, q/2): e(z) = σ(z) + half·(z, 1). ``absolute``: κ if e(z) = κ|z|, else None.
    """

    activation: Activation
    half: tuple[float, float]
    absolute: float | None

    @property
    def homogeneous(self) -> bool:
        """Whether the scale of (w, b) can be moved into a."""
        return self.activation.homogeneity is not None and self.half[1] == 0.0

    @property
    def degree(self) -> float | None:
        """k if e(z) = e'(z)·z/k for every z, else None: e is homogeneous of that degree."""
        degree = self.activation.homogeneity
        return degree if self.homogeneous and degree and (degree == 1 or self.half[0] == 0.0) else None

    @property
    def costly(self) -> bool:
        """Whether e takes longer than the matrix products around it: a smooth one does."""
        return not self.activation.kinks

    def value(self, Z: Array, out: Array | None = None) -> Array:
        """e(Z), elementwise; in ``out`` where that is possible."""
        if self.absolute is not None:
            F = np.abs(Z, out=out)
            F *= self.absolute
            return F
        F = np.asarray(self.activation(_double(Z)), dtype=Z.dtype)
        slope, constant = self.half
        return F + (slope * Z + constant) if slope or constant else F

    def derivative(self, Z: Array, out: Array | None = None) -> Array:
        """e'(Z), elementwise; in ``out`` where that is possible."""
        if self.absolute is not None:
            return _signed(self.absolute, Z, np.empty_like(Z) if out is None else out)
        D = np.asarray(self.activation.derivative(_double(Z)), dtype=Z.dtype)
        return D + self.half[0] if self.half[0] else D

    def network(self, U: Array, A: Array, tau: Array) -> Network:
        """Σ_i A_i e(u_i·x̃) + τᵀx̃ as a network; U (m, d+1), A (m, q), τ (d+1, q), x̃ = (x, 1)."""
        slope, constant = self.half
        v = tau[:-1].T + slope * A.T @ U[:, :-1]
        c = tau[-1] + A.T @ (slope * U[:, -1] + constant)
        return Network(U[:, :-1], U[:, -1], A.T, self.activation, v, c)


def _double(Z: Array) -> Array:
    """Activations are written for double precision: in single precision a formula may overflow."""
    return np.asarray(Z, dtype=np.float64)


def _signed(size: float, Z: Array, out: Array) -> Array:
    """size·sign(Z), where ±0 has a sign, too: by bits, because numpy's copysign is slow."""
    bits = np.dtype(f"u{Z.itemsize}")
    number, minus = (np.asarray(value, dtype=Z.dtype).view(bits) for value in (size, -0.0))
    np.bitwise_and(Z.view(bits), minus, out=out.view(bits))
    np.bitwise_xor(out.view(bits), number, out=out.view(bits))
    return out


def shape_of(activation: Activation, *, sign_free: bool = True) -> Shape:
    """The sign-free form of σ where there is one, σ itself otherwise.

    Examples
    --------
    >>> from relumine.activations import RELU
    >>> shape_of(RELU).value(np.array([-3.0, 1.0]))
    array([1.5, 0.5])
    """
    reflection = activation.reflection
    if not sign_free or reflection is None or reflection.scale != 1.0:
        return Shape(activation, (0.0, 0.0), None)
    half = (reflection.slope / 2.0, reflection.constant / 2.0)
    form = Shape(activation, half, None)
    if activation.homogeneity == 1:  # even and homogeneous of degree 1: a multiple of |z|
        return Shape(activation, half, float(form.value(np.ones(1))[0]))
    return form
