"""The layer behind open ones: its units tell the signs of those, and what is always on there (`passing`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry, Mask, Stop
from relumine.extraction.deep.asking.witnesses import Witness
from relumine.extraction.deep.behind.balls import Point
from relumine.extraction.deep.behind.further import MOSTLY, Next, ended
from relumine.extraction.deep.behind.orient import Signs, arrays, is_behind
from relumine.extraction.deep.behind.passing import Chain, Settled, inputs, kept, mostly_off, seldom
from relumine.extraction.deep.ending.confirm import Found
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.again import SHARE, measured_again
from relumine.extraction.deep.surfaces.held import SLACK
from relumine.extraction.deep.surfaces.probing import all_shown, chosen
from relumine.extraction.deep.surfaces.surface import Surface

_SILENT = 5  # looks without a new unit: what is missing may come later, and is further behind then
_CHORDS = 12  # on which a unit in front is on that seldom is
_SIDE = 96  # gradients where such a unit is on
_LOOKS = 3  # for units that few inputs turn on, next to gradients that are not explained
_TWO = 1e-6  # distance of units, over their size, from which they are two
_NEXT = 60  # kinks next to which it is asked whether a unit is missing


def settled(
    at: Inquiry, units: list[Unit], free: list[Witness], turns: int, depth: int, signs: Signs | None = None
) -> Found | list[Surface]:
    """One more known layer, of these ``units`` and others that no input turns off; surfaces of the next one behind it.

    Or more of them, up to ``depth`` in all; the network, if the last is among them. ``signs``: asked for so far.
    """
    V, c, known = arrays(units)
    V, c = mostly_off(at.known, kept(at.known, V, c, known, at.rng), c, at.rng)
    chain, surfaces = Chain(at.known, [(V, c)], ~known, [u.points for u in units]), list[Surface]()
    few = seldom(at.known, V, c, at.rng)
    signs, front = Signs(at) if signs is None else signs, len(at.known.layers)
    signs.gradients.where_on(V[few], c[few], _SIDE)
    try:
        while chain.layers:
            if len(chain.known.layers) >= depth:
                raise Stop(f"more than {depth} layers")
            at.known = chain.known
            search = Unsettled(at, free, True, surfaces)
            found = search.passed(chain, turns, signs if len(chain.front.layers) == front else None)
            if isinstance(found, Found):
                return found
            chain, surfaces, free = *found, search.free
    finally:
        at.known = chain.front
    return surfaces


class Unsettled(Next):
    """The units of the layer behind open ones, which are known up to signs and what they pass on."""

    def passed(self, chain: Chain, turns: int, signs: Signs | None) -> Found | tuple[Chain, list[Surface]]:
        """What is known of open layers by the units of this one behind them, and surfaces of it; or one more of them.

        The network, if this layer is the last. ``signs``: gradients behind the layers in front of the open ones.
        """
        at, k, quiet = self.at, len(self.at.known.layers) + 1, 0
        points = [] if signs is None else signs.gradients.points
        for turn in range(turns):
            self.look(chain.rare(_CHORDS, at.rng) if turn % 2 else None, quiet, turn)
            before = len(self.surfaces)
            self.trace()
            if self.further:
                self.compare()
            quiet = quiet + 1 if len(self.surfaces) == before else 0
            at.run.report(f"layer {k}", turn, float("nan"), len(self.surfaces))
            what = f"{len(self.surfaces)} surfaces, {len(self.local)} in part"
            at.tell(f"  layer {k} turn {turn}: {what}, behind all that is passed on")
            if quiet:
                self.extend()
            found = self.told(chain, points)
            own = None if found is None else self.own(found)
            if found is not None and own is not None and not own.all():
                there = np.ones(len(chain.layers[0][1]), dtype=bool)
                there[found.units] = own
                return chain.only(0, there), []
            if found is not None and self.all_of(found.chain.front):
                found, open_, sure = self.checked(chain.front, found, signs)
                at.doubtful |= not (found.right and sure) or open_ > 0
                at.say_layer(len(found.chain.front.layers), found.shown, found.on, open_)
                return found.chain, found.surfaces
            if quiet > _SILENT:
                break
        rest = len(self.rest())
        if self.surfaces and rest <= (1.0 - MOSTLY) * len(self.free):
            ends, _ = ended(at, at.known, self.units())
            if ends is not None:
                return ends
        fewer = self.without(chain)
        if fewer is not None and len(fewer.layers[-1][1]):
            return fewer, []
        units = [u for u in self.units() if u.known.all()]
        if not units or fewer is not None:
            raise Stop(f"layer {len(chain.front.layers) + 1}: the signs of its units stay open; some may always be on")
        V, c, _ = arrays(units)
        return Chain(chain.front, [*chain.layers, (V, c)], chain.hidden, chain.kinks), []

    def told(self, chain: Chain, points: Sequence[Point]) -> Settled | None:
        """The first open layer with all signs, by the surfaces behind it, if need be by those that hold in part, too.

        If only one unit of it is on nearly everywhere, and off somewhere, its kinks there give its bias.
        """
        for local in ([], self.local):
            found = chain.settled(self.surfaces, self.at.rng, local, points)
            if found is not None:
                one = None if found.right or found.on != 1 else self.seldom_off(found)
                return found if one is None else chain.settled(self.surfaces, self.at.rng, local, points, one)
        return None

    def seldom_off(self, found: Settled) -> Array | None:
        """The row and bias (width + 1,) of the unit that is always on, up to its kinks; None: it seems to have none."""
        (W, _), at = found.chain.front.layers[-1], self.at
        with self.behind(Known(self.at.dim, found.chain.front.layers[:-1])):
            search = Next(at, [], True)
            if not search.place(W[found.shown] / np.linalg.norm(W[found.shown])):
                return None
            (unit,) = search.units()
            on = at.known(inputs(at.dim, at.rng)) @ unit.w + unit.c > 0.0
            return np.append(unit.w, unit.c) * (1.0 if 2 * on.sum() > len(on) else -1.0)

    def own(self, found: Settled) -> Mask:
        """Which of the open layer's units that show are its own: what is a sum over others is a unit further behind."""
        *front, (W, b) = found.chain.front.layers
        rows = [Unit(w, c, ~unseen, 0.0, points=list(k)) for w, c, unseen, k in zip(W, b, found.hidden, found.kinks)]
        behind, known = [], Known(self.at.dim, tuple(front))
        for i, unit in enumerate(rows[: len(found.units)]):
            behind.append(is_behind(known, [*rows[:i], *rows[i + 1 :]], np.ones(len(rows) - 1), unit))
        if any(behind):
            self.at.tell(f"   {sum(behind)} units of the open layer are sums over others: they are further behind")
        return ~np.array(behind, dtype=bool)

    def checked(self, front: Known, found: Settled, signs: Signs | None) -> tuple[Settled, int, bool]:
        """The layer behind ``front`` that was settled, measured again; how many weights that no kink shows are open.

        And whether it explains all gradients, and the box bends all over its units. Where it does not explain some, a
        unit that few inputs turn on is looked for there, and becomes part of it.
        """
        with self.behind(front):
            signs = Signs(self.at) if signs is None else signs
            for look in range(_LOOKS + 1):
                found, open_, sure = self.confirmed(found, signs)
                more = None if sure or look == _LOOKS or found.chain.layers else self.with_one(found, signs)
                if more is None:
                    break
                found = more
            return found, open_, sure

    def confirmed(self, found: Settled, signs: Signs) -> tuple[Settled, int, bool]:
        """The same of the layer as it is."""
        W, b = found.chain.front.layers[-1]
        front = self.at.known
        W, b, open_, sure = signs.confirmed(W, b, found.hidden, found.kinks)
        self.at.known = Known(front.d, (*front.layers, (W, b)))
        sure = measured_again(self.at) and sure
        found, self.at.known = found.with_layer(*self.at.known.layers[-1]), front
        return found, int(open_.sum()), sure

    def with_one(self, found: Settled, signs: Signs) -> Settled | None:
        """The layer with one unit more, that explains most gradients which it does not, and has kinks next to these."""
        (W, b), at = found.chain.front.layers[-1], self.at
        if signs.lonely(W, b, np.ones(len(b)), ~found.hidden) or signs.missing is None:
            return None
        out, search = signs.missing[0], Next(at, [], True)
        search.signs = signs
        search.look(None, 0, 0)
        search.trace()
        T = np.column_stack([W, b]) / np.linalg.norm(W, axis=1, keepdims=True)
        new = [u for u in search.units() if _apart(T, np.append(u.w, u.c)) > _TWO]
        n, best = found.shown, (0, found)
        for unit in new:
            sign = 1.0 if np.mean(at.known(out) @ unit.w + unit.c > 0.0) >= 0.5 else -1.0
            W1, b1 = np.insert(W, n, sign * unit.w, axis=0), np.insert(b, n, sign * unit.c)
            hidden, kinks = np.insert(found.hidden, n, ~unit.known, axis=0), list(found.kinks)
            kinks.insert(n, unit.points)
            count = signs.explained((W, b, ~found.hidden), (W1, b1, ~hidden))
            if count > best[0]:
                chain = Chain(Known(at.dim, (*at.known.layers, (W1, b1))), [])
                best = count, found._replace(chain=chain, surfaces=[], shown=n + 1, hidden=hidden, kinks=kinks)
        at.tell(f"   {len(new)} surfaces next to gradients that are not explained, {best[0]} of these by one of them")
        return best[1] if best[0] else None

    @contextmanager
    def behind(self, front: Known) -> Iterator[None]:
        """With these as the known layers."""
        before, self.at.known = self.at.known, front
        try:
            yield
        finally:
            self.at.known = before

    def all_of(self, known: Known) -> bool:
        """Whether the box depends on nothing but these layers, also next to some of the kinks behind them."""
        return self.at.complete(known, [self.free[i] for i in self.at.rng.permutation(len(self.free))[:_NEXT]])

    def without(self, chain: Chain) -> Chain | None:
        """The chain up to the first layer with units that are further behind, without these; None: it has none.

        The box does not bend all over those, as surfaces of this layer show.
        """
        for i, surfaces in enumerate(chain.surfaces(self.lift)):
            places = [chosen(self.lines, s, self.surfaces, 0, self.at.rng) for s in surfaces]
            asked = list(zip(chain.alone(i), places))
            there = [found.score >= SHARE or not found.missed for found in all_shown(self.at.ask, asked, SLACK)]
            if not all(there):
                self.at.tell(f"   {len(there) - sum(there)} units of open layer {i + 1} are further behind")
                return chain.only(i, np.array(there))
        return None


def _apart(T: Array, unit: Array) -> float:
    """How far a unit is from the nearest of others, rows of T, up to its sign."""
    off = np.minimum(np.linalg.norm(T - unit, axis=1), np.linalg.norm(T + unit, axis=1))
    return float(off.min(initial=np.inf)) / float(np.linalg.norm(unit))
