"""relumine, the tensor start and gradient descent of Zhong et al. 2017: no biases, output weights ±1."""

import numpy as np
from tests.catalogue.base import Problem

import relumine as rl

NAME = "relumine zhong"


def skip(problem: Problem) -> str | None:
    if problem.m > problem.d:
        return f"width {problem.m} > d = {problem.d}"
    return "units have biases, or output weights other than ±1" if problem.biased or problem.outputs != 1 else None


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0) -> rl.Network:
    return rl.recover(X, y, width=width, method="zhong", rng=rng, on_failure="return").network
