"""A link with what is known about the digits of its answers.

A part computed as e^z/Σ has all its digits down to 1e-290. A part computed as 1 − p is a multiple of ε = 2⁻⁵³: then
log(1 − p) has the error ε/(1 − p), and none of its digits is left at z ≈ 37. Which of the two it is, is read off the
first answers. Rows with a part too small to have digits are not trusted: :meth:`Link.values` is NaN there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from relumine.arrays import Array, is_single
from relumine.links.form import Form, in_range, sums_to_one
from relumine.links.log import Exponential
from relumine.links.logit import Logit, TwoClasses
from relumine.links.softmax import Softmax
from relumine.results import InvalidInput

LinkName = Literal["auto", "logit", "softmax", "log"]


FORMS: tuple[Form, ...] = (TwoClasses(), Softmax(), Logit(), Exponential())  # of those that fit, the first is taken
LINKS = ("auto", *dict.fromkeys(form.name for form in (Logit(), *FORMS)))
WORDS = tuple(form.word for form in FORMS)
_EPS = 2.0**-53  # half a unit of the last place of numbers below 1: how a p near 1, and so 1 − p, is rounded
_SINGLE = 2.0**-24  # the same in single precision
_LEAST = 1e-290, 1e-30  # a part with all its digits may be so small, in double and single precision
# ε times this is the noise allowed in log(1 − p), in double and single precision: z < 9 then, and z < 3.5
_DIGITS = 2.0**13, 2.0**5
_SMALL = 2.0**-12  # parts below this tell which kind they are: one of all its digits is seldom a multiple of ε
_DECIMALS = 11  # to which probabilities may not be rounded: with 9, lines took the network for a curve
_ROUNDED = 1e3  # times the last decimal: then a logarithm has an error of 5e-4 at most
_VARIED = 8  # different answers from which rounding can be told


def form_of(word: str) -> Form:
    """The form that a file names.

    Examples
    --------
    >>> form_of("two classes").answers(np.zeros(1))
    array([[0.5, 0.5]])
    """
    for form in FORMS:
        if form.word == word:
            return form
    raise ValueError(f"{word!r} is no link; known: {', '.join(WORDS)}")


@dataclass(frozen=True)
class Link:
    """How answers are mapped back.

    ``least``: the smallest trusted value of each part, (r,). ``grid``: values are rounded to multiples of this, so that
    all of them are as noisy as the worst trusted one: the search along lines assumes the same noise everywhere.
    """

    form: Form
    least: tuple[float, ...] = ()
    grid: float = 0.0

    @property
    def name(self) -> str:
        """As a user asks for it."""
        return self.form.name

    def values(self, Y: Array) -> Array:
        """Answers (n, q) mapped back, NaN in rows that are not trusted."""
        parts = self.form.parts(Y)
        with np.errstate(divide="ignore", invalid="ignore"):  # log 0 is not trusted
            logs = np.log(parts)
            Z = self.form.values(logs)
        if self.grid:
            Z = np.round(Z / self.grid) * self.grid
        Z[~(np.isfinite(logs) & (parts >= np.array(self.least or 0.0))).all(axis=1)] = np.nan
        return np.asarray(Z)

    def answers(self, Z: Array) -> Array:
        """What the box answers for values of the network, (n,) or (n, q): the inverse of :meth:`values`."""
        return self.form.answers(Z)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the certificate must know."""
        if not self.least:
            return (self.form.note,)
        least = max(self.least)
        near = f"where every probability is above {least:.0e}" if self.form.probabilities else f"above {least:.0e}"
        return (
            self.form.note,
            f"answers were used {near}: smaller ones have too few digits, so kinks there are not found",
        )


def link_of(asked: str, Y: Array, rounded: bool = False) -> Link | None:
    """The link of answers Y (n, q) from all over the inputs; None for "auto" where they are not probabilities.

    Probabilities rounded to a few decimals are refused, unless ``rounded``: then small ones are not trusted.

    Examples
    --------
    >>> link_of("auto", np.array([[0.2, 0.5, 0.3], [1e-9, 0.25, 0.75 - 1e-9]])).name
    'softmax'
    """
    if in_range(Y) and np.isin(Y, (0.0, 1.0)).all():
        if asked == "auto" and not sums_to_one(Y):
            return None
        raise InvalidInput(
            "every answer is 0 or 1: labels, or probabilities rounded to these; a label says on which side of a "
            "boundary a row is, and nothing about how far from it",
            argument="link",
            remedy="ask for probabilities (predict_proba), at rows where they are neither 0 nor 1 (mean=, scale=)",
        )
    forms = [form for form in FORMS if (form.recognised if asked == "auto" else form.name == asked)]
    fits = next((form for form in forms if not form.refusal(Y)), None)
    if fits is None and asked != "auto":
        raise InvalidInput(f"link={asked!r} {forms[-1].refusal(Y)}", argument="link")
    return None if fits is None else _digits(Link(fits), Y, rounded)


def _digits(link: Link, Y: Array, allow_rounded: bool) -> Link:
    """The link with what the answers Y show of their digits; rounded probabilities are refused unless allowed."""
    single = is_single(Y)
    decimals = _decimals(Y) if link.form.probabilities else None
    if decimals is not None and not allow_rounded:
        raise InvalidInput(
            f"the probabilities are rounded to {decimals} decimals: their logits have too few digits to show kinks",
            argument="link",
            remedy="have the box answer all its digits",
        )
    eps, parts = (_SINGLE if single else _EPS), link.form.parts(Y)
    least = np.full(parts.shape[1], _LEAST[single])
    rounded = np.zeros(parts.shape[1], dtype=bool)
    for r, part in enumerate(parts.T) if link.form.probabilities else ():
        small = part[(part < _SMALL) & (part > 0.0)]
        # at most one in a thousand small numbers of all digits is such a multiple by chance; none small: not known
        rounded[r] = not len(small) or (np.mod(small / eps, 1.0) == 0.0).mean() > 0.5
        ends = np.sort(part)[:3]
        clipped = 10.0 * ends[0] if ends[0] == ends[-1] < _SMALL else 0.0  # some boxes keep p above a bound
        least[r] = max(1.0 / _DIGITS[single] if rounded[r] else least[r], clipped)
    if decimals is not None:
        least = np.maximum(least, _ROUNDED * 10.0**-decimals)
    grid = 2.0 * eps * _DIGITS[single] if rounded.any() else 0.0
    return replace(link, least=tuple(least.tolist()), grid=grid)


def _decimals(Y: Array) -> int | None:
    """To how many decimals all probabilities are rounded; None for many."""
    if len(np.unique(Y)) < _VARIED:
        return None
    fits = (np.abs(Y * 10.0**k - np.round(Y * 10.0**k)) <= 1e-15 * 10.0**k for k in range(1, _DECIMALS + 1))
    return next((k for k, fit in enumerate(fits, 1) if fit.all()), None)
