"""Signs of a layer with more units than move freely: the gradient is a sum over the units that are on.

Around x the activations in front are h = Jx + …, and the gradient of the box is Jᵀ Σ_j c_j V_j over the units j of the
layer that are on there; c_j = 0 for those that are off. If fewer than r = rank J are on, no other set of so few gives
it exactly, except by accident. In small layers all signs are tried at once, and each point rules out those by which so
few are on that do not give its gradient. In others the smallest Σ|c_j| finds the set where r is large; that it is so
sparse proves it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.box import ROUNDING
from relumine.extraction.deep.inquiry import Inquiry

Mask = NDArray[np.bool_]

_POINTS, _MOST = 20_000, 400  # random inputs; gradients that may be measured for each number of units
_FIRST, _MORE = 60, 40  # of them at first, where the most units are on; each further time
_STEP = 1e-4  # length of a difference, over that of x: few meet a kink, and a second look shows those
_NOTHING = 1e-4  # |c_j| over the largest that is none: measured 1e-9 … 1e-6 for units that are off
_VOTES, _AGREE = 3, 0.9  # points that must tell a sign; share of them that must agree
_ON = 2  # points at which a unit must count: one that is off at all of them may be none of this layer's
_ALL = 16  # units up to which all signs are tried: 65 536
_FITS = 1e-5  # departure from a gradient that is none, over its size: measured 1e-9 … 1e-7 where the units are right
_EACH = 6  # points for each weight that no kink has shown
_BATCH = 8192  # sets of units whose fits are computed at once


@dataclass
class _Point:
    """Around x, h moves by B (width, r) along r directions of x, and f by g (r,); ``h`` there."""

    B: Array
    g: Array
    h: Array


class Gradients:
    """Gradients of the box behind known layers, measured once, whatever the units of the next layer are."""

    def __init__(self, at: Inquiry) -> None:
        self.at, self.left, self.units = at, _MOST, 0
        self.points: list[_Point] = []
        self.X = at.rng.normal(size=(_POINTS, at.dim)) * 2.0 ** at.rng.uniform(-2.0, 4.0, size=(_POINTS, 1))
        zs = at.known.before(self.X)
        self.rank = np.min([(z > 0.0).sum(axis=1) for z in zs], axis=0)
        self.H = np.maximum(zs[-1], 0.0)
        self.new = np.ones(len(self.X), dtype=bool)

    def signs(self, V: Array, c: Array, known: Mask | None = None) -> tuple[Array | None, Mask]:
        """ξ (m,) of the units Vh + c behind the known layers, and which are open; None where no signs fit.

        ``known``: which weights are; where others count, they are part of what the gradient is made of.
        """
        known = np.ones(V.shape, dtype=bool) if known is None else known
        lacking = ~known.all(axis=0)
        tell, Z = _tried if len(c) <= _ALL else _voted, self.H @ V.T + c
        rank = self.rank - 2.0 * (self.H[:, lacking] > 0.0).sum(axis=1) + 0.3 * self.at.rng.random(len(Z))
        if len(c) > self.units:
            self.units, self.left = len(c), _MOST
        if not self.points:
            self.measure(rank, _FIRST)
        xi, open_ = tell(self.points, V, c, known)
        while xi is not None and open_.any():
            # few units on, more directions; and those that are open on either side
            score = rank if open_.all() else rank - (Z * xi > 0.0).sum(axis=1)
            measured = 0
            for side in (Z[:, open_] > 0.0, Z[:, open_] < 0.0):
                measured += self.measure(np.where(side.any(axis=1), score, -np.inf), _MORE // 2)
            if not measured:
                break
            xi, open_ = tell(self.points, V, c, known)
        self.at.tell(f"   signs: {len(self.points)} points, {'none fit' if xi is None else f'{int(open_.sum())} open'}")
        return xi, open_

    def weights(self, V: Array, c: Array, xi: Array, known: Mask) -> tuple[Array, Mask]:
        """V with the weights that no kink has shown, as far as gradients tell; and which are known, or never count.

        A gradient is Σ_l c_l (V_l + δ_l)B over the units that are on: least squares give c_l, and for each unit j in
        front Σ_l c_l δ_lj. A weight never counts if its two units are on together at none of the random inputs.
        """
        V, known, together = V.copy(), known.copy(), self.H > 0.0
        on = (self.H @ V.T + c) * xi > 0.0
        known |= (on.T.astype(float) @ together.astype(float)) == 0.0
        columns = np.flatnonzero(~known.all(axis=0))
        if not len(columns):
            return V, known
        spare = self.rank - on.sum(axis=1) + 0.3 * self.at.rng.random(len(on))
        for i, j in np.argwhere(~known):
            self.measure(np.where(on[:, i] & together[:, j], spare, -np.inf), _EACH)
        rows: dict[int, list[Array]] = {int(j): [] for j in columns}
        for p in self.points:
            moved = columns[p.h[columns] > 0.0]
            active = (xi * (V @ p.h + c) > 0.0) | ~known[:, moved].all(axis=1)  # of these the side is not known
            A = np.vstack([V[active] @ p.B, p.B[moved]])
            if not len(moved) or len(A) >= len(p.g):
                continue
            size = np.maximum(np.linalg.norm(A, axis=1), 1e-300)
            found = np.linalg.lstsq((A / size[:, None]).T, p.g, rcond=1e-9)[0] / size
            if np.linalg.norm(found @ A - p.g) <= _FITS * np.linalg.norm(p.g):
                strength = np.zeros(len(c))
                strength[active] = found[: active.sum()]
                for j, total in zip(moved, found[active.sum() :]):
                    rows[int(j)].append(np.append(strength, total))
        for j, some in rows.items():
            self._solve(V, known, j, np.reshape(some, (-1, len(c) + 1)))
        return V, known

    @staticmethod
    def _solve(V: Array, known: Mask, j: int, rows: Array) -> None:
        """Σ_l c_l δ_lj = t for the open weights of unit j in front, rows (c, t); they are known once two rows agree."""
        lack = np.flatnonzero(~known[:, j])
        size = np.maximum(np.linalg.norm(rows[:, :-1], axis=1, keepdims=True), 1e-300)
        A, t = rows[:, lack] / size, rows[:, -1] / size[:, 0]
        if len(A) < len(lack) + 1 or np.linalg.matrix_rank(A, 1e-6) < len(lack):
            return
        delta = np.linalg.lstsq(A, t, rcond=None)[0]
        if np.abs(A @ delta - t).max() <= _FITS * max(float(np.abs(delta).max()), _FITS):
            V[lack, j] += delta
            known[lack, j] = True

    def measure(self, score: Array, count: int) -> int:
        """Gradients at new points, those with the highest score; how many points were tried."""
        score, before = np.where(self.new, score, -np.inf), self.left
        for i in np.argsort(-score, kind="stable")[: min(count, self.left)]:
            if not np.isfinite(score[i]):
                break
            self.new[i], self.left = False, self.left - 1
            active, J, _, _, _ = self.at.known.region(self.X[i])
            if len(active) < 2:
                continue
            s, Ut = np.linalg.svd(J, full_matrices=False)[1:]
            U = Ut[s > 1e-3 * s[0]]  # (r, d): the directions of x that move h
            g = _gradient(self.at, self.X[i], U)
            if g is not None:
                B = np.zeros((self.at.known.width, len(U)))
                B[active] = J @ U.T
                self.points.append(_Point(B, g, self.H[i]))
        return before - self.left


def _tried(points: list[_Point], V: Array, c: Array, known: Mask) -> tuple[Array | None, Mask]:
    """The signs that most points show and none rules out, and which of them are open; None if all are ruled out.

    A point shows signs by which fewer units are on than it has directions, if these units give its gradient and each
    of them counts. It rules out those by which so few are on that do not give it. Weights that are not known add the
    units in front that they belong to, and the units whose side depends on them may be on or off.
    """
    m = len(c)
    xi = np.where((np.arange(1 << m)[:, None] >> np.arange(m)) & 1, 1.0, -1.0)
    shown = np.zeros(len(xi), dtype=np.intp)
    for p in sorted(points, key=lambda p: -len(p.g)):
        more, either = _added(p, known)
        on = (xi * np.sign(V @ p.h + c) > 0.0) | either
        few = np.flatnonzero(on.sum(axis=1) + len(more) < len(p.g))
        sets, which = np.unique(on[few], axis=0, return_inverse=True)
        fits, loud = _fitted(V @ p.B, p.g, sets, more)
        shown[few] += (fits & ((loud == sets) | either).all(axis=1))[which.ravel()]
        wrong = few[~fits[which.ravel()]]
        xi, shown = np.delete(xi, wrong, axis=0), np.delete(shown, wrong)
        if not len(xi):
            return None, np.ones(m, dtype=bool)
    best = int(shown.argmax())
    rivals = (xi[shown > shown[best] // _VOTES] != xi[best]).any(axis=0)
    counts = np.zeros(m, dtype=np.intp)  # points at which each unit is on, and counts
    for p in points:
        more, either = _added(p, known)
        on = (xi[best] * np.sign(V @ p.h + c) > 0.0) | either
        if on.sum() + len(more) < len(p.g):
            counts += _fitted(V @ p.B, p.g, on[None], more)[1][0] & on & ~either
    return xi[best], np.asarray(rivals | (shown[best] < _VOTES) | (counts < _ON))


def _added(p: _Point, known: Mask) -> tuple[Array, Mask]:
    """The rows of B of units in front with a weight that is not known; the units whose side depends on such a one."""
    open_ = ~known & (p.h > 0.0)
    return p.B[open_.any(axis=0)], open_.any(axis=1)


def _fitted(A: Array, g: Array, sets: Mask, more: Array) -> tuple[Mask, Mask]:
    """Which sets of the rows of A (m, r), with all of ``more``, give g (r,); which of those of A count, (n, m)."""
    m = len(A)
    A, sets = np.vstack([A, more]), np.column_stack([sets, np.ones((len(sets), len(more)), dtype=bool)])
    size = np.linalg.norm(A, axis=1)
    A = A / np.maximum(size, 1e-300)[:, None] * (size > 1e-9 * size.max(initial=0.0))[:, None]
    G, b, length = A @ A.T, A @ g, float(np.linalg.norm(g))
    fits, loud = np.zeros(len(sets), dtype=bool), np.zeros(sets.shape, dtype=bool)
    for at in range(0, len(sets), _BATCH):
        on = sets[at : at + _BATCH]
        M = G * (on[:, :, None] & on[:, None, :]) + np.eye(len(A)) * (~on[:, :, None] + 1e-14)
        c = np.linalg.solve(M, (on * b)[:, :, None])[:, :, 0] * on
        fits[at : at + _BATCH] = np.linalg.norm(g - c @ A, axis=1) <= _FITS * length
        loud[at : at + _BATCH] = np.abs(c) > _NOTHING * np.abs(c).max(axis=1, initial=1e-300, keepdims=True)
    return fits, loud[:, :m]


def _voted(points: list[_Point], V: Array, c: Array, known: Mask) -> tuple[Array | None, Mask]:
    """Signs by the smallest Σ|c_j| of each point, and which of them are open; None if no point tells."""
    plus, minus, on = np.zeros(len(c)), np.zeros(len(c)), np.zeros(len(c))
    lacking = ~known.all(axis=0)
    for p in points:
        if p.h[lacking].any():
            continue
        vote = _vote(V @ p.B, p.g)
        if vote is not None:
            side = np.sign(V @ p.h + c)
            plus += vote * side > 0.0
            minus += vote * side < 0.0
            on += vote > 0.0
    both = plus + minus
    if not both.any():
        return None, np.ones(len(c), dtype=bool)
    return np.where(plus > minus, 1.0, -1.0), (both < _VOTES) | (np.maximum(plus, minus) < _AGREE * both) | (on < _ON)


def _gradient(at: Inquiry, x: Array, U: Array) -> Array | None:
    """The slopes at x along the rows of U (r, d); None where a difference meets a kink."""
    step = _STEP * (0.1 * np.sqrt(at.dim) + float(np.linalg.norm(x)))
    y = at.ask(np.concatenate([x[None], x + step * U, x - step * U]))
    slopes, back = (y[1 : len(U) + 1] - y[0]) / step, (y[0] - y[len(U) + 1 :]) / step
    noise = 8.0 * ROUNDING * float(np.abs(y).max()) / step
    size = float(np.abs(slopes).max())
    if size <= 1e3 * noise or np.abs(slopes - back).max() > 1e-6 * size + noise:
        return None
    return np.asarray(0.5 * (slopes + back))


def _vote(V: Array, g: Array) -> Array | None:
    """+1 for the units (m,) that are on, −1 for those that are off, 0 for those that nothing is known of."""
    m, k = V.shape
    size = np.linalg.norm(V, axis=1)
    use = size > 1e-6 * size.max(initial=0.0)
    A = (V[use] / size[use][:, None]).T  # (k, m')
    found = linprog(np.ones(2 * A.shape[1]), A_eq=np.column_stack([A, -A]), b_eq=g / np.abs(g).max(), method="highs")
    if found.x is None:
        return None
    x = np.abs(found.x[: A.shape[1]] - found.x[A.shape[1] :])
    loud = x > _NOTHING * x.max()
    if loud.sum() > k - 2:
        return None
    vote = np.zeros(m)
    vote[use] = np.where(loud, 1.0, -1.0)
    return vote
