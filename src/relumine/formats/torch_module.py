"""torch modules and back. Imported only when asked for: torch takes seconds; ``torch`` is None where it is absent."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from relumine import activations
from relumine.activations import steps_of
from relumine.formats.parameters import Array, Parameters
from relumine.links import form_of
from relumine.results import InvalidInput

try:
    torch: Any = import_module("torch")
except ImportError:
    torch = None
nn: Any = None if torch is None else torch.nn
Module: Any = object if torch is None else nn.Module

__all__ = ["Exp", "Sigma", "WithSkip", "from_module", "linked", "to_module", "two_rows"]


class Sigma(Module):  # type: ignore[misc,unused-ignore]
    """An activation torch has no module for (squared ReLU, erf, polynomials, your own): its steps, one by one."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, z: Any) -> Any:
        """σ(z), differentiable."""
        known: dict[str, Any] = {"z": z}
        for step in steps_of(activations.get(self.name)):
            values = [
                known[value] if isinstance(value, str) else torch.as_tensor(value, dtype=z.dtype)
                for value in step.inputs
            ]
            known[step.output] = getattr(torch, step.op.lower())(*values)
        return known["h"]


class Exp(Module):  # type: ignore[misc,unused-ignore]
    """The link "log", which torch has no module for."""

    def forward(self, z: Any) -> Any:
        """e^z."""
        return torch.exp(z)


class WithSkip(Module):  # type: ignore[misc,unused-ignore]
    """Linear–σ–Linear plus a linear map of the input: the affine part of a network."""

    def __init__(self, units: Any, skip: Any) -> None:
        super().__init__()
        self.units, self.skip = units, skip

    def forward(self, x: Any) -> Any:
        """Σ a_i σ(w_i·x + b_i) + v·x + c, (n, q)."""
        return self.units(x) + self.skip(x)


def to_module(p: Parameters, link: str = "") -> Any:
    """``nn.Sequential(Linear, σ, Linear)`` in double precision, with a skip connection where v is not zero.

    With a ``link`` the last layer is Sigmoid, Softmax or Exp; two classes are the softmax of (0, z).
    """
    if link and form_of(link).stacked:
        one = p.arrays()
        p = p._replace(a=two_rows(one["a"]), v=two_rows(one["v"]), c=two_rows(one["c"]))
    arrays = {name: torch.from_numpy(array) for name, array in p.arrays().items()}
    hidden = _linear(arrays["W"], arrays["b"])
    out = _linear(torch.atleast_2d(arrays["a"]), torch.atleast_1d(arrays["c"]))
    units = nn.Sequential(hidden, _sigma(p), out)
    if bool(arrays["v"].any()):
        units = nn.Sequential(WithSkip(units, _linear(torch.atleast_2d(arrays["v"]), None)))
    module = linked(units, link)
    return module[0] if len(module) == 1 else module


def linked(module: Any, link: str) -> Any:
    """The layers of a module and that of the link."""
    layers = {"Sigmoid": nn.Sigmoid, "Exp": Exp, "Softmax": lambda: nn.Softmax(1)}
    return nn.Sequential(*module, layers[form_of(link).torch]()) if link else module


def two_rows(part: Array) -> Array:
    """Zeros above the parameters of one output: logits (0, z)."""
    return np.stack([np.zeros_like(part), part])


def _linear(weight: Any, bias: Any) -> Any:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=torch.float64)
    layer.weight.data = weight
    if bias is not None:
        layer.bias.data = bias
    return layer


def _sigma(p: Parameters) -> Any:
    sigma = activations.get(p.activation)
    layer: tuple[str, tuple[float, ...]] | None = getattr(sigma, "torch", None)
    if layer is not None:
        return getattr(nn, layer[0])(*layer[1])
    if steps_of(sigma):
        return Sigma(sigma.name)
    raise InvalidInput(f"the activation {sigma.name} has no torch module")


def from_module(module: Any) -> Parameters:
    """Parameters of Linear–σ–Linear (Dropout is left out, as in evaluation), or of what :func:`to_module` made."""
    skip = None
    if isinstance(module, WithSkip):
        module, skip = module.units, _array(module.skip.weight)
    if not isinstance(module, nn.Sequential):
        raise InvalidInput(f"from_torch reads nn.Sequential(Linear, activation, Linear), got {type(module).__name__}")
    layers = [layer for layer in module if not isinstance(layer, nn.Dropout)]
    linear = [isinstance(layer, nn.Linear) for layer in layers]
    if linear != [True, False, True]:
        names = ", ".join(type(layer).__name__ for layer in layers)
        raise InvalidInput(f"from_torch reads Linear, activation, Linear; got {names or 'nothing'}")
    first, sigma, last = layers
    W, a = _array(first.weight), _array(last.weight)
    b = np.zeros(len(W)) if first.bias is None else _array(first.bias)
    c = np.zeros(len(a)) if last.bias is None else _array(last.bias)
    if len(a) == 1:
        return Parameters(W, b, a[0], None if skip is None else skip[0], c[0], _name(sigma))
    return Parameters(W, b, a, skip, c, _name(sigma))


def _name(layer: Any) -> str:
    """σ of a torch module."""
    if isinstance(layer, Sigma):
        return layer.name
    if isinstance(layer, nn.LeakyReLU):
        return f"leaky_relu({float(layer.negative_slope)!r})"
    for name in activations.names():
        known = None if "(" in name else getattr(activations.get(name), "torch", None)
        if known == (type(layer).__name__, ()) and getattr(layer, "approximate", "none") == "none":
            return name
    raise InvalidInput(
        f"the activation {type(layer).__name__} is not known here; known: {', '.join(activations.names())}"
    )


def _array(parameter: Any) -> Array:
    return np.asarray(parameter.detach().cpu().to(torch.float64).numpy(), dtype=np.float64)
