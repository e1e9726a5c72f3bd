"""What units behind an open layer tell of it: its signs, weights that no kink shows, and the rows B always on.

Units T = (a, v, e) behind are linear in (relu(Vh + c), h, 1):

    v = −Σ_j d_j a_j V_j + Σ_ij ε_ij a_i e_j + p B,    d_j = 1 where a unit has the other sign.                    (1)

Off the rows V_j, and the e_j with a hidden weight, v is pB: its rank is the number of rows of B, and it gives p up to a
basis of them. With p, each coefficient of v in these rows is linear in its own unknowns alone:

    v = Σ_j y_j V_j + …,    y_j = −d_j a_j + p C_j.                                                                (2)

So a unit T says nothing of the V_j that it does not see, its a_j, and all it can of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from relumine.arrays import Array
from relumine.extraction.deep.behind.balls import Point

Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

LEAST = 3  # units of the next layer that tell
_NOTHING = 1e-6  # of θ, which has length one: measured up to 1e-8, of surfaces that hold in part up to 5e-7
_LITTLE = 1e-4  # of θ: what a unit further behind gets from this layer is no more than its error
_CLEAR = 1e-2  # how far from 0 and 1 the d of the least squares may be
_OFF = 1e-5  # what d and ε may leave of v
_ROW = 1e-5  # how far the row of a unit may be from those of B
_SAME = 1e-6  # 1 − |cos| of rows that are one
_AGREE = 2  # sums over rows of B, beyond those, that must agree on them
_SPARE = 1.2  # equations for each unknown


class Behind(NamedTuple):
    """Units T (n, m + width + 1) behind, (a, v, e) of length one, and which of their a are ``seen`` (n, m)."""

    T: Array
    seen: Mask

    def on(self, use: Mask | np.bool_) -> Behind:
        """Those rows of it that are used, but for those that get next to nothing from this layer."""
        use = use & (np.linalg.norm(self.T[:, :-1], axis=1) > _LITTLE)
        return Behind(self.T[use], self.seen[use])

    def of(self, units: Indices) -> Behind:
        """Without the a of other units, and of length one again."""
        T = np.column_stack([self.T[:, units], self.T[:, self.seen.shape[1] :]])
        size = np.linalg.norm(T[:, :-1], axis=1, keepdims=True)
        return Behind(T / np.maximum(size, 1e-300), self.seen[:, units]).on(size[:, 0] > _LITTLE)


class Told(NamedTuple):
    """d (m,), ε (m, width) of the hidden weights, and a basis of the rows B."""

    d: Array
    more: Array
    B: Array


class Decided(NamedTuple):
    """The same, and the units that are ``idle``, none of this layer's."""

    idle: Indices
    d: Array
    more: Array
    B: Array


def decided(
    V: Array, c: Array, hidden: Mask, behind: Behind, seldom: Indices, points: Sequence[Point] = ()
) -> Decided | None:
    """What units ``behind`` tell of the units V (m, width), c (m,), some of them on ``seldom``; None: too little.

    A few units that hardly any of them sees are left out first. If one of them is on nearly everywhere, its row is one
    of B then, and gradients at ``points`` where it is off tell it from the others.
    """
    m = len(V)
    size = np.abs(np.where(behind.seen, behind.T[:, :m], 0.0)).max(axis=0, initial=0.0)
    idle = np.flatnonzero((size <= _NOTHING) & (behind.seen.sum(axis=0) >= LEAST))
    idle = idle[:0] if len(idle) == m else idle
    unseen = np.flatnonzero(behind.seen.sum(axis=0) < LEAST)
    for few in (idle, np.union1d(idle, seldom), np.union1d(np.union1d(idle, seldom), unseen)):
        rest = np.setdiff1d(np.arange(m), few)
        sure = ~(behind.seen & (behind.T[:, :m] != 0.0))[:, few] | ~(hidden & (V > 0.0))[few].any(axis=1)
        for use in (behind.seen[:, rest].all(axis=1), sure.all(axis=1)):
            rows = behind.on(use).of(rest)
            found = _each(V[rest], hidden[rest], rows) or _at_once(V[rest], hidden[rest], rows)
            if found is None:
                continue
            # If B fills the space, it may be anything that those left out have. Unless more units behind agree than all
            # of these together have unknowns.
            spanned = len(found.B) >= V.shape[1] - len(rest)
            if spanned and len(few) > len(idle) and _distinct(rows.T[:, :-1]) < V.shape[1] + len(few) + _AGREE:
                continue
            d, more = np.zeros(m), np.zeros(V.shape)
            d[rest], more[rest], B = found
            off, B_off = _seldom_off(V, hidden, np.setdiff1d(few, idle), B)
            d[off], more[off] = 1.0, V[off] - B_off
            told = Told(d, more, B)
            others = _others(
                told, off, B_off, [*_rows(V, behind, told, off), *_gradients(V, c, hidden, points, told, off)]
            )
            if others is not None:
                return Decided(idle, d, more, others)
    return None


def _distinct(T: Array) -> int:
    """How many of these rows are not multiples of others: surfaces of one unit may hold in part in several places."""
    T = T / np.maximum(np.linalg.norm(T, axis=1, keepdims=True), 1e-300)
    same = np.abs(T @ T.T) > 1.0 - _SAME
    return int((~np.tril(same, -1).any(axis=1)).sum())


def _each(V: Array, hidden: Mask, behind: Behind) -> Told | None:
    """By (2), for every unit, and every hidden column, from those that see it; None: too few do, or they contradict."""
    m, columns, (T, seen) = len(V), np.flatnonzero(hidden.any(axis=0)), behind
    R = np.vstack([V, np.eye(V.shape[1])[columns]])
    if not 0 < m <= len(R) <= V.shape[1] or len(T) < LEAST:
        return None
    a, v, N = T[:, :m], T[:, m:-1], null_space(R)
    U, size, Wt = np.linalg.svd(v @ N, full_matrices=False)
    on = int((size > _NOTHING * np.sqrt(len(T))).sum())
    p, y = U[:, :on] * size[:on], v @ np.linalg.pinv(R)
    d, more, C = np.zeros(m), np.zeros(V.shape), np.zeros((on, len(R)))
    for j in range(m):
        use = np.flatnonzero(seen[:, j])
        found = _solved(np.column_stack([-a[use, j], p[use]]), y[use, j], 1)
        if found is None:
            return None
        d[j], C[:, j] = found[0], found[1:]
    for k, column in enumerate(columns.tolist(), m):
        mine = np.flatnonzero(hidden[:, column])
        use = np.flatnonzero(seen[:, mine].all(axis=1))
        found = _solved(np.column_stack([a[np.ix_(use, mine)], p[use]]), y[use, k], 0)
        if found is None:
            return None
        more[mine, column], C[:, k] = found[: len(mine)], found[len(mine) :]
    B = Wt[:on] @ N.T + C @ R
    return Told(d, more, np.linalg.qr(B.T)[0].T)


def _solved(A: Array, t: Array, signs: int) -> Array | None:
    """The solution of Ax = t, its first entries 0 or 1; None: there is none, or more than one."""
    if len(A) < _SPARE * A.shape[1]:
        return None
    x, _, rank, _ = np.linalg.lstsq(A, t, rcond=_NOTHING)
    d = np.round(x[:signs])
    if rank < A.shape[1] or np.abs(x[:signs] - d).max(initial=0.0) > _CLEAR or not np.isin(d, (0.0, 1.0)).all():
        return None
    rest = np.linalg.lstsq(A[:, signs:], t - A[:, :signs] @ d, rcond=None)[0]
    x = np.append(d, rest)
    return np.asarray(x) if np.abs(A @ x - t).max() <= _OFF else None


def _at_once(V: Array, hidden: Mask, behind: Behind) -> Told | None:
    """By (1), linear in d and ε off the rows of B, from units that see all; where there is no B, or these are many.

    Sums N of more units than V has that get nothing from V are all of B: N a = 0, N v = N p B.
    """
    m, width = V.shape
    T, pairs = behind.T[behind.seen.all(axis=1)], np.argwhere(hidden)
    a, v = T[:, :m], T[:, m:-1]
    if not m or len(T) < LEAST:
        return None
    _, size, rows = np.linalg.svd(null_space(a.T, rcond=_NOTHING).T @ v)
    on = int((size > _NOTHING).sum())
    for B in (rows[:0], rows[:on])[: 1 + (on < min(width, len(T) - m))]:
        P, more = np.eye(width) - B.T @ B, np.zeros(V.shape)
        A = [np.outer(-a[:, j], V[j] @ P).ravel() for j in range(m)]
        A += [np.outer(a[:, i], P[j]).ravel() for i, j in pairs]
        found = _solved(np.stack(A, axis=1), (v @ P).ravel(), m)
        if found is not None:
            more[pairs[:, 0], pairs[:, 1]] = found[m:]
            return Told(found[:m], more, B)
    return None


def _seldom_off(V: Array, hidden: Mask, few: Indices, B: Array) -> tuple[Indices, Array]:
    """Those of a ``few`` units with a row in B, up to its ``hidden`` weights, which B then tells, and these rows.

    They are on nearly everywhere, and the others of B are known only up to multiples of them.
    """
    off, rows = list[int](), np.zeros((0, V.shape[1]))
    for i in few.tolist():
        v, seen = V[i] * ~hidden[i], ~hidden[i]
        if len(B) and seen.sum() >= len(B) + LEAST:
            t = np.linalg.lstsq(B[:, seen].T, v[seen], rcond=None)[0]
            if np.linalg.norm(t @ B[:, seen] - v[seen]) <= _ROW * np.linalg.norm(v):
                off, rows = [*off, i], np.vstack([rows, t @ B])
    return np.array(off, dtype=np.intp), rows


class _Sum(NamedTuple):
    """A vector that is a sum over rows of B, and over ``more`` rows; all of it along some directions only."""

    v: Array
    B: Array
    more: Array


def _rows(V: Array, behind: Behind, told: Told, off: Indices) -> list[_Sum]:
    """What units behind that see the units ``off`` leave of v, once what is seen is taken off by (1)."""
    found, m = [], len(V)
    for row, seen in zip(*behind.on(behind.seen[:, off].all(axis=1))):
        a = np.where(seen, row[:m], 0.0)
        v = row[m:-1] + (a * told.d) @ V - a @ told.more
        found.append(_Sum(v, told.B, V[~seen & (told.d == 1.0)]))
    return found


def _gradients(V: Array, c: Array, hidden: Mask, points: Sequence[Point], told: Told, off: Indices) -> list[_Sum]:
    """Gradients where the units ``off`` are, and all that are on have no hidden weight."""
    found = []
    for p in points:
        up = V @ p.h + c > 0.0
        on = up != (told.d == 1.0)
        if not on[off].any() and not hidden[on].any():
            found.append(_Sum(p.g / np.linalg.norm(p.g), told.B @ p.B, V[on] @ p.B))
    return found


def _others(told: Told, off: Indices, rows: Array, sums: list[_Sum]) -> Array | None:
    """Rows of B beside the ``rows`` of units that are ``off`` somewhere, by sums over these others there.

    None: too few tell, or they contradict.
    """
    B, count = told.B, len(told.B) - len(off)
    if not len(off) or not count:
        return B[:count]
    found = np.zeros((0, len(B)))
    for v, mine, more in sums:
        basis = np.vstack([mine, more])
        p, _, rank, _ = np.linalg.lstsq(basis.T, v, rcond=_ROW)
        if rank == len(basis) and np.abs(p @ basis - v).max() <= _OFF:
            found = np.vstack([found, p[: len(B)]])
    if len(found) < count + _AGREE:
        return None
    _, size, others = np.linalg.svd(found, full_matrices=False)
    others = others[size > _OFF * np.sqrt(1.0 + len(found))] @ B
    apart = np.linalg.svd(np.vstack([others, rows / np.linalg.norm(rows, axis=1, keepdims=True)]), compute_uv=False)
    return others if len(others) == count and apart[-1] > _ROW else None
