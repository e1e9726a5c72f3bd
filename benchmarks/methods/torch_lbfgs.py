"""PyTorch L-BFGS with strong Wolfe line search on all rows, float64, one thread; restarts until the time is over."""

from itertools import count
from typing import Any

import numpy as np
from tests.catalogue.base import Problem

import relumine as rl
from benchmarks.clock import budget
from benchmarks.methods.best import Best, missing, one_output, torch_on_one_thread

NAME = "PyTorch L-BFGS"


def skip(problem: Problem) -> str | None:
    return missing("torch", "PyTorch") or one_output(problem.outputs) or ("no units" if not problem.m else None)


def run(X: np.ndarray, y: np.ndarray, width: int, seconds: float, rng: int = 0) -> rl.Network:
    torch = torch_on_one_thread()
    inputs, targets, best = torch.tensor(X), torch.tensor(y), Best(X, y, width)
    scale = 1.0 / float(np.var(y))
    with budget(seconds):
        for start in count():
            torch.manual_seed(1000 * rng + start)
            hidden = torch.nn.Linear(X.shape[1], width, dtype=torch.float64)
            out = torch.nn.Linear(width, 1, dtype=torch.float64)
            parameters = [*hidden.parameters(), *out.parameters()]
            optimiser = torch.optim.LBFGS(
                parameters,
                max_iter=3000,
                max_eval=6000,
                history_size=50,
                tolerance_grad=1e-14,
                tolerance_change=1e-30,
                line_search_fn="strong_wolfe",
            )

            def closure() -> Any:
                optimiser.zero_grad()  # noqa: B023  (used before the next start)
                loss = scale * ((out(torch.relu(hidden(inputs)))[:, 0] - targets) ** 2).mean()  # noqa: B023
                loss.backward()
                return loss

            try:
                optimiser.step(closure)
            finally:
                W, b, a, c = (p.detach().numpy().copy() for p in parameters)
                sure = best.offer(W, b, a[0], c[0])
            if sure:
                break
    return best.network
