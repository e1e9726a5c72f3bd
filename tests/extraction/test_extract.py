"""Black boxes of every kind, asked politely, give their network away; broken ones end in words, with answers saved."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from tests.extraction.black_boxes import SECRET, WIDE, Flaky, found

import relumine as rl
from relumine.extraction import BlackBoxFailed
from relumine.results import InvalidInput, ModelFileError, RecoveryFailed


@pytest.mark.parametrize("width", [3, None])
def test_a_function(width: int | None) -> None:
    result = found(SECRET, width=width)
    assert result.status.value == "exact"
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-9
    assert result.queries == len(result.X) + 8 == len(result.y) + 8  # eight were asked twice
    assert result.way == "chosen"
    assert result.certificate.confirmed == 300
    assert result.certificate.unseen == pytest.approx(1.0 - 0.05 ** (1.0 / 300.0))
    assert result.queries < 300 + 150
    np.testing.assert_allclose(SECRET(result.X), result.y, rtol=1e-12, atol=1e-12)
    assert type(result.recovery) is rl.Recovery
    assert "queries: " in str(result)


def test_the_width_is_found_with_at_most_eight_random_queries_a_parameter() -> None:
    for m in (4, 5, 7):
        net = rl.planted.network(d=8, m=m, rng=m)
        result = found(net, dim=8, queries="random")
        assert result.way == "random"
        assert result.network.m == m
        assert rl.metrics.parameter_error(net, result.network) < 1e-9
        assert result.queries <= 8 * m * 10


def test_all_outputs_at_once() -> None:
    result = found(WIDE)
    assert result.network.q == 3
    assert rl.metrics.parameter_error(WIDE, result.network) < 1e-9
    assert found(lambda X: SECRET(X)[:, None]).network.q is None  # one output is a plain number


@pytest.mark.parametrize(
    "where",
    [
        {"mean": [1.0, 0.0, -1.0, 0.0, 5.0], "scale": 2.0},
        {"low": -3.0, "high": [1.0, 2.0, 3.0, 4.0, 5.0]},
        {"sampler": lambda rng, n: rng.laplace(size=(n, 5))},
    ],
)
def test_queries_where_the_user_wants_them(where) -> None:
    moved = SECRET.replace(b=SECRET.b - SECRET.W @ np.asarray(where.get("mean", np.zeros(5))))
    result = found(moved, width=3, **where)
    assert rl.metrics.parameter_error(moved, result.network) < 1e-8
    if "low" in where:
        assert (result.X >= -3.0).all()
        assert (np.asarray(where["high"]) - result.X).min() >= 0.0


def test_options_are_passed_on() -> None:
    net = rl.planted.network(d=4, m=3, rng=1, activation="tanh")
    result = found(net, dim=4, width=3, activation="tanh")
    assert rl.metrics.parameter_error(net, result.network) < 1e-7


def test_a_noisy_box_is_known_as_one() -> None:
    rng = np.random.default_rng(0)
    result = found(lambda X: SECRET(X) + 0.01 * rng.normal(size=len(X)), width=3, budget=3000)
    assert result.status.value == "noisy"
    assert rl.metrics.parameter_error(SECRET, result.network) < 0.05


def test_a_box_that_repeats_itself_is_never_called_noisy() -> None:
    """Something deterministic that is not a small network: a rough residual must not pass for noise."""
    result = found(lambda X: np.sin(40.0 * X).sum(axis=1) + X[:, 0], budget=200, on_failure="return", starts=1)
    assert not result.ok


def test_the_budget_is_kept() -> None:
    deep = lambda X: np.abs(np.abs(X @ np.ones(5)) - 1.0) ** 1.5  # noqa: E731
    with pytest.raises(RecoveryFailed) as caught:
        found(deep, budget=150, width=2, starts=2)
    assert caught.value.recovery.queries <= 150
    assert len(caught.value.recovery.X) == 142


def test_the_same_seed_asks_the_same() -> None:
    np.testing.assert_array_equal(found(SECRET, width=3).X, found(SECRET, width=3).X)


# -- boxes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["raise", "nan", "short"])
def test_one_call_in_twenty_fails(how: str) -> None:
    box = Flaky(0.05, how)
    result = found(box, width=3, batch=4)
    assert box.failures > 0
    assert result.retried >= box.failures
    assert result.dropped == 0
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-9


def test_one_row_in_twenty_is_nan() -> None:
    box = Flaky(0.05, rows=True)
    result = found(box, width=3)
    assert box.failures > 0
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-9


def test_rows_that_never_work_are_left_out() -> None:
    """A region where the box always fails: the batch is split around it."""

    def box(X: np.ndarray) -> np.ndarray:
        if (X[:, 0] > 1.8).any():
            raise ValueError("out of range")
        return SECRET(X)

    result = found(box, width=3, retries=1)
    assert result.dropped > 0
    assert (result.X[:, 0] <= 1.8).all()
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-8


def test_nan_for_ever_stops_with_a_word(tmp_path: Path) -> None:
    with pytest.raises(BlackBoxFailed, match=r"does not answer.*NaN"):
        found(lambda X: np.full(len(X), np.nan))
    asked = 0

    def dies(X: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += len(X)
        return SECRET(X) if asked <= 40 else np.full(len(X), np.nan)

    path = tmp_path / "queries.npz"
    with pytest.raises(BlackBoxFailed, match=r"saved in .*queries\.npz"):
        found(dies, width=3, save=path, batch=8)
    with np.load(path) as saved:
        np.testing.assert_allclose(SECRET(saved["X"]), saved["y"], rtol=1e-12, atol=1e-12)
        assert len(saved["X"]) >= 24


def test_resume_goes_on(tmp_path: Path) -> None:
    path, asked = tmp_path / "queries.npz", []

    def counting(X: np.ndarray) -> np.ndarray:
        asked.append(len(X))
        if sum(asked) > 50 and len(asked) < 100:
            asked.extend([0] * 100)
            raise KeyboardInterrupt
        return SECRET(X)

    with pytest.raises(KeyboardInterrupt):
        found(counting, width=3, save=path, batch=10)
    with np.load(path) as saved:
        before = saved["X"]
    assert len(before) >= 30
    with pytest.raises(InvalidInput, match="exists; pass resume=True"):
        found(counting, width=3, save=path)
    result = found(counting, width=3, save=path, resume=True)
    np.testing.assert_array_equal(result.X[: len(before)], before)
    assert len(np.unique(result.X[:, 0])) == len(result.X)  # nothing was asked twice and counted twice
    assert result.queries == len(result.X) - len(before) + 16
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-9
    with np.load(path) as saved:
        np.testing.assert_array_equal(saved["X"], result.X)


def test_resume_sees_another_box_and_damage(tmp_path: Path) -> None:
    path = tmp_path / "queries.npz"
    found(SECRET, width=3, save=path)
    with pytest.raises(InvalidInput, match="another box"):
        found(lambda X: SECRET(X) + X[:, 0], width=3, save=path, resume=True)
    with pytest.raises(InvalidInput, match="5 inputs"):
        found(SECRET, dim=4, save=path, resume=True)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ModelFileError, match="not a readable npz"):
        found(SECRET, save=path, resume=True)


def test_the_rate_is_kept() -> None:
    """Rows per second over the whole run; the times are those of the calls, so a slow machine cannot fail this."""
    times: list[tuple[float, int]] = []

    def box(X: np.ndarray) -> np.ndarray:
        times.append((time.monotonic(), len(X)))
        return SECRET(X)

    began = time.monotonic()
    found(box, width=3, rate_limit=600.0)
    before_last = sum(rows for _, rows in times[:-1])
    assert before_last >= 16
    assert times[-1][0] - began >= before_last / 600.0


def test_time_is_kept() -> None:
    result = found(lambda X: np.sin(9.0 * X).sum(axis=1), seconds=1.0, on_failure="return", budget=10**6)
    assert not result.ok


# -- trained networks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "box",
    [
        lambda X: np.column_stack([WIDE(X)[:, 0]] * 2),
        lambda X: 1 / 0,
        lambda X: X[:, 0] * np.nan,
        lambda X: SECRET(X) * (1.0 + 3e-5),
    ],
)
def test_resume_verifies_the_box(tmp_path: Path, box) -> None:
    """A box that fails, or that answers a little differently, is not the one whose answers were saved."""
    path = tmp_path / "queries.npz"
    found(SECRET, width=3, save=path)
    with pytest.raises((BlackBoxFailed, InvalidInput), match=r"had answered|another box"):
        found(box, width=3, save=path, resume=True, retries=1)
    assert found(SECRET, width=3, save=path, resume=True).status.value == "exact"


def test_resume_bears_the_rounding_of_single_precision(tmp_path: Path) -> None:
    path, offset = tmp_path / "queries.npz", 1000.0
    single = lambda X: (SECRET(X) + offset).astype(np.float32)  # noqa: E731
    found(single, width=3, save=path)
    offset += 1e-4  # one unit in the last place
    assert found(single, width=3, save=path, resume=True).ok
    offset += 0.1
    with pytest.raises(InvalidInput, match="another box"):
        found(single, width=3, save=path, resume=True)


def test_progress_counts_what_was_asked() -> None:
    steps: list[rl.Progress] = []
    found = rl.extract(rl.planted.network(20, 6, rng=0), dim=20, rng=0, progress=steps.append)
    asked = [step.queries for step in steps]
    assert None not in asked
    assert asked == sorted(asked)
    assert asked[-1] <= found.queries
    (expected,) = {step.expected for step in steps if step.expected is not None}
    assert 0.5 * found.queries < expected < 2.0 * found.queries
