"""The whole algorithm on a screen: rows → task → search → signs → evidence → verdict.

1. Set rows aside; whiten; take the affine part out (:mod:`~relumine.recovery.task`).
2. Starts of 1.5× the width, in the span of the second moment first; Levenberg–Marquardt; prune; polish; signs, if the
   fit comes close; and again from there (:mod:`~relumine.recovery.rounds`). Stop when the residual is rounding error,
   or looks like noise and two starts agree (:mod:`~relumine.recovery.search`); the width, if it is open
   (:mod:`~relumine.recovery.widths`).
3. Flip units so that the affine part vanishes; refit without it (:mod:`~relumine.recovery.signs`).
4. Standard errors and evidence (:mod:`~relumine.recovery.evidence`), and the verdict (:mod:`~relumine.recovery.judge`).

With many more rows than that takes it happens on a few, and then all rows decide (:mod:`~relumine.recovery.large`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from relumine.activations import Activation
from relumine.arrays import Array
from relumine.data.digits import digits_of
from relumine.data.sources import Samples
from relumine.fit.fisher import parameter_count
from relumine.fit.inference import Fitted, Inference, infer
from relumine.fit.parallel import ALONE
from relumine.fit.rows import MemoryRows
from relumine.fit.sketch import sketched_confirmation
from relumine.network import Network
from relumine.recovery.evidence import Evidence, gather
from relumine.recovery.judge import judge, looked_in_words
from relumine.recovery.search import Search
from relumine.recovery.signs import Answer, known_units, one_sided, settle
from relumine.recovery.task import MemoryTask, Task, make_task
from relumine.recovery.widths import best_fit
from relumine.results import Certificate, Predictions, Recovery, SearchRecord, Stage, StandardErrors, Status
from relumine.run import Run

AnyTask = TypeVar("AnyTask", bound=Task)


_INPUTS = 0.5, 3.0  # times the rounding of the inputs that what is left may be for that to be its cause
_PLENTY = 9.0  # digits of y that an exact fit needs; nobody needs to be told of more
# A unit's intervals cover less than 92 % where its output weight is not so many standard errors from 0, or its
# direction is not known to so many radians: a kink then may pass many rows, and the loss is not nearly quadratic.
_ROUGH, _RADIANS = 4.0, 0.1
_SHOWN = 2000  # rows set aside whose predictions go with the result
# Parameters up to which the Fisher matrix is formed: exact fits whose rows leave no doubt, other exact ones (20 MB),
# noisy ones (130 MB). Of (50,20) at n/p = 5 it took 0.35 s of 0.8 s, a few random targets take 0.07 s.
_DENSE_CLEAR, _DENSE_EXACT, _DENSE_NOISY = 400, 1600, 4000
# Rows beyond a unit's d+1 that leave no doubt of it, and a quarter of those: Gaussian rows then have a condition of 320
# in large d. 784-2-1 with 1250 rows behind a kink took a third of its time for a matrix that showed nothing.
_SPARE_ROWS = 10
_REPEATS = 64  # rows in which an input that repeats a value takes a few values only, as far as this is concerned


@dataclass(frozen=True)
class Problem:
    """What is looked for: ``width`` units (None: as many as there are) of an ``activation``, in so many ``starts``."""

    width: int | None
    activation: Activation
    starts: int


@dataclass(frozen=True)
class Case:
    """An answer to a task with the evidence for it; ``net``, ``errors``, ``noise`` (q,): in the user's coordinates."""

    task: Task
    answer: Answer
    net: Network
    errors: StandardErrors | None
    noise: Array
    evidence: Evidence
    stages: tuple[Stage, ...]
    notes: tuple[str, ...]
    record: SearchRecord
    search: Search

    @property
    def status(self) -> Status:
        """The status that the judge gives to the evidence so far."""
        return judge(self.evidence).status

    def recovery(self) -> Recovery:
        """The verdict, in the form in which it is returned."""
        e, verdict = self.evidence, judge(self.evidence)
        units, remarks = known_units(self.answer, self.net, e.width, verdict.status)
        (residual, rows), looked, ok = e.checked, looked_in_words(e), verdict.status.ok
        certificate = Certificate(
            residual=residual,
            rows=rows,
            noise=e.noise,
            condition=e.condition,
            confirmed=e.confirmed if ok else 0,  # no row confirms a network that another may replace
            unseen=e.unseen if ok else float("nan"),
            proves=verdict.proves,
            does_not_prove=verdict.does_not_prove,
            notes=(
                *remarks,
                *self.notes,
                *self._doubts(verdict.status),
                *([looked[0].lower() + looked[1:]] if looked else []),
            ),
        )
        held = self.task.held.X[:_SHOWN], self.task.held.y[:_SHOWN]
        predicted = self.net(held[0]).reshape(-1, self.task.q)
        return Recovery(
            network=self.net,
            status=verdict.status,
            message=verdict.message,
            certificate=certificate,
            units=units,
            standard_errors=self.errors,
            stages=self.stages,
            search=replace(self.record, loss=self.answer.loss, noise=tuple(self.noise.tolist())),
            shown=Predictions(held[1].reshape(predicted.shape), predicted),
        )

    def _doubts(self, status: Status) -> list[str]:
        """What to tell about digits and about standard errors that cannot be believed."""
        digits = self.task.digits
        told = [digits.words] if digits.words and not (self.evidence.exact and digits.left > _PLENTY) else []
        if not self.evidence.exact and isinstance(self.task, MemoryTask):
            told += _rounded_inputs(self.task.samples.X, self.net, self.evidence.noise)
        if status is Status.NOISY and self.errors is not None:
            weak = np.atleast_2d(np.abs(self.net.a) < _ROUGH * self.errors.a).all(axis=0)
            turned = np.linalg.norm(self.errors.W, axis=1) > _RADIANS * np.linalg.norm(self.net.W, axis=1)
            units = np.flatnonzero(weak | turned)
            if units.size:
                listed = ", ".join(map(str, units))
                told.append(f"known only roughly, so that standard errors may be too small there: unit {listed}")
        return told


def _rounded_inputs(X: Array, net: Network, noise: float) -> list[str]:
    """Rounding u (d,) of the inputs moves y by √E Σ_j (u_j ∂f/∂x_j)²: a word, if that is what is left."""
    digits, some = digits_of(X, "X"), X[:_SHOWN]
    if not digits.words:
        return []
    slopes = net.activation.derivative(some @ net.W.T + net.b)  # (n, m)
    moved = [(slopes * a) @ net.W + v for a, v in zip(np.atleast_2d(net.a), np.atleast_2d(net.v))]
    size = float(np.sqrt(np.mean([((part * digits.rounding) ** 2).sum(axis=1) for part in moved])))
    if not _INPUTS[0] * size <= noise <= _INPUTS[1] * size:
        return []
    return [f"{digits.words}: where y was computed before the inputs were rounded, that alone leaves about {size:.2g}"]


def solve(samples: Samples, problem: Problem, run: Run) -> Case:
    """The arrow: from rows in memory to an answer and the evidence for it."""
    began = time.perf_counter()
    task = shared(make_task(samples, problem.activation, run.rng), run)
    note = f"{task.rows.n} rows, {task.held.n} set aside"
    search = Search(task, problem.starts, run, stages=[Stage("prepare", time.perf_counter() - began, 1.0, note)])
    hopeless = task.values <= task.parameters(1 if problem.width is None else problem.width)
    fit = search.affine() if hopeless else best_fit(search, problem.width)
    began = time.perf_counter()
    if len(fit.at.U):
        run.report("signs", 0, fit.loss, len(fit.at.U))
    no_network = search.hopeless and search.plenty(len(fit.at.U))
    answer = settle(task, fit.at, run, hurried=search.interrupted or no_network, doubtful=search.hopeless)
    if not hopeless:
        search.stages.append(Stage("signs", time.perf_counter() - began, answer.loss, answer.signs))
    case = close(task, answer, search, problem.width, run, rival=None if hopeless else search.rival(fit))
    if hopeless:
        asked = task.parameters(1 if problem.width is None else problem.width)
        case = replace(case, errors=None, evidence=replace(case.evidence, asked=asked, noise=0.0))
    return case


def close(task: Task, answer: Answer, search: Search, width: int | None, run: Run, *, rival: int | None = None) -> Case:
    """Standard errors and evidence; the units in order, largest output weight first."""
    began = time.perf_counter()
    size = np.linalg.norm(np.atleast_2d(task.to_user(answer.net).a), axis=0)
    order = np.argsort(-size, kind="stable")
    answer = replace(answer, net=answer.net.permuted(order), open=None if answer.open is None else answer.open[order])
    interrupted = search.interrupted or run.stop.is_set()
    net = task.to_user(answer.net)
    errors, inference = _errors(task, answer, 0 if interrupted and not answer.exact else _dense(task, answer))
    evidence = gather(
        task,
        answer,
        net,
        inference,
        width=width,
        agreeing=search.agreeing,
        rival=rival,
        interrupted=interrupted,
        timed_out=run.left <= 0.0,
    )
    stages = (*search.stages, Stage("certificate", time.perf_counter() - began, answer.loss))
    record = replace(search.record, wider=evidence.rival)
    return Case(task, answer, net, errors, inference.noise, evidence, stages, tuple(search.notes), record, search)


def _dense(task: Task, answer: Answer) -> int:
    """Up to how many parameters the Fisher matrix is formed, which shows whether a fit is singular.

    An exact fit is that only where a unit has few rows on one side of its kink, or an input takes a few values, all
    others of which may lie on one side.
    """
    if not answer.exact:
        return _DENSE_NOISY
    if parameter_count(answer.net, answer.free) <= _DENSE_CLEAR:
        return _DENSE_CLEAR
    continuous = (
        isinstance(task, MemoryTask) and (np.diff(np.sort(task.samples.X[:_REPEATS], axis=0), axis=0) > 0.0).all()
    )
    spare = max(_SPARE_ROWS, (answer.net.d + 1) // 4)
    return _DENSE_EXACT if not continuous or one_sided(task, answer.net, spare) else _DENSE_CLEAR


def _errors(task: Task, answer: Answer, limit: int) -> tuple[StandardErrors | None, Inference]:
    """Standard errors of the user's parameters, where the Fisher matrix has no more than ``limit`` rows."""
    count = parameter_count(answer.net, answer.free)
    if 0 < count <= limit:
        fitted = Fitted(answer.rows, answer.net, answer.model, answer.squares, answer.free, answer.exact, task.groups)
        inference = infer(fitted, task.white, task.scale)
    else:
        spread2 = answer.squares / max(answer.rows.n - count / task.q, 1.0)
        confirmation = None
        if limit and answer.net.m and isinstance(answer.rows, MemoryRows):  # limit 0: nothing is looked into in a hurry
            confirmation = sketched_confirmation(answer.rows, answer.model, task.groups)
            if confirmation is None and limit < count <= _DENSE_EXACT:  # no solve ended: that is a doubt
                return _errors(task, answer, _DENSE_EXACT)
        inference = Inference(np.sqrt(spread2) * task.scale, float("nan"), None, confirmation)
    se = inference.errors
    if se is not None and task.vector:
        se = StandardErrors(se.W, se.b, se.a[0], se.v[0], se.c[0])
    return se, inference


def shared(task: AnyTask, run: Run) -> AnyTask:
    """The task whose sums are shared among the run's workers."""
    crew = run.crew or ALONE
    return replace(task, rows=task.rows.shared(crew), plain=task.plain.shared(crew))
