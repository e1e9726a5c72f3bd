"""Rows that confirm a fit whose Fisher matrix is too large to form: a few random targets instead of all leverages.

With H = J(JᵀωJ)⁻¹Jᵀω and a random target ψ ~ N(0, I), the rest ρ = ψ − Hψ of its linear fit has variance 1 − h_i at
row i. At a saturated row, h_i = 1, it vanishes for every ψ: a handful of them, each a solve by conjugate gradients,
shows those rows exactly.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.fit.conjugate import Preconditioner, conjugate_gradients
from relumine.fit.leverage import Confirmation, carrying, residuals
from relumine.fit.passes import Model
from relumine.fit.precondition import precondition
from relumine.fit.projection import Linearisation, Projection, Unknowns, project
from relumine.fit.rows import Block, Kept, MemoryRows, Sums, chunk_rows

Numbers = NDArray[np.intp]


# At once; a row with h = 1/2 looks saturated to two of them with probability 0.0034², once in 80 000. Where a row does,
# as many more decide: of saturated rows nothing is ever left, they look so to all. With 784-2-1 two take two thirds of
# the time of three, and one as long as two.
_TARGETS, _MORE = 2, 2
_SATURATED = (
    3e-3  # |ρ|; at saturated rows single precision and the tolerance of the solves left 5e-4, (d, m) = (40, 20)
)
_TOLERANCE, _CAP = 1e-4, 400  # of a solve, relative; products, of which a tail of d+1 rows takes 150


def sketched_confirmation(rows: MemoryRows, model: Model, groups: Numbers | None = None) -> Confirmation | None:
    """Which rows confirm the fit ``model``; ``groups`` (n,): the same number for equal rows. None if no solve ends.

    Leave-one-out residuals are r/(1 − h) with the mean leverage: where this is needed there are many rows.
    """
    groups = np.arange(rows.n) if groups is None else np.unique(groups, return_inverse=True)[1]
    rng, at = np.random.default_rng(0), project(rows, model.shape, model.U)
    root = np.ones(rows.n) if rows.weight is None else np.sqrt(rows.weight)
    size, lin = np.sqrt(np.bincount(groups, root**2)), Linearisation(rows, at)
    apply = precondition(lin, np.zeros(len(at.U)))
    largest, squares_left = np.zeros((len(size), rows.outputs)), list[float]()
    for count in (_TARGETS, _MORE):
        psi = rng.normal(size=(count, rows.n, rows.outputs))
        fitted = _fitted(rows, lin, psi / root[:, None], apply)
        if fitted is None:
            return None
        rest = psi - root[:, None] * fitted
        squares_left.append(float(np.mean(rest**2)))
        # of copies of a row only the mean can be saturated
        common = np.abs([[np.bincount(groups, root * column) / size for column in target.T] for target in rest])
        largest = np.maximum(largest, common.max(axis=0).T)
        free = np.asarray((largest > _SATURATED).all(axis=1))
        if free.all():
            break
    alone = np.flatnonzero(~free[groups])
    left = residuals(rows, model) * root[:, None] / max(float(np.mean(squares_left)), 0.01)
    squares = left[free[groups]] ** 2
    return Confirmation(
        confirmed=int(free.sum()),
        alone=tuple(alone.tolist()),
        units=_on_the_smaller_side(rows, model.U, alone),
        left_out=np.sqrt(squares.sum(axis=0) / max(len(squares), 1)),
        carried=carrying(squares),
    )


def _fitted(rows: MemoryRows, lin: Linearisation, targets: Array, apply: Preconditioner) -> Array | None:
    """Jx (k, n, q) for the x with JᵀωJx = JᵀωY, for k targets Y (k, n, q) at once, by conjugate gradients."""
    at, (k, n, q) = lin.at, targets.shape
    beside = replace(rows, Y=np.ascontiguousarray(targets.transpose(1, 0, 2)).reshape(n, k * q), kept=(), step=0)
    pulled = beside.sum(partial(_pulled, model=at.model, q=q), len(at.U))
    U, A, tail = (part / rows.total for part in pulled)
    tau = np.zeros_like(tail)
    tau[:, rows.free] = tail[:, rows.free]
    b, none = Unknowns(U, A - at.C @ tail, tau), np.zeros(len(at.U))
    found = conjugate_gradients(lin, b, none, _TOLERANCE, _CAP, apply)
    if not found.converged:
        return None
    step = chunk_rows(max(rows.columns, k * len(at.U)))
    return np.concatenate([_change(rows.X[s : s + step], at, found.x) for s in range(0, n, step)], axis=1)


def _pulled(B: Block, model: Model, q: int) -> Sums:
    """JᵀωY of the targets side by side in Y: (k, m, d+1), (k, m, q) and (k, d+1, q)."""
    B = B._replace(kept=Kept(Z=B.hidden(model.U)))
    F = model.features(B)
    E = B.weigh(np.ascontiguousarray(B.Y.T)).reshape(-1, q, len(B.X))
    U = np.stack([model.pull(model.slopes(B), target, B.X) for target in E])
    return U, F @ np.swapaxes(E, 1, 2), B.X.T @ np.swapaxes(E, 1, 2)


def _change(X: Array, at: Projection, x: Unknowns) -> Array:
    """Σ_i A_i e'(z_i)(δu_i·x̃) + Σ_i δA_i e⊥(z_i) + δτᵀx̃ for several changes, (k, rows, q)."""
    Z, shape = X @ at.U.T, at.model.shape
    moved = (X @ x.U.reshape(-1, X.shape[1]).T).reshape(len(X), *x.U.shape[:2]).transpose(1, 0, 2)
    tau = x.tau - at.C.T @ x.A
    return np.asarray((shape.derivative(Z) * moved) @ at.A + shape.value(Z) @ x.A + X @ tau)


def _on_the_smaller_side(rows: MemoryRows, U: Array, alone: Numbers) -> tuple[int, ...]:
    """Units some of these rows are on the side of the kink with fewer rows, no more than they are."""
    if not alone.size:
        return ()
    step = chunk_rows(len(U))
    on = sum((rows.X[s : s + step] @ U.T > 0.0).sum(axis=0) for s in range(0, rows.n, step))
    minor, there = np.minimum(on, rows.n - on), rows.X[alone] @ U.T > 0.0
    behind = np.where(on <= rows.n - on, there, ~there).sum(axis=0)
    return tuple(np.flatnonzero((behind > 0) & (2 * behind >= minor)).tolist())
