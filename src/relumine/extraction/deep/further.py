"""The layer behind two or more known ones, with others further behind it.

Most kinks belong to layers further behind. Each is tried: its normal says what it can about θ, and places of the
surface a few regions away must bend the box. Those that pass are followed until all of θ is known, and then held
against the box all over. A unit of the next layer bends it at every one of these places; one further behind does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.charts import Chart, Known
from relumine.extraction.deep.climb import corners, furthest, headless
from relumine.extraction.deep.confirm import Found, polished
from relumine.extraction.deep.following import begun, extended
from relumine.extraction.deep.inquiry import Inquiry, Mask, Pairs, Stop
from relumine.extraction.deep.kinks import segments
from relumine.extraction.deep.last import affine, finish
from relumine.extraction.deep.passing import Settled, settled
from relumine.extraction.deep.places import chords
from relumine.extraction.deep.probing import (
    Lines,
    alike,
    all_shown,
    beyond,
    chosen,
    corrected,
    sharpened,
    shown,
    united,
)
from relumine.extraction.deep.sparse import Gradients
from relumine.extraction.deep.surfaces import Lift, Surface
from relumine.extraction.deep.units import Unit, joined
from relumine.extraction.deep.walking import walked
from relumine.extraction.deep.witnesses import Chord, Witness, measured, witnesses_of

_CHORDS = 12  # chords of a look
_MOST = 8_000  # queries for a chord
_MOSTLY = 0.9  # share of the kinks that these units explain if their layer is the last
# Looks without a new unit, after which the signs are asked for. After one, the fourth layer of 784-8×8-1 lacked a unit
# that is on for one input in a hundred; such a one changes sides once in a look between corners.
_QUIET = 4
# So many after which a unit may be missing that no input turns off. In a trained 100-16×8-1 one unit of the third
# layer, on for 99.99 % of the inputs, changed sides on the lines of one look in six.
_PATIENT, _OPEN = 12, 7  # the second where nothing is missing, but signs stay open
# Kinks in a row that are no unit's of this layer: look elsewhere. With 60, those of units that are seldom off, next to
# other kinks, were never tried in a trained 100-16×8-1.
_FAILED = 400
_FURTHER = 15  # so many in all: there are layers further behind
_TOGETHER = 24  # kinks tried at a time
# Places asked before a surface is followed, how many regions away they are, and how far off the box may bend there.
_SCREEN, _AWAY, _ROUGH = (3, 5), 6, 1e-4
_CHOICE = 4  # of so many, for each, those beyond the most surfaces found so far
_MISSES = 3  # kinks that may not be where they should while a surface is followed, beyond one for every weight found
_LINES, _CORNERS = 150, 100  # random lines, and corners between which others are: places are where they cross
_PLACES, _ENOUGH, _SLACK = 24, 6, 1e-6  # places at which a surface is asked for; hits that it needs; how far off
# Share of the places that must show it. In all layers of 100-16×8-1 and 784-8×8-1 every unit of the next layer had 100
# %, and those of later ones up to 90 %.
_SHARE = 0.95
_PLANES = 0.75  # the same of planes whose sides are open: of a maximum of two, a half
_NEXT = 60  # kinks next to which it is asked whether a unit is missing
# Gradients on a side of a unit, at the least, that others explain where it is off; share that they may not.
_FIT, _MISFIT = 5, 0.02
# Gradients on its other side, at the least, that they do not explain if it is on there. For units of the third layer of
# 12-6×6-1 that are seldom on they were 3 and 13, beside more than 330 on the side where these are off.
_NEEDED = 3
_BLIND = 4  # times that kinks are looked for where weights count that neither kinks nor gradients show
_OVER = 3  # kinks for each weight from which a layer is measured again
_KNOWN, _ERROR = 1e-6, 1e-7  # how far off these may be, and its weights so far: measured up to 1e-8


class Next:
    """The units of the layer behind the known ones; ``precise``: those have all their digits."""

    def __init__(self, at: Inquiry, free: list[Witness], precise: bool, begun: list[Surface] | None = None) -> None:
        self.at, self.lift = at, Lift(at.known)
        self.free = rebased(self.lift, free)
        self.surfaces = begun or []
        self.tried: set[int] = set()
        self.mine: set[int] = set()
        self.failed, self.checked, self.precise = 0, 0, precise
        self.shown: list[Array] = []  # inputs at which the box depended on more than some set of units
        self.open = False  # whether only signs are
        self.blind = 0  # times that kinks were looked for where weights count that none has shown
        self.rough: list[int] = []  # units with weights that no kink shows
        self.missing: Pairs | None = None  # stretches on which a unit that is missing changes sides
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
            patience = (_OPEN if self.open else _PATIENT) if self.further else 8 if mostly else 4
            if quiet > patience and pairs is None:
                break
        if not self.surfaces:
            raise Stop(f"layer {k}: of it no unit was found")
        return self.units(), None

    def passed(self, front: Known, V: Array, c: Array, turns: int) -> Settled:
        """The layer in front, of which (V, c) are the units that show, by the units of this one behind `passing`."""
        at, k = self.at, len(self.at.known.layers)
        for turn in range(turns):
            self.look(None, 0, turn)
            self.trace()
            self.compare()
            at.run.report(f"layer {k + 1}", turn, float("nan"), len(self.surfaces))
            at.tell(f"  layer {k + 1} turn {turn}: {len(self.surfaces)} surfaces behind all that layer {k} may pass on")
            found = settled(front, V, c, self.surfaces, at.rng)
            if found is not None:
                return found
        raise Stop(f"layer {k}: {len(c)} units, and their signs stay open, or some that no input turns off are missing")

    def again(self) -> None:
        """Begin again, with the last known layer measured from many kinks of each unit."""
        self.at.doubtful |= not measured_again(self.at)
        self.lift, self.precise = Lift(self.at.known), True
        self.surfaces, self.tried, self.mine, self.checked = [], set(), set(), 0
        self._lines = self.gradients = None
        self.free = rebased(self.lift, self.free)

    def look(self, pairs: Pairs | None, quiet: int, turn: int) -> None:
        """Kinks on new chords that the known layers do not explain; units seldom on, or off, bend in corners."""
        at, missing = self.at, self.missing
        if pairs is None and self.further and (turn % 3 or quiet):
            ends = corners(at.known, _CHORDS, at.rng)
            pairs = (ends[::2], ends[1::2])
        charts: list[Chart] = []
        if missing is None:
            charts, starts, ends = chords(at.known, _CHORDS, at.rng, pairs if quiet % 3 != 1 else None, moving=True)
        else:
            pairs, self.missing = missing, None
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
        """All of a surface, if the box bends all over it; None: it is no unit's of this layer."""
        if not extended(self.at.ask, surface, self.at.rng, _MISSES):
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
            places += walked([(surface, count - len(places))], rng, 2 * _AWAY)[0]
        found = shown(ask, surface, places, _SLACK)
        if found.score < _SHARE or len(found.hits) < _ENOUGH:
            return None
        better = sharpened(surface, found.hits)
        return None if better is None else better.settled()

    def compare(self) -> None:
        """Ask for older surfaces on both sides of newer ones: what is missing on one side is further behind."""
        if not self.further:
            return
        new, rng = self.surfaces[self.checked :], self.at.rng
        old = self.surfaces[: self.checked]
        found = all_shown(self.at.ask, [(s, chosen(self.lines, s, new, 0, rng)) for s in old], _SLACK)
        kept = [s for s, there in zip(old, found) if there.score >= _SHARE or not there.missed]
        if len(kept) < self.checked:
            self.mine = set()
        self.surfaces = [*kept, *new]
        self.checked = len(self.surfaces)

    def signed(self) -> tuple[list[Unit], Array] | None:
        """The units with their signs ξ, once the box depends on nothing else.

        A surface further behind may have been followed far enough to pass for a unit, but part of it is not known as a
        rule. What it leaves open then hides what gradients say about the others, so these are tried alone, too.
        """
        for surface in self.surfaces:
            if not surface.seen.all():
                extended(self.at.ask, surface, self.at.rng)
        if self.gradients is None:
            self.gradients = Gradients(self.at)
        units = self.units()
        sure, others = [u for u in units if u.known.all()], [u for u in units if not u.known.all()]
        return self.with_signs(units) or (self.with_signs(sure, others) if sure and others else None)

    def with_signs(self, units: list[Unit], others: Sequence[Unit] = ()) -> tuple[list[Unit], Array] | None:
        """These with their signs, but for those that are further behind; None: something is open.

        ``others`` are not to be of this layer: gradients on both of their sides must be explained without them.
        """
        assert self.gradients is not None
        for _ in range(2):
            V, c, known = _arrays(units)
            xi, left = self.gradients.signs(V, c, known, [u.points for u in units])
            self.open = xi is not None
            if xi is None or left.all():
                return None
            xi = np.where(left, self.sides(V, c, xi, known, left), xi)
            if np.isnan(xi).any():
                return None
            if xi.all():
                return self.weighed(units, V, c, xi, known) if self.idle(units, xi, others) else None
            units = [u for u, sign in zip(units, xi) if sign]
        return None

    def idle(self, units: list[Unit], xi: Array, others: Sequence[Unit]) -> bool:
        """Whether the units explain what gradients show on both sides of each of the others."""
        left = np.arange(len(units) + len(others)) >= len(units)
        V, c, known = _arrays([*units, *others])
        return not others or not self.sides(V, c, np.append(xi, np.zeros(len(others))), known, left).any()

    def sides(self, V: Array, c: Array, xi: Array, known: Mask, left: Mask) -> Array:
        """The signs (m,) of units that are ``left`` open, by the gradients that the others explain; 0 for those others.

        Where the others explain all gradients on one side of a unit and none on its other side, it is on there. Where
        they do on both, it is further behind: 0. Not a number: still open.
        """
        assert self.gradients is not None
        rest = ~left
        H, fits = self.gradients.told(V[rest], c[rest], xi[rest], known[rest])
        signs = np.zeros(len(c))
        for i in np.flatnonzero(left):
            up = H @ V[i] + c[i] > 0.0
            counts = [(int((side & fits).sum()), int((side & ~fits).sum())) for side in (up, ~up)]
            idle = [yes >= _FIT and no <= _MISFIT * yes for yes, no in counts]
            needed = [no >= _NEEDED and not yes for yes, no in counts]
            self.at.tell(f"   without a unit: gradients that fit, or do not, on its two sides: {counts}")
            if not all(idle):
                signs[i] = 1.0 if needed[0] and idle[1] else -1.0 if idle[0] and needed[1] else np.nan
        return signs

    def weighed(self, units: list[Unit], V: Array, c: Array, xi: Array, known: Mask) -> tuple[list[Unit], Array] | None:
        """The units with the weights that no kink shows, once these are known and the box depends on nothing else."""
        assert self.gradients is not None
        hidden = int((~known).sum())
        V, known = self.gradients.weights(V, c, xi, known)
        self.at.tell(f"   {hidden} weights no kink shows, {int((~known).sum())} of them open")
        if not known.all() and self.blind < _BLIND:
            self.blind, self.missing = self.blind + 1, self.crossing(V, c, known)
            return None
        self.rough = [i for i, u in enumerate(units) if not u.known.all()]
        units = [replace(u, w=w, known=seen) for u, w, seen in zip(units, V, known)]
        return (units, xi) if self.whole(V, c, xi, known) else None

    def crossing(self, V: Array, c: Array, known: Mask) -> Pairs:
        """Pairs of inputs on both sides of units with a weight that is open, its unit in front on at both."""
        open_ = np.argwhere(~known)
        open_ = open_[self.at.rng.permutation(len(open_))[:_CHORDS]]
        T, front = np.column_stack([V, c])[open_[:, 0]], np.eye(V.shape[1] + 1)[open_[:, 1]]
        T /= np.linalg.norm(T, axis=1, keepdims=True)
        net = headless(self.at.known)
        return furthest(net, front - T, self.at.rng), furthest(net, front + T, self.at.rng)

    def whole(self, V: Array, c: Array, xi: Array, seen: Mask) -> bool:
        """Whether the box depends on nothing but these units, also next to kinks that they do not explain."""
        at, known = self.at, Known(self.at.dim, (*self.at.known.layers, (xi[:, None] * V, xi * c)))
        surfaces = Lift(known)
        rest = [w for w in self.free if not on_known(surfaces, w.point)]
        some = [rest[i] for i in at.rng.permutation(len(rest))[:_NEXT]]
        assert self.gradients is not None
        _, fits = self.gradients.told(V, c, xi, seen)
        whole = int((~fits).sum()) <= _MISFIT * len(fits) and at.complete(known, some, self.shown)
        if not whole and at.beside is not None:
            self.shown += list(at.beside[0])
            self.missing = at.narrowed(known)
        at.tell(f"   {int(fits.sum())} of {len(fits)} gradients fit")
        at.tell(f"   {len(c)} units, the box depends on {'nothing' if whole else 'something'} more")
        return whole

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


def _arrays(units: Sequence[Unit]) -> tuple[Array, Array, Mask]:
    """V (m, width), c (m,) and which weights are known (m, width)."""
    return np.array([u.w for u in units]), np.array([u.c for u in units]), np.array([u.known for u in units])


def lines_through(lift: Lift, rng: np.random.Generator) -> Lines:
    """Random lines, and lines between corners; with no known layer there are no corners."""
    scale = 2.0 ** rng.uniform(-1.0, 3.0, size=(_LINES, 1))
    ends = corners(lift.known, _CORNERS, rng) if lift.known.layers else np.zeros((0, lift.known.d))
    starts, stops = scale * rng.normal(size=(2, _LINES, lift.known.d))
    return Lines(lift, np.concatenate([starts, ends[::2]]), np.concatenate([stops, ends[1::2]]))


def measured_again(at: Inquiry, units: list[int] | None = None) -> bool:
    """The last known layer once more, from many kinks of each unit; False: the box does not bend all over some unit.

    ``units``: only these.
    """
    *front, (W, b) = at.known.layers
    lift = Lift(Known(at.dim, tuple(front)))
    lines, right, change = lines_through(lift, at.rng), True, 0.0
    W, b = W.copy(), b.copy()
    for i in range(len(b)) if units is None else units:
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


def everywhere(at: Inquiry, V: Array, c: Array) -> bool:
    """Whether the box bends all over each of these planes of x: that of a maximum ends where another part is larger."""
    lift = Lift(Known(at.dim))
    lines = lines_through(lift, at.rng)
    planes = [Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool)) for theta in np.column_stack([V, c])]
    asked = [(plane, chosen(lines, plane, [], _PLACES, at.rng)) for plane in planes]
    return all(found.score >= _PLANES for found in all_shown(at.ask, asked, _KNOWN))


def ended(at: Inquiry, known: Known, units: list[Unit]) -> tuple[Found | None, Pairs | None]:
    """The network, if these units are the last."""
    if not units:
        return None, None
    before, at.known = at.known, known
    net, pairs = finish(at, units)
    found = None
    if net is not None:
        found, pairs = polished(at, net)
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
    size = np.linalg.norm(rows, axis=1)
    near = np.abs(rows @ x + offsets) <= 1e-7 * size * (1.0 + np.linalg.norm(x))
    return bool(near[size > 0.0].any())
