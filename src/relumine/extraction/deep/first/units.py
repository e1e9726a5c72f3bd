"""One layer: the units that every chord meets in the same place."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import ROUNDING, Asked
from relumine.extraction.deep.asking.kinks import Segment, on_lines, segments
from relumine.extraction.deep.asking.witnesses import Chord, Witness, jumps, measure, witnesses_of
from relumine.extraction.deep.known.charts import Chart, Known
from relumine.extraction.deep.known.places import chords, spread
from relumine.extraction.pieces import Line
from relumine.extraction.queries import Unanswered

_SKETCH = 2  # directions of a sketch; one more where two sketches agree, before a normal is measured
_ALIKE = 1e-3  # two sketches further apart than this are different, whatever their noise
_MOST = 8_000  # queries for a segment: five hundred kinks
_AGREE = 3  # chords that must show a unit, or places
_TWINS = 1e-5  # relative difference of two measurements of one unit: up to 2e-8 was seen with an error said to be 1e-11
# Clarity of a kink below which its normal may have lost too many digits, and how many times clearer another must be. Of
# 128 units behind 784 inputs 25 are met so on the first two lines; they were off by up to 2e-8, and by 2e-9 after that.
_CLEAR, _CLEARER = 5e-5, 4.0
_LINES, _TURNS = 3, 2  # lines of a turn on which such units are looked for, some 1500 rows each
_PROBES, _BEND = 6, 1e-3  # places of a unit asked, and how far to each side: one in a hundred bends by another unit


@dataclass
class Unit:
    """w·h + c = 0 up to sign, ‖w‖ = 1 on its support; ``hits`` of ``crossings`` chords show the kink it predicts.

    ``probes``: those of single places, in the same way; ``points``: inputs (d,) at which it bends f.
    """

    w: Array
    c: float
    known: NDArray[np.bool_]
    error: float
    hits: int = 0
    crossings: int = 0
    probes: tuple[int, int] = (0, 0)
    witnesses: list[Witness] = field(default_factory=list)
    points: list[Array] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Share of the chords it crosses that show it."""
        return self.hits / max(self.crossings, 1)


class Layer:
    """Search for the units of the layer behind ``known``."""

    def __init__(self, ask: Asked, known: Known, rng: np.random.Generator) -> None:
        self.ask, self.known, self.rng = ask, known, rng
        self.chords: list[Chord] = []
        self.witnesses: list[Witness] = []
        self.units: list[Unit] = []
        self.tried: set[int] = set()
        self.measured: list[tuple[Witness, float]] = []  # kinks with the slopes on both sides, and their error
        # only up: down, units in front may turn off
        self.plan = np.abs(rng.normal(size=(_SKETCH + 1, known.width)))

    def look(self, charts: list[Chart], starts: Array, ends: Array, given: Sequence[Line] = ()) -> None:
        """Find the kinks of new chords, sketch them, and update the units; ``given``: lines that come first."""
        lengths = np.linalg.norm(ends - starts, axis=1)
        scale = np.sqrt(self.known.d) if not self.known.layers else float(np.median(lengths))
        found: list[Segment] = []
        if given:
            mix = self.ask.mix(self.ask.values(given[0].origin[None]))
            found = on_lines(self.ask.values, mix, list(given), _MOST)
        charts, more = self._between(charts, starts, ends, scale)
        found += more
        fresh = []
        for chart, segment in zip([*charts[:1] * len(given), *charts], found):
            chord = Chord(chart, segment, len(self.chords))
            self.chords.append(chord)
            fresh += witnesses_of(chord)
            if not self.known.layers and chord.index < _SKETCH:
                # the derivative along a line is known: the first two are the directions of all sketches
                self.plan[chord.index] = segment.direction / np.linalg.norm(segment.direction)
        self.witnesses += fresh
        for u in self.units:
            self._count(u)
        fresh = [w for w in fresh if w.owner < 0]
        for j in range(_SKETCH):
            self._sketch(fresh, j)
        self._gather()

    def _between(
        self, charts: list[Chart], starts: Array, ends: Array, scale: float
    ) -> tuple[list[Chart], list[Segment]]:
        """The chords that can be asked, and their kinks: behind a link some may lie where answers have no digits."""
        some, starts, ends = self.ask.within(starts, ends, scale)
        charts = [chart for chart, has in zip(charts, some) if has]
        try:
            return charts, segments(self.ask, starts, ends, scale, _MOST * len(starts))
        except Unanswered:
            found = []
            for chart, a, b in zip(charts, starts, ends):
                with suppress(Unanswered):
                    found.append((chart, segments(self.ask, a[None], b[None], scale, _MOST)[0]))
            if not found:
                raise
            return [chart for chart, _ in found], [segment for _, segment in found]

    def _sketch(self, some: list[Witness], j: int) -> None:
        """The jump along the j-th direction of h, the same for all (inactive units are left out)."""
        unknown = [w for w in some if self.known.layers or w.chord.index != j]
        directions = {id(w): self.plan[j : j + 1, w.chord.chart.active] @ w.chord.chart.E.T for w in unknown}
        measured: dict[int, tuple[Array, float]] = {}
        for _ in range(2):  # once more where the step was too long for a unit nearly parallel to the chord
            found = jumps(self.ask.beside, unknown, [directions[id(w)] for w in unknown], known=True)
            measured.update(zip(map(id, unknown), found))
            slopes = [float(abs(value[0]) / np.linalg.norm(directions[id(w)])) for w, (value, _) in zip(unknown, found)]
            unknown = [w for w, slope in zip(unknown, slopes) if w.narrow(slope)]
        for w in some:
            value, noise = measured.get(id(w), (np.array([w.jump]), w.error))
            w.sketch, w.noise = np.append(w.sketch, value), max(w.noise, noise)

    def _gather(self) -> None:
        """Pairs of alike sketches on two chords → a normal, once → the units it explains."""
        while True:
            pair = self._pair()
            if pair is None:
                return
            for w in pair:
                self.tried.add(id(w))
            measured = self._unit(pair)
            if measured is not None:
                self._take(measured)

    def clear(self) -> None:
        """The units of a first layer that were measured next to other kinks, again where new lines show them better.

        Of large networks the first layer cannot be polished, and the others stand on its digits.
        """
        for _ in range(_TURNS):
            poor = [(u, best.clarity) for u in self.accepted if (best := _clearest(u)) and best.clarity < _CLEAR]
            if not poor:
                return
            charts, starts, ends = chords(self.known, _LINES, self.rng)
            for chart, segment in zip(*self._between(charts, starts, ends, np.sqrt(self.known.d))):
                self.chords.append(Chord(chart, segment, len(self.chords)))
                self.witnesses += witnesses_of(self.chords[-1])
            for u in self.units:
                self._count(u)
            for u, before in poor:
                clearer = _clearest(u)
                if clearer is None or clearer.clarity <= _CLEARER * before:
                    continue
                new = self._measured(clearer)
                if new is not None:
                    self._take(new)

    def _take(self, new: Unit) -> None:
        """One more unit; if it is one that was found before with fewer digits, it takes its place."""
        twin = next((i for i, u in enumerate(self.units) if _twins(u, new)), None)
        if twin is None:
            self._count(new)
            self.units.append(new)
            return
        old, self.units[twin] = self.units[twin], new
        new.probes = old.probes
        self._count(new)
        if new.hits < old.hits:
            self.units[twin] = old
            self._count(old)

    def _pair(self) -> list[Witness] | None:
        """Witnesses without an owner whose sketches agree, on two chords or more, in charts with the same units on."""
        free = [w for w in self.witnesses if w.owner < 0 and len(w.sketch) >= _SKETCH and _doubt(w) < _ALIKE / 20.0]
        if len(free) < 2:
            return None
        S = np.array([w.sketch[:_SKETCH] for w in free])
        S /= np.linalg.norm(S, axis=1, keepdims=True)
        tried = np.array([id(w) in self.tried for w in free])
        chord = np.array([w.chord.index for w in free])
        turned = np.abs(np.outer(S[:, 0], S[:, 1]) - np.outer(S[:, 1], S[:, 0]))  # sine of the angle between two
        doubt = np.array([_doubt(w) for w in free])
        near = turned <= np.minimum(20.0 * (doubt[:, None] + doubt) + 1e-9, _ALIKE)
        near &= (chord[:, None] != chord[None, :]) & ~(tried[:, None] & tried[None, :])
        for i in np.flatnonzero(near.any(axis=1)):
            group: list[Witness] = [free[i]]
            for j in np.flatnonzero(near[i]):
                other = any(free[j].chord is g.chord for g in group) or not _same_units_on(free[i], free[j])
                if not other:
                    group.append(free[j])
            if len(group) < 2:
                continue
            self._sketch([w for w in group if len(w.sketch) == _SKETCH], _SKETCH)
            group = [free[i], *[w for w in group[1:] if _parallel(free[i], w, _SKETCH + 1)]]
            if len(group) > 1:
                return group
        return None

    def _unit(self, group: list[Witness]) -> Unit | None:
        """The normal measured at the best of a group, kept if it explains where the others are."""
        group = sorted(group, key=lambda w: -w.clarity)
        for best in group[:2]:
            unit = self._measured(best)
            if unit is not None:
                return unit
        return None

    def _measured(self, best: Witness) -> Unit | None:
        """The unit by its normal at a kink; None where that has no digits."""
        result = measure(self.ask.beside, best, self.rng)
        if result is None:
            return None
        normal, noise = result
        self.measured.append((best, noise))
        size = float(np.linalg.norm(normal))
        if size <= 20.0 * noise:
            return None
        active = best.chord.chart.active
        w = np.zeros(self.known.width)
        w[active] = normal / size
        known = np.zeros(self.known.width, dtype=bool)
        known[active] = True
        return Unit(w, -float(w[active] @ best.height), known, noise / size)

    def _count(self, u: Unit) -> None:
        """On which chords the unit predicts a kink, and where there is one; those witnesses are its own."""
        u.hits, u.crossings = u.probes
        u.witnesses = []
        number = next((i for i, other in enumerate(self.units) if other is u), len(self.units))
        by_chord: dict[int, list[Witness]] = {}
        for w in self.witnesses:
            by_chord.setdefault(w.chord.index, []).append(w)
        for chord in self.chords:
            chart, s = chord.chart, chord.segment
            if not u.known[chart.active].all():
                continue
            v = u.w[chart.active]
            heights = chart.heights(np.stack([s.start, s.start + s.direction]))
            z0, z1 = heights @ v + u.c
            if z0 * z1 >= 0.0:
                continue
            t = z0 / (z0 - z1)
            # error of the position: that of the normal over the speed at which the chord crosses
            size = 1.0 + float(np.abs(heights).max()) * np.sqrt(len(v))
            slack = (50.0 * u.error * size + 1e-9 * size) / abs(z1 - z0) + 1e-9
            if slack > 1e-3:
                continue
            u.crossings += 1
            near = [w for w in by_chord.get(chord.index, []) if abs(self._t(w) - t) <= slack]
            if near:
                u.hits += 1
                w = min(near, key=lambda w: abs(self._t(w) - t))
                w.owner = number
                u.witnesses.append(w)

    def probe(self) -> None:
        """Ask at places of the units all over whether f bends there: three rows each instead of another chord.

        A unit further behind looks the same in a whole cone, and elsewhere it does not show. Behind one layer, places
        are those with all its units on; behind more, there are none that are free.
        """
        units = [u for u in self.units if u.hits >= 2 and not u.probes[1]]
        found = [self._places(u) for u in units]
        if not sum(len(x) for x, _ in found):
            return
        at, step = (np.concatenate(both) for both in zip(*found))
        rows = np.stack([at - step, at, at + step])
        has = self.ask.digits(rows.reshape(-1, self.known.d)).reshape(3, -1).all(axis=0)
        y = self.ask(rows[:, has].reshape(-1, self.known.d)).reshape(3, -1)
        bent = np.zeros(len(at), dtype=bool)
        noise = 4.0 * (ROUNDING * np.abs(y).max(axis=0) + self.ask.grid)
        bent[has] = np.abs(y[0] + y[2] - 2.0 * y[1]) > noise
        parts = np.cumsum([len(x) for x, _ in found])[:-1]
        for u, shown, asked in zip(units, np.split(bent, parts), np.split(has, parts)):
            u.probes = (int(shown.sum()), int(asked.sum()))
            u.hits, u.crossings = u.hits + u.probes[0], u.crossings + u.probes[1]

    def _places(self, u: Unit) -> tuple[Array, Array]:
        """Inputs (n, d) on the unit, and a step across it at each."""
        if self.known.layers:
            return spread(self.known, u.w, u.c, _PROBES, self.rng)
        # near and far
        x = self.rng.normal(size=(_PROBES, self.known.d)) * 2.0 ** self.rng.uniform(-1.0, 3.0, size=(_PROBES, 1))
        return x - np.outer(x @ u.w + u.c, u.w), np.tile(_BEND * u.w, (_PROBES, 1))

    @staticmethod
    def _t(w: Witness) -> float:
        s = w.chord.segment
        return float((w.point - s.start) @ s.direction / (s.direction @ s.direction))

    @property
    def accepted(self) -> list[Unit]:
        """Units that most of the chords they cross show."""
        return [u for u in self.units if u.hits >= _AGREE and u.score > 0.5]


def _clearest(u: Unit) -> Witness | None:
    """The kink of a unit that has most digits."""
    return max(u.witnesses, key=lambda w: w.clarity, default=None)


def _twins(u: Unit, v: Unit) -> bool:
    """Whether two units are one, measured twice."""
    if (u.known != v.known).any():
        return False
    p, q = np.append(u.w, u.c), np.append(v.w, v.c)
    return bool(min(np.linalg.norm(p - q), np.linalg.norm(p + q)) <= _TWINS * np.linalg.norm(p))


def _doubt(w: Witness) -> float:
    """Error of a sketch over its length."""
    return float(w.noise * np.sqrt(len(w.sketch)) / max(float(np.linalg.norm(w.sketch)), 1e-300))


def _parallel(w: Witness, v: Witness, k: int) -> bool:
    """Whether the first k entries of two sketches are parallel, as far as their noise tells."""
    p, q = w.sketch[:k] / np.linalg.norm(w.sketch[:k]), v.sketch[:k] / np.linalg.norm(v.sketch[:k])
    apart = min(float(np.linalg.norm(p - q)), float(np.linalg.norm(p + q)))
    return apart <= min(20.0 * (_doubt(w) + _doubt(v)) + 1e-9, _ALIKE)


def _same_units_on(w: Witness, v: Witness) -> bool:
    a, b = w.chord.chart.active, v.chord.chart.active
    return len(a) == len(b) and bool((a == b).all())


def joined(v: Unit, u: Unit) -> bool:
    """Whether two units agree where both are known; then the first takes what the second knows."""
    scale = _agree(np.append(v.w, v.c), v.known, v.error, np.append(u.w, u.c), u.known, u.error)
    if scale is None:
        return False
    new = u.known & ~v.known
    v.w, v.error = np.where(new, scale * u.w, v.w), max(v.error, abs(scale) * u.error)
    v.known = v.known | u.known
    return True


def _agree(
    one: Array, known: NDArray[np.bool_], error: float, two: Array, on: NDArray[np.bool_], noise: float
) -> float | None:
    """The scale s with one ≈ s·two on the weights that both know and on c; None: there is none, or too few to tell."""
    common = np.append(known & on, True)
    if common.sum() < 3:
        return None
    p, q = one[common], two[common]
    size = float(np.linalg.norm(q))
    if size < 1e-3 * np.linalg.norm(two) or np.linalg.norm(p) < 1e-3 * np.linalg.norm(one):
        return None
    scale = float(p @ q) / size**2
    slack = 30.0 * (error * (1.0 + abs(one[-1])) + abs(scale) * noise * (1.0 + abs(two[-1]))) + 1e-8 * np.linalg.norm(p)
    if slack > 1e-3 * np.linalg.norm(p) or np.linalg.norm(p - scale * q) > slack:
        return None
    return scale
