"""torch modules and back. Imported only when asked for: torch takes seconds; ``torch`` is None where it is absent."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from relumine import activations
from relumine.activations import steps_of
from relumine.arrays import Array
from relumine.formats.parameters import Parameters
from relumine.links import form_of
from relumine.results import InvalidInput

try:
    torch: Any = import_module("torch")
except ImportError:
    torch = None
nn: Any = None if torch is None else torch.nn
Module: Any = object if torch is None else nn.Module


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


class Applied(Module):  # type: ignore[misc,unused-ignore]
    """A function of torch that has no module of its own, by name: exp at the end of the link "log"."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, z: Any) -> Any:
        """The function of z, elementwise."""
        return getattr(torch, self.name)(z)


class WithSkip(Module):  # type: ignore[misc,unused-ignore]
    """Linear–σ–Linear plus a linear map of the input: the affine part of a network."""

    def __init__(self, units: Any, skip: Any) -> None:
        super().__init__()
        self.units, self.skip = units, skip

    def forward(self, x: Any) -> Any:
        """Σ a_i σ(w_i·x + b_i) + v·x + c, (n, q)."""
        return self.units(x) + self.skip(x)


def to_module(p: Parameters, link: str = "") -> Any:
    """``nn.Sequential(Linear, σ, …, Linear)`` in double precision, with a skip connection where v is not zero.

    With a ``link`` the last layer is Sigmoid, Softmax or exp; two classes are the softmax of (0, z).
    """
    weights, biases, v = p.weights, p.biases, p.v
    if link and form_of(link).stacked:
        weights, biases = (*weights[:-1], _two_rows(weights[-1])), (*biases[:-1], _two_rows(biases[-1]))
        v = None if v is None else _two_rows(v)
    layers = []
    for k, (W, b) in enumerate(zip(weights, biases)):
        layers += [_sigma(p), _linear(W, b)] if k else [_linear(W, b)]
    units = nn.Sequential(*layers)
    if v is not None and v.any():
        if len(weights) > 2:
            raise InvalidInput("the head has an affine part, which is no chain of layers: use .safetensors or .onnx")
        units = nn.Sequential(WithSkip(units, _linear(v, None)))
    if link:
        name = form_of(link).torch
        layer = nn.Softmax(1) if name == "Softmax" else getattr(nn, name)() if hasattr(nn, name) else Applied(name)
        units = nn.Sequential(*units, layer)
    return units[0] if len(units) == 1 else units


def _two_rows(part: Array) -> Array:
    """Zeros above the parameters of one output: logits (0, z)."""
    return np.stack([np.zeros_like(part), part])


def _linear(weight: Array, bias: Array | None) -> Any:
    W = torch.from_numpy(np.array(np.atleast_2d(weight), order="C"))
    layer = nn.Linear(W.shape[1], W.shape[0], bias=bias is not None, dtype=torch.float64)
    layer.weight.data = W
    if bias is not None:
        layer.bias.data = torch.from_numpy(np.array(np.atleast_1d(bias), order="C"))
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
    """The maps of Linear, σ, …, Linear (Dropout and Flatten are left out), or of what :func:`to_module` made."""
    skip = None
    if isinstance(module, WithSkip):
        module, skip = module.units, _array(module.skip.weight)
    if not isinstance(module, nn.Sequential):
        raise InvalidInput(
            f"from_torch reads nn.Sequential(Linear, activation, …, Linear), got {type(module).__name__}"
        )
    layers = [layer for layer in module if not isinstance(layer, nn.Dropout | nn.Flatten)]
    linear = [isinstance(layer, nn.Linear) for layer in layers]  # must be yes, no, yes, …, yes
    if len(layers) < 3 or linear != [k % 2 == 0 for k in range(len(layers))] or not linear[-1]:
        names = ", ".join(type(layer).__name__ for layer in layers)
        raise InvalidInput(f"from_torch reads Linear and activations in turn; got {names or 'nothing'}")
    sigmas = {_name(layer) for layer in layers[1::2]}
    if len(sigmas) > 1:
        raise InvalidInput(f"all layers must have one activation; got {', '.join(sorted(sigmas))}")
    weights = [_array(layer.weight) for layer in layers[::2]]
    biases = [np.zeros(len(W)) if layer.bias is None else _array(layer.bias) for W, layer in zip(weights, layers[::2])]
    return Parameters.of(weights, biases, skip, sigmas.pop())


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
