"""Memory of what passes over the rows once: it must not grow with n, nor much beyond the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.child import peak_bytes, run_alone
from benchmarks.compare import Speed
from benchmarks.results import Row
from benchmarks.text import seeds_of, table
from relumine.data.moments import MomentSums
from relumine.data.views import Affine, Less, rows_of, seen
from relumine.papers.zhong2017.span import affine_fit, weight_span

NAME = "memory"
FULL: Row = {"streamed": [100_000, 1_000_000], "span": [[100_000, 1000, 10]]}
QUICK: Row = {"streamed": [40_000, 200_000], "span": [[20_000, 300, 5]]}
MINUTES = (1.5, 0.2)


def streamed(n: int, d: int = 30) -> Row:
    """Moments of order 4 of rows that are never all in memory."""
    rng, sums = np.random.default_rng(0), MomentSums(d, 4, "plain")
    before = peak_bytes(reset=True)
    for _ in range(n // 20_000):
        X = rng.normal(size=(20_000, d))
        sums.add(X, X[:, 0])
    return {"what": f"moments of order 4, d = {d}, streamed", "n": n, "extra_bytes": peak_bytes() - before}


def span(n: int, d: int, k: int) -> Row:
    """The span of the weights of k units among many inputs, rows in memory."""
    rng = np.random.default_rng(0)
    truth = rl.planted.network(d, k, rng, family="conditioned", activation="squared_relu")
    X = rng.standard_normal((n, d))
    rows = rows_of(X, truth(X))
    rest = seen(rows, Less(Affine(*affine_fit(rows))))
    before = peak_bytes(reset=True)
    V, _ = weight_span(rest, k, rng=0)
    inside = np.linalg.norm(truth.W @ V.T, axis=1) / np.linalg.norm(truth.W, axis=1)
    row = {"what": f"span of the weights, d = {d}, k = {k}", "n": n, "extra_bytes": peak_bytes() - before}
    return row | {"data_bytes": X.nbytes, "inside": float(inside.min())}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for n in settings["streamed"]:
        yield f"streamed n={n}", lambda n=n: run_alone(f"{__name__}:streamed", n)  # type: ignore[misc]
    for size in settings["span"]:
        yield f"span {size}", lambda size=size: run_alone(f"{__name__}:span", *size)  # type: ignore[misc]


def section(report: Row) -> str:
    rows = [
        [
            r["what"],
            f"{r['n']:,}",
            f"{r['extra_bytes'] / 2**20:.0f} MB",
            f"{r['extra_bytes'] / r['data_bytes']:.2f} × the data" if "data_bytes" in r else "",
        ]
        for r in report["rows"]
    ]
    return "\n\n".join(
        [
            "## Memory of one pass",
            f"What is added to the memory in use before it, in a process of its own. {seeds_of(report)}",
            table(["pass", "n", "extra memory", ""], rows),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    return {f"memory, {r['key']}": Speed(1.0 / max(r["extra_bytes"], 1), 1.5) for r in report["rows"]}
