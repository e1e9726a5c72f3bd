"""Properties of activations (Zhong 2017): closed forms, Theorem 3.5's verdicts, and the Hessian around the truth."""

import numpy as np
import pytest
from scipy.stats import norm

from relumine import InvalidInput, Network, planted
from relumine import activations as act
from relumine.data.views import rows_of
from relumine.papers.zhong2017 import curvature
from relumine.papers.zhong2017.conditions import constants, properties, second_derivative, table
from relumine.papers.zhong2017.descent import gradient

SATISFY = ("relu", "leaky_relu(0.01)", "squared_relu", "sigmoid", "tanh", "erf")


def test_constants_of_relu_in_closed_form():
    c = constants(act.RELU, np.array([0.3, 1.0, 5.0]))  # σ' does not see the scale
    assert np.allclose(c.alpha0, 0.5)
    assert np.allclose(c.alpha1, norm.pdf(0))
    assert np.allclose([c.alpha2, c.beta0, c.beta2], 0.5)
    assert np.allclose(c.rho, 0.25 - 1 / (2 * np.pi), atol=1e-14)


def test_constants_of_squared_relu_in_closed_form():
    s = np.array([0.5, 2.0])
    c = constants(act.get("squared_relu"), s)
    assert np.allclose(c.alpha0, 2 * s * norm.pdf(0))
    assert np.allclose(c.alpha1, s)
    assert np.allclose(c.beta0, 2 * s**2)
    assert np.allclose(c.beta2, 6 * s**2)


@pytest.mark.parametrize("name", SATISFY)
def test_theorem_3_5_satisfied(name):
    found = properties(name)
    assert found.all_hold, found


def test_theorem_3_5_violated_for_the_stated_reason():
    linear, quadratic = properties("linear"), properties("quadratic")
    assert linear.monotone.holds
    assert not linear.nonlinear.holds
    assert "ρ(1) = 0," in linear.nonlinear.reason
    assert not quadratic.monotone.holds
    assert "negative" in quadratic.monotone.reason
    assert not quadratic.nonlinear.holds


def test_smoothness_and_growth():
    assert {n for n in SATISFY if properties(n).smooth} == {"squared_relu", "sigmoid", "tanh", "erf"}
    squared = properties("squared_relu")
    assert (squared.p, squared.L1, squared.L2) == pytest.approx((1.0, 2.0, 2.0), rel=1e-6)
    assert properties("relu").p == 0.0
    cubic = properties("polynomial(0,0,0,1)")
    assert not cubic.piecewise.holds
    assert "not bounded" in cubic.piecewise.reason
    assert not properties("leaky_relu(-0.5)").monotone.holds


def test_assumption_5_3():
    for name, moments in {
        "relu": (True, True, False, True),
        "leaky_relu": (True, True, False, True),
        "squared_relu": (True, True, True, False),
        "tanh": (True, False, True, False),
        "erf": (True, False, True, False),
    }.items():
        found = properties(name)
        assert found.tensor.holds, found
        assert found.moments == moments
    sigmoid = properties("sigmoid")  # odd up to a constant only
    assert sigmoid.moments == (True, False, True, False)
    assert not sigmoid.tensor.holds
    assert "not odd" in sigmoid.tensor.reason
    for name in ("linear", "quadratic"):
        assert properties(name).tensor.reason == "M_3 = M_4 = 0"


def test_table_has_a_row_for_every_activation():
    lines = table().splitlines()
    assert len(lines) == 2 + 8
    assert len({line.count("|") for line in lines}) == 1  # no stray separator in a cell


def test_second_derivative_never_crosses_a_kink():
    z = np.array([-1.0, -1e-6, 0.0, 1e-6, 2.0])
    assert np.abs(second_derivative(act.RELU, z)).max() == 0.0
    assert second_derivative(act.get("squared_relu"), z) == pytest.approx([0, 0, 2, 2, 2], abs=1e-5)
    t = np.linspace(-2, 2, 9)
    assert second_derivative(act.get("tanh"), t) == pytest.approx(-2 * np.tanh(t) / np.cosh(t) ** 2, abs=1e-9)


# -- the Hessian


@pytest.mark.parametrize("name", ["relu", "squared_relu", "tanh"])
def test_population_hessian_is_the_limit_of_the_empirical_one(name):
    net = planted.network(3, 2, rng=0, family="conditioned", activation=name)
    X, y = planted.sample(net, 400_000, rng=1)
    P, E = curvature.population_hessian(net), curvature.empirical_hessian(net, X, y)
    assert np.abs(P - E).max() < 0.03 * np.abs(P).max()
    assert np.allclose(P, P.T)
    low, high = curvature.extremes(P)
    assert low > 0.0
    bounds = curvature.conditioning(net)
    assert low > 0.3 * bounds.lower
    assert high < 4.0 * properties(name).L1 ** 2 * bounds.upper


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_negative_examples_have_singular_hessians(name):
    net = planted.network(3, 2, rng=0, family="conditioned", activation=name)
    low, high = curvature.extremes(curvature.population_hessian(net))
    assert abs(low) < 1e-10 * high


def test_empirical_hessian_is_the_derivative_of_the_gradient():
    truth = planted.network(4, 2, rng=0, family="conditioned", activation="tanh")
    X, y = planted.sample(truth, 300, rng=1)
    net = truth.replace(W=truth.W + 0.3 * np.random.default_rng(2).normal(size=truth.W.shape))
    H, h = curvature.empirical_hessian(net, X, y), 1e-5
    for index in range(net.W.size):
        E = np.zeros(net.W.size)
        E[index] = h
        E = E.reshape(net.W.shape)
        up, down = (gradient(rows_of(X, y), net.W + s * E, net.a, net.activation).in_W for s in (1, -1))
        assert H[index] == pytest.approx(((up - down) / (2 * h)).ravel(), abs=1e-7)


def test_the_hessian_stays_positive_near_the_truth_and_not_far_away():
    truth = planted.network(5, 3, rng=1, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 20_000, rng=2)
    D = np.random.default_rng(3).normal(size=truth.W.shape)
    D /= np.linalg.norm(D)
    near = curvature.empirical_hessian(truth.replace(W=truth.W + 0.05 * D), X, y)
    far = curvature.empirical_hessian(truth.replace(W=0.1 * D), X, y)
    assert curvature.extremes(near)[0] > 0.0
    assert curvature.extremes(far)[0] < 0.0


def test_conditioning_and_refusals():
    net = planted.network(6, 4, rng=0, family="conditioned", activation="squared_relu", condition=3.0)
    c = curvature.conditioning(net)
    s = np.linspace(1, 3, 4)
    assert (c.kappa, c.lam, c.nu) == pytest.approx((3.0, np.prod(s), 1.0))
    assert c.tau > 0.0
    with pytest.raises(InvalidInput, match="independent"):
        curvature.conditioning(Network(np.ones((2, 3)), np.zeros(2), np.ones(2)))
    with pytest.raises(InvalidInput, match="without biases"):
        curvature.population_hessian(planted.network(3, 2, rng=0))
    with pytest.raises(InvalidInput, match="at most"):
        curvature.empirical_hessian(Network(np.eye(100), np.zeros(100), np.ones(100)), np.zeros((1, 100)), np.zeros(1))
