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

EXACT = 1e-8  # largest parameter error, as in measures/fair.py


def problem(name: str, ratio: float) -> Problem:
    """A random network "(d,m)", or a trained one by its name, with so many samples per parameter."""
    if name.startswith("("):
        d, m = map(int, name.strip("()").split(","))
        return random_network(d, m, ratio)
    file, d, m = next((file, d, m) for known, file, d, m, _ in NETS if known == name)
    return Problem(f"{name} n/p={ratio:g}", d, m, lambda seed: shipped(file, seed, ratio))


def solve(name: str, ratio: float, seeds: list[int], patience: float, width_known: bool = True) -> Row:
    """CPU seconds and hits; a run is stopped, as by Ctrl-C, when its ``patience`` is over."""
    _one(random_network(4, 2, 20).make(0), 0, patience, True)  # loaded and warm
    runs = [_one(problem(name, ratio).make(seed), seed, patience, width_known) for seed in seeds]
    return {
        "exact": sum(run["error"] <= EXACT for run in runs),
        "runs": len(runs),
        "wrong": sum(run["status"] == "exact" and run["error"] > 1e-6 for run in runs),
        "stopped": sum(run["status"] == "interrupted" for run in runs),
        "seconds": [run["seconds"] for run in runs],
        "version": rl.__version__,
    }


def _one(planted: tuple[rl.Network, np.ndarray, np.ndarray], seed: int, patience: float, width_known: bool) -> Row:
    truth, X, y = planted
    began = now()

    def stop(_: object) -> None:
        if now() > began + patience:
            raise KeyboardInterrupt

    width = truth.m if width_known else None
    found = rl.recover(X, y, width=width, rng=seed + 2, progress=stop, on_failure="return")
    spent = now() - began
    error = rl.metrics.parameter_error(truth, found.network)
    print(f"  seed {seed}: {found.status.value}, error {error:.0e}, {spent:.2f} s", file=sys.stderr, flush=True)
    return {"seconds": spent, "error": float(error) if np.isfinite(error) else 1e300, "status": found.status.value}


if __name__ == "__main__":
    print(json.dumps(solve(*json.loads(sys.argv[1]))))
