"""Units of the last layer that few inputs show, from what is left of the answers where they do."""

import numpy as np
import pytest

import relumine as rl
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending.confirm import _fitted
from relumine.extraction.deep.ending.equations import Equations
from relumine.extraction.deep.ending.last import finish
from relumine.extraction.deep.ending.missing import _Missing, completed
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Known
from relumine.run import Run

M, NOISE = 6, 1e-15
THETA = np.array([0.7, -1.1, 0.4, 0.9, -0.6, 1.3, -0.8])[:, None]  # of φ = (h, 1)
OTHER = np.array([-0.5, 0.3, 1.2, -0.7, 0.8, 0.2, 0.4])[:, None]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def rows(rng, n, on=range(M), theta=THETA):
    """n rows with these units in front on, at which a unit is."""
    F = np.zeros((20 * n, M + 1))
    F[:, list(on)], F[:, -1] = rng.exponential(size=(20 * n, len(on))), 1.0
    F = F[(F @ theta > 0.1)[:, 0]][:n]
    assert len(F) == n
    return F.copy(), F, F @ theta  # the inputs do not matter here


def test_rows_of_one_region_tell_a_part_and_rows_elsewhere_the_others(rng):
    unit = Equations(*rows(rng, 12, on=(0, 2)), NOISE)
    np.testing.assert_array_equal(unit.known, [True, False, True, False, False, False])
    for on in ((0, 2, 3), (0, 1, 3), (0, 3, 5), (0, 4)):
        unit.take(*rows(rng, 4, on=on))
    assert unit.known.all()
    np.testing.assert_allclose(unit.theta, THETA, atol=1e-11)
    w, b, a = unit.unit()
    np.testing.assert_allclose(a * np.append(w, b), THETA[:, 0], atol=1e-11)
    F = rows(rng, 50)[1]
    np.testing.assert_allclose(a * np.maximum(F @ np.append(w, b), 0.0), (F @ THETA)[:, 0], atol=1e-11)


def test_rows_of_other_units_and_of_sums_are_not_taken(rng):
    unit = Equations(*rows(rng, 12, on=(0, 2, 3)), NOISE)
    before = len(unit.F)
    both = THETA + OTHER
    for theta in (OTHER, both):
        for on in ((0, 2, 3), (0, 2, 3, 5), (0, 3, 5), (2, 3, 4, 5)):
            unit.take(*rows(rng, 40, on=on, theta=theta))
    assert len(unit.F) == before
    # among others, its own are found
    X, F, R = (np.concatenate(p) for p in zip(rows(rng, 5, on=(0, 2, 5)), rows(rng, 60, on=(0, 2, 5), theta=both)))
    unit.take(X, F, R)
    assert len(unit.F) == before + 5
    assert unit.known[5]
    np.testing.assert_allclose(unit.theta[5], THETA[5], atol=1e-11)


def test_rows_that_are_multiples_of_one_agree_on_nothing(rng):
    # where all units in front are off r is a constant, whatever unit it belongs to
    unit = Equations(*rows(rng, 12, on=(0, 2))[:2], np.zeros((12, 1)) + 1.0, NOISE)
    before = len(unit.span)
    F = np.zeros((9, M + 1))
    F[:, 5] = np.linspace(1.0, 2.0, 9)
    unit.take(F, F, F @ OTHER)
    assert len(unit.span) == before


def test_units_in_front_that_come_on_together(rng):
    unit = Equations(*rows(rng, 12, on=(0, 2)), NOISE)
    F = rows(rng, 30, on=(0, 1, 2))[1]
    F[:, 4] = F[:, 1] ** 2  # 1 and 4: either both or none
    F = F[(F @ THETA)[:, 0] > 0.0]
    unit.take(F, F, F @ THETA)
    np.testing.assert_array_equal(unit.known, [True, True, True, False, True, False])
    np.testing.assert_allclose(unit.theta[[1, 4]], THETA[[1, 4]], atol=1e-10)
    # rows on one line tell nothing: any sum with another unit would do
    unit = Equations(*rows(rng, 12, on=(0, 2)), NOISE)
    line = np.array([1.0, 1.0, 0, 0, 1.0, 0, 1.0]) + np.linspace(0, 1, 9)[:, None] * np.array([1, 2.0, 0, 0, 3.0, 0, 0])
    unit.take(line, line, line @ (THETA + OTHER))
    assert not unit.known[[1, 4]].any()


def test_what_turns_a_unit_off_stands_in_place_of_a_weight(rng):
    unit = Equations(*rows(rng, 12, on=(0, 2, 3)), NOISE)
    F = rows(rng, 20, on=(0, 2, 3, 5))[1]
    assert unit.open(F).any()
    assert unit.silence(F)
    w, b, _ = unit.unit()
    assert (F @ np.append(w, b) <= 1e-12).all()
    assert not unit.silence(F)


def inquiry(truth, X):
    at = Inquiry(Asked(truth, np.random.default_rng(0), np.inf, lambda: ""), truth.d, Run.of(0))
    at.known = Known(truth.d, truth.layers)
    at.ask.values(X)
    at.pool = at.ask.data()
    return at


def lacking(truth, gone):
    """Without these units of the last layer, as rows at which they never change sides show it."""
    X = np.random.default_rng(9).normal(size=(2000, truth.d))
    on = (truth.activations_before(X, len(truth.layers) + 1) > 0.0).mean(axis=0) > 0.5
    head, rest = truth.head, [i for i in range(truth.head.m) if i not in gone]
    a = np.array(np.atleast_2d(head.a))
    a[:, [i for i in range(head.m) if i not in gone or not on[i]]] = 0.0
    v, c = (a @ head.W).reshape(np.shape(head.v)), (a @ head.b).reshape(np.shape(head.c))
    return DeepNetwork(truth.layers, head.replace(v=head.v + v, c=head.c + c).permuted(rest))


def rare(truth, units, share):
    """With biases such that these units of the last layer are on at this share of the inputs."""
    H = truth.activations_before(np.random.default_rng(8).normal(size=(5000, truth.d)), len(truth.layers))
    b = np.array(truth.head.b)
    b[units] = -np.quantile(H @ truth.head.W[units].T, 1.0 - share, axis=0)
    return DeepNetwork(truth.layers, truth.head.replace(b=b))


@pytest.mark.parametrize(("sizes", "seed"), [((8, 7, 6, 1), 1), ((10, 8, 7, 6, 1), 2), ((10, 8, 7, 6, 3), 5)])
@pytest.mark.parametrize("share", [0.02, 0.98])
def test_units_that_few_inputs_show_are_found_with_all_their_weights(sizes, seed, share):
    truth = rare(rl.planted.deep(sizes, rng=seed), [1, 4], share)
    net = lacking(truth, [1, 4])
    X = np.random.default_rng(seed).normal(size=(3000, sizes[0]))
    at = inquiry(truth, X)
    wrong = np.abs((net(X) - truth(X)).reshape(len(X), -1)).max(axis=1) > 1e-9
    assert 20 < wrong.sum() < 600
    found = completed(at, net, 1e-9)
    assert found.widths == truth.widths
    found = completed(at, found, 1e-9)  # where nearly all rows fit, it ends for a polish
    X, Y = at.ask.data()
    np.testing.assert_allclose(found(X).reshape(Y.shape), Y, atol=1e-9 * np.abs(Y).max())
    # weights that no row has shown are said to be open; all others are right, up to the sign of a unit
    weights = np.where(at.open, np.nan, found.head.W)
    for i in (1, 4):
        w, b, a = truth.head.W[i], truth.head.b[i], np.linalg.norm(np.atleast_2d(truth.head.a)[:, i])
        scale = np.linalg.norm(np.atleast_2d(found.head.a), axis=0) / a
        off = [np.abs(scale * (sign * found.head.b) - b) for sign in (1.0, -1.0)]
        sign, j = (1.0, int(off[0].argmin())) if off[0].min() < off[1].min() else (-1.0, int(off[1].argmin()))
        known = ~np.isnan(weights[j])
        assert known.sum() >= len(w) - 3
        np.testing.assert_allclose(sign * scale[j] * weights[j, known], w[known], atol=1e-8)


def test_a_faint_unit_beside_a_loud_one():
    truth = rare(rl.planted.deep((10, 8, 7, 6, 1), rng=4), [0, 3], 0.03)
    a = np.array(truth.head.a)
    a[3] *= 1e-4
    truth = DeepNetwork(truth.layers, truth.head.replace(a=a))
    at = inquiry(truth, np.random.default_rng(1).normal(size=(3000, 10)))
    found = completed(at, lacking(truth, [0, 3]), 1e-10)
    assert found.widths == truth.widths
    assert rl.metrics.parameter_error(truth, found) < 1e-6


def test_what_is_no_unit_is_left_alone():
    truth = rl.planted.deep((8, 7, 6, 1), rng=1)

    def box(X):
        return truth(X) + 0.1 * np.maximum(X[:, 0] - 1.8, 0.0) ** 2

    at = inquiry(truth, np.random.default_rng(0).normal(size=(2000, 8)))
    at.ask = Asked(box, np.random.default_rng(0), np.inf, lambda: "")
    at.ask.values(np.random.default_rng(0).normal(size=(2000, 8)))
    mark = at.ask.mark
    assert completed(at, truth, 1e-9) is truth
    assert at.ask.mark == mark  # what was asked in vain is in no later fit


def test_a_unit_in_front_that_is_seldom_on_opens_weights_of_all_units_at_once():
    truth = rl.planted.deep((8, 7, 6, 1), rng=1)
    (W, b), X = truth.layers[0], np.random.default_rng(3).normal(size=(3000, 8))
    b = np.array(b)
    b[2] = -np.quantile(X @ W[2], 0.95)  # on at one input in twenty
    truth = DeepNetwork([(W, b)], truth.head)
    blind = np.array(truth.head.W)
    blind[:, 2] = 0.0
    net, at = DeepNetwork(truth.layers, truth.head.replace(W=blind)), inquiry(truth, X)
    at.open = np.zeros(blind.shape, dtype=bool)
    at.open[:, 2] = True
    assert 50 < (np.abs(net(X) - truth(X)) > 1e-6).sum() < 300
    search = _Missing(at, net, 1e-9)
    assert len(search.units) == 6
    assert search.shared()
    found = search.network(search.units)
    np.testing.assert_allclose(found(X), truth(X), atol=1e-9 * np.abs(truth(X)).max())
    fresh = np.random.default_rng(4).normal(size=(2000, 8))
    np.testing.assert_allclose(found(fresh), truth(fresh), atol=1e-7)


def test_rows_that_show_missing_units_do_not_spoil_the_digits_of_the_others():
    truth, rng = rare(rl.planted.deep((10, 8, 7, 6, 1), rng=2), [1, 4], 0.02), np.random.default_rng(0)
    a = np.array(truth.head.a)
    a[[1, 4]] *= 1e-7  # so little that no single row contradicts
    truth = DeepNetwork(truth.layers, truth.head.replace(a=a))
    net = lacking(truth, [1, 4])
    off = DeepNetwork([(W * (1.0 + 1e-10 * rng.normal(size=W.shape)), b) for W, b in net.layers], net.head)
    at = inquiry(truth, rng.normal(size=(4000, 10)))
    X, y = at.pool[0], at.pool[1][:, 0]
    right = np.abs(net(X) - y) < 1e-12
    assert 0.92 < right.mean() < 0.99
    assert 1e-9 < np.abs(net(X) - y).max() < 1e-6
    assert np.abs(off(X) - y)[right].max() > 1e-10
    assert np.abs(_fitted(at, off)(X) - y)[right].max() < 1e-12


def test_units_are_looked_for_on_lines_first_where_many_rows_show_that_some_are_missing():
    """Rows alone take thousands for each; a few rows may wait for that."""
    truth = rl.planted.deep((12, 8, 8, 6, 1), rng=3)
    run = Run.of(rng=0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: ""), truth.d, run)
    at.known = Known(truth.d, truth.hidden[:2])
    X = at.rows(4000)[0]
    W, b = truth.hidden[2]
    share = (at.known(X) @ W.T + b > 0.0).mean(axis=0)
    j = int(np.abs(share - 0.04).argmin())
    assert 0.01 < share[j] < 0.09
    units = [Unit(w, float(c), np.ones(8, dtype=bool), 0.0) for i, (w, c) in enumerate(zip(W, b)) if i != j]
    net, pairs = finish(at, units)
    assert net is not None
    assert net.head.m == 5
    net, pairs = finish(at, units, lacking=0.01)
    assert net is None
    shown = at.known(pairs[0]) @ W[j] + b[j] > 0.0
    assert shown.all()
