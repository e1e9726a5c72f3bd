"""TwoLayerRegressor: a scikit-learn estimator in every respect, exact on exact data, regularised on the rest."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import relumine as rl
from relumine.data.moments import MomentSums
from relumine.data.sources import Samples
from relumine.data.whiten import spanning
from relumine.estimators import TwoLayerRegressor
from relumine.estimators.regularised import average
from relumine.results import InvalidInput

# some problems here have too few rows for units, or need none
pytestmark = pytest.mark.filterwarnings("ignore:.*the model is ridge regression:UserWarning")


@parametrize_with_checks([TwoLayerRegressor(random_state=0), TwoLayerRegressor(width=3, members=2, random_state=0)])
def test_scikit_learn_agrees(estimator, check) -> None:
    check(estimator)


def test_exact_data_are_recovered() -> None:
    truth = rl.planted.network(d=4, m=3, rng=0)
    X, y = rl.planted.sample(truth, 300, rng=1)
    model = TwoLayerRegressor(width=3, random_state=0).fit(X, y)
    assert model.recovery_ is not None
    assert rl.metrics.parameter_error(truth, model.network_) < 1e-9
    np.testing.assert_array_equal(model.predict(X), model.network_(X))


def test_noisy_data_are_regularised() -> None:
    X, y = make_friedman1(300, noise=1.0, random_state=0)
    model = TwoLayerRegressor(random_state=0).fit(X[:200], y[:200])
    assert model.recovery_ is None
    assert model.alpha_ > 0.0
    assert model.width_ == model.network_.m > 0
    assert model.score(X[200:], y[200:]) > Ridge().fit(X[:200], y[:200]).score(X[200:], y[200:]) + 0.05


def test_pure_noise_becomes_no_network() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 5)), rng.normal(size=150)
    model = TwoLayerRegressor(random_state=0).fit(X, y)
    assert np.var(model.predict(X)) < 0.2


def test_awkward_columns() -> None:
    """Constant and dependent columns, more columns than rows: predictions stay finite and sensible."""
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:120], y[:120]
    awkward = np.column_stack([X, np.ones(120), X[:, 0] + X[:, 1], 1e6 * X[:, 2]])
    model = TwoLayerRegressor(random_state=0).fit(awkward, y)
    assert model.score(awkward, y) > 0.3
    wide = np.random.default_rng(0).normal(size=(20, 50))
    assert np.isfinite(TwoLayerRegressor().fit(wide, wide[:, 0]).predict(wide)).all()


def test_several_outputs() -> None:
    X, y = make_friedman1(150, noise=1.0, random_state=0)
    both = TwoLayerRegressor(width=4, random_state=0).fit(X, np.column_stack([y, 1e4 * X[:, 3]]))
    assert both.predict(X).shape == (150, 2)
    assert both.score(X, np.column_stack([y, 1e4 * X[:, 3]])) > 0.7


def test_weights_are_repetitions() -> None:
    """Also where units are placed, beyond the small data of scikit-learn's own check."""
    rng = np.random.default_rng(0)
    X, y = make_friedman1(90, n_features=5, noise=1.0, random_state=0)
    times = rng.integers(0, 3, size=90)
    model = TwoLayerRegressor(width=3, members=1, alpha=0.3, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    # steps are solved for in single precision, from sums in another order
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-3)
    assert not np.allclose(weighted.predict(X), clone(model).fit(X, y).predict(X), rtol=1e-2)


def test_in_a_pipeline_and_a_grid() -> None:
    X, y = make_friedman1(120, noise=1.0, random_state=0)
    pipe = make_pipeline(StandardScaler(), TwoLayerRegressor(members=3, random_state=0))
    grid = GridSearchCV(pipe, {"twolayerregressor__width": [2, 4], "twolayerregressor__alpha": [0.1, 1.0]}, cv=2)
    assert grid.fit(X, y).best_score_ > 0.5
    assert cross_val_score(clone(pipe), X, y, cv=2).mean() > 0.5


def test_starting_from_a_network() -> None:
    truth = rl.planted.network(d=6, m=5, rng=0)
    X, y = rl.planted.sample(truth, 300, noise=0.3, rng=1)
    model = TwoLayerRegressor(init=truth, alpha=1e-4, random_state=0).fit(X, y)
    assert model.network_.m == 5
    assert rl.metrics.parameter_error(truth, model.network_) < 0.6
    again = TwoLayerRegressor(width=5, alpha=1e-4, members=1, warm_start=True, random_state=0).fit(X, y)
    first = again.network_
    assert np.mean((again.fit(X, y).predict(X) - y) ** 2) <= np.mean((first(X) - y) ** 2) * 1.001
    with pytest.raises(InvalidInput, match="init has 6 inputs"):
        TwoLayerRegressor(init=truth).fit(X[:, :3], y)


def test_the_moment_stage_in_pieces_is_the_whole() -> None:
    truth = rl.planted.network(d=5, m=2, rng=0)
    X, y = rl.planted.sample(truth, 20_000, rng=1)
    pieces, whole = (TwoLayerRegressor(width=2, random_state=0) for _ in range(2))
    for rows in np.array_split(np.arange(len(X)), [100, 7000, 7001]):
        pieces.partial_fit(X[rows], y[rows])
    whole.partial_fit(X, y)
    sums = MomentSums(5, 4, "regressed").add(X, y)
    np.testing.assert_allclose(pieces.sums_.matrix, sums.matrix, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(pieces.predict(X), whole.predict(X), atol=1e-6)
    assert rl.metrics.parameter_error(truth, whole.network_) < 0.2
    assert whole.score(X, y) > 0.98


def test_before_the_moments_have_enough_rows() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.arange(20.0)
    assert TwoLayerRegressor().partial_fit(X, y).predict(X)[0] == pytest.approx(9.5)
    with pytest.raises(InvalidInput, match="ReLU"):
        TwoLayerRegressor(activation="tanh").partial_fit(X, y)


@pytest.mark.parametrize(
    ("options", "word"), [({"width": -1}, "width must be"), ({"members": 0}, "members"), ({"alpha": -1.0}, "alpha")]
)
def test_bad_options_are_named(options, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        TwoLayerRegressor(**options).fit(np.eye(5), np.arange(5.0))


def test_spanning_and_average_keep_functions() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + 3.0
    X[:, 3] = X[:, 0] - 2.0 * X[:, 1]  # one direction less than columns
    white, values, _ = spanning(Samples(X))
    Z, net = white.apply(X), rl.planted.network(4, 3, rng=1)
    assert (Z.shape, len(values)) == ((60, 3), 3)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(white.redo(net)(Z), net(X), atol=1e-9)
    np.testing.assert_allclose(white.undo(white.redo(net))(X), net(X), atol=1e-9)
    other = rl.planted.network(4, 2, rng=2)
    np.testing.assert_allclose(average([net, other])(X), (net(X) + other(X)) / 2, atol=1e-12)


def test_a_constant_output_leaves_the_others_alone() -> None:
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    alone = TwoLayerRegressor(random_state=0).fit(X, y)
    both = TwoLayerRegressor(random_state=0).fit(X, np.column_stack([y, np.ones(120)]))
    assert both.network_.m == alone.network_.m > 0
    np.testing.assert_allclose(both.predict(X), np.column_stack([alone.predict(X), np.ones(120)]), atol=0.05)


@pytest.mark.filterwarnings("ignore:.*too few to place units:UserWarning")
@pytest.mark.parametrize("options", [{}, {"width": 3}, {"width": 3, "alpha": 0.1}, {"activation": "tanh"}])
@pytest.mark.parametrize("tremble", [0.0, 1e-15])
def test_inputs_that_do_not_vary_give_the_mean(options, tremble: float) -> None:
    X, y = np.ones((60, 2)) + tremble * np.arange(60.0)[:, None], np.arange(60.0)
    model = TwoLayerRegressor(random_state=0, **options)
    np.testing.assert_allclose(model.fit(X, y).predict(X[:2]), 29.5)
    np.testing.assert_allclose(model.fit(X, np.column_stack([y, -y])).predict(X[:1]), [[29.5, -29.5]])
    weight = (np.arange(60) < 3).astype(float)
    np.testing.assert_allclose(model.fit(X, y, sample_weight=weight).predict(X[:1]), 1.0)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"alpha": "a"}, "alpha must be a finite number"),
        ({"alpha": np.inf}, "alpha must be a finite number"),
        ({"width": True}, "width must be a whole number"),
    ],
)
def test_more_bad_options_are_named(options, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        TwoLayerRegressor(**options).fit(np.eye(5), np.arange(5.0))


def test_values_whose_squares_overflow_are_refused() -> None:
    with pytest.raises(InvalidInput, match="y has values beyond"):
        TwoLayerRegressor().fit(np.eye(5), 1e200 * np.arange(5.0))
    with pytest.raises(InvalidInput, match="X has values beyond"):
        TwoLayerRegressor().fit(1e200 * np.eye(5), np.arange(5.0))


def test_names_and_missing_values_as_scikit_learn_has_them() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = make_friedman1(60, n_features=5, random_state=0)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = TwoLayerRegressor(width=2, alpha=1.0, members=1, random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("edcba")])
    frame.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(frame, y)
    assert make_pipeline(SimpleImputer(), model).fit(frame, y).predict(frame).shape == (60,)
    assert not model.__sklearn_tags__().input_tags.allow_nan
