"""The same with the width unknown: how often it is found, and the network with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.catalogue import CATALOGUE

from benchmarks.measures.catalogue import HEADER, gather, lines, solve, wrong
from benchmarks.measures.catalogue import comparable as comparable_catalogue
from benchmarks.results import Row
from benchmarks.text import seeds_of, table

NAME = "width_unknown"
FULL: Row = {
    "problems": [f"({d},{m}) n/p=5" for d, m in ((10, 5), (10, 10), (10, 20), (20, 20), (50, 20), (100, 10))],
    "seeds": 10,
    "first": 30000,
}
QUICK: Row = {"problems": ["(10,5) n/p=5", "(10,10) n/p=5"], "seeds": 2, "first": 30000}
MINUTES = (4.0, 0.1)


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for name in settings["problems"]:
        for seed in range(settings["first"], settings["first"] + settings["seeds"]):

            def work(name: str = name, seed: int = seed) -> Row:
                return solve(CATALOGUE[name], seed, width_known=False)

            yield f"{name} seed {seed}", work


def section(report: Row) -> str:
    right = {name: sum(r["right_width"] for r in rows) for name, rows in gather(report).items()}
    rows = [[*line, f"{right[name]}/{len(gather(report)[name])}"] for name, line in lines(report).items()]
    return "\n\n".join(
        [
            "## Width unknown",
            f"The same with `width=None`. Called exact but wrong: {wrong(report)}. {seeds_of(report)}",
            table([*HEADER, "right width"], rows),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    return comparable_catalogue(report)
