"""Time and memory of `recover` against n, d and m, with fitted exponents. Each size runs in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.child import peak_bytes, run_alone
from benchmarks.clock import timed
from benchmarks.compare import Speed
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table

NAME = "scaling"
FULL: Row = {
    "n": [[10, 20, n] for n in (1_320, 5_280, 21_120, 84_480, 337_920)],
    "d": [[d, 10, 6 * 10 * (d + 1)] for d in (5, 10, 20, 40, 80)],
    "m": [[20, m, 6 * 21 * m] for m in (5, 10, 20, 40)],
    "seeds": 3,
    "first": 45000,
}
QUICK: Row = {
    "n": [[10, 5, n] for n in (330, 3_300, 33_000)],
    "d": [[d, 5, 30 * (d + 1)] for d in (5, 10, 20)],
    "m": [[10, m, 66 * m] for m in (3, 6, 12)],
    "seeds": 1,
    "first": 45000,
}
MINUTES = (3.0, 0.3)


def recovery(d: int, m: int, n: int, seed: int) -> Row:
    """One recovery; what it adds to the memory in use before it."""
    rl.recover(*rl.planted.sample(rl.planted.network(4, 2, rng=1), 200, rng=5), width=2, rng=3)  # loaded and warm
    truth = rl.planted.network(d, m, rng=seed)
    X, y = rl.planted.sample(truth, n, rng=seed + 1)
    before = peak_bytes(reset=True)
    found, seconds = timed(lambda: rl.recover(X, y, width=m, rng=seed + 2, on_failure="return"))
    error = rl.metrics.parameter_error(truth, found.network)
    return {
        "seconds": seconds,
        "starts": found.search.starts,
        "data_bytes": X.nbytes + y.nbytes,
        "extra_bytes": peak_bytes() - before,
        "error": error if np.isfinite(error) else None,
    }


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for axis in ("n", "d", "m"):
        for d, m, n in settings[axis]:
            for seed in range(settings["first"], settings["first"] + settings["seeds"]):

                def work(axis: str = axis, size: Any = (d, m, n), seed: int = seed) -> Row:
                    return {"axis": axis, **dict(zip("dmn", size)), **run_alone(f"{__name__}:recovery", *size, seed)}

                yield f"{axis}: d={d} m={m} n={n} seed {seed}", work


def gather(report: Row) -> dict[str, list[tuple[int, Row]]]:
    """By axis: its value, and the median seconds, starts and memory there."""
    found: dict[str, list[tuple[int, Row]]] = {}
    for axis in ("n", "d", "m"):
        rows = [r for r in report["rows"] if r["axis"] == axis]
        for value in sorted({r[axis] for r in rows}):
            same = [r for r in rows if r[axis] == value]
            middle = {k: float(np.median([r[k] for r in same])) for k in ("seconds", "starts", "extra_bytes")}
            middle |= {k: same[0][k] for k in ("d", "m", "n", "data_bytes")}
            found.setdefault(axis, []).append((value, middle))
    return found


def exponent(points: list[tuple[int, Row]], key: str) -> float:
    """Slope in log-log; memory below a megabyte is that of the interpreter and does not count."""
    used = [(v, r[key]) for v, r in points if key == "seconds" or r[key] > 2**20]
    if len(used) < 2:
        return float("nan")
    x, y = np.log(np.array(used, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


def section(report: Row) -> str:
    parts = [
        "## Time and memory against n, d and m",
        "Median CPU time of `recover`, the width given, and what the run adds to the peak memory of its process. "
        "n grows at fixed (d, m): beyond some thirty rows per parameter a sample is searched and all rows only "
        f"confirm. d and m grow at n/p = 6. {seeds_of(report)}",
    ]
    for axis, points in gather(report).items():
        rows = [
            [
                f"({r['d']}, {r['m']}, {r['n']:,})",
                duration(r["seconds"]),
                f"{r['extra_bytes'] / 2**20:.0f} MB for {r['data_bytes'] / 2**20:.2g} MB of data",
                f"{r['starts']:.0f}",
            ]
            for _, r in points
        ]
        time, memory = exponent(points, "seconds"), exponent(points, "extra_bytes")
        grows = f"time grows like {axis}^{time:.2f}"
        grows += "" if np.isnan(memory) else f", memory like {axis}^{memory:.2f}"
        parts += [f"**{axis}**: {grows}", table(["(d, m, n)", "time", "extra memory", "starts"], rows)]
    return "\n\n".join(parts)


def comparable(report: Row) -> dict[str, Any]:
    speed = report["machine"]["gemm_gflops"]
    return {
        f"time, (d, m, n) = ({r['d']}, {r['m']}, {r['n']})": Speed(1.0 / (r["seconds"] * speed), 1.6)
        for points in gather(report).values()
        for _, r in points
        if r["seconds"] > 0.1
    }
