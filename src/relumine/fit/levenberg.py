"""Levenberg–Marquardt in the directions, the linear parameters projected out at every step.

A minimisation is a state; :func:`step` makes the next one of it, and :func:`minimise` is the loop around that: it asks
the run whether to go on, tells how far it is, and notes every state in the run's journal. A checkpoint is a state.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from relumine.arrays import Array, unit_rows
from relumine.fit.projection import Linearisation, Projection, project
from relumine.fit.rows import Rows
from relumine.fit.sign_free import Shape
from relumine.fit.solvers import Solver, choose
from relumine.run import Run

_ROUNDING = 1e-24  # relative loss: residuals of 10⁻¹² times y, where sums of squares are rounding
_BOTTOM = 1e-29  # relative loss: residuals of 3·10⁻¹⁵ times y, a dozen roundings; a step there brings nothing
_LAST = 0.1  # share of the loss below which a step must bring it at the level of rounding, or it was the last
_TRIES = 16  # dampings in one step: each is at least twice the last, so 2^136 times the first, which moves nothing
_CONVERGED = 1e-14  # share of the loss that a step must promise; less is below the rounding of the loss itself
_LEAST = 1e-14  # damping, relative to the scale of a unit: below it the system is as undamped as doubles can tell
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
class State:
    """Where a minimisation is, and all that it needs to go on.

    ``U`` (m, d+1): directions; ``damping`` λ and its next ``growth``; ``history``: relative loss at the beginning and
    after each step; ``products``: passes of conjugate gradients so far; ``reason``: why it ended, empty while it has
    not.
    """

    U: Array
    damping: float
    growth: float
    history: tuple[float, ...]
    products: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Fit:
    """A state and the projection at its directions."""

    at: Projection
    state: State

    @property
    def history(self) -> tuple[float, ...]:
        """Relative loss after each step."""
        return self.state.history

    @property
    def reason(self) -> str:
        """Why it stopped."""
        return self.state.reason

    @property
    def loss(self) -> float:
        """Loss over that of the model without hidden units."""
        return self.state.history[-1]

    def ended(self, reason: str) -> Fit:
        """The same fit with the reason why it goes no further."""
        return Fit(self.at, replace(self.state, reason=reason))


def minimise(
    rows: Rows,
    shape: Shape,
    U: Array,
    schedule: Schedule | None = None,
    *,
    run: Run | None = None,
    stage: str = "",
    solver: Callable[[Linearisation], Solver] = choose,
) -> Fit:
    """Minimise the loss over the directions, starting from U (m, d+1).

    With a ``run``: until it is over (the reason is then INTERRUPTED), from the state that its journal holds, if there
    is one; steps are reported under the name of the ``stage``, if it has one.
    """
    schedule = schedule or Schedule()
    journal = None if run is None else run.journal
    state = None if journal is None else journal.next(U)
    began = time.perf_counter()
    fit = _begin(rows, shape, U, schedule) if state is None else _resume(rows, shape, state, schedule)
    while not fit.reason:
        fit = step(rows, shape, fit, schedule, run=run, solver=solver)
        if journal is not None:
            # an interrupted minimisation is one that will go on
            journal.note(replace(fit.state, reason="") if fit.reason == INTERRUPTED else fit.state)
            if fit.reason == INTERRUPTED:
                journal.write()
        if run is not None and stage and not fit.reason:
            run.report(stage, len(fit.history) - 1, fit.loss, len(U), time.perf_counter() - began)
    return fit


def step(
    rows: Rows,
    shape: Shape,
    fit: Fit,
    schedule: Schedule,
    *,
    run: Run | None = None,
    solver: Callable[[Linearisation], Solver] = choose,
) -> Fit:
    """One step: a fit of smaller loss, or the same fit with the reason why there is none.

    (H + λ diag(s) ⊗ I) δ = g, with more damping λ until the loss falls; the gain over what the linear model promised
    sets the next λ (Nielsen's rule). A step that is under way when the run ends is dropped: a resumed run takes it.
    """
    at, state = fit.at, fit.state
    reason = _finished(fit, schedule) or (INTERRUPTED if run is not None and run.over else "")
    if reason:
        return fit.ended(reason)
    lin = Linearisation(rows, at, run=run)
    solve = solver(lin)
    scale = lin.scale + schedule.floor * lin.scale.mean() + np.finfo(float).tiny
    lam, growth, products = state.damping, state.growth, state.products
    # at the level of rounding error the loss cannot be expected to fall: one try
    reason = "no further decrease" if fit.loss > _ROUNDING else "rounding error"
    for _ in range(_TRIES if fit.loss > _ROUNDING else 1):
        solution = solve(lam * scale)
        if run is not None and run.over:
            return fit.ended(INTERRUPTED)
        if solution is not None and solution.predicted * rows.total <= _CONVERGED * at.loss:
            reason = "converged"
            break
        if solution is not None and np.isfinite(solution.step).all():
            products += solution.products
            trial = project(rows, shape, _normalised(at.U + solution.step, shape), schedule.ridge)
            if trial.loss < at.loss:
                gain = (at.loss - trial.loss) / max(solution.predicted * rows.total, np.finfo(float).tiny)
                lam = max(lam * max(0.2, 1.0 - (2.0 * min(gain, 1.0) - 1.0) ** 3), _LEAST)
                return Fit(trial, State(trial.U, lam, 2.0, (*state.history, trial.loss / _size(rows)), products))
        lam, growth = lam * growth, growth * 2.0
    return Fit(at, State(at.U, lam, growth, state.history, products, reason))


def _finished(fit: Fit, schedule: Schedule) -> str:
    """The reason why there is nothing more to do; empty if there is."""
    history, plateau = fit.history, schedule.plateau
    if len(history) > schedule.steps:
        return "step limit"
    if fit.loss <= schedule.tol:
        return "reached the tolerance"
    if fit.loss <= _BOTTOM or (len(history) > 1 and _LAST * history[-2] < fit.loss <= _ROUNDING):
        return "rounding error"
    if not fit.at.U.size:
        return "no units"
    if len(history) > plateau and fit.loss > (1.0 - schedule.gain) * history[-1 - plateau]:
        return "plateau"
    return ""


def _begin(rows: Rows, shape: Shape, U: Array, schedule: Schedule) -> Fit:
    at = project(rows, shape, _normalised(U, shape), schedule.ridge)
    return Fit(at, State(at.U, schedule.damping, 2.0, (at.loss / _size(rows),)))


def _resume(rows: Rows, shape: Shape, state: State, schedule: Schedule) -> Fit:
    return Fit(project(rows, shape, state.U, schedule.ridge), state)


def _size(rows: Rows) -> float:
    """The loss of the model without hidden units."""
    return max(rows.norm2, np.finfo(float).tiny)


def _normalised(U: Array, shape: Shape) -> Array:
    """Rows of length 1 where the scale does not matter."""
    return unit_rows(U) if shape.homogeneous else U
