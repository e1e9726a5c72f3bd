"""Queries that `extract` needs: chosen, random (the former way), and the published figures of attacks that choose.

Random networks: every weight, bias and output weight N(0, 1). Rows are counted by the box. Each shape runs in a
process of its own, for its peak memory, with at most ``limit`` seconds of wall time; give it all cores
(OPENBLAS_NUM_THREADS). Real networks are read from the folder RELUMINE_NETS, if it is set, and left out otherwise.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.child import peak_bytes, run_alone
from benchmarks.clock import now
from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "extraction"
# [way, d, m, outputs, most queries]
FULL: Row = {
    "shapes": [
        ["chosen", 784, 32, 1, 200_000],
        ["chosen", 784, 64, 1, 300_000],
        ["chosen", 784, 128, 1, 400_000],
        ["chosen", 10, 40, 1, 20_000],
        ["chosen", 10, 50, 1, 20_000],
        ["chosen", 64, 128, 10, 50_000],
        ["random", 20, 10, 1, 20_000],
        ["random", 64, 16, 1, 100_000],
        ["random", 784, 32, 1, int(2**17.5)],
    ],
    "files": ["unitary_784_128_1", "mnist_0vs1_784_2_1", "mnist_2vs3_784_2_1", "cifar10_0vs1_3072_2_1"],
    "limit": 400.0,
    "first": 46000,
}
QUICK: Row = {
    "shapes": [["chosen", 64, 16, 1, 10_000], ["chosen", 10, 20, 1, 10_000], ["random", 10, 5, 1, 5_000]],
    "files": [],
    "limit": 60.0,
    "first": 46000,
}
MINUTES = (40.0, 0.1)
# log2 of the queries of Carlini, Jagielski, Mironov 2020 (Table 1), whose attack chooses every query
PUBLISHED = {(784, 32): 19.2, (784, 128): 21.5}


class Counted:
    """A box that counts its rows."""

    def __init__(self, net: rl.Network) -> None:
        self.net, self.rows = net, 0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        self.rows += len(X)
        return self.net(X)


def random_network(d: int, m: int, q: int, seed: int) -> rl.Network:
    rng = np.random.default_rng(seed)
    return rl.Network(rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=m if q == 1 else (q, m)))


def stored_network(name: str) -> rl.Network:
    with np.load(Path(os.environ["RELUMINE_NETS"]) / f"{name}.npz") as arrays:
        c = float(np.ravel(arrays["c"])[0])
        return rl.Network(arrays["W"], arrays["b"], np.ravel(arrays["a"]), c=c)


def extraction(way: str, d: int, m: int, q: int, budget: int, seed: int, limit: float) -> Row:
    """One network with N(0, 1) parameters, looked into."""
    return _looked_into(random_network(d, m, q, seed), way, budget, seed, limit)


def extraction_of(name: str, seed: int, limit: float) -> Row:
    """One network that others trained or drew."""
    return _looked_into(stored_network(name), "chosen", 400_000, seed, limit)


def _looked_into(truth: rl.Network, way: str, budget: int, seed: int, limit: float) -> Row:
    wall, cpu, box = time.perf_counter(), now(), Counted(truth)

    def say(p: rl.results.Progress) -> None:
        line = f"{time.perf_counter() - wall:8.0f} s  {p.stage}  step {p.iteration}  relative loss {p.loss:.2e}"
        print(line, file=sys.stderr, flush=True)

    asked = {"dim": truth.d, "budget": budget, "seconds": limit, "rng": seed + 1, "queries": way}
    if way == "random":
        asked["width"] = truth.m
    found = rl.extract(box, **asked, on_failure="return", progress=say)
    return {
        "d": truth.d,
        "m": truth.m,
        "q": truth.q or 1,
        "parameters": truth.m * (truth.d + 1),
        "way": found.way,
        "queries": box.rows,
        "status": found.status.value,
        "error": _largest_entry(truth, found.network),
        "residual": float(found.certificate.residual),
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": now() - cpu,
        "peak_bytes": peak_bytes(),
    }


def _largest_entry(truth: rl.Network, found: rl.Network) -> float | None:
    """Largest error of any entry of W and b (rows of length 1), and of a over the largest a; None if widths differ."""
    if truth.m != found.m:
        return None
    matched, scaled = rl.metrics.match(truth, found).network, truth.scaled()
    a = np.abs(matched.a - scaled.a).max() / np.abs(scaled.a).max()
    return float(max(np.abs(matched.W - scaled.W).max(), np.abs(matched.b - scaled.b).max(), a))


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    for way, d, m, q, budget in settings["shapes"]:

        def work(way: str = way, d: int = d, m: int = m, q: int = q, budget: int = budget) -> Row:
            done = run_alone(f"{__name__}:extraction", way, d, m, q, budget, settings["first"], settings["limit"])
            return {"name": "", "threads": threads} | done

        yield f"{way} {d}-{m}-{q}", work
    for name in settings["files"] if "RELUMINE_NETS" in os.environ else ():

        def read(name: str = name) -> Row:
            done = run_alone(f"{__name__}:extraction_of", name, settings["first"], settings["limit"])
            return {"name": name, "threads": threads} | done

        yield name, read


def section(report: Row) -> str:
    rows = []
    for r in report["rows"]:
        published = PUBLISHED.get((r["d"], r["m"]))
        error = "not recovered" if r["error"] is None else f"{r['error']:.0e}"
        rows.append(
            [
                r.get("name") or f"{r['d']}-{r['m']}-{r.get('q', 1)}",
                r.get("way", "random"),
                f"{r['parameters']:,}",
                f"{r['queries']:,} = 2^{log2(r['queries']):.1f}",
                f"{r['queries'] / r['parameters']:.2f}",
                "" if published is None else f"2^{published}",
                f"{error} ({r['status']})",
                duration(r["wall_seconds"]),
                f"{r['peak_bytes'] / 2**30:.2g} GB",
            ]
        )
    threads = sorted({str(r["threads"]) for r in report["rows"]})
    header = ["network", "queries", "parameters", "rows", "per parameter", "published", "largest error", "time", "peak"]
    return "\n\n".join(
        [
            "## Queries to look inside a black box",
            "`extract` on random networks, every weight and bias N(0, 1), and on networks that others trained. "
            "*Chosen*: the default, along lines, the width found; 300 fresh rows of the certificate are included. "
            "*Random*: Gaussian rows, the width given. *Published*: rows of the attack of Carlini, Jagielski and "
            "Mironov (2020) on random networks. *Largest error*: of any entry of W and b, rows of W of length 1, and "
            "of a over the largest a. "
            f"Wall time, BLAS threads: {', '.join(threads)}; at most {duration(report['settings']['limit'])} each. "
            "`python -m benchmarks run --only extraction`.",
            table(header, rows),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    hits = sum(r["error"] is not None and r["error"] <= 1e-8 for r in report["rows"])
    return {"extracted exactly": Count(hits, len(report["rows"]))}
