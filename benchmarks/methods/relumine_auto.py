"""relumine: least squares in the sign-free form, over-parameterised, with as many starts as it needs."""

import numpy as np
from tests.catalogue.base import Problem

import relumine as rl
from benchmarks.clock import now

NAME = "relumine"


def skip(problem: Problem) -> str | None:
    return None


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0) -> rl.Network:
    end = now() + seconds

    def stop(_: rl.results.Progress) -> None:  # as Ctrl-C would: its own limit counts on the wall clock
        if now() > end:
            raise KeyboardInterrupt

    return rl.recover(X, y, width=width, rng=rng, progress=stop, on_failure="return").network
