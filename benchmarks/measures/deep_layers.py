"""Networks too deep, or too wide, to come back whole: how many layers are certain, and whether those are right.

Eight hidden layers, random from `planted.deep`, and trained for a moment with PyTorch: from normal weights as large as
He says, and from PyTorch's own start, whose small weights leave most units of later layers on, or off, at all inputs.
The networks of others are read from the folder RELUMINE_NETS/deep, if it is set, and left out otherwise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.clock import now
from benchmarks.counting import Count
from benchmarks.invisible import invisible, not_shown, seen_units
from benchmarks.measures.deep import Counted, taught
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "deep_layers"
FULL: Row = {
    "shapes": {"100-16×8-1": [100, *[16] * 8, 1], "784-8×8-1": [784, *[8] * 8, 1]},
    "files": ["acasxu_1_1", "unitary_100_200x3_10"],
    "networks": {
        "random": [364000, 374000],
        "trained from He's start": [364000],
        "trained from PyTorch's start": [364000, 374000],
    },
    "seed": 364000,
    "limit": 600.0,
    "budget": 20_000_000,
    "files_limit": 480.0,
}
LITTLE: Row = {"limit": 2.0, "budget": 20_000_000, "files_limit": 2.0}
SEEDS: Row = {"seed": 84000, "networks": {"random": [84000], "trained from PyTorch's start": [84000]}}
QUICK: Row = {"shapes": {"12-6×4-1": [12, *[6] * 4, 1]}, "files": []} | SEEDS | LITTLE
ALIKE = 1e-3  # distance up to which two units are taken for one
MINUTES = (20.0, 0.07)


def layer_errors(truth: rl.DeepNetwork, layers: Any, never: Any = ()) -> list[float]:
    """For each layer the largest distance of a unit, a vector of length one with its bias, from its counterpart.

    Infinite where two units have the same one. ``never``: for each layer its weights that never count, which do not
    here, either. Units that no input turns off are affine maps, of which no more than their span can be known: what is
    left of theirs beside that of the others counts. h = Mg + o are the true activations behind the layers so far, from
    those found, g.
    """
    errors, M, o = [], np.eye(truth.d), np.zeros(truth.d)
    for k, ((W, b), (V, c)) in enumerate(zip(truth.hidden, layers)):
        T, U = np.column_stack([W @ M, W @ o + b]), np.column_stack([V, c])
        apart, scale = np.full((len(c), len(b)), np.inf), np.zeros((len(c), len(b)))
        for i, row in enumerate(T):
            idle = np.zeros(V.shape[1], dtype=bool)
            if 0 < k < len(never):  # inputs are always there
                idle = (np.abs(M[never[k][i]]) > 0.0).any(axis=0)
            use = np.append(~idle, True)
            long, size = np.linalg.norm(row[:-1][~idle]), np.linalg.norm(V[:, ~idle], axis=1)
            if long > 0.0:
                apart[:, i] = np.linalg.norm(U[:, use] / size[:, None] - row[use] / long, axis=1)
                scale[:, i] = long / size
        match = apart.argmin(axis=1)
        found, rest = np.flatnonzero(apart.min(axis=1) <= ALIKE), np.flatnonzero(apart.min(axis=1) > ALIKE)
        error = float(apart.min(axis=1)[found].max(initial=0.0))
        M, o = np.zeros((len(b), len(c))), np.zeros(len(b))
        M[match[found], found] = scale[found, match[found]]
        others = np.setdiff1d(np.arange(len(b)), match[found])
        G = T[others, :-1] @ np.linalg.pinv(V[rest])
        left = np.linalg.norm(T[others, :-1] - G @ V[rest], axis=1)
        on = left <= ALIKE * np.linalg.norm(T[others, :-1], axis=1)  # the others are never on
        if len(set(match[found].tolist())) < len(found) or on.sum() != len(rest):
            error = float("inf")
        M[np.ix_(others[on], rest)], o[others[on]] = G[on], T[others[on], -1] - G[on] @ c[rest]
        errors.append(max(error, float(left[on].max(initial=0.0))))
    return errors


def never_counts(truth: rl.DeepNetwork, depth: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """For each of the first layers which weights join units that no input turns on together, proved."""
    maps = truth.hidden[:depth]
    front = rl.DeepNetwork(maps[:-1], rl.Network(*maps[-1], np.ones(len(maps[-1][1]))))
    return invisible(front, rng).weights


def looked_into(truth: rl.DeepNetwork, seed: int, limit: float, budget: int) -> Row:
    wall, cpu, box = time.perf_counter(), now(), Counted(truth)
    found = rl.extract(box, dim=truth.d, rng=seed + 1, seconds=limit, budget=budget, on_failure="return")
    exact = found.status.value == "exact"
    layers = found.rest.layers if found.rest is not None else ()
    if exact:
        layers = getattr(found.network, "hidden", ())
    never = never_counts(truth, len(layers), np.random.default_rng(seed + 4)) if layers else ()
    errors = layer_errors(truth, layers, never)
    units, unseen = not_shown(truth, np.random.default_rng(seed + 5))
    shown = layer_errors(truth, layers, unseen)
    return {
        "parameters": truth.parameters,
        "layers": len(truth.widths),
        "queries": box.rows,
        "status": found.status.value,
        "reason": found.message,
        "certain": [len(b) for _, b in layers],
        "units": seen_units(truth, np.random.default_rng(seed + 3)),
        "errors": [e if np.isfinite(e) else None for e in errors],
        "shown_units": units,
        "usual_units": not_shown(truth, np.random.default_rng(seed + 6), usual=True)[0],
        "shown_errors": [e if np.isfinite(e) else None for e in shown],
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": now() - cpu,
        "limit": limit,
    }


def made(how: str, sizes: list[int], seed: int) -> rl.DeepNetwork:
    """A network of these sizes: random, or trained for a moment."""
    if how == "random":
        return rl.planted.deep(sizes, rng=seed)
    return taught(sizes, seed, gain=2.0**0.5) if "He" in how else taught(sizes, seed)


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    limit, budget = settings["limit"], settings["budget"]
    for name, how in product(settings["shapes"], settings["networks"]):
        for seed in settings["networks"][how]:

            def work(name: str = name, how: str = how, seed: int = seed) -> Row:
                truth = made(how, settings["shapes"][name], seed)
                return {"network": f"{name}, {how}", "seed": seed} | looked_into(truth, seed, limit, budget)

            yield f"{name} {how} {seed}", work
    for name in settings["files"] if "RELUMINE_NETS" in os.environ else ():

        def read(name: str = name) -> Row:
            truth = rl.DeepNetwork.load(Path(os.environ["RELUMINE_NETS"]) / "deep" / f"{name}.npz")
            return {"network": name} | looked_into(truth, settings["seed"], settings["files_limit"], budget)

        yield name, read


def _right(r: Row, units: str = "units") -> int:
    """How many of the certain layers are, by all ``units``, or by those that were shown; older rows have only all."""
    if units not in r:
        return _right(r, "shown_units") if units == "usual_units" else _right(r)
    errors = r["errors"] if units == "units" else r["shown_errors"]
    most = r["shown_units"] if units == "usual_units" else r[units]  # those that turn on further out may be there
    return sum(
        e is not None and e <= 1e-6 and a <= found <= b for e, found, a, b in zip(errors, r["certain"], r[units], most)
    )


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/deep.md."""
    lines = []
    for network in dict.fromkeys(r["network"] for r in report["rows"]):
        rows = [r for r in report["rows"] if r["network"] == network]
        worst = max((e for r in rows for e in r.get("shown_errors", r["errors"]) if e is not None), default=None)
        lines.append(
            [
                network,
                f"{rows[0]['parameters']:,}",
                f"{', '.join(str(len(r['certain'])) for r in rows)} of {rows[0]['layers']}",
                *(", ".join(str(_right(r, by)) for r in rows) for by in ("usual_units", "shown_units", "units")),
                "–" if worst is None else f"{worst:.0e}",
                f"{int(np.median([r['queries'] for r in rows])):,}",
                duration(float(np.median([r["cpu_seconds"] for r in rows]))),
                ", ".join(dict.fromkeys(duration(r["limit"]) for r in rows)),
            ]
        )
    header = ["network", "parameters", "layers certain", "of them right", "near and far", "for all inputs"]
    header += ["largest error", "rows", "CPU time", "at most"]
    words = (
        "Networks that do not come back whole: how far it goes, for each of several networks. *Right*: every unit that "
        "one of 50 000 usual inputs turns on, each within 1e-6 of its counterpart, and none that is not there. *Near "
        "and far*: the same with 50 000 inputs up to 64 times as far out, by weights that count at one of these. "
        "*For all inputs*: the same with every "
        "unit and weight of which it is not proved, by branch and bound, that no input shows it, however far; the CPU "
        "time includes these proofs. Rows and CPU time: the median. *At most*: so long on the clock, on a machine busy "
        "with other work. `python -m benchmarks run --only deep_layers`."
    )
    return {"docs/deep.md": f"{words}\n\n{table(header, lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    said = sum(len(r["certain"]) for r in report["rows"])
    return {"layers called certain that are right": Count(sum(map(_right, report["rows"])), max(said, 1))}
