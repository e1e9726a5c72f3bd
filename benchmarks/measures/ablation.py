"""What each part of relumine's search contributes: the same loop with parts left out, for the same time.

The search is Levenberg–Marquardt with the linear parameters projected out, from a start of random or spectral
directions, with 1.5 times the units or just as many, in the sign-free form |z|/2 (plus affine part) or the ordinary
form max(z, 0). A variant starts again until a fit is exact or its time (five times relumine's) is over. With cycles it
goes on from its own network, random units beside it, and starts afresh every few cycles; with renewed units those that
matter least are left out before; with early signs a fit that is near is tried without its affine part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, product
from math import ceil, inf
from typing import Any

import numpy as np
from tests.catalogue.base import Planted, random_network

from benchmarks.clock import budget, now
from benchmarks.counting import Count
from benchmarks.measures.fair import LEAST, TIMES, attempt, gather
from benchmarks.methods import OURS
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table
from relumine.activations import RELU
from relumine.data.sources import as_samples
from relumine.fit.levenberg import minimise
from relumine.fit.prune import SEARCH, polish, prune
from relumine.fit.sign_free import shape_of
from relumine.fit.starts import random_directions, second_moment_span, span_directions
from relumine.recovery import rounds
from relumine.recovery.search import KEPT
from relumine.recovery.task import make_task
from relumine.run import Run

NAME = "ablation"
Toggle = tuple[bool, float, bool, str]
FULL: Row = {
    "sizes": [[20, 10, 6, 10], [10, 20, 6, 10], [40, 20, 6, 5], [10, 5, 2, 5], [10, 10, 2, 5], [30, 30, 3, 1]],
    "first": 44000,
}
QUICK: Row = {"sizes": [[20, 10, 6, 3]], "first": 44000}
MINUTES = (15.0, 0.4)
# sign-free, units over width, spectral start; and what goes on after a start
TOGGLES = [
    *((*parts, "") for parts in product((True, False), (1.5, 1.0), (True, False))),
    (True, 1.5, False, "cycles"),
    (True, 1.5, False, "cycles, renewed units"),
    (True, 1.5, False, "cycles, renewed units and early signs"),
]
CYCLES = 8  # until a fresh start
# samples per parameter below which starts stick: there only what goes on after a start is compared
BARE, FEW = (True, 1.5, False, ""), 4


def search(planted: Planted, seconds: float, seed: int, toggle: Toggle) -> Row:
    """Starts and cycles until one is exact: how many, how long, and whether."""
    sign_free, factor, spectral, after = toggle
    if after:
        kept = KEPT if "renewed" in after else 1.0
        return cycles(planted, seconds, seed, factor, kept, signs="signs" in after)
    truth, X, y = planted
    rng, began, row = np.random.default_rng(seed), now(), {"exact": False, "starts": 0}
    task = make_task(as_samples(X, y), RELU, rng)
    rows, shape = (task.rows if sign_free else task.plain), shape_of(RELU, sign_free=sign_free)
    with budget(seconds):
        for start in count(1):
            row["starts"] = start
            k = ceil(factor * truth.m)
            span = second_moment_span(task.rows, truth.m) if spectral else None
            U = random_directions(rng, k, rows.columns) if span is None else span_directions(rng, k, span)
            fit = prune(rows, shape, minimise(rows, shape, U, SEARCH), truth.m)
            fit = polish(rows, shape, fit)
            if task.is_exact(fit.at.squares):
                row["exact"] = True
                break
    return row | {"seconds": now() - began}


def cycles(planted: Planted, seconds: float, seed: int, factor: float, kept: float, *, signs: bool) -> Row:
    """The same with cycles, as :mod:`relumine.recovery.rounds` makes them."""
    truth, X, y = planted
    rng, began, row = np.random.default_rng(seed), now(), {"exact": False, "starts": 0}
    task, run, k = make_task(as_samples(X, y), RELU, rng), Run(rng), ceil(factor * truth.m)
    fit = None
    with budget(seconds):
        for turn in count():
            row["starts"] = turn + 1
            if fit is None or turn % (CYCLES + 1) == 0:
                U = random_directions(rng, k, task.rows.columns)
            else:
                U = rounds.renewed(fit, ceil(kept * truth.m), k, rng)
            fit = rounds.contracted(task, minimise(task.rows, task.shape, U, rounds.STUDENT), truth.m, run, "")
            if signs and not task.is_exact(fit.at.squares):
                fit = rounds.signed(task, fit, run, "") or fit
            if task.is_exact(fit.at.squares):
                row["exact"] = True
                break
    return row | {"seconds": now() - began}


def label(toggle: Toggle) -> str:
    sign_free, factor, spectral, after = toggle
    form = "sign-free" if sign_free else "ordinary"
    name = f"{form}, {factor:g} × units, {'spectral' if spectral else 'random'} start"
    return f"{name}, {after}" if after else name


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for d, m, ratio, seeds in settings["sizes"]:
        problem = random_network(d, m, ratio)
        for seed in range(settings["first"], settings["first"] + seeds):

            def work(problem: Any = problem, seed: int = seed, d: int = d, m: int = m, ratio: float = ratio) -> Row:
                planted = problem.make(seed)
                ours = attempt(OURS, planted, inf, seed)["seconds"]
                chosen = [t for t in TOGGLES if m < d or not t[2]]  # the second moment shows a span for m < d only
                chosen = chosen if ratio >= FEW else [t for t in TOGGLES if t[3] or t == BARE]
                allowance = max(LEAST, TIMES * ours)
                found = {label(toggle): search(planted, allowance, seed, toggle) for toggle in chosen}
                return {"problem": problem.name, "seed": seed, "relumine_seconds": ours, "variants": found}

            yield f"{problem.name} seed {seed}", work


def section(report: Row) -> str:
    names = {name for row in report["rows"] for name in row["variants"]}
    kept = (
        ", with all units kept or those that matter least renewed" if any("renewed" in name for name in names) else ""
    )
    cycled = any("cycles" in name for name in names)
    more = f"; cycles, which count as starts here{kept}, and signs tried as soon as a fit is close" if cycled else ""
    parts = [
        "## What each part contributes",
        "The search of `recover` ([how it works](recover.md)) with parts left out: the sign-free form |z|/2 or the "
        f"ordinary one, 1.5 times the units or just as many, directions from the second moment or at random{more}. "
        f"Each starts again until a fit is exact or {TIMES:g} times relumine's time (at least {LEAST:g} s) is over. "
        f"{seeds_of(report)}",
    ]
    for problem, variants in gather(report, "variants").items():
        rows = []
        for name, results in variants.items():
            hits = Count(sum(r["exact"] for r in results), len(results))
            starts = sum(r["starts"] for r in results) / max(hits.hits, 1)
            cost = sum(r["seconds"] for r in results) / max(hits.hits, 1)
            none = hits.hits == 0
            rows.append([name, str(hits), "—" if none else f"{starts:.1f}", "—" if none else duration(cost)])
        parts += [
            f"**{problem}**",
            table(["variant", "exact in time", "starts per success", "time per success"], rows),
        ]
    return "\n\n".join(parts)


def comparable(report: Row) -> dict[str, Any]:
    return {
        f"{problem}, {name}": Count(sum(r["exact"] for r in results), len(results))
        for problem, variants in gather(report, "variants").items()
        for name, results in variants.items()
        if name.startswith("sign-free, 1.5")
    }
