"""Time as these benchmarks count it: CPU seconds of the process, which a busy machine does not lengthen.

Everything runs on one thread, so CPU seconds are what the wall clock would show on an idle core.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from math import isfinite
from types import TracebackType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

now = time.process_time
_TICK = 1e-7  # seconds: the CPU clock of a virtual machine may stand still for that long, and times are divided by


class TimeOver(BaseException):
    """The budget is spent. Not an Exception, so that no library takes it for a failure of its own."""


class budget:  # noqa: N801  (used like a function: ``with budget(seconds):``)
    """Leave the block after so many CPU seconds, wherever it is; what it has stored by then is its result.

    A timer interrupts the code, so libraries without a time limit (scikit-learn, scipy) can have one. The signal is
    repeated, because an exception raised inside a destructor is lost.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        if isfinite(self.seconds):
            self.before = signal.signal(signal.SIGPROF, self._stop)
            signal.setitimer(signal.ITIMER_PROF, max(self.seconds, 1e-3), 0.25)

    def _stop(self, *_: Any) -> None:
        raise TimeOver

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> bool:
        if isfinite(self.seconds):
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, self.before)
        return kind is TimeOver


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """What the action returns, and the CPU seconds it took."""
    began = now()
    value = action()
    return value, now() - began


def best_of(*actions: Callable[[], object], seconds: float = 1.5, least: int = 3) -> list[float]:
    """Shortest CPU time of each, measured in turns: the ones least disturbed by whatever else the machine does."""
    best, began, turns = [float("inf")] * len(actions), now(), 0
    while turns < least or now() - began < seconds:
        for k, action in enumerate(actions):
            best[k] = min(best[k], max(timed(action)[1], _TICK))
        turns += 1
    return best


def gemm_speed(size: int = 768) -> float:
    """Operations a second of a square matrix product on one thread: the machine's speed at this moment."""
    A = np.random.default_rng(0).normal(size=(size, size))
    B = A.T.copy()
    with threadpool_limits(1):
        (seconds,) = best_of(lambda: A @ B, seconds=0.3)
    return 2.0 * size**3 / seconds
