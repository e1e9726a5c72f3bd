"""How far the search gets in ten minutes where it does not end: r ≈ d^{3/2} units tanh(5x/2), from few samples.

The same samples for the present code and for that of a checkout named by RELUMINE_BEFORE, as in ``beside``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.counting import Count
from benchmarks.results import ROOT, Row
from benchmarks.text import duration, seeds_of, table

NAME = "hard"
FULL: Row = {"d": 50, "r": 350, "ratio": 6, "first": 0, "seconds": 600.0}
QUICK: Row = {"d": 10, "r": 20, "ratio": 6, "first": 0, "seconds": 2.0}
MINUTES = (20.0, 0.03)
NOW, BEFORE = "now", "version 0.1.0"


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    before = os.environ.get("RELUMINE_BEFORE")
    codes = {NOW: ROOT} | ({BEFORE: Path(before)} if before else {})
    for code, source in codes.items():
        yield code, partial(reach, settings, source)


def reach(settings: Row, source: Path) -> Row:
    """:func:`benchmarks.reaching.reach` with the relumine of that checkout."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": str(source / "src")}
    arguments = [settings[name] for name in ("d", "r", "ratio", "first", "seconds")]
    command = [sys.executable, "-m", "benchmarks.reaching", json.dumps(arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def elsewhere(report: Row) -> dict[str, str]:
    s = report["settings"]
    lines = [
        [
            row["key"],
            row["status"],
            str(row["units"]),
            str(row["steps"]),
            f"{row['error']:.2g}",
            duration(row["seconds"]),
        ]
        for row in report["rows"]
    ]
    text = (
        f"How far it gets with r = {s['r']} and {s['ratio'] * s['r'] * (s['d'] + 2):,} samples, {s['ratio']} for each "
        f"parameter, in {duration(s['seconds'])} of CPU time, after which it is stopped as by Ctrl-C; the error is "
        f"that on fresh samples, over the variance of y. {seeds_of(report)}"
    )
    header = ["code", "status", "units so far", "steps", "error, fresh samples", "CPU time"]
    return {"docs/hardness.md": f"{text}\n\n{table(header, lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    wrong = [row["status"] == "exact" and row["error"] > 1e-12 for row in report["rows"]]
    return {"not called exact and wrong": Count(len(wrong) - sum(wrong), len(wrong))}
