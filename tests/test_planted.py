"""Planted families have the property they are named for."""

from __future__ import annotations

import numpy as np
import pytest

import relumine as rl
from relumine.planted import network, sample, weights
from relumine.results import InvalidInput


def test_seeds() -> None:
    one, two, other = network(5, 4, rng=1), network(5, 4, rng=1), network(5, 4, rng=2)
    np.testing.assert_array_equal(one.W, two.W)
    assert not np.allclose(one.W, other.W)
    np.testing.assert_array_equal(sample(one, 9, rng=3)[0], sample(one, 9, rng=3)[0])


def test_families() -> None:
    np.testing.assert_allclose(np.linalg.norm(network(6, 9, rng=0).W, axis=1), 1.0)
    net = network(6, 5, rng=0, family="orthonormal")
    np.testing.assert_allclose(net.W @ net.W.T, np.eye(5), atol=1e-14)
    net = network(6, 5, rng=0, family="conditioned", condition=3.0)
    np.testing.assert_allclose(np.linalg.svd(net.W, compute_uv=False), np.linspace(3.0, 1.0, 5))
    assert {0.0, 1.0, -1.0, np.sqrt(3.0)} <= set(network(6, 5, rng=0, family="hermite_roots").b)
    assert set(network(6, 5, rng=0, family="large_bias").b[-2:]) == {4.0, -4.0}
    net = network(6, 5, rng=0, family="nearly_parallel", angle=5.0)
    assert np.degrees(np.arccos(net.W[0] @ net.W[1])) == pytest.approx(5.0)
    net = network(6, 5, rng=0, family="smoothed", tau=0.1)
    assert (net.W @ net.W.T).min() > 0.95
    net = network(3, 5, rng=0, family="dependent")
    np.testing.assert_allclose(net.a @ net.W, 0.0, atol=1e-14)
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(net(X), net.replace(W=-net.W)(X), atol=1e-12)


@pytest.mark.parametrize("family", ["random", "centred_identity", "simplex", "identity", "haar"])
def test_weights_of_every_family_are_unit_vectors(family: str) -> None:
    W = weights(4, {"random": 7, "simplex": 10, "haar": 8}.get(family, 4), rng=0, family=family)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 1.0)
    if family in ("centred_identity", "simplex"):
        np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-14)
    if family == "simplex":  # any two vertices of one simplex are equally far apart
        np.testing.assert_allclose(W[:5] @ W[:5].T, np.where(np.eye(5), 1.0, -0.25), atol=1e-14)
    if family == "haar":
        np.testing.assert_allclose(W[4:] @ W[4:].T, np.eye(4), atol=1e-14)
        assert not np.allclose(W[:4], W[4:])


def test_sample_moments_and_noise() -> None:
    net = network(3, 2, rng=0)
    cov = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 4.0]])
    X, y = sample(net, 100_000, noise=0.5, rng=1, mean=[1.0, 2.0, 3.0], cov=cov)
    np.testing.assert_allclose(X.mean(axis=0), [1.0, 2.0, 3.0], atol=0.03)
    np.testing.assert_allclose(np.cov(X.T), cov, atol=0.06)
    assert np.std(y - net(X)) == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"d": 0, "m": 1}, "d ≥ 1"),
        ({"d": 2, "m": 3, "family": "orthonormal"}, "m ≤ d"),
        ({"d": 2, "m": 1, "family": "nearly_parallel"}, "m ≥ 2"),
        ({"d": 2, "m": 1, "family": "what"}, "family must be 'generic'"),
    ],
)
def test_bad_requests(arguments: dict, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        network(rng=0, **arguments)
    with pytest.raises(InvalidInput, match="noise"):
        rl.planted.sample(network(2, 2, rng=0), 5, noise=-1.0)
