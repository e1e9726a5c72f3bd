"""Sums over chunks of rows on several cores.

The chunks are small enough for the cache, and too small for the threads of a BLAS: on a busy machine those wait for
each other and lose far more than they gain. So inside :func:`cores` the BLAS has one thread, and a crew of as many
workers as it had before, given to the rows, each take a contiguous share of the chunks. Shares are added in order: the
result depends on the number of workers only through rounding.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from threadpoolctl import ThreadpoolController

from relumine.arrays import Array

Item = TypeVar("Item")


class _Scratch(threading.local):
    """Work arrays by name, one set per thread, so that a loop over chunks does not ask the system for memory."""

    def __call__(self, name: str, rows: int, columns: int, *, dtype: DTypeLike = np.float64) -> Array:
        """An uninitialised (rows, columns) array that stays valid until the next request of that name and type."""
        size, key = rows * columns, f"{name} {np.dtype(dtype).char}"
        memory: Array | None = self.__dict__.get(key)
        if memory is None or memory.size < size:
            memory = self.__dict__[key] = np.empty(size, dtype)
        return memory[:size].reshape(rows, columns)


scratch = _Scratch()


class Crew:
    """Workers that share a sum over chunks. It stays on its machine: a copy sent elsewhere is a single worker."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self.pool = ThreadPoolExecutor(workers) if workers > 1 else None

    def __reduce__(self) -> tuple[type[Crew], tuple[()]]:
        return type(self), ()

    def total(self, part: Callable[[Item], tuple[Array, ...]], items: Sequence[Item]) -> tuple[Array, ...]:
        """Σ part(item), componentwise."""

        def share(mine: Sequence[Item]) -> tuple[Array, ...]:
            sums = part(mine[0])
            for item in mine[1:]:
                for running, more in zip(sums, part(item)):
                    running += more
            return sums

        if self.pool is None or len(items) < 2 * self.workers:
            return share(items)
        cuts = np.linspace(0, len(items), self.workers + 1).astype(int)
        shares = [items[i:j] for i, j in pairwise(cuts)]
        first, *others = self.pool.map(share, shares)
        for other in others:
            for running, more in zip(first, other):
                running += more
        return first


ALONE = Crew()


class _SingleThreadedBlas:
    """One BLAS thread while anyone is inside; the setting is global, so the last to leave restores it."""

    def __init__(self) -> None:
        self.lock, self.inside, self.threads = threading.Lock(), 0, 1
        self.limit: Any = None

    def enter(self) -> int:
        """Limit the BLAS to one thread; returns how many it had."""
        with self.lock:
            if self.inside == 0:
                controller = ThreadpoolController()
                blas = [info["num_threads"] for info in controller.info() if info["user_api"] == "blas"]
                self.threads = max(blas, default=1)
                self.limit = controller.limit(limits=1, user_api="blas")
            self.inside += 1
            return self.threads

    def leave(self) -> None:
        """Restore what was, if nobody else is inside."""
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.restore_original_limits()


_blas = _SingleThreadedBlas()


@contextmanager
def cores(workers: int | None = None) -> Iterator[Crew]:
    """Within: one BLAS thread, and a crew of ``workers`` for the sums (as many as the BLAS had threads)."""
    threads = _blas.enter()
    try:
        crew = Crew(workers or threads)
        try:
            yield crew
        finally:
            if crew.pool is not None:
                crew.pool.shutdown()
    finally:
        _blas.leave()
