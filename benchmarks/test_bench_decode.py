"""Decoding: a centred gradient step against a copy of the data, and a large problem in seconds."""

import time

import numpy as np
import pytest

from relumine.fit.additive import Additive
from relumine.methods.oymak import decode
from relumine.results import Status

D, N = 2000, 4000


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    w = rng.uniform(-1.0, 1.0, D)
    X = 5.0 * rng.standard_normal((N, D))
    return X, np.maximum(X + w, 0.0).sum(axis=1), w


def best_of(call, repeats=15):
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


@pytest.mark.parametrize("centred", [True, False])
def test_gradient_step_against_a_copy(planted, benchmark, centred):
    """One pass over X: at most 5 times the time of copying it, measured in the same run."""
    X, y, _ = planted
    problem, w = Additive(X, y, np.ones(D)), np.zeros(D)
    benchmark.pedantic(lambda: problem.gradient(w, centred), rounds=15, warmup_rounds=2)
    ratio = best_of(lambda: problem.gradient(w, centred)) / best_of(X.copy)
    benchmark.extra_info["ratio to a copy"] = ratio
    assert ratio <= 5.0


@pytest.mark.parametrize("method", ["gauss-newton", "centered"])
def test_two_thousand_coordinates(planted, benchmark, method):
    X, y, w = planted
    found = benchmark.pedantic(lambda: decode(X, y, 1.0, method), rounds=1)
    assert found.status is Status.EXACT
    benchmark.extra_info["iterations"] = found.iterations
    benchmark.extra_info["relative error"] = float(((found.w - w) ** 2).sum() / (w @ w))
