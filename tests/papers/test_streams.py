"""The papers' methods on rows that stay in files: the answer of memory, in the memory of a few chunks."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relumine import metrics, planted
from relumine.data.sources import open_source
from relumine.papers import awasthi2021, zhong2017
from relumine.results import InvalidInput, Status

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Rows as a parquet file in several row groups; its path."""

    def written(X: np.ndarray, y: np.ndarray) -> str:
        path = tmp_path / "rows.parquet"
        table = pa.table({f"x{j}": column for j, column in enumerate(X.T)} | {"y": y})
        pq.write_table(table, path, row_group_size=20_000)
        return str(path)

    return written


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"estimator": "debiased"},
        {"estimator": "plain", "goal": "parameters"},
        {"goal": "function"},
        {"whiten": True},
        {"reduce": False},
    ],
    ids=str,
)
def test_awasthi_in_files_is_awasthi_in_memory(options: dict, write: Write) -> None:
    truth = planted.network(6, 3, rng=1)
    X, y = planted.sample(truth, 40_000, rng=2)
    expected = awasthi2021.recover_awasthi(X, y, 3, rng=0, **options)
    found = awasthi2021.recover_awasthi(open_source(write(X, y), target="y", chunk=3000), None, 3, rng=0, **options)
    assert found.status is expected.status
    for name in ("W", "b", "a", "v", "c"):
        np.testing.assert_allclose(getattr(found.network, name), getattr(expected.network, name), atol=1e-9)
    assert found.certificate.residual == pytest.approx(expected.certificate.residual, abs=1e-9)
    assert (found.certificate.rows, found.units) == (4000, expected.units)


def test_awasthi_on_coloured_rows_in_files(write: Write) -> None:
    truth = planted.network(5, 2, rng=3)
    mix = np.eye(5) + 0.3 * np.random.default_rng(0).normal(size=(5, 5))
    X, y = planted.sample(truth, 60_000, rng=4, cov=mix @ mix.T, mean=np.full(5, 0.5))
    expected = awasthi2021.recover_awasthi(X, y, 2, rng=0)
    found = awasthi2021.recover_awasthi(open_source(write(X, y), target="y", chunk=7000), None, 2, rng=0)
    assert "whitened" in found.stages[0].note
    np.testing.assert_allclose(found.network.W, expected.network.W, atol=1e-9)
    assert metrics.gaussian_distance(truth, found.network) < 0.2


def test_memory_is_that_of_chunks_for_a_file_ten_times_larger(write: Write) -> None:
    """40 MB of rows, chunks of 0.5 MB: 4 MB would be the ``memory`` that the file is ten times larger than."""
    truth = planted.network(9, 2, rng=5)
    X, y = planted.sample(truth, 500_000, rng=6)
    rows, path = X.nbytes + y.nbytes, write(X, y)
    expected = awasthi2021.recover_awasthi(X, y, 2, rng=0)
    del X, y
    source = open_source(path, target="y", chunk=6000)
    tracemalloc.start()
    try:
        found = awasthi2021.recover_awasthi(source, None, 2, rng=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found.network.W, expected.network.W, atol=1e-9)
    np.testing.assert_allclose(found.network.a, expected.network.a, atol=1e-9)
    # what does not depend on n: features of the rows looked at for errors, held-out rows, chunks read ahead
    assert peak < 0.4 * rows, f"{peak / 1e6:.1f} MB of {rows / 1e6:.1f} MB"


def test_algorithm_5_in_files(write: Write) -> None:
    truth = planted.network(5, 2, rng=1)
    X, y = planted.sample(truth, 20_000, rng=2)
    expected = awasthi2021.algorithm_5(X, y, 1, 2, rng=0)
    found = awasthi2021.algorithm_5(open_source(write(X, y), target="y", chunk=3000), None, 1, 2, rng=0)
    fresh = np.random.default_rng(3).normal(size=(200, 5))
    np.testing.assert_allclose(found(fresh), expected(fresh), atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"split": True}, {"moments": "plain"}, {"moments": "regressed"}], ids=str)
def test_the_start_of_zhong_in_files_is_that_in_memory(options: dict, write: Write) -> None:
    truth = planted.network(8, 3, rng=0, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 30_000, rng=1)
    source = open_source(write(X, y), target="y", chunk=4000)
    starts = [
        zhong2017.initialise(*rows, 3, truth.activation, np.random.default_rng(0), **options)
        for rows in ((X, y), (source, None))
    ]
    np.testing.assert_allclose(starts[1].W, starts[0].W, atol=1e-8)
    np.testing.assert_array_equal(starts[1].v, starts[0].v)


def test_zhong_in_files_is_exact_from_the_rows_that_fit(write: Write) -> None:
    truth = planted.network(8, 3, rng=0, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 30_000, rng=1)
    source = open_source(write(X, y), target="y", chunk=4000)
    found = zhong2017.recover_zhong(source, None, 3, memory=1e6, rng=0)
    assert found.status is Status.EXACT
    assert metrics.parameter_error(truth, found.network) < 1e-8
    assert [stage.name for stage in found.stages] == ["initialise", "descent", "descent"]
    assert "all 29400 rows" in found.stages[-1].note
    assert any("not in memory" in note for note in found.certificate.notes)


def test_with_noise_all_rows_count(write: Write) -> None:
    """The rows that fit in 300 kB, some thousand, leave an error that the passes over all rows take away."""
    truth = planted.network(6, 2, rng=2, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 20_000, noise=0.3, rng=3)
    source = open_source(write(X, y), target="y")
    whole = zhong2017.recover_zhong(X, y, 2, rng=0, iterations=300)
    found = zhong2017.recover_zhong(source, None, 2, memory=3e5, rng=0, iterations=300)
    few = zhong2017.recover_zhong(X[:1300], y[:1300], 2, rng=0, iterations=300)
    errors = [metrics.parameter_error(truth, net.network) for net in (whole, found, few)]
    assert errors[1] < 1.1 * errors[0] + 1e-4
    assert errors[1] < 0.5 * errors[2]


@pytest.mark.parametrize("recover", [awasthi2021.recover_awasthi, zhong2017.recover_zhong])
def test_rows_that_the_methods_cannot_use(recover: Callable) -> None:
    X, y = planted.sample(planted.network(4, 2, rng=0), 500, rng=1)

    def once():
        yield X, y

    with pytest.raises(InvalidInput, match="can be read once") as refused:
        recover(open_source(once()), None, 2, activation="relu")
    assert refused.value.argument == "X"
    with pytest.raises(InvalidInput, match="does not take sample_weight"):
        recover(open_source(X, y, sample_weight=np.ones(500)), None, 2, activation="relu")
    with pytest.raises(InvalidInput, match="one output at a time"):
        recover(open_source(X, np.column_stack([y, y])), None, 2, activation="relu")
    with pytest.raises(InvalidInput, match="leave y out"):
        recover(open_source(X, y), y, 2, activation="relu")
    with pytest.raises(InvalidInput, match="y is missing"):
        recover(X, None, 2, activation="relu")
