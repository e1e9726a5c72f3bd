"""Loss against time: every method is run with budgets that double, from the beginning each time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.catalogue.base import random_network

from benchmarks import draw
from benchmarks.measures.fair import attempt
from benchmarks.methods import ALTERNATIVES, METHODS, OURS
from benchmarks.results import Row
from benchmarks.text import seeds_of, table

NAME = "trace"
FULL: Row = {"sizes": [[10, 20, 6], [30, 30, 6]], "budgets": [[0.25, 5], [1.0, 4]], "seeds": 3, "first": 43000}
QUICK: Row = {"sizes": [[10, 10, 6]], "budgets": [[0.125, 4]], "seeds": 1, "first": 43000}
MINUTES = (8.0, 0.2)


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for (d, m, ratio), (least, doublings) in zip(settings["sizes"], settings["budgets"]):
        problem, budgets = random_network(d, m, ratio), [least * 2.0**k for k in range(doublings)]
        for seed in range(settings["first"], settings["first"] + settings["seeds"]):
            for name in (OURS, *ALTERNATIVES):
                if METHODS[name].skip(problem) is not None:
                    continue

                def work(name: str = name, problem: Any = problem, seed: int = seed, budgets: Any = budgets) -> Row:
                    planted, losses, spent = problem.make(seed), [], []
                    for budget in budgets:
                        if losses and losses[-1] < 1e-24:  # what is found to rounding error stays found
                            losses.append(losses[-1])
                            spent.append(budget)
                        else:
                            result = attempt(name, planted, budget, seed)
                            losses.append(result["loss"])
                            spent.append(max(result["seconds"], budget))
                    return {"problem": problem.name, "method": name, "seconds": spent, "losses": losses}

                yield f"{problem.name} seed {seed} {name}", work


def curves(report: Row) -> dict[str, dict[str, tuple[list[float], list[float]]]]:
    """Median seconds spent (at least the budget) and loss for each budget, by problem and method."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in report["rows"]:
        found[row["problem"]][row["method"]].append(row)
    return {
        problem: {name: (_median(rows, "seconds"), _median(rows, "losses")) for name, rows in methods.items()}
        for problem, methods in found.items()
    }


def _median(rows: list[Row], key: str) -> list[float]:
    return [float(value) for value in np.median([row[key] for row in rows], axis=0)]


def section(report: Row) -> str:
    parts = [
        "## Loss against time",
        f"Median relative loss of {report['settings']['seeds']} seeds after so many CPU seconds; every budget is a run "
        "of its own. relumine, stopped early, still looks for signs for a second; the figure shows when it returned. "
        f"{seeds_of(report)}",
        "![Loss against time](figures/bench-trace.svg)",
    ]
    for problem, methods in curves(report).items():
        budgets = [min(seconds) for seconds in zip(*(curve[0] for curve in methods.values()))]
        rows = [[name, *(f"{v:.0e}" for v in losses)] for name, (_, losses) in methods.items()]
        parts += [f"**{problem}**", table(["after", *(f"{b:.2g} s" for b in budgets)], rows)]
    return "\n\n".join(parts)


def figures(report: Row, folder: Path) -> None:
    draw.lines(curves(report), folder / "bench-trace.svg", "CPU seconds", "relative loss")


def comparable(report: Row) -> dict[str, Any]:
    return {}
