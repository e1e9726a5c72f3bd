"""Many small boxes: how often `extract` is exact, and whether anything that it calls exact, or recovered, is wrong.

*Random*: every weight, bias and output weight N(0, 1), widths not given. *Single*: boxes that compute in single
precision, with an output bias; d = 5, 8, 10 inputs and m = 4, 6, 12 units, and 784-32-1. *Noise*: 1 % of the spread of
the answers. *Wrong*: another number of units, or a parameter (unit rows, up to flips that change nothing) off by more
than 1e-6; in single precision 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tests.extraction.black_boxes import in_single_precision

import relumine as rl
from benchmarks.clock import now
from benchmarks.counting import Count
from benchmarks.measures.extraction import CERTIFICATE, Counted, random_network
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "boxes"
FULL: Row = {
    "shapes": [
        *("1-4-1", "2-6-1", "3-8-1", "5-5-1", "5-10-1", "8-12-2", "10-5-1", "10-20-1", "10-30-1", "16-16-3"),
        *(
            "20-10-1",
            "20-30-1",
            "32-8-1",
            "32-32-1",
            "64-16-1",
            "64-32-4",
            "100-20-1",
            "128-16-2",
            "200-10-1",
            "64-64-1",
        ),
    ],
    "seeds": 10,
    "noise": ["10-5-1"],
    "large": ["784-32-1"],
    "single": 100,
    "first": 52000,
    "limit": 120.0,
}
QUICK: Row = {"shapes": ["10-5-1"], "seeds": 2, "noise": [], "large": [], "single": 2, "first": 52000, "limit": 60.0}
MINUTES = (2.0, 0.03)


def looked_into(truth: rl.Network, f: Callable[..., np.ndarray], seed: int, limit: float) -> Row:
    """What `extract` makes of one box."""
    cpu, box = now(), Counted(f)
    found = rl.extract(box, dim=truth.d, rng=seed + 1, seconds=limit, on_failure="return")
    error = rl.metrics.parameter_error(truth, found.network) if found.network.m == truth.m else float("inf")
    size = float(np.abs(truth.scaled().a).max())
    return {
        "parameters": truth.m * (truth.d + 1),
        "queries": box.rows,
        "way": found.way,
        "status": found.status.value,
        "ok": bool(found.ok),
        "standard_errors": found.standard_errors is not None,
        "error": error / size if np.isfinite(error) else None,
        "cpu_seconds": now() - cpu,
    }


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    first, limit = settings["first"], settings["limit"]
    for shape in settings["shapes"]:
        for seed in range(first, first + settings["seeds"]):

            def random(shape: str = shape, seed: int = seed) -> Row:
                d, m, q = map(int, shape.split("-"))
                truth = random_network(d, m, q, seed + 1000 * m)
                return {"kind": "random", "network": shape} | looked_into(truth, truth, seed, limit)

            yield f"random {shape} {seed}", random
    for shape in settings["noise"]:

        def noisy(shape: str = shape) -> Row:
            d, m, q = map(int, shape.split("-"))
            truth, rng = random_network(d, m, q, first), np.random.default_rng(first)
            sigma = 0.01 * truth(rng.normal(size=(4000, d))).std()
            box = looked_into(truth, lambda X: truth(X) + sigma * rng.normal(size=len(X)), first, limit)
            return {"kind": "noise", "network": shape} | box

        yield f"noise {shape}", noisy
    for shape in settings["large"]:

        def large(shape: str = shape) -> Row:
            d, m, _ = map(int, shape.split("-"))
            return {"kind": "large", "network": shape} | looked_into(
                *in_single_precision(d, m, first, normal=True), first, limit
            )

        yield f"single {shape}", large
    for seed in range(first, first + settings["single"]):

        def single(seed: int = seed) -> Row:
            rng = np.random.default_rng(seed + 10**6)
            d, m = int(rng.choice([5, 8, 10])), int(rng.choice([4, 6, 12]))
            return {"kind": "single", "network": f"{d}-{m}-1"} | looked_into(
                *in_single_precision(d, m, seed), seed, limit
            )

        yield f"single {seed}", single


def _wrong(r: Row) -> bool:
    """Called exact, or recovered, and not it."""
    most = 1e-6 if r["kind"] == "random" else 1e-4
    return bool(r["ok"] and r["kind"] != "noise" and (r["error"] is None or r["error"] > most))


def _line(name: str, group: list[Row], what: str) -> list[str]:
    per = [r["queries"] / r["parameters"] for r in group]
    without = [(r["queries"] - CERTIFICATE) / r["parameters"] for r in group if r["way"] == "chosen"]
    return [
        name,
        f"{sum(r['ok'] for r in group)} of {len(group)} {what}",
        str(sum(map(_wrong, group))),
        f"{np.median(per):.2f}, {max(per):.2f} at most",
        f"{np.median(without):.2f}" if without else "",
        f"{max((r['error'] for r in group if r['ok'] and r['error'] is not None), default=float('nan')):.0e}",
        duration(max(r["cpu_seconds"] for r in group)),
    ]


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/extract.md."""
    rows = report["rows"]
    random = [r for r in rows if r["kind"] == "random"]
    many = [r for r in random if int(r["network"].split("-")[0]) >= 64]
    shapes = len({r["network"] for r in random})
    groups = [
        (f"{len(random)} random boxes of {shapes} shapes, 1-4-1 to 200-10-1", random, "exact"),
        ("of these, 64 inputs or more", many, "exact"),
        ("single precision, 5 to 10 inputs, 4 to 12 units", [r for r in rows if r["kind"] == "single"], "recovered"),
        *((f"single precision, {r['network']}", [r], "recovered") for r in rows if r["kind"] == "large"),
        *((f"noise of 1 %, {r['network']}, random rows", [r], "noisy") for r in rows if r["kind"] == "noise"),
    ]
    lines = [_line(name, group, what) for name, group, what in groups if group]
    header = ["boxes", "status", "wrong", "rows per parameter, median", "without the certificate", "largest error"]
    words = (
        "Many boxes, widths not given. *Wrong*: called exact or recovered, and with another number of units or an "
        "error of more than 1e-6 (single precision: 1e-4). *Largest error*: of a parameter, over the largest |a|, of "
        f"those that are right by their status. Seeds from {report['settings']['first']}. "
        "`python -m benchmarks run --only boxes`"
        f"{'' if report['complete'] else ' (not all of it has been run)'}."
    )
    return {"docs/extract.md": f"{words}\n\n{table([*header, 'most CPU time'], lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    rows = report["rows"]
    return {
        "boxes recovered": Count(sum(r["ok"] for r in rows), len(rows)),
        "boxes not called what they are not": Count(len(rows) - sum(map(_wrong, rows)), len(rows)),
    }
