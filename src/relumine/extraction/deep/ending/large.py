"""Two layers too large for Gauss–Newton in both at once: the first from gradients, and the last from more rows.

**The first layer** from the gradients on both sides of many kinks, which were measured before. Each unit was measured
at one kink of its own, where the gradient jumps by a multiple of its row. But at every one of these points the gradient
is a sum over all units that are on, F = GW with G = D₁ ∘ (D₂A): D₁ and D₂ say which units of both layers are on, and
A_li = a_l W₂_li. All of them together have far more digits than one jump. With W free, the columns of G must lie in the
span U of those of F:

    (I − UUᵀ) (D₁ ∘ D₂A)_i = 0    for every unit i: linear in the column A_i,

and then W = G⁺F. Biases come from kinks among inputs of usual size. **The last layer** is polished on random rows; for
units that these hardly show there are rows of their own, and then each unit is solved for alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.inquiry import OUT, Inquiry
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.surface import bends
from relumine.network import Network

Mask = NDArray[np.bool_]

_MORE = 2.2  # gradients for each unit of the first layer, at the least, for as many units of the second
# How far off weights may be, over those of their unit. What gradients do not tell stays as it is.
_OFF = 1e-7
# Places of each unit's hyperplane, how many are tried without asking, and how far to each side, over the room.
_PLACES, _TRIED, _SIDE = 4, 64, 0.22
# Rows for each weight of a unit of the last layer that it is on at, and off; moves towards them; how far beyond its
# kink, over how far inputs were from it. A unit of a trained 784-128-128-1 that is on for one input in 5000, with an
# output weight of 1e-4, had a bias 1e-5 off with 3 rows for each weight, all near its kink.
_SHOWN, _MOVES, _BEYOND = 8, 6, (0.1, 2.0)


def with_slopes(at: Inquiry, net: DeepNetwork) -> DeepNetwork:
    """The network with a better first layer, if it has two layers and enough was measured for it."""
    (W, b), *others = net.layers
    kinks = [(w, noise) for w, noise in at.measured if w.slopes is not None]
    if others or net.head.v.any() or 2 * len(kinks) < _MORE * len(b):
        return net
    X, F = np.concatenate([w.sides for w, _ in kinks]), np.concatenate([w.slopes for w, _ in kinks])
    error = np.repeat([noise for _, noise in kinks], 2)
    a = net.head.a if at.ask.plain else at.ask.mix(at.pool[1]) @ net.head.a
    H = X @ W.T + b
    on = H > 0.0, np.maximum(H, 0.0) @ net.head.W.T + net.head.b > 0.0
    better = first_layer(W, a[:, None] * net.head.W, on, F, error)
    net = DeepNetwork([(better, b)], net.head)
    shift = measured_shift(at, net)
    at.tell(f"  first layer from {len(X)} gradients: by {np.abs(better - W).max():.1e}, {np.abs(shift).max():.1e}")
    return DeepNetwork([(better, b + shift)], net.head)


def first_layer(W: Array, A: Array, on: tuple[Mask, Mask], F: Array, error: Array) -> Array:
    """W (m₁, d), and A (m₂, m₁), so far right up to `_OFF`, from gradients F (n, d) with such errors (n,).

    ``on``: which units of both layers are on there, (n, m₁) and (n, m₂).
    """
    F, D = F / error[:, None], on[1] / error[:, None]
    U = np.linalg.svd(F, full_matrices=False)[0][:, : len(W)]
    A = A.copy()
    for i, mine in enumerate(on[0].T):
        M = D * mine[:, None]
        left = M - U @ (U.T @ M)
        A[:, i] += _corrected(left, -left @ A[:, i], _OFF * float(np.linalg.norm(A[:, i])))
    G = on[0] * (D @ A)
    return np.asarray(W + _corrected(G, F - G @ W, _OFF * float(np.linalg.norm(W, axis=1).max())))


def _corrected(M: Array, rest: Array, off: float) -> Array:
    """δ of least |Mδ − rest|² + |δ|²/off²."""
    k = M.shape[1]
    below = np.zeros((k, *rest.shape[1:]))
    return np.asarray(np.linalg.lstsq(np.vstack([M, np.eye(k) / off]), np.concatenate([rest, below]), rcond=None)[0])


def measured_shift(at: Inquiry, net: DeepNetwork) -> Array:
    """The biases (m₁,) of the first layer, from kinks among inputs of usual size, where there is most room."""
    (W, b), *_ = net.layers
    X, ways = [], []
    for i in range(len(b)):
        x, room = _roomy(net, i, at.rng)
        best = np.argsort(-room)[:_PLACES]
        X.append(x[best])
        ways.append(room[best, None] * W[i] / np.linalg.norm(W[i]))
    P, U, unit = np.concatenate(X), _SIDE * np.concatenate(ways), np.repeat(np.arange(len(b)), _PLACES)
    off: list[list[float]] = [[] for _ in b]
    for i, kink in zip(unit.tolist(), bends(at.ask, list(P), list(U))):
        if kink is not None:
            off[i].append(-float(W[i] @ kink) - b[i])
    return np.array([np.median(some) if some else 0.0 for some in off])


def _roomy(net: DeepNetwork, i: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Places on the hyperplane of unit i, and how far each is from other kinks along its normal."""
    (W, b), *_ = net.layers
    way = W[i] / np.linalg.norm(W[i])
    X = rng.normal(size=(_TRIED, len(way)))
    X -= np.outer((X @ W[i] + b[i]) / np.linalg.norm(W[i]), way)
    Z, speed = X @ W.T + b, W @ way
    others = np.arange(len(b)) != i
    room = np.abs(Z[:, others] / speed[others]).min(axis=1)
    heights = np.maximum(Z, 0.0) @ net.head.W.T + net.head.b
    for mine in (True, False):
        on = np.where(others, Z > 0.0, mine)
        room = np.minimum(room, np.abs(heights / ((on * speed) @ net.head.W.T)).min(axis=1))
    return X, room


def rare(at: Inquiry, net: DeepNetwork, X: Array) -> Array:
    """Inputs at which units of the last layer are on, or off, that few of the rows X show so: for each a few rows.

    Random ones, moved over the unit's kink by the shortest way, a few times as others change sides on it.
    """
    front, (V, c) = Known(at.dim, net.layers), (net.head.W, net.head.b)
    Z = front(X) @ V.T + c
    found = [X[:0]]
    for side in (1.0, -1.0):
        for i in np.flatnonzero((side * Z > 0.0).sum(axis=0) < _SHOWN * V.shape[1]):
            new = at.rng.normal(size=(_SHOWN * V.shape[1], at.dim))
            beyond = at.rng.uniform(*_BEYOND, size=len(new))
            for _ in range(_MOVES):
                z = side * (front(new) @ V[i] + c[i])
                way = front.gradient(new, np.tile(V[i], (len(new), 1)))
                size = np.maximum(np.sum(way * way, axis=1), 1e-300)
                new = new + side * (np.maximum(beyond * np.abs(z).mean() - z, 0.0) / size)[:, None] * way
            on = side * (front(new) @ V[i] + c[i]) > 0.0
            found.append(new[on & (np.linalg.norm(new, axis=1) <= OUT * np.sqrt(at.dim))])
    return np.concatenate(found)


def swept(head: Network, H: Array, Y: Array, weight: Array) -> Network:
    """Each unit of the head once more by least squares, from the rows (n, m) at which it is on, the others as they are.

    Gauss–Newton in all of them at once ends before those that hardly count at any row have their digits: a unit that is
    on for one row in 5000, with an output weight of 1e-4, was still 7e-6 off.
    """
    T, a = np.column_stack([head.W, head.b]), np.reshape(head.a, (-1, len(head.b)))
    F = np.column_stack([H, np.ones(len(H))])
    Z = F @ T.T
    R = Y.reshape(len(H), -1) - np.reshape(head(H), (len(H), -1))
    for i in np.argsort(np.linalg.norm(a, axis=0) * np.linalg.norm(head.W, axis=1)):  # the weakest first
        on, strength = Z[:, i] > 0.0, float(a[:, i] @ a[:, i])
        if on.sum() < 2 * F.shape[1] or strength == 0.0:
            continue
        target = Z[on, i] + R[on] @ a[:, i] / strength
        theta = np.linalg.lstsq(F[on] * weight[on, None], target * weight[on], rcond=None)[0]
        z = F @ theta
        left = R - np.outer(np.maximum(z, 0.0) - np.maximum(Z[:, i], 0.0), a[:, i])
        if np.linalg.norm(left * weight[:, None]) < np.linalg.norm(R * weight[:, None]):
            T[i], Z[:, i], R = theta, z, left
    return head.replace(W=T[:, :-1], b=T[:, -1])
