"""Symmetric tensors in packed form: one number for each multiset of indices, and isometric flattenings.

A symmetric T ∈ (R^d)^{⊗k} is stored as the vector of √(k!/α!)·T_{i₁…i_k} over i₁ ≤ … ≤ i_k, where α counts
how often each index occurs and k!/α! is the number of positions that hold the same number. The Euclidean
inner product of packed vectors is then the Frobenius inner product of the tensors, so least squares, norms
and singular values need no further weights. Size C(d+k−1, k) instead of d^k.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.arrays import Array
from relumine.results import InvalidInput

Index = NDArray[np.intp]


_DENSE_LIMIT = 1 << 27  # numbers in a dense tensor or a flattening (1 GB): beyond it, say so instead of swapping


def packed_size(d: int, k: int) -> int:
    """C(d+k−1, k), the dimension of the symmetric order-k tensors over R^d.

    Examples
    --------
    >>> packed_size(30, 4)
    40920
    """
    return comb(d + k - 1, k)


@lru_cache(maxsize=128)
def indices(d: int, k: int) -> Index:
    """All i₁ ≤ … ≤ i_k below d in lexicographic order, (C(d+k−1, k), k); read-only."""
    table = np.zeros((1, 0), dtype=np.intp)
    for order in range(k):
        last = table[:, -1] if order else np.zeros(1, dtype=np.intp)
        children = d - last
        table = np.repeat(table, children, axis=0)
        first = np.repeat(np.cumsum(children) - children, children)
        table = np.column_stack([table, np.repeat(last, children) + np.arange(len(table)) - first])
    table.flags.writeable = False
    return table


@lru_cache(maxsize=128)
def multiplicities(d: int, k: int) -> Array:
    """k!/α! for each packed entry: how many positions of the dense tensor it stands for; read-only."""
    table = indices(d, k)
    run, same = np.ones(len(table)), np.ones(len(table))
    for p in range(1, k):
        run = np.where(table[:, p] == table[:, p - 1], run + 1.0, 1.0)
        same = same * run
    count = factorial(k) / same
    count.flags.writeable = False
    return count


@lru_cache(maxsize=32)
def _merge(d: int, orders: tuple[int, ...]) -> tuple[Index, Array]:
    """Where entry (I, J, …) of a flattening lies in packed storage, and its factor √(m_I m_J … / m)."""
    if np.prod([float(packed_size(d, k)) for k in orders]) > _DENSE_LIMIT:
        raise InvalidInput(
            f"flattening an order-{sum(orders)} tensor over {d} dimensions as {orders} needs too much "
            "memory; reduce the dimension first (relumine.papers.awasthi2021.estimate_in_subspace)"
        )
    table, factor = np.zeros((1, 0), dtype=np.intp), np.ones(1)
    for k in orders:
        part, count = indices(d, k), multiplicities(d, k)
        table = np.column_stack([np.repeat(table, len(part), axis=0), np.tile(part, (len(table), 1))])
        factor = np.outer(factor, count).ravel()
    total = table.shape[1]
    # sorted indices read as digits of a number in base d: packed storage is sorted by it, so a search finds the entry
    place = d ** np.arange(total - 1, -1, -1, dtype=np.int64)
    where = np.searchsorted(indices(d, total) @ place, np.sort(table, axis=1) @ place)
    return where, np.sqrt(factor / multiplicities(d, total)[where])


def symmetrize(M: Array, d: int, orders: tuple[int, ...]) -> SymmetricTensor:
    """The symmetric part of a flattened tensor: the adjoint, and left inverse, of :meth:`SymmetricTensor.flatten`."""
    where, factor = _merge(d, orders)
    total = sum(orders)
    sums = np.bincount(where, factor * M.ravel(), minlength=packed_size(d, total))
    return SymmetricTensor(np.asarray(sums, dtype=np.float64), d, total)


def powers(U: Array, k: int) -> Array:
    """Packed u_i^{⊗k} for the rows u_i of U, (m, C(d+k−1, k)).

    Examples
    --------
    >>> powers(np.array([[3.0, 4.0]]), 2).round(3)          # u₁², √2 u₁u₂, u₂²
    array([[ 9.   , 16.971, 16.   ]])
    """
    d = U.shape[1]
    table = indices(d, k)
    out = np.tile(np.sqrt(multiplicities(d, k)), (U.shape[0], 1))
    for p in range(k):
        out *= U[:, table[:, p]]
    return out


def contraction(Q: Array, X: Array, k: int) -> Array:
    """Q_n(x_n, …, x_n, ·) for packed order-k tensors Q_n (rows) and vectors x_n (rows), (n, d)."""
    d = X.shape[1]
    where, factor = _merge(d, (1, k - 1))
    matrices = (Q[:, where] * factor).reshape(len(X), d, -1)
    return np.asarray(np.einsum("nij,nj->ni", matrices, powers(X, k - 1)))


def power_derivatives(u: Array, k: int) -> Array:
    """∂ packed(u^{⊗k}) / ∂u, (C(d+k−1, k), d)."""
    d = u.size
    table = indices(d, k)
    out = np.zeros((len(table), d))
    rows, root = np.arange(len(table)), np.sqrt(multiplicities(d, k))
    for p in range(k):
        others = np.prod(u[np.delete(table, p, axis=1)], axis=1)
        out[rows, table[:, p]] += root * others  # one p at a time: a row occurs once, so += is safe
    return out


def rank_one_sum(weights: Array, U: Array, k: int) -> SymmetricTensor:
    """Σ_i weights_i u_i^{⊗k}."""
    return SymmetricTensor(weights @ powers(U, k), U.shape[1], k)


def best_weights(U: Array, T: SymmetricTensor) -> tuple[Array, Array]:
    """argmin_ζ ‖T − Σ_i ζ_i u_i^{⊗k}‖ for the rows u_i of U, (m,), and what is left of the packed T.

    Examples
    --------
    >>> zeta, rest = best_weights(np.eye(2), rank_one_sum(np.array([2.0, -1.0]), np.eye(2), 3))
    >>> zeta.round(12), float(abs(rest).max()) < 1e-12
    (array([ 2., -1.]), True)
    """
    P = powers(U, T.order)
    zeta = np.asarray(np.linalg.lstsq(P.T, T.entries, rcond=None)[0], dtype=np.float64)
    return zeta, np.asarray(T.entries - zeta @ P)


@dataclass(frozen=True, eq=False)
class SymmetricTensor:
    """A symmetric tensor of the given order over R^d; ``entries`` is the packed vector of the module's text.

    Examples
    --------
    >>> T = SymmetricTensor.from_dense(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> T.entries.round(3), round(T.norm ** 2, 12)
    (array([2.   , 1.414, 3.   ]), 15.0)
    >>> T.contract(np.array([1.0, 1.0])).entries
    array([3., 4.])
    """

    entries: Array
    d: int
    order: int

    def __post_init__(self) -> None:
        if self.entries.shape != (packed_size(self.d, self.order),):
            raise InvalidInput(
                f"a packed order-{self.order} tensor over {self.d} dimensions has "
                f"{packed_size(self.d, self.order)} entries, got shape {self.entries.shape}"
            )

    @classmethod
    def from_dense(cls, T: ArrayLike, *, check: bool = True) -> SymmetricTensor:
        """Pack a dense array of shape (d,)*k, k ≥ 1; with ``check``, one that is not symmetric is refused."""
        dense = np.asarray(T, dtype=np.float64)
        if dense.ndim == 0 or len(set(dense.shape)) != 1:
            raise InvalidInput(f"a symmetric tensor has shape (d, …, d), got {dense.shape}")
        if not np.isfinite(dense).all():
            raise InvalidInput("the tensor holds NaN or infinite values")
        d, k = dense.shape[0], dense.ndim
        packed = cls(dense[tuple(indices(d, k).T)] * np.sqrt(multiplicities(d, k)), d, k)
        if check and not np.allclose(packed.dense(), dense, rtol=1e-8, atol=1e-10 * np.abs(dense).max(initial=0.0)):
            raise InvalidInput(f"the order-{k} tensor is not symmetric; average it over permutations of its axes first")
        return packed

    def dense(self) -> Array:
        """The full array of shape (d,)*k."""
        if float(self.d) ** self.order > _DENSE_LIMIT:
            raise InvalidInput(f"a dense order-{self.order} tensor over {self.d} dimensions does not fit in memory")
        where, factor = _merge(self.d, (1,) * self.order)
        return np.asarray((self.entries[where] * factor).reshape((self.d,) * self.order))

    @property
    def norm(self) -> float:
        """The Frobenius norm."""
        return float(np.linalg.norm(self.entries))

    def flatten(self, *orders: int) -> Array:
        """flatten(T, k₁, k₂, …) with every group of modes packed: shape (C(d+k₁−1, k₁), C(d+k₂−1, k₂), …).

        An isometry, and equal to the d^{k₁} × d^{k₂} × … array in an orthonormal basis of the symmetric
        subspaces: same rank, same singular values, u^{⊗k} ↦ packed(u^{⊗k₁}) ⊗ packed(u^{⊗k₂}) ⊗ …
        """
        if sum(orders) != self.order or min(orders, default=0) < 0:
            raise InvalidInput(f"orders {orders} do not split an order-{self.order} tensor")
        where, factor = _merge(self.d, orders)
        return np.asarray((self.entries[where] * factor).reshape([packed_size(self.d, k) for k in orders]))

    def contract(self, *vectors: Array) -> SymmetricTensor:
        """T(u, …, ·): one mode contracted with each vector."""
        T = self
        for u in vectors:
            T = SymmetricTensor(T.flatten(T.order - 1, 1) @ u, T.d, T.order - 1)
        return T

    def transform(self, V: Array) -> SymmetricTensor:
        """T(V, …, V) for V (r, d) and orders from 1 on: the tensor of Σ λ_i (V u_i)^{⊗k} when T = Σ λ_i u_i^{⊗k}."""
        dense = self.dense()
        for _ in range(self.order):  # contracting the first mode appends its image as the last
            dense = np.tensordot(dense, V, axes=(0, 1))
        return SymmetricTensor.from_dense(dense, check=False)

    def __add__(self, other: SymmetricTensor) -> SymmetricTensor:
        if (self.d, self.order) != (other.d, other.order):
            raise InvalidInput(f"cannot add tensors of (d, order) {(self.d, self.order)} and {(other.d, other.order)}")
        return SymmetricTensor(self.entries + other.entries, self.d, self.order)

    def __mul__(self, factor: float) -> SymmetricTensor:
        return SymmetricTensor(self.entries * factor, self.d, self.order)

    __rmul__ = __mul__

    def __sub__(self, other: SymmetricTensor) -> SymmetricTensor:
        return self + (-1.0) * other

    def __matmul__(self, other: SymmetricTensor) -> SymmetricTensor:
        """sym(S ⊗ T)."""
        return symmetrize(np.outer(self.entries, other.entries), self.d, (self.order, other.order))
