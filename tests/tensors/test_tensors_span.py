"""The dominant span of a symmetric matrix: exact, by |eigenvalue|, the same for a matrix and an operator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

from relumine import planted
from relumine.results import InvalidInput
from relumine.tensors.span import dominant_span


def test_the_span_contains_the_weights_whatever_their_signs() -> None:
    net = planted.network(9, 4, rng=2)
    V, values = dominant_span(net.hermite(2), 4)
    np.testing.assert_allclose(V @ V.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(net.W @ V.T @ V, net.W, atol=1e-10)
    assert (values > 0).sum() == (net.a > 0).sum()  # the inertia counts the signs of a
    np.testing.assert_allclose(dominant_span(net.hermite(2), 9)[1][4:], 0.0, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(3, 12), st.data())
@settings(max_examples=30, deadline=None)
def test_matrix_and_operator_agree(seed: int, d: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    width = data.draw(st.integers(1, d))
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    signs = rng.choice([-1.0, 1.0], size=d)
    P = (Q * (signs * 2.0 ** -np.arange(d))) @ Q.T  # magnitudes 1, 1/2, 1/4, …: every span is determined
    V, values = dominant_span(P, width)
    np.testing.assert_allclose(np.abs(values), 2.0 ** -np.arange(width), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(np.sign(values), signs[:width])
    np.testing.assert_allclose(V.T @ V, Q[:, :width] @ Q[:, :width].T, atol=1e-9)
    U, again = dominant_span(aslinearoperator(P), width, np.ones(d) + 0.1 * rng.normal(size=d))
    np.testing.assert_allclose(again, values, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(U.T @ U, V.T @ V, atol=1e-4)


def test_widths_that_make_no_sense() -> None:
    for width in (0, 10):
        with pytest.raises(InvalidInput, match="1 ≤ width ≤ 9"):
            dominant_span(np.eye(9), width)
