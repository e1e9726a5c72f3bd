"""Where `recover` could be confidently wrong, and must not be: each test was once a wrong answer."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.catalogue.base import generic
from threadpoolctl import threadpool_info, threadpool_limits

import relumine as rl
from relumine import InvalidInput, Status
from relumine.data.holdout import same_rows, set_aside
from relumine.recovery.door import _starts
from relumine.results import Cause


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def status(X: np.ndarray, y: np.ndarray, width: int | None, seed: int = 0, **options: object) -> Status:
    return rl.recover(X, y, width, rng=seed, on_failure="return", **options).status


def test_a_large_output_does_not_hide_a_random_one() -> None:
    for seed in range(6):
        r = rng(seed)
        X = r.normal(size=(19, 4))
        Y = np.column_stack([1e6 * X[:, 0], 1e-6 * r.normal(size=19)])
        assert status(X, Y, 2, starts=3) is not Status.EXACT


def test_copies_of_rows_are_not_evidence() -> None:
    for seed in range(6):
        r = rng(seed)
        X, y = np.repeat(r.normal(size=(15, 4)), 10, axis=0), np.repeat(r.normal(size=15), 10)
        assert status(X, y, 2, starts=4) is not Status.EXACT
    truth = rl.planted.network(4, 3, rng=0)
    X, y = rl.planted.sample(truth, 150, rng=1)
    found = rl.recover(np.repeat(X, 3, axis=0), np.repeat(y, 3), 3, rng=0)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-9


def test_equal_rows_are_found() -> None:
    X = rng(0).normal(size=(200, 5))
    groups, count = same_rows(np.vstack([X, X[::-1], X[:7]]))
    assert count == 200
    np.testing.assert_array_equal(groups[:200], groups[200:400][::-1])
    assert same_rows(X)[1] == 200


@pytest.mark.parametrize("distinct", [3, 5, 11, 200])
def test_copies_are_set_aside_together_and_never_all(distinct: int) -> None:
    X = np.repeat(rng(0).normal(size=(distinct, 2)), 3, axis=0)
    aside, left = set_aside(X, rng(1))
    groups = aside // 3
    assert len(aside) == 3 * len(np.unique(groups))  # with all their copies
    assert left == distinct - len(aside) // 3 >= 2 * distinct / 3


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_rows_that_nearly_repeat_others_count_once(shift: float) -> None:
    """Where no function bends noticeably between two rows, the second says nothing that the first did not."""
    X = rng(0).normal(size=(200, 5)) + shift
    near = X + 1e-8 * rng(1).normal(size=X.shape)
    groups, count = same_rows(np.vstack([X, near]))
    assert count == 200
    np.testing.assert_array_equal(groups[:200], groups[200:])
    assert same_rows(np.vstack([X, X + 1e-5 * rng(1).normal(size=X.shape)]))[1] == 400
    assert same_rows(np.linspace(-1.0, 1.0, 10**6)[:, None])[1] == 10**6  # crowded, but all different


@pytest.mark.parametrize("seed", range(4))
def test_near_copies_of_the_rows_behind_a_kink_do_not_confirm_it(seed: int) -> None:
    """relu² with two rows behind its kink, each four times but for the last digits: a straight line explains them."""
    r = rng(seed)
    x = np.repeat(np.sort(r.normal(size=200)), 4)
    t = 0.5 * (x[-9] + x[-8])
    X = (x + 1e-11 * r.normal(size=x.size))[:, None]
    assert status(X, np.maximum(X[:, 0] - t, 0.0) ** 2, None, seed) is Status.AMBIGUOUS


@pytest.mark.parametrize("seed", range(4))
def test_one_outlier_among_few_rows_is_not_noise(seed: int) -> None:
    truth = rl.planted.network(2, 1, rng=seed)
    X, y = rl.planted.sample(truth, 35, rng=seed)
    y[7] += 4.0 * y.std()
    assert not status(X, y, 1, seed).ok


@pytest.mark.parametrize("odd", range(0, 41, 5))
def test_one_row_that_differs_behind_a_large_offset_is_not_forgotten(odd: int) -> None:
    """Rows used and rows set aside alike: all but one are 25255828, the last number that single precision has there."""
    X, y = np.random.default_rng(odd).normal(size=(41, 2)), np.full(41, 25255828.0)
    y[odd] += 2.0
    for seed in range(3):
        assert rl.recover(X, y, width=1, rng=seed, on_failure="return").status is not Status.EXACT


def test_offsets_cost_digits_and_are_not_called_exact() -> None:
    truth = rl.planted.network(5, 4, rng=0)
    X, y = rl.planted.sample(truth, 300, rng=1)
    noise = rng(0).normal(size=300)
    assert status(X, np.column_stack([y + 0.01 * noise, y + 5e11]), 4, starts=3) is not Status.EXACT
    assert status(X, y + 1e9 + 1e-5 * noise, 4) is not Status.EXACT
    found = rl.recover(X, y + 1e12 * X[:, 0], 4, rng=0, on_failure="return")
    assert found.status is not Status.EXACT


def test_every_unit_needs_rows_behind_its_kink_however_many_outputs() -> None:
    truth = rl.planted.network(10, 6, rng=0, outputs=10)
    X = rng(1).normal(size=(300, 10))
    z = np.sort(X @ truth.W[0])[::-1]
    b = truth.b.copy()
    b[0] = -(z[4] + z[5]) / 2  # five rows beyond
    truth = truth.replace(b=b)
    found = rl.recover(X, truth(X), 6, rng=1, on_failure="return")
    assert found.status is not Status.EXACT


def test_the_scale_of_the_weights_does_not_matter() -> None:
    r = rng(6)
    X = r.normal(size=(400, 3))
    y = np.abs(X[:, 0]) + 0.25 * X[:, 1] ** 2 + 0.25 * r.normal(size=400)
    verdicts = {status(X, y, 2, starts=3, sample_weight=w) for w in (None, np.full(400, 16.0), np.full(400, 1e-4))}
    assert verdicts == {Status.NOT_RECOVERED}


def test_rows_of_weight_zero_do_not_exist() -> None:
    truth = rl.planted.network(5, 4, rng=0)
    X, y = rl.planted.sample(truth, 300, rng=1)
    y[150:] = 99.0 * rng(0).normal(size=150)
    weight = np.r_[np.ones(150), np.zeros(150)]
    with_zeros = rl.recover(X, y, 4, rng=0, sample_weight=weight)
    without = rl.recover(X[:150], y[:150], 4, rng=0)
    assert with_zeros.status is Status.EXACT
    assert rl.metrics.parameter_error(with_zeros.network, without.network) < 1e-10


def test_one_input() -> None:
    r = rng(0)
    x = r.normal(size=(100, 1))
    assert isinstance(status(x, np.sin(3 * x[:, 0]) + 0.1 * r.normal(size=100), 2), Status)
    truth = rl.Network([[1.0], [1.0], [-1.0]], [0.5, -0.3, 0.1], [1.0, -2.0, 0.7])
    found = rl.recover(x, truth(x), 3, rng=0)
    np.testing.assert_allclose(found.network(x), truth(x), atol=1e-9)


@pytest.mark.parametrize("width", [5, 7, 12, 20])
def test_too_many_units_are_fine(width: int) -> None:
    truth = rl.planted.network(5, 4, rng=0)
    X, y = rl.planted.sample(truth, 300, rng=1)
    found = rl.recover(X, y, width, rng=0)
    assert found.status is Status.EXACT
    assert found.network.m == 4
    assert rl.metrics.parameter_error(truth, found.network) < 1e-9


def test_tiny_data_are_under_determined() -> None:
    for seed in range(4):
        X = rng(seed).normal(size=(8, 1))
        assert status(X, np.abs(X[:, 0]), None) is not Status.NOISY


def test_ctrl_c_keeps_the_work() -> None:
    truth = rl.planted.network(10, 10, rng=0)
    X, y = rl.planted.sample(truth, 550, rng=1)
    for width, when in ((10, 10), (None, 60)):
        calls = 0

        def stop(_: object, when: int = when) -> None:
            nonlocal calls
            calls += 1
            if calls == when:
                raise KeyboardInterrupt

        found = rl.recover(X, y, width, rng=0, progress=stop)
        assert found.status is Status.INTERRUPTED
        assert found.network.m > 0
        assert np.mean((found.network(X) - y) ** 2) < 0.5 * np.var(y)


def test_unknowable_signs_are_not_called_known() -> None:
    truth = rl.planted.network(4, 3, rng=0, family="dependent")
    X, y = rl.planted.sample(truth, 300, rng=1)
    found = rl.recover(X, y, 3, rng=0)
    assert found.status is Status.EXACT
    assert found.units.up_to_sign == (0, 1, 2)
    assert rl.metrics.parameter_error(truth, found.network) < 1e-9


def test_threads_leave_the_blas_as_it_was() -> None:
    truth = rl.planted.network(5, 4, rng=0)
    X, y = rl.planted.sample(truth, 300, rng=1)
    found: list[rl.Network] = []

    def threads_of_blas() -> list[int]:
        return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = threads_of_blas()
        workers = [threading.Thread(target=lambda: found.append(rl.recover(X, y, 4, rng=0).network)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert threads_of_blas() == before
    assert len(found) == 3
    assert max(rl.metrics.parameter_error(truth, net) for net in found) < 1e-9


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"starts": "3"}, "starts must be"),
        ({"starts": 1.5}, "starts must be"),
        ({"seconds": "3"}, "seconds must be"),
        ({"seconds": -1.0}, "seconds must be"),
        ({"seconds": float("nan")}, "seconds must be"),
        ({"rng": "abc"}, "rng must be"),
        ({"rng": -1}, "rng must be"),
        ({"X": np.ma.masked_invalid(np.ones((40, 3)))}, "masked"),
        ({"y": 1e200 * np.arange(40.0)}, "rescale"),
        ({"X": 1e-200 * np.ones((40, 3))}, "rescale"),
    ],
)
def test_more_bad_requests(change: dict, word: str) -> None:
    request = {"X": rng(0).normal(size=(40, 3)), "y": rng(1).normal(size=40), "width": 2, "rng": 0, **change}
    with pytest.raises(InvalidInput, match=word):
        rl.recover(**request)


@pytest.mark.parametrize(("of_x", "of_y"), [(1e-68, 1e68), (1e68, 1e-68), (1e68, 1e68)])
def test_sizes_just_within_the_limit_do_not_overflow(of_x: float, of_y: float) -> None:
    truth = rl.planted.network(3, 2, rng=0)
    X = rng(1).normal(size=(120, 3))
    found = rl.recover(of_x * X, of_y * truth(X), 2, rng=0)
    assert found.status is Status.EXACT
    assert np.allclose(found.network(of_x * X) / of_y, truth(X), rtol=1e-9, atol=1e-9)


def test_a_unit_seen_by_few_rows_follows_from_the_others() -> None:
    """Eight rows lie behind its kink, eleven numbers describe it; without affine part it is what the others leave."""
    truth = rl.planted.network(10, 5, rng=0)
    X = rng(1).normal(size=(1500, 10))
    z = np.sort(X @ truth.W[0])
    b = truth.b.copy()
    b[0] = -(z[7] + z[8]) / 2
    truth = truth.replace(b=b)
    found = rl.recover(X, truth(X), 5, rng=1)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-8
    affine = truth.replace(v=np.ones(10), c=0.5)  # with one it cannot be known
    assert rl.recover(X, affine(X), 5, rng=1, on_failure="return").status is not Status.EXACT


@pytest.mark.parametrize("seed", [20011, 20018])
@pytest.mark.parametrize("moved", [None, 2, 5])
def test_such_a_unit_needs_the_right_flips_of_the_others(seed: int, moved: int | None) -> None:
    """From the directions of the fit alone these two end at a wrong network.

    Behind one kink of the first lie eleven rows, which fix eleven numbers whatever they say, and one of them lies on
    the kink that is fitted: by the last bit of X it counts for either side.
    """
    truth, X, y = generic(10, 5, 40, bias=2.5)(seed)
    if moved is not None:
        X = np.where(rng(moved).random(X.shape) < 0.5, X, np.nextafter(X, np.inf))
        y = truth(X)
    found = rl.recover(X, y, 5, rng=seed + 2)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-8


def cubic_units(d: int, r: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    truth = rl.Network(rl.planted.weights(d, r, 1), np.zeros(r), np.ones(r), CUBIC)
    return rl.planted.sample(truth, n, rng=2)


CUBIC = "polynomial(0,0,0,1)"


@pytest.mark.parametrize(("d", "r", "n", "seconds"), [(5, 14, 200, None), (8, 26, 500, None), (40, 260, 12_000, 2.0)])
def test_hard_problems_end_with_their_reason(d: int, r: int, n: int, seconds: float | None) -> None:
    """Also where the function is found (few dimensions), and where the time is over (many)."""
    X, y = cubic_units(d, r, n)
    found = rl.recover(X, y, width=r, activation=CUBIC, rng=0, seconds=seconds, on_failure="return")
    assert found.status is Status.NOT_RECOVERED
    assert rl.advise(d, r, CUBIC).hardness in found.message
    assert found.search.starts == 1
    with pytest.raises(rl.RecoveryFailed, match="Theorem 1"):
        rl.recover(X[:50], y[:50], width=r, activation=CUBIC, rng=0)


def test_where_there_is_no_hope_one_start_is_enough() -> None:
    cubic = rl.activations.get(CUBIC)
    assert [_starts(5, width, cubic) for width in (3, 14, None)] == [20, 1, 20]


def test_a_hard_problem_that_the_user_stops_is_interrupted() -> None:
    def stop(_: rl.results.Progress) -> None:
        raise KeyboardInterrupt

    X, y = cubic_units(5, 14, 200)
    found = rl.recover(X, y, width=14, activation=CUBIC, rng=0, seconds=100.0, progress=stop)
    assert found.status is Status.INTERRUPTED


@pytest.mark.parametrize("decades", [6, 11, 14])
def test_huge_rows_of_little_weight_do_not_hide_the_others(decades: int) -> None:
    """In units of its own noise every row is ordinary, and rounding is judged there."""
    rng = np.random.default_rng(0)
    truth = rl.planted.network(4, 3, rng)
    size = np.ones(400)
    size[:100] = 10.0 ** np.linspace(0, decades, 100)
    X = rng.normal(size=(400, 4)) * size[:, None]
    found = rl.recover(X, truth(X), width=3, sample_weight=size**-2.0, rng=0)
    assert found.status is Status.EXACT
    ordinary = X[size == 1.0]
    np.testing.assert_allclose(found.network(ordinary), truth(ordinary), atol=1e-10)


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_rows_that_nothing_confirms_are_numbered_as_the_user_counts_them(seed: int) -> None:
    """Some rows are set aside before the fit, so its own numbers are others."""
    x = np.concatenate([np.linspace(-5.0, 0.29, 150), [0.35, 0.42], np.linspace(0.51, 5.0, 150)])
    X = rng(seed).permutation(x)[:, None]
    net = rl.Network([[1.0], [1.0], [1.0]], [-0.3, -0.5, 2.0], [5.0, -5.0, 1.0])
    found = rl.recover(X, net(X), width=3, rng=seed, on_failure="return")
    first, second = np.flatnonzero((X[:, 0] > 0.3) & (X[:, 0] < 0.5))
    assert found.status is Status.AMBIGUOUS
    assert f"rows {first} and {second} (counted from 0)" in found.message


@pytest.mark.parametrize(("kind", "alike"), [("independent", False), ("series", True), ("groups", True)])
def test_rows_that_belong_together_are_noted(kind: str, alike: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    if kind == "series":
        for i in range(1, len(X)):
            X[i] = 0.9 * X[i - 1] + 0.44 * X[i]
    if kind == "groups":
        X = np.repeat(X[:80], 5, axis=0) + 0.3 * X
    found = rl.recover(X, rl.planted.network(3, 2, rng=0)(X), width=2, rng=0)
    assert any("next to each other are alike" in note for note in found.certificate.notes) is alike


def slowly(rho: float, n: int, d: int, seed: int) -> np.ndarray:
    """A path through the inputs, standard normal, whose neighbours have correlation rho."""
    steps = np.sqrt(1.0 - rho**2) * rng(seed).normal(size=(n, d))
    steps[0] /= np.sqrt(1.0 - rho**2)
    for i in range(1, n):
        steps[i] += rho * steps[i - 1]
    return steps


@pytest.mark.parametrize("seed", range(3))
def test_noise_that_may_be_as_slow_as_the_inputs_is_not_claimed(seed: int) -> None:
    """A hundred rows of one excursion: slow noise looks like an output bias there, and its size like nothing."""
    truth = rl.planted.network(2, 2, rng=seed)
    X = slowly(0.98, 120, 2, seed)
    y = truth(X) + 0.05 * slowly(0.98, 120, 1, 50 + seed)[:, 0] + 0.002 * rng(seed).normal(size=120)
    found = rl.recover(X, y, width=2, rng=0, on_failure="return")
    assert found.status is not Status.NOISY
    if found.status is Status.UNDERDETERMINED:
        assert found.diagnosis is not None
        assert found.diagnosis.cause is Cause.SERIES


@pytest.mark.parametrize("order", ["as they came", "sorted by an input", "sorted by y", "a long series"])
def test_rows_that_are_enough_are_so_in_any_order(order: str) -> None:
    truth = rl.planted.network(2, 2, rng=0)
    X = slowly(0.9, 2000, 2, 0) if order == "a long series" else rng(0).normal(size=(200, 2))
    y = truth(X) + 0.01 * rng(1).normal(size=len(X))
    turn = {"sorted by an input": np.argsort(X[:, 0]), "sorted by y": np.argsort(y)}.get(order, np.arange(len(X)))
    assert rl.recover(X[turn], y[turn], width=2, rng=0).status is Status.NOISY
