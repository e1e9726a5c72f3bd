"""Packed symmetric tensors against dense arrays, einsum and TensorLy."""

from __future__ import annotations

from itertools import permutations
from math import comb

import numpy as np
import pytest
import tensorly
from hypothesis import given, settings
from hypothesis import strategies as st

from relumine.results import InvalidInput
from relumine.tensors.symmetric import (
    SymmetricTensor,
    indices,
    multiplicities,
    packed_size,
    power_derivatives,
    powers,
    rank_one_sum,
    symmetrize,
)

shapes = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32 - 1))


def random_tensor(d: int, k: int, seed: int) -> SymmetricTensor:
    return SymmetricTensor(np.random.default_rng(seed).normal(size=packed_size(d, k)), d, k)


@given(shapes)
def test_dense_and_back(shape: tuple[int, int, int]) -> None:
    d, k, seed = shape
    T = random_tensor(d, k, seed)
    dense = T.dense()
    for axes in permutations(range(k)):
        np.testing.assert_allclose(dense, dense.transpose(axes), atol=1e-14)
    np.testing.assert_allclose(SymmetricTensor.from_dense(dense).entries, T.entries, atol=1e-13)
    assert T.norm == pytest.approx(np.linalg.norm(dense), abs=1e-12)


@given(st.integers(1, 6), st.integers(0, 5))
def test_index_tables(d: int, k: int) -> None:
    table = indices(d, k)
    assert table.shape == (comb(d + k - 1, k), k)
    assert (np.diff(table, axis=1) >= 0).all()
    assert len({tuple(row) for row in table.tolist()}) == len(table)
    assert multiplicities(d, k).sum() == pytest.approx(float(d) ** k)


@given(shapes, st.data())
@settings(deadline=None)
def test_flatten_is_the_dense_flattening_in_an_orthonormal_basis(shape: tuple[int, int, int], data) -> None:
    d, k, seed = shape
    split = data.draw(st.integers(0, k))
    T = random_tensor(d, k, seed)
    packed = np.linalg.svd(T.flatten(split, k - split), compute_uv=False)
    dense = np.linalg.svd(T.dense().reshape(d**split, d ** (k - split)), compute_uv=False)
    np.testing.assert_allclose(packed, dense[: len(packed)], atol=1e-12)
    np.testing.assert_allclose(dense[len(packed) :], 0.0, atol=1e-12)
    np.testing.assert_allclose(
        symmetrize(T.flatten(split, k - split), d, (split, k - split)).entries, T.entries, atol=1e-12
    )


def test_flatten_of_a_power_is_an_outer_product() -> None:
    u = np.random.default_rng(0).normal(size=4)
    T = rank_one_sum(np.ones(1), u[None], 5)
    p2, p1 = powers(u[None], 2)[0], powers(u[None], 1)[0]
    np.testing.assert_allclose(T.flatten(2, 2, 1), np.einsum("i,j,k->ijk", p2, p2, p1), atol=1e-12)


def test_rank_one_sum_against_tensorly() -> None:
    rng = np.random.default_rng(1)
    U, weights = rng.normal(size=(3, 4)), rng.normal(size=3)
    expected = tensorly.cp_to_tensor((weights, [U.T] * 4))
    np.testing.assert_allclose(rank_one_sum(weights, U, 4).dense(), expected, atol=1e-12)
    unfolded = tensorly.unfold(expected, 0)
    np.testing.assert_allclose(
        np.linalg.svd(rank_one_sum(weights, U, 4).flatten(1, 3), compute_uv=False),
        np.linalg.svd(unfolded, compute_uv=False),
        atol=1e-12,
    )


@given(shapes)
@settings(deadline=None)
def test_contract_transform_and_product_against_einsum(shape: tuple[int, int, int]) -> None:
    d, _, seed = shape
    rng = np.random.default_rng(seed)
    T, S, u, V = (
        random_tensor(d, 3, seed),
        random_tensor(d, 2, seed + 1),
        rng.normal(size=d),
        rng.normal(size=(2, d)),
    )
    dense = T.dense()
    np.testing.assert_allclose(T.contract(u).dense(), np.einsum("ijk,k->ij", dense, u), atol=1e-12)
    np.testing.assert_allclose(T.contract(u, u).entries, np.einsum("ijk,k,j->i", dense, u, u), atol=1e-12)
    np.testing.assert_allclose(T.transform(V).dense(), np.einsum("ijk,ai,bj,ck->abc", dense, V, V, V), atol=1e-12)
    outer = np.multiply.outer(dense, S.dense())
    mean = np.mean([outer.transpose(axes) for axes in permutations(range(5))], axis=0)
    np.testing.assert_allclose((T @ S).dense(), mean, atol=1e-12)


def test_arithmetic_keeps_the_tensor_and_refuses_others() -> None:
    T = random_tensor(3, 2, 0)
    np.testing.assert_allclose((T + 2.0 * T - T * 0.5).entries, 2.5 * T.entries)
    with pytest.raises(InvalidInput, match="cannot add"):
        T + random_tensor(3, 3, 0)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_derivative_of_powers(k: int) -> None:
    rng = np.random.default_rng(2)
    u, step = rng.normal(size=4), 1e-6
    numeric = np.stack(
        [(powers((u + e)[None], k)[0] - powers((u - e)[None], k)[0]) / (2 * step) for e in step * np.eye(4)],
        axis=1,
    )
    np.testing.assert_allclose(power_derivatives(u, k), numeric, atol=1e-7)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.ones((2, 3)), r"shape \(d, …, d\)"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (np.array([[np.nan, 0.0], [0.0, 1.0]]), "NaN"),
        (1.0, "shape"),
    ],
)
def test_bad_dense_tensors(array: np.ndarray, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        SymmetricTensor.from_dense(array)


def test_bad_sizes() -> None:
    with pytest.raises(InvalidInput, match="has 6 entries"):
        SymmetricTensor(np.zeros(5), 3, 2)
    with pytest.raises(InvalidInput, match="do not split"):
        random_tensor(3, 3, 0).flatten(1, 1)
    with pytest.raises(InvalidInput, match="reduce the dimension"):
        SymmetricTensor(np.zeros(packed_size(200, 4)), 200, 4).flatten(2, 2)
