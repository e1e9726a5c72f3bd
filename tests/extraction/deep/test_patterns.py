"""Random inputs by the units that are on: every pattern has its turn, however few inputs have it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extraction.deep.four_layers import TRUTH

from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.patterns import Patterns, balanced


@given(st.lists(st.integers(0, 7), min_size=1, max_size=60), st.integers(1, 80), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_no_pattern_is_taken_twice_more_often_than_another_that_has_rows_left(kinds, count, seed):
    kinds = np.array(kinds)
    patterns = (kinds[:, None] >> np.arange(3)) & 1 > 0
    some = balanced(patterns, count, np.random.default_rng(seed))
    assert len(some) == min(count, len(kinds)) == len(set(some.tolist()))
    taken, there = np.bincount(kinds[some], minlength=8), np.bincount(kinds, minlength=8)
    left = taken < there
    if left.any():
        assert taken.max() <= taken[left].min() + 1


def test_each_pattern_has_one_pair_of_inputs_that_differ():
    known = Known(30, TRUTH.hidden[:2])
    patterns = Patterns(known, np.random.default_rng(0))
    seen, count = set(), patterns.left
    while (ends := patterns.pairs(7)) is not None:
        on, other = (known(X) > 0.0 for X in ends)
        np.testing.assert_array_equal(on, other)
        assert (np.abs(known(ends[0]) - known(ends[1])).max(axis=1)[on.any(axis=1)] > 0.0).all()
        seen |= {row.tobytes() for row in on}
    assert len(seen) == count == patterns.shown > 7
    assert patterns.left == 0
