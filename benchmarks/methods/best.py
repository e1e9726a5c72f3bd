"""What methods with restarts share: the best network so far, and whether a library is there."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

import relumine as rl

SURE = 1e-24  # relative loss at which another start cannot help


class Best:
    """The network of lowest loss; a zero network before the first."""

    def __init__(self, X: np.ndarray, y: np.ndarray, width: int) -> None:
        self.X, self.y, self.loss = X, y, float("inf")
        self.network = rl.Network(np.zeros((width, X.shape[1])), np.zeros(width), np.zeros(width))

    def offer(self, W: np.ndarray, b: np.ndarray, a: np.ndarray, c: float = 0.0) -> bool:
        """Keep Σ a_i σ(w_i·x + b_i) + c if it is better; returns whether no other start is needed."""
        if all(np.isfinite(part).all() for part in (W, b, a, c)):
            net = rl.Network(W, b, a, c=c)
            loss = relative_loss(net, self.X, self.y)
            if loss < self.loss:
                self.network, self.loss = net, loss
        return self.loss <= SURE


def relative_loss(net: rl.Network, X: np.ndarray, y: np.ndarray) -> float:
    """Mean squared error over the variance of y."""
    return float(np.mean((net(X) - y) ** 2) / np.var(y))


def missing(library: str, package: str) -> str | None:
    """Why a method that needs the library is left out, if it is not installed."""
    return None if find_spec(library) else f"{package} is not installed"


def one_output(outputs: int) -> str | None:
    return None if outputs == 1 else "written for one output"


@cache
def torch_on_one_thread() -> Any:
    """PyTorch, loaded altogether: it imports much of itself at the first step, which must not count as work."""
    import torch

    torch.set_num_threads(1)
    for kind in (torch.optim.Adam, torch.optim.LBFGS):
        x = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
        optimiser = kind([x])

        def closure(x: Any = x, optimiser: Any = optimiser) -> Any:
            optimiser.zero_grad()
            loss = (torch.relu(x) ** 2).sum()
            loss.backward()
            return loss

        optimiser.step(closure)
    return torch
