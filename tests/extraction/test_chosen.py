"""Chosen queries: all units, to all digits, for about one query a parameter; and an honest end where that cannot be."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.extraction.black_boxes import SECRET, found, in_single_precision

import relumine as rl
from relumine.extraction import BlackBoxFailed, chosen, extract
from relumine.extraction.sampling import Domain
from relumine.recovery.costs import rows_to_ask
from relumine.results import InvalidInput, Status
from relumine.run import Run

CERTIFICATE = 300 + 8 + 8  # fresh rows, rows asked again, rows asked first


class Counted:
    """A box that counts its rows and sees whether any comes twice."""

    def __init__(self, f) -> None:
        self.f, self.rows, self.seen, self.repeated = f, 0, set(), 0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        self.rows += len(X)
        for row in X:
            key = row.tobytes()
            self.repeated += key in self.seen
            self.seen.add(key)
        return self.f(X)


def normal(d: int, m: int, seed: int, outputs: int | None = None) -> rl.Network:
    rng = np.random.default_rng(seed)
    shape = m if outputs is None else (outputs, m)
    return rl.Network(rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=shape))


@pytest.mark.parametrize(
    ("d", "m", "outputs", "share"),
    [
        (64, 16, None, 1.6),
        (100, 20, None, 1.5),
        (10, 40, None, 3.6),  # many units in few inputs: steps cross kinks, and are asked again
        (20, 15, 3, 3.0),
        (1, 4, None, 14.0),
        (2, 12, None, 12.0),
    ],
)
def test_one_query_a_parameter(d: int, m: int, outputs: int | None, share: float) -> None:
    truth = normal(d, m, seed=m, outputs=outputs)
    box = Counted(truth)
    result = extract(box, dim=d, rng=0)
    assert result.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, result.network) < 1e-9 * np.abs(truth.scaled().a).max()
    assert box.rows == result.queries <= share * m * (d + 1) + CERTIFICATE
    assert box.repeated == 8  # those asked again to see that it repeats itself


@pytest.mark.slow
@pytest.mark.parametrize(("d", "m"), [(784, 32), (784, 64), (784, 128)])
def test_large_ones(d: int, m: int) -> None:
    truth = normal(d, m, seed=0)
    result = extract(truth, dim=d, rng=0)
    assert result.status is Status.EXACT
    assert result.queries <= 1.3 * m * (d + 1) + CERTIFICATE
    matched, scaled = rl.metrics.match(truth, result.network).network, truth.scaled()
    assert np.abs(matched.W - scaled.W).max() < 1e-10
    assert np.abs(matched.b - scaled.b).max() < 1e-10


@pytest.mark.parametrize("kind", ["far", "weak", "close", "through the origin", "orthonormal"])
def test_units_that_samples_hardly_show(kind: str) -> None:
    net = normal(20, 10, seed=0).scaled()
    W, b, a = net.W.copy(), net.b.copy(), net.a.copy()
    if kind == "far":
        b[:4] = 10.0, -10.0, 100.0, -100.0
    elif kind == "weak":
        a[0] = 1e-4
    elif kind == "close":
        W[1], b[1] = W[0] + 1e-3 * W[1], b[0]
    elif kind == "through the origin":
        b[:] = 0.0
    else:
        W, a = np.linalg.qr(W.T)[0].T.copy(), np.ones(10)
    truth = rl.Network(W, b, a).scaled()
    result = extract(truth, dim=20, rng=1)
    assert result.status is Status.EXACT
    assert result.network.m == 10
    assert rl.metrics.parameter_error(truth, result.network) < 1e-7
    assert result.queries <= 3.0 * 210 + CERTIFICATE


def test_a_kink_just_outside_the_usual_rows() -> None:
    net = rl.planted.network(4, 3, rng=0)
    result = extract(lambda X: net(X) + 5.0 * np.maximum(X[:, 0] - 3.2, 0.0), dim=4, rng=0)
    assert (result.status, result.network.m) == (Status.EXACT, 4)


@pytest.mark.parametrize("seed", range(4))
def test_single_precision_with_an_output_bias(seed: int) -> None:
    truth, box = in_single_precision(8, 6, seed)
    result = extract(box, dim=8, rng=0)
    assert (result.status, result.network.m) == (Status.NOISY, 6)
    assert rl.metrics.parameter_error(truth, result.network) < 1e-3
    X = np.random.default_rng(seed + 100).normal(size=(2000, 8))
    left = np.sqrt(np.mean((box(X) - result.network(X)) ** 2))
    assert left / 2 < result.certificate.noise < 2 * left  # the noise claimed is that of fresh rows


@pytest.mark.slow
def test_a_hundred_boxes_in_single_precision() -> None:
    """None is wrong and called recovered; at least 90 are recovered to what seven digits allow."""
    recovered = 0
    for seed in range(9000, 9100):
        rng = np.random.default_rng(seed + 10**6)
        d, m = int(rng.choice([5, 8, 10])), int(rng.choice([4, 6, 12]))
        truth, box = in_single_precision(d, m, seed)
        result = extract(box, dim=d, rng=seed, seconds=60.0, on_failure="return")
        good = result.network.m == m and rl.metrics.parameter_error(truth, result.network) < 1e-4
        assert good or not result.ok
        recovered += result.ok
    assert recovered >= 90


@pytest.mark.parametrize(
    ("d", "m"), [(60, 24), pytest.param(784, 32, marks=pytest.mark.slow)]
)  # more parameters than are fitted directly
def test_many_inputs_in_single_precision(d: int, m: int) -> None:
    truth, box = in_single_precision(d, m, 2, normal=True)
    result = extract(box, dim=d, rng=2)
    assert (result.status, result.network.m) == (Status.NOISY, m)
    assert rl.metrics.parameter_error(truth, result.network) < 1e-4


def test_leaky_units_slope_given_or_found() -> None:
    truth = rl.planted.network(8, 5, rng=0, activation="leaky_relu(0.2)")
    given = extract(truth, dim=8, rng=0, activation="leaky_relu(0.2)")
    assert rl.metrics.parameter_error(truth, given.network) < 1e-9
    assert not np.any(given.network.v)
    slope = extract(truth, dim=8, rng=0).network.activation.slope
    assert slope == pytest.approx(0.2, abs=1e-9)


def test_an_affine_part_is_kept_and_an_output_bias_is_one() -> None:
    bias = extract(SECRET.replace(c=1.5), dim=5, rng=0).network
    assert not np.any(bias.v)
    assert bias.c == pytest.approx(1.5)
    affine = SECRET.replace(c=1.5, v=np.ones(5))
    assert rl.metrics.parameter_error(affine, extract(affine, dim=5, rng=0).network) < 1e-9


def test_a_range_is_kept() -> None:
    truth = normal(5, 3, seed=1)
    result = extract(truth, dim=5, low=-3.0, high=[1.0, 2.0, 3.0, 4.0, 5.0], rng=0)
    assert result.status is Status.EXACT
    assert (result.X >= -3.0).all()
    assert (result.X <= [1.0, 2.0, 3.0, 4.0, 5.0]).all()
    assert "inside the range" in result.certificate.does_not_prove
    with pytest.raises(InvalidInput, match="fixed"):
        extract(truth, dim=5, low=0.0, high=[1.0, 0.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize(("d", "m"), [(5, 4), (10, 10), (20, 10)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_unit_of_a_range_is_found(d: int, m: int, seed: int) -> None:
    """No line in it crosses all kinks: the next goes from a row that fits to one that does not."""
    truth = normal(d, m, seed)
    result = extract(truth, dim=d, low=-1.0, high=1.0, rng=seed)
    assert (result.status, result.network.m) == (Status.EXACT, m)
    assert rl.metrics.parameter_error(truth, result.network) < 1e-8


def test_random_rows_where_lines_cannot_be_had() -> None:
    rng = np.random.default_rng(0)
    noisy = found(lambda X: SECRET(X) + 0.01 * SECRET(X).std() * rng.normal(size=len(X)), width=3, budget=3000)
    assert (noisy.way, noisy.status) == ("random", Status.NOISY)
    assert noisy.standard_errors is not None
    assert any("random rows were asked" in note for note in noisy.certificate.notes)
    smooth = rl.planted.network(d=4, m=2, rng=1, activation="tanh")
    assert found(smooth, dim=4, width=2, activation="tanh").way == "random"


def test_resume_asks_nothing_again(tmp_path: Path) -> None:
    path, truth = tmp_path / "queries.npz", normal(12, 6, seed=0)
    stopped = extract(truth, dim=12, rng=0, budget=120, save=path, on_failure="return")
    assert stopped.status is Status.INTERRUPTED
    box = Counted(truth)
    result = extract(box, dim=12, rng=99, save=path, resume=True)  # the seed of the log counts
    assert result.status is Status.EXACT
    assert box.repeated <= 16
    whole = extract(truth, dim=12, rng=0)
    np.testing.assert_allclose(result.network.W, whole.network.W, atol=1e-9)
    with pytest.raises(InvalidInput, match="another box"):
        extract(lambda X: truth(X) + X[:, 0], dim=12, save=path, resume=True)


def test_a_resumed_log_of_random_rows_goes_on_with_random_rows(tmp_path: Path) -> None:
    path = tmp_path / "queries.npz"
    found(SECRET, width=3, queries="random", save=path)
    assert found(SECRET, width=3, save=path, resume=True).way == "random"


# -- bad boxes -----------------------------------------------------------------------------------------------------


def test_a_box_that_hangs_is_abandoned(tmp_path: Path) -> None:
    rows = 0

    def hangs(X: np.ndarray) -> np.ndarray:
        nonlocal rows
        rows += len(X)
        if rows > 60:
            time.sleep(60.0)
        return SECRET(X)

    began = time.monotonic()
    result = found(hangs, seconds=2.0, save=tmp_path / "q.npz", on_failure="return")
    assert time.monotonic() - began < 6.0
    assert result.status is Status.INTERRUPTED
    with np.load(tmp_path / "q.npz") as saved:
        assert len(saved["X"]) >= 8


def test_exit_is_a_failure_of_the_box() -> None:
    def leaves(X: np.ndarray) -> np.ndarray:
        raise SystemExit(3)

    with pytest.raises(BlackBoxFailed, match="wanted to end the program"):
        found(leaves, retries=0)


def test_a_first_answer_of_the_wrong_shape_does_not_count() -> None:
    calls = 0

    def late(X: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.full((len(X), 3), np.nan) if calls == 1 else SECRET(X)

    assert found(late).network.q is None


@pytest.mark.parametrize(
    "box",
    [
        lambda X: np.sign(X.sum(axis=1)),
        lambda X: np.sin(40.0 * X).sum(axis=1),
        lambda X: np.abs(np.abs(X @ np.ones(5)) - 1.0) * np.abs(X[:, 0]),
    ],
)
def test_what_is_no_such_network_is_not_called_one(box) -> None:
    result = found(box, budget=1500, seconds=20.0, on_failure="return", width=3)
    assert not result.ok


def test_strings_and_too_much_output() -> None:
    with pytest.raises(BlackBoxFailed):
        found(lambda X: np.array(["x"] * len(X)), retries=0)


@pytest.mark.skipif(os.name != "posix", reason="needs the command `yes`")
def test_a_command_that_prints_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relumine.extraction.boxes._MOST_OUTPUT", 1 << 16)
    with pytest.raises(BlackBoxFailed, match="printed more than"):
        found("yes 1", retries=0)


def test_the_budget_is_kept_by_lines() -> None:
    result = extract(normal(30, 10, seed=0), dim=30, rng=0, budget=200, on_failure="return")
    assert result.status is Status.INTERRUPTED
    assert result.queries <= 200
    assert "budget" in result.message


def test_the_estimate_is_near() -> None:
    for d, m in ((64, 16), (100, 30)):
        queries = extract(normal(d, m, seed=3), dim=d, rng=0).queries
        assert 0.7 * queries < rows_to_ask(d, m) < 1.5 * queries


@pytest.mark.parametrize(
    ("kinks", "whole", "curved", "taken"),
    [
        (5, True, False, True),
        (6, True, False, True),
        (4, True, False, False),
        (5, False, False, False),
        (5, True, True, False),
    ],
)
def test_a_line_that_shows_less_is_never_the_easiest(
    kinks: int, whole: bool, curved: bool, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = SimpleNamespace(t=np.arange(5.0))
    other = SimpleNamespace(t=np.arange(float(kinks)), whole=whole, noise=SimpleNamespace(curved=curved))
    monkeypatch.setattr(chosen, "lines_to_choose_from", lambda kinks, d: 1)
    monkeypatch.setattr(chosen, "kinks", lambda *_, **options: [other])
    monkeypatch.setattr(chosen, "effort", lambda line: 0 if line is other else 1)  # it would take fewer rows
    found = chosen._easiest(lambda Z: Z, Domain(np.zeros(3), np.ones(3)), Run.of(0), first, None)
    assert (found is other) == taken
