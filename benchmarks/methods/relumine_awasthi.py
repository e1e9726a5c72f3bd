"""relumine, the tensor method of Awasthi et al. 2021: an estimate with the sampling error of its moments."""

import numpy as np
from tests.catalogue.base import Problem

import relumine as rl

NAME = "relumine awasthi"


def skip(problem: Problem) -> str | None:
    if problem.outputs != 1:
        return "one output only"
    return f"width {problem.m} > d = {problem.d} (ℓ = 1)" if problem.m > problem.d else None


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0) -> rl.Network:
    return rl.recover(X, y, width=width, method="awasthi", rng=rng, on_failure="return").network
