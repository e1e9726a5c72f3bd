"""A teacher of Mondelli & Montanari's Figure 1 under whatever relumine is imported: the child process of ``hard``.

It asks of the library no more than version 0.1.0 had.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import relumine as rl
from benchmarks.clock import now
from benchmarks.results import Row
from relumine.activations import Elementwise, Reflection

SLOPE = 2.5
FRESH = 20_000  # samples that the error is measured on


class SteepTanh(Elementwise):
    """σ(z) = tanh(5z/2)."""

    name = "tanh(5z/2)"
    reflection = Reflection(-1.0, 0.0, 0.0)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        return np.tanh(SLOPE * z)

    def derivative(self, z: np.ndarray) -> np.ndarray:
        h = np.tanh(SLOPE * z)
        return np.asarray(SLOPE * (1.0 - h * h))


def reach(d: int, r: int, ratio: int, seed: int, seconds: float) -> Row:
    """How far ``recover`` gets with a teacher of r units in so many CPU seconds; its steps, one line each."""
    W = rl.planted.weights(d, r, np.random.default_rng([seed, r]), family="centred_haar")
    truth = rl.Network(W, np.zeros(r), np.ones(r), SteepTanh())
    X, y = rl.planted.sample(truth, ratio * r * (d + 2), rng=np.random.default_rng([seed, r, 1]))
    fresh, labels = rl.planted.sample(truth, FRESH, rng=np.random.default_rng([seed, r, 2]))
    began, steps = now(), [0]

    def stop(step: object) -> None:
        steps[0] += 1
        print(f"  {now() - began:.0f} s: {step}", file=sys.stderr, flush=True)
        if now() > began + seconds:
            raise KeyboardInterrupt

    found = rl.recover(X, y, width=r, activation=truth.activation, rng=seed, progress=stop, on_failure="return")
    net = found.network
    return {
        "status": found.status.value,
        "units": net.m,
        "steps": steps[0],
        "error": float(np.mean((net(fresh) - labels) ** 2) / np.mean((labels - labels.mean()) ** 2)),
        "seconds": now() - began,
        "version": rl.__version__,
    }


if __name__ == "__main__":
    print(json.dumps(reach(*json.loads(sys.argv[1]))))
