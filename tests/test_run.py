"""What a run carries: when it is over, and what a stop request means to its last steps."""

from __future__ import annotations

import signal

import pytest

from relumine.results import Progress
from relumine.run import Run


def test_the_last_steps_of_a_stopped_run_are_not_stopped_again_by_the_same_request() -> None:
    run = Run.of(rng=0, seconds=1e-9)
    run.stop.set()
    last = run.unhurried()
    assert run.over
    assert not last.over
    assert last.rng is run.rng
    last.stop.set()  # a second request counts
    assert last.over


def test_a_stop_that_comes_during_the_last_steps_reaches_them() -> None:
    run = Run.of(rng=0)
    last = run.unhurried()
    run.stop.set()
    assert last.over


def test_a_listener_may_ask_to_stop() -> None:
    def listen(step: Progress) -> None:
        raise KeyboardInterrupt

    run = Run.of(rng=0, progress=listen)
    run.report("search", 1)
    assert run.over


def test_the_first_interrupt_asks_and_the_second_is_pythons() -> None:
    usual = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run = Run.of(rng=0)
        with run.interruptible():
            signal.raise_signal(signal.SIGINT)
            assert run.over
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, usual)
