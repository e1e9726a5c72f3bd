"""TwoLayerRegressor against what people use, on ordinary tabular data: test R² by folds, the same folds for all.

MLPRegressor: the best of lbfgs and adam at three widths *by its test score*, which flatters it. Inputs are scaled for
ridge and MLP.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.clock import timed
from benchmarks.compare import Speed
from benchmarks.results import Row
from benchmarks.text import seeds_of, table
from relumine.estimators import TwoLayerRegressor

NAME = "regressor"
FULL: Row = {"known": {"folds": 5}, "fresh": {"folds": 3}, "models": ""}
QUICK: Row = {"known": {"folds": 2, "only": "diabetes"}, "fresh": {"folds": 0}, "models": "ridge"}
MINUTES = (6.0, 0.1)
OURS = "TwoLayerRegressor"
# "known": what the grid of strengths and widths was settled on; "fresh": what it had not seen
DATA: dict[str, dict[str, Callable[[], Any]]] = {
    "known": {
        "diabetes (442 × 10)": lambda: load_diabetes(return_X_y=True),
        "Friedman 1 (800 × 10, noise 1)": lambda: make_friedman1(800, noise=1.0, random_state=0),
        "Friedman 2 (800 × 4, noise 1)": lambda: make_friedman2(800, noise=1.0, random_state=0),
        "Friedman 3 (800 × 4, no noise)": lambda: make_friedman3(800, random_state=0),
    },
    "fresh": {
        "Friedman 1 (600 × 10, noise 1)": lambda: make_friedman1(600, noise=1.0, random_state=7),
        "Friedman 3 (600 × 4, noise 0.1)": lambda: make_friedman3(600, noise=0.1, random_state=7),
    },
}


def mlp(solver: str, width: int) -> TransformedTargetRegressor:
    steps = {"lbfgs": 1000, "adam": 500}[solver]
    net = MLPRegressor(hidden_layer_sizes=(width,), solver=solver, max_iter=steps, random_state=0)
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), net), transformer=StandardScaler())


MODELS = {
    OURS: TwoLayerRegressor(random_state=0),
    "ridge": make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e3, 13))),
    "gradient boosting": GradientBoostingRegressor(random_state=0),
    **{f"MLP {solver} {width}": mlp(solver, width) for solver in ("lbfgs", "adam") for width in (10, 30, 100)},
}


def scores(group: str, data: str, model: str, folds: int) -> Row:
    """R² of every fold, and CPU seconds of one fit."""
    X, y = DATA[group][data]()
    seconds, r2 = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLPRegressor says so when it has not converged: that is its result, too
        for train, test in KFold(folds, shuffle=True, random_state=0).split(X):
            fitted, spent = timed(partial(clone(MODELS[model]).fit, X[train], y[train]))
            seconds.append(spent)
            r2.append(float(fitted.score(X[test], y[test])))
    return {"group": group, "data": data, "model": model, "r2": r2, "seconds": float(np.median(seconds))}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for group, sets in DATA.items():
        folds = settings[group]["folds"]
        for data in (name for name in sets if folds and settings[group].get("only", "") in name):
            for model in (name for name in MODELS if settings["models"] in name):
                yield f"{data} {model}", partial(scores, group, data, model, folds)


def means(report: Row, group: str) -> dict[str, dict[str, float]]:
    """Mean R² by data and model."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for row in report["rows"]:
        if row["group"] == group:
            found[row["data"]][row["model"]] = float(np.mean(row["r2"]))
    return found


def _table(report: Row, group: str) -> str:
    rows = []
    for data, mean in means(report, group).items():
        best = max((model for model in mean if model.startswith("MLP")), key=lambda model: mean[model], default="")
        shown = [f"{mean[model]:.4f}" if model in mean else "" for model in (OURS, best, "ridge", "gradient boosting")]
        shown[1] += f" ({best.removeprefix('MLP ')})" if best else ""
        rows.append([data, *shown])
    return table(["data", OURS, "best MLP", "ridge", "gradient boosting"], rows)


def elsewhere(report: Row) -> dict[str, str]:
    folds = {group: report["settings"][group]["folds"] for group in DATA}
    seconds = [r["seconds"] for r in report["rows"] if r["model"] == OURS] or [0.0]
    return {
        "docs/regressor.md": "\n\n".join(
            [
                f"Test R², mean of {folds['known']} folds, the same folds for all; a fit of {OURS} takes "
                f"{min(seconds):.2g} to {max(seconds):.2g} s of CPU time. {seeds_of(report)}",
                _table(report, "known"),
                "The grid of ridge strengths and widths that it chooses from was settled after a look at these data, "
                f"so its own scores are a little flattered, too. Data it had not seen ({folds['fresh']} folds):",
                _table(report, "fresh"),
            ]
        )
    }


def comparable(report: Row) -> dict[str, Any]:
    return {
        f"unexplained variance, {row['data']}": Speed(1.0 / (1.0 - float(np.mean(row["r2"])) + 1e-9), 1.1)
        for row in report["rows"]
        if row["model"] == OURS
    }
