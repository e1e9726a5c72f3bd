"""From names to activations, so that a file or a command line can hold one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from relumine.activations.base import Activation
from relumine.activations.piecewise import RELU, LeakyReLU, SquaredReLU
from relumine.activations.smooth import GELU, Erf, Polynomial, Sigmoid, SiLU, Tanh
from relumine.results import InvalidInput

_NAMED: Final[dict[str, Activation]] = {
    "relu": RELU,
    "leaky_relu": LeakyReLU(),
    "squared_relu": SquaredReLU(),
    "sigmoid": Sigmoid(),
    "tanh": Tanh(),
    "erf": Erf(),
    "gelu": GELU(),
    "silu": SiLU(),
    "linear": Polynomial(0.0, 1.0),
    "quadratic": Polynomial(0.0, 0.0, 1.0),
}
_FAMILIES: Final[dict[str, Callable[..., Activation]]] = {"leaky_relu": LeakyReLU, "polynomial": Polynomial}


def names() -> tuple[str, ...]:
    """Names that :func:`get` knows; ``leaky_relu(slope)`` and ``polynomial(c0,c1,…)`` take numbers."""
    return (*_NAMED, *(f"{family}(…)" for family in _FAMILIES))


def register(activation: Activation) -> Activation:
    """Let :func:`get` (and model files) find an activation by its name; returns it."""
    if activation.name in _NAMED and _NAMED[activation.name] != activation:
        raise InvalidInput(f"the name {activation.name!r} is taken by {_NAMED[activation.name]!r}; choose another")
    _NAMED[activation.name] = activation
    return activation


def get(activation: str | Activation) -> Activation:
    """The activation of that name; an activation object passes through.

    Examples
    --------
    >>> get("relu"), get("leaky_relu(0.2)")
    (ReLU(), LeakyReLU(0.2))
    """
    if not isinstance(activation, str):
        if isinstance(activation, Activation):
            return activation
        raise TypeError(f"activation must be a name or an Activation, got {type(activation).__name__}")
    if activation in _NAMED:
        return _NAMED[activation]
    call = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", activation)
    if call is None or call[1] not in _FAMILIES:
        raise InvalidInput(f"unknown activation {activation!r}; known: {', '.join(names())}")
    try:
        numbers = [float(part) for part in call[2].split(",")]
    except ValueError:
        raise InvalidInput(
            f"{activation!r}: what stands in the brackets must be numbers, as in leaky_relu(0.1)"
        ) from None
    try:
        return _FAMILIES[call[1]](*numbers)
    except TypeError:
        raise InvalidInput(f"{activation!r}: {call[1]} does not take {len(numbers)} numbers") from None
