"""A layer that units behind it have told: what of it is no unit of its own, and which units it still lacks."""

import numpy as np
from tests.extraction.deep.four_layers import TRUTH, inquiry

from relumine.extraction.deep.behind import settling
from relumine.extraction.deep.behind.passing import Chain, Settled
from relumine.extraction.deep.behind.settling import checked, mend, sums
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.again import lines_through
from relumine.extraction.deep.surfaces.surface import Lift, Surface


def points_on(lines, surface, side, count=12):
    """Places of a surface at which ``side`` holds of φ."""
    X, F = lines.crossings(surface)
    return list(X[[bool(side(f)) for f in F]][:count])


def third_layer(at, keep):
    """The third layer, with only some units, as units behind it would have told it."""
    W, b = (part[keep] for part in TRUTH.hidden[2])
    lift, kinks = Lift(at.known), []
    lines = lines_through(lift, at.rng, 20)
    for theta in np.column_stack([W, b]):
        kinks.append(points_on(lines, Surface(lift, np.zeros(0), theta, np.ones(11, dtype=bool)), lambda f: True))
    chain = Chain(Known(TRUTH.d, (*at.known.layers, (W, b))), [])
    return Settled(chain, [], len(b), 0, np.zeros(W.shape, dtype=bool), kinks, np.arange(len(b)))


def test_a_unit_that_a_settled_layer_lacks_is_found_next_to_gradients_it_does_not_explain():
    at = inquiry()
    front = at.known
    found, open_, sure = checked(at, front, third_layer(at, np.arange(10) != 4), None)
    assert (found.shown, open_, sure) == (10, 0, True)
    assert at.known is front
    T = np.column_stack(found.chain.front.layers[-1])
    truth = np.column_stack(TRUTH.hidden[2])
    T, truth = (M / np.linalg.norm(M[:, :-1], axis=1, keepdims=True) for M in (T, truth))
    apart = np.linalg.norm(T[:, None] - truth, axis=2)  # with its sign
    np.testing.assert_array_equal(np.sort(apart.argmin(axis=1)), np.arange(10))
    assert apart.min(axis=1).max() < 1e-7


def test_of_a_settled_layer_what_is_a_sum_over_others_is_not_its_own():
    at = inquiry()
    lift, found = Lift(at.known), third_layer(at, np.arange(10) < 10)
    assert not len(sums(at, found))
    (W, b), (A, e) = TRUTH.hidden[2], TRUTH.hidden[3]
    x = at.rng.normal(size=(4000, TRUTH.d))
    patterns, often = np.unique(at.known(x) @ W.T + b > 0.0, axis=0, return_counts=True)
    few = patterns.sum(axis=1) < 10
    on = patterns[few][often[few].argmax()]
    row, shift = A[3, on] @ W[on], A[3, on] @ b[on] + e[3]
    lines = lines_through(lift, at.rng, 40)
    surface = Surface(lift, np.zeros(0), np.append(row, shift), np.ones(11, dtype=bool))
    T = np.column_stack([W, b])
    there = points_on(lines, surface, lambda f: ((T @ f > 0.0) == on).all())
    assert there
    front = Known(TRUTH.d, (*at.known.layers, (np.vstack([W, row]), np.append(b, shift))))
    more = found._replace(
        chain=Chain(front, []), hidden=np.zeros((11, 10), dtype=bool), kinks=[*found.kinks, there], units=np.arange(11)
    )
    np.testing.assert_array_equal(sums(at, more), [10])


def without_a_unit(at, unit=4):
    """Three layers are known, and of the third all units but one; inputs that show it: few of the others are on."""
    (W, b), keep = TRUTH.hidden[2], np.arange(10) != unit
    at.known = Known(TRUTH.d, (*TRUTH.hidden[:2], (W[keep], b[keep])))
    at.certain = at.known.layers
    X = np.random.default_rng(3).normal(size=(4000, TRUTH.d))
    H, Z = TRUTH.activations_before(X, 2), TRUTH.activations_before(X, 3)
    return X[(Z[:, unit] > 0.1) & ((Z > 0.0).sum(axis=1) < (H > 0.0).sum(axis=1))][:20]


def test_it_is_told_which_known_layer_is_not_all_there():
    at = inquiry(3)
    assert at.lacking(without_a_unit(inquiry(3))) is None
    k, shown = at.lacking(without_a_unit(at))
    assert k == 3
    assert len(shown) > 2


def test_a_known_layer_gets_the_unit_that_inputs_behind_it_show():
    at = inquiry(3)
    k, X = at.lacking(without_a_unit(at))
    mend(at, k, (X, X))
    assert at.certain == TRUTH.hidden[:2]  # until units behind it are found again
    assert not at.doubtful
    W, b = at.known.layers[2]
    T, truth = np.column_stack([W, b]), np.column_stack(TRUTH.hidden[2])
    T, truth = (M / np.linalg.norm(M[:, :-1], axis=1, keepdims=True) for M in (T, truth))
    apart = np.linalg.norm(T[:, None] - truth, axis=2)
    np.testing.assert_array_equal(np.sort(apart.argmin(axis=1)), np.arange(10))
    assert apart.min(axis=1).max() < 1e-7
    assert any("layer 3" in note and "1 more" in note for note in at.notes)


def test_a_layer_that_cannot_be_mended_is_a_doubt(monkeypatch):
    at = inquiry(3)
    X = without_a_unit(at)
    monkeypatch.setattr(settling, "checked", lambda at, front, found, signs: (found, 0, False))
    monkeypatch.setattr(settling, "_between", lambda *_: None)
    mend(at, 3, (X, X))
    assert at.doubtful
    assert len(at.certain) == 2
    assert any("was not found" in note for note in at.notes)


def test_a_layer_with_a_new_unit_that_does_not_pass_all_checks_is_a_doubt(monkeypatch):
    at = inquiry(3)
    X = without_a_unit(at)
    whole = third_layer(inquiry(2), np.arange(10) < 10)
    monkeypatch.setattr(settling, "checked", lambda at, front, found, signs: (whole, 0, False))
    mend(at, 3, (X, X))
    assert at.known.width == 10
    assert at.doubtful
