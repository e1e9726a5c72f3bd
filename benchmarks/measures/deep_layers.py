"""Networks too deep, or too wide, to come back whole: how many layers are certain, and whether those are right.

Eight hidden layers, random from `planted.deep` and trained for a moment with PyTorch; the networks of others are read
from the folder RELUMINE_NETS/deep, if it is set, and left out otherwise.
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
from benchmarks.invisible import seen_units
from benchmarks.measures.deep import Counted, taught
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "deep_layers"
FULL: Row = {
    "shapes": {"100-16×8-1": [100, *[16] * 8, 1], "784-8×8-1": [784, *[8] * 8, 1]},
    "files": ["acasxu_1_1", "unitary_100_200x3_10"],
    "seed": 84000,
    "limit": 1800.0,
    "files_limit": 480.0,
}
QUICK: Row = {"shapes": {"12-6×4-1": [12, *[6] * 4, 1]}, "files": [], "seed": 84000, "limit": 2.0, "files_limit": 2.0}
MINUTES = (20.0, 0.07)


def layer_errors(truth: rl.DeepNetwork, layers: Any) -> list[float]:
    """For each layer the largest distance of a unit, a vector of length one with its bias, from its counterpart.

    Infinite where two units have the same one.
    """
    errors, order, scale = [], np.arange(truth.d), np.ones(truth.d)
    for (W, b), (V, c) in zip(truth.hidden, layers):
        T, U = np.column_stack([W[:, order] * scale, b]), np.column_stack([V, c])
        length = np.linalg.norm(T[:, :-1], axis=1)
        T, U = T / length[:, None], U / np.linalg.norm(V, axis=1, keepdims=True)
        apart = np.linalg.norm(U[:, None, :] - T[None], axis=2)
        order = apart.argmin(axis=1)
        errors.append(float(apart.min(axis=1).max()) if len(set(order.tolist())) == len(order) else float("inf"))
        scale = length[order] / np.linalg.norm(V, axis=1)
    return errors


def looked_into(truth: rl.DeepNetwork, seed: int, limit: float) -> Row:
    wall, cpu, box = time.perf_counter(), now(), Counted(truth)
    found = rl.extract(box, dim=truth.d, rng=seed + 1, seconds=limit, on_failure="return")
    exact = found.status.value == "exact"
    layers = found.rest.layers if found.rest is not None else ()
    if exact:
        layers = getattr(found.network, "hidden", ())
    errors = layer_errors(truth, layers)
    return {
        "parameters": truth.parameters,
        "layers": len(truth.widths),
        "queries": box.rows,
        "status": found.status.value,
        "reason": found.message,
        "certain": [len(b) for _, b in layers],
        "units": seen_units(truth, np.random.default_rng(seed + 3)),
        "errors": [e if np.isfinite(e) else None for e in errors],
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": now() - cpu,
    }


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    seed, limit = settings["seed"], settings["limit"]
    for name, sizes in settings["shapes"].items():
        for how, make in (("random", lambda s: rl.planted.deep(s, rng=seed)), ("trained", lambda s: taught(s, seed))):

            def work(name: str = name, sizes: list[int] = sizes, how: str = how, make: Any = make) -> Row:
                return {"network": f"{name}, {how}"} | looked_into(make(sizes), seed, limit)

            yield f"{name} {how}", work
    for name in settings["files"] if "RELUMINE_NETS" in os.environ else ():

        def read(name: str = name) -> Row:
            truth = rl.DeepNetwork.load(Path(os.environ["RELUMINE_NETS"]) / "deep" / f"{name}.npz")
            return {"network": name} | looked_into(truth, seed, settings["files_limit"])

        yield name, read


def _right(r: Row) -> int:
    return sum(e is not None and e <= 1e-6 and a == b for e, a, b in zip(r["errors"], r["certain"], r["units"]))


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/deep.md."""
    lines = []
    for r in report["rows"]:
        worst = max((e for e in r["errors"] if e is not None), default=None)
        lines.append(
            [
                r["network"],
                f"{r['parameters']:,}",
                f"{len(r['certain'])} of {r['layers']}",
                str(_right(r)),
                "–" if worst is None else f"{worst:.0e}",
                f"{r['queries']:,}",
                duration(r["cpu_seconds"]),
            ]
        )
    header = ["network", "parameters", "layers certain", "of them right", "largest error", "rows", "CPU time"]
    words = (
        "Networks that do not come back whole: how far it goes. *Right*: as many units as some input turns "
        "on (of the others that is proved, by branch and bound), each within 1e-6 of its counterpart. "
        f"At most {report['settings']['limit']:g} s on the clock each "
        f"({report['settings']['files_limit']:g} s for the networks of others), on a machine busy with other work; one "
        "network each. `python -m benchmarks run --only deep_layers`."
    )
    return {"docs/deep.md": f"{words}\n\n{table(header, lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    said = sum(len(r["certain"]) for r in report["rows"])
    return {"layers called certain that are right": Count(sum(map(_right, report["rows"])), max(said, 1))}
