"""scikit-learn's MLPRegressor with adam in mini-batches, restarted when it stops gaining; the best by training loss.

The step size is the best of 1e-3, 3e-3, 1e-2, 3e-2, 1e-1 at (10, 20), n/p = 6: ``python -m benchmarks tune``.
"""

import warnings
from itertools import count

import numpy as np
from tests.catalogue.base import Problem

import relumine as rl
from benchmarks.clock import budget
from benchmarks.methods.best import Best, missing, one_output

NAME = "scikit-learn Adam"
RATE = 3e-2


def skip(problem: Problem) -> str | None:
    return missing("sklearn", "scikit-learn") or one_output(problem.outputs) or ("no units" if not problem.m else None)


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0, rate: float = RATE) -> rl.Network:
    from sklearn.neural_network import MLPRegressor

    best, options = Best(X, y, width), {"solver": "adam", "alpha": 0.0, "tol": 1e-7, "n_iter_no_change": 50}
    with budget(seconds), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in count():
            model = MLPRegressor(
                hidden_layer_sizes=(width,),
                random_state=1000 * rng + start,
                learning_rate_init=rate,
                max_iter=10**6,
                **options,
            )
            try:
                model.fit(X, y)
            finally:
                if hasattr(model, "coefs_"):
                    best.offer(model.coefs_[0].T, model.intercepts_[0], model.coefs_[1][:, 0], model.intercepts_[1][0])
    return best.network
