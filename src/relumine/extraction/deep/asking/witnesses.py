"""Witnesses: kinks on chords of a chart, and the normals measured there.

Inside a chart, where h_A = Jx + shift, a unit of the next layer bends f on the hyperplane w_A·h_A + c = 0. At a kink x*
the gradient jumps by a multiple of Jᵀw_A; along the column E_i of J⁺ the jump is that multiple of w_i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import ROUNDING
from relumine.extraction.deep.asking.kinks import SIDE, Segment
from relumine.extraction.deep.known.charts import Chart

Ask = Callable[[Array], Array]


_STEP = 0.01  # length of a difference over that gap: one in 100 directions meets another kink, which blocks show
_LEAST = 1e-12  # of that gap: room that is left whatever happens
_STEEP = 5.0  # a difference stays on its side of the unit up to five times this
_NOISY = 4.0  # standard deviations of the answers, as measured along the chord, that their error may be
_BLOCK = 16  # entries that are checked together
# Times the rounding of the answers that f must bend over a gap: what bends less has no digits to measure. Behind all
# four layers of a 40-12-12-12-12-1, where there is no kink, 375 were seen by up to 9, and the search did not end.
_BENT = 30.0


@dataclass
class Chord:
    """A straight piece of a chart with all its kinks."""

    chart: Chart
    segment: Segment
    index: int


@dataclass
class Witness:
    """A kink: where it is, the way along the chord, the gap to its neighbours (in x), the jump along the way.

    ``room``: the gap, or less where the line is nearly parallel to the unit, which is then near in other directions.
    ``error``: of that jump; ``sigma``: of the answers; ``base``: the answers at x* ∓ `SIDE` gaps; ``size``: of the
    answers near by, where they are not all of them; ``slopes`` (2, k): along the columns of the chart's E at these two.
    """

    chord: Chord
    point: Array
    along: Array
    gap: float
    room: float
    jump: float
    error: float
    sigma: float
    base: tuple[float, float]
    size: float = 0.0
    sketch: Array = field(default_factory=lambda: np.zeros(0))
    noise: float = 0.0
    owner: int = -1
    slopes: Array | None = None

    @property
    def clarity(self) -> float:
        """How much f bends over the gap, over the size of the answers: what differences have digits for."""
        return self.room * abs(self.jump) / max(abs(self.base[0]), abs(self.base[1]), self.size, 1e-300)

    @property
    def rounding(self) -> bool:
        """Whether f bends over the gap by little more than its rounding: far out, short stretches may seem to."""
        return self.gap * abs(self.jump) <= _BENT * ROUNDING * max(abs(self.base[0]), abs(self.base[1]), self.size)

    def narrow(self, slope: float) -> bool:
        """Less room where the jump along another direction is much larger than along the chord; whether much less.

        The chord is then nearly parallel to the unit, and its base points are nearer to it than they are to the kink.
        Where it shows no jump at all, a step is left that is all rounding error, and says so.
        """
        before = self.room
        steep = _STEEP * self.gap * abs(self.jump) / max(slope, 1e-300)
        self.room = min(before, max(steep, _LEAST * self.gap))
        return self.room < 0.2 * before

    def behind(self, chart: Chart) -> Witness:
        """The same kink in another chart."""
        return replace(self, chord=Chord(chart, self.chord.segment, self.chord.index))

    @property
    def sides(self) -> Array:
        """The two points x* ∓ `SIDE` gaps, (2, d)."""
        side = SIDE * self.gap * self.along
        return np.stack([self.point - side, self.point + side])

    @property
    def height(self) -> Array:
        """h_A at the kink."""
        return self.chord.chart.heights(self.point)


def witnesses_of(chord: Chord, scale: float = 0.0) -> list[Witness]:
    """One for every kink of a chord; ``scale``: least size of the answers."""
    s = chord.segment
    length = float(np.linalg.norm(s.direction))
    along = s.direction / max(length, 1e-300)
    # a line that meets a unit far out, at |t|, has w·u ≈ 1/|t|; a chord inside one chart is short
    near = np.minimum(1.0, np.sqrt(len(along)) / np.maximum(np.linalg.norm(s.points, axis=1), 1e-300))
    gaps = s.gap * length
    room = gaps * (1.0 if len(chord.chart.rows) else near)
    bends, errors = (s.right - s.left) / max(length, 1e-300), s.error / max(length, 1e-300)
    return [
        Witness(chord, x, along, float(gap), float(r), float(bend), float(error), float(sigma), (y, z), scale)
        for x, gap, r, bend, error, sigma, y, z in zip(
            s.points, gaps, room, bends, errors, s.sigma, s.before.tolist(), s.after.tolist()
        )
        if gap > 1e-12 * length  # two kinks in one place: neither can be measured
    ]


def slopes(
    ask: Ask, found: list[Witness], directions: list[Array], shrink: float = 0.4, known: bool = False
) -> list[tuple[Array, float]]:
    """Derivatives on both sides of each kink along the rows of ``directions`` (k, d), (2, k), and their rounding error.

    Two base points, x* ± side; at each the derivative along every direction by one difference: 2(k + 1) queries. Two
    less for each kink where the base points are ``known``, from the chord.
    """
    if not found:
        return []
    rows, steps = [], []
    for w, D in zip(found, directions):
        step = _STEP * shrink * w.room
        lengths = np.linalg.norm(D, axis=1)
        moves = step * D / lengths[:, None]
        for base in w.sides:
            rows += [base + moves] if known else [base[None, :], base + moves]
        steps.append((step, lengths))
    y = ask(np.concatenate(rows))
    out, at = [], 0
    for w, D, (step, lengths) in zip(found, directions, steps):
        k = len(D) if known else len(D) + 1
        both = y[at : at + 2 * k].reshape(2, k)
        at += 2 * k
        if known:
            both = np.column_stack([w.base, both])
        size = max(float(np.abs(both).max()), w.size)
        level = max(ROUNDING * size, _NOISY * w.sigma)  # inputs are rounded, too, in coordinates far from standard
        out.append(((both[:, 1:] - both[:, :1]) / step * lengths, level / step * float(np.median(lengths))))
    return out


def jumps(
    ask: Ask, found: list[Witness], directions: list[Array], shrink: float = 0.4, known: bool = False
) -> list[tuple[Array, float]]:
    """Jump of the derivative at each kink along the rows of ``directions``, (k,), and its rounding error: `slopes`."""
    return [(both[1] - both[0], noise) for both, noise in slopes(ask, found, directions, shrink, known)]


def measure(ask: Ask, w: Witness, rng: np.random.Generator) -> tuple[Array, float] | None:
    """The normal at a kink in the chart's coordinates (|A|,), up to scale and sign; None if it cannot be trusted.

    Entries are measured one by one; then all of them along one random combination. If that shows that the difference
    of some met another kink, each block of them does the same, and those of a bad block are measured again with shorter
    steps. Combinations go up in every entry: down, units in front may turn off.
    """
    E = w.chord.chart.E.T  # (k, d)
    lengths = np.linalg.norm(E, axis=1)
    ((both, noise),) = slopes(ask, [w], [E], 1.0)
    suspects = [np.arange(len(E))]
    for attempt in range(5):
        normal = both[1] - both[0]
        signs = [rng.uniform(0.5, 1.5, size=len(block)) / lengths[block] for block in suspects]
        combined = np.array([sign @ E[block] for sign, block in zip(signs, suspects)])
        ((value, level),) = jumps(ask, [w], [combined], 0.3)
        wanted = np.array([sign @ normal[block] for sign, block in zip(signs, suspects)])
        most = max(len(block) for block in suspects)
        slack = 8.0 * (level + noise * np.sqrt(most) / float(np.median(lengths)))
        suspects = [block for block, v, e in zip(suspects, value, wanted) if abs(v - e) > slack]
        if not suspects:
            w.slopes = both
            return normal, noise
        if not attempt and most > _BLOCK:
            suspects = np.array_split(suspects[0], most // _BLOCK)
            continue
        again = np.concatenate(suspects)
        ((entries, level),) = slopes(ask, [w], [E[again]], 0.1 ** max(attempt, 1))
        both[:, again], noise = entries, max(noise, level)
    return None


def measured(ask: Ask, found: list[Witness], rng: np.random.Generator) -> list[tuple[Array, float] | None]:
    """`measure` for many kinks in two calls of the box; one by one only where a difference met another kink."""
    if not found:
        return []
    E = [w.chord.chart.E.T for w in found]
    signs = [rng.uniform(0.5, 1.5, size=len(e)) / np.linalg.norm(e, axis=1) for e in E]
    first = jumps(ask, found, E, 1.0)
    second = jumps(ask, found, [(sign @ e)[None] for sign, e in zip(signs, E)], 0.3)
    results: list[tuple[Array, float] | None] = []
    for w, e, sign, (normal, noise), (value, level) in zip(found, E, signs, first, second):
        slack = 8.0 * (level + noise * np.sqrt(len(e)) / float(np.median(np.linalg.norm(e, axis=1))))
        fits = abs(float(value[0]) - float(sign @ normal)) <= slack
        results.append((normal, noise) if fits else measure(ask, w, rng))
    return results
