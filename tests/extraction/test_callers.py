"""Threads in which a box is called: taken up again after a call, left behind if it was late."""

import gc
import threading
import time

import pytest

from relumine.extraction.callers import Callers


def threads(name):
    return [t for t in threading.enumerate() if t.name == f"relumine {name}"]


def ended(name, seconds=10.0):
    """Whether all threads of this name end within some seconds."""
    until = time.monotonic() + seconds
    while threads(name) and time.monotonic() < until:
        time.sleep(0.01)
    return not threads(name)


def test_answers_come_in_order_and_what_was_raised_in_their_place():
    callers = Callers("ordered")

    def fails():
        raise KeyError("no")

    first, second, third = callers([lambda: 1, fails, lambda: 3], 60.0)
    assert (first, third) == (1, 3)
    assert isinstance(second, KeyError)
    with pytest.raises(KeyError):
        callers.one(fails, 60.0)


def test_one_thread_serves_many_calls():
    callers, seen = Callers("many"), set()
    for _ in range(50):
        callers.one(lambda: seen.add(threading.get_ident()), 60.0)
    assert len(seen) == len(threads("many")) == 1


def test_a_late_call_is_left_behind_and_its_answer_is_nobody_elses():
    callers, free = Callers("late"), threading.Event()

    def hangs():
        free.wait(60.0)
        return "late"

    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        callers.one(hangs, 0.05)
    assert callers.one(lambda: "new", 60.0) == "new"
    free.set()
    assert [callers.one(lambda i=i: i, 60.0) for i in range(5)] == list(range(5))
    assert len(threads("late")) in (1, 2)  # the late one ends by itself


def test_a_box_that_ends_the_program_ends_only_its_call():
    callers = Callers("exits")

    def leaves():
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="exit code 3"):
        callers.one(leaves, 60.0)
    assert callers.one(lambda: 1, 60.0) == 1


def test_no_thread_stays_when_they_are_given_up():
    callers = Callers("given up")
    callers([lambda: 1, lambda: 2], 60.0)
    assert len(threads("given up")) == 2
    del callers
    gc.collect()
    assert ended("given up")


def test_a_thread_whose_call_is_interrupted_is_not_used_again():
    callers, free = Callers("interrupted"), threading.Event()
    callers.one(lambda: 1, 60.0)
    (caller,) = callers._idle

    class Interrupting:
        def get(self, timeout):
            raise KeyboardInterrupt

    caller.answers, answers = Interrupting(), caller.answers
    with pytest.raises(KeyboardInterrupt):
        callers.one(lambda: free.wait(60.0), 60.0)
    free.set()
    assert answers.get(timeout=60.0) is True
    assert ended("interrupted")
    assert callers.one(lambda: 2, 60.0) == 2
