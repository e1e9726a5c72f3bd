"""Rows next to each other that are off alike: every pair by hand, noise of every kind, and what turns fast."""

import numpy as np
import pytest

import relumine as rl
from relumine.fit.neighbours import alike, close_together, clusters_of, condensed, pieces
from relumine.fit.passes import Model
from relumine.fit.rows import MemoryRows
from relumine.fit.sign_free import shape_of
from relumine.results import Status


def left(X, r, W=None, weight=None, groups=None):
    """The score of residuals r (n, q) at inputs X (n, d): those of a model without units."""
    X, r = np.asarray(X, dtype=float), np.asarray(r, dtype=float).reshape(len(X), -1)
    rows = MemoryRows(np.column_stack([X, np.ones(len(X))]), r, weight)
    model = Model(shape_of(rl.activations.get("relu")), np.zeros((0, X.shape[1] + 1)), np.zeros((0, r.shape[1])))
    return alike(rows, model, X, np.zeros((0, X.shape[1])) if W is None else np.asarray(W), groups)


def test_pairs_are_those_that_follow_each_other():
    x, r = np.array([[3.0], [1.0], [2.0], [5.0]]), np.array([3.0, 1.0, -2.0, 5.0])
    products = np.array([1.0 * -2.0, -2.0 * 3.0, 3.0 * 5.0])  # in the order of x
    assert left(x, r).score == pytest.approx(products.sum() / np.sqrt((products**2).sum()), rel=1e-14)
    assert left(x, r).along == 0


def test_nearest_pairs_count_once():
    # two pairs, far from each other; no order of a single input has them together
    X = np.array([[0.0, 10.0], [0.1, 10.0], [0.05, -10.0], [0.15, -10.0], [0.07, 300.0], [0.12, -300.0]])
    r = np.array([2.0, 2.0, -2.0, -2.0, 0.0, 0.0])
    found = left(X, r)
    assert found.along == 1
    assert found.score == pytest.approx((4.0 + 4.0 - 4.0) / np.sqrt(48.0))


@pytest.mark.parametrize("seed", range(4))
def test_what_turns_fast_along_an_input_shows(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(400, 5))
    found = left(X, np.sin(60.0 * X[:, 3]))
    assert found.score > 8.0
    assert found.along == 3


@pytest.mark.parametrize("seed", range(4))
def test_what_turns_fast_along_a_unit_shows_in_its_order(seed):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(600, 12)), rng.normal(size=12) / 12**0.5
    r = np.sign(np.sin(20.0 * X @ w))
    assert left(X, r).score < 5.0
    assert left(X, r, w[None]).score > 8.0


@pytest.mark.parametrize("seed", range(4))
def test_a_checkerboard_shows_between_nearest_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 6.0, size=(2000, 2))
    r = (-1.0) ** np.floor(X).sum(axis=1) + 0.3 * rng.normal(size=2000)
    assert left(X, r).score > 8.0


NOISE = {
    "Gaussian": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1.0,
    "of growing size": lambda rng, n: rng.normal(size=n) * np.linspace(0.01, 10.0, n),
}


@pytest.mark.parametrize("kind", NOISE)
def test_noise_does_not_show(kind):
    rng = np.random.default_rng(0)
    scores = [left(np.sort(rng.normal(size=(300, 3)), axis=0), NOISE[kind](rng, 300)).score for _ in range(50)]
    assert max(scores) < 5.0
    assert np.std(scores) > 0.3  # it is a test, not a constant


def test_copies_of_a_row_are_no_neighbours_of_each_other():
    rng = np.random.default_rng(1)
    X, r = rng.normal(size=(100, 2)), rng.normal(size=100)
    twice = np.repeat(X, 4, axis=0), np.repeat(r, 4)
    assert left(*twice).score > 8.0
    assert left(*twice, groups=np.repeat(np.arange(100), 4)).score < 4.0


def test_weights_count_as_in_the_fit():
    rng = np.random.default_rng(2)
    x, r, weight = np.sort(rng.normal(size=(50, 1)), axis=0), rng.normal(size=50), rng.uniform(0.5, 2.0, size=50)
    assert left(x, r, weight=weight).score == pytest.approx(left(x, r * np.sqrt(weight)).score, rel=1e-12)


def test_any_output_may_show():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(300, 2))
    wave, noise = np.cos(50.0 * X[:, 1]), rng.normal(size=300)
    assert left(X, np.column_stack([noise, wave])).along == 1
    assert left(X, np.column_stack([noise, wave])).score > 5.0
    assert left(X, np.column_stack([noise, 1e-3 * wave])).score < 5.0  # what noise in one output does to the others


@pytest.mark.parametrize("seed", range(3))
def test_a_wave_is_not_called_noise(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform([0.0, 10.0, 0.0], [40.0, 30.0, 1.0], size=(800, 3))
    found = rl.recover(X, np.sin(X[:, 0]), rng=seed, on_failure="return")
    assert found.status is Status.NOT_RECOVERED


# -- clusters: rows too near to each other to show what lies between ------------------------------------------------


def tight(rng, places, each, width=1e-3):
    """Rows around these places, and which place each belongs to."""
    where = np.repeat(np.arange(len(places)), each)
    return np.asarray(places)[where] + width * rng.uniform(-1.0, 1.0, size=(len(where), np.shape(places)[1])), where


@pytest.mark.parametrize("d", [1, 2, 6])
def test_clusters_are_rows_far_from_all_others(d):
    rng = np.random.default_rng(d)
    Z, where = tight(rng, np.linspace(-2.0, 2.0, 9)[:, None] * np.ones(d), 5)
    found = close_together(Z)
    np.testing.assert_array_equal(found[:, None] == found, where[:, None] == where)
    chain = np.linspace(0.0, 1.0, 60)[:, None] * np.ones(d)  # each has a neighbour, and none is a cluster
    assert np.unique(close_together(chain)).size == 60


def test_rows_of_a_line_are_no_clusters_beyond_chance():
    Z = np.random.default_rng(0).normal(size=(300, 1))
    assert np.unique(close_together(Z)).size > 240


def test_a_cluster_that_the_network_explains_inside_is_more_than_one_piece():
    rng = np.random.default_rng(1)
    Z, where = tight(rng, rng.normal(size=(6, 2)), 4)
    values = np.column_stack([Z[:, 0], np.zeros(24)])
    rows = MemoryRows(np.column_stack([Z, np.ones(24)]), values)
    small, large = 1e-6 * rng.normal(size=(24, 2)), 1e-3 * rng.normal(size=(24, 2))
    small[:, 1] = large[:, 1]  # what one output shows is enough
    assert pieces(rows, values, small, close_together(Z), None) is None
    found = pieces(rows, values, np.where(where[:, None] < 3, small, large), close_together(Z), None)
    assert found is not None
    assert np.unique(found).size == 3 * 4 + 3
    np.testing.assert_array_equal((found[:, None] == found)[12:, 12:], (where[:, None] == where)[12:, 12:])


def test_condensed_rows_are_means_with_the_weight_of_all():
    rng = np.random.default_rng(2)
    rows = MemoryRows(rng.normal(size=(5, 3)), rng.normal(size=(5, 1)), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    few = condensed(rows, np.array([0, 1, 0, 1, 1]))
    np.testing.assert_allclose(few.X[0], (rows.X[0] + 3.0 * rows.X[2]) / 4.0)
    np.testing.assert_allclose(few.Y[1], (2.0 * rows.Y[1] + 4.0 * rows.Y[3] + 5.0 * rows.Y[4]) / 11.0)
    np.testing.assert_allclose(few.weight, [4.0, 11.0])


def behind_clusters(seed, clusters, each=12, width=1e-3, n=250, d=2):
    """Rows, of which so many behind a plane come with others next to them, and the distance from that plane."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, d)), np.ones(d) / np.sqrt(d)
    s = np.sort(X @ w)
    t = 0.5 * (s[-clusters] + s[-clusters - 1])
    near = np.repeat(X[X @ w > t], each, axis=0)
    X = rng.permutation(np.vstack([X, near + width * rng.normal(size=near.shape)]))
    return X, X @ w - t


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("width", [1e-5, 1e-3, 1e-2])
def test_a_curve_behind_as_many_clusters_as_a_unit_has_parameters_is_not_called_noisy(seed, width):
    X, z = behind_clusters(seed, 3, width=width)
    assert not rl.recover(X, np.maximum(z, 0.0) ** 2, width=1, rng=seed, on_failure="return").ok


@pytest.mark.parametrize("seed", range(3))
def test_a_unit_that_enough_clusters_show_is_called_noisy(seed):
    X, z = behind_clusters(seed, 20)
    y = np.maximum(z, 0.0) + 1e-2 * np.random.default_rng(seed).normal(size=len(z))
    found = rl.recover(X, y, width=1, rng=seed)
    assert found.status is Status.NOISY
    few, behind = behind_clusters(seed, 3)
    y = np.maximum(behind, 0.0) + 1e-2 * np.random.default_rng(seed).normal(size=len(behind))
    assert rl.recover(few, y, width=1, rng=seed, on_failure="return").status is not Status.NOISY


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_close_clusters_of_an_exact_fit_are_found_in_the_crowd(d):
    rng = np.random.default_rng(d)
    near = np.repeat(rng.normal(size=(8, d)), 5, axis=0) + rng.uniform(-1e-4, 1e-4, (40, d))
    Z = np.vstack([near, 5.0 + 3.0 * rng.normal(size=(200, d))])
    rows = MemoryRows(np.column_stack([Z, np.ones(len(Z))]), np.zeros((len(Z), 1)))
    found = clusters_of(rows, None, exact=True)
    np.testing.assert_array_equal(found[:40].reshape(8, 5), np.repeat(found[:40:5, None], 5, axis=1))
    assert len(np.unique(found)) > 200


@pytest.mark.parametrize("seed", range(3))
def test_a_network_that_clusters_show_is_exact_if_they_are_more_than_its_units(seed):
    net, rng = rl.planted.network(3, 2, rng=seed), np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(40, 3)), 6, axis=0)
    X += 1e-4 * rng.normal(size=X.shape)
    found = rl.recover(X, net(X), width=2, rng=seed)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(net, found.network) < 1e-6
