"""The door for samples, and whitening."""

from __future__ import annotations

import numpy as np
import pytest

import relumine as rl
from relumine.data.sources import as_samples
from relumine.data.whiten import whitening
from relumine.results import InvalidInput

GOOD_X, GOOD_Y = np.ones((4, 2)), np.ones(4)


def with_value(array: np.ndarray, value: float) -> np.ndarray:
    array = array.copy()
    array.ravel()[-1] = value
    return array


@pytest.mark.parametrize(
    ("X", "y", "weight", "word"),
    [
        (with_value(GOOD_X, np.nan), GOOD_Y, None, "X column 1 is nan in row 3; drop"),
        (GOOD_X, with_value(GOOD_Y, np.inf), None, "y is inf in row 3; drop"),
        (np.ones(4), GOOD_Y, None, r"use X.reshape\(-1, 1\)"),
        (np.ones((4, 0)), GOOD_Y, None, r"shape \(n, d\)"),
        (GOOD_X, np.ones((4, 2, 2)), None, r"\(n,\) or \(n, q\)"),
        (GOOD_X, np.ones(3), None, "X has 4 rows but y has 3"),
        (GOOD_X[:1], GOOD_Y[:1], None, "at least 2 samples"),
        ([["a", "b"]] * 4, GOOD_Y, None, "real numbers"),
        (GOOD_X.astype(complex), GOOD_Y, None, "real numbers"),
        ([[1.0], [1.0, 2.0]], GOOD_Y[:2], None, "rectangular"),
        (with_value(GOOD_X, 1e200), GOOD_Y, None, "rescale"),
        (GOOD_X, GOOD_Y, np.ones(3), "sample_weight must have shape"),
        (GOOD_X, GOOD_Y, -np.ones(4), "sample_weight is -1.0 in row 0"),
        (GOOD_X, GOOD_Y, np.zeros(4), "sample_weight leaves 0 rows"),
    ],
)
def test_bad_samples_are_named(X: object, y: object, weight: object, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        as_samples(X, y, weight)


def test_integers_and_lists_are_fine() -> None:
    samples = as_samples([[1, 2], [3, 4]], [1, 2], [1, 2])
    assert samples.X.dtype == samples.y.dtype == np.float64
    assert (samples.n, samples.d) == (2, 2)


def test_whitening_and_its_inverse() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) + 5.0
    weight = rng.uniform(0.1, 1.0, size=300)
    for w in (None, weight):
        white = whitening(X, w)
        Z = white.apply(X)
        np.testing.assert_allclose(np.average(Z, axis=0, weights=w), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.cov(Z.T, bias=True, aweights=w), np.eye(4), atol=1e-12)
        net = rl.planted.network(4, 3, rng=1, outputs=2).replace(v=rng.normal(size=(2, 4)), c=[1.0, 2.0])
        np.testing.assert_allclose(white.undo(net)(X), net(Z), atol=1e-10)
        back = white.redo(white.undo(net))
        for name in "Wbvc":
            np.testing.assert_allclose(getattr(back, name), getattr(net, name), atol=1e-10)


def test_useless_inputs_are_named() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(InvalidInput, match="input column 1 is constant"):
        whitening(np.column_stack([X[:, 0], np.full(50, 3.0), X[:, 1]]))
    with pytest.raises(InvalidInput, match="linearly dependent"):
        whitening(np.column_stack([X, X[:, 0] + X[:, 1]]))
    with pytest.raises(InvalidInput, match="cannot span"):
        whitening(X[:3])
