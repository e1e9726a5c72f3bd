"""The fewest samples per parameter with 95 % exact recovery, by size and method.

A cell of an alternative ends at its second miss beyond the first five seeds (95 % of twenty is then out of reach), and
a method without a hit at the most samples is not tried with fewer: "never". Larger networks are measured where their
frontier is, and not at every number of samples: a seed of (50,50) at n/p = 3 or (100,100) at 5 takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.catalogue.base import random_network

from benchmarks import draw
from benchmarks.counting import Count
from benchmarks.measures.fair import LEAST, TIMES, attempt, exact
from benchmarks.methods import ALTERNATIVES, METHODS, OURS
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table

NAME = "frontier"
FULL: Row = {
    "sizes": [[10, 5], [10, 10], [10, 20]],
    "ratios": [12, 8, 6, 5, 4, 3],
    "seeds": 20,
    "first": 42000,
    "cap": 10.0,
    # d, m, samples per parameter, seeds: relumine alone, and no longer than "patience" seconds each
    "alone": [
        *([10, m, [2.5, 2], 20] for m in (5, 10, 20)),
        [30, 30, [3], 20],
        [50, 50, [6, 3.5], 5],
        [100, 100, [5], 2],
        [200, 20, [6, 4, 3], 2],
        [784, 32, [5], 1],
        [30, 30, [2.5], 2],  # below the frontier, where a search may end by its patience
    ],
    "patience": 300.0,
}
QUICK: Row = {
    "sizes": [[10, 5]],
    "ratios": [6, 4, 3, 2.5],
    "seeds": 5,
    "first": 42000,
    "cap": 2.0,
    "alone": [[30, 30, [3], 1]],
    "patience": 60.0,
}
MINUTES = (120.0, 1.0)
TRIAL, BAR = 5, 0.95


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    seeds = range(settings["first"], settings["first"] + settings["seeds"])
    most = max(settings["ratios"])
    for d, m in settings["sizes"]:
        for ratio in sorted(settings["ratios"], reverse=True):
            problem = random_network(d, m, ratio)
            for name in (OURS, *ALTERNATIVES):
                top = rows.get(f"({d},{m}) n/p={most} {name}")
                hopeless = top is not None and ratio < most and not top["exact"]
                if METHODS[name].skip(problem) is not None or hopeless:
                    continue

                def work(name: str = name, problem: Any = problem, ratio: float = ratio, size: Any = (d, m)) -> Row:
                    ours = rows.get(f"{problem.name} {OURS}", {"seconds": []})["seconds"]
                    hits, spent = [], []
                    for k, seed in enumerate(seeds):
                        allowance = min(max(LEAST, TIMES * ours[k]), settings["cap"]) if name != OURS else float("inf")
                        result = attempt(name, problem.make(seed), allowance, seed)
                        hits.append(exact(result))
                        spent.append(result["seconds"])
                        misses = len(hits) - sum(hits)
                        if name != OURS and len(hits) >= TRIAL and misses > (1.0 - BAR) * len(seeds):
                            break
                    return {"size": size, "ratio": ratio, "method": name, "exact": sum(hits), "runs": len(hits)} | {
                        "seconds": spent
                    }

                yield f"{problem.name} {name}", work
    yield from cells_alone(settings)


def cells_alone(settings: Row) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Where no alternative has a chance in a time that can be waited for."""
    for d, m, ratios, seeds in settings.get("alone", []):
        for ratio in sorted(ratios, reverse=True):
            problem = random_network(d, m, ratio)

            def work(problem: Any = problem, ratio: float = ratio, size: Any = (d, m), seeds: int = seeds) -> Row:
                first, patience = settings["first"], settings["patience"]
                runs = [attempt(OURS, problem.make(s), patience, s) for s in range(first, first + seeds)]
                hits = sum(exact(run) for run in runs)
                return {"size": size, "ratio": ratio, "method": OURS, "exact": hits, "runs": len(runs)} | {
                    "seconds": [run["seconds"] for run in runs]
                }

            yield f"{problem.name} {OURS}", work


def curves(report: Row) -> dict[str, dict[str, dict[float, Count]]]:
    """Counts by size, method and samples per parameter."""
    found: dict[str, dict[str, dict[float, Count]]] = {}
    for row in report["rows"]:
        size = "({},{})".format(*row["size"])
        found.setdefault(size, {}).setdefault(row["method"], {})[row["ratio"]] = Count(row["exact"], row["runs"])
    return found


def smallest(counts: dict[float, Count]) -> float | None:
    """The smallest n/p from which on every cell has its 95 %; a look at fewer seeds than elsewhere moves nothing."""
    best, most = None, max((count.runs for count in counts.values()), default=0)
    for ratio in sorted(counts, reverse=True):
        if counts[ratio].rate < BAR:
            break
        best = ratio if 2 * counts[ratio].runs >= most else best
    return best


def section(report: Row) -> str:
    ratios = sorted({row["ratio"] for row in report["rows"]})
    most, found, rows = max(ratios), curves(report), []
    asked = ", ".join(f"{r:g}" for r in ratios)
    alone = (
        "From (30,30) on, and at n/p = 2 and 2.5, only relumine was run, and larger networks only near their frontier. "
        if report["settings"].get("alone")
        else ""
    )
    kept = [row["beside"] for row in report["rows"] if "beside" in row]
    if kept:
        alone += f"The other methods were run beside relumine {kept[0]}, with five times the time of that version. "
    names = [name for name in METHODS if any(name in methods for methods in found.values())]
    for name in names:
        row = [name]
        for methods in found.values():
            counts = methods.get(name, {})
            ratio = smallest(counts)
            if ratio is not None:
                row.append(f"**{ratio:g}** ({counts[ratio].hits}/{counts[ratio].runs})")
            elif counts:
                best = max(counts, key=lambda r: (counts[r].rate, -r))
                row.append(f"never up to {most:g} (best {counts[best].hits}/{counts[best].runs} at {best:g})")
            else:
                row.append("")
        rows.append(row)
    spent = {
        ("({},{})".format(*row["size"]), row["ratio"]): duration(float(np.median(row["seconds"])))
        for row in report["rows"]
        if row["method"] == OURS
    }
    ours = [
        [
            f"(d, m) = {size}",
            *(f"{methods[OURS][r]}, {spent[size, r]}" if r in methods[OURS] else "" for r in ratios),
        ]
        for size, methods in found.items()
    ]
    return "\n\n".join(
        [
            "## Samples per parameter needed for 95 % exact recovery",
            f"The smallest n/p of {asked} from which on at least 95 % of the seeds are exact; "
            f"the others with {TIMES:g} times relumine's time (at least {LEAST:g} s, at most "
            f"{report['settings']['cap']:g} s). They are stopped as soon as 95 % cannot be reached. "
            f"{alone}{seeds_of(report)}",
            "![Rate against samples per parameter](figures/bench-frontier.svg)",
            table(["method", *found], rows),
            "How often relumine is exact, and its median CPU time:",
            table(["relumine, n/p =", *(f"{r:g}" for r in ratios)], ours),
        ]
    )


def figures(report: Row, folder: Path) -> None:
    panels = {
        f"(d, m) = {size}": {
            name: (sorted(counts), [counts[r] for r in sorted(counts)]) for name, counts in methods.items()
        }
        for size, methods in curves(report).items()
    }
    draw.rates_against(panels, folder / "bench-frontier.svg", "samples per parameter")


def comparable(report: Row) -> dict[str, Any]:
    return {
        f"exact, {size} n/p={ratio:g}": count
        for size, methods in curves(report).items()
        for ratio, count in methods.get(OURS, {}).items()
    }
