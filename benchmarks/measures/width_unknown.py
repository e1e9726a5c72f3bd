"""The same with the width unknown: how often it is found, and the network with it; also near the frontier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.catalogue.base import Problem, random_network

from benchmarks.measures.catalogue import HEADER, gather, lines, solve, wrong
from benchmarks.measures.catalogue import comparable as comparable_catalogue
from benchmarks.results import Row
from benchmarks.text import seeds_of, table

NAME = "width_unknown"
FULL: Row = {
    # inputs, units, samples per parameter, seeds at most
    "problems": [
        *([10, m, 3, 20] for m in (5, 10, 20)),
        [30, 30, 3.5, 20],
        [50, 50, 4, 5],
        *([d, m, 5, 5] for d, m in ((10, 5), (10, 10), (10, 20), (20, 20), (50, 20), (100, 10))),
    ],
    "seeds": 20,
    "first": 82000,
}
QUICK: Row = {"problems": [[10, 5, 5, 2], [10, 10, 5, 2]], "seeds": 2, "first": 82000}
MINUTES = (25.0, 0.1)


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for d, m, ratio, most in settings["problems"]:
        problem = random_network(d, m, ratio)
        for seed in range(settings["first"], settings["first"] + min(settings["seeds"], most)):

            def work(problem: Problem = problem, seed: int = seed) -> Row:
                return solve(problem, seed, width_known=False)

            yield f"{problem.name} seed {seed}", work


def section(report: Row) -> str:
    right = {name: sum(r["right_width"] for r in rows) for name, rows in gather(report).items()}
    rows = [[*line, f"{right[name]}/{len(gather(report)[name])}"] for name, line in lines(report).items()]
    return "\n\n".join(
        [
            "## Width unknown",
            "The same with `width=None`, also with half a sample per parameter more than 95 % exact recovery of a "
            f"given width takes. Called exact but wrong: {wrong(report)} of {len(report['rows'])} runs. "
            f"{seeds_of(report)}",
            table([*HEADER, "right width"], rows),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    return comparable_catalogue(report)
