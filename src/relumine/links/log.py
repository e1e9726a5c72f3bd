"""z = log y: positive answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relumine.arrays import Array
from relumine.links.form import Form


class Exponential(Form):
    """Exponentials of the network."""

    name = word = "log"
    probabilities = False
    before = "log "
    note = "the network gives the logarithm of the answers"
    torch = "exp"

    def refusal(self, Y: Array) -> str:
        """None may be negative."""
        return "needs positive answers, and some are negative" if (Y < 0.0).any() else ""

    def values(self, logs: Array) -> Array:
        """log y."""
        return logs.copy()

    def answers(self, Z: Array) -> Array:
        """e^z."""
        return np.asarray(np.exp(Z))

    def onnx(self, node: Callable[..., Any], value: str) -> list[Any]:
        """Exp."""
        return [node("Exp", [value], ["linked"])]
