"""The same with scipy's trust region, whose steps are found by LSMR: far less work a step with many parameters."""

import numpy as np

import relumine as rl
from benchmarks.methods import scipy_lm
from benchmarks.methods.scipy_lm import skip

__all__ = ["NAME", "run", "skip"]

NAME = "scipy TRF"


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0) -> rl.Network:
    return scipy_lm.run(X, y, width, seconds, rng, method="trf", tr_solver="lsmr")
