"""Entries of x far beyond their column: seen, told from heavy tails, and replaced by what the row says otherwise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import relumine as rl
from relumine.estimators import TwoLayerRegressor
from relumine.estimators.entries import Entries


def _sizes(n: int, rng: np.random.Generator) -> np.ndarray:
    """Three lengths of one thing, and a column of its own."""
    size = 5.0 + np.abs(rng.normal(size=n))
    return np.column_stack([*(size + 0.05 * rng.normal(size=(3, n))), rng.normal(size=n)])


@pytest.mark.parametrize("draw", ["normal", "laplace", "lognormal", "standard_cauchy", "uniform"])
def test_tails_are_not_wrong_entries(draw: str) -> None:
    found = 0
    for seed in range(10):
        X = getattr(np.random.default_rng(seed), draw)(size=(2000, 5))
        found += Entries.of(X).wrong(X).any()
    assert found <= 1


def test_counts_and_categories_have_no_tail() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(3000) < 0.001, rng.poisson(0.3, 3000), rng.integers(0, 4, 3000)]).astype(float)
    assert not Entries.of(X).wrong(X).any()


def test_a_zero_that_stands_for_missing_is_replaced_by_what_the_others_say() -> None:
    X = _sizes(2000, np.random.default_rng(1))
    bad = X.copy()
    bad[7, :2], bad[11, 3] = 0.0, 1e6
    entries = Entries.of(bad)
    assert np.argwhere(entries.wrong(bad)).tolist() == [[7, 0], [7, 1], [11, 3]]
    mended = entries(bad)
    np.testing.assert_allclose(mended[7], X[7], atol=0.5)  # the third length tells
    assert 2.0 < mended[11, 3] == pytest.approx(entries.high[3], rel=0.05)  # nothing tells: the end of the column
    untouched = np.delete(np.arange(2000), [7, 11])
    np.testing.assert_array_equal(mended[untouched], X[untouched])
    np.testing.assert_array_equal(entries(X[:5]), X[:5])


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(2)
    X, weight = _sizes(300, rng), rng.integers(1, 4, size=300)
    X[3, 1] = -40.0
    once, often = Entries.of(X, weight.astype(float)), Entries.of(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(once.low, often.low)
    np.testing.assert_allclose(once(X), often(X))


def test_a_row_with_a_wrong_entry_is_as_good_as_none() -> None:
    """And rows keep their numbers, whichever are left out for another reason."""
    rng = np.random.default_rng(6)
    X = _sizes(300, rng)
    y = X[:, 0] + np.abs(X[:, 3]) + 0.1 * rng.normal(size=300)
    model = TwoLayerRegressor(width=5, alpha=0.1, members=2, random_state=0)
    without = model.fit(X[20:], y[20:]).predict(X)
    bad, weight = X.copy(), np.ones(300)
    weight[:10], weight[12:20], bad[10:12, 1] = 0.0, 0.0, -40.0
    with pytest.warns(UserWarning, match=r"2 entries of X .*: -40 in row 10, column 1; -40 in row 11, column 1\."):
        model.fit(bad, y, sample_weight=weight)
    assert model.wrong_entries_.tolist() == [[10, 1], [11, 1]]
    np.testing.assert_allclose(model.predict(X), without, rtol=1e-6)


def test_entries_of_many_rows_are_not_wrong() -> None:
    X = np.random.default_rng(7).normal(size=(400, 20))
    for j in range(20):
        X[3 * j : 3 * j + 3, j] = 1e6
    assert Entries.of(X[:, :5]).wrong(X[:, :5]).sum() == 15
    assert not Entries.of(X).wrong(X).any()


def test_a_wrong_entry_of_a_new_row_costs_little() -> None:
    """Without the others' word the row would be predicted at the edge of all sizes that were seen."""
    rng = np.random.default_rng(3)
    X = _sizes(800, rng)
    y = X[:, 0] ** 2 + X[:, 3] + 0.1 * rng.normal(size=800)
    model = TwoLayerRegressor(width=5, alpha=0.01, members=2, random_state=0).fit(X[:600], y[:600])
    bad = X[600:].copy()
    bad[:, 1] = 0.0
    assert model.score(bad, y[600:]) > model.score(X[600:], y[600:]) - 0.05


def test_data_of_a_network_stay_exact_with_a_far_row() -> None:
    truth = rl.planted.network(d=3, m=2, rng=0)
    X = np.random.default_rng(4).normal(size=(400, 3))
    X[5, 0] = 60.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TwoLayerRegressor(width=2, random_state=0).fit(X, truth(X))
    assert model.recovery_ is not None
    np.testing.assert_allclose(model.predict(X), truth(X), atol=1e-8)


def test_no_units_are_not_passed_over() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4))
    with pytest.warns(UserWarning, match="no hidden unit made the predictions better: the model is ridge regression"):
        assert TwoLayerRegressor(random_state=0).fit(X, X[:, 0] + rng.normal(size=300)).width_ == 0
