"""A unit behind two known layers that is on nearly everywhere: by the gradients that no signs of the others explain."""

import numpy as np
import pytest
from tests.extraction.four_layers import TRUTH

from relumine.deep import DeepNetwork
from relumine.extraction.deep.balls import Point
from relumine.extraction.deep.box import Asked
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.further import Next
from relumine.extraction.deep.inquiry import Inquiry
from relumine.extraction.deep.lacking import in_common, one_more, repeated
from relumine.extraction.deep.orient import Signs
from relumine.extraction.deep.units import Unit
from relumine.run import Run

UNIT = 3  # of the third layer


def with_a_unit_nearly_always_on():
    """TRUTH, but unit 3 of the third layer has one weight that is not positive."""
    maps = [(np.array(W), np.array(b)) for W, b in TRUTH.maps]
    W, b = maps[2]
    W[UNIT] = np.abs(W[UNIT])
    W[UNIT, 0] *= -1.2
    b[UNIT] = 0.4
    return DeepNetwork.of(maps, TRUTH.activation, TRUTH.head.v)


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
    assert in_common(points, flip[:, None] * V, np.zeros(6), wrong) is None


@pytest.mark.parametrize("more", [0, 2])
def test_no_unit_or_two_of_them_are_not_taken_for_one(more):
    rng = np.random.default_rng(4)
    V, w = rng.normal(size=(6, 14)), rng.normal(size=(2, 14))
    points = [Point(p.B, p.g + more / 2 * rng.normal(size=2) @ w @ p.B, p.h) for p in gradients(V, np.zeros(14), rng)]
    assert one_more(points, V, np.zeros(6), rng) is None


def test_a_unit_that_is_off_at_few_inputs_is_found_with_its_bias():
    truth = with_a_unit_nearly_always_on()
    run = Run.of(rng=1)
    at = Inquiry(Asked(truth, run.rng, np.inf, lambda: False), truth.d, run)
    at.known = Known(truth.d, truth.hidden[:2])
    W, b = truth.hidden[2]
    X = np.random.default_rng(0).normal(size=(20_000, truth.d))
    assert (at.known(X) @ W[UNIT] + b[UNIT] < 0.0).mean() < 0.01
    others = [i for i in range(len(b)) if i != UNIT]
    flip = np.random.default_rng(5).choice([-1.0, 1.0], size=len(b))
    units = [Unit(flip[i] * W[i], float(flip[i] * b[i]), np.ones(W.shape[1], dtype=bool), 1e-12) for i in others]
    signs = Signs(at)
    assert signs.told(units, []) is None  # no signs fit
    w = signs.lacking(units)
    assert w is not None
    assert signs.lacking(units) is None  # beside these units it is not looked for again
    size = np.linalg.norm(W[UNIT])
    assert abs(w @ W[UNIT]) > (1.0 - 1e-9) * size
    search = Next(at, [], True)
    search.place(w)
    (surface,) = search.surfaces
    theta = surface.theta / np.linalg.norm(surface.theta[:-1]) * np.sign(surface.theta[0] * W[UNIT, 0])
    np.testing.assert_allclose(theta, np.append(W[UNIT], b[UNIT]) / size, atol=1e-8)


def test_heights_that_several_lines_have_in_common():
    height = np.array([0.5, 1.0, 0.5, 2.0, 0.5, 1.0, 3.0, 1.0])
    line = np.array([0, 0, 1, 1, 2, 0, 2, 1])  # 1.0 on two lines only
    assert repeated(height, np.full(8, 1e-6), line) == [0.5]
