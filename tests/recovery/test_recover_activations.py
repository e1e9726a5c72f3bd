"""`recover` with every activation: exact up to the symmetries of each, with and without biases."""

from typing import ClassVar

import numpy as np
import pytest

import relumine as rl
from relumine.activations import Elementwise, Reflection

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


class PlainLogistic(Elementwise):
    """As one would write it down: in double precision fine up to |z| = 350, in single only up to 44."""

    name = "plain_logistic"
    reflection = Reflection(-1.0, 0.0, 1.0)
    seen: ClassVar[set[np.dtype]] = set()

    def __call__(self, z):
        self.seen.add(np.asarray(z).dtype)
        return 1.0 / (1.0 + np.exp(-z))

    def derivative(self, z):
        self.seen.add(np.asarray(z).dtype)
        e = np.exp(-z)
        return e / (1.0 + e) ** 2


def test_own_activations_are_asked_in_double_precision():
    rng = np.random.default_rng(2)
    net = rl.planted.network(20, 16, rng, activation=PlainLogistic())
    truth = rl.Network(1.5 * net.W, 1.5 * net.b, net.a, PlainLogistic())
    X = rng.normal(size=(6720, 20))
    found = rl.recover(X, truth(X), width=16, activation=PlainLogistic(), rng=2)
    assert found.status is rl.Status.EXACT
    assert PlainLogistic.seen == {np.dtype(np.float64)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_activation_that_overflows_is_no_crash():
    rng = np.random.default_rng(0)
    net = rl.planted.network(20, 16, rng, activation=PlainLogistic())
    X = rng.normal(size=(1500, 20))
    y = rl.Network(400.0 * net.W, 400.0 * net.b, net.a, "sigmoid")(X)
    found = rl.recover(X, y, width=16, activation=PlainLogistic(), rng=0, starts=1, seconds=5, on_failure="return")
    assert not found.ok


@pytest.mark.parametrize("name", ["leaky_relu(-1.0)", "polynomial(0,0,0,0,1)"])
@pytest.mark.parametrize("beside", [0.0, 2.0])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_even_units_have_no_sign_whatever_stands_beside_them(name, beside, noise):
    truth = rl.planted.network(3, 2, rng=0, activation=name)
    X, y = rl.planted.sample(truth, 300, noise=noise, rng=1)
    found = rl.recover(X, y + beside, width=2, activation=name, rng=0)
    assert found.ok
    assert found.units.recovered == ()
    assert found.units.up_to_sign == (0, 1)
