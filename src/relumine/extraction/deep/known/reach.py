"""Is there an input at which units of known layers are on, or off, together: found, or proved not to exist.

Branch and bound over the sides of the units in front, a linear programme for each node. Inputs need no bound: (x, 1) is
taken up to a positive factor, (x, s) with |x_k| ≤ 1 and 0 ≤ s ≤ 1, as every z is homogeneous in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.known.charts import Known

Layers = Sequence[tuple[Array, Array]]


_NONE = 1e-6  # a largest value up to this is none: the error of a solution
_FAR = 1e-6  # the least s: such an input is a million away
# Over the length of the row: weights with which one may bring itself into play, and how often that range is halved.
_WEIGHTS, _HALVES = (0.02, 2.0), 5
_ROOM, _EDGE = 2.0, 1e-6  # times as far out as the nearest an input may be, and how far from all edges, over that


def reach(
    layers: Layers, unit: int, sign: float = 1.0, front: int | None = None, nodes: int = 300
) -> tuple[Array | None, bool]:
    """An input (d,) with sign·z > 0 at a unit of the last layer, and z > 0 at unit ``front`` of the one before it.

    None where none was found; and whether the answer is certain: after so many ``nodes`` it stays open.

    Examples
    --------
    >>> W, b = np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0])           # on for x > 1, and for x < −1
    >>> reach([(W, b), (np.array([[1.0, 1.0]]), np.array([-1.0]))], 0)[0] is not None
    True
    >>> reach([(W, b), (np.array([[-1.0, 1.0]]), np.array([-1.0]))], 0, front=0)    # its weight is never in play
    (None, True)
    """
    W = layers[0][0]
    if len(W) < W.shape[1]:  # inputs count only along its rows: as many coordinates are enough
        Q = np.linalg.qr(W.T)[0]
        x, sure = reach([(W @ Q, layers[0][1]), *layers[1:]], unit, sign, front, nodes)
        return None if x is None else np.asarray(Q @ x), sure
    relaxed = _Relaxed(layers, unit, sign, front)
    left: list[dict[int, bool]] = [{}]
    for _ in range(nodes):
        if not left:
            return None, True
        node = left.pop()
        solution = relaxed.best(node)
        if solution is None:
            continue
        x = relaxed.input(solution)
        if x is not None:
            return _nearest(layers, unit, x), True
        gap = relaxed.gaps(solution)
        gap[list(node)] = -1.0
        worst = int(gap.argmax()) if len(gap) else 0
        if len(node) < len(gap):  # all decided, and yet the input is not one: rounding
            left += [node | {worst: False}, node | {worst: True}]
    return None, not left


def opened(layers: Layers, unit: int, front: int, sign: float = 1.0, nodes: int = 300) -> tuple[Array | None, float]:
    """The same for two units with an open weight between them, 0 in ``layers``: where there is none, with the least
    weight with which there is one; then every larger one does, too. None: not even with twice the length of the row.

    Examples
    --------
    >>> W, b = np.array([[1.0], [-1.0]]), np.array([0.0, 0.0])               # x and −x
    >>> x, weight = opened([(W, b), (np.array([[0.0, 1.0]]), np.array([-1.0]))], 0, 0)   # on for −x > 1; with w, wx > 1
    >>> bool(x[0] > 0.0), 0.0 < weight < 0.1
    (True, True)
    """
    x, sure = reach(layers, unit, sign, front, nodes)
    if x is not None or not sure or sign < 0.0:
        return x, 0.0
    (*before, (W, b)), best = layers, 0.0
    V, size, (low, high) = np.array(W), float(np.linalg.norm(W[unit])), _WEIGHTS
    for turn in range(_HALVES + 1):
        share = float(np.sqrt(low * high)) if turn else high
        V[unit, front] = share * size
        found, _ = reach([*before, (V, b)], unit, 1.0, front)
        if found is not None:
            x, best, high = found, share * size, share
        elif not turn:
            break
        else:
            low = share
    return x, best


def _nearest(layers: Layers, unit: int, x: Array) -> Array:
    """An input near to the origin, at which all units in front are on that are at x, and no others; off the edges.

    Far out, where those of the relaxed problem are, answers have fewer digits.
    """
    W, b = layers[-1]
    known = Known(len(x), (*layers[:-1], (W[[unit]], b[[unit]])))
    at = known.regions(x[None])
    rows, offsets = at.rows[0], at.offsets[0]
    size = np.linalg.norm(rows, axis=1)
    rows, offsets = rows[size > 0.0] / size[size > 0.0, None], offsets[size > 0.0] / size[size > 0.0]
    n, d = rows.shape
    aside, box = np.zeros((n, 1)), np.vstack([np.eye(d), -np.eye(d)])  # |x_k| ≤ r
    least = linprog(
        np.eye(d + 1)[d],
        A_ub=np.vstack([np.column_stack([-rows, aside]), np.column_stack([box, -np.ones(2 * d)])]),
        b_ub=np.append(offsets, np.zeros(2 * d)),
        bounds=(None, None),
        method="highs",
    )
    if least.x is None:
        return x
    far = _ROOM * (1.0 + float(least.x[-1]))
    inside = linprog(  # max t with t ≤ rows·x + offsets
        -np.eye(d + 1)[d],
        A_ub=np.column_stack([-rows, np.ones(n)]),
        b_ub=offsets,
        bounds=[*[(-far, far)] * d, (None, None)],
        method="highs",
    )
    return x if inside.x is None or inside.x[-1] <= _EDGE * far else np.asarray(inside.x[:-1])


class _Relaxed:
    """max t over (x, s, h, t), t ≤ sign·z, t ≤ z_front; h of units not decided lies between relu(z) and its chord."""

    def __init__(self, layers: Layers, unit: int, sign: float, front: int | None) -> None:
        *self.before, (W, b) = layers
        self.last, self.sign, self.front = (W[[unit]], b[[unit]]), sign, front
        self.d = (self.before[0][0] if self.before else W).shape[1]
        self.units = sum(len(c) for _, c in self.before)
        self.n = self.d + 2 + self.units
        self.Z, high, big = np.zeros((self.units + 1, self.n)), np.ones(self.d), []
        column, row = 0, 0
        for V, c in [*self.before, self.last]:
            here = slice(row, row + len(c))
            self.Z[here, column : column + V.shape[1]] = V
            self.Z[here, self.d] += c
            high = np.abs(V) @ high + np.abs(c)
            big.append(high)
            column, row = self.d + 1 + row, row + len(c)
        self.big = np.concatenate(big)[:-1]

    def best(self, node: dict[int, bool]) -> Array | None:
        """The best point of a node; None where there is none with t > 0."""
        h, z = np.eye(self.n)[self.d + 1 : -1], self.Z[:-1]
        free = np.array([u not in node for u in range(self.units)], dtype=bool)
        on = np.array([u for u, side in node.items() if side], dtype=np.intp)
        off = np.array([u for u, side in node.items() if not side], dtype=np.intp)
        t = np.eye(self.n)[-1]
        tops = [t - self.sign * self.Z[-1]]
        if self.front is not None:
            tops.append(t - z[self.units - len(self.before[-1][1]) + self.front])
        # h ≥ z, and 2h ≤ z + big: the chord of relu over [−big, big]
        A = np.vstack([*tops, (z - h)[free], (2.0 * h - z)[free], -z[on], z[off]])
        b = np.concatenate([np.zeros(len(tops) + int(free.sum())), self.big[free], np.zeros(len(on) + len(off))])
        low, up = np.zeros(self.n), np.full(self.n, np.inf)
        low[: self.d], up[: self.d + 1], up[-1] = -1.0, 1.0, 1.0
        up[self.d + 1 + off] = 0.0
        bounds = list(zip(low.tolist(), up.tolist()))
        found = linprog(-t, A_ub=A, b_ub=b, A_eq=(h - z)[on], b_eq=np.zeros(len(on)), bounds=bounds, method="highs")
        return None if found.x is None or found.x[-1] <= _NONE else np.asarray(found.x)

    def input(self, solution: Array) -> Array | None:
        """The input of a solution, if the layers themselves do there what they should."""
        x = solution[: self.d] / max(float(solution[self.d]), _FAR)
        h, z = x, np.zeros(0)
        for V, c in self.before:
            z = V @ h + c
            h = np.maximum(z, 0.0)
        good = self.sign * float((self.last[0] @ h + self.last[1])[0]) > 0.0
        return x if good and (self.front is None or z[self.front] > 0.0) else None

    def gaps(self, solution: Array) -> Array:
        """h − relu(z) of every unit, over its range."""
        return np.asarray((solution[self.d + 1 : -1] - np.maximum(self.Z[:-1] @ solution, 0.0)) / self.big)
