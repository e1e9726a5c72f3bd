"""The moment pass against a GEMM of the same flop count, and its memory as n grows tenfold."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.out_of_core import gemm_seconds
from relumine.data.moment_pass import sums_of
from relumine.data.moments import MomentSums
from relumine.data.sources import open_source
from relumine.tensors.hermite import feature_count

D, ORDER, N = 30, 4, 60_000

MEMORY = """
import json, resource, sys
import numpy as np
from relumine.data.moments import MomentSums

n, rng = int(sys.argv[1]), np.random.default_rng(0)
sums = MomentSums(30, 4, "plain")
for _ in range(n // 20_000):  # chunks come from a generator: the samples are never all in memory
    X = rng.normal(size=(20_000, 30))
    sums.add(X, X[:, 0])
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


def fastest(run, rounds: int = 3) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def test_order_4_pass_costs_at_most_two_gemms(benchmark) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, D)), rng.normal(size=N)
    size = feature_count(D, ORDER // 2)
    A = rng.normal(size=(size, 4096))
    B = rng.normal(size=(4096, size))

    def gemm() -> None:  # the pass's flops, 2·size²·N, in blocks that fit the cache as well as they can
        for _ in range(N // 4096):
            A @ B

    def moments() -> MomentSums:
        return MomentSums(D, ORDER, "plain").add(X, y)

    gemm()
    reference = fastest(gemm) * N / (N // 4096 * 4096)
    benchmark.pedantic(moments, rounds=3, iterations=1, warmup_rounds=1)
    ratio = benchmark.stats.stats.min / reference
    benchmark.extra_info.update(ratio=ratio, gflops=2e-9 * size**2 * N / benchmark.stats.stats.min)
    print(f"\norder-4 pass at d={D}, n={N}: {ratio:.2f} × GEMM")
    assert ratio <= 2.0


def test_a_pass_over_parquet_costs_at_most_two_gemms(benchmark, tmp_path) -> None:
    """Reading included, from the page cache; benchmarks/out_of_core.py measures the same on 5·10⁶ rows."""
    d, n, rng = 20, 400_000, np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(d)} | {"y": X[:, 0]}), tmp_path / "s.parquet")
    source = open_source(str(tmp_path / "s.parquet"), target="y")
    gemm = gemm_seconds(feature_count(d, ORDER // 2), n)
    benchmark.pedantic(lambda: sums_of(source, ORDER, "plain"), rounds=3, iterations=1, warmup_rounds=1)
    ratio = benchmark.stats.stats.min / gemm
    benchmark.extra_info.update(ratio=ratio)
    print(f"\norder-4 pass over parquet at d={d}, n={n}: {ratio:.2f} × GEMM")
    assert ratio <= 2.0


def test_memory_is_flat_in_n(benchmark) -> None:
    def peak(n: int) -> int:
        done = subprocess.run([sys.executable, "-c", MEMORY, str(n)], capture_output=True, text=True, check=True)
        return int(json.loads(done.stdout))

    small = peak(100_000)
    large = benchmark.pedantic(peak, args=(1_000_000,), rounds=1, iterations=1)
    benchmark.extra_info.update(peak_kb={"1e5": small, "1e6": large})
    print(f"\npeak memory: {small / 1024:.0f} MB at n=1e5, {large / 1024:.0f} MB at n=1e6")
    assert large <= 1.1 * small
