"""Joint diagonalisation of indefinite matrices, against planted factors and pyRiemann."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyriemann.geometry.ajd import uwedge

from relumine.results import InvalidInput
from relumine.tensors import jennrich, joint_diagonalise, rank_one_sum


def planted(k: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(k, k))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    diagonals = rng.normal(size=(count, k))  # of either sign: indefinite
    return U, diagonals, np.einsum("li,ia,ib->lab", diagonals, U, U)


def apart(U: np.ndarray, V: np.ndarray) -> float:
    both = np.concatenate([V, -V])
    return max(np.linalg.norm(both - u, axis=1).min() for u in U)


@given(st.integers(1, 7), st.integers(2, 8), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_exact_matrices(k: int, count: int, seed: int) -> None:
    U, _, M = planted(k, count, seed)
    if np.linalg.cond(U) > 50.0:
        return
    found = joint_diagonalise(M, rng=0)
    rebuilt = np.einsum("li,ia,ib->lab", found.diagonals, found.factors, found.factors)
    np.testing.assert_allclose(rebuilt, M, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found.factors, axis=1), 1.0)


def test_factors_are_found() -> None:
    U, diagonals, M = planted(6, 10, 0)
    found = joint_diagonalise(M, rng=0)
    assert found.off < 1e-12
    assert apart(U, found.factors) < 1e-10
    np.testing.assert_allclose(np.sort(np.abs(found.diagonals[0])), np.sort(np.abs(diagonals[0])), atol=1e-9)


def test_noise_is_shared_among_all_matrices() -> None:
    """With 40 noisy matrices the error is well below that of the start from one pair."""
    better = 0
    for seed in range(10):
        U, _, M = planted(5, 40, seed)
        noise = np.random.default_rng(seed + 100).normal(size=M.shape) * 1e-3
        M = M + noise + noise.transpose(0, 2, 1)
        start = joint_diagonalise(M, rng=0, steps=0)
        found = joint_diagonalise(M, rng=0)
        assert found.off <= start.off
        better += apart(U, found.factors) < apart(U, start.factors)
    assert better >= 8


def test_agrees_with_pyriemann_on_noisy_matrices() -> None:
    # pyRiemann's start needs a positive definite first matrix; ours does not
    rng = np.random.default_rng(1)
    U, _, _ = planted(4, 2, 1)
    diagonals = rng.uniform(0.5, 2.0, size=(20, 4))
    M = np.einsum("li,ia,ib->lab", diagonals, U, U)
    noise = rng.normal(size=M.shape) * 1e-4
    M = M + noise + noise.transpose(0, 2, 1)
    B, _ = uwedge(M, eps=1e-12, n_iter_max=500)
    theirs = np.linalg.inv(B).T
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    ours = joint_diagonalise(M, rng=0).factors
    assert apart(ours, theirs) < 1e-4
    assert apart(U, ours) < 1e-2


def test_slices_of_a_symmetric_tensor_agree_with_jennrich() -> None:
    U, weights, _ = planted(5, 2, 3)
    T = rank_one_sum(weights[0], U, 3)
    found = joint_diagonalise(np.moveaxis(T.dense(), 2, 0), rng=0)
    assert apart(jennrich(T, 1, 5, rng=0).vectors, found.factors) < 1e-9


def test_matrices_without_real_factors_still_end() -> None:
    found = joint_diagonalise(np.array([[[1.0, 0.0], [0.0, -1.0]], [[0.0, 1.0], [1.0, 0.0]]]), rng=0)
    assert np.isfinite(found.factors).all()
    assert found.off > 0.1  # and says that it did not succeed


@pytest.mark.parametrize(
    "matrices", [np.eye(3), np.ones((1, 2, 2)), np.triu(np.ones((2, 3, 3))), np.full((2, 2, 2), np.nan)]
)
def test_bad_matrices(matrices: np.ndarray) -> None:
    with pytest.raises(InvalidInput):
        joint_diagonalise(matrices)
