"""Deep networks as torch modules and back. Imported only when asked for, as torch takes seconds."""

from __future__ import annotations

from typing import Any

import numpy as np

from relumine.formats.deep import DeepParameters
from relumine.formats.parameters import Parameters
from relumine.formats.torch_module import _array, _linear, _name, _sigma, linked, nn, torch, two_rows
from relumine.links import form_of
from relumine.results import InvalidInput

__all__ = ["from_module", "to_module"]


def to_module(p: DeepParameters, link: str = "") -> Any:
    """``nn.Sequential(Linear, σ, …, Linear)`` and the layer of the link.

    A network whose head has a linear part is no chain and is refused.
    """
    if p.v is not None:
        raise InvalidInput("the head has an affine part, which is no chain of layers: use .safetensors or .onnx")
    if link and form_of(link).stacked:
        weights, biases = (*p.weights[:-1], two_rows(p.weights[-1])), (*p.biases[:-1], two_rows(p.biases[-1]))
        p = p._replace(weights=weights, biases=biases)
    arrays = p.arrays()
    layers = []
    for k in range(len(p.weights)):
        if k:
            layers.append(_sigma(Parameters(arrays["W0"], arrays["b0"], arrays["b0"], None, None, p.activation)))
        layers.append(_linear(torch.from_numpy(arrays[f"W{k}"]), torch.from_numpy(arrays[f"b{k}"])))
    return linked(nn.Sequential(*layers), link)


def from_module(module: Any) -> DeepParameters:
    """The maps of an ``nn.Sequential`` (Dropout and Flatten are left out)."""
    if not isinstance(module, nn.Sequential):
        raise InvalidInput(
            f"from_torch reads nn.Sequential(Linear, activation, …, Linear), got {type(module).__name__}"
        )
    layers = [layer for layer in module if not isinstance(layer, nn.Dropout | nn.Flatten)]
    linear_ones = [isinstance(layer, nn.Linear) for layer in layers]
    if len(layers) < 3 or linear_ones != [k % 2 == 0 for k in range(len(layers))] or not linear_ones[-1]:
        names = ", ".join(type(layer).__name__ for layer in layers)
        raise InvalidInput(f"from_torch reads Linear and activations in turn; got {names or 'nothing'}")
    sigmas = {_name(layer) for layer in layers[1::2]}
    if len(sigmas) > 1:
        raise InvalidInput(f"all layers must have one activation; got {', '.join(sorted(sigmas))}")
    weights = [_array(layer.weight) for layer in layers[::2]]
    biases = [np.zeros(len(W)) if layer.bias is None else _array(layer.bias) for W, layer in zip(weights, layers[::2])]
    if len(weights[-1]) == 1:
        weights[-1], biases[-1] = weights[-1][0], biases[-1][0]
    return DeepParameters(tuple(weights), tuple(biases), None, sigmas.pop())
