"""The span of the weights without any d×d matrix: P₂ = M_j(I, I, α, …, α) as an operator on vectors (Zhong 2017).

M_j = E[y He_j(x)] = Σ_i v_i c_j w̄_i^{⊗j}. Contracted with α in all but two places it is a matrix of rank k whose
range is the span of the weights; j is the first order ≥ 2 that does not vanish (Definition 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh, lsqr

from relumine.activations import Activation
from relumine.results import InvalidInput

Array = NDArray[np.float64]

__all__ = ["Orders", "affine_residual", "moment_operator", "moment_orders", "weight_span"]

_DENSE = 200  # up to this d the d×d matrix costs less than the Lanczos passes
_CHUNK = 4096  # rows at once


@dataclass(frozen=True)
class Orders:
    """First non-vanishing orders: ``first`` ≥ 1, ``second`` ≥ 2, ``third`` ≥ 3 (l₁, j₂ = l₂ and j₃ in the paper)."""

    first: int
    second: int
    third: int


def moment_orders(sigma: Activation, norms: Array | float = 1.0, most: int = 4) -> Orders:
    """The orders j₁, j₂, j₃ of an activation without bias; an error where M₃ and M₄ both vanish.

    Examples
    --------
    >>> from relumine.activations import get
    >>> moment_orders(get("relu")), moment_orders(get("squared_relu")), moment_orders(get("tanh"))
    (Orders(first=1, second=2, third=4), Orders(first=1, second=2, third=3), Orders(first=1, second=3, third=3))
    """
    r = np.atleast_1d(np.asarray(norms, dtype=np.float64))
    sizes = np.array([np.abs(sigma.hermite(k, np.zeros_like(r), r)).min() for k in range(most + 1)])
    seen = sizes > 1e-9 * max(float(sizes.max()), np.finfo(float).tiny)
    found = [next((j for j in range(k, most + 1) if seen[j]), None) for k in (1, 2, 3)]
    if found[2] is None:
        raise InvalidInput(
            f"{sigma.name}: the third and fourth moments vanish, so no tensor of the weights can be had from them "
            "(Zhong 2017, Assumption 5.3); use method='auto'"
        )
    first, second, third = (j for j in found if j is not None)
    return Orders(first, second, third)


def affine_residual(X: Array, y: Array) -> tuple[Array, Array, float]:
    """What an affine function of x leaves of y: (residual, slope (d,), constant), without a d×d matrix."""
    n, d = X.shape
    system = LinearOperator(
        (n, d + 1),
        matvec=lambda u: X @ u[:-1] + u[-1],
        rmatvec=lambda r: np.append(X.T @ r, r.sum()),
        dtype=np.float64,
    )
    solution = np.asarray(lsqr(system, y, atol=1e-10, btol=1e-10, iter_lim=200)[0])
    return y - X @ solution[:-1] - solution[-1], solution[:-1], float(solution[-1])


def moment_operator(X: Array, r: Array, order: int, alpha: Array) -> LinearOperator:
    """U ↦ M_j(I, u, α, …, α) with M_j = mean of r He_j(x), j ∈ {2, 3, 4}: two passes over X a product.

    With s = x·α, h_k = |α|^k He_k(s/|α|) and k = j − 2,
    He_j(x)(I, u, α…) = h_k (x(x·u) − u) − k h_{k−1} (α(x·u) + x(α·u)) + k(k−1) h_{k−2} α(α·u).
    """
    if order not in (2, 3, 4):
        raise InvalidInput(f"the matrix of a moment needs order 2, 3 or 4, got {order}")
    n, d = X.shape
    k, s, e = order - 2, X @ alpha, float(alpha @ alpha)
    h = [np.ones(n), s, s * s - e][: k + 1]
    top = r * h[k]
    trace = float(top.mean())
    lower = X.T @ (r * h[k - 1]) / n if k else np.zeros(d)
    lowest = float(np.mean(r)) if k == 2 else 0.0

    def product(u: Array) -> Array:
        U = np.asarray(u, dtype=np.float64).reshape(d, -1)
        out, g = np.zeros_like(U), alpha @ U
        for start in range(0, n, _CHUNK):
            rows = slice(start, start + _CHUNK)
            out += X[rows].T @ (top[rows, None] * (X[rows] @ U))
        out = out / n - trace * U - k * (np.outer(alpha, lower @ U) + np.outer(lower, g))
        return np.asarray(out + k * (k - 1) * lowest * np.outer(alpha, g)).reshape(u.shape)

    return LinearOperator((d, d), matvec=product, rmatvec=product, matmat=product, dtype=np.float64)


def weight_span(
    X: Array,
    r: Array,
    width: int,
    order: int = 2,
    alpha: Array | None = None,
    rng: int | np.random.Generator | None = None,
    known: LinearOperator | None = None,
) -> tuple[Array, Array]:
    """Orthonormal rows V (k, d), top eigenvectors of P̂₂ by |eigenvalue|, and those eigenvalues.

    P̂₂ is indefinite; Lanczos on the operator (the paper's power method) where d is large, one GEMM otherwise.
    ``r``: y, or what a fitted function leaves of it (same expectation, less variance); ``known``: P₂ of that function,
    zero for an affine one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 20)); y = np.maximum(X[:, 0], 0.0) ** 2 - np.maximum(X[:, 1], 0.0) ** 2
    >>> V, values = weight_span(X, y, 2, rng=0)
    >>> bool(np.linalg.norm(V[:, :2], axis=1).min() > 0.95), bool(values.min() < 0.0 < values.max())
    (True, True)
    """
    d = X.shape[1]
    if not 1 <= width <= d:
        raise InvalidInput(f"the span of {width} weights needs 1 ≤ width ≤ d = {d}; for width > d use method='auto'")
    rng = np.random.default_rng(rng)
    alpha = rng.normal(size=d) / np.sqrt(d) if alpha is None else alpha
    start = np.asarray(rng.normal(size=d))
    P = moment_operator(X, r, order, alpha)
    P = P if known is None else P + known
    if d <= _DENSE or width >= d - 1:
        values, vectors = np.linalg.eigh(P @ np.eye(d))
    else:
        values, vectors = eigsh(P, k=width, which="LM", v0=start, tol=1e-6, maxiter=300)
    rank = np.argsort(-np.abs(values), kind="stable")[:width]
    return np.ascontiguousarray(vectors.T[rank]), np.asarray(values[rank])
