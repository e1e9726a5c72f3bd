"""More rows than the search needs: found from a few, decided by all; from memory, files and chunks."""

import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import relumine as rl
from relumine.recovery import large
from relumine.recovery.large import first_rows


@pytest.fixture(scope="module")
def planted():
    truth = rl.planted.network(d=6, m=4, rng=0)
    return truth, *rl.planted.sample(truth, n=40_000, rng=1)


@pytest.fixture(scope="module")
def noisy():
    truth = rl.planted.network(d=5, m=3, rng=2)
    return truth, *rl.planted.sample(truth, n=40_000, noise=0.1, rng=3)


def parquet(folder, X, y, files: int = 3, group: int = 3000):
    for k, rows in enumerate(np.array_split(np.arange(len(y)), files)):
        columns = {f"x{j}": X[rows, j] for j in range(X.shape[1])} | {"y": y[rows]}
        pq.write_table(pa.table(columns), folder / f"part-{k}.parquet", row_group_size=group)
    return str(folder / "part-*.parquet")


def test_exact_data_are_found_from_a_few_rows_and_checked_on_all(planted) -> None:
    truth, X, y = planted
    found = rl.recover(X, y, width=4, rng=0)
    assert found.status is rl.Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-9
    assert found.search.rows_searched < 6000
    assert found.search.rows == 40_000
    assert found.certificate.rows == 40_000 - found.search.rows_searched


def test_one_row_in_ten_thousand_is_enough_to_doubt(planted) -> None:
    _, X, y = planted
    y = y.copy()
    y[::10_000] += 0.01
    found = rl.recover(X, y, width=4, rng=0, starts=2, on_failure="return")
    assert found.status is not rl.Status.EXACT


def test_a_unit_that_few_rows_see_is_found_when_more_are_taken() -> None:
    """Its kink lies at −3.1: one row in a thousand is behind it, five thousand rows show it too little."""
    rng = np.random.default_rng(0)
    truth = rl.Network(np.vstack([rng.normal(size=(2, 3)), [[0.0, 0.0, 1.0]]]), [0.3, -0.2, -3.1], [1.0, -1.5, 2.0])
    X = rng.normal(size=(100_000, 3))
    found = rl.recover(X, truth(X), width=3, rng=1, on_failure="return")
    assert found.status is rl.Status.EXACT
    assert rl.metrics.parameter_error(truth.scaled(), found.network) < 1e-7


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(("different", "least"), [(100, 90), (20_000, 14_000), (40_000, 40_000)])
def test_copies_count_once_among_many_rows(noise: float, different: int, least: int) -> None:
    """100 rows, each 400 times, say of the inputs what 100 rows do."""
    net, rng = rl.planted.network(3, 2, rng=0), np.random.default_rng(0)
    X = np.tile(rng.normal(size=(different, 3)), (40_000 // different, 1))
    found = rl.recover(X, net(X) + noise * rng.normal(size=len(X)), width=2, rng=0)
    assert found.search.rows_searched < 6000
    assert least <= found.certificate.confirmed <= 1.3 * different


def test_noisy_data_are_refined_on_all_rows(noisy) -> None:
    truth, X, y = noisy
    found = rl.recover(X, y, width=3, rng=0)
    assert found.status is rl.Status.NOISY
    assert found.search.rows > 39_000
    assert found.certificate.noise == pytest.approx(0.1, rel=0.02)
    # all rows have been used: errors of parameters agree with standard errors from n = 40 000, not 5000
    error = rl.metrics.parameter_error(truth, found.network)
    assert error < 0.02
    assert np.nanmax(found.standard_errors.W) < 0.004
    few = rl.recover(X[:5000], y[:5000], width=3, rng=0)
    assert np.nanmax(found.standard_errors.W) == pytest.approx(np.nanmax(few.standard_errors.W) / 8**0.5, rel=0.3)


@pytest.mark.parametrize("kind", ["exact", "noisy"])
def test_files_too_large_for_memory_give_the_same_network(kind: str, planted, noisy, tmp_path) -> None:
    truth, X, y = planted if kind == "exact" else noisy
    inside = rl.recover(X, y, width=truth.m, rng=0)
    outside = rl.recover(parquet(tmp_path, X, y), target="y", width=truth.m, rng=0, memory=3e6)
    assert outside.status is inside.status
    assert rl.metrics.parameter_error(inside.network, outside.network) < 1e-10
    assert any("rows" in note for note in outside.certificate.notes)


def test_small_files_are_read_into_memory(planted, tmp_path) -> None:
    _, X, y = planted
    path = parquet(tmp_path, X[:2000], y[:2000])
    found = rl.recover(path, target="y", width=4, rng=0)
    again = rl.recover(X[:2000], y[:2000], width=4, rng=0)
    assert rl.metrics.parameter_error(again.network, found.network) < 1e-12
    assert found.search.rows == again.search.rows


def cut(X, y, rows: int):
    return [(X[k : k + rows], y[k : k + rows]) for k in range(0, len(y), rows)]


@pytest.mark.parametrize("kind", ["exact", "noisy"])
def test_chunks_do_not_matter(kind: str, planted, noisy) -> None:
    truth, X, y = planted if kind == "exact" else noisy
    X, y = X[:12_000], y[:12_000]
    nets = [
        rl.recover(cut(X, y, chunk), width=truth.m, rng=0, memory=1e6).network
        for chunk in (7 if kind == "exact" else 700, 1000, len(y))
    ]
    for net in nets[1:]:
        assert rl.metrics.parameter_error(nets[0], net) < 1e-10


def test_every_row_its_own_chunk(planted) -> None:
    _, X, y = planted
    nets = [rl.recover(cut(X[:3000], y[:3000], chunk), width=4, rng=0, memory=1e6).network for chunk in (1, 3000)]
    assert rl.metrics.parameter_error(nets[0], nets[1]) < 1e-10


def test_float32_storage_rounds_and_says_so(planted, tmp_path) -> None:
    truth, X, y = planted
    found = rl.recover(parquet(tmp_path, X, y), target="y", width=4, rng=0, storage="float32", memory=3e6)
    assert found.status is rl.Status.NOISY
    assert rl.metrics.parameter_error(truth, found.network) < 1e-5
    assert found.certificate.noise < 1e-6


def test_a_generator_cannot_be_fitted(planted) -> None:
    _, X, y = planted
    with pytest.raises(rl.InvalidInput, match="only once"):
        rl.recover(((X[s : s + 100], y[s : s + 100]) for s in range(0, 1000, 100)), width=4)


def test_papers_methods_leave_rows_in_files(tmp_path) -> None:
    """200 000 rows of seven numbers, 11 MB, with one megabyte allowed: moments are sums over rows."""
    truth = rl.planted.network(6, 2, rng=0)
    X, y = rl.planted.sample(truth, 200_000, rng=1)
    asked = {"width": 2, "method": "awasthi", "rng": 0, "on_failure": "return"}
    inside = rl.recover(X, y, **asked)
    outside = rl.recover(parquet(tmp_path, X, y), target="y", memory=1e6, **asked)
    assert inside.status is outside.status
    assert rl.metrics.parameter_error(inside.network, outside.network) < 1e-9


def test_columns_are_said_by_name(planted, tmp_path) -> None:
    _, X, y = planted
    path = parquet(tmp_path, np.column_stack([X, 2.0 * X[:, 0]]), y)
    with pytest.raises(rl.InvalidInput, match="x6"):
        rl.recover(path, target="y", width=4, memory=2e6)


def test_how_many_rows_to_begin_with() -> None:
    assert first_rows(10, 1, 20) == 30 * (20 * 11 + 11)
    assert first_rows(2, 1, 1) == 5000
    assert first_rows(10, 1, None) == 20_000


def test_one_wild_row_among_many_is_doubted(noisy) -> None:
    """The noise of a few rows and that of all contradict each other."""
    _, X, y = noisy
    y = y.copy()
    y[np.argmin((X**2).sum(axis=1))] += 1000.0
    found = rl.recover(X, y, width=3, rng=0, on_failure="return")
    assert found.status is rl.Status.NOT_RECOVERED
    assert "do not belong" in found.message


def test_rows_that_are_all_off_a_little_are_doubted(planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row counts as far off here: their mean square must tell."""
    _, X, y = planted
    y = y.copy()
    y[np.argmin((X**2).sum(axis=1))] += 1e-3
    monkeypatch.setattr(large, "_ROW", 1e15)
    found = rl.recover(X, y, width=4, rng=0, on_failure="return")
    assert found.status is rl.Status.NOT_RECOVERED


def test_what_looks_affine_among_a_few_rows_must_be_affine_everywhere() -> None:
    X = np.random.default_rng(0).normal(size=(60_000, 3))
    rare = np.argsort(X[:, 0])[-3:]
    for y, scale in ((np.zeros(60_000), 1e-7), (X[:, 1].copy(), 1e-6), (np.full(60_000, 5.0), 1e-6)):
        assert rl.recover(X, y, width=0, rng=0).status is rl.Status.EXACT
        y[rare] += scale
        found = rl.recover(X, y, width=0, rng=0, on_failure="return")
        assert found.status is not rl.Status.EXACT


def test_a_column_constant_among_a_few_rows_is_not_constant(planted) -> None:
    _, X, y = planted
    X = np.column_stack([X, np.zeros(len(y))])
    X[[5, 7000, 20_000, 30_000], 6] = 1.0
    found = rl.recover(X, y, width=4, rng=0, on_failure="return")
    assert found.status is not rl.Status.EXACT  # four rows do not show a dependence on it


def test_an_affine_output_beside_a_noisy_one(noisy) -> None:
    _, X, y = noisy
    for n in (2000, 40_000):
        found = rl.recover(X[:n], np.column_stack([y, X[:, 0]])[:n], width=3, rng=0)
        assert found.status is rl.Status.NOISY
    spoilt = np.column_stack([y, X[:, 0]])
    spoilt[[1, 2, 3], 1] += 100.0
    assert rl.recover(X, spoilt, width=3, rng=0, on_failure="return").status is not rl.Status.NOISY


def test_chunks_with_and_without_weights_do_not_mix(noisy) -> None:
    _, X, y = noisy
    with pytest.raises(rl.InvalidInput, match="weights"):
        rl.recover([(X[:300], y[:300]), (X[300:600], y[300:600], np.ones(300))], width=3)


@pytest.mark.parametrize("kind", ["exact", "noisy"])
def test_stopped_on_the_way_through_all_rows_keeps_what_was_found(
    kind: str, planted, noisy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C: a pass that is under way is finished, and another one is not begun."""
    truth, X, y = planted if kind == "exact" else noisy
    pass_over = "_errors" if kind == "exact" else "whole_task"
    original = getattr(large, pass_over)
    signals = iter([signal.SIGINT])

    def stop(*args: object, **options: object) -> object:
        for number in signals:
            signal.raise_signal(number)
        return original(*args, **options)

    monkeypatch.setattr(large, pass_over, stop)
    found = rl.recover(X, y, width=truth.m, rng=0)
    if kind == "exact":
        assert found.status is rl.Status.EXACT
        assert found.certificate.rows > 10_000
    else:
        assert found.status is rl.Status.INTERRUPTED
        assert "rows were looked at" in found.message
    assert rl.metrics.parameter_error(truth, found.network) < (1e-9 if kind == "exact" else 0.1)
