"""`predict_proba` of scikit-learn's MLPClassifier behind a StandardScaler: the network inside, from probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import relumine as rl
from benchmarks.clock import now
from benchmarks.counting import Count
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "classifiers"
# [data set, hidden units, seeds]
FULL: Row = {"data": [["breast_cancer", 8, 3], ["wine", 8, 3], ["digits", 16, 2]], "first": 0, "limit": 120.0}
QUICK: Row = {"data": [["wine", 8, 1]], "first": 0, "limit": 60.0}
MINUTES = (0.1, 0.01)


def looked_into(name: str, m: int, seed: int, limit: float) -> Row:
    """One classifier: its logits (less their mean for several classes) are the truth."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    mlp = MLPClassifier(hidden_layer_sizes=(m,), max_iter=300, tol=1e-3, random_state=seed)
    pipe = make_pipeline(StandardScaler(), mlp).fit(X, y)
    mean, scale = X.mean(axis=0), np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    cpu = now()
    found = rl.extract(pipe, link="auto", mean=mean, scale=scale, rng=seed, seconds=limit, on_failure="return")
    seconds = now() - cpu
    fresh = mean + scale * np.random.default_rng(seed).normal(size=(1000, X.shape[1]))
    rows = np.vstack([X, fresh])
    probabilities = pipe.predict_proba(rows)
    predicted = np.asarray(found.predict(rows)).reshape(len(rows), -1)
    shown = probabilities if predicted.shape[1] > 1 else probabilities[:, 1:]
    return {
        "network": f"{X.shape[1]}-{m}-{mlp.coefs_[1].shape[1]}",
        "queries": found.queries,
        "status": found.status.value,
        "error": _error(_inside(pipe), found.network),
        "probabilities": float(np.abs(predicted - shown).max()),
        "cpu_seconds": seconds,
    }


def _inside(pipe: Any) -> rl.Network:
    """The scaler and the network as one, logits less their mean."""
    scaler, mlp = pipe[0], pipe[-1]
    W = mlp.coefs_[0].T / scaler.scale_
    b = mlp.intercepts_[0] - W @ scaler.mean_
    a, c = mlp.coefs_[1].T, mlp.intercepts_[1]
    if len(a) > 1:
        return rl.Network(W, b, a - a.mean(axis=0), c=c - c.mean())
    return rl.Network(W, b, a[0], c=float(c[0]))


def _error(truth: rl.Network, found: rl.Network) -> float | None:
    """Of any parameter; a column of constant inputs has no weight that could be seen."""
    moving = np.abs(found.W).max(axis=0, initial=0.0) > 0.0
    if truth.m != found.m:
        return None
    if moving.all():
        return float(rl.metrics.parameter_error(truth, found))
    return float(rl.metrics.parameter_error(truth.replace(W=truth.W * moving), found))


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for name, m, seeds in settings["data"]:
        for seed in range(settings["first"], settings["first"] + seeds):

            def work(name: str = name, m: int = m, seed: int = seed) -> Row:
                return {"data": name} | looked_into(name, m, seed, settings["limit"])

            yield f"{name} {seed}", work


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/extract.md."""
    lines = []
    for name in dict.fromkeys(r["data"] for r in report["rows"]):
        group = [r for r in report["rows"] if r["data"] == name]
        asked = sorted(r["queries"] for r in group)
        errors = [r["error"] for r in group]
        lines.append(
            [
                name.replace("_", " "),
                group[0]["network"],
                f"{sum(r['status'] == 'exact' for r in group)} of {len(group)}",
                f"{asked[0]:,} to {asked[-1]:,}",
                "not recovered" if None in errors else f"{max(errors):.1e}",
                f"{max(r['probabilities'] for r in group):.0e}",
                duration(max(r["cpu_seconds"] for r in group)),
            ]
        )
    header = ["data", "network", "exact", "rows asked", "`rl.metrics.parameter_error`"]
    header += ["largest error of a probability", "most CPU time"]
    words = (
        "Measured: MLPClassifier of scikit-learn behind a StandardScaler, `predict_proba`, probabilities on 1000 fresh "
        "rows and the data set; the worst of the seeds. `python -m benchmarks run --only classifiers`."
    )
    return {"docs/extract.md": f"{words}\n\n{table(header, lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    return {"classifiers found": Count(sum(r["status"] == "exact" for r in report["rows"]), len(report["rows"]))}
