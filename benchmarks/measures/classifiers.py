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
from benchmarks.invisible import identifiable_error, invisible
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "classifiers"
# [data set, units of each hidden layer, seeds]
FULL: Row = {
    "data": [
        ["breast_cancer", [8], 3],
        ["wine", [8], 3],
        ["digits", [16], 2],
        ["iris", [8, 6], 3],
        ["wine", [10, 8], 3],
        ["breast_cancer", [10, 6], 3],
        ["breast_cancer", [10, 8, 6], 3],
        ["digits", [32, 32], 2],
    ],
    "first": 0,
    "limit": 300.0,
}
QUICK: Row = {"data": [["wine", [8], 1]], "first": 0, "limit": 60.0}
MINUTES = (1.0, 0.01)
NEAR = 1e-6  # error of a parameter up to which it is found


def looked_into(name: str, widths: list[int], seed: int, limit: float) -> Row:
    """One classifier: its logits (less their mean for several classes) are the truth."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    mlp = MLPClassifier(hidden_layer_sizes=widths, max_iter=300, tol=1e-3, random_state=seed)
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
        "network": "-".join(map(str, [X.shape[1], *widths, mlp.n_outputs_])),
        "queries": found.queries,
        "status": found.status.value,
        "error": _error(_inside(pipe), found.network, mean, scale),
        "probabilities": float(np.abs(predicted - shown).max()),
        "cpu_seconds": seconds,
    }


def _inside(pipe: Any) -> list[tuple[Any, Any]]:
    """The maps of scaler and network together, logits less their mean."""
    scaler, mlp = pipe[0], pipe[-1]
    maps = [(W.T, b) for W, b in zip(mlp.coefs_, mlp.intercepts_)]
    W = maps[0][0] / scaler.scale_
    a, c = maps[-1]
    last = (a - a.mean(axis=0), c - c.mean()) if len(a) > 1 else (a[0], c[0])
    return [(W, maps[0][1] - W @ scaler.mean_), *maps[1:-1], last]


def _error(maps: list[tuple[Any, Any]], found: Any, mean: Any, scale: Any) -> float | None:
    """Of any parameter that some input shows, in standard inputs; a constant input has no weight that could be seen."""
    deep = found if hasattr(found, "layers") else rl.DeepNetwork((), found)
    (W, b), *others = maps
    (V, c), *behind = deep.maps
    W = W * (np.abs(V).max(axis=0, initial=0.0) > 0.0)
    truth = rl.DeepNetwork.of([(W * scale, b + W @ mean), *others])
    there = rl.DeepNetwork.of([(V * scale, c + V @ mean), *behind], v=deep.head.v)
    error = rl.metrics.parameter_error(truth, there)
    if error > NEAR:
        error = identifiable_error(truth, there, invisible(truth, np.random.default_rng(0)))
    return float(error) if np.isfinite(error) else None


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    for name, widths, seeds in settings["data"]:
        for seed in range(settings["first"], settings["first"] + seeds):

            def work(name: str = name, widths: list[int] = widths, seed: int = seed) -> Row:
                return {"data": name} | looked_into(name, widths, seed, settings["limit"])

            yield f"{name} {'-'.join(map(str, widths))} {seed}", work


def elsewhere(report: Row) -> dict[str, str]:
    """A table for docs/extract.md."""
    lines = []
    for name, network in dict.fromkeys((r["data"], r["network"]) for r in report["rows"]):
        group = [r for r in report["rows"] if (r["data"], r["network"]) == (name, network)]
        asked = sorted(r["queries"] for r in group)
        errors = [r["error"] for r in group]
        lines.append(
            [
                name.replace("_", " "),
                network,
                f"{sum(r['status'] == 'exact' for r in group)} of {len(group)}",
                f"{asked[0]:,} to {asked[-1]:,}",
                "not recovered" if None in errors else f"{max(errors):.1e}",
                f"{max(r['probabilities'] for r in group):.0e}",
                duration(max(r["cpu_seconds"] for r in group)),
            ]
        )
    header = ["data", "network", "called exact", "rows asked", "largest error of a parameter"]
    header += ["largest error of a probability", "most CPU time"]
    words = (
        "Measured: MLPClassifier of scikit-learn behind a StandardScaler, `predict_proba`, probabilities on 1000 fresh "
        "rows and the data set; the worst of the seeds. Parameters that no input shows do not count. "
        "`python -m benchmarks run --only classifiers`."
    )
    return {"docs/extract.md": f"{words}\n\n{table(header, lines)}"}


def comparable(report: Row) -> dict[str, Any]:
    return {"classifiers found": Count(sum(r["status"] == "exact" for r in report["rows"]), len(report["rows"]))}
