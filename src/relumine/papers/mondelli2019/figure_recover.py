"""``relumine.recover`` on the teachers of Mondelli & Montanari's Figure 1, with a limit on time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from relumine import Network, metrics, planted, recover
from relumine.activations import Elementwise, Reflection
from relumine.papers.cells import Cells, short
from relumine.papers.mondelli2019.figure import SEED, SLOPE, teacher, weight_error
from relumine.recovery.advice import advise

LIMITS = {50: (6, 600.0), 350: (6, 600.0), 2500: (6, 300.0)}  # samples per parameter, seconds
MEMORY, HOPELESS = 4_000_000_000, 100.0  # bytes; estimate over limit beyond which not even a first step would end


class SteepTanh(Elementwise):
    """σ(z) = tanh(5z/2)."""

    name = "tanh(5z/2)"
    reflection = Reflection(-1.0, 0.0, 0.0)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return np.tanh(SLOPE * z)

    def derivative(self, z: np.ndarray) -> np.ndarray:
        h = np.tanh(SLOPE * z)
        return np.asarray(SLOPE * (1.0 - h * h))


def cells(d: int, widths: list[int], quick: bool) -> list[tuple[str, Callable[..., Cells], tuple[Any, ...]]]:
    limits = dict.fromkeys(widths, (8, 20.0)) if quick else LIMITS
    return [(str(r), run_recover, (d, r, *limits[r])) for r in widths]


def run_recover(d: int, r: int, ratio: int, seconds: float) -> Cells:
    """What ``recover`` returns, its errors, and what it was told to expect."""
    W = teacher(d, r)
    truth = Network(W, np.zeros(r), np.ones(r), SteepTanh())
    n = ratio * r * (d + 2)
    advice = advise(d, r, SteepTanh(), samples=n)
    cell: Cells = {"d": d, "r": r, "n": n, "limit": seconds, "advice": advice.title, "estimate": short(advice.seconds)}
    if advice.memory_bytes > MEMORY:
        return cell | {"status": "refused", "message": f"needs about {advice.memory_bytes / 1e9:.0f} GB"}
    if advice.seconds > HOPELESS * seconds:
        return cell | {"status": "refused", "message": f"estimated at {advice.seconds / 86400:.0f} days"}
    X, y = planted.sample(truth, n, rng=np.random.default_rng([SEED, r, 1]))
    fresh, labels = planted.sample(truth, 20_000, rng=np.random.default_rng([SEED, r, 2]))
    wall, cpu = time.perf_counter(), time.process_time()
    found = recover(X, y, width=r, activation=truth.activation, rng=SEED, seconds=seconds, on_failure="return")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    net = found.network
    W_hat = net.W * np.where(net.a < 0.0, -1.0, 1.0)[:, None]  # σ is odd: the sign belongs to w
    exact = metrics.parameter_error(truth, net) if net.m == r else float("inf")
    return cell | {
        "status": found.status.value,
        "message": found.message,
        "units": net.m,
        "error": short(float(np.mean((net(fresh) - labels) ** 2) / np.mean(labels**2))),
        "weights": short(weight_error(W, W_hat)) if net.m else None,
        "parameter_error": short(exact) if np.isfinite(exact) else None,
        "seconds": short(wall),
        "cpu_seconds": short(cpu),
        "stages": [[stage.name, short(stage.seconds), stage.note] for stage in found.stages],
    }
