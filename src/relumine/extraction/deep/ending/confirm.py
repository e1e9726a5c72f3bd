"""Polish all layers, then hold the network against rows that nothing has used."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs, turned
from relumine.extraction.deep.ending.large import rare, swept, with_slopes
from relumine.extraction.deep.ending.linear import SMALL, contradiction, error, oriented, sized, typical
from relumine.extraction.deep.ending.missing import completed
from relumine.extraction.deep.ending.plays import cornered, covering, idle, played, rejoined
from relumine.extraction.deep.ending.twins import as_one
from relumine.extraction.deep.known.charts import Known
from relumine.fit.layers import minimise, rank

# Fresh rows where inputs usually are: at most 0.3 % of them may differ, with 95 % confidence. With 300 of them, two of
# fifty boxes of random shape were called exact and lacked a unit that is on for one input in a hundred; with 1000, one
# of six with three hidden layers lacked one that is on for one in a thousand.
_CONFIRM, _CAREFUL = 1000, 5000
# Times that rows are chosen for a polish, those with errors up to so many times the typical one, and the one that needs
# no polish.
_TRIMS, _TIMES, _DIGITS = 4, 3.0, 3e-13
# Errors of rows that are then taken in, that of a row which fits, and how much less the largest of them must be.
_LEVELS, _OFF, _LESS = (1e-11, 1e-9), 3e-12, 1e-4
_ROUGH, _WORSE = 1e-10, 2.0  # median error up to which missing units stand out, and how much larger it may be with them
_LOOKS = 4  # times that missing units are looked for
_MOST = 0.7  # share of random rows that must be right already
_SLOW = 2  # steps of a polish that gain little
_AGAIN = 3  # times that the linear part of the head is put into units: in 25-11-11-11-1 two were needed
_FIRST = 200  # of them asked first
_WIDE, _FAR = 3.0, 300  # and so many further out, so much further
_LARGE = 12_000  # parameters up to which all layers are polished at all: a minute
_HEAD = 20_000  # and the last layer alone: that of 784-128-128-1 has 16 641
_EXACT = 1e-8  # relative error on fresh inputs that counts as rounding: measured 1e-15 … 4e-9 where all units are right
_OFF_AT = 1e-6  # error of a row asked before that contradicts a network all fresh rows agree with
_MUTE = 1e-9  # output of a unit over the largest that is none: measured 1e-11 for one that was there twice
_TWICE = 1e-6  # difference of two units that may be one: measured 6e-8
# Rows of the last polish, new ones and some asked before, over parameters: of small networks, of others, and of the
# last layer alone. With all rows new a 50-25-25-1 took up to 6.1 rows per parameter, with these 5.5; a 100-50-50-1 had
# errors of 4e-9 with these.
_MIXED, _RANDOM, _OF_HEAD = (0.8, 0.5), (1.15, 0.0), (2.0, 1.0)
_RANKED = 700  # parameters up to which the rank of the Jacobian is computed: half a second
# And that which is not polished again; from the second on units are missing. A 100-50-50-1 with all of them was off by
# 2.5e-5, and took 51 000 rows instead of 38 000 with 1e-5.
_FINE, _COARSE = 3e-10, 1e-4
# Relative loss at which a polish ends: rounding; for large networks 1e-13 of the answers. At 1e-11 one weight of a
# trained 784-64-64-1, into a unit that is on for one row in a hundred, was off by 6e-7.
_FLOOR, _ENOUGH = 1e-28, 1e-26


@dataclass
class Found:
    """What was found.

    ``network``: all of it, or None; ``known``: the layers that are certain (W, b), unit rows; ``reason``: how it ended;
    ``residual``: root mean square error over that of the spread, on ``confirmed`` fresh rows;
    ``stopped``: time or budget ended the search; ``unsigned``: planes (V, c) of the next layer's units, sides open;
    ``checked``: for each of the layers that are certain, at how many places a missing unit would have shown.
    """

    network: DeepNetwork | None
    known: tuple[tuple[Array, Array], ...]
    reason: str
    queries: int
    residual: float = np.inf
    confirmed: int = 0
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list, repr=False)
    seconds: float = 0.0
    stopped: bool = False
    unsigned: tuple[Array, Array] | None = None
    checked: tuple[int, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether fresh rows confirm the network to rounding error."""
        return self.network is not None and self.confirmed > 0


def polished(at: Inquiry, net: DeepNetwork) -> tuple[Found | None, Pairs | None]:
    """Polish, then hold against rows that nothing has used; pairs to look between where some of them do not fit.

    What is found is a network of x itself, whatever the coordinates of the rows.
    """
    if at.ask.basis is not None:
        net = DeepNetwork(turned(net.layers, at.ask.basis, None), net.head)
        with at.within(None):
            found, pairs = polished(at, net)
        return found, None if pairs is None else (at.ask.coordinates(pairs[0]), at.ask.coordinates(pairs[1]))
    off = np.abs(net(at.pool[0]).reshape(at.pool[1].shape) - at.pool[1]).max(axis=1)
    if np.quantile(off, _MOST) > 1e-5 * float(at.pool[1].std()):
        return None, None
    net = _lean(at, _fitted(at, net))
    rows = at.near()
    wrong = error(net, *rows) > contradiction(net, *rows)
    if wrong.any() and np.median(error(net, *rows)) > _ROUGH and net.parameters <= SMALL:
        return None, None  # more than some units is missing
    net = _complete(at, net)
    if _near(at, net) == _CAREFUL:
        for _ in range(_LOOKS):
            net, pairs = played(at, _joined(at, net))
            if pairs is None:
                break
            before, net = net, _complete(at, net)
            if net is before:
                at.draft = (net, at.open)
                return None, pairs
        net = _joined(at, _fitted(at, net))
    elif (pairs := cornered(at, net)) is not None:
        return None, pairs
    net, used = _once(at, net), at.ask.mark
    fresh = _fresh(at, _FIRST, _FAR)
    left, pairs = _left(at, net, *fresh)
    if _FINE < left < _COARSE:
        net = _refined(at, net, used)
        left, pairs = _left(at, net, *fresh)
    if left >= _EXACT:  # the first rows that contradict are enough
        return None, pairs
    count = _near(at, net)
    more = _fresh(at, count - _FIRST, 0)
    left, pairs = _left(at, net, *[np.concatenate(both) for both in zip(more, fresh)])
    if left < _EXACT and pairs is None and (pairs := _contradicted(at, net)) is None:
        return Found(
            net, net.hidden, "all layers", 0, left, count, at.notes, [*_doubts(at, net), *_rank(at, net)]
        ), None
    return None, pairs


def _contradicted(at: Inquiry, net: DeepNetwork) -> Pairs | None:
    """Pairs to look between where rows asked so far contradict the network; None where none does.

    Fresh rows may all agree though others do not: of a network that was fitted to the digits 69 of 50 000 near and far
    were off, and 2398 of 33 232 asked before, most of them where some unit is seldom on.
    """
    X, Y = at.near()
    wrong = error(net, X, Y) > max(contradiction(net, X, Y), _OFF_AT)
    at.tell(f"  {int(wrong.sum())} of {len(X)} rows asked before contradict")
    return at.between(X[wrong], X[~wrong]) if wrong.any() else None


def _doubts(at: Inquiry, net: DeepNetwork) -> list[str]:
    """Weights that no row asked brings into play: their two units were never on together."""
    masks = idle(net, at.ask.data()[0])
    return [
        f"layer {k}: {int(mask.sum())} of {mask.size} weights join units that were never on together"
        for k, mask in enumerate(masks, 2)
        if mask.any()
    ]


def _rank(at: Inquiry, net: DeepNetwork) -> list[str]:
    """What the Jacobian says about the parameters, where it is small: whether others near by give the same answers."""
    if net.parameters > _RANKED or net.head.v.any():
        return []
    X = at.ask.data()[0]
    found, most = rank(net, X[at.rng.permutation(len(X))[: 3 * net.parameters]])
    if found == most:
        return [
            f"the Jacobian has its full rank {most} (parameters less units): no others close to these give the same"
        ]
    return [f"the Jacobian has rank {found} of {most}: some parameters can change without any answer asked changing"]


def _fitted(at: Inquiry, net: DeepNetwork, also: float = 0.0) -> DeepNetwork:
    """Polished on rows asked so far, if it is small; on those that fit best, as others show units that are missing.

    With what these give, rows that do not belong stand out. Then rows that are off a little, and a little more, as long
    as all of them fit in the end: they show weights that others hardly do. ``also``: as far off are the last of them.
    """
    if net.parameters > SMALL:
        return net
    X, Y = at.near()
    use = covering(net, X, 3 * net.parameters, at.rng)
    X, Y = np.concatenate([at.pool[0], X[use]]), np.concatenate([at.pool[1], Y[use]])
    off = error(net, X, Y)
    if off.max() <= contradiction(net, X, Y):  # nothing seems to be missing
        more = _polished(at, net, X, Y)
        if np.quantile(error(more, X, Y), 0.9) <= _DIGITS:
            return more
    for _ in range(_TRIMS):
        level = typical(off)
        if level <= _DIGITS:
            break
        fits = off <= _TIMES * level
        more = _polished(at, net, X[fits], Y[fits])
        better = error(more, X, Y)
        if typical(better) > 0.5 * level:
            break
        net, off = more, better
    for level in (*_LEVELS, max(contradiction(net, X, Y), also)):
        fits = off <= level
        if off[fits].max(initial=0.0) <= _OFF or fits.mean() < 0.5:
            continue
        more = _polished(at, net, X[fits], Y[fits])
        better = error(more, X, Y)
        if better[fits].max() > max(_OFF, _LESS * off[fits].max()) or np.median(better) > max(np.median(off), _DIGITS):
            break
        net, off = more, better
    return net


def _complete(at: Inquiry, net: DeepNetwork) -> DeepNetwork:
    """The network, with units of its last layer that few rows show, if it is small and has others before that."""
    for _ in range(_LOOKS if net.parameters <= SMALL and len(net.layers) > 1 else 0):
        most = max(_OFF, _WORSE * float(np.median(error(net, *at.near()))))
        open_, whole = at.open, completed(at, net, contradiction(net, *at.near()))
        if whole is net:  # then rows that differ may only show how units share what is linear at all others
            wrong = (error(net, *at.near()) > contradiction(net, *at.near())).any()
            return _fitted(at, net, also=np.inf) if wrong else net
        whole = _lean(at, _fitted(at, whole))
        if np.median(error(whole, *at.near())) > most:  # not all that came is a unit
            at.open = open_
            break
        net = whole
    return net


def _lean(at: Inquiry, net: DeepNetwork) -> DeepNetwork:
    """Without units of the last layer that do not count: of one found twice, once badly, polishing leaves nothing."""
    loud = np.abs(np.atleast_2d(net.head.a)).max(axis=0) * np.linalg.norm(net.head.W, axis=1)
    keep = np.flatnonzero(loud > _MUTE * loud.max(initial=0.0))
    at.open = None if at.open is None else at.open[keep]
    return net if len(keep) == net.head.m else DeepNetwork(net.layers, net.head.permuted(keep.tolist()))


def _once(at: Inquiry, net: DeepNetwork) -> DeepNetwork:
    """Each unit of the last layer once, if no row contradicts that: a polish may share one among two.

    And without those that no row shows: relu(−h_j) is a unit with a large weight, and nothing.
    """
    for _ in range(net.head.m):
        shown = np.flatnonzero(_shares(at, net) > _OFF).tolist()
        fewer = [net.head.permuted(shown), net.head.merge(_TWICE), *as_one(net.head)]
        fewer = [head for head in fewer if 0 < head.m < net.head.m]
        held = (_held(at, DeepNetwork(net.layers, head), net) for head in fewer)
        less = next((one for one in held if one is not None), None)
        if less is None:
            break
        at.tell(f"  {net.head.m - less.head.m} units were there twice, or did nothing")
        net = less
    return net


def _shares(at: Inquiry, net: DeepNetwork) -> Array:
    """The largest part of each unit of the last layer in any row's answer, as errors are measured."""
    X, Y = at.near()
    size = sized(X)[:, None]
    Z = np.maximum(Known(at.dim, net.layers)(X) @ net.head.W.T + net.head.b, 0.0) / size
    loud = np.abs(np.atleast_2d(net.head.a)).max(axis=0)
    return np.asarray(Z.max(axis=0) * loud / max(float(np.abs(Y / size).max(initial=0.0)), 1e-300))


def _held(at: Inquiry, less: DeepNetwork, net: DeepNetwork) -> DeepNetwork | None:
    """A network with fewer units, polished; None where rows contradict it."""
    X, Y = at.near()
    if np.median(error(less, X, Y)) > _TWICE:
        return None
    less = less if error(less, X, Y).max() <= _OFF else _fitted(at, less)
    return less if error(less, X, Y).max() <= contradiction(net, X, Y) else None


def _joined(at: Inquiry, net: DeepNetwork) -> DeepNetwork:
    """v·h as weights of units; what the box shows where it is asked for that is polished first."""
    for _ in range(_AGAIN if net.head.v.any() else 0):
        if at.open is not None and net.head.v.any():
            net = DeepNetwork(net.layers, oriented(net.head, at.open))
        net, right = rejoined(at, net)
        if right:
            break
        worst, net = float(error(net, *at.near()).max()), _fitted(at, net, also=np.inf)
        if error(net, *at.near()).max() > 0.5 * worst:
            break
    return net


def _polished(at: Inquiry, net: DeepNetwork, X: Array, Y: Array) -> DeepNetwork:
    """Gauss–Newton in all layers, and in the linear part of the head as far as there is one."""
    steps, tol = (10, _FLOOR) if net.parameters <= SMALL else (6, _ENOUGH)
    far = np.maximum(np.linalg.norm(X, axis=1) / np.sqrt(at.dim), 1.0)  # f, and its errors, grow like ‖x‖
    v, size = np.ravel(net.head.v) != 0.0, net.parameters
    free = np.append(np.ones(size, dtype=bool), v) if v.any() and size + len(v) <= SMALL else None
    target = Y[:, 0] if at.ask.plain else Y
    fit = minimise(
        net, X, target, at.run, steps=steps, slow=_SLOW, tol=tol, weight=1.0 / far, skip=free is not None, free=free
    )
    at.tell(f"  polish {fit.history[0]:.1e} to {fit.loss:.1e}")
    return fit.network


def _refined(at: Inquiry, net: DeepNetwork, used: tuple[int, int]) -> DeepNetwork:
    """Polished on random rows, a little more than parameters; of large networks only the head, on twice as many.

    Units of the last layer that these hardly show get rows of their own: old ones lie on few lines. Of small networks
    some old ones are taken as well: those have digits enough, and a query costs more.
    ``used``: the rows remembered up to there; later ones are to confirm the network, and stay out of the fit.
    """
    head, whole, small = DeepNetwork((), net.head), net.parameters <= _LARGE, net.parameters <= SMALL
    if not whole and head.parameters > _HEAD:
        return net
    net = net if whole else with_slopes(at, net)
    new, again = (_MIXED if small else _RANDOM) if whole else _OF_HEAD
    size = net.parameters if whole else head.parameters
    X, Y = at.rows(int(new * size) + 100 * whole)
    old, answers = at.ask.since(at.mark, used)  # on both sides of units that random rows hardly show
    pick = at.rng.permutation(len(old))[: int(again * size)]
    old, answers = old[pick], answers[pick]
    seldom, more = at.ask.answered(rare(at, net, np.concatenate([X, old]) if small else X))
    X, Y = np.concatenate([X, seldom, old]), np.concatenate([Y, more, answers])
    if whole:
        return _polished(at, net, X, Y)
    H = Known(at.dim, net.layers)(X)
    weight = 1.0 / (1.0 + np.linalg.norm(H, axis=1))
    fit = minimise(head, H, Y[:, 0] if at.ask.plain else Y, at.run, steps=8, tol=_ENOUGH, weight=weight)
    at.tell(f"  polish of the head {fit.history[0]:.1e} to {fit.loss:.1e}")
    return DeepNetwork(net.layers, swept(fit.network.head, H, Y, weight))


def _near(at: Inquiry, net: DeepNetwork) -> int:
    """How many fresh rows: more behind more or wide layers, with a linear part left, or with weights seldom in play."""
    doubt = len(net.hidden) > 2 or net.widths[0] > at.dim or net.head.v.any() or _doubts(at, net)
    return _CAREFUL if doubt else _CONFIRM


def _fresh(at: Inquiry, near: int, far: int) -> tuple[Array, Array]:
    """Inputs never asked before, and their answers; the last ones further out: there other units may be on."""
    X, Y = at.drawn(near, lambda _: 1.0)
    if not far:
        return X, Y
    further, answers = at.drawn(far, lambda _: _WIDE)
    return np.concatenate([X, further]), np.concatenate([Y, answers])


def _left(at: Inquiry, net: DeepNetwork, X: Array, Y: Array) -> tuple[float, Pairs | None]:
    """Root mean square error over the spread, and pairs to look between where only some of the rows fit."""
    off = np.abs(net(X).reshape(Y.shape) - Y).max(axis=1) / max(float(Y[:-_FAR].std()), 1e-300)
    left, bad = float(np.sqrt(np.mean(off**2))), off > 1e-6
    at.tell(f"  residual {left:.1e}, worst {off.max():.1e}")
    return left, None if bad.all() or not bad.any() else at.between(X[bad], X[~bad])
