"""The checks of single arguments that every function for users needs; an error says the name and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relumine.arrays import Array
from relumine.results import InvalidInput


def one_of(name: str, value: Any, known: Sequence[Any]) -> None:
    """Raise unless ``value`` is one of the ``known`` ones.

    Examples
    --------
    >>> one_of("goal", "speed", ("auto", "function"))
    Traceback (most recent call last):
    ...
    relumine.results.errors.InvalidInput: goal must be 'auto' or 'function'; got 'speed'
    """
    # words are compared as words: an array compared with == would give an array
    if not any(value is other or (isinstance(value, str) and value == other) for other in known):
        *others, last = map(repr, known)
        raise InvalidInput(f"{name} must be {', '.join(others)} or {last}; got {value!r}", argument=name)


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number, of Python or numpy, and at least ``least``; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def whole(name: str, value: Any, least: int) -> None:
    """Raise unless ``value`` is a whole number, at least ``least``."""
    if not is_whole(value, least):
        raise InvalidInput(f"{name} must be a whole number, at least {least}; got {value!r}", argument=name)


def is_number(value: Any) -> bool:
    """Whether a value is a real number of Python or numpy; True and False are none."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def positive(name: str, value: Any, what: str = "") -> None:
    """Raise unless ``value`` is a number above 0; ``what`` says of which unit."""
    if not (is_number(value) and value > 0.0):
        raise InvalidInput(f"{name} must be a positive number{what}, got {value!r}", argument=name)


def vector(name: str, value: Any, d: int, finite: bool = True) -> Array:
    """A number, or one for each of d columns, as (d,); none is NaN, and none infinite unless that is allowed.

    Examples
    --------
    >>> vector("scale", 2.0, 3)
    array([2., 2., 2.])
    """
    try:
        numbers = np.broadcast_to(np.asarray(value, dtype=np.float64), (d,)).copy()
    except (ValueError, TypeError):
        raise InvalidInput(f"{name} must be a number or {d} numbers, got {value!r}", argument=name) from None
    if np.isnan(numbers).any() or (finite and np.isinf(numbers).any()):
        raise InvalidInput(f"{name} must be finite", argument=name)
    return numbers


def generator(rng: Any) -> np.random.Generator:
    """The random numbers of a seed or a generator; None: other ones each time."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"rng must be a whole number ≥ 0, a numpy Generator or None; got {rng!r}", argument="rng"
        ) from None
