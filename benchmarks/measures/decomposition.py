"""Decompositions against TensorLy's parafac (ten restarts) and pyRiemann's uwedge, on the same noisy tensors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.clock import timed
from benchmarks.compare import Speed
from benchmarks.methods.best import missing
from benchmarks.results import Row
from benchmarks.text import duration, seeds_of, table
from relumine.tensors.jointdiag import joint_diagonalise
from relumine.tensors.kcl import kcl
from relumine.tensors.symmetric import SymmetricTensor, rank_one_sum

NAME = "decomposition"
FULL: Row = {"k": 20, "noises": [1e-3, 1e-4], "tensors": 5, "restarts": 10, "matrices": 100, "first": 0}
QUICK: Row = {"k": 10, "noises": [1e-3], "tensors": 2, "restarts": 5, "matrices": 50, "first": 0}
MINUTES = (2.0, 0.2)


def noisy_tensor(k: int, noise: float, seed: int) -> tuple[np.ndarray, SymmetricTensor]:
    """Unit factors of either weight, with white symmetric noise of the given relative size."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(k, k))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    clean = rank_one_sum(rng.uniform(0.5, 2.0, k) * rng.choice([-1.0, 1.0], k), U, 3)
    dirt = SymmetricTensor(rng.normal(size=clean.entries.size), k, 3)
    return U, clean + dirt * (noise * clean.norm / dirt.norm)


def noisy_matrices(k: int, number: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Σ_i d_li u_i u_iᵀ with indefinite diagonals; the noise is relative to each matrix."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(k, k))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    M = np.einsum("li,ij,ik->ljk", rng.normal(size=(number, k)), U, U)
    dirt = rng.normal(size=M.shape)
    dirt += dirt.transpose(0, 2, 1)
    return U, M + noise * dirt * np.linalg.norm(M) / np.linalg.norm(dirt)


def error(U: np.ndarray, found: np.ndarray) -> float:
    """Root mean square distance of matched unit factors, up to sign."""
    cosines = np.abs(U @ (found / np.linalg.norm(found, axis=1, keepdims=True)).T)
    rows, columns = linear_sum_assignment(-cosines)
    return float(np.sqrt(np.mean(2.0 - 2.0 * np.minimum(cosines[rows, columns], 1.0))))


def parafac(T: np.ndarray, k: int, restarts: int) -> np.ndarray:
    from tensorly.decomposition import parafac as tensorly_parafac

    best, least = np.eye(k), np.inf
    for seed in range(restarts):
        found, errors = tensorly_parafac(
            T, k, init="random", random_state=seed, normalize_factors=True, return_errors=True
        )
        if errors[-1] < least:
            best, least = found.factors[0].T, errors[-1]
    return best


def uwedge(M: np.ndarray) -> np.ndarray:
    from pyriemann.geometry.ajd import uwedge as pyriemann_uwedge

    return np.linalg.inv(pyriemann_uwedge(M, eps=1e-12, n_iter_max=500)[0]).T


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    k = settings["k"]
    for noise in settings["noises"]:
        for seed in range(settings["first"], settings["first"] + settings["tensors"]):

            def tensor(noise: float = noise, seed: int = seed) -> Row:
                U, T = noisy_tensor(k, noise, seed)
                methods: dict[str, Callable[[], np.ndarray]] = {"relumine kcl": lambda: kcl(T, rng=0).factors}
                if missing("tensorly", "TensorLy") is None:
                    name = f"TensorLy parafac, {settings['restarts']} restarts"
                    methods[name] = lambda: parafac(T.dense(), k, settings["restarts"])
                return _row(f"tensor {k}³, noise {noise:g}", U, methods)

            def matrices(noise: float = noise, seed: int = seed) -> Row:
                U, M = noisy_matrices(k, settings["matrices"], noise, seed)
                methods: dict[str, Callable[[], np.ndarray]] = {
                    "relumine joint_diagonalise": lambda: joint_diagonalise(M, rng=0).factors
                }
                if missing("pyriemann", "pyRiemann") is None:
                    methods["pyRiemann uwedge"] = lambda: uwedge(M)
                return _row(f"{settings['matrices']} matrices {k}², noise {noise:g}", U, methods)

            yield f"tensor {noise:g} seed {seed}", tensor
            yield f"matrices {noise:g} seed {seed}", matrices


def _row(problem: str, U: np.ndarray, methods: dict[str, Callable[[], np.ndarray]]) -> Row:
    results = {}
    for name, method in methods.items():
        if name not in _warm:
            _warm.add(name)
            method()
        found, seconds = timed(method)
        results[name] = {"error": error(U, found), "seconds": seconds}
    return {"problem": problem, "methods": results}


_warm: set[str] = set()


def gather(report: Row) -> dict[str, dict[str, tuple[float, float]]]:
    """Geometric mean of the error and median time, by problem and method."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in report["rows"]:
        for name, result in row["methods"].items():
            found[row["problem"]][name].append(result)
    return {
        problem: {
            name: (
                float(np.exp(np.mean(np.log([r["error"] for r in results])))),
                float(np.median([r["seconds"] for r in results])),
            )
            for name, results in methods.items()
        }
        for problem, methods in sorted(found.items())
    }


def section(report: Row) -> str:
    rows = [
        [problem, name, f"{mean:.1e}", duration(seconds)]
        for problem, methods in gather(report).items()
        for name, (mean, seconds) in methods.items()
    ]
    return "\n\n".join(
        [
            "## Decompositions",
            f"Root mean square distance of the unit factors (geometric mean of {report['settings']['tensors']} seeded "
            f"problems) and median time. {seeds_of(report)}",
            table(["problem", "method", "error", "time"], rows),
        ]
    )


def comparable(report: Row) -> dict[str, Any]:
    found = {}
    for problem, methods in gather(report).items():
        ours, *peers = methods
        for peer in peers:
            found[f"{problem}: speed over {peer}"] = Speed(methods[peer][1] / methods[ours][1], 1.5)
            found[f"{problem}: precision over {peer}"] = Speed(methods[peer][0] / methods[ours][0], 1.3)
    return found
