"""Deep networks behind a black box: how often every layer comes back, for how many rows, in what time.

Random networks from `planted.deep`, classifiers and regressors of the digits by scikit-learn, networks of 784 inputs
trained for a moment with PyTorch, boxes of random shape; rows are counted by the box. *Exact*: relative error at most
1e-9 on fresh inputs and every parameter that some input shows, up to order and scale, within 1e-6; what no input shows
is proved for each network (`benchmarks.invisible`). Networks of others are read from
the folder RELUMINE_NETS/deep, if it is set, and left out otherwise.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.clock import now
from benchmarks.counting import Count
from benchmarks.invisible import differing, identifiable_error, invisible
from benchmarks.results import Row
from benchmarks.text import duration, table

Cells = Iterator[tuple[str, Callable[[], Row]]]
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
        "20-8-8-8-8-1",
        "25-15-10-8-6-1",
        "40-12-12-12-12-1",
    ],
    "grows": ["8-12-10-6-1"],
    "files": ["2_deep_nn_32_2_2_1", "2_deep_nn_512_2_2_1", "2_deep_nn_1024_2_2_1"],
    "digits": ["64-16-16-1", "64-32-32-10", "64-16-16-16-1"],
    "trained": ["784-32-32-1", "784-64-64-1", "784-128-128-1"],
    "boxes": 100,
    "seeds": 5,
    "first": 371000,
    "first_trained": 171000,
    "limit": 60.0,
    "limits": {
        "10-20-20-1": 300.0,
        "5-15-10-1": 300.0,
        "8-12-10-6-1": 300.0,
        "20-8-8-8-8-1": 300.0,
        "25-15-10-8-6-1": 300.0,
        "40-12-12-12-12-1": 300.0,
        "digits": 120.0,
        "boxes": 300.0,
        "784-64-64-1": 180.0,
        "784-128-128-1": 600.0,
    },
}
BOXES = 372_000  # the first seed of the boxes: later than those on which what they show was mended
NONE: Row = {"grows": [], "files": [], "digits": [], "trained": []}
QUICK: Row = FULL | NONE | {"shapes": ["8-6-5-1"], "boxes": 0, "seeds": 1}
NEAR = 1e-6  # error of a parameter up to which it is found
PATIENCE = 10.0  # times the CPU time allowed that a busy machine may take on the clock
UNITS = 130  # of a network up to which it is proved what no input shows: seconds
MINUTES = (20.0, 0.02)


class Counted:
    """A box that counts its rows."""

    def __init__(self, net: rl.DeepNetwork) -> None:
        self.net, self.rows = net, 0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        self.rows += len(X)
        return self.net(X)


def looked_into(truth: rl.DeepNetwork, seed: int, limit: float) -> Row:
    wall, cpu, box = time.perf_counter(), now(), Counted(truth)
    found = rl.extract(box, dim=truth.d, rng=seed + 1, seconds=PATIENCE * limit, on_failure="return")
    wall, cpu = time.perf_counter() - wall, now() - cpu
    X = np.random.default_rng(seed + 2).normal(size=(1000, truth.d))
    y = truth(X)
    error = float(np.sqrt(np.mean((found.network(X) - y) ** 2)) / y.std())
    parameters = shown = rl.metrics.parameter_error(truth, found.network)
    if found.status.value == "exact" and shown > NEAR and truth.m <= UNITS:
        shown = identifiable_error(truth, found.network, invisible(truth, np.random.default_rng(seed + 3)))
    near = shown <= NEAR
    return {
        "parameters": truth.parameters,
        "queries": box.rows,
        "status": found.status.value,
        "error": error,
        "parameter_error": parameters if np.isfinite(parameters) else None,
        "identifiable_error": shown if np.isfinite(shown) else None,
        "differ": 0 if near else differing(truth, found.network, np.random.default_rng(seed + 4)),
        "layers": len(found.rest.layers) if found.rest is not None else None,
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "limit": limit,
    }


def of_digits(sizes: list[int], seed: int) -> rl.DeepNetwork:
    """A network that scikit-learn fitted to the digits: their classes, or the number itself."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    X, y = load_digits(return_X_y=True)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 0.1)
    kind = MLPClassifier if sizes[-1] > 1 else MLPRegressor
    model = kind(hidden_layer_sizes=sizes[1:-1], early_stopping=True, random_state=seed).fit(X, y)
    return rl.DeepNetwork.from_sklearn(model)


def of_digits_by_torch(sizes: list[int], seed: int) -> rl.DeepNetwork:
    """The same with PyTorch."""
    import torch
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = torch.from_numpy((X - X.mean(axis=0)) / (X.std(axis=0) + 0.1))
    if sizes[-1] > 1:
        return _fitted(sizes, seed, X, torch.from_numpy(y).long(), torch.nn.functional.cross_entropy)
    return _fitted(sizes, seed, X, torch.from_numpy(y)[:, None] / 3.0, torch.nn.functional.mse_loss)


def taught(sizes: list[int], seed: int, gain: float | None = None) -> rl.DeepNetwork:
    """A network that has learned sin of a few projections; ``gain``: from normal weights of this size, as He's √2."""
    import torch

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, sizes[0]))
    y = np.sin(X @ rng.normal(size=(sizes[0], 4)) / sizes[0] ** 0.5).sum(axis=1, keepdims=True)
    return _fitted(sizes, seed, torch.from_numpy(X), torch.from_numpy(y), torch.nn.functional.mse_loss, gain)


def _fitted(
    sizes: list[int], seed: int, X: Any, y: Any, loss: Callable[..., Any], gain: float | None = None
) -> rl.DeepNetwork:
    """A thousand steps of Adam, from PyTorch's own start or from normal weights of standard deviation gain/√d."""
    import torch

    torch.manual_seed(seed)
    maps: list[Any] = []
    for d, m in pairwise(sizes):
        maps += [torch.nn.Linear(d, m, dtype=torch.float64), torch.nn.ReLU()]
        if gain is not None:
            torch.nn.init.normal_(maps[-2].weight, std=gain / d**0.5)
    model = torch.nn.Sequential(*maps[:-1])
    steps = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(1000):
        steps.zero_grad()
        loss(model(X), y).backward()
        steps.step()
    return rl.DeepNetwork.from_torch(model)


def of_any_shape(seed: int) -> rl.DeepNetwork:
    """One to three hidden layers of 7 to 20 units, none wider than what feeds it."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(10, 41))]
    for _ in range(int(rng.integers(1, 4))):
        sizes.append(int(rng.integers(7, min(sizes[-1], 20) + 1)))
    return rl.planted.deep([*sizes, 1], rng=rng)


def cells(settings: Row, rows: dict[str, Row]) -> Cells:
    first, limit, limits = settings["first"], settings["limit"], settings["limits"]
    seeds = range(first, first + settings["seeds"])
    older = range(settings["first_trained"], settings["first_trained"] + settings["seeds"])

    def planted(kind: str) -> Cells:
        for shape in settings[kind]:
            yield from _of_shape(shape, "", rl.planted.deep, seeds, limits.get(shape, limit))

    yield from planted("shapes")
    for shape in settings["digits"]:
        yield from _of_shape(shape, "digits ", of_digits, seeds, limits["digits"])
        yield from _of_shape(shape, "digits by torch ", of_digits_by_torch, seeds, limits["digits"])
    for seed in range(BOXES, BOXES + settings["boxes"]):

        def any_shape(seed: int = seed) -> Row:
            truth = of_any_shape(seed)
            return {"network": "random shapes, depth 1 to 3"} | looked_into(truth, seed, limits["boxes"])

        yield f"random {seed}", any_shape
    for shape in settings["trained"]:
        yield from _of_shape(shape, "trained ", taught, older, limits.get(shape, limit))
    for name in settings["files"] if "RELUMINE_NETS" in os.environ else ():

        def read(name: str = name) -> Row:
            truth = rl.DeepNetwork.load(Path(os.environ["RELUMINE_NETS"]) / "deep" / f"{name}.npz")
            return {"network": name} | looked_into(truth, first, limit)

        yield name, read
    yield from planted("grows")


def _of_shape(
    shape: str, word: str, make: Callable[[list[int], int], rl.DeepNetwork], seeds: range, limit: float
) -> Cells:
    """One network of this shape for each seed; ``word``: how they were made."""
    for seed in seeds:

        def work(seed: int = seed) -> Row:
            truth = make([int(k) for k in shape.split("-")], seed)
            return {"network": word + shape} | looked_into(truth, seed, limit)

        yield f"{word}{shape} {seed}", work


def _exact(r: Row) -> bool:
    near = r["identifiable_error"] is not None and r["identifiable_error"] <= NEAR
    in_time = r["cpu_seconds"] <= r.get("limit", np.inf)
    return bool(r["status"] == "exact" and r["error"] <= 1e-9 and near and in_time)


def _agrees(r: Row) -> bool:
    """Whether the answers agree near and far: they do if no parameter is off; older rows say no more."""
    near = r["identifiable_error"] is not None and r["identifiable_error"] <= NEAR
    return not r.get("differ", 0 if near else 1)


def _older(report: Row) -> str:
    """Which rows have other seeds than those of the settings: they were measured before."""
    firsts = [report["settings"]["first"], report["settings"]["first_trained"], BOXES]
    numbered = [(r["network"], int(r["key"].split()[-1])) for r in report["rows"] if r["key"].split()[-1].isdigit()]
    older = {name: seed // 1000 * 1000 for name, seed in numbered if all(seed // 1000 != f // 1000 for f in firsts)}
    return "".join(f"; of {name}, measured before, from {seed}" for name, seed in older.items())


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/deep.md."""
    lines = []
    for name in dict.fromkeys(r["network"] for r in report["rows"]):
        group = [r for r in report["rows"] if r["network"] == name]
        per = sorted(r["queries"] / r["parameters"] for r in group)
        wrong = sum(r["status"] == "exact" and r["error"] > 1e-6 for r in group)
        same = sum(r["status"] == "exact" and r["error"] <= 1e-6 for r in group)
        everywhere = sum(r["status"] == "exact" and r["error"] <= 1e-9 and _agrees(r) for r in group)
        lines.append(
            [
                name,
                f"{min(r['parameters'] for r in group):,}" if name[0] != "r" else "",
                f"{sum(map(_exact, group))} of {len(group)}",
                str(sum(_exact(r) and r["parameter_error"] == r["identifiable_error"] for r in group)),
                str(everywhere),
                str(same),
                str(wrong),
                f"{per[0]:.1f}–{per[-1]:.1f}",
                duration(max(r["cpu_seconds"] for r in group)),
                duration(max(r["limit"] for r in group)),
            ]
        )
    header = [
        "network",
        "parameters",
        "exact",
        "all parameters",
        "near and far",
        "function",
        "called exact and wrong",
        "rows per parameter",
        "most CPU time",
        "allowed",
    ]
    words = (
        "`extract`, depth and widths unknown: random networks from `planted.deep`; fitted to the digits by "
        "scikit-learn and by PyTorch; trained with PyTorch for a moment; random shapes of 10 to 40 inputs; three "
        "networks of other people. *Exact*: "
        "relative error at most 1e-9 on 1000 fresh rows and every parameter that some input shows within 1e-6, but for "
        "units of the last layer with an output below 1e-9 of the largest; *all "
        "parameters*: of those, the networks with every parameter within 1e-6. *Near and far*: the answers agree at "
        "all of 50 000 random inputs, too, up to 64 times as far out as usual ones: what is missing shows at none of "
        "them. *Function*: called exact, and "
        f"right to 1e-6 on those rows. *Exact* also asks for no more CPU time than *allowed*, with one thread. "
        f"Seeds from {report['settings']['first']}, of those trained with 784 inputs from "
        f"{report['settings']['first_trained']}; boxes of random shape from {BOXES}{_older(report)}. "
        "`python -m benchmarks run --only deep`."
    )
    return {"docs/deep.md": f"{words}\n\n{table(header, lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    return {"deep networks found exactly": Count(sum(map(_exact, report["rows"])), len(report["rows"]))}
