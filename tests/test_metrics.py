"""Distances between networks, against quadrature, scipy and Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import relumine as rl
from relumine import metrics
from relumine.activations import RELU
from relumine.results import InvalidInput


def test_kernel_against_quadrature() -> None:
    b = np.array([0.0, 1.0, -1.0, 0.5, -3.0, 0.3])
    e = np.array([0.0, 0.0, 2.0, -0.5, 3.0, 0.3])
    one = np.ones(6)
    for rho in (-1.0, -0.999999, -0.5, 0.0, 0.3, 0.99, 1.0 - 1e-9, 1.0):
        R = np.full((6, 6), rho)
        closed = metrics.relu_kernel(b[:, None], e[None, :], R)
        np.testing.assert_allclose(closed, metrics.quadrature_kernel(RELU, RELU, b, one, e, one, R), atol=1e-12)


def test_orthant_probability_against_scipy() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        b, e, rho = rng.normal(), rng.normal(), rng.uniform(-0.99, 0.99)
        mine = metrics._orthant(np.array(b), np.array(e), np.array(rho), np.sqrt(1 - np.array(rho) ** 2))
        theirs = multivariate_normal(cov=[[1, rho], [rho, 1]]).cdf([b, e])
        assert abs(float(mine) - theirs) < 1e-7


def test_distance_of_different_activations() -> None:
    f, g = rl.planted.network(3, 4, rng=0), rl.planted.network(3, 2, rng=1, activation="tanh")
    X = np.random.default_rng(2).normal(size=(400_000, 3))
    apart = metrics.gaussian_distance(f, g)
    assert apart == pytest.approx(np.sqrt(np.mean((f(X) - g(X)) ** 2)), rel=5e-3)
    assert metrics.gaussian_distance(g, f) == pytest.approx(apart, rel=1e-9)
    with pytest.raises(InvalidInput, match="cannot match relu units with tanh units"):
        metrics.match(f, rl.planted.network(3, 4, rng=1, activation="tanh"))
    with pytest.raises(InvalidInput, match="different input dimensions"):
        metrics.gaussian_inner(f, rl.planted.network(2, 4, rng=1))


def test_distance_against_monte_carlo() -> None:
    f = rl.planted.network(4, 6, rng=0, outputs=2)
    g = rl.planted.network(4, 3, rng=1, outputs=2, family="hermite_roots")
    g = g.replace(v=np.ones((2, 4)), c=[0.5, -0.5])
    X = np.random.default_rng(2).normal(size=(400_000, 4))
    squares = ((f(X) - g(X)) ** 2).sum(axis=1)
    error = squares.std() / np.sqrt(len(squares))
    assert abs(metrics.gaussian_distance(f, g) ** 2 - squares.mean()) < 4 * error


def test_distance_is_zero_for_the_same_function() -> None:
    f = rl.planted.network(5, 7, rng=3)
    assert metrics.gaussian_distance(f, f.flip([1, 4]).canonical()) < 1e-7
    assert metrics.gaussian_distance(f, f.consolidate()) < 1e-7


def test_coefficient_loss_converges_to_the_distance() -> None:
    f, g = rl.planted.network(3, 4, rng=0), rl.planted.network(3, 4, rng=1)
    losses = [metrics.coefficient_loss(f, g, order) for order in (0, 2, 4, 8)]
    square = metrics.gaussian_distance(f, g) ** 2
    assert losses == sorted(losses)
    assert losses[-1] <= square + 1e-12
    assert losses[-1] > 0.97 * square


@given(seed=st.integers(0, 10**6), outputs=st.sampled_from([None, 2]))
@settings(max_examples=30, deadline=None)
def test_parameter_error_sees_no_symmetry(seed: int, outputs: int | None) -> None:
    rng = np.random.default_rng(seed)
    net = rl.planted.network(4, 6, rng=rng, outputs=outputs)
    other = net.flip(np.flatnonzero(rng.random(6) < 0.5)).permuted(rng.permutation(6))
    scale = rng.uniform(0.2, 5.0, size=6)
    other = other.replace(W=other.W * scale[:, None], b=other.b * scale, a=other.a / scale)
    assert metrics.parameter_error(net, other) < 1e-12


def test_parameter_error_sees_everything_else() -> None:
    net = rl.planted.network(4, 3, rng=0)
    for change in (
        {"a": net.a + np.array([0.0, 0.01, 0.0])},
        {"b": net.b + np.array([0.0, 0.0, 0.01])},
        {"v": np.full(4, 0.005)},
        {"c": 0.01},
        {"W": -net.W, "b": -net.b},  # flipped without paying for it: another function
    ):
        assert metrics.parameter_error(net, net.replace(**change)) > 0.0099
    assert metrics.parameter_error(net, net.permuted([0, 1])) == np.inf
    np.testing.assert_allclose(
        metrics.unit_errors(net, net.replace(a=net.a + np.array([0.0, 0.01, 0.0]))), [0.0, 0.01, 0.0], atol=1e-15
    )


def test_shapes_must_match() -> None:
    with pytest.raises(InvalidInput, match="shapes differ"):
        metrics.match(rl.planted.network(3, 2, rng=0), rl.planted.network(4, 2, rng=0))
    with pytest.raises(InvalidInput, match="numbers of inputs"):
        metrics.gaussian_distance(rl.planted.network(3, 2, rng=0), rl.planted.network(4, 2, rng=0).replace())
