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

from relumine.arrays import Array
from relumine.data.holdout import different_rows
from relumine.data.sources import Chunk, Source, count, take
from relumine.data.views import without
from relumine.fit.levenberg import INTERRUPTED, minimise
from relumine.fit.projection import project
from relumine.fit.prune import noisy_polish
from relumine.fit.rows import Sums
from relumine.network import Network
from relumine.recovery.evidence import AllRows, Evidence, Looked, rms
from relumine.recovery.signs import settle
from relumine.recovery.story import Case, Problem, close, shared, solve
from relumine.recovery.task import MemoryTask, whole_task
from relumine.results import InvalidInput, Stage, Status
from relumine.run import Run

Numbers = NDArray[np.intp]


_PER_PARAMETER, _LEAST, _UNKNOWN_WIDTH = 30, 5000, 20_000  # the first is six times what exact data need
_MORE = 4  # times as many rows in the next sample: few rounds, and the last one is most of the work
_NOISIER = 2.0  # times the noise of the few rows: all rows have that only if some of them belong to something else
_ROW = 100.0  # a row is off if its error is so many times the rounding error allowed on average


def first_rows(d: int, q: int, width: int | None) -> int:
    """How many rows to begin with: thirty per parameter, or what finds a modest width."""
    if width is None:
        return max(_UNKNOWN_WIDTH, 50 * (d + 1))
    return max(_LEAST, ceil(_PER_PARAMETER * (width * (d + q) + (d + 1) * q) / q), 10 * (d + 1))


def from_few(source: Source, limit: int, problem: Problem, run: Run) -> Case:
    """Search among a few rows, at most ``limit``, until all of them agree."""
    n, size = count(source), min(first_rows(source.d, source.q, problem.width), limit)
    while True:
        case, numbers = _sampled(source, size, n, limit, problem, run)
        if case is None:  # these few rows are special
            size = min(_MORE * size, limit)
            continue
        if size >= n:
            return case
        status = case.status
        if case.evidence.interrupted and status is not Status.EXACT:
            return _looked(case, Looked(size, n))
        if status is Status.EXACT:
            case = _checked(source, case, numbers)
            if case.status is Status.EXACT:
                return case
        # more rows show weaker units, so with the width unknown noise is no reason to stop
        elif status is Status.NOISY and (problem.width is not None or size >= limit):
            return _refined(source, case, numbers, problem, run) or _stopped(case, Looked(size, n))
        if size >= limit:
            return _looked(case, Looked(size, n, memory=True))
        if run.over:
            return _stopped(case, Looked(size, n))
        if case.search.hopeless and case.search.plenty(case.net.m):
            return _looked(case, Looked(size, n))
        size = limit if status is Status.NOISY else min(_MORE * size, limit)


def _sampled(source: Source, size: int, n: int, limit: int, problem: Problem, run: Run) -> tuple[Case | None, Numbers]:
    """The case of so many random rows, None if they show less than all rows would; and their numbers."""
    began = time.perf_counter()
    few, numbers = take(source, size, run.rng)
    sampled = Stage("sample", time.perf_counter() - began, None, f"{size} of {n} rows")
    try:
        case = solve(few, problem, run)
    except InvalidInput as error:  # these few rows may be special: a column that happens to be constant, say
        if size >= n:
            raise
        if size >= limit:
            raise InvalidInput(
                f"{error} (among {size} of {n} rows, as many as memory= allows)", argument=error.argument
            ) from None
        return None, numbers
    return replace(case, stages=(sampled, *case.stages), evidence=_numbered(case.evidence, numbers)), numbers


def _numbered(e: Evidence, numbers: Numbers) -> Evidence:
    """The evidence with rows numbered as they are in the source."""
    if e.confirmations is None or not e.confirmations.alone:
        return e
    alone = tuple(numbers[list(e.confirmations.alone)].tolist())
    return replace(e, confirmations=replace(e.confirmations, alone=alone))


def _looked(case: Case, looked: Looked) -> Case:
    return replace(case, evidence=replace(case.evidence, looked=looked))


def _stopped(case: Case, looked: Looked) -> Case:
    """What the few rows have shown, of a run that ended on its way through all of them."""
    return replace(case, evidence=replace(case.evidence, looked=looked, interrupted=True))


def _checked(source: Source, case: Case, numbers: Numbers) -> Case:
    """An exact case of the rows of these ``numbers`` with the evidence of all others, in one pass."""
    began, task = time.perf_counter(), case.task
    assert isinstance(task, MemoryTask)
    used = np.delete(numbers, task.aside)
    # an output that looked affine was judged so at rounding error, and must be affine to that everywhere
    limit = np.where(task.bent, task.rounding, 256.0 * np.finfo(float).eps)
    size = np.where(task.bent | (task.spread > 0.0), task.scale, 0.0)
    part = partial(_errors, net=case.net, scale=task.scale, limit=_ROW * limit, size=size / task.scale)
    n, squares, off = without(source, used).reduce(part)
    spread = np.sqrt(squares / max(float(n), 1.0))
    error = float(np.max(spread * task.scale / np.where(task.spread > 0.0, task.spread, task.scale)))
    together = bool((spread > 10.0 * limit).any())  # none is far off, but all are off a little
    different = different_rows(len(used) + int(n), task.samples.X)
    found = AllRows(int(n), error, max(int(off), int(together)), few=len(used), different=different)
    note = f"found from {len(used)} rows, then checked on the other {int(n)}"
    return replace(
        case,
        evidence=replace(case.evidence, all_rows=found),
        stages=(*case.stages, Stage("all rows", time.perf_counter() - began, None, note)),
        notes=(*case.notes, note),
        record=replace(case.record, rows_searched=len(used), rows=len(used) + int(n)),
    )


def _errors(chunk: Chunk, net: Network, scale: Array, limit: Array, size: Array) -> Sums:
    """Rows, Σ r² (q,) on the task's scale, and how many rows are off in some output.

    A row may be off by ``limit`` (q,) times ``size`` (q,) or, where that is larger, times what is predicted.
    """
    if not len(chunk.Y):
        return np.zeros(()), np.zeros(len(scale)), np.zeros(())
    predicted = net(np.asarray(chunk.X, dtype=np.float64)).reshape(chunk.Y.shape) / scale
    R = predicted - chunk.Y / scale
    off = ~(np.abs(R) <= limit * np.maximum(size, np.abs(predicted))).all(axis=1)  # also where R is not a number
    return np.array(float(len(R))), np.einsum("ij,ij->j", R, R), np.array(float(off.sum()))


def _refined(source: Source, case: Case, numbers: Numbers, problem: Problem, run: Run) -> Case | None:
    """What a few rows show up to noise, refined on all of them; None if the run ended before that began."""
    began, small = time.perf_counter(), case.task
    assert isinstance(small, MemoryTask)
    task = shared(whole_task(source, small, numbers[small.aside]), run)
    if run.over:
        return None
    inside, schedule = task.white.redo(case.net), noisy_polish(task.values)
    U = np.column_stack([inside.W, inside.b])
    fit = minimise(task.rows, task.shape, U, schedule, run=run, stage="all rows")
    interrupted = fit.reason == INTERRUPTED
    answer = settle(task, project(task.rows, task.shape, fit.at.U), run, hurried=interrupted)
    note = f"found from {small.rows.n} rows, then refined on {task.rows.n}"
    stage = Stage("all rows", time.perf_counter() - began, answer.loss, note)
    search = replace(
        case.search, interrupted=interrupted, stages=[*case.stages, stage], notes=[*case.search.notes, note]
    )
    whole = close(task, answer, search, problem.width, run)
    noisier = bool((whole.noise > _NOISIER * case.noise + 1e-12 * small.scale).any())
    found = AllRows(
        task.rows.n,
        few=small.rows.n,
        noise=rms(whole.noise),
        noise_of_few=rms(case.noise),
        noisier=noisier,
        different=different_rows(task.rows.n + small.held.n, small.samples.X),
    )
    record = replace(whole.record, rows_searched=small.rows.n, rows=task.rows.n)
    return replace(whole, evidence=replace(whole.evidence, all_rows=found), record=record)
