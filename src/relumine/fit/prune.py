"""From an over-parameterised fit to a small one: leave out the unit that matters least, readjust, repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from relumine.fit.levenberg import INTERRUPTED, Fit, Schedule, minimise
from relumine.fit.projection import project
from relumine.fit.rows import Rows
from relumine.fit.sign_free import Shape
from relumine.run import Run

SEARCH = Schedule(tol=1e-8)
"""Over-parameterised: a little ridge, since equal units make the linear problem singular."""

POLISH = Schedule(steps=150, damping=1e-6, ridge=0.0, plateau=8, gain=1e-9, tol=1e-30)
"""At the final width: no regularisation, down to rounding error."""


def noisy_polish(values: int) -> Schedule:
    """The end of a fit to noisy data: gains far below a standard error, of N ``values``, are not worth a pass."""
    return replace(POLISH, plateau=2, gain=max(0.01 / values, POLISH.gain))


# a look, not a fit: a dozen steps tell whether the others can take over what the dropped unit did
_READJUST = Schedule(steps=12, damping=1e-4, ridge=1e-10, plateau=6, tol=1e-8)

_BACK = 4  # widths above the collapsed one that are tried: units lost to the tolerance of the search are few


def prune(rows: Rows, shape: Shape, fit: Fit, width: int, run: Run | None = None, stage: str = "") -> Fit:
    """Drop units, least costly first, until ``width`` are left; the others readjust where the loss noticed.

    Merged units need no special care: of two equal units either can go at no cost. Units whose absence the loss does
    not notice go together; where rounding hid that it does, half as many. If the run ends on the way, more are left.
    """
    while fit.at.U.shape[0] > width:
        before = fit.at.loss
        unnoticed = max(1.5 * before, _READJUST.tol * rows.norm2)
        out = fit.at.cheapest(fit.at.U.shape[0] - width, (unnoticed - before) / rows.total)
        at = project(rows, shape, np.delete(fit.at.U, out, axis=0), SEARCH.ridge)
        while len(out) > 1 and at.loss > 2.0 * unnoticed:
            out = out[: len(out) // 2]
            at = project(rows, shape, np.delete(fit.at.U, out, axis=0), SEARCH.ridge)
        losses = (*fit.history, at.loss / max(rows.norm2, np.finfo(float).tiny))
        fit = Fit(at, replace(fit.state, U=at.U, history=losses))
        if at.loss > 1.5 * before and fit.loss > _READJUST.tol:
            fit = minimise(rows, shape, at.U, _READJUST, run=run, stage=stage)
            if fit.reason == INTERRUPTED:
                break
    return fit


def polish(rows: Rows, shape: Shape, fit: Fit, run: Run | None = None) -> Fit:
    """To the bottom of the basin, without regularisation."""
    return minimise(rows, shape, fit.at.U, POLISH, run=run)


def path(
    rows: Rows,
    shape: Shape,
    fit: Fit,
    is_exact: Callable[[Fit], bool],
    run: Run | None = None,
    enough: Callable[[dict[int, Fit]], bool] = lambda fits: False,
    stride: int = 1,
    settled: float = 1.0,
) -> dict[int, Fit] | None:
    """Polished fits for decreasing widths; None if the run ended on the way.

    From a collapsed fit (loss at the tolerance of the search) the path first drops what costs nothing, then polishes
    downwards until a fit that was exact stops being so. From any other fit it goes down until ``enough`` of them are
    known, or to width 0, a share 1/``stride`` of the units at a time (1: unit by unit); what is left of those is not
    rounding error, so their last digits are not worth a pass: two steps that bring N log(loss) down by less than
    ``settled`` decide no width, and are the last.
    """
    wider = [fit]
    while fit.loss <= 10.0 * SEARCH.tol and fit.at.U.shape[0]:
        fit = prune(rows, shape, fit, fit.at.U.shape[0] - 1, run, "widths")
        wider.append(fit)
    collapsed = len(wider) > 1
    if collapsed and fit.loss > 10.0 * SEARCH.tol:
        wider.pop()
    ending = POLISH if collapsed else replace(POLISH, plateau=2, gain=settled / (rows.n * rows.outputs))
    fits: dict[int, Fit] = {}
    # a unit too weak for the search's tolerance may have gone too far: go back up until the polish is exact
    for candidate in wider[::-1][:_BACK]:
        fit = fits[candidate.at.U.shape[0]] = minimise(rows, shape, candidate.at.U, ending, run=run, stage="widths")
        if is_exact(fit) or not collapsed or fit.reason == INTERRUPTED:
            break
    if not is_exact(fit):
        fit = fits[min(fits)]
    while fit.at.U.shape[0]:
        if run is not None and run.over:
            return None
        was_exact, width = is_exact(fit), fit.at.U.shape[0]
        width -= 1 if collapsed or stride == 1 else max(width // stride, 1)
        smaller = prune(rows, shape, fit, width, run, "widths")
        fits[width] = fit = minimise(rows, shape, smaller.at.U, ending, run=run, stage="widths")
        if (was_exact and not is_exact(fit)) or (not collapsed and enough(fits)):
            break
    return None if fit.reason == INTERRUPTED else fits
