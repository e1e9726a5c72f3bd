"""Decoding w from y = Σ_j relu(w_j + x_j): how often, how well under noise, how long, and the bound of Theorem 3.1."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.clock import best_of, timed
from benchmarks.compare import Speed
from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table
from relumine.papers.oymak2018.additive import Additive, descend
from relumine.papers.oymak2018.figure import final, newton, planted, relative_error
from relumine.papers.oymak2018.method import decode
from relumine.papers.oymak2018.probes import tails
from relumine.results import Status

NAME = "decoding"
_SIZES = [[50, 5.0, 1.1], [50, 1.0, 1.5], [100, 5.0, 1.1], [100, 1.0, 1.5], [200, 5.0, 1.1], [200, 1.0, 1.5]]
FULL: Row = {
    "time": [["gauss-newton", 2000, 4000, 0.0], ["centered", 2000, 4000, 0.0], ["gauss-newton", 2000, 4000, 1.0]],
    "rate": [[*size, 200] for size in _SIZES],
    "noise": [[50, 500, 0.3, 40], [50, 100, 0.3, 40], [100, 1000, 1.0, 40]],
    "map": [[200, 200_000, 0.0], [200, 200_000, 1.0]],
    "theorem": [[name, 30, 60, 900, 10] for name in ("normal", "student", "laplace", "uniform", "logistic")],
    "first": 0,
}
QUICK: Row = {
    "time": [["gauss-newton", 500, 1000, 0.0], ["centered", 500, 1000, 0.0]],
    "rate": [[50, 5.0, 1.1, 20]],
    "noise": [[50, 500, 0.3, 5]],
    "map": [[50, 20_000, 0.0]],
    "theorem": [["normal", 20, 30, 600, 2]],
    "first": 0,
}
MINUTES = (2.0, 0.05)
EXACT = 1e-16  # of ‖ŵ − w‖²/‖w‖²
STEPS = 20  # of Gauss–Newton
WIDTH = 3.0  # of the probes, where noise and the theorem are looked at
PROBES = {
    "normal": stats.norm(scale=WIDTH),
    "student": stats.t(df=2, scale=WIDTH),
    "laplace": stats.laplace(scale=WIDTH),
    "uniform": stats.uniform(-WIDTH, 2.0 * WIDTH),
    "logistic": stats.logistic(scale=WIDTH),
}


def time(first: int, method: Any, d: int, n: int, noise: float) -> Row:
    """One decoding, also as the number of copies of X that would take as long."""
    rng = np.random.default_rng(first)
    w = rng.uniform(-1.0, 1.0, d)
    X = 5.0 * rng.standard_normal((n, d))
    y = np.maximum(X + w, 0.0).sum(axis=1) + noise * rng.standard_normal(n)
    found, seconds = timed(lambda: decode(X, y, 1.0 if noise == 0.0 else 1.5, method, on_failure="return"))
    (copy,) = best_of(X.copy, seconds=0.2)
    row = {"method": method, "d": d, "n": n, "noise": noise, "seconds": seconds, "copies": seconds / copy}
    row |= {"iterations": found.iterations, "status": found.status.value}
    return row | {"error": float(np.linalg.norm(found.w - w) / np.linalg.norm(w))}


def rate(first: int, d: int, sigma: float, ratio: float, runs: int) -> Row:
    """Gauss–Newton from zero on all rows, and ``decode``, which keeps some of them to check."""
    row: Row = {"d": d, "sigma": sigma, "ratio": ratio, "n": round(ratio * d), "runs": runs}
    row |= {"newton": 0, "decode": 0, "wrong": 0, "most_steps": 0}
    for seed in range(first, first + runs):
        problem, w = planted(d, row["n"], sigma, seed)
        error, steps = final(newton(problem, STEPS), w)
        found = decode(problem.X, problem.y, 1.0, on_failure="return")
        right = relative_error(found.w, w) <= EXACT
        row["newton"] += error <= EXACT
        row["most_steps"] = max(row["most_steps"], steps if error <= EXACT else 0)
        row["decode"] += found.status is Status.EXACT and right
        row["wrong"] += found.status is Status.EXACT and not right
    return row


def noise(first: int, d: int, n: int, deviation: float, runs: int) -> Row:
    """Errors against the Cramér–Rao bound σ² tr (JᵀJ)⁻¹ at the truth, and against the standard errors reported."""
    squares, bounds, z = [], [], []
    for seed in range(first, first + runs):
        problem, w = planted(d, n, WIDTH, seed)
        labels = problem.y + deviation * np.random.default_rng([seed, 1]).standard_normal(n)
        found = decode(problem.X, labels, 1.5, on_failure="return")
        if found.standard_errors is None or found.status is not Status.NOISY:
            continue
        squares.append(((found.w - w) ** 2).sum())
        bounds.append(deviation**2 * np.trace(np.linalg.inv(problem.normal_equations(w).G)))
        z.append(np.mean(((found.w - w) / found.standard_errors) ** 2))
    over = float(np.sqrt(np.sum(squares) / np.sum(bounds))) if squares else float("nan")
    row = {"d": d, "n": n, "noise": deviation, "runs": runs, "noisy": len(squares), "over_bound": over}
    return row | {"z_squared": float(np.mean(z)) if z else float("nan")}


def mapped(first: int, d: int, n: int, deviation: float) -> Row:
    """Peak of the arrays made while decoding a single precision memory map; its own pages belong to the system."""
    rng = np.random.default_rng(first)
    w, y = rng.uniform(-1.0, 1.0, d), np.empty(n)
    with tempfile.TemporaryDirectory() as folder:
        X = np.lib.format.open_memmap(Path(folder) / "X.npy", "w+", np.float32, (n, d))
        for i in range(0, n, 10_000):
            block = X[i : i + 10_000]
            block[:] = WIDTH * rng.standard_normal(block.shape)
            y[i : i + 10_000] = np.maximum(block.astype(np.float64) + w, 0.0).sum(axis=1)
        X.flush()
        rows = np.load(Path(folder) / "X.npy", mmap_mode="r")
        y += deviation * rng.standard_normal(n)
        tracemalloc.start()
        found = decode(rows, y, 1.0 if deviation == 0.0 else 1.5, on_failure="return")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        row = {"d": d, "n": n, "noise": deviation, "map_bytes": rows.nbytes, "peak_bytes": peak}
        return row | {"status": found.status.value}


def theorem(first: int, name: str, d: int, batches: int, size: int, runs: int) -> Row:
    """Fresh batches and the theorem's own step: squared error over its bound, at the worst of all steps."""
    probe, worst = tails(PROBES[name], 1.0), []
    for seed in range(first, first + runs):
        rng = np.random.default_rng([seed, d])
        w = rng.uniform(-1.0, 1.0, d)
        X = PROBES[name].rvs((batches, size, d), random_state=rng)
        parts = [Additive(rows, np.maximum(rows + w, 0.0).sum(axis=1), np.ones(d)) for rows in X]
        path = islice(descend(parts, np.zeros(d), np.ones(d), probe.step, centred=True), batches + 1)
        errors = np.array([((it.w - w) ** 2).sum() for it in path])
        worst.append(float((errors / ((w @ w) * probe.rate ** np.arange(batches + 1)))[1:].max()))
    row = {"probes": name, "d": d, "batches": batches, "size": size, "runs": runs}
    return row | {"held": sum(value <= 1.0 for value in worst), "largest": max(worst)}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    kinds = {"time": time, "rate": rate, "noise": noise, "map": mapped, "theorem": theorem}
    for kind, measure in kinds.items():
        for case in settings[kind]:

            def work(kind: str = kind, measure: Any = measure, case: Any = case) -> Row:
                return {"kind": kind, **measure(settings["first"], *case)}

            yield f"{kind} {case}", work


def of(report: Row, kind: str) -> list[Row]:
    return [row for row in report["rows"] if row.get("kind") == kind]


def section(report: Row) -> str:
    rows = [
        [
            r["method"],
            f"({r['d']:,}, {r['n']:,})",
            _labels(r),
            r["status"],
            f"{r['error']:.0e}",
            str(r["iterations"]),
            duration(r["seconds"]),
            f"{r['copies']:.0f}",
        ]
        for r in of(report, "time")
    ]
    header = ["method", "(d, n)", "labels", "status", "relative error", "iterations", "time", "copies of the data"]
    return "\n\n".join(
        [
            "## Decoding",
            "`decode` on Σ_j relu(w_j + x_j); time also as the number of copies of X that would take as long. "
            f"More in [decode](decode.md). {seeds_of(report)}",
            table(header, rows),
        ]
    )


def elsewhere(report: Row) -> dict[str, str]:
    parts = [part(of(report, kind)) for kind, part in _PARTS.items() if of(report, kind)]
    return {"docs/decode.md": "\n\n".join([*parts, seeds_of(report)])}


def _labels(row: Row) -> str:
    return "exact" if row["noise"] == 0.0 else f"noise {row['noise']:g}"


def _rates(rows: list[Row]) -> str:
    lines = []
    for r in rows:
        steps = f", at most {r['most_steps']} steps" if r["newton"] else ""
        counts = [f"{r['newton']}/{r['runs']}{steps}", f"{r['decode']}/{r['runs']}", str(r["wrong"])]
        lines.append([str(r["d"]), f"{r['sigma']:g}", f"{r['n']} = {r['ratio']:g} d", *counts])
    header = ["d", "σ", "n", f"Gauss–Newton, one start, ≤ {STEPS} steps", "`decode`", "`decode` exact but wrong"]
    return (
        f"Exact from few rows (relative error ‖ŵ − w‖²/‖w‖² ≤ {EXACT:g}; `decode` keeps at least two rows to check, "
        "and starts again elsewhere where a fit fails):\n\n" + table(header, lines)
    )


def _noise(rows: list[Row]) -> str:
    lines = [
        [
            str(r["d"]),
            str(r["n"]),
            f"{r['noise']:g}",
            f"{r['noisy']}/{r['runs']}",
            f"{r['over_bound']:.2f}" if r["noisy"] else "",
            f"{r['z_squared']:.2f}" if r["noisy"] else "",
        ]
        for r in rows
    ]
    header = ["d", "n", "noise", "called noisy", "rms error over the Cramér–Rao bound", "mean squared z"]
    return (
        f"Noisy labels (probes of deviation {WIDTH:g}, Θ = 1.5; z = (ŵ − w)/standard error, so that its mean square "
        "should be 1):\n\n" + table(header, lines)
    )


def _times(rows: list[Row]) -> str:
    lines = [
        [
            r["method"],
            f"{r['d']:,}",
            f"{r['n']:,}",
            _labels(r),
            r["status"],
            str(r["iterations"]),
            duration(r["seconds"]),
        ]
        for r in rows
    ]
    return "CPU time, one thread:\n\n" + table(["method", "d", "n", "labels", "status", "steps", "time"], lines)


def _maps(rows: list[Row]) -> str:
    first = rows[0]
    peaks = ", ".join(
        f"{r['peak_bytes'] / 1e6:.0f} MB ({'exact labels' if r['noise'] == 0.0 else _labels(r)}; {r['status']})"
        for r in rows
    )
    return (
        f"Memory: of a single precision memory map of {first['map_bytes'] / 1e6:.0f} MB (d = {first['d']}, "
        f"n = {first['n']:,}), the arrays that `decode` makes take at most {peaks}."
    )


def _theorem(rows: list[Row]) -> str:
    held, runs = sum(r["held"] for r in rows), sum(r["runs"] for r in rows)
    first, worst = rows[0], max(rows, key=lambda r: r["largest"])
    names = {"student": "Student t with 2 degrees of freedom", "laplace": "Laplace"}
    probes = ", ".join(names.get(r["probes"], r["probes"]) for r in rows)
    return (
        f"Theorem 3.1 with its own step and fresh batches (d = {first['d']}, {first['batches']} batches of "
        f"{first['size']} rows, {first['runs']} seeds for each kind of probes: {probes}): the bound held at every "
        f"step in {held} of {runs} runs; after the start the squared error was never more than {worst['largest']:.2f} "
        f"of it ({names.get(worst['probes'], worst['probes'])} probes)."
    )


_PARTS = {"rate": _rates, "noise": _noise, "time": _times, "map": _maps, "theorem": _theorem}


def comparable(report: Row) -> dict[str, Any]:
    found: dict[str, Any] = {f"{r['key']}: in copies": Speed(1.0 / r["copies"], 1.5) for r in of(report, "time")}
    for r in of(report, "rate"):
        size = f"d={r['d']} σ={r['sigma']:g} n/d={r['ratio']:g}"
        found |= {f"{name} exact, {size}": Count(r[name], r["runs"]) for name in ("newton", "decode")}
    found |= {f"called noisy, {r['d']}, {r['n']}": Count(r["noisy"], r["runs"]) for r in of(report, "noise")}
    return found | {f"bound held, {r['probes']}": Count(r["held"], r["runs"]) for r in of(report, "theorem")}
