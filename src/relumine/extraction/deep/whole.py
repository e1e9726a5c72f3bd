"""All layers, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import combinations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import Asked, Mask, OutOfBudget
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs, Stop
from relumine.extraction.deep.asking.kind import kind
from relumine.extraction.deep.asking.kinks import segments
from relumine.extraction.deep.asking.witnesses import Chord, witnesses_of
from relumine.extraction.deep.behind.wide import OTHER_PIECES, behind
from relumine.extraction.deep.ending.confirm import Found, polished
from relumine.extraction.deep.ending.last import affine, finish
from relumine.extraction.deep.ending.single import last_layer
from relumine.extraction.deep.first.signs import signs
from relumine.extraction.deep.first.units import Layer, Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.places import chords
from relumine.extraction.deep.surfaces.planes import sharpened
from relumine.extraction.pieces import Line
from relumine.extraction.queries import Ended, Unanswered
from relumine.run import Run

_ROUNDS, _BRIEF = 40, 8  # looks at a layer; where the one before it may be another
_QUIET = 3  # looks without a new unit, after which what is missing is looked for where it shows
_FEW, _MORE = 6, 6  # units of a small layer: deeper units look alike on many lines, so take more of them
_FRESH, _MOST = 4, 8_000  # lines against which the layers are held where the search ends half-way; queries for each
_SPARE = 8  # units, those seen least, of which one may be too many
_PLANES = 5  # rows for each weight of planes that are asked for once more, if that is not more than was asked before
_ATTEMPTS = 4  # times that candidates for a small layer are tried; the slow ways wait for the last
_NEXT = 40  # kinks next to which it is asked whether the units of a small layer are all
_WEIGHTS = 10_000  # of a first layer beyond which its units are measured again: smaller ones are polished later
_FAR = 4  # times as many coordinates as the first layer has units, from which on open layers are followed in fewer
# Of time and rows what is kept for a last check of the layers: so much, and at the most so many seconds and rows.
_SPARED, _LONGEST, _LAST_ROWS = 0.05, 20.0, 5_000
_OPEN = 6  # times that signs may stay open before the next layer is asked for them; at once where rows are dependent


_KINDS = {
    "constant": "the box gives the same answer everywhere it was asked: no unit shows",
    "noisy": "the box gives different answers to the same question: kinks cannot be told from noise",
    "steps": "the box is made of steps (a tree, a rounded answer, labels): a ReLU network is continuous and slopes",
    "smooth": "the box bends everywhere (a smooth activation, a softmax inside): a ReLU network bends at kinks only",
}


def extract_deep(
    ask: Callable[[Array], Array],
    dim: int,
    run: Run,
    *,
    budget: float = np.inf,
    plain: bool | None = None,
    lines: list[Line] | None = None,
    digits: Callable[[Array], Mask] | None = None,
    grid: float = 0.0,
    left: Callable[[], float] = lambda: np.inf,
) -> Found:
    """Every layer of a ReLU network behind ``ask``, (n, d) to (n,) or (n, q).

    Parameters
    ----------
    ask : callable
        The box, in coordinates in which inputs are of order one.
    dim : int
        Number of inputs.
    run : Run
    budget : float
        Most rows to ask.
    lines : list of Line, optional
        Lines that were searched before and cost nothing to search again.
    plain : bool, optional
        Whether the network's output is to be a plain number; found from the shape of the answers by default.
    digits : callable, optional
        Which rows have answers with digits: others are not asked. All of them by default.
    grid : float
        To multiples of which answers are rounded.
    left : callable, optional
        How many more rows may be asked.

    Examples
    --------
    >>> import relumine as rl
    >>> secret = rl.planted.deep((8, 6, 5, 1), rng=0)
    >>> found = extract_deep(secret, 8, Run.of(rng=0))
    >>> found.exact, found.network, rl.metrics.parameter_error(secret, found.network) < 1e-6
    (True, DeepNetwork(8-6-5-1, relu), True)
    """
    began = time.perf_counter()
    seconds, spare = min(_SPARED * run.left, _LONGEST), min(_SPARED * left(), float(_LAST_ROWS))

    def over() -> str:
        if run.stop.is_set():
            return "it was asked to stop"
        return "the time is up" if run.left <= seconds else "the budget of rows is spent" if left() <= spare else ""

    asked = Asked(ask, run.rng, budget, over, plain, digits, grid)
    at = Inquiry(asked, dim, run)
    try:
        what = kind(asked, dim, run.rng, bool(lines))
        if what != "piecewise linear":
            raise Stop(_KINDS[what])
        result = _layers(at, lines or [])
    except (Stop, OutOfBudget, Ended, Unanswered) as reason:
        stopped = run.over or isinstance(reason, OutOfBudget | Ended)
        seconds = spare = 0.0  # what was kept is for the last check
        certain = _certain(at)
        unsigned = at.unsigned if len(certain) == len(at.known.layers) else None
        checked = tuple(at.checked.get(k + 1, 0) for k in range(len(certain)))
        result = Found(
            None, certain, str(reason), 0, notes=at.notes, stopped=stopped, unsigned=unsigned, checked=checked
        )
    result.queries, result.seconds, result.trace = asked.count, time.perf_counter() - began, at.trace
    return result


def _certain(at: Inquiry) -> tuple[tuple[Array, Array], ...]:
    """The layers that are certain, once more held against fresh lines while the box may still be asked."""
    layers = at.certain
    if not layers:
        return ()
    charts, starts, ends = chords(Known(at.dim), _FRESH, at.rng)
    try:
        _, starts, ends = at.ask.within(starts, ends, np.sqrt(at.dim))  # all have the same chart
        found = segments(at.ask, starts, ends, np.sqrt(at.dim), _MOST * len(starts))
        seen = [w for chart, segment in zip(charts, found) for w in witnesses_of(Chord(chart, segment, 0))]
        while layers and not at.complete(Known(at.dim, layers), seen):
            layers = layers[:-1]
    except (OutOfBudget, Ended, Unanswered):
        pass
    return layers


def _layers(at: Inquiry, given: list[Line], k: int = 0, rounds: int = _ROUNDS) -> Found:
    """Layer k + 1 and all behind it."""
    if k == 2:  # activations cannot be set freely any more
        with _compact(at):
            return behind(at, turns=rounds)
    found = last_layer(at) if k else None
    if found is not None:
        return found
    before, doubt, looks = at.known, at.doubtful, _Looks(at, k, rounds)
    for attempt in range(_ATTEMPTS):
        try:
            result = looks.all(given)
        except Stop:
            if not k or at.quick:
                raise
            with _compact(at, _FAR):
                return behind(at, turns=_BRIEF)
        if isinstance(result, Found):
            return result
        # of several candidates, or of very few units that look alike, none is certain if it does not lead to the end
        certain = len(result) == 1 and len(result[0][1]) > _FEW
        at.doubtful = doubt or not certain
        try:
            return _first_of(at, result, k, quick=not certain and attempt + 1 < _ATTEMPTS)
        except Stop:
            if certain:
                raise
            at.known, at.doubtful = before, doubt
            if k or attempt + 1 == _ATTEMPTS:
                break
            given = []
    if k and not at.quick:
        with _compact(at, _FAR):
            return behind(at, turns=_BRIEF)
    raise Stop(f"layer {k + 1}: {looks.why}, but no layer was found behind")


def _compact(at: Inquiry, least: int = 1) -> AbstractContextManager[None]:
    """In the coordinates that the known first layer sees, if x has more than ``least`` times as many.

    The box depends on no more of x than its rows do: with fewer coordinates all is quicker.
    """
    if not at.known.layers or len(at.known.layers[0][1]) * least >= at.dim:
        return nullcontext()
    return at.within(np.linalg.qr(at.known.layers[0][0].T)[0])


def _first_of(at: Inquiry, candidates: list[tuple[Array, Array]], k: int, quick: bool) -> Found:
    """The network behind the first of several sets of units that leads to one; ``quick``: the slow ways wait."""
    before, slow, furthest = at.known, at.quick, None
    at.quick = slow or quick
    for W, b in candidates:
        at.known = Known(at.dim, (*before.layers, (W, b)))
        at.say(f"layer {k + 1}: {len(b)} units")
        try:
            return _layers(at, [], k + 1, _ROUNDS if len(candidates) == 1 and not at.quick else _BRIEF)
        except Stop as reason:
            if furthest is None or len(at.known.layers) > furthest[0]:
                furthest = (len(at.known.layers), at.known, reason)
        finally:
            at.quick = slow or quick
    assert furthest is not None
    at.known, at.quick = furthest[1], slow
    raise furthest[2]


class _Looks:
    """Looks at layer k + 1, until no new units come."""

    def __init__(self, at: Inquiry, k: int, rounds: int) -> None:
        self.at, self.k, self.rounds = at, k, rounds
        self.layer = Layer(at.ask, at.known, at.rng)
        self.pairs: Pairs | None = None  # inputs between which something is that the units do not explain
        self.why = f"no unit was seen on three chords{OTHER_PIECES if not k else ''}"
        self.patience = 2  # times that a last layer with an affine part is looked at again: a unit may be missing
        self.cleared = False
        self.open = 0  # looks after which the signs of all units stayed open
        self.turn, self.quiet, self.before = -1, 0, -1  # looks so far, those without a new unit, units before
        at.mark = at.ask.mark

    def all(self, given: list[Line]) -> Found | list[tuple[Array, Array]]:
        """The network, if this layer is the last; else what the layer may be. Called again, it looks on."""
        layer, k = self.layer, self.k
        while self.turn + 1 < self.rounds:
            self.turn += 1
            turn = self.turn
            if not self.look(turn, given):
                continue
            units = layer.accepted
            self.at.confirm(len(units), layer.witnesses)
            seen = [u for u in layer.units if u.hits >= 2 and u.score > 0.5]
            self.at.run.report(f"layer {k + 1}", turn, float("nan"), len(units))
            found = self.last(turn, seen)
            if found is not None:
                return found
            self.quiet = self.quiet + 1 if len(units) == self.before else 0
            self.before = len(units)
            enough = self.quiet >= 2 or (not k and (len(units) > _FEW or turn >= _MORE))
            settled = len(seen) == len(units) or len(layer.units) <= _FEW
            if self.pairs is None and len(units) and settled and enough:
                if not k and not self.cleared and len(units) * self.at.dim > _WEIGHTS:
                    layer.clear()
                    units, self.cleared = layer.accepted, True
                options = self.options(units)
                if not k:
                    self.at.measured = layer.measured
                if options:
                    return options
                patience = 1 if len(units) > self.at.known.width else _OPEN
                if self.quiet >= 2 and not self.at.quick and self.open >= patience:
                    return self.behind(units)
        raise Stop(f"layer {k + 1}: {self.why}")

    def look(self, turn: int, given: list[Line]) -> bool:
        """Along new chords; False where there are none."""
        at, k, layer = self.at, self.k, self.layer
        few = len(layer.accepted) <= _FEW
        count = (8 if turn == 0 else 4) if k else (2 if turn == 0 or few else 1)
        given = given if turn == 0 else []
        count = max(count - len(given), 1)
        charts, starts, ends = chords(at.known, count, at.rng, self.pairs)
        self.pairs = None
        if not charts:
            self.why = f"no region in which the active units of layer {k} can move one by one"
            return False
        try:
            layer.look(charts, starts, ends, given)
        except Unanswered:
            if not at.ask.partial:
                raise
            return False  # none of these chords has digits; others may
        layer.probe()
        if not k:
            _check(layer)
        if turn >= 5 and not layer.witnesses:
            raise Stop(f"layer {k + 1}: no kinks behind the layers found, but no affine function of them")
        return True

    def last(self, turn: int, seen: list[Unit]) -> Found | None:
        """The network, if the answers are linear in what is behind these units."""
        at, k, layer = self.at, self.k, self.layer
        owned = sum(w.owner >= 0 for w in layer.witnesses)
        at.tell(f"  layer {k + 1} turn {turn}: {len(seen)} of {len(layer.units)}, {owned}/{len(layer.witnesses)} kinks")
        net = None
        if turn == 1 and k and not layer.witnesses:
            net = affine(at)
        elif owned > 0.9 * len(layer.witnesses) and seen:
            net, self.pairs = finish(at, seen)
            if net is not None and net.head.v.any() and self.patience > 0:
                self.patience, net = self.patience - 1, None
        if net is None:
            return None
        found, pairs = polished(at, net)
        self.pairs = self.pairs if pairs is None else pairs
        return found

    def options(self, units: list[Unit]) -> list[tuple[Array, Array]]:
        """The sets of units, with signs, behind which the box sees nothing more of the input."""
        others = [u for u in self.layer.units if u.hits >= 3]
        opened = self.open
        found = [self.signed(some) for some in _hypotheses(units, others)]
        if not any(found) and self.k and len(others) > _FEW:
            # units further behind that most chords show, too: with one, no sign of the others can be told
            least = sorted(units, key=lambda u: u.crossings)[:_SPARE]
            found = [self.without(units, [one]) for one in least]
            if not any(found) and len(units) == self.at.known.width + 2:  # fewer are as many as can be told apart
                least = sorted(units, key=lambda u: u.score)[:_SPARE]
                pairs = (self.without(units, list(two)) for two in combinations(least, 2))
                found = [next((layer for layer in pairs if layer is not None), None)]
        self.open = min(self.open, opened + 1)
        return [layer for layer in found if layer is not None]

    def without(self, units: list[Unit], others: list[Unit]) -> tuple[Array, Array] | None:
        """The layer without these."""
        return self.signed([u for u in units if not any(u is other for other in others)])

    def signed(self, some: list[Unit]) -> tuple[Array, Array] | None:
        """The layer of these units, if their signs can be told and the box sees nothing more."""
        at = self.at
        xi = signs(at.ask, some)
        self.why = f"{len(some)} units, the signs of {int((xi == 0).sum())} are open"
        layer = None
        if xi.all() and len(xi):
            W, b = xi[:, None] * np.array([u.w for u in some]), xi * np.array([u.c for u in some])
            self.why = f"{len(some)} units, and the box depends on more than these"
            # in a small layer, what is missing may show next to other kinks only
            kinks = self.layer.witnesses if len(xi) <= _FEW else []
            kinks = [kinks[i] for i in at.rng.permutation(len(kinks))[:_NEXT]]
            known = Known(at.dim, (*at.known.layers, (W, b)))
            if at.complete(known, kinks):
                layer, self.why = (W, b), f"{len(some)} units, and the box depends on nothing more"
            elif self.k and self.quiet >= _QUIET and len(some) >= len(self.layer.accepted):
                self.pairs = at.narrowed(known)  # new chords do not meet what is missing: there it changes sides
        elif len(some) >= len(self.layer.accepted):
            self.open += 1
        at.tell(self.why)
        return layer

    def behind(self, units: list[Unit]) -> Found:
        """The layers from here on, where the signs stay open."""
        V, c = np.array([u.w for u in units]), np.array([u.c for u in units])
        if not self.k and _PLANES * V.size < self.at.ask.count:
            V, c = sharpened(self.at.ask, V, c, self.at.rng)
        # behind known layers the witnesses' normals are those of charts: new lines take their place
        with _compact(self.at, _FAR):
            return behind(self.at, V, c, [] if self.k else self.layer.witnesses)


def _check(layer: Layer) -> None:
    """Whether what was seen is piecewise linear at all."""
    seen = [chord.segment for chord in layer.chords]
    bad = sum(segment.unresolved for segment in seen)
    if bad > 2 + 0.1 * len(layer.witnesses):
        step = max(segment.step for segment in seen)
        raise Stop(f"not piecewise linear: {bad} stretches unresolved, step {step}")


def _hypotheses(units: list[Unit], others: list[Unit]) -> list[list[Unit]]:
    """Sets of units that may be the layer: those that most chords show; in a small layer any of those seen three times.

    Behind two units a deeper one has only four normals, so it is met in the same place on many chords, and a true one
    may be invisible on half of them.
    """
    if len(others) > _FEW:
        return [units]
    sets = [list(some) for k in range(len(others), 0, -1) for some in combinations(others, k)]
    return sorted(sets, key=lambda some: (-len(some), -sum(u.score for u in some)))
