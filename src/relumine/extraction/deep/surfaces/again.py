"""Known layers held against the box all over their surfaces, and measured again from the kinks there."""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.climb import both_sides, corners
from relumine.extraction.deep.surfaces.probing import Lines, Shown, all_shown, chosen, corrected
from relumine.extraction.deep.surfaces.surface import Lift, Surface

_LINES, _CORNERS = 150, 100  # random lines, and corners between which others are: places are where they cross
PLACES = 24  # at which a surface is asked for
# Share of the places that must show it. In all layers of 100-16×8-1 and 784-8×8-1 every unit of the next layer had 100
# %, and those of later ones up to 90 %.
SHARE = 0.95
_PLANES = 0.75  # the same of planes whose sides are open: of a maximum of two, a half
_OVER = 3  # kinks for each weight from which a layer is measured again
_KNOWN, _ERROR = 1e-6, 1e-7  # how far off these may be, and its weights so far: measured up to 1e-8
# The same of weights that few of these show; kinks that must show a weight, what that is, and lines to look for them.
_RARE, _EACH, _SHOWN, _TRIES = 1e-5, 4, 1e-2, 8


def lines_through(lift: Lift, rng: np.random.Generator, many: int = 1) -> Lines:
    """Random lines, and lines between corners, so ``many`` times as usual; with no known layer there are no corners."""
    scale = 2.0 ** rng.uniform(-1.0, 3.0, size=(many * _LINES, 1))
    ends = corners(lift.known, many * _CORNERS, rng) if lift.known.layers else np.zeros((0, lift.known.d))
    starts, stops = scale * rng.normal(size=(2, many * _LINES, lift.known.d))
    return Lines(lift, np.concatenate([starts, ends[::2]]), np.concatenate([stops, ends[1::2]]))


def measured_again(at: Inquiry, layer: int = -1) -> bool:
    """A known layer, the last unless said, once more, from many kinks of each unit.

    False: the box does not bend all over some unit. The layers behind it stay as they are.
    """
    k = range(len(at.known.layers))[layer]
    front, (W, b), back = at.known.layers[:k], at.known.layers[k], at.known.layers[k + 1 :]
    lift = Lift(Known(at.dim, front))
    lines, right, change = lines_through(lift, at.rng), True, 0.0
    W, b = W.copy(), b.copy()
    surfaces = _surfaces(lift, W, b)
    asked = [(s, chosen(lines, s, [], _OVER * lift.size, at.rng)) for s in surfaces]
    found = all_shown(at.ask, asked, _KNOWN)
    for surface, some in zip(surfaces, found):
        surface.theta = surface.theta if some.score < SHARE else corrected(surface, some.hits, _ERROR)
    rare = all_shown(at.ask, list(zip(surfaces, _rare(lift, lines, surfaces, found, at.rng))), _RARE)
    for i, (surface, some, more) in enumerate(zip(surfaces, found, rare)):
        if some.score < SHARE:  # of one that is seldom on, or off, there may be no place at all
            right = right and not some.missed
            continue
        kinks = [*some.hits, *more.hits]
        error = np.full(lift.size, _RARE)
        error[_unshown(surface, kinks)] = _ERROR  # nothing tells these
        new = corrected(surface, kinks, error)
        new *= np.linalg.norm(W[i]) / np.linalg.norm(new[:-1])
        change = max(change, float(np.abs(new - np.append(W[i], b[i])).max()))
        W[i], b[i] = new[:-1], new[-1]
    at.known = Known(at.dim, (*front, (W, b), *back))
    at.tell(f"   layer {k + 1} measured again: by {change:.1e}{'' if right else '; not all of it is there'}")
    return right


def _rare(
    lift: Lift, lines: Lines, surfaces: list[Surface], found: list[Shown], rng: np.random.Generator
) -> list[Array]:
    """Places of each surface that show the weights which few of the kinks found do: of units seldom on in front.

    A weight that no kink shows keeps what digits it had, and all that is behind it then has no more at the inputs where
    it counts.
    """
    places: list[list[Array]] = [[] for _ in surfaces]
    lacking = [(i, j) for i, s in enumerate(surfaces) for j in _unshown(s, found[i].hits)]
    if not lacking or not lift.known.layers:
        return [np.zeros((0, lift.known.d)) for _ in surfaces]
    pairs = np.repeat(lacking, _TRIES, axis=0)
    more = Lines(lift, *both_sides(lift.known, np.array([s.theta for s in surfaces])[pairs[:, 0]], pairs[:, 1], rng))
    crossings = {i: [way.crossings(surfaces[i]) for way in (lines, more)] for i in {i for i, _ in lacking}}
    for i, j in lacking:
        X, F = (np.concatenate(both) for both in zip(*crossings[i]))
        size = np.abs(F[:, j]) / np.maximum(np.linalg.norm(F, axis=1), 1e-300)
        places[i] += list(X[[k for k in np.argsort(-size, kind="stable")[:_EACH] if size[k] > 0.0]])
    return [np.reshape(some, (-1, lift.known.d)) for some in places]


def _unshown(surface: Surface, kinks: list[Array]) -> list[int]:
    """The units in front whose weights few of these kinks show."""
    F = surface.lift(np.reshape(kinks, (-1, surface.lift.known.d)), surface.s)
    size = np.abs(F[:, :-1]) / np.maximum(np.linalg.norm(F, axis=1), 1e-300)[:, None]
    return np.flatnonzero((size > _SHOWN).sum(axis=0) < _EACH).tolist()


def everywhere(at: Inquiry, V: Array, c: Array) -> bool:
    """Whether the box bends all over each of these planes of x: that of a maximum ends where another part is larger."""
    lift = Lift(Known(at.dim))
    lines = lines_through(lift, at.rng)
    asked = [(plane, chosen(lines, plane, [], PLACES, at.rng)) for plane in _surfaces(lift, V, c)]
    return all(found.score >= _PLANES for found in all_shown(at.ask, asked, _KNOWN))


def _surfaces(lift: Lift, V: Array, c: Array) -> list[Surface]:
    """Those of units (V, c)."""
    return [Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool)) for theta in np.column_stack([V, c])]
