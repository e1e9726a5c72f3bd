"""Rows that come in chunks: the protocol of every data source, and sums over the rows of a local one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from relumine.results import InvalidInput

Array = NDArray[np.float64]
Part = Callable[["Chunk"], tuple[Array, ...]]
T = TypeVar("T")

__all__ = ["Chunk", "LocalSource", "Part", "Piece", "Source", "add_up", "join", "read_ahead", "split"]

_NUMBERS = 1 << 20  # numbers in a chunk: 8 MB
_AHEAD = 2  # chunks that wait, read, while one is worked on
_LARGE = 1e100  # squares of larger numbers overflow


class Chunk(NamedTuple):
    """Consecutive rows: X (k, d) C-contiguous, float64 or float32; Y (k, q) float64; weight (k,) or None.

    ``first`` is the number of rows before this chunk, so the rows of a pass are numbered 0 … n−1.
    """

    X: NDArray[np.floating]
    Y: Array
    weight: Array | None = None
    first: int = 0


class Piece(NamedTuple):
    """Rows as they were read, not yet checked; ``where`` and ``row`` (of the first of them) say where they stand."""

    X: NDArray[np.floating]
    Y: Array
    weight: Array | None
    where: str
    row: int


@runtime_checkable
class Source(Protocol):
    """Samples that are read in chunks, as often as wanted (``passes`` None) or once (``passes`` 1).

    ``d`` inputs, ``q`` outputs (``vector``: y is one column, (n,)), ``n`` rows if known without a pass, ``names`` of
    the inputs if they have any, ``label`` for messages, ``skipped`` bad rows left out in the latest pass.
    """

    d: int
    q: int
    vector: bool
    n: int | None
    names: tuple[str, ...] | None
    passes: int | None
    label: str
    skipped: int

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """One pass, in an order that is always the same, in chunks of at most ``rows`` rows."""

    def reduce(self, part: Part) -> tuple[Array, ...]:
        """Σ part(chunk), componentwise; ``part`` returns fresh arrays. The order of the sum is fixed."""

    def head(self, rows: int = 1024) -> Chunk:
        """The first rows; not a pass."""

    def rows_at(self, indices: NDArray[np.intp]) -> Chunk:
        """The rows of these numbers (increasing), gathered in one pass."""


class LocalSource:
    """A source on this machine: subclasses say how to read pieces, this class checks, numbers and adds them up."""

    passes: int | None = None
    ahead: int = _AHEAD
    checked: bool = False
    targets: tuple[str, ...] | None = None

    def __init__(
        self,
        d: int,
        q: int,
        *,
        label: str,
        vector: bool,
        n: int | None = None,
        names: tuple[str, ...] | None = None,
        bad_rows: str = "raise",
        storage: str = "float64",
        chunk: int | None = None,
    ) -> None:
        self.d, self.q, self.label, self.vector, self.n, self.names = d, q, label, vector, n, names
        self.skip, self.skipped = bad_rows == "skip", 0
        self.dtype = np.dtype(storage)
        self.chunk = max(1, _NUMBERS // (d + q)) if chunk is None else chunk

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Read the rows once, at most ``rows`` at a time."""
        raise NotImplementedError

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """One pass over the checked rows (see :class:`Source`)."""
        first, self.skipped, weighted = 0, 0, None
        for piece in self.pieces(rows or self.chunk):
            if weighted is not None and weighted != (piece.weight is not None):
                raise InvalidInput(f"{piece.where}: some chunks have weights and others not; give all of them weights")
            weighted = piece.weight is not None
            chunk = Chunk(piece.X, piece.Y, piece.weight, first) if self.checked else self._check(piece, first)
            if len(chunk.Y):
                yield chunk
                first += len(chunk.Y)

    def reduce(self, part: Part) -> tuple[Array, ...]:
        """Σ part(chunk), the next chunks being read meanwhile (see :class:`Source`)."""
        chunks = self.chunks()
        return add_up(part(chunk) for chunk in (read_ahead(chunks, self.ahead) if self.ahead else chunks))

    def head(self, rows: int = 1024) -> Chunk:
        """The first rows (see :class:`Source`)."""
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
        X, Y, weight, _ = join(found)
        return Chunk(X[:rows], Y[:rows], None if weight is None else weight[:rows])

    def first_chunks(self, rows: int) -> Iterator[Chunk]:
        """Chunks from the beginning, without a pass."""
        return self.chunks(rows)

    def rows_at(self, indices: NDArray[np.intp]) -> Chunk:
        """The rows of these numbers (see :class:`Source`)."""
        X, Y, weight = np.empty((len(indices), self.d), self.dtype), np.empty((len(indices), self.q)), None
        chunks, filled = self.chunks(), 0
        for chunk in read_ahead(chunks, self.ahead) if self.ahead else chunks:
            upto = int(np.searchsorted(indices, chunk.first + len(chunk.Y)))
            here = indices[filled:upto] - chunk.first
            X[filled:upto], Y[filled:upto] = chunk.X[here], chunk.Y[here]
            if chunk.weight is not None:
                weight = np.empty(len(indices)) if weight is None else weight
                weight[filled:upto] = chunk.weight[here]
            filled = upto
        if filled < len(indices):
            raise InvalidInput(f"{self.label} has no row {indices[filled]}")
        return Chunk(X, Y, weight)

    def _check(self, piece: Piece, first: int) -> Chunk:
        """The piece as a chunk; rows that are not finite are left out and counted, or an error that says where."""
        X, Y, weight = piece.X, piece.Y, piece.weight
        limit = _LARGE if self.dtype == np.float64 else 1e30
        with np.errstate(over="ignore", invalid="ignore"):  # a sum of squares is finite for good rows
            size = (
                float(np.vdot(X, X))
                + float(np.vdot(Y, Y))
                + (0.0 if weight is None else float(np.vdot(weight, weight)))
            )
            X = np.ascontiguousarray(X, dtype=self.dtype)
        if weight is None and size <= limit:
            return Chunk(X, Y, None, first)
        good = self._good_rows(piece, limit)
        if not good.all():
            self.skipped += int((~good).sum())
            X, Y, weight = X[good], Y[good], None if weight is None else weight[good]
        if weight is not None and not weight.all():  # weight zero: not used
            used = weight > 0.0
            X, Y, weight = X[used], Y[used], weight[used]
        return Chunk(X, Y, weight, first)

    def _good_rows(self, piece: Piece, limit: float) -> NDArray[np.bool_]:
        """Which rows are finite; without ``bad_rows='skip'`` all are, or an error."""
        kinds = [("input", piece.X, self.names), ("target", piece.Y, self.targets)]
        if piece.weight is not None:
            weight = np.where(piece.weight >= 0.0, piece.weight, np.nan)  # a negative one is as bad as none
            kinds.append(("sample_weight", weight[:, None], None))
        good = np.ones(len(piece.Y), dtype=bool)
        for kind, values, names in kinds:
            bad = ~np.isfinite(values)
            if bad.any() and not self.skip:
                i, j = np.argwhere(bad)[0]
                called = "" if kind == "sample_weight" else f" column {repr(names[j]) if names else j}"
                value = piece.weight[i] if kind == "sample_weight" and piece.weight is not None else values[i, j]
                raise InvalidInput(
                    f"{kind}{called} is {value} in {piece.where}, row {piece.row + i}; "
                    "drop or fill such rows, or leave them out with bad_rows='skip'"
                )
            good &= ~bad.any(axis=1)
            largest = float(np.abs(values[good]).max(initial=0.0))
            if largest > limit:
                raise InvalidInput(
                    f"{kind} values around {largest:.1e} in {piece.where}, beyond what squares can hold; rescale"
                )
        return good


def add_up(parts: Iterator[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Σ of tuples of arrays, componentwise, first to last.

    Examples
    --------
    >>> add_up(iter([(np.ones(2), 1.0), (np.ones(2), 2.0)]))
    (array([2., 2.]), array(3.))
    """
    sums: list[Array] = []
    for values in parts:
        if not sums:
            sums = [np.asarray(value, dtype=np.float64) for value in values]
            continue
        for total, value in zip(sums, values, strict=True):
            np.add(total, value, out=total)
    if not sums:
        raise InvalidInput("the data source has no rows")
    return tuple(sums)


def join(chunks: list[Chunk]) -> Chunk:
    """Consecutive chunks, at least one, as one."""
    weights = [c.weight for c in chunks if c.weight is not None]
    return Chunk(
        np.concatenate([c.X for c in chunks]),
        np.concatenate([c.Y for c in chunks]),
        np.concatenate(weights) if weights else None,
        chunks[0].first,
    )


def split(X: NDArray[np.floating], Y: Array, weight: Array | None, rows: int, where: str, row: int) -> Iterator[Piece]:
    """Pieces of at most ``rows`` rows."""
    for start in range(0, len(Y), rows):
        s = slice(start, start + rows)
        yield Piece(X[s], Y[s], None if weight is None else weight[s], where, row + start)


def read_ahead(items: Iterator[T], depth: int = _AHEAD) -> Iterator[T]:
    """The same items; a thread takes up to ``depth`` of them in advance, so that reading overlaps computing.

    Examples
    --------
    >>> list(read_ahead(iter(range(5))))
    [0, 1, 2, 3, 4]
    """
    ready: queue.Queue[tuple[str, object]] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(kind: str, value: object) -> None:
        while not stop.is_set():
            try:
                ready.put((kind, value), timeout=0.1)
                return
            except queue.Full:
                continue

    def read() -> None:
        try:
            for item in items:
                put("item", item)
                if stop.is_set():
                    return
            put("end", None)
        except BaseException as error:  # whatever it is, it belongs to the one who waits for the items
            put("error", error)

    reader = threading.Thread(target=read, name="relumine-read-ahead", daemon=True)
    reader.start()
    try:
        while True:
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value  # type: ignore[misc]
            yield value  # type: ignore[misc]
    finally:
        stop.set()
        reader.join(timeout=5.0)
