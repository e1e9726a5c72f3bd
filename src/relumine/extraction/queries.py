"""The log of queries: asks, tries again, waits its turn, remembers every answer, and keeps them on disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine.arguments import is_number, one_of, positive, whole
from relumine.arrays import Array, slices
from relumine.extraction import saved
from relumine.extraction.boxes import Box, Calling
from relumine.extraction.callers import Callers
from relumine.extraction.log import Log
from relumine.links import Link
from relumine.results import InvalidInput, RelumineError, counted
from relumine.run import Run

_EVERY = 10.0  # seconds between savings, at least: what a killed run has to ask again
_SHARE = 20.0  # times as long as one takes: a log of a gigabyte takes seconds
_NOT_FINITE = "the values are NaN or infinite"
_MISSES = 8  # rows given up one after the other before the box is


class BlackBoxFailed(RelumineError):
    """The black box stopped answering; what it had answered is saved, if a file was named."""


class Ended(RelumineError):
    """No more can be asked: the budget is spent, the time is over, or someone asked to stop."""


class Unanswered(RelumineError):
    """The box does not answer some rows that lines need; random rows can do without them."""


class _WrongShape(ValueError):
    """Not one answer for each row."""


class _OtherOutputs(_WrongShape):
    """Another number of outputs than before."""


@dataclass(frozen=True)
class Manner:
    """How a box is asked: form of its inputs, size and number of calls, patience, and the file of the log.

    ``rows`` "one" or "many" (None: found out); ``columns``: names of the inputs; ``batch``: rows asked at once, at
    most; ``workers``: calls at the same time; ``rate_limit``: rows per second. A call that fails (an exception, a wrong
    shape, NaN) or takes longer than ``timeout`` seconds is tried again ``retries`` times, after ``pause`` seconds and
    twice as many each further time, then split in two; a single row that keeps failing is left out. ``save``: an .npz
    file, rewritten every ten seconds and at the end; ``resume``: begin with its answers.
    """

    rows: str | None = None
    columns: Sequence[str] | None = None
    batch: int = 4096
    retries: int = 4
    pause: float = 0.05
    timeout: float = 300.0
    workers: int = 1
    rate_limit: float | None = None
    save: str | os.PathLike[str] | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        one_of("rows", self.rows, (None, "one", "many"))
        if self.columns is not None and (isinstance(self.columns, str) or not len(self.columns)):
            raise InvalidInput(
                f"columns is a list of names, one for each input; got {self.columns!r}", argument="columns"
            )
        for name, least in (("batch", 1), ("workers", 1), ("retries", 0)):
            whole(name, getattr(self, name), least)
        positive("timeout", self.timeout)
        if not (is_number(self.pause) and self.pause >= 0.0):
            raise InvalidInput(f"pause is a number of seconds, got {self.pause!r}", argument="pause")
        if self.rate_limit is not None:
            positive("rate_limit", self.rate_limit, " of rows per second")
        if self.resume and self.save is None:
            raise InvalidInput(
                "resume=True needs save=, the file with the queries of the run to go on from", argument="save"
            )
        if self.save is not None:
            _target(Path(self.save), self.resume)

    def calling(self, link: str | None) -> Calling:
        """How a function wants to be asked."""
        return Calling(link, self.rows, None if self.columns is None else tuple(map(str, self.columns)))


def _target(target: Path, resume: bool) -> None:
    """The file of the log, refused before the box is asked if it cannot be written."""
    if target.exists() and not resume:
        raise InvalidInput(f"{target} exists; pass resume=True to go on from it, or name another file", argument="save")
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InvalidInput(
            f"save={str(target)!r}: there is no folder {target.parent} in which it can be written", argument="save"
        )


class Queries:
    """Rows asked and values answered.

    With a ``link`` the values are the answers mapped back; what is remembered, and saved, are the answers themselves.
    ``seed``: of the run, which a saved log remembers; ``run``: deadline and stop request.
    """

    def __init__(self, box: Box, dim: int, manner: Manner | None = None, seed: int = 0, run: Run | None = None) -> None:
        self.box, self.dim, self.manner, self.seed, self.run = box, dim, manner or Manner(), seed, run or Run.of()
        self.way, self.budget = "", 1 << 62
        self._callers = Callers(f"box {box.name}")
        self.link: Link | None = None
        self._without_digits: list[Array] | None = None  # rows without, where that is an error
        self.resumed = False  # rows of another run
        self._index: dict[int, int] = {}
        self.file, rate = None if self.manner.save is None else Path(self.manner.save), self.manner.rate_limit
        self.batch = self.manner.batch if rate is None else max(1, min(self.manner.batch, int(rate)))
        self.log = Log()
        self.count = self.calls = self.retried = self.dropped = 0
        self._misses, self._next, self._saved, self._every, self._aside = 0, 0.0, time.monotonic(), _EVERY, 0
        self._q: int | None = None
        self._remembered = 0  # calls whose answers are
        self._raised: Exception | None = None  # by the box, the last time: its traceback is the user's
        self._plain = False
        if self.manner.resume and self.file is not None and self.file.exists():
            self._resume(self.file)

    def begin(self, way: str, budget: int | None = None) -> None:
        """From now on rows are "chosen" or "random", which a saved log remembers; at most ``budget`` rows in all."""
        self.way, self.budget = way, self.budget if budget is None else budget

    @contextmanager
    def digits_only(self) -> Iterator[list[Array]]:
        """Rows whose answers have no digits are an error here, and not NaN; gives the list of those that were met."""
        self._without_digits = []
        try:
            yield self._without_digits
        finally:
            self._without_digits = None

    # -- asking ----------------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Rows with an answer."""
        return len(self.log) - self._aside

    @property
    def _patience(self) -> float:
        """Seconds that a call may take."""
        return min(self.manner.timeout, self.run.left)

    @property
    def left(self) -> int:
        """How many more rows may be asked."""
        return self.budget - self.count

    def ask(self, X: Array, keep_going: Callable[[], bool] = lambda: True) -> None:
        """Ask for the rows of X and remember the answers; saved also if this ends with an error or Ctrl-C."""
        size = min(self.batch, max(1, -(-len(X) // self.manner.workers)))
        parts = [X[s] for s in slices(len(X), size)]
        try:
            while parts and keep_going():
                together = 1 if not len(self.log) else self.manner.workers  # the first answer says what the box is like
                group = [self.box.rounded(rows) for rows in parts[:together]]
                parts = parts[together:]
                self.count += sum(map(len, group))
                for rows, answer in zip(group, self._together(group)):
                    self._answer(rows, self.manner.retries, answer)
                if time.monotonic() - self._saved > self._every:
                    self.save()
        finally:
            self.save()

    def _together(self, group: list[Array]) -> list[Any]:
        """Answers of calls at the same time, in order; None where there is one call, which is made later."""
        if len(group) == 1:
            return [None]
        self._wait(0, sum(map(len, group)))
        self.calls += len(group)
        return self._callers([partial(self.box.ask, X.copy()) for X in group], self._patience)

    def answers(self, X: Array) -> Array:
        """The values (n, q) at the rows of X, NaN where a link has no digits; what was answered is not asked again."""
        X = self.box.rounded(X)
        if not np.isfinite(X).all():  # what has no digits led there
            raise Unanswered("some of the rows to ask are no numbers")
        keys = [hash(row.tobytes()) for row in X]
        new = [i for i, key in enumerate(keys) if key not in self._index]
        if new:
            if len(new) > self.left:
                raise Ended(f"the budget of {self.budget} rows is spent")
            self.ask(X if len(new) == len(X) else X[new], lambda: not self.run.over)
            if self.run.over and any(keys[i] not in self._index for i in new):
                raise Ended("the time is over" if self.run.left <= 0.0 else "stopped")
        at = [self._index.get(key, -1) for key in keys]
        if min(at, default=0) < 0:
            raise Unanswered(f"{at.count(-1)} of {len(X)} rows on a line have no answer")
        values = self._mapped(self.log.answers(np.array(at, dtype=np.intp)))
        if self._without_digits is not None and not (good := np.isfinite(values).all(axis=1)).all():
            self._without_digits.append(X[~good])
            raise Unanswered("the rows it needs have probabilities of 0 or 1 to rounding, which say nothing")
        return values

    def digits(self, X: Array) -> NDArray[np.bool_]:
        """Which rows a link has digits for; they are asked, and remembered."""
        listed, self._without_digits = self._without_digits, None
        try:
            return np.asarray(np.isfinite(self.answers(X)).all(axis=1))
        finally:
            self._without_digits = listed

    def _mapped(self, Y: Array) -> Array:
        return Y if self.link is None else self.link.values(Y)

    def _remember(self, X: Array, y: Array) -> None:
        first = len(self.log)
        self._index.update((hash(row.tobytes()), first + i) for i, row in enumerate(X))
        self.log.append(X, y)
        self._remembered += 1

    def again(self, X: Array) -> Array:
        """Ask rows again without remembering the answers (rows that fail are NaN): does the box repeat itself?

        They are asked in another order and in two calls: an answer must not depend on the other rows of its call. They
        were answered before: a box that now answers none of them is given up.
        """
        self.count += len(X)
        values, word = np.full((len(X), self._q or 1), np.nan), _NOT_FINITE
        order = np.arange(len(X))[::-1]
        tries = [order[::2], order[1::2], *[order] * self.manner.retries, *order[:, None]]
        for attempt, rows in enumerate(tries):
            left = rows[~np.isfinite(values[rows]).all(axis=1)]
            if not len(left):
                continue
            self._wait(min(max(attempt - 1, 0), self.manner.retries), len(left))
            try:
                values[left] = self._values(X[left])
            except InvalidInput:
                raise
            except Exception as error:  # as in _answer: whatever the box raises
                word, self._raised = f"{type(error).__name__}: {error}", error
            self.retried += not np.isfinite(values[left]).all()
        if not np.isfinite(values).all(axis=1).any():
            self._give_up(f"asked again for rows it had answered: {word}")
        return self._mapped(values)

    def forgive(self) -> None:
        """Forget the rows given up one after the other: it was those rows, not the box."""
        self._misses = 0

    def _answer(self, X: Array, retries: int, answer: Any = None) -> None:
        """Ask (unless there is an answer already), try again what failed, split what keeps failing."""
        word, works, misshapen, other = _NOT_FINITE, False, False, False
        for attempt in range(retries + 1):
            if self.run.over and len(self.log) and answer is None:
                return
            if answer is None:
                self._wait(attempt, len(X))
            self.retried += attempt > 0
            try:
                y = self._values(X) if answer is None else self._checked(answer, len(X))
            except InvalidInput:
                raise
            except Exception as error:  # whatever the box raises is its failure, not ours
                self._raised = error
                answer, misshapen, other = None, isinstance(error, _WrongShape), isinstance(error, _OtherOutputs)
                word = str(error) if misshapen else f"{type(error).__name__}: {error}"
                continue
            answer = None
            good = np.isfinite(y).all(axis=1)
            if good.any():
                self._misses, works = 0, True
                self._remember(X[good], y[good])
            X = X[~good]
            if not len(X):
                return
        if works and word == _NOT_FINITE:  # it answers, but not these rows
            self.dropped += len(X)
            return
        if other and self._remembered == 1 and not self.resumed:  # all tries since against one call: that is made again
            before, _ = self.log.whole()
            self.log, self._q = Log(), None
            self._index.clear()
            self._answer(before, retries)
            self._answer(X, retries)
            return
        if misshapen and (len(X) == 1 or not len(self.log)):
            self.save()
            remedy = "wrap it to answer (n,) or (n, q) for n rows; rows='one' if it takes a single row"
            raise InvalidInput(f"the black box {self.box.name}: {word}", argument="f", remedy=remedy)
        if not len(self.log) and len(X) > 1:
            self._give_up(word)
        if len(X) > 1:
            for half in (X[: len(X) // 2], X[len(X) // 2 :]):
                self._answer(half, min(retries, 1))
            return
        self.dropped += 1
        self._misses += 1
        if self._misses >= _MISSES:
            self._give_up(word)

    def _values(self, X: Array) -> Array:
        """One call: an (n, q) array, NaN included; anything else is an error."""
        self.calls += 1
        return self._checked(self._callers.one(partial(self.box.ask, X.copy()), self._patience), len(X))

    def _checked(self, answer: Any, n: int) -> Array:
        if isinstance(answer, BaseException):
            raise answer
        given = np.asarray(answer)
        if np.iscomplexobj(given):
            raise InvalidInput(f"the black box {self.box.name} answers complex numbers; wrap it to answer real ones")
        y: Array = given.astype(np.float64)
        if y.shape[:1] != (n,) or y.ndim > 2 or (y.ndim == 2 and not y.shape[1]):
            raise _WrongShape(f"{n} rows were asked and an answer of shape {y.shape} came")
        plain = y.ndim == 1 or y.shape[1] == 1
        y = y.reshape(n, -1)
        if self._q is not None and y.shape[1] != self._q:
            raise _OtherOutputs(f"{self._q} outputs came before, and now {y.shape[1]}")
        if self._q is None and np.isfinite(y).all(axis=1).any():  # only an answer that counts says how many there are
            self._q, self._plain = y.shape[1], plain
        return y

    def _wait(self, attempt: int, rows: int) -> None:
        """Back off before a new try; keep to the rate."""
        left = max(self.run.left, 0.0)
        if attempt:
            time.sleep(min(self.manner.pause * 2.0 ** (attempt - 1), left))
        if self.manner.rate_limit is not None:
            now = time.monotonic()
            time.sleep(min(max(self._next - now, 0.0), left))
            self._next = max(self._next, now) + rows / self.manner.rate_limit

    def _give_up(self, word: str) -> None:
        self.save()
        kept = f"; the {len(self.log)} answers so far are saved in {self.file}" if self.file and len(self.log) else ""
        # what most often is behind it, where nothing was ever answered
        known = len(self.log) or isinstance(self._raised, OSError)
        inputs = "" if known else f"; does it take {counted(self.dim, 'input')}?"
        raise BlackBoxFailed(
            f"the black box {self.box.name} does not answer: {word} ({self.calls} calls, {self.retried} of them new "
            f"tries, {len(self.log)} rows answered){kept}{inputs}"
        ) from self._raised

    # -- what is known -----------------------------------------------------------------------------------------

    def data(self, everything: bool = False, mapped: bool = True) -> tuple[Array, Array]:
        """X (n, d) and y: (n,), or (n, q) for several outputs; ``everything``: also what was set aside.

        With a link: rows that have digits, mapped back; not ``mapped``: all rows, as the box answered.
        """
        X, Y = self.answered()
        if not everything and self._aside:
            X, Y = X[self._aside :], Y[self._aside :]
        if not mapped:
            return X, Y[:, 0] if self._plain or self._q is None else Y
        if self.link is not None and len(Y):
            Y = self.link.values(Y)
            good = np.isfinite(Y).all(axis=1)
            X, Y = X[good], Y[good]
        return X, Y[:, 0] if self.plain else Y

    def before(self) -> tuple[Array, Array]:
        """What was set aside, like :meth:`data`."""
        later = len(self.data()[0])
        X, y = self.data(everything=True)
        return X[: len(X) - later], y[: len(X) - later]

    def answered(self) -> tuple[Array, Array]:
        """Every row and the answer of the box itself, (n, q)."""
        return self.log.whole() if len(self.log) else (np.empty((0, self.dim)), np.empty((0, 1)))

    def set_aside(self) -> None:
        """What was asked so far stays in the log, but :meth:`data` begins after it: rows on lines are no sample."""
        self._aside = len(self.log)

    @property
    def aside(self) -> bool:
        """Whether something was set aside."""
        return self._aside > 0

    @property
    def plain(self) -> bool:
        """Whether the values are one number a row: as the box answers, or as a link makes of two classes."""
        return self._plain or self._q is None or (self.link is not None and self.link.form.stacked)

    def some(self, most: int) -> tuple[Array, Array]:
        """A few of the rows answered and their values (k, q), from all over the log; with a link: rows with digits."""
        if self.link is not None:
            X, Y = self.answered()
            values = self.link.values(Y)
            good = np.flatnonzero(np.isfinite(values).all(axis=1))
            at = good[np.unique(np.linspace(0, len(good) - 1, most).astype(int))]
            return X[at], values[at]
        at = np.unique(np.linspace(0, len(self.log) - 1, most).astype(int))
        return self.log.rows(at), self.log.answers(at)

    def apart(self, rows: int) -> float:
        """How far second answers to a few rows are from the first, over the size of those.

        Far out, where large terms may cancel, rounding is larger as the row is: that counts as much less.
        """
        X, first = self.some(rows)
        size = np.abs(first).max(axis=0) + first.std(axis=0)
        away = np.linalg.norm(X - np.median(X, axis=0), axis=1, keepdims=True)
        further = np.maximum(away / max(float(np.median(away)), np.finfo(float).tiny), 1.0)
        apart = np.nanmax(np.abs(self.again(X) - first) / further, axis=0)
        return float(np.max(np.divide(apart, size, out=np.where(apart > 0.0, np.inf, 0.0), where=size > 0.0)))

    def save(self) -> None:
        """Write X and y, if a file was named."""
        began = time.monotonic()
        if self.file is None or not len(self.log):
            return
        X, y = self.answered()
        y = y[:, 0] if self._plain else y
        # where lines failed and no random row was answered either, a resumed run begins with lines again
        way = "chosen" if self.aside and not self.n else self.way
        saved.write(self.file, X, y, way, self.seed)
        self._saved = time.monotonic()
        self._every = max(_EVERY, _SHARE * (self._saved - began))

    def _resume(self, file: Path) -> None:
        """Read what an earlier run saved."""
        X, y, way, seed = saved.read(file, self.dim)
        self._q, self._plain = (1 if y.ndim == 1 else y.shape[1]), y.ndim == 1
        self.resumed = True
        self._remember(X, y.reshape(len(X), -1))
        if way is not None and seed is not None:
            self.way, self.seed = way, seed
