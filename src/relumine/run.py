"""What a run carries: random numbers, a time limit, a stop request, progress, a journal. One object, passed along.

Nothing is ambient and nothing is raised to say that the time is over: whoever iterates asks :attr:`Run.over` between
two steps, keeps what it has and returns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from relumine.results import Progress

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

    def report(self, stage: str, iteration: int, loss: float, units: int | None = None, seconds: float = 0.0) -> None:
        """Tell whoever listens how far it is."""
        if self.progress is not None:
            self.progress(Progress(stage, iteration, loss, units, seconds))
