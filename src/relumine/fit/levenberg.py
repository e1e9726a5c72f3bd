"""Levenberg–Marquardt in the directions, the linear parameters projected out at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relumine.fit.journal import Entry, current
from relumine.fit.projection import Linearisation, Projection, project
from relumine.fit.rows import Rows
from relumine.fit.sign_free import Shape
from relumine.fit.solvers import Solver, choose

Array = NDArray[np.float64]

__all__ = ["INTERRUPTED", "Fit", "Schedule", "minimise"]

_ROUNDING = 1e-24  # relative loss
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Schedule:
    """When to stop and how to damp.

    ``damping``: initial λ; small values take bold steps, which find the way out of poor regions more often than
    careful ones. ``floor``: share of the mean unit's scale added to every unit's, so that units with a ≈ 0 do not
    fly off. ``plateau``: give up after so many steps without a gain of 1 % — the loss often falls slowly for thirty
    steps and then collapses. ``tol``: relative loss that counts as reached.
    """

    steps: int = 200
    damping: float = 1e-3
    floor: float = 1e-2
    ridge: float = 1e-10
    plateau: int = 40
    gain: float = 1e-2
    tol: float = 1e-10


@dataclass(frozen=True)
class Fit:
    """Where the minimisation ended: the projection there, the relative loss after each step, and why it stopped."""

    at: Projection
    history: tuple[float, ...]
    reason: str
    products: int = 0
    settings: Schedule = field(default_factory=Schedule)

    @property
    def loss(self) -> float:
        """Loss over that of the model without hidden units."""
        return self.history[-1]


def minimise(
    rows: Rows,
    shape: Shape,
    U: Array,
    schedule: Schedule | None = None,
    *,
    solver: Callable[[Linearisation], Solver] = choose,
    progress: Callable[[int, float], None] | None = None,
) -> Fit:
    """Minimise the loss over the directions, starting from U (m, d+1)."""
    schedule = schedule or Schedule()
    norm2 = max(rows.norm2, np.finfo(float).tiny)
    journal = current()
    entry = None if journal is None else journal.next(U)
    at = project(rows, shape, _normalised(U, shape) if entry is None else entry.U, schedule.ridge)
    if entry is not None and entry.reason:
        return Fit(at, tuple(entry.history), entry.reason, entry.products, schedule)
    lam, growth, history, products = schedule.damping, 2.0, [at.loss / norm2], 0
    if entry is not None:
        lam, growth, history, products = entry.damping, entry.growth, list(entry.history), entry.products
    if journal is not None:
        entry = journal.begin(Entry(U, at.U, lam, growth, history, products))
    reason = "step limit"
    try:
        for iteration in range(len(history) - 1, schedule.steps):
            if history[-1] <= schedule.tol:
                reason = "reached the tolerance"
                break
            if not at.U.size:
                reason = "no units"
                break
            if len(history) > schedule.plateau and history[-1] > (1.0 - schedule.gain) * history[-1 - schedule.plateau]:
                reason = "plateau"
                break
            lin = solve = None  # what they remember goes before the next is made
            lin = Linearisation(rows, at)
            solve = solver(lin)
            scale = lin.scale + schedule.floor * lin.scale.mean() + np.finfo(float).tiny
            # at the level of rounding error the loss cannot be expected to fall: one try
            for _ in range(16 if history[-1] > _ROUNDING else 1):
                trial, solution = None, solve(lam * scale)
                if solution is not None and solution.predicted * rows.total <= 1e-14 * at.loss:
                    reason = "converged"
                    break
                if solution is not None and np.isfinite(solution.step).all():
                    products += solution.products
                    trial = project(rows, shape, _normalised(at.U + solution.step, shape), schedule.ridge)
                if solution is not None and trial is not None and trial.loss < at.loss:
                    gain = (at.loss - trial.loss) / max(solution.predicted * rows.total, np.finfo(float).tiny)
                    lam = max(lam * max(0.2, 1.0 - (2.0 * min(gain, 1.0) - 1.0) ** 3), 1e-14)
                    growth = 2.0
                    break
                lam, growth, trial = lam * growth, growth * 2.0, None
            else:
                reason = "rounding error" if history[-1] <= _ROUNDING else "no further decrease"
            if trial is None:
                break
            at = trial
            history.append(at.loss / norm2)
            if journal is not None and entry is not None:
                entry.U, entry.damping, entry.growth, entry.products = at.U, lam, growth, products
                journal.note()
            if progress is not None:
                progress(iteration + 1, history[-1])
    except KeyboardInterrupt:  # what was reached so far is worth keeping
        reason = INTERRUPTED
    if journal is not None and entry is not None:
        entry.reason = "" if reason == INTERRUPTED else reason
        journal.note(now=reason == INTERRUPTED)
    return Fit(at, tuple(history), reason, products, schedule)


def _normalised(U: Array, shape: Shape) -> Array:
    """Rows of length 1 where the scale does not matter."""
    if not shape.homogeneous:
        return U
    norms = np.linalg.norm(U, axis=1, keepdims=True)
    return np.asarray(U / np.where(norms > 0.0, norms, 1.0))
