"""The search for the hidden units: over-parameterised starts, pruned to the width and polished; or the width, too."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil, log

import numpy as np

from relumine.fit.inference import structure_score
from relumine.fit.levenberg import INTERRUPTED, Fit, minimise
from relumine.fit.passes import difference_squares
from relumine.fit.projection import Array
from relumine.fit.prune import SEARCH, path, polish, prune
from relumine.fit.starts import (
    looks_gaussian,
    moment_directions,
    random_directions,
    second_moment_span,
    span_directions,
    third_moment_directions,
)
from relumine.recovery.task import MemoryTask
from relumine.results import InvalidInput, SearchRecord, Stage, WidthEvidence
from relumine.run import Run

__all__ = ["Search"]

STRUCTURE = 5.0  # |t| of the residual against a random unit beyond which it is not noise: noise stays about 3
_MOMENT_DIMENSIONS = 31  # inputs plus one up to which fourth moments are cheap: d⁴/24 = 34 000 numbers
_COLLAPSE = replace(SEARCH, steps=40, damping=1e-4, plateau=8, gain=0.5)  # a short look whether the loss collapses
_BETWEEN = 100.0  # kinks that no sample lies between are no further apart than this over the number of rows
# student width over width, start by start: 1.5 as a rule; where that does not collapse, another width may
_OVER = (1.5, 1.5, 2.0, 1.5, 1.25, 1.5, 3.0)
_TIED = 4.0  # difference of N log(loss) within which two fits are as good: twice the log likelihood ratio of 2σ
_BEATEN = 10.0  # difference of BIC from which a wider student counts as better ("very strong", Kass & Raftery 1995)


@dataclass
class Search:
    """State of a search; ``best`` can be read at any time; ``interrupted``: the run ended before the search did."""

    task: MemoryTask
    starts: int
    run: Run
    interrupted: bool = False
    best: Fit | None = None
    fallback: Fit | None = None
    agreeing: int = 0
    tied: bool = False
    used: int = 0
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
        return best if best is not None and wider[best] < self.bic(fit) - _BEATEN else None

    # -- one start -------------------------------------------------------------------------------------------

    @cached_property
    def gaussian(self) -> bool:
        """Whether the inputs look Gaussian, as starts from moments need; if not, a note says so."""
        gaussian, excess = looks_gaussian(self.task.rows.X[:, :-1])
        if not gaussian:
            self.notes.append(
                f"spectral start skipped: inputs are not Gaussian (mean excess kurtosis {excess:.2g}); "
                "random starts do not need that"
            )
        return gaussian

    @cached_property
    def spans(self) -> dict[int, Array]:
        """The span of the second moment, by width."""
        return {}

    def directions(self, k: int, width: int) -> tuple[Array, str]:
        """The next start: first in the span of the second moment, where it can show one; then anywhere; one in seven
        from the third and fourth moments. Odd units show in the third moment only.
        """
        D, turn = self.task.rows.columns, self.used % 7
        reflection = self.task.shape.activation.reflection
        odd = reflection is not None and reflection.scale == -1.0
        if odd and turn == (1 if width < D - 1 else 0) and self.gaussian:
            return third_moment_directions(self.run.rng, k, self.task.rows), "third moment"
        if turn in (0, 3) and width < D - 1 and self.gaussian:
            if width not in self.spans:
                self.spans[width] = second_moment_span(self.task.rows, width)
            return span_directions(self.run.rng, k, self.spans[width]), "spectral"
        if turn == 5 and 2 < D <= _MOMENT_DIMENSIONS and self.gaussian:
            try:
                return moment_directions(self.run.rng, k, self.task.rows, width), "higher moments"
            except InvalidInput:  # too few rows for so many moments
                pass
        return random_directions(self.run.rng, k, D), "random"

    def student(self, k: int, width: int) -> Fit:
        """One over-parameterised start of k units."""
        began = time.perf_counter()
        U, kind = self.directions(k, width)
        self.used += 1
        name = f"start {self.used}"
        fit = minimise(self.task.rows, self.task.shape, U, SEARCH, run=self.run, stage=name)
        self.trace.append((name, fit.history))
        if self.fallback is None or self.bic(fit) < self.bic(self.fallback):
            self.fallback = fit
        if fit.reason == INTERRUPTED:
            self.interrupted = True
            return fit
        self.students[k] = min(self.bic(fit), self.students.get(k, float("inf")))
        note = f"{kind}, {k} units, {len(fit.history) - 1} steps, {fit.reason}"
        self.stages.append(Stage(name, time.perf_counter() - began, fit.loss, note))
        return fit

    def found(self, width: int | None) -> Fit:
        """The best fit of that width, or of any; if the run ends before, the best so far."""
        if not self.task.bent.any() or width == 0:
            return self.affine()
        fit = self.any_width() if width is None else self.at_width(width)
        if self.tied:
            self.notes.append(
                "other networks fit about as well: standard errors describe the neighbourhood of this one"
            )
        return fit or self.best or self.fallback or self.affine()

    @property
    def record(self) -> SearchRecord:
        """What goes with the result."""
        n = self.task.rows.n
        return SearchRecord(self.used, tuple(self.trace), tuple(self.evidence.values()), rows=n, rows_searched=n)

    def _over(self) -> bool:
        """Whether the run has ended; then so does the search."""
        self.interrupted = self.interrupted or self.run.over
        return self.interrupted

    # -- a given width ---------------------------------------------------------------------------------------

    def at_width(self, width: int) -> Fit | None:
        """Starts until the fit is exact, or two agree on a residual that looks like noise, or the cap."""
        task = self.task
        widest = max(task.widest(), width)
        for attempt in range(self.starts):
            k = min(max(ceil(_OVER[attempt % len(_OVER)] * width), width + 2), widest)
            student = self.student(k, width)
            if self._over():
                break
            began = time.perf_counter()
            fit = prune(task.rows, task.shape, student, width, self.run)
            if self._over():
                break
            fit = polish(task.rows, task.shape, fit, self.run, "polish")
            if fit.reason == INTERRUPTED and not self.is_exact(fit):
                self.interrupted = True
                break
            self.trace.append(("polish", fit.history))
            self.stages.append(Stage("polish", time.perf_counter() - began, fit.loss, f"{width} units, {fit.reason}"))
            self.consider(fit)
            if self.is_exact(fit):
                self.best = self._without_redundant_units(fit)
                break
            if self.agreeing >= 2 and self.best is not None and self.is_noise(self.best):
                break
            if self._over():
                break
        return self.best

    def _without_redundant_units(self, fit: Fit) -> Fit:
        """An exact fit with units that do nothing (fewer are visible than were asked for): without them.

        A unit may also have split in two whose kinks no sample lies between; dropping either then costs something at
        first, so what counts is whether the rest collapses again. Such kinks are at an angle of some π/n; where every
        unit costs more than that, none is redundant.
        """
        run = self.run.unhurried()  # the search is over, this is its last word
        while fit.at.U.shape[0]:
            largest = float((fit.at.A**2).sum(axis=1).max())
            if fit.at.drop_costs().min() > (_BETWEEN / self.task.rows.n) ** 2 * largest:
                break
            smaller = prune(self.task.rows, self.task.shape, fit, fit.at.U.shape[0] - 1, run)
            smaller = minimise(self.task.rows, self.task.shape, smaller.at.U, _COLLAPSE, run=run)
            if smaller.loss > 10.0 * _COLLAPSE.tol:
                break
            smaller = polish(self.task.rows, self.task.shape, smaller, run)
            if not self.is_exact(smaller):
                break
            fit = smaller
        return fit

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

    # -- the width, too --------------------------------------------------------------------------------------

    def any_width(self) -> Fit | None:
        """Students of doubling width until one collapses (exact data) or stops paying for itself (noise)."""
        widest = self.task.widest(0.7)
        k, last, students = min(4, max(widest, 1)), float("inf"), []
        while True:
            tries = [self.student(k, k)]
            while tries[-1].loss > SEARCH.tol and len(tries) < 2 and not self._over():
                tries.append(self.student(k, k))
            if self._over():
                return self.best
            fit = min(tries, key=lambda f: f.loss)
            if fit.loss <= SEARCH.tol:
                exact = self._walk(fit)
                if exact is not None or self.interrupted:
                    return exact
            students.append(fit)
            if k >= widest or self.bic(fit) > last:
                break
            k, last = min(2 * k, widest), self.bic(fit)
        for fit in students[-2:]:
            self._walk(fit)
        if self.interrupted:
            return self.best
        self.fallback = self.best
        width = min(self.evidence.values(), key=lambda e: e.bic).width
        self.best, self.agreeing = None, 0
        return self.at_width(width) if width else self.affine()

    def _walk(self, fit: Fit) -> Fit | None:
        """Down the path of widths, noting the evidence; the smallest exact fit, if there is one."""
        began = time.perf_counter()
        fits = None if self._over() else path(self.task.rows, self.task.shape, fit, self.is_exact, self.run)
        if fits is None:
            self.interrupted = True
            return None
        for width, found in fits.items():
            entry = WidthEvidence(width, found.loss, self.bic(found))
            if width not in self.evidence or entry.loss < self.evidence[width].loss:
                self.evidence[width] = entry
        exact = [width for width, found in fits.items() if self.is_exact(found)]
        self.stages.append(Stage("widths", time.perf_counter() - began, None, f"tried {min(fits)}…{max(fits)} units"))
        for found in fits.values():
            if self.best is None or found.loss < self.best.loss:
                self.best = found
        if not exact:
            return None
        self.best = fits[min(exact)]
        return self.best

    def affine(self) -> Fit:
        """No hidden units."""
        self.best = minimise(self.task.rows, self.task.shape, np.zeros((0, self.task.rows.columns)), SEARCH)
        return self.best
