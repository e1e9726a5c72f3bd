"""Threads in which a box is called, so that one that hangs can be left behind.

A thread costs as much to start as a small network to ask, and a deep extraction makes some hundred thousand calls. So
a thread whose call has ended takes the next one; one that was late is never used again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from weakref import finalize

LONGEST = 1e6  # seconds that a thread can be made to wait: twelve days stand for no limit, which overflows

Task = Callable[[], Any]


class Callers:
    """Makes calls in threads, several at the same time, and waits for the answers no longer than it is told.

    Examples
    --------
    >>> callers = Callers("a box")
    >>> callers([lambda: 1, lambda: 1 / 0], seconds=10.0)
    [1, ZeroDivisionError('division by zero')]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._idle: list[_Caller] = []
        finalize(self, _dismissed, self._idle)

    def one(self, task: Task, seconds: float) -> Any:
        """One call; what it raises is raised here, ``SystemExit`` as a ``RuntimeError``: the program does not end."""
        (answer,) = self([task], seconds)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def __call__(self, tasks: Sequence[Task], seconds: float) -> list[Any]:
        """The answers in order, or what was raised instead of one; a late call goes on, and nobody waits for it."""
        end = time.monotonic() + min(max(seconds, 0.001), LONGEST)
        callers = [self._idle.pop() if self._idle else _Caller(f"relumine {self.name}") for _ in tasks]
        for caller, task in zip(callers, tasks):
            caller.tasks.put(task)
        late = TimeoutError(f"no answer within {seconds:.3g} s" if seconds > 0.0 else "the time was over")
        answers: list[Any] = [late] * len(tasks)
        busy = dict(enumerate(callers))
        try:
            for i, caller in enumerate(callers):
                with suppress(Empty):
                    answers[i] = caller.answers.get(timeout=max(end - time.monotonic(), 0.0))
                    self._idle.append(busy.pop(i))
        finally:
            _dismissed(list(busy.values()))  # this call is their last
        return answers


class _Caller:
    """A thread that carries out one task after the other, until one is None."""

    def __init__(self, name: str) -> None:
        self.tasks: SimpleQueue[Task | None] = SimpleQueue()
        self.answers: SimpleQueue[Any] = SimpleQueue()
        Thread(target=_work, args=(self.tasks, self.answers), name=name, daemon=True).start()


def _work(tasks: SimpleQueue[Task | None], answers: SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        try:
            answer = task()
        except SystemExit as error:
            answer = RuntimeError(f"the box wanted to end the program (exit code {error.code!r})")
        except BaseException as error:  # the thread has no one else to tell
            answer = error
        answers.put(answer)
        del task, answer  # while it waits, nothing of the last call is kept


def _dismissed(callers: list[_Caller]) -> None:
    for caller in callers:
        caller.tasks.put(None)
