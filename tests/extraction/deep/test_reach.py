"""What known layers can do: inputs found or proved not to exist, places all over a unit, corners, missing units."""

import numpy as np
import pytest
from benchmarks.invisible import identifiable_error, invisible
from benchmarks.measures.deep import of_any_shape

import relumine as rl
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending import confirm
from relumine.extraction.deep.ending.linear import into_units, sparsest
from relumine.extraction.deep.ending.plays import cornered
from relumine.extraction.deep.first.units import Layer, Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.places import extremes, spread
from relumine.extraction.deep.known.reach import reach
from relumine.results import Status
from relumine.run import Run

TRUTH = rl.planted.deep((8, 6, 5, 4, 1), rng=5).scaled()


def inquiry(truth):
    run = Run.of(0)
    return Inquiry(Asked(truth, run.rng, np.inf, lambda: ""), truth.d, run)


def sides(net, X):
    on = []
    for W, b in net.hidden:
        z = X @ W.T + b
        on.append(z > 0.0)
        X = np.maximum(z, 0.0)
    return on


def test_two_units_on_together_are_found_or_proved_never_to_be():
    scale = 2.0 ** np.random.default_rng(1).uniform(-1.0, 5.0, size=(20_000, 1))
    on = sides(TRUTH, scale * np.random.default_rng(0).normal(size=(20_000, 8)))
    shown = on[2].T.astype(float) @ on[1] > 0.0
    never = 0
    for i, j in np.ndindex(4, 5):
        x, sure = reach(TRUTH.hidden, i, front=j)
        if x is not None:
            _, front, last = sides(TRUTH, x[None])
            assert last[0, i]
            assert front[0, j]
        never += x is None and sure
        assert not (shown[i, j] and x is None and sure)
    assert shown.sum() + never == 20


def test_an_input_that_is_found_is_near_and_off_all_edges():
    for i, j in np.ndindex(4, 5):
        x, _ = reach(TRUTH.hidden, i, front=j)
        if x is None:
            continue
        zs = Known(8, TRUTH.hidden).before(x[None])
        at = Known(8, TRUTH.hidden[:2]).regions(x[None])
        size = np.linalg.norm(at.rows[0], axis=1)
        room = (at.rows[0] @ x + at.offsets[0])[size > 0.0] / size[size > 0.0]
        assert np.linalg.norm(x) < 1e3  # branch and bound alone goes out to a million
        assert room.min() > 1e-5 * np.linalg.norm(x)
        assert zs[2][0, i] > 0.0
        assert zs[1][0, j] > 0.0


def test_more_inputs_than_units_are_as_many_coordinates():
    (W, b), *others = TRUTH.hidden
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 8)))[0]
    wide = [(W @ Q.T, b), *others]
    for i, j in np.ndindex(4, 5):
        x, sure = reach(wide, i, front=j)
        other, same = reach(TRUTH.hidden, i, front=j)
        assert (x is None, sure) == (other is None, same)
        if x is not None:
            _, front, last = sides(DeepNetwork.of([*wide, TRUTH.maps[-1]]), x[None])
            assert last[0, i]
            assert front[0, j]


def test_a_unit_that_no_input_turns_on_or_off():
    (W1, b1), (W2, b2) = TRUTH.hidden[:2]
    dead = (np.vstack([W2, -np.abs(W2[:1])]), np.append(b2, -0.1))
    assert reach([(W1, b1), dead], 5) == (None, True)
    always = (np.abs(W2), np.full(5, 0.1))
    assert reach([(W1, b1), always], 0, -1.0) == (None, True)
    assert reach([(W1, b1), always], 0)[0] is not None


def test_places_of_a_unit_are_on_it_with_all_units_in_front_on():
    known = Known(8, TRUTH.hidden[:1])
    w, c = TRUTH.hidden[1][0][2], float(TRUTH.hidden[1][1][2])
    X, step = spread(known, w, c, 6, np.random.default_rng(0))
    assert X.shape == step.shape == (6, 8)
    before, after = known(X - step), known(X + step)
    assert (before > 0.0).all()
    assert (after > 0.0).all()
    np.testing.assert_allclose(0.5 * (before + after) @ w + c, 0.0, atol=1e-9 * np.abs(after).max())
    assert ((before @ w + c) < 0.0).all()
    assert ((after @ w + c) > 0.0).all()


def test_where_one_entry_counts_the_sign_of_a_unit_is_that_of_its_weight():
    known = Known(8, TRUTH.hidden[:1])
    W, b = TRUTH.hidden[1]
    z = known(extremes(known)) @ W.T + b
    assert (np.sign(z) == np.sign(np.column_stack([W, b]).T)).mean() > 0.95
    assert len(extremes(Known(8, TRUTH.hidden[:2]))) == 0


def test_a_unit_measured_twice_is_one():
    layer = Layer(inquiry(TRUTH).ask, Known(8), np.random.default_rng(0))
    w = TRUTH.hidden[0][0][0]
    for change in (0.0, 1e-8, 0.5):
        v = w + change * np.eye(8)[0]
        layer._take(Unit(v / np.linalg.norm(v), 0.3, np.ones(8, dtype=bool), 1e-11))
    assert len(layer.units) == 2


@pytest.mark.parametrize("weight", [0.15, -0.15])
def test_a_unit_that_random_inputs_never_turn_shows_in_a_corner(weight):
    rng = np.random.default_rng(3)
    rare = -np.sign(weight) * np.abs(rng.normal(size=(1, 6)))
    rare[0, 2] = weight
    front, head = TRUTH.hidden[0], rl.planted.network(6, 4, rng=1)
    W = np.vstack([head.W, rare])
    truth = DeepNetwork(
        [front], head.replace(W=W, b=np.append(head.b, -3.0 * np.sign(weight)), a=np.append(head.a, 1.0))
    )
    lacking = DeepNetwork([front], truth.head.permuted(range(head.m)))
    if weight < 0.0:  # always on: an affine part
        lacking = DeepNetwork([front], lacking.head.replace(v=W[-1], c=lacking.head.c + 3.0))
    X = rng.normal(size=(2000, 8))
    np.testing.assert_allclose(lacking(X), truth(X), atol=1e-12)
    at = inquiry(truth)
    at.rows(100)
    assert cornered(at, truth) is None
    pairs = cornered(at, lacking)
    assert pairs is not None
    assert (np.abs(lacking(pairs[0]) - truth(pairs[0])) > 1e-3).all()


def test_a_missing_unit_that_is_seldom_on_is_missed():
    truth = of_any_shape(98041).scaled()  # unit 5 of the second layer is on for one input in twenty
    first, (W, b) = truth.hidden[:2]
    keep = np.arange(8) != 5
    for seed in range(3):
        at = inquiry(truth)
        at.rng = np.random.default_rng(seed)
        assert at.complete(Known(truth.d, (first, (W, b))))
        assert not at.complete(Known(truth.d, (first, (W[keep], b[keep]))))


def test_signs_are_found_although_weights_are_missing():
    head = rl.planted.network(12, 9, rng=4)
    W = np.array(head.W)
    v = np.zeros(12)
    for i, j in ((2, 7), (5, 3)):
        v[j] = head.a[i] * W[i, j]
        W[i, j] = 0.0
    lacking = head.replace(W=W, v=v)
    turned = sparsest(lacking.flip([0, 2, 3, 8]))
    np.testing.assert_allclose(turned.W, W, atol=1e-12)
    np.testing.assert_allclose(turned.v, v, atol=1e-9)
    dense = head.replace(v=np.arange(1.0, 13.0))  # a linear part of its own stays
    np.testing.assert_array_equal(sparsest(dense).v, dense.v)


def test_two_weights_in_the_affine_part_go_into_two_units():
    front, head = TRUTH.hidden[0], rl.planted.network(6, 4, rng=1)
    W = np.array(head.W)
    W[1, 2], W[3, 4] = 60.0, 50.0
    truth = DeepNetwork([front], head.replace(W=W))
    v = np.zeros(6)
    v[2], v[4] = head.a[1], head.a[3]
    W = W - np.outer(np.eye(4)[1], np.eye(6)[2]) - np.outer(np.eye(4)[3], np.eye(6)[4])
    net = DeepNetwork([front], truth.head.replace(W=W, v=v))
    at = inquiry(truth)
    X = np.random.default_rng(1).normal(size=(600, 8))
    X = X[np.abs(truth(X) - net(X)) < 1e-12]
    found = into_units(at, net, X, at.ask.values(X), 1e-9)
    assert not found.head.v.any()
    np.testing.assert_allclose(found.head.W, truth.head.W, atol=1e-9)


def test_the_head_of_a_large_network_is_polished_alone(monkeypatch):
    truth = rl.planted.deep((20, 8, 6, 1), rng=2)
    monkeypatch.setattr(confirm, "_LARGE", 100)
    at = inquiry(truth)
    at.rows(50)
    wrong = DeepNetwork(truth.layers, truth.head.replace(W=truth.head.W + 1e-6, b=truth.head.b - 1e-6))
    found = confirm._refined(at, wrong, at.ask.mark)
    assert rl.metrics.parameter_error(truth, found) < 1e-9


def test_what_no_input_shows_is_left_out_and_nothing_else():
    truth = rl.planted.deep((6, 5, 4, 3, 1), rng=8).scaled()
    W, b = np.array(truth.head.W), np.array(truth.head.b)
    W[0], b[0] = -np.abs(W[0]), -0.2  # never on
    W[1], b[1] = np.abs(W[1]), 0.2  # never off
    truth = DeepNetwork(truth.layers, truth.head.replace(W=W, b=b))
    hidden = invisible(truth, np.random.default_rng(0))
    assert hidden.dead[-1] == (0,)
    assert hidden.always_on == (1,)
    head = truth.head
    shorter = head.replace(v=head.a[1] * W[1], c=head.c + head.a[1] * b[1]).permuted([2])
    assert rl.metrics.parameter_error(truth, DeepNetwork(truth.layers, shorter)) == np.inf
    assert identifiable_error(truth, DeepNetwork(truth.layers, shorter), hidden) < 1e-12
    off = shorter.replace(W=shorter.W + 1e-3)
    assert identifiable_error(truth, DeepNetwork(truth.layers, off), hidden) > 1e-4


def test_a_weight_never_in_play_is_not_compared():
    truth = of_any_shape(98078).scaled()
    hidden = invisible(truth, np.random.default_rng(0))
    assert np.argwhere(hidden.weights[-1]).tolist() == [[0, 3]]
    for (i, j), seen in (((0, 3), False), ((0, 2), True)):
        W = np.array(truth.head.W)
        W[i, j] -= 0.3
        other = DeepNetwork(truth.layers, truth.head.replace(W=W))
        assert (identifiable_error(truth, other, hidden) < 1e-9) != seen
        assert rl.metrics.parameter_error(truth, other) > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [98012, 98021, 98027, 98041, 98078, 98082, 98083, 98099])
def test_boxes_in_which_units_are_seldom_on_or_off(seed):
    truth = of_any_shape(seed)
    found = rl.extract(truth, dim=truth.d, rng=seed + 1)
    assert found.status is Status.EXACT
    assert identifiable_error(truth, found.network, invisible(truth, np.random.default_rng(0))) < 1e-6
