"""Exact recovery at equal time (five times ours for the others), the same data for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.catalogue.base import Problem, generic, random_network

from benchmarks import draw
from benchmarks.compare import Speed
from benchmarks.counting import Count
from benchmarks.measures.fair import CLOSE, LEAST, TIMES, contest, exact, gather
from benchmarks.methods import ALTERNATIVES, METHODS, OURS
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table

NAME = "rates"
# [d, m, n/p, seeds for ours, seeds for the others]
FULL: Row = {
    "sizes": [[10, 5, 6, 20, 20], [10, 10, 6, 20, 20], [10, 20, 6, 20, 20], [40, 20, 6, 20, 20], [30, 30, 6, 20, 20]],
    "unbiased": [[20, 5, 30, 20, 20]],
    "first": 41000,
}
QUICK: Row = {"sizes": [[10, 5, 6, 4, 4], [10, 20, 6, 3, 3]], "unbiased": [[20, 5, 30, 2, 2]], "first": 41000}
MINUTES = (60.0, 0.8)


def problems(settings: Row) -> Iterator[tuple[Problem, int, int]]:
    """Each problem with its numbers of seeds, ours and theirs."""
    for d, m, ratio, ours, theirs in settings["sizes"]:
        yield random_network(d, m, ratio), ours, theirs
    for d, m, ratio, ours, theirs in settings["unbiased"]:
        make = generic(d, m, ratio, family="conditioned")
        yield Problem(f"no biases, a = ±1 ({d},{m}) n/p={ratio:g}", d, m, make, biased=False), ours, theirs


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for problem, ours, theirs in problems(settings):
        for k in range(ours):
            seed, names = settings["first"] + k, list(METHODS) if k < theirs else [OURS]

            def work(problem: Problem = problem, seed: int = seed, names: list[str] = names) -> Row:
                return {"problem": problem.name, "seed": seed, "methods": contest(problem, seed, names)}

            yield f"{problem.name} seed {seed}", work


def count(results: list[Row], within: float | None = None) -> Count:
    """How many are exact (or within some error)."""
    return Count(sum(exact(r) if within is None else exact(r, within) for r in results), len(results))


def median(results: list[Row], key: str) -> float:
    """NaN where no run has it."""
    values = [r[key] for r in results if r[key] is not None]
    return float(np.median(values)) if values else float("nan")


def section(report: Row) -> str:
    parts = [
        "## Exact recovery beside other methods",
        f"*Exact*: every parameter within 1e-8 after matching; *close*: within {CLOSE:g}. relumine runs until it is "
        f"done; on the same data every other method has {TIMES:g} times that (at least {LEAST:g} s), with restarts "
        "until the time is over; *in our time*: exact, and not slower than relumine. "
        "k/n with Wilson's 95 % interval. n/p: samples per parameter, p = m(d+1). "
        f"{seeds_of(report)}",
        "![Rates of exact recovery](figures/bench-rates.svg)",
    ]
    for problem, methods in gather(report, "methods").items():
        rows = []
        for name in METHODS:
            if name not in methods:
                rows.append([name, _why(report, problem, name), "", "", "", ""])
                continue
            results = methods[name]
            refused = [r["refused"] for r in results if "refused" in r]
            word = f"refused: {refused[0]}" if len(refused) == len(results) else str(count(results))
            loss = median(results, "loss")
            soon = sum(exact(r) and r["seconds"] <= mine["seconds"] for r, mine in zip(results, methods[OURS]))
            early = f"{soon}/{len(results)}"
            row = [name, word, early, str(count(results, CLOSE)), "—" if np.isnan(loss) else f"{loss:.0e}"]
            rows.append([*row, duration(median(results, "seconds"))])
        header = ["method", "exact", "in our time", "close", "median loss", "time"]
        parts += [f"**{problem}**", table(header, rows)]
    return "\n\n".join(parts)


def _why(report: Row, name: str, method: str) -> str:
    problem = next((p for p, _, _ in problems(report["settings"]) if p.name == name), None)
    why = None if problem is None else METHODS[method].skip(problem)
    return f"skipped: {why or 'not installed where this was measured'}"


def figures(report: Row, folder: Path) -> None:
    data = {
        problem: {name: count(results[name]) for name in (OURS, *ALTERNATIVES) if name in results}
        for problem, results in gather(report, "methods").items()
    }
    draw.bars(data, folder / "bench-rates.svg")


def comparable(report: Row) -> dict[str, Any]:
    speed, found = report["machine"]["gemm_gflops"], {}
    for problem, methods in gather(report, "methods").items():
        found[f"exact, {problem}"] = count(methods[OURS])
        # the machine's own GEMM is the unit of time
        found[f"time, {problem}"] = Speed(1.0 / (median(methods[OURS], "seconds") * speed), 1.6)
    return found
