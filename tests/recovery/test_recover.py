"""recover(): planted networks come back, noise is measured, and what cannot be recovered is never called exact."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from tests.catalogue import CATALOGUE
from tests.catalogue.base import generic

import relumine as rl
from relumine import Network, RecoveryFailed, Status
from relumine.results import Progress

FAST = [
    "(10,5) n/p=5",
    "(10,10) n/p=5",
    "(10,20) n/p=5",
    "(10,20)x5 n/p=4",
    "(10,5) n/p=3",
    "(10,10) n/p=3",
    "(10,5) |b|<2.5 n/p=40",
    "orthonormal 6 n/p=20",
    "orthonormal 10 n/p=20",
    "5 degrees (10,5) n/p=20",
    "one |a|=0.01 (10,5) n/p=20",
    "repeated biases (10,6) n/p=20",
    "m=1 (10,1) n/p=20",
    "m=0 affine",
    "uniform inputs (10,10) n/p=10",
    "mean 3, condition 100 (10,10) n/p=10",
]


LARGER = ["(20,20) n/p=5", "(50,20) n/p=5", "(100,10) n/p=5", "(10,40) n/p=8", "orthonormal 20 n/p=20", "(50,50) n/p=6"]


def exact_error(make: Callable, seed: int, **options: object) -> float:
    truth, X, y = make(seed)
    found = rl.recover(X, y, width=truth.m, rng=seed, **options)
    assert found.status is Status.EXACT
    return rl.metrics.parameter_error(truth, found.network)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_planted_network_comes_back(name: str, seed: int) -> None:
    assert exact_error(CATALOGUE[name].make, seed) < 1e-8


@pytest.mark.parametrize("name", ["(20,20) n/p=5", "(100,10) n/p=5", "(10,40) n/p=8"])
def test_larger_network_comes_back(name: str) -> None:
    assert exact_error(CATALOGUE[name].make, 0) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FAST, *LARGER])
def test_recovery_rates(name: str) -> None:
    make, bar, most = CATALOGUE[name].make, CATALOGUE[name].bar, CATALOGUE[name].most
    fresh = np.random.default_rng().integers(0, 2**31, size=min(most, 20))  # not the seeds anything was tuned on
    good = []
    for seed in fresh.tolist():
        truth, X, y = make(seed)
        found = rl.recover(X, y, width=truth.m, rng=seed, on_failure="return")
        good.append(rl.metrics.parameter_error(truth, found.network) <= 1e-8)
        assert found.status is Status.EXACT or not good[-1], seed
    assert np.mean(good) >= bar, f"{sum(good)} of {len(good)}; seeds {fresh.tolist()}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CATALOGUE if "-1 n/p=" in name])
def test_shipped_networks_come_back(name: str) -> None:
    try:
        truth, X, y = CATALOGUE[name].make(0)
    except FileNotFoundError:
        pytest.skip("the shared network files are not beside the checkout")
    found = rl.recover(X, y, width=truth.m, rng=0)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-8 * max(1.0, np.abs(truth.scaled().a).max())


@pytest.mark.parametrize(("d", "m"), [(10, 5), (10, 10), (10, 20)])
def test_width_is_found(d: int, m: int) -> None:
    for seed in (0, 1):
        truth, X, y = generic(d, m, 5)(seed)
        found = rl.recover(X, y, rng=seed)
        assert found.status is Status.EXACT
        assert found.network.m == m
        assert rl.metrics.parameter_error(truth, found.network) < 1e-8
        evidence = {e.width: e.loss for e in found.search.widths}
        assert evidence[m] < 1e-18 < evidence[m - 1]


def test_width_is_found_under_noise() -> None:
    truth = rl.planted.network(6, 3, rng=0)
    X, y = rl.planted.sample(truth, 2000, noise=0.05, rng=1)
    found = rl.recover(X, y, rng=0)
    assert found.status is Status.NOISY
    assert found.network.m == 3


def test_units_that_never_switch_are_absorbed() -> None:
    truth = rl.planted.network(5, 3, rng=0)
    wide = truth.replace(
        W=np.vstack([truth.W, np.eye(5)[:2]]), b=np.append(truth.b, [50.0, -50.0]), a=np.append(truth.a, [1.0, 1.0])
    )
    X, y = rl.planted.sample(wide, 600, rng=1)
    found = rl.recover(X, y, width=5, rng=0)
    assert found.status is Status.EXACT
    assert found.network.m == 3
    assert "2 of 5 units" in found.units.absorbed[0]
    np.testing.assert_allclose(found.network(X), y, atol=1e-9)


def test_units_seen_from_too_few_rows_are_ambiguous() -> None:
    """Three rows behind a kink cannot fix the ten weights of its unit."""
    truth = rl.planted.network(10, 3, rng=0).replace(b=[0.1, -0.2, 0.0])
    X, _ = rl.planted.sample(truth, 500, rng=1)
    third = np.sort(X @ truth.W[2])[-4:-2].mean()  # three rows lie beyond
    truth = truth.replace(b=[0.1, -0.2, -third])
    found = rl.recover(X, truth(X), width=3, rng=0, on_failure="return")
    assert found.status is not Status.EXACT


def test_rows_set_aside_are_not_used() -> None:
    """Corrupting the certificate's rows must not change the network, only the verdict."""
    _, X, y = generic(5, 3, 20)(0)
    clean = rl.recover(X, y, width=3, rng=7)
    held = np.random.default_rng(7).choice(len(X), size=clean.certificate.rows, replace=False)
    bad = y.copy()
    bad[held] += 1.0
    found = rl.recover(X, bad, width=3, rng=7, on_failure="return")
    np.testing.assert_array_equal(found.network.W, clean.network.W)
    assert found.status is not Status.EXACT


def test_deterministic_and_scale_free() -> None:
    truth, X, y = generic(6, 4, 10)(3)
    one, two = rl.recover(X, y, width=4, rng=5), rl.recover(X, y, width=4, rng=5)
    np.testing.assert_array_equal(one.network.W, two.network.W)
    for scale in (1e-6, 1e6):
        scaled = rl.recover(X, scale * y, width=4, rng=5)
        assert rl.metrics.parameter_error(truth, scaled.network.replace(a=scaled.network.a / scale)) < 1e-9
        other = rl.recover(scale * X, y, width=4, rng=5)
        np.testing.assert_allclose(other.network(scale * X), y, atol=1e-9)
    offset = rl.recover(X, y + 1e4, width=4, rng=5)
    assert offset.status is Status.EXACT
    assert rl.metrics.unit_errors(truth, offset.network).max() < 1e-7


def test_same_answer_with_other_thread_counts() -> None:
    from threadpoolctl import threadpool_limits

    _, X, y = generic(20, 20, 6)(1)
    networks = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            networks.append(rl.recover(X, y, width=20, rng=0).network)
    assert rl.metrics.parameter_error(*networks) < 1e-10


def test_sample_weight_is_repetition() -> None:
    truth = rl.planted.network(5, 3, rng=0)
    X, y = rl.planted.sample(truth, 400, noise=0.1, rng=1)
    weight = np.random.default_rng(2).integers(1, 4, size=400)
    # rows of weight zero count for nothing
    zero = np.concatenate([weight, np.zeros(50)])
    X2, y2 = np.vstack([X, X[:50] + 1.0]), np.append(y, np.full(50, 99.0))
    a = rl.recover(X, y, width=3, rng=0, sample_weight=weight, on_failure="return")
    b = rl.recover(X2, y2, width=3, rng=0, sample_weight=zero, on_failure="return")
    assert a.status is Status.NOISY
    assert rl.metrics.parameter_error(a.network, b.network) < 0.1
    assert rl.metrics.parameter_error(truth, b.network) < 0.3


def test_noise_standard_errors_cover() -> None:
    """A fast look (20 fits); the slow test measures coverage and efficiency over 200."""
    covered, ratios = coverage(snr=30.0, fits=20)
    assert 0.9 < covered < 0.99
    assert ratios < 1.3


@pytest.mark.slow
@pytest.mark.parametrize("snr", [10.0, 100.0])
def test_noise_coverage_and_efficiency(snr: float) -> None:
    covered, ratio = coverage(snr=snr, fits=200)
    assert 0.92 <= covered <= 0.98
    assert ratio <= 1.2


def coverage(snr: float, fits: int) -> tuple[float, float]:
    """Share of 95 % intervals that cover, and RMSE over the Cramér–Rao bound, (d, m) = (10, 5), n/p = 50."""
    hits, squares, bounds = [], [], []
    for seed in range(fits):
        truth = rl.planted.network(10, 5, rng=7000 + seed)
        X, clean = rl.planted.sample(truth, 50 * 55, rng=8000 + seed)
        sigma = clean.std() / snr
        found = rl.recover(X, clean + sigma * np.random.default_rng(seed).normal(size=clean.size), width=5, rng=seed)
        assert found.status is Status.NOISY
        near = rl.metrics.match(found.network, truth).network
        low, high = found.confidence_interval(0.95)
        for name in "Wba":
            true = getattr(near, name)
            hits.append(((getattr(low, name) <= true) & (true <= getattr(high, name))).ravel())
            squares.append(((getattr(found.network, name) - true) ** 2).ravel())
        bounds.append(cramer_rao(near, X, sigma) ** 2)
    return float(np.concatenate(hits).mean()), float(
        np.sqrt(np.concatenate(squares).mean() / np.concatenate(bounds).mean())
    )


def cramer_rao(net: Network, X: np.ndarray, sigma: float) -> np.ndarray:
    """Smallest standard deviations of (W, b, a), |w| = 1, from an orthonormal basis of each tangent space."""
    from scipy.linalg import null_space

    Z = X @ net.W.T + net.b
    active, blocks, bases = (Z >= 0.0) * net.a, [], []
    for i in range(net.m):
        bases.append(null_space(net.W[i : i + 1]))
        s = active[:, i : i + 1]
        blocks += [s * (X @ bases[-1]), s, np.maximum(Z[:, i : i + 1], 0.0)]
    J = np.hstack(blocks)
    C = sigma**2 * np.linalg.inv(J.T @ J).reshape(net.m, net.d + 1, net.m, net.d + 1)
    d = net.d
    W = [np.sqrt(np.diag(B @ C[i, : d - 1, i, : d - 1] @ B.T)) for i, B in enumerate(bases)]
    b, a = ([np.sqrt(C[i, k, i, k]) for i in range(net.m)] for k in (d - 1, d))
    return np.concatenate([np.ravel(W), b, a])


def impossible(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, int | None]:
    rng = np.random.default_rng(900 + seed)
    net = rl.planted.network(6, 6, rng=seed)
    X = rng.normal(size=(420, 6))
    if kind == "too few":
        return X[:35], net(X[:35]), 6
    if kind == "too narrow":
        return X, net(X), 5
    if kind == "noise":
        return X, rng.normal(size=420), [3, None][seed % 2]
    if kind == "cubic":
        return X, (X @ rng.normal(size=6)) ** 3, 4
    if kind == "binary":
        B = rng.choice([-1.0, 1.0], size=(500, 10))
        return B, rl.planted.network(10, 3, rng=seed)(B), [3, None][seed % 2]
    raise AssertionError(kind)


@pytest.mark.parametrize("kind", ["too few", "too narrow", "noise", "cubic", "binary"])
@pytest.mark.parametrize("seed", range(4))
def test_impossible_problems_are_never_exact(kind: str, seed: int) -> None:
    X, y, width = impossible(kind, seed)
    found = rl.recover(X, y, width=width, rng=seed, starts=4, on_failure="return")
    assert found.status is not Status.EXACT
    if kind in ("too few", "too narrow", "cubic", "binary"):
        assert not found.ok
    assert found.status.advice
    assert found.message


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["too few", "too narrow", "noise", "cubic", "binary"])
def test_a_hundred_impossible_problems(kind: str) -> None:
    for seed in range(100, 120):
        X, y, width = impossible(kind, seed)
        assert rl.recover(X, y, width=width, rng=seed, on_failure="return").status is not Status.EXACT


def test_failure_raises_and_carries_the_result() -> None:
    X, y, width = impossible("too narrow", 0)
    with pytest.raises(RecoveryFailed, match="Not recovered") as caught:
        rl.recover(X, y, width=width, rng=0, starts=2)
    assert isinstance(caught.value.recovery.network, Network)
    assert pickle.loads(pickle.dumps(caught.value)).recovery.status is Status.NOT_RECOVERED  # noqa: S301


def test_the_spectral_start_says_when_it_is_skipped() -> None:
    truth = rl.planted.network(8, 3, rng=0)
    X = np.random.default_rng(1).uniform(-2, 2, size=(400, 8))
    found = rl.recover(X, truth(X), width=3, rng=0)
    assert found.status is Status.EXACT
    assert any("do not look Gaussian" in note for note in found.certificate.notes)


def test_progress_and_interruption() -> None:
    _, X, y = generic(10, 10, 5)(0)
    seen: list[Progress] = []
    rl.recover(X, y, width=10, rng=0, progress=seen.append)
    assert seen[0].stage == "start 1"
    assert seen[-1].loss < 1e-18

    def stop(step: Progress) -> None:
        if step.iteration == 5:
            raise KeyboardInterrupt

    found = rl.recover(X, y, width=10, rng=0, progress=stop)
    assert found.status is Status.INTERRUPTED
    assert isinstance(found.network, Network)


def test_time_limit() -> None:
    X, y, width = impossible("cubic", 0)
    found = rl.recover(X, y, width=width, rng=0, starts=10_000, seconds=0.05, on_failure="return")
    assert found.status is Status.INTERRUPTED
    assert found.seconds < 30.0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"width": -1}, "width must be"),
        ({"width": 2.5}, "width must be"),
        ({"width": True}, "width must be"),
        ({"starts": 0}, "starts must be"),
        ({"method": "magic"}, "unknown method"),
        ({"activation": "nope"}, "unknown activation"),
        ({"on_failure": "ignore"}, "on_failure"),
        ({"affine": "drop"}, "affine"),
        ({"wdith": 3}, "does not know the option 'wdith'"),
        ({"method": "awasthi", "width": None}, "needs the width"),
        ({"y": np.full(40, np.nan)}, "y is nan in row 0"),
        ({"X": np.ones((40, 3))}, "constant"),
        ({"X": np.ones((39, 3))}, "39 rows but y has 40"),
    ],
)
def test_bad_requests_are_named(change: dict, word: str) -> None:
    rng = np.random.default_rng(0)
    request = {"X": rng.normal(size=(40, 3)), "y": rng.normal(size=40), "width": 2, **change}
    with pytest.raises(ValueError, match=word):
        rl.recover(**request)


def test_constant_target_is_affine() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    for y in (np.full(50, 3.0), np.zeros(50)):
        found = rl.recover(X, y, width=2, rng=0)
        assert found.status is Status.EXACT
        assert found.network.m == 0
        np.testing.assert_allclose(found.network(X), y, atol=1e-12)


def test_awasthi_through_the_same_door() -> None:
    truth = rl.planted.network(6, 3, rng=0)
    X, y = rl.planted.sample(truth, 30_000, rng=1)
    found = rl.recover(X, y, width=3, method="awasthi", order=1, rng=0)
    assert found.status is Status.ESTIMATE
    assert rl.metrics.parameter_error(truth, found.network) < 0.3


def test_zhong_through_the_same_door() -> None:
    truth = rl.planted.network(10, 3, rng=0, family="conditioned", activation="squared_relu")
    X, y = rl.planted.sample(truth, 4000, rng=1)
    found = rl.recover(X, y, width=3, method="zhong", activation="squared_relu", rng=0)
    assert found.ok
    assert rl.metrics.parameter_error(truth, found.network) < 0.05
    with pytest.raises(rl.InvalidInput, match="ordre"):
        rl.recover(X, y, width=3, method="zhong", activation="squared_relu", ordre=2)


@pytest.mark.parametrize("method", ["auto", "awasthi", "zhong"])
def test_memory_without_a_limit(method: str) -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    found = rl.recover(X, np.abs(X[:, 0]), 1, method=method, memory=float("inf"), rng=0, on_failure="return")  # type: ignore[arg-type]
    assert np.isfinite(found.certificate.residual)


def test_few_rows_are_too_few_and_not_an_error_inside() -> None:
    truth = rl.planted.network(6, 5, rng=0)
    X, y = rl.planted.sample(truth, n=29, rng=1)
    assert not rl.recover(X, y, rng=0, on_failure="return").ok
