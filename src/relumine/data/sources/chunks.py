"""Rows that come in chunks: the protocol of every data source, and the few things that are done with chunks."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.results import InvalidInput

Part = Callable[["Chunk"], tuple[Array, ...]]
Change = Callable[["Chunk"], "Chunk"]
T = TypeVar("T")


AHEAD = 2  # chunks that wait, read, while one is worked on: one hides the reading, the second its unevenness


class Chunk(NamedTuple):
    """Consecutive rows: X (k, d) C-contiguous, float64 or float32; Y (k, q) float64; weight (k,) or None.

    ``first`` is the number of rows before this chunk, so the rows of a pass are numbered 0 … n−1.
    """

    X: NDArray[np.floating]
    Y: Array
    weight: Array | None = None
    first: int = 0

    def at(self, rows: slice | NDArray[np.intp] | NDArray[np.bool_]) -> Chunk:
        """Some of the rows; ``first`` stays."""
        return Chunk(self.X[rows], self.Y[rows], None if self.weight is None else self.weight[rows], self.first)


@runtime_checkable
class Source(Protocol):
    """Samples that are read in chunks, as often as wanted (``passes`` None) or once (``passes`` 1).

    ``d`` inputs, ``q`` outputs (0: there is no target; ``vector``: y is one column, (n,)), ``n`` rows if known (after a
    pass it is), ``names`` of the inputs if they have any, ``label`` for messages, ``skipped`` bad rows left out in the
    latest pass, ``assumed``: sentences about what was worked out and not given. ``resident``: the rows are in memory
    (then the source is :class:`relumine.data.sources.Samples`).
    """

    d: int
    q: int
    vector: bool
    names: tuple[str, ...] | None
    passes: int | None
    label: str
    assumed: tuple[str, ...]
    resident: bool

    @property
    def n(self) -> int | None:
        """Number of rows, if known."""

    @property
    def skipped(self) -> int:
        """Bad rows left out in the latest pass."""

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """One pass, in an order that is always the same, in chunks of at most ``rows`` rows."""

    def reduce(self, part: Part) -> tuple[Array, ...]:
        """Σ part(chunk), componentwise; ``part`` returns fresh arrays. The order of the sum is fixed."""

    def head(self, rows: int = 1024) -> Chunk:
        """The first rows; not a pass."""

    def rows_at(self, indices: NDArray[np.intp]) -> Chunk:
        """The rows of these numbers (increasing), gathered in one pass."""

    def map(self, change: Change, d: int | None = None, dropped: int = 0) -> Source:
        """The source of the chunks change(chunk), with ``d`` columns and ``dropped`` rows less.

        Made once and kept where the rows are kept (in memory, on the workers of a cluster); else made on every pass.
        """


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


def gather(chunks: Iterator[Chunk], most: int | None, label: str) -> Chunk:
    """All rows of a pass as one chunk; ``most`` rows at most, if known, so that nothing is held twice."""
    first = next(chunks, None)
    if first is None:
        raise InvalidInput(f"{label} has no rows")
    if most is None:  # the number of rows is not known: hold all chunks, then join them
        return join([first, *chunks])
    X, Y = np.empty((most, first.X.shape[1]), first.X.dtype), np.empty((most, first.Y.shape[1]))
    weight = None if first.weight is None else np.empty(most)
    filled = 0
    for chunk in chain([first], chunks):
        rows = slice(filled, filled + len(chunk.Y))
        X[rows], Y[rows] = chunk.X, chunk.Y
        if weight is not None:
            weight[rows] = chunk.weight
        filled = rows.stop
    return Chunk(X, Y, weight).at(slice(0, filled))


def picked(chunks: Iterator[Chunk], indices: NDArray[np.intp], label: str) -> Chunk:
    """The rows of these numbers (increasing) among those of a pass, which are counted from 0."""

    def parts() -> Iterator[Chunk]:
        seen = filled = 0
        for chunk in chunks:
            upto = int(np.searchsorted(indices, seen + len(chunk.Y)))
            yield chunk.at(indices[filled:upto] - seen)
            seen, filled = seen + len(chunk.Y), upto
        if filled < len(indices):
            raise InvalidInput(f"{label} has no row {indices[filled]}")

    return gather(parts(), len(indices), label)


def read_ahead(items: Iterator[T], depth: int = AHEAD) -> Iterator[T]:
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
