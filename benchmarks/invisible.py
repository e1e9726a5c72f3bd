"""What no input shows of a ReLU network, proved: units that are never on, or never off, and weights never in play.

A weight from unit j to unit i counts only where both are on; `relumine.extraction.deep.known.reach` decides whether
there is such an input, by branch and bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import relumine as rl
from relumine.extraction.deep.known.reach import reach

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

__all__ = ["Invisible", "differing", "identifiable_error", "invisible", "never_on", "not_shown", "seen_units"]

_ROWS = 50_000  # random inputs, near and far: what they show needs no proof
_APART = 1e-7  # of the spread: measured up to 1e-9 where every parameter is right
_FAINT = 1e-9  # output of a unit over the largest that changes no answer by more than what counts as exact
_NODES = 3000  # of branch and bound; what is open then counts as visible


@dataclass(frozen=True)
class Invisible:
    """Units never on, by layer, or too faint; units of the last layer never off; weights (i, j) never in play."""

    dead: tuple[tuple[int, ...], ...]
    always_on: tuple[int, ...]
    weights: tuple[Mask, ...]


def invisible(net: rl.DeepNetwork, rng: np.random.Generator) -> Invisible:
    """What no input shows: looked for among random inputs, then decided one by one."""
    X = _inputs(net, rng)
    dead, masks, before = never_on(net, X), [], np.ones((_ROWS, net.d), dtype=bool)
    for k, (W, b) in enumerate(net.hidden):
        z = X @ W.T + b
        on, X = z > 0.0, np.maximum(z, 0.0)
        mask = np.zeros(W.shape, dtype=bool)
        if k:
            together = on.T.astype(float) @ before.astype(float) > 0.0
            for i, j in np.argwhere(~together):
                if i not in dead[k] and j not in dead[k - 1]:
                    mask[i, j] = not _reached(net, k, int(i), front=int(j))
        masks.append(mask)
        before = on
    last = len(net.hidden) - 1
    loud = np.abs(np.atleast_2d(net.head.a)).max(axis=0) * np.linalg.norm(net.head.W, axis=1)
    faint = tuple(int(i) for i in np.flatnonzero(loud <= _FAINT * loud.max()) if i not in dead[last])
    dead = (*dead[:-1], tuple(sorted((*dead[last], *faint))))
    always = tuple(
        int(i) for i in np.flatnonzero(on.all(axis=0)) if i not in faint and not _reached(net, last, int(i), -1.0)
    )
    return Invisible(dead, always, tuple(masks))


def not_shown(net: rl.DeepNetwork, rng: np.random.Generator, usual: bool = False) -> tuple[list[int], tuple[Mask, ...]]:
    """How many units of each layer some random inputs turn on, near and far, or ``usual``; weights in play at none."""
    X = rng.normal(size=(_ROWS, net.d)) if usual else _inputs(net, rng)
    units, masks, before = [], [], np.ones((_ROWS, net.d), dtype=bool)
    for W, b in net.hidden:
        z = X @ W.T + b
        on, X = z > 0.0, np.maximum(z, 0.0)
        units.append(int(on.any(axis=0).sum()))
        masks.append(on.T.astype(float) @ before.astype(float) == 0.0)
        before = on
    return units, tuple(masks)


def differing(truth: rl.DeepNetwork, found: rl.DeepNetwork | rl.Network, rng: np.random.Generator) -> int:
    """At how many of the random inputs, near and far, two networks differ, beyond what digits of large answers do."""
    X = _inputs(truth, rng)
    size = 1.0 + np.linalg.norm(X, axis=1) / np.sqrt(truth.d)
    y = np.reshape(truth(X), (len(X), -1)) / size[:, None]
    off = np.abs(np.reshape(found(X), y.shape) / np.reshape(size, (-1, 1)) - y).max(axis=1)
    return int((off > _APART * float(y.std())).sum())


def never_on(net: rl.DeepNetwork, X: Array) -> tuple[tuple[int, ...], ...]:
    """The units of each layer that no input turns on: among those off at all rows of X, as far as that is proved."""
    found = []
    for k, (W, b) in enumerate(net.hidden):
        X = np.maximum(X @ W.T + b, 0.0)
        found.append(tuple(int(i) for i in np.flatnonzero(~X.any(axis=0)) if not _reached(net, k, int(i))))
    return tuple(found)


def seen_units(net: rl.DeepNetwork, rng: np.random.Generator) -> list[int]:
    """How many units of each layer some input turns on."""
    return [m - len(dead) for m, dead in zip(net.widths, never_on(net, _inputs(net, rng)))]


def _inputs(net: rl.DeepNetwork, rng: np.random.Generator) -> Array:
    return np.asarray(rng.normal(size=(_ROWS, net.d)) * 2.0 ** rng.uniform(-1.0, 6.0, size=(_ROWS, 1)))


def _reached(net: rl.DeepNetwork, layer: int, unit: int, sign: float = 1.0, front: int | None = None) -> bool:
    """Whether some input has z·sign > 0 at a unit and unit ``front`` in front of it on; True if that is open."""
    x, sure = reach(net.hidden[: layer + 1], unit, sign, front, _NODES)
    return x is not None or not sure


def identifiable_error(truth: rl.DeepNetwork, found: rl.DeepNetwork | rl.Network, hidden: Invisible) -> float:
    """The largest error of a parameter that some input shows; as `relumine.metrics.parameter_error` otherwise.

    Units never on are left out of the truth, units of the last layer never off are an affine part of it, and weights
    never in play are not compared: units are scaled by the others.
    """
    keep = [[i for i in range(m) if i not in dead] for m, dead in zip(truth.widths, hidden.dead)]
    if isinstance(found, rl.Network) or not all(keep):
        return rl.metrics.parameter_error(truth, found)
    kept = truth.permuted(keep)
    masks = [~mask[rows] for mask, rows in zip(hidden.weights, keep)]
    masks = [masks[0], *[mask[:, rows] for mask, rows in zip(masks[1:], keep)]]
    on = [keep[-1].index(i) for i in hidden.always_on]
    head = kept.head
    a = np.where(np.isin(np.arange(head.m), on), head.a, 0.0)
    rest = [i for i in range(head.m) if i not in on]
    kept = rl.DeepNetwork(kept.layers, head.replace(v=head.v + a @ head.W, c=head.c + a @ head.b).permuted(rest))
    masks[-1] = masks[-1][rest]
    if all(mask.all() for mask in masks):
        return rl.metrics.parameter_error(kept, found)
    return _masked_error(kept, found, masks)


def _masked_error(truth: rl.DeepNetwork, found: rl.DeepNetwork, masks: list[Mask]) -> float:
    """As `relumine.metrics.parameter_error`, by weights that count; one output."""
    if truth.sizes != found.sizes or truth.q is not None:
        return float("inf")
    worst, columns, one, two = 0.0, np.arange(truth.d), np.ones(truth.d), np.ones(truth.d)
    for (W, b), (V, e), mask in zip(truth.layers, found.layers, masks):
        cost, p, q = _apart(W * one, b, V[:, columns] * two, e, mask)
        rows, columns = linear_sum_assignment(cost)
        worst = max(worst, float(cost[rows, columns].max()))
        one, two = p, q[rows, columns]
    ours, head = truth.head.replace(W=truth.head.W * one, v=truth.head.v * one), found.head
    head = head.replace(W=head.W[:, columns] * two, v=head.v[columns] * two)
    cost, p, q = _apart(ours.W, ours.b, head.W, head.b, masks[-1])
    other = _apart(ours.W, ours.b, -head.W, -head.b, masks[-1])[0]
    rows, columns = linear_sum_assignment(np.minimum(cost, other))
    worst = max(worst, float(np.minimum(cost, other)[rows, columns].max()))
    head = head.permuted(columns).flip(np.flatnonzero(other[rows, columns] < cost[rows, columns]))
    outer = np.abs(ours.a * p - head.a * q[rows, columns]).max()
    affine = max(float(np.abs(ours.v - head.v).max()), float(np.abs(ours.c - head.c)))
    return max(worst, float(outer), affine)


def _apart(W: Array, b: Array, V: Array, e: Array, mask: Mask) -> tuple[Array, Array, Array]:
    """|Δw| + |Δb| of every two units (m, m') by the weights that count, and the lengths of both by those."""
    p = np.linalg.norm(np.where(mask, W, 0.0), axis=1)
    q = np.sqrt(mask.astype(float) @ (V.T**2))
    turned = W[:, None] / p[:, None, None] - V[None] / q[:, :, None]
    return np.linalg.norm(np.where(mask[:, None], turned, 0.0), axis=2) + np.abs(b[:, None] / p[:, None] - e / q), p, q
