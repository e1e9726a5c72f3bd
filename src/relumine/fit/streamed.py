"""From samples to rows of a fit: white, with a constant column, the affine part taken out of the targets.

One way for all sources. What is in memory is prepared once and stays there (:class:`~relumine.fit.rows.MemoryRows`).
On a cluster each worker prepares its rows once and keeps them. What lies in files is prepared on its way through a
pass, so nothing of the size of the data is ever made. What a pass sends out is its function and a few small arrays, and
what comes back is their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from relumine.arrays import Array
from relumine.data.sources import Chunk, Samples, Source
from relumine.data.whiten import Summary, Whitening, whitening_of
from relumine.fit.parallel import ALONE, Crew
from relumine.fit.rows import (
    AFFINE,
    CONSTANT,
    NOTHING,
    Block,
    Kept,
    MemoryRows,
    Rows,
    Sums,
    affine_moment,
    without_affine,
)


@dataclass(frozen=True)
class Preparation:
    """From raw rows to rows of a fit: x̃ = (z, 1) with z white, y over ``scale`` (q,), weights over ``weight``."""

    white: Whitening
    scale: Array
    weight: float

    def __call__(self, chunk: Chunk) -> Chunk:
        """The prepared chunk: X̃ (k, r+1), Y (k, q)."""
        X = np.empty((len(chunk.Y), self.white.L.shape[1] + 1))
        if len(X):
            self.white.apply(np.asarray(chunk.X, dtype=np.float64), out=X[:, :-1])
        X[:, -1] = 1.0
        weight = None if chunk.weight is None else chunk.weight / self.weight
        return Chunk(X, chunk.Y / self.scale, weight, chunk.first)


@dataclass(frozen=True)
class StreamedRows:
    """Prepared rows that stay in their source: the same sums as :class:`relumine.fit.rows.MemoryRows`.

    Of Y (k, q) a pass sees (Y − X̃ tau) / scale. ``known``: Σ ω y² of what it sees (q,), if it has been summed.
    """

    source: Source
    n: int
    total: float
    tau: Array
    scale: Array
    free: slice
    known: tuple[Array, ...] = ()
    crew: Crew = field(default=ALONE, repr=False, compare=False)  # who shares the sums over each chunk

    @property
    def columns(self) -> int:
        """Columns of X̃, d+1."""
        return len(self.tau)

    @property
    def outputs(self) -> int:
        """Columns of Y, q."""
        return len(self.scale)

    @property
    def norm2(self) -> float:
        """Σ ω‖y‖²."""
        return float(self.squares().sum())

    def squares(self) -> Array:
        """Σ ω y², output by output, (q,): a pass, once."""
        if not self.known:
            object.__setattr__(self, "known", (self.sum(affine_moment, self.columns)[1],))
        return self.known[0]

    def sum(self, part: Callable[[Block], Sums], width: int, precision: DTypeLike = np.float64) -> Sums:
        """Σ part(block) over the blocks of every chunk."""
        seen = _Seen(self.tau if self.tau.any() else None, self.scale, self.crew)
        return self.source.reduce(partial(_sum_chunk, seen=seen, part=part, width=width, precision=precision))

    def remember(
        self, keep: Callable[[Block], Kept], width: int, precision: DTypeLike, arrays: int, known: Rows | None = None
    ) -> StreamedRows:
        """The rows as they are: of rows that stay elsewhere nothing is kept, it would be of the size of the data."""
        return self

    def knowing(self, known: Rows) -> StreamedRows:
        """The rows as they are: nothing was remembered."""
        return self

    def shared(self, crew: Crew) -> StreamedRows:
        """The same rows, each chunk summed by a crew."""
        return replace(self, crew=crew)

    def less(self, tau: Array, free: slice) -> StreamedRows:
        """Y − X̃ tau for Y."""
        return replace(self, tau=self.tau + tau * self.scale, free=free, known=())

    def over(self, scale: Array) -> StreamedRows:
        """Y over ``scale`` (q,)."""
        known = tuple(squares / scale**2 for squares in self.known)
        return replace(self, scale=self.scale * scale, known=known)

    def centred(self, mean: Array) -> StreamedRows:
        """The same rows for a model with a constant: Y without its mean (q,)."""
        tau = np.zeros_like(self.tau)
        tau[-1] = mean
        # Σ ω(y − ȳ)² = Σ ωy² − Σω ȳ²: no pass
        return replace(self.less(tau, CONSTANT), known=(self.squares() - self.total * mean**2,))


class _Seen(NamedTuple):
    """How a pass sees prepared rows: with (Y − X̃ tau) / scale for Y, and shared by a crew."""

    tau: Array | None
    scale: Array
    crew: Crew

    def __call__(self, chunk: Chunk) -> MemoryRows:
        X = np.asarray(chunk.X, dtype=np.float64)
        Y = (chunk.Y if self.tau is None else chunk.Y - X @ self.tau) / self.scale
        return MemoryRows(X, Y, chunk.weight, crew=self.crew)


def _sum_chunk(chunk: Chunk, seen: _Seen, part: Callable[[Block], Sums], width: int, precision: DTypeLike) -> Sums:
    return seen(chunk).sum(part, width, precision)


def prepared_rows(source: Source, n: int, total: float) -> MemoryRows | StreamedRows:
    """Rows of prepared chunks, for a model without affine part: in memory if they are there."""
    if isinstance(source, Samples):
        return MemoryRows(source.X, source.Y, source.weight, NOTHING)
    return StreamedRows(source, n, total, np.zeros((source.d, source.q)), np.ones(source.q), NOTHING)


class Prepared(NamedTuple):
    """``rows``: the affine part ``tau`` (d+1, q) taken out of Y; ``plain``: the same rows with it."""

    rows: MemoryRows | StreamedRows
    plain: MemoryRows | StreamedRows
    tau: Array
    white: Whitening


def prepare_source(
    source: Source, scale: Array, found: tuple[Whitening, Summary] | None = None, weight: float | None = None
) -> Prepared:
    """Whiten the inputs of a source, divide its outputs by ``scale`` (q,), take out the affine part.

    ``found``: the whitening, if it is known; ``weight``: what weights are divided by, their mean by default. Two passes
    (mean and covariance, which also give the affine part; what rounding left of it), and one to prepare what is kept.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> prepared = prepare_source(Samples(X, X @ [1.0, 2.0] + 3.0), np.ones(1))
    >>> bool(prepared.rows.norm2 < 1e-24), bool(prepared.plain.norm2 > 50.0), prepared.tau.shape
    (True, True, (3, 1))
    """
    white, summary = whitening_of(source) if found is None else found
    weight = summary.total / summary.n if weight is None else weight
    kept = source.map(Preparation(white, scale, weight), white.L.shape[1] + 1)
    plain = prepared_rows(kept, summary.n, summary.total / weight)
    rows, tau = without_affine(plain, AFFINE, white.affine(summary) / scale)
    return Prepared(rows, plain, tau, white)
