"""Where to look: long lines for the first layer, chords of charts behind known layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.deep.charts import Chart, Known

Array = NDArray[np.float64]
Rng = np.random.Generator
Chords = tuple[list[Chart], Array, Array]

__all__ = ["chords"]

_LONG = 30.0  # half length of a line over √d: passes 98 % of the hyperplanes of units with bias below 1
_STEPS = 200  # of the ascent to points with many active units
_POINTS = 256


def chords(known: Known, count: int, rng: Rng, pairs: tuple[Array, Array] | None = None) -> Chords:
    """``count`` straight pieces, each inside one chart; ``pairs``: inputs between whose activations to look, if it can be."""
    if not known.layers:
        return _lines(known, count, rng)
    if len(known.layers) == 1:
        found = _orthant(known, count, rng, pairs)
        if found is not None:
            return found
    return _polytopes(known, count, rng)


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
    chart = known.chart(np.linalg.lstsq(W, np.ones(m) - b, rcond=None)[0])
    if chart is None or chart.dim < m:
        return None
    if pairs is None:
        some = known(rng.normal(size=(2 * (count - count // 2), known.d)))
        peaks = np.exp(0.5 * rng.normal(size=(2 * (count // 2), m)))
        order = np.concatenate([rng.permutation(m) for _ in range(2 * len(peaks) // m + 1)])[: len(peaks)]
        peaks[np.arange(len(peaks)), order] *= 3.0 * m
        H = np.concatenate([some, peaks * np.linalg.norm(W, axis=1) * 10.0 ** rng.uniform(-1.0, 0.5, (len(peaks), 1))])
    else:
        H = np.stack([known(pairs[0]), known(pairs[1])], axis=1).reshape(-1, m)
    # off the walls of the orthant, where a unit is about to turn off
    H = np.maximum(H, 1e-4 * H.max(axis=1, keepdims=True) * rng.uniform(1.0, 10.0, size=H.shape))
    X = (H - b) @ chart.E.T
    return [chart] * (len(X) // 2), X[0::2], X[1::2]


def _polytopes(known: Known, count: int, rng: Rng) -> Chords:
    """Chords of charts in which many units are on, between two points of a random walk inside."""
    charts, starts, ends = [], [], []
    for chart in _charts(known, count, rng):
        one, two = _walk(chart, rng), _walk(chart, rng)
        way = two - one
        if np.linalg.norm(way) < 1e-9:
            continue
        back, forth = chart.reach(way, 3.0, one)
        charts.append(chart)
        starts.append(one + 0.999 * back * way)
        ends.append(one + 0.999 * forth * way)
    return charts, np.reshape(starts, (-1, known.d)), np.reshape(ends, (-1, known.d))


def _charts(known: Known, count: int, rng: Rng) -> list[Chart]:
    """Charts around points where most units of the last layer are on, different ones."""
    X = _ascent(known, rng.normal(size=(_POINTS, known.d)), rng)
    on = (known(X) > 0.0).sum(axis=1) + rng.uniform(0.0, 0.5, size=len(X))
    found = []
    for i in np.argsort(-on):
        chart = known.chart(X[i])
        if chart is not None:
            found.append(chart)
        if len(found) == count:
            break
    return found


def _ascent(known: Known, X: Array, rng: Rng) -> Array:
    """Move points so that more of the last layer's units are on: up the sum of min(z, 1), by backward sweeps."""
    target = rng.uniform(0.3, 3.0, size=(len(X), known.width))
    best, score = X.copy(), np.full(len(X), -1.0)
    for step in range(_STEPS):
        Z = known.before(X)
        on = (Z[-1] > 0.0).sum(axis=1)
        better = on > score
        best[better], score[better] = X[better], on[better]
        G = np.where(Z[-1] < target, 1.0, 0.0)
        for k in range(len(known.layers) - 1, -1, -1):
            if k < len(known.layers) - 1:
                # a leak lets the signal through layers that are off
                G = np.where(Z[k] > 0.0, G, 0.1 * G)
            G = G @ known.layers[k][0]
        size = np.linalg.norm(G, axis=1, keepdims=True)
        X = X + 0.2 * (0.985**step) * np.sqrt(known.d) * G / np.where(size > 0.0, size, 1.0)
    return best


def _walk(chart: Chart, rng: Rng, steps: int = 30) -> Array:
    """Hit-and-run inside the chart, along directions of the active units."""
    x = chart.centre.copy()
    for _ in range(steps):
        way = chart.E @ (rng.normal(size=chart.dim) * (0.1 + np.abs(chart.heights(x))))
        back, forth = chart.reach(way, 5.0, x)
        x = x + rng.uniform(0.98 * back, 0.98 * forth) * way
    return x
