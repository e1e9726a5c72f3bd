"""What a run carries: random numbers, a time limit, a stop request, progress, a journal, workers.

It is one object that functions pass on; there is no global state. No exception says that the time is over: a loop asks
:attr:`Run.over` between two steps, and returns what it has.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np

from relumine.results import Progress

if TYPE_CHECKING:  # made in the room of the fit; a run only carries them
    from relumine.fit.journal import Journal
    from relumine.fit.parallel import Crew

__all__ = ["Run"]


@dataclass
class Run:
    """The circumstances of one run.

    Attributes
    ----------
    rng : Generator
    deadline : float
        On the clock of ``time.monotonic``; infinite if there is no limit.
    progress : callable, optional
        Receives a :class:`~relumine.results.Progress` now and then.
    stop : threading.Event
        Set by whoever wants the run to end: a signal handler, another thread.
    journal : Journal, optional
        Where minimisations are noted, so that a run that was killed can go on.
    crew : Crew, optional
        The workers among which sums over rows are shared.

    Examples
    --------
    >>> run = Run.of(rng=0, seconds=60.0)
    >>> run.over, run.left > 59.0
    (False, True)
    >>> run.stop.set()
    >>> run.over
    True
    """

    rng: np.random.Generator
    deadline: float = float("inf")
    progress: Callable[[Progress], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    journal: Journal | None = None
    crew: Crew | None = None

    @classmethod
    def of(
        cls,
        rng: int | np.random.Generator | None = None,
        seconds: float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Run:
        """A run that begins now and may take ``seconds``."""
        deadline = float("inf") if seconds is None else time.monotonic() + seconds
        return cls(np.random.default_rng(rng), deadline, progress)

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative when it has passed."""
        return self.deadline - time.monotonic()

    @property
    def over(self) -> bool:
        """Whether to come to an end: the time is up, or someone asked."""
        return self.stop.is_set() or self.left <= 0.0

    def report(
        self,
        stage: str,
        iteration: int,
        loss: float = float("nan"),
        units: int | None = None,
        seconds: float = 0.0,
        expected: int | None = None,
    ) -> None:
        """Tell whoever listens how far it is. A listener that raises KeyboardInterrupt asks the run to stop."""
        if self.progress is not None:
            try:
                self.progress(Progress(stage, iteration, loss, units, seconds, expected=expected))
            except KeyboardInterrupt:  # also a Ctrl-C that arrives while the listener is at work
                self.stop.set()

    def unhurried(self) -> Run:
        """The same run for a last short piece of work: no time limit, and a stop that came before does not count."""
        stop = threading.Event() if self.stop.is_set() else self.stop
        return replace(self, deadline=float("inf"), stop=stop)

    @contextmanager
    def interruptible(self) -> Iterator[Run]:
        """Within: the first Ctrl-C asks the run to stop, and the second is Python's KeyboardInterrupt again.

        Only the main thread can listen to signals, and a handler that the program has installed itself stays.
        """
        usual = signal.default_int_handler
        if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not usual:
            yield self
            return

        def ask(number: int, frame: FrameType | None) -> None:
            self.stop.set()
            signal.signal(signal.SIGINT, usual)

        signal.signal(signal.SIGINT, ask)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, usual)
