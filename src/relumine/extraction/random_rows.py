"""Random rows: for boxes that can only be sampled, and for answers too rough for lines.

Rows are asked in growing batches, and after each the network is recovered from all of them, until it is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np

from relumine.arrays import Array, is_single
from relumine.data.digits import digits_of
from relumine.extraction.judge import BoxEvidence, certificate, judge, lines_contradict, stopped
from relumine.extraction.queries import BlackBoxFailed, Queries
from relumine.network import Network
from relumine.recovery.door import recover
from relumine.recovery.evidence import Answers
from relumine.recovery.judge import with_answers
from relumine.results import InvalidInput, Recovery, Status
from relumine.run import Run

_PER_PARAMETER = 5  # queries for each of the width·(d+1) parameters, at first
_PER_GUESS = 4  # the same while the width is a guess: one that is twice too large then takes 8 per true parameter
PROBE = 8  # rows asked twice: does the box repeat itself?
_CLOSE = 1e-5  # relative residual below which the units are enough, perhaps too many
_ROUNDING = 8.0 * float(np.finfo(np.float32).eps)  # most that single precision leaves, over the root mean square of y
_GRID = 2.0  # times the rounding to decimals, or behind an offset, that may be left: the answers alone are rounded
_CONTRADICTS = 1e-6  # relative error of an exact network that is none
_LEFT = 100.0  # times what is left that a network may be off further out: its own error there is some times that
_REPEATED = 1e-9  # relative difference between two answers to one question of a box in double precision
_CONFIRM = 2000  # further rows before no units, or fewer than asked for, are believed
WIDER = 3.0  # spread of half of them, where they are Gaussian: a kink far out is crossed more often there
_STALLED, _GAIN = 3, 0.95  # growing ends after so many batches in a row that left more than 0.95 of the residual
_MANY = 64  # units of a guess after whose failure smaller ones are not searched again
_QUICK = 2  # starts while more queries can still be had


@dataclass
class RandomRows:
    """One extraction: what it asks, and what it takes for certain."""

    queries: Queries
    draw: Callable[[np.random.Generator, int], Array]
    wide: Callable[[np.random.Generator, int], Array] | None
    seed: int
    budget: int
    run: Run
    options: dict[str, Any]
    rough: Array | None = None  # noise of the answers, as lines measured it
    noise: Array = field(default_factory=lambda: np.zeros(1))
    repeats: bool = True  # asked again, the box gives the same answers
    confirmed: bool = False

    def until_certain(self, width: int | None, growth: float) -> Recovery:
        """Ask, recover, ask more."""
        if self.run.over and self.queries.aside:  # lines took all the time
            return self._nothing()
        self._repeats_itself()
        self._coarse()
        d, noisy = self.queries.dim, bool(self.noise.any())
        guess = 4 if width is None else max(width, 1)
        share = _PER_PARAMETER if width is not None else 10 * _PER_GUESS if noisy else _PER_GUESS
        rows = max(share * guess * (d + 1), 2 * (d + 2))
        found: Recovery | None = None
        best, stalled, fitted, searched = np.inf, 0, 0, False
        for _ in range(64):
            try:
                self._ask(rows)
            except KeyboardInterrupt:
                if found is None:
                    raise
                return stopped(found)
            if found is None and self.run.over and self.queries.n < 2 * (d + 2):
                return self._nothing()
            last = self._room() <= 0 or self.run.over or stalled >= _STALLED
            if last and found is not None and searched and self.queries.n < 1.25 * fitted:
                break
            fitted = self.queries.n
            found, confirmed = self._fitted(guess, width, last), self.confirmed
            if found.status is Status.INTERRUPTED or (self._certain(found) and self._confirm(found, width)) or last:
                break
            if self._certain(found) and not confirmed:  # but not of the rows asked since: again with them
                continue
            # while the guess is below the number of inputs, little can be expected of it
            judged = found.status is Status.NOT_RECOVERED and not noisy and (width is not None or guess > d)
            failed = judged and found.certificate.residual >= _GAIN * best
            stalled, best = stalled + 1 if failed else 0, min(best, found.certificate.residual)
            # so many units have failed that a search among fewer would take minutes and find none
            searched = judged and width is None and guess >= _MANY
            if searched and stalled >= _STALLED:
                break
            guess = 2 * guess if width is None else guess
            rows = rows * 2 if width is None else ceil(rows * growth)
        assert found is not None
        if width is None:  # how many units were too many was our guess, not the user's
            found = replace(found, units=replace(found.units, absorbed=()))
        return self._judged(found, stalled >= _STALLED)

    def _nothing(self) -> Recovery:
        """Time was over before there were rows enough to fit anything."""
        e = BoxEvidence(ended=f"the time is over. {self.queries.n} random rows were answered, too few to begin")
        network = Network(np.zeros((0, self.queries.dim)), np.zeros(0), np.zeros(0))
        return Recovery(network, *judge(e), certificate(e))

    def _fitted(self, guess: int, width: int | None, last: bool) -> Recovery:
        """A recovery from the rows so far: quick while more can be had, with all its starts at the end."""
        starts = {} if last or "starts" in self.options else {"starts": _QUICK}
        found = self._recover(guess if width is None and not (self.noise.any() or last) else width, **starts)
        if width is None and found.certificate.residual <= max(_CLOSE, self._rounding()) and not self._certain(found):
            found = self._fewer(found)
        while width is None and self._rounded(found) and found.network.m > 1:  # a unit too many may fit the rounding
            other = self._recover(found.network.m - 1, **starts)
            if not self._certain(other):
                break
            found = other
        return found

    def _confirm(self, found: Recovery, width: int | None) -> bool:
        """No units, or fewer than asked for: one that is seldom on may not have been seen, so more rows are asked."""
        if found.network.m >= max(width or 1, 1):
            return True
        if not self.confirmed:
            self.confirmed = True
            before = self.queries.n
            if self.wide is not None and self.options.get("method", "auto") == "auto":
                self._ask_further(before + _CONFIRM // 2)
            self._ask(before + _CONFIRM)
            if self.noise.any() and self.queries.n > before:
                return False  # what is rare is hidden by noise: it takes another fit to see it
        X, y = self.queries.data()
        error = (found.network(X) - y).reshape(len(X), -1)
        return bool((np.abs(error).max(axis=0) <= 100.0 * (self._tolerance(y) + self.noise)).all())

    def _ask_further(self, rows: int) -> None:
        """Rows of a larger spread; a box need not answer so far out."""
        try:
            self._ask(rows, self.wide)
        except BlackBoxFailed:
            self.queries.forgive()

    def _ask(self, rows: int, draw: Callable[[np.random.Generator, int], Array] | None = None) -> None:
        """Bring the number of answered rows to ``rows``, if the budget allows."""
        for _ in range(4):  # rows that were dropped are replaced, a few times
            need = min(rows - self.queries.n, self._room())
            if need <= 0 or self.run.over:
                return
            self.run.report("random rows", self.queries.n, expected=min(rows, self.budget))
            # a stream of its own for every point of the run, so that a resumed run asks new rows
            rng = np.random.default_rng(
                np.random.SeedSequence(self.seed, spawn_key=(self.queries.n, self.queries.count))
            )
            self.queries.ask((draw or self.draw)(rng, need), lambda: not self.run.over)

    def _repeats_itself(self) -> None:
        """Ask a few rows twice: what differs is noise, and what does not repeat saved answers is another box."""
        if not self.queries.n:
            self._ask(min(PROBE, self.budget))
        X, y = self.queries.data()
        if not len(X):
            raise InvalidInput("the time (seconds=) was over before the black box was asked; give it more")
        some = np.unique(np.linspace(0, len(X) - 1, PROBE).astype(int))  # all over a log: its parts may differ
        saved = y.reshape(len(X), -1)[some]
        known = self.queries.again(X[some]) if self.queries.resumed else saved
        self.noise = _rms(self.queries.again(X[some]) - known) / np.sqrt(2.0)
        # a box adds in another order when it is asked for other rows beside: the last bit is no noise
        self.noise[self.noise <= self._tolerance(y)] = 0.0
        self.repeats = not self.noise.any()
        if self.queries.resumed and (_rms(known - saved) > 10.0 * self.noise + self._tolerance(y)).any():
            raise InvalidInput(f"the queries saved in {self.queries.file} were answered by another box")

    def _coarse(self) -> None:
        """Few decimals, and what a line found rough, are noise of known size: more units would only fit that."""
        if self.rough is not None:
            self.noise = np.maximum(self.noise, self.rough)
        if self._rounding() > _CLOSE:
            self.noise = np.maximum(self.noise, digits_of(self.queries.data()[1]).rounding)

    def _tolerance(self, y: Array) -> Array:
        """How far two answers of one box to one question may be apart by rounding alone, for each output."""
        Y = y.reshape(len(y), -1)
        size = np.sqrt(np.mean(Y**2, axis=0))
        return np.asarray(8.0 * _ROUNDING * size if _single(y) else _REPEATED * Y.std(axis=0) + 1e-14 * size)

    def _rounding(self) -> float:
        """The relative residual that the rounding of the answers can leave; 0 for all digits of double precision."""
        y = self.queries.data()[1]
        Y, digits = y.reshape(len(y), -1), digits_of(y)
        spread = Y.std(axis=0)
        single = _ROUNDING * np.sqrt(np.mean(Y**2, axis=0)) if _single(y) else 0.0 * spread
        grid = _GRID * digits.rounding if digits.words else 0.0 * spread
        return float(
            np.max((np.maximum(single, grid) / np.where(spread > 0.0, spread, 1.0))[spread > 0.0], initial=0.0)
        )

    def _recover(self, width: int | None, **more: Any) -> Recovery:
        X, y = self.queries.data()
        limit = None if np.isinf(self.run.left) else max(self.run.left, 0.1)
        return recover(
            X,
            y,
            width,
            rng=self.seed,
            seconds=limit,
            progress=self.run.progress,
            on_failure="return",
            **{**self.options, **more},
        )

    def _certain(self, found: Recovery) -> bool:
        """Exact; or as good as the noise seen between two answers to the same question, or their rounding, allows."""
        return with_answers(found, self._answers(found)).ok

    def _rounded(self, found: Recovery) -> bool:
        """Whether the answers are single-precision numbers and what is left is of the size of their rounding."""
        rounding = self._rounding()
        if found.status not in (Status.NOISY, Status.NOT_RECOVERED) or not rounding > 0.0:
            return False
        X, y = self.queries.data()
        error, spread = _rms((found.network(X) - y).reshape(len(X), -1)), y.reshape(len(X), -1).std(axis=0)
        return found.certificate.residual <= rounding and bool((error <= rounding * spread.max()).all())

    def _visible(self, found: Recovery) -> int:
        """How many units do more than rounding: equal ones count once, and those a 10⁵ times weaker do not."""
        net = found.network.merge(1e-4)
        size = np.linalg.norm(np.atleast_2d(net.a), axis=0) * np.linalg.norm(net.W, axis=1)
        return int((size > max(_CLOSE, self._rounding()) * size.max(initial=0.0)).sum())

    def _fewer(self, found: Recovery) -> Recovery:
        """The rows are explained, but by more units than are needed: again with those that matter."""
        most = min(self._visible(found), found.network.m - 1)
        for width in range(most, max(most - 2, 0), -1):
            other = self._recover(width, starts=_QUICK)
            if self._certain(other):
                return other
        return found

    def _answers(self, found: Recovery, stalled: bool = False) -> Answers:
        """What the answers show about the network found, beside the rows."""
        y = self.queries.data()[1]
        share = float(np.max(self.noise / np.maximum(np.atleast_1d(y.std(axis=0)), np.finfo(float).tiny)))
        rounded = self._rounded(found) and self._visible(found) == found.network.m
        count = _STALLED if stalled else 0
        return Answers(share, rounded, self.queries.n, count, self.queries.count, self.budget)

    def _judged(self, found: Recovery, stalled: bool) -> Recovery:
        """The result with what the answers show; rows on lines, asked before, are held against it as well."""
        found = with_answers(found, self._answers(found, stalled))
        X, y = self.queries.before()
        if not found.ok or not len(X):
            return found
        Y, error = y.reshape(len(X), -1), (found.network(X) - y).reshape(len(X), -1)
        most = _CONTRADICTS if found.status is Status.EXACT else _CONTRADICTS + _LEFT * found.certificate.residual
        size = np.abs(Y - np.median(Y, axis=0)) + Y.std(axis=0)
        wrong = int((np.abs(error) > most * size).any(axis=1).sum())
        return lines_contradict(found, wrong, len(X), self.repeats)

    def _room(self) -> int:
        return self.budget - self.queries.count


def _single(y: Array) -> bool:
    """Whether the answers are single-precision numbers (whole numbers alone do not tell)."""
    return is_single(y) and bool((np.abs(y) < 1e30).all() and (y % 1.0).any())


def _rms(difference: Array) -> Array:
    """Root mean square of each column, NaN left out."""
    good = np.isfinite(difference).all(axis=1)
    return np.asarray(np.sqrt(np.mean(difference[good] ** 2, axis=0)) if good.any() else np.zeros(difference.shape[1]))
