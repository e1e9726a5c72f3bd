"""The box as the search sees it: a plain number per row, counted, remembered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relumine.arrays import Array
from relumine.extraction.log import Log

ROUNDING = 16.0 * float(np.finfo(float).eps)  # relative error of an answer: measured 1e-15 … 2e-15 for 784-128-128-1
# Numbers of the rows remembered (64 MB) up to which those beside others are, too: the normals of 784-128-1 take 200 000
# rows, 1.2 GB, in 256 places.
_FEW = 1 << 23


class OutOfBudget(Exception):
    """The next call would ask more rows than allowed, or the time is up."""


class Asked:
    """ρ·f(x): several outputs as one by fixed random weights, so that what bends in any of them bends in this one.

    ``log`` holds the rows asked and their answers (n, q); of those `beside` others only the first.
    """

    def __init__(
        self,
        ask: Callable[[Array], Array],
        rng: np.random.Generator,
        budget: float,
        over: Callable[[], bool],
        plain: bool | None = None,
    ) -> None:
        self._ask, self._rng, self.budget, self._over = ask, rng, budget, over
        self._mix: Array | None = None
        self.log = Log()
        self.count = 0
        self._asked_for, self.plain = plain, True

    def values(self, X: Array, remember: bool = True) -> Array:
        """All outputs, (n, q)."""
        if self.count + len(X) > self.budget:
            raise OutOfBudget(f"{self.budget:.0f} queries were allowed")
        if self._over():
            raise OutOfBudget("the time is up")
        answer = np.asarray(self._ask(X), dtype=np.float64)
        self.plain = answer.ndim == 1 if self._asked_for is None else self._asked_for
        Y = answer[:, None] if answer.ndim == 1 else answer
        self.count += len(X)
        if remember:
            self.log.append(X, Y)
        return Y

    def __call__(self, X: Array) -> Array:
        """One number per row."""
        Y = self.values(X)
        return np.asarray(Y @ self.mix(Y))

    def beside(self, X: Array) -> Array:
        """The same at rows so near to others that they show nothing else: remembered only while there are few."""
        Y = self.values(X, len(self.log) * X.shape[1] < _FEW)
        return np.asarray(Y @ self.mix(Y))

    def mix(self, Y: Array) -> Array:
        """ρ (q,): from the first answers (n, q), every output about as loud as the others."""
        if self._mix is None:
            loud = np.maximum(np.abs(Y).max(axis=0), 1e-300)
            self._mix = self._rng.choice([-1.0, 1.0], size=Y.shape[1]) * self._rng.uniform(0.5, 1.0, Y.shape[1]) / loud
            self._mix *= float(loud.max())
            if len(loud) == 1:
                self._mix = np.ones(1)
        return self._mix

    def data(self) -> tuple[Array, Array]:
        """Every row remembered, and its answers."""
        return self.log.whole()

    def since(self, mark: int) -> tuple[Array, Array]:
        """The rows remembered after the first ``mark``."""
        at = np.arange(mark, len(self.log))
        return self.log.rows(at), self.log.answers(at)
