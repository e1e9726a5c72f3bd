"""Weights that no kink shows: a unit's weights of units in front that are off at all of its kinks.

They count where the unit is on. A gradient around a corner (`balls`) is a sum over the units that are on,

    g = Σ_l c_l (V_l + δ_l)B,    δ: what is not known of the weights.                                               (1)

With the rows of B that δ stands for as further unknowns, least squares give c_l and, for each unit j in front,
t_j = Σ_l c_l δ_lj: a few gradients tell δ. All of them, and the kinks h of these units, then give the digits of all
their weights: those of units in front that are hardly on at any kink need them, too. With P off the rows V_l B,

    Pg = Σ_lj c_l δ_lj PB_j,    (V_l + δ_l)·h + b_l + β_l = 0,    V_l·δ_l = 0.                                       (2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.behind.balls import Point
from relumine.extraction.deep.behind.sums import FITS, NOTHING, either_side

Mask = NDArray[np.bool_]

# Share of the gradients that may say something else of a weight. In the third layer of 100-16×8-1, whose first layer
# was known to 2e-9, one of 42 was off by more than the others.
_FEW = 0.1
# How far off t_j may be, over the largest δ, and over c. In a trained 100-16×8-1 one in ten was off by 2e-4 of δ, where
# another weight of a unit was 3e-5 off; (2) then left 2e-8.
_ROUGH, _NOISE = 5e-4, 1e-5
_LEAST = 3  # gradients to which a unit with an open weight must count
# How far off an equation may be in each step of (2), over half of them, and what is rounding; unknowns up to which they
# are taken. At first, all that tell of a unit that is seldom on may be off by more than the others.
_STEPS, _ROUND, _UNKNOWN = (np.inf, np.inf, 5.0, 5.0), 1e-9, 2000
_MINE = 1e-7  # how far off a kink of a unit is: others came with it
_PRIOR = 1e-3  # by how much weights may be off before them: what is not seen stays as it is


def weights(
    points: Sequence[Point], V: Array, b: Array, xi: Array, known: Mask, kinks: Sequence[Array] = ()
) -> tuple[Array, Array, Mask]:
    """V (m, width) and b (m,) with the weights that gradients show, and which are known then.

    ``kinks``: for each unit h at some of them, (n, width).
    """
    V, b, seen = V.copy(), b.copy(), known.copy()
    for j, rows in _sums(points, V, b, xi, known).items():
        solved(V, seen, j, np.reshape(rows, (-1, len(b) + 1)))
    units = np.flatnonzero((seen & ~known).any(axis=1) & seen.all(axis=1))
    if len(kinks) and 0 < len(units) * (V.shape[1] + 1) <= _UNKNOWN:
        for stray in _STEPS:
            step = _step(points, V, b, xi, seen, units, [kinks[i] for i in units.tolist()], stray)
            V[units], b[units] = V[units] + step[:, :-1], b[units] + step[:, -1]
    return V, b, seen


@dataclass
class _Fit:
    """A gradient as Σ c_l V_l B over units, and rows of B for the units ``lacking`` in front: what is left of it."""

    c: Array
    lacking: NDArray[np.intp]
    total: Array
    A: Array
    rest: Array


def _fit(p: Point, V: Array, b: Array, xi: Array, known: Mask) -> _Fit | None:
    """The fewest units that give a gradient: by weights that are open more may be on. None: it is not a sum of few."""
    active = xi * (V @ p.h + b) > 0.0
    for on in (active, active | either_side(p, known)):
        lacking = np.flatnonzero((~known[on]).any(axis=0) & p.moves)
        A = np.vstack([V[on] @ p.B, p.B[lacking]])
        if len(A) >= len(p.g):
            return None
        found, rest = _least(A, p.g)
        if np.linalg.norm(rest) <= FITS * np.linalg.norm(p.g):
            c = np.zeros(len(b))
            c[on] = found[: on.sum()]
            c[~active & (np.abs(c) <= NOTHING * np.abs(c).max())] = 0.0
            return _Fit(c, lacking, found[on.sum() :], A, rest)
    return None


def _sums(points: Sequence[Point], V: Array, b: Array, xi: Array, known: Mask) -> dict[int, list[Array]]:
    """For each unit j in front with an open weight, rows (c_1 … c_m, t_j) of the points that tell."""
    rows: dict[int, list[Array]] = {int(j): [] for j in np.flatnonzero(~known.all(axis=0))}
    for p in points:
        fit = _fit(p, V, b, xi, known)
        if fit is not None:
            for j, total in zip(fit.lacking.tolist(), fit.total):
                rows[j].append(np.append(fit.c, total))
    return rows


def solved(V: Array, known: Mask, j: int, rows: Array) -> None:
    """Σ_l c_l δ_lj = t for the open weights of unit j in front, rows (c, t); known once rows agree, but for few.

    Those of units that are on at too few points stay open, and these points are left out for the others.
    """
    lack = np.flatnonzero(~known[:, j])
    rows = rows / np.maximum(np.linalg.norm(rows[:, :-1], axis=1, keepdims=True), 1e-300)
    while len(lack):
        count = (rows[:, lack] != 0.0).sum(axis=0)
        if count.min() >= _LEAST and len(rows) > len(lack) and np.linalg.matrix_rank(rows[:, lack], 1e-4) == len(lack):
            break
        rows = rows[rows[:, lack[count.argmin()]] == 0.0]
        lack = np.delete(lack, count.argmin())
    A, t = rows[:, lack], rows[:, -1]
    for _ in range(1 + int(_FEW * len(A)) if len(lack) else 0):
        if len(A) <= len(lack) or np.linalg.matrix_rank(A, 1e-4) < len(lack):
            return
        delta = np.linalg.lstsq(A, t, rcond=None)[0]
        off = np.abs(A @ delta - t)
        if off.max() <= max(_ROUGH * float(np.abs(delta).max()), _NOISE):
            V[lack, j] += delta
            known[lack, j] = True
            return
        A, t = np.delete(A, off.argmax(), axis=0), np.delete(t, off.argmax())


def _step(
    points: Sequence[Point],
    V: Array,
    b: Array,
    xi: Array,
    known: Mask,
    units: NDArray[np.intp],
    kinks: list[Array],
    stray: float,
) -> Array:
    """(δ, β) of these ``units`` (n, width + 1) by (2), from all points that others do not hide and all kinks.

    But for those that are off by ``stray`` times as much as half of them.
    """
    each, count = V.shape[1] + 1, len(units) * (V.shape[1] + 1)
    rows, by_gradients, by_kinks = [np.eye(count, count + 1) * (_ROUND / _PRIOR)], [], []
    for p in points:
        fit = _fit(p, V, b, xi, known)
        if fit is not None:
            moved = np.column_stack([_least(fit.A, p.B.T)[1], np.zeros(len(p.g))])  # PB_j; a bias moves nothing
            by_gradients.append(np.column_stack([np.kron(fit.c[units], moved), fit.rest]) / np.linalg.norm(p.g))
    for i, (unit, H) in enumerate(zip(units, kinks)):
        mine = slice(i * each, (i + 1) * each)
        F = np.column_stack([H, np.ones(len(H))])
        F /= np.linalg.norm(F, axis=1, keepdims=True)
        off = F @ np.append(V[unit], b[unit])
        some = np.zeros((len(F), count + 1))
        some[:, mine], some[:, -1] = F, -off
        by_kinks.append(some[np.abs(off) <= _MINE])
        length = np.zeros((1, count + 1))
        length[0, mine] = np.append(V[unit], 0.0)
        rows.append(length)
    rows += [_usual(np.vstack(some), stray) for some in (by_gradients, by_kinks) if some]
    A = np.vstack(rows)
    return np.asarray(np.linalg.lstsq(A[:, :-1], A[:, -1], rcond=None)[0].reshape(len(units), each))


def _usual(rows: Array, stray: float) -> Array:
    """Equations without those that are off by so many times as much as half of them."""
    off = np.abs(rows[:, -1])
    if not len(off):  # a unit that no input turns off has no kinks
        return rows
    return np.asarray(rows[off <= stray * max(float(np.median(off)), _ROUND)])


def _least(A: Array, g: Array) -> tuple[Array, Array]:
    """Σ_l c_l A_l nearest to g (r,) or (r, n): c, and what is left."""
    size = np.maximum(np.linalg.norm(A, axis=1), 1e-300)
    A = A / size[:, None]
    found = np.linalg.lstsq(A.T, g, rcond=1e-9)[0]
    rest = g - A.T @ found
    return np.asarray((found.T / size).T), np.asarray(rest)
