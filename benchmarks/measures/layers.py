"""Several layers from samples alone: how often `recover(X, y, widths=…)` finds the function, and the parameters.

Random networks from `planted.deep`, 20 rows per parameter, no noise. Many such networks have parameters that no sample
determines (units that never switch); *ambiguous* is then the right word, and the function is what can be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.clock import now
from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "layers"
FULL: Row = {"shapes": ["2-3-2-1", "3-3-3-1", "4-4-4-1", "5-5-5-1"], "seeds": 4, "first": 74000, "limit": 30.0}
QUICK: Row = {"shapes": ["2-2-2-1"], "seeds": 2, "first": 74000, "limit": 20.0}
MINUTES = (3.0, 0.1)


def solved(shape: str, seed: int, limit: float) -> Row:
    """One planted network."""
    truth = rl.planted.deep([int(k) for k in shape.split("-")], rng=seed)
    X = np.random.default_rng(seed + 1).normal(size=(20 * truth.parameters, truth.d))
    cpu = now()

    def stop(_: object) -> None:  # as Ctrl-C would: the limit of recover itself counts on the wall clock
        if now() > cpu + limit:
            raise KeyboardInterrupt

    found = rl.recover(X, truth(X), widths=truth.widths, rng=seed + 2, progress=stop, on_failure="return")
    cpu = now() - cpu
    Z = np.random.default_rng(seed + 3).normal(size=(20_000, truth.d))
    off = np.abs(found.network(Z) - truth(Z)) > 1e-9 * truth(Z).std()
    error = rl.metrics.parameter_error(truth, found.network)
    return {
        "network": shape,
        "parameters": truth.parameters,
        "status": found.status.value,
        "loss": found.search.loss,
        "off": float(off.mean()),
        "unseen": float(found.certificate.unseen) if found.ok else None,
        "parameter_error": error if np.isfinite(error) else None,
        "cpu_seconds": cpu,
    }


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for seed in range(settings["first"], settings["first"] + settings["seeds"]):
        for shape in settings["shapes"]:

            def work(shape: str = shape, seed: int = seed) -> Row:
                return solved(shape, seed, settings["limit"])

            yield f"{shape} {seed}", work


def _fits(r: Row) -> bool:
    """The function, but for a share of inputs that so many rows cannot see."""
    return bool(r["loss"] <= 1e-20 and r["off"] <= 3.0 / (20.0 * r["parameters"]))


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/deep.md."""
    lines = []
    for name in dict.fromkeys(r["network"] for r in report["rows"]):
        group = [r for r in report["rows"] if r["network"] == name]
        exact = [r for r in group if r["status"] == "exact"]
        right = sum(r["parameter_error"] is not None and r["parameter_error"] <= 1e-6 for r in exact)
        seconds = sorted(r["cpu_seconds"] for r in group)
        lines.append(
            [
                name,
                f"{sum(map(_fits, group))} of {len(group)}",
                f"{len(exact)}",
                f"{right}",
                f"{sum(r['status'] == 'ambiguous' for r in group)}",
                duration(seconds[len(seconds) // 2]),
                duration(seconds[-1]),
            ]
        )
    header = ["network", "function found", "called exact", "parameters to 1e-6", "ambiguous", "median CPU", "longest"]
    words = (
        "`recover(X, y, widths=…)`, random networks from `planted.deep`, 20 rows per parameter, seeds from "
        f"{report['settings']['first']}, at most {report['settings']['limit']:g} s of CPU time each. *Function found*: "
        "all rows to rounding error, and no more fresh inputs off than so many rows leave open. `python -m benchmarks "
        "run --only layers`."
    )
    found, named = Count(sum(map(_fits, report["rows"])), len(report["rows"])), [r["status"] for r in report["rows"]]
    total = f"In all: the function found {found}, called exact {named.count('exact')}/{len(named)}."
    return {"docs/deep.md": f"{words}\n\n{table(header, lines)}\n\n{total}"}


def comparable(report: Row) -> dict[str, Any]:
    return {"functions of several layers from samples": Count(sum(map(_fits, report["rows"])), len(report["rows"]))}
