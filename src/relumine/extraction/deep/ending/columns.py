"""Weights from one unit in front into all units of the last layer: next to where it turns on, they are linear.

At an input on the hyperplane of unit j in front, h_j = 0, and it is known which units of the last layer are on. A short
way τ = h_j inside the same ones are, and what is left of the answers is linear in the weights of this unit,

    r = τ (Σ_{i on} a_i w_ij + v_j)                                                                              (1)

Each set of units that are on somewhere on the hyperplane is an equation for the whole column w_·j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.ending.last import robust
from relumine.extraction.deep.known.charts import Known

Mask = NDArray[np.bool_]

_WALKS, _STEPS = 40, 6  # inputs on the hyperplane from each of which others are reached, and how many of those
_RETURNS = 6  # moves back to the hyperplane: on the way other units change sides
_ON = 1e-9  # z_j over the size of the input that is on the hyperplane
_ROOM = 0.4  # of the way to where a unit changes sides
_STEEP = 3.0  # open weights may be so much larger than the largest known one
_FITS = 1e-5  # of the largest r/τ: an equation that is off by less fits
_SPARE = 3  # equations beyond the unknowns, at the least
_CLEAR = 1e-6  # singular value of these equations, over the largest, that counts


def walked(front: Known, X: Array, j: int, rng: np.random.Generator) -> Array:
    """Inputs on the hyperplane of unit j of the last known layer, reached from those of X by random steps on it."""
    P = returned(front, X[rng.integers(len(X), size=_WALKS)], j)
    found = [P]
    for _ in range(_STEPS if len(P) else 0):
        far = np.linalg.norm(P, axis=1, keepdims=True) + np.sqrt(front.d)
        way = rng.normal(size=P.shape) / np.sqrt(front.d) * far * 10.0 ** rng.uniform(-2.0, 0.0, size=(len(P), 1))
        g = _slope(front, P, j)
        way -= np.sum(way * g, axis=1, keepdims=True) / np.maximum(np.sum(g * g, axis=1, keepdims=True), 1e-300) * g
        P = returned(front, P + way, j)
        if not len(P):
            break
        found.append(P)
    return np.concatenate(found)


def returned(front: Known, P: Array, j: int) -> Array:
    """The rows of P moved to the hyperplane of unit j by the shortest way, as far as that succeeds."""
    for _ in range(_RETURNS):
        z, g = front.before(P)[-1][:, j], _slope(front, P, j)
        P = P - (z / np.maximum(np.sum(g * g, axis=1), 1e-300))[:, None] * g
    size = np.linalg.norm(P, axis=1) + np.sqrt(front.d)
    on = np.abs(front.before(P)[-1][:, j]) <= _ON * size * np.linalg.norm(_slope(front, P, j), axis=1)
    return np.asarray(P[on & np.isfinite(P).all(axis=1)])


def inside(front: Known, P: Array, j: int, W: Array, b: Array) -> tuple[Array, Array]:
    """A way τ g/|g|² (n, d) from each row of P, on which h_j grows to τ (n,) and no other unit changes sides.

    W (m, k), b: the units of the last layer, without their weights of unit j.
    """
    g = _slope(front, P, j)
    way = g / np.maximum(np.sum(g * g, axis=1, keepdims=True), 1e-300)
    at = front.regions(P)
    room, _ = at.room(P, way, np.full(len(P), at.on.shape[1] - front.width + j))
    J = at.rows[:, -front.width :] * at.on[:, -front.width :, None]
    speed = np.abs(np.einsum("mk,nkd,nd->nm", W, J, way)) + _STEEP * np.abs(W).max()
    turns = (np.abs(front(P) @ W.T + b) / speed).min(axis=1)
    tau = _ROOM * np.minimum(room, turns)
    return tau[:, None] * way, tau


def several(on: Mask, each: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of ``on`` (n, k), so many of each pattern at the most."""
    order = rng.permutation(len(on))
    _, group = np.unique(on[order], axis=0, return_inverse=True)
    group = group.ravel()
    return np.concatenate([order[group == g][:each] for g in range(group.max(initial=-1) + 1)])


def solved(A: Array, r: Array, error: Array) -> tuple[Array, Array, Mask]:
    """δ of Aδ = r, r (n,) with such errors (n,), its own errors, and which entries of δ these equations tell.

    Equations that do not fit are left out: there something else is on. Where few are left, none tells.
    """
    some = np.asarray(A.any(axis=1))
    A, r, error = A[some], r[some], error[some]
    delta, fits = robust(A, r[:, None], _FITS) if some.any() else (A.T[:, :0], some[:0])
    if fits.sum() < np.linalg.matrix_rank(A[fits]) + _SPARE:
        return np.zeros(A.shape[1]), np.full(A.shape[1], np.inf), np.zeros(A.shape[1], dtype=bool)
    _, s, Vt = np.linalg.svd(A[fits] / error[fits, None], full_matrices=False)
    s, Vt = s[s > _CLEAR * s[0]], Vt[s > _CLEAR * s[0]]
    return delta[:, 0], np.linalg.norm(Vt / s[:, None], axis=0), np.sum(Vt**2, axis=0) > 1.0 - 1e-6


def _slope(front: Known, P: Array, j: int) -> Array:
    """The gradient of z_j of the last layer at the rows of P."""
    *others, (W, _) = front.layers
    return Known(front.d, tuple(others)).gradient(P, np.tile(W[j], (len(P), 1)))
