"""What the package asks of an activation, and a base class that answers most of it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from relumine.activations.quadrature import hermite_coefficient
from relumine.arrays import Array


class Reflection(NamedTuple):
    """σ(−z) = ``scale``·σ(z) + ``slope``·z + ``constant``."""

    scale: float
    slope: float
    constant: float


class Step(NamedTuple):
    """One elementwise operation by its ONNX name: ``output = op(inputs)``. Inputs are names or numbers."""

    op: str
    inputs: tuple[str | float, ...]
    output: str


@runtime_checkable
class Activation(Protocol):
    """What the package needs to know about σ; see the package's text for the meaning of each member."""

    @property
    def name(self) -> str:
        """The name that :func:`get` turns back into this activation."""

    @property
    def homogeneity(self) -> int | None:
        """The degree p of σ(t z) = t^p σ(z), t > 0, or None."""

    @property
    def reflection(self) -> Reflection | None:
        """How σ(−z) follows from σ(z), or None where it does not up to an affine function."""

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points where σ is not smooth: integrals are split there."""

    def __call__(self, z: Array) -> Array:
        """σ(z), elementwise."""

    def derivative(self, z: Array) -> Array:
        """σ'(z), elementwise (any one-sided value at a kink)."""

    def hermite(self, k: int, b: ArrayLike, r: ArrayLike = 1.0) -> Array:
        """c_k(r, b) = E[σ(r z + b) He_k(z)], z ~ N(0, 1), elementwise in b and r ≥ 0."""


class Elementwise:
    """An activation to inherit from: give it a ``name``, ``__call__`` and ``derivative``.

    The defaults: not homogeneous, no reflection, smooth, Hermite coefficients by quadrature (split at ``kinks``),
    equal to any activation of the same name.

    ``steps``: how ONNX graphs and torch modules compute σ, from ``z`` to ``h``; without them it is not exported.
    ``torch``: the class of ``torch.nn`` and its arguments, where there is one.

    Examples
    --------
    >>> import numpy as np
    >>> class Softplus(Elementwise):
    ...     name = "softplus"
    ...     reflection = Reflection(1.0, -1.0, 0.0)       # log(1 + e^−z) = log(1 + e^z) − z
    ...     def __call__(self, z):
    ...         return np.logaddexp(0.0, z)
    ...     def derivative(self, z):
    ...         return 0.5 + 0.5 * np.tanh(0.5 * z)
    >>> from relumine.activations import check_activation
    >>> check_activation(Softplus())
    >>> round(float(Softplus().hermite(1, 0.0)), 12)
    0.5
    """

    name: str
    homogeneity: int | None = None
    reflection: Reflection | None = None
    kinks: tuple[float, ...] = ()
    steps: tuple[Step, ...] = ()
    torch: tuple[str, tuple[float, ...]] | None = None

    def __call__(self, z: Array) -> Array:
        """σ(z), elementwise."""
        raise NotImplementedError

    def derivative(self, z: Array) -> Array:
        """σ'(z), elementwise (any one-sided value at a kink)."""
        raise NotImplementedError

    def hermite(self, k: int, b: ArrayLike, r: ArrayLike = 1.0) -> Array:
        """c_k(r, b) by quadrature."""
        return hermite_coefficient(self, self.kinks, k, b, r)

    def __repr__(self) -> str:
        return f"<activation {self.name}>"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Elementwise) and type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def steps_of(activation: Activation) -> tuple[Step, ...]:
    """The operations that compute σ elsewhere; () if it does not say them."""
    return getattr(activation, "steps", ())
