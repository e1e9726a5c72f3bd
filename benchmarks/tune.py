"""The step sizes the alternatives are given, chosen once: ``python -m benchmarks tune`` prints how each would do.

By the median relative loss over a few seeds that are used nowhere else, after about as long as a comparison lasts.
"""

from __future__ import annotations

import numpy as np
from tests.catalogue.base import random_network

from benchmarks.methods import sklearn_adam, torch_adam
from benchmarks.methods.best import relative_loss

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)


def tune(seconds: float = 3.0, seeds: range = range(900, 903)) -> None:
    """Every step size on the same data for the same time."""
    problem = random_network(10, 20, 6)
    for method in (torch_adam, sklearn_adam):
        for rate in RATES:
            losses = []
            for seed in seeds:
                _, X, y = problem.make(seed)
                losses.append(relative_loss(method.run(X, y, problem.m, seconds, rng=seed, rate=rate), X, y))
            print(f"{method.NAME} {rate:g}: median relative loss {np.median(losses):.1e}", flush=True)
