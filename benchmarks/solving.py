"""One problem and some seeds under whatever relumine is imported: the child process of the measure ``beside``.

It asks of the library no more than version 0.1.0 had.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from tests.catalogue.base import Problem, random_network
from tests.catalogue.shipped import NETS, shipped

import relumine as rl
from benchmarks.clock import now
from benchmarks.results import Row


def problem(name: str, ratio: float) -> Problem:
    """A random network "(d,m)", or a trained one by its name, with so many samples per parameter."""
    if name.startswith("("):
        d, m = map(int, name.strip("()").split(","))
        return random_network(d, m, ratio)
    file, d, m = next((file, d, m) for known, file, d, m, _ in NETS if known == name)
    return Problem(f"{name} n/p={ratio:g}", d, m, lambda seed: shipped(file, seed, ratio))


def solve(name: str, ratio: float, seeds: list[int], patience: float) -> None:
    """A seed for each line that arrives, its result as a line of JSON: so two codes can take turns.

    A run is stopped, as by Ctrl-C, when its ``patience`` is over.
    """
    _one(random_network(4, 2, 20).make(0), 0, patience)  # loaded and warm
    for seed, _ in zip(seeds, sys.stdin):
        print(json.dumps(_one(problem(name, ratio).make(seed), seed, patience)), flush=True)


def _one(planted: tuple[rl.Network, np.ndarray, np.ndarray], seed: int, patience: float) -> Row:
    truth, X, y = planted
    began = now()

    def stop(_: object) -> None:
        if now() > began + patience:
            raise KeyboardInterrupt

    found = rl.recover(X, y, width=truth.m, rng=seed + 2, progress=stop, on_failure="return")
    spent = now() - began
    error = rl.metrics.parameter_error(truth, found.network)
    print(f"  seed {seed}: {found.status.value}, error {error:.0e}, {spent:.2f} s", file=sys.stderr, flush=True)
    error = float(error) if np.isfinite(error) else 1e300
    return {"seconds": spent, "error": error, "status": found.status.value, "version": rl.__version__}


if __name__ == "__main__":
    solve(*json.loads(sys.argv[1]))
