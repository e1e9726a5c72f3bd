"""The network inside a fitted scikit-learn MLPRegressor; reads its attributes, needs no import."""

from __future__ import annotations

from typing import Any

import numpy as np

from relumine.formats.parameters import Parameters
from relumine.results import InvalidInput

__all__ = ["from_mlp"]

_SIGMAS = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "linear"}


def from_mlp(model: Any) -> Parameters:
    """Parameters of an MLPRegressor with one hidden layer."""
    kind = type(model).__name__
    if hasattr(model, "steps"):
        raise InvalidInput("from_sklearn reads the MLPRegressor itself; take it out of the pipeline: pipeline[-1]")
    if not all(hasattr(model, name) for name in ("hidden_layer_sizes", "activation")):
        raise InvalidInput(f"from_sklearn reads a scikit-learn MLPRegressor, got {kind}")
    if not hasattr(model, "coefs_"):
        raise InvalidInput(f"this {kind} is not fitted yet; call fit first")
    if len(model.coefs_) != 2:
        raise InvalidInput(f"this {kind} has {len(model.coefs_) - 1} hidden layers; a Network has one")
    if model.out_activation_ != "identity":
        raise InvalidInput(f"the output of this {kind} passes through {model.out_activation_}; a Network's does not")
    if model.activation not in _SIGMAS:
        raise InvalidInput(f"the activation {model.activation!r} of this {kind} is not known here")
    (W, a), (b, c) = model.coefs_, model.intercepts_
    W, a, b, c = (np.asarray(part, dtype=np.float64) for part in (W.T, a.T, b, c))
    return Parameters(W, b, a[0] if len(a) == 1 else a, None, c[0] if len(a) == 1 else c, _SIGMAS[model.activation])
