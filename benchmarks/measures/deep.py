"""Deep networks behind a black box: how often every layer comes back, for how many rows, in what time.

Random networks from `planted.deep`; rows are counted by the box. *Exact*: relative error at most 1e-9 on fresh inputs
and every parameter, up to order and scale, within 1e-6. Networks of others are read from the folder RELUMINE_NETS/deep,
if it is set, and left out otherwise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.clock import now
from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "deep"
FULL: Row = {
    "shapes": [
        "10-10-10-1",
        "20-10-10-1",
        "50-25-25-1",
        "100-50-50-1",
        "80-40-20-1",
        "40-20-10-10-1",
        "64-16-8-8-1",
        "30-20-15-10-1",
        "64-32-32-10",
        "784-32-32-1",
        "10-20-20-1",
        "5-15-10-1",
    ],
    "files": ["2_deep_nn_32_2_2_1", "2_deep_nn_512_2_2_1", "2_deep_nn_1024_2_2_1"],
    "seeds": 3,
    "first": 83000,
    "limit": 60.0,
}
QUICK: Row = {"shapes": ["8-6-5-1"], "files": [], "seeds": 1, "first": 81000, "limit": 60.0}
MINUTES = (20.0, 0.1)


class Counted:
    """A box that counts its rows."""

    def __init__(self, net: rl.DeepNetwork) -> None:
        self.net, self.rows = net, 0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        self.rows += len(X)
        return self.net(X)


def looked_into(truth: rl.DeepNetwork, seed: int, limit: float) -> Row:
    wall, cpu, box = time.perf_counter(), now(), Counted(truth)
    found = rl.extract(box, dim=truth.d, rng=seed + 1, seconds=limit, on_failure="return")
    X = np.random.default_rng(seed + 2).normal(size=(1000, truth.d))
    y = truth(X)
    error = float(np.sqrt(np.mean((found.network(X) - y) ** 2)) / y.std())
    parameters = rl.metrics.parameter_error(truth, found.network)
    return {
        "parameters": truth.parameters,
        "queries": box.rows,
        "status": found.status.value,
        "error": error,
        "parameter_error": parameters if np.isfinite(parameters) else None,
        "layers": len(found.rest.layers) if found.rest is not None else None,
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": now() - cpu,
    }


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for shape in settings["shapes"]:
        for seed in range(settings["first"], settings["first"] + settings["seeds"]):

            def work(shape: str = shape, seed: int = seed) -> Row:
                truth = rl.planted.deep([int(k) for k in shape.split("-")], rng=seed)
                return {"network": shape} | looked_into(truth, seed, settings["limit"])

            yield f"{shape} {seed}", work
    for name in settings["files"] if "RELUMINE_NETS" in os.environ else ():

        def read(name: str = name) -> Row:
            truth = rl.DeepNetwork.load(Path(os.environ["RELUMINE_NETS"]) / "deep" / f"{name}.npz")
            return {"network": name} | looked_into(truth, settings["first"], settings["limit"])

        yield name, read


def _exact(r: Row) -> bool:
    near = r["parameter_error"] is not None and r["parameter_error"] <= 1e-6
    return bool(r["status"] == "exact" and r["error"] <= 1e-9 and near)


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/deep.md."""
    lines = []
    for name in dict.fromkeys(r["network"] for r in report["rows"]):
        group = [r for r in report["rows"] if r["network"] == name]
        per = sorted(r["queries"] / r["parameters"] for r in group)
        wrong = sum(r["status"] == "exact" and r["error"] > 1e-6 for r in group)
        same = sum(r["status"] == "exact" and r["error"] <= 1e-6 for r in group)
        lines.append(
            [
                name,
                f"{group[0]['parameters']:,}",
                f"{sum(map(_exact, group))} of {len(group)}",
                str(same),
                str(wrong),
                f"{per[0]:.1f}–{per[-1]:.1f}",
                duration(max(r["cpu_seconds"] for r in group)),
            ]
        )
    header = [
        "network",
        "parameters",
        "exact",
        "function",
        "called exact and wrong",
        "rows per parameter",
        "most CPU time",
    ]
    words = (
        "`extract`, depth and widths unknown, random networks from `planted.deep` and three of other people. *Exact*: "
        "relative error at most 1e-9 on 1000 fresh rows and every parameter within 1e-6. *Function*: called exact, and "
        f"right to 1e-6 on those rows. At most {report['settings']['limit']:g} s on the clock each, one thread; seeds "
        f"from {report['settings']['first']}. `python -m benchmarks run --only deep`."
    )
    return {"docs/deep.md": f"{words}\n\n{table(header, lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    return {"deep networks found exactly": Count(sum(map(_exact, report["rows"])), len(report["rows"]))}
