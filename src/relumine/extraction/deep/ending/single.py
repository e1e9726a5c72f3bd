"""The last hidden layer, behind a layer whose units can all be kept on: there the box is one hidden layer of h.

    f = ½ Σ_i a_i |w_i·h + c_i| + v·h + e                                                                        (1)

On every chord in one direction a unit bends (1) by the same amount, which tells such a layer from one with others
behind it. So each kink is a unit, its normal gives a_i w_i, and what is left of f once the units found are taken off
bends only where one is missing: further chords cost next to nothing.
"""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs
from relumine.extraction.deep.asking.kinks import SIDE, segments
from relumine.extraction.deep.asking.witnesses import Chord, Witness, measure, witnesses_of
from relumine.extraction.deep.ending.confirm import Found, polished
from relumine.extraction.deep.ending.last import finish
from relumine.extraction.deep.first.sharpen import located, sharpened
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Chart
from relumine.extraction.deep.known.places import chords, parallels
from relumine.extraction.pieces import Noise
from relumine.extraction.queries import Unanswered

_MATCH = 1e-6  # relative difference of two jumps that are one
_SHARE = 0.5  # of the jumps of a chord that its parallel must have: the others are off its ends
# Kinks that tell; pairs of parallel chords until so many were seen, some 70 rows each. With one pair, one of twenty
# 10-10-10-1 was taken for deeper, which cost half as many rows again.
_LEAST, _PAIRS = 3, 4
_LOOKS = 40  # along more chords: 64 units took 12, most of them a few hundred rows
_CHORDS = 4  # of a look
_MOST = 8_000  # queries for a chord
_CLEAR = 1e-7  # relative error up to which a normal is taken
_SHARP = 3e-3  # clarity of a kink that is measured at once: ten digits; others wait for a chord that shows them better
_STUCK = 3  # looks that show clear kinks of which none is a unit
_BEND = 1e-3  # how far from a unit the box is asked whether it bends there, over the activations
_LARGE = 2500  # weights of a layer beyond which units are measured again: smaller networks are polished as a whole
_PATIENCE = 2  # times that a network with an affine part is looked at again: a unit may be missing
_OTHER = 1e-3  # change of a jump at a known unit that shows layers behind this one


def last_layer(at: Inquiry) -> Found | None:
    """The network, if the next layer is the last and all units in front of it can be on; None: not, or not sure."""
    at.mark = at.ask.mark
    return _Single(at).all()


class _Single:
    """The units so far with their strengths a (m,)."""

    def __init__(self, at: Inquiry) -> None:
        self.at = at
        self.units: list[Unit] = []
        self.a: list[float] = []
        self.sharp = _SHARP

    def alike(self) -> list[Witness]:
        """Kinks of parallel chords that bend by the same amounts; none where they do not, or where none can be had."""
        at, seen, same, least = self.at, list[Witness](), 0, 0
        for _ in range(_PAIRS):
            pair = parallels(at.known, at.rng)
            try:
                both = [] if pair is None else self.look(*pair)
            except Unanswered:
                both = []
            if len(both) < 2:  # behind a link one or both may have no digits
                return []
            one, two = both
            seen, same, least = [*seen, *one, *two], same + _matched(one, two), least + min(len(one), len(two))
            at.tell(f"  layer 2: {same} of {least} jumps are the same on parallel chords")
            if same < _SHARE * least:
                return []
            if same >= _LEAST:
                return seen
        return []

    def all(self) -> Found | None:
        """The network, or None."""
        at, patience, stuck, sharp = self.at, _PATIENCE, 0, False
        first = self.alike()
        if not first:
            return None
        self.add(first)
        pairs: Pairs | None = None
        for turn in range(_LOOKS):
            charts, starts, ends = chords(at.known, _CHORDS, at.rng, pairs)
            seen = [w for chord in self.look(charts, starts, ends) for w in chord]
            if any(self.contradicts(w) for w in seen):
                at.tell("  layer 2: a unit bends the box by other amounts elsewhere")
                return None
            new, pairs = self.add(seen), None
            at.confirm(len(self.units), first)
            at.run.report("layer 2", turn, float("nan"), len(self.units))
            at.tell(f"  layer 2 turn {turn}: {len(self.units)} units, {len(seen)} kinks left")
            if new:
                continue
            if stay := [w.clarity for w in seen if self.fresh(w)]:
                stuck += max(stay) >= self.sharp
                if stuck >= _STUCK:
                    at.tell(f"  layer 2: {len(stay)} kinks are clear, and none of them is a unit")
                    return None
                self.sharp = min(self.sharp, 0.5 * max(stay))
                continue
            if not sharp and len(self.units) * at.known.width > _LARGE:
                sharpened(at.ask, at.known, self.units, self.a, at.rng)
                sharp = True
            net, pairs = finish(at, self.units)
            if net is not None and net.head.v.any() and patience > 0:
                patience, net = patience - 1, None
            if net is not None:
                found, more = polished(at, net)
                if found is not None:
                    return found
                pairs = pairs if more is None else more
        return None

    def left(self, X: Array) -> Array:
        """The box without the units found."""
        return self._without(X, self.at.ask(X))

    def beside(self, X: Array) -> Array:
        """The same at rows next to others."""
        return self._without(X, self.at.ask.beside(X))

    def _without(self, X: Array, y: Array) -> Array:
        if not self.units:
            return y
        z = self.at.known(X) @ np.array([u.w for u in self.units]).T + np.array([u.c for u in self.units])
        return np.asarray(y - 0.5 * np.abs(z) @ np.array(self.a))

    def look(self, charts: list[Chart], starts: Array, ends: Array) -> list[list[Witness]]:
        """The kinks of what is left on each chord."""
        at = self.at
        scale = float(np.median(np.linalg.norm(ends - starts, axis=1)))
        reach = float(np.linalg.norm(at.known(np.concatenate([starts, ends])), axis=1).max())
        error = np.linalg.norm([a * u.error for a, u in zip(self.a, self.units)]) * reach
        floor = Noise(np.full(1, 3.0 * error), np.zeros(1)) if self.units else None
        before = at.ask.mark
        some, starts, ends = at.ask.within(starts, ends, scale)
        charts = [chart for chart, has in zip(charts, some) if has]
        found = segments(self.left, starts, ends, scale, _MOST * len(starts), floor)
        size = float(np.abs(at.ask.since(before)[1]).max())
        seen = [witnesses_of(Chord(c, s, i), size) for i, (c, s) in enumerate(zip(charts, found))]
        for w in [w for chord in seen for w in chord] if self.units else ():
            # that was the floor; over a short step the units found are off by the same on both ends
            w.sigma = at.ask.grid
        return seen

    def add(self, seen: list[Witness]) -> int:
        """A unit for each kink that none explains yet and that is clear enough, the clearest first; how many."""
        before = len(self.units)
        for w in sorted(seen, key=lambda w: -w.clarity):
            if w.clarity < self.sharp or not self.fresh(w):
                continue
            ask = self.beside if before else self.at.ask.beside
            # the chord's own place has the errors of the units found so far
            place = located(ask, w.point, w.along, SIDE * w.gap)
            result = measure(ask, w, self.at.rng) if place is not None else None
            if result is None or place is None:
                continue
            normal, noise = result
            size = float(np.linalg.norm(normal))
            if noise > _CLEAR * size:
                continue
            v = normal / size
            unit = Unit(v, -float(v @ w.chord.chart.heights(place[0])), np.ones(len(v), dtype=bool), noise / size)
            if self.bends(unit, size, w):
                self.units.append(unit)
                self.a.append(float(np.sign(w.jump)) * size)
        return len(self.units) - before

    def bends(self, u: Unit, a: float, w: Witness) -> bool:
        """Whether the box bends by this much elsewhere on the unit's hyperplane: two kinks in one place do not."""
        at, chart = self.at, w.chord.chart
        for spread in np.geomspace(0.5, 0.01, 20):
            h = w.height * np.exp(spread * at.rng.normal(size=chart.dim))
            h -= u.w * (u.w @ h + u.c)
            step = min(_BEND * float(np.linalg.norm(h)), 0.5 * float((h / np.maximum(np.abs(u.w), 1e-300)).min()))
            X = w.point + (np.stack([h - step * u.w, h, h + step * u.w]) - w.height) @ chart.E.T
            if step > 0.1 * _BEND * np.linalg.norm(h) and at.ask.digits(X).all():
                break
        else:
            return True
        y = self.left(X)
        return bool(abs(abs(y[0] + y[2] - 2.0 * y[1]) - a * step) <= 0.01 * a * step)

    def fresh(self, w: Witness) -> bool:
        """Whether the kink is that of no unit found."""
        return not any(_shows(u, w) for u in self.units)

    def contradicts(self, w: Witness) -> bool:
        """Whether a unit that was found bends f by another amount here."""
        speed = w.chord.chart.J @ w.along
        return any(_shows(u, w) and abs(w.jump) > _OTHER * abs(a * (u.w @ speed)) for u, a in zip(self.units, self.a))


def _shows(u: Unit, w: Witness) -> bool:
    """Whether the kink is one of the unit's."""
    h = w.height
    return bool(abs(u.w @ h + u.c) <= (50.0 * u.error + 1e-9) * (1.0 + float(np.linalg.norm(h))))


def _matched(one: list[Witness], two: list[Witness]) -> int:
    """How many jumps of one chord its parallel has."""
    if not one or not two:
        return 0
    p, q = np.array([w.jump for w in one]), np.array([w.jump for w in two])
    noise = np.array([w.error for w in one])[:, None] + np.array([w.error for w in two])
    return int((np.abs(p[:, None] - q) <= _MATCH * np.abs(p)[:, None] + noise).any(axis=1).sum())
