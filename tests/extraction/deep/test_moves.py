"""Moves that known layers cannot see, and what the box shows at many of them: a unit that is missing, if it is on."""

import numpy as np
import pytest
from tests.extraction.deep.four_layers import TRUTH

import relumine as rl
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.behind.sparse import Gradients
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.moves import unseen_moves
from relumine.run import Run


def search(truth, layers, rng=1):
    """Asks ``truth``, of which these layers are known."""
    run = Run.of(rng=rng)
    at = Inquiry(Asked(lambda X: truth(X), run.rng, np.inf, lambda: ""), truth.d, run)
    at.known = Known(truth.d, layers)
    return at


def seldom_on(share, rng=7):
    """A network of which unit 4 of the second layer is on at this share of the usual inputs."""
    truth = rl.planted.deep((20, 8, 8, 8, 1), rng=rng)
    X = np.random.default_rng(0).normal(size=(400_000, 20))
    (W1, b1), (W2, b2), third = truth.hidden
    z = np.maximum(X @ W1.T + b1, 0.0) @ W2.T + b2
    b2 = b2.copy()
    b2[4] -= np.quantile(z[:, 4], 1.0 - share)
    return rl.DeepNetwork(((W1, b1), (W2, b2)), rl.Network(*third, 100.0 * truth.head.a))


def without(layers, unit):
    """The same layers, but the last of them lacks a unit."""
    W, b = layers[-1]
    return (*layers[:-1], (np.delete(W, unit, axis=0), np.delete(b, unit)))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_move_changes_nothing_that_is_known(depth):
    known, rng = Known(30, TRUTH.hidden[:depth]), np.random.default_rng(depth)
    moves = unseen_moves(known, rng.normal(size=(600, 30)) * 2.0 ** rng.uniform(-1.0, 6.0, size=(600, 1)), rng)
    assert len(moves.starts) > 500
    size = 1.0 + np.abs(known(moves.starts)).max(axis=1, keepdims=True)
    assert (np.abs(known(moves.starts) - known(moves.ends)) < 1e-10 * size).all()
    for z, w in zip(known.before(moves.starts), known.before(moves.ends)):
        np.testing.assert_array_equal(z > 0.0, w > 0.0)  # inside one region
    front = Known(30, TRUTH.hidden[: depth - 1])
    far = np.abs(front(moves.starts) - front(moves.ends)).max(axis=1)
    moved = far > 1e-8 * size[:, 0]
    assert moved[moves.telling].all()
    assert (moved != moves.telling).mean() < 0.01  # short ones may tell nothing, either
    assert np.linalg.norm(moves.starts - moves.ends, axis=1).min() > 0.0


def test_there_is_no_move_where_a_layer_shows_all_that_moves_in_front_of_it():
    rng = np.random.default_rng(0)
    layers = ((rng.normal(size=(4, 6)), np.full(4, 9.0)), (rng.normal(size=(4, 4)), np.full(4, 50.0)))  # all are on
    moves = unseen_moves(Known(6, layers), 0.1 * rng.normal(size=(50, 6)), rng)
    assert not moves.telling.any()  # only what no layer sees is left
    assert not len(unseen_moves(Known(4, layers[1:]), rng.normal(size=(50, 4)), rng).starts)
    assert not len(unseen_moves(Known(6, layers), np.zeros((0, 6)), rng).starts)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_inputs_show_a_unit_that_is_on_at_one_of_three_thousand(seed):
    truth = seldom_on(3e-4)
    layers = truth.hidden[:2]
    at = search(truth, layers, seed)
    at.ask.count = 200_000  # so many rows were asked before: one in twenty may be asked for this
    assert at.searched(at.known)
    assert at.checked[2] > 5_000
    at = search(truth, without(layers, 4), seed)
    at.ask.count = 200_000
    assert not at.searched(at.known)
    shown, quiet = at.beside
    (W, b), front = layers[1], Known(20, layers[:1])
    assert (front(shown) @ W[4] + b[4] > 0.0).all()  # the one that is missing is on there
    assert len(quiet) > len(shown)


def test_the_wide_search_asks_no_more_than_its_share_of_rows():
    at = search(TRUTH, TRUTH.hidden[:2])
    at.ask.count = 40_000
    assert at.searched(at.known)
    assert 0 < at.ask.count - 40_000 <= 0.1 * 40_000 + 1


def test_a_layer_is_not_certain_where_random_inputs_contradict_it(monkeypatch):
    monkeypatch.setattr(Inquiry, "complete", lambda *_: True)  # the few places looked at first show nothing
    truth = seldom_on(3e-4)
    for layers, certain in ((truth.hidden[:2], True), (without(truth.hidden[:2], 4), False)):
        at = search(truth, layers)
        at.ask.count = 200_000
        at.confirm(3, [])
        assert (len(at.certain) == 2) is certain
        assert at.doubtful is not certain


def test_units_that_are_on_together_at_few_inputs_are_looked_for_at_many():
    truth = rl.planted.deep((12, 6, 6, 6, 1), rng=3)
    at = search(truth, truth.hidden[:2])
    gradients = Gradients(at)
    W, b = truth.hidden[2]
    gradients.inputs, gradients.many = gradients.inputs[:50], gradients.many[:50]  # few inputs at hand
    together = (gradients.many @ W.T + b > 0.0).T.astype(float) @ (gradients.many > 0.0).astype(float)
    pairs = np.argwhere(together == 0.0)
    assert len(pairs)
    found = gradients._together(np.column_stack([W, b]), pairs, 3)
    for (i, j), X in zip(pairs, found):
        assert len(X) <= 3
        H = at.known(X)
        assert (H[:, j] > 0.0).all()
        assert (H @ W[i] + b[i] > 0.0).all()
    assert any(len(X) for X in found)
