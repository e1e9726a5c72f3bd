"""KCL: factors of a k×k×k tensor by joint diagonalisation of its projections; exact first, then with noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from relumine import InvalidInput
from relumine.tensors.kcl import kcl
from relumine.tensors.symmetric import SymmetricTensor, rank_one_sum


@given(k=st.integers(1, 8), seed=st.integers(0, 10**5))
@settings(max_examples=30, deadline=None)
def test_kcl_exact(k, seed):
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(k, k))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    if np.linalg.cond(U) > 30.0:
        return
    T = rank_one_sum(rng.uniform(0.5, 2.0, k) * rng.choice([-1.0, 1.0], k), U, 3)
    cosines = np.abs(kcl(T, rng=0).factors @ U.T)
    rows, columns = linear_sum_assignment(-cosines)
    assert cosines[rows, columns].min() > 1 - 1e-10


@pytest.mark.parametrize("noise", [1e-3, 1e-4])
def test_kcl_stages_improve_on_a_noisy_tensor(noise):
    k, rng = 10, np.random.default_rng(0)
    errors = {"projections": [], "plugin": [], "refined": []}
    for _ in range(5):
        U = rng.normal(size=(k, k))
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        clean = rank_one_sum(rng.uniform(0.5, 2.0, k), U, 3)
        dirt = SymmetricTensor(rng.normal(size=clean.entries.size), k, 3)
        T = clean + dirt * (noise * clean.norm / dirt.norm)
        for name, options in (
            ("projections", {"plugin": False, "refine": False}),
            ("plugin", {"refine": False}),
            ("refined", {}),
        ):
            cosines = np.abs(kcl(T, rng=0, **options).factors @ U.T)
            rows, columns = linear_sum_assignment(-cosines)
            errors[name].append(np.sqrt(2 - 2 * np.minimum(cosines[rows, columns], 1)).max())
    mean = {name: np.exp(np.mean(np.log(e))) for name, e in errors.items()}
    assert mean["refined"] < 3 * noise * np.sqrt(k)
    assert mean["refined"] < mean["plugin"]
    assert mean["plugin"] <= 1.2 * mean["projections"]


def test_kcl_finds_a_factor_in_the_tensor_beside():
    """A factor that the third moment does not show is determined by the second one."""
    rng = np.random.default_rng(4)
    U = rng.normal(size=(4, 4))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    T = rank_one_sum(np.array([2.0, -1.0, 1.0, 0.0]), U, 3)
    dirt = SymmetricTensor(rng.normal(size=T.entries.size), 4, 3)
    T = T + dirt * (1e-6 / dirt.norm)
    beside = rank_one_sum(np.array([1.0, 2.0, -1.0, 1.0]), U, 2)
    closest = {
        name: np.abs(kcl(T, rng=0, beside=b).factors @ U.T).max(axis=0) for name, b in (("T", []), ("both", [beside]))
    }
    assert closest["T"][:3].min() > 1 - 1e-9
    assert closest["T"][3] < 0.99
    assert closest["both"].min() > 1 - 1e-9


def test_kcl_refuses():
    with pytest.raises(InvalidInput, match="order 3"):
        kcl(rank_one_sum(np.ones(1), np.eye(1), 2))
    with pytest.raises(InvalidInput, match="projections"):
        kcl(rank_one_sum(np.ones(1), np.eye(1), 3), projections=1)
