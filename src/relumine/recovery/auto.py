"""`auto`: samples → starts → units → signs → certificate. Exact where the data allow it, honest where they do not."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.data.sources import Samples, Source, count, materialise, take
from relumine.fit.journal import Journal, kept
from relumine.fit.parallel import cores
from relumine.fit.projection import project
from relumine.recovery.judge import conclude, settle
from relumine.recovery.large import as_source, exact_everywhere, first_rows, refine, whole_task
from relumine.recovery.search import Search
from relumine.recovery.task import MemoryTask, Task, make_task
from relumine.results import Certificate, InvalidInput, ProgressCallback, Recovery, SearchRecord, Stage, Status

__all__ = ["MEMORY", "recover_auto"]

MEMORY = 512e6  # bytes for rows in memory, all copies of them counted
_COPIES = 8  # bytes in use for one byte of raw rows, at the worst moment


@dataclass(frozen=True)
class Options:
    """What a run was asked for; ``deadline`` on the clock of time.perf_counter."""

    width: int | None
    activation: Activation
    rng: np.random.Generator
    starts: int
    deadline: float
    progress: ProgressCallback | None


def recover_auto(
    data: Samples | Source,
    width: int | None,
    activation: Activation,
    *,
    rng: np.random.Generator,
    starts: int = 20,
    seconds: float | None = None,
    progress: ProgressCallback | None = None,
    memory: float = MEMORY,
    journal: Journal | None = None,
) -> Recovery:
    """Recover a network by over-parameterised variable projection in the sign-free form.

    1. Set rows aside; whiten; take the affine part out.
    2. Starts of 1.5× the width (in the span of the second moment first); Levenberg–Marquardt; prune; polish.
       Stop when the residual is rounding error, or looks like noise and two starts agree.
    3. Flip units so that the affine part vanishes; refit without it.
    4. Standard errors, certificate, status.

    With many more rows than that takes, or more than ``memory`` bytes of them, it happens on a few, and then all rows
    decide (:mod:`relumine.recovery.large`).
    """
    deadline = float("inf") if seconds is None else time.perf_counter() + seconds
    options = Options(width, activation, rng, starts, deadline, progress)
    with cores(), kept(journal):
        if not isinstance(data, Samples):
            limit = int(min(memory, 1e15) / (8 * _COPIES * (data.d + data.q)))
            if count(data) > limit:
                return _from_few(data, limit, options)
            data = materialise(data)
        if data.n > 3 * first_rows(data.d, data.y.size // data.n, width):
            return _from_few(as_source(data), data.n, options)
        return _Run(data, options).result


def _from_few(source: Source, limit: int, options: Options) -> Recovery:
    """Search among a few rows, at most ``limit``, until all of them agree."""
    n, size = count(source), min(first_rows(source.d, source.q, options.width), limit)
    while True:
        began = time.perf_counter()
        few, numbers = take(source, size, options.rng)
        sampled = Stage("sample", time.perf_counter() - began, None, f"{size} of {n} rows")
        try:
            run = _Run(few, options)
        except InvalidInput as error:  # these few rows may be special: a column that happens to be constant, say
            if size >= n:
                raise
            if size >= limit:
                raise InvalidInput(f"{error} (among {size} of {n} rows, as many as memory= allows)") from None
            size = min(4 * size, limit)
            continue
        found = replace(run.result, stages=(sampled, *run.result.stages))
        if size >= n or found.status is Status.INTERRUPTED:
            return found if size >= n else _note(found, f"only {size} of {n} rows were looked at")
        try:
            if found.status is Status.EXACT:
                found = exact_everywhere(source, numbers[run.used], found, run.task)
                if found.ok:
                    return found
            # more rows show weaker units, so with the width unknown noise is no reason to stop
            if found.status is Status.NOISY and (options.width is not None or size >= limit):
                return _from_all(source, run, numbers[run.task.aside], found, options)
        except KeyboardInterrupt:  # on the way through all rows: what the few have shown is not lost
            return _note(replace(found, status=Status.INTERRUPTED), f"only {size} of {n} rows were looked at")
        if size >= limit:
            return _note(found, f"searched among {size} of {n} rows, as many as memory= allows")
        size = limit if found.status is Status.NOISY else min(4 * size, limit)


def _from_all(source: Source, run: _Run, held: NDArray[np.intp], found: Recovery, options: Options) -> Recovery:
    """What a few rows show up to noise, refined on all of them."""
    began = time.perf_counter()
    task = whole_task(source, run.task, held)
    U, interrupted = refine(task, found.network, options.progress, options.deadline)
    answer = settle(task, project(task.rows, task.shape, U), hurried=interrupted)
    note = f"found from {run.task.rows.n} rows, then refined on {task.rows.n}"
    result = conclude(
        task,
        answer,
        width=options.width,
        agreeing=run.search.agreeing,
        rival=None,
        interrupted=interrupted,
        notes=[*run.search.notes, note],
        stages=[*found.stages, Stage("all rows", time.perf_counter() - began, answer.loss, note)],
        search=replace(found.search, rows_searched=run.task.rows.n, rows=task.rows.n),
    )
    few, many = np.asarray(found.search.noise), np.asarray(result.search.noise)
    if result.status is Status.NOISY and (many > 2.0 * few + 1e-12 * run.task.units).any():
        message = (
            f"What is left has standard deviation {_rms(many):.3g} on all rows but {_rms(few):.3g} on the "
            f"{run.task.rows.n} random ones the network was found from: some rows do not belong to it."
        )
        certificate = replace(result.certificate, proves="", does_not_prove="")
        result = replace(result, status=Status.NOT_RECOVERED, message=message, certificate=certificate)
    return result


def _rms(x: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _note(found: Recovery, note: str) -> Recovery:
    certificate = replace(found.certificate, notes=(*found.certificate.notes, note))
    return replace(found, certificate=certificate, message=f"{found.message} ({note[0].upper()}{note[1:]}.)")


class _Run:
    """One search among rows in memory: the task it made of them, the search, and the result."""

    def __init__(self, samples: Samples, options: Options) -> None:
        began = time.perf_counter()
        self.task = make_task(samples, options.activation, options.rng)
        self.used = np.setdiff1d(np.arange(samples.n), self.task.aside)
        note = f"{self.task.rows.n} rows, {self.task.held.n} set aside"
        stages = [Stage("prepare", time.perf_counter() - began, 1.0, note)]
        self.search = Search(self.task, options.rng, options.starts, options.deadline, options.progress, stages=stages)
        if self.task.values <= self.task.parameters(1 if options.width is None else options.width):
            self.result = _too_few(self.task, options.width, stages)
        else:
            self.result = _run(self.task, options.width, self.search)


def _run(task: MemoryTask, width: int | None, search: Search) -> Recovery:
    """Search, signs, verdict."""
    interrupted = False
    try:
        if not task.bent.any() or width == 0:
            fit = search.affine()
        else:
            fit = search.any_width() if width is None else search.at_width(width)
    except KeyboardInterrupt:  # also raised by the search when its time is up
        interrupted = True
        fit = search.best or search.fallback or search.affine()
    if search.tied:
        search.notes.append("other networks fit about as well: standard errors describe the neighbourhood of this one")
    began = time.perf_counter()
    patience = 1.0 if interrupted else float(np.clip(search.deadline - began, 1.0, 20.0))
    answer = settle(task, fit.at, seconds=patience, hurried=interrupted)
    search.stages.append(Stage("signs", time.perf_counter() - began, answer.loss, answer.signs))
    return conclude(
        task,
        answer,
        width=width,
        agreeing=search.agreeing,
        rival=search.rival(fit),
        interrupted=interrupted,
        notes=search.notes,
        stages=search.stages,
        search=SearchRecord(
            starts=search.used,
            trace=tuple(search.trace),
            widths=tuple(search.evidence.values()),
            rows=task.rows.n,
            rows_searched=task.rows.n,
        ),
    )


def _too_few(task: Task, width: int | None, stages: list[Stage]) -> Recovery:
    """Fewer numbers than parameters: the affine fit, and the reason."""
    asked = width if width is not None else 1
    D = task.rows.columns
    net = task.to_user(task.shape.network(np.zeros((0, D)), np.zeros((0, task.q)), task.tau))
    message = (
        f"{task.rows.n} rows of {task.q} output(s) cannot determine the {task.parameters(asked)} parameters of a "
        f"network of width {asked} in {D - 1} dimensions; what is returned is the affine fit."
    )
    certificate = Certificate(float("nan"), 0, does_not_prove="anything: there are more parameters than numbers")
    return Recovery(net, Status.UNDERDETERMINED, message, certificate, stages=tuple(stages), method="auto")
