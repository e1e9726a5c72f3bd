"""z = log p − log(1 − p): one probability for each output, or those of two classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from relumine.arrays import Array
from relumine.links.form import Form, in_range, sums_to_one


class Logit(Form):
    """One probability p for each output; its parts are p and 1 − p."""

    name = word = "logit"
    recognised = True
    before = "logit of "
    note = "the answers are probabilities, and the network gives their logits log p − log(1 − p)"
    torch = "Sigmoid"

    def refusal(self, Y: Array) -> str:
        """Probabilities lie in [0, 1]."""
        return "" if in_range(Y) else "needs probabilities, and some answers are not in [0, 1]"

    def parts(self, Y: Array) -> Array:
        """p and 1 − p, (n, 2q)."""
        return np.concatenate([Y, 1.0 - Y], axis=1)

    def values(self, logs: Array) -> Array:
        """log p − log(1 − p)."""
        half = logs.shape[1] // 2
        return np.asarray(logs[:, :half] - logs[:, half:])

    def answers(self, Z: Array) -> Array:
        """p = 1/(1 + e^−z)."""
        return np.asarray(expit(Z))

    def onnx(self, node: Callable[..., Any], value: str) -> list[Any]:
        """Sigmoid."""
        return [node("Sigmoid", [value], ["linked"])]


class TwoClasses(Logit):
    """Two columns, 1 − p and p, are one logit."""

    word = "two classes"
    torch, stacked = "Softmax", True

    def refusal(self, Y: Array) -> str:
        """Two columns that sum to 1."""
        return "" if Y.shape[1] == 2 and sums_to_one(Y) else "needs two columns that sum to 1"

    def parts(self, Y: Array) -> Array:
        """p and 1 − p, each with the digits that the box gave it."""
        return Y[:, ::-1]

    def answers(self, Z: Array) -> Array:
        """(1 − p, p), each with all its digits."""
        return np.column_stack([expit(-Z), expit(Z)])

    def onnx(self, node: Callable[..., Any], value: str) -> list[Any]:
        """Sigmoid of (−z, z)."""
        both = node("Concat", ["minus", value], ["pair"], axis=1)
        return [node("Neg", [value], ["minus"]), both, node("Sigmoid", ["pair"], ["linked"])]
