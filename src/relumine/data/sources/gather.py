"""From a source to arrays in memory: all of its rows, or a random few."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.data.sources.chunks import Chunk, Source, gather
from relumine.data.sources.samples import Samples
from relumine.results import InvalidInput


def count(source: Source) -> int:
    """Number of rows; a pass if it is not known yet, and after it, it is.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> count(open_source([(np.ones((3, 2)), np.zeros(3)), (np.ones((1, 2)), np.zeros(1))]))
    4
    """
    if source.n is not None:
        return source.n
    return int(source.reduce(_rows)[0])


def materialise(source: Source) -> Samples:
    """All rows in memory, weights scaled to mean 1; a source that is in memory is returned as it is.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> materialise(open_source([(np.ones((3, 2)), np.zeros(3)), (np.ones((1, 2)), np.zeros(1))])).n
    4
    """
    if isinstance(source, Samples):
        return source
    return _samples(gather(source.chunks(), source.n, source.label), source)


def fits(source: Source, memory: float) -> bool:
    """Whether all rows, as numbers of double precision, take no more than so many bytes; 0 ≤ ``memory`` ≤ ∞.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> fits(open_source(np.ones((10, 2)), np.ones(10)), 240.0)
    True
    """
    return count(source) <= room(source, memory)


def room(source: Source, memory: float, copies: int = 1) -> int:
    """How many rows of a source, so many copies of each, take no more than so many bytes; 0 ≤ ``memory`` ≤ ∞.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> room(open_source(np.ones((10, 2)), np.ones(10)), 500.0, copies=4)
    5
    """
    # more than any machine holds stands for no limit, which is no whole number
    return int(min(memory, 1e15) / (8 * copies * (source.d + source.q)))


def in_memory(source: Source, memory: float, argument: str) -> Samples:
    """All rows, which an ``argument`` of the user needs in memory; an error where they are not there and do not fit."""
    if not (source.resident or fits(source, memory)):
        remedy = "raise memory=, or use fewer rows"
        raise InvalidInput(f"{argument}= needs all rows in memory", argument=argument, remedy=remedy)
    return materialise(source)


def take(
    source: Source, rows: int | NDArray[np.intp], rng: np.random.Generator | None = None
) -> tuple[Samples, NDArray[np.intp]]:
    """Rows of given numbers, or so many uniformly random ones without repetition, in memory; and their numbers.

    One pass where the number of rows is known, else one more to count them.

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> few, numbers = take(open_source(X, X[:, 0]), 3, np.random.default_rng(0))
    >>> np.array_equal(few.X, X[numbers])
    True
    """
    if isinstance(rows, int | np.integer):
        n = count(source)
        indices = np.sort(np.random.default_rng(rng).choice(n, size=min(int(rows), n), replace=False))
    else:
        indices = np.asarray(rows, dtype=np.intp)
        if indices.size and ((np.diff(indices) <= 0).any() or indices[0] < 0):
            raise InvalidInput("row numbers must increase from 0 on", argument="rows")
    return _samples(source.rows_at(indices), source), indices


def _samples(chunk: Chunk, source: Source) -> Samples:
    weight = None if chunk.weight is None else chunk.weight / chunk.weight.mean()
    X = np.ascontiguousarray(chunk.X, dtype=np.float64)
    return Samples(X, chunk.Y[:, 0] if source.vector else chunk.Y, weight, source.names)


def _rows(chunk: Chunk) -> tuple[Array, ...]:
    return (np.array(float(len(chunk.Y))),)
