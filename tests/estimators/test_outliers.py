"""Wrong entries: told from a heavy tail, named, and without influence on what is chosen and fitted."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1

from relumine.estimators import TwoLayerRegressor
from relumine.estimators.choice import Settled, _widths
from relumine.estimators.outliers import exceeded, limit
from relumine.results import InvalidInput

# a fit that wrong entries spoil, or of four rows
pytestmark = pytest.mark.filterwarnings("ignore:.*the model is ridge regression, and width_ is 0:UserWarning")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5]))
def test_weights_are_repetitions_of_errors(seed: int, times: int) -> None:
    rng = np.random.default_rng(seed)
    r, weight = np.exp(rng.normal(size=200)), rng.integers(1, times + 1, size=200)
    repeated = np.repeat(r, weight)
    for share in (0.013, 0.1, 0.5):
        assert exceeded(r, weight.astype(float), share) == exceeded(repeated, None, share)
    assert limit(r, weight.astype(float)) == pytest.approx(limit(repeated), rel=1e-9)


@pytest.mark.parametrize("draw", ["normal", "laplace", "lognormal", "standard_cauchy"])
def test_a_heavy_tail_is_not_wrong_entries(draw: str) -> None:
    """Of twenty samples at most one has a row beyond the limit; an entry far beyond the tail is seen in all."""
    found = seen = 0
    for seed in range(20):
        r = np.abs(getattr(np.random.default_rng(seed), draw)(size=2000))
        found += np.isfinite(limit(r))
        r[7] = 1e3 * np.max(r)
        seen += limit(r) < r[7]
    assert found <= 2
    assert seen == 20


def test_many_far_rows_are_a_kind_of_row() -> None:
    r = np.abs(np.random.default_rng(0).normal(size=5000))
    r[:5] = 1000.0
    assert limit(r) < 1000.0
    r[:40] = 1000.0
    assert limit(r) == float("inf")
    assert limit(np.zeros(5000)) == float("inf")
    assert limit(np.append(np.ones(50), 1e9)) == float("inf")  # too few rows for a tail


@pytest.mark.parametrize("where", ["y", "x"])
def test_two_wrong_entries_do_not_matter(where: str) -> None:
    X, y = make_friedman1(2500, n_features=5, noise=0.5, random_state=0)
    X, y, unseen, truth = X[:900], y[:900], X[900:], y[900:]
    model = TwoLayerRegressor(members=3, random_state=0)
    clean = model.fit(X, y)
    assert len(clean.outliers_) == 0
    score = clean.score(unseen, truth)
    bad_X, bad_y = X.copy(), y.copy()
    if where == "y":
        bad_y[[17, 401]] = 1000.0, -300.0
    else:
        bad_X[[17, 401], [0, 3]] = 1000.0, -50.0
    said = r"2 of 900 rows do not belong.*\b401 \(" if where == "y" else r"2 entries of X.*-50 in row 401, column 3"
    with pytest.warns(UserWarning, match=said) as warned:
        model.fit(bad_X, bad_y)
    assert len(warned) == 1
    if where == "y":
        assert set(model.outliers_) == {17, 401}
    else:
        assert model.wrong_entries_.tolist() == [[17, 0], [401, 3]]
        assert len(model.outliers_) == 0  # a row is named once
    assert model.score(unseen, truth) > score - 0.005
    kept = TwoLayerRegressor(members=3, robust=False, random_state=0).fit(bad_X, bad_y)
    assert len(kept.outliers_) == len(kept.wrong_entries_) == 0
    if where == "y":
        assert kept.score(unseen, truth) < score - 0.05


def test_a_wrong_entry_in_a_new_row_leads_nowhere_far() -> None:
    X, y = make_friedman1(500, n_features=5, noise=0.5, random_state=0)
    model = TwoLayerRegressor(width=10, alpha=1e-3, members=2, exact=False, random_state=0).fit(X, y)
    far = X[:5].copy()
    far[:, 2] = 1e6
    assert np.ptp(y) > np.abs(model.predict(far) - y.mean()).max()
    assert np.abs(model.network_(far)).max() > 100.0 * np.ptp(y)
    np.testing.assert_array_equal(model.predict(X), model.network_(X))


def test_units_that_were_asked_for_are_there_or_missed_aloud() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    model = TwoLayerRegressor(width=6, members=3, random_state=0).fit(X, X[:, 0] + 0.5 * rng.normal(size=300))
    assert model.network_.m == 18  # the data are affine; the units stay, held by a strong ridge
    with pytest.warns(UserWarning, match="too few to place units"):
        assert model.fit(X[:30], X[:30, 0] ** 2).network_.m == 0


@pytest.mark.parametrize("level", [0.5, 0.9, 0.98])
def test_intervals_cover(level: float) -> None:
    X, y = make_friedman1(3000, n_features=5, noise=1.0, random_state=0)
    model = TwoLayerRegressor(width=10, alpha=1e-2, members=3, random_state=0).fit(X[:1000], y[:1000])
    low, high = model.predict_interval(X[1000:], level)
    covered = np.mean((low <= y[1000:]) & (y[1000:] <= high))
    # 1000 errors and 2000 rows: a standard deviation of 0.02 at level 0.5; folds have fewer rows and no mean of members
    assert level - 0.05 < covered < level + 0.15
    assert low.shape == high.shape == (2000,)


def test_intervals_of_several_outputs_and_bad_levels() -> None:
    X, y = make_friedman1(200, n_features=5, noise=1.0, random_state=0)
    model = TwoLayerRegressor(width=4, alpha=0.1, members=3, random_state=0).fit(X, np.column_stack([y, 10.0 * y]))
    low, high = model.predict_interval(X, 0.8)
    assert low.shape == (200, 2)
    assert (high - low)[0, 1] > 5.0 * (high - low)[0, 0]
    with pytest.raises(InvalidInput, match="level must lie between"):
        model.predict_interval(X, 1.0)
    with pytest.raises(InvalidInput, match="too few for intervals"):
        model.predict_interval(X, 0.999)
    with pytest.raises(InvalidInput, match="too few rows"):
        TwoLayerRegressor().fit(X[:4], y[:4]).predict_interval(X)


def test_widths_that_rows_allow() -> None:
    """Many columns leave room for few units, not for none; what the user asks for is what is tried."""
    asked = Settled(None, None, 5)
    assert _widths(asked, 2400, 275) == [5]
    assert _widths(asked, 2400, 10) == [15, 40, 100]
    assert _widths(asked, 300, 10) == [5, 15]
    assert _widths(asked, 30, 2) == []
    assert _widths(Settled(7, None, 5), 2400, 10) == [7]


def test_without_noise_every_row_belongs() -> None:
    """Near kinks a network that is nearly right is off by many times the usual error, which means nothing."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    for y in (np.abs(X[:, 0]) + X[:, 1], np.sin(X[:, 0]) + X[:, 1]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = TwoLayerRegressor(random_state=0).fit(X, y)
        assert not len(model.outliers_)


def test_a_start_that_is_no_network_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"relumine\.Network"):
        TwoLayerRegressor(init=3).fit(np.ones((50, 2)), np.ones(50))


@pytest.mark.parametrize("wrong", [{"width": -1}, {"members": 0}, {"alpha": -1.0}, {"init": 3}])
def test_parameters_are_refused_before_the_rows_are_looked_into(wrong: dict[str, object]) -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[7, 1] = 1e6  # which would be warned of
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            TwoLayerRegressor(**wrong).fit(X, X[:, 0])
