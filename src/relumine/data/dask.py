"""Sources whose rows live on the workers of a Dask cluster: a function goes out to the rows, and its sums come back.

Each partition is a task whose result, a list of chunks, stays on a worker. The scheduler keeps the tasks, so what a
lost worker held is computed again from the files or the collection behind it. Sums are taken along a tree that depends
only on the number of partitions: the answer is the same bit for bit whichever worker did what.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array, slices
from relumine.data.sources.arrays import MappedSource
from relumine.data.sources.chunks import Change, Chunk, Part, Source, add_up, join
from relumine.data.sources.columnar import Parquet
from relumine.data.sources.columns import Columns, Named, frame_schema, pick
from relumine.data.sources.local import LocalSource, Mapped
from relumine.data.sources.tables import TableSource, choose_columns, find_files, reader_of
from relumine.results import InvalidInput, RelumineError

try:
    import dask.array as da
    import distributed
    from dask.delayed import delayed
except ImportError as error:
    raise InvalidInput("Dask is not installed: pip install 'dask[array,dataframe,distributed]'") from error


_FAN_IN = 8  # sums added by one task of the tree
_RETRIES = 4  # of a pass: each survives the loss of a worker, and a cluster that loses more is not worth waiting for
_GRACE = 15.0  # seconds without scheduler, or without any worker, before giving up
_POLL = 1.0  # seconds between two looks at whether anyone is still there
_MEMORY_SHARE = 0.5  # of the workers' memory for rows, raw and prepared: at 0.6 they begin to write to disk
_PIECE_NUMBERS = 1 << 23  # numbers read by one task (64 MB), if the row groups allow


class DaskSource:
    """Rows as persisted partitions; see :class:`relumine.data.sources.Source`.

    ``partitions``: futures, each of a list of chunks and the number of bad rows left out.
    """

    passes: int | None = None
    resident = False

    def __init__(self, client: Any, partitions: list[Any], template: Source, label: str, d: int | None = None) -> None:
        self.client, self.partitions = client, partitions
        self.d, self.q, self.vector = d or template.d, template.q, template.vector
        self.names = template.names if d is None else None
        self.label, self.assumed = label, template.assumed
        self.n: int | None = None
        self.skipped = 0
        self._first: list[int] | None = None

    def reduce(self, part: Part) -> tuple[Array, ...]:
        """Σ part(chunk) on the workers, along a fixed tree; the sum comes back (see ``Source``)."""
        firsts = self._firsts()

        def submit() -> Any:
            # a task, not scattered data: the scheduler can make it again if its worker goes away
            state = self._submit(_same, part, priority=1)
            level = [self._submit(_apply, p, state, first) for p, first in zip(self.partitions, firsts)]
            while len(level) > 1:
                level = [self._submit(_add, level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
            return level[0]

        sums = self._result(submit)
        if sums is None:
            raise InvalidInput(f"{self.label} has no rows")
        return tuple(np.array(a) for a in sums)

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """Partitions brought here one by one (see ``Source``)."""
        first = 0
        for p in self.partitions:
            chunks, _ = self._result(partial(_same, p))
            for chunk in chunks:
                for s in slices(len(chunk.Y), rows or max(len(chunk.Y), 1)):
                    yield _aligned(chunk.at(s)._replace(first=first))
                    first += s.stop - s.start

    def head(self, rows: int = 1024) -> Chunk:
        """The first rows, of the first partition that has any (see ``Source``)."""
        for p in self.partitions:
            found = self._result(partial(self._submit, _head, p, rows))
            if found is not None:
                return found  # type: ignore[no-any-return]
        raise InvalidInput(f"{self.label} has no rows")

    def rows_at(self, indices: NDArray[np.intp]) -> Chunk:
        """The rows of these numbers: every partition sends its own (see ``Source``)."""
        firsts = self._firsts()
        if len(indices) and (self.n is None or indices[-1] >= self.n):
            raise InvalidInput(f"{self.label} has no row {indices[-1]}")
        edges = [*np.searchsorted(indices, firsts), len(indices)]
        wanted = [(p, indices[a:b] - f) for p, f, a, b in zip(self.partitions, firsts, edges, edges[1:]) if b > a]
        found = self._result(lambda: self._submit(_same, [self._submit(_rows, p, at) for p, at in wanted]))
        return join(found) if found else Chunk(np.empty((0, self.d)), np.empty((0, self.q)))

    def map(self, change: Change, d: int | None = None, dropped: int = 0) -> Source:
        """Changed once by the workers, who keep the result, if their memory allows; else on every pass."""
        firsts = self._firsts()
        if not self._fits((self.n or 0) * (self.d + self.q + (d or self.d) + self.q) * 8):
            return Mapped(self, change, d, dropped)
        state = self._submit(_same, change, priority=1)
        made = [self._submit(_change, p, state, first) for p, first in zip(self.partitions, firsts)]
        return DaskSource(self.client, made, self, self.label, d)

    def _fits(self, size: float) -> bool:
        """Whether the workers together may hold so many bytes; without a limit they may."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker["memory_limit"] for worker in workers]
        return bool(limits) and (not all(limits) or size <= _MEMORY_SHARE * sum(limits))

    def _firsts(self) -> list[int]:
        """Number of rows before each partition; reads the data if it has not been read yet."""
        if self._first is None:
            sizes = self._result(lambda: self._submit(_same, [self._submit(_size, p) for p in self.partitions]))
            self.skipped = sum(skipped for _, skipped in sizes)
            self.n = sum(size for size, _ in sizes)
            self._first = [0, *np.cumsum([size for size, _ in sizes])[:-1].tolist()]
        return self._first

    def _submit(self, f: Callable[..., Any], *args: Any, priority: int = 0) -> Any:
        # unique keys: a result that was lost or failed is never taken from an earlier attempt
        key = f"relumine{f.__name__}-{uuid.uuid4().hex}"
        return self.client.submit(f, *args, key=key, priority=priority, pure=False)

    def _result(self, submit: Callable[[], Any]) -> Any:
        """The result of a task; lost workers are waited for and the work is given out again, a few times."""
        for attempt in range(_RETRIES):
            try:
                future = submit()
                self._wait(future)
                return future.result(timeout=_GRACE)
            except (distributed.KilledWorker, distributed.CancelledError, OSError, TimeoutError) as error:
                last: BaseException = error  # CommClosedError is an OSError
            if self.client.status != "running":
                raise self._unreachable() from last
            for p in self.partitions:
                if p.status in ("error", "lost"):
                    p.retry()
            time.sleep(0.5 * (attempt + 1))
        raise RelumineError(f"the cluster failed {_RETRIES} times at {self.label}: {last}") from last

    def _wait(self, future: Any) -> None:
        alone = 0.0  # seconds without scheduler or workers
        while not future.done():
            try:
                distributed.wait(future, timeout=_POLL)  # type: ignore[no-untyped-call,unused-ignore]
            except TimeoutError:
                alone = 0.0 if self._workers() else alone + _POLL
            if self.client.status in ("closed", "closing") or alone >= _GRACE:
                raise self._unreachable()

    def _workers(self) -> int:
        if self.client.status != "running":
            return 0
        try:
            return len(self.client.sync(self.client.scheduler.ncores, workers=None, callback_timeout=_GRACE))
        except (OSError, TimeoutError):
            return 0

    def _unreachable(self) -> RelumineError:
        reached = self.client.status == "running"
        what = "has no workers" if reached else "cannot be reached (scheduler unreachable)"
        return RelumineError(
            f"Dask: the cluster {what} while reading {self.label}; start it again and call again with a new client. "
            "Saved state (moment sums, checkpoints) remains usable"
        )


def open_files(paths: Any, named: Named, client: Any, **options: Any) -> DaskSource:
    """Files read by the workers, who must see the same paths: row groups of parquet, else whole files."""
    client = _client(client)
    files = find_files(paths)
    skip = options.get("bad_rows") == "skip"
    text = {name: options.pop(name) for name in ("delimiter", "decimal") if name in options}
    columns = choose_columns(files, reader_of(files, skip, **text), named)

    def part(path: str, groups: list[int] | None = None) -> TableSource:
        return TableSource([path], reader_of([path], skip, **text), columns, groups, False, label=path, **options)

    sources = [part(path, groups) for path in files for groups in _groups(path, columns)]
    futures = client.map(_load, sources, key=f"relumine-read-{uuid.uuid4().hex}", pure=False)
    label = f"{paths if isinstance(paths, str) else files[0]} ({len(files)} files on Dask)"
    return DaskSource(client, futures, sources[0], label)


def open_collection(X: Any, y: Any, named: Named, client: Any, **options: Any) -> DaskSource:
    """A dask array with y, or a dask dataframe with target columns; partitions stay where they are computed."""
    client = _client(client)
    names = None
    if hasattr(X, "columns"):
        blocks, names, template = _frame(X, named)
    else:
        blocks, template = _blocks(X, y, named.weight)
    options["names"] = names
    tasks = [delayed(_load_arrays)(x, t, w, number, template[1], options) for number, (x, t, w) in enumerate(blocks)]
    empty = MappedSource(np.empty((0, *template[0])), np.empty((0, *template[1])), None, **options)
    return DaskSource(client, client.compute(tasks), empty, f"a dask collection of {len(tasks)} partitions")


def _client(client: Any) -> Any:
    if client is None:
        try:
            client = distributed.default_client()  # type: ignore[no-untyped-call,unused-ignore]
        except ValueError:
            raise InvalidInput("no Dask client: pass client=distributed.Client(…)") from None
    if client.status != "running":
        raise RelumineError("the Dask client is not connected (scheduler unreachable); make a new one")
    return client


def _groups(path: str, columns: Columns) -> list[list[int] | None]:
    """Row groups to read together, or None for the whole file."""
    if not path.lower().endswith(Parquet.endings):
        return [None]
    reader = Parquet()
    together: list[list[int] | None] = []
    rows = most = max(1, _PIECE_NUMBERS // len(columns.all))
    for number, size in enumerate(reader.row_groups(path)):
        if rows + size > most or not together:
            together.append([])
            rows = 0
        last = together[-1]
        assert last is not None
        last.append(number)
        rows += size
    return together


Shapes = tuple[tuple[int, ...], tuple[int, ...]]


def _blocks(X: Any, y: Any, weight: Any) -> tuple[list[tuple[Any, Any, Any]], Shapes]:
    """Blocks of rows of X, y and weight side by side; shapes of one row."""
    if y is None or X.ndim != 2:
        raise InvalidInput(
            f"a dask array X (n, d) needs y too; got X {X.shape}, y {'missing' if y is None else y.shape}"
        )
    X = X.rechunk({1: -1})
    known = not np.isnan(X.shape[0])
    columns = [X]
    for name, values in (("y", y), ("sample_weight", weight)):
        if values is None:
            continue
        if not hasattr(values, "to_delayed"):
            blocks = (X.chunks[0], *np.shape(values)[1:])
            values = da.from_array(np.asarray(values), chunks=blocks)  # type: ignore[no-untyped-call,unused-ignore]
        if known and values.shape[0] != X.shape[0]:
            raise InvalidInput(f"X has {X.shape[0]} rows but {name} has {values.shape[0]}")
        values = values.rechunk({0: X.chunks[0]} if known else {}).rechunk(dict.fromkeys(range(1, values.ndim), -1))
        if values.numblocks[0] != X.numblocks[0]:
            raise InvalidInput(f"X has {X.numblocks[0]} blocks of unknown size but {name} has {values.numblocks[0]}")
        columns.append(values)
    parts = [c.to_delayed().ravel() for c in columns] + ([] if weight is not None else [[None] * X.numblocks[0]])
    return list(zip(*parts)), ((X.shape[1],), columns[1].shape[1:])


def _frame(df: Any, named: Named) -> tuple[list[Any], tuple[str, ...], Shapes]:
    """Partitions as (X, y, weight) of columns."""
    columns = pick("the dataframe", frame_schema(df), named)
    frames = df[columns.all].to_delayed()
    take = delayed(_columns)
    y = columns.targets[0] if columns.vector else list(columns.targets)
    blocks = [(take(f, list(columns.features)), take(f, y), columns.weight and take(f, columns.weight)) for f in frames]
    return blocks, columns.features, ((len(columns.features),), () if columns.vector else (len(columns.targets),))


# what runs on the workers


def _load(source: LocalSource) -> tuple[list[Chunk], int]:
    return list(source.chunks()), source.skipped


def _columns(frame: Any, names: Any) -> NDArray[Any]:
    return np.asarray(frame[names].to_numpy(dtype=np.float64))


def _load_arrays(
    X: Any, y: Any, weight: Any, number: int, row: tuple[int, ...], options: dict[str, Any]
) -> tuple[list[Chunk], int]:
    X, y = np.asarray(X), np.asarray(y).reshape(len(X), *row)
    return _load(MappedSource(X, y, weight, where=f"partition {number}", **options))


def _same(value: Any) -> Any:
    return value


def _apply(partition: tuple[list[Chunk], int], part: Part, first: int) -> tuple[Array, ...] | None:
    chunks = partition[0]
    return add_up(part(_aligned(c)._replace(first=first + c.first)) for c in chunks) if chunks else None


def _change(partition: tuple[list[Chunk], int], change: Change, first: int) -> tuple[list[Chunk], int]:
    """The chunks of a partition changed, and numbered anew from 0."""
    made, rows = [], 0
    for chunk in partition[0]:
        made.append(change(_aligned(chunk)._replace(first=first + chunk.first))._replace(first=rows))
        rows += len(made[-1].Y)
    return made, partition[1]


def _aligned(chunk: Chunk) -> Chunk:
    """Arrays from another worker may start at any byte, and then XᵀX would be rounded differently (GEMM, not SYRK)."""
    weight = None if chunk.weight is None else np.require(chunk.weight, requirements=["C", "A"])
    return Chunk(
        np.require(chunk.X, requirements=["C", "A"]), np.require(chunk.Y, requirements=["C", "A"]), weight, chunk.first
    )


def _add(sums: list[tuple[Array, ...] | None]) -> tuple[Array, ...] | None:
    there = [s for s in sums if s is not None]
    if not there:
        return None
    # the first is copied: what other tasks returned is not ours to change
    return add_up(iter([tuple(a.copy() for a in there[0]), *there[1:]]))


def _size(partition: tuple[list[Chunk], int]) -> tuple[int, int]:
    return sum(len(c.Y) for c in partition[0]), partition[1]


def _head(partition: tuple[list[Chunk], int], rows: int) -> Chunk | None:
    return next((chunk.at(slice(0, rows)) for chunk in partition[0] if len(chunk.Y)), None)  # a view may drop a chunk


def _rows(partition: tuple[list[Chunk], int], at: NDArray[np.intp]) -> Chunk:
    return join(partition[0]).at(at)
