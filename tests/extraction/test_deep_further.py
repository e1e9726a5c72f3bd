"""Behind two known layers, with others further behind: units by places all over their surfaces, signs by gradients."""

import numpy as np
import pytest

import relumine as rl
from relumine.extraction.deep import probing
from relumine.extraction.deep.balls import Point, affine_around, corner
from relumine.extraction.deep.box import Asked
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.further import Next, everywhere, lines_through, measured_again
from relumine.extraction.deep.inquiry import Inquiry
from relumine.extraction.deep.probing import chosen, sharpened, shown
from relumine.extraction.deep.sparse import Gradients
from relumine.extraction.deep.sums import told_by, voted
from relumine.extraction.deep.surfaces import Lift, Surface
from relumine.extraction.deep.units import Unit
from relumine.run import Run

TRUTH = rl.planted.deep((30, 10, 10, 10, 10, 1), rng=0)


def inquiry(layers=2):
    run = Run.of(rng=1)
    at = Inquiry(Asked(TRUTH, run.rng, np.inf, lambda: False), TRUTH.d, run)
    at.known = Known(TRUTH.d, TRUTH.hidden[:layers])
    return at


def surface_of(at, theta):
    lift = Lift(at.known)
    return Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool)), lines_through(lift, at.rng)


def test_the_box_bends_all_over_the_surface_of_a_unit_and_kinks_give_its_digits():
    at = inquiry()
    theta = np.append(TRUTH.hidden[2][0][4], TRUTH.hidden[2][1][4])
    surface, lines = surface_of(at, theta + 1e-8 * np.cos(np.arange(len(theta))))
    found = shown(at.ask, surface, chosen(lines, surface, [], 40, at.rng))
    assert len(found.hits) > 30
    assert not found.missed
    better = sharpened(surface, found.hits)
    scaled = better.theta / np.linalg.norm(better.theta) * np.sign(better.theta @ theta)
    np.testing.assert_allclose(scaled, theta / np.linalg.norm(theta), atol=1e-11)


def test_it_does_not_bend_all_over_what_a_unit_further_behind_looks_like():
    at = inquiry()
    (W, b), (A, e) = TRUTH.hidden[2], TRUTH.hidden[3]
    on = np.arange(10) % 2 == 0  # the fourth layer's unit where these of the third are on
    surface, lines = surface_of(at, np.append(A[3, on] @ W[on], A[3, on] @ b[on] + e[3]))
    found = shown(at.ask, surface, chosen(lines, surface, [], 40, at.rng))
    assert found.score < 0.5


def test_units_found_are_those_of_the_next_layer():
    at = inquiry()
    search = Next(at, [], precise=True)
    search.look(None, 0, 0)
    search.trace()
    truth = np.column_stack(TRUTH.hidden[2])
    units = set()
    for s in search.surfaces:
        T = np.where(s.seen, truth, 0.0)
        T /= np.linalg.norm(T, axis=1, keepdims=True)
        theta = np.where(s.seen, s.theta, 0.0)
        cosine = np.abs(T @ theta) / np.linalg.norm(theta)
        assert cosine.max() > 1.0 - 1e-12  # none belongs to the fourth layer
        units.add(int(cosine.argmax()))
    assert len(units) >= 4


def test_a_unit_found_twice_with_few_digits_is_one_unit():
    at = inquiry()
    search = Next(at, [], precise=True)
    theta = np.append(TRUTH.hidden[2][0][4], TRUTH.hidden[2][1][4])
    for off in (2e-6, 0.0):
        surface, lines = surface_of(at, theta)
        surface.points = shown(at.ask, surface, chosen(lines, surface, [], 30, at.rng)).hits
        surface.theta = theta + off * np.cos(np.arange(len(theta)))
        search.keep(surface)
    (found,) = search.surfaces
    scaled = found.theta / np.linalg.norm(found.theta) * np.sign(found.theta @ theta)
    np.testing.assert_allclose(scaled, theta / np.linalg.norm(theta), atol=1e-10)


def test_kinks_left_are_those_on_no_surface():
    search = Next(inquiry(), [], precise=True)
    search.look(None, 0, 0)
    surface, _ = surface_of(search.at, np.append(TRUTH.hidden[2][0][4], TRUTH.hidden[2][1][4]))
    search.surfaces = [surface]
    left = {id(w) for w in search.free if not surface.shows(w.point)}
    assert {id(w) for w in search.rest()} == left


def test_a_layer_measured_again_gets_its_digits_back():
    at = inquiry()
    W, b = TRUTH.hidden[1]
    at.known = Known(TRUTH.d, (TRUTH.hidden[0], (W + 1e-8 * np.sin(np.arange(W.size)).reshape(W.shape), b)))
    assert measured_again(at)
    V, c = at.known.layers[1]
    size = np.linalg.norm(W, axis=1) / np.linalg.norm(V, axis=1)
    assert np.abs(V * size[:, None] - W).max() < 1e-10
    assert np.abs(c * size - b).max() < 1e-10


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


def test_planes_of_units_are_there_everywhere_and_those_of_maxima_are_not():
    at = inquiry(0)
    W, b = TRUTH.hidden[0]
    assert everywhere(at, W, b)
    V, a = np.random.default_rng(2).normal(size=(2, 12, 30))
    pooled = Inquiry(
        Asked(lambda X: np.maximum((X @ V.T).reshape(-1, 6, 2).max(axis=2), 0.0) @ a[0, :6], at.rng, np.inf, bool),
        30,
        at.run,
    )
    assert not everywhere(pooled, V[::2] - V[1::2], np.zeros(6))  # where the two of a pool are equal
    assert not everywhere(pooled, V, np.zeros(12))


def test_what_no_kink_shows_is_not_called_known():
    at = inquiry()
    theta = np.append(TRUTH.hidden[2][0][4], TRUTH.hidden[2][1][4])
    surface, lines = surface_of(at, theta)
    X, F = lines.crossings(surface)
    j = int((F[:, :-1] > 0.0).mean(axis=0).argmin())
    surface.points = list(X[F[:, j] == 0.0])  # kinks where one unit in front is off
    found = surface.settled()
    assert not found.seen[j]
    assert found.seen.sum() == len(theta) - 1
    scale = found.theta[0] / theta[0]
    np.testing.assert_allclose(found.theta[found.seen], scale * theta[found.seen], atol=1e-9)
    surface.points = list(X)
    assert surface.settled().seen.all()


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
    W_found, known = gradients.weights(start, b, found, known)
    assert known.all()
    np.testing.assert_allclose(W_found, W, atol=1e-7)


def test_a_weight_between_units_that_are_seldom_on_together_is_found():
    """Weights that count at few of the random inputs, and at no corner near the others."""
    truth = rl.planted.deep([784, *[8] * 8, 1], rng=84000)
    run = Run.of(rng=3)
    at = Inquiry(Asked(lambda X: truth(X), run.rng, np.inf, lambda: False), 784, run)
    at.known = Known(784, truth.hidden[:2])
    with at.within(np.linalg.qr(truth.hidden[0][0].T)[0]):
        gradients, some = Gradients(at), [0, 1, 2, 3, 4, 5, 7]  # no input turns the other one on
        W, b = truth.hidden[2][0][some], truth.hidden[2][1][some]
        together = ((gradients.many @ W.T + b) > 0.0).T.astype(float) @ (gradients.many > 0.0).astype(float)
        assert together[0, 6] == 0.0
        assert 0.0 < together[1, 6] < 40.0
        known = np.ones(W.shape, dtype=bool)
        known[[0, 1], 6] = False
        xi, left_open = gradients.signs(np.where(known, W, 0.0), b, known)
        assert xi.min() == 1.0
        assert not left_open.any()
        found, seen = gradients.weights(np.where(known, W, 0.0), b, xi, known)
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


@pytest.mark.slow
def test_four_hidden_layers_come_back_whole():
    truth = rl.planted.deep((20, 8, 8, 8, 8, 1), rng=1)
    found = rl.extract(lambda X: truth(X), dim=20, rng=2, on_failure="return")
    assert found.status.value == "exact"
    assert rl.metrics.parameter_error(truth, found.network) < 1e-6


def test_places_are_chosen_on_both_sides_of_other_surfaces():
    at = inquiry()
    surface, lines = surface_of(at, np.append(TRUTH.hidden[2][0][4], TRUTH.hidden[2][1][4]))
    other, _ = surface_of(at, np.append(TRUTH.hidden[2][0][1], TRUTH.hidden[2][1][1]))
    side = other.value(chosen(lines, surface, [other], 0, at.rng)) > 0.0
    assert side.sum() == probing._SIDES
    assert (~side).sum() == probing._SIDES


def test_lines_in_front_of_every_layer_are_random_ones() -> None:
    """Behind a single known layer its own units are measured again along lines with no layer in front: no corners."""
    lines = lines_through(Lift(Known(3)), np.random.default_rng(0))
    assert len(lines.starts) > 0
    assert lines.starts.shape[1] == 3
    assert np.isfinite(lines.F).all()


def test_a_missing_unit_shows_in_gradients_where_no_move_shows_it():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    gradients = Gradients(at)
    seen = np.ones(W.shape, dtype=bool)
    xi, left = gradients.signs(W, b, seen)
    assert not left.any()
    H, fits = gradients.told(W, b, xi, seen)
    assert len(H) > 10
    assert fits.all()
    few = np.arange(10) != 4
    H, fits = gradients.told(W[few], b[few], xi[few], seen[few])
    on = H @ W[4] + b[4] > 0.0
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
    search, seen = Next(at, [], precise=True), np.ones(W.shape, dtype=bool)
    search.gradients = Gradients(at)
    xi, left = search.gradients.signs(W, b, seen)
    assert not left.any()
    told = 0
    for i in range(10):
        flip = np.where(np.arange(10) == i, -1.0, 1.0)
        for sign in (np.ones(10), flip):
            found = search.sides(sign[:, None] * W, sign * b, sign * xi, seen, np.arange(10) == i)
            assert not np.delete(found, i).any()
            assert np.isnan(found[i]) or found[i] == sign[i]
            told += found[i] == sign[i]
    assert told >= 6
    # what is no unit of this layer is left out, or stays open
    rng = np.random.default_rng(7)
    for _ in range(5):
        other = rng.normal(size=10)
        more = np.vstack([W, other / np.linalg.norm(other)])
        found = search.sides(
            more, np.append(b, 0.0), np.append(xi, 1.0), np.ones(more.shape, dtype=bool), np.arange(11) == 10
        )
        assert np.isnan(found[10]) or found[10] == 0.0


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
    found, xi = search.signed()
    np.testing.assert_allclose([u.w for u in found], [u.w for u in units])
    np.testing.assert_array_equal(xi, flip)


def test_surfaces_of_one_unit_of_which_different_weights_are_known_are_one():
    at = inquiry()
    search = Next(at, [], precise=True)
    theta = np.append(TRUTH.hidden[2][0][4], TRUTH.hidden[2][1][4])
    surface, lines = surface_of(at, theta)
    X = chosen(lines, surface, [], 400, at.rng)
    off = at.known(X) == 0.0
    for hidden in off.sum(axis=0).argsort()[-2:]:  # those that are off at most places
        seen = np.arange(len(theta)) != hidden
        points = list(X[off[:, hidden]])
        search.keep(Surface(surface.lift, surface.s, (1.0 + hidden) * theta * seen, seen, points))
    (found,) = search.surfaces
    assert found.seen.all()
    scaled = found.theta / np.linalg.norm(found.theta) * np.sign(found.theta @ theta)
    np.testing.assert_allclose(scaled, theta / np.linalg.norm(theta), atol=1e-8)


def test_regions_of_many_inputs_and_how_far_they_reach():
    at, rng = inquiry(), np.random.default_rng(3)
    X, ways = rng.normal(size=(2, 12, TRUTH.d))
    found = at.known.regions(X)
    for x, on in zip(X, found.on):
        np.testing.assert_array_equal(on, np.concatenate(at.known.before(x[None]), axis=1)[0] > 0.0)
        active, J, shift, rows, offsets = at.known.region(x)
        np.testing.assert_allclose(at.known(x[None])[0, active], J @ x + shift, atol=1e-12)
        assert (rows @ x + offsets >= 0.0).all()
    far, number = found.room(X, ways)
    for x, way, step, unit in zip(X, ways, far, number):
        sides = [
            np.concatenate(at.known.before((x + t * step * way)[None]), axis=1)[0] > 0.0 for t in (0.0, 0.999, 1.001)
        ]
        np.testing.assert_array_equal(sides[0], sides[1])
        np.testing.assert_array_equal(np.flatnonzero(sides[0] != sides[2]), [unit])


def test_in_the_coordinates_of_the_first_layer_nothing_else_changes():
    at, rng = inquiry(), np.random.default_rng(4)
    X, known = rng.normal(size=(5, TRUTH.d)), at.known
    Q = np.linalg.qr(known.layers[0][0].T)[0]
    with at.within(Q):
        assert at.dim == at.known.d == 10
        np.testing.assert_allclose(at.known(X @ Q), known(X), atol=1e-12)
        np.testing.assert_allclose(at.ask(X @ Q), TRUTH(X), atol=1e-12)
        assert at.rows(7)[0].shape == (7, 10)
    assert at.dim == TRUTH.d
    assert at.ask.data()[0].shape == (12, TRUTH.d)
    assert np.linalg.matrix_rank(at.pool[0]) == 7  # random rows are drawn in all coordinates
    np.testing.assert_allclose(at.known.layers[0][0], known.layers[0][0], atol=1e-12)
