"""Hermite tensors against the explicit formulas, scipy's polynomials and quadrature."""

from __future__ import annotations

from itertools import permutations, product
from math import factorial

import numpy as np
import pytest
from scipy.special import eval_hermitenorm, roots_hermitenorm

from relumine.tensors.hermite import (
    feature_count,
    feature_slices,
    hermite_features,
    hermite_tensor,
    identity_power,
    product_tensor,
    squared_norms,
)
from relumine.tensors.symmetric import indices, multiplicities


def sym(T: np.ndarray) -> np.ndarray:
    return np.mean([T.transpose(axes) for axes in permutations(range(T.ndim))], axis=0)


def test_explicit_formulas() -> None:
    x = np.array([0.7, -1.3, 2.1])
    eye = np.eye(3)
    xx = np.multiply.outer(x, x)
    np.testing.assert_allclose(hermite_tensor(x, 1).dense(), x)
    np.testing.assert_allclose(hermite_tensor(x, 2).dense(), xx - eye)
    xxx = np.multiply.outer(xx, x)
    np.testing.assert_allclose(hermite_tensor(x, 3).dense(), xxx - 3 * sym(np.multiply.outer(x, eye)), atol=1e-13)
    fourth = np.multiply.outer(xx, xx) - 6 * sym(np.multiply.outer(xx, eye)) + 3 * sym(np.multiply.outer(eye, eye))
    np.testing.assert_allclose(hermite_tensor(x, 4).dense(), fourth, atol=1e-12)


@pytest.mark.parametrize(("d", "k"), [(1, 7), (2, 6), (3, 5), (4, 3)])
def test_entries_are_products_of_scipy_polynomials(d: int, k: int) -> None:
    x = np.random.default_rng(0).normal(size=d)
    entries = hermite_tensor(x, k).entries / np.sqrt(multiplicities(d, k))
    for entry, index in zip(entries, indices(d, k)):
        counts = np.bincount(index, minlength=d)
        assert entry == pytest.approx(np.prod(eval_hermitenorm(counts, x)), abs=1e-10)


def test_features_are_orthonormal() -> None:
    nodes, weights = roots_hermitenorm(12)
    weights = weights / np.sqrt(2 * np.pi)
    X = np.array(list(product(nodes, repeat=3)))
    mass = np.prod(list(product(weights, repeat=3)), axis=1)
    F = hermite_features(X, 4)
    assert len(F) == feature_count(3, 4) == feature_slices(3, 4)[-1].stop
    np.testing.assert_allclose((F * mass) @ F.T, np.eye(len(F)), atol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_squared_norms(d: int) -> None:
    X = np.random.default_rng(1).normal(size=(4, d)) * 2
    expected = [[hermite_tensor(x, k).norm ** 2 for x in X] for k in range(7)]
    np.testing.assert_allclose(squared_norms(X, 6), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (4, 1)])
def test_product_formula(a: int, b: int) -> None:
    x = np.random.default_rng(2).normal(size=3)
    F = hermite_features(x[None], max(a, b))[:, 0]
    parts = feature_slices(3, max(a, b))
    lower = [hermite_tensor(x, k) for k in range(a + b)]
    T = product_tensor(np.outer(F[parts[a]], F[parts[b]]), a, b, lower)
    np.testing.assert_allclose(T.entries, hermite_tensor(x, a + b).entries, atol=1e-9)


def test_identity_power() -> None:
    eye = np.eye(2)
    np.testing.assert_allclose(identity_power(2, 2).dense(), sym(np.multiply.outer(eye, eye)), atol=1e-15)
    # ⟨u^{⊗2r}, sym(I^{⊗r})⟩ = ‖u‖^{2r}
    u = np.array([1.0, 2.0])
    assert identity_power(2, 3).contract(*[u] * 6).entries[0] == pytest.approx(5.0**3)


def test_mean_square_is_factorial() -> None:
    X = np.random.default_rng(3).normal(size=(200_000, 2))
    for k in range(4):
        expected = factorial(k) * len(indices(2, k))
        assert squared_norms(X, 3)[k].mean() == pytest.approx(expected, rel=0.05)
