"""z_k = log p_k − mean_j log p_j: logits of k classes are known up to a common shift, and here Σ_k z_k = 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax

from relumine.arrays import Array
from relumine.links.form import Form, sums_to_one


class Softmax(Form):
    """Probabilities of several classes; they are the parts themselves."""

    name = word = "softmax"
    recognised = True
    before = "logits of "
    note = (
        "the answers are probabilities of classes, and the network gives their logits. A shift common to all classes "
        "cannot be seen in them: the logits are those whose sum is zero"
    )
    torch = "Softmax"

    def refusal(self, Y: Array) -> str:
        """Rows that sum to 1."""
        return "" if sums_to_one(Y) else "needs probabilities (from 0 to 1) that sum to 1 in every row"

    def values(self, logs: Array) -> Array:
        """The logarithms less their mean."""
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))

    def answers(self, Z: Array) -> Array:
        """e^z_k / Σ_j e^z_j."""
        return np.asarray(softmax(Z, axis=1))

    def onnx(self, node: Callable[..., Any], value: str) -> list[Any]:
        """Softmax."""
        return [node("Softmax", [value], ["linked"], axis=1)]
