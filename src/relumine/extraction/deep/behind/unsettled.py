"""The layer behind open ones: its units tell the signs of those, and what is always on there (`passing`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relumine.extraction.deep.asking.inquiry import Inquiry, Stop
from relumine.extraction.deep.asking.witnesses import Witness
from relumine.extraction.deep.behind.balls import Point
from relumine.extraction.deep.behind.further import MOSTLY, Next, ended
from relumine.extraction.deep.behind.orient import Signs, arrays
from relumine.extraction.deep.behind.passing import Chain, Settled, kept, mostly_off, seldom
from relumine.extraction.deep.behind.settling import checked, seldom_off, sums
from relumine.extraction.deep.ending.confirm import Found
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.again import SHARE
from relumine.extraction.deep.surfaces.held import SLACK
from relumine.extraction.deep.surfaces.probing import all_shown, chosen
from relumine.extraction.deep.surfaces.surface import Surface

_SILENT = 5  # looks without a new unit: what is missing may come later, and is further behind then
_CHORDS = 12  # on which a unit in front is on that seldom is
_SIDE = 96  # gradients where such a unit is on
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
            if found is not None and len(further := sums(at, found)):
                return chain.only(0, ~np.isin(np.arange(len(chain.layers[0][1])), further)), []
            if found is not None and self.all_of(found.chain.front):
                found, open_, sure = checked(at, chain.front, found, signs)
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
                one = None if found.right or found.on != 1 else seldom_off(self.at, found)
                return found if one is None else chain.settled(self.surfaces, self.at.rng, local, points, one)
        return None

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
