"""Signs of units behind two known layers, and weights that no kink shows, by gradients in balls around corners."""

from itertools import combinations

import numpy as np
import pytest
from tests.extraction.deep.four_layers import TRUTH, inquiry

import relumine as rl
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.behind import hidden
from relumine.extraction.deep.behind.balls import Point, affine_around, corner
from relumine.extraction.deep.behind.further import Next
from relumine.extraction.deep.behind.orient import Signs, is_behind, side
from relumine.extraction.deep.behind.sparse import Gradients
from relumine.extraction.deep.behind.sums import told_by, voted
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.again import lines_through
from relumine.extraction.deep.surfaces.surface import Lift, Surface
from relumine.run import Run


def test_few_points_may_say_something_else_of_a_weight():
    rng = np.random.default_rng(2)
    strength = rng.normal(size=(20, 4))
    rows = np.column_stack([strength, strength[:, [1, 3]] @ [0.7, -0.2]])
    rows[7, -1] += 1e-3
    V, known = np.zeros((4, 3)), np.ones((4, 3), dtype=bool)
    known[[1, 3], 2] = False
    hidden.solved(V, known, 2, rows)
    assert known.all()
    np.testing.assert_allclose(V[:, 2], [0.0, 0.7, 0.0, -0.2], atol=1e-12)
    rows[::4, -1] += 1e-3 * (1.0 + np.arange(5))  # more of them
    V, known = np.zeros((4, 3)), np.ones((4, 3), dtype=bool)
    known[[1, 3], 2] = False
    hidden.solved(V, known, 2, rows)
    assert not known[[1, 3], 2].any()
    assert not V.any()


def test_signs_from_gradients_that_few_units_explain():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    flip = np.random.default_rng(5).choice([-1.0, 1.0], size=len(b))
    gradients = Gradients(at)
    found, left_open = gradients.signs(flip[:, None] * W, flip * b)
    assert not left_open.any()
    np.testing.assert_array_equal(found, flip)
    found, left_open = voted(
        gradients.points, flip[:, None] * W, flip * b, np.ones(W.shape, dtype=bool), {}
    )  # as in larger layers
    assert left_open.sum() < 5
    np.testing.assert_array_equal(found[~left_open], flip[~left_open])


def test_around_a_corner_the_box_is_a_sum_over_the_units_that_are_on():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    tried = 0
    for x in at.rng.normal(size=(20, 30)) * 3.0:
        top = corner(at.known, x, at.rng)
        near = np.concatenate(at.known.before(top[None]), axis=1)
        assert (np.abs(near) < 1e-9 * (1.0 + np.linalg.norm(top))).sum() >= 5  # units about to change sides
        point = affine_around(at, top)
        if point is None or np.linalg.norm(top) > 1e3:
            continue
        on = W @ point.h + b > 0.0
        c = np.linalg.lstsq((W[on] @ point.B).T, point.g, rcond=None)[0]
        assert np.linalg.norm(c @ W[on] @ point.B - point.g) < 1e-6 * np.linalg.norm(point.g)
        tried += on.sum() < point.B.shape[1]
    assert tried > 5


def test_weights_that_no_kink_has_shown_come_from_gradients():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    known = np.ones(W.shape, dtype=bool)
    seldom = int((at.known(at.rng.normal(size=(1000, 30))) > 0.0).mean(axis=0).argmin())
    known[3, seldom] = known[7, seldom] = False
    gradients, start = Gradients(at), np.where(known, W, 0.0)
    found, left_open = gradients.signs(start, b, known)
    assert found.min() == 1.0
    assert not left_open.any()
    W_found, _, known = gradients.weights(start, b, found, known)
    assert known.all()
    np.testing.assert_allclose(W_found, W, atol=1e-7)


def test_a_layer_told_by_units_behind_is_held_against_gradients():
    """Its weights that no kink shows come back, whatever stood in for them; where a unit is missing, it is not sure."""
    W, b = TRUTH.hidden[2]
    at = inquiry()
    hidden_ = np.zeros(W.shape, dtype=bool)
    seldom = int((at.known(at.rng.normal(size=(1000, 30))) > 0.0).mean(axis=0).argmin())
    hidden_[[3, 7], seldom] = True
    found, shift, open_, sure = Signs(at).confirmed(np.where(hidden_, 5.0, W), b, hidden_, [])
    assert sure
    assert not open_.any()
    np.testing.assert_allclose(found, W, atol=1e-7)
    np.testing.assert_allclose(shift, b, atol=1e-7)
    few = np.arange(10) != 4
    assert not Signs(at).confirmed(W[few], b[few], hidden_[few], [])[3]


def test_a_weight_between_units_that_are_seldom_on_together_is_found():
    """Weights that count at few of the random inputs, and at no corner near the others."""
    truth = rl.planted.deep([784, *[8] * 8, 1], rng=84000)
    run = Run.of(rng=3)
    at = Inquiry(Asked(lambda X: truth(X), run.rng, np.inf, lambda: ""), 784, run)
    at.known = Known(784, truth.hidden[:2])
    with at.within(np.linalg.qr(truth.hidden[0][0].T)[0]):
        gradients, some = Gradients(at), [0, 1, 2, 3, 4, 5, 7]  # no input turns the other one on
        W, b = truth.hidden[2][0][some], truth.hidden[2][1][some]
        together = ((gradients.many @ W.T + b) > 0.0).T.astype(float) @ (gradients.many > 0.0).astype(float)
        assert together[0, 6] == 0.0
        assert 0.0 < together[1, 6] < 100.0  # of 100 000
        known = np.ones(W.shape, dtype=bool)
        known[[0, 1], 6] = False
        xi, left_open = gradients.signs(np.where(known, W, 0.0), b, known)
        assert xi.min() == 1.0
        assert not left_open.any()
        found, _, seen = gradients.weights(np.where(known, W, 0.0), b, xi, known)
    assert seen.all()  # found, or proved never to count
    np.testing.assert_allclose(found[1, 6], W[1, 6], rtol=1e-7)


def test_no_signs_where_the_units_are_others():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    other = np.random.default_rng(6).normal(size=W.shape)
    gradients = Gradients(at)
    gradients.left = 60
    found, left_open = gradients.signs(other, b)
    assert found is None or left_open.any()


def test_no_signs_where_a_unit_is_missing():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    often = np.argsort(np.abs((at.known(at.rng.normal(size=(1000, 30))) @ W.T + b > 0.0).mean(axis=0) - 0.5))
    some = np.delete(np.arange(10), often[0])
    gradients = Gradients(at)
    gradients.left = 100
    found, left_open = gradients.signs(W[some], b[some])
    assert found is None or left_open.any()


def test_a_missing_unit_shows_in_gradients_where_no_move_shows_it():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    gradients = Gradients(at)
    seen = np.ones(W.shape, dtype=bool)
    xi, left = gradients.signs(W, b, seen)
    assert not left.any()
    points, fits = gradients.told(W, b, xi, seen)
    assert len(points) > 10
    assert fits.all()
    few = np.arange(10) != 4
    points, fits = gradients.told(W[few], b[few], xi[few], seen[few])
    on = np.array([p.h @ W[4] + b[4] > 0.0 for p in points])
    assert fits[~on].all()
    assert (~fits[on]).sum() > 2


def test_one_gradient_that_is_off_does_not_rule_out_the_right_signs():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    gradients, known = Gradients(at), np.ones(W.shape, dtype=bool)
    xi, left_open = gradients.signs(W, b, known)
    assert not left_open.any()
    points = list(gradients.points)
    assert len(points) >= 50
    at_fault = next(i for i, p in enumerate(points) if (W @ p.h + b > 0.0).sum() + 1 < len(p.g))
    p = points[at_fault]
    off = at.rng.normal(size=len(p.g))
    points[at_fault] = Point(p.B, p.g + 1e-3 * np.linalg.norm(p.g) * off, p.h)
    found, left_open = told_by(points, W, b, known, {})
    np.testing.assert_array_equal(found, xi)
    assert not left_open.any()


def test_a_unit_is_on_where_the_others_explain_no_gradient():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    told_by_gradients, seen = Signs(at), np.ones(W.shape, dtype=bool)
    xi, left = told_by_gradients.gradients.signs(W, b, seen)
    assert not left.any()
    told = 0
    for i in range(10):
        flip = np.where(np.arange(10) == i, -1.0, 1.0)
        for sign in (np.ones(10), flip):
            found = told_by_gradients.sides(sign[:, None] * W, sign * b, sign * xi, seen, np.arange(10) == i)
            assert not np.delete(found, i).any()
            assert np.isnan(found[i]) or found[i] == sign[i]
            told += found[i] == sign[i]
    assert told >= 6
    # two that are open at once hide each other where one is on: told together, more of them are
    together = alone = 0
    for pair in combinations(range(10), 2):
        left = np.isin(np.arange(10), pair)
        found = told_by_gradients.sides(W, b, xi, seen, left)
        assert not found[~left].any()
        assert (np.isnan(found[left]) | (found[left] == 1.0)).all()
        together += int((found[left] == 1.0).sum())
        points, fits = told_by_gradients.gradients.told(W[~left], b[~left], xi[~left], seen[~left])
        alone += sum(side(np.array([p.h @ W[i] + b[i] > 0.0 for p in points]), fits) == 1.0 for i in pair)
    assert together > alone + 5
    # what is no unit of this layer is left out, or stays open
    rng = np.random.default_rng(7)
    for _ in range(5):
        other = rng.normal(size=10)
        more = np.vstack([W, other / np.linalg.norm(other)])
        found = told_by_gradients.sides(
            more, np.append(b, 0.0), np.append(xi, 1.0), np.ones(more.shape, dtype=bool), np.arange(11) == 10
        )
        assert np.isnan(found[10]) or found[10] == 0.0


def test_gradients_are_asked_for_on_the_side_of_a_unit_where_there_are_none():
    at = inquiry()
    (W, b), signs = TRUTH.hidden[2], Signs(at)
    size = np.linalg.norm(W, axis=1)
    units = [Unit(w / s, c / s, np.ones(10, dtype=bool), 0.0) for w, c, s in zip(W, b, size)]
    signs.gradients.signs(W, b)
    gradients = signs.gradients
    gradients.points = [p for p in gradients.points if W[4] @ p.h + b[4] < 0.0]
    gradients.left, gradients.new = 0, np.zeros(len(gradients.new), dtype=bool)
    gradients.units = len(units)
    found = signs.told(units, [])
    assert found is not None
    assert len(found[0]) == 10
    assert found[1].min() == 1.0


def test_a_surface_that_is_known_in_part_does_not_hide_the_signs_of_the_others(monkeypatch):
    """One further behind that was followed for a while: what it leaves open could explain nearly any gradient."""
    at = inquiry()
    W, b = TRUTH.hidden[2]
    size, rng = np.linalg.norm(W, axis=1), np.random.default_rng(8)
    flip = np.where(np.arange(10) % 3 == 0, -1.0, 1.0)
    units = [Unit(f * w / s, f * c / s, np.ones(10, dtype=bool), 1e-9) for f, w, c, s in zip(flip, W, b, size)]
    search, known = Next(at, [], precise=True), np.arange(10) >= 4
    other = np.where(known, rng.normal(size=10), 0.0)
    behind = Unit(other / np.linalg.norm(other), 0.1, known, 1e-8)
    monkeypatch.setattr(search, "units", lambda: [*units, behind])
    assert search.signed() is None  # kinks are looked for first, where its open weights count
    assert search.signs.missing is not None
    found, xi = search.signed()
    np.testing.assert_allclose([u.w for u in found], [u.w for u in units])
    np.testing.assert_array_equal(xi, flip)


def points_of(at, unit):
    """Inputs at which it changes sides."""
    lift = Lift(at.known)
    theta = np.append(unit.w, unit.c)
    surface = Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool))
    return list(lines_through(lift, at.rng).crossings(surface)[0][:40])


@pytest.mark.parametrize("seen", [10, 6, 4])
def test_a_surface_further_behind_is_a_sum_over_the_units_that_are_on(seen):
    """One of this layer is not; where as few weights are known as units are on, nothing is said."""
    at = inquiry()
    (W, b), (A, e) = TRUTH.hidden[2], TRUTH.hidden[3]
    H = at.known(np.random.default_rng(1).normal(size=(4000, TRUTH.d)))
    patterns, which, often = np.unique(H @ W.T + b > 0.0, axis=0, return_inverse=True, return_counts=True)
    few = np.flatnonzero(patterns.sum(axis=1) == 5)
    pick = few[often[few].argmax()]
    points = list(np.random.default_rng(1).normal(size=(4000, TRUTH.d))[which.ravel() == pick][:5])
    on, flip = patterns[pick], np.where(np.arange(10) % 3 == 0, -1.0, 1.0)
    units = [Unit(f * w, f * c, np.ones(10, dtype=bool), 1e-9) for f, w, c in zip(flip, W, b)]
    known = np.arange(10) < seen
    behind = Unit(np.where(known, A[3, on] @ W[on], 0.0), float(A[3, on] @ b[on] + e[3]), known, 1e-9, points=points)
    assert is_behind(at.known, units, flip, behind) == (seen > 5)
    if seen == 10:  # though all of it is known, and it may pass for a unit
        search = Signs(at)
        for u in units:
            u.points = points_of(at, u)
        found, _ = search.told([*units, behind], [])
        assert len(found) == 10
        assert not search.doubtful
    own = Unit(np.where(known, np.random.default_rng(2).normal(size=10), 0.0), 0.1, known, 1e-9, points=points)
    assert not is_behind(at.known, units, flip, own)


def test_a_unit_that_is_on_at_one_input_in_a_thousand_is_missed():
    """No random input and no corner near them has it on; corners far out do, and show where it changes sides."""
    (W, b), others = TRUTH.hidden[2], TRUTH.hidden
    W = W.copy()
    W[6] -= 0.09 * np.linalg.norm(W[6])
    truth = rl.DeepNetwork((*others[:2], (W, b), *others[3:]), TRUTH.head)
    run = Run.of(rng=1)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: ""), truth.d, run)
    at.known = Known(truth.d, truth.hidden[:2])
    on = at.known(3.0 * np.random.default_rng(2).normal(size=(20_000, 30))) @ W[6] + b[6] > 0.0
    assert 0 < on.sum() < 30
    search, few, xi = Signs(at), np.arange(10) != 6, np.ones(10)
    seen = np.ones(W.shape, dtype=bool)
    assert not search.lonely(W[few], b[few], xi[few], seen[few])
    ends = [at.known(X) @ W[6] + b[6] for X in search.missing]
    assert (ends[0] > 0.0).any()  # on at some of the inputs with a gradient that the others do not explain
    assert (ends[0] > ends[1]).mean() > 0.7
    assert search.doubtful
    search.blind = 4  # looked for in vain: it goes on, and the layer is not called certain
    assert search.lonely(W[few], b[few], xi[few], seen[few])
    assert search.doubtful
    search.blind, other = 0, np.random.default_rng(4).normal(size=(3, 10))  # units of which no gradient is a sum
    search.missing = None
    assert not search.lonely(other, np.zeros(3), np.ones(3), np.ones(other.shape, dtype=bool))
    assert search.missing is None  # then there is no input at which nothing is missing
    points, fits = search.gradients.told(W[few], b[few], xi[few], seen[few], 1e-3)
    assert (~fits).sum() > 1
    far = points[int(np.flatnonzero(~fits)[0])]
    search.gradients.points = [*[p for p, near in zip(points, fits) if near], far]  # a single one is enough
    assert not search.lonely(W[few], b[few], xi[few], seen[few])
    whole = Signs(at)
    assert whole.lonely(W, b, xi, seen)
    assert not whole.doubtful
    points, _ = whole.gradients.told(W, b, xi, seen, 1e-3)
    points[0].g = np.ones(len(points[0].g))  # but not one that is as it should be once more
    assert whole.lonely(W, b, xi, seen)
    assert not whole.doubtful


@pytest.mark.parametrize("asked", [False, True])
def test_a_weight_counts_if_any_input_asked_has_both_units_on(asked, monkeypatch):
    """Though no random input has, as it seems, and no gradient: without one of these it would be left at zero."""
    at = inquiry()
    W, b = TRUTH.hidden[2]
    known = np.ones(W.shape, dtype=bool)
    known[3, 7] = False
    gradients = Gradients(at)
    monkeypatch.setattr(gradients, "_together", lambda T, pairs, most: [np.zeros((0, TRUTH.d)) for _ in pairs])
    monkeypatch.setattr(gradients, "measure", lambda score, count: 0)
    X = np.random.default_rng(0).normal(size=(2000, TRUTH.d))
    H = at.known(X)
    V = np.where(known, W, 0.0)
    both = X[(H[:, 7] > 0.1) & (H @ V[3] + b[3] > 0.1)][:2]
    seen = gradients.weights(V, b, np.ones(10), known, (), list(both) if asked else [])[2]
    assert len(both) == 2
    assert seen[3, 7] == (not asked)


def test_inputs_at_which_a_layer_was_not_all_are_kept_once(monkeypatch):
    at = inquiry()
    W, b = TRUTH.hidden[2]
    search, X, tried = Signs(at), np.random.default_rng(0).normal(size=(6, TRUTH.d)), []

    def complete(known, kinks, also):
        tried.append(len(also))
        at.beside = (np.reshape([X[0], X[1], *also], (-1, TRUTH.d)), X[3:])
        return False

    monkeypatch.setattr(at, "complete", complete)
    monkeypatch.setattr(at, "narrowed", lambda known: None)
    monkeypatch.setattr(search, "lonely", lambda *_: True)
    for _ in range(4):
        assert not search._whole(W, b, np.ones(10), np.ones(W.shape, dtype=bool), [], [])
    assert tried == [0, 2, 2, 2]


def test_the_unit_that_is_missing_is_on_where_gradients_are_not_explained():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    few, search = np.arange(10) != 4, Signs(at)
    search.gradients.measure(search.gradients.rank, 200)
    T, seen = np.column_stack([W, b]), np.ones((9, 10), dtype=bool)
    counts = [search.needed(W[few], b[few], seen, sign * row) for row in T for sign in (1.0, -1.0)]
    assert int(np.argmax(counts)) == 8  # unit 4, on where it is
    assert max(counts) > 5
    assert max(counts[:8] + counts[9:]) < max(counts) / 2
