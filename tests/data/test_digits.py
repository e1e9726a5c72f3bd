"""Digits that rounding left are counted, whatever rounded them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relumine.data.digits import digits_of


def numbers(seed=0, n=300):
    return np.random.default_rng(seed).normal(size=n) * 3.0 + 1.0


def error(rounded, y):
    return np.sqrt(np.mean((rounded - y) ** 2))


def test_double_precision_needs_no_words():
    found = digits_of(numbers())
    assert found.words == ""
    assert found.left > 15.0


@pytest.mark.parametrize("k", range(1, 9))
def test_decimals(k):
    y = numbers(k)
    found = digits_of(y.round(k))
    assert found.rounding[0] == pytest.approx(error(y.round(k), y), rel=0.15)
    assert f"{k} decimal{'s' * (k > 1)}," in found.words


def test_whole_numbers():
    assert "whole numbers" in digits_of((10.0 * numbers()).round()).words


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_single_precision_at_every_scale(scale):
    y = scale * numbers()
    single = y.astype(np.float32).astype(np.float64)
    found = digits_of(single)
    assert found.words == "y has 7 digits (single precision)"
    assert found.rounding[0] == pytest.approx(error(single, y), rel=0.15)


@pytest.mark.parametrize("power", [11, 12, 13, 14, 15])
def test_an_offset_takes_digits(power):
    y = numbers()
    shifted = y + 10.0**power
    found = digits_of(shifted)
    assert found.rounding[0] == pytest.approx(error(shifted - 10.0**power, y), rel=0.15)
    assert "offset" in found.words
    assert found.left == pytest.approx(np.log10(y.std() / found.rounding[0]), abs=0.01)


def test_decimals_leave_no_more_than_their_rounding_and_single_precision_does():
    """Counts with noise of four times the rounding had been called a network up to rounding."""
    y = numbers()
    for rounded, least, most in ((y.round(2), 1.2, 2.0), (y.astype(np.float32).astype(float), 4.0, 8.0)):
        found = digits_of(rounded)
        assert least * found.rounding[0] < found.leaves[0] < most * found.rounding[0]


def test_decimals_kept_in_single_precision():
    y = numbers().round(2).astype(np.float32).astype(np.float64)
    assert "2 decimals" in digits_of(y).words


def test_the_column_with_the_fewest_digits_decides():
    y = numbers()
    found = digits_of(np.column_stack([y, y.round(2), y]))
    assert "2 decimals" in found.words
    assert found.rounding.shape == (3,)


@pytest.mark.parametrize("y", [np.ones(50), np.zeros(50), np.repeat([0.0, 1.0], 25)], ids=["one", "zero", "two values"])
def test_a_few_values_say_nothing_about_rounding(y):
    assert digits_of(y).words == ""


@given(st.integers(0, 10**6), st.floats(-8, 8))
def test_ordinary_numbers_are_never_taken_for_rounded_ones(seed, power):
    y = np.random.default_rng(seed).normal(size=40) * 10.0**power
    assert digits_of(y).words == ""


def test_a_name_goes_into_the_words():
    assert digits_of(numbers().astype(np.float32).astype(float), "X").words.startswith("X has")
