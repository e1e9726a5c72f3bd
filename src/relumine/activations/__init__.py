"""Activations σ: value, derivative, parity, homogeneity, reflection, Hermite coefficients.

An activation is one class with the attributes and methods of :class:`Activation`. Nothing else in the
package asks *which* activation it has; it asks what the activation can do:

- ``homogeneity = p``: σ(t z) = t^p σ(z) for t > 0, so the scale of (w, b) can be moved into a.
- ``reflection = (s, p, q)``: σ(−z) = s σ(z) + p z + q, so the sign of (w, b) can be moved into a and the
  affine part. ReLU: (1, −1, 0). An even σ: (1, 0, 0). An odd σ: (−1, 0, 0). Sigmoid: (−1, 0, 1).
- ``kinks``: where σ is not smooth.
- ``hermite(k, b, r)``: c_k(r, b) = E[σ(r z + b) He_k(z)] for z ~ N(0, 1).
- ``steps`` (optional): the operations that compute it in an ONNX graph or a torch module.

To add one, inherit from :class:`Elementwise`, run :func:`check_activation`, and :func:`register` it if files
should know its name.
"""

from relumine.activations.base import Activation, Elementwise, Reflection, Step, steps_of
from relumine.activations.check import check_activation
from relumine.activations.piecewise import RELU, LeakyReLU, ReLU, SquaredReLU
from relumine.activations.quadrature import gaussian_mean, hermite_coefficient, normal_pdf
from relumine.activations.registry import get, names, register
from relumine.activations.smooth import GELU, Erf, Polynomial, Sigmoid, SiLU, Tanh

__all__ = [
    "GELU",
    "RELU",
    "Activation",
    "Elementwise",
    "Erf",
    "LeakyReLU",
    "Polynomial",
    "ReLU",
    "Reflection",
    "SiLU",
    "Sigmoid",
    "SquaredReLU",
    "Step",
    "Tanh",
    "check_activation",
    "gaussian_mean",
    "get",
    "hermite_coefficient",
    "names",
    "normal_pdf",
    "register",
    "steps_of",
]
