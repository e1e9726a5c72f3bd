"""What a search carries from layer to layer: the box, the layers that are certain, rows to test against, its story."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.deep.box import Asked
from relumine.extraction.deep.charts import Known
from relumine.run import Run

Array = NDArray[np.float64]
Pairs = tuple[Array, Array]

__all__ = ["Inquiry", "Pairs", "Stop"]


class Stop(Exception):
    """Why the search ends here."""


class Inquiry:
    """``known``: the layers so far; ``pool``: random inputs and their answers; ``mark``: rows before this layer."""

    def __init__(self, asked: Asked, dim: int, run: Run) -> None:
        self.ask, self.dim, self.run, self.rng = asked, dim, run, run.rng
        self.known = Known(dim)
        self.pool: tuple[Array, Array] = (np.zeros((0, dim)), np.zeros((0, 1)))
        self.mark = 0
        self.notes: list[str] = []
        self.trace: list[str] = []

    def tell(self, text: str) -> None:
        """For whoever reads the trace."""
        self.trace.append(f"{text} [{self.ask.count}]")

    def say(self, text: str) -> None:
        """For the user, too."""
        self.notes.append(text)
        self.tell(text)

    def rows(self, n: int) -> tuple[Array, Array]:
        """Random inputs and their answers, the first n of those drawn so far and as many more as needed."""
        missing = n - len(self.pool[0])
        if missing > 0:
            X = self.rng.normal(size=(missing, self.dim)) * 2.0 ** self.rng.uniform(-1.0, 1.5, size=(missing, 1))
            Y = self.ask.values(X)
            self.pool = (np.concatenate([self.pool[0], X]), np.concatenate([self.pool[1].reshape(-1, Y.shape[1]), Y]))
        return self.pool[0][:n], self.pool[1][:n]

    def between(self, out: Array, good: Array) -> Pairs:
        """Pairs of inputs, one of which shows something that the other does not."""
        return out[self.rng.integers(len(out), size=4)], good[self.rng.integers(len(good), size=4)]
