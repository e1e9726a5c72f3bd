"""Links: boxes that answer probabilities, or other functions of the network's outputs, are mapped back.

    logit     z = log p − log(1 − p)               one probability for each output, or two classes
    softmax   z_k = log p_k − mean_j log p_j       k classes; logits are known up to a common shift, here Σ_k z_k = 0
    log       z = log y                            positive answers

Each z is a difference of logarithms of *parts*: p and 1 − p, or p_1 … p_k. A part computed as e^z/Σ has all its digits
down to 1e-290. A part computed as 1 − p is a multiple of ε = 2⁻⁵³: log(1 − p) then has the error ε/(1 − p), and none of
its digits is left at z ≈ 37. Which of the two it is, is read off the first answers. Rows with a part too small to have
digits are not trusted: :meth:`Link.values` is NaN there, lines end before them, and random rows are drawn elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from relumine.extraction.lines import Line
from relumine.extraction.queries import Queries, Unanswered
from relumine.extraction.sampling import Domain
from relumine.results import InvalidInput

Array = NDArray[np.float64]
LinkName = Literal["auto", "logit", "softmax", "log"]

__all__ = ["LINKS", "Link", "LinkName", "Linked", "link_of", "linked"]

LINKS = ("auto", "logit", "softmax", "log")
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
_PROBES = 16  # rows that show what the answers are, at each of these distances from the centre:
_DISTANCES = 1.0, 10.0, 100.0
_TRIES = 24  # batches of rows in which to look for trusted ones, each a little nearer to the start than the last


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
        Z[~(np.isfinite(logs) & (parts >= np.array(self.least))).all(axis=1)] = np.nan
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
        least = max(self.least)
        near = f"where every probability is above {least:.0e}" if self.name != "log" else f"above {least:.0e}"
        return (
            what,
            f"answers were used {near}: smaller ones have too few digits, and nothing is said about kinks there",
        )


def link_of(asked: str, Y: Array) -> Link | None:
    """The link of answers Y (n, q) from all over the inputs; None for "auto" where they are not probabilities.

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
    return _digits(Link(asked, pair=asked == "logit" and sums and Y.shape[1] == 2), Y)


def _digits(link: Link, Y: Array) -> Link:
    """The link with the smallest parts to be trusted."""
    with np.errstate(over="ignore"):
        single = bool((Y.astype(np.float32) == Y).all())
    if link.name != "log":
        _check_decimals(Y)
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
    grid = 2.0 * eps * _DIGITS[single] if rounded.any() else 0.0
    return Link(link.name, link.pair, tuple(least.tolist()), grid)


def _check_decimals(Y: Array) -> None:
    """Refuse probabilities rounded to a few decimals: their logits have too few digits to show the kinks of units."""
    if len(np.unique(Y)) < _PROBES // 2:
        return
    for k in range(1, _DECIMALS + 1):
        if (np.abs(Y * 10.0**k - np.round(Y * 10.0**k)) <= 1e-15 * 10.0**k).all():
            raise InvalidInput(
                f"the probabilities are rounded to {k} decimals: their logits have too few digits to show kinks",
                argument="link",
                remedy="have the box answer all its digits",
            )


@dataclass(frozen=True)
class Linked(Domain):
    """A domain in which only trusted rows are asked: ``ask`` (n, d) → (n, q) is NaN elsewhere; ``start`` is trusted.

    Lines end before the first row that is not; kinks behind it are not looked for on this line.
    """

    ask: Callable[[Array], Array] = lambda Z: Z
    start: Array | None = None
    ranged: bool = False

    @property
    def room(self) -> tuple[Array, Array] | None:
        """Lowest and highest z, if the user gave a range."""
        return super().room if self.ranged else None

    def rows(self, Z: Array) -> Array:
        """X = centre + scale·Z."""
        return super().rows(Z) if self.ranged else np.asarray(self.centre + self.scale * Z)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Z (n, d) as in the domain without the link, those rows that are trusted."""
        kept, start = np.zeros((0, self.d)), np.zeros(self.d) if self.start is None else self.start
        nearer = 1.0
        for _ in range(_TRIES):
            Z = rng.uniform(-1.0, 1.0, (n, self.d)) if self.ranged else rng.normal(size=(n, self.d))
            Z = start + nearer * (Z - start)
            good = np.isfinite(self.ask(Z)).all(axis=1)
            kept = np.vstack([kept, Z[good]])[:n]
            if len(kept) == n:
                return kept
            nearer *= 1.0 if good.mean() > 0.3 else 0.7
        raise InvalidInput(
            f"hardly any answer has digits: only {len(kept)} of {n * _TRIES} rows have probabilities away from 0 and 1",
            argument="mean",
            remedy="say where inputs usually are (mean=, scale=), or ask a box that gives logits",
        )

    def line(self, rng: np.random.Generator, origin: Array | None = None, through: Array | None = None) -> Line:
        """A line in a random direction or ``through`` a second point, as far as its rows are trusted."""
        origin = self.start if origin is None else origin
        everywhere = self if self.ranged else Domain(self.centre, self.scale)
        line = Domain.line(everywhere, rng, origin, through)
        back, ahead = (self._trusted(line, side) for side in (0, 1))
        return Line(line.origin, line.direction, (back, ahead), line.scale)

    def _trusted(self, line: Line, side: int) -> float:
        """How far the line goes on this side: 0.9 of the way to the last row trusted, so that steps aside have room."""
        end, last = line.reach[side], 0.0
        t = end * np.geomspace(1e-7, 1.0, 29)
        for _ in range(2):  # first by factors, then evenly between the last that is trusted and the next
            good = np.isfinite(self.ask(line.at(t))).all(axis=1)
            if good.all() and t[-1] == end:
                return float(end)
            first = len(t) if good.all() else int(np.argmin(good))
            last = float(t[first - 1]) if first else last
            t = np.linspace(last, float(t[min(first, len(t) - 1)]), 9)[1:-1]
        return 0.9 * last


def linked(asked: str, log: Queries, domain: Domain) -> tuple[Link | None, Domain]:
    """The link of a box, from its first answers, and the domain in which its answers have digits.

    Rows are asked at the distances 1, 10, 100 from the centre (or inside the range): a network whose answers happen to
    lie in [0, 1] near the centre does not do so far out, and small probabilities show how they are rounded.
    """
    if asked not in LINKS:
        raise InvalidInput(f"link must be one of {', '.join(LINKS)}, or None; got {asked!r}", argument="link")
    rng, seen, answered = np.random.default_rng(log.seed + 2), [], []
    for distance in (0.3, 1.0) if domain.limited else _DISTANCES:
        Z = distance * domain.draw(rng, _PROBES)
        try:
            answered.append(log.answers(domain.rows(Z)))
        except Unanswered:  # far out, perhaps, where a box need not answer
            log.forgive()
            continue
        seen.append(Z)
    link = link_of(asked, np.vstack(answered)) if answered else None
    if link is None:
        return None, domain
    log.link = link
    Z, values = np.vstack(seen), link.values(np.vstack(answered))
    good = np.isfinite(values).all(axis=1)
    if not good.any():
        raise InvalidInput(
            "no answer has digits: every probability asked for is 0 or 1 to rounding",
            argument="mean",
            remedy="say where inputs usually are (mean=, scale=), or ask a box that gives logits",
        )
    # near the centre, and as |z| = 1 there for lines without a link
    start = Z[good][np.argmin(np.linalg.norm(Z[good], axis=1))]
    for shorter in (0.3 / np.linalg.norm(start) * np.arange(1, 8)) if not domain.limited else ():
        if shorter < 1.0 and np.isfinite(log.answers(domain.rows(shorter * start[None]))).all():
            start = shorter * start
            break
    trusted = Linked(
        domain.centre,
        domain.scale,
        limited=True,
        ask=lambda Z: log.answers(domain.rows(Z)),
        start=start,
        ranged=domain.limited,
    )
    return link, trusted
