"""Sources that come as chunks: iterables of (X, y) or (X, y, weight)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from relumine.arrays import Array, slices
from relumine.data.sources.checks import RawRows, check_rows
from relumine.data.sources.chunks import Chunk
from relumine.data.sources.local import LocalSource
from relumine.results import InvalidInput

_KEPT_ROWS = 4096  # of a generator, from the beginning: what head() is asked for, and a pivot needs no more


class StreamSource(LocalSource):
    """An iterable of chunks (X, y) or (X, y, weight): as many passes as it gives, one if it is an iterator."""

    def __init__(self, items: Iterable[Any], **options: Any) -> None:
        iterator = iter(items)
        self.passes = 1 if iterator is items else None
        first = next(iterator, None)
        if first is None:
            raise InvalidInput("the iterable of chunks is empty", argument="X")
        X, y, _ = _arrays(first, 0)
        self.items: Iterable[Any] | None = items
        self.kept = [first]
        if self.passes:  # what is taken to see the first rows goes back in front of the others
            rows = len(X)
            while rows < _KEPT_ROWS and (item := next(iterator, None)) is not None:
                self.kept.append(item)
                rows += len(_arrays(item, len(self.kept) - 1)[0])
            self.items = chain(self.kept, iterator)
        q = 1 if y.ndim == 1 else y.shape[1]
        options.setdefault("label", "a one-pass generator" if self.passes else "an iterable of chunks")
        super().__init__(X.shape[1], q, vector=y.ndim == 1, **options)

    def pieces(self, rows: int) -> Iterator[RawRows]:
        """The chunks, the larger ones split."""
        items = self.items
        if items is None:
            raise InvalidInput(
                "this generator has been read once and cannot be read again: only the moment stage (one pass, "
                "estimator 'plain' or 'regressed') can run on it",
                argument="X",
                remedy="pass files, a list of chunks, or an object whose __iter__ starts again",
            )
        if self.passes:
            self.items = None
        return self._split(items, rows)

    def _split(self, items: Iterable[Any], rows: int) -> Iterator[RawRows]:
        for number, item in enumerate(items):
            X, y, weight = _arrays(item, number)
            Y = y.reshape(len(X), 1 if y.ndim == 1 else y.shape[1])
            if (X.shape[1], Y.shape[1], y.ndim == 1) != (self.d, self.q, self.vector):
                raise InvalidInput(
                    f"chunk {number} has X {X.shape} and y {y.shape}; the first had {self.d} inputs and {self.q} "
                    "outputs"
                )
            for s in slices(len(X), rows):
                yield RawRows(X[s], Y[s], None if weight is None else weight[s], f"chunk {number}", s.start)

    def first_chunks(self, rows: int) -> Iterator[Chunk]:
        """Chunks from the beginning; a generator cannot be read again, so its first ones were kept."""
        if self.passes is None:
            yield from self.chunks(rows)
            return
        for piece in self._split(self.kept, rows):
            chunk, _ = check_rows(piece, 0, self.kinds, self.dtype, self.skip)
            if len(chunk.Y):
                yield chunk


def _arrays(item: Any, number: int) -> tuple[Array, Array, Array | None]:
    """(X, y[, weight]) as float64 arrays of fitting shapes."""
    try:
        X, y, *rest = (np.ascontiguousarray(part, dtype=np.float64) for part in item)
        (weight,) = rest or (None,)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"chunk {number} is not (X, y) or (X, y, weight) of real numbers: {error}") from error
    if X.ndim != 2 or y.ndim not in (1, 2) or len(X) != len(y) or (weight is not None and weight.shape != (len(X),)):
        shapes = [X.shape, y.shape, *([] if weight is None else [weight.shape])]
        raise InvalidInput(
            f"chunk {number} must be X (k, d), y (k,) or (k, q) and weight (k,); got {', '.join(map(str, shapes))}"
        )
    return X, y, weight
