"""`recover` with every activation: exact up to the symmetries of each, with and without biases."""

import numpy as np
import pytest

import relumine as rl

NAMES = ("leaky_relu(0.1)", "leaky_relu(-0.5)", "leaky_relu(2.0)", "squared_relu", "sigmoid", "tanh", "erf")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_recovery_is_exact(name, bias):
    truth = rl.planted.network(8, 3, rng=3, activation=name, bias=bias)
    X, y = rl.planted.sample(truth, 15 * 3 * 9, rng=4)
    found = rl.recover(X, y, width=3, activation=name, rng=0)
    assert found.status is rl.Status.EXACT
    assert found.network.activation == truth.activation
    assert rl.metrics.parameter_error(truth, found.network) < 1e-8
    again = found.network.canonical(), truth.canonical()
    assert np.allclose(again[0].W, again[1].W, atol=1e-8)
    assert np.allclose(again[0](X), again[1](X), atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "leaky_relu(0.1)", "squared_relu", "sigmoid", "tanh", "erf"])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_nine_of_ten_at_ten_samples_a_parameter(name, bias):
    good = 0
    for seed in range(10):
        truth = rl.planted.network(20, 5, rng=1000 + seed, activation=name, bias=bias)
        X, y = rl.planted.sample(truth, 10 * 5 * 21, rng=5000 + seed)
        found = rl.recover(X, y, width=5, activation=name, rng=seed, on_failure="return")
        good += rl.metrics.parameter_error(truth, found.network) < 1e-8
    assert good >= 9


@pytest.mark.slow
@pytest.mark.parametrize("d", [10, 30, 50, 100])
def test_squared_relu_at_three_samples_a_weight(d):
    good = 0
    for seed in range(10):
        truth = rl.planted.network(d, 5, rng=1000 + seed, activation="squared_relu", family="conditioned")
        X, y = rl.planted.sample(truth, 3 * 5 * d, rng=5000 + seed)
        found = rl.recover(X, y, width=5, activation="squared_relu", rng=seed, on_failure="return")
        good += rl.metrics.parameter_error(truth, found.network) < 1e-8
    assert good == 10
