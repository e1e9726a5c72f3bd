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

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.balls import Point
from relumine.extraction.deep.sums import FITS, either_side

Mask = NDArray[np.bool_]

# Share of the gradients that may say something else of a weight. In the third layer of 100-16×8-1, whose first layer
# was known to 2e-9, one of 42 was off by more than the others.
_FEW = 0.1
# How far off t_j may be, over the largest δ, and over c. In a trained 100-16×8-1 one in ten was off by 2e-4 of δ, where
# another weight of a unit was 3e-5 off; (2) then left 2e-8.
_ROUGH, _NOISE = 5e-4, 1e-5
_STEPS, _UNKNOWN = 4, 2000  # of (2); unknowns up to which they are taken
_STRAY, _ROUND = 5.0, 1e-9  # how far off an equation of (2) may be, over half of them; and what is rounding


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
        for _ in range(_STEPS):
            step = _step(points, V, b, xi, seen, units, [kinks[i] for i in units.tolist()])
            V[units], b[units] = V[units] + step[:, :-1], b[units] + step[:, -1]
    return V, b, seen


def _sums(points: Sequence[Point], V: Array, b: Array, xi: Array, known: Mask) -> dict[int, list[Array]]:
    """For each unit j in front with an open weight, rows (c_1 … c_m, t_j) of the points that tell."""
    columns = np.flatnonzero(~known.all(axis=0))
    rows: dict[int, list[Array]] = {int(j): [] for j in columns}
    for p in points:
        lacking = columns[p.moves[columns]]
        active = (xi * (V @ p.h + b) > 0.0) | either_side(p, known)
        A = np.vstack([V[active] @ p.B, p.B[lacking]])
        if not len(lacking) or len(A) >= len(p.g):
            continue
        found, rest = _fit(A, p.g)
        if np.linalg.norm(rest) <= FITS * np.linalg.norm(p.g):
            strength = np.zeros(len(b))
            strength[active] = found[: active.sum()]
            for j, total in zip(lacking, found[active.sum() :]):
                rows[int(j)].append(np.append(strength, total))
    return rows


def solved(V: Array, known: Mask, j: int, rows: Array) -> None:
    """Σ_l c_l δ_lj = t for the open weights of unit j in front, rows (c, t); known once rows agree, but for few.

    Those of units that are on at too few points stay open, and these points are left out for the others.
    """
    lack = np.flatnonzero(~known[:, j])
    rows = rows / np.maximum(np.linalg.norm(rows[:, :-1], axis=1, keepdims=True), 1e-300)
    while len(lack) and (len(rows) <= len(lack) or np.linalg.matrix_rank(rows[:, lack], 1e-6) < len(lack)):
        fewest = (rows[:, lack] != 0.0).sum(axis=0).argmin()
        rows = rows[rows[:, lack[fewest]] == 0.0]
        lack = np.delete(lack, fewest)
    A, t = rows[:, lack], rows[:, -1]
    for _ in range(1 + int(_FEW * len(A)) if len(lack) else 0):
        if len(A) <= len(lack) or np.linalg.matrix_rank(A, 1e-6) < len(lack):
            return
        delta = np.linalg.lstsq(A, t, rcond=None)[0]
        off = np.abs(A @ delta - t)
        if off.max() <= max(_ROUGH * float(np.abs(delta).max()), _NOISE):
            V[lack, j] += delta
            known[lack, j] = True
            return
        A, t = np.delete(A, off.argmax(), axis=0), np.delete(t, off.argmax())


def _step(
    points: Sequence[Point], V: Array, b: Array, xi: Array, known: Mask, units: NDArray[np.intp], kinks: list[Array]
) -> Array:
    """(δ, β) of these ``units`` (n, width + 1) by (2), from all points that others do not hide and all kinks."""
    width = V.shape[1]
    by_gradients, by_kinks, lengths = [], [], []
    for p in points:
        on = (xi * (V @ p.h + b) > 0.0) | either_side(p, known)
        A = np.vstack([V[on] @ p.B, p.B[~known.all(axis=0) & p.moves]])
        if len(A) >= len(p.g):
            continue
        size, (found, rest) = float(np.linalg.norm(p.g)), _fit(A, p.g)
        if np.linalg.norm(rest) <= FITS * size:
            strength = np.zeros(len(b))
            strength[on] = found[: on.sum()]
            moved = np.column_stack([_fit(A, p.B.T)[1], np.zeros(len(p.g))])  # PB_j; a bias moves nothing
            by_gradients.append(np.column_stack([np.kron(strength[units], moved), rest]) / size)
    for i, (unit, H) in enumerate(zip(units, kinks)):
        F = np.column_stack([H, np.ones(len(H))])
        F /= np.linalg.norm(F, axis=1, keepdims=True)
        rows = np.zeros((len(F), len(units) * (width + 1) + 1))
        rows[:, i * (width + 1) : (i + 1) * (width + 1)] = F
        rows[:, -1] = -(F @ np.append(V[unit], b[unit]))
        by_kinks.append(rows)
        length = np.zeros((1, rows.shape[1]))
        length[0, i * (width + 1) : (i + 1) * (width + 1) - 1] = V[unit]
        lengths.append(length)
    rows = np.vstack([np.vstack(lengths), *[_usual(np.vstack(some)) for some in (by_gradients, by_kinks) if some]])
    return np.asarray(np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=1e-12)[0].reshape(len(units), -1))


def _usual(rows: Array) -> Array:
    """Equations without those that are off by far more than others."""
    off = np.abs(rows[:, -1])
    return rows[off <= _STRAY * max(float(np.median(off)), _ROUND)]


def _fit(A: Array, g: Array) -> tuple[Array, Array]:
    """Σ_l c_l A_l nearest to g (r,) or (r, n): c, and what is left."""
    size = np.maximum(np.linalg.norm(A, axis=1), 1e-300)
    A = A / size[:, None]
    found = np.linalg.lstsq(A.T, g, rcond=1e-9)[0]
    rest = g - A.T @ found
    return np.asarray((found.T / size).T), np.asarray(rest)
