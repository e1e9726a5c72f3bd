"""Links: answers that are probabilities, or other functions of a network's outputs, mapped back.

    logit     z = log p − log(1 − p)               one probability for each output, or two classes
    softmax   z_k = log p_k − mean_j log p_j       k classes; logits are known up to a common shift, here Σ_k z_k = 0
    log       z = log y                            positive answers

Each z is a difference of logarithms of *parts*: p and 1 − p, or p_1 … p_k. A part computed as e^z/Σ has all its digits
down to 1e-290. A part computed as 1 − p is a multiple of ε = 2⁻⁵³: log(1 − p) then has the error ε/(1 − p), and none of
its digits is left at z ≈ 37. Which of the two it is, is read off the first answers. Rows with a part too small to have
digits are not trusted: :meth:`Link.values` is NaN there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from relumine.results import InvalidInput

Array = NDArray[np.float64]
LinkName = Literal["auto", "logit", "softmax", "log"]

__all__ = ["LINKS", "WORDS", "Link", "LinkName", "link_of"]

LINKS = ("auto", "logit", "softmax", "log")
WORDS = ("logit", "two classes", "softmax", "log")  # as a file names them
_EPS = 2.0**-53  # half a unit of the last place of numbers below 1: how a p near 1, and so 1 − p, is rounded
_SINGLE = 2.0**-24  # the same in single precision
_LEAST = 1e-290, 1e-30  # a part with all its digits may be so small, in double and single precision
_DIGITS = (
    2.0**13,
    2.0**5,
)  # ε times this is the noise allowed in log(1 − p): z < 9 then, and z < 3.5 in single precision
_SMALL = 2.0**-12  # parts below this tell which kind they are: one of all its digits is seldom a multiple of ε
_SUM = 1e-5  # of probabilities may differ from 1 by this: single precision
_DECIMALS = 11  # to which probabilities may not be rounded: with 9, lines took the network for a curve
_ROUNDED = 1e3  # times the last decimal: then a logarithm has an error of 5e-4 at most
_VARIED = 8  # different answers from which rounding can be told


@dataclass(frozen=True)
class Link:
    """How answers are mapped back.

    ``pair``: two columns, p and 1 − p, are one logit. ``least``: the smallest trusted value of each part, (r,).
    ``grid``: values are rounded to multiples of this, so that all of them have the noise of the worst trusted one:
    lines take noise for constant.
    """

    name: str
    pair: bool = False
    least: tuple[float, ...] = ()
    grid: float = 0.0

    @property
    def word(self) -> str:
        """One of :data:`WORDS`."""
        return "two classes" if self.pair else self.name

    @classmethod
    def of(cls, word: str) -> Link:
        """The link that a file names; which answers to trust is not kept.

        Examples
        --------
        >>> Link.of("two classes").answers(np.zeros(1))
        array([[0.5, 0.5]])
        """
        if word not in WORDS:
            raise ValueError(f"{word!r} is no link; known: {', '.join(WORDS)}")
        return cls("logit" if word == "two classes" else word, pair=word == "two classes")

    def values(self, Y: Array) -> Array:
        """Answers (n, q) mapped back, NaN in rows that are not trusted; (n, 1) for a pair."""
        parts = self.parts(Y)
        with np.errstate(divide="ignore", invalid="ignore"):  # log 0 is not trusted
            logs = np.log(parts)
            if self.name == "softmax":
                Z = logs - logs.mean(axis=1, keepdims=True)
            elif self.name == "logit":
                half = parts.shape[1] // 2
                Z = logs[:, :half] - logs[:, half:]
            else:
                Z = logs.copy()
        if self.grid:
            Z = np.round(Z / self.grid) * self.grid
        Z[~(np.isfinite(logs) & (parts >= np.array(self.least or 0.0))).all(axis=1)] = np.nan
        return np.asarray(Z)

    def parts(self, Y: Array) -> Array:
        """The numbers whose logarithms are taken, (n, r)."""
        if self.name != "logit":
            return Y
        return Y[:, ::-1] if self.pair else np.concatenate([Y, 1.0 - Y], axis=1)

    def answers(self, Z: Array) -> Array:
        """What the box answers for values of the network, (n,) or (n, q): the inverse of :meth:`values`."""
        if self.name == "softmax":
            return np.asarray(softmax(Z, axis=1))
        if self.name == "log":
            return np.asarray(np.exp(Z))
        return np.column_stack([expit(-Z), expit(Z)]) if self.pair else np.asarray(expit(Z))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the certificate must know."""
        what = {
            "logit": "the answers are probabilities, and the network gives their logits log p − log(1 − p)",
            "softmax": "the answers are probabilities of classes, and the network gives their logits. A shift common "
            "to all classes cannot be seen in them: the logits are those whose sum is zero",
            "log": "the network gives the logarithm of the answers",
        }[self.name]
        if not self.least:
            return (what,)
        least = max(self.least)
        near = f"where every probability is above {least:.0e}" if self.name != "log" else f"above {least:.0e}"
        return (
            what,
            f"answers were used {near}: smaller ones have too few digits, and nothing is said about kinks there",
        )


def link_of(asked: str, Y: Array, rounded: bool = False) -> Link | None:
    """The link of answers Y (n, q) from all over the inputs; None for "auto" where they are not probabilities.

    Probabilities rounded to a few decimals are refused, unless ``rounded``: then small ones are not trusted.

    Examples
    --------
    >>> link_of("auto", np.array([[0.2, 0.5, 0.3], [1e-9, 0.25, 0.75 - 1e-9]])).name
    'softmax'
    """
    inside = bool(((Y >= 0.0) & (Y <= 1.0)).all()) and len(Y) > 0
    sums = inside and Y.shape[1] > 1 and bool((np.abs(Y.sum(axis=1) - 1.0) <= _SUM).all())
    if inside and np.isin(Y, (0.0, 1.0)).all():
        if asked == "auto" and not sums:
            return None
        raise InvalidInput(
            "every answer is 0 or 1: labels, or probabilities without digits; a label says on which side of a boundary "
            "a row is, and nothing about how far",
            argument="link",
            remedy="ask for probabilities (predict_proba), near rows that they do not decide (mean=, scale=)",
        )
    if asked == "auto":
        if not inside:
            return None
        asked = "softmax" if sums and Y.shape[1] > 2 else "logit"
    if asked == "log" and (Y < 0.0).any():
        raise InvalidInput("link='log' needs positive answers, and some are negative", argument="link")
    if asked != "log" and not inside:
        raise InvalidInput(f"link={asked!r} needs probabilities, and some answers are not in [0, 1]", argument="link")
    if asked == "softmax" and not sums:
        raise InvalidInput("link='softmax' needs probabilities that sum to 1 in every row", argument="link")
    return _digits(Link(asked, pair=asked == "logit" and sums and Y.shape[1] == 2), Y, rounded)


def _digits(link: Link, Y: Array, bear: bool) -> Link:
    """The link with the smallest parts to be trusted."""
    with np.errstate(over="ignore"):
        single = bool((Y.astype(np.float32) == Y).all())
    decimals = _decimals(Y) if link.name != "log" else None
    if decimals is not None and not bear:
        raise InvalidInput(
            f"the probabilities are rounded to {decimals} decimals: their logits have too few digits to show kinks",
            argument="link",
            remedy="have the box answer all its digits",
        )
    eps, parts = (_SINGLE if single else _EPS), link.parts(Y)
    least = np.full(parts.shape[1], _LEAST[single])
    rounded = np.zeros(parts.shape[1], dtype=bool)
    for r, part in enumerate(parts.T) if link.name != "log" else ():
        small = part[(part < _SMALL) & (part > 0.0)]
        # at most one in a thousand small numbers of all digits is such a multiple by chance; none small: not known
        rounded[r] = not len(small) or (np.mod(small / eps, 1.0) == 0.0).mean() > 0.5
        ends = np.sort(part)[:3]
        clipped = 10.0 * ends[0] if ends[0] == ends[-1] < _SMALL else 0.0  # some boxes keep p above a bound
        least[r] = max(1.0 / _DIGITS[single] if rounded[r] else least[r], clipped)
    if decimals is not None:
        least = np.maximum(least, _ROUNDED * 10.0**-decimals)
    grid = 2.0 * eps * _DIGITS[single] if rounded.any() else 0.0
    return Link(link.name, link.pair, tuple(least.tolist()), grid)


def _decimals(Y: Array) -> int | None:
    """To how many decimals all probabilities are rounded; None for many."""
    if len(np.unique(Y)) < _VARIED:
        return None
    fits = (np.abs(Y * 10.0**k - np.round(Y * 10.0**k)) <= 1e-15 * 10.0**k for k in range(1, _DECIMALS + 1))
    return next((k for k, fit in enumerate(fits, 1) if fit.all()), None)
