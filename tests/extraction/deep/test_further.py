"""Behind two known layers, with others further behind: units by places all over their surfaces."""

import numpy as np
import pytest
from tests.extraction.deep.four_layers import TRUTH, inquiry

import relumine as rl
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.behind.further import Next
from relumine.extraction.deep.behind.passing import Chain
from relumine.extraction.deep.behind.unsettled import Unsettled
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces import probing
from relumine.extraction.deep.surfaces.again import everywhere, lines_through, measured_again
from relumine.extraction.deep.surfaces.following import begun, extended
from relumine.extraction.deep.surfaces.probing import chosen, corrected, sharpened, shown
from relumine.extraction.deep.surfaces.surface import Lift, Surface
from relumine.run import Run


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


def points_on(lines, surface, side, count=12):
    """Places of a surface at which ``side`` holds of φ."""
    X, F = lines.crossings(surface)
    return list(X[[bool(side(f)) for f in F]][:count])


def test_what_is_on_one_side_of_all_others_is_asked_for_beyond_them():
    """A unit further behind is not there, and not taken for a unit again; one of this layer is, and stays."""
    at = inquiry()
    search = Next(at, [], precise=True)
    (W, b), (A, e) = TRUTH.hidden[2], TRUTH.hidden[3]
    T, lines = np.column_stack([W, b]), lines_through(search.lift, at.rng, 40)
    seen = np.ones(11, dtype=bool)
    x = at.rng.normal(size=(4000, TRUTH.d))
    patterns, often = np.unique(np.column_stack([at.known(x), np.ones(4000)]) @ T.T > 0.0, axis=0, return_counts=True)
    on = patterns[often.argmax()]
    behind, own = (
        Surface(search.lift, np.zeros(0), theta, seen)
        for theta in (np.append(A[3, on] @ W[on], A[3, on] @ b[on] + e[3]), T[4])
    )
    others = np.delete(np.arange(10), 4)
    behind.points = points_on(lines, behind, lambda f: ((T @ f > 0.0) == on).all())
    F = lines.crossings(own)[1]
    same = F[0] @ T[others].T > 0.0
    own.points = points_on(lines, own, lambda f: ((T[others] @ f > 0.0) == same).all())
    search.surfaces = [Surface(search.lift, np.zeros(0), theta, seen) for theta in T[others]]
    for s in search.surfaces:
        s.points = points_on(lines, s, lambda f: True)
    search.surfaces += [own, behind]
    for s in (own, behind):
        assert len(s.points) > 0
        assert len(probing.one_sided(s, search.surfaces[:-2]))
    assert not len(probing.one_sided(search.surfaces[0], search.surfaces[1:-2]))
    search.beyond_others()
    assert [s is own for s in search.surfaces].count(True) == 1
    assert not any(s is behind for s in search.surfaces)
    assert len(search.surfaces) == 10
    search.keep(behind)
    assert len(search.surfaces) == 10


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


def test_surfaces_followed_together_are_those_followed_one_by_one():
    """Of units of the next layer all weights that any way shows; one that is no unit's is none."""
    at = inquiry()
    lift, (W, b) = Lift(at.known), TRUTH.hidden[2]
    lines, begun_ = lines_through(lift, at.rng), []
    for theta in np.column_stack([W, b])[:4]:
        x = lines.crossings(Surface(lift, np.zeros(0), theta, np.ones(11, dtype=bool)))[0][0]
        begun_.append((x, lift.slopes(theta, np.zeros(0), x[None], lift.all.regions(x[None]))[0]))
    begun_.append((begun_[0][0], at.rng.normal(size=TRUTH.d)))
    some = [begun(lift, x, n, at.rng) for x, n in begun_]
    assert extended(at.ask, some, at.rng) == [True] * 4 + [False]
    for surface, theta in zip(some[:4], np.column_stack([W, b])):
        F = lift(np.array(surface.points), np.zeros(0))
        assert np.abs(F @ theta).max() <= 1e-9 * np.linalg.norm(F) * np.linalg.norm(theta)
        found, right = surface.theta[surface.seen], theta[surface.seen]
        assert abs(found @ right) >= (1.0 - 1e-12) * np.linalg.norm(found) * np.linalg.norm(right)
    assert sum(surface.seen.sum() for surface in some[:4]) >= 22
    assert extended(at.ask, [], at.rng) == []


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


def test_a_unit_without_a_place_is_no_doubt_and_one_that_is_not_there_is():
    at = inquiry(3)
    *front, (W, b) = at.known.layers
    never = np.append(b, -1e9 * np.linalg.norm(W[0]))  # no line crosses it
    at.known = Known(at.dim, (*front, (np.vstack([W, W[0]]), never)))
    assert measured_again(at)
    elsewhere = np.append(b, b[0] + 0.3 * np.linalg.norm(W[0]))  # the box does not bend there
    at.known = Known(at.dim, (*front, (np.vstack([W, W[0]]), elsewhere)))
    assert not measured_again(at)


def test_a_layer_measured_again_gets_its_digits_back():
    at = inquiry()
    W, b = TRUTH.hidden[1]
    at.known = Known(TRUTH.d, (TRUTH.hidden[0], (W + 1e-8 * np.sin(np.arange(W.size)).reshape(W.shape), b)))
    assert measured_again(at)
    V, c = at.known.layers[1]
    size = np.linalg.norm(W, axis=1) / np.linalg.norm(V, axis=1)
    assert np.abs(V * size[:, None] - W).max() < 1e-10
    assert np.abs(c * size - b).max() < 1e-10


def test_weights_of_a_unit_that_is_seldom_on_get_their_digits_back_too():
    """Random lines hardly meet a kink at which such a unit is on; lines are looked for that do."""
    truth = rl.planted.deep([100, *[16] * 8, 1], rng=304000).scaled()
    run = Run.of(rng=0)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: ""), 100, run)
    with at.within(np.linalg.qr(truth.hidden[0][0].T)[0]):
        front = ((truth.hidden[0][0] @ at.ask.basis, truth.hidden[0][1]), *truth.hidden[1:3])
        (W, b), on = truth.hidden[3], Known(16, front)(at.rng.normal(size=(1000, 16))) > 0.0
        assert on.mean(axis=0).min() < 0.02
        rough = W + 1e-7 * at.rng.normal(size=W.shape)
        at.known = Known(16, (*front, (rough / np.linalg.norm(rough, axis=1, keepdims=True), b)))
        assert measured_again(at)
        V, c = at.known.layers[-1]
    size = np.linalg.norm(V, axis=1)
    off = np.abs(V / size[:, None] - W) > 1e-8
    assert off.sum() <= 20  # of 256; without such lines 37. A few weights have no kink at which they count
    np.testing.assert_allclose(c / size, b, atol=1e-8)


def test_a_kink_of_another_unit_costs_no_digits():
    at = inquiry()
    theta = np.append(TRUTH.hidden[2][0][4], TRUTH.hidden[2][1][4])
    right, lines = surface_of(at, theta)
    hits = shown(at.ask, right, chosen(lines, right, [], 50, at.rng)).hits
    way = right.slope(hits[0])
    hits[0] = hits[0] + 8e-7 * np.linalg.norm(hits[0]) * way / np.linalg.norm(way)
    rough, _ = surface_of(at, theta + 1e-7 * np.cos(np.arange(len(theta))))
    better = corrected(rough, hits, 1e-7)
    np.testing.assert_allclose(better / np.linalg.norm(better), theta / np.linalg.norm(theta), atol=1e-11)


def test_all_layers_get_their_digits_back_one_after_the_other():
    at = inquiry()
    at.known = Known(
        TRUTH.d, tuple((W + 1e-8 * np.sin(np.arange(W.size)).reshape(W.shape), b) for W, b in TRUTH.hidden[:2])
    )
    Next(at, [], precise=False).again()
    assert not at.doubtful
    before = np.ones(TRUTH.d)  # lengths of units are free: those of the first layer change the weights of the second
    for (W, b), (V, c) in zip(TRUTH.hidden, at.known.layers):
        size = np.linalg.norm(W * before, axis=1) / np.linalg.norm(V, axis=1)
        assert np.abs(V * size[:, None] - W * before).max() < 1e-10
        assert np.abs(c * size - b).max() < 1e-10
        before = size


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


@pytest.mark.parametrize("false", [False, True])
def test_of_an_open_layer_only_units_that_are_further_behind_are_left_out(false):
    """One of the fourth layer, as it looks where some of the third are on, was taken for one of the third."""
    at = inquiry()
    (W, b), (A, e) = TRUTH.hidden[2], TRUTH.hidden[3]
    on = np.arange(10) % 2 == 0
    V, c = W, b
    if false:
        V, c = np.vstack([W, A[3, on] @ W[on]]), np.append(b, A[3, on] @ b[on] + e[3])
    chain = Chain(at.known, [(V, c)])
    at.known = chain.known
    search = Unsettled(at, [], precise=True)
    search.surfaces = [  # of the fourth layer, on (relu z, h, 1)
        Surface(search.lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool))
        for theta in np.column_stack([A, np.zeros((10, len(c) - 10 + 10)), e])
    ]
    found = search.without(chain)
    assert (found is None) == (not false)
    if found is not None:
        np.testing.assert_array_equal(found.layers[0][0], W)
