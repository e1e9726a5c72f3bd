"""Boxes that hang, boxes that are slow, and the memory of a long run: times on the clock, which sleeping sets."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import relumine as rl
from benchmarks.child import peak_bytes, run_alone
from benchmarks.compare import Speed
from benchmarks.results import Row
from benchmarks.text import table

Array = NDArray[np.float64]

NAME = "slow_boxes"
FULL: Row = {"limit": 20.0, "hangs_at": 1000, "nap": 0.05, "workers": 8, "memory": [784, 128]}
QUICK: Row = {"limit": 0.5, "hangs_at": 100, "nap": 0.0005, "workers": 8, "memory": [20, 5]}
MINUTES = (1.5, 0.02)


def hanging(limit: float, hangs_at: int) -> Row:
    """A box that sleeps at one of its rows: when the run is back, what is saved, and that it is resumed."""
    truth, asked, awake = rl.planted.network(64, 32, rng=0), 0, False

    def box(X: Array) -> Array:
        nonlocal asked
        asked += len(X)
        while asked >= hangs_at and not awake:
            time.sleep(0.2)
        return np.asarray(truth(X))

    with tempfile.TemporaryDirectory() as folder:
        log, began = Path(folder) / "log.npz", time.monotonic()
        first = rl.extract(box, dim=64, rng=0, batch=64, seconds=limit, save=log, on_failure="return")
        back, awake = time.monotonic() - began, True
        saved, began = len(np.load(log)["y"]), time.monotonic()
        again = rl.extract(box, dim=64, rng=0, batch=64, save=log, resume=True)
    return {
        "limit": limit,
        "back": back,
        "status": first.status.value,
        "known": first.queries,
        "saved": saved,
        "resumed": again.status.value,
        "resumed_seconds": time.monotonic() - began,
    }


def workers(nap: float, many: int) -> Row:
    """Time of one worker and of many, a row at a time."""
    truth, seconds = rl.planted.network(10, 5, rng=0), []
    for count in (1, many):

        def slow(X: Array) -> Array:
            time.sleep(nap * len(X))
            return np.asarray(truth(X))

        began = time.monotonic()
        found = rl.extract(slow, dim=10, rng=0, batch=1, workers=count)
        seconds.append(time.monotonic() - began)
    return {"workers": many, "queries": found.queries, "one": seconds[0], "many": seconds[1]}


def memory(d: int, m: int) -> Row:
    """The most that extracting d-m-1 adds to what the process had, beside the rows that were asked."""
    rng = np.random.default_rng(0)
    W, b, a = rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=m)
    before = peak_bytes(reset=True)
    found = rl.extract(lambda X: np.maximum(X @ W.T + b, 0.0) @ a, dim=d, rng=0)
    rows = found.queries * (d + 1) * 8
    return {"network": f"{d}-{m}-1", "rows_bytes": rows, "extra_bytes": peak_bytes() - before - rows}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    yield "hanging", lambda: hanging(settings["limit"], settings["hangs_at"])
    yield "workers", lambda: workers(settings["nap"], settings["workers"])
    yield "memory", lambda: run_alone(f"{__name__}:memory", *settings["memory"])


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/extract.md."""
    found = {r["key"]: r for r in report["rows"]}
    hangs, many, most = found["hanging"], found["workers"], found["memory"]
    nap, at = 1000.0 * report["settings"]["nap"], report["settings"]["hangs_at"]
    lines = [
        [
            f"sleeps for ever at row {at:,}, `seconds={hangs['limit']:g}`",
            f"back after {hangs['back']:.1f} s with {hangs['saved']:,} answers saved; resumed in "
            f"{hangs['resumed_seconds']:.1f} s: {hangs['resumed']}",
        ],
        [
            f"{nap:g} ms for each row, `batch=1, workers={many['workers']}`",
            f"{many['many']:.1f} s instead of {many['one']:.1f} s for {many['queries']:,} rows",
        ],
        [
            f"{most['network']}, {most['rows_bytes'] / 1e6:.0f} MB of rows",
            f"{max(most['extra_bytes'], 0) / 1e6:.0f} MB of memory beside them",
        ],
    ]
    words = "Measured, on the clock. `python -m benchmarks run --only slow_boxes`."
    return {"docs/extract.md": f"{words}\n\n{table(['box', 'what happened'], lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    found = {r["key"]: r for r in report["rows"]}
    return {"workers, times faster": Speed(found["workers"]["one"] / found["workers"]["many"], 1.3)}
