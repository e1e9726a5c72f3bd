"""What a link is: the function from the values of a network to the answers that are observed. One subclass for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from relumine.arrays import Array

_SUM = 1e-5  # by which a sum of probabilities may differ from 1: single precision, hundreds of classes


class Form(ABC):
    """A link. The values z of a network are differences of logarithms of *parts*: numbers computed from the answers.

    ``name``: as a user asks for it; ``word``: as a file names it, the same unless several forms share a name.
    ``recognised``: link="auto" may choose it. ``probabilities``: answers are some, so parts may have too few digits.
    ``before``: what stands before the name of the target in the network's formula. ``note``: what a reader must know.
    ``torch``: the layer of ``torch.nn`` that ends a module, or a function of torch; ``stacked``: it takes the
    logits (0, z) of two classes.
    """

    name: ClassVar[str]
    word: ClassVar[str]
    recognised: ClassVar[bool] = False
    probabilities: ClassVar[bool] = True
    before: ClassVar[str]
    note: ClassVar[str]
    torch: ClassVar[str]
    stacked: ClassVar[bool] = False

    @abstractmethod
    def refusal(self, Y: Array) -> str:
        """Why Y (n, q) cannot be answers through this link; "" if they can."""

    def parts(self, Y: Array) -> Array:
        """The numbers whose logarithms are taken, (n, r)."""
        return Y

    @abstractmethod
    def values(self, logs: Array) -> Array:
        """Values of the network, (n, q), from the logarithms of the parts, (n, r)."""

    @abstractmethod
    def answers(self, Z: Array) -> Array:
        """What is observed for values of the network, (n,) or (n, q)."""

    @abstractmethod
    def onnx(self, node: Callable[..., Any], value: str) -> list[Any]:
        """ONNX nodes from ``value`` to ``linked``, made by ``node(op, inputs, outputs)``; inputs: names or numbers."""


def in_range(Y: Array) -> bool:
    """Whether all answers lie in [0, 1]."""
    return bool(((Y >= 0.0) & (Y <= 1.0)).all()) and len(Y) > 0


def sums_to_one(Y: Array) -> bool:
    """Whether the answers are probabilities of several classes."""
    return in_range(Y) and Y.shape[1] > 1 and bool((np.abs(Y.sum(axis=1) - 1.0) <= _SUM).all())
