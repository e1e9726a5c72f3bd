"""The fit that gives lines their digits: the linear problem, and units that are one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import relumine as rl
from relumine.extraction.polish import _by_normal_equations, refitted, signed, without_faint
from relumine.network import Network

Array = NDArray[np.float64]


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_normal_equations_have_the_digits_of_the_condition(condition: float) -> None:
    rng = np.random.default_rng(0)
    left, right = np.linalg.qr(rng.normal(size=(300, 40)))[0], np.linalg.qr(rng.normal(size=(40, 40)))[0]
    A, P = (left * np.logspace(0.0, -np.log10(condition), 40)) @ right, rng.normal(size=(40, 2))
    found = _by_normal_equations(A, A @ P)
    assert found is not None
    np.testing.assert_allclose(found, P, atol=1e-14 * condition * 40)


def test_columns_that_depend_on_each_other_are_left_to_another_solver() -> None:
    A = np.random.default_rng(1).normal(size=(50, 8))
    A[:, 7] = A[:, 2]
    assert _by_normal_equations(A, A[:, :1]) is None


def test_two_units_that_cancel_go() -> None:
    secret = rl.planted.network(5, 3, rng=3)
    rng = np.random.default_rng(0)
    w, Z = rng.normal(size=5), rng.normal(size=(800, 5))
    w /= np.linalg.norm(w)
    W = np.vstack([secret.W, w, w + 1e-6 * rng.normal(size=5)])
    a = np.append(secret.a, [4.0, -4.0])[None]
    doubled = rl.Network(W, np.append(secret.b, [0.3, 0.3]), a, v=np.zeros((1, 5)), c=np.zeros(1))
    found = refitted(doubled, Z, secret(Z)[:, None], lambda r: np.full((len(r), 1), 1e-6))
    assert found.m == 3
    np.testing.assert_allclose(found(Z)[:, 0], secret(Z), atol=1e-9)


def test_a_unit_that_no_row_shows_is_left_out() -> None:
    """On either side of its kink: what it adds to the affine part stays."""
    rng = np.random.default_rng(5)
    W = rng.normal(size=(4, 6))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    b, A = np.array([0.1, -0.3, 40.0, 0.7]), np.array([[1.0, -2.0, 3e-12, 1e-7]])
    Z = rng.normal(size=(200, 6))
    fewer = without_faint(Network(W, b, A), lambda: Z, lambda t: np.full((len(t), 1), 1e-10))
    assert fewer.m == 3  # 1e-7 shows
    np.testing.assert_allclose(fewer(Z), Network(W, b, A)(Z), rtol=0, atol=1e-15)


def with_open_signs(seed: int, bias: float) -> rl.Network:
    """Five units behind six inputs; flipping the first three together adds ``bias`` to the function, and no slope."""
    net = rl.planted.network(6, 5, rng=seed)
    W, b, a = net.W.copy(), net.b.copy(), net.a.copy()
    last = a[:2] @ W[:2]
    W[2], a[2] = last / np.linalg.norm(last), -np.linalg.norm(last)
    b[2] = (bias - a[:2] @ b[:2]) / a[2]
    return rl.Network(W, b, a[None])


@pytest.mark.parametrize("seed", range(3))
def test_signs_that_the_function_leaves_open_are_not_claimed(seed: int) -> None:
    found = signed(with_open_signs(seed, 0.0), rl.activations.RELU)
    assert sorted(found.open.tolist()) == [False, False, True, True, True]
    assert not signed(with_open_signs(seed, 0.3), rl.activations.RELU).open.any()
    assert not signed(rl.planted.network(6, 5, rng=seed, outputs=1), rl.activations.RELU).open.any()


def test_signs_that_only_an_output_bias_tells_are_open_where_there_is_one() -> None:
    net = with_open_signs(0, 0.3)
    found = signed(net.replace(c=[0.17]), rl.activations.RELU)
    assert "an output bias is kept" in found.word
    assert sorted(found.open.tolist()) == [False, False, True, True, True]


def test_a_box_whose_signs_are_open_is_told_so() -> None:
    found = rl.extract(with_open_signs(1, 0.0), dim=6, rng=0)
    assert found.status.value == "exact"
    assert len(found.units.up_to_sign) == 3
    assert len(found.units.recovered) == 2
