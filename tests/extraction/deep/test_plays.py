"""What no row asked has brought into play is brought into play, and what the box then says counts."""

import numpy as np
import pytest

import relumine as rl
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending import plays
from relumine.extraction.deep.ending.linear import contradiction, into_units, never_off
from relumine.extraction.deep.ending.plays import covering, idle, played
from relumine.extraction.deep.ending.showing import mixed
from relumine.results import Status
from relumine.run import Run

TRUTH = rl.planted.deep((6, 5, 4, 1), rng=3)


def both_on(X):
    """Unit 1 of the second layer with unit 2 of the first."""
    H = TRUTH.activations_before(X, 1)
    return (H[:, 2] > 0.0) & (TRUTH.activations_before(X, 2)[:, 1] > 0.0)


def inquiry(truth, keep):
    """The rows asked so far are those of some that ``keep`` allows."""
    at = Inquiry(Asked(truth, np.random.default_rng(0), np.inf, lambda: ""), truth.d, Run.of(0))
    X = np.random.default_rng(1).normal(size=(600, truth.d))
    at.ask.values(X[keep(X)])
    return at


def with_weight(net, value):
    W = np.array(net.head.W)
    W[1, 2] = value
    return DeepNetwork(net.layers, net.head.replace(W=W))


def test_a_weight_that_no_row_asked_has_shown_is_found():
    at = inquiry(TRUTH, lambda X: ~both_on(X))
    (mask,) = idle(TRUTH, at.ask.data()[0])
    assert mask[1, 2]
    X, y = at.ask.data()
    wrong = with_weight(TRUTH, 0.0)
    np.testing.assert_allclose(wrong(X), y[:, 0], rtol=1e-12)  # nothing asked so far tells the two apart
    net, pairs = played(at, wrong)
    assert pairs is None
    assert abs(net.head.W[1, 2] - TRUTH.head.W[1, 2]) < 1e-8
    assert not idle(net, at.ask.data()[0])[0][1, 2]


def test_a_weight_that_turns_its_unit_off_nearly_everywhere():
    """With it the two units are on together only next to where unit 2 turns off; without it, in many places."""
    truth = with_weight(TRUTH, -1.5 * float(np.linalg.norm(TRUTH.head.W[1])))
    wrong = with_weight(TRUTH, 0.0)
    at = inquiry(truth, lambda X: np.abs(truth(X) - wrong(X)) < 1e-12)
    net, pairs = played(at, wrong)
    assert pairs is None
    assert abs(net.head.W[1, 2] - truth.head.W[1, 2]) < 1e-8


def test_rows_far_out_count_as_well(monkeypatch):
    # the last unit is on at two rows asked, a thousand away, and nowhere else where the box is asked
    monkeypatch.setattr(plays, "corners", lambda net, rng: np.zeros((0, 6)))
    head = TRUTH.head.replace(b=np.array([*TRUTH.head.b[:-1], -300.0]))
    truth, lacking = DeepNetwork(TRUTH.layers, head), DeepNetwork(TRUTH.layers, head.permuted([0, 1, 2]))
    at = inquiry(truth, lambda X: X[:, 0] < 9.0)
    X = 1e3 * np.random.default_rng(2).normal(size=(200, 6))
    far = X[np.abs(truth(X) - lacking(X)) > 1.0][:2]
    at.ask.values(far)
    _, pairs = played(at, lacking)
    assert pairs is not None
    assert np.isin(pairs[0], far).all()


def test_a_unit_that_is_on_far_out_is_missed_in_no_corner():
    head = TRUTH.head.replace(b=np.array([*TRUTH.head.b[:-1], -9.0]))  # the last unit is off at all rows asked
    truth = DeepNetwork(TRUTH.layers, head)
    at = inquiry(truth, lambda X: truth.activations_before(X, 2)[:, -1] == 0.0)
    lacking = DeepNetwork(truth.layers, head.permuted([0, 1, 2]))
    X, y = at.ask.data()
    np.testing.assert_allclose(lacking(X), y[:, 0], rtol=1e-12)
    net, pairs = played(at, lacking)
    assert pairs is None
    assert rl.metrics.parameter_error(truth, net) < 1e-8


def test_an_affine_part_that_is_a_weight_of_a_unit_goes_into_it():
    # unit 3 is on wherever unit 2 of the first layer is: that weight shows in the affine part alone
    W = np.array(TRUTH.head.W)
    W[3, 2] = 40.0
    truth = DeepNetwork(TRUTH.layers, TRUTH.head.replace(W=W))
    moved = np.zeros(5)
    moved[2] = 1.0
    net = DeepNetwork(truth.layers, truth.head.replace(W=W - np.outer(np.eye(4)[3], moved), v=truth.head.a[3] * moved))
    at = inquiry(truth, lambda X: np.abs(truth(X) - net(X)) < 1e-12)
    found, _ = played(at, net)
    assert not found.head.v.any()
    np.testing.assert_allclose(found.head.W, W, atol=1e-9)


def test_an_affine_part_of_its_own_stays():
    truth = DeepNetwork(TRUTH.layers, TRUTH.head.replace(v=np.arange(1.0, 6.0)))
    # no row asked shows unit 0 off
    at = inquiry(truth, lambda X: truth.activations_before(X, 2)[:, 0] > 0.0)
    found, pairs = played(at, truth)
    assert pairs is None
    np.testing.assert_array_equal(found.head.v, truth.head.v)


def test_rows_that_show_what_few_do_come_first():
    X = np.random.default_rng(2).normal(size=(4000, 6))
    shows = both_on(X)
    rows = np.concatenate([X[~shows], X[shows][:3]])
    chosen = covering(TRUTH, rows, 200, np.random.default_rng(0))
    assert len(chosen) == len(set(chosen.tolist())) == 200
    assert set(range(len(rows) - 3, len(rows))) <= set(chosen.tolist())


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "seed"), [((5, 15, 10, 1), 5), ((10, 20, 20, 1), 7), ((30, 20, 15, 10, 1), 7)])
def test_units_that_are_seldom_on_or_off_come_back(sizes, seed):
    truth = rl.planted.deep(sizes, rng=seed)
    found = rl.extract(truth, dim=sizes[0], rng=seed + 1)
    X = np.random.default_rng(7).normal(size=(10_000, sizes[0]))
    assert found.status is Status.EXACT
    np.testing.assert_allclose(found.network(X), truth(X), atol=1e-8)
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6


def test_weights_are_brought_into_play_again_as_long_as_some_change(monkeypatch):
    at, turns = inquiry(TRUTH, lambda X: X[:, 0] < 9.0), []

    def brought(at, net, slack):
        turns.append(net)
        return net, at.ask.data()[0], np.zeros(len(at.ask.data()[0]), dtype=bool), len(turns) < 3

    monkeypatch.setattr(plays, "_brought", brought)
    assert played(at, TRUTH)[1] is None
    assert len(turns) == 3


@pytest.mark.slow
def test_a_weight_that_shows_only_once_another_is_right():
    """40-16-14-10-1: with one weight of the third layer wrong, no input was found at which another one counts."""
    rng = np.random.default_rng(131005)
    rng.integers(2, size=5)
    truth = rl.planted.deep((40, 16, 14, 10, 1), rng=rng)
    found = rl.extract(truth, dim=40, rng=131006)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6


def test_a_unit_that_one_corner_in_many_turns_on_is_not_missed(monkeypatch):
    # on only where one unit in front is far larger than all others: at one in a thousand inputs near and far
    W = np.vstack([TRUTH.head.W[:3], [1.0, -30.0, -30.0, -30.0, -30.0]])
    truth = DeepNetwork(TRUTH.layers, TRUTH.head.replace(W=W, b=np.array([*TRUTH.head.b[:-1], -20.0])))
    monkeypatch.setattr(plays, "corners", lambda net, rng: np.zeros((0, 6)))
    monkeypatch.setattr(plays, "completed", lambda at, net, slack: net)
    monkeypatch.setattr(plays, "_SPREAD", 20)
    at = inquiry(truth, lambda X: truth.activations_before(X, 2)[:, -1] == 0.0)
    _, pairs = played(at, DeepNetwork(truth.layers, truth.head.permuted([0, 1, 2])))
    assert pairs is not None
    assert (truth.activations_before(pairs[0], 2)[:, -1] > 0.0).all()


def test_mixed_corners_are_far_out_in_one_to_three_units():
    X = mixed(TRUTH, 300, np.random.default_rng(0))
    assert X.shape == (300, 6)
    H = TRUTH.activations_before(X, 1)
    assert {int(k) for k in H.argmax(axis=1)} == set(range(5))  # every unit in front is the largest in some corner
    assert mixed(DeepNetwork((), TRUTH.head), 9, np.random.default_rng(0)).shape == (0, 5)


def test_which_units_were_never_off_with_one_in_front_on():
    X = np.random.default_rng(1).normal(size=(400, 6))
    H, Z = TRUTH.activations_before(X, 1), TRUTH.activations_before(X, 2)
    expected = [[not ((Z[:, i] == 0.0) & (H[:, j] > 0.0)).any() for j in range(5)] for i in range(4)]
    np.testing.assert_array_equal(never_off(TRUTH, X), expected)


@pytest.mark.parametrize("flipped", [[0], [1, 3], [0, 1, 2, 3]])
def test_signs_are_chosen_by_the_affine_part_that_units_never_off_may_leave(flipped):
    # unit 3 is on wherever unit 2 of the first layer is: half of that weight shows in the affine part, half in the unit
    W = np.array(TRUTH.head.W)
    W[3, 2] = 40.0
    truth = DeepNetwork(TRUTH.layers, TRUTH.head.replace(W=W))
    at = inquiry(truth, lambda X: X[:, 0] < 9.0)
    assert never_off(truth, at.ask.data()[0])[3, 2]
    turned = DeepNetwork(truth.layers, truth.head.flip(flipped))  # the same answers, with an affine part
    X, Y = at.near()
    found = into_units(at, turned, X, Y, contradiction(turned, X, Y))
    assert not found.head.v.any()
    assert rl.metrics.parameter_error(truth, found) < 1e-9
