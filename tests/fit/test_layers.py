"""Gauss–Newton for all layers: its sweeps are the derivative, and it ends at the planted network."""

import numpy as np
import pytest

import relumine as rl
from relumine.fit import layers as module
from relumine.fit.layers import Sweeps, minimise, rank
from relumine.run import Run

SIZES = [(6, 5, 4, 2), (6, 5, 4, 3, 1), (6, 5, 1)]


def with_skip(sizes, seed=0):
    net = rl.planted.deep(sizes, rng=seed)
    v = np.random.default_rng(seed).normal(size=net.head.v.shape)
    return rl.DeepNetwork(net.layers, net.head.replace(v=v))


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("skip", [False, True])
def test_sweeps_are_the_derivative(sizes, skip):
    rng = np.random.default_rng(1)
    net, X = with_skip(sizes), rng.normal(size=(30, 6))
    sweeps = Sweeps(net, X, skip)
    delta, G = rng.normal(size=sweeps.size), rng.normal(size=sweeps.value.shape)
    J = np.stack([sweeps.rows(k) for k in range(sweeps.value.shape[1])], axis=1)
    np.testing.assert_allclose(sweeps.forward(delta), J @ delta, atol=1e-11)
    np.testing.assert_allclose(sweeps.backward(G), np.einsum("nqp,nq->p", J, G), atol=1e-11)
    # a complex step would need no ε; a small real one crosses no kink at these rows
    change = (sweeps.moved(1e-6 * delta)(X) - sweeps.moved(-1e-6 * delta)(X)).reshape(sweeps.value.shape) / 2e-6
    far = np.abs(np.concatenate([z.ravel() for z in _before(net, X)])).min() > 1e-4
    assert far
    np.testing.assert_allclose(sweeps.forward(delta), change, atol=1e-6)


def _before(net, X):
    h, found = X, []
    for W, b in net.hidden:
        found.append(h @ W.T + b)
        h = net.activation(found[-1])
    return found


def moved(net, by, seed=2):
    rng = np.random.default_rng(seed)
    return rl.DeepNetwork.of(
        [(W + by * rng.normal(size=W.shape), b + by * rng.normal(size=b.shape)) for W, b in net.maps]
    )


@pytest.mark.parametrize(("sizes", "dense"), [((8, 6, 5, 1), True), ((8, 6, 5, 1), False), ((8, 6, 5, 4, 2), True)])
def test_back_to_machine_precision(sizes, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(module, "_DENSE", 1)
    truth = rl.planted.deep(sizes, rng=3)
    X = np.random.default_rng(4).normal(size=(6 * truth.parameters, sizes[0]))
    fit = minimise(moved(truth, 1e-6), X, truth(X), Run.of(0))
    assert list(fit.history) == sorted(fit.history, reverse=True)
    assert fit.loss < 1e-22
    assert rl.metrics.parameter_error(truth, fit.network) < 1e-9


def test_iterative_steps_stand_correlated_activations(monkeypatch):
    """Units in front that are nearly always on and nearly alike: the columns of J are nearly dependent."""
    monkeypatch.setattr(module, "_DENSE", 1)
    truth, rng = rl.DeepNetwork((), rl.planted.deep((60, 60, 1), rng=3).head), np.random.default_rng(4)
    H = np.maximum(1.0 + rng.normal(size=(8000, 1)) + 0.01 * rng.normal(size=(8000, 60)), 0.0)
    H *= np.exp(rng.normal(size=60))
    fit = minimise(moved(truth, 1e-7), H, truth(H), Run.of(0), steps=1)
    assert fit.loss < 5e-7 * fit.history[0]  # 4e-8; with columns of length one it was 5e-6


def test_only_what_is_free_moves():
    truth = rl.planted.deep((5, 4, 1), rng=0)
    X = np.random.default_rng(1).normal(size=(300, 5))
    W = truth.head.W.copy()
    W[1, 2] = 0.0
    start = rl.DeepNetwork((), truth.head.replace(W=W))
    free = np.zeros(start.parameters, dtype=bool)
    free[1 * 5 + 2] = True
    fit = minimise(start, X, truth(X), Run.of(0), free=free)
    assert rl.metrics.parameter_error(truth, fit.network) < 1e-10
    np.testing.assert_array_equal(np.delete(fit.network.head.W.ravel(), 7), np.delete(truth.head.W.ravel(), 7))


def test_weights_decide_which_rows_count():
    truth = rl.planted.deep((5, 4, 3, 1), rng=0)
    X = np.random.default_rng(1).normal(size=(400, 5))
    y = truth(X)
    y[:50] += 100.0
    weight = np.where(np.arange(400) < 50, 0.0, 1.0)
    fit = minimise(moved(truth, 1e-6), X, y, Run.of(0), weight=weight)
    assert rl.metrics.parameter_error(truth, fit.network) < 1e-9


def test_the_rank_says_identifiable():
    net = rl.planted.deep((6, 5, 4, 1), rng=0)
    found, most = rank(net, np.random.default_rng(0).normal(size=(2000, 6)))
    assert found == most == net.parameters - net.m


def test_a_run_that_is_over_keeps_the_start():
    truth = rl.planted.deep((5, 4, 3, 1), rng=0)
    run = Run.of(0)
    run.stop.set()
    X = np.random.default_rng(1).normal(size=(50, 5))
    assert minimise(moved(truth, 1e-3), X, truth(X), run).reason == "interrupted"


def test_rows_must_agree():
    with pytest.raises(rl.InvalidInput):
        minimise(rl.planted.deep((5, 4, 3, 1), rng=0), np.zeros((3, 5)), np.zeros(2), Run.of(0))
