"""Behind two known layers, with others further behind: units from kinks that agree, and signs from sparse gradients."""

import numpy as np

import relumine as rl
from relumine.extraction.deep import sparse
from relumine.extraction.deep.box import Asked
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.inquiry import Inquiry
from relumine.extraction.deep.kinks import segments
from relumine.extraction.deep.merge import Merger
from relumine.extraction.deep.places import chords
from relumine.extraction.deep.sparse import sparse_signs
from relumine.extraction.deep.surfaces import Lift
from relumine.extraction.deep.witnesses import Chord, witnesses_of
from relumine.run import Run

TRUTH = rl.planted.deep((30, 10, 10, 10, 10, 1), rng=0)


def inquiry():
    run = Run.of(rng=1)
    at = Inquiry(Asked(TRUTH, run.rng, np.inf, lambda: False), TRUTH.d, run)
    at.known = Known(TRUTH.d, TRUTH.hidden[:2])
    return at


def test_kinks_that_agree_are_units_of_the_next_layer():
    at = inquiry()
    lift = Lift(at.known)
    merger = Merger(at.ask, lift, at.rng)
    for _ in range(3):
        charts, starts, ends = chords(at.known, 20, at.rng)
        found = segments(at.ask, starts, ends, 1.0, 100_000)
        merger.chords += [Chord(chart, segment, 0) for chart, segment in zip(charts, found)]
    merger.add([w for chord in merger.chords for w in witnesses_of(chord, 1.0)])
    surfaces = merger.surfaces()
    truth = np.column_stack(TRUTH.hidden[2])
    units = set()
    for s in surfaces:
        T = np.where(s.seen, truth, 0.0)
        T /= np.linalg.norm(T, axis=1, keepdims=True)
        theta = np.where(s.seen, s.theta, 0.0)
        cosine = np.abs(T @ theta) / np.linalg.norm(theta)
        assert cosine.max() > 1.0 - 1e-8  # none belongs to the fourth layer
        units.add(int(cosine.argmax()))
    assert len(units) >= 4


def test_signs_from_gradients_that_few_units_explain():
    at = inquiry()
    W, b = TRUTH.hidden[2]
    flip = np.random.default_rng(5).choice([-1.0, 1.0], size=len(b))
    found = sparse_signs(at, flip[:, None] * W, flip * b)
    assert found is not None
    np.testing.assert_array_equal(found, flip)


def test_no_signs_where_the_units_are_others(monkeypatch):
    monkeypatch.setattr(sparse, "_TRIED", 30)
    at = inquiry()
    W, b = TRUTH.hidden[2]
    other = np.random.default_rng(6).normal(size=W.shape)
    assert sparse_signs(at, other, b) is None
