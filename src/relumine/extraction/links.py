"""Links of black boxes: where the answers of a box have digits, and lines that stay there.

Rows with a probability too small to have digits are not trusted (:mod:`relumine.links`): lines end before them, and
random rows are drawn elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relumine.arrays import Array
from relumine.extraction.pieces import Line
from relumine.extraction.queries import Queries, Unanswered
from relumine.extraction.sampling import Domain
from relumine.links import Link, link_of
from relumine.results import InvalidInput

_PROBES = 16  # rows that show what the answers are, at each of these distances from the centre:
_DISTANCES = 1.0, 10.0, 100.0
_TRIES = 24  # batches of rows in which to look for trusted ones, each a little nearer to the start than the last


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
            f"nearly all probabilities are 0 or 1 to rounding: only {len(kept)} of {n * _TRIES} rows have others",
            argument="mean",
            remedy="say where inputs usually are (mean=, scale=), or ask a box that gives logits",
        )

    def line(self, rng: np.random.Generator, origin: Array | None = None, through: Array | None = None) -> Line:
        """A line in a random direction or ``through`` a second point, as far as its rows are trusted."""
        whole = self if self.ranged else Domain(self.centre, self.scale)
        line = Domain.line(whole, rng, self.start if origin is None else origin, through)
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
            "every probability asked for is 0 or 1 to rounding, which says nothing about the network",
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
