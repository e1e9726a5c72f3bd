"""TwoLayerRegressor against what people use, on ordinary tabular data: 5-fold test R², the same folds for all.

    python -m benchmarks.regressor [--out docs/results/regressor.json]

MLPRegressor: the best of lbfgs and adam at three widths *by its test score*, which flatters it. Inputs are scaled for
ridge and MLP. The table in docs/regressor.md is written from the JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from pathlib import Path

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

from relumine.estimators import TwoLayerRegressor

PAGE = Path(__file__).parents[1] / "docs" / "regressor.md"
WIDTHS = (10, 30, 100)
DATA = {
    "diabetes (442 × 10)": lambda: load_diabetes(return_X_y=True),
    "Friedman 1 (800 × 10, noise 1)": lambda: make_friedman1(800, noise=1.0, random_state=0),
    "Friedman 2 (800 × 4, noise 1)": lambda: make_friedman2(800, noise=1.0, random_state=0),
    "Friedman 3 (800 × 4, no noise)": lambda: make_friedman3(800, random_state=0),
}


def mlp(solver: str, width: int) -> TransformedTargetRegressor:
    steps = {"lbfgs": 1000, "adam": 500}[solver]
    net = MLPRegressor(hidden_layer_sizes=(width,), solver=solver, max_iter=steps, random_state=0)
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), net), transformer=StandardScaler())


MODELS = {
    "TwoLayerRegressor": TwoLayerRegressor(random_state=0),
    "ridge": make_pipeline(StandardScaler(), RidgeCV(np.geomspace(1e-3, 1e3, 13))),
    "gradient boosting": GradientBoostingRegressor(random_state=0),
    **{f"MLP {solver} {width}": mlp(solver, width) for solver in ("lbfgs", "adam") for width in WIDTHS},
}


def run(report: dict, only: str) -> dict:
    for name, make in DATA.items():
        X, y = make()
        folds = list(KFold(5, shuffle=True, random_state=0).split(X))
        scores = report["data"].setdefault(name, {})
        for label, model in MODELS.items():
            if not label.startswith(only):
                continue
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                r2 = [clone(model).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]
            scores[label] = {"r2": [round(v, 5) for v in r2], "seconds": round((time.perf_counter() - began) / 5, 2)}
            print(name, label, round(float(np.mean(r2)), 4), scores[label]["seconds"], flush=True)
    return report


def table(report: dict) -> str:
    lines = ["| data | TwoLayerRegressor | best MLP | ridge | gradient boosting |", "|---|---|---|---|---|"]
    for name, scores in report["data"].items():
        mean = {label: float(np.mean(entry["r2"])) for label, entry in scores.items()}
        best = max((label for label in mean if label.startswith("MLP")), key=lambda label: mean[label])
        shown = (mean["TwoLayerRegressor"], mean[best], mean["ridge"], mean["gradient boosting"])
        cells = [f"{value:.4f}" for value in shown]
        cells[1] += f" ({best.removeprefix('MLP ')})"
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_table(report: dict) -> None:
    text = PAGE.read_text()
    marks = "<!-- scores -->", "<!-- /scores -->"
    PAGE.write_text(re.sub(f"(?s){marks[0]}.*{marks[1]}", f"{marks[0]}\n{table(report)}\n{marks[1]}", text))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/results/regressor.json"))
    parser.add_argument("--table", action="store_true", help="only write the table from the JSON")
    parser.add_argument("--only", default="", help="only the models whose name begins so; the others stay as they are")
    options = parser.parse_args()
    before = json.loads(options.out.read_text()) if options.only else {"folds": 5, "data": {}}
    if not options.table:
        options.out.write_text(json.dumps(run(before, options.only), indent=1) + "\n")
    write_table(json.loads(options.out.read_text()))
