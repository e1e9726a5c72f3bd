"""Sources that come as chunks: iterables of (X, y) or (X, y, weight), and a function that can be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.data.sources.chunks import Chunk, LocalSource, Piece, split
from relumine.results import InvalidInput

Array = NDArray[np.float64]

__all__ = ["FunctionSource", "StreamSource"]

_KEPT_ROWS = 4096  # of a generator, from the beginning


class StreamSource(LocalSource):
    """An iterable of chunks (X, y) or (X, y, weight): as many passes as it gives, one if it is an iterator."""

    def __init__(self, items: Iterable[Any], **options: Any) -> None:
        iterator = iter(items)
        self.passes = 1 if iterator is items else None
        first = next(iterator, None)
        if first is None:
            raise InvalidInput("the iterable of chunks is empty")
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

    def pieces(self, rows: int) -> Iterator[Piece]:
        """The chunks, the larger ones split."""
        items = self.items
        if items is None:
            raise InvalidInput(
                "this generator has been read once and cannot be read again: only the moment stage (one pass, "
                "estimator 'plain' or 'regressed') can run on it. Pass files, a list of chunks, or an object whose "
                "__iter__ starts again"
            )
        if self.passes:
            self.items = None
        return self._split(items, rows)

    def _split(self, items: Iterable[Any], rows: int) -> Iterator[Piece]:
        for number, item in enumerate(items):
            yield from split(*self._piece(item, number), rows, f"chunk {number}", 0)

    def _piece(self, item: Any, number: int) -> tuple[Array, Array, Array | None]:
        X, y, weight = _arrays(item, number)
        q = 1 if y.ndim == 1 else y.shape[1]
        if (X.shape[1], q, y.ndim == 1) != (self.d, self.q, self.vector):
            raise InvalidInput(
                f"chunk {number} has X {X.shape} and y {y.shape}; the first had {self.d} inputs and {self.q} outputs"
            )
        return X, y.reshape(len(X), q), weight

    def first_chunks(self, rows: int) -> Iterator[Chunk]:
        """Those of a generator were kept."""
        if self.passes is None:
            yield from self.chunks(rows)
            return
        for piece in self._split(self.kept, rows):
            chunk = self._check(piece, 0)
            if len(chunk.Y):
                yield chunk


class FunctionSource(LocalSource):
    """n samples of a black box: x from a sampler, y = f(x). Every chunk has its own seed, so passes repeat.

    Parameters
    ----------
    f : callable
        (k, d) array ↦ (k,) or (k, q) array.
    sampler : callable
        ``sampler(k, rng)`` draws X (k, d) with the given Generator.
    n : int
        Rows in one pass.
    chunk : int, optional
        Rows drawn at a time; the samples depend on it.
    seed : int, default 0

    Examples
    --------
    >>> source = FunctionSource(lambda X: np.abs(X[:, 0]), lambda k, rng: rng.normal(size=(k, 2)), n=1000, chunk=300)
    >>> [len(c.X) for c in source.chunks()], source.d
    ([300, 300, 300, 100], 2)
    """

    def __init__(
        self,
        f: Callable[[Array], ArrayLike],
        sampler: Callable[[int, np.random.Generator], ArrayLike],
        n: int,
        chunk: int | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        if n < 2:
            raise InvalidInput(f"at least 2 samples are needed, got n={n}")
        self.f, self.sampler, self.seed, self.drawn = f, sampler, seed, 1
        X, y = self._draw(0, 2)
        super().__init__(
            X.shape[1],
            1 if y.ndim == 1 else y.shape[1],
            vector=y.ndim == 1,
            n=None if options.get("bad_rows") == "skip" else n,
            label=f"{getattr(f, '__name__', 'a function')}, {n} samples",
            chunk=chunk,
            **options,
        )
        self.total, self.drawn = n, self.chunk

    def _draw(self, number: int, k: int) -> tuple[Array, Array]:
        rng = np.random.default_rng([self.seed, number])
        X, y, _ = _arrays((self.sampler(k, rng),), number, self.f)
        if len(X) != k:
            raise InvalidInput(f"the sampler was asked for {k} rows and returned {len(X)}")
        return X, y

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Drawn chunks, split where smaller ones are wanted."""
        for number, start in enumerate(range(0, self.total, self.drawn)):
            X, y = self._draw(number, min(self.drawn, self.total - start))
            yield from split(X, y.reshape(len(X), -1), None, rows, f"sampled chunk {number}", 0)


def _arrays(item: Any, number: int, f: Callable[[Array], ArrayLike] | None = None) -> tuple[Array, Array, Array | None]:
    """(X, y[, weight]) or, with f, (X,) as float64 arrays of fitting shapes."""
    try:
        X = np.ascontiguousarray(item[0], dtype=np.float64)
        y = np.ascontiguousarray(item[1] if f is None else f(X), dtype=np.float64)
        weight = np.ascontiguousarray(item[2], dtype=np.float64) if len(item) == 3 else None
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise InvalidInput(f"chunk {number} is not (X, y) or (X, y, weight) of real numbers: {error}") from error
    if X.ndim != 2 or y.ndim not in (1, 2) or len(X) != len(y) or (weight is not None and weight.shape != (len(X),)):
        shapes = [X.shape, y.shape, *([] if weight is None else [weight.shape])]
        raise InvalidInput(
            f"chunk {number} must be X (k, d), y (k,) or (k, q) and weight (k,); got {', '.join(map(str, shapes))}"
        )
    return X, y, weight
