"""Layers wider than their input: planes with all their digits, surfaces behind them, sides that stay open."""

import numpy as np
import pytest

import relumine as rl
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.asking.kind import kind
from relumine.extraction.deep.asking.kinks import segments, straight
from relumine.extraction.deep.behind import wide
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.following import followed
from relumine.extraction.deep.surfaces.planes import sharpened
from relumine.extraction.deep.surfaces.surface import Lift, Surface
from relumine.network import Network
from relumine.results import Status
from relumine.run import Run


def asked(f, seed=0):
    return Asked(f, np.random.default_rng(seed), np.inf, lambda: "")


def kink(z, X):
    """Between two rows of X, where z changes its sign, by halving."""
    value = z(X)
    lo, hi = X[value < 0.0][0], X[value > 0.0][0]
    for _ in range(200):
        middle = 0.5 * (lo + hi)
        lo, hi = (middle, hi) if z(middle[None])[0] < 0.0 else (lo, middle)
    return lo


def test_a_surface_behind_more_known_units_than_inputs():
    truth = rl.planted.deep((4, 11, 6, 5, 1), rng=3)
    (W, b), (A, e), *_ = truth.hidden
    lift, rng = Lift(Known(4, truth.hidden[:1])), np.random.default_rng(0)
    ask = asked(truth)
    x = kink(lambda X: truth.activations_before(X, 1) @ A[1] + e[1], rng.normal(size=(40, 4)))
    on = W @ x + b > 0.0
    assert on.sum() > 4  # the normal alone does not tell the weights on the units that are on
    surface = followed(ask, lift, x, (A[1] * on) @ W, rng)
    assert surface is not None
    assert surface.seen.all()
    target = np.append(A[1], e[1]) / np.linalg.norm(np.append(A[1], e[1]))
    np.testing.assert_allclose(surface.theta * np.sign(surface.theta @ target), target, atol=1e-8)


def test_two_parts_of_one_surface_are_one():
    truth = rl.planted.deep((4, 9, 6, 1), rng=3)
    A, e = truth.hidden[1]
    lift, rng = Lift(Known(4, truth.hidden[:1])), np.random.default_rng(0)
    theta = np.append(A[0], e[0]) / np.linalg.norm(np.append(A[0], e[0]))
    pairs = rng.normal(size=(200, 2, 4))
    z = truth.activations_before(pairs.reshape(-1, 4), 1) @ A[0] + e[0]
    points = [
        kink(lambda X: truth.activations_before(X, 1) @ A[0] + e[0], pair)
        for pair, ends in zip(pairs, z.reshape(-1, 2))
        if ends[0] * ends[1] < 0.0
    ]
    share = (lift.known(np.array(points)) > 0.0).mean(axis=0)
    a, b = np.abs(share - 0.5).argsort()[:2]  # on at half of the points
    seen = np.ones((2, 10), dtype=bool)
    seen[0, a] = seen[1, b] = False
    one, two = (Surface(lift, np.zeros(0), theta * known, known) for known in seen)
    one.points = [x for x in points if one.certain(x)]
    two.points = [x for x in points if two.certain(x)]
    other = Surface(lift, np.zeros(0), theta * seen[0], seen[0], one.points)
    other.theta = np.append(A[1], e[1]) * seen[0]
    assert not other.joins(two)
    assert one.joins(two)
    assert one.seen.all()
    np.testing.assert_allclose(np.abs(one.theta @ theta), 1.0, atol=1e-12)


def test_planes_get_their_digits_back():
    truth = rl.planted.deep((5, 15, 10, 1), rng=4).scaled()
    (W, b), rng = truth.hidden[0], np.random.default_rng(1)
    rough = W + 1e-7 * rng.normal(size=W.shape)
    size = np.linalg.norm(rough, axis=1, keepdims=True)
    V, c = sharpened(asked(truth), rough / size, b / size[:, 0], rng)
    np.testing.assert_allclose(np.column_stack([V, c]), np.column_stack([W, b]), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_many_units_are_not_smooth(seed):
    truth = rl.planted.deep((60, 600, 600, 1), rng=seed)
    assert kind(asked(truth, seed), 60, np.random.default_rng(seed)) == "piecewise linear"
    assert kind(asked(lambda X: truth(X) + 1e-3 * np.tanh(X).sum(axis=1)), 60, np.random.default_rng(seed)) == "smooth"


def searched(truth, looks=12):
    """The search behind the first layer, with kinks on some lines."""
    at = Inquiry(asked(truth), truth.d, Run.of(0))
    at.known = Known(truth.d, truth.hidden[:1])
    search = wide._Surfaces(at, Lift(at.known), [], [])
    for _ in range(looks):
        search.look(None, 0)
    return search


def test_where_the_answers_do_not_move_a_surface_need_not_show(monkeypatch):
    layers = rl.planted.deep((4, 9, 6, 1), rng=3).hidden
    last = Network(np.array([[1.0, -1.0, 0.7, -1.2, 0.8, -0.6]]), np.array([-0.5]), np.ones(1))
    truth = DeepNetwork(layers, last)  # one unit behind the second layer: where it is off, nothing shows
    search = searched(truth)
    A, e = layers[1]
    true = [Surface(search.lift, np.zeros(0), np.append(w, c), np.ones(10, dtype=bool)) for w, c in zip(A, e)]
    assert all(search.persists(surface) for surface in true)
    assert all(search.persists(surface, 3) for surface in true[2:])  # the first is never seen, the next one twice
    # the unit behind, as it is where all of the second layer is on
    w, c = (last.W @ A)[0], float((last.W @ e)[0]) - 0.5
    assert not search.persists(Surface(search.lift, np.zeros(0), np.append(w, c), np.ones(10, dtype=bool)))
    monkeypatch.setattr(wide, "_FLAT", -1.0)
    assert not any(search.persists(surface) for surface in [true[0], true[2], true[5]])


def test_slopes_along_a_segment():
    (found,) = segments(lambda X: np.maximum(X[:, 0] - 1.0, 0.0), np.zeros((1, 2)), np.array([[4.0, 1.0]]), 2.0, 1000)
    assert found.slope(np.array([0.4, 0.1])) < 1e-12
    assert found.slope(np.array([2.0, 0.5])) == 1.0
    assert straight(np.zeros(2), np.ones(2)).slope(np.full(2, 0.5)) == 1.0


@pytest.mark.parametrize("wrong", ["missing", "further behind", ""])
def test_an_open_layer_is_corrected_by_the_units_behind_it(wrong):
    truth = rl.planted.deep((4, 9, 6, 5, 1), rng=3)
    (A, e), (B, f) = truth.hidden[1:]
    V, c, B = {
        "missing": (A[:-1], e[:-1], B[:, :-1]),
        "further behind": (np.vstack([A, A[0] + A[1]]), np.append(e, 0.3), np.column_stack([B, np.zeros(5)])),
        "": (A, e, B),
    }[wrong]
    lift = Lift(Known(4, truth.hidden[:1]), V, c)
    theta = np.column_stack([B, np.zeros((5, 9)), f])
    if wrong == "missing":
        theta = np.vstack([theta, np.concatenate([np.zeros(5), A[-1], e[-1:]])])
    at = Inquiry(asked(truth), 4, Run.of(0))
    surfaces = [Surface(lift, np.ones(len(c)), row, np.ones(len(row), dtype=bool)) for row in theta]
    found = wide._Surfaces(at, lift, [], surfaces).corrected()
    if not wrong:
        assert found is None
        return
    assert found is not None
    T, U = (np.column_stack(both) / np.linalg.norm(both[0], axis=1, keepdims=True) for both in (found, (A, e)))
    np.testing.assert_allclose(T, U, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12, 13, 171003, 171004, 181004])
def test_a_layer_that_grows_with_two_layers_behind_it(seed):
    truth = rl.planted.deep((8, 12, 10, 6, 1), rng=seed)
    found = rl.extract(truth, dim=8, rng=seed + 1)
    assert found.status is Status.EXACT
    assert found.network.widths == (12, 10, 6)
    X = np.random.default_rng(0).normal(size=(500, 8))
    np.testing.assert_allclose(found.network(X), truth(X), atol=1e-8)


def test_planes_without_sides_are_told(monkeypatch):
    monkeypatch.setattr(wide, "oriented", lambda lift, surfaces: None)
    monkeypatch.setattr(wide, "_TURNS", 2)
    truth = rl.planted.deep((4, 9, 6, 1), rng=5)
    found = rl.extract(truth, dim=4, rng=1, mean=np.full(4, 0.5), on_failure="return")
    assert found.status is Status.NOT_RECOVERED
    assert "Of the first layer 9 units are known up to the side on which each is on." in found.message
    assert found.rest is not None
    assert found.rest.layers == ()
    W, b = truth.scaled().hidden[0]
    planes, true = np.column_stack(found.rest.unsigned), np.column_stack([W, b])
    planes = planes / np.linalg.norm(planes[:, :-1], axis=1, keepdims=True)
    apart = np.minimum(*(np.linalg.norm(true[:, None] - s * planes, axis=2).min(axis=1) for s in (1.0, -1.0)))
    assert apart.max() < 1e-8
    X = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_allclose(found.rest(X).ravel(), truth(X))
