"""The surfaces of a layer behind two or more known ones, held against the box.

The box bends all over the surface of a unit of the next layer, and on both sides of all others. Of a unit further
behind it does so only as far as no unit in between changes sides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.asking.witnesses import Witness, measured
from relumine.extraction.deep.first.units import Unit, joined
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.again import PLACES, SHARE, lines_through
from relumine.extraction.deep.surfaces.following import begun, extended
from relumine.extraction.deep.surfaces.probing import (
    Lines,
    Shown,
    across,
    alike,
    all_shown,
    beyond,
    chosen,
    one_sided,
    sharpened,
    shown,
    united,
)
from relumine.extraction.deep.surfaces.surface import Lift, Surface, agreeing
from relumine.extraction.deep.surfaces.walking import walked

# Places asked before a surface is followed, how many regions away they are, and how far off the box may bend there.
_SCREEN, _AWAY, _ROUGH = (3, 5), 6, 1e-4
_CHOICE = 4  # of so many, for each, those beyond the most surfaces found so far
_MISSES = 3  # kinks that may not be where they should while a surface is followed, beyond one for every weight found
_ENOUGH, SLACK = 6, 1e-6  # hits that a surface needs; how far off
_MANY = 12  # times as many lines as usual, on which places of surfaces that few lines cross are looked for
# Kinks among which those that agree on an open weight are looked for; the share of φ that tells of it elsewhere.
_LATEST, _TELLS = 2000, 1e-2
_PART = 0.7  # of the weights of a surface that must be known where it holds in part


class Held:
    """Surfaces that the box bends on, and the kinks ``free`` that the known layers do not explain."""

    def __init__(self, at: Inquiry, free: list[Witness], surfaces: list[Surface]) -> None:
        self.at, self.lift = at, Lift(at.known)
        self.free = rebased(self.lift, free)
        self.surfaces = surfaces
        self.local: list[Surface] = []  # of units further behind, as far as no unit in between changes sides
        self.gone: list[Surface] = []  # those that were not there beyond others
        self._mine: set[int] = set()  # kinks on a surface that was found
        self._asked: list[Surface] = []  # those that were asked for beyond others
        self._checked = 0  # surfaces that were asked for on both sides of the others
        self._lines: Lines | None = None

    def begin(self) -> None:
        """Begin again, behind the known layers as they are now."""
        self.lift, self.surfaces = Lift(self.at.known), []
        self.free = rebased(self.lift, self.free)
        self._mine, self._checked, self._lines = set(), 0, None

    @property
    def lines(self) -> Lines:
        """Those on which surfaces are held against the box."""
        if self._lines is None:
            self._lines = lines_through(self.lift, self.at.rng)
        return self._lines

    def keep(self, new: Surface) -> None:
        """One more surface; of a unit that was found before, what the kinks of both say."""
        if any(old.joins(new) or alike(old, new) for old in self.gone):
            return
        for i, old in enumerate(self.surfaces):
            if old.joins(new):
                return
            if alike(old, new):
                self.surfaces[i] = united(old, new)
                return
        self.surfaces.append(new)

    def screened(self, some: list[Witness]) -> list[Surface | None]:
        """What each kink's normal says of its surface, if the box bends a few regions away, too."""
        at, found = self.at, []
        for w, result in zip(some, measured(at.ask.beside, some, at.rng)):
            normal = None if result is None or not result[0].any() else w.chord.chart.J.T @ result[0]
            found.append(None if normal is None else begun(self.lift, w.point, normal, at.rng))
        hits, missed = np.zeros(len(found)), np.zeros(len(found))
        for places in _SCREEN:  # the first ones rule out most
            tried = [i for i, s in enumerate(found) if s is not None]
            alive = [s for s in found if s is not None]
            near = walked([(s, _CHOICE * places) for s in alive], at.rng, _AWAY)
            asked = [(s, beyond(s, some, self.surfaces, places)) for s, some in zip(alive, near)]
            for i, there in zip(tried, all_shown(at.ask, asked, _ROUGH)):
                hits[i], missed[i] = hits[i] + len(there.hits), missed[i] + len(there.missed)
            found = [None if n > 1 or (n and not k) else s for s, k, n in zip(found, hits, missed)]
        return [None if n > 0.3 * k else s for s, k, n in zip(found, hits, missed)]

    def followed(self, some: list[Surface]) -> list[Surface]:
        """All of those surfaces of which the box bends all over; the others are no unit's of this layer.

        Most are not, and that shows soon: only those that pass are followed as far as they go.
        """
        for brief in (True, False):
            open_ = [s for s in some if brief or not s.seen.all()]
            good = extended(self.at.ask, open_, self.at.rng, _MISSES, brief)
            whole = {id(s): self.whole(s) if there else None for s, there in zip(open_, good)}
            passed = [whole.get(id(s), s) for s in some]
            some = []
            for s in passed:  # each once
                if s is not None and not any(other.joins(s) for other in some):
                    some.append(s)
        return some

    def whole(self, surface: Surface) -> Surface | None:
        """A surface as far as it was followed, if the box bends all over it."""
        solved = surface.solved()
        if solved is not None:
            surface.theta, surface.error = solved
        found = self.verified(surface, self.surfaces, PLACES)
        if found is None and solved is not None and surface.seen.mean() >= _PART:
            self.local.append(surface)
        return found

    def verified(self, surface: Surface, others: list[Surface], count: int) -> Surface | None:
        """The surface, with more digits, if the box bends all over it; on both sides of the others, too."""
        ask, rng = self.at.ask, self.at.rng
        places = list(chosen(self.lines, surface, others, count, rng))
        if len(places) < count:
            places += walked([(surface, count - len(places))], rng, 2 * _AWAY)[0]
        found = shown(ask, surface, places, SLACK)
        if found.score < SHARE or len(found.hits) < _ENOUGH:
            return None
        return sharpened(surface, found.hits)

    def compare(self) -> None:
        """Ask for older surfaces on both sides of newer ones: what is missing on one side is further behind."""
        new, rng = self.surfaces[self._checked :], self.at.rng
        old = self.surfaces[: self._checked]
        found = all_shown(self.at.ask, [(s, chosen(self.lines, s, new, 0, rng)) for s in old], SLACK)
        kept = [s for s, there in zip(old, found) if not _missing(there)]
        if len(kept) < self._checked:
            self._mine = set()
        self.surfaces = [*kept, *new]
        self._checked = len(self.surfaces)

    def beyond_others(self) -> None:
        """Ask for surfaces whose kinks are on one side of all others beyond one of them: what is not there goes.

        Few lines cross such a one there, so many are searched for places; the box is asked only at those.
        """
        whole = [s for s in self.surfaces if s.seen.all()]
        new = [s for s in self.surfaces if not _among(self._asked, s)]
        self._asked += new
        asked = [(s, [other for other in whole if other is not s]) for s in new]
        asked = [(s, others) for s, others in asked if len(one_sided(s, others))]
        if not asked:
            return
        lines = lines_through(self.lift, self.at.rng, _MANY)
        places = [(s, across(lines, s, others, PLACES)) for s, others in asked]
        gone = [s for (s, _), there in zip(places, all_shown(self.at.ask, places, SLACK)) if _missing(there)]
        self.at.tell(f"   {len(asked)} surfaces on one side of all others, {len(gone)} of them not beyond any")
        self.gone += gone
        self.surfaces = [s for s in self.surfaces if not _among(gone, s)]
        self._mine, self._checked = set() if gone else self._mine, len(self.surfaces)

    def extend(self) -> None:
        """Weights of surfaces that are still open."""
        extended(self.at.ask, [s for s in self.surfaces if not s.seen.all()], self.at.rng)
        self.agree()

    def agree(self) -> None:
        """The same by kinks that were seen already, as far as some of them agree, and the box bends where they say."""
        for surface in self.surfaces:
            rest = [] if surface.seen.all() else self.rest()[-_LATEST:]
            while len(new := agreeing(surface, np.reshape([w.point for w in rest], (-1, self.at.dim)))):
                before = replace(surface, points=list(surface.points))
                surface.take(new)
                X, F = self.lines.crossings(surface)
                tells = np.linalg.norm(F @ before.unknown, axis=1) > _TELLS * np.linalg.norm(F, axis=1)
                there = shown(self.at.ask, surface, X[self.at.rng.permutation(np.flatnonzero(tells))[:PLACES]], SLACK)
                if there.score < SHARE and (there.missed or len(new) < _ENOUGH):
                    vars(surface).update(vars(before))
                    break

    def explained(self, w: Witness) -> bool:
        """Whether a kink is on a surface that was found."""
        if id(w) not in self._mine and any(s.shows(w.point) for s in self.surfaces):
            self._mine.add(id(w))
        return id(w) in self._mine

    def rest(self) -> list[Witness]:
        """Kinks of layers further behind."""
        left = [w for w in self.free if id(w) not in self._mine]
        if left:
            F = self.lift(np.array([w.point for w in left]), np.zeros(0))
            on = np.any([s.among(F) for s in self.surfaces], axis=0) if self.surfaces else np.zeros(len(F), dtype=bool)
            self._mine |= {id(w) for w, found in zip(left, on) if found}
        return [w for w in left if id(w) not in self._mine]

    def units(self) -> list[Unit]:
        """The surfaces as units of this layer, each once."""
        units: list[Unit] = []
        for s in sorted(self.surfaces, key=lambda s: s.error):
            w = s.theta[:-1] * s.seen[:-1]
            size = float(np.linalg.norm(w))
            unit = Unit(w / size, float(s.theta[-1]) / size, s.seen[:-1], s.error, points=s.points)
            if not any(joined(u, unit) for u in units):
                units.append(unit)
        return units


def _among(surfaces: list[Surface], one: Surface) -> bool:
    return any(one is other for other in surfaces)


def _missing(there: Shown) -> bool:
    """Whether the box is straight at too many places of a surface."""
    return bool(there.missed) and there.score < SHARE


def rebased(lift: Lift, free: list[Witness], wide: bool = False, least: int = 2) -> list[Witness]:
    """Kinks that were seen behind fewer layers, in the charts of those known now; without those of known units.

    In those of x itself behind ``wide`` layers; ``least``: units in front that are on, and directions that move them.
    """
    found, known = [], Known(lift.known.d) if wide else lift.known
    for w in free:
        chart = None if lift.touches(w.point) else known.moving(w.point, least)
        if chart is not None:
            found.append(w.behind(chart))
    return found
