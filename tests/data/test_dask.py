"""Sums on a cluster of two worker processes: the same numbers, also when a worker is killed on the way."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relumine.data.moments import MomentSums, sums_of
from relumine.data.sources import Chunk, Source, count, materialise, open_source, take
from relumine.data.whiten import summary_of, whitening, whitening_of
from relumine.results import InvalidInput, RelumineError

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

# distributed leaves sockets and event loops of killed processes to the garbage collector
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RNG = np.random.default_rng(0)
N, D = 3000, 4
X = RNG.normal(size=(N, D))
Y = np.maximum(X @ RNG.normal(size=D), 0.0)


def new_cluster() -> tuple[Any, Any]:
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
    )
    return cluster, distributed.Client(cluster)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    cluster, client = new_cluster()
    yield client
    client.close()
    cluster.close()


def arrays() -> tuple[Any, Any]:
    # 17 blocks: a tree of three levels with a rest
    return da.from_array(X, chunks=(180, 3)), da.from_array(Y, chunks=900)


def slowly(chunk: Chunk, seconds: float) -> tuple[np.ndarray, ...]:
    time.sleep(seconds)
    return chunk.X.T @ chunk.X, chunk.X.T @ chunk.Y, np.array(float(chunk.first))


def test_arrays_frames_and_files_give_the_moments_of_their_rows(client: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    for number in range(3):
        part = pa.Table.from_pandas(frame.iloc[number * 1000 : (number + 1) * 1000])
        pq.write_table(part, tmp_path / f"part-{number}.parquet", row_group_size=600)
    sources = [
        open_source(*arrays(), client=client),
        open_source(dd.from_pandas(frame, npartitions=5), target="y", client=client),
        open_source(str(tmp_path / "part-*.parquet"), target="y", engine="dask", client=client),
    ]
    direct = MomentSums(D, 4).add(X, Y)
    for source in sources:
        assert isinstance(source, Source)
        found = sums_of(source, 4)
        for left, right in zip(found.parts(), direct.parts()):
            assert np.abs(left - right).max() <= 1e-12 * np.abs(right).max()
        assert (source.d, source.q, source.vector, count(source)) == (D, 1, True, N)
        np.testing.assert_array_equal(materialise(source).X, X)
    few, numbers = take(sources[0], 30, np.random.default_rng(0))
    np.testing.assert_array_equal(few.X, X[numbers])
    np.testing.assert_array_equal(few.y, Y[numbers])
    np.testing.assert_allclose(whitening_of(sources[0])[0].L, whitening(X).L, atol=1e-12)
    assert sources[1].names == sources[2].names == tuple("abcd")


def test_bad_rows_on_the_workers_are_named_or_counted(client: Any) -> None:
    spoilt = X.copy()
    spoilt[700, 2] = np.nan
    frame = dd.from_pandas(pd.DataFrame(spoilt, columns=list("abcd")).assign(y=Y), npartitions=6)
    with pytest.raises(InvalidInput, match="input column 'c' has no value in partition 1, row 200"):
        whitening_of(open_source(frame, target="y", client=client))
    source = open_source(frame, target="y", client=client, bad_rows="skip")
    assert (count(source), source.skipped) == (N - 1, 1)
    with pytest.raises(InvalidInput, match="no column 'z'"):
        open_source(frame, target="z", client=client)
    with pytest.raises(InvalidInput, match="rows but y has"):
        open_source(arrays()[0], arrays()[1][:-1], client=client)
    with pytest.raises(InvalidInput, match="needs y too"):
        open_source(arrays()[0], client=client)


def test_partitions_without_rows_are_passed_over(client: Any) -> None:
    """A filter leaves such partitions; the first of these has none, nor has a whole branch of the tree."""
    kept = np.arange(N) >= 2000
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=Y, kept=kept), npartitions=17)
    source = open_source(frame[frame.kept].drop(columns="kept"), target="y", client=client)
    summary = summary_of(source)
    assert summary.n == 1000
    np.testing.assert_allclose(summary.mean, X[2000:].mean(axis=0), atol=1e-14)
    np.testing.assert_array_equal(source.head(3).X, X[2000:2003])
    np.testing.assert_array_equal(take(source, np.array([0, 999]))[0].X, X[[2000, 2999]])
    none = open_source(frame[frame.y < -1.0].drop(columns="kept"), target="y", client=client)
    with pytest.raises(InvalidInput, match="no rows"):
        summary_of(none)


def test_only_sums_come_back(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(*arrays(), client=client)
    received: list[int] = []

    def counted(submit: Any, ask: Any = source._result) -> Any:
        found = ask(submit)
        received.append(sum(np.asarray(part).nbytes for part in found))
        return found

    monkeypatch.setattr(source, "_result", counted)
    source.reduce(partial(slowly, seconds=0.0))
    # the sizes of the partitions, once; then the sums
    assert received == [8 * 2 * len(source.partitions), 8 * (D * D + D + 1)]
    source.reduce(partial(slowly, seconds=0.0))
    assert received[2:] == [8 * (D * D + D + 1)]


def test_a_worker_killed_on_the_way_changes_nothing(client: Any) -> None:
    source = open_source(*arrays(), client=client)
    expected = source.reduce(partial(slowly, seconds=0.0))
    victim = next(iter(client.run(os.getpid).values()))
    threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
    found = source.reduce(partial(slowly, seconds=0.15))
    for left, right in zip(found, expected):
        np.testing.assert_array_equal(left, right)
    with pytest.raises(ProcessLookupError):
        os.kill(victim, 0)


def test_where_arrays_start_in_memory_changes_nothing() -> None:
    from relumine.data.dask import _apply

    data = np.zeros(X.nbytes + 8, dtype=np.uint8)
    moved = np.frombuffer(data, dtype=np.float64, count=X.size, offset=3).reshape(X.shape)
    moved[:] = X
    found, expected = (_apply(([Chunk(Z, Y[:, None])], 0), partial(slowly, seconds=0.0), 0) for Z in (moved, X))
    for left, right in zip(found, expected):
        np.testing.assert_array_equal(left, right)


def test_a_chunk_that_a_view_has_emptied_is_no_head() -> None:
    from relumine.data.dask import _head

    chunks = [Chunk(X[:0], Y[:0, None]), Chunk(X[:5], Y[:5, None])]
    assert len(_head((chunks, 0), 3).Y) == 3
    assert _head((chunks[:1], 0), 3) is None


def test_an_error_in_the_work_is_the_users_and_not_retried(client: Any) -> None:
    source = open_source(*arrays(), client=client)
    with pytest.raises(KeyError, match="nothing"):
        source.reduce(partial(_fails, word="nothing"))


def _fails(chunk: Chunk, word: str) -> tuple[np.ndarray, ...]:
    raise KeyError(word)


def test_no_client_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise ValueError("no clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(InvalidInput, match="pass client="):
        open_source(*arrays())


@pytest.mark.slow
def test_a_dead_scheduler_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    import subprocess
    import sys

    ready = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen([*command, "--scheduler-file", str(ready)], stderr=subprocess.DEVNULL)
    worker = None
    try:
        for _ in range(300):
            if ready.exists() and ready.stat().st_size:
                break
            time.sleep(0.1)
        client = distributed.Client(scheduler_file=str(ready), timeout=30)
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--scheduler-file", str(ready)],
            stderr=subprocess.DEVNULL,
        )
        client.wait_for_workers(1, timeout=60)
        source = open_source(*arrays(), client=client)
        saved = sums_of(source, 2)
        saved.save(tmp_path / "sums")
        threading.Timer(0.7, scheduler.kill).start()
        start = time.monotonic()
        with pytest.raises(RelumineError, match=r"scheduler unreachable.*Saved state .* remains usable"):
            source.reduce(partial(slowly, seconds=0.5))
        assert time.monotonic() - start < 60.0
        with pytest.raises(RelumineError, match="unreachable"):
            source.reduce(partial(slowly, seconds=0.0))
        assert MomentSums.load(tmp_path / "sums").n == N
        client.close(timeout=1)
    finally:
        for process in (scheduler, worker):
            if process is not None:
                process.kill()
                process.wait()
