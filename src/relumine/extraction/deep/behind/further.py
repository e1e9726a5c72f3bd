"""The layer behind two or more known ones, with others further behind it.

Most kinks belong to layers further behind. Each is tried: its normal says what it can about θ, and places of the
surface a few regions away must bend the box. Those that pass are followed until all of θ is known, and then held
against the box all over. A unit of the next layer bends it at every one of these places; one further behind does not.
"""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs, Stop
from relumine.extraction.deep.asking.kinks import segments
from relumine.extraction.deep.asking.witnesses import Chord, Witness, witnesses_of
from relumine.extraction.deep.behind.lacking import biases
from relumine.extraction.deep.behind.orient import Signs
from relumine.extraction.deep.behind.passing import positive
from relumine.extraction.deep.ending.confirm import Found, polished
from relumine.extraction.deep.ending.last import LACKING, affine, finish
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Chart, Known
from relumine.extraction.deep.known.climb import corners
from relumine.extraction.deep.known.patterns import Patterns
from relumine.extraction.deep.known.places import chords
from relumine.extraction.deep.surfaces.again import PLACES, measured_again
from relumine.extraction.deep.surfaces.held import Held, rebased
from relumine.extraction.deep.surfaces.probing import corrected
from relumine.extraction.deep.surfaces.surface import Surface

_CHORDS = 12  # chords of a look
_MOST = 8_000  # queries for a chord
MOSTLY = 0.9  # share of the kinks that these units explain if their layer is the last
# Looks without a new unit, before which no more than a few rows may show that some are missing: a look takes 400 rows,
# and a unit from rows alone thousands. A 30-20-15-10-1 took 137 s with the first three of ten units to come so.
_PASSED, _FEW = 4, 0.01
# Looks without a new unit, after which the signs are asked for. After one, the fourth layer of 784-8×8-1 lacked a unit
# that is on for one input in a hundred; such a one changes sides once in a look between corners.
_QUIET = 4
# Patterns of the last known layer that are looked at before; in 784-8×8-1 there are some 60, behind 16 units thousands.
_PATTERNS = 96
# Looks without a new unit, after which the search for a layer ends, where it may be the last.
_NEARLY, _LITTLE = 8, 4
# The same after which a unit may be missing that no input turns off. In a trained 100-16×8-1 one unit of the third
# layer, on for 99.99 % of the inputs, changed sides on the lines of one look in six.
_PATIENT, _OPEN = 12, 7  # the second where nothing is missing, but signs stay open
# Kinks in a row that are no unit's of this layer: look elsewhere; the others are tried after the next look. With 60,
# those of units that are seldom off, next to other kinks, were not tried in time in a trained 100-16×8-1.
_FAILED = 120
_FURTHER = 15  # so many in all: there are layers further behind
_TOGETHER = 24  # kinks tried at a time
_PLACED = 1e-7  # how far off weights may be that come from gradients


class Next(Held):
    """The units of the layer behind the known ones; ``precise``: those have all their digits."""

    def __init__(self, at: Inquiry, free: list[Witness], precise: bool, begun: list[Surface] | None = None) -> None:
        super().__init__(at, free, begun or [])
        self.tried: set[int] = set()
        self.failed, self.precise = 0, precise
        self.signs: Signs | None = None
        self.on = 0  # units that no input seems to turn off
        self._patterns: Patterns | None = None
        at.mark = at.ask.mark

    @property
    def further(self) -> bool:
        """Whether there are layers further behind."""
        return self.failed > _FURTHER

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
            if self.further:
                self.compare()
            quiet = quiet + 1 if len(self.surfaces) == before else 0
            rest = len(self.rest())
            mostly = rest <= (1.0 - MOSTLY) * len(self.free)
            at.run.report(f"layer {k}", turn, float("nan"), len(self.surfaces))
            at.confirm(len(self.surfaces), self.free)
            at.tell(f"  layer {k} turn {turn}: {len(self.surfaces)} surfaces, {rest} of {len(self.free)} kinks left")
            if turn == 1 and not self.surfaces and (net := affine(at)) is not None:
                found, _ = polished(at, net)
                if found is not None:
                    return found
            if mostly and self.surfaces:
                found, pairs = ended(at, at.known, self.units(), LACKING if quiet >= _PASSED else _FEW)
                if found is not None:
                    return found
            if quiet >= _QUIET and pairs is None and self.surfaces and self.further and self.covered:
                found_all = self.signed()
                if found_all is not None:
                    return found_all
                if self.in_front is not None:
                    return self.units(), None
            if quiet > self.patience(mostly) and pairs is None and not self.lacking:
                break
        if self.further and self.signs is None:  # there was no time to ask for signs
            self.beyond_others()
        if not self.surfaces:
            raise Stop(f"layer {k}: of it no unit was found")
        return self.units(), None

    def patience(self, mostly: bool) -> int:
        """Looks without a new unit, after which the search for this layer ends; ``mostly``: few kinks are left."""
        if not self.further:
            return _NEARLY if mostly else _LITTLE
        return _OPEN if self.signs is not None and self.signs.open else _PATIENT

    def again(self) -> None:
        """Begin again, with all known layers measured from many kinks of each unit, one after the other."""
        for layer in range(len(self.at.known.layers)):
            self.at.doubtful |= not measured_again(self.at, layer)
        self.begin()
        self.precise, self.tried, self.signs, self._patterns = True, set(), None, None

    @property
    def in_front(self) -> tuple[int, Pairs] | None:
        """A known layer that is not all there (its number), and stretches from inputs at which that shows."""
        return None if self.signs is None else self.signs.in_front

    @property
    def lacking(self) -> bool:
        """Whether there are stretches, not yet looked at, on which something that is missing shows."""
        return self.signs is not None and self.signs.missing is not None

    @property
    def patterns(self) -> Patterns:
        """Those of the last known layer, of which a unit that few inputs turn on is on at many of one."""
        if self._patterns is None:
            self._patterns = Patterns(self.at.known, self.at.rng)
        return self._patterns

    @property
    def covered(self) -> bool:
        """Whether all patterns, or enough of many, have been looked at."""
        return not self.patterns.left or self.patterns.shown >= _PATTERNS

    def look(self, pairs: Pairs | None, quiet: int, turn: int) -> None:
        """Kinks on new chords that the known layers do not explain; units seldom on, or off, bend in corners."""
        at, missing = self.at, None if self.signs is None else self.signs.missing
        if pairs is None and self.further and missing is None:
            if quiet % 2 or (quiet >= _QUIET and not self.covered):
                pairs = self.patterns.pairs(_CHORDS)
            if pairs is None and (turn % 3 if not quiet else quiet % 3 != 1):
                ends = corners(at.known, _CHORDS, at.rng)
                pairs = (ends[::2], ends[1::2])
        charts: list[Chart] = []
        if missing is None:
            charts, starts, ends = chords(at.known, _CHORDS, at.rng, pairs, moving=True)
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
        self.agree()
        new = [w for w in self.free if id(w) not in self.tried]
        new.sort(key=lambda w: -w.gap * abs(w.jump))
        for start in range(0, len(new), _TOGETHER):
            some = [w for w in new[start : start + _TOGETHER] if not self.explained(w)]
            self.tried |= {id(w) for w in some}
            pairs = list(zip(some, self.screened(some)))
            # all at once is quicker, but kinks of one unit are then followed in vain: few are where layers are behind
            for group in [pairs] if self.further else [[pair] for pair in pairs]:
                for found in self.followed([s for w, s in group if s is not None and not self.explained(w)]):
                    self.keep(found)
                for w, s in group:
                    there = s is not None and self.explained(w)
                    failed, self.failed = 0 if there else failed + 1, self.failed + (not there)
            if failed > _FAILED:
                break

    def signed(self) -> tuple[list[Unit], Array] | None:
        """The units with their signs ξ, once the box depends on nothing else."""
        self.beyond_others()
        self.extend()
        if self.signs is None:
            self.signs = Signs(self.at)
        if self.signs.crossed(self.units()):
            return None
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


def ended(at: Inquiry, known: Known, units: list[Unit], lacking: float = LACKING) -> tuple[Found | None, Pairs | None]:
    """The network, if these units are the last; ``lacking``: share of the rows that may show others."""
    if not units:
        return None, None
    before, at.known = at.known, known
    if at.draft is not None:  # with what was asked since, that may be all
        (draft, at.open), at.draft = at.draft, None
        with at.within(None):
            found, pairs = polished(at, draft)
        if found is not None:
            return found, None
    net, pairs = finish(at, units, lacking=lacking)
    found, more = (None, None) if net is None else polished(at, net)
    pairs = pairs if more is None else more
    if found is None:
        at.known = before
    return found, pairs
