"""The tensor method from samples: parameters, Algorithm 5, more units than inputs, the subspace power method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.counting import Count
from benchmarks.measures.tensors import PAGE, SAMPLES, power, seeds, spread
from benchmarks.results import Row
from benchmarks.text import seeds_of, table
from relumine import metrics, planted
from relumine.data.moments import estimate_tensors
from relumine.papers.awasthi2021 import algorithm_5, recover_awasthi
from relumine.tensors import SymmetricTensor, span_of_powers, subspace_power

NAME = "tensor_method"
FULL: Row = {
    "parameters": [10, 5, [10_000, 30_000, 100_000, 300_000]],
    "large biases": [10, 6, 100_000],
    "overcomplete": [[4, 6, 1_000_000], [3, 5, 1_000_000], [3, 5, 100_000]],
    "powers": [10, 20, 20_000],
    "seeds": 20,
    "first": 0,
}
QUICK: Row = {
    "parameters": [6, 3, [10_000, 30_000]],
    "large biases": [6, 4, 20_000],
    "overcomplete": [[2, 3, 100_000]],
    "powers": [6, 10, 10_000],
    "seeds": 2,
    "first": 0,
}
MINUTES = (3.0, 0.04)
CLOSE, ROUGH = 0.99, 0.9  # cosines: within 8° and 26°


def cosines(W: np.ndarray, found: np.ndarray) -> list[float]:
    """|cos| of each direction with the one matched to it, none used twice; 0 for a direction left over."""
    C = np.abs(W @ found.T) / np.outer(np.linalg.norm(W, axis=1), np.linalg.norm(found, axis=1))
    rows, columns = linear_sum_assignment(-C)
    best = np.zeros(len(W))
    best[rows] = C[rows, columns]
    return [float(c) for c in best]


def from_samples(order: int, d: int, m: int, n: int, seed: int) -> Row:
    """`recover_awasthi`: units found, their directions, and the parameter error where none is missing."""
    truth = planted.network(d, m, rng=seed)
    net = recover_awasthi(*planted.sample(truth, n, rng=SAMPLES + seed), m, order=order, rng=0).network
    error = metrics.parameter_error(truth, net)
    return {"units": net.m, "error": error, "cosine": min(cosines(truth.W, net.W))}


def large_biases(d: int, m: int, n: int, seed: int) -> Row:
    """Algorithm 5, two of whose units are (almost) always on or off: L² error over the deviation of f, and width."""
    truth = planted.network(d, m, rng=seed, family="large_bias")
    X, y = planted.sample(truth, n, rng=SAMPLES + seed)
    found = algorithm_5(X, y, order=1, width=m, rng=0)
    return {"units": found.m, "error": metrics.gaussian_distance(truth, found) / float(np.std(y))}


def directions(d: int, m: int, n: int, seed: int) -> Row:
    """The subspace power method: how many directions exact T₃, T₄ give, and the cosines that regressed ones give."""
    truth = planted.network(d, m, rng=seed)

    def found(T: list[SymmetricTensor]) -> list[float]:
        return cosines(truth.W, subspace_power(span_of_powers(T, 2, m), d, 2, rng=0)[0][:m])

    given = found([SymmetricTensor.from_dense(truth.hermite(k)) for k in (3, 4)])
    estimate = estimate_tensors(*planted.sample(truth, n, rng=SAMPLES + seed), 4, "regressed")
    return {"given": sum(c > 1.0 - 1e-6 for c in given), "cosines": found(estimate.tensors[3:])}


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    d, m, sizes = settings["parameters"]
    tasks: list[tuple[str, list[int], Callable[..., Row]]] = [
        *(("parameters", [d, m, n], partial(from_samples, 1)) for n in sizes),
        ("large biases", settings["large biases"], large_biases),
        *(("overcomplete", size, partial(from_samples, 2)) for size in settings["overcomplete"]),
        ("powers", settings["powers"], directions),
    ]
    for part, size, work in tasks:
        for seed in range(settings["first"], settings["first"] + settings["seeds"]):

            def one(part: str = part, size: list[int] = size, work: Callable[..., Row] = work, seed: int = seed) -> Row:
                return {"part": part, **dict(zip("dmn", size)), "seed": seed, **work(*size, seed)}

            yield f"{part} {size} seed {seed}", one


# -- in words -----------------------------------------------------------------------------------------------


def gather(report: Row, part: str) -> dict[tuple[int, ...], list[Row]]:
    """Rows of one part by their size (d, m, n)."""
    found: dict[tuple[int, ...], list[Row]] = defaultdict(list)
    for row in report["rows"]:
        if row["part"] == part:
            found[row["d"], row["m"], row["n"]].append(row)
    return found


def errors(rows: list[Row]) -> np.ndarray:
    """Infinite where a unit is missing."""
    return np.array([np.inf if r["error"] is None else r["error"] for r in rows])


def whole(rows: list[Row]) -> np.ndarray:
    """Errors of the runs in which no unit is missing."""
    E = errors(rows)
    return np.asarray(E[np.isfinite(E)])


def exponent(sizes: list[tuple[int, ...]], E: np.ndarray) -> float:
    return float(np.polyfit(np.log([n for *_, n in sizes]), np.log(E), 1)[0])


def parameters(report: Row) -> list[str]:
    found = gather(report, "parameters")
    E = np.array([errors(rows) for rows in found.values()])  # (sizes, seeds)
    (d, m, _), middle = next(iter(found)), np.median(E, axis=1)
    text = f"**Parameter error from samples**, $(d, m) = ({d}, {m})$, $|b| \\le 1$, {seeds(report)}. A missing unit "
    text += "counts as an infinite error in the median."
    single = [exponent(list(found), e) for e in E.T if np.isfinite(e).all()]
    if single and np.isfinite(middle).all():
        text += f" The median falls like $n^{{{exponent(list(found), middle):.2f}}}$; single seeds scatter, "
        text += (
            f"with exponents from ${max(single):.2f}$ to ${min(single):.2f}$ where all units were found at every size."
        )
    lines = [
        [f"${power(n)}$", f"{len(whole(rows))}/{len(rows)}", f"{half:.2g}", spread(whole(rows))[1]]
        for half, ((*_, n), rows) in zip(middle, found.items())
    ]
    return [text, table(["$n$", "all units found", "median error", "range where all were found"], lines)]


def low_error(report: Row) -> list[str]:
    (((d, m, n), rows),) = gather(report, "large biases").items()
    most, width = errors(rows).max(), max(r["units"] for r in rows)
    return [
        f"**Algorithm 5** on {m} units in {d} dimensions, two of them with $b = \\pm4$, $n = {power(n)}$, "
        f"{seeds(report)}: $L^2$ error over the standard deviation of $f$ at most {most:.2g} "
        f"(median {np.median(errors(rows)):.2g}), with at most {width} units, no refinement."
    ]


def overcomplete(report: Row) -> list[str]:
    lines = [
        [
            f"({d}, {m})",
            f"${power(n)}$",
            f"{len(whole(rows))}/{len(rows)}",
            f"{sum(r['cosine'] > CLOSE for r in rows)}/{len(rows)}",
            *spread(whole(rows)),
        ]
        for (d, m, n), rows in gather(report, "overcomplete").items()
    ]
    header = ["$(d, m)$", "$n$", "all units found", f"all directions to $\\lvert\\cos\\rvert > {CLOSE}$"]
    return [
        "**Overcomplete from samples** is hard, as the paper's exponents say: order 2 needs $T_6$. "
        f'`method="auto"` does not need these tensors. Errors of the runs that found all units; {seeds(report)}.',
        table([*header, "median error", "range"], lines),
    ]


def power_method(report: Row) -> list[str]:
    (((d, m, n), rows),) = gather(report, "powers").items()
    C = np.array([r["cosines"] for r in rows])
    given, share = sum(r["given"] for r in rows), (C > ROUGH).mean(axis=1)
    return [
        "**The subspace power method** (`tensors.spm`) finds directions from orders 3 and 4 alone. At "
        f"$(d, m) = ({d}, {m})$, {seeds(report)}, it found {given} of {C.size} directions from "
        f"exact tensors. From regressed $T_3, T_4$ at $n = {power(n)}$ it found {(C > ROUGH).sum()} to "
        f"$|\\cos| > {ROUGH}$ (between {min(share):.0%} and {max(share):.0%} of a network's) and "
        f"{(C > CLOSE).sum()} to $|\\cos| > {CLOSE}$."
    ]


def elsewhere(report: Row) -> dict[str, str]:
    """Nothing until all of it has been measured."""
    if not report["complete"]:
        return {}
    text = [words for speak in (parameters, low_error, overcomplete, power_method) for words in speak(report)]
    return {PAGE: "\n\n".join([*text, seeds_of(report)])}


def comparable(report: Row) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in ("parameters", "overcomplete"):
        for size, rows in gather(report, part).items():
            found[f"all units, {part} {size}"] = Count(len(whole(rows)), len(rows))
    for rows in gather(report, "large biases").values():
        found["Algorithm 5 within 5 %"] = Count(int((errors(rows) <= 0.05).sum()), len(rows))
    for rows in gather(report, "powers").values():
        close = [c > ROUGH for r in rows for c in r["cosines"]]
        found["directions by the power method"] = Count(sum(close), len(close))
    return found
