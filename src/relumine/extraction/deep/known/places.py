"""Where to look: long lines for the first layer, chords of charts behind known ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.known.charts import Chart, Known

Rng = np.random.Generator
Chords = tuple[list[Chart], Array, Array]


_LONG = 300.0  # half length of a line over √d: it passes 997 of 1000 hyperplanes of units with bias below 1
_APART = 0.5  # how far from a chord its parallel is, over the activations: three of four kinks stay on
_POINTS = 64  # random lines whose pieces are compared
_SHARP = 2.0  # digits by which a peak stands out beyond the sum of the others
_SMALL = 1e-2  # of an activation beside 1, and of 1 beside an activation, where the other is to count
_PLACES = 16  # peaks, and random inputs, between which places of a unit are
_BEND = 1e-3  # how far from a unit the box is asked whether it bends there, over the activations


def chords(
    known: Known, count: int, rng: Rng, pairs: tuple[Array, Array] | None = None, moving: bool = False
) -> Chords:
    """``count`` straight pieces, each inside one chart; ``pairs``: inputs between whose activations to look.

    ``moving``: charts are those of `Known.moving`, which are there also where active units do not move one by one.
    """
    if not known.layers:
        return _lines(known, count, rng)
    if len(known.layers) == 1:
        found = _orthant(known, count, rng, pairs)
        if found is not None:
            return found
    return _pieces(known, count, rng, pairs, known.moving if moving else known.chart)


def parallels(known: Known, rng: Rng) -> Chords | None:
    """Two parallel chords behind one layer, with all its units on; None where that cannot be."""
    chart = _free(known) if len(known.layers) == 1 else None
    if chart is None:
        return None
    W, b = known.layers[0]
    m = len(b)
    # one half of the units large at one end, the other at the other: half of the next layer's units change sides
    half = rng.permutation(m) < m // 2
    size = 3.0 * np.linalg.norm(W, axis=1) * np.exp(0.5 * rng.normal(size=(2, m)))
    ends = np.where(np.stack([half, ~half]), size, 0.02 * size)
    shift = _APART * np.linalg.norm(W, axis=1) * rng.uniform(0.5, 1.5, size=m)  # up: the units stay on
    starts, stops = ((h + np.stack([0.0 * shift, shift]) - b) @ chart.E.T for h in ends)
    return [chart, chart], starts, stops


def _free(known: Known) -> Chart | None:
    """The chart of one layer in which all units are on; None where the rows are dependent."""
    W, b = known.layers[0]
    chart = known.chart(np.asarray(np.linalg.lstsq(W, np.ones(len(b)) - b, rcond=None)[0], dtype=np.float64))
    return chart if chart is not None and chart.dim == len(b) else None


def _lines(known: Known, count: int, rng: Rng) -> Chords:
    P, U = rng.normal(size=(2, count, known.d))
    U *= _LONG * np.sqrt(known.d) / np.linalg.norm(U, axis=1, keepdims=True)
    return [known.chart(P[0])] * count, P - U, P + U  # type: ignore[list-item]


def _orthant(known: Known, count: int, rng: Rng, pairs: tuple[Array, Array] | None) -> Chords | None:
    """Between two points h > 0, x = W⁺(h − b): all units on. None where the rows are dependent.

    Half of the chords join activations of random inputs: what such inputs meet is met. The others join points at which
    one unit is far larger than the rest, each unit in turn: what differs in the sign of two weights is met.
    """
    W, b = known.layers[0]
    m = len(b)
    chart = _free(known)
    if chart is None:
        return None
    if pairs is None:
        some = known(rng.normal(size=(2 * (count - count // 2), known.d)))
        H = np.concatenate([some, _peaks(W, 2 * (count // 2), rng)])
    else:
        H = np.stack([known(pairs[0]), known(pairs[1])], axis=1).reshape(-1, m)
    # off the walls of the orthant, where a unit is about to turn off; both ends of a chord alike, however short it is
    size = H.reshape(-1, 2, m).max(axis=(1, 2))
    wall = 1e-4 * size[:, None] * rng.uniform(1.0, 10.0, size=(len(size), m))
    H = np.maximum(H, np.repeat(wall, 2, axis=0))
    X = (H - b) @ chart.E.T
    return [chart] * (len(X) // 2), X[0::2], X[1::2]


def _peaks(W: Array, count: int, rng: Rng) -> Array:
    """Activations (count, m) of a layer at which one of (h, 1) is far larger than the others, each of them in turn.

    The less the others are, the more units of the next layer change sides between two of them: in the end all with two
    weights of different sign, the bias among them.
    """
    m = len(W)
    H = np.column_stack([np.exp(0.5 * rng.normal(size=(count, m))), np.ones(count)])
    H[:, :m] *= 10.0 ** rng.uniform(-1.0, 0.5, size=(count, 1))
    order = np.concatenate([rng.permutation(m + 1) for _ in range(count // (m + 1) + 1)])[:count]
    H[np.arange(count), order] *= 3.0 * m * 10.0 ** rng.uniform(0.0, _SHARP, size=count)
    return np.asarray(H[:, :m] / np.sqrt(H[:, m:]) * np.linalg.norm(W, axis=1))


def extremes(known: Known) -> Array:
    """Inputs (m + 1, d) at which all units of one known layer are on, and one of (h, 1) counts far more than the rest.

    What is linear in (h, 1) has there the sign of that weight. None where the rows are dependent, or behind two layers.
    """
    chart = _free(known) if len(known.layers) == 1 else None
    if chart is None:
        return np.zeros((0, known.d))
    W, b = known.layers[0]
    H = np.full((len(b) + 1, len(b)), _SMALL)
    H[np.arange(len(b)), np.arange(len(b))] = 1.0 / _SMALL
    return np.asarray((H * np.linalg.norm(W, axis=1) - b) @ chart.E.T)


def spread(known: Known, w: Array, c: float, count: int, rng: Rng) -> tuple[Array, Array]:
    """Inputs (n, d) all over {w·h + c = 0}, all units of one known layer on, and a short step across it at each."""
    chart = _free(known) if len(known.layers) == 1 else None
    if chart is None:
        return np.zeros((0, known.d)), np.zeros((0, known.d))
    W, b = known.layers[0]
    H = np.concatenate([_peaks(W, _PLACES, rng), known(rng.normal(size=(_PLACES, known.d)))])
    H = np.maximum(H, 1e-3 * H.max(axis=1, keepdims=True) * rng.uniform(0.1, 1.0, size=H.shape))
    z = H @ w + c
    up, down = rng.permutation(np.flatnonzero(z > 0.0)), rng.permutation(np.flatnonzero(z < 0.0))
    if not len(up) or not len(down):
        return np.zeros((0, known.d)), np.zeros((0, known.d))
    i, j = up[np.arange(count) % len(up)], down[np.arange(count) % len(down)]
    share = (z[i] / (z[i] - z[j]))[:, None]
    H = (1.0 - share) * H[i] + share * H[j]
    step = np.minimum(_BEND * np.linalg.norm(H, axis=1), 0.5 * (H / np.maximum(np.abs(w), 1e-300)).min(axis=1))
    return (H - b) @ chart.E.T, (step[:, None] * w) @ chart.E.T


def _pieces(
    known: Known,
    count: int,
    rng: Rng,
    pairs: tuple[Array, Array] | None,
    chart_at: Callable[[Array], Chart | None],
) -> Chords:
    """Pieces of lines between two kinks of known layers: all of those between given pairs, else the best of many.

    What a piece may show grows with how much the activations change along it, so of random lines, which cost nothing
    while the known layers are at hand, the pieces with the largest relative change are taken, one for each pattern.
    Between given pairs a unit may change sides on any piece.
    """
    given = pairs is not None
    if pairs is None:
        scale = 2.0 ** rng.uniform(-1.0, 2.5, size=(_POINTS, 1))
        pairs = (scale * rng.normal(size=(_POINTS, known.d)), scale * rng.normal(size=(_POINTS, known.d)))
    most = 24 * count if given else count
    found = []
    for a, b in zip(*pairs):
        t = breaks(known, a, b)
        H = known(a + t[:, None] * (b - a))
        change = np.linalg.norm(np.diff(H, axis=0), axis=1) / (1e-300 + 0.5 * np.linalg.norm(H[1:] + H[:-1], axis=1))
        middle = 0.5 * (t[1:] + t[:-1])
        on = known(a + middle[:, None] * (b - a)) > 0.0
        # a pattern with few units on says little about the weights
        merit = change * on.mean(axis=1)
        found += [(-merit[i], a, b, t[i], t[i + 1], on[i].tobytes()) for i in np.flatnonzero(np.diff(t) > 1e-6)]
    found.sort(key=lambda piece: piece[0])
    charts: list[Chart] = []
    starts, ends, patterns = [], [], set()
    for merit, a, b, lo, hi, pattern in found:
        if len(charts) >= most or -merit < 1e-6:
            break
        chart = None if pattern in patterns and not given else chart_at(a + 0.5 * (lo + hi) * (b - a))
        if chart is None:
            continue
        patterns.add(pattern)
        edge = 1e-4 * (hi - lo)
        charts.append(chart)
        starts.append(a + (lo + edge) * (b - a))
        ends.append(a + (hi - edge) * (b - a))
    return charts, np.reshape(starts, (-1, known.d)), np.reshape(ends, (-1, known.d))


def breaks(known: Known, a: Array, b: Array) -> Array:
    """0, 1 and all t between them at which a known unit turns on or off on the way from a to b, sorted."""
    t = np.array([0.0, 1.0])
    for k in range(len(known.layers)):
        z = Known(known.d, known.layers[: k + 1]).before(a + t[:, None] * (b - a))[k]
        i, j = np.nonzero(z[:-1] * z[1:] < 0.0)
        roots = t[i] + (t[i + 1] - t[i]) * z[i, j] / (z[i, j] - z[i + 1, j])
        t = np.unique(np.concatenate([t, roots]))
    return t
