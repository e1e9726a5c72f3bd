"""Witnesses: kinks on chords of a chart, and the normals measured there.

Inside a chart, where h_A = Jx + shift, a unit of the next layer bends f on the hyperplane w_A·h_A + c = 0. At a kink x*
the gradient jumps by a multiple of Jᵀw_A; along the column E_i of J⁺ the jump is that multiple of w_i.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.deep.box import ROUNDING, Asked
from relumine.extraction.deep.charts import Chart
from relumine.extraction.deep.kinks import Segment

Array = NDArray[np.float64]

__all__ = ["Chord", "Witness", "jumps", "measure", "witnesses_of"]

_SIDE = 0.25  # how far from the kink the two base points are, over the gap to the next kink
_STEP = 0.01  # length of a difference over that gap: one in 100 directions meets another kink, which blocks show
_BLOCK = 16  # entries that are checked together


@dataclass
class Chord:
    """A straight piece of a chart with all its kinks."""

    chart: Chart
    segment: Segment
    index: int


@dataclass
class Witness:
    """A kink: where it is, the way along the chord, the gap to its neighbours (in x), the jump along the way."""

    chord: Chord
    point: Array
    along: Array
    gap: float
    jump: float
    size: float
    sketch: Array = field(default_factory=lambda: np.zeros(0))
    noise: float = np.inf
    owner: int = -1

    @property
    def height(self) -> Array:
        """h_A at the kink."""
        return self.chord.chart.heights(self.point)


def witnesses_of(chord: Chord, scale: float) -> list[Witness]:
    """One for every kink of a chord; ``scale``: size of the answers."""
    s = chord.segment
    if not len(s.t):
        return []
    length = float(np.linalg.norm(s.direction))
    edges = np.concatenate([[0.0], s.t, [1.0]])
    gaps = np.minimum(np.diff(edges)[:-1], np.diff(edges)[1:]) * length
    along = s.direction / length
    return [
        Witness(chord, s.at(t), along, float(gap), float(right - left) / length, scale)
        for t, gap, left, right in zip(s.t, gaps, s.left, s.right)
        if gap > 1e-12 * length  # two kinks in one place: neither can be measured
    ]


def jumps(ask: Asked, found: list[Witness], directions: list[Array], shrink: float = 0.4) -> list[tuple[Array, float]]:
    """Jump of the derivative at each kink along the rows of ``directions`` (k, d), and its rounding error per unit.

    Two base points, x* ± side; at each the derivative along every direction by one difference: 2(k + 1) queries.
    """
    rows, steps = [], []
    for w, D in zip(found, directions):
        side, step = _SIDE * w.gap * w.along, _STEP * shrink * w.gap
        lengths = np.linalg.norm(D, axis=1)
        moves = step * D / lengths[:, None]
        for base in (w.point - side, w.point + side):
            rows += [base[None, :], base + moves]
        steps.append((step, lengths))
    y = ask(np.concatenate(rows))
    out, at = [], 0
    for D, (step, lengths) in zip(directions, steps):
        k = len(D)
        before, after = y[at : at + k + 1], y[at + k + 1 : at + 2 * (k + 1)]
        at += 2 * (k + 1)
        slope = ((after[1:] - after[0]) - (before[1:] - before[0])) / step
        size = max(float(np.abs(before).max()), float(np.abs(after).max()))
        out.append((slope * lengths, ROUNDING * size / step * float(np.median(lengths))))
    return out


def measure(ask: Asked, w: Witness, rng: np.random.Generator) -> tuple[Array, float] | None:
    """The normal at a kink in the chart's coordinates (|A|,), up to scale and sign; None if it cannot be trusted.

    Entries are measured one by one; then each block of them along one random combination, which shows those whose
    difference met another kink: these are measured again with shorter steps.
    """
    E = w.chord.chart.E.T  # (k, d)
    lengths = np.linalg.norm(E, axis=1)
    ((normal, noise),) = jumps(ask, [w], [E], 1.0)
    blocks = np.array_split(np.arange(len(E)), max(1, len(E) // _BLOCK))
    suspects = blocks
    for attempt in range(4):
        signs = [rng.choice([-1.0, 1.0], size=len(block)) / lengths[block] for block in suspects]
        combined = np.array([sign @ E[block] for sign, block in zip(signs, suspects)])
        ((value, level),) = jumps(ask, [w], [combined], 0.3)
        wanted = np.array([sign @ normal[block] for sign, block in zip(signs, suspects)])
        slack = 8.0 * (level + noise * np.sqrt(_BLOCK) / float(np.median(lengths)))
        suspects = [block for block, v, e in zip(suspects, value, wanted) if abs(v - e) > slack]
        if not suspects:
            return normal, noise
        again = np.concatenate(suspects)
        ((entries, level),) = jumps(ask, [w], [E[again]], 0.1 ** (attempt + 1))
        normal[again], noise = entries, max(noise, level)
    return None
