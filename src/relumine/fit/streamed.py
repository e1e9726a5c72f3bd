"""Rows that stay where they are: in files, on the workers of a cluster, or in the caller's arrays.

Every chunk is whitened on its way through a pass, so nothing of the size of the data is ever made. What a pass sends
out is its function and a few small arrays, and what comes back is their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import DTypeLike, NDArray

from relumine.data.sources import Chunk, Source
from relumine.data.whiten import Whitening, whitening_of
from relumine.fit.parallel import ALONE, Crew
from relumine.fit.rows import AFFINE, CONSTANT, NOTHING, Block, Kept, MemoryRows, Sums

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]

__all__ = ["Preparation", "StreamedRows", "Without", "prepare_streamed"]


class Without:
    """A source without the rows of some numbers (increasing)."""

    def __init__(self, source: Source, numbers: Numbers) -> None:
        self.source, self.numbers = source, numbers
        self.d, self.q, self.vector, self.names = source.d, source.q, source.vector, source.names
        self.n = None if source.n is None else source.n - len(numbers)
        self.passes, self.label, self.skipped = source.passes, source.label, source.skipped

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """One pass; ``first`` numbers the rows of the whole source."""
        return (_leave_out(chunk, self.numbers) for chunk in self.source.chunks(rows))

    def reduce(self, part: Callable[[Chunk], Sums]) -> Sums:
        """Σ part(chunk)."""
        return self.source.reduce(partial(_part_without, part=part, numbers=self.numbers))

    def head(self, rows: int = 1024) -> Chunk:
        """The first rows of the whole source: good enough for a pivot."""
        return self.source.head(rows)

    def rows_at(self, indices: Numbers) -> Chunk:
        """Rows by their number in the whole source."""
        return self.source.rows_at(indices)


def _leave_out(chunk: Chunk, numbers: Numbers) -> Chunk:
    low, high = np.searchsorted(numbers, [chunk.first, chunk.first + len(chunk.Y)])
    if low == high:
        return chunk
    kept = np.ones(len(chunk.Y), dtype=bool)
    kept[numbers[low:high] - chunk.first] = False
    return Chunk(chunk.X[kept], chunk.Y[kept], None if chunk.weight is None else chunk.weight[kept], chunk.first)


def _part_without(chunk: Chunk, part: Callable[[Chunk], Sums], numbers: Numbers) -> Sums:
    return part(_leave_out(chunk, numbers))


@dataclass(frozen=True)
class Preparation:
    """From raw rows to rows of a fit: white inputs, targets over ``units`` (q,) less the affine part ``tau`` (d+1, q).

    ``bent`` (q,): outputs that are not affine (the others become 0); None where the targets stay whole. ``weight``:
    what weights are divided by, their mean.
    """

    white: Whitening
    units: Array
    weight: float
    tau: Array | None = None
    bent: NDArray[np.bool_] | None = None

    def rows(self, chunk: Chunk) -> MemoryRows:
        """The rows of a chunk."""
        X = np.empty((len(chunk.Y), chunk.X.shape[1] + 1))
        if len(X):
            self.white.apply(np.asarray(chunk.X, dtype=np.float64), out=X[:, :-1])
        X[:, -1] = 1.0
        Y = chunk.Y / self.units
        if self.tau is not None:
            Y -= X @ self.tau
        if self.bent is not None:
            Y = np.where(self.bent, Y, 0.0)
        return MemoryRows(X, Y, None if chunk.weight is None else chunk.weight / self.weight)


@dataclass(frozen=True)
class StreamedRows:
    """Rows of a source, prepared chunk by chunk: the same sums as :class:`relumine.fit.rows.MemoryRows`."""

    source: Source | Without
    preparation: Preparation
    n: int
    total: float
    norm2: float
    free: slice
    crew: Crew = field(default=ALONE, repr=False, compare=False)  # who shares the sums over each chunk

    @property
    def columns(self) -> int:
        """Columns of X̃, d+1."""
        return self.source.d + 1

    @property
    def outputs(self) -> int:
        """Columns of Y, q."""
        return self.source.q

    def sum(self, part: Callable[[Block], Sums], width: int, precision: DTypeLike = np.float64) -> Sums:
        """Σ part(block) over the blocks of every chunk."""
        task = partial(
            _sum_chunk, rows=self.preparation.rows, crew=self.crew, part=part, width=width, precision=precision
        )
        return self.source.reduce(task)

    def remember(self, keep: Callable[[Block], Kept], width: int, precision: DTypeLike, arrays: int) -> StreamedRows:
        """Nothing of the size of the data is kept."""
        return self

    def centred(self, mean: Array) -> StreamedRows:
        """The same rows for a model with a constant: Y without its mean (q,)."""
        tau = np.zeros((self.columns, self.outputs))
        tau[-1] = mean
        norm2 = self.norm2 - self.total * float(mean @ mean)
        return replace(self, preparation=replace(self.preparation, tau=tau), norm2=norm2, free=CONSTANT)


def _sum_chunk(
    chunk: Chunk,
    rows: Callable[[Chunk], MemoryRows],
    crew: Crew,
    part: Callable[[Block], Sums],
    width: int,
    precision: DTypeLike,
) -> Sums:
    return replace(rows(chunk), crew=crew).sum(part, width, precision)


def _affine_step(B: Block) -> Sums:
    """Σ ω x̃ yᵀ (d+1, q) and Σ ω y² (q,)."""
    weighted = B.Y if B.weight is None else B.Y * B.weight[:, None]
    return B.X.T @ weighted, np.einsum("ij,ij->j", weighted, B.Y)


def prepare_streamed(
    source: Source | Without, units: Array, bent: NDArray[np.bool_]
) -> tuple[StreamedRows, StreamedRows, Array, NDArray[np.bool_]]:
    """Rows with the affine part out of Y, rows with it in, the affine coefficients (d+1, q), which outputs are bent.

    ``bent`` (q,): those that a few rows have shown to be; all rows may show more. Four passes.
    """
    white, summary = whitening_of(source)
    weight = summary.total / summary.n
    plain = Preparation(white, units, weight)
    n, total = summary.n, float(summary.n)
    moment, squares = StreamedRows(source, plain, n, total, 1.0, NOTHING).sum(_affine_step, source.d)
    whole = StreamedRows(source, plain, n, total, float(squares.sum()), NOTHING)
    tau = moment / total
    # x̃ is white up to rounding: a second pass removes what the first left, and the last measures what remains
    every = np.ones_like(bent)
    bare = StreamedRows(source, Preparation(white, units, weight, tau, every), n, total, 1.0, AFFINE)
    tau = tau + bare.sum(_affine_step, source.d)[0] / total
    bare = StreamedRows(source, Preparation(white, units, weight, tau, every), n, total, 1.0, AFFINE)
    squares = bare.sum(_affine_step, source.d)[1]
    bent = bent | (np.sqrt(squares / total) > 256.0 * np.finfo(float).eps)
    rows = StreamedRows(
        source, Preparation(white, units, weight, tau, bent), n, total, float(squares[bent].sum()), AFFINE
    )
    return rows, whole, tau, bent
