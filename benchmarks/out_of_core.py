"""Moments of a parquet data set, and recovery from it, out of core: time against a GEMM, memory, growth in n.

    python benchmarks/out_of_core.py make DIRECTORY [--rows 5000000]
    python benchmarks/out_of_core.py measure DIRECTORY [--out docs/results/out_of_core.json]

`make` writes seeded samples of a planted network, d = 20 correlated inputs with a mean, in files of 10⁵ rows: y, and
noisy (signal-to-noise about 10).
`measure` runs each pass in a process of its own (for its peak memory), the GEMM before and after it in the same
process, with as many BLAS threads as OPENBLAS_NUM_THREADS says.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from relumine import planted, recover
from relumine.data.moment_pass import estimate_from, sums_of, view_of
from relumine.data.sources import open_source
from relumine.data.whiten import whitening_of
from relumine.steps.subspace import weight_subspace

D, WIDTH, FILE_ROWS = 20, 5, 100_000
PASSES = ("read", "whitening", "subspace", "plain", "recover", "recover noisy", "width unknown")
GROWTH = ("whitening", "subspace", "recover", "recover noisy")


def make(directory: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory.mkdir(parents=True, exist_ok=True)
    truth = planted.network(D, WIDTH, rng=0)
    mix = np.eye(D) + 0.2 * np.random.default_rng(1).normal(size=(D, D)) / np.sqrt(D)
    for number in range(rows // FILE_ROWS):
        Z = np.random.default_rng([2, number]).normal(size=(FILE_ROWS, D))
        X = Z @ mix.T + 3.0
        y = truth(Z)
        noisy = y + 0.3 * np.random.default_rng([3, number]).normal(size=FILE_ROWS)
        table = pa.table({f"x{j}": X[:, j] for j in range(D)} | {"y": y, "noisy": noisy})
        pq.write_table(table, directory / f"part-{number:04d}.parquet")


def gemm_seconds(size: int, n: int) -> float:
    """Time of the product (size, n)·(n, size), in blocks of 4096: as long as what it is compared with."""
    rng, blocks = np.random.default_rng(0), max(1, n // 4096)
    A, B = rng.normal(size=(size, 4096)), rng.normal(size=(4096, size))
    A @ B
    start = time.perf_counter()
    for _ in range(blocks):
        A @ B
    return (time.perf_counter() - start) * n / (4096 * blocks)


def measure_pass(directory: Path, name: str, files: int) -> dict[str, float]:
    paths = sorted(str(p) for p in directory.glob("part-*.parquet"))[:files]
    features = [f"x{j}" for j in range(D)]
    source = open_source(paths, target="noisy" if name == "recover noisy" else "y", features=features)
    found: dict[str, float] = {"n": source.n or 0}
    if name == "read":
        start = time.perf_counter()
        for _ in source.chunks():
            pass
    elif name == "whitening":
        start = time.perf_counter()
        whitening_of(source)
    elif name in PASSES[4:]:
        start = time.perf_counter()
        result = recover(source, width=None if name == "width unknown" else WIDTH, rng=0)
        found |= {"exact": float(result.status.value == "exact"), "searched": float(result.details["rows_searched"])}
        found["units"] = result.network.m
    else:
        few = open_source(paths[:2], target="y", features=features)
        white, _ = whitening_of(few)
        T = estimate_from(few, 2, view=view_of(white)).tensors
        V, _ = weight_subspace(T[2], WIDTH)
        inside = view_of(white, V, T[1].entries, float(T[0].entries[0]))
        view, estimator = (inside, "regressed") if name == "subspace" else (view_of(white), "plain")
        size = sums_of(few, 4, estimator, view=view).cross.size
        half = int(found["n"]) // 2  # before the pass and after it: the machine may be busier at one time than another
        reference = gemm_seconds(size, half)
        start = time.perf_counter()
        sums_of(source, 4, estimator, view=view)
    found["seconds"] = time.perf_counter() - start
    if name in ("subspace", "plain"):
        reference += gemm_seconds(size, half)
        found |= {"features": size, "gemm": reference, "fraction_of_gemm": reference / found["seconds"]}
    found["peak_MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def measure(directory: Path, out: Path | None) -> None:
    available = len(list(directory.glob("part-*.parquet")))
    counts = [k for k in (1, 2, 5, 10, 20, 50) if k <= available]
    for path in directory.glob("part-*.parquet"):  # into the page cache
        path.read_bytes()
    report: dict[str, Any] = {"threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"), "passes": {}}
    for name in PASSES:
        results = []
        for files in counts if name in GROWTH else counts[-1:]:
            command = [sys.executable, __file__, "pass", str(directory), "--name", name, "--files", str(files)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results.append(json.loads(done.stdout))
            print(name, json.dumps({k: round(v, 3) for k, v in results[-1].items()}), flush=True)
        if len(results) > 2:
            n, seconds = (np.log([r[k] for r in results]) for k in ("n", "seconds"))
            print(f"{name}: time grows like n^{np.polyfit(n, seconds, 1)[0]:.2f}")
            report.setdefault("exponents", {})[name] = float(np.polyfit(n, seconds, 1)[0])
        report["passes"][name] = results
        if out is not None:
            out.write_text(json.dumps(report, indent=1))


NAMES = {
    "read": "reading alone",
    "whitening": "whitening",
    "subspace": "moments of order 4, regressed, in the 5-dimensional span (126 features)",
    "plain": "moments of order 4, plain, in all 20 dimensions (231 features)",
    "recover": "`recover`, exact data, width known",
    "width unknown": "`recover`, exact data, width unknown",
    "recover noisy": "`recover`, noisy data, width known",
}


def tables(report: dict[str, Any] | None) -> str:
    """The tables of docs/scale.md."""
    from benchmarks.text import duration, table

    if report is None:
        return ""
    passes = {name: results for name, results in report["passes"].items() if results}
    rows = [
        [
            NAMES[name],
            duration(results[-1]["seconds"]),
            f"{results[-1]['fraction_of_gemm']:.0%}" if "fraction_of_gemm" in results[-1] else "",
            f"{results[-1]['peak_MB']:.0f} MB",
        ]
        for name, results in passes.items()
    ]
    largest = f"{passes['read'][-1]['n']:,} rows"
    growing = list(report.get("exponents", {}))
    sizes = [int(r["n"]) for r in passes[growing[0]]]
    growth = [
        [f"{n:,}", *(f"{duration(passes[k][i]['seconds'])}, {passes[k][i]['peak_MB']:.0f} MB" for k in growing)]
        for i, n in enumerate(sizes)
    ]
    growth.append(["grows like", *(f"n^{report['exponents'][k]:.2f}" for k in growing)])
    return "\n\n".join(
        [
            table([f"over {largest}", "time", "of same-flop GEMM", "peak memory"], rows),
            table(["rows", *(NAMES[k].split(" (")[0] for k in growing)], growth),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "measure", "pass"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--name", choices=PASSES)
    parser.add_argument("--files", type=int)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.command == "make":
        make(given.directory, given.rows)
    elif given.command == "measure":
        measure(given.directory, given.out)
    else:
        print(json.dumps(measure_pass(given.directory, given.name, given.files)))


if __name__ == "__main__":
    main()
