"""The span of the weights without any d×d matrix: P₂ = M_j(I, I, α, …, α) as an operator on vectors (Zhong 2017).

M_j = E[y He_j(x)] = Σ_i v_i c_j w̄_i^{⊗j}. Contracted with α in all but two places it is a matrix of rank k whose
range is the span of the weights; j is the first order ≥ 2 that does not vanish (Definition 5.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from relumine.activations import Activation
from relumine.arrays import Array, slices
from relumine.data.sources import Chunk, Source, count
from relumine.data.whiten import summary_of
from relumine.results import InvalidInput
from relumine.tensors.span import dominant_span

_DENSE = 200  # up to this d the d×d matrix costs less than the Lanczos products: n d² against n d k times fifty
_DENSE_FILES = 2000  # of rows that are read anew for every product: 32 MB instead of fifty passes
_BLOCK = 4096  # rows at once in a product, so that X[rows] is still in the cache when it is needed again


@dataclass(frozen=True)
class Orders:
    """First non-vanishing orders: ``first`` ≥ 1, ``second`` ≥ 2, ``third`` ≥ 3 (l₁, j₂ = l₂ and j₃ in the paper)."""

    first: int
    second: int
    third: int


def moment_orders(sigma: Activation) -> Orders:
    """The orders j₁, j₂, j₃ of an activation without bias; an error where M₃ and M₄ both vanish.

    Examples
    --------
    >>> from relumine.activations import get
    >>> moment_orders(get("relu")), moment_orders(get("squared_relu")), moment_orders(get("tanh"))
    (Orders(first=1, second=2, third=4), Orders(first=1, second=2, third=3), Orders(first=1, second=3, third=3))
    """
    sizes = np.array([abs(float(sigma.hermite(k, 0.0))) for k in range(5)])
    # a moment that vanishes by symmetry comes out of quadrature as 1e-14; the others are 1e-3 or more
    seen = sizes > 1e-9 * max(float(sizes.max()), np.finfo(float).tiny)
    found = [next((j for j in range(k, 5) if seen[j]), None) for k in (1, 2, 3)]
    if found[2] is None:
        raise InvalidInput(
            f"{sigma.name}: the third and fourth moments vanish, so no tensor of the weights can be had from them "
            "(Zhong 2017, Assumption 5.3); use method='auto'"
        )
    first, second, third = (j for j in found if j is not None)
    return Orders(first, second, third)


def affine_fit(rows: Source) -> tuple[Array, float]:
    """(slope, constant), argmin Σ (y − slope·x − constant)²: one pass, or one a step where d×d is too large.

    Examples
    --------
    >>> from relumine.data.views import rows_of
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> slope, constant = affine_fit(rows_of(X, X @ [1.0, -2.0] + 3.0))
    >>> slope.round(9), round(constant, 9)
    (array([ 1., -2.]), 3.0)
    """
    if _forms_matrices(rows):
        summary = summary_of(rows)
        slope = np.asarray(np.linalg.lstsq(summary.covariance, summary.cross[:, 0], rcond=None)[0], dtype=np.float64)
        return slope, float(summary.y_mean[0] - slope @ summary.mean)
    # normal equations of standard inputs are well conditioned: conjugate gradients need some ten steps
    size, n = rows.d + 1, count(rows)
    target = rows.reduce(_with_labels)[0] / n
    gram = LinearOperator((size, size), matvec=lambda u: rows.reduce(partial(_gram_times, u=u))[0] / n, dtype=float)
    solution = np.asarray(cg(gram, target, rtol=1e-10, maxiter=200)[0])
    return solution[:-1], float(solution[-1])


def moment_operator(rows: Source, order: int, alpha: Array) -> LinearOperator:
    """u ↦ M_j(I, u, α, …, α) with M_j = mean of y He_j(x), j ∈ {2, 3, 4}: a pass over the rows for each product.

    With s = x·α, h_k = |α|^k He_k(s/|α|) and k = j − 2,
    He_j(x)(I, u, α…) = h_k (x(x·u) − u) − k h_{k−1} (α(x·u) + x(α·u)) + k(k−1) h_{k−2} α(α·u).
    """
    if order not in (2, 3, 4):
        raise InvalidInput(f"the matrix of a moment needs order 2, 3 or 4, got {order}")
    d, k = rows.d, order - 2
    n, trace, lower, lowest = rows.reduce(partial(_lower_sums, k=k, alpha=alpha))
    trace, lower, lowest = trace / n, lower / n, lowest / n

    def product(u: Array) -> Array:
        U = np.asarray(u, dtype=np.float64).reshape(d, -1)
        g = alpha @ U
        out = rows.reduce(partial(_moment_times, k=k, alpha=alpha, U=U))[0] / n
        out = out - trace * U - k * (np.outer(alpha, lower @ U) + np.outer(lower, g))
        return np.asarray(out + k * (k - 1) * lowest * np.outer(alpha, g)).reshape(u.shape)

    return LinearOperator((d, d), matvec=product, rmatvec=product, matmat=product, dtype=np.float64)


def weight_span(
    rows: Source,
    width: int,
    order: int = 2,
    alpha: Array | None = None,
    rng: int | np.random.Generator | None = None,
    known: LinearOperator | None = None,
) -> tuple[Array, Array]:
    """V (k, d), the dominant span of P̂₂ = M̂_j(I, I, α, …, α), and its eigenvalues.

    P̂₂ as a matrix where d is small, else as an operator (the paper's power method becomes Lanczos). The labels of
    ``rows`` are y, or what a fitted function leaves of it (same expectation, less variance); ``known``: P₂ of that
    function, zero for an affine one.

    Examples
    --------
    >>> from relumine.data.views import rows_of
    >>> X = np.random.default_rng(0).normal(size=(4000, 20))
    >>> V, values = weight_span(rows_of(X, np.maximum(X[:, 0], 0.0) ** 2 - np.maximum(X[:, 1], 0.0) ** 2), 2, rng=0)
    >>> bool(np.linalg.norm(V[:, :2], axis=1).min() > 0.95), bool(values.min() < 0.0 < values.max())
    (True, True)
    """
    d = rows.d
    rng = np.random.default_rng(rng)
    alpha = rng.normal(size=d) / np.sqrt(d) if alpha is None else alpha
    start = np.asarray(rng.normal(size=d))
    P = moment_operator(rows, order, alpha)
    P = P if known is None else P + known
    return dominant_span(P @ np.eye(d) if _forms_matrices(rows) else P, width, start)


def _forms_matrices(rows: Source) -> bool:
    return rows.d <= (_DENSE if rows.resident else _DENSE_FILES)


def _hermite(X: Array, alpha: Array, k: int) -> list[Array]:
    """h_0 … h_k of s = x·α, each (n,)."""
    s = X @ alpha
    return [np.ones(len(X)), s, s * s - float(alpha @ alpha)][: k + 1]


def _lower_sums(chunk: Chunk, k: int, alpha: Array) -> tuple[Array, ...]:
    """Number of rows, Σ y h_k, Σ y h_{k−1} x, Σ y."""
    X, y = np.asarray(chunk.X, dtype=np.float64), chunk.Y[:, 0]
    h = _hermite(X, alpha, k)
    lower = (y * h[k - 1]) @ X if k else np.zeros(X.shape[1])
    return np.array(float(len(y))), np.array(float(y @ h[k])), lower, np.array(float(y.sum()))


def _moment_times(chunk: Chunk, k: int, alpha: Array, U: Array) -> tuple[Array, ...]:
    """Σ y h_k x(x·U)."""
    out = np.zeros_like(U)
    for s in slices(len(chunk.Y), _BLOCK):
        X = np.asarray(chunk.X[s], dtype=np.float64)
        top = chunk.Y[s, 0] * _hermite(X, alpha, k)[k]
        out += X.T @ (top[:, None] * (X @ U))
    return (out,)


def _with_labels(chunk: Chunk) -> tuple[Array, ...]:
    """(Σ yx, Σ y)."""
    y = chunk.Y[:, 0]
    return (np.append(y @ np.asarray(chunk.X, dtype=np.float64), y.sum()),)


def _gram_times(chunk: Chunk, u: Array) -> tuple[Array, ...]:
    """Σ (x, 1)((x, 1)·u)."""
    X = np.asarray(chunk.X, dtype=np.float64)
    value = X @ u[:-1] + u[-1]
    return (np.append(value @ X, value.sum()),)
