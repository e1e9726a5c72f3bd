"""Signs back, and the subset sums behind them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relumine as rl
from relumine.recovery.orient import flip_columns, open_signs, orient
from relumine.tensors import subsets as subsets_module
from relumine.tensors.subsets import nearest_subset, some_subset, subsets


def brute_force(Q: np.ndarray, t: np.ndarray) -> set[tuple[int, ...]]:
    every = itertools.product([0, 1], repeat=Q.shape[1])
    return {s for s in every if np.linalg.norm(Q @ np.array(s) - t) < 1e-9}


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 4), m=st.integers(1, 8), halves=st.booleans())
@settings(max_examples=40, deadline=None)
def test_all_subsets_are_found(seed: int, rows: int, m: int, halves: bool) -> None:
    rng = np.random.default_rng(seed)
    Q = rng.integers(-2, 3, size=(rows, m)) / 2.0
    t = Q @ rng.integers(0, 2, size=m)
    with pytest.MonkeyPatch.context() as patch:
        if halves:
            patch.setattr(subsets_module, "_BITS", (m + 1) // 2)
        found = {tuple(s.astype(int)) for s in subsets(Q, t, 1e-9)}
    assert found == brute_force(Q, t)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_a_sum_at_the_edge_of_the_tolerance_is_found_by_halves(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsets_module, "_BITS", 5)
    rng, tol = np.random.default_rng(rows), 1e-6
    Q, s = rng.normal(size=(rows, 10)), rng.random(10) < 0.5
    for away in (np.random.default_rng(0).normal(size=rows), rng.normal(size=rows)):  # the first: as far as it can be
        off = 0.99 * tol * np.sqrt(10.0) * away / np.linalg.norm(away)
        assert s.tolist() in subsets(Q, Q @ s + off, tol).tolist()
        assert s.tolist() not in subsets(Q, Q @ s + 1.02 * off, tol).tolist()


def test_no_subset() -> None:
    Q = np.random.default_rng(0).normal(size=(3, 10))
    assert len(subsets(Q, np.full(3, 0.123), 1e-9)) == 0
    assert some_subset(Q, np.full(3, 0.123), 1e-9) is None


def test_integer_program_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subsets_module, "_BITS", 4)
    rng = np.random.default_rng(1)
    Q, s = rng.normal(size=(6, 20)), rng.integers(0, 2, size=20).astype(bool)
    found = some_subset(Q, Q @ s, 1e-7)
    assert found is not None
    np.testing.assert_array_equal(found, s)


@pytest.mark.parametrize("m", [8, 24])
def test_nearest_subset_under_noise(m: int) -> None:
    rng = np.random.default_rng(2)
    Q, s = rng.normal(size=(7, m)), rng.integers(0, 2, size=m).astype(bool)
    found = nearest_subset(Q, Q @ s + 1e-3 * rng.normal(size=7))
    assert found is not None
    np.testing.assert_array_equal(found, s)


@pytest.mark.parametrize(("d", "m", "outputs"), [(6, 4, None), (5, 15, None), (10, 40, None), (4, 12, 3)])
def test_signs_come_back(d: int, m: int, outputs: int | None) -> None:
    for seed in range(3):
        net = rl.planted.network(d, m, rng=seed, outputs=outputs)
        units = np.flatnonzero(np.random.default_rng(seed).random(m) < 0.5)
        found = orient(net.flip(units))
        assert found.residual < 1e-12
        np.testing.assert_allclose(found.network.W, net.W, atol=1e-12)


@pytest.mark.parametrize("m", [4, 15])
def test_the_route_does_not_depend_on_what_rounding_leaves_of_the_affine_part(m: int) -> None:
    net = rl.planted.network(5, m, rng=0)
    routes = {orient(net.replace(c=left)).how for left in (0.0, 1e-15, 1e-13)}
    assert len(routes) == 1
    np.testing.assert_array_equal(orient(net).network.W, net.W)


def test_a_real_affine_part_stays() -> None:
    net = rl.planted.network(5, 3, rng=0).replace(v=np.ones(5), c=0.3)
    assert orient(net.flip([1])).residual > 1e-3


def test_flip_columns_are_what_a_flip_adds() -> None:
    net = rl.planted.network(4, 3, rng=0, outputs=2)
    for i in range(3):
        change = net.flip([i])
        added = np.column_stack([change.v - net.v, change.c - net.c]).ravel()
        np.testing.assert_allclose(flip_columns(net)[:, i], added, atol=1e-14)


@pytest.mark.parametrize("m", [5, 18])
def test_open_signs_are_those_that_the_affine_part_does_not_decide(m: int) -> None:
    """Two units that cancel in (v, c) may be flipped together; with a bias, also those that cancel in v alone."""
    rng = np.random.default_rng(m)
    W, b, a = rng.normal(size=(m, m + 3)), rng.normal(size=m), rng.uniform(0.5, 2.0, size=m)
    W[1], b[1], a[1] = W[0], b[0], -a[0]
    W[3], b[3], a[3] = W[2], b[2] + 1.0, -a[2]
    net = rl.Network(W, b, a)
    assert np.flatnonzero(open_signs(net, 1e-9)).tolist() == [0, 1]
    assert np.flatnonzero(open_signs(net, 1e-9, bias=True)).tolist() == [0, 1, 2, 3]
    assert open_signs(net, 1e3).all()
