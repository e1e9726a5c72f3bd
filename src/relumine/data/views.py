"""Rows of a source seen through a map: whitened, projected, without some of them, with less in y.

A map takes a chunk to a chunk, so whatever sums over rows sums over the mapped rows as well. Rows in memory are mapped
once, at once; rows of files or of a cluster are mapped where they are, chunk by chunk, on every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.data.sources.chunks import Chunk, Source
from relumine.data.sources.gather import count, take
from relumine.data.sources.samples import as_samples
from relumine.data.whiten import Whitening
from relumine.results import InvalidInput

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]
Function = Callable[[Array], Array]

__all__ = [
    "Affine",
    "Between",
    "Less",
    "Only",
    "Projected",
    "Step",
    "Whitened",
    "Without",
    "few_of",
    "in_memory",
    "rows_of",
    "seen",
]


class Step:
    """A map of chunks; ``inputs`` and ``count`` say what it makes of d and n.

    ``keeps_inputs``: x stays x; ``keeps_rows``: every row stays.
    """

    keeps_inputs = True
    keeps_rows = True

    def __call__(self, chunk: Chunk) -> Chunk:
        """The chunk as it is seen."""
        raise NotImplementedError

    def inputs(self, d: int) -> int:
        """Number of inputs of a row that had d."""
        return d

    def count(self, n: int) -> int:
        """Number of rows left of n."""
        return n


@dataclass(frozen=True)
class Whitened(Step):
    """x ↦ L⁻¹(x − mean)."""

    keeps_inputs = False
    white: Whitening

    def __call__(self, chunk: Chunk) -> Chunk:
        """The chunk with standard inputs."""
        return chunk._replace(X=self.white.apply(_double(chunk.X)))


@dataclass(frozen=True)
class Projected(Step):
    """x ↦ Vx, with V (k, d)."""

    keeps_inputs = False
    V: Array

    def __call__(self, chunk: Chunk) -> Chunk:
        """The chunk with k inputs."""
        return chunk._replace(X=_double(chunk.X) @ self.V.T)

    def inputs(self, d: int) -> int:
        """K."""
        return len(self.V)


@dataclass(frozen=True)
class Less(Step):
    """y ↦ y − g(x) for one output; g takes (k, d) to (k,)."""

    g: Function

    def __call__(self, chunk: Chunk) -> Chunk:
        """The chunk with the rest of y."""
        return chunk._replace(Y=chunk.Y - self.g(_double(chunk.X))[:, None])


@dataclass(frozen=True)
class Affine:
    """g(x) = slope·x + constant, for :class:`Less`."""

    slope: Array
    constant: float

    def __call__(self, X: Array) -> Array:
        """Values (n,) for X (n, d)."""
        return np.asarray(X @ self.slope + self.constant)


@dataclass(frozen=True)
class Only(Step):
    """The rows of these numbers (increasing)."""

    keeps_rows = False
    numbers: Numbers

    def __call__(self, chunk: Chunk) -> Chunk:
        """Those of the chunk's rows."""
        begin, end = np.searchsorted(self.numbers, [chunk.first, chunk.first + len(chunk.Y)])
        return _rows(chunk, self.numbers[begin:end] - chunk.first, int(begin))

    def count(self, n: int) -> int:
        """As many as there are numbers."""
        return len(self.numbers)


@dataclass(frozen=True)
class Without(Step):
    """All rows but those of these numbers (increasing)."""

    keeps_rows = False
    numbers: Numbers

    def __call__(self, chunk: Chunk) -> Chunk:
        """The rest of the chunk's rows; the chunk itself where all of them stay."""
        begin, end = np.searchsorted(self.numbers, [chunk.first, chunk.first + len(chunk.Y)])
        if begin == end:
            return chunk._replace(first=chunk.first - int(begin))
        stay = np.ones(len(chunk.Y), dtype=bool)
        stay[self.numbers[begin:end] - chunk.first] = False
        return _rows(chunk, np.flatnonzero(stay), chunk.first - int(begin))

    def count(self, n: int) -> int:
        """What is left."""
        return n - len(self.numbers)


@dataclass(frozen=True)
class Between(Step):
    """Rows start … stop−1."""

    keeps_rows = False
    start: int
    stop: int

    def __call__(self, chunk: Chunk) -> Chunk:
        """Views of those of the chunk's rows."""
        low, high = max(self.start - chunk.first, 0), max(self.stop - chunk.first, 0)
        return _rows(chunk, slice(low, high), max(chunk.first - self.start, 0))

    def count(self, n: int) -> int:
        """Stop − start, or what there is of it."""
        return max(min(self.stop, n) - self.start, 0)


def seen(source: Source, *steps: Step) -> Source:
    """The rows of a source after each of the steps in turn.

    Examples
    --------
    >>> rows = rows_of(np.arange(12.0).reshape(6, 2), np.arange(6.0))
    >>> part = seen(rows, Without(np.array([0, 3])), Projected(np.array([[1.0, 1.0]])), Less(lambda X: X[:, 0]))
    >>> part.head().X.ravel(), part.head().Y.ravel(), part.n
    (array([ 5.,  9., 17., 21.]), array([ -4.,  -7., -13., -16.]), 4)
    """
    for step in steps:
        dropped = 0 if step.keeps_rows else count(source) - step.count(count(source))
        source = source.map(step, None if step.keeps_inputs else step.inputs(source.d), dropped)
    return source


def rows_of(X: ArrayLike | Source, y: ArrayLike | None = None) -> Source:
    """Arrays X (n, d), y (n,) or (n, q), checked, as a source in memory; a source as it is.

    Examples
    --------
    >>> rows_of([[1.0], [2.0]], [0.0, 1.0]).n
    2
    """
    if isinstance(X, Source):
        if y is not None:
            raise InvalidInput("X is a source of samples, which has its own y", argument="y", remedy="leave y out")
        return X
    if y is None:
        raise InvalidInput("X is an array and y is missing", argument="y", remedy="pass y, one number a row of X")
    return as_samples(X, y)


def in_memory(rows: Source) -> bool:
    """Whether a pass costs no reading."""
    return rows.resident


def few_of(rows: Source, most: int, rng: np.random.Generator) -> Source:
    """Rows that are in memory as they are; of others a random few, brought into memory.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> few_of(open_source([(X, X[:, 0])]), 3, np.random.default_rng(0)).n
    3
    """
    return rows if in_memory(rows) else take(rows, most, rng)[0]


def _rows(chunk: Chunk, at: Numbers | slice, first: int) -> Chunk:
    weight = None if chunk.weight is None else chunk.weight[at]
    return Chunk(chunk.X[at], chunk.Y[at], weight, first)


def _double(X: NDArray[np.floating]) -> Array:
    return np.asarray(X, dtype=np.float64)
