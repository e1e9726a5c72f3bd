"""Layers with units that no input turns off: those have no kink, and are an affine map of the layer in front.

Let V h + c be the units of a layer that show, up to signs. Whatever their signs, and whatever else there is that never
switches, a unit of the next layer is linear in (relu(Vh + c), h, 1), as relu(−z) = relu(z) − z. So the layer is taken
for ``[V; I]``, with h ≥ 0 passed on as it is, until units of the next layer are known, θ = (a, v, e):

    v = −Σ_j d_j a_j V_j + p B,    d_j = 1 where a unit has the other sign, B the rows of the units that are always on.

All of them together give the signs, the number of rows of B, and the space they span. More cannot be told of B. Where
the next layer has too few units for that, it stays open, too, and is passed on with all that was before it.

A weight that no kink of its unit i shows, of unit j in front, counts only where the unit is on, or off, throughout: any
weight K that keeps it so will do, with h_j passed on. Units behind then tell the right one: v has ε_ij a_i e_j, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space, qr
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.climb import furthest, headless
from relumine.extraction.deep.surfaces import Lift, Surface

Mask = NDArray[np.bool_]

_LEAST = 3  # units of the next layer that tell
_NOTHING = 1e-6  # of θ, which has length one: measured up to 1e-8
_LITTLE = 1e-4  # of θ: what a unit further behind gets from this layer is no more than its error
_CLEAR = 1e-2  # how far from 0 and 1 the d of the least squares may be
_OFF = 1e-5  # what d and ε may leave of v
# A weight that keeps a unit on its side, over all of its weights; inputs that tell which side, and of them those with
# the unit in front just on.
_K, _MANY, _FIRST = 10.0, 20_000, 20
_RARE, _ROW = 0.02, 1e-5  # share of the inputs at which a unit is seldom on; how far its row may be from those of B
_SPARE = 1.2  # equations for each of them
_INPUTS, _FAR = 4000, 1e3  # at which the units that are always on must be; how much further out half of them are
_EDGES, _WORST = 8, 1e4  # of all that is positive everywhere, for each row; condition beyond which they are too alike
_INWARD = 0.2  # how far from the edge of what is positive everywhere towards its middle


def passing(known: Known, V: Array, c: Array) -> Known:
    """The known layers with [V; I] behind them."""
    eye = np.eye(known.width)
    return Known(known.d, (*known.layers, (np.vstack([V, eye]), np.append(c, np.zeros(len(eye))))))


def kept(front: Known, V: Array, c: Array, known: Mask, rng: np.random.Generator) -> Array:
    """V with weights for those not ``known`` by which units stay on their side as those in front come on."""
    H, size, V = front(inputs(front.d, rng)), np.linalg.norm(V * known, axis=1), V.copy()
    for i, j in np.argwhere(~known):
        others = np.flatnonzero(~known[i] & (np.arange(V.shape[1]) != j))
        on = H[(H[:, j] > 0.0) & ~(H[:, others] > 0.0).any(axis=1)]
        on = on if len(on) else H[H[:, j] > 0.0]
        if not len(on):  # nor does it matter
            continue
        first = on[np.argsort(on[:, j] / np.linalg.norm(on, axis=1))[:_FIRST]]
        V[i, j] = _K * float(size[i]) * (1.0 if np.mean(first @ V[i] + c[i] > 0.0) > 0.5 else -1.0)
    return V


def mostly_off(front: Known, V: Array, c: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """V and c up to signs, so that each unit is off at most inputs: one nearly always on looks like a linear map."""
    xi = np.where((front(inputs(front.d, rng)) @ V.T + c > 0.0).mean(axis=0) > 0.5, -1.0, 1.0)
    return xi[:, None] * V, xi * c


def inputs(d: int, rng: np.random.Generator) -> Array:
    """Random ones (n, d), near and far."""
    return np.asarray(rng.normal(size=(_MANY, d)) * 2.0 ** rng.uniform(-2.0, 4.0, size=(_MANY, 1)))


@dataclass
class Chain:
    """Open layers behind ``front``, (V, c) up to signs, each on all that is passed on: [relu z; what was before].

    ``hidden`` (m, width): which weights of the first of them no kink shows; none unless said.
    """

    front: Known
    layers: list[tuple[Array, Array]]
    hidden: Mask | None = None

    @property
    def known(self) -> Known:
        """All of them as known layers."""
        known = self.front
        for V, c in self.layers:
            known = passing(known, V, c)
        return known

    def surfaces(self, lift: Lift) -> list[list[Surface]]:
        """Those of the units of each open layer, behind all of them."""
        found = []
        for V, c in self.layers:
            T = np.zeros((len(c), lift.size))
            T[:, -V.shape[1] - 1 : -1], T[:, -1] = V, c
            found.append([Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool)) for theta in T])
        return found

    def settled(
        self, surfaces: list[Surface], rng: np.random.Generator, local: Sequence[Surface] = ()
    ) -> Settled | None:
        """The first of them with all signs, by the units behind it, and those ``surfaces`` again; None: still open.

        A unit further behind is linear in the same way: what it gets from units of the first open layer, or from what
        these pass on, it gets through the layers in between, which have the same signs. So ``local`` surfaces of such
        units tell as much. What none of them gets anything from is no unit of this layer.
        """
        (V, c), *others = self.layers
        hidden = np.zeros(V.shape, dtype=bool) if self.hidden is None else self.hidden
        whole = [s for s in surfaces if s.seen.all()]
        blocks = [np.column_stack(layer) for layer in others]
        if whole:
            blocks.append(np.array([s.theta / np.linalg.norm(s.theta) for s in whole]))
        size = V.shape[0] + V.shape[1] + 1
        rows = [block[:, -size:] for block in blocks] + [_row(s, size) for s in local if s.seen.all()]
        partly = [s for s in (*surfaces, *local) if not s.seen.all()]
        seldom = _seldom(self.front, V, c, rng)
        found = _decided(V, hidden, np.vstack([np.zeros((0, size)), *rows]), partly, seldom)
        if found is None:
            return None
        idle, d, more, always, open_ = found
        V, c, d, more = (
            np.delete(V, idle, axis=0),
            np.delete(c, idle),
            np.delete(d, idle),
            np.delete(more, idle, axis=0),
        )
        blocks = [np.delete(block, block.shape[1] - size + idle, axis=1) for block in blocks]
        B, shift = positive(self.front, always, rng)
        W, b = np.vstack([(1.0 - 2.0 * d)[:, None] * V + more, B]), np.append((1.0 - 2.0 * d) * c, shift)
        front = Known(self.front.d, (*self.front.layers, (W, b)))
        blocks = [_rewritten(block, V, c, d, more, B, shift) for block in blocks]
        chain = Chain(front, [(block[:, :-1], block[:, -1]) for block in blocks[: len(others)]])
        if not whole:
            return Settled(chain, [], len(c), len(always), open_)
        lift = Lift(chain.known)
        again = [
            Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool), s.points, s.error).settled()
            for theta, s in zip(blocks[-1], whole)
        ]
        return Settled(chain, [s for s in again if s is not None], len(c), len(always), open_)


def _decided(
    V: Array, hidden: Mask, T: Array, partly: list[Surface], seldom: NDArray[np.intp]
) -> tuple[NDArray[np.intp], Array, Array, Array, int] | None:
    """Which units V are none of this layer, d and ε of all, and a basis of the rows B, by T = (a, v, e); None: open.

    And how many ``hidden`` weights stay so, of units that are seldom on. Surfaces that are known ``partly`` count where
    what they lack is of units that are none, or ``seldom`` on.
    """
    m, size = len(V), T.shape[1]
    idle = np.flatnonzero(np.abs(T[:, :m]).max(axis=0, initial=0.0) <= _NOTHING)
    if len(T) < _LEAST or len(idle) == m:
        idle = idle[:0]
    for left in (idle[:0], np.setdiff1d(seldom, idle)):
        few = np.union1d(idle, left)
        rest = [_row(s, size) for s in partly if np.delete(s.seen, len(s.seen) - size + few).all()]
        rows = np.delete(np.vstack([T, *rest]), few, axis=1)
        long = np.linalg.norm(rows[:, :-1], axis=1, keepdims=True)
        rows = (rows / np.maximum(long, 1e-300))[long[:, 0] > _LITTLE]
        some, open_ = np.delete(V, few, axis=0), np.delete(hidden, few, axis=0)
        found = _signs(some, rows, open_) or _by_many(some, rows, open_)
        if found is not None:
            break
    if found is None:
        return None
    d, more, others = np.zeros(m), np.zeros(V.shape), np.setdiff1d(np.arange(m), few)
    d[others], more[others], always = found
    off, rows = _seldom_off(V, hidden, left, always)
    if len(off):
        if len(off) < len(always):
            return None
        d[off], more[off], always = 1.0, V[off] - rows, always[:0]
    return idle, d, more, always, int(hidden[np.setdiff1d(left, off)].sum())


def _seldom(front: Known, V: Array, c: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """The units that are on at few inputs: most surfaces say nothing of what they get from these."""
    X = rng.normal(size=(_INPUTS, front.d)) * 2.0 ** rng.uniform(-2.0, 4.0, size=(_INPUTS, 1))
    return np.flatnonzero((front(X) @ V.T + c > 0.0).mean(axis=0) < _RARE)


def _seldom_off(V: Array, hidden: Mask, few: NDArray[np.intp], B: Array) -> tuple[NDArray[np.intp], Array]:
    """Those of a ``few`` units with a row in B, up to its ``hidden`` weights, which B then tells, and these rows.

    They are on nearly everywhere, and the others of B are known only up to multiples of them; if there are no others,
    all is known.
    """
    off, rows = list[int](), np.zeros((0, V.shape[1]))
    for i in few.tolist():
        v, seen = V[i] * ~hidden[i], ~hidden[i]
        if len(B) and seen.sum() >= len(B) + _LEAST:
            t = np.linalg.lstsq(B[:, seen].T, v[seen], rcond=None)[0]
            if np.linalg.norm(t @ B[:, seen] - v[seen]) <= _ROW * np.linalg.norm(v):
                off, rows = [*off, i], np.vstack([rows, t @ B])
    return np.array(off, dtype=np.intp), rows


def _row(s: Surface, size: int) -> Array:
    """θ of length one, what it gets from the first open layer on, (1, size); what is not seen is 0."""
    return np.asarray((s.theta * s.seen / np.linalg.norm(s.theta * s.seen))[None, -size:])


class Settled(NamedTuple):
    """What is left of a chain, surfaces of units behind it, and of the layer that was settled how many units show.

    And how many are always ``on``. If no rows for these are positive everywhere, one of them is off somewhere, and the
    layer has more units than it stands for. ``open``: weights of it that nothing has told.
    """

    chain: Chain
    surfaces: list[Surface]
    shown: int
    on: int
    open: int

    @property
    def right(self) -> bool:
        """Whether the layer has no more units than it stands for."""
        return self.chain.front.width == self.shown + self.on


def _signs(V: Array, T: Array, hidden: Mask) -> tuple[Array, Array, Array] | None:
    """d of the units V, ε (m, width) of the ``hidden`` weights, and a basis of the rows B; None: still open.

    From units T = (a, v, e) behind. What V, and e_j for the hidden ones, cannot make of v is p B.
    """
    m, pairs = len(V), np.argwhere(hidden)
    if not 0 < m <= V.shape[1] or len(T) < _LEAST:
        return None
    a, v, E = T[:, :m], T[:, m:-1], np.eye(V.shape[1])
    U, size, _ = np.linalg.svd(v @ null_space(np.vstack([V, E[hidden.any(axis=0)]])), full_matrices=True)
    on = int((size > _NOTHING).sum())
    Q = U[:, on:].T
    A = [np.outer(Q @ a[:, j], V[j]).ravel() for j in range(m)]
    A += [-np.outer(Q @ a[:, i], E[j]).ravel() for i, j in pairs]
    found = _told(np.stack(A, axis=1), -(Q @ v).ravel(), V, pairs)
    if found is None:
        return None
    d, more = found
    _, size, rows = np.linalg.svd(v + (a * d) @ V - a @ more)
    return None if (size[on:] > _NOTHING).any() else (d, more, rows[:on])


def _told(A: Array, t: Array, V: Array, pairs: NDArray[np.intp]) -> tuple[Array, Array] | None:
    """d (m,) and ε (m, width) by least squares, if all of d are 0 or 1, nearly."""
    m = len(V)
    if len(A) < _SPARE * A.shape[1]:
        return None
    found, _, rank, _ = np.linalg.lstsq(A, t, rcond=_NOTHING)
    d, more = np.asarray(np.round(found[:m]), dtype=np.float64), np.zeros(V.shape)
    if rank < A.shape[1] or np.abs(found[:m] - d).max() > _CLEAR or not np.isin(d, (0.0, 1.0)).all():
        return None
    more[pairs[:, 0], pairs[:, 1]] = found[m:]
    return d, more


def _by_many(V: Array, T: Array, hidden: Mask) -> tuple[Array, Array, Array] | None:
    """d, ε (m, width) of the ``hidden`` weights, and a basis of the rows B, from more units behind than V and B have.

    Sums of them that get nothing from V are all of B, N a = 0: N v = N p B. Off B, the rest is linear in d and ε.
    """
    m, width = V.shape
    a, v = T[:, :m], T[:, m:-1]
    if not 0 < m < len(T):
        return None
    N = null_space(a.T, rcond=_NOTHING).T
    _, size, rows = np.linalg.svd(N @ v)
    on = int((size > _NOTHING).sum())
    if len(N) <= on or on >= width:
        return None
    P, pairs = np.eye(width) - rows[:on].T @ rows[:on], np.argwhere(hidden)
    A = [np.outer(a[:, j], V[j] @ P).ravel() for j in range(m)] + [-np.outer(a[:, i], P[j]).ravel() for i, j in pairs]
    found = _told(np.stack(A, axis=1), -(v @ P).ravel(), V, pairs)
    if found is None:
        return None
    d, more = found
    left = (v + (a * d) @ V - a @ more) @ P
    return (d, more, rows[:on]) if np.abs(left).max() <= _OFF else None


def _rewritten(block: Array, V: Array, c: Array, d: Array, more: Array, B: Array, shift: Array) -> Array:
    """Rows (…, a, v, e) on (…, relu z, h, 1) as rows on (…, relu ξz, Bh + shift, 1)."""
    m, w = V.shape
    rest, a, v, e = np.split(block, [block.shape[1] - m - w - 1, block.shape[1] - w - 1, block.shape[1] - 1], axis=1)
    left, e = v + (a * d) @ V - a @ more, e + ((a * d) @ c)[:, None]
    p = left @ np.linalg.pinv(B) if len(B) else np.zeros((len(a), 0))
    return np.column_stack([rest, a, p, e[:, 0] - p @ shift])


def positive(front: Known, B: Array, rng: np.random.Generator) -> tuple[Array, Array]:
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
