"""PyTorch Adam on all rows, float64, one thread: three starts share the time, the step size falls to zero in each.

The step size is the best of 1e-3, 3e-3, 1e-2, 3e-2, 1e-1 at (10, 20), n/p = 6: ``python -m benchmarks tune``.
"""

from math import cos, pi

import numpy as np
from tests.catalogue.base import Problem

import relumine as rl
from benchmarks.clock import budget, now
from benchmarks.methods.best import Best, missing, one_output, torch_on_one_thread

NAME = "PyTorch Adam"
RATE, STARTS = 1e-1, 3


def skip(problem: Problem) -> str | None:
    return missing("torch", "PyTorch") or one_output(problem.outputs) or ("no units" if not problem.m else None)


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0, rate: float = RATE) -> rl.Network:
    torch = torch_on_one_thread()
    inputs, targets, best = torch.tensor(X), torch.tensor(y), Best(X, y, width)
    share = seconds / STARTS
    with budget(seconds):
        for start in range(STARTS):
            torch.manual_seed(1000 * rng + start)
            hidden = torch.nn.Linear(X.shape[1], width, dtype=torch.float64)
            out = torch.nn.Linear(width, 1, dtype=torch.float64)
            parameters, began = [*hidden.parameters(), *out.parameters()], now()
            optimiser = torch.optim.Adam(parameters, lr=rate)
            while (spent := (now() - began) / share) < 0.98:
                optimiser.param_groups[0]["lr"] = rate * 0.5 * (1.0 + cos(pi * spent))
                optimiser.zero_grad()
                ((out(torch.relu(hidden(inputs)))[:, 0] - targets) ** 2).mean().backward()
                optimiser.step()
            W, b, a, c = (p.detach().numpy().copy() for p in parameters)
            if best.offer(W, b, a[0], c[0]):
                break
    return best.network
