"""Activations σ: value, derivative, parity, homogeneity, reflection, Hermite coefficients.

An activation is one class with the attributes and methods of :class:`Activation`. Nothing else in the
package asks *which* activation it has; it asks what the activation can do:

- ``homogeneity = p``: σ(t z) = t^p σ(z) for t > 0, so the scale of (w, b) can be moved into a.
- ``reflection = (s, p, q)``: σ(−z) = s σ(z) + p z + q, so the sign of (w, b) can be moved into a and the
  affine part. ReLU: (1, −1, 0). An even σ: (1, 0, 0). An odd σ: (−1, 0, 0).
- ``hermite(k, b, r)``: c_k(r, b) = E[σ(r z + b) He_k(z)] for z ~ N(0, 1).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import eval_hermitenorm, ndtr

Array = NDArray[np.float64]

__all__ = ["RELU", "Activation", "ReLU", "Reflection", "get", "names", "normal_pdf"]


class Reflection(NamedTuple):
    """σ(−z) = ``scale``·σ(z) + ``slope``·z + ``constant``."""

    scale: float
    slope: float
    constant: float


@runtime_checkable
class Activation(Protocol):
    """What the package needs to know about σ; see the module's text for the meaning of each member."""

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


def normal_pdf(x: ArrayLike) -> Array:
    """φ(x), the standard normal density."""
    t = np.asarray(x, dtype=np.float64)
    return np.asarray(np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi))


class ReLU:
    """σ(z) = max(z, 0).

    Examples
    --------
    >>> import numpy as np
    >>> ReLU()(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    name: Final = "relu"
    homogeneity: Final = 1
    reflection: Final = Reflection(1.0, -1.0, 0.0)
    kinks: Final = (0.0,)

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
        b, r = np.broadcast_arrays(np.asarray(b, dtype=np.float64), np.asarray(r, dtype=np.float64))
        safe = np.where(r > 0.0, r, 1.0)
        t = b / safe
        if k == 0:
            unit = t * ndtr(t) + normal_pdf(t)
        elif k == 1:
            unit = ndtr(t)
        else:
            unit = (-1.0) ** k * eval_hermitenorm(k - 2, t) * normal_pdf(t)
        at_zero = np.maximum(b, 0.0) if k == 0 else np.zeros_like(b)
        return np.asarray(np.where(r > 0.0, safe * unit, at_zero))

    def __repr__(self) -> str:
        return "ReLU()"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ReLU)

    def __hash__(self) -> int:
        return hash(self.name)


RELU: Final = ReLU()
_REGISTRY: Final[dict[str, Activation]] = {"relu": RELU}


def names() -> tuple[str, ...]:
    """Names that :func:`get` knows."""
    return tuple(_REGISTRY)


def get(activation: str | Activation) -> Activation:
    """The activation of that name; an activation object passes through.

    Examples
    --------
    >>> get("relu")
    ReLU()
    """
    if not isinstance(activation, str):
        if isinstance(activation, Activation):
            return activation
        raise TypeError(f"activation must be a name or an Activation, got {type(activation).__name__}")
    try:
        return _REGISTRY[activation]
    except KeyError:
        raise ValueError(f"unknown activation {activation!r}; known: {', '.join(names())}") from None
