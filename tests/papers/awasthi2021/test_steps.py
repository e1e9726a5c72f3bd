"""The small steps, each on exact input: scalars, signs, thresholds, readout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import roots_hermitenorm

from relumine import planted
from relumine.data.views import rows_of
from relumine.network import Network
from relumine.papers.awasthi2021.readout import fit_readout, minimise_in_ball
from relumine.papers.awasthi2021.scalars import recover_scalars
from relumine.papers.awasthi2021.signs import fix_signs
from relumine.papers.awasthi2021.thresholds import Thresholds, distinct_directions
from relumine.results import InvalidInput
from relumine.tensors.jennrich import RankOneTerms
from relumine.tensors.symmetric import SymmetricTensor, rank_one_sum


def exact_tensors(net: Network, order: int) -> list[SymmetricTensor]:
    return [
        SymmetricTensor(net.hermite(0).reshape(1), net.d, 0) if k == 0 else SymmetricTensor.from_dense(net.hermite(k))
        for k in range(order + 1)
    ]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_scalars_at_every_hermite_root(order: int, seed: int) -> None:
    roots = np.concatenate([roots_hermitenorm(k)[0] for k in range(1, 6)])
    net = planted.network(len(roots), len(roots), rng=seed).replace(b=roots)
    units = slice(5 * seed, 5 * seed + 5)
    net = Network(
        net.W[units, :6] / np.linalg.norm(net.W[units, :6], axis=1, keepdims=True), roots[units], net.a[units]
    )
    a, b = recover_scalars(net.W, exact_tensors(net, order + 3), order)
    np.testing.assert_allclose(a, net.a, atol=1e-9)
    np.testing.assert_allclose(b, net.b, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_scalars_follow_the_sign_of_the_direction(order: int) -> None:
    net = planted.network(5, 4, rng=1)
    sign = np.array([1.0, -1.0, -1.0, 1.0])
    a, b = recover_scalars(sign[:, None] * net.W, exact_tensors(net, order + 3), order)
    np.testing.assert_allclose(a, net.a, atol=1e-10)
    np.testing.assert_allclose(b, sign * net.b, atol=1e-10)


def test_scalars_of_nothing_are_finite() -> None:
    zeros = [rank_one_sum(np.zeros(2), np.eye(2), k) for k in range(6)]
    for order in (1, 2):
        a, b = recover_scalars(np.eye(2), zeros, order)
        assert np.isfinite(a).all()
        assert np.isfinite(b).all()
    with pytest.raises(InvalidInput, match="order must be ≥ 1"):
        recover_scalars(np.eye(2), zeros, 0)


@given(st.integers(0, 500), st.lists(st.sampled_from([-1.0, 1.0]), min_size=4, max_size=4))
@settings(max_examples=30, deadline=None)
def test_signs_come_back(seed: int, flips: list[float]) -> None:
    net = planted.network(6, 4, rng=seed, bias=3.0)
    sign = np.array(flips)
    W, b, margin = fix_signs(sign[:, None] * net.W, sign * net.b, net.a, net.hermite(1))
    np.testing.assert_array_equal(W, net.W)
    np.testing.assert_array_equal(b, net.b)
    np.testing.assert_allclose(margin, 0.5, atol=1e-9)


def test_signs_need_independent_directions() -> None:
    with pytest.raises(InvalidInput, match=r"linearly independent.*3 of rank 2"):
        fix_signs(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), np.zeros(3), np.ones(3), np.ones(2))


def terms(vectors: np.ndarray, weights: list[float]) -> RankOneTerms:
    return RankOneTerms(np.asarray(vectors, float), np.array(weights, float), np.ones(1), 1.0, 0, 0.0)


def test_step_4_drops_weak_terms_duplicates_and_negations() -> None:
    near = np.array([0.0, -1.0, 1e-3])
    odd = terms(np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]), [1.0, -2.0, 1e-4])
    even = terms(np.stack([near / np.linalg.norm(near), -np.eye(3)[0]]), [1.0, 3.0])
    eta = Thresholds((0.0, 0.0), (1e-3, 1e-3), (1e-3, 1e-3), eta3=0.01)
    kept = distinct_directions((odd, even), eta, width=5)
    assert sorted(np.abs(kept).argmax(axis=1).tolist()) == [0, 1]
    # a finer η₃ keeps the near duplicate, a wider one does not, and the width caps the number
    assert len(distinct_directions((odd, even), eta.updated(eta3=1e-5), width=5)) == 3
    assert len(distinct_directions((odd, even), eta, width=1)) == 1
    # judged by their own errors, two terms with a relative error of 1e-3 within 1e-3 are one
    assert len(distinct_directions((odd, even), eta.updated(eta3=None), width=5)) == 2


def test_step_4_matches_each_term_with_at_most_one_of_the_other_tensor() -> None:
    turn = np.array([[1.0, 0.0], [np.cos(0.02), np.sin(0.02)]])
    odd, even = terms(turn[:1], [5.0]), terms(turn, [1.0, 0.9])  # the odd tensor sees one of two close units
    eta = Thresholds((0.0, 0.0), (1e-2, 1e-2), (1e-2, 1e-2), eta3=None)
    assert len(distinct_directions((odd, even), eta, width=5)) == 2
    assert len(distinct_directions((odd, terms(turn[1:], [0.9])), eta, width=5)) == 1


def test_thresholds_are_overridable_and_checked() -> None:
    eta = Thresholds.from_errors(np.full(5, 0.1), d=5, order=1)
    assert eta.updated({"eta1": 0.3}).eta1 == (0.3, 0.3)
    assert eta.updated(eta2=(0.1, 0.2)).eta2 == (0.1, 0.2)
    assert eta.updated(None) == eta
    for name, value, words in [
        ("eta9", 1.0, "unknown threshold"),
        ("eta1", -1.0, "≥ 0"),
        ("eta3", (1, 2), "≥ 0"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            eta.updated({name: value})


def test_threshold_1_bounds_pure_noise() -> None:
    rng = np.random.default_rng(0)
    from relumine.tensors.symmetric import packed_size

    above = 0
    for _ in range(100):
        noise = SymmetricTensor(rng.normal(size=packed_size(6, 3)), 6, 3)
        errors = np.full(5, np.sqrt(packed_size(6, 3)))
        eta = Thresholds.from_errors(errors, 6, 1)
        above += np.linalg.svd(noise.flatten(1, 2), compute_uv=False)[0] > eta.eta1[0]
    assert above <= 5


def test_readout_recovers_the_function_without_knowing_signs() -> None:
    net = planted.network(5, 4, rng=3)
    X, y = planted.sample(net, 500, rng=4)
    sign = np.array([1.0, -1.0, 1.0, -1.0])
    fitted = fit_readout(rows_of(X, y), sign[:, None] * net.W, sign * net.b, net.a)
    fresh = np.random.default_rng(5).normal(size=(100, 5))
    np.testing.assert_allclose(fitted(fresh), net(fresh), atol=1e-8)
    assert fitted.merge().m == 4
    pure = fitted.consolidate()
    assert pure.m <= 6
    assert not np.any(pure.v)
    np.testing.assert_allclose(pure(fresh), net(fresh), atol=1e-8)


def test_readout_does_not_depend_on_the_scale_of_y() -> None:
    net = planted.network(4, 3, rng=8)
    X, y = planted.sample(net, 400, noise=0.3, rng=9)
    reference = fit_readout(rows_of(X, y), net.W, net.b, net.a)
    for scale in (1e-9, 1e9):
        scaled = fit_readout(rows_of(X, scale * y), net.W, net.b, scale * net.a)
        np.testing.assert_allclose(scaled(X), scale * reference(X), rtol=1e-7, atol=1e-7 * scale)


def test_readout_without_units_is_the_affine_fit() -> None:
    X = np.random.default_rng(6).normal(size=(50, 2))
    none = fit_readout(rows_of(X, X @ [1.0, -2.0] + 3.0), np.zeros((0, 2)), np.zeros(0), np.zeros(0))
    np.testing.assert_allclose(none.v, [1.0, -2.0], atol=1e-10)
    assert none.c == pytest.approx(3.0)


def test_truncation_ignores_far_rows_and_the_ball_is_kept() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 2))
    y = X @ [1.0, 1.0]
    X[0], y[0] = [1e3, 1e3], -1e9  # ‖φ‖ > τ
    empty = (np.zeros((0, 2)), np.zeros(0), np.zeros(0))
    np.testing.assert_allclose(fit_readout(rows_of(X, y), *empty, truncation=50.0).v, [1.0, 1.0], atol=1e-9)
    small = fit_readout(rows_of(X[1:], y[1:]), *empty, radius=0.5)
    assert np.hypot(np.linalg.norm(small.v), small.c) == pytest.approx(0.5 * np.sqrt(np.mean(y[1:] ** 2)))
    with pytest.raises(InvalidInput, match="raise the truncation"):
        fit_readout(rows_of(X, y), *empty, truncation=1e-3)


@given(st.integers(0, 1000), st.floats(0.05, 5.0))
@settings(max_examples=40, deadline=None)
def test_ball_minimum_satisfies_the_optimality_conditions(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 6))
    G = A.T @ A / 4  # rank 4 of 6
    c = G @ rng.normal(size=6)
    beta = minimise_in_ball(G, c, radius)
    gradient = G @ beta - c
    assert np.linalg.norm(beta) <= radius * (1 + 1e-9)
    if np.linalg.norm(beta) < radius * (1 - 1e-9):
        np.testing.assert_allclose(gradient, 0.0, atol=1e-7)
    else:  # −gradient = μβ with μ ≥ 0
        mu = -gradient @ beta / radius**2
        assert mu >= -1e-9
        np.testing.assert_allclose(-gradient, mu * beta, atol=1e-6 * (1 + mu))
    with pytest.raises(InvalidInput, match="radius"):
        minimise_in_ball(G, c, 0.0)
