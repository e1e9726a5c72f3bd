"""Units of the next layer from many kinks, most of which belong to layers further behind: witnesses that agree.

At a kink in a chart with active units A the normal gives θ on A and the constant, up to scale. Kinks of one unit of the
next layer agree on what they have in common and together give all of θ. A deeper unit has another θ wherever a unit in
front of it changes sides: two of its kinks may agree, too, but then it is missing on most chords that θ crosses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.box import Asked
from relumine.extraction.deep.following import extended
from relumine.extraction.deep.surfaces import Lift, Surface, only
from relumine.extraction.deep.witnesses import Chord, Witness, measure

Mask = NDArray[np.bool_]


_COMMON = 4  # entries, the constant among them, that two normals must share: three equations
_WEIGHT = 0.02  # of each normal's square that the shared entries must hold: else they say little
_APART = 20.0  # how far apart two normals may be, over their errors
# Chords that must show a unit, and the share of those that it crosses: in 100-16×8-1 all 16 units of the third layer
# had 5 … 31 and 95 … 100 %, and the one group of a deeper unit 3.
_CHORDS, _SCORE = 5, 0.8
_PARTNERS = 3  # chords with kinks that agree, before anything is counted
_NEW = 250  # kinks measured at a time
_LOST = 1e-5  # relative error of a normal that is of no use


@dataclass
class _Group:
    """θ (width + 1,) on the entries ``seen``, and the witnesses that agree."""

    theta: Array
    seen: Mask
    members: list[int]


class Merger:
    """The normals measured so far, and the chords on which kinks were looked for."""

    def __init__(self, ask: Asked, lift: Lift, rng: np.random.Generator) -> None:
        self.ask, self.lift, self.rng = ask, lift, rng
        self.chords: list[Chord] = []
        self.witnesses: list[Witness] = []
        self.measured: set[int] = set()
        self.theta, self.mask, self.error = np.zeros((0, lift.size)), np.zeros((0, lift.size), dtype=bool), np.zeros(0)

    def add(self, free: list[Witness]) -> None:
        """Measure the normals at these kinks, the clearest first."""
        theta, mask, error = [self.theta], [self.mask], [self.error]
        new = [w for w in free if id(w) not in self.measured]
        for w in sorted(new, key=lambda w: -w.gap * abs(w.jump))[:_NEW]:
            self.measured.add(id(w))
            result = measure(self.ask.beside, w, self.rng)
            if result is None:
                continue
            (normal, noise), active = result, w.chord.chart.active
            size = float(np.linalg.norm(normal))
            if size <= 0.0 or noise > _LOST * size:
                continue
            row, on = np.zeros(self.lift.size), np.zeros(self.lift.size, dtype=bool)
            row[active], row[-1] = normal / size, -float(normal @ w.height) / size
            on[active] = on[-1] = True
            theta.append(row[None])
            mask.append(on[None])
            error.append(np.array([noise / size + 1e-10]))
            self.witnesses.append(w)
        self.theta, self.mask, self.error = np.concatenate(theta), np.concatenate(mask), np.concatenate(error)

    def surfaces(self) -> list[Surface]:
        """Those that enough chords show, from all kinks so far: with more of them they get more weights and digits."""
        left, new = np.ones(len(self.witnesses), dtype=bool), []
        chord = np.array([id(w.chord) for w in self.witnesses])
        counts = [len(set(chord[self._agree(*row)])) for row in zip(self.theta, self.mask, self.error)]
        for i in np.argsort(-np.array(counts), kind="stable"):
            if not left[i] or counts[i] < _PARTNERS:
                continue
            group = self._group(int(i), left)
            surface = None if group is None else self._surface(group)
            if group is None or surface is None:
                continue
            new.append(surface)
            left[group.members] = False
            left &= np.array([not surface.shows(w.point) for w in self.witnesses], dtype=bool)
        return new

    def completed(self, found: list[Surface]) -> None:
        """The weights that no kink so far has shown."""
        for surface in found:
            extended(self.ask, surface, self.rng)

    def _agree(self, theta: Array, seen: Mask, error: float) -> Mask:
        """Which normals are parallel to θ on what they share."""
        common = self.mask & seen
        p, q = np.where(common, self.theta, 0.0), np.where(common, theta, 0.0)
        pp, qq, pq = np.sum(p * p, axis=1), np.sum(q * q, axis=1), np.sum(p * q, axis=1)
        enough = (common.sum(axis=1) >= _COMMON) & (pp > _WEIGHT * np.sum(self.theta**2, axis=1))
        enough &= qq > _WEIGHT * float(theta @ theta)
        scale = pq / np.where(qq > 0.0, qq, 1.0)
        apart = np.linalg.norm(p - scale[:, None] * q, axis=1) / np.sqrt(np.where(pp > 0.0, pp, 1.0))
        loud = np.sqrt(np.where(pp > 0.0, np.sum(self.theta**2, axis=1) / np.where(pp > 0.0, pp, 1.0), 1.0))
        return np.asarray(enough & (apart <= _APART * (self.error + error) * loud))

    def _group(self, i: int, left: Mask) -> _Group | None:
        """All that agree with witness i, with what they add, and so on."""
        theta, seen, error, members = self.theta[i].copy(), self.mask[i].copy(), float(self.error[i]), [i]
        for _ in range(4):
            agree = np.flatnonzero(self._agree(theta, seen, error) & left)
            new = [int(j) for j in agree if j not in members]
            if not new:
                break
            for j in sorted(new, key=lambda j: float(self.error[j])):
                common = seen & self.mask[j]
                q = self.theta[j][common]
                scale = float(theta[common] @ q) / float(q @ q)
                add = self.mask[j] & ~seen
                theta[add] = scale * self.theta[j][add]
                seen |= add
                members.append(j)
        if len({id(self.witnesses[j].chord) for j in members}) < _PARTNERS:
            return None
        return _Group(theta, seen, members)

    def _surface(self, group: _Group) -> Surface | None:
        """The surface, once most of the chords that it crosses show it; θ again from all kinks on it."""
        lift = self.lift
        surface = Surface(lift, np.zeros(0), group.theta, group.seen)
        points = self._hits(surface, 1e-5)
        if points is None:
            return None
        found = only(lift(np.array(points), surface.s))
        if found is not None and len(points) > group.seen.sum():
            theta, error = found
            seen = theta != 0.0
            seen[-1] = True
            better = Surface(lift, surface.s, theta, group.seen & seen)
            if (again := self._hits(better, 1e-7)) is not None:
                better.points, better.error = again, error
                return better
        surface.points = points
        return surface

    def _hits(self, surface: Surface, slack: float) -> list[Array] | None:
        """The kinks where chords cross the surface; None if too few of the chords have one there."""
        w, c, hits, crossings = surface.theta[:-1], float(surface.theta[-1]), [], 0
        for chord in self.chords:
            chart, s = chord.chart, chord.segment
            if not surface.seen[chart.active].all():
                continue
            heights = chart.heights(np.stack([s.start, s.start + s.direction]))
            z = heights @ w[chart.active] + c
            if z[0] * z[1] >= 0.0:
                continue
            t = float(z[0] / (z[0] - z[1]))
            room = slack * (1.0 + float(np.abs(heights).max())) * float(np.linalg.norm(surface.theta))
            room = room / abs(float(z[1] - z[0])) + 1e-9
            if room > 1e-2:
                continue
            crossings += 1
            if len(s.t) and np.abs(s.t - t).min() <= room:
                hits.append(s.points[np.abs(s.t - t).argmin()])
        return hits if len(hits) >= _CHORDS and len(hits) > _SCORE * crossings else None
