"""Moments of a parquet data set, and recovery from it, out of core: CPU time against a GEMM, memory, growth in n.

Seeded samples of a planted network, d = 20 correlated inputs with a mean, in files of 10⁵ rows: y, and noisy
(signal-to-noise about 10); they are written to build/rows once (1.1 GB). Each pass runs in a process of its own, for
its peak memory, the GEMM before and after it in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.child import peak_bytes, run_alone
from benchmarks.clock import now
from benchmarks.compare import Speed
from benchmarks.counting import Count
from benchmarks.results import ROOT, Row
from benchmarks.text import duration, seeds_of, table
from relumine import planted, recover
from relumine.data.moments import estimate_from, sums_of
from relumine.data.sources import open_source
from relumine.data.views import Affine, Less, Projected, View, Whitened, seen
from relumine.data.whiten import whitening_of
from relumine.tensors.span import dominant_span

NAME = "out_of_core"
# files of 10⁵ rows for each pass; the last entry is the size of the first table
FULL: Row = {
    "growing": [1, 2, 5, 10, 20, 50],
    "passes": ["read", "whitening", "subspace", "plain", "recover", "width unknown", "recover noisy"],
    "grow": ["whitening", "subspace", "recover"],
    "grow_noisy": [2, 5, 10],
}
QUICK: Row = FULL | {"growing": [1, 2], "passes": ["read", "whitening", "recover"], "grow": ["whitening"]}
MINUTES = (8.0, 0.2)
D, WIDTH, FILE_ROWS = 20, 5, 100_000
FOLDER = ROOT / "build" / "rows"
WORDS = {
    "read": "reading alone",
    "whitening": "whitening",
    "subspace": "moments of order 4, regressed, in the 5-dimensional span",
    "plain": "moments of order 4, plain, in all 20 dimensions",
    "recover": "`recover`, exact data, width known",
    "width unknown": "`recover`, exact data, width unknown",
    "recover noisy": "`recover`, noisy data, width known",
}


def files(count: int) -> list[str]:
    """The first so many files, written where they are missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    FOLDER.mkdir(parents=True, exist_ok=True)
    truth = planted.network(D, WIDTH, rng=0)
    mix = np.eye(D) + 0.2 * np.random.default_rng(1).normal(size=(D, D)) / np.sqrt(D)
    paths = [FOLDER / f"part-{number:04d}.parquet" for number in range(count)]
    for number, path in enumerate(paths):
        if path.exists():
            continue
        Z = np.random.default_rng([2, number]).normal(size=(FILE_ROWS, D))
        X, y = Z @ mix.T + 3.0, truth(Z)
        noisy = y + 0.3 * np.random.default_rng([3, number]).normal(size=FILE_ROWS)
        columns = pa.table({f"x{j}": X[:, j] for j in range(D)} | {"y": y, "noisy": noisy})
        pq.write_table(columns, path.with_suffix(".part"))
        path.with_suffix(".part").replace(path)
    return [str(path) for path in paths]


def gemm_seconds(size: int, n: int) -> float:
    """Time of the product (size, n)·(n, size), in blocks of 4096: as long as what it is compared with."""
    rng, blocks = np.random.default_rng(0), max(1, n // 4096)
    A, B = rng.normal(size=(size, 4096)), rng.normal(size=(4096, size))
    A @ B
    began = now()
    for _ in range(blocks):
        A @ B
    return (now() - began) * n / (4096 * blocks)


def one_pass(name: str, count: int) -> Row:
    """One pass over so many files: CPU seconds, of all threads, and the memory it adds."""
    paths, features = files(count), [f"x{j}" for j in range(D)]
    for _ in open_source(paths[:1], target="y", features=features).chunks():  # loads what reading needs
        pass
    before = peak_bytes(reset=True)
    source = open_source(paths, target="noisy" if name == "recover noisy" else "y", features=features)
    found: Row = {"n": source.n}
    if name in ("subspace", "plain"):
        steps, estimator = _steps(name, paths[:2], features)
        few = open_source(paths[:1], target="y", features=features)
        size = sums_of(seen(few, *steps), 4, estimator).cross.size
        reference = gemm_seconds(size, count * FILE_ROWS // 2)  # half before the pass and half after it
        began = now()
        sums_of(seen(source, *steps), 4, estimator)
        spent = now() - began
        reference += gemm_seconds(size, count * FILE_ROWS // 2)
        return found | {
            "seconds": spent,
            "features": size,
            "gemm_share": reference / spent,
            "extra": peak_bytes() - before,
        }
    began = now()
    if name == "read":
        for _ in source.chunks():
            pass
    elif name == "whitening":
        whitening_of(source)
    else:
        result = recover(source, width=None if name == "width unknown" else WIDTH, rng=0, on_failure="return")
        found |= {"status": result.status.value, "units": result.network.m}
    return found | {"seconds": now() - began, "extra": peak_bytes() - before}


def _steps(name: str, paths: list[str], features: list[str]) -> tuple[list[View], str]:
    """What the moments look at: everything, or the span of the weights, found from a few rows."""
    few = open_source(paths, target="y", features=features)
    white, _ = whitening_of(few)
    if name == "plain":
        return [Whitened(white)], "plain"
    T = estimate_from(seen(few, Whitened(white)), 2).tensors
    V, _ = dominant_span(T[2].dense(), WIDTH)
    return [Whitened(white), Less(Affine(T[1].entries, float(T[0].entries[0]))), Projected(V)], "regressed"


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for name in settings["passes"]:
        counts = settings["growing"] if name in settings["grow"] else settings["growing"][-1:]
        for count in settings["grow_noisy"] if name == "recover noisy" else counts:

            def work(name: str = name, count: int = count) -> Row:
                files(count)
                return {"pass": name} | run_alone(f"{__name__}:one_pass", name, count)

            yield f"{name} {count}", work


def exponent(rows: list[Row]) -> float:
    """Of time against n."""
    n, seconds = (np.log([row[key] for row in rows]) for key in ("n", "seconds"))
    return float(np.polyfit(n, seconds, 1)[0])


def elsewhere(report: Row) -> dict[str, str]:
    passes: dict[str, list[Row]] = {}
    for row in report["rows"]:
        passes.setdefault(row["pass"], []).append(row)
    last = {name: rows[-1] for name, rows in passes.items()}
    head = (
        "Measured on a parquet data set of 20 inputs in the page cache, one BLAS thread, CPU time of all threads. "
        "Every line is a process of its own; memory is what the pass adds to that in use before it. "
        f"The GEMM is measured half before the pass and half after it. {seeds_of(report)}"
    )
    return {"docs/scale.md": "\n\n".join([head, _costs(last), _growth(passes), _on_paper(last)])}


def _costs(last: dict[str, Row]) -> str:
    rows = [
        [
            WORDS[name] + (f" ({row['features']} features)" if "features" in row else ""),
            duration(row["seconds"]),
            f"{row['gemm_share']:.0%}" if "gemm_share" in row else "",
            f"{row['extra'] / 1e6:.0f} MB",
            row.get("status", ""),
        ]
        for name, row in last.items()
        if row["n"] == last["read"]["n"]
    ]
    return table([f"over {last['read']['n']:,} rows", "CPU time", "of same-flop GEMM", "memory", ""], rows)


def _growth(passes: dict[str, list[Row]]) -> str:
    growing = {name: {row["n"]: row for row in rows} for name, rows in passes.items() if len(rows) > 1}
    rows = []
    for n in sorted(set().union(*growing.values())):
        found = [by_size.get(n) for by_size in growing.values()]
        cells = [f"{duration(row['seconds'])}, {row['extra'] / 1e6:.0f} MB" if row else "" for row in found]
        rows.append([f"{n:,}", *cells])
    rows.append(["grows like", *(f"n^{exponent(passes[name]):.2f}" for name in growing)])
    return table(["rows", *(WORDS[name] for name in growing)], rows)


def _on_paper(last: dict[str, Row], rows: float = 1e9, cores: int = 32) -> str:
    """What follows for more rows than anybody has at hand."""
    linear = [name for name in ("whitening", "subspace", "plain", "recover") if name in last]
    cost = {name: last[name]["seconds"] / last[name]["n"] for name in linear}
    each = [
        f"{WORDS[name]} {1e6 * cost[name]:.2g} µs a row, {duration(rows * cost[name])} on one core, "
        f"{duration(rows * cost[name] / cores)} on {cores}"
        for name in linear
    ]
    return (
        f"**10⁹ rows, extrapolated.** Every pass is linear in the number of rows: {'; '.join(each)}. Their "
        "168 GB (float64, 20 inputs) fit the memory of 16 workers with 16 GB and two cores each."
    )


def comparable(report: Row) -> dict[str, Any]:
    found: dict[str, Any] = {
        f"{row['key']}, of GEMM": Speed(row["gemm_share"], 1.4) for row in report["rows"] if "gemm_share" in row
    }
    exact = [row["status"] == "exact" for row in report["rows"] if row["pass"] in ("recover", "width unknown")]
    return found | ({"exact from files": Count(sum(exact), len(exact))} if exact else {})
