"""Zhong 2017: what each departure from the paper's Algorithm 1 buys, `auto` on such networks, the Hessian there.

Each choice is switched off on the same samples. ``descent``: whether Algorithm 2 then recovers, too (step 0.02, at most
4000 steps, error ≤ 0.01 and v exact: the paper's criterion).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import relumine as rl
from benchmarks.counting import Count
from benchmarks.measures.fair import EXACT
from benchmarks.results import Row
from benchmarks.text import seeds_of, table
from relumine.papers.zhong2017 import algorithms as zhong_boxes
from relumine.papers.zhong2017 import moments as zhong_moments
from relumine.papers.zhong2017.algorithms import initialise, learn
from relumine.papers.zhong2017.curvature import empirical_hessian, extremes, population_hessian
from relumine.papers.zhong2017.figure import KAPPA, RECOVERED, STEP, K, distance

NAME = "zhong"
FULL: Row = {
    "choices": {
        "debiased moments": [[10, 2000], [30, 10_000], [50, 10_000], [100, 10_000]],
        "span and fit in turn": [[40, 1500]],
        "α chosen": [[10, 4000], [10, 20_000], [20, 10_000]],
        "select": [[10, 180]],
    },
    "few": [10, 20, 30, 50, 70, 100],
    "activations": ["tanh", "erf", "sigmoid", "leaky_relu(0.1)", "relu"],
    "hessian": ["squared_relu", "linear", "quadratic"],
    "rows": 300_000,
    "seeds": 10,
    "first": 100,
}
QUICK: Row = FULL | {
    "choices": {"debiased moments": [[10, 2000]], "α chosen": [[10, 1000]], "select": [[10, 180]]},
    "few": [10],
    "activations": ["relu"],
    "hessian": ["squared_relu"],
    "rows": 20_000,
    "seeds": 2,
}
MINUTES = (5.0, 0.05)
TIMES = {"span and fit in turn": 3, "select": 3, "α chosen": 2}  # starts are cheap: so many times the seeds
SPAN = ("span and fit in turn",)
SIGMA = dict.fromkeys(FULL["choices"], "squared_relu") | {"α chosen": "relu"}

# What differs when a choice is not made: options of Algorithm 1, or a constant of its code
OPTIONS = {"debiased moments": ({}, {"moments": "plain"}), "select": ({"select": True}, {})}
WITHOUT: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "span and fit in turn": lambda: patch.object(zhong_moments, "_ROUNDS", 1),
    "α chosen": lambda: patch.object(zhong_boxes, "_TRIES", 1),
}


def sample(d: int, n: int, seed: int, activation: str) -> tuple[rl.Network, np.ndarray, np.ndarray]:
    """The paper's problem: k = 5, κ = 2, v = ±1."""
    rng = np.random.default_rng([seed, d, n])
    truth = rl.planted.network(d, K, rng, family="conditioned", activation=activation, condition=KAPPA)
    return truth, *rl.planted.sample(truth, n, rng=rng)


def start(choice: str, d: int, n: int, seed: int) -> Row:
    """Algorithm 1 with the choice and without it; Algorithm 2 after it where the moments are compared."""
    truth, X, y = sample(d, n, seed, SIGMA[choice])
    row: Row = {"what": "start", "choice": choice, "d": d, "n": n, "seed": seed}
    for name, options in zip(("with", "without"), OPTIONS.get(choice, ({}, {})), strict=True):
        with nullcontext() if name == "with" or choice not in WITHOUT else WITHOUT[choice]():
            found = initialise(X, y, K, truth.activation, np.random.default_rng(seed), **options)
        error, signs = distance(truth, found.W, found.v)
        share = np.linalg.norm(found.basis @ truth.W.T, axis=0) / np.linalg.norm(truth.W, axis=1)
        row[name] = {"error": error, "signs": signs, "share": float(share.min())}
        if choice == "debiased moments":
            end, _ = learn(X, y, found, truth.activation, step=STEP, iterations=4000, tol=1e-9)
            error, signs = distance(truth, end.W, end.v)
            row[name]["descent"] = error <= RECOVERED and signs
    return row


def recovered(what: str, truth: rl.Network, n: int, seed: int) -> Row:
    """`auto`, which is told neither that b = 0 nor that v = ±1."""
    X, y = rl.planted.sample(truth, n, rng=seed + 1)
    found = rl.recover(X, y, width=K, activation=truth.activation, rng=seed + 2, on_failure="return")
    error = rl.metrics.parameter_error(truth, found.network)
    biased = bool(np.any(truth.b))
    return {"what": what, "d": truth.d, "n": n, "seed": seed, "biased": biased, "exact": error <= EXACT, "error": error}


def hessian(activation: str, rows: int, d: int = 6, k: int = 3) -> Row:
    """Extreme eigenvalues at the truth, by quadrature and from samples."""
    truth = rl.planted.network(d, k, rng=0, family="conditioned", activation=activation, condition=KAPPA)
    X, y = rl.planted.sample(truth, rows, rng=1)
    ends = {"quadrature": extremes(population_hessian(truth)), "samples": extremes(empirical_hessian(truth, X, y))}
    return {"what": "hessian", "activation": activation, "d": d, "k": k, "n": rows} | ends


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    first, seeds = settings["first"], settings["seeds"]
    for choice, sizes in settings["choices"].items():
        for d, n in sizes:
            for seed in range(first, first + TIMES.get(choice, 1) * seeds):
                yield f"{choice} ({d}, {n}) seed {seed}", partial(start, choice, d, n, seed)
    for seed in range(first, first + seeds):
        for d in settings["few"]:
            truth = rl.planted.network(d, K, seed, family="conditioned", activation="squared_relu", condition=KAPPA)
            yield f"n = 3kd, d = {d} seed {seed}", partial(recovered, "few", truth, 3 * K * d, seed)
        for activation in settings["activations"]:
            for bias in (0.0, 1.0):
                truth = rl.planted.network(20, K, seed, activation=activation, bias=bias)
                work = partial(recovered, activation, truth, 10 * K * 21, seed)
                yield f"{activation} |b| ≤ {bias:g} seed {seed}", work
    for activation in settings["hessian"]:
        yield f"Hessian, {activation}", partial(hessian, activation, settings["rows"])


def count(rows: list[Row], key: str) -> Count:
    return Count(sum(row[key] for row in rows), len(rows))


def starts_of(report: Row) -> dict[tuple[str, int, int], dict[str, list[Row]]]:
    """Results by choice and size, with and without it."""
    found: dict[tuple[str, int, int], dict[str, list[Row]]] = {}
    for row in report["rows"]:
        if row["what"] == "start":
            both = found.setdefault((row["choice"], row["d"], row["n"]), {"with": [], "without": []})
            for name, results in both.items():
                results.append(row[name])
    return found


def auto_of(report: Row) -> dict[str, dict[bool, list[Row]]]:
    """Recoveries by what they are about, without and with biases."""
    found: dict[str, dict[bool, list[Row]]] = {}
    for row in report["rows"]:
        if "exact" in row:
            found.setdefault(row["what"], {False: [], True: []})[row["biased"]].append(row)
    return found


def elsewhere(report: Row) -> dict[str, str]:
    """Tables for docs/zhong.md."""
    return {"docs/zhong.md": "\n\n".join([*_choices(report), *_auto(report), *_hessian(report)])}


def _choices(report: Row) -> Iterator[str]:
    rows = []
    for (choice, d, n), both in starts_of(report).items():
        row = [choice, SIGMA[choice], f"({d}, {n})", _both(_of(count(results, "signs")) for results in both.values())]
        row.append(_both(f"{np.median([r['error'] for r in results]):.2g}" for results in both.values()))
        descents = [_of(count(results, "descent")) for results in both.values() if "descent" in results[0]]
        rows.append([*row, _both(descents)])
    yield (
        f"**What each choice buys**: with it / without it, on the same samples (k = {K}, κ = {KAPPA:g}; *descent "
        f"recovers*: Algorithm 2 with η = {STEP:g} then ends with an error ≤ {RECOVERED:g} and v exact). "
        f"{seeds_of(report)}"
    )
    yield table(["choice", "σ", "(d, n)", "signs right", "median error of the start", "descent recovers"], rows)
    yield from (_shares(d, n, both) for (choice, d, n), both in starts_of(report).items() if choice in SPAN)


def _auto(report: Row) -> Iterator[str]:
    found = auto_of(report)
    few, sizes = found.pop("few", {False: []})[False], report["settings"]["few"]
    yield (
        f'**`method="auto"`** at n = 3kd, d = {", ".join(map(str, sizes))}: exact to 1e-8 in '
        f"{_of(count(few, 'exact'))} runs. Other activations, k = {K}, d = 20, n = {10 * K * 21}, ten rows for each of "
        "the k(d+1) parameters:"
    )
    rows = [[name, *(_of(count(results, "exact")) for results in both.values())] for name, both in found.items()]
    yield table(["σ", "exact to 1e-8, b = 0", "b uniform in [−1, 1]"], rows)


def _hessian(report: Row) -> Iterator[str]:
    rows = [row for row in report["rows"] if row["what"] == "hessian"]
    if rows:
        words = [f"{r['activation']} {_ends(r['quadrature'])} ({_ends(r['samples'])})" for r in rows]
        yield (
            f"**Hessian at the truth**, d = {rows[0]['d']}, k = {rows[0]['k']}, κ = {KAPPA:g}: smallest and largest "
            f"eigenvalue by quadrature (and of {rows[0]['n']:,} samples): {'; '.join(words)}."
        )


def _shares(d: int, n: int, both: dict[str, list[Row]]) -> str:
    shares = {name: np.array([r["share"] for r in results]) for name, results in both.items()}
    lost = {name: _of(Count(int(np.sum(values < 0.99)), values.size)) for name, values in shares.items()}
    return (
        f"At ({d}, {n}) the span held less than 0.99 of some unit (its share |Vw|/|w|) in {lost['with']} runs with "
        f"span and fit found in turn (least share {shares['with'].min():.3f}), and in {lost['without']} with the span "
        f"of the first P̂₂ alone (least {shares['without'].min():.2f}, median {np.median(shares['without']):.2f})."
    )


def _both(words: Iterable[str]) -> str:
    return " / ".join(words)


def _of(found: Count) -> str:
    return f"{found.hits} of {found.runs}"


def _ends(pair: list[float]) -> str:
    low, high = (0.0 if abs(value) < 1e-12 else value for value in pair)
    return f"{low:.3g} and {high:.3g}"


def comparable(report: Row) -> dict[str, Any]:
    found: dict[str, Any] = {
        f"signs of the start, {choice} ({d}, {n})": count(both["with"], "signs")
        for (choice, d, n), both in starts_of(report).items()
    }
    for what, both in auto_of(report).items():
        found |= {f"auto, {what}, {'b' if biased else 'b = 0'}": count(r, "exact") for biased, r in both.items() if r}
    return found
