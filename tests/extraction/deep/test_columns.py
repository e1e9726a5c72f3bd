"""Weights of a unit in front that is seldom on into all units of the last layer, from where it turns on."""

import numpy as np
import pytest

import relumine as rl
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending.columns import inside, several, solved, walked
from relumine.extraction.deep.ending.linear import contradiction, oriented, tied
from relumine.extraction.deep.ending.missing import _Missing, completed
from relumine.extraction.deep.known.charts import Known
from relumine.run import Run

SELDOM = 2  # the unit in front, on at one input in fifty


def network(sizes=(10, 8, 7, 6, 1), seed=1):
    """With a unit of the last layer in front that is seldom on."""
    truth = rl.planted.deep(sizes, rng=seed)
    *others, (W, b) = truth.layers
    X = np.random.default_rng(8).normal(size=(5000, sizes[0]))
    H = truth.activations_before(X, len(truth.layers) - 1)
    b = np.array(b)
    b[SELDOM] = -np.quantile(H @ W[SELDOM], 0.98)
    return DeepNetwork([*others, (W, b)], truth.head)


def inquiry(truth, n=4000):
    at = Inquiry(Asked(truth, np.random.default_rng(0), np.inf, lambda: ""), truth.d, Run.of(0))
    at.known = Known(truth.d, truth.layers)
    at.ask.values(np.random.default_rng(3).normal(size=(n, truth.d)))
    at.pool = at.ask.data()
    return at


def blind(truth, linear=0.0):
    """Without the weights of that unit, some of which is in the linear part instead."""
    W, v = np.array(truth.head.W), np.array(truth.head.v)
    W[:, SELDOM] = 0.0
    v[..., SELDOM] += linear
    return DeepNetwork(truth.layers, truth.head.replace(W=W, v=v))


def start(truth, shape):
    """Inputs at which the unit is on."""
    X = np.random.default_rng(5).normal(size=(4000, shape))
    return X[truth.activations_before(X, len(truth.layers))[:, SELDOM] > 0.0]


def test_walks_stay_on_the_hyperplane_and_ways_off_it_change_no_other_unit():
    truth, rng = network(), np.random.default_rng(0)
    front = Known(10, truth.layers)
    P = walked(front, start(truth, 10), SELDOM, rng)
    assert len(P) > 100
    assert np.abs(front.before(P)[-1][:, SELDOM]).max() < 1e-7 * np.linalg.norm(P, axis=1).max()
    assert np.linalg.norm(P - P[:1], axis=1).max() > 1.0  # they get about
    W = np.where(np.arange(7) == SELDOM, 0.0, truth.head.W)
    way, tau = inside(front, P, SELDOM, W, truth.head.b)
    np.testing.assert_allclose(front(P + way)[:, SELDOM], tau, rtol=1e-6, atol=1e-9)
    for before, after in zip(front.before(P + 1e-3 * way), front.before(P + way)):
        np.testing.assert_array_equal(before > 0.0, after > 0.0)
    # nor does the whole weight of the unit turn any of the last layer on or off
    both = [front(Q) @ truth.head.W.T + truth.head.b > 0.0 for Q in (P, P + way)]
    np.testing.assert_array_equal(*both)


def test_gradients_are_those_of_finite_differences():
    front, rng = Known(10, network().layers), np.random.default_rng(1)
    X, G, way = rng.normal(size=(20, 10)), rng.normal(size=(20, 7)), 1e-6 * rng.normal(size=(20, 10))
    change = np.sum(G * (front(X + way) - front(X - way)), axis=1)
    np.testing.assert_allclose(2.0 * np.sum(front.gradient(X, G) * way, axis=1), change, rtol=1e-7)


def test_equations_that_do_not_fit_are_left_out_and_what_none_tells_is_said():
    rng = np.random.default_rng(0)
    A, x = (rng.random((40, 5)) < 0.5).astype(float), np.array([0.3, -1.2, 0.0, 2.0, 0.7])
    A[:, 2] = 0.0  # in no equation
    A[:, 4] = A[:, 3]  # only the sum of two
    r = A @ x + 1e-10 * rng.normal(size=40)
    r[:6] += rng.normal(size=6)
    delta, off, told = solved(A, r, np.full(40, 1e-10))
    np.testing.assert_array_equal(told, [True, True, False, False, False])
    np.testing.assert_allclose(delta[:2], x[:2], atol=1e-9)
    assert (off[:2] < 1e-9).all()
    np.testing.assert_allclose(delta[3:].sum(), 2.7, atol=1e-9)
    *_, told = solved(A[:4], r[:4], np.full(4, 1e-10))
    assert not told.any()


def test_a_few_rows_of_each_pattern():
    on = np.array([[True, False]] * 5 + [[True, True]] * 2)
    rows = several(on, 3, np.random.default_rng(0))
    assert sorted(rows // 5) == [0, 0, 0, 1, 1]
    assert len(set(rows.tolist())) == 5


@pytest.mark.parametrize(
    ("sizes", "linear"), [((10, 8, 7, 6, 1), 0.0), ((10, 8, 7, 6, 1), 0.4), ((9, 8, 6, 5, 3), 0.0)]
)
def test_the_whole_column_comes_back_from_where_the_unit_turns_on(sizes, linear):
    truth = network(sizes)
    at = inquiry(truth)
    at.open = np.zeros(truth.head.W.shape, dtype=bool)
    at.open[:, SELDOM] = True
    search = _Missing(at, blind(truth), 1e-9)
    search.net = DeepNetwork(search.net.layers, search.net.head.replace(v=blind(truth, linear).head.v))
    assert len(search.units) == truth.head.m
    assert search.differing() > 20
    assert search.columns()
    assert search.differing() < 10
    assert not len(search.contradicting(search.units, search.X, search.Y)[0])  # but where an open weight counts
    T = np.column_stack([truth.head.W, truth.head.b]) * np.linalg.norm(np.atleast_2d(truth.head.a), axis=0)[:, None]
    known = 0
    for unit in search.units:
        w, b, a = unit.unit()
        found = np.append(w, b) * np.linalg.norm(a)
        i = int(np.abs(T[:, -1] - found[-1]).argmin())
        if unit.known[SELDOM]:
            told = np.append(unit.known, True)
            np.testing.assert_allclose(found[told], T[i, told], atol=1e-8)
            known += 1
    assert known >= truth.head.m - 1
    np.testing.assert_allclose(search.net.head.v, 0.0, atol=1e-9)


def test_where_one_weight_of_a_seldom_unit_is_open_all_of_them_are():
    """A polish puts what shows of the open one into the others, as far as they are on together."""
    truth = network()
    W, at = np.array(truth.head.W), inquiry(truth)
    at.open = np.zeros(W.shape, dtype=bool)
    at.open[1, SELDOM] = True
    W[0, SELDOM] += 0.5 * truth.head.a[1] / truth.head.a[0] * W[1, SELDOM]
    W[1, SELDOM] = 0.0
    found = completed(at, DeepNetwork(truth.layers, truth.head.replace(W=W)), 1e-9)
    assert rl.metrics.parameter_error(truth, found) < 1e-8


def test_a_step_after_which_more_rows_differ_is_taken_back():
    truth = network()
    at = inquiry(truth)
    at.open = np.zeros(truth.head.W.shape, dtype=bool)
    at.open[:, SELDOM] = True
    search = _Missing(at, blind(truth), 1e-9)
    before, guesses = search.differing(), [unit.guess.copy() for unit in search.units]

    def worse():
        search.loose, head = [0], search.net.head
        search.net = DeepNetwork(search.net.layers, head.replace(c=head.c + 1.0))
        for unit in search.units:
            unit.guess += 1.0
        return True

    assert not search.kept(worse)
    assert (search.differing(), search.loose) == (before, [])
    for unit, guess in zip(search.units, guesses):
        np.testing.assert_array_equal(unit.guess, guess)
    assert search.kept(lambda: True)
    assert not search.kept(lambda: True, fewer=1)  # where a guess must be worth it


def test_what_is_left_of_the_linear_part_goes_to_units_with_open_weights():
    truth = network()
    H = Known(10, truth.layers)(np.random.default_rng(0).normal(size=(2000, 10)))
    v, open_ = np.zeros(7), np.zeros((6, 7), dtype=bool)
    v[SELDOM], open_[[1, 4], SELDOM] = 0.3, True
    head = truth.head.replace(v=v)
    found = tied(head, open_, H)
    assert not found.v.any()
    assert np.count_nonzero(found.W != head.W) == 1
    i = int((found.W != head.W).any(axis=1).argmax())
    np.testing.assert_allclose(found.a[i] * (found.W - head.W)[i, SELDOM], 0.3, rtol=1e-12)
    assert tied(head, np.zeros_like(open_), H) is head  # it may be something else


def test_many_rows_that_differ_do_not_make_a_network_right():
    """One in eight of the rows, as after a search next to them: they still contradict."""
    truth = network()
    X = np.random.default_rng(0).normal(size=(4000, 10))
    y = np.array(truth(X))[:, None]
    y[::8] += 1e-5 * np.abs(y).max()
    assert contradiction(truth, X, y) < 1e-6


def test_units_are_turned_over_only_if_that_leaves_no_linear_part():
    truth = network()
    open_ = np.zeros((6, 7), dtype=bool)
    open_[1, SELDOM] = True
    turned = truth.head.flip([0, 3])
    found = oriented(turned, open_)
    np.testing.assert_allclose(found.W, truth.head.W, atol=1e-12)
    np.testing.assert_allclose(found.v[np.arange(7) != SELDOM], 0.0)
    lacks = turned.permuted([0, 1, 2, 4, 5])  # without a unit, and so with a linear part whatever the signs
    assert oriented(lacks, open_[:5]) is lacks
