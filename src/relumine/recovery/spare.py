"""Units of an exact fit that it can do without: fewer are visible than were asked for, or one has split in two."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from relumine.fit.levenberg import Fit, minimise
from relumine.fit.passes import sides
from relumine.fit.prune import SEARCH, polish, prune
from relumine.recovery.task import MemoryTask
from relumine.run import Run

_COLLAPSE = replace(SEARCH, steps=40, damping=1e-4, plateau=8, gain=0.5)  # a short look whether the loss collapses
_IDLE_UNIT = 1e-6  # share of the largest unit's square: leaving out a unit that costs less is always tried
_BETWEEN = 100.0  # kinks that no sample lies between are no further apart than this over the number of rows


def without_spare_units(task: MemoryTask, fit: Fit, run: Run) -> Fit:
    """An exact fit without units that do nothing.

    A unit may also have split in two whose kinks no sample lies between; dropping either then costs something at
    first, so what counts is whether the rest collapses again.
    """
    rows, shape = task.rows, task.shape
    while len(fit.at.U) and _may_spare_one(task, fit):
        smaller = prune(rows, shape, fit, len(fit.at.U) - 1, run)
        smaller = minimise(rows, shape, smaller.at.U, _COLLAPSE, run=run)
        if smaller.loss > 10.0 * _COLLAPSE.tol:
            break
        smaller = polish(rows, shape, smaller, run)
        if not task.is_exact(smaller.at.squares):
            break
        fit = smaller
    return fit


def _may_spare_one(task: MemoryTask, fit: Fit) -> bool:
    """Whether a look at fewer units is worth its time, half of that of (10,5): some unit may be redundant.

    Two kinks that no sample lies between are at an angle of some π/n; where every unit costs more than that, none is.
    Of units |z| the rows themselves tell: all but as many as can be met whatever they say, d+1, lie on the same sides
    of two kinks, or on one side of one.
    """
    rows, costs = task.rows, fit.at.drop_costs()
    least = float(costs.min() / (fit.at.A**2).sum(axis=1).max())
    if least > (_BETWEEN / rows.n) ** 2:
        return False
    if task.shape.absolute is None or least < _IDLE_UNIT:
        return True
    (alike,) = rows.sum(partial(sides, U=fit.at.U), len(fit.at.U) + 1)
    between = (rows.n - np.abs(alike[np.triu_indices(len(alike), 1)])) / 2.0
    return bool(between.min() <= rows.columns)
