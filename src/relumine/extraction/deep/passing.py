"""Layers with units that no input turns off: those have no kink, and are an affine map of the layer in front.

Let V h + c be the units of a layer that show, up to signs. Whatever their signs, and whatever else there is that never
switches, a unit of the next layer is linear in (relu(Vh + c), h, 1), as relu(−z) = relu(z) − z. So the layer is taken
for ``[V; I]``, with h ≥ 0 passed on as it is, until units of the next layer are known, θ = (a, v, e):

    v = −Σ_j d_j a_j V_j + p B,    d_j = 1 where a unit has the other sign, B the rows of the units that are always on.

All of them together give the signs, the number of rows of B, and the space they span. More cannot be told of B.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space, qr
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.climb import furthest, headless
from relumine.extraction.deep.surfaces import Lift, Surface

_LEAST = 3  # units of the next layer that tell
_NOTHING = 1e-6  # of θ, which has length one: measured up to 1e-8
_CLEAR = 1e-2  # how far from 0 and 1 the d of the least squares may be
_SPARE = 1.2  # equations for each of them
_INPUTS, _FAR = 4000, 1e3  # at which the units that are always on must be; how much further out half of them are
_EDGES, _WORST = 8, 1e4  # of all that is positive everywhere, for each row; condition beyond which they are too alike
_INWARD = 0.2  # how far from the edge of what is positive everywhere towards its middle


def passing(known: Known, V: Array, c: Array) -> Known:
    """The known layers with [V; I] behind them."""
    eye = np.eye(known.width)
    return Known(known.d, (*known.layers, (np.vstack([V, eye]), np.append(c, np.zeros(len(eye))))))


@dataclass
class Settled:
    """A layer with all signs: ``W``, ``b``, of which the last ``on`` units are always on; units of the next one."""

    W: Array
    b: Array
    on: int
    surfaces: list[Surface]


def settled(front: Known, V: Array, c: Array, surfaces: list[Surface], rng: np.random.Generator) -> Settled | None:
    """The layer behind ``front`` with units (V, c) up to signs, by surfaces behind ``passing``; None: still open."""
    m = len(c)
    whole = [s for s in surfaces if s.seen.all()]
    if len(whole) < _LEAST:
        return None
    T = np.array([s.theta / np.linalg.norm(s.theta) for s in whole])
    a, v, e = T[:, :m], T[:, m:-1], T[:, -1]
    # what V cannot make of v is p B
    U, size, _ = np.linalg.svd(v @ null_space(V), full_matrices=True)
    on = int((size > _NOTHING).sum())
    Q = U[:, on:].T
    A = np.stack([np.outer(Q @ a[:, j], V[j]).ravel() for j in range(m)], axis=1)
    if len(A) < _SPARE * m:
        return None
    d, _, rank, _ = np.linalg.lstsq(A, -(Q @ v).ravel(), rcond=1e-6)
    if rank < m or np.abs(d - np.round(d)).max() > _CLEAR or not np.isin(np.round(d), (0.0, 1.0)).all():
        return None
    d = np.asarray(np.round(d), dtype=np.float64)
    left, offset = v + (a * d) @ V, e + (a * d) @ c
    _, size, rows = np.linalg.svd(left)
    if (size[on:] > _NOTHING).any():
        return None
    sign = 1.0 - 2.0 * d
    B, shift = _positive(front, rows[:on], rng)
    W, b = np.vstack([sign[:, None] * V, B]), np.append(sign * c, shift)
    lift = Lift(Known(front.d, (*front.layers, (W, b))))
    p = left @ np.linalg.pinv(B) if on else np.zeros((len(T), 0))
    found = [
        Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool), s.points, s.error).settled()
        for theta, s in zip(np.column_stack([a, p, offset - p @ shift]), whole)
    ]
    return Settled(W, b, len(shift), [s for s in found if s is not None])


def _positive(front: Known, B: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows with the same span, and a shift, so that all of them are positive behind ``front``, as far as inputs show.

    Where there are none such, each row twice, with both signs: the difference of the two is linear everywhere.
    """
    if not len(B):
        return B, np.zeros(0)
    ways = np.vstack([B, -B, rng.normal(size=(4 * len(B), len(B))) @ B])
    X = rng.normal(size=(_INPUTS, front.d)) * 2.0 ** rng.uniform(-2.0, 4.0, size=(_INPUTS, 1))
    X = np.vstack([X, furthest(headless(front), np.column_stack([ways, np.zeros(len(ways))]), rng)])
    far, near = front(_FAR * X), front(X)
    G = far @ B.T / np.maximum(np.linalg.norm(far, axis=1, keepdims=True), 1.0)
    middle = _cone(G, np.zeros(len(B)))
    if middle is None:
        return np.vstack([B, -B]), np.zeros(2 * len(B))
    edges = [edge for way in rng.normal(size=(_EDGES * len(B), len(B))) if (edge := _cone(G, way)) is not None]
    T = np.array([middle, *[_INWARD * middle + (1.0 - _INWARD) * edge for edge in edges]])
    T = T[qr(T.T, pivoting=True)[2][: len(B)]]  # those that differ most
    if np.linalg.cond(T) > _WORST:
        return np.vstack([B, -B]), np.zeros(2 * len(B))
    rows = T @ B
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, 1.0 + 2.0 * np.maximum(-(near @ rows.T).min(axis=0), 0.0)


def _cone(G: Array, way: Array) -> Array | None:
    """t, |t_i| ≤ 1, with Gt ≥ 0 that goes furthest along a ``way``; if that is zero, with the largest min Gt."""
    r = G.shape[1]
    if way.any():
        found = linprog(-way, A_ub=-G, b_ub=np.zeros(len(G)), bounds=[(-1.0, 1.0)] * r, method="highs")
        return None if found.x is None else np.asarray(found.x)
    bounds = [*[(-1.0, 1.0)] * r, (None, None)]
    A = np.column_stack([-G, np.ones(len(G))])
    found = linprog(np.append(np.zeros(r), -1.0), A_ub=A, b_ub=np.zeros(len(G)), bounds=bounds, method="highs")
    return None if found.x is None or found.x[-1] < -1e-9 or not found.x[:-1].any() else np.asarray(found.x[:-1])
