"""Jennrich's algorithm and the Gauss–Newton refinement on tensors with known terms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group

from relumine.results import InvalidInput
from relumine.tensors import jennrich, rank_one_sum, refine_terms
from relumine.tensors.jennrich import singular_values
from relumine.tensors.symmetric import SymmetricTensor, packed_size


def planted(d: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(m, d))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    return U, rng.uniform(0.5, 2.0, m) * rng.choice([-1.0, 1.0], m)


def apart(U: np.ndarray, V: np.ndarray) -> float:
    """Largest distance of a row of U from the nearest ± row of V."""
    both = np.concatenate([V, -V])
    return max(np.linalg.norm(both - u, axis=1).min() for u in U)


@pytest.mark.parametrize(
    ("d", "m", "order", "z"), [(6, 6, 1, 1), (6, 4, 1, 2), (6, 15, 2, 1), (8, 35, 2, 2), (5, 25, 3, 1)]
)
def test_finds_every_term(d: int, m: int, order: int, z: int) -> None:
    U, weights = planted(d, m, 0)
    T = rank_one_sum(weights, U, 2 * order + z)
    assert (singular_values(T, order) > 1e-10).sum() == m
    terms = jennrich(T, order, m, rng=0)
    assert terms.residual < 1e-11
    assert terms.complex_pairs == 0
    assert apart(U, terms.vectors) < 1e-10
    assert apart(U, refine_terms(terms.vectors, [T])) < 1e-14 * 100
    np.testing.assert_allclose(np.sort(np.abs(terms.weights)), np.sort(np.abs(weights)), atol=1e-10)


def test_nearly_parallel_terms() -> None:
    U, weights = planted(5, 4, 1)
    U[1] = U[0] + np.deg2rad(1.0) * U[1]
    U[1] /= np.linalg.norm(U[1])
    terms = jennrich(rank_one_sum(weights, U, 3), 1, 4, rng=0)
    assert apart(U, terms.vectors) < 1e-8


def test_same_seed_same_answer_and_more_contractions_are_no_worse() -> None:
    U, weights = planted(6, 6, 2)
    T = rank_one_sum(weights, U, 3)
    first, again = jennrich(T, 1, 6, rng=5), jennrich(T, 1, 6, rng=5)
    np.testing.assert_array_equal(first.vectors, again.vectors)
    assert jennrich(T, 1, 6, rng=5, contractions=1).condition >= first.condition


def test_complex_eigenvalues_are_reported() -> None:
    # (e₁ + i e₂)^{⊗3} + its conjugate is real, but has no real decomposition with two terms
    z = np.array([1.0, 1.0j])
    dense = 2.0 * np.einsum("i,j,k->ijk", z, z, z).real
    terms = jennrich(SymmetricTensor.from_dense(dense), 1, 2, rng=0)
    assert terms.complex_pairs == 1
    assert len(terms.vectors) == 0
    assert terms.residual == pytest.approx(1.0)


def test_rank_zero_and_bad_ranks() -> None:
    T = rank_one_sum(np.ones(1), np.eye(1, 3), 3)
    assert jennrich(T, 1, 0).vectors.shape == (0, 3)
    with pytest.raises(InvalidInput, match="rank must lie between 0 and 3"):
        jennrich(T, 1, 4)
    with pytest.raises(InvalidInput, match="order 2ℓ"):
        jennrich(T, 2, 1)


@given(st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_rotation_and_permutation_equivariance(seed: int) -> None:
    U, weights = planted(4, 4, seed)
    R = ortho_group.rvs(4, random_state=seed)
    T = rank_one_sum(weights, U, 3)
    np.testing.assert_allclose(T.transform(R).entries, rank_one_sum(weights, U @ R.T, 3).entries, atol=1e-12)
    found = refine_terms(jennrich(T, 1, 4, rng=0).vectors, [T])
    rotated = refine_terms(jennrich(T.transform(R), 1, 4, rng=0).vectors, [T.transform(R)])
    assert apart(found @ R.T, rotated) < 1e-6
    shuffled = rank_one_sum(weights[::-1], U[::-1], 3)
    np.testing.assert_allclose(shuffled.entries, T.entries, atol=1e-12)


def test_refinement_uses_the_tensor_that_sees_a_unit() -> None:
    U, weights = planted(4, 3, 3)
    hidden = weights.copy()
    hidden[0] = 0.0  # the odd tensor does not see unit 0
    tensors = [rank_one_sum(hidden, U, 3), rank_one_sum(weights, U, 4)]
    start = U + 0.03 * np.random.default_rng(0).normal(size=U.shape)
    refined = refine_terms(start, tensors)
    assert apart(U, refined) < 1e-10
    assert apart(U, refine_terms(start, tensors[:1])) > 1e-3


def test_refinement_never_raises_the_misfit() -> None:
    rng = np.random.default_rng(4)
    noise = SymmetricTensor(rng.normal(size=packed_size(4, 3)), 4, 3)

    def misfit(U: np.ndarray) -> float:
        from relumine.tensors.symmetric import powers

        P = powers(U, 3)
        return float(np.linalg.norm(noise.entries - np.linalg.lstsq(P.T, noise.entries, rcond=None)[0] @ P))

    for _ in range(5):
        start = rng.normal(size=(3, 4))
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        assert misfit(refine_terms(start, [noise])) <= misfit(start) + 1e-12
    assert refine_terms(np.zeros((0, 4)), [noise]).shape == (0, 4)
