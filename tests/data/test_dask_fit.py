"""`recover` with its rows on the workers of a cluster: the network found in memory, also when a worker dies."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import relumine as rl
from relumine.data.sources import open_source
from relumine.data.views import without
from relumine.data.whiten import Whitening
from relumine.fit.rows import affine_moment
from relumine.fit.streamed import prepare_source

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
DaskSource = pytest.importorskip("relumine.data.dask").DaskSource

# distributed leaves sockets and event loops of killed processes to the garbage collector
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MEMORY = 2.8e6  # the search has its 5000 rows, the others stay on the workers


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    client = distributed.Client(cluster)
    yield client
    client.close()
    cluster.close()


def samples(noise: float) -> tuple[rl.Network, np.ndarray, np.ndarray]:
    truth = rl.planted.network(d=4, m=3, rng=0)
    return truth, *rl.planted.sample(truth, n=20_000, noise=noise, rng=1)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_same_network_as_in_memory(noise: float, client: Any) -> None:
    _, X, y = samples(noise)
    here = rl.recover(X, y, width=3, rng=0)
    there = rl.recover(
        da.from_array(X, chunks=(3000, 4)), da.from_array(y, chunks=3000), width=3, rng=0, client=client, memory=MEMORY
    )
    assert there.status is here.status
    assert there.search.rows == here.search.rows
    assert rl.metrics.parameter_error(here.network, there.network) < 1e-10


def test_files_read_by_the_workers(client: Any, tmp_path: Path) -> None:
    truth, X, y = samples(0.0)
    for k in range(4):
        rows = slice(5000 * k, 5000 * (k + 1))
        table = pa.table({f"x{j}": X[rows, j] for j in range(4)} | {"y": y[rows]})
        pq.write_table(table, tmp_path / f"part-{k}.parquet", row_group_size=2000)
    path = str(tmp_path / "part-*.parquet")
    found = rl.recover(path, target="y", engine="dask", client=client, width=3, rng=0, memory=MEMORY)
    assert found.status is rl.Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-10


def test_a_worker_killed_during_the_fit_changes_nothing(client: Any) -> None:
    _, X, y = samples(0.1)
    dX, dy = da.from_array(X, chunks=(3000, 4)), da.from_array(y, chunks=3000)
    victims = list(client.run(os.getpid).values())[:1]
    killed = []

    def progress(step: Any) -> None:
        if step.stage == "all rows" and victims:
            killed.append(victims.pop())
            os.kill(killed[0], signal.SIGKILL)

    found = rl.recover(dX, dy, width=3, rng=0, client=client, memory=MEMORY, progress=progress)
    assert killed
    with pytest.raises(ProcessLookupError):
        os.kill(killed[0], 0)
    undisturbed = rl.recover(X, y, width=3, rng=0)
    assert rl.metrics.parameter_error(undisturbed.network, found.network) < 1e-10


@pytest.mark.parametrize("fits", [True, False])
def test_a_pass_whitens_nothing_twice(fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers whiten their rows once and keep them; only where memory does not allow it, on every pass."""
    _, X, y = samples(0.1)
    whitened: list[int] = []
    apply = Whitening.apply

    def counted(white: Whitening, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        whitened.append(len(rows))
        return apply(white, rows, out)

    monkeypatch.setattr(Whitening, "apply", counted)
    if not fits:
        monkeypatch.setattr(DaskSource, "_fits", lambda self, size: False)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        dX, dy = da.from_array(X, chunks=(3000, 4)), da.from_array(y, chunks=3000)
        aside = np.arange(0, 20_000, 50)
        prepared = prepare_source(without(open_source(dX, dy, client=client), aside), np.ones(1))
        for _ in range(3):
            total = prepared.rows.sum(affine_moment, 4)[1]
            prepared.plain.squares()
        direct = prepare_source(without(open_source(X, y), aside), np.ones(1))
        np.testing.assert_allclose(total, direct.rows.squares(), rtol=1e-9)
        once = 20_000 - len(aside)
        of_cluster = sum(whitened) - once  # the direct one, too, once
        assert of_cluster == once if fits else of_cluster >= 4 * once
