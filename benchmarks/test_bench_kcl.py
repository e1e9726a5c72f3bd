"""KCL against TensorLy's parafac with ten restarts, and the memory of the subspace stage."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from relumine.tensors.kcl import kcl
from relumine.tensors.symmetric import SymmetricTensor, rank_one_sum

K, TENSORS, RESTARTS = 20, 5, 10

MEMORY = """
import json, resource
import numpy as np
from relumine import planted
from relumine.steps.span import affine_residual, weight_span

n, d, k = 100_000, 1000, 10
rng = np.random.default_rng(0)
truth = planted.network(d, k, rng, family="conditioned", activation="squared_relu")
X = np.empty((n, d))
for start in range(0, n, 5000):
    X[start : start + 5000] = rng.standard_normal((5000, d))
y = truth(X)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
V, _ = weight_span(X, affine_residual(X, y)[0], k, rng=0)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
inside = np.linalg.norm(truth.W @ V.T, axis=1) / np.linalg.norm(truth.W, axis=1)
print(json.dumps({"before": before, "after": after, "data": X.nbytes / 1024, "inside": inside.min()}))
"""


def noisy_tensor(noise: float, seed: int) -> tuple[np.ndarray, SymmetricTensor]:
    """Unit factors of either weight, with white symmetric noise of the given relative size."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(K, K))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    clean = rank_one_sum(rng.uniform(0.5, 2.0, K) * rng.choice([-1.0, 1.0], K), U, 3)
    dirt = SymmetricTensor(rng.normal(size=clean.entries.size), K, 3)
    return U, clean + dirt * (noise * clean.norm / dirt.norm)


def error(U: np.ndarray, found: np.ndarray) -> float:
    """Root mean square distance of matched unit factors, up to sign."""
    cosines = np.abs(U @ found.T)
    rows, columns = linear_sum_assignment(-cosines)
    return float(np.sqrt(np.mean(2.0 - 2.0 * np.minimum(cosines[rows, columns], 1.0))))


def parafac_best(T: np.ndarray) -> np.ndarray:
    from tensorly.decomposition import parafac

    best, least = None, np.inf
    for seed in range(RESTARTS):
        found, errors = parafac(T, K, init="random", random_state=seed, normalize_factors=True, return_errors=True)
        if errors[-1] < least:
            best, least = found.factors[0].T, errors[-1]
    return best


@pytest.mark.parametrize("noise", [1e-3, 1e-4])
def test_kcl_against_parafac(benchmark, noise: float) -> None:
    problems = [noisy_tensor(noise, seed) for seed in range(TENSORS)]
    began = time.perf_counter()
    theirs = [error(U, parafac_best(T.dense())) for U, T in problems]
    their_time = time.perf_counter() - began
    ours = benchmark.pedantic(
        lambda: [error(U, kcl(T, rng=0).factors) for U, T in problems], rounds=1, iterations=1, warmup_rounds=1
    )
    ratio = benchmark.stats.stats.min / their_time
    mean, their_mean = (float(np.exp(np.mean(np.log(e)))) for e in (ours, theirs))
    benchmark.extra_info.update(error=mean, parafac_error=their_mean, time_ratio=ratio)
    print(
        f"\nnoise {noise:g}: KCL {mean:.2e}, parafac {their_mean:.2e}; time {ratio:.2f} × parafac ({their_time:.1f} s)"
    )
    assert mean <= their_mean
    assert ratio < 1.0


def test_subspace_memory(benchmark) -> None:
    def run() -> dict[str, float]:
        done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    result = benchmark.pedantic(run, rounds=1, iterations=1)
    ratio = result["after"] / result["data"]
    benchmark.extra_info.update(ratio=ratio, inside=result["inside"])
    print(f"\nsubspace at d=1000, k=10, n=1e5: peak {ratio:.2f} × data, weights {result['inside']:.2f} inside")
    assert ratio < 1.5
