"""Rows and answers in blocks: the log of a long run is in memory once, and beyond a gigabyte in a temporary file.

Blocks are large, so that the system takes each one back as soon as it is given up: many small arrays leave holes that
stay with the process. A block is reserved, not used, until rows are written into it.
"""

from __future__ import annotations

import os
import tempfile
from typing import IO

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array

_BLOCK = 1 << 26  # bytes: beyond 32 MB the C library gives memory back at once
_HELD = 1 << 30  # bytes of a log that stay in memory: a million rows of 784 numbers are six gigabytes


class Log:
    """Rows X (n, d) and answers Y (n, q), in the order they came; q is that of the first answers.

    Examples
    --------
    >>> log = Log()
    >>> log.append(np.zeros((2, 3)), np.array([[1.0], [2.0]]))
    >>> log.append(np.ones((1, 3)), np.array([[5.0]]))
    >>> log.answers(np.array([2, 0])).ravel().tolist(), log.whole()[0].shape
    ([5.0, 1.0], (3, 3))
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[Array, Array]] = []
        self._starts: list[int] = []  # number of the first row of each block
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def append(self, X: Array, Y: Array) -> None:
        """Remember more rows."""
        while len(X):
            if not self._blocks or self._n - self._starts[-1] == len(self._blocks[-1][0]):
                room = max(1, _BLOCK // (8 * max(1, X.shape[1])))
                before = 8 * self._n * X.shape[1]
                self._blocks.append((_space(room, X.shape[1], before), _space(room, Y.shape[1], before)))
                self._starts.append(self._n)
            at = self._n - self._starts[-1]
            rows, answers = self._blocks[-1]
            k = min(len(X), len(rows) - at)
            rows[at : at + k], answers[at : at + k] = X[:k], Y[:k]
            X, Y, self._n = X[k:], Y[k:], self._n + k

    def rows(self, at: NDArray[np.intp]) -> Array:
        """Rows by number."""
        return self._pick(0, at)

    def answers(self, at: NDArray[np.intp]) -> Array:
        """Answers by number."""
        return self._pick(1, at)

    def _pick(self, which: int, at: NDArray[np.intp]) -> Array:
        block = np.searchsorted(self._starts, at, side="right") - 1
        out = np.empty((len(at), self._blocks[0][which].shape[1] if self._blocks else 1))
        for k in np.unique(block):
            mine = block == k
            out[mine] = self._blocks[k][which][at[mine] - self._starts[k]]
        return out

    def whole(self) -> tuple[Array, Array]:
        """Everything in two arrays; they are the log from now on, so that it is not in memory twice."""
        if not self._blocks:
            return np.empty((0, 0)), np.empty((0, 1))
        if len(self._blocks) == 1:
            X, Y = self._blocks[0]
            return X[: self._n], Y[: self._n]
        X, Y = (_space(self._n, part.shape[1]) for part in self._blocks[0])
        end = self._n
        while self._blocks:  # the last first, and given back once it is copied
            (rows, answers), start = self._blocks.pop(), self._starts.pop()
            X[start:end], Y[start:end] = rows[: end - start], answers[: end - start]
            end = start
        self._blocks, self._starts = [(X, Y)], [0]
        return X, Y


def _space(rows: int, columns: int, before: int = 0) -> Array:
    """An array to write to; with so many bytes ``before`` it in a file that the system writes out if memory is short.

    The file has no name, and is gone with the array. Without room on the disk, all stays in memory.
    """
    size = 8 * rows * columns
    if before + size > _HELD and size > 0:
        try:
            with tempfile.TemporaryFile() as file:
                _reserve(file, size)
                return np.asarray(np.memmap(file, dtype=np.float64, mode="r+", shape=(rows, columns)))
        except OSError:
            pass
    return np.empty((rows, columns))


def _reserve(file: IO[bytes], size: int) -> None:
    """So many bytes on the disk: a hole in the file would be an error only when it is written to."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for start in range(0, size, _BLOCK):
        file.write(bytes(min(_BLOCK, size - start)))
    file.flush()
