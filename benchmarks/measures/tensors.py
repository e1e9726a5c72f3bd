"""Hermite tensors: the units that exact ones give back, and how well samples estimate T₄."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from math import floor, log10
from typing import Any

import numpy as np

from benchmarks.clock import timed
from benchmarks.compare import Speed
from benchmarks.counting import Count
from benchmarks.measures.fair import EXACT
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table
from relumine import metrics, planted
from relumine.data.moments import Estimator, estimate_tensors
from relumine.data.views import rows_of
from relumine.network import Network
from relumine.papers.awasthi2021 import algorithm_1
from relumine.papers.awasthi2021.subspace import estimate_in_subspace

NAME = "tensors"
FULL: Row = {
    "roots": [[6, 6, 1], [6, 15, 2], [8, 30, 2], [8, 35, 2], [5, 25, 3]],
    "parallel": [[6, 6, 1, 5.0], [6, 12, 2, 5.0], [6, 6, 1, 1.0]],
    "estimates": [10, 5, 1_000_000, 10_000, 3_000],
    "seeds": 20,
    "first": 0,
}
QUICK: Row = FULL | {
    "roots": [[6, 6, 1], [6, 15, 2]],
    "parallel": [[6, 6, 1, 5.0]],
    "estimates": [6, 3, 100_000, 3_000, 1_000],
    "seeds": 2,
}
MINUTES = (1.5, 0.02)
PAGE = "docs/awasthi.md"
ROOTS = (0.0, 1.0, -1.0, np.sqrt(3.0))  # where c_3, c_4 and c_5 vanish
SAMPLES = 1000  # the samples of seed s are drawn with SAMPLES + s


def with_roots(d: int, m: int, seed: int) -> Network:
    """A planted network, four of whose units one tensor or another does not see."""
    net = planted.network(d, m, rng=seed)
    return net.replace(b=np.concatenate([ROOTS, net.b[len(ROOTS) :]]))


def exact(truth: Network, order: int, seed: int) -> Row:
    """Algorithm 1; order 1 finds the signs itself, beyond it the affine part of T₀ and T₁ makes up for them."""
    T = [truth.hermite(k) for k in range(2 * order + 3)]
    units, seconds = timed(lambda: algorithm_1(T, order, truth.m, rng=seed))
    found = units.network(T if order > 1 else None)
    return {"seed": seed, "error": metrics.parameter_error(truth, found), "seconds": seconds}


def estimates(d: int, m: int, many: int, some: int, few: int, seed: int) -> Row:
    """Relative Frobenius error of T₄, by estimator and number of rows of one sample."""
    truth = planted.network(d, m, rng=seed)
    X, y = planted.sample(truth, many, rng=SAMPLES + seed)
    target = truth.hermite(4)

    def error(estimator: Estimator, n: int, width: int | None = None) -> float:
        if width is None:
            T = estimate_tensors(X[:n], y[:n], 4, estimator).tensors[4]
        else:
            inside = estimate_in_subspace(rows_of(X[:n], y[:n]), 4, estimator, width)
            T = inside.tensors[4].transform(inside.basis.T)
        return float(np.linalg.norm(T.dense() - target) / np.linalg.norm(target))

    errors = [["plain", many, error("plain", many)], ["plain", some, error("plain", some)]]
    errors += [["debiased", some, error("debiased", some)], ["regressed", some, error("regressed", some)]]
    errors += [["regressed, in the span of the weights", n, error("regressed", n, m)] for n in (few, some)]
    return {"seed": seed, "errors": errors}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    seeds = range(settings["first"], settings["first"] + settings["seeds"])
    for d, m, order in settings["roots"]:
        for seed in seeds:

            def roots(d: int = d, m: int = m, order: int = order, seed: int = seed) -> Row:
                return {"case": f"({d}, {m}, {order})", **exact(with_roots(d, m, seed), order, seed)}

            yield f"roots {d}, {m}, {order} seed {seed}", roots
    for d, m, order, angle in settings["parallel"]:
        for seed in seeds:

            def parallel(d: int = d, m: int = m, order: int = order, angle: float = angle, seed: int = seed) -> Row:
                truth = planted.network(d, m, rng=seed, family="nearly_parallel", angle=angle)
                return {"case": f"({d}, {m}, {order}), two units {angle:g}° apart", **exact(truth, order, seed)}

            yield f"parallel {d}, {m}, {order}, {angle:g} seed {seed}", parallel
    for seed in seeds:
        yield f"T4 seed {seed}", partial(estimates, *settings["estimates"], seed)


# -- in words -----------------------------------------------------------------------------------------------


def power(n: int) -> str:
    """3·10⁵ in TeX."""
    exponent = floor(log10(n))
    lead = n / 10**exponent
    return f"10^{exponent}" if lead == 1 else f"{lead:g}\\cdot10^{exponent}"


def spread(values: np.ndarray) -> list[str]:
    """Median and range, for a table."""
    if not values.size:
        return ["", ""]
    middle, least, most = (
        f"{v:.2g}" if v < 100.0 else f"{v:.0f}" for v in (np.median(values), values.min(), values.max())
    )
    return [middle, f"{least}–{most}"]


def seeds(report: Row) -> str:
    first = report["settings"]["first"]
    return f"seeds {first}–{first + report['settings']['seeds'] - 1}"


def cases(report: Row) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in report["rows"]:
        if "case" in row:
            found[row["case"]].append(row)
    return found


def columns(report: Row) -> dict[tuple[str, int], np.ndarray]:
    """Errors of T₄ by estimator and number of rows, one for each seed."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in report["rows"]:
        for name, n, error in row.get("errors", []):
            found[name, n].append(error)
    return {key: np.array(errors) for key, errors in found.items()}


def elsewhere(report: Row) -> dict[str, str]:
    """Nothing until all of it has been measured."""
    if not report["complete"]:
        return {}
    given = [
        [case, f"{max(r['error'] for r in rows):.1e}", duration(float(np.median([r["seconds"] for r in rows])))]
        for case, rows in cases(report).items()
    ]
    d, m, many, *_ = report["settings"]["estimates"]
    shown = columns(report)
    plain = shown["plain", many]
    estimated = [
        [name, f"${power(n)}$", *spread(errors), "" if n == many else f"{sum(errors < plain)}/{len(plain)}"]
        for (name, n), errors in shown.items()
    ]
    parts = [
        f"**Exact tensors**, Algorithm 1, {seeds(report)}. Four of the biases are $0, 1, -1, \\sqrt3$, where "
        "coefficients vanish, except in the rows with two nearly parallel units.",
        table(["$(d, m, \\ell)$", "largest error", "median time"], given),
        f"**Relative error of $T_4$** (Frobenius) at $(d, m) = ({d}, {m})$, {seeds(report)}; the rows are the "
        f"first $n$ of one sample of ${power(many)}$. *Better*: than the plain estimator of all of them, by seeds.",
        table(["estimator", "$n$", "median", "range", "better"], estimated),
        seeds_of(report),
    ]
    return {PAGE: "\n\n".join(parts)}


def comparable(report: Row) -> dict[str, Any]:
    found: dict[str, Any] = {
        f"exact, {case}": Count(sum(r["error"] is not None and r["error"] <= EXACT for r in rows), len(rows))
        for case, rows in cases(report).items()
    }
    if shown := columns(report):
        many, some = report["settings"]["estimates"][2:4]
        best = shown["regressed, in the span of the weights", some]
        found["precision of T4, in the span over plain"] = Speed(float(np.median(shown["plain", many] / best)), 1.3)
    return found
