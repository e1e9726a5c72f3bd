"""A unit behind two known layers that is on nearly everywhere: by the gradients that no signs of the others explain."""

import numpy as np
import pytest
from tests.extraction.deep.four_layers import TRUTH

from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.behind.balls import Point
from relumine.extraction.deep.behind.further import Next
from relumine.extraction.deep.behind.lacking import biases, in_common, one_more, repeated
from relumine.extraction.deep.behind.orient import Signs
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.climb import headless, lowest
from relumine.extraction.deep.surfaces.surface import Surface
from relumine.run import Run

UNIT = 3  # of the third layer


def with_a_unit_always_on(but=-1.2, bias=0.4):
    """TRUTH, but unit 3 of the third layer has one weight that is not positive, or none."""
    maps = [(np.array(W), np.array(b)) for W, b in TRUTH.maps]
    W, b = maps[2]
    W[UNIT] = np.abs(W[UNIT])
    W[UNIT, 0] *= but
    b[UNIT] = bias
    return DeepNetwork.of(maps, TRUTH.activation, TRUTH.head.v)


def behind_two_layers(truth, rng):
    """The box with the first two layers known, and the units of the third, up to signs, but for one."""
    run = Run.of(rng=rng)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: ""), truth.d, run)
    at.known = Known(truth.d, truth.hidden[:2])
    W, b = truth.hidden[2]
    flip = np.random.default_rng(5).choice([-1.0, 1.0], size=len(b))
    others = [i for i in range(len(b)) if i != UNIT]
    return at, [Unit(flip[i] * W[i], float(flip[i] * b[i]), np.ones(W.shape[1], dtype=bool), 1e-12) for i in others]


def gradients(V, w, rng, count=80):
    """At random h what a sum over the units that are on, and w, may be; of some, not all directions."""
    found = []
    for h in np.abs(rng.normal(size=(count, V.shape[1]))):
        on = V @ h > 0.0
        B = np.linalg.qr(rng.normal(size=(V.shape[1], V.shape[1])))[0][:, rng.integers(0, 2) :]
        found.append(Point(B, (rng.normal(size=on.sum()) @ V[on] + rng.normal() * w) @ B, h))
    return found


def test_one_more_unit_and_all_signs_come_from_pairs_of_gradients():
    rng = np.random.default_rng(3)
    V, w = rng.normal(size=(6, 14)), rng.normal(size=14)
    flip = rng.choice([-1.0, 1.0], size=6)
    points = gradients(V, w, rng)
    xi, found = one_more(points, flip[:, None] * V, np.zeros(6), rng)
    np.testing.assert_array_equal(xi, flip)
    assert abs(found @ w) > (1.0 - 1e-12) * np.linalg.norm(w)
    wrong = flip.copy()
    wrong[2] *= -1.0
    assert in_common(points, flip[:, None] * V, np.zeros(6), wrong, np.ones(V.shape, dtype=bool)) is None


def test_the_gradients_with_the_most_digits_tell_the_unit():
    """One in four has eleven digits, the others seven."""
    rng = np.random.default_rng(4)
    V, w = rng.normal(size=(6, 14)), rng.normal(size=14)
    points = gradients(V, w, rng, 160)
    for i, p in enumerate(points):
        p.g = p.g * (1.0 + (1e-11 if i % 4 == 0 else 1e-7) * rng.normal(size=len(p.g)))
    w /= np.linalg.norm(w)
    found, _ = in_common(points, V, np.zeros(6), np.ones(6), np.ones(V.shape, dtype=bool))
    assert np.linalg.norm(found * np.sign(found @ w) - w) < 1e-10


def test_a_weight_that_no_kink_shows_hides_no_unit():
    """Unit 2 is off wherever unit 5 in front is on, and that is all that is known of this weight."""
    rng = np.random.default_rng(8)
    V, w = rng.normal(size=(6, 14)), rng.normal(size=14)
    V -= V.mean(axis=1, keepdims=True)  # each is on at half of the points or so
    V[2, 5] = -40.0
    points = gradients(V, w, rng, 120)
    for i, p in enumerate(points):  # at every other one unit 2 may be on
        p.h[5] = i % 2
        on = V @ p.h > 0.0
        p.g = (rng.normal(size=on.sum()) @ V[on] + rng.normal() * w) @ p.B
    known = np.ones(V.shape, dtype=bool)
    known[2, 5] = False
    kept = np.where(known, V, -100.0)
    xi, found = one_more(points, kept, np.zeros(6), rng, known)
    np.testing.assert_array_equal(xi, np.ones(6))
    assert abs(found @ w) > (1.0 - 1e-12) * np.linalg.norm(w)
    assert one_more(points, kept, np.zeros(6), rng) is None


@pytest.mark.parametrize("more", [0, 2])
def test_no_unit_or_two_of_them_are_not_taken_for_one(more):
    rng = np.random.default_rng(4)
    V, w = rng.normal(size=(6, 14)), rng.normal(size=(2, 14))
    points = [Point(p.B, p.g + more / 2 * rng.normal(size=2) @ w @ p.B, p.h) for p in gradients(V, np.zeros(14), rng)]
    assert one_more(points, V, np.zeros(6), rng) is None


def test_a_unit_that_is_off_at_few_inputs_is_found_with_its_bias():
    truth = with_a_unit_always_on(but=-1.2)
    at, units = behind_two_layers(truth, 2)
    W, b = truth.hidden[2]
    X = np.random.default_rng(0).normal(size=(20_000, truth.d))
    assert (at.known(X) @ W[UNIT] + b[UNIT] < 0.0).mean() < 0.01
    signs = Signs(at)
    assert signs.told(units, []) is None  # no signs fit
    w = next((w for _ in range(3) if (w := signs.lacking(units)) is not None), None)  # with more gradients each time
    assert w is not None
    size = np.linalg.norm(W[UNIT])
    assert abs(w @ W[UNIT]) > (1.0 - 1e-9) * size
    search = Next(at, [], True)
    assert search.place(w)
    (surface,) = search.surfaces
    theta = surface.theta / np.linalg.norm(surface.theta[:-1]) * np.sign(surface.theta[0] * W[UNIT, 0])
    np.testing.assert_allclose(theta, np.append(W[UNIT], b[UNIT]) / size, atol=1e-8)
    for _ in range(3):
        signs.lacking(units)
    assert signs.lacking(units) is None  # not for ever


def test_a_unit_that_is_off_only_where_all_in_front_is_small_is_found_with_its_bias():
    near = with_a_unit_always_on(but=1.0)
    known, w = Known(near.d, near.hidden[:2]), near.hidden[2][0][UNIT]
    X = np.random.default_rng(0).normal(size=(20_000, near.d)) * 2.0 ** np.random.default_rng(1).uniform(
        -2, 4, (20_000, 1)
    )
    height = np.quantile(known(X) @ w, 3e-4)
    truth = with_a_unit_always_on(but=1.0, bias=-height)
    at, _ = behind_two_layers(truth, 4)
    low = known(lowest(headless(known), w, 6, np.random.default_rng(2))) @ w
    assert (low < 0.95 * height).mean() > 0.5
    found = [c for c, _ in biases(at, w / np.linalg.norm(w))]
    np.testing.assert_allclose(
        min(found, key=lambda c: abs(c + height / np.linalg.norm(w))), -height / np.linalg.norm(w)
    )


def test_a_unit_that_no_input_turns_off_is_part_of_the_layer():
    truth = with_a_unit_always_on(but=1.0)
    at, units = behind_two_layers(truth, 2)
    W, b = truth.hidden[2]
    search = Next(at, [], True)
    search.surfaces = [
        Surface(search.lift, np.zeros(0), np.append(u.w, u.c), np.ones(len(u.w) + 1, dtype=bool)) for u in units
    ]
    found = search.signed()
    assert found is not None
    assert search.on == 1
    layer, xi = found
    full, true = (
        T / np.linalg.norm(T[:, :-1], axis=1, keepdims=True)
        for T in (np.array([sign * np.append(u.w, u.c) for u, sign in zip(layer, xi)]), np.column_stack([W, b]))
    )
    assert len(full) == len(true)
    unit = int(np.argmax(full[:, :-1] @ true[UNIT, :-1]))
    np.testing.assert_allclose(full[unit, :-1], true[UNIT, :-1], atol=1e-8)
    H = at.known(4.0 * np.random.default_rng(3).normal(size=(5000, truth.d)))
    assert (H @ full[unit, :-1] + full[unit, -1] > 0.0).all()
    for row in np.delete(true, UNIT, axis=0):  # with the signs of the truth
        assert np.abs(full - row).max(axis=1).min() < 1e-9


def test_heights_that_several_lines_have_in_common():
    height = np.array([0.5, 1.0, 0.5, 2.0, 0.5, 1.0, 3.0, 1.0])
    line = np.array([0, 0, 1, 1, 2, 0, 2, 1])  # 1.0 on two lines only
    assert repeated(height, np.full(8, 1e-6), line) == [0.5]
