"""The layer behind two or more known ones, with others further behind it.

Most kinks belong to layers further behind. Each is tried: its normal says what it can about θ, and places of the
surface a few regions away must bend the box. Those that pass are followed until all of θ is known, and then held
against the box all over. A unit of the next layer bends it at every one of these places; one further behind does not.
"""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.again import PLACES, SHARE, lines_through, measured_again
from relumine.extraction.deep.charts import Chart, Known
from relumine.extraction.deep.climb import corners
from relumine.extraction.deep.confirm import Found, polished
from relumine.extraction.deep.following import begun, extended
from relumine.extraction.deep.inquiry import Inquiry, Pairs, Stop
from relumine.extraction.deep.kinks import segments
from relumine.extraction.deep.lacking import biases
from relumine.extraction.deep.last import affine, finish
from relumine.extraction.deep.orient import Signs
from relumine.extraction.deep.passing import positive
from relumine.extraction.deep.places import chords
from relumine.extraction.deep.probing import (
    Lines,
    Shown,
    across,
    alike,
    all_shown,
    beyond,
    chosen,
    corrected,
    one_sided,
    sharpened,
    shown,
    united,
)
from relumine.extraction.deep.surfaces import Lift, Surface
from relumine.extraction.deep.units import Unit, joined
from relumine.extraction.deep.walking import walked
from relumine.extraction.deep.witnesses import Chord, Witness, measured, witnesses_of

_CHORDS = 12  # chords of a look
_MOST = 8_000  # queries for a chord
MOSTLY = 0.9  # share of the kinks that these units explain if their layer is the last
# Looks without a new unit, after which the signs are asked for. After one, the fourth layer of 784-8×8-1 lacked a unit
# that is on for one input in a hundred; such a one changes sides once in a look between corners.
_QUIET = 4
# So many after which a unit may be missing that no input turns off. In a trained 100-16×8-1 one unit of the third
# layer, on for 99.99 % of the inputs, changed sides on the lines of one look in six.
_PATIENT, _OPEN = 12, 7  # the second where nothing is missing, but signs stay open
# Kinks in a row that are no unit's of this layer: look elsewhere; the others are tried after the next look. With 60,
# those of units that are seldom off, next to other kinks, were not tried in time in a trained 100-16×8-1.
_FAILED = 120
_FURTHER = 15  # so many in all: there are layers further behind
_TOGETHER = 24  # kinks tried at a time
# Places asked before a surface is followed, how many regions away they are, and how far off the box may bend there.
_SCREEN, _AWAY, _ROUGH = (3, 5), 6, 1e-4
_CHOICE = 4  # of so many, for each, those beyond the most surfaces found so far
_MISSES = 3  # kinks that may not be where they should while a surface is followed, beyond one for every weight found
_ENOUGH, SLACK = 6, 1e-6  # hits that a surface needs; how far off
_PLACED = 1e-7  # how far off weights may be that come from gradients
_MANY = 12  # times as many lines as usual, on which places of surfaces that few lines cross are looked for
_PART = 0.7  # of the weights of a surface that must be known where it holds in part


class Next:
    """The units of the layer behind the known ones; ``precise``: those have all their digits."""

    def __init__(self, at: Inquiry, free: list[Witness], precise: bool, begun: list[Surface] | None = None) -> None:
        self.at, self.lift = at, Lift(at.known)
        self.free = rebased(self.lift, free)
        self.surfaces = begun or []
        self.local: list[Surface] = []  # of units further behind, as far as no unit in between changes sides
        self.tried: set[int] = set()
        self.mine: set[int] = set()
        self.failed, self.checked, self.precise = 0, 0, precise
        self._lines: Lines | None = None
        self.signs: Signs | None = None
        self.beyond: set[int] = set()  # surfaces that were asked for beyond others
        self.gone: list[Surface] = []  # those that were not there
        self.on = 0  # units that no input seems to turn off
        at.mark = at.ask.mark

    @property
    def further(self) -> bool:
        """Whether there are layers further behind."""
        return self.failed > _FURTHER

    @property
    def lines(self) -> Lines:
        """Those on which surfaces are held against the box."""
        if self._lines is None:
            self._lines = lines_through(self.lift, self.at.rng)
        return self._lines

    def all(self, turns: int) -> Found | tuple[list[Unit], Array | None]:
        """The network, if this layer is the last; else its units, and their signs where these can be told.

        As soon as it shows that there are layers further behind, the known ones are measured again: their digits are
        needed.
        """
        at, quiet, pairs = self.at, 0, None
        k = len(at.known.layers) + 1
        for turn in range(turns):
            if turn or not self.free:
                self.look(pairs, quiet, turn)
            before, pairs = len(self.surfaces), None
            self.trace()
            if self.further and not self.precise:
                self.again()
                self.trace()
            self.compare()
            quiet = quiet + 1 if len(self.surfaces) == before else 0
            rest = len(self.rest())
            mostly = rest <= (1.0 - MOSTLY) * len(self.free)
            at.run.report(f"layer {k}", turn, float("nan"), len(self.surfaces))
            at.confirm(len(self.surfaces), self.free)
            at.tell(f"  layer {k} turn {turn}: {len(self.surfaces)} surfaces, {rest} of {len(self.free)} kinks left")
            if turn == 1 and not self.free and (net := affine(at)) is not None:
                found, _ = polished(at, net)
                if found is not None:
                    return found
            if mostly and self.surfaces:
                found, pairs = ended(at, at.known, self.units())
                if found is not None:
                    return found
            if quiet >= _QUIET and pairs is None and self.surfaces and self.further:
                found_all = self.signed()
                if found_all is not None:
                    return found_all
            patience = (
                (_OPEN if self.signs is not None and self.signs.open else _PATIENT)
                if self.further
                else 8
                if mostly
                else 4
            )
            if quiet > patience and pairs is None:
                break
        if not self.surfaces:
            raise Stop(f"layer {k}: of it no unit was found")
        return self.units(), None

    def again(self) -> None:
        """Begin again, with all known layers measured from many kinks of each unit, one after the other."""
        for layer in range(len(self.at.known.layers)):
            self.at.doubtful |= not measured_again(self.at, layer)
        self.lift, self.precise = Lift(self.at.known), True
        self.surfaces, self.tried, self.mine, self.checked = [], set(), set(), 0
        self._lines = self.signs = None
        self.free = rebased(self.lift, self.free)

    def look(self, pairs: Pairs | None, quiet: int, turn: int) -> None:
        """Kinks on new chords that the known layers do not explain; units seldom on, or off, bend in corners."""
        at, missing = self.at, None if self.signs is None else self.signs.missing
        if pairs is None and self.further and (turn % 3 or quiet):
            ends = corners(at.known, _CHORDS, at.rng)
            pairs = (ends[::2], ends[1::2])
        charts: list[Chart] = []
        if missing is None:
            charts, starts, ends = chords(at.known, _CHORDS, at.rng, pairs if quiet % 3 != 1 else None, moving=True)
        else:
            assert self.signs is not None
            pairs, self.signs.missing = missing, None
        if not charts or (pairs is not None and not self.further and quiet % 3 == 2):  # whole lines miss nothing
            charts, starts, ends = chords(Known(at.dim), 2, at.rng)
            if pairs is not None:
                starts, ends = pairs
                charts = charts[:1] * len(starts)
        length = float(np.median(np.linalg.norm(ends - starts, axis=1)))
        found = segments(at.ask, starts, ends, min(length, float(np.sqrt(at.dim))), _MOST * len(starts))
        new = [w for chart, segment in zip(charts, found) for w in witnesses_of(Chord(chart, segment, 0))]
        # where rows contradict, a unit may be off only with one unit in front on: elsewhere such kinks say too little
        least = 1 if pairs is not None and not self.further else 2
        self.free = self.free + rebased(self.lift, [w for w in new if not w.rounding], least=least)

    def trace(self) -> None:
        """The surface of every kink that is on none yet, the clearest first, a few of them at a time."""
        failed = 0
        new = [w for w in self.free if id(w) not in self.tried]
        new.sort(key=lambda w: -w.gap * abs(w.jump))
        for start in range(0, len(new), _TOGETHER):
            some = [w for w in new[start : start + _TOGETHER] if not self.explained(w)]
            self.tried |= {id(w) for w in some}
            for w, surface in zip(some, self.screened(some)):
                if surface is not None and self.explained(w):  # by one found since
                    continue
                full = None if surface is None else self.followed(surface)
                failed = 0 if full is not None else failed + 1
                self.failed += full is None
                if full is not None:
                    self.keep(full)
            if failed > _FAILED:
                break

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

    def followed(self, surface: Surface) -> Surface | None:
        """All of a surface, if the box bends all over it; None: it is no unit's of this layer.

        Most are not, and that shows soon: only those that pass are followed as far as they go.
        """
        found: Surface | None = surface
        for brief in (True, False):
            if found is None or (found.seen.all() and not brief):
                break
            if not extended(self.at.ask, found, self.at.rng, _MISSES, brief):
                return None
            solved = found.solved()
            if solved is not None:
                found.theta, found.error = solved
            whole, found = found, self.verified(found, self.surfaces, PLACES)
            if found is None and solved is not None and whole.seen.mean() >= _PART:
                self.local.append(whole)
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
        better = sharpened(surface, found.hits)
        return None if better is None else better.settled()

    def compare(self) -> None:
        """Ask for older surfaces on both sides of newer ones: what is missing on one side is further behind."""
        if not self.further:
            return
        new, rng = self.surfaces[self.checked :], self.at.rng
        old = self.surfaces[: self.checked]
        found = all_shown(self.at.ask, [(s, chosen(self.lines, s, new, 0, rng)) for s in old], SLACK)
        kept = [s for s, there in zip(old, found) if not _missing(there)]
        if len(kept) < self.checked:
            self.mine = set()
        self.surfaces = [*kept, *new]
        self.checked = len(self.surfaces)

    def beyond_others(self) -> None:
        """Ask for surfaces whose kinks are on one side of all others beyond one of them: what is not there goes.

        Few lines cross such a one there, so many are searched for places; the box is asked only at those.
        """
        whole = [s for s in self.surfaces if s.seen.all()]
        new = [s for s in self.surfaces if id(s) not in self.beyond]
        self.beyond |= {id(s) for s in new}
        asked = [(s, [other for other in whole if other is not s]) for s in new]
        asked = [(s, others) for s, others in asked if len(one_sided(s, others))]
        if not asked:
            return
        lines = lines_through(self.lift, self.at.rng, _MANY)
        places = [(s, across(lines, s, others, PLACES)) for s, others in asked]
        gone = [s for (s, _), there in zip(places, all_shown(self.at.ask, places, SLACK)) if _missing(there)]
        self.at.tell(f"   {len(asked)} surfaces on one side of all others, {len(gone)} of them not beyond any")
        self.gone += gone
        self.surfaces = [s for s in self.surfaces if not any(s is other for other in gone)]
        self.mine, self.checked = set() if gone else self.mine, len(self.surfaces)

    def extend(self) -> None:
        """Weights of surfaces that are still open."""
        for surface in self.surfaces:
            if not surface.seen.all():
                extended(self.at.ask, surface, self.at.rng)

    def signed(self) -> tuple[list[Unit], Array] | None:
        """The units with their signs ξ, once the box depends on nothing else."""
        self.beyond_others()
        self.extend()
        if self.signs is None:
            self.signs = Signs(self.at)
        found = self.signs.told(self.units(), self.free)
        w = self.signs.lacking(self.units()) if found is None else None
        return self.always(w) if w is not None and not self.place(w) else found

    def always(self, w: Array) -> tuple[list[Unit], Array] | None:
        """The same with one unit more, ±w, which no input seems to turn off: any bias will do by which none does."""
        assert self.signs is not None
        rows, shift = positive(self.at.known, w[None], self.at.rng)
        if len(rows) > 1:
            return None
        unit = Unit(rows[0], float(shift[0]), np.ones(len(w), dtype=bool), 0.0)
        found = self.signs.told([*self.units(), unit], self.free)
        self.on = int(found is not None and any(u.c == unit.c for u in found[0]))
        return found

    def place(self, w: Array) -> bool:
        """Whether a unit ±w that is off at few inputs was found: the box bends all over its surface."""
        for c, points in biases(self.at, w):
            seen = np.ones(len(w) + 1, dtype=bool)
            surface = Surface(self.lift, np.zeros(0), np.append(w, c), seen, points)
            there = self.verified(surface, self.surfaces, PLACES)
            self.at.tell(f"   {len(points)} kinks of one more unit: it is {'there' if there else 'not there'}")
            if there is not None:  # its kinks need not show all of w
                theta = corrected(surface, there.points, _PLACED)
                self.keep(Surface(self.lift, np.zeros(0), theta, seen, there.points, there.error))
                return True
        return False

    def explained(self, w: Witness) -> bool:
        """Whether a kink is on a surface that was found."""
        if id(w) not in self.mine and any(s.shows(w.point) for s in self.surfaces):
            self.mine.add(id(w))
        return id(w) in self.mine

    def rest(self) -> list[Witness]:
        """Kinks of layers further behind."""
        left = [w for w in self.free if id(w) not in self.mine]
        if left:
            F = self.lift(np.array([w.point for w in left]), np.zeros(0))
            on = np.any([s.among(F) for s in self.surfaces], axis=0) if self.surfaces else np.zeros(len(F), dtype=bool)
            self.mine |= {id(w) for w, found in zip(left, on) if found}
        return [w for w in left if id(w) not in self.mine]

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


def _missing(there: Shown) -> bool:
    """Whether the box is straight at too many places of a surface."""
    return bool(there.missed) and there.score < SHARE


def ended(at: Inquiry, known: Known, units: list[Unit]) -> tuple[Found | None, Pairs | None]:
    """The network, if these units are the last."""
    if not units:
        return None, None
    before, at.known = at.known, known
    if at.draft is not None:  # with what was asked since, that may be all
        (draft, at.open), at.draft = at.draft, None
        with at.within(None):
            found, pairs = polished(at, draft)
        if found is not None:
            return found, None
    net, pairs = finish(at, units)
    found, more = (None, None) if net is None else polished(at, net)
    pairs = pairs if more is None else more
    if found is None:
        at.known = before
    return found, pairs


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
