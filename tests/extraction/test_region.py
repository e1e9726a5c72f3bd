"""Restricted inputs: only rows that are allowed are asked, and the network found holds on them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from tests.extraction.black_boxes import SECRET, found

import relumine as rl
from relumine.extraction import extract


def agrees(net, truth, X: np.ndarray) -> bool:
    y = truth(X)
    return bool(np.abs(net(X) - y).max() <= 1e-9 * np.abs(y).max())


def test_the_signature_is_short() -> None:
    assert len(inspect.signature(extract).parameters) < 15


def test_positive_inputs_only() -> None:
    result = found(SECRET, low=0.0, scale=0.3)
    assert result.status.value == "exact"
    assert (result.X >= 0.0).all()
    assert (result.X <= 3.0).all()
    assert "every input from 0 to 3" in str(result.certificate)
    assert agrees(result.network, SECRET, np.random.default_rng(0).uniform(0.0, 3.0, (200, 5)))


def test_one_upper_end() -> None:
    assert (found(SECRET, high=1.0, on_failure="return").X <= 1.0).all()


def test_fixed_inputs_by_number_and_by_name() -> None:
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    result = found(SECRET, fixed={1: 0.5, 4: -2.0})
    assert result.status.value == "exact"
    assert (result.X[:, [1, 4]] == [0.5, -2.0]).all()
    assert not result.network.W[:, [1, 4]].any()
    assert "holds where input 1 = 0.5, input 4 = -2" in str(result.certificate)
    X = rng.normal(size=(100, 5))
    X[:, 1], X[:, 4] = 0.5, -2.0
    assert agrees(result.network, SECRET, X)
    np.testing.assert_allclose(SECRET(result.X), result.y, rtol=1e-12, atol=1e-12)
    named = extract(lambda frame: SECRET(frame.to_numpy()), columns=[*"abcde"], fixed={"b": 0.5, 4: -2.0}, rng=0)
    assert agrees(named.network, SECRET, X)


def test_fixed_inputs_of_a_deep_box() -> None:
    truth = rl.planted.deep((8, 6, 5, 1), rng=0)
    result = extract(truth, dim=8, fixed={2: 0.3}, rng=0)
    assert isinstance(result.network, rl.DeepNetwork)
    X = np.random.default_rng(0).normal(size=(100, 8))
    X[:, 2] = 0.3
    assert agrees(result.network, truth, X)


def test_a_sampler_draws_whole_rows() -> None:
    result = found(SECRET, width=3, fixed={0: 1.0}, sampler=lambda rng, n: rng.normal(size=(n, 5)))
    X = np.random.default_rng(0).normal(size=(100, 5))
    X[:, 0] = 1.0
    assert agrees(result.network, SECRET, X)


def test_rows_that_sum_to_one() -> None:
    sharp = SECRET.replace(b=SECRET.b - SECRET.W @ np.full(5, 0.15))

    def box(X: np.ndarray) -> np.ndarray:
        if (np.abs(X.sum(axis=1) - 1.0) > 1e-12).any() or (X < -1e-15).any():
            raise ValueError("shares must be positive and sum to 1")
        return sharp(X)

    result = found(box, total=1.0, low=0.0, high=1.0)
    assert result.status.value == "exact"
    assert not result.retried
    assert not result.network.W[:, 4].any()
    assert "rows that sum to 1" in str(result.certificate)
    U = np.random.default_rng(0).uniform(0.0, 0.25, (100, 4))
    assert agrees(result.network, sharp, np.column_stack([U, 1.0 - U.sum(axis=1)]))


def test_rows_of_any_sign_that_have_a_sum() -> None:
    result = found(SECRET, total=2.0, fixed={4: 0.5})
    X = np.random.default_rng(0).normal(size=(100, 5))
    X[:, 4] = 0.5
    X[:, 3] = 2.0 - X[:, [0, 1, 2, 4]].sum(axis=1)
    assert agrees(result.network, SECRET, X)
