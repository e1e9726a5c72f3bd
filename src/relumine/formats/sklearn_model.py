"""The network inside a fitted scikit-learn MLP; reads its attributes, needs no import."""

from __future__ import annotations

from typing import Any

import numpy as np

from relumine.formats.parameters import Parameters
from relumine.results import InvalidInput

_SIGMAS = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "linear"}


def from_mlp(model: Any) -> Parameters:
    """The maps of a fitted MLPRegressor or MLPClassifier (up to the logits)."""
    kind = type(model).__name__
    if hasattr(model, "steps"):
        raise InvalidInput("from_sklearn reads the MLP itself; take it out of the pipeline: pipeline[-1]")
    if not all(hasattr(model, name) for name in ("hidden_layer_sizes", "activation")):
        raise InvalidInput(f"from_sklearn reads a scikit-learn MLPRegressor or MLPClassifier, got {kind}")
    if not hasattr(model, "coefs_"):
        raise InvalidInput(f"this {kind} is not fitted yet; call fit first")
    if model.activation not in _SIGMAS:
        raise InvalidInput(f"the activation {model.activation!r} of this {kind} is not known here")
    weights = [np.asarray(W.T, dtype=np.float64) for W in model.coefs_]
    biases = [np.asarray(b, dtype=np.float64) for b in model.intercepts_]
    return Parameters.of(weights, biases, None, _SIGMAS[model.activation])
