"""Behind a layer whose signs are open: the units of the next one first, by their surfaces, then all signs at once.

A unit of the next layer has θ = (A/2, v, e) on φ = (|z|, h, 1), with v = ½ Σ_j A_j ξ_j V_j: linear in the signs ξ. All
units together are d·m₂ equations for m₁ signs, so this works for layers wider than what feeds them, too.
"""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs, Stop
from relumine.extraction.deep.asking.kinks import segments
from relumine.extraction.deep.asking.witnesses import Chord, Witness, measure, witnesses_of
from relumine.extraction.deep.behind.further import Next, ended
from relumine.extraction.deep.behind.settling import mend
from relumine.extraction.deep.behind.unsettled import settled
from relumine.extraction.deep.ending.confirm import Found
from relumine.extraction.deep.first.units import Unit, joined
from relumine.extraction.deep.known.charts import Chart, Known
from relumine.extraction.deep.known.places import breaks, chords
from relumine.extraction.deep.surfaces.again import everywhere, measured_again
from relumine.extraction.deep.surfaces.following import followed, holds
from relumine.extraction.deep.surfaces.held import rebased
from relumine.extraction.deep.surfaces.surface import Lift, Surface

OTHER_PIECES = "; the box may be made of other pieces (maxima, sorting)"

_TURNS = 40  # looks along new lines
_CHORDS = 12  # chords of a look behind known layers: each shows two units or so
_MOSTLY = 0.9  # share of the kinks that these units explain if their layer is the last
_QUIET = 2  # of them without a new unit, after which the layer is taken for complete
_MOST = 8_000  # queries for a line
_FAILED = 15  # witnesses in a row without a surface: the others belong to layers further behind
# The same in and behind layers that grow: behind acasxu's first layer one kink in six is of the next one, and when 49
# of its 50 units are known one in fifty of the others.
_SCATTERED = 40
_SPARE = 1.2  # equations for each sign of a layer that grows: all of them then say ±1, or a unit is missing
# Crossings of lines with a surface that tell; share that must have a kink there, so near, and how far out over √d.
# Behind the first layer of 8-12-10-6-1 eleven surfaces of the third layer were followed beside the ten of the second:
# for two seeds, where the answers move, all crossings of the ten had a kink; of others first 4 of 5, later 9 of 13.
_LINES, _SHOWN, _PLACE, _OUT = 3, 0.8, 1e-6, 30.0
_FLAT = 1e-6  # slope along a line, over its largest, that is none
_AWAY = (12, 15)  # places at which a surface is asked for that few lines cross, and so many regions away
_FEW = 6  # units of a small open layer
_BEHIND = 3  # units of the next layer that confirm the planes of an open one
_DEPTH = 12
_NOTHING = 1e-6  # weight of a surface, θ of length one, that is none: measured up to 1e-11, others from 3e-3 on
_CLEAR = 1e-2  # how far from ±1 the signs of the least squares may be


def behind(
    at: Inquiry,
    V: Array | None = None,
    c: Array | None = None,
    free: list[Witness] | None = None,
    turns: int = _TURNS,
    begun: list[Surface] | None = None,
) -> Found:
    """All layers behind the known ones and, if there is one, an open one V (m, width), c (m,), up to signs.

    ``free``: kinks that are not those of the open layer; ``turns``: most looks at a layer; ``begun``: surfaces that
    were followed before.
    """
    lift = Lift(at.known, V, c)
    at.unsigned = None
    if not lift.m and not _wide(at):
        return _further(at, free or [], turns)
    search = _Surfaces(at, lift, free or [], begun or [])
    known = search.all(turns)
    if isinstance(known, Found):
        return known
    if isinstance(known, tuple):
        return behind(at, *known, search.free, turns - 1)
    units = search.units(known)
    k = len(known.layers)
    at.known, at.unsigned = known, None
    at.doubtful |= 0 < lift.m <= _FEW  # deeper units look alike behind so few
    at.confirm(len(units), search.rest())
    if lift.m:
        at.say(f"layer {k}: {lift.m} units, signs from {len(units)} units of the next")
    if search.grows:
        return behind(at, free=search.free, turns=turns, begun=[_behind_known(u, known) for u in units])
    if k + 1 >= _DEPTH:
        raise Stop(f"more than {_DEPTH} layers")
    V, c = np.array([u.w for u in units]), np.array([u.c for u in units])
    return behind(at, V, c, search.rest(), turns)


def _further(at: Inquiry, free: list[Witness], turns: int) -> Found:
    """One layer after the other, while their signs can be told at once; ``turns``: most looks at the first of them."""
    precise, begun, layers = False, list[Surface](), len(at.known.layers)
    while True:
        if len(at.known.layers) > layers and not at.quick:  # what is in front is right, so this layer is worth more
            turns = max(turns, _TURNS)
        search = Next(at, free, precise, begun)
        result = search.all(turns)
        if isinstance(result, Found):
            return result
        units, xi = result
        if xi is None and search.in_front is not None:  # what was found behind it counts no more
            mend(at, *search.in_front)
            free, begun, precise = search.free, [], True
            continue
        k = len(at.known.layers) + 1
        if k >= _DEPTH:
            raise Stop(f"more than {_DEPTH} layers")
        V, c, free = np.array([u.w for u in units]), np.array([u.c for u in units]), search.rest()
        if xi is None and not search.further:
            return behind(at, V, c, free, turns)
        precise = True
        if xi is None:
            passed = settled(at, units, free, turns, _DEPTH, search.signs)
            if isinstance(passed, Found):
                return passed
            begun = passed
            continue
        assert search.signs is not None
        at.doubtful |= not all(u.known.all() for u in units) or search.signs.doubtful
        at.known, begun = Known(at.dim, (*at.known.layers, (xi[:, None] * V, xi * c))), []
        at.say_layer(k, len(c) - search.on, search.on)
        at.doubtful |= not measured_again(at)


def _wide(at: Inquiry) -> bool:
    """Whether a known layer has more units than inputs move."""
    return max([len(b) for _, b in at.known.layers], default=0) > at.dim


class _Surfaces:
    """The units of one layer by their surfaces."""

    def __init__(self, at: Inquiry, lift: Lift, free: list[Witness], begun: list[Surface]) -> None:
        self.at, self.lift = at, lift
        # more units than inputs move: kinks then are looked for on whole lines, and normals measured in x
        self.wide = _wide(at)
        self.grows = lift.m > lift.known.width  # few units of the next layer tell its signs
        self.free, self.surfaces = rebased(lift, free, self.wide), begun
        self.bent: dict[int, Array] = {}  # for each line its points at which a unit in front changes sides
        self.tried: set[int] = set()
        self.mine: set[int] = set()
        at.mark = at.ask.mark

    def all(self, turns: int) -> Found | Known | tuple[Array, Array]:
        """The network, if this layer is the last; else the known layers, with signs, in front of it.

        Or what the open layer should be, as the surfaces show.
        """
        at, lift, quiet, pairs, known = self.at, self.lift, 0, None, None
        k = len(lift.all.layers) + 1
        for turn in range(turns):
            if turn or not self.free:
                self.look(pairs, quiet)
            before, pairs = len(self.surfaces), None
            self.trace()
            kept = [s for s in self.surfaces if self.persists(s)]  # on new lines, too
            if len(kept) < len(self.surfaces):
                self.surfaces, self.mine = kept, set()
            quiet = quiet + 1 if len(self.surfaces) == before else 0
            rest = len(self.rest())
            mostly = rest <= (1.0 - _MOSTLY) * len(self.free)
            at.run.report(f"layer {k}", turn, float("nan"), len(self.surfaces))
            if turn:
                at.confirm(len(self.surfaces), self.free)
            at.tell(f"  layer {k} turn {turn}: {len(self.surfaces)} surfaces, {rest} of {len(self.free)} kinks left")
            if (better := self.corrected()) is not None:
                at.tell(f"   layer {k - 1} has {len(better[1])} units, as those behind it show, and not {lift.m}")
                return better
            xi = self.oriented()
            if xi is not None:
                known = at.known
                if len(xi):
                    known = Known(at.dim, (*known.layers, (xi[:, None] * lift.V, xi * lift.c)))
                if self.grows:
                    return known
                if mostly:
                    found, pairs = ended(at, known, self.units(known))
                    if found is not None:
                        return found
            if quiet > (4 if mostly else 1) * _QUIET and pairs is None:
                break
        if self.wide:  # what few lines cross is held against the box far from where it was followed
            self.surfaces = [s for s in self.surfaces if self.persists(s, _LINES) or holds(at.ask, s, at.rng, *_AWAY)]
        if known is None or not self.surfaces:
            front = f"{len(lift.c)} units seem to be there, but their signs stay open; " if lift.m else ""
            hint = OTHER_PIECES if lift.m and not at.known.layers else ""
            raise Stop(f"layer {k - 1}: {front}of the layer behind it {len(self.surfaces)} units were found{hint}")
        return known

    def look(self, pairs: Pairs | None, quiet: int) -> None:
        """Kinks on new chords that the known layers and the open one do not explain.

        Between given pairs, pieces inside one chart cost least; whole lines miss nothing.
        """
        at, whole = self.at, pairs is not None and quiet % 3 == 2
        charts: list[Chart] = []
        if at.known.layers and not (whole or self.wide):
            charts, starts, ends = chords(at.known, _CHORDS, at.rng, pairs if quiet % 3 == 0 else None, moving=True)
        if not charts:
            charts, starts, ends = chords(Known(at.dim), 2, at.rng)
            if pairs is not None:
                starts, ends = pairs
                charts = charts[:1] * len(starts)
        length = float(np.median(np.linalg.norm(ends - starts, axis=1)))
        some, starts, ends = at.ask.within(starts, ends, min(length, float(np.sqrt(at.dim))))
        charts = [chart for chart, has in zip(charts, some) if has]
        found = segments(at.ask, starts, ends, min(length, float(np.sqrt(at.dim))), _MOST * len(starts))
        pieces = [Chord(chart, segment, 0) for chart, segment in zip(charts, found)]
        new = [w for piece in pieces for w in witnesses_of(piece)]
        self.free = self.free + [w for w in new if not self.lift.touches(w.point)]

    def trace(self) -> None:
        """Follow the surface of every kink that is on none yet, the clearest first."""
        failed, most = 0, _SCATTERED if self.wide or self.grows else _FAILED
        for w in sorted(self.free, key=_near if self.wide or self.grows else _loud):
            if id(w) in self.tried or self.explained(w):
                continue
            self.tried.add(id(w))
            result = measure(self.at.ask.beside, w, self.at.rng)
            if result is not None:
                normal = w.chord.chart.J.T @ result[0]
                surface = followed(self.at.ask, self.lift, w.point, normal, self.at.rng)
                if surface is not None and self.persists(surface):
                    if not any(old.joins(surface) for old in self.surfaces):
                        self.surfaces.append(surface)
                    if len(self.surfaces) == _BEHIND:
                        self.offer()
                    if self.grows and self.oriented() is not None:
                        return
                    failed = 0
                    continue
            failed += 1
            if failed > most:
                return

    def offer(self) -> None:
        """The planes of an open first layer, for who asks how far it went, unless they are planes of something else."""
        at, V, c = self.at, self.lift.V, self.lift.c
        if len(c) and not at.known.layers and at.unsigned is None and everywhere(at, V, c):
            at.unsigned = (V, c)

    def oriented(self) -> Array | None:
        """The signs of the open layer; of one that grows only from more equations than signs."""
        enough = sum(s.seen[: self.lift.m].any() for s in self.surfaces) * self.lift.known.width
        if self.grows and enough < _SPARE * self.lift.m:
            return None
        return oriented(self.lift, self.surfaces)

    def corrected(self) -> tuple[Array, Array] | None:
        """The units of the open layer, if surfaces show that one is missing, or none.

        A surface on which no unit of that layer counts is another one's of the same layer. A unit that counts on no
        surface is further behind: the box does not bend there.
        """
        lift, m = self.lift, self.lift.m
        if not m or not self.surfaces:
            return None
        seen = np.array([s.seen[:m] for s in self.surfaces])
        size = np.array([np.abs(s.theta[:m]) / np.linalg.norm(s.theta) for s in self.surfaces])
        counts = seen & (size > _NOTHING)
        more = ~counts.any(axis=1) & (2 * seen.sum(axis=1) > m)
        less = ~counts.any(axis=0) & (seen[~more].sum(axis=0) >= _BEHIND)
        if not (more.any() or less.any()):
            return None
        new = [s.theta[m:] / np.linalg.norm(s.theta[m:-1]) for s, own in zip(self.surfaces, more) if own]
        full = np.vstack([np.column_stack([lift.V, lift.c])[~less], *[row[None] for row in new]])
        return full[:, :-1], full[:, -1]

    def persists(self, surface: Surface, least: int = 0) -> bool:
        """Whether nearly all lines searched bend where they cross the surface, ``least`` of them; no row is asked.

        A unit further behind can be followed as far as nothing in between changes sides; elsewhere it is not there.
        Where all units behind it are off the surface of a unit does not show, either: there the answers do not move.
        """
        hits = crossings = 0
        for line in {id(w.chord.segment): w.chord.segment for w in self.free}.values():
            if id(line) not in self.bent:
                t = breaks(self.lift.all, line.start, line.start + line.direction)
                self.bent[id(line)] = line.start + t[:, None] * line.direction
            X = self.bent[id(line)]
            z = surface.value(X)
            for i in np.flatnonzero(z[:-1] * z[1:] < 0.0):
                x = X[i] + (X[i + 1] - X[i]) * z[i] / (z[i] - z[i + 1])
                size = 1.0 + float(np.linalg.norm(x))
                if size > _OUT * np.sqrt(len(x)) or not surface.certain(x):
                    continue
                hit = bool(np.linalg.norm(line.points - x, axis=1).min(initial=np.inf) <= _PLACE * size)
                hits += hit
                crossings += hit or line.slope(x) > _FLAT
        return hits >= least and (crossings < _LINES or hits >= _SHOWN * crossings)

    def explained(self, w: Witness) -> bool:
        """Whether a kink is on a surface that was followed."""
        if id(w) not in self.mine and any(s.shows(w.point) for s in self.surfaces):
            self.mine.add(id(w))
        return id(w) in self.mine

    def rest(self) -> list[Witness]:
        """Kinks of layers further behind."""
        return [w for w in self.free if not self.explained(w)]

    def units(self, known: Known) -> list[Unit]:
        """The units on the layer in front of them, now that its signs are known."""
        units: list[Unit] = []
        for surface in sorted(self.surfaces, key=lambda s: s.error):
            unit = _unit(surface, known)
            if unit is not None and not any(joined(u, unit) for u in units):
                units.append(unit)
        return units


def _unit(surface: Surface, known: Known) -> Unit | None:
    """A·h + b from θ on (relu(sz), h, 1); None if the surface contradicts the signs.

    Where s is not the sign ξ of a unit, θ_j relu(s_j z_j) = θ_j relu(ξ_j z_j) − θ_j ξ_j z_j. What is then left that is
    linear in h belongs to units that are on everywhere on the surface.
    """
    lift, m, theta = surface.lift, surface.lift.m, surface.theta
    seen = surface.seen[m:-1]
    A, rest = theta[m:-1] * seen, theta[m:]
    if m:
        W, b = known.layers[-1]
        wrong, seen = np.sign(np.sum(W * lift.V, axis=1)) != surface.s, surface.seen[:m]
        full = np.column_stack([W, b])
        A = theta[:m] * seen
        rest = rest - (A * wrong) @ full
        on = np.flatnonzero(wrong & ~seen)
        A[on] = np.linalg.lstsq(W[on].T, rest[:-1], rcond=None)[0]
        rest, seen = rest - A[on] @ full[on], seen | wrong
        if np.linalg.norm(rest[:-1]) > _CLEAR * np.linalg.norm(theta[m:-1]):
            return None
    size = float(np.linalg.norm(A))
    return Unit(A / size, float(rest[-1]) / size, seen, surface.error, points=surface.points)


def oriented(lift: Lift, surfaces: list[Surface]) -> Array | None:
    """ξ (m,) of the open layer by least squares: Σ_j θ_j ξ_j V_j = v for all surfaces; None: open, or contradictory."""
    m, rows, target = len(lift.c), [], []
    for s in surfaces:
        # units that the surface does not meet are linear on it: their part of v is free
        a, v = s.even
        idle = np.vstack([lift.V[~s.seen[:m]], s.unknown[m:-1].T])
        keep = np.eye(lift.known.width) - np.linalg.pinv(idle) @ idle
        R = keep @ (lift.V.T * a)
        if R.any() or not m:  # else it says nothing about signs
            rows.append(R)
            target.append(keep @ v)
    if not rows or not m:
        return np.zeros(0) if rows else None
    size = [float(np.linalg.norm(R)) for R in rows]
    rows, target = [R / t for R, t in zip(rows, size)], [v / t for v, t in zip(target, size)]
    use = list(range(len(rows)))
    while len(use) * 3 >= 2 * len(rows):
        A, v = np.concatenate([rows[i] for i in use]), np.concatenate([target[i] for i in use])
        xi, _, rank, _ = np.linalg.lstsq(A, v, rcond=1e-8)
        if rank < m:
            return None
        if np.abs(np.abs(xi) - 1.0).max() <= _CLEAR:
            return np.asarray(np.sign(xi))
        # a unit further behind may have been followed far enough: its equations are others
        use.remove(max(use, key=lambda i: float(np.linalg.norm(rows[i] @ xi - target[i]))))
    return None


def _near(w: Witness) -> float:
    """Far from other kinks, over the square of the distance: far out, answers have fewer digits."""
    return -w.gap / max(float(w.point @ w.point) / len(w.point), 1.0)


def _loud(w: Witness) -> float:
    """Far from other kinks, and steep."""
    return -w.gap * abs(w.jump)


def _behind_known(u: Unit, known: Known) -> Surface:
    """The surface of a unit."""
    return Surface(Lift(known), np.zeros(0), np.append(u.w, u.c), np.append(u.known, True), u.points, u.error)
