"""scipy's least_squares on the ordinary form Σ a σ(w·x + b) with its exact Jacobian: Levenberg–Marquardt by MINPACK.

A start has unit directions, biases N(0, ½²), and the output weights that fit best; restarts until the time is over.
"""

from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from tests.catalogue.base import Problem

import relumine as rl
from benchmarks.clock import budget
from benchmarks.methods.best import SURE, Best, one_output

NAME = "scipy LM"
STEPS = 150  # evaluations of one start


def skip(problem: Problem) -> str | None:
    return "no units" if problem.m == 0 else one_output(problem.outputs)


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0, **solver: Any) -> rl.Network:
    n, d = X.shape
    X1, best, size = np.column_stack([X, np.ones(n)]), Best(X, y, width), width * (d + 1)

    def residual(p: np.ndarray) -> np.ndarray:
        U, a = p[:size].reshape(width, d + 1), p[size:]
        r = np.maximum(X1 @ U.T, 0.0) @ a - y
        if r @ r < best.loss * n * y.var():  # kept at once: the time may be over before this start is
            best.offer(U[:, :-1], U[:, -1], a)
        return r

    def jacobian(p: np.ndarray) -> np.ndarray:
        Z = X1 @ p[:size].reshape(width, d + 1).T
        slopes = (Z > 0.0) * p[size:]
        return np.concatenate([(slopes[:, :, None] * X1[:, None, :]).reshape(n, size), np.maximum(Z, 0.0)], axis=1)

    options = {"method": "lm" if n >= size + width else "trf", "max_nfev": STEPS, **solver}
    options |= dict.fromkeys(("ftol", "xtol", "gtol"), 1e-15)
    with budget(seconds):
        for start in count():
            random = np.random.default_rng([rng, start])
            W = random.normal(size=(width, d))
            U = np.column_stack([W / np.linalg.norm(W, axis=1)[:, None], random.normal(scale=0.5, size=width)])
            a = np.linalg.lstsq(np.maximum(X1 @ U.T, 0.0), y, rcond=None)[0]
            least_squares(residual, np.concatenate([U.ravel(), a]), jacobian, **options)
            if best.loss <= SURE:
                break
    return best.network
