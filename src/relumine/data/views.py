"""Views of rows, which change them on their way: whitened, projected, without some rows, y less a known function.

A view takes a chunk to a chunk, so whatever sums over rows sums over the changed rows as well. Rows in memory are
changed once, at once; rows of files or of a cluster are changed where they are, chunk by chunk, on every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.arrays import Array
from relumine.data.sources.chunks import Chunk, Source
from relumine.data.sources.gather import count, take
from relumine.data.sources.local import Mapped
from relumine.data.sources.samples import as_samples
from relumine.data.whiten import Whitening
from relumine.results import InvalidInput

Numbers = NDArray[np.intp]
Function = Callable[[Array], Array]


class View:
    """A change of chunks; ``inputs`` says how many inputs the rows have then, ``dropped`` how many rows are gone."""

    def __call__(self, chunk: Chunk) -> Chunk:
        """The changed chunk."""
        raise NotImplementedError

    def inputs(self) -> int | None:
        """Number of inputs of the rows; None: x stays x."""
        return None

    def dropped(self, rows: Source) -> int:
        """How many of the rows are left out."""
        return 0


@dataclass(frozen=True)
class Whitened(View):
    """x ↦ L⁻¹(x − mean)."""

    white: Whitening

    def __call__(self, chunk: Chunk) -> Chunk:
        """The chunk with standard inputs."""
        return chunk._replace(X=self.white.apply(_double(chunk.X)))

    def inputs(self) -> int:
        """One for each direction in which x varies."""
        return int(self.white.L.shape[1])


@dataclass(frozen=True)
class Projected(View):
    """x ↦ Vx, with V (k, d)."""

    V: Array

    def __call__(self, chunk: Chunk) -> Chunk:
        """The chunk with k inputs."""
        return chunk._replace(X=_double(chunk.X) @ self.V.T)

    def inputs(self) -> int:
        """The rows of V."""
        return len(self.V)


@dataclass(frozen=True)
class Less(View):
    """y ↦ y − g(x) for one output; g takes (k, d) to (k,)."""

    g: Function

    def __call__(self, chunk: Chunk) -> Chunk:
        """The chunk with y − g(x) for y."""
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
class Only(View):
    """The rows of these numbers (increasing)."""

    numbers: Numbers

    def __call__(self, chunk: Chunk) -> Chunk:
        """Those of the chunk's rows."""
        begin, end = np.searchsorted(self.numbers, [chunk.first, chunk.first + len(chunk.Y)])
        return chunk.at(self.numbers[begin:end] - chunk.first)._replace(first=int(begin))

    def dropped(self, rows: Source) -> int:
        """All rows but those of the numbers."""
        return count(rows) - len(self.numbers)


@dataclass(frozen=True)
class Without(View):
    """All rows but those of these numbers (increasing)."""

    numbers: Numbers

    def __call__(self, chunk: Chunk) -> Chunk:
        """The rest of the chunk's rows, numbered anew."""
        low, high = np.searchsorted(self.numbers, [chunk.first, chunk.first + len(chunk.Y)])
        kept = np.ones(len(chunk.Y), dtype=bool)
        kept[self.numbers[low:high] - chunk.first] = False
        rest = chunk if low == high else chunk.at(kept)
        return rest._replace(first=chunk.first - int(low))

    def dropped(self, rows: Source) -> int:
        """Those of the numbers."""
        return len(self.numbers)


@dataclass(frozen=True)
class Between(View):
    """Rows start … stop−1."""

    start: int
    stop: int

    def __call__(self, chunk: Chunk) -> Chunk:
        """Views of those of the chunk's rows."""
        low, high = max(self.start - chunk.first, 0), max(self.stop - chunk.first, 0)
        return chunk.at(slice(low, high))._replace(first=max(chunk.first - self.start, 0))

    def dropped(self, rows: Source) -> int:
        """Those before and behind."""
        return count(rows) - max(min(self.stop, count(rows)) - self.start, 0)


def seen(source: Source, *views: View) -> Source:
    """The rows of a source through each of the views in turn.

    Examples
    --------
    >>> rows = rows_of(np.arange(12.0).reshape(6, 2), np.arange(6.0))
    >>> part = seen(rows, Without(np.array([0, 3])), Projected(np.array([[1.0, 1.0]])), Less(lambda X: X[:, 0]))
    >>> part.head().X.ravel(), part.head().Y.ravel(), part.n
    (array([ 5.,  9., 17., 21.]), array([ -4.,  -7., -13., -16.]), 4)
    """
    for view in views:
        source = source.map(view, view.inputs(), view.dropped(source))
    return source


def without(source: Source, numbers: Numbers) -> Source:
    """All rows but those of these numbers (increasing), left out on every pass: nothing is copied.

    Examples
    --------
    >>> without(rows_of(np.arange(3.0)[:, None], np.arange(3.0)), np.array([1])).head().Y.ravel()
    array([0., 2.])
    """
    return Mapped(source, Without(numbers), dropped=len(numbers))


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


def few_of(rows: Source, most: int, rng: np.random.Generator) -> Source:
    """Rows that are in memory as they are; of others a random few, brought into memory.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> few_of(open_source([(X, X[:, 0])]), 3, np.random.default_rng(0)).n
    3
    """
    return rows if rows.resident else take(rows, most, rng)[0]


def _double(X: NDArray[np.floating]) -> Array:
    return np.asarray(X, dtype=np.float64)
