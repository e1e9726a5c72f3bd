"""The search beside that of version 0.1.0, in one run: how often it finds the network, and what it costs.

Both codes get the same samples and seeds, each in a process of its own, one thread, seed by seed in turns. The code
before is a checkout named by RELUMINE_BEFORE (``git worktree add ../before bb1dea7``); without it only the present code
is measured. Where the code before takes many minutes it is not run; where it finds next to nothing, the measure
``frontier`` tells about the present one. A row with the mark ``earlier`` is from the run that version 0.1.0 was
measured with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.catalogue.shipped import FOLDER

from benchmarks.counting import Count
from benchmarks.measures.fair import EXACT
from benchmarks.results import ROOT, Row
from benchmarks.text import duration, seeds_of, table

NAME = "beside"
SMALL = ("(10,5)", "(10,10)", "(10,20)")
FULL: Row = {
    # network, samples per parameter, seeds, seeds of the code before
    "problems": [
        *([name, 5, 20, 20] for name in SMALL),
        *([name, 2, 20, 20] for name in SMALL[:2]),
        ["(50,50)", 6, 5, 5],
        *([f"mnist_{digits} 784-2-1", ratio, 1, 1] for ratio in (6, 3) for digits in ("0vs1", "2vs3")),
        ["simulated 2048-4-1", 6, 1, 1],
        ["cifar10 3072-2-1", 6, 1, 1],
        ["(100,100)", 5, 2, 0],
        ["(100,100)", 8, 2, 1],
        ["unitary 784-128-1", 6, 1, 0],
    ],
    "first": 42000,
    "patience": 3600.0,
}
QUICK: Row = {"problems": [["(10,5)", 5, 5, 0], ["(10,10)", 2.5, 2, 0]], "first": 42000, "patience": 60.0}
MINUTES = (60.0, 0.1)
NOW, BEFORE = "now", "before"
WRONG = 1e-6  # largest parameter error of what may be called exact


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    before = os.environ.get("RELUMINE_BEFORE")
    for name, ratio, seeds, earlier in settings["problems"]:
        if not (name.startswith("(") or FOLDER.exists()):
            continue
        keys = {c: f"{name} n/p={ratio:g} {c}" for c in (NOW, BEFORE)}
        codes = {NOW: (seeds, ROOT)} | ({BEFORE: (earlier, Path(before))} if before and earlier else {})
        found: dict[str, Row] = {}
        run = partial(in_turns, name=name, ratio=ratio, first=settings["first"], patience=settings["patience"])

        def work(code: str, keys: Any = keys, codes: Any = codes, run: Any = run, found: Any = found) -> Row:
            if code not in found:  # the first of two codes runs both
                found.update(run({c: codes[c] for c in codes if keys[c] not in rows}))
            row: Row = found[code]
            return row

        for code in codes:
            yield keys[code], partial(work, code)


def in_turns(
    codes: dict[str, tuple[int, Path]], name: str, ratio: float, first: int, patience: float
) -> dict[str, Row]:
    """So many seeds by the code of each checkout, seed by seed in turns: both meet the same load of the machine."""
    runs: dict[str, list[Row]] = {code: [] for code in codes}
    with ExitStack() as stack:
        children = {
            code: stack.enter_context(_child([name, ratio, list(range(first, first + count)), patience], source))
            for code, (count, source) in codes.items()
        }
        for k in range(max(count for count, _ in codes.values())):
            for code in (code for code, (count, _) in codes.items() if k < count):
                child = children[code]
                print(file=child.stdin, flush=True)
                runs[code].append(json.loads(child.stdout.readline()))
    shared = {"problem": f"{name} n/p={ratio:g}"} | ({"in_turns": True} if len(codes) > 1 else {})
    return {code: shared | {"code": code} | summary(found) for code, found in runs.items()}


def summary(runs: list[Row]) -> Row:
    """Hits and CPU seconds."""
    return {
        "exact": sum(run["error"] <= EXACT for run in runs),
        "runs": len(runs),
        "wrong": sum(run["status"] == "exact" and run["error"] > WRONG for run in runs),
        "stopped": sum(run["status"] == "interrupted" for run in runs),
        "seconds": [run["seconds"] for run in runs],
        "version": runs[0]["version"],
    }


def _child(arguments: list[Any], source: Path) -> subprocess.Popen[str]:
    """:func:`benchmarks.solving.solve` with the relumine of that checkout, waiting for lines."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": str(source / "src")}
    command = [sys.executable, "-m", "benchmarks.solving", json.dumps(arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment)


def gather(report: Row) -> dict[str, dict[str, Row]]:
    """The rows of each code by problem."""
    found: dict[str, dict[str, Row]] = {}
    for row in report["rows"]:
        found.setdefault(row["problem"], {})[row["code"]] = row
    return found


def wrong(report: Row) -> tuple[int, int]:
    """Called exact and wrong by more than 1e-6, of so many runs of the present code."""
    rows = [row for row in report["rows"] if row["code"] == NOW]
    return sum(row["wrong"] for row in rows), sum(row["runs"] for row in rows)


def _times(rows: dict[str, Row]) -> tuple[str, str, str]:
    """Median time before and now, and their ratio on the seeds that both have run."""
    words = {code: duration(float(np.median(row["seconds"]))) for code, row in rows.items()}
    if BEFORE in rows and rows[BEFORE]["stopped"]:
        words[BEFORE] += f" ({rows[BEFORE]['stopped']} stopped)"
    if NOW in rows and rows[NOW]["stopped"]:
        words[NOW] += f" ({rows[NOW]['stopped']} stopped)"
    if BEFORE in rows and rows[BEFORE].get("earlier"):
        words[BEFORE] += " †"
    ratio = ""
    if BEFORE in rows and NOW in rows:
        shared = min(len(row["seconds"]) for row in rows.values())
        spent = {code: sum(row["seconds"][:shared]) for code, row in rows.items()}
        ratio = f"{spent[NOW] / spent[BEFORE]:.2f}"
    return words.get(BEFORE, ""), words.get(NOW, ""), ratio


def _commits(report: Row) -> str:
    """Which rows were measured in turns, and which of the present code at a commit before the last one."""
    older: dict[str, list[str]] = {}
    for row in report["rows"]:
        commit = row.get("commit")
        if row["code"] == NOW and commit and commit != report["machine"]["commit"]:
            older.setdefault(commit, []).append(row["problem"])
    turns = [row["problem"] for row in report["rows"] if row["code"] == NOW and row.get("in_turns")]
    words = (
        f" The two codes in turns, seed by seed, as the load of the machine changed: {', '.join(turns)}."
        if turns
        else ""
    )
    return words + "".join(f" Measured at commit {commit}: {', '.join(names)}." for commit, names in older.items())


def section(report: Row) -> str:
    lines = []
    for problem, rows in gather(report).items():
        hits = {code: str(Count(row["exact"], row["runs"])) for code, row in rows.items()}
        before, now, ratio = _times(rows)
        lines.append([problem, hits.get(BEFORE, ""), hits.get(NOW, ""), before, now, ratio])
    off, runs = wrong(report)
    return "\n\n".join(
        [
            "## The search beside that of version 0.1.0",
            "The same samples and seeds, one thread, CPU time, in one run. *Exact*: every parameter within 1e-8 after "
            "matching, with Wilson's 95 % interval; median times; the last column compares the total time of the "
            "seeds that both versions have run; †: from an earlier run, on the idle machine. A run is "
            f"stopped after {duration(report['settings']['patience'])} at the latest. Called exact but wrong by more "
            f"than 1e-6, now: {off} of {runs} runs.{_commits(report)} {seeds_of(report)}",
            table(["problem", "exact before", "exact now", "time before", "time now", "now / before"], lines),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    return {
        f"exact, {problem}": Count(rows[NOW]["exact"], rows[NOW]["runs"])
        for problem, rows in gather(report).items()
        if NOW in rows
    }
