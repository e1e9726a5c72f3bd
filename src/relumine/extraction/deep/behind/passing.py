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
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Pairs
from relumine.extraction.deep.behind.balls import Point
from relumine.extraction.deep.behind.telling import Behind, Decided, decided
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.climb import furthest, headless
from relumine.extraction.deep.surfaces.surface import Lift, Surface

Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

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
# Times that columns of h are left out which fewest surfaces see. Behind the third layer of a trained 100-16×8-1, with a
# unit that two of 100 000 inputs turn on, 8 of 13 surfaces did not see what they get from it.
_UNSEEN = 3
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

    ``hidden`` (m, width): which weights of the first of them no kink shows; none unless said. ``kinks`` of its units.
    """

    front: Known
    layers: list[tuple[Array, Array]]
    hidden: Mask | None = None
    kinks: Sequence[Sequence[Array]] = ()

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
        for i, (V, c) in enumerate(self.layers):
            T, seen = np.zeros((len(c), lift.size)), np.ones((len(c), lift.size), dtype=bool)
            T[:, -V.shape[1] - 1 : -1], T[:, -1] = V, c
            if i == 0 and self.hidden is not None:  # where a weight stands in for another, the surface is elsewhere
                seen[:, -V.shape[1] - 1 : -1] = ~self.hidden
            found.append([Surface(lift, np.zeros(0), *both) for both in zip(T, seen)])
        return found

    def alone(self, i: int) -> list[Surface]:
        """Those of the units of open layer i behind the layers in front of it, where their own kinks are not known."""
        lift, (V, c) = Lift(Chain(self.front, self.layers[:i]).known), self.layers[i]
        return [Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool)) for theta in np.column_stack([V, c])]

    def only(self, i: int, there: Mask) -> Chain:
        """Up to open layer i, and of that the units that are ``there``: what is behind was looked for with all."""
        V, c = self.layers[i]
        hidden, kinks = self.hidden, self.kinks
        if i == 0:
            hidden = None if hidden is None else hidden[there]
            kinks = [some for some, is_there in zip(kinks, there) if is_there]
        return Chain(self.front, [*self.layers[:i], (V[there], c[there])], hidden, kinks)

    def rare(self, count: int, rng: np.random.Generator) -> Pairs | None:
        """Pairs of inputs at which a unit of the first open layer is on that seldom is; None: there is none."""
        V, c = self.layers[0]
        few = seldom(self.front, V, c, rng)
        if not len(few):
            return None
        units, X = np.tile(rng.choice(few, size=count), 2), inputs(self.front.d, rng)
        ends, Z = furthest(headless(self.front), np.column_stack([V, c])[units], rng), self.front(X) @ V.T + c
        for i, unit in enumerate(units):
            on = np.flatnonzero(Z[:, unit] > 0.0)
            ends[i] = X[rng.choice(on)] if len(on) else ends[i]  # the furthest may be far out
        return ends[:count], ends[count:]

    def settled(
        self,
        surfaces: list[Surface],
        rng: np.random.Generator,
        local: Sequence[Surface] = (),
        points: Sequence[Point] = (),
        row: Array | None = None,
    ) -> Settled | None:
        """The first of them with all signs, by the units behind it, and those ``surfaces`` again; None: still open.

        A unit further behind is linear in the same way: what it gets from units of the first open layer, or from what
        these pass on, it gets through the layers in between, which have the same signs. So ``local`` surfaces of such
        units tell as much. What none of them gets anything from is no unit of this layer. ``points``: gradients behind
        the ``front``; ``row`` (width + 1,): the one unit that is always on, up to scale, if it is known.
        """
        (V, c), *others = self.layers
        found = self._told([*surfaces, *local], points, seldom(self.front, V, c, rng))
        if found is None:
            return None
        (idle, d, more, always), use = found
        m, width = V.shape
        hidden = np.zeros(V.shape, dtype=bool) if self.hidden is None else self.hidden
        needed = np.append(use, True)
        whole = [s for s in surfaces if s.seen[: -width - 1].all() and s.seen[-width - 1 :][needed].all()]
        blocks = [np.column_stack(layer) for layer in others]
        if whole:
            blocks.append(np.array([s.theta / np.linalg.norm(s.theta) for s in whole]))
        blocks = [np.delete(block, block.shape[1] - (m + width + 1) + idle, axis=1) for block in blocks]
        kinks = [some for i, some in enumerate(self.kinks or [()] * m) if i not in idle]
        V = np.where(hidden & ~use, 0.0, V)  # nothing tells these
        V, c, d, more = (np.delete(part, idle, axis=0) for part in (V, c, d, more))
        B, shift = positive(self.front, always, rng) if row is None else (row[None, :-1], row[-1:])
        W, b = np.vstack([(1.0 - 2.0 * d)[:, None] * V + more, B]), np.append((1.0 - 2.0 * d) * c, shift)
        front = Known(self.front.d, (*self.front.layers, (W, b)))
        blocks = [_rewritten(block, V, c, d, more, B, shift) for block in blocks]
        chain = Chain(front, [(block[:, :-1], block[:, -1]) for block in blocks[: len(others)]])
        lift = Lift(chain.known)
        again = [
            Surface(lift, np.zeros(0), theta, np.ones(len(theta), dtype=bool), s.points, s.error).settled()
            for theta, s in zip(blocks[-1] if whole else (), whole)
        ]
        hidden = np.vstack([np.delete(hidden, idle, axis=0), np.tile(~use, (len(B), 1))])
        surfaces, kinks = [s for s in again if s is not None], [*kinks, *[()] * len(B)]
        on, units = len(always) if row is None else 0, np.delete(np.arange(m), idle)
        return Settled(chain, surfaces, len(c) + len(always) - on, on, hidden, kinks, units)

    def _told(self, surfaces: list[Surface], points: Sequence[Point], few: Indices) -> tuple[Decided, Mask] | None:
        """What these ``surfaces`` tell of the first open layer; and by which columns of h, 0 in what is said in others.

        By all of them; else without those that fewest surfaces see, of units in front that hardly any input turns on.
        """
        V, c = self.layers[0]
        hidden = np.zeros(V.shape, dtype=bool) if self.hidden is None else self.hidden
        count = np.reshape([s.seen[-V.shape[1] - 1 : -1] for s in surfaces], (-1, V.shape[1])).sum(axis=0)
        for least in [0, *np.unique(count[count < len(surfaces)])[:_UNSEEN] + 1]:
            use = count >= least
            some = [replace(p, B=p.B[use], h=p.h[use]) for p in points if not p.B[~use].any()]
            found = decided(V[:, use], c, hidden[:, use], self._behind(surfaces, use), few, some)
            if found is not None:
                more, B = np.zeros(V.shape), np.zeros((len(found.B), V.shape[1]))
                more[:, use], B[:, use] = found.more, found.B
                return found._replace(more=more, B=B), use
        return None

    def _behind(self, surfaces: list[Surface], use: Mask) -> Behind:
        """The units of further open layers, and of ``surfaces`` those that see these columns of h, as rows on them.

        Of units behind all that is passed on must be seen; what they get from open layers in between need not be.
        """
        (V, c), *others = self.layers
        size, columns = sum(V.shape) + 1, np.append(use, True)
        some = [s for s in surfaces if s.seen[-len(columns) :][columns].all()]
        T = np.vstack([np.zeros((0, size)), *[np.column_stack(layer)[:, -size:] for layer in others]])
        seen = np.ones((len(T), len(c)), dtype=bool)
        T = np.vstack([T, *[_row(s, size) for s in some]])
        seen = np.vstack([seen, *[s.seen[-size:][: len(c)] for s in some]])
        return Behind(T[:, np.append(np.ones(len(c), dtype=bool), columns)], seen)


def seldom(front: Known, V: Array, c: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """The units that are on at few inputs: most surfaces say nothing of what they get from these."""
    X = rng.normal(size=(_INPUTS, front.d)) * 2.0 ** rng.uniform(-2.0, 4.0, size=(_INPUTS, 1))
    return np.flatnonzero((front(X) @ V.T + c > 0.0).mean(axis=0) < _RARE)


def _row(s: Surface, size: int) -> Array:
    """θ of length one, what it gets from the first open layer on, (1, size); what is not seen is 0."""
    return np.asarray((s.theta * s.seen / np.linalg.norm(s.theta * s.seen))[None, -size:])


class Settled(NamedTuple):
    """What is left of a chain, surfaces of units behind it, and of the layer that was settled how many units show.

    And how many are always ``on``. If no rows for these are positive everywhere, one of them is off somewhere, and the
    layer has more units than it stands for. ``hidden``: weights of it that no kink has shown, of those
    always on the ones that nothing has; ``kinks`` of its units; ``units``: which of the open layer its first ones are.
    """

    chain: Chain
    surfaces: list[Surface]
    shown: int
    on: int
    hidden: Mask
    kinks: list[Sequence[Array]]
    units: Indices

    @property
    def right(self) -> bool:
        """Whether the layer has no more units than it stands for."""
        return self.chain.front.width == self.shown + self.on

    def with_layer(self, W: Array, b: Array) -> Settled:
        """The same with this for the layer that was settled."""
        front = Known(self.chain.front.d, (*self.chain.front.layers[:-1], (W, b)))
        chain = Chain(front, self.chain.layers)
        lift = Lift(chain.known)
        again = [Surface(lift, s.s, s.theta, s.seen, s.points, s.error, s.free).settled() for s in self.surfaces]
        return self._replace(chain=chain, surfaces=[s for s in again if s is not None])


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
