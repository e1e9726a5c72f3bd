"""Units measured again where there is most room, once all of their layer are known.

A unit is measured first where a chord happens to meet it, often next to other kinks, so that differences are short and
lose digits. With all units at hand, the place on its hyperplane that is furthest from every other kink is looked for
without asking the box.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.asking.kinks import SIDE, straight
from relumine.extraction.deep.asking.witnesses import Chord, Witness, measure
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Chart, Known
from relumine.extraction.deep.known.places import spread

_PLACES = 400  # on each unit, of which the one with most room is taken
_SIDE, _STEP = 0.5, 0.25  # how far from the unit the base points are, over the room, and the length of a difference
# An error is said from the digits of the answers; next to another kink it may be far larger: 2e-7 where 1e-9 was said.
_TRUST = 100.0
_EDGE = 0.01  # the same over a gap, in a chord: what a witness calls its room is longer by so much


def sharpened(ask: Asked, known: Known, units: list[Unit], strengths: list[float], rng: np.random.Generator) -> None:
    """Units behind one layer, all of its units on, and their strengths: replaced where they are measured better.

    Parameters
    ----------
    units : list of Unit
        All units of the layer, w (m,) and c: f bends at {w·h + c = 0} by ``strengths``.
    """
    V, c = np.array([u.w for u in units]), np.array([u.c for u in units])
    for i, u in enumerate(units):
        found = _roomiest(known, V, c, i, rng)
        better = None if found is None else _again(ask, u, *found, rng)
        if better is not None and better[0].error < _TRUST * u.error:
            units[i], strengths[i] = better[0], float(np.sign(strengths[i])) * better[1]


def _roomiest(known: Known, V: Array, c: Array, i: int, rng: np.random.Generator) -> tuple[Chart, Array, float] | None:
    """A place on unit i, and how far it is from all other kinks; the furthest over ‖h‖, which the answers grow with."""
    X, _ = spread(known, V[i], c[i], _PLACES, rng)
    chart = known.chart(X[0]) if len(X) else None
    if chart is None or chart.dim < known.width:
        return None
    H = chart.heights(X)
    others = np.delete(np.arange(len(V)), i)
    walls = np.abs(H) / np.linalg.norm(chart.J, axis=1)
    kinks = np.abs(H @ V[others].T + c[others]) / np.linalg.norm(V[others] @ chart.J, axis=1)
    room = np.minimum(walls.min(axis=1), kinks.min(axis=1, initial=np.inf))
    best = int((room / np.linalg.norm(H, axis=1)).argmax())
    return (chart, X[best], float(room[best])) if room[best] > 0.0 else None


def _again(
    ask: Asked, u: Unit, chart: Chart, x: Array, room: float, rng: np.random.Generator
) -> tuple[Unit, float] | None:
    """The unit measured at x, and the length of a·w; None where that did not work."""
    normal = chart.J.T @ u.w
    across = normal / np.linalg.norm(normal)
    side = _SIDE * room
    found = located(ask.beside, x, across, side)
    if found is None:
        return None
    x, jump = found
    chord = Chord(chart, straight(x, x + across), 0)
    w = Witness(chord, x, across, side / SIDE, _STEP / _EDGE * room, jump, 0.0, 0.0, (0.0, 0.0))
    result = measure(ask.beside, w, rng)
    if result is None:
        return None
    size = float(np.linalg.norm(result[0]))
    v = result[0] / size * np.sign(result[0] @ u.w)
    return Unit(v, -float(v @ w.height), u.known, result[1] / size), size


def located(ask: Callable[[Array], Array], x: Array, way: Array, side: float) -> tuple[Array, float] | None:
    """Where f bends near x on the way, from two rows on each side, and by how much; None: not nearly at x."""
    t = side * np.array([-1.0, -0.5, 0.5, 1.0])
    y = ask(x + t[:, None] * way)
    left, right = (y[1] - y[0]) / (t[1] - t[0]), (y[3] - y[2]) / (t[3] - t[2])
    if left == right:
        return None
    at = (y[0] - left * t[0] - y[3] + right * t[3]) / (right - left)
    return (x + at * way, float(right - left)) if abs(at) <= 0.4 * side else None
