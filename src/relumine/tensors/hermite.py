"""Hermite tensors He_k(x) through the orthonormal Hermite features ∏_j He_{α_j}(x_j)/√α_j!.

The entry of He_k(x) at indices with counts α is ∏_j He_{α_j}(x_j), so packed(He_k(x)) = √k! · (features of
degree k) and E[f He_k] packed is √k! times the coefficients of f in an orthonormal basis of L²(N(0, I)).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import comb, factorial

import numpy as np

from relumine.arrays import Array
from relumine.tensors.symmetric import Index, SymmetricTensor, indices, packed_size, symmetrize


def feature_count(d: int, degree: int) -> int:
    """C(d+K, K): how many features of degree ≤ K there are."""
    return comb(d + degree, degree)


def feature_slices(d: int, degree: int) -> list[slice]:
    """Where the features of degree 0, 1, …, K lie in :func:`hermite_features`."""
    edges = np.cumsum([0, *(packed_size(d, k) for k in range(degree + 1))])
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


@lru_cache(maxsize=64)
def _family(d: int, k: int) -> tuple[Index, Index, Index]:
    """For each degree-k index: its last entry, how often it occurs, and the degree-(k−1) index it extends."""
    table = indices(d, k)
    last, run = table[:, -1], np.ones(len(table), dtype=np.intp)
    alive = np.ones(len(table), dtype=bool)
    for p in range(k - 2, -1, -1):
        alive = alive & (table[:, p] == last)
        run = run + alive
    above = indices(d, k - 1)
    children = d - (above[:, -1] if k > 1 else np.zeros(1, dtype=np.intp))
    return last, run, np.repeat(np.arange(len(above)), children)


def hermite_features(X: Array, degree: int, out: Array | None = None) -> Array:
    """∏_j He_{α_j}(x_j)/√α_j! for all |α| ≤ degree, (C(d+K, K), n): one **row** per feature.

    Ordered by degree, then as :func:`~relumine.tensors.symmetric.indices`. Features are rows because each is
    built from its parent by one product along the samples, which then lie contiguously.

    Examples
    --------
    >>> hermite_features(np.array([[2.0]]), 3).ravel().round(4)     # 1, x, (x²−1)/√2, (x³−3x)/√6
    array([1.    , 2.    , 2.1213, 0.8165])
    """
    n, d = X.shape
    parts = feature_slices(d, degree)
    F = np.empty((feature_count(d, degree), n)) if out is None else out
    F[0] = 1.0
    if degree >= 1:
        F[1 : d + 1] = X.T
    for k in range(2, degree + 1):
        parents, grandparents, block = F[parts[k - 1]], F[parts[k - 2]], F[parts[k]]
        last, run, above = _family(d, k - 1)
        row = 0
        for p, (i, r) in enumerate(zip(last.tolist(), run.tolist())):
            np.multiply(F[1 + i : d + 1], parents[p], out=block[row : row + d - i])
            # the first child repeats index i: √(r+1) h_{r+1} = x h_r − √r h_{r−1}
            block[row] -= np.sqrt(r) * grandparents[above[p]]
            block[row] /= np.sqrt(r + 1.0)
            row += d - i
    return F


def hermite_tensor(x: Array, k: int) -> SymmetricTensor:
    """He_k(x), the order-k Hermite tensor at one point x (d,).

    Examples
    --------
    >>> hermite_tensor(np.array([1.0, 2.0]), 2).dense()             # xxᵀ − I
    array([[0., 2.],
           [2., 3.]])
    """
    part = feature_slices(x.size, k)[k]
    return SymmetricTensor(np.sqrt(factorial(k)) * hermite_features(x[None, :], k)[part, 0], x.size, k)


def squared_norms(X: Array, degree: int) -> Array:
    """‖He_k(x)‖_F² for k = 0 … degree and every row x, (degree+1, n), without forming a tensor.

    Mehler's formula: Σ_k t^k ‖He_k(x)‖²/k! = (1−t²)^{−d/2} exp(‖x‖² t/(1+t)), and the exponential generates
    the Laguerre polynomials (−1)^k L_k^{(−1)}(‖x‖²).
    """
    n, d = X.shape
    s = np.einsum("ni,ni->n", X, X)
    # (i+1) L_{i+1} = (2i − s) L_i − (i−1) L_{i−1}: the recurrence of L^{(−1)}
    laguerre = [np.ones(n), -s]
    for i in range(1, degree):
        laguerre.append(((2.0 * i - s) * laguerre[i] - (i - 1.0) * laguerre[i - 1]) / (i + 1.0))
    out = np.zeros((degree + 1, n))
    binomial = 1.0  # of (1 − t²)^{−d/2} = Σ_j C(d/2 + j − 1, j) t^{2j}
    for j in range(degree // 2 + 1):
        for k in range(2 * j, degree + 1):
            out[k] += binomial * (-1.0) ** k * laguerre[k - 2 * j]
        binomial *= (0.5 * d + j) / (j + 1.0)
    return out * np.array([[factorial(k)] for k in range(degree + 1)], dtype=np.float64)


@lru_cache(maxsize=64)
def identity_power(d: int, r: int) -> SymmetricTensor:
    """sym(I^{⊗r}), of order 2r ≥ 2."""
    identity = SymmetricTensor.from_dense(np.eye(d))
    return identity if r == 1 else identity_power(d, r - 1) @ identity


def product_tensor(M: Array, a: int, b: int, lower: list[SymmetricTensor]) -> SymmetricTensor:
    """E[y He_{a+b}] from the matrix M = E[y h_a h_bᵀ] of degree-a and degree-b features and the tensors below.

    sym(He_a ⊗ He_b) = Σ_r r! C(a,r) C(b,r) sym(He_{a+b−2r} ⊗ I^{⊗r}); the r = 0 term is what we want, and the
    others are the already known ``lower[a+b−2r]``. So order 2h costs one GEMM of degree-h features.
    """
    d = lower[0].d
    T = symmetrize(M, d, (a, b)) * float(np.sqrt(factorial(a) * factorial(b)))
    for r in range(1, min(a, b) + 1):
        T = T - factorial(r) * comb(a, r) * comb(b, r) * (lower[a + b - 2 * r] @ identity_power(d, r))
    return T
