"""Theorem 4 as code: labels from tensors alone, and a learner run as a tensor decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relumine import Network, planted, recover
from relumine.activations import Polynomial
from relumine.papers.mondelli2019.reduction import (
    decompose_by_learning,
    labels_from_tensors,
    lower_orders,
    trace,
    weight_tensor,
)
from relumine.results import InvalidInput


def _labels(W: np.ndarray, sigma: Polynomial, X: np.ndarray) -> np.ndarray:
    return Network(W, np.zeros(len(W)), np.ones(len(W)), sigma)(X)


@settings(max_examples=40, deadline=None)
@given(
    d=st.integers(2, 5),
    r=st.integers(2, 9),
    degree=st.integers(3, 5),
    seed=st.integers(0, 2**32 - 1),
    pure=st.booleans(),
)
def test_labels_from_tensors_are_labels_from_weights(d: int, r: int, degree: int, seed: int, pure: bool) -> None:
    rng = np.random.default_rng(seed)
    W, X = planted.weights(d, r, rng), rng.normal(size=(20, d))
    s = rng.uniform(0.5, 1.0, size=degree + 1) * rng.choice([-1.0, 1.0], size=degree + 1)
    if pure:  # part 1: one tensor, of σ's parity
        s[degree - 1 :: -2] = 0.0
        given_tensors = (weight_tensor(W, degree),)
    else:  # part 2: two
        given_tensors = (weight_tensor(W, degree - 1), weight_tensor(W, degree))
    sigma = Polynomial(*s)
    y = labels_from_tensors(lower_orders(*given_tensors), sigma, X, width=r)
    exact = _labels(W, sigma, X)
    assert np.abs(y - exact).max() <= 1e-10 * max(1.0, np.abs(exact).max())


def test_a_trace_lowers_the_order_by_two() -> None:
    W = planted.weights(4, 7, 0)
    for k in (2, 3, 4, 5):
        assert np.allclose(trace(weight_tensor(W, k)).entries, weight_tensor(W, k - 2).entries, atol=1e-12)
    assert sorted(lower_orders(weight_tensor(W, 5))) == [1, 3, 5]
    assert sorted(lower_orders(weight_tensor(W, 4), weight_tensor(W, 5))) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InvalidInput, match="at least 2"):
        trace(weight_tensor(W, 1))


def test_a_missing_tensor_is_named() -> None:
    W = planted.weights(3, 4, 0)
    tensors = lower_orders(weight_tensor(W, 3))
    with pytest.raises(InvalidInput, match="order 2"):
        labels_from_tensors(tensors, "polynomial(0,0,1,1)", np.ones((1, 3)))
    with pytest.raises(InvalidInput, match="width"):
        labels_from_tensors(tensors, "polynomial(1,0,0,1)", np.ones((1, 3)))
    with pytest.raises(InvalidInput, match="polynomial"):
        labels_from_tensors(tensors, "relu", np.ones((1, 3)))


def test_recover_as_a_tensor_decomposition() -> None:
    """The learner sees labels only; the weights it returns are the terms of the tensor it never saw."""
    W = np.random.default_rng(0).normal(size=(3, 4))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    sigma = Polynomial(0.0, 0.0, 0.0, 1.0)

    def learner(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        net = recover(X, y, width=3, activation=sigma, rng=0, on_failure="return").network
        return net.W * np.sign(net.a)[:, None]  # σ is odd: a sign belongs to w

    found = decompose_by_learning((weight_tensor(W, 3),), sigma, learner, n=400, rng=1)
    cosines = W @ found.T
    assert np.allclose(cosines.max(axis=1), 1.0, atol=1e-6)
