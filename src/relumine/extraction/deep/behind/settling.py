"""A layer that units behind have settled (`passing`), put right: which are its units, and what does it still lack?

The unit that is on nearly everywhere may be off somewhere: its kinks there give its bias. A unit whose weights are a
sum over those that are on where it has kinks is further behind. Next to gradients that the layer does not explain, a
unit that few inputs turn on changes sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs
from relumine.extraction.deep.behind.further import Next
from relumine.extraction.deep.behind.orient import MENDED, Signs, is_behind
from relumine.extraction.deep.behind.passing import Chain, Settled, inputs
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.again import measured_again

Mask = NDArray[np.bool_]

# Times that the kinks of a unit seldom off are looked for. Those of one in 784-8×8-1 that is off at one input in ten
# thousand were found by every second look, and once by the ninth.
_PLACED = 12
_LOOKS = 3  # for units next to gradients that are not explained
_TWO = 1e-6  # distance of units, over their size, from which they are two


def seldom_off(at: Inquiry, found: Settled) -> Array | None:
    """The row and bias (width + 1,) of the one unit that is always on, up to its kinks; None: it seems to have none."""
    *front, (W, _) = found.chain.front.layers
    with _behind(at, Known(at.dim, tuple(front))):
        search, w = Next(at, [], True), W[found.shown] / np.linalg.norm(W[found.shown])
        if not any(search.place(w) for _ in range(_PLACED)):
            return None
        (unit,) = search.units()
        on = at.known(inputs(at.dim, at.rng)) @ unit.w + unit.c > 0.0
        return np.append(unit.w, unit.c) * (1.0 if 2 * on.sum() > len(on) else -1.0)


def sums(at: Inquiry, found: Settled) -> NDArray[np.intp]:
    """Which of the open layer's units are sums over others, and so none of its own; none if all of them are."""
    *front, (W, b) = found.chain.front.layers
    rows = [Unit(w, c, ~unseen, 0.0, points=list(k)) for w, c, unseen, k in zip(W, b, found.hidden, found.kinks)]
    known, one = Known(at.dim, tuple(front)), np.ones(len(rows) - 1)
    further = [is_behind(known, [*rows[:i], *rows[i + 1 :]], one, rows[i]) for i in range(len(found.units))]
    if not any(further) or all(further):
        return np.zeros(0, dtype=np.intp)
    at.tell(f"   {sum(further)} units of the open layer are sums over others: they are further behind")
    return np.asarray(found.units[np.array(further)])


def checked(at: Inquiry, front: Known, found: Settled, signs: Signs | None) -> tuple[Settled, int, bool]:
    """The layer behind ``front`` that was settled, measured again; how many weights that no kink shows are open.

    And whether it explains all gradients, and the box bends all over its units. Where it does not explain some, a unit
    that few inputs turn on is looked for there, and becomes part of it.
    """
    with _behind(at, front):
        signs = Signs(at) if signs is None else signs
        for look in range(_LOOKS + 1):
            found, open_, sure = _confirmed(at, found, signs)
            more = None if sure or look == _LOOKS or found.chain.layers else _with_one(at, found, ~open_, signs)
            if more is None:
                break
            found = more
        return found, int(open_.sum()), sure


def mend(at: Inquiry, k: int, pairs: Pairs) -> None:
    """Known layer k with a unit that it lacks on stretches from inputs that show it; what is behind is found again.

    It is not certain any more, nor are those: where no such unit is found, whatever comes behind it is a doubt.
    """
    at.certain, at.mended = at.certain[: k - 1], at.mended + 1
    front, at.known = Known(at.dim, at.known.layers[: k - 1]), Known(at.dim, at.known.layers[:k])
    (W, b), more = at.known.layers[-1], 0
    if front.layers:
        with _behind(at, front):
            signs = Signs(at)
            signs.gradients.beside(pairs[0])
        hidden = np.zeros(W.shape, dtype=bool)
        found = Settled(Chain(at.known, []), [], len(b), 0, hidden, [()] * len(b), np.arange(len(b)))
        found, open_, sure = checked(at, front, found, signs)
        if found.shown == len(b):  # no gradient shows it
            with _behind(at, front):
                one = _between(at, found, signs, pairs)
            found, open_, sure = (found, open_, False) if one is None else checked(at, front, one, signs)
        more, at.known = found.shown - len(b), found.chain.front
        at.doubtful |= open_ > 0 or not sure
    at.doubtful |= not more
    at.mended = at.mended if more else MENDED
    if more:
        at.say(f"layer {k}: {more} more units than were seen at first; few inputs turn them on")
    else:
        at.say(f"layer {k}: some answers show a unit of it, or of the next layer, that was not found")


def _confirmed(at: Inquiry, found: Settled, signs: Signs) -> tuple[Settled, Mask, bool]:
    """The same of the layer as it is, and which weights are open."""
    W, b = found.chain.front.layers[-1]
    W, b, open_, sure = signs.confirmed(W, b, found.hidden, found.kinks)
    with _behind(at, Known(at.dim, (*at.known.layers, (W, b)))):
        sure = measured_again(at) and sure
        return found.with_layer(*at.known.layers[-1]), open_, sure


def _with_one(at: Inquiry, found: Settled, known: Mask, signs: Signs) -> Settled | None:
    """The layer with one unit more, that has kinks next to gradients which are not explained, and is on at these only.

    ``known``: which weights of the layer are.
    """
    W, b = found.chain.front.layers[-1]
    signs.blind = 0
    if signs.lonely(W, b, np.ones(len(b)), known) or signs.missing is None:
        return None
    both = [(sign, u) for u in _new(at, found, signs, signs.missing) for sign in (1.0, -1.0)]
    needed = [signs.needed(W, b, known, np.append(sign * u.w, sign * u.c)) for sign, u in both]
    at.tell(f"   {len(both) // 2} surfaces next to {max(needed, default=0)} gradients that one of them may explain")
    return _joined(at, found, *both[int(np.argmax(needed))]) if max(needed, default=0) > 0 else None


def _between(at: Inquiry, found: Settled, signs: Signs, pairs: Pairs) -> Settled | None:
    """The layer with one unit more, that is on at one end of most stretches, and at no gradient that is explained.

    Whether it is one of this layer shows in what is found behind it then.
    """
    W, b = found.chain.front.layers[-1]
    known, best, most = np.ones(W.shape, dtype=bool), None, 0.5
    out, near = (at.known(X) for X in pairs)
    units = _new(at, found, signs, pairs)
    for unit in units:
        up, down = (H @ unit.w + unit.c > 0.0 for H in (out, near))
        for sign, share in ((1.0, np.mean(up & ~down)), (-1.0, np.mean(down & ~up))):
            row = np.append(sign * unit.w, sign * unit.c)
            if share > most and signs.needed(W, b, known, row) >= 0:
                best, most = _joined(at, found, sign, unit), float(share)
    at.tell(f"   {len(units)} surfaces on these stretches, {'one' if best else 'none'} of them may be of this layer")
    return best


def _new(at: Inquiry, found: Settled, signs: Signs, pairs: Pairs) -> list[Unit]:
    """Surfaces with a kink on these stretches that are none of the layer's units, and bend the box all over."""
    W, b = found.chain.front.layers[-1]
    T = np.column_stack([W, b]) / np.linalg.norm(W, axis=1, keepdims=True)
    search = Next(at, [], True)
    search.signs, signs.missing = signs, pairs
    search.look(None, 0, 0)
    search.trace()
    search.beyond_others()
    return [u for u in search.units() if _apart(T, np.append(u.w, u.c)) > _TWO]


def _joined(at: Inquiry, found: Settled, sign: float, unit: Unit) -> Settled:
    """The layer with one unit more, behind those that show."""
    (W, b), n = found.chain.front.layers[-1], found.shown
    W, b = np.insert(W, n, sign * unit.w, axis=0), np.insert(b, n, sign * unit.c)
    return found._replace(
        chain=Chain(Known(at.dim, (*at.known.layers, (W, b))), []),
        surfaces=[],
        shown=n + 1,
        hidden=np.insert(found.hidden, n, ~unit.known, axis=0),
        kinks=[*found.kinks[:n], unit.points, *found.kinks[n:]],
    )


def _apart(T: Array, unit: Array) -> float:
    """How far a unit is from the nearest of others, rows of T, up to its sign, over its size."""
    off = np.minimum(np.linalg.norm(T - unit, axis=1), np.linalg.norm(T + unit, axis=1))
    return float(off.min(initial=np.inf)) / float(np.linalg.norm(unit))


@contextmanager
def _behind(at: Inquiry, front: Known) -> Iterator[None]:
    """With these as the known layers."""
    before, at.known = at.known, front
    try:
        yield
    finally:
        at.known = before
