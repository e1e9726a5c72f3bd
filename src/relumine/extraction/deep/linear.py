"""The linear part v·h of the head: weights of units that were on wherever they count.

A network has no such part. Where unit i was on at every row at which unit j in front of it is, the weight from j to i
shows in v_j alone; and with some weights missing, the signs of the units cannot be found by making all of v vanish.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.climb import before, climbed
from relumine.extraction.deep.inquiry import Inquiry
from relumine.network import Network, flip_columns

_NONE = 1e-6  # |v_j| over the largest |a_i| that is none: measured 1e-12 … 1e-9
_STARTS = 8  # rows from which inputs are looked for, four times as many at random
_BEST = 12  # of what is found there that the box is asked at


def error(net: DeepNetwork, X: Array, Y: Array) -> Array:
    """Of each row, over the size of the answers; far out f grows like ‖x‖, and so do errors."""
    size = 1.0 + np.linalg.norm(X, axis=1) / np.sqrt(X.shape[1])
    off = np.abs(net(X).reshape(Y.shape) - Y).max(axis=1) / size
    return np.asarray(off / max(float((np.abs(Y).max(axis=1) / size).max(initial=0.0)), 1e-300))


def sparsest(head: Network) -> Network:
    """The signs that leave fewest entries of v, if those are less than half: ξ in [0, 1] that minimises ‖v + Mξ‖₁."""
    q = head.q or 1
    M = flip_columns(head).reshape(q, head.d + 1, head.m)[:, :-1].reshape(q * head.d, head.m)
    v, eye = np.atleast_2d(head.v).ravel(), np.eye(q * head.d)
    found = linprog(
        np.concatenate([np.zeros(head.m), np.ones(2 * len(v))]),
        A_eq=np.column_stack([M, eye, -eye]),
        b_eq=-v,
        bounds=[(0.0, 1.0)] * head.m + [(0.0, None)] * (2 * len(v)),
        method="highs",
    )
    if found.x is None:
        return head
    turned = head.flip(np.flatnonzero(found.x[: head.m] > 0.5))
    some = np.abs(np.atleast_2d(turned.v)).max(axis=0) > _NONE * np.abs(head.a).max()
    return turned.replace(v=turned.v * some) if some.mean() < 0.5 else head


def into_units(at: Inquiry, net: DeepNetwork, X: Array, Y: Array, slack: float) -> DeepNetwork:
    """The network with v as weights of units, as far as all rows allow it, and the box where those units are off.

    First all of v as weights of one unit, then entry by entry.
    """
    columns = np.flatnonzero(np.atleast_2d(net.head.v).any(axis=0))
    for some in [columns, *columns[:, None]] if len(columns) else []:
        for i in range(net.head.m):
            trial = _moved(net, i, some)
            if trial is None or (error(trial, X, Y) > slack).any():
                continue
            P, answers = at.ask.answered(np.concatenate([_off(n, i, some, X, at.rng) for n in (net, trial)]))
            if not (error(trial, P, answers) > slack).any():
                net = trial
                break
        if not net.head.v.any():
            break
    return net


def _moved(net: DeepNetwork, i: int, columns: NDArray[np.intp]) -> DeepNetwork | None:
    """These entries of v as weights of unit i; None if its outputs a_i are not those of v."""
    head = net.head
    v, a = np.array(np.atleast_2d(head.v)), np.atleast_2d(head.a)[:, i]
    w = a @ v[:, columns] / max(float(a @ a), 1e-300)
    if np.abs(np.outer(a, w) - v[:, columns]).max() > _NONE * np.abs(v).max():
        return None
    W = np.array(head.W)
    W[i, columns] += w
    v[:, columns] = 0.0
    return DeepNetwork(net.layers, head.replace(W=W, v=v.reshape(np.shape(head.v))))


def _off(net: DeepNetwork, i: int, columns: NDArray[np.intp], old: Array, rng: np.random.Generator) -> Array:
    """Inputs at which unit i of the head is off, as far as there are such, with one of these units in front on."""
    front = len(net.layers) - 1

    def score(zs: list[Array]) -> tuple[Array, list[Array]]:
        h, z, on = np.maximum(zs[front], 0.0), zs[-1][:, i], zs[front][:, columns]
        size = 1.0 + np.linalg.norm(h, axis=1)
        loud, first = on.max(axis=1), columns[on.argmax(axis=1)]
        seeds, n = [np.zeros_like(z) for z in zs], np.arange(len(z))
        off = -z <= loud
        seeds[-1][off, i] = -1.0 / size[off]
        seeds[front][n[~off], first[~off]] = 1.0 / size[~off]
        value = np.minimum(-z, loud)
        seeds[front] -= (value / size**3)[:, None] * h
        return value / size, seeds

    zs = before(net, old)
    near = np.minimum(-zs[-1][:, i], zs[front][:, columns].max(axis=1)) / (1.0 + np.linalg.norm(zs[front], axis=1))
    start = np.concatenate([old[near.argsort()[-_STARTS:]], old[rng.integers(len(old), size=4 * _STARTS)]])
    found = climbed(net, start, score, rng)
    return np.asarray(found.X[found.score.argsort()[-_BEST:]])
