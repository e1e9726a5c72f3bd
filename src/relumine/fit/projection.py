"""Variable projection: the linear parameters are always at their best, and the step concerns the directions.

The model is Σ_i A_i e(u_i·x̃) + τᵀx̃ with u_i = (w_i, b_i), A (m, q), τ (d+1, q). For given U the best (A, τ) solve
a linear least squares problem; :func:`project` solves it, :class:`Linearisation` gives what a Gauss–Newton step in U
needs. Everything is a sum over rows, taken in chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from relumine.fit.parallel import scratch
from relumine.fit.rows import Rows
from relumine.fit.sign_free import Shape

Array = NDArray[np.float64]

__all__ = ["Linearisation", "Projection", "Unknowns", "project"]

_CACHE_NUMBERS = 1 << 21  # keep Z = X̃Uᵀ between passes up to this size (16 MB), recompute it beyond


@dataclass(frozen=True)
class Projection:
    """The best linear parameters for given directions.

    ``U`` (m, d+1); ``A`` (m, q); ``C`` (d+1, m): affine part of every feature; ``G`` (m, m): Gram matrix of the
    features without their affine part, over Σω, with the ridge; ``R`` (n, q): residual; ``loss`` = Σω‖R‖² plus the
    ridge's share, ``ridge``·‖A‖².
    """

    U: Array
    A: Array
    C: Array
    G: Array
    R: Array
    loss: float
    Z: Array | None = None

    @property
    def tau(self) -> Array:
        """Affine coefficients that go with A: what the features bring is taken out."""
        return -self.C @ self.A

    def drop_costs(self) -> Array:
        """By how much (over Σω) the loss grows when unit i is left out and the others readjust: ‖A_i‖²/(G⁻¹)_ii."""
        values, vectors = np.linalg.eigh(self.G)
        floor = max(1e-13 * float(values.max(initial=0.0)), np.finfo(float).tiny)  # equal units: either can go
        inverse = (vectors**2 / np.maximum(values, floor)).sum(axis=1)
        return np.asarray((self.A**2).sum(axis=1) / inverse)


def project(rows: Rows, shape: Shape, U: Array, ridge: float = 0.0) -> Projection:
    """Solve for (A, τ) at the directions U; ``ridge`` is relative to the mean diagonal of the Gram matrix."""
    m = U.shape[0]
    # two projections are alive at a time, so half the width of the data each is one more copy of it
    keep = rows.n * m <= _CACHE_NUMBERS or 2 * m <= U.shape[1]
    Z = np.empty((rows.n, m)) if keep else None

    def normal_equations(s: slice) -> tuple[Array, Array, Array]:
        n = s.stop - s.start
        Zs = np.matmul(rows.X[s], U.T, out=scratch("Z", n, m) if Z is None else Z[s])
        F = shape.value(Zs, scratch("F", n, m))
        weighted = rows.weigh(F, s)
        return (
            weighted.T @ F,
            rows.X[s].T @ weighted if rows.affine else np.zeros((U.shape[1], m)),
            weighted.T @ rows.Y[s],
        )

    G, C, h = (total / rows.total for total in rows.sum(normal_equations, m))
    if rows.affine:
        G -= C.T @ C
    penalty = ridge * float(np.trace(G)) / max(m, 1)
    G[np.diag_indices(m)] += penalty
    A = _solve(G, h)
    R, affine = np.empty_like(rows.Y), C @ A

    def residual(s: slice) -> tuple[Array]:
        n = s.stop - s.start
        Zs = np.matmul(rows.X[s], U.T, out=scratch("Z", n, m)) if Z is None else Z[s]
        F = shape.value(Zs, scratch("F", n, m))
        R[s] = rows.Y[s] - F @ A
        if rows.affine:
            R[s] += rows.X[s] @ affine
        return (np.array(np.vdot(rows.weigh(R[s], s), R[s])),)

    loss = float(rows.sum(residual, m)[0])
    loss += penalty * rows.total * float((A * A).sum())
    return Projection(U, A, C, G, R, loss, Z)


def _solve(G: Array, h: Array) -> Array:
    """G⁻¹h for a symmetric positive semidefinite G, by Cholesky, or by pseudo-inverse where G is singular."""
    if not G.size:
        return np.zeros_like(h)
    try:
        return np.asarray(cho_solve(cho_factor(G), h))
    except LinAlgError:
        return np.asarray(np.linalg.pinv(G, rcond=1e-13, hermitian=True) @ h)


@dataclass(frozen=True)
class Unknowns:
    """A change of directions ``U`` (m, d+1), output weights ``A`` (m, q) and affine part ``tau`` (d+1, q)."""

    U: Array
    A: Array
    tau: Array

    def dot(self, other: Unknowns) -> float:
        """Inner product."""
        return float(np.vdot(self.U, other.U) + np.vdot(self.A, other.A) + np.vdot(self.tau, other.tau))

    def plus(self, t: float, other: Unknowns) -> Unknowns:
        """Self + t·other."""
        return Unknowns(self.U + t * other.U, self.A + t * other.A, self.tau + t * other.tau)


class Linearisation:
    """The model linearised at a projection: E = Σ_i A_i e'(z_i)(δu_i·x̃) + Σ_i δA_i e⊥(z_i) + δτᵀx̃.

    e⊥ is the feature without its affine part, so δA and δτ do not interact.
    """

    def __init__(self, rows: Rows, shape: Shape, at: Projection) -> None:
        self.rows, self.shape, self.at = rows, shape, at

    def _hidden(self, s: slice) -> Array:
        if self.at.Z is not None:
            return self.at.Z[s]
        return np.matmul(self.rows.X[s], self.at.U.T, out=scratch("Z", s.stop - s.start, self.at.U.shape[0]))

    def _slopes(self, Z: Array) -> Array:
        return self.shape.derivative(Z, scratch("D", *Z.shape))

    def _pull(self, D: Array, E: Array, s: slice) -> Array:
        """Σ e'(z_i)(A_i·E)x̃ over the rows of a chunk, (m, d+1); overwrites D."""
        if E.shape[1] == 1:  # A_i is a number and can wait until after the sum
            D *= E
            return self.at.A * (D.T @ self.rows.X[s])
        D *= E @ self.at.A.T
        return D.T @ self.rows.X[s]

    @cached_property
    def scale(self) -> Array:
        """Mean diagonal of each unit's block of the Gauss–Newton matrix, (m,): ‖A_i‖² E[e'(z_i)²]."""
        return np.asarray((self.at.A**2).sum(axis=1) * np.diag(self.slopes[0]))

    @cached_property
    def slopes(self) -> tuple[Array, Array]:
        """E[e'(z_i)e'(z_j)] (m, m) and E[e'(z_i)] (m,)."""

        def part(s: slice) -> tuple[Array, Array]:
            D = self._slopes(self._hidden(s))
            weighted = self.rows.weigh(D, s)
            return weighted.T @ D, weighted.sum(axis=0)

        second, first = self.rows.sum(part, self.at.U.shape[0])
        return second / self.rows.total, first / self.rows.total

    @cached_property
    def gradient(self) -> Array:
        """Half the descent direction of the loss in U, over Σω: (m, d+1). In A and τ it is zero by projection."""

        def part(s: slice) -> tuple[Array]:
            D = self._slopes(self._hidden(s))
            return (self._pull(D, self.rows.weigh(self.at.R[s], s), s),)

        return self.rows.sum(part, self.at.U.shape[0])[0] / self.rows.total

    def product(self, x: Unknowns) -> Unknowns:
        """JᵀJx/Σω in one pass over the rows."""
        at, rows = self.at, self.rows
        tau = x.tau - at.C @ x.A if rows.affine else None

        def part(s: slice) -> tuple[Array, Array, Array]:
            Z, X = self._hidden(s), rows.X[s]
            D, F = self._slopes(Z), self.shape.value(Z, scratch("F", *Z.shape))
            T = np.matmul(X, x.U.T, out=scratch("T", *Z.shape))
            T *= D
            E = T @ at.A + F @ x.A
            if tau is not None:
                E += X @ tau
            E = rows.weigh(E, s)
            return self._pull(D, E, s), F.T @ E, X.T @ E if rows.affine else np.zeros_like(x.tau)

        U, A, tail = (sums / rows.total for sums in rows.sum(part, at.U.shape[0]))
        if rows.affine:
            A -= at.C.T @ tail
        return Unknowns(U, A, tail)

    def normal_matrix(self) -> Array:
        """The Gauss–Newton matrix in U with A and τ eliminated (Kaufman's approximation), (m(d+1), m(d+1)), over Σω.

        Block (i, j) is (A_i·A_j) times that of the columns e'(z_i)x̃ projected off the features and x̃.
        """
        m, D = self.at.U.shape

        def part(s: slice) -> tuple[Array, Array, Array]:
            Z, X = self._hidden(s), self.rows.X[s]
            slope, F = self._slopes(Z), self.shape.value(Z, scratch("F", *Z.shape))
            J = (slope[:, :, None] * X[:, None, :]).reshape(-1, m * D)
            weighted = self.rows.weigh(J, s)
            return weighted.T @ J, weighted.T @ F, weighted.T @ X

        H, N, M = (sums / self.rows.total for sums in self.rows.sum(part, m * D, least=512))
        if self.rows.affine:
            N -= M @ self.at.C
            H -= M @ M.T
        H -= N @ _solve(self.at.G, N.T)
        H = H.reshape(m, D, m, D) * (self.at.A @ self.at.A.T)[:, None, :, None]
        return np.asarray(H.reshape(m * D, m * D))
