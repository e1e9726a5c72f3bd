"""Moment sums: the laws of merging, each estimator against a direct computation, and their errors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relumine import planted
from relumine.data import moments
from relumine.data.moments import MomentSums, estimate_tensors
from relumine.data.views import rows_of
from relumine.papers.awasthi2021.subspace import estimate_in_subspace
from relumine.results import InvalidInput
from relumine.tensors.hermite import feature_count, hermite_features, hermite_tensor

ESTIMATORS = ("plain", "debiased", "regressed")
FIELDS = ("n", "squares", "second", "cross", "matrix")


def sums(estimator: str, X: np.ndarray, y: np.ndarray, order: int = 3) -> MomentSums:
    d = X.shape[1]
    baseline = np.linspace(-1, 1, feature_count(d, (order + 1) // 2)) if estimator == "debiased" else None
    return MomentSums(d, order, estimator, baseline).add(X, y)


def assert_same(a: MomentSums, b: MomentSums) -> None:
    for name in FIELDS:
        left, right = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        np.testing.assert_allclose(left, right, rtol=1e-11, atol=1e-11 * (1 + np.abs(right).max()), err_msg=name)


@given(st.sampled_from(ESTIMATORS), st.lists(st.integers(0, 60), min_size=3, max_size=3), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_merging_is_associative_and_commutative_and_chunks_equal_the_whole(estimator, cuts, seed) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    edges = [0, *sorted(cuts), 60]
    parts = [sums(estimator, X[a:b], y[a:b]) for a, b in pairwise(edges)]
    whole = sums(estimator, X, y)
    p, q, r, s = parts
    assert_same(p + q + r + s, whole)
    assert_same(p + (q + (r + s)), whole)
    assert_same(s + r + q + p, whole)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_internal_chunks_do_not_matter(estimator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 3)), rng.normal(size=1000)
    whole = sums(estimator, X, y, order=4)
    monkeypatch.setattr(moments, "_CHUNK_NUMBERS", 1)  # 256 rows at a time, the smallest chunk
    assert_same(sums(estimator, X, y, order=4), whole)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 5, 6])
def test_plain_is_equation_6(order: int) -> None:
    rng = np.random.default_rng(order)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    found = estimate_tensors(X, y, order, "plain")
    for k in range(order + 1):
        values = np.array([t * hermite_tensor(x, k).entries for x, t in zip(X, y)])
        np.testing.assert_allclose(found.tensors[k].entries, values.mean(axis=0), atol=1e-10)
        spread = np.sqrt(values.var(axis=0).sum() / len(X))
        assert found.errors[k] == pytest.approx(spread, rel=1e-9, abs=1e-12)


def test_debiased_is_the_plain_estimate_of_the_residual_plus_the_baseline() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    F = hermite_features(X, 2).T
    beta = np.linalg.lstsq(F, y, rcond=None)[0]
    residual = estimate_tensors(X, y - F @ beta, 4, "plain")
    found = estimate_tensors(X, y, 4, "debiased")
    np.testing.assert_allclose(found.tensors[4].entries, residual.tensors[4].entries, atol=1e-10)
    np.testing.assert_allclose(found.tensors[0].entries, beta[:1], atol=1e-10)
    np.testing.assert_allclose(found.tensors[2].entries, np.sqrt(2) * beta[4:], atol=1e-10)
    np.testing.assert_allclose(found.errors, residual.errors, rtol=1e-8)


def test_regressed_is_least_squares() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    beta = np.linalg.lstsq(hermite_features(X, 3).T, y, rcond=None)[0]
    found = estimate_tensors(X, y, 3, "regressed")
    np.testing.assert_allclose(found.tensors[3].entries, np.sqrt(6) * beta[10:], atol=1e-10)
    assert found.residual == pytest.approx(np.sum((y - hermite_features(X, 3).T @ beta) ** 2) / (300 - 20))


def test_regressed_is_exact_for_polynomials_and_knows_it() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    y = 1.0 + X[:, 0] * X[:, 1] - 2.0 * (X[:, 2] ** 3 - 3.0 * X[:, 2])
    found = estimate_tensors(X, y, 4, "regressed")
    assert found.tensors[3].dense()[2, 2, 2] == pytest.approx(-12.0)
    assert found.tensors[4].norm < 1e-9
    assert found.errors.max() < 1e-6


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_estimated_error_is_the_error(estimator: str) -> None:
    net = planted.network(4, 4, rng=0)
    exact = [net.hermite(k) for k in range(5)]
    squares, claimed = np.zeros(4), np.zeros(4)
    for seed in range(12):
        X, y = planted.sample(net, 4000, noise=0.1, rng=seed)
        found = estimate_tensors(X, y, 4, estimator)
        squares += [np.sum((found.tensors[k].dense() - exact[k]) ** 2) for k in range(1, 5)]
        claimed += found.errors[1:] ** 2
    ratio = np.sqrt(claimed / squares)
    assert (ratio > 0.7).all(), ratio
    assert (ratio < 1.4).all(), ratio


def test_a_hundredfold_fewer_samples_than_the_plain_estimator() -> None:
    """(d, m) = (10, 5): regressed at n = 10⁴ is at least as good in T₄ as plain at n = 10⁶."""
    net = planted.network(10, 5, rng=0)
    exact = net.hermite(4)
    X, y = planted.sample(net, 1_000_000, rng=1)
    plain = np.linalg.norm(estimate_tensors(X, y, 4, "plain").tensors[4].dense() - exact)
    found = estimate_in_subspace(rows_of(X[:10_000], y[:10_000]), 4, "regressed", width=5)
    regressed = np.linalg.norm(found.tensors[4].transform(found.basis.T).dense() - exact)
    assert regressed < 0.8 * plain, (regressed, plain)


def test_subspace_moments_agree_with_full_moments_of_exact_polynomials() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 5))
    u = np.array([0.6, 0.8, 0.0, 0.0, 0.0])
    y = (X @ u) ** 3 + (X @ u) ** 2 + 4.0 * X[:, 4] + 2.0  # the linear part leaves the span of u
    found = estimate_in_subspace(rows_of(X, y), 4, "regressed", width=1)
    # the cubic part is noise to the degree-2 fit that finds the span, so the span is only nearly u
    assert abs(found.basis[0] @ u) > 0.99
    assert found.tensors[3].norm == pytest.approx(6.0, rel=0.1)


def test_bad_sums() -> None:
    with pytest.raises(InvalidInput, match=r"estimator must be .*; got 'magic'"):
        MomentSums(3, 2, "magic")
    with pytest.raises(InvalidInput, match="d ≥ 1"):
        MomentSums(0, 2)
    with pytest.raises(InvalidInput, match=r"Reduce the dimension first.*estimator='debiased'"):
        MomentSums(60, 4, "regressed")
    with pytest.raises(InvalidInput, match="needs a baseline"):
        MomentSums(3, 4, "debiased")
    with pytest.raises(InvalidInput, match="baseline must have shape"):
        MomentSums(3, 4, "debiased", np.zeros(2))
    with pytest.raises(InvalidInput, match="expected X"):
        MomentSums(3, 2).add(np.zeros((4, 2)), np.zeros(4))
    with pytest.raises(InvalidInput, match="merge only"):
        MomentSums(3, 2) + MomentSums(3, 3)
    with pytest.raises(InvalidInput, match="merge only"):
        MomentSums(2, 2, "debiased", np.zeros(3)) + MomentSums(2, 2, "debiased", np.ones(3))
    with pytest.raises(InvalidInput, match="add at least 2"):
        MomentSums(3, 2, "plain").estimate()
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="10 samples cannot determine the 10 Hermite"):
        MomentSums(3, 2).add(rng.normal(size=(10, 3)), np.zeros(10)).estimate()
    with pytest.raises(InvalidInput, match="linearly dependent"):
        MomentSums(2, 2).add(np.ones((50, 2)), np.ones(50)).estimate()
