"""Sources on this machine: a subclass says how rows are read in pieces; checks and passes are the same for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.data.sources.checks import Kinds, RawRows, check_rows
from relumine.data.sources.chunks import AHEAD, Change, Chunk, Part, Source, add_up, join, picked, read_ahead
from relumine.results import InvalidInput

NUMBERS = 1 << 20  # numbers in a chunk, 8 MB: larger ones are not read faster, and four of them are in memory


@dataclass(frozen=True)
class Then:
    """First one change of a chunk, then another; a class, because it travels to the workers of a cluster."""

    first: Change
    second: Change

    def __call__(self, chunk: Chunk) -> Chunk:
        """second(first(chunk))."""
        return self.second(self.first(chunk))


class LocalSource:
    """A source on this machine (see :class:`~relumine.data.sources.chunks.Source`)."""

    passes: int | None = None
    ahead: int = AHEAD
    resident: bool = False
    kinds: Kinds = Kinds()
    n: int | None
    skipped: int
    assumed: tuple[str, ...] = ()

    def __init__(
        self,
        d: int,
        q: int,
        *,
        label: str,
        vector: bool,
        n: int | None = None,
        weighted: bool = False,
        names: tuple[str, ...] | None = None,
        bad_rows: str = "raise",
        storage: str = "float64",
        chunk: int | None = None,
    ) -> None:
        self.d, self.q, self.label, self.vector, self.names = d, q, label, vector, names
        self.skip, self.skipped = bad_rows == "skip", 0
        self.n = None if self.skip or weighted else n  # bad rows and those of weight zero will be left out
        self.dtype = np.dtype(storage)
        self.chunk = max(1, NUMBERS // (d + q)) if chunk is None else chunk
        self.kinds = self.kinds._replace(inputs=names, vector=vector)

    def pieces(self, rows: int) -> Iterator[RawRows]:
        """Read the rows once, at most ``rows`` at a time."""
        raise NotImplementedError

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """One pass over the checked rows; at its end their number is known."""
        first, self.skipped, weighted = 0, 0, None
        for piece in self.pieces(rows or self.chunk):
            if weighted is not None and weighted != (piece.weight is not None):
                raise InvalidInput(f"{piece.where}: some chunks have weights and others not; give all of them weights")
            weighted = piece.weight is not None
            chunk, left_out = check_rows(piece, first, self.kinds, self.dtype, self.skip)
            self.skipped += left_out
            if len(chunk.Y):
                yield chunk
                first += len(chunk.Y)
        self.n = first

    def reduce(self, part: Part) -> tuple[Array, ...]:
        """Σ part(chunk), the next chunks being read meanwhile."""
        return add_up(part(chunk) for chunk in self._read())

    def _read(self) -> Iterator[Chunk]:
        return read_ahead(self.chunks(), self.ahead) if self.ahead else self.chunks()

    def head(self, rows: int = 1024) -> Chunk:
        """The first rows; the count of bad rows is that of passes, so it stays."""
        found: list[Chunk] = []
        missing, skipped = rows, self.skipped
        for chunk in self.first_chunks(rows):
            found.append(chunk)
            missing -= len(chunk.Y)
            if missing <= 0:
                break
        self.skipped = skipped
        if not found:
            raise InvalidInput(f"{self.label} has no rows")
        return join(found).at(slice(0, rows))

    def first_chunks(self, rows: int) -> Iterator[Chunk]:
        """Chunks from the beginning, without a pass."""
        return self.chunks(rows)

    def rows_at(self, indices: NDArray[np.intp]) -> Chunk:
        """The rows of these numbers."""
        return picked(self._read(), indices, self.label)

    def map(self, change: Change, d: int | None = None, dropped: int = 0) -> Source:
        """Changed on every pass: the rows are not kept here."""
        return Mapped(self, change, d, dropped)


class Mapped:
    """A source whose chunks are changed on every pass; ``dropped``: how many rows the change leaves out."""

    def __init__(self, source: Source, change: Change, d: int | None = None, dropped: int = 0) -> None:
        self.source, self.change, self.dropped = source, change, dropped
        self.d, self.q, self.vector = d or source.d, source.q, source.vector
        self.names = source.names if d is None else None
        self.passes, self.label, self.assumed = source.passes, source.label, source.assumed
        self.resident = False

    @property
    def n(self) -> int | None:
        """Number of rows, if known."""
        return None if self.source.n is None else self.source.n - self.dropped

    @property
    def skipped(self) -> int:
        """Bad rows left out in the latest pass."""
        return self.source.skipped

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """One pass."""
        return (self.change(chunk) for chunk in self.source.chunks(rows))

    def reduce(self, part: Part) -> tuple[Array, ...]:
        """Σ part(change(chunk))."""
        return self.source.reduce(partial(_part_of_changed, part=part, change=self.change))

    def head(self, rows: int = 1024) -> Chunk:
        """The first rows after the change; where it leaves none of them, the first rows that it does leave."""
        left = self.change(self.source.head(rows))
        if len(left.Y) or self.passes is not None:
            return left
        first = next((chunk for chunk in self.chunks() if len(chunk.Y)), left)
        return first.at(slice(0, rows))

    def rows_at(self, indices: NDArray[np.intp]) -> Chunk:
        """Rows by their number after the change."""
        if self.dropped:
            return picked(self.chunks(), indices, self.label)
        return self.change(self.source.rows_at(indices))

    def map(self, change: Change, d: int | None = None, dropped: int = 0) -> Source:
        """Both changes, kept where the source keeps its rows."""
        return self.source.map(Then(self.change, change), d, self.dropped + dropped)


def _part_of_changed(chunk: Chunk, part: Part, change: Change) -> tuple[Array, ...]:
    return part(change(chunk))
