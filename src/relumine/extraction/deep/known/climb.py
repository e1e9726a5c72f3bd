"""Inputs at which units of known layers are on or off as wanted: found by climbing on those layers, without the box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.known.charts import Known
from relumine.network import Network

Score = Callable[[list[Array]], tuple[Array, list[Array]]]


_STEPS = 80  # uphill
_MANY = 20_000  # inputs of which the best are those to start from


@dataclass
class _Climb:
    """The best input so far for each of n scores."""

    X: Array
    score: Array


def climbed(net: DeepNetwork, X: Array, score: Score, rng: np.random.Generator) -> _Climb:
    """Uphill from the rows of X, by steps that grow shorter; the score of a row sees the z of all layers."""
    best = _Climb(X.copy(), np.full(len(X), -np.inf))
    for step in np.geomspace(0.5, 0.005, _STEPS):
        zs = before(net, X)
        value, seeds = score(zs)
        better = value > best.score
        best.X[better], best.score[better] = X[better], value[better]
        g = np.zeros_like(zs[-1])
        for (W, _), z, seed in zip(net.hidden[::-1], zs[::-1], seeds[::-1]):
            g = (g * (z > 0.0) + seed) @ W
        g += 1e-3 * np.linalg.norm(g, axis=1, keepdims=True) * rng.normal(size=g.shape)
        size = np.linalg.norm(g, axis=1, keepdims=True)
        way = np.where(size > 0.0, g / np.where(size > 0.0, size, 1.0), rng.normal(size=g.shape) / np.sqrt(net.d))
        # from the best so far: steps too long for a narrow place are taken back
        here = np.where(better[:, None], X, best.X)
        X = here + step * (0.3 * np.sqrt(net.d) + np.linalg.norm(here, axis=1, keepdims=True)) * way
    return best


def before(net: DeepNetwork, X: Array) -> list[Array]:
    """z of every hidden layer at the rows of X."""
    zs, H = [], X
    for W, b in net.hidden:
        zs.append(H @ W.T + b)
        H = np.maximum(zs[-1], 0.0)
    return zs


def directions(m: int, mixed: int, rng: np.random.Generator) -> Array:
    """Of (h, 1), h of m units: each entry up and down, and ``mixed`` of about three entries, and as many of all."""
    eye, some = np.eye(m + 1), rng.normal(size=(mixed, m + 1))
    return np.concatenate([eye, -eye, some * (rng.random(some.shape) < 3.0 / m), rng.normal(size=some.shape)])


def furthest(net: DeepNetwork, R: Array, rng: np.random.Generator) -> Array:
    """Inputs at which φ = (h, 1), h in front of the head, goes furthest along the rows of R (n, m + 1): r·φ/‖φ‖."""
    R = R / np.maximum(np.linalg.norm(R, axis=1, keepdims=True), 1e-300)
    front = len(net.layers) - 1

    def score(zs: list[Array]) -> tuple[Array, list[Array]]:
        h = np.maximum(zs[front], 0.0)
        size = np.sqrt(1.0 + np.sum(h * h, axis=1))
        value = (np.sum(R[:, :-1] * h, axis=1) + R[:, -1]) / size
        seeds = [np.zeros_like(z) for z in zs]
        seeds[front] = (R[:, :-1] - value[:, None] * h / size[:, None]) / size[:, None] * (zs[front] > 0.0)
        return value, seeds

    start = rng.normal(size=(len(R), net.d)) * 2.0 ** rng.uniform(-1.0, 4.0, size=(len(R), 1))
    return climbed(net, start, score, rng).X


def lowest(net: DeepNetwork, w: Array, count: int, rng: np.random.Generator) -> Array:
    """Inputs (count, d) at which w·h is as low as can be, h in front of the head; down from the lowest of many."""
    front = len(net.layers) - 1

    def score(zs: list[Array]) -> tuple[Array, list[Array]]:
        seeds = [np.zeros_like(z) for z in zs]
        seeds[front] = -w * (zs[front] > 0.0)
        return -np.maximum(zs[front], 0.0) @ w, seeds

    X = rng.normal(size=(_MANY, net.d)) * 2.0 ** rng.uniform(-2.0, 4.0, size=(_MANY, 1))
    start = X[np.argsort(-score(before(net, X))[0])[:count]]
    return climbed(net, start, score, rng).X


def both_sides(known: Known, T: Array, units: NDArray[np.intp], rng: np.random.Generator) -> tuple[Array, Array]:
    """Inputs on both sides of units with the rows T (n, width + 1) behind the known layers.

    Each with the one of ``units`` in front on: random inputs, where there are such; else the climb looks for them.
    """
    X = rng.normal(size=(_MANY, known.d)) * 2.0 ** rng.uniform(-2.0, 4.0, size=(_MANY, 1))
    H = known(X)
    T = T / np.linalg.norm(T, axis=1, keepdims=True)
    front, net = np.eye(T.shape[1])[units], headless(known)
    down, up = furthest(net, front - T, rng), furthest(net, front + T, rng)
    for ends, side in ((down, -1.0), (up, 1.0)):
        for i, (theta, j) in enumerate(zip(T, units)):
            here = np.flatnonzero((H[:, j] > 0.0) & (side * (H @ theta[:-1] + theta[-1]) > 0.0))
            ends[i] = X[rng.choice(here)] if len(here) else ends[i]
    return down, up


def corners(known: Known, count: int, rng: np.random.Generator) -> Array:
    """Inputs (count, d) at which the activations of the last known layer go furthest in some direction."""
    ways = directions(known.width, count, rng)
    return furthest(headless(known), ways[rng.permutation(len(ways))[:count]], rng)


def tops(known: Known, rng: np.random.Generator) -> Array:
    """Inputs (2m, d) at which one unit of the last known layer is as large as can be beside the others, each in turn.

    And as many at which all of them are on, and small: there the biases of what is behind count most.
    """
    net, m = headless(known), known.width
    small = 0.02 * np.exp(rng.normal(size=(m, m)))
    front = len(net.layers) - 1

    def score(zs: list[Array]) -> tuple[Array, list[Array]]:
        apart = small - zs[front]
        size = np.maximum(np.linalg.norm(apart, axis=1), 1e-300)
        seeds = [np.zeros_like(z) for z in zs]
        seeds[front] = apart / size[:, None]
        return -size, seeds

    ups = furthest(net, np.eye(m + 1)[:m], rng)
    return np.concatenate([ups, climbed(net, rng.normal(size=(m, known.d)), score, rng).X])


def headless(known: Known) -> DeepNetwork:
    """The known layers as a network, with an empty head."""
    m = known.width
    return DeepNetwork(known.layers, Network(np.zeros((1, m)), np.zeros(1), np.zeros(1)))
