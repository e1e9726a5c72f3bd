"""The subspace power method on spans with known rank-one elements."""

from __future__ import annotations

import numpy as np
import pytest

from relumine import planted
from relumine.results import InvalidInput
from relumine.tensors import SymmetricTensor, powers, refine_terms, span_of_powers, subspace_power
from relumine.tensors.symmetric import contraction, packed_size


def apart(U: np.ndarray, V: np.ndarray) -> float:
    both = np.concatenate([V, -V])
    return max(np.linalg.norm(both - u, axis=1).min() for u in U)


@pytest.mark.parametrize(("d", "m", "order"), [(6, 10, 2), (10, 20, 2), (4, 8, 3)])
def test_all_powers_in_a_span_and_nothing_else(d: int, m: int, order: int) -> None:
    U = planted.network(d, m, rng=0).W
    basis = np.linalg.qr(powers(U, order).T)[0].T
    found, score = subspace_power(basis, d, order, rng=0)
    exact = found[score > 1.0 - 1e-9]
    assert len(exact) == m
    assert apart(U, exact) < 1e-6


def test_overcomplete_network_from_orders_3_and_4_with_vanishing_coefficients() -> None:
    """m = 2d with b at 0 and ±1, which T₃ and T₄ miss: together they have every direction."""
    net = planted.network(6, 12, rng=1)
    net = net.replace(b=np.where(np.arange(12) < 3, [0.0, 1.0, -1.0] * 4, net.b))
    tensors = [SymmetricTensor.from_dense(net.hermite(k)) for k in (3, 4)]
    basis = span_of_powers(tensors, 2, 12)
    found, score = subspace_power(basis, 6, 2, rng=0)
    exact = found[score > 1.0 - 1e-9]
    assert len(exact) == 12
    assert apart(net.W, exact) < 1e-3
    assert apart(net.W, refine_terms(exact, tensors)) < 1e-10
    _, score = subspace_power(span_of_powers(tensors[:1], 2, 6), 6, 2, rng=0)
    assert (score > 1.0 - 1e-9).sum() < 12  # T₃ has only d columns


def test_contraction_is_the_gradient() -> None:
    rng = np.random.default_rng(2)
    T = SymmetricTensor(rng.normal(size=packed_size(4, 3)), 4, 3)
    x = rng.normal(size=(1, 4))
    np.testing.assert_allclose(contraction(T.entries[None], x, 3)[0], T.contract(x[0], x[0]).entries, atol=1e-12)


def test_same_seed_same_answer() -> None:
    basis = np.linalg.qr(powers(np.eye(4), 2).T)[0].T
    first, again = subspace_power(basis, 4, 2, rng=3), subspace_power(basis, 4, 2, rng=3)
    np.testing.assert_array_equal(first[0], again[0])


def test_bad_spans() -> None:
    with pytest.raises(InvalidInput, match=r"r < 6"):
        subspace_power(np.eye(6), 3, 2)
    with pytest.raises(InvalidInput, match="order ≥ 2"):
        subspace_power(np.eye(2, 3), 3, 1)
    T = SymmetricTensor.from_dense(np.eye(3))
    with pytest.raises(InvalidInput, match="order ≥ 3"):
        span_of_powers([T], 3, 1)
    with pytest.raises(InvalidInput, match="rank must lie"):
        span_of_powers([T], 1, 4)
