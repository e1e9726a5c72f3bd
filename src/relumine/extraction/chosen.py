"""Chosen queries: the units of one line, then of what is left, until nothing is left.

The residual f − f̂ of a network is a network: it has a kink wherever a unit is missing or wrong. So the same two steps,
lines → units, are repeated on it along new lines. A line through a point where f̂ was measured needs one gradient less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from relumine.arrays import Array
from relumine.extraction.lines import Ask, kinks
from relumine.extraction.pieces import Crossings, Line, Noise
from relumine.extraction.queries import Ended
from relumine.extraction.sampling import Domain
from relumine.extraction.units import Precision, bluntness, effort, roomiest, units_of_line
from relumine.network import Network
from relumine.recovery.costs import lines_to_choose_from, rows_to_ask
from relumine.run import Run

ROUGH = 2e-5  # relative noise beyond which lines cannot tell kinks from noise: random rows and statistics do better
_CHOICE = 24  # lines of which the clearest are taken: on one in five all 32 kinks of 784-32-1 are apart
_VOTES = 3  # lines of which two must show a unit
_ALIKE = 0.05  # radians between two measurements of one unit; on clear pieces of single precision they were 0.003 apart
_LINES = 12  # lines searched at most; one finds all units but those parallel to it or hidden by another
_EXACT = 1e-9  # relative residual that is rounding, as in the fit
_FLOOR = 1e-10  # relative error taken for granted in f̂: smaller kinks of the residual are its own
_FINE = 1e-14  # relative noise of double precision; with more (probabilities have it) differences lose too many digits
_IN_A_RANGE = 1000  # the same in a range, at the end: with 300, fresh rows contradicted 6 of 40 networks, with 1000 one
_RANDOM = 24  # random rows that look for what is missed, and as many on a line
_RANGED = 4  # times as many in a range, where no line is long enough to cross all
_TIMES = 100.0  # the noise of one answer in f̂ at other places: the errors of all units, each some times the noise
_STUCK = 3  # lines in a row that did not bring the residual down: it is not a network of one hidden layer
_SAME = 1e-7  # units whose (w, b) differ by less are one, measured twice: each is known to 1e-10
# Rows for the gradients of a line that are not worth a look, of about a hundred rows, at whether there are more layers:
# the gradients are asked first, and the look is taken if their units leave something.
_WORTH = 1000


@dataclass
class Chosen:
    """What lines showed, in standard coordinates: ``network`` with (q, m) output weights and an affine part.

    ``reason``: why nothing (or not all) was found, in words; "" if the residual vanished. ``noise``: of the answers.
    ``lines``: those searched; ``left``: the largest residual of the last look, over what is tolerated; ``spread`` (q,):
    standard deviation of the answers at random rows; ``seen``: rows looked at beside the search. ``refused``: this is
    no function for lines, because it ``jumps`` or for another reason; ``ended``: time or budget ended the search.
    ``missed`` (d,): the row of the last look that the network misses most; ``fresh`` (n, d): its random rows, asked
    after the network was made, beside those ``between`` and beyond the kinks on its line.
    """

    network: Network
    noise: Noise
    lines: list[Line] = field(default_factory=list)
    reason: str = ""
    left: float = np.inf
    spread: Array = field(default_factory=lambda: np.ones(1))
    seen: int = 0
    refused: bool = False
    deep: bool = False
    jumps: bool = False
    ended: bool = False
    missed: Array | None = None
    fresh: Array | None = None
    between: int = 0

    def tolerance(self, t: float | Array) -> Array:
        """How far f̂ may be off at a distance t and be right, (n, q): its digits, and what rounding of f makes of it."""
        least = _EXACT * np.maximum(self.spread, np.finfo(float).tiny)
        return np.asarray(np.multiply.outer(1.0 + np.abs(t) / self.lines[0].scale, least) + _TIMES * self.noise(t))

    @property
    def rough(self) -> bool:
        """Whether the answers have fewer digits than double precision."""
        return self.noise.relative > 1e-11


def chosen_queries(
    ask: Ask,
    domain: Domain,
    run: Run,
    width: int | None = None,
    improve: Callable[[Chosen], None] = lambda _: None,
    deep: Callable[[Crossings], bool] = lambda _: False,
) -> Chosen:
    """Lines and units until the residual has no kink and no value beyond rounding.

    ``ask`` answers in standard coordinates, (n, d) → (n, q). ``improve``: gives the network so far more digits, from
    rows that were asked already. ``deep``: whether the first line shows that there are further layers; asked before its
    gradients, where these take many rows, and if they leave something.
    """
    nothing = Network(np.zeros((0, domain.d)), np.zeros(0), np.zeros((1, 0)))
    state = Chosen(nothing, Noise(np.zeros(1), np.zeros(1)))
    try:
        _search(ask, state, domain, run, width, improve, deep)
    except Ended as end:
        state.reason, state.ended = str(end), True
    return state


def _search(
    ask: Ask,
    state: Chosen,
    domain: Domain,
    run: Run,
    width: int | None,
    improve: Callable[[Chosen], None],
    deep: Callable[[Crossings], bool],
) -> None:
    """The same, noting what is found as it is found."""
    line = domain.line(run.rng)
    run.report("first line", 0, units=0)
    (found,) = kinks(ask, [line], most=_most(width), rough=ROUGH, over=lambda: run.over)
    state.network = Network(np.zeros((0, domain.d)), np.zeros(0), np.zeros((len(found.noise.level), 0)))
    state.noise, state.lines, state.refused = found.noise, [line], True
    state.reason, state.jumps = _refusal(found)
    if state.reason or run.over:
        return
    doubtful = not state.rough
    if doubtful and (domain.limited or len(found.t) * domain.d >= _WORTH) and _deeper(state, found, deep):
        return
    state.refused = False
    precision = Precision.for_noise(found.noise.relative)
    if not state.rough:
        found = _easiest(ask, domain, run, found, width)
        state.lines = [found.line]
    run.report(
        f"gradients of {len(found.t) + 1} pieces", 1, units=len(found.t), expected=rows_to_ask(domain.d, len(found.t))
    )
    if state.rough:
        state.network, state.lines = _agreed(ask, domain, run, found, width)
    else:
        state.network = units_of_line(ask, found, precision, domain.room)
    if state.noise.relative > _FINE:
        improve(state)
    anchor, stuck, gained = found.line.at(np.array(roomiest(found))), 0, 1
    for number in range(2, (4 if domain.limited else 1) * _LINES + 1):
        line, before = domain.line(run.rng, anchor), state.left
        state.left = _look(ask, state, domain, line, run)
        run.report("looking for more", number, units=state.network.m)
        if state.left <= 1.0:
            state.reason = ""
            break
        if doubtful and _deeper(state, found, deep):  # another line beside it: by chance the first had the same jumps
            return
        doubtful = False
        state.reason = "the units found do not explain all of the answers"
        # in a range every line meets other units, and one that meets none says little
        stuck = stuck + 1 if state.left > 0.1 * before and not (domain.limited and gained) else 0
        if run.over or stuck >= _STUCK:
            break
        gained = state.network.m
        if domain.limited:  # a random line may miss the kink; between a row that fits and one that does not it lies
            line = domain.line(run.rng, anchor, state.missed)
        _add_units(ask, state, domain, line, precision, run, width)
        gained = state.network.m - gained
        if gained or not state.rough:
            improve(state)


def _deeper(state: Chosen, found: Crossings, deep: Callable[[Crossings], bool]) -> bool:
    """Whether there are more layers than one; then that is noted, and that this is no function for the units of one."""
    if not deep(found):
        return False
    state.reason, state.deep, state.refused = "it has more than one hidden layer", True, True
    return True


def _easiest(ask: Ask, domain: Domain, run: Run, found: Crossings, width: int | None) -> Crossings:
    """The line on which gradients take the fewest rows: this one, or one of a few others where that is worth it."""
    more = lines_to_choose_from(len(found.t), domain.d)
    if not more:
        return found
    lines = [domain.line(run.rng) for _ in range(more)]
    others = kinks(ask, lines, most=more * _most(width), over=lambda: run.over)
    # one with fewer kinks has missed some
    good = [one for one in others if one.whole and not one.noise.curved and len(one.t) >= len(found.t)]
    return min([found, *good], key=effort)


def _agreed(ask: Ask, domain: Domain, run: Run, found: Crossings, width: int | None) -> tuple[Network, list[Line]]:
    """The units that two of the three clearest lines show alike, and those lines; the affine part is left to the fit.

    Where answers are rough, the gradient of a short piece is noise, and two kinks too close count as one that is none.
    A line takes ten rows a kink and a gradient d rows, so clear lines are looked for among many.
    """
    lines = [domain.line(run.rng) for _ in range(min(max(domain.d // 4, 2 * _VOTES), _CHOICE))]
    every = [found, *kinks(ask, lines, floor=found.noise, most=_CHOICE * _most(width), over=lambda: run.over)]
    clear = sorted((one for one in every if one.whole), key=bluntness)[:_VOTES]
    nets: list[Network] = []
    for one in clear:
        run.report(f"gradients of {len(one.t) + 1} pieces", len(nets) + 1, units=len(one.t))
        nets.append(units_of_line(ask, one, Precision.for_noise(one.noise.relative), domain.room))
    if len(nets) < 2:
        return units_of_line(ask, found, Precision.for_noise(found.noise.relative), domain.room), [found.line]
    kept: list[tuple[int, int]] = []
    for k, net in enumerate(nets):
        for i in range(net.m):
            seen = [_shows(other, net, i) for j, other in enumerate(nets) if j != k]
            if any(seen) and not any(_shows(nets[j].permuted([n]), net, i) for j, n in kept):
                kept.append((k, i))
    W = np.array([nets[k].W[i] for k, i in kept]).reshape(-1, domain.d)
    A = np.array([nets[k].a[:, i] for k, i in kept]).reshape(-1, len(found.noise.level)).T
    return Network(W, np.array([nets[k].b[i] for k, i in kept]), A), [one.line for one in clear]


def _shows(other: Network, net: Network, i: int) -> bool:
    """Whether another network has unit i of this one, up to its sign and to a few per cent."""
    cosine = other.W @ net.W[i]
    near = np.abs(other.b - np.sign(cosine) * net.b[i]) <= _ALIKE * (1.0 + abs(net.b[i]))
    return bool((near & (np.abs(cosine) >= 1.0 - 0.5 * _ALIKE**2)).any())


def _add_units(
    ask: Ask, state: Chosen, domain: Domain, line: Line, precision: Precision, run: Run, width: int | None
) -> None:
    """The units of the residual along a line, added to the network."""
    net = state.network

    def residual(Z: Array) -> Array:
        return np.asarray(ask(Z) - net(Z))

    (more,) = kinks(residual, [line], floor=_floor(state), most=_most(width), over=lambda: run.over)
    state.lines.append(line)
    if not len(more.t) or len(more.doubts) > 4 + len(more.t) // 4 or run.over:
        return
    middle = more.pieces[int(np.searchsorted(more.t, 0.0))]
    known = bool((np.abs(middle.value(0.0)) + np.abs(middle.slope) <= state.tolerance(0.0)).all())
    run.report(f"gradients of {len(more.t)} pieces", len(state.lines), units=net.m + len(more.t))
    extra = units_of_line(residual, more, precision, domain.room, known)
    state.network = _sum(net, extra, max(_SAME, min(1e4 * state.noise.relative, 1e-2)))


def _look(ask: Ask, state: Chosen, domain: Domain, line: Line, run: Run) -> float:
    """The largest residual over what is tolerated: on a line, beyond and between kinks of the network, and at random.

    Above 1 something is missing, and ``state.missed`` is the row that shows it. In a range, where lines are short, many
    more random rows are looked at before nothing is said to be missing.
    """
    net = state.network
    along = net.W @ line.direction
    t = -(net.W @ line.origin + net.b) / np.where(along == 0.0, 1e-300, along)
    t = np.sort(t[(t > line.reach[0]) & (t < line.reach[1])])
    angles = np.arctan(np.concatenate([[line.reach[0]], t, [line.reach[1]]]) / line.scale)
    share = run.rng.uniform(0.2, 0.8, len(angles) - 1)
    t = line.scale * np.tan(share * angles[1:] + (1.0 - share) * angles[:-1])
    if not domain.limited:  # a unit that is missing is on at one end or the other, and half-way in between
        t = t[np.unique(np.linspace(0, len(t) - 1, _RANDOM).astype(int))]
    left, rows, state.fresh, state.between = 0.0, line.at(t), np.zeros((0, domain.d)), len(t)
    for some in (_RANGED * _RANDOM, _IN_A_RANGE) if domain.limited else (_RANDOM,):
        Z = np.vstack([rows, domain.draw(run.rng, some)])
        y = ask(Z)
        values, state.fresh = y[len(rows) :], np.vstack([state.fresh, Z[len(rows) :]])
        state.spread = np.maximum(state.spread, values.std(axis=0)) if state.seen else values.std(axis=0)
        state.seen += len(Z)
        distance = np.concatenate([np.abs(t), np.full(some, line.scale)])
        off = np.nan_to_num((np.abs(y - net(Z)) / state.tolerance(distance)).max(axis=1))  # NaN: no digits there
        left, state.missed = float(off.max()), Z[np.argmax(off)]
        if left > 1.0:
            break
        rows, t = rows[:0], t[:0]
    return left


def _floor(state: Chosen) -> Noise:
    """What is taken for noise in the residual: f̂ is known to some ten digits, or to what rough answers allow."""
    tau = state.lines[0].scale
    level = np.maximum(_FLOOR * state.spread, 0.1 * _TIMES * state.noise.level)
    return Noise(level, np.maximum(_FLOOR * state.spread / tau, 0.1 * _TIMES * state.noise.growth))


def _most(width: int | None) -> int:
    return 40_000 if width is None else 2_000 + 40 * width


def _refusal(found: Crossings) -> tuple[str, bool]:
    """Why this is not a function whose kinks lines can find, or "" if it is; and whether that is because it jumps."""
    if found.noise.curved:
        return "the answers bend everywhere along a line: not a piecewise linear function", False
    if found.noise.relative > ROUGH:
        return f"the answers are rough (relative noise {found.noise.relative:.1e}), too rough for lines", False
    if found.leaps:
        return "the answers jump along a line: not a continuous function", True
    if len(found.doubts) > 2 + len(found.t) // 4:
        return (
            f"{len(found.doubts)} stretches of a line could not be resolved: not piecewise linear, or it jumps",
            False,
        )
    return "", False


def _sum(one: Network, two: Network, same: float) -> Network:
    """One network for the sum; units of the same kink become one, and those that cancel disappear."""
    both = Network(
        np.vstack([one.W, two.W]),
        np.concatenate([one.b, two.b]),
        np.concatenate([one.a, two.a], axis=1),
        v=one.v + two.v,
        c=one.c + two.c,
    )
    return both.merge(same)
