"""Deep networks at both ends: layers of two units, whose deeper units look alike, and what many inputs ask for."""

import numpy as np
import pytest

import relumine as rl
from relumine.extraction.deep.asking import box as module
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.asking.kinks import segments
from relumine.extraction.deep.asking.witnesses import Chord, witnesses_of
from relumine.extraction.deep.ending import confirm, last
from relumine.extraction.deep.first import units as units_module
from relumine.extraction.deep.first.sharpen import sharpened
from relumine.extraction.deep.first.signs import signs
from relumine.extraction.deep.first.units import Layer, Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.places import chords
from relumine.results import Status
from relumine.run import Run


def asked(f):
    return Asked(f, np.random.default_rng(0), np.inf, lambda: "", True)


@pytest.mark.parametrize("rng", [6, 10, 11])
def test_two_units_in_each_layer(rng):
    """Large weights, small biases: behind one unit, the kinks of the next layer are next to it and parallel to it."""
    W = 4.0 * np.random.default_rng(1).normal(size=(2, 12))
    head = rl.Network(np.array([[-0.2, 2.4], [2.0, -0.6]]), np.array([-1.3, -1.2]), np.array([-4.6, -9.6]), c=9.2)
    truth = rl.DeepNetwork([(W, np.array([-0.04, 0.03]))], head)
    found = rl.extract(truth, dim=12, rng=rng)
    assert found.status is Status.EXACT
    assert found.network.widths == (2, 2)
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6


def test_the_sign_of_a_unit_nearly_parallel_to_the_line():
    truth = rl.planted.deep((10, 6, 4, 1), rng=1).scaled()
    W, b = truth.layers[0]
    rng, f = np.random.default_rng(2), asked(truth)
    known = Known(10)
    for i in range(6):
        x = rng.normal(size=10)
        x -= (x @ W[i] + b[i]) * W[i]
        way = rng.normal(size=10)
        way += (0.003 - way @ W[i]) * W[i]
        (found,) = segments(f, (x - way)[None], (x + way)[None], 1.0, 8000)
        seen = witnesses_of(Chord(known.chart(x), found, 0))
        near = [w for w in seen if abs(w.point @ W[i] + b[i]) < 1e-9]
        units = [Unit(w, c, np.ones(10, dtype=bool), 1e-12) for w, c in zip(W, b)]
        units[i].witnesses = near
        if near and abs(near[0].jump) > 1e-6:
            assert signs(f, units)[i] == 1.0


def test_rows_beside_others_are_remembered_only_while_there_are_few(monkeypatch):
    monkeypatch.setattr(module, "_FEW", 20)
    f = asked(lambda X: X.sum(axis=1))
    np.testing.assert_allclose(f.beside(np.ones((8, 3))), 3.0)
    assert (len(f.log), f.count) == (8, 8)
    f.beside(np.ones((5, 3)))
    assert (len(f.log), f.count) == (8, 13)
    f(np.zeros((2, 3)))
    assert (len(f.log), f.count) == (10, 15)
    np.testing.assert_allclose(f.since((8, 0))[0], 0.0)


def test_rows_inside_a_basis_are_remembered_by_their_coordinates():
    rng = np.random.default_rng(2)
    basis, far = np.linalg.qr(rng.normal(size=(9, 2)))[0], rng.normal(size=(3, 9))
    f = Asked(lambda X: X.sum(axis=1), rng, np.inf, lambda: "", True)
    f(far)
    f.basis = basis
    inside, mark = rng.normal(size=(4, 2)), f.mark
    f(inside)
    assert (f.mark, f.inside.whole()[0].shape) == ((3, 4), (4, 2))
    U, Y = f.data()
    np.testing.assert_allclose(U, np.concatenate([far @ basis, inside]))
    np.testing.assert_allclose(f.since(mark)[0], inside)
    f.basis = None
    X, Y = f.data()
    np.testing.assert_allclose(X, np.concatenate([far, inside @ basis.T]))
    np.testing.assert_allclose(Y[:, 0], X.sum(axis=1))
    f(far)
    np.testing.assert_allclose(f.since(mark)[0], np.concatenate([far, inside @ basis.T]))


def test_units_are_measured_again_where_there_is_room():
    """Normals and places off by 1e-8, said to be worse: all come back with the digits of the answers."""
    truth = rl.planted.deep((30, 12, 10, 1), rng=3).scaled()
    rng, known = np.random.default_rng(4), Known(30, truth.layers)
    W, b, a = truth.head.W, truth.head.b, truth.head.a
    V = W + 1e-8 * rng.normal(size=W.shape)
    units = [Unit(v, c, np.ones(12, dtype=bool), 1e-7) for v, c in zip(V, b + 1e-8 * rng.normal(size=10))]
    strengths = [0.5 * x for x in a]
    sharpened(asked(truth), known, units, strengths, rng)
    size = np.linalg.norm(W, axis=1)
    off = [max(np.abs(u.w - w / s).max(), abs(u.c - c / s)) for u, w, c, s in zip(units, W, b, size)]
    assert np.median(off) < 1e-11
    np.testing.assert_allclose(np.array(strengths)[np.array(off) < 1e-9], (a * size)[np.array(off) < 1e-9], rtol=1e-7)


def test_chords_end_where_answers_have_no_digits():
    f = Asked(lambda X: X[:, 0], np.random.default_rng(0), np.inf, lambda: "", True, lambda X: X[:, 0] < 2.0)
    starts = np.array([[-4.0, 0.0], [-1.0, 0.0], [3.0, 0.0], [-300.0, 1.0]])
    ends = np.array([[4.0, 0.0], [1.0, 1.0], [5.0, 0.0], [300.0, 1.0]])
    some, a, b = f.within(starts, ends, 1.0)
    assert some.tolist() == [True, True, False, True]
    np.testing.assert_array_equal((a[1], b[1]), (starts[1], ends[1]))
    assert (b[[0, 2], 0] < 2.0).all()
    assert (b[[0, 2], 0] > [1.0, -40.0]).all()
    X, Y = f.answered(np.array([[5.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(X, [[1.0, 0.0]])
    np.testing.assert_array_equal(Y, [[1.0]])
    assert f.answered(X + 5.0)[1].shape == (0, 1)


def test_rows_with_digits_are_drawn_nearer_where_there_are_few():
    f = Asked(lambda X: X[:, 0], np.random.default_rng(0), np.inf, lambda: "", True, lambda X: (X**2).sum(1) < 0.5)
    X, Y = Inquiry(f, 5, Run.of(rng=0)).drawn(50, lambda n: 1.0)
    assert len(X) == len(Y) == 50
    assert ((X**2).sum(axis=1) < 0.5).all()


def test_units_met_next_to_other_kinks_are_measured_again_on_new_lines(monkeypatch):
    truth = rl.planted.deep((30, 12, 10, 1), rng=3).scaled()
    rng = np.random.default_rng(4)
    layer = Layer(asked(truth), Known(30), rng)
    layer.look(*chords(layer.known, 3, rng))
    layer.probe()
    W, _ = truth.layers[0]
    layer.units = [u for u in layer.accepted if np.abs(W @ u.w).max() > 1.0 - 1e-8]
    for u in layer.units:
        u.w = u.w + 1e-9 * rng.normal(size=30)
    monkeypatch.setattr(units_module, "_CLEAR", np.inf)
    monkeypatch.setattr(units_module, "_CLEARER", 0.0)
    layer.clear()
    assert len(layer.units) > 6
    for u in layer.units:
        i = int(np.abs(W @ u.w).argmax())
        assert np.abs(W[i] * np.sign(W[i] @ u.w) - u.w).max() < 1e-10


def test_rows_that_confirm_a_large_network_are_not_in_its_fit(monkeypatch):
    """Those asked to check it before it is refined stay out of that fit, too."""
    truth = rl.planted.deep((12, 6, 5, 1), rng=4).scaled()
    run = Run.of(rng=0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: "", True), 12, run)
    at.rows(50)
    at.mark = at.ask.mark
    at.ask(at.rng.normal(size=(40, 12)))
    fresh, fitted = [], []
    ask_fresh, minimise = confirm._fresh, confirm.minimise

    def asked_fresh(*arguments):
        fresh.append(ask_fresh(*arguments)[0])
        return fresh[-1], truth(fresh[-1])[:, None]

    def fit(head, H, *arguments, **options):
        fitted.append(H)
        return minimise(head, H, *arguments, **options)

    monkeypatch.setattr(confirm, "SMALL", 0)
    monkeypatch.setattr(confirm, "_LARGE", 0)
    monkeypatch.setattr(confirm, "_fresh", asked_fresh)
    monkeypatch.setattr(confirm, "minimise", fit)
    head = truth.head.replace(W=truth.head.W + 1e-7 * at.rng.normal(size=truth.head.W.shape))
    found, _ = confirm.polished(at, rl.DeepNetwork(truth.layers, head))
    assert found is not None
    assert len(fitted) == 1
    H = Known(12, truth.layers)(np.concatenate(fresh))
    H = H[(H > 0.0).sum(axis=1) > 1]  # others may be alike
    assert not (np.abs(fitted[0][:, None] - H).max(axis=2) < 1e-9).any()


def test_a_unit_that_random_rows_hardly_show_off_gets_rows_of_its_own(monkeypatch):
    """One that is off at none of 30 000 inputs, in a network that is polished on about as many rows as parameters."""
    truth = rl.planted.deep((12, 6, 5, 1), rng=11).scaled()
    X = np.random.default_rng(1).normal(size=(30_000, 12))
    b = truth.head.b.copy()
    b[2] -= (Known(12, truth.layers)(X) @ truth.head.W[2] + b[2]).min()
    truth = rl.DeepNetwork(truth.layers, truth.head.replace(b=b))
    run = Run.of(rng=0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: "", True), 12, run)
    start = rl.DeepNetwork.of([(W + 1e-6 * at.rng.normal(size=W.shape), b) for W, b in truth.maps])
    monkeypatch.setattr(confirm, "SMALL", 0)
    found = confirm._refined(at, start, at.ask.mark)
    assert rl.metrics.parameter_error(truth, found) < 1e-10


def test_where_every_weight_is_known_nothing_is_fitted_to_rows_that_differ(monkeypatch):
    """They show units that are missing, and to fit the others to them takes minutes for many outputs."""
    truth = rl.planted.deep((12, 8, 6, 1), rng=4).scaled()
    run = Run.of(rng=0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: "", True), 12, run)
    at.known = Known(12, truth.layers)
    at.rows(400)
    monkeypatch.setattr(last, "minimise", None)
    net, pairs = last._repaired(at, truth.head.permuted(range(1, 6)), np.ones((5, 8), dtype=bool), 1e-7, last.LACKING)
    assert net is None
    assert len(pairs[0]) == 4


def test_a_unit_that_is_there_twice_is_one_and_two_that_differ_stay():
    truth = rl.planted.deep((12, 6, 5, 1), rng=4).scaled()
    run = Run.of(rng=0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: "", True), 12, run)
    at.rows(400)
    head = truth.head
    a = np.append(np.where(np.arange(5) == 1, 0.3, 1.0) * head.a, 0.7 * head.a[1])
    W = head.W[[0, 1, 2, 3, 4, 1]]
    W[5, 0] += 5e-8
    twice = head.replace(W=W, b=head.b[[0, 1, 2, 3, 4, 1]], a=a)
    found = confirm._once(at, rl.DeepNetwork(truth.layers, twice))
    assert found.widths == truth.widths
    assert rl.metrics.parameter_error(truth, found) < 1e-10
    assert confirm._once(at, truth) is truth
    b = twice.b.copy()
    b[5] += 1e-3
    other = rl.DeepNetwork(truth.layers, twice.replace(b=b))
    assert confirm._once(at, other) is other
