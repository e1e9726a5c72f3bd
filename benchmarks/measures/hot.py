"""The hot loops against the GEMMs they contain, in one run: moments, conjugate gradient product, linear solve.

``gemm_share``: time of matrix products of the same size (so many operations, nothing else) over the time of the loop,
both on one thread, measured in turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.clock import best_of
from benchmarks.compare import Speed
from benchmarks.results import RESULTS, Row, load
from benchmarks.text import seeds_of, table
from relumine.activations import RELU
from relumine.data.moments import MomentSums
from relumine.fit.projection import Linearisation, Unknowns, project
from relumine.fit.rows import MemoryRows, prepare
from relumine.fit.sign_free import shape_of
from relumine.fit.solvers import ConjugateGradients, Dense
from relumine.fit.starts import random_directions, second_moment_span
from relumine.papers.oymak2018.additive import Additive
from relumine.tensors.hermite import feature_count

NAME = "hot"
FULL: Row = {
    "products": [[10, 30, 20_000], [20, 30, 20_000], [50, 50, 15_000], [100, 150, 40_000], [784, 32, 100_000]],
    "moments": [[30, 4, 60_000], [50, 4, 15_000], [32, 4, 100_000], [784, 2, 100_000]],
    "dense": [[10, 5, 330], [10, 20, 1_320], [10, 20, 20_000]],
    "solves": [[10, 30, 1_980], [50, 50, 15_000]],
    "copies": [[2000, 4000]],
    "seconds": 2.0,
}
QUICK: Row = {
    "products": [[10, 30, 20_000], [50, 50, 15_000]],
    "moments": [[30, 4, 20_000]],
    "dense": [[10, 20, 1_320]],
    "solves": [[50, 50, 15_000]],
    "copies": [[2000, 4000]],
    "seconds": 1.0,
}
MINUTES = (3.0, 0.4)


def linearised(d: int, m: int, n: int) -> tuple[np.ndarray, Linearisation, np.random.Generator]:
    """White rows, a random target and random directions: where a step would be taken."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, d))
    rows: MemoryRows = prepare(Z, rng.normal(size=(n, 1)))[0]
    lin = Linearisation(rows, project(rows, shape_of(RELU), random_directions(rng, m, d + 1)))
    return rows.X, lin, rng


def products(X: np.ndarray, lin: Linearisation, big: int) -> Callable[[], None]:
    """The large GEMMs of one CG product: X̃δᵀ and DᵀX̃; a third, X̃Uᵀ, where hidden values are recomputed."""
    X, U = X.astype(lin.precision), lin.at.U.astype(lin.precision)
    T = np.empty((len(X), len(U)), lin.precision)

    def gemms() -> None:
        for _ in range(big - 1):
            np.matmul(X, U.T, out=T)
        T.T @ X

    return gemms


def product(d: int, m: int, n: int, seconds: float) -> Row:
    """One product of conjugate gradients."""
    X, lin, rng = linearised(d, m, n)
    x = Unknowns(rng.normal(size=lin.at.U.shape), rng.normal(size=(m, 1)), rng.normal(size=(d + 1, 1)))
    big = 2 if m <= d + 1 else 3
    double = Linearisation(lin.rows, lin.at, np.float64)
    actions = products(X, lin, big), lambda: lin.product(x), products(X, double, big), lambda: double.product(x)
    gemm, ours, wide, slow = best_of(*actions, seconds=seconds)
    row = {"path": "CG product", "gemms": big, "gemm_seconds": gemm, "seconds": ours}
    return row | {"double_gemm_seconds": wide, "double_seconds": slow}


def solve(d: int, m: int, n: int, seconds: float) -> Row:
    """One step by conjugate gradients against the GEMMs of its products alone."""
    X, lin, _ = linearised(d, m, n)
    damping = 1e-3 * lin.scale
    count = getattr(ConjugateGradients(lin)(damping), "products", 1)
    big = 2 if m <= d + 1 else 3
    gemm, ours = best_of(products(X, lin, big), lambda: ConjugateGradients(lin)(damping), seconds=seconds)
    row = {"path": "linear solve, conjugate gradients", "gemms": big * count, "gemm_seconds": count * gemm}
    return row | {"seconds": ours}


def dense(d: int, m: int, n: int, seconds: float) -> Row:
    """One step by the normal matrix, formed and factored, against JᵀJ as a plain GEMM."""
    _, lin, rng = linearised(d, m, n)
    damping, size = 1e-3 * lin.scale, m * (d + 1)
    A, B = rng.normal(size=(size, n)), rng.normal(size=(n, size))
    gemm, ours = best_of(lambda: A @ B, lambda: Dense(lin)(damping), seconds=seconds)
    return {"path": "linear solve, dense", "gemms": 1, "gemm_seconds": gemm, "seconds": ours}


def moments(d: int, order: int, n: int, seconds: float) -> Row:
    """Moments up to order 4 (Φ diag(y) Φᵀ), or the span of the second moment in many dimensions."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    size = d if order == 2 else feature_count(d, order // 2)
    A, B = rng.normal(size=(size, 4096)), rng.normal(size=(4096, size))

    def gemms() -> None:  # blocks of 4096 samples, which is how a GEMM of this shape is fastest
        for _ in range(n // 4096):
            A @ B

    if order == 2:
        rows = prepare(X, y[:, None])[0]
        gemm, ours = best_of(gemms, lambda: second_moment_span(rows, 32), seconds=seconds)
    else:
        gemm, ours = best_of(gemms, lambda: MomentSums(d, order, "plain").add(X, y), seconds=seconds)
    gemm *= n / (n // 4096 * 4096)
    return {"path": f"moments of order {order}", "gemms": 1, "features": size, "gemm_seconds": gemm, "seconds": ours}


def copy(d: int, n: int, seconds: float) -> Row:
    """One gradient of decoding, Σ relu(w + x), against a copy of the data: both are bound by memory."""
    rng = np.random.default_rng(0)
    X = 5.0 * rng.standard_normal((n, d))
    problem, w = Additive(X, np.maximum(X, 0.0).sum(axis=1), np.ones(d)), np.zeros(d)
    theirs, ours = best_of(X.copy, lambda: problem.gradient(w, True), seconds=seconds)
    return {"path": "decoding gradient, against a copy", "gemms": 0, "gemm_seconds": theirs, "seconds": ours}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    kinds = {"products": product, "moments": moments, "dense": dense, "solves": solve, "copies": copy}
    for kind, measure in kinds.items():
        for size in settings[kind]:

            def work(measure: Any = measure, size: Any = size) -> Row:
                with threadpool_limits(1):
                    row: Row = measure(*size, settings["seconds"])
                return {"size": size, **row, "gemm_share": row["gemm_seconds"] / row["seconds"]}

            yield f"{kind} {size}", work


def section(report: Row) -> str:
    """With what it was before the last improvements, where that has been kept."""
    before = {row["key"]: row["gemm_share"] for row in (load(RESULTS / "hot_before.json") or {"rows": []})["rows"]}
    names = {"moments of order 4": "(d, order, n)", "moments of order 2": "(d, order, n)"}
    rows = []
    for r in report["rows"]:
        size = "(" + ", ".join(f"{k:,}" for k in r["size"]) + ")"
        old = f"{before[r['key']]:.0%}" if r["key"] in before else ""
        row = [r["path"], names.get(r["path"], "(d, m, n)" if len(r["size"]) == 3 else "(d, n)") + " = " + size]
        double = f"{r['double_gemm_seconds'] / r['seconds']:.0%}" if "double_gemm_seconds" in r else ""
        rows.append([*row, f"{1e3 * r['seconds']:.3g} ms", old, f"**{r['gemm_share']:.0%}**", double])
    return "\n\n".join(
        [
            "## The hot loops against GEMM",
            "Speed of the loops that take most of the time, over that of bare matrix products (GEMM) of the same size "
            "and precision; one thread; the last row over a copy of the data. Products of conjugate gradients (CG) are "
            "in single precision; the last column compares them with products in double precision, and so does "
            "*before*, an earlier version. More than 100 %: our blocks fit the cache, one product of "
            f"all rows does not. {seeds_of(report)}",
            table(["loop", "size", "time", "before", "of GEMM speed", "of GEMM in double"], rows),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    return {f"{r['path']} {r['size']}": Speed(r["gemm_share"], 1.25) for r in report["rows"]}
