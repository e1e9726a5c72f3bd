"""The conjugate gradient product against the GEMMs it contains, in one run.

python -m benchmarks.hot_loop
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from relumine.activations import RELU
from relumine.fit.parallel import cores
from relumine.fit.projection import Linearisation, Unknowns, project
from relumine.fit.rows import MemoryRows
from relumine.fit.sign_free import shape_of
from relumine.fit.starts import random_directions


def best_of(*actions: Callable[[], object], seconds: float = 1.5) -> list[float]:
    """Shortest time of each, measured in turns: the ones least disturbed by whatever else the machine does."""
    best, end = [float("inf")] * len(actions), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for k, action in enumerate(actions):
            began = time.perf_counter()
            action()
            best[k] = min(best[k], time.perf_counter() - began)
    return best


def product_ratio(d: int, m: int, n: int) -> dict[str, float]:
    """Time of the two big GEMMs (X̃δᵀ and DᵀX̃; a third, X̃Uᵀ, where hidden values are recomputed) over the product's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d + 1))
    X[:, -1] = 1.0
    rows, shape = MemoryRows(X, rng.normal(size=(n, 1))), shape_of(RELU)
    U = random_directions(rng, m, d + 1)
    at = project(rows, shape, U)
    lin = Linearisation(rows, at)
    x = Unknowns(rng.normal(size=U.shape), rng.normal(size=(m, 1)), rng.normal(size=(d + 1, 1)))
    T = np.empty((n, m))
    gemms = 2 if lin.rows is not rows else 3

    def reference() -> None:
        for _ in range(gemms - 1):
            np.matmul(X, U.T, out=T)
        T.T @ X

    with threadpool_limits(1):
        gemm, single = best_of(reference, lambda: lin.product(x))
    with cores() as workers:
        (parallel,) = best_of(lambda: lin.product(x))
    return {
        "d": d,
        "m": m,
        "n": n,
        "gemms": gemms,
        "gemm_share": gemm / single,
        "workers": workers,
        "parallel_gain": single / parallel,
        "seconds": single,
    }


def main() -> None:
    rows = []
    for size in ((10, 30, 20_000), (20, 30, 20_000), (50, 50, 15_000), (100, 150, 40_000), (784, 32, 100_000)):
        r = product_ratio(*size)
        rows.append(r)
        print(
            f"(d, m, n) = {size}: product at {r['gemm_share']:.0%} of the speed of its {r['gemms']} GEMMs; "
            f"{r['workers']} workers: {r['parallel_gain']:.2f}x; {1e3 * r['seconds']:.1f} ms",
            flush=True,
        )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
