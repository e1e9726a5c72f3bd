"""Units that are seldom off, kinks that are none, and weights that share what the box shows of them."""

import numpy as np
import pytest
from benchmarks.invisible import identifiable_error, invisible
from benchmarks.measures.deep import of_any_shape

import relumine as rl
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.asking.kinks import Segment
from relumine.extraction.deep.behind import further
from relumine.extraction.deep.behind.further import Next
from relumine.extraction.deep.ending import confirm
from relumine.extraction.deep.ending.confirm import polished
from relumine.extraction.deep.ending.plays import played
from relumine.extraction.deep.ending.showing import Place, against, joint
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.reach import opened
from relumine.network import Network
from relumine.run import Run

TRUTH = rl.planted.deep((6, 5, 4, 1), rng=3)


def inquiry(truth, keep):
    """The rows asked so far, and those to fit, are those of some that ``keep`` allows."""
    at = Inquiry(Asked(truth, np.random.default_rng(0), np.inf, lambda: ""), truth.d, Run.of(0))
    X = np.random.default_rng(1).normal(size=(2000, truth.d))
    at.ask.values(X[keep(X)])
    at.pool = at.ask.data()
    return at


@pytest.mark.parametrize(("bend", "kinks"), [(1e-6, 0), (1e3, 2)])
def test_a_bend_below_rounding_is_no_kink(monkeypatch, bend, kinks):
    """Answers of size 50 that bend by 1e-14 over the gap."""

    def segments(ask, starts, ends, *rest):
        one, nothing = np.ones(1), np.zeros(1)
        return [
            Segment(
                *(a, b - a, 0.5 * one, nothing, bend * one, 0.5 * (a + b)[None], nothing, nothing),
                *(1e-8 * one, 50.0 * one, 50.0 * one),
            )
            for a, b in zip(starts[:2], ends[:2])
        ]

    monkeypatch.setattr(further, "segments", segments)
    at = inquiry(TRUTH, lambda X: X[:, 0] < 9.0)
    at.known = Known(6, TRUTH.layers)
    search = Next(at, [], True)
    search.look(None, 0, 0)
    assert len(search.free) == kinks


@pytest.mark.parametrize(("failed", "kinks"), [(0, 2), (1000, 0)])
def test_where_rows_contradict_a_kink_counts_with_one_unit_in_front_on(monkeypatch, failed, kinks):
    """A unit may be off only there. With layers further behind, such kinks are those of many units."""

    def segments(ask, starts, ends, *rest):
        one, nothing = np.ones(1), np.zeros(1)
        return [
            Segment(
                *(a, b - a, 0.5 * one, nothing, one, 0.5 * (a + b)[None], nothing, nothing, one, 50.0 * one, 50.0 * one)
            )
            for a, b in zip(starts, ends)
        ]

    monkeypatch.setattr(further, "segments", segments)
    truth = rl.planted.deep((6, 5, 4, 3, 1), rng=3)
    at = inquiry(truth, lambda X: X[:, 0] < 9.0)
    at.known = Known(6, truth.layers)
    X = np.random.default_rng(0).normal(size=(500, 6))
    X = X[(at.known(X) > 0.0).sum(axis=1) == 1][:2]
    assert len(X) == 2
    search = Next(at, [], True)
    search.failed = failed
    search.look((X - 1e-3, X + 1e-3), 2, 0)
    assert len(search.free) == kinks


def with_weights(net, **weights):
    """The network with other weights into some units of its last layer, from unit 2 in front."""
    W = np.array(net.head.W)
    for unit, value in weights.items():
        W[int(unit[1:]), 2] = value
    return DeepNetwork(net.layers, net.head.replace(W=W))


def test_two_weights_of_which_only_the_sum_was_seen_are_told_apart():
    truth = with_weights(TRUTH, _0=40.0, _3=3.0)  # both are on at nearly all rows at which unit 2 in front is
    a, t = truth.head.a, 0.7
    wrong = with_weights(truth, _0=40.0 + t / a[0], _3=3.0 - t / a[3])
    at = inquiry(truth, lambda X: np.abs(truth(X) - wrong(X)) < 1e-12)
    assert (truth.activations_before(at.ask.data()[0], 1)[:, 2] > 0.0).sum() > 100
    net, pairs = played(at, wrong)
    assert pairs is None
    np.testing.assert_allclose(net.head.W, truth.head.W, atol=1e-7)


def test_what_shows_where_the_affine_part_is_asked_for_is_fitted_before_it_goes_into_a_unit():
    truth = with_weights(TRUTH, _0=40.0, _3=3.0)
    a, v = truth.head.a, np.zeros(5)
    wrong = with_weights(truth, _0=39.0, _3=3.0 - 0.7 / a[3])
    v[2] = a[0] + 0.7  # at all rows asked, what two weights from unit 2 lack
    wrong = DeepNetwork(wrong.layers, wrong.head.replace(v=v))
    at = inquiry(truth, lambda X: np.abs(truth(X) - wrong(X)) < 1e-12)
    found, pairs = polished(at, wrong)
    assert pairs is None
    assert found is not None
    assert not found.network.head.v.any()
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6


def test_a_unit_that_was_found_twice_is_there_once():
    head, rng = TRUTH.head, np.random.default_rng(0)
    twin = head.W[1] + 3e-4 * rng.normal(size=5)
    twice = head.replace(W=np.vstack([head.W, twin]), b=np.append(head.b, head.b[1]), a=np.append(head.a, 1e-11))
    at = inquiry(TRUTH, lambda X: X[:, 0] < 9.0)
    found, _ = polished(at, DeepNetwork(TRUTH.layers, twice))
    assert found is not None
    assert found.network.widths == TRUTH.widths
    assert rl.metrics.parameter_error(TRUTH, found.network) < 1e-6


def test_the_least_weight_that_brings_itself_into_play():
    # z = w relu(x) − relu(0.3x + 0.1) − 0.01 is on somewhere if w > 0.3
    front = (np.array([[1.0], [0.3]]), np.array([0.0, 0.1]))
    net = DeepNetwork([front], Network(np.array([[0.0, -1.0]]), np.array([-0.01]), np.ones(1)))
    x, weight = opened(net.hidden, 0, 0)
    assert x is not None
    assert 0.3 < weight < 0.4
    assert np.abs(x).max() < 1e4


@pytest.mark.parametrize(("slope", "bias", "low", "high"), [(-1.0, 1.0, 0.0, 0.25), (1.0, -1.0, 2.5, np.inf)])
def test_an_input_at_which_a_weight_counts_though_it_turns_its_unit_off_elsewhere(slope, bias, low, high):
    # z = w relu(x) + relu(slope x + bias) − 0.25; on for 0 < x < 0.25 with w = −2, and for x > 2.5 with w = −1/2
    front = (np.array([[1.0], [slope]]), np.array([0.0, bias]))
    net = DeepNetwork([front], Network(np.array([[0.0, 1.0]]), np.array([-0.25]), np.ones(1)))
    x = against(net, Place(1, 0, 0))
    assert x is not None
    assert low < x[0] <= high
    ((_, points),) = joint(net, [Place(1, 0, 0)], np.full((20, 1), 0.7), np.random.default_rng(0))[1:]
    assert low < points[0, 0] <= high


def test_a_unit_that_is_off_beyond_all_rows_is_found_there():
    W, b = np.array(TRUTH.head.W), np.array(TRUTH.head.b)
    W[3], b[3] = [1.0, 0.5, 1.5, 1.0, -0.4], 6.0
    truth = DeepNetwork(TRUTH.layers, TRUTH.head.replace(W=W, b=b))
    head = truth.head.permuted([0, 1, 2])
    head = head.replace(v=truth.head.a[3] * W[3], c=truth.head.c + truth.head.a[3] * b[3]).flip([1])
    lacking = DeepNetwork(truth.layers, head)
    at = inquiry(truth, lambda X: truth.activations_before(X, 2)[:, 3] > 0.0)
    X, y = at.ask.data()
    np.testing.assert_allclose(lacking(X), y[:, 0], atol=1e-11)
    net, pairs = played(at, lacking)
    assert pairs is None
    assert rl.metrics.parameter_error(truth, net) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("seed", [172004, 172017, 172022, 172023, 172032, 172041])
def test_boxes_with_units_that_are_seldom_on_or_off_together(seed):
    truth = of_any_shape(seed)
    found = rl.extract(truth, dim=truth.d, rng=seed + 1)
    assert found.status.value == "exact"
    assert identifiable_error(truth, found.network, invisible(truth, np.random.default_rng(seed + 3))) < 1e-6


@pytest.mark.parametrize("asked", [False, True])
def test_a_network_that_rows_asked_before_contradict_is_not_called_exact(monkeypatch, asked):
    """Whatever fresh rows say: here one unit is on at next to none of them, and at twenty rows that were asked."""
    truth = rl.planted.deep((8, 6, 5, 4, 1), rng=5).scaled()
    X = np.random.default_rng(0).normal(size=(200_000, 8))
    H = Known(8, truth.layers)(X)
    z = H @ truth.head.W[2] + truth.head.b[2]
    b = truth.head.b.copy()
    b[2] -= np.sort(z)[-20] - 1e-9  # on at 20 of 200 000 inputs
    truth = DeepNetwork(truth.layers, truth.head.replace(b=b))
    without = DeepNetwork(truth.layers, truth.head.permuted([0, 1, 3]))
    at = inquiry(truth, lambda X: np.ones(len(X), dtype=bool))
    at.rows(500)
    if asked:
        at.ask(X[np.argsort(z)[-20:]])
    for name in ("_fitted", "_complete", "_joined", "_once"):
        monkeypatch.setattr(confirm, name, lambda at, net: net)
    monkeypatch.setattr(confirm, "played", lambda at, net: (net, None))
    found, pairs = polished(at, without)
    if asked:
        assert found is None
        shown, agrees = pairs
        assert (np.abs(without(shown) - truth(shown)) > 0.0).all()
        assert (np.abs(without(agrees) - truth(agrees)) < 1e-12).all()
    else:
        assert found is not None
        assert found.confirmed == 5000
