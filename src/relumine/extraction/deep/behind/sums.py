"""Which units are on: a gradient of the box behind known layers is a sum over the units of the next layer that are.

G = Σ_j c_j V_j, with c_j = 0 for the units that are off. If fewer units are on than the r directions in which h moves,
no other set of so few gives G there, except by accident. In small layers all signs are tried at once, and each point
rules out those by which so few are on that do not give it. In others the smallest Σ|c_j| finds the set; that it is so
sparse proves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.behind.balls import EDGE, Point

Mask = NDArray[np.bool_]

FITS = 1e-5  # departure from a gradient that is none, over its size: measured 1e-9 … 1e-7 where the units are right
NOTHING = 1e-4  # |c_j| over the largest that is none: measured 1e-9 … 1e-6 for units that are off
_VOTES, _AGREE = 3, 0.9  # points that must tell a sign; share of them that must agree
_ON = 2  # points at which a unit must count: one that is off at all of them may be none of this layer's
_ALL = 10  # units up to which all signs are tried: 1024
# Share of the points that may contradict signs. In the fourth layer of 784-8×8-1 two of 251 gradients were off by 2e-5
# and ruled out the right ones.
_STRAY = 0.02
_BATCH = 8192  # sets of units whose fits are computed at once


def told_by(
    points: list[Point], V: Array, c: Array, known: Mask, votes: dict[int, Array | None]
) -> tuple[Array | None, Mask]:
    """Signs, and which of them are open; None where no signs fit. ``votes``: of points that were asked before."""
    if len(c) <= _ALL:
        return _tried(points, V, c, known, np.zeros(len(c)))
    xi, open_ = voted(points, V, c, known, votes)
    if xi is None or not 0 < open_.sum() <= _ALL:
        return xi, open_
    tried, still = _tried(points, V, c, known, np.where(open_, 0.0, xi))
    return (xi, open_) if tried is None else (tried, still & open_)


def _tried(points: list[Point], V: Array, c: Array, known: Mask, fixed: Array) -> tuple[Array | None, Mask]:
    """The signs that most points show and few contradict, and which of them are open; None if all are ruled out.

    ``fixed``: those that are known, 0 for others. A point shows signs by which fewer units are on than it has
    directions, if these units give its gradient and each of them counts. More than a few points rule out those by
    which so few are on that do not give it. Weights that are not known add the units in front that they belong to, and
    the units whose side depends on them may be on or off.
    """
    m, free = len(c), np.flatnonzero(fixed == 0.0)
    xi = np.tile(fixed, (1 << len(free), 1))
    xi[:, free] = np.where((np.arange(len(xi))[:, None] >> np.arange(len(free))) & 1, 1.0, -1.0)
    shown, wrong = np.zeros(len(xi), dtype=np.intp), np.zeros(len(xi), dtype=np.intp)
    for p in sorted(points, key=lambda p: -len(p.g)):
        more, either = added(p, known)
        on = (xi * np.sign(V @ p.h + c) > 0.0) | either
        few = np.flatnonzero(on.sum(axis=1) + len(more) < len(p.g))
        sets, which = np.unique(on[few], axis=0, return_inverse=True)
        fits, loud = fitted(V @ p.B, p.g, sets, more)
        shown[few] += (fits & ((loud == sets) | either).all(axis=1))[which.ravel()]
        wrong[few] += ~fits[which.ravel()]
        left = wrong <= _STRAY * len(points)
        xi, shown, wrong = xi[left], shown[left], wrong[left]
        if not len(xi):
            return None, np.ones(m, dtype=bool)
    best = int(shown.argmax())
    rivals = (xi[shown > shown[best] // _VOTES] != xi[best]).any(axis=0)
    counts = np.zeros(m, dtype=np.intp)  # points at which each unit is on, and counts
    for p in points:
        more, either = added(p, known)
        on = (xi[best] * np.sign(V @ p.h + c) > 0.0) | either
        if on.sum() + len(more) < len(p.g):
            counts += fitted(V @ p.B, p.g, on[None], more)[1][0] & on & ~either
    return xi[best], np.asarray(rivals | (shown[best] < _VOTES) | (counts < _ON))


def added(p: Point, known: Mask) -> tuple[Array, Mask]:
    """The rows of B of units in front with a weight that is not known; the units whose side depends on such a one."""
    return p.B[~known.all(axis=0) & p.moves], either_side(p, known)


def either_side(p: Point, known: Mask) -> Mask:
    """The units whose side depends on weights that are not known."""
    return np.asarray((~known & (p.h > EDGE * np.linalg.norm(p.h))).any(axis=1))


def fitted(A: Array, g: Array, sets: Mask, more: Array, off: float = FITS) -> tuple[Mask, Mask]:
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
        fits[at : at + _BATCH] = np.linalg.norm(g - c @ A, axis=1) <= off * length
        loud[at : at + _BATCH] = np.abs(c) > NOTHING * np.abs(c).max(axis=1, initial=1e-300, keepdims=True)
    return fits, loud[:, :m]


def voted(
    points: list[Point], V: Array, c: Array, known: Mask, votes: dict[int, Array | None]
) -> tuple[Array | None, Mask]:
    """Signs by the smallest Σ|c_j| of each point, and which of them are open; None if no point tells.

    ``votes``: of points that were asked before, by their number.
    """
    plus, minus, on = np.zeros(len(c)), np.zeros(len(c)), np.zeros(len(c))
    for i, p in enumerate(points):
        if i not in votes:
            more, either = added(p, known)
            vote = _vote(np.vstack([V @ p.B, more]), p.g)
            votes[i] = None if vote is None else np.where(either, 0.0, vote[: len(c)])
        vote = votes[i]
        if vote is not None:
            side = np.sign(V @ p.h + c)
            plus += vote * side > 0.0
            minus += vote * side < 0.0
            on += vote > 0.0
    both = plus + minus
    if not both.any():
        return None, np.ones(len(c), dtype=bool)
    return np.where(plus > minus, 1.0, -1.0), (both < _VOTES) | (np.maximum(plus, minus) < _AGREE * both) | (on < _ON)


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
    loud = x > NOTHING * x.max()
    if loud.sum() > k - 2:
        return None
    vote = np.zeros(m)
    vote[use] = np.where(loud, 1.0, -1.0)
    return vote
