"""`auto`: samples → starts → units → signs → certificate. Exact where the data allow it, honest where they do not."""

from __future__ import annotations

import time

import numpy as np

from relumine.activations import Activation
from relumine.data.sources import Samples
from relumine.fit.parallel import cores
from relumine.methods.search import Search
from relumine.methods.task import MemoryTask, Task, make_task
from relumine.methods.verdict import conclude, settle
from relumine.results import Certificate, ProgressCallback, Recovery, Stage, Status

__all__ = ["recover_auto"]


def recover_auto(
    samples: Samples,
    width: int | None,
    activation: Activation,
    *,
    rng: np.random.Generator,
    starts: int = 20,
    seconds: float | None = None,
    progress: ProgressCallback | None = None,
) -> Recovery:
    """Recover a network by over-parameterised variable projection in the sign-free form.

    1. Set rows aside; whiten; take the affine part out.
    2. Starts of 1.5× the width (in the span of the second moment first); Levenberg–Marquardt; prune; polish.
       Stop when the residual is rounding error, or looks like noise and two starts agree.
    3. Flip units so that the affine part vanishes; refit without it.
    4. Standard errors, certificate, status.
    """
    began = time.perf_counter()
    task = make_task(samples, activation, rng)
    stages = [Stage("prepare", time.perf_counter() - began, 1.0, f"{task.rows.n} rows, {task.held.n} set aside")]
    if task.values <= task.parameters(width if width is not None else 1):
        return _too_few(task, width, stages)
    deadline = float("inf") if seconds is None else began + seconds
    with cores():
        return _run(task, width, Search(task, rng, starts, deadline, progress, stages=stages))


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
    answer = settle(task, fit.at, seconds=float(np.clip(search.deadline - began, 1.0, 20.0)))
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
        details={"starts": search.used, "history": fit.history, "widths": tuple(search.evidence.values())},
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
