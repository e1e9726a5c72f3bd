"""A run ends because its time is over or because someone asks; either way the best so far comes back."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest
from tests.catalogue.base import generic

import relumine as rl
from relumine.data.sources import as_samples
from relumine.recovery.story import Problem, solve
from relumine.results import Progress, Status
from relumine.run import Run


def ctrl_c(at: int, times: int = 1):
    steps = iter(range(10**6))

    def progress(_: Progress) -> None:
        if next(steps) == at:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    return progress


@pytest.mark.parametrize("at", [0, 5, 12])
def test_ctrl_c_returns_the_best_network_so_far(at: int) -> None:
    _, X, y = generic(10, 10, 5)(0)
    before = signal.getsignal(signal.SIGINT)
    found = rl.recover(X, y, width=10, rng=0, progress=ctrl_c(at))
    assert found.status is Status.INTERRUPTED
    assert np.mean((found.network(X) - y) ** 2) < np.var(y)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_aborts_but_not_inside_the_listener() -> None:
    """While the callback runs a second one still means the same: stop."""
    _, X, y = generic(10, 10, 5)(0)
    found = rl.recover(X, y, width=10, rng=0, progress=ctrl_c(3, times=2))
    assert found.status is Status.INTERRUPTED


def test_a_second_ctrl_c_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    from relumine.fit import levenberg

    _, X, y = generic(10, 10, 5)(0)
    original = levenberg.project

    def interrupted(*args: object) -> object:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return original(*args)

    monkeypatch.setattr(levenberg, "project", interrupted)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        rl.recover(X, y, width=10, rng=0)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_programs_own_handler_stays() -> None:
    _, X, y = generic(6, 3, 5)(0)
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        found = rl.recover(X, y, width=3, rng=0, progress=ctrl_c(2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
    assert found.status is Status.EXACT


def test_another_thread_can_stop_it_and_installs_no_handler() -> None:
    _, X, y = generic(10, 10, 5)(0)
    samples = as_samples(X, y)
    run = Run.of(0)
    run.progress = lambda step: run.stop.set() if step.iteration == 7 else None
    cases = []

    def work() -> None:
        with run.interruptible():
            cases.append(solve(samples, Problem(10, rl.activations.RELU, 20), run))

    worker, before = threading.Thread(target=work), signal.getsignal(signal.SIGINT)
    worker.start()
    worker.join()
    assert signal.getsignal(signal.SIGINT) is before
    assert cases[0].evidence.interrupted
    assert not cases[0].evidence.timed_out
    assert cases[0].recovery().status is Status.INTERRUPTED


@pytest.mark.parametrize("width", [12, None])
def test_the_time_limit_ends_every_stage(width: int | None) -> None:
    """No network of 12 units explains this; without a limit it would take long."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = np.sin(4.0 * X[:, 0]) * np.exp(X[:, 1]) + X[:, 2] ** 3
    began = time.monotonic()
    found = rl.recover(X, y, width=width, rng=0, starts=10_000, seconds=1.0, on_failure="return")
    assert found.status is Status.INTERRUPTED
    assert time.monotonic() - began < 20.0


def test_an_exact_answer_is_not_spoilt_by_a_late_stop() -> None:
    """The stop comes with the last step of the polish: what is left to do is short and is done."""
    truth, X, y = generic(8, 5, 6)(1)
    steps: list[Progress] = []
    rl.recover(X, y, width=5, rng=0, progress=steps.append)
    found = rl.recover(X, y, width=5, rng=0, progress=ctrl_c(len(steps) - 1))
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-9
