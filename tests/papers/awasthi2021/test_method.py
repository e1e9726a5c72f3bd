"""Awasthi 2021: every algorithm box, on exact tensors first and then from samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from relumine import metrics, planted
from relumine.network import Network
from relumine.papers.awasthi2021 import algorithm_1, algorithm_4, algorithm_5, algorithm_6, recover_awasthi
from relumine.papers.awasthi2021.algorithms import visible
from relumine.papers.awasthi2021.thresholds import Thresholds
from relumine.results import InvalidInput, Recovery, Status
from relumine.tensors.symmetric import SymmetricTensor

CASES = [(6, 6, 1), (6, 15, 2), (8, 30, 2), (8, 35, 2), (5, 25, 3)]


def tensors(net: Network, order: int) -> list[np.ndarray]:
    return [net.hermite(k) for k in range(2 * order + 3)]


def with_roots(d: int, m: int, seed: int) -> Network:
    net = planted.network(d, m, rng=seed)
    b = net.b.copy()
    b[:4] = (0.0, 1.0, -1.0, np.sqrt(3.0))
    return net.replace(b=b)


def error_up_to_sign(truth: Network, found: Network) -> float:
    assert truth.m == found.m
    return float(metrics.unit_errors(truth, found).max())


# -- exact tensors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "m", "order"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_algorithm_1_is_exact(d: int, m: int, order: int, seed: int) -> None:
    truth = with_roots(d, m, seed)
    T = tensors(truth, order)
    units = algorithm_1(T, order, m, rng=seed)
    if order == 1:  # signs too: the parameters themselves, no affine part
        assert metrics.parameter_error(truth, units.network()) < 1e-8
        assert units.margin is not None
        assert units.margin.min() > 0.49
    else:
        assert units.margin is None
        assert error_up_to_sign(truth, units.network()) < 1e-8
        assert metrics.parameter_error(truth, units.network(T)) < 1e-8  # T₀ and T₁ make up for the signs


@pytest.mark.parametrize(("d", "m", "order"), CASES)
def test_units_at_hermite_roots_come_from_the_other_tensor(d: int, m: int, order: int) -> None:
    truth = planted.network(d, m, rng=3, family="hermite_roots")
    T = tensors(truth, order)
    units = algorithm_1(T, order, m, rng=0)
    assert len(units.terms[0].weights) < m  # T_{2ℓ+1} does not see b = 0
    assert metrics.parameter_error(truth, units.network(T)) < 1e-8


def test_one_tensor_alone_misses_units() -> None:
    truth = Network(np.eye(3), b=[0.0, 1.0, 0.4], a=[1.0, -1.5, 2.0])
    units = algorithm_1(tensors(truth, 1), 1, 3, rng=0)
    odd, even = units.terms
    assert (len(odd.weights), len(even.weights)) == (2, 2)  # b = 0 is missing from T₃, b = 1 from T₄
    assert metrics.parameter_error(truth, units.network()) < 1e-12


@pytest.mark.parametrize(("d", "m", "order"), [(6, 6, 1), (6, 12, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_nearly_parallel_units(d: int, m: int, order: int, seed: int) -> None:
    truth = planted.network(d, m, rng=seed, family="nearly_parallel", angle=5.0)
    T = tensors(truth, order)
    assert metrics.parameter_error(truth, algorithm_1(T, order, m, rng=0).network(T)) < 1e-6


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_rotation_and_permutation_equivariance(seed: int) -> None:
    truth = planted.network(4, 3, rng=seed)
    R = ortho_group.rvs(4, random_state=seed)
    turned = truth.replace(W=truth.W @ R.T).permuted([2, 0, 1])
    found = algorithm_1(tensors(truth, 1), 1, 3, rng=0).network()
    found_turned = algorithm_1(tensors(turned, 1), 1, 3, rng=0).network()
    assert metrics.parameter_error(found.replace(W=found.W @ R.T), found_turned) < 1e-6


def test_packed_tensors_dense_tensors_and_seeds_agree() -> None:
    truth = planted.network(4, 7, rng=5)
    dense = tensors(truth, 2)
    packed = [SymmetricTensor(dense[0].reshape(1), 4, 0), *(SymmetricTensor.from_dense(t) for t in dense[1:])]
    first, again = algorithm_1(dense, 2, 7, rng=1), algorithm_1(packed, 2, 7, rng=1)
    np.testing.assert_array_equal(first.W, again.W)
    np.testing.assert_array_equal(first.b, again.b)


def test_algorithm_4_survives_small_errors_and_drops_large_biases() -> None:
    truth = planted.network(6, 4, rng=0).replace(b=[0.3, -0.5, 5.0, 0.9])
    rng = np.random.default_rng(1)
    T = [SymmetricTensor(truth.hermite(0).reshape(1), 6, 0)]
    T += [SymmetricTensor.from_dense(truth.hermite(k)) for k in range(1, 5)]
    noise = [SymmetricTensor(rng.normal(size=t.entries.size), 6, t.order) for t in T]
    errors = np.full(5, 1e-3)
    T = [t + s * (1e-3 / s.norm) for t, s in zip(T, noise)]
    units = algorithm_4(T, 1, 4, Thresholds.from_errors(errors, 6, 1), rng=0, errors=errors)
    seen = truth.permuted([0, 1, 3])  # φ(5) ≈ 1e-6: below every threshold
    assert units.m == 3
    assert error_up_to_sign(seen, units.network()) < 0.05


def test_units_beyond_the_samples_are_not_visible() -> None:
    truth = planted.network(4, 4, rng=0).replace(b=[0.0, 3.0, -5.0, 4.0])
    units = algorithm_1(tensors(truth, 1), 1, 4, rng=0)
    assert np.sort(np.abs(units.b[visible(units, 10_000)])).round(6).tolist() == [0.0, 3.0, 4.0]
    assert len(visible(units, 100)) == 2  # √(2 log 100) = 3.03


def test_bad_tensors() -> None:
    truth = planted.network(3, 2, rng=0)
    T = tensors(truth, 1)
    with pytest.raises(InvalidInput, match="order 2 needs the tensors of order 0 … 6, got 5"):
        algorithm_1(T, 2, 2)
    with pytest.raises(InvalidInput, match=r"T\[3\] must have shape"):
        algorithm_1([*T[:3], T[2], T[4]], 1, 2)
    with pytest.raises(InvalidInput, match="not symmetric"):
        algorithm_1([*T[:2], np.triu(np.ones((3, 3))), *T[3:]], 1, 2)
    with pytest.raises(InvalidInput, match="NaN"):
        algorithm_1([*T[:2], np.full((3, 3), np.nan), *T[3:]], 1, 2)
    with pytest.raises(InvalidInput, match="at most 3 units apart, width=4 asked; use order=2"):
        algorithm_1(T, 1, 4)
    with pytest.raises(InvalidInput, match="full-rank case"):
        algorithm_6(tensors(truth, 2), 2, 2, Thresholds.from_errors(np.ones(7), 3, 2))


# -- samples ----------------------------------------------------------------------------------------------


def slope_of_error(seeds: range, sizes: list[int]) -> tuple[float, np.ndarray]:
    """Slope of log(median parameter error) in log n at (d, m) = (10, 5), and the errors (seeds, sizes)."""
    errors = np.array(
        [
            [
                metrics.parameter_error(
                    truth, recover_awasthi(*planted.sample(truth, n, rng=1000 + s), 5, rng=0).network
                )
                for n in sizes
            ]
            for s, truth in ((s, planted.network(10, 5, rng=s)) for s in seeds)
        ]
    )
    return float(np.polyfit(np.log(sizes), np.log(np.median(errors, axis=0)), 1)[0]), errors


def test_parameter_error_falls_like_the_square_root() -> None:
    slope, errors = slope_of_error(range(1, 6), [10_000, 100_000])
    assert -0.65 < slope < -0.35, (slope, errors)


@pytest.mark.slow
def test_parameter_error_falls_like_the_square_root_up_to_300000() -> None:
    slope, errors = slope_of_error(range(12), [10_000, 30_000, 100_000, 300_000])
    assert -0.65 < slope < -0.35, (slope, errors)


@pytest.mark.parametrize("seed", range(3))
def test_algorithm_5_with_large_biases(seed: int) -> None:
    truth = planted.network(10, 6, rng=seed, family="large_bias")
    X, y = planted.sample(truth, 100_000, rng=50 + seed)
    found = algorithm_5(X, y, order=1, width=6, rng=0)
    assert found.m <= 8
    assert not np.any(found.v)
    assert metrics.gaussian_distance(truth, found) <= 0.05 * np.std(y)


def test_recovery_says_what_was_absorbed() -> None:
    truth = planted.network(10, 6, rng=1, family="large_bias")
    found = recover_awasthi(*planted.sample(truth, 100_000, rng=5), width=6, rng=0)
    assert found.status is Status.ESTIMATE
    assert len(found.units.absorbed) == 2
    assert found.units.up_to_sign == (0, 1, 2, 3)
    assert found.network.m == 4
    assert found.certificate.residual < 0.05
    assert found.certificate.rows == 10_000
    assert [s.name for s in found.stages] == ["inputs", "moments", "decomposition", "network"]


def test_recovery_of_all_units_with_signs() -> None:
    truth = planted.network(10, 5, rng=1)
    X, y = planted.sample(truth, 100_000, noise=0.05, rng=2)
    found = recover_awasthi(X, y, 5, rng=0)
    assert found.status is Status.ESTIMATE
    assert found.units.recovered == (0, 1, 2, 3, 4)
    assert not found.units.up_to_sign
    assert not np.any(found.network.v)
    assert metrics.parameter_error(truth, found.network) < 0.15
    again = recover_awasthi(X, y, 5, rng=0)
    np.testing.assert_array_equal(found.network.W, again.network.W)


@pytest.mark.parametrize("goal", ["parameters", "function"])
def test_goals(goal: str) -> None:
    truth = planted.network(6, 3, rng=2)
    found = recover_awasthi(*planted.sample(truth, 50_000, rng=3), width=3, rng=0, goal=goal)
    assert error_up_to_sign(truth, found.network) < 0.2
    assert found.certificate.residual < 0.15


@pytest.mark.parametrize("estimator", ["plain", "debiased"])
def test_other_estimators(estimator: str) -> None:
    truth = Network(np.eye(3, 5), b=[0.4, -0.3, 0.8], a=[1.0, -1.5, 2.0])
    found = recover_awasthi(*planted.sample(truth, 200_000, rng=0), width=3, rng=0, estimator=estimator)
    assert error_up_to_sign(truth, found.network) < (0.5 if estimator == "plain" else 0.2)


def test_any_mean_and_covariance() -> None:
    truth = planted.network(10, 5, rng=1)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(10, 10)) / 3 + np.eye(10)
    X, y = planted.sample(truth, 100_000, rng=5, mean=np.arange(10) / 5, cov=A @ A.T)
    found = recover_awasthi(X, y, 5, rng=0)
    assert "whitened" in found.stages[0].note
    assert metrics.parameter_error(truth, found.network) < 0.2


def test_overcomplete_from_samples() -> None:
    # three directions at 60° in the plane: m > d, so signs stay open and the affine part makes up for them
    angles = np.deg2rad([10.0, 70.0, 130.0])
    W = np.column_stack([np.cos(angles), np.sin(angles)])
    truth = Network(W, b=[0.5, -0.6, 0.4], a=[1.0, 1.5, -1.2])
    found = recover_awasthi(*planted.sample(truth, 300_000, rng=0), width=3, order=2, rng=0)
    assert found.status is Status.ESTIMATE
    assert found.units.up_to_sign == (0, 1, 2)
    assert found.certificate.residual < 0.15
    cosines = np.abs(found.network.scaled().W @ W.T).max(axis=0)
    assert cosines.min() > 0.99


def test_pure_noise_is_not_a_network() -> None:
    rng = np.random.default_rng(0)
    found = recover_awasthi(rng.normal(size=(3000, 6)), rng.normal(size=3000), 3, rng=0, estimator="plain")
    assert not found.ok
    assert "no unit stands out" in found.message
    assert found.network.m == 0


def test_an_affine_target_has_no_units_and_is_fitted() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    found = recover_awasthi(X, X @ [1.0, 2.0, 3.0, 4.0] + 1.0, 2, rng=0)
    assert found.network.m == 0
    assert len(found.units.absorbed) == 2
    assert found.certificate.residual < 1e-10
    np.testing.assert_allclose(found.network.v, [1.0, 2.0, 3.0, 4.0], atol=1e-10)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_scale_of_y_does_not_matter(scale: float) -> None:
    truth = planted.network(4, 3, rng=0)
    X, y = planted.sample(truth, 20_000, rng=1)
    small = recover_awasthi(X, y, 3, rng=0)
    large = recover_awasthi(X, scale * y, 3, rng=0)
    assert small.status is large.status is Status.ESTIMATE
    np.testing.assert_allclose(large.network.scaled().a, scale * small.network.scaled().a, rtol=1e-6)


def test_inputs_that_are_not_gaussian_are_noted() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.7, 1.7, size=(20_000, 4))
    found = recover_awasthi(X, planted.network(4, 2, rng=0)(X), 2, rng=0)
    assert any("not Gaussian" in note for note in found.certificate.notes)


def good(n: int = 2000, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    return planted.sample(planted.network(d, 2, rng=0), n, rng=1)


def with_value(array: np.ndarray, value: float) -> np.ndarray:
    array = array.copy()
    array.flat[7] = value
    return array


X, Y = good()
BAD = {
    "NaN in X": ({"X": with_value(X, np.nan)}, "X column 3 is nan in row 1"),
    "inf in y": ({"y": with_value(Y, np.inf)}, "y is inf in row 7"),
    "shape of X": ({"X": X[:, 0]}, r"X\.reshape\(-1, 1\)"),
    "lengths": ({"y": Y[:-1]}, "2000 rows but y has 1999"),
    "dtype": ({"X": X.astype(str)}, "real numbers"),
    "objects": ({"y": Y.astype(object)}, "real numbers"),
    "several outputs": ({"y": np.stack([Y, Y], axis=1)}, "one output at a time"),
    "a column": ({"y": Y[:, None]}, r"y\.ravel\(\)"),
    "constant y": ({"y": np.full(2000, 3.0)}, "y is constant"),
    "constant column": ({"X": np.column_stack([X, np.ones(2000)])}, "column 4 is constant"),
    "few samples": ({"X": X[:16], "y": Y[:16]}, "16 samples are too few"),
    "width 0": ({"width": 0}, "width must be a whole number, at least 1"),
    "width 2.5": ({"width": 2.5}, "width must be a whole number"),
    "width too large": ({"width": 5}, "at most 4 units apart, width=5 asked; use order=2"),
    "order 0": ({"order": 0}, "order must be a whole number, at least 1"),
    "estimator": ({"estimator": "best"}, "estimator must be .*; got 'best'"),
    "goal": ({"goal": "speed"}, "goal must be .*; got 'speed'"),
    "threshold": ({"thresholds": {"eta": 1.0}}, "unknown threshold 'eta'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    change, words = BAD[case]
    with pytest.raises(InvalidInput, match=words):
        recover_awasthi(**{"X": X, "y": Y, "width": 2, "rng": 0, **change})


def test_too_many_features_are_refused_before_any_work() -> None:
    X = np.random.default_rng(0).normal(size=(200, 60))
    with pytest.raises(InvalidInput, match=r"635376 Hermite features.*estimator='debiased'"):
        recover_awasthi(X, X[:, 0], 60, rng=0)


def test_only_relu() -> None:
    with pytest.raises(InvalidInput, match=r"is for relu units, not tanh"):
        recover_awasthi(X, Y, 2, activation="tanh")


def test_thresholds_can_be_overridden() -> None:
    found: Recovery = recover_awasthi(X, Y, 2, rng=0, thresholds={"eta1": 1e9})
    assert found.network.m == 0
    assert found.thresholds.eta1 == (1e9, 1e9)


@pytest.mark.parametrize("n", [8, 10, 14])
def test_two_rows_to_check_by_are_no_error_and_no_proof(n: int) -> None:
    truth = planted.network(2, 1, rng=0)
    found = recover_awasthi(*planted.sample(truth, n, rng=1), width=1, rng=0)
    assert found.certificate.rows == 2
    assert found.status is Status.UNDERDETERMINED
