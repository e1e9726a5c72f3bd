"""Random inputs by which units of a layer are on: every such pattern counts the same, however few inputs have it.

What only few inputs show is often shown by many of those with one rare pattern. In a random 784-8×8-1, a unit of the
fifth layer is on at 2 of 10 000 inputs, but at one in five of those with two certain units of the fourth on, and no
others: one in a thousand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.known.charts import Known

_MANY = 100_000  # random inputs, near and far
_CHOICE = 32  # of those with a pattern, from which one is taken whose activations differ most from another's


def balanced(patterns: NDArray[np.bool_], count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """So many of the rows (n, units), each pattern as often as the others as far as there are enough of it.

    Examples
    --------
    >>> patterns = np.array([[True, False]] * 98 + [[True, True]] * 2)
    >>> some = balanced(patterns, 4, np.random.default_rng(0))
    >>> int((some >= 98).sum()), len(set(some.tolist()))
    (2, 4)
    """
    order = rng.permutation(len(patterns))
    number = _numbered(patterns[order])
    by = np.argsort(number, kind="stable")
    first = np.searchsorted(number[by], number[by])
    turn = np.empty(len(by), dtype=np.intp)
    turn[by] = np.arange(len(by)) - first  # the how-manieth of its pattern each of them is
    return np.asarray(order[np.argsort(turn, kind="stable")[:count]])


def _numbered(patterns: NDArray[np.bool_]) -> NDArray[np.intp]:
    """A number for each row, the same for the same pattern."""
    return np.asarray(np.unique(np.packbits(patterns, axis=1), axis=0, return_inverse=True)[1].ravel())


class Patterns:
    """Pairs of inputs with the same units of the last known layer on, one pattern after the other, in random order.

    ``shown``: how many patterns have had their turn; ``left``: how many have not.
    """

    def __init__(self, known: Known, rng: np.random.Generator) -> None:
        self.rng, self.shown = rng, 0
        X = rng.normal(size=(_MANY, known.d)) * 2.0 ** rng.uniform(-2.0, 4.0, size=(_MANY, 1))
        H = known(X)
        number = _numbered(H > 0.0)
        by = np.argsort(number, kind="stable")
        self.X, self.H = X[by], H[by]
        edges = np.append(np.flatnonzero(np.diff(number[by], prepend=-1)), len(by))
        two = np.flatnonzero(np.diff(edges) > 1)
        self._left = [(int(edges[i]), int(edges[i + 1])) for i in rng.permutation(two)]

    @property
    def left(self) -> int:
        """How many patterns have not had their turn."""
        return len(self._left)

    def pairs(self, count: int) -> tuple[Array, Array] | None:
        """Of the next so many patterns one pair each, with activations that differ much; None: all had their turn."""
        some, self._left = self._left[:count], self._left[count:]
        self.shown += len(some)
        ends = []
        for lo, hi in some:
            rows = self.rng.permutation(np.arange(lo, hi))[:_CHOICE]
            H = self.H[rows] / np.maximum(np.linalg.norm(self.H[rows], axis=1, keepdims=True), 1e-300)
            ends.append((self.X[rows[0]], self.X[rows[1 + np.argmin(H[1:] @ H[0])]]))
        return None if not ends else (np.array([a for a, _ in ends]), np.array([b for _, b in ends]))
