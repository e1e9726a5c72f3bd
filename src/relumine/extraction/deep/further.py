"""The layer behind two or more known ones, with others further behind it.

Most kinks belong to layers further behind. Each is tried: its normal says what it can about θ, and places of the
surface a few regions away must bend the box. Those that pass are followed until all of θ is known, and then held
against the box all over. A unit of the next layer bends it at every one of these places; one further behind does not.
"""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.climb import corners
from relumine.extraction.deep.confirm import Found, judge
from relumine.extraction.deep.following import begun, extended, walked
from relumine.extraction.deep.inquiry import Inquiry, Pairs, Stop
from relumine.extraction.deep.kinks import segments
from relumine.extraction.deep.last import affine, finish
from relumine.extraction.deep.places import chords
from relumine.extraction.deep.probing import Lines, chosen, corrected, sharpened, shown
from relumine.extraction.deep.sparse import Gradients
from relumine.extraction.deep.surfaces import Lift, Surface
from relumine.extraction.deep.units import Unit, joined
from relumine.extraction.deep.witnesses import Chord, Witness, measure, witnesses_of

_CHORDS = 12  # chords of a look
_MOST = 8_000  # queries for a chord
_MOSTLY = 0.9  # share of the kinks that these units explain if their layer is the last
_QUIET = 2  # looks without a new unit, after which the signs are asked for
_FAILED = 60  # kinks in a row that are no unit's of this layer: look elsewhere
_FURTHER = 15  # so many in all: there are layers further behind
_SCREEN, _AWAY = 8, 6  # places asked before a surface is followed, and how many regions away they are
_MISSES = 3  # kinks that may not be where they should while a surface is followed, beyond one for every weight found
_LINES, _CORNERS = 150, 100  # random lines, and corners between which others are: places are where they cross
_PLACES, _ENOUGH = 24, 6  # places at which a surface is asked for; hits that it needs
# Share of the places that must show it. In all layers of 100-16×8-1 and 784-8×8-1 every unit of the next layer had 100
# %, and those of later ones up to 90 %.
_SHARE = 0.95
_OVER = 3  # kinks for each weight from which a layer is measured again
_KNOWN, _ERROR = 1e-6, 1e-7  # how far off these may be, and its weights so far: measured up to 1e-8


class Next:
    """The units of the layer behind the known ones; ``precise``: those have all their digits."""

    def __init__(self, at: Inquiry, free: list[Witness], precise: bool) -> None:
        self.at, self.lift = at, Lift(at.known)
        self.free = rebased(self.lift, free)
        self.surfaces: list[Surface] = []
        self.tried: set[int] = set()
        self.mine: set[int] = set()
        self.failed, self.checked, self.precise = 0, 0, precise
        self._lines: Lines | None = None
        self.gradients: Gradients | None = None
        at.mark = len(at.ask.log)

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

        As soon as it shows that there are layers further behind, the last known one is measured again: its digits are
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
            mostly = rest <= (1.0 - _MOSTLY) * len(self.free)
            at.run.report(f"layer {k}", turn, float("nan"), len(self.surfaces))
            at.confirm(len(self.surfaces), self.free)
            at.tell(f"  layer {k} turn {turn}: {len(self.surfaces)} surfaces, {rest} of {len(self.free)} kinks left")
            if turn == 1 and not self.free and (net := affine(at)) is not None:
                found, _ = judge(at, net)
                if found is not None:
                    return found
            if mostly and self.surfaces:
                found, pairs = ended(at, at.known, self.units())
                if found is not None:
                    return found
            if quiet >= _QUIET and pairs is None and self.surfaces and self.further:
                xi = self.signs()
                if xi is not None:
                    return self.units(), xi
            if quiet > (4 if mostly else 2) * _QUIET and not self.further and pairs is None:
                break
        if not self.surfaces:
            raise Stop(f"layer {k}: of it no unit was found")
        return self.units(), None

    def again(self) -> None:
        """Begin again, with the last known layer measured from many kinks of each unit."""
        self.at.doubtful |= not measured_again(self.at)
        self.lift, self.precise = Lift(self.at.known), True
        self.surfaces, self.tried, self.mine, self.checked = [], set(), set(), 0
        self._lines = self.gradients = None
        self.free = rebased(self.lift, self.free)

    def look(self, pairs: Pairs | None, quiet: int, turn: int) -> None:
        """Kinks on new chords that the known layers do not explain; units seldom on, or off, bend in corners."""
        at = self.at
        if pairs is None and self.further and turn % 2:
            ends = corners(at.known, _CHORDS, at.rng)
            pairs = (ends[::2], ends[1::2])
        charts, starts, ends = chords(at.known, _CHORDS, at.rng, pairs if quiet % 3 != 1 else None, moving=True)
        if not charts or (pairs is not None and not self.further and quiet % 3 == 2):  # whole lines miss nothing
            charts, starts, ends = chords(Known(at.dim), 2, at.rng)
            if pairs is not None:
                starts, ends = pairs
                charts = charts[:1] * len(starts)
        length = float(np.median(np.linalg.norm(ends - starts, axis=1)))
        found = segments(at.ask, starts, ends, min(length, float(np.sqrt(at.dim))), _MOST * len(starts))
        new = [w for chart, segment in zip(charts, found) for w in witnesses_of(Chord(chart, segment, 0))]
        self.free = self.free + rebased(self.lift, new)

    def trace(self) -> None:
        """The surface of every kink that is on none yet, the clearest first."""
        failed = 0
        for w in sorted(self.free, key=lambda w: -w.gap * abs(w.jump)):
            if failed > _FAILED:
                break
            if id(w) in self.tried or self.explained(w):
                continue
            self.tried.add(id(w))
            surface = self.surface(w)
            if surface is None:
                failed, self.failed = failed + 1, self.failed + 1
                continue
            failed = 0
            if not any(old.joins(surface) for old in self.surfaces):
                self.surfaces.append(surface)

    def surface(self, w: Witness) -> Surface | None:
        """The surface of the unit that bends f at this kink; None: it is no unit of this layer."""
        ask, rng = self.at.ask, self.at.rng
        result = measure(ask.beside, w, rng)
        if result is None:
            return None
        surface = begun(self.lift, w.point, w.chord.chart.J.T @ result[0], rng)
        near = shown(ask, surface, walked(surface, rng, _SCREEN, _AWAY), 1e-4)
        if len(near.missed) > 1 or len(near.missed) > 0.3 * len(near.hits) or not extended(ask, surface, rng, _MISSES):
            return None
        solved = surface.solved()
        if solved is not None:
            surface.theta, surface.error = solved
        return self.verified(surface, self.surfaces, _PLACES)

    def verified(self, surface: Surface, others: list[Surface], count: int) -> Surface | None:
        """The surface, with more digits, if the box bends all over it; on both sides of the others, too."""
        ask, rng = self.at.ask, self.at.rng
        places = list(chosen(self.lines, surface, others, count, rng))
        if len(places) < count:
            places += walked(surface, rng, count - len(places), 2 * _AWAY)
        if not places:
            return surface if not count else None
        found = shown(ask, surface, places)
        if found.score < _SHARE or (count and len(found.hits) < _ENOUGH):
            return None
        return sharpened(surface, found.hits)

    def compare(self) -> None:
        """Ask for older surfaces on both sides of newer ones: what is missing on one side is further behind."""
        if not self.further:
            return
        new = self.surfaces[self.checked :]
        kept = [s for s in (self.verified(s, new, 0) for s in self.surfaces[: self.checked]) if s is not None]
        if len(kept) < self.checked:
            self.mine = set()
        self.surfaces = [*kept, *new]
        self.checked = len(self.surfaces)

    def signs(self) -> Array | None:
        """ξ of all units, once the box depends on nothing else."""
        at = self.at
        for surface in self.surfaces:
            if not surface.seen.all():
                extended(at.ask, surface, at.rng)
        units = self.units()
        V, c = np.array([u.w for u in units]), np.array([u.c for u in units])
        if self.gradients is None:
            self.gradients = Gradients(at)
        xi = self.gradients.signs(V, c)
        if xi is None:
            return None
        rest = self.rest()
        some = [rest[i] for i in at.rng.permutation(len(rest))[:40]]
        whole = at.complete(Known(at.dim, (*at.known.layers, (xi[:, None] * V, xi * c))), some)
        at.tell(f"   {len(c)} units, the box depends on {'nothing' if whole else 'something'} more")
        return xi if whole else None

    def explained(self, w: Witness) -> bool:
        """Whether a kink is on a surface that was found."""
        if id(w) not in self.mine and any(s.shows(w.point) for s in self.surfaces):
            self.mine.add(id(w))
        return id(w) in self.mine

    def rest(self) -> list[Witness]:
        """Kinks of layers further behind."""
        return [w for w in self.free if not self.explained(w)]

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


def lines_through(lift: Lift, rng: np.random.Generator) -> Lines:
    """Random lines, and lines between corners."""
    scale = 2.0 ** rng.uniform(-1.0, 3.0, size=(_LINES, 1))
    ends = corners(lift.known, _CORNERS, rng)
    starts, stops = scale * rng.normal(size=(2, _LINES, lift.known.d))
    return Lines(lift, np.concatenate([starts, ends[::2]]), np.concatenate([stops, ends[1::2]]))


def measured_again(at: Inquiry) -> bool:
    """The last known layer once more, from many kinks of each unit; False: the box does not bend all over some unit."""
    *front, (W, b) = at.known.layers
    lift = Lift(Known(at.dim, tuple(front)))
    lines, right, change = lines_through(lift, at.rng), True, 0.0
    W, b = W.copy(), b.copy()
    for i in range(len(b)):
        theta = np.append(W[i], b[i])
        surface = Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool))
        found = shown(at.ask, surface, chosen(lines, surface, [], _OVER * len(theta), at.rng), _KNOWN)
        if found.score < _SHARE:
            right = False
            continue
        new = corrected(surface, found.hits, _ERROR)
        new *= np.linalg.norm(W[i]) / np.linalg.norm(new[:-1])
        change = max(change, float(np.abs(new - theta).max()))
        W[i], b[i] = new[:-1], new[-1]
    at.known = Known(at.dim, (*front, (W, b)))
    at.tell(f"   layer {len(front) + 1} measured again: by {change:.1e}{'' if right else '; not all of it is there'}")
    return right


def ended(at: Inquiry, known: Known, units: list[Unit]) -> tuple[Found | None, Pairs | None]:
    """The network, if these units are the last."""
    if not units:
        return None, None
    before, at.known = at.known, known
    net, pairs = finish(at, units)
    found = None
    if net is not None:
        found, pairs = judge(at, net)
    if found is None:
        at.known = before
    return found, pairs


def rebased(lift: Lift, free: list[Witness], wide: bool = False) -> list[Witness]:
    """Kinks that were seen behind fewer layers, in the charts of those known now; without those of known units.

    In those of x itself behind ``wide`` layers.
    """
    found, known = [], Known(lift.known.d) if wide else lift.known
    for w in free:
        chart = None if on_known(lift, w.point) else known.moving(w.point)
        if chart is not None:
            found.append(w.behind(chart))
    return found


def on_known(lift: Lift, x: Array) -> bool:
    """Whether x is on a hyperplane of a known unit, or of one of the open layer."""
    _, _, _, rows, offsets = lift.all.region(x)
    near = np.abs(rows @ x + offsets) <= 1e-7 * np.linalg.norm(rows, axis=1) * (1.0 + np.linalg.norm(x))
    return bool(near.any())
