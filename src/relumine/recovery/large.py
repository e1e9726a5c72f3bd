"""More rows than the search needs, or than memory holds: search among a few, then let all of them decide.

A network is found from some thirty rows per parameter. If it is exact there, one pass over the other rows, none of them
used, shows whether it is exact everywhere. If what is left looks like noise, all rows together refine the parameters.
If the few rows do not show it, more of them are taken.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from math import ceil

import numpy as np
from numpy.typing import NDArray

from relumine.data.sources import Chunk, Samples, Source, Without
from relumine.fit.levenberg import INTERRUPTED, minimise
from relumine.fit.prune import noisy_polish
from relumine.fit.rows import Sums
from relumine.network import Network
from relumine.recovery.task import Task, whole_task
from relumine.results import Progress, ProgressCallback, Recovery, Stage, Status

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]

__all__ = ["as_source", "exact_everywhere", "first_rows", "refine", "whole_task"]

_PER_PARAMETER, _LEAST, _UNKNOWN_WIDTH = 30, 5000, 20_000
_ROW = 100.0  # a row is off if its error is so many times the rounding error allowed on average


def first_rows(d: int, q: int, width: int | None) -> int:
    """How many rows to begin with: thirty per parameter, or what finds a modest width."""
    if width is None:
        return max(_UNKNOWN_WIDTH, 50 * (d + 1))
    return max(_LEAST, ceil(_PER_PARAMETER * (width * (d + q) + (d + 1) * q) / q), 10 * (d + 1))


def exact_everywhere(source: Source, used: Numbers, found: Recovery, task: Task) -> Recovery:
    """An exact result from the rows ``used``, checked on all others in one pass; not exact there: not recovered."""
    began = time.perf_counter()
    rest = Without(source, used)
    # an output that looked affine was judged so at rounding error, and must be affine to that everywhere
    limit = np.where(task.bent, task.rounding, 256.0 * np.finfo(float).eps)
    size = np.where(task.bent | (task.spread > 0.0), task.units, 0.0)
    part = partial(_errors, net=found.network, units=task.units, limit=_ROW * limit, size=size / task.units)
    n, squares, off = rest.reduce(part)
    rms = np.sqrt(squares / max(float(n), 1.0))
    relative = float(np.max(rms * task.units / np.where(task.spread > 0.0, task.spread, task.units)))
    note = f"found from {len(used)} rows, then checked on the other {int(n)}"
    stages = (*found.stages, Stage("all rows", time.perf_counter() - began, None, note))
    search = replace(found.search, rows_searched=len(used), rows=len(used) + int(n))
    if float(off) > 0.0 or (rms > 10.0 * limit).any():
        message = (
            f"The network is exact on the {len(used)} rows it was found from, but not on {int(off)} of the other "
            f"{int(n)}: something happens there that those rows do not show."
        )
        certificate = replace(found.certificate, residual=relative, rows=int(n), proves="", does_not_prove="")
        return replace(
            found, status=Status.NOT_RECOVERED, message=message, certificate=certificate, stages=stages, search=search
        )
    message = f"{found.network.m} units; relative error {relative:.1e} on {int(n)} rows never used in the fit."
    certificate = replace(found.certificate, residual=relative, rows=int(n), notes=(*found.certificate.notes, note))
    return replace(found, message=message, certificate=certificate, stages=stages, search=search)


def _errors(chunk: Chunk, net: Network, units: Array, limit: Array, size: Array) -> Sums:
    """Rows, Σ r² (q,) in the task's units, and how many rows are off in some output.

    A row may be off by ``limit`` (q,) times ``size`` (q,) or, where that is larger, times what is predicted.
    """
    if not len(chunk.Y):
        return np.zeros(()), np.zeros(len(units)), np.zeros(())
    predicted = net(np.asarray(chunk.X, dtype=np.float64)).reshape(chunk.Y.shape) / units
    R = predicted - chunk.Y / units
    off = ~(np.abs(R) <= limit * np.maximum(size, np.abs(predicted))).all(axis=1)  # also where R is not a number
    return np.array(float(len(R))), np.einsum("ij,ij->j", R, R), np.array(float(off.sum()))


def refine(task: Task, net: Network, progress: ProgressCallback | None, deadline: float) -> tuple[Array, bool]:
    """Directions (m, d+1) of a network, in the task's white coordinates, after all rows have had their say.

    Also whether the time limit or the user ended it.
    """
    began = time.perf_counter()
    inside, schedule = task.white.redo(net), noisy_polish(task.values)

    def report(iteration: int, loss: float) -> None:
        if time.perf_counter() > deadline:
            raise KeyboardInterrupt
        if progress is not None:
            progress(Progress("all rows", iteration, loss, net.m, time.perf_counter() - began))

    fit = minimise(task.rows, task.shape, np.column_stack([inside.W, inside.b]), schedule, progress=report)
    return fit.at.U, fit.reason == INTERRUPTED


def as_source(samples: Samples) -> Source:
    """Arrays are a source."""
    return samples
