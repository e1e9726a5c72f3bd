"""Checks of single arguments: what passes, what is refused, and that the error names the argument."""

from __future__ import annotations

import numpy as np
import pytest

from relumine.arguments import generator, is_number, is_whole, one_of, positive, whole
from relumine.results import InvalidInput


def test_words() -> None:
    for value in ("a", np.str_("a"), None):
        one_of("word", value, ("a", None))
    for value in ("A", "", 0, ["a"], np.array(["a", "a"])):
        with pytest.raises(InvalidInput, match=r"word must be 'a', 'b' or None; got") as caught:
            one_of("word", value, ("a", "b", None))
        assert caught.value.argument == "word"


@pytest.mark.parametrize("value", [3, np.int8(3), 2**70])
def test_whole_numbers(value: object) -> None:
    whole("size", value, 3)
    assert is_number(value)


@pytest.mark.parametrize("value", [2, 3.0, True, "3", None, np.float64(3.0), np.array([3])])
def test_what_is_no_whole_number_of_three_or_more(value: object) -> None:
    assert not is_whole(value, 3)
    with pytest.raises(InvalidInput, match="size must be a whole number, at least 3") as caught:
        whole("size", value, 3)
    assert caught.value.argument == "size"


@pytest.mark.parametrize("value", [0, -1.0, True, "1", None, float("nan")])
def test_what_is_not_positive(value: object) -> None:
    positive("seconds", 1e-9)
    with pytest.raises(InvalidInput, match="seconds must be a positive number of rows") as caught:
        positive("seconds", value, " of rows")
    assert caught.value.argument == "seconds"


@pytest.mark.parametrize("rng", [-1, "x", 0.5])
def test_seeds(rng: object) -> None:
    assert generator(7).normal() == generator(7).normal()
    given = np.random.default_rng(0)
    assert generator(given) is given
    with pytest.raises(InvalidInput, match="rng must be") as caught:
        generator(rng)
    assert caught.value.argument == "rng"
