"""Progress on stderr while a search runs, and Ctrl-C that stops it gently."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from math import isfinite
from types import FrameType, TracebackType
from typing import Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from relumine.report.story import duration
from relumine.results import Progress, counted

_PATIENCE = 5.0  # seconds without a word
_STAGES = 100  # that are spoken of


class Watch:
    """A progress callback. ``expected``: how long a search for so many units takes; ``limit``: when it ends by itself.

    The first Ctrl-C lets the search return its best network (at its next step); the second aborts. One before the
    first step aborts at once: there is nothing to keep yet.
    """

    def __init__(self, seconds: float | None = None, quiet: bool = False) -> None:
        self.seconds, self.quiet = seconds, quiet
        self.expected: Callable[[int], float] | None = None
        self.limit: float | None = None
        self.stages = 0
        self.began = time.perf_counter()
        self.stopping = False
        self._last: Progress | None = None
        self._said = self.began
        self._before: Any = None
        console = Console(stderr=True)
        # drawn anew eight times a second, whether or not there was a step: the clock goes on in a long one
        self._live = Live(get_renderable=self._shown, console=console, refresh_per_second=8, transient=True)
        self._alive = not quiet and console.is_terminal

    def __enter__(self) -> Watch:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        if self._alive:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._alive:
            self._live.stop()
        self._say()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self.stages:
            signal.default_int_handler(number, frame)  # the usual end: there is nothing to keep
        self.stopping = True
        if self._alive:
            self._live.stop()  # which also gives the cursor back
        # Python would notice a second one only after a long call into C; the system does at once
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        typer.echo("\nStopping: the best network so far will be kept. Ctrl-C again aborts.", err=True)

    def __call__(self, step: Progress) -> None:
        """Take note of a step."""
        if self._last is None or self._last.stage != step.stage:
            self._say()
            self.stages += 1
        self._last = step
        if time.perf_counter() - self._said > _PATIENCE:
            self._say()
        if self.stopping:  # as if Ctrl-C came now, between two steps: the run then returns what it has
            signal.default_int_handler(signal.SIGINT, None)

    def _shown(self) -> Text:
        return Text("reading …" if self._last is None else self.line(self._last))

    def _say(self) -> None:
        """Where nothing is redrawn, a line at the end of each stage, and now and then in a long one."""
        if self._last is not None and not self.quiet and not self._alive and self.stages <= _STAGES:
            typer.echo(self.line(self._last), err=True)
            self._said = time.perf_counter()

    def line(self, step: Progress) -> str:
        """Stage, loss, units, rows asked, time."""
        spent = time.perf_counter() - self.began
        clock = f"{duration(spent)}{self._left(step, spent)}"
        words = [step.stage if step.queries is not None else f"{step.stage:10s} step {step.iteration:3d}"]
        if step.units is not None and isfinite(step.loss):  # without units there is no fit, and no loss of one
            words.append(f"loss {step.loss:7.1e} of the affine fit's")
        if step.units is not None:
            words.append(counted(step.units, "unit"))
        if step.queries is not None:
            of = "" if step.expected is None else f" of about {step.expected:,}"
            words.append(f"{step.queries:,}{of} rows asked")
        return "  ".join([*words, clock])

    def _left(self, step: Progress, spent: float) -> str:
        """The time left: at most, where there is a limit; about, where there is an estimate."""
        if self.seconds:
            return f", at most {duration(max(self.seconds - spent, 0.0))} left"
        if self.expected is None or not step.units or step.seconds < 1.0:
            return ""
        left = self.expected(step.units) - spent
        if left > 0.0:
            return f", about {duration(left)} left"
        return "" if self.limit is None else f", at most {duration(max(self.limit - spent, 0.0))} left"
