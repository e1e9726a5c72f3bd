"""Compiled stochastic gradient descent against a numpy loop, steps a second in one run.

python -m benchmarks.sgd
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from relumine import planted
from relumine.experiments import sgd


def case(r: int, n: int, d: int = 50, rounds: int = 7) -> dict[str, float]:
    """Both loops on the same samples, in turns; CPU time, the best of each, so that a busy machine matters little."""
    rng = np.random.default_rng(r)
    W, start, X = planted.weights(d, r, rng, family="centred_haar"), planted.weights(d, r, rng), rng.normal(size=(n, d))
    y, step = sgd.labels(X, W, 2.5), 0.1 / (r * d)
    best = {"numpy": np.inf, "compiled": np.inf}
    for _ in range(rounds):
        state = np.vstack([start, np.zeros_like(start)])
        began = time.process_time()
        sgd.descend(X, y, state, 0, step, 2.5)
        best["compiled"] = min(best["compiled"], time.process_time() - began)
        began = time.process_time()
        sgd.descend_plainly(X, y, start.copy(), np.zeros_like(start), 0, step, 2.5)
        best["numpy"] = min(best["numpy"], time.process_time() - began)
    rates = {name: n / seconds for name, seconds in best.items()}
    return {
        "r": r,
        **{f"{name}_steps_per_second": rate for name, rate in rates.items()},
        "ratio": best["numpy"] / best["compiled"],
    }


def main(path: str = "docs/results/sgd.json") -> None:
    sgd.descend(np.ones((1, 2)), np.ones(1), np.ones((2, 2)), 0, 0.1, 2.5)  # compile
    with threadpool_limits(1):
        rows = [case(50, 4000), case(350, 2000), case(2500, 400)]
    Path(path).write_text(json.dumps({"rows": rows}))
    for row in rows:
        print(f"r = {row['r']}: {row['compiled_steps_per_second']:,.0f} steps a second, {row['ratio']:.1f} × numpy")


if __name__ == "__main__":
    main(*sys.argv[1:])
