"""Weights that stay open behind two known layers: kinks that agree on them, and where these are looked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extraction.deep.four_layers import TRUTH, inquiry

import relumine as rl
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.asking.kinks import straight
from relumine.extraction.deep.asking.witnesses import Chord, Witness
from relumine.extraction.deep.behind.across import across
from relumine.extraction.deep.behind.further import Next
from relumine.extraction.deep.behind.orient import Signs
from relumine.extraction.deep.behind.sparse import Gradients
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.surface import Lift, Surface, agreeing
from relumine.run import Run


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(0, 6))
@settings(max_examples=40, deadline=None)
def test_only_kinks_of_the_unit_agree_on_what_is_free_of_it(seed, free, mine):
    """Of its own three are enough, if all say the same: where several directions are free, no two kinks do."""
    rng = np.random.default_rng(seed)
    theta, N = rng.normal(size=7), np.linalg.qr(rng.normal(size=(7, free)))[0]
    theta /= np.linalg.norm(theta)
    known = theta - N @ (N.T @ theta)
    surface = Surface(Lift(Known(6)), np.zeros(0), known, np.zeros(7, dtype=bool), free=N)
    X = rng.normal(size=(mine + 30, 6))
    own = X[:mine]
    own -= np.outer(own @ theta[:-1] + theta[-1], theta[:-1]) / (theta[:-1] @ theta[:-1])
    found = agreeing(surface, X)
    if free > 1 or mine < 3:
        assert len(found) == 0
    else:
        F = np.column_stack([own, np.ones(mine)])
        clear = np.abs(F @ N)[:, 0] > 1e-2 * np.linalg.norm(F, axis=1)
        np.testing.assert_array_equal(found, own[clear] if clear.sum() >= 3 else own[:0])


def test_three_kinks_tell_an_open_weight_and_two_do_not():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    lift, j = Lift(at.known), 3
    theta = np.append(W[4], b[4]) / np.linalg.norm(np.append(W[4], b[4]))
    seen = np.arange(11) != j
    X = at.rng.normal(size=(200_000, 30))
    H = at.known(X)
    z = np.column_stack([H, np.ones(len(H))]) @ theta
    up, down = X[(z > 0.0) & (H[:, j] > 0.1)][:40], X[(z < 0.0) & (H[:, j] > 0.1)][:40]
    kinks = []
    for a, c in zip(up, down):  # where the way between the two crosses the surface with unit j on
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            on = float(np.append(at.known((a + middle * (c - a))[None])[0], 1.0) @ theta) > 0.0
            low, high = (middle, high) if on else (low, middle)
        x = a + low * (c - a)
        if at.known(x[None])[0, j] > 1e-2:
            kinks.append(x)
    others = at.rng.normal(size=(300, 30))
    for count, told in ((2, False), (3, True), (8, True)):
        surface = Surface(lift, np.zeros(0), np.where(seen, theta, 0.0), seen.copy())
        found = agreeing(surface, np.concatenate([kinks[:count], others]))
        assert len(found) == (count if told else 0)
        if told:
            surface.take(found)
            assert surface.seen.all()
            np.testing.assert_allclose(surface.theta / np.linalg.norm(surface.theta), theta, atol=1e-8)


@pytest.mark.parametrize("right", [True, False])
def test_the_search_takes_open_weights_from_kinks_at_hand_if_the_box_bends_where_they_say(monkeypatch, right):
    """Kinks that agree on a wrong weight are other units': where they put the surface, the box is straight."""
    at = inquiry()
    W, b = TRUTH.hidden[2]
    lift, j = Lift(at.known), 3
    theta = np.append(W[4], b[4]) / np.linalg.norm(np.append(W[4], b[4]))
    wrong = theta + (0.0 if right else 0.3) * np.eye(11)[j]
    search = Next(at, [], precise=True)
    X, F = search.lines.crossings(Surface(lift, np.zeros(0), wrong, np.ones(11, dtype=bool)))
    kinks = X[F[:, j] > 0.05 * np.linalg.norm(F, axis=1)][:12]
    assert len(kinks) > 5
    seen = np.arange(11) != j
    surface = Surface(lift, np.zeros(0), np.where(seen, theta, 0.0), seen, list(X[F[:, j] == 0.0][:30]))
    search.surfaces = [surface]
    chord = Chord(at.known.moving(kinks[0]), straight(kinks[0], kinks[1]), 0)
    search.free = [Witness(chord, x, np.eye(30)[0], 1.0, 1.0, 1.0, 0.0, 0.0, (0.0, 0.0)) for x in kinks]
    monkeypatch.setattr("relumine.extraction.deep.surfaces.held.extended", lambda *_: False)
    search.extend()
    assert 0 < at.ask.count < 400
    assert surface.seen.all() is np.bool_(right)
    if right:
        assert abs(surface.theta @ theta) / np.linalg.norm(surface.theta) > 1.0 - 1e-12
    else:
        assert len(surface.points) == 30
        np.testing.assert_array_equal(surface.theta, np.where(seen, theta, 0.0))


def rare_pair():
    """A unit behind, and one in front of it, that are on together at few inputs or none of many; both exist."""
    truth = rl.planted.deep((12, 6, 6, 6, 1), rng=3)
    run = Run.of(rng=1)
    at = Inquiry(Asked(lambda X: truth(X), run.rng, np.inf, lambda: ""), truth.d, run)
    at.known = Known(truth.d, truth.hidden[:2])
    return truth, at


def test_ways_across_a_unit_have_the_unit_in_front_on_at_both_ends():
    truth, at = rare_pair()
    W, b = truth.hidden[2]
    crossed = 0
    for i, j in np.ndindex(W.shape):
        known = np.ones(W.shape, dtype=bool)
        known[i, j] = False
        ends = across(at, np.where(known, W, 0.0), b, known)
        if ends is None:  # they are on together nowhere, or never apart
            continue
        for X, side in zip(ends, (-1.0, 1.0)):
            H = at.known(X)
            crossed += int((H[:, j] > 0.0).all() and (side * (H @ np.where(known, W, 0.0)[i] + b[i]) > 0.0).all())
    assert crossed > 1.4 * W.size


def test_gradients_are_asked_for_where_they_tell_of_an_open_sign():
    """Those at which as many units are on as there are directions tell nothing of one more."""
    at = inquiry()
    W, b = TRUTH.hidden[2]
    gradients = Gradients(at)
    xi = np.where(np.arange(10) == 4, 0.0, 1.0)
    gradients.around(W, b, 8, np.arange(10) == 4, xi)
    points, _ = gradients.told(W[xi != 0.0], b[xi != 0.0], xi[xi != 0.0], np.ones((9, 10), dtype=bool))
    sides = np.array([W[4] @ p.h + b[4] > 0.0 for p in points])
    assert min(sides.sum(), (~sides).sum()) >= 5
    assert len(points) == len(gradients.points)  # all of them tell


def test_more_gradients_are_asked_for_beside_one():
    at = inquiry()
    gradients, x = Gradients(at), at.rng.normal(size=30)
    gradients.beside(x[None])
    assert len(gradients.points) > 3
    W, b = TRUTH.hidden[2]
    near = np.array([p.x for p in gradients.points])
    assert np.median(np.linalg.norm(near - x, axis=1)) < np.linalg.norm(x)
    _, fits = gradients.told(W, b, np.ones(10), np.ones(W.shape, dtype=bool))
    assert fits.all()


@pytest.mark.parametrize("lacking", [True, False])
def test_stretches_on_which_a_unit_is_missing_are_looked_at_before_the_search_gives_up(monkeypatch, lacking):
    """However long nothing new has come."""
    at = inquiry()
    looked = []

    class Quiet(Next):
        covered = further = True

        def look(self, *_):
            looked.append(self.signs is not None and self.signs.missing is not None)
            if self.signs is not None:
                self.signs.missing = None

        def signed(self):
            if self.signs is None:
                self.signs = Signs(at)
                self.signs.open = True
                self.signs.missing = (np.zeros((1, 30)), np.ones((1, 30))) if lacking else None

    search = Quiet(at, [], precise=True)
    search.surfaces = [Surface(search.lift, np.zeros(0), np.ones(11), np.ones(11, dtype=bool), [np.zeros(30)])]
    for name in ("trace", "compare"):
        monkeypatch.setattr(search, name, lambda: None)
    monkeypatch.setattr(search, "rest", lambda: [None])  # kinks of layers further behind
    monkeypatch.setattr("relumine.extraction.deep.behind.further._QUIET", 13)  # signs come with the last look
    search.all(40)
    assert any(looked) is lacking
