"""scikit-learn's MLPRegressor with lbfgs, restarted until the time is over; the best by training loss.

It stops at small gains, so a start that comes close goes on with enlarged numbers: else nothing would be exact.
"""

import warnings
from itertools import count
from typing import Any

import numpy as np
from tests.catalogue.base import Problem

import relumine as rl
from benchmarks.clock import budget
from benchmarks.methods.best import Best, missing, one_output

NAME = "scikit-learn L-BFGS"


def skip(problem: Problem) -> str | None:
    return missing("sklearn", "scikit-learn") or one_output(problem.outputs) or ("no units" if not problem.m else None)


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0) -> rl.Network:
    from sklearn.neural_network import MLPRegressor

    best, options = Best(X, y, width), {"solver": "lbfgs", "alpha": 0.0, "tol": 1e-12, "max_iter": 5000}
    with budget(seconds), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in count():
            model, scale = MLPRegressor(hidden_layer_sizes=(width,), random_state=1000 * rng + start, **options), 1.0
            model.set_params(max_fun=10**6, warm_start=True)
            try:
                model.fit(X, y)
                if np.mean((model.predict(X) - y) ** 2) < 1e-5 * np.var(y):
                    scale = _enlarge(model)
                    model.fit(X, scale * y)
            finally:  # when the time is over the model holds what it had reached
                sure = hasattr(model, "coefs_") and best.offer(
                    model.coefs_[0].T,
                    model.intercepts_[0],
                    model.coefs_[1][:, 0] / scale,
                    model.intercepts_[1][0] / scale,
                )
            if sure:
                break
    return best.network


def _enlarge(model: Any, root: float = 1e4) -> float:
    """The same network for y·root²: scikit-learn stops at gains below 2e-9, whatever the scale of y."""
    model.coefs_ = [root * part for part in model.coefs_]
    model.intercepts_ = [root * model.intercepts_[0], root**2 * model.intercepts_[1]]
    return root**2
