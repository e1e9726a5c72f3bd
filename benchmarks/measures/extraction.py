"""Queries that `extract` needs when it chooses them, beside random rows and the published figures of such attacks.

Random networks: every weight, bias and output weight N(0, 1). Hard ones: 64-16-1 with a few units changed. Rows are
counted by the box. Each box runs in a process of its own, for its peak memory, with at most ``limit`` seconds of wall
time. Networks of others are read from the folder RELUMINE_NETS, if it is set, and left out otherwise. Random rows, the
way before, are a measure of their own (`extraction_random`): they take a quarter of an hour.
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
from benchmarks.results import RESULTS, Row, load
from benchmarks.text import duration, table

NAME = "extraction"
FULL: Row = {
    "shapes": ["784-32-1", "784-64-1", "784-128-1", "10-40-1", "10-50-1", "64-128-10"],
    "files": ["unitary_784_128_1", "mnist_0vs1_784_2_1", "mnist_2vs3_784_2_1", "cifar10_0vs1_3072_2_1"],
    "hard": ["b = ±10", "b = ±100", "two units 1e-3 rad apart", "one a = 1e-4"],
    "limit": 400.0,
    "first": 46000,
}
QUICK: Row = {"shapes": ["64-16-1", "10-20-1"], "files": [], "hard": [], "limit": 60.0, "first": 46000}
MINUTES = (2.0, 0.1)
# log2 of the queries of Carlini, Jagielski, Mironov 2020 (Table 1), whose attack chooses every query
PUBLISHED = {(784, 32): 19.2, (784, 128): 21.5}
CERTIFICATE = 300  # rows of it, whatever the box


class Counted:
    """A box that counts its rows."""

    def __init__(self, net: Callable[[np.ndarray], np.ndarray]) -> None:
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


def hard_network(kind: str, seed: int) -> rl.Network:
    """64-16-1 with units that samples hardly show."""
    net = random_network(64, 16, 1, seed).scaled()
    W, b, a = net.W.copy(), net.b.copy(), net.a.copy()
    if kind.startswith("b ="):
        far = float(kind.removeprefix("b = ±"))
        b[:2] = far, -far
    elif kind.startswith("two"):
        W[1], b[1] = W[0] + 1e-3 * W[1], b[0]
    else:
        a[0] = 1e-4
    return rl.Network(W, b, a).scaled()


def extraction(shape: str, seed: int, limit: float) -> Row:
    """One network with N(0, 1) parameters, looked into."""
    d, m, q = map(int, shape.split("-"))
    return looked_into(random_network(d, m, q, seed), "chosen", 2_000_000, seed, limit)


def extraction_of(name: str, seed: int, limit: float) -> Row:
    """One network that others trained or drew."""
    return looked_into(stored_network(name), "chosen", 2_000_000, seed, limit)


def hard_one(kind: str, seed: int, limit: float) -> Row:
    """One network with hard units."""
    return looked_into(hard_network(kind, seed), "chosen", 2_000_000, seed, limit)


def looked_into(truth: rl.Network, way: str, budget: int, seed: int, limit: float) -> Row:
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
        "error": largest_entry(truth, found.network),
        "residual": float(found.certificate.residual),
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": now() - cpu,
        "peak_bytes": peak_bytes(),
    }


def largest_entry(truth: rl.Network, found: rl.Network) -> float | None:
    """Largest error of any entry of W and b (rows of length 1), and of a over the largest a; None if widths differ."""
    if truth.m != found.m:
        return None
    matched, scaled = rl.metrics.match(truth, found).network, truth.scaled()
    a = np.abs(matched.a - scaled.a).max() / np.abs(scaled.a).max()
    return float(max(np.abs(matched.W - scaled.W).max(), np.abs(matched.b - scaled.b).max(), a))


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    todo = [("extraction", shape) for shape in settings["shapes"]] + [("hard_one", kind) for kind in settings["hard"]]
    todo += [("extraction_of", name) for name in settings["files"] if "RELUMINE_NETS" in os.environ]
    for function, name in todo:

        def work(function: str = function, name: str = name) -> Row:
            done = run_alone(f"{__name__}:{function}", name, settings["first"], settings["limit"])
            return {"name": f"64-16-1, {name}" if function == "hard_one" else name} | done

        yield name, work


def _lines(rows: list[Row]) -> list[list[str]]:
    lines = []
    for r in rows:
        published = PUBLISHED.get((r["d"], r["m"])) if r.get("name", "").count("-") == 2 or "name" not in r else None
        per = r["queries"] / r["parameters"]
        chosen = r.get("way", "random") == "chosen"
        error = "not recovered" if r["error"] is None else f"{r['error']:.0e}"
        lines.append(
            [
                r.get("name") or r["key"],
                "chosen" if chosen else "random",
                f"{r['parameters']:,}",
                f"{r['queries']:,} = 2^{log2(r['queries']):.1f}",
                f"{per:.2f}",
                f"{(r['queries'] - CERTIFICATE) / r['parameters']:.2f}" if chosen else "",
                "" if published is None else f"2^{published}",
                f"{error} ({r['status']})",
                duration(r["cpu_seconds"]),
                f"{r['peak_bytes'] / 2**30:.2g} GB",
            ]
        )
    return lines


HEADER = ["network", "queries", "parameters", "rows", "per parameter", "without the certificate", "published"]
HEADER += ["largest error", "CPU time", "peak"]


def section(report: Row) -> str:
    former = load(RESULTS / "extraction_random.json") or {"rows": []}
    return "\n\n".join(
        [
            "## Queries to look inside a black box",
            "`extract` on random networks, every weight and bias N(0, 1), on some with hard units, and on networks "
            "that others trained. *Chosen*: the default, along lines, the width found; *without the certificate*: "
            f"without the {CERTIFICATE} fresh rows that check the result. *Random*: Gaussian rows, the width "
            f"given; from a former run (`--only extraction_random`, "
            f"commit {former.get('machine', {}).get('commit')}, all cores). *Published*: "
            "rows of the attack of Carlini, Jagielski and Mironov (2020) on random networks. *Largest error*: of any "
            "entry of W and b, rows of "
            f"W of length 1, and of a over the largest a. Seed {report['settings']['first']}. "
            "`python -m benchmarks run --only extraction`.",
            table(HEADER, _lines([*report["rows"], *former["rows"]])),
        ]
    )


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/extract.md."""
    keep = (0, 3, 4, 5, 7, 8)
    lines = [[line[i] for i in keep] for line in _lines(report["rows"])]
    words = (
        "Measured: rows asked, with those that check the result (the certificate); the largest error of an entry of W, "
        "b (rows of W of length 1) and a (over the largest); CPU time of one thread."
    )
    return {"docs/extract.md": f"{words}\n\n{table([HEADER[i] for i in keep], lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    hits = sum(r["error"] is not None and r["error"] <= 1e-8 for r in report["rows"])
    return {"extracted exactly": Count(hits, len(report["rows"]))}
