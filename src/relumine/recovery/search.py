"""The search for the hidden units: which round comes next, what it is worth, and when to stop.

A chain is a start and its cycles. A start is a student at random or from moments (:mod:`relumine.recovery.begin`),
contracted to the width; a cycle keeps the better part of that network, puts random units beside it and contracts again
(:mod:`relumine.recovery.rounds`). A chain goes on while its loss falls; then a new one begins. Only what different
chains agree on is evidence: the cycles of one share their units.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil, log

import numpy as np

from relumine.arrays import Array
from relumine.fit.inference import structure_score
from relumine.fit.levenberg import INTERRUPTED, Fit, Schedule, minimise
from relumine.fit.passes import difference_squares
from relumine.fit.prune import SEARCH, noisy_polish
from relumine.fit.starts import few_inside
from relumine.recovery.begin import Starts
from relumine.recovery.otherwise import otherwise
from relumine.recovery.rounds import STUDENT, contracted, from_the_span, renewed, signed
from relumine.recovery.spare import without_spare_units
from relumine.recovery.task import MemoryTask
from relumine.results import SearchRecord, Stage, WidthEvidence
from relumine.run import Run

STRUCTURE = 5.0  # |t| of the residual against a random unit beyond which it is not noise: noise stays about 3
# student width over width, start by start: 1.5 as a rule; where that does not collapse, another width may
_OVER = (1.5, 1.5, 2.0, 1.5, 1.25, 1.5, 3.0)
_CYCLE = 1.5  # units over width in a cycle: 1.25 found 5 of 10 networks (10,10) at n/p = 2 where 1.5 found 8
# Of the units, what a cycle keeps; the others make room for random ones. All kept: (10,5) at n/p = 2 7 of 8 networks in
# 8.1 s together, (30,30) at 2.75 2 of 2 in 25 s, (10,20) at 2 1 of 10; 0.7: 8 of 8 in 3.0 s, 2 of 2 in 6.5 s, 8 of 8.
# (10,10) at 1.75: 3 of 6, with 0.85 and with 0.5 1 of 6. Random ones kept instead of the dearest do about as well.
KEPT = 0.7
_FURTHER = 0.01  # of the loss of the network before: where the student of a cycle may stop at the earliest
_ROUNDS = 3  # rounds for each start that is allowed: a round takes half the time of a start polished to the end
# Numbers for each parameter, and the rounds after which a network that is there has been found: planted networks take
# one or two of them from 6 on and a few from 4 on (benchmarks, docs/recover.md); below that every round may be the one.
_TELL = ((30.0, 5), (6.0, 10), (4.0, 20))
# Twice as many where what is left looks like noise, twenty at least, and more where they cost little: numbers times
# parameters times rounds. Noise of half the spread takes up to fifty rounds at (10,10), three seconds; ten different
# networks for two hidden layers, (10,16,16,1) with 3000 rows, took half a minute.
_WORK, _AGREE = 2e7, 20
USUAL = 20  # starts, by default
# Numbers for each parameter that are enough for a student, rows that it begins with at least, and its steps on all of
# them: 20 000 rows of two hidden layers took 102 s before the first width was named, and with fewer rows 20 s.
_PLENTY, _LEAST_ROWS, _THEN = 15.0, 5000, 10
_IDLE, _LESS = 3, 0.97  # a chain ends after so many cycles that did not bring its loss below this share of its least
_CLOSE = 1.1  # ratio of losses within which two chains may have met, before they are polished to the end
_MET = "it has met another"
_ALIKE = 5  # chains that end at one network which is not noise: another one would, too
_TIED = 4.0  # difference of N log(loss) within which two fits are as good: twice the log likelihood ratio of 2σ
BEATEN = 10.0  # difference of BIC from which a wider student counts as better ("very strong", Kass & Raftery 1995)


@dataclass
class Search:
    """State of a search; ``best`` can be read at any time.

    What it may do and has done: ``starts`` at one width, ``used`` of them in all, ``cycles`` beside them.
    What it has found: ``best`` of the width at hand, at which so many chains end (``agreeing``), while another network
    fits about as well (``tied``); ``fallback``: the best student; ``walked``: the best of the widths tried.
    Why it ended, if not by success: ``interrupted``, the run ended before; ``hopeless``, a network that is there would
    have been found by then.
    What it tells: ``stages`` and ``notes``; ``trace``: the losses of each minimisation; ``evidence`` of each width;
    ``students``: by their width, the least BIC.
    """

    task: MemoryTask
    starts: int
    run: Run
    used: int = 0
    cycles: int = 0
    best: Fit | None = None
    agreeing: int = 0
    tied: bool = False
    fallback: Fit | None = None
    walked: Fit | None = None
    interrupted: bool = False
    hopeless: bool = False
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    evidence: dict[int, WidthEvidence] = field(default_factory=dict)
    students: dict[int, float] = field(default_factory=dict)
    trace: list[tuple[str, tuple[float, ...]]] = field(default_factory=list)

    # -- what a fit is worth ---------------------------------------------------------------------------------

    def is_exact(self, fit: Fit) -> bool:
        """Whether the residual is rounding error in every output."""
        return self.task.is_exact(fit.at.squares)

    def bic(self, fit: Fit) -> float:
        """N log(loss) + p log N, N numbers explained by p parameters."""
        N, p = self.task.values, self.task.parameters(fit.at.U.shape[0])
        return N * log(max(fit.loss, 1e-300)) + p * log(N)

    def is_noise(self, fit: Fit) -> bool:
        """Whether the residual looks like noise and the units explain more than they cost."""
        if fit.at.U.shape[0] and self.bic(fit) >= self.task.parameters(0) * log(self.task.values):
            return False
        if self.rival(fit) is not None:
            return False
        return structure_score(self.task.rows, self.task.shape, fit.at.model) < STRUCTURE

    def rival(self, fit: Fit) -> int | None:
        """The width of a student that explains more than the fit does, beyond what its size accounts for."""
        wider = {k: bic for k, bic in self.students.items() if k > fit.at.U.shape[0]}
        best = min(wider, key=lambda k: wider[k], default=None)
        return best if best is not None and wider[best] < self.bic(fit) - BEATEN else None

    # -- one start -------------------------------------------------------------------------------------------

    @cached_property
    def begin(self) -> Starts:
        """Where a chain may begin."""
        return Starts(self.task, self.run.rng, self.notes)

    def student(
        self, k: int, width: int, before: Fit | None = None, schedule: Schedule = STUDENT, share: float = KEPT
    ) -> Fit:
        """One over-parameterised fit of k units: a start, or a cycle that keeps a share of the network ``before``."""
        began = time.perf_counter()
        if before is None:
            U, kind = self.begin.directions(self.used, k, width)
            self.used += 1
        else:
            kept = ceil(share * len(before.at.U))
            U, kind = renewed(before, kept, k, self.run.rng), f"{kept} kept and random"
            # else a student that begins below its tolerance takes no step: (100,100) at n/p = 5 stayed at 5e-4
            schedule = replace(schedule, tol=min(schedule.tol, max(_FURTHER * before.loss, SEARCH.tol)))
            self.cycles += 1
        # a student that keeps all units asks whether they leave only noise, which all rows must say
        few = self.some_rows(k) if before is None or share < 1.0 else 0
        fit = self._fitted(U, schedule, self._name(before), few)
        self.trace.append((self._name(before), fit.history))
        if self.fallback is None or self.bic(fit) < self.bic(self.fallback):
            self.fallback = fit
        if fit.reason == INTERRUPTED:
            self.interrupted = True
            return fit
        self.students[k] = min(self.bic(fit), self.students.get(k, float("inf")))
        note = f"{kind}, {k} units, {len(fit.history) - 1} steps, {fit.reason}"
        self._stage(self._name(before), began, fit, note)
        return fit

    def _fitted(self, U: Array, schedule: Schedule, stage: str, few: int) -> Fit:
        """A student that begins at U: on a ``few`` of the rows, then on all; on all at once where ``few`` is 0."""
        rows, shape = self.task.rows, self.task.shape
        if not few:
            return minimise(rows, shape, U, schedule, run=self.run, stage=stage)
        # from all over the rows: those of a file may be in some order
        some = few_inside(rows, np.eye(rows.columns - 1), few, step=rows.n // (few + 1))
        first = minimise(some.rows, shape, U @ np.linalg.inv(some.back), schedule, run=self.run, stage=stage)
        fit = minimise(rows, shape, first.at.U @ some.back, replace(schedule, steps=_THEN), run=self.run, stage=stage)
        return Fit(fit.at, replace(fit.state, history=(*first.history, *fit.history)))

    def _name(self, before: Fit | None) -> str:
        """The name of the present start or cycle, for the trace."""
        return f"start {self.used}" if before is None else f"start {self.used}, cycle {self.cycles}"

    def _stage(self, name: str, began: float, fit: Fit, note: str) -> None:
        self.stages.append(Stage(name, time.perf_counter() - began, fit.loss, note))

    def _remark(self, words: str) -> None:
        """Add words to the note of the last stage."""
        self.stages[-1] = replace(self.stages[-1], note=f"{self.stages[-1].note}; {words}")

    @property
    def rounds(self) -> int:
        """Starts and cycles so far."""
        return self.used + self.cycles

    @property
    def record(self) -> SearchRecord:
        """What goes with the result."""
        n = self.task.rows.n
        trace, widths = tuple(self.trace), tuple(self.evidence.values())
        return SearchRecord(self.used, trace, widths, rows=n, rows_searched=n, cycles=self.cycles)

    def over(self) -> bool:
        """Whether the run has ended; then so does the search."""
        self.interrupted = self.interrupted or self.run.over
        return self.interrupted

    # -- a given width ---------------------------------------------------------------------------------------

    def at_width(self, width: int, most: int | None = None) -> Fit | None:
        """Chains until a fit is exact, or two agree on a residual that looks like noise, or there is no more hope.

        That is after so many starts, or three times as many rounds, or when five chains end at one network; sooner
        where there are many numbers for each parameter, if less soon where what is left looks like noise. Where the
        width is open, that is after ``most`` rounds at the latest, or when students of two chains explain more.
        """
        first, last = self.used, self.used + self.starts
        end = self.rounds + min(_ROUNDS * self.starts, self._rounds_to_agree(width))
        soon = self.rounds + self.rounds_that_tell(width, _ROUNDS * self.starts if most is None else most)
        why = ""
        while not why:
            fit = self._chain(width, (soon if self.rounds < soon else end) - self.rounds)
            if fit is None:
                return self.best
            self.consider(fit)
            if self.is_exact(fit):
                self.best = without_spare_units(self.task, fit, self.run.unhurried())  # the last word of the search
                why = "exact"
            elif self.agreeing >= _ALIKE or (self.agreeing >= 2 and self._only_noise(width)):
                why = f"{self.agreeing} starts agree"
            elif self.over():
                why = "the run does"
            elif most is not None and self.used >= first + 2 and self.rival(self.best or fit) is not None:
                why = "a wider student explains more"
            elif self.used >= last or self.rounds >= end:
                why = "no starts are left"
            elif self._gives_up(self.rounds >= soon):
                self.hopeless = True
                why = "a network that is there would have been found"
        self._remark(f"the search for {width} units ends: {why}")
        return self.best

    def _gives_up(self, told: bool) -> bool:
        """Whether no further start will help; who asks for more than the usual number of them gets them all."""
        assert self.best is not None
        return self.starts <= USUAL and not self.is_noise(self.best) and (self.otherwise or told)

    def needed(self, width: int) -> int:
        """Numbers that are enough for a student of that width; all, if there are fewer."""
        return min(ceil(_PLENTY * self.task.parameters(width)), self.task.values)

    def plenty(self, width: int) -> bool:
        """Whether more numbers would show nothing new about a network of that width."""
        return self.needed(width) < self.task.values

    def some_rows(self, width: int) -> int:
        """So many rows are enough for a student of that width to begin with; 0 if those are not far fewer than all."""
        rows = self.task.rows
        few = max(_LEAST_ROWS, self.needed(width) * rows.n // self.task.values)
        return few if rows.n >= 2 * few and rows.weight is None else 0

    def rounds_that_tell(self, width: int, most: int) -> int:
        """After so many rounds a network that is there would have been found, given the numbers for each parameter."""
        ratio = self.task.values / self.task.parameters(width)
        return next((rounds for least, rounds in _TELL if ratio >= least), most)

    def _rounds_to_agree(self, width: int) -> int:
        """In so many rounds two chains must agree on what looks like noise; who asks for more starts gets them all."""
        most = _ROUNDS * self.starts
        if self.starts > USUAL:
            return most
        affordable = int(_WORK / (self.task.values * self.task.parameters(width)))
        return max(2 * self.rounds_that_tell(width, most), _AGREE, affordable)

    def _only_noise(self, width: int) -> bool:
        """Whether the best fit leaves only noise, and a student that begins at it does not find more."""
        assert self.best is not None
        if not self.is_noise(self.best):
            return False
        if self.best.loss > 10.0 * STUDENT.tol:  # the students went as far
            return True
        self.student(self._student_width(width, cycle=True), width, self.best, SEARCH, 1.0)
        return self.interrupted or self.rival(self.best) is None

    def _chain(self, width: int, most: int) -> Fit | None:
        """A start and its cycles, at most so many, while there is hope; its best fit; None if the run ended."""
        least = fit = self._round(width, None)
        idle, end = 0, self._no_further(fit, idle=0, first=True)
        for _ in range(most - 1):
            if end or self.over():
                break
            fit = self._round(width, fit)
            if len(fit.at.U) > width:  # the run ended before it was contracted
                break
            idle = 0 if fit.loss < _LESS * least.loss else idle + 1
            least = min(least, fit, key=lambda f: f.loss)
            end = self._no_further(fit, idle=idle)
        if self.over() and not self.is_exact(least):
            if len(least.at.U) <= width and (self.best is None or least.loss < self.best.loss):
                self.best = least
            return None
        if not self.is_exact(least):
            least = self._to_the_end(fit if end == _MET else least)
        self._remark(f"start {self.used} ends: {end or 'no rounds are left'}")
        return least

    def _round(self, width: int, before: Fit | None) -> Fit:
        """A student, contracted to the width, and signs, if the fit comes close."""
        task, run = self.task, self.run
        began = time.perf_counter()
        if before is None and self.begin.is_inside(self.used, width):
            self.used += 1
            name, k = f"start {self.used}", self._student_width(width)
            fit, note = from_the_span(task, k, width, self.begin.span(width), run, name), "from the span, "
            self.trace.append((name, fit.history))
        else:
            student = self.student(self._student_width(width, cycle=before is not None), width, before)
            if self.over():
                return student
            began, note = time.perf_counter(), ""
            fit = contracted(task, student, width, run, "polish")
            self.trace.append(("polish", fit.history))
        self.interrupted = self.interrupted or fit.reason == INTERRUPTED
        self._stage("polish", began, fit, f"{note}{width} units, {len(fit.history) - 1} steps, {fit.reason}")
        if self.is_exact(fit) or self.interrupted:
            return fit
        began = time.perf_counter()
        better = signed(task, fit, run, "early signs")
        if better is None:
            return fit
        self.trace.append(("early signs", better.history))
        self._stage("early signs", began, better, f"without affine part, {better.reason}")
        return better

    def _student_width(self, width: int, *, cycle: bool = False) -> int:
        """How many units a student has: more than are looked for, and fewer than the numbers can determine."""
        over = _CYCLE if cycle else _OVER[self.used % len(_OVER)]
        return min(max(ceil(over * width), width + 2), max(self.task.widest(), width + cycle))

    def _no_further(self, fit: Fit, *, idle: int, first: bool = False) -> str:
        """Why a chain ends at this fit; empty if it goes on."""
        if self.over():
            return "the run does"
        if self.is_exact(fit):
            return "exact"
        if self.best is None and first and self.is_noise(fit):
            # exact data can look like noise, too, where there are few of them: the chains after this one do not ask
            return "what is left looks like noise, so another start must agree"
        if self.best is not None and 1.0 / _CLOSE < fit.loss / self.best.loss < _CLOSE and self._same(fit, self.best):
            return _MET
        return f"{_IDLE} cycles without a gain" if idle >= _IDLE else ""

    def _to_the_end(self, fit: Fit) -> Fit:
        """Polish a fit until further gains are far below what the noise can tell apart."""
        return minimise(
            self.task.rows, self.task.shape, fit.at.U, noisy_polish(self.task.values), run=self.run, stage="polish"
        )

    def consider(self, fit: Fit) -> None:
        """Keep the fit if it is the best; count how many starts ended at the same network."""
        if self.best is None:
            self.best, self.agreeing = fit, 1
            return
        near = abs(np.log(fit.loss / self.best.loss)) * self.task.values <= _TIED
        same = near and self._same(fit, self.best)
        self.tied = self.tied or (near and not same)
        self.agreeing = self.agreeing + 1 if same else 1 if fit.loss < self.best.loss else self.agreeing
        if fit.loss < self.best.loss:
            self.best = fit

    def _same(self, fit: Fit, other: Fit) -> bool:
        """Whether two fits are one network as far as the data can tell.

        With noise the loss has many tiny dents, one wherever a kink passes a sample, so equal networks differ a little.
        In units of the noise their predictions differ by Σ(f − g)²/σ², which is the distance of their parameters in the
        metric of the standard errors.
        """
        N, p = self.task.values, self.task.parameters(fit.at.U.shape[0])
        rows, part = self.task.rows, partial(difference_squares, one=fit.at.model, other=other.at.model)
        apart = float(rows.sum(part, fit.at.U.shape[0])[0].sum())
        noise2 = other.loss * rows.norm2 / max(N - p, 1)
        return apart <= max(9.0, 0.1 * p) * noise2

    @cached_property
    def otherwise(self) -> bool:
        """Whether something else explains the rows far better; a note says that the search ended for it."""
        other = otherwise(self.task.samples, self.task.shape.activation)
        if other is not None:
            self.notes.append(f"the search ended early: {other.cause.value}")
        return other is not None

    def affine(self) -> Fit:
        """The fit without hidden units: the affine part alone."""
        self.best = minimise(self.task.rows, self.task.shape, np.zeros((0, self.task.rows.columns)), SEARCH)
        return self.best
