"""The passes over the rows: each is a function of one block and a few small arrays, and its results add up.

The model is Σ_i A_i e(u_i·x̃) + τᵀx̃ with u_i = (w_i, b_i), U (m, d+1), A (m, q), τ (d+1, q). Hidden values are kept
as (m, k), units in rows and the k samples of the block contiguous: every elementwise operation then runs along long
rows. Nothing here refers to where the rows are, so the functions can be sent to them. A pass has the precision of its
model: products of conjugate gradients do with single precision, everything else is double.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from relumine.arrays import Array
from relumine.fit.parallel import scratch
from relumine.fit.rows import Block, Kept, Sums
from relumine.fit.sign_free import Shape


@dataclass(frozen=True)
class Model:
    """Directions ``U`` (m, d+1), output weights ``A`` (m, q), affine part ``tau`` (d+1, q) or None, and the shape e."""

    shape: Shape
    U: Array
    A: Array
    tau: Array | None = None

    def cast(self, dtype: DTypeLike) -> Model:
        """The same in another precision."""
        tau = None if self.tau is None else self.tau.astype(dtype)
        return Model(self.shape, self.U.astype(dtype), self.A.astype(dtype), tau)

    def features(self, B: Block) -> Array:
        """e(UX̃ᵀ), (m, k), remembered or in a work array: not to be written to."""
        if B.kept.F is not None:
            return B.kept.F
        Z = B.hidden(self.U)
        return self.shape.value(Z, scratch("F", *Z.shape, dtype=Z.dtype))

    def slopes(self, B: Block) -> Array:
        """e'(UX̃ᵀ), (m, k), remembered or in the work array D: results may go there, not into what is returned."""
        if B.kept.D is not None:
            return B.kept.D
        Z = B.hidden(self.U)
        return self.shape.derivative(Z, scratch("D", *Z.shape, dtype=Z.dtype))

    def residual(self, B: Block) -> Array:
        """Yᵀ minus the model, (q, k)."""
        R: Array = B.Y.T - self.A.T @ self.features(B)
        if self.tau is not None:  # often a constant alone, which needs no product
            R -= self.tau.T @ B.X.T if self.tau[:-1].any() else self.tau[-1][:, None]
        return R

    def pull(self, D: Array, E: Array, X: Array) -> Array:
        """Σ e'(z_i)(A_i·E)x̃ over the rows of a block, (m, d+1), for slopes D and weighted E (q, k)."""
        out = scratch("D", *D.shape, dtype=D.dtype)
        if len(E) == 1:  # A_i is a number and can wait until after the sum
            return self.A * (np.multiply(D, E, out=out) @ X)
        return np.multiply(D, self.A @ E, out=out) @ X


def hidden(B: Block, U: Array) -> Kept:
    """The hidden values alone."""
    return Kept(Z=U @ B.X.T)


def kept(B: Block, model: Model) -> Kept:
    """What products would compute again and again: slopes, with features if they are needed and costly, or else Z."""
    Z = model.U @ B.cast(model.U.dtype).X.T if B.kept.Z is None else B.kept.Z.astype(model.U.dtype)
    if model.shape.degree is not None and model.A.shape[1] == 1:
        return Kept(D=model.shape.derivative(Z))
    return Kept(F=model.shape.value(Z), D=model.shape.derivative(Z)) if model.shape.costly else Kept(Z=Z)


def gram(B: Block, model: Model, free: slice) -> Sums:
    """Σ ω f fᵀ (m, m), Σ ω f x̃ᵀ for the columns ``free`` of x̃, Σ ω f yᵀ (m, q) with f = e(Ux̃)."""
    F = model.features(B)
    weighted = B.weigh(F)
    return weighted @ F.T, weighted @ B.X[:, free], weighted @ B.Y


def residual_squares(B: Block, model: Model) -> Sums:
    """Σ ω r², output by output, (q,)."""
    R = model.residual(B)
    return (np.einsum("ij,ij->i", B.weigh(R), R),)


def difference_squares(B: Block, one: Model, other: Model) -> Sums:
    """Σ ω (f − g)² of two models, output by output, (q,)."""
    apart = one.residual(B)
    apart -= other.residual(B)
    return (np.einsum("ij,ij->i", B.weigh(apart), apart),)


def active(B: Block, U: Array) -> Sums:
    """How many rows lie on the positive side of each u·x̃ = 0, (m,)."""
    return (np.asarray((B.hidden(U) > 0.0).sum(axis=1), dtype=np.float64),)


def sides(B: Block, U: Array) -> Sums:
    """Σ s_i s_j (m+1, m+1) of the sides s_i = ±1 of u_i·x̃ = 0 the rows lie on; the last is 1 for every row."""
    S = np.ones((len(U) + 1, len(B.X)))
    S[:-1][B.hidden(U) <= 0.0] = -1.0
    return (S @ S.T,)


def linearise(B: Block, model: Model) -> Sums:
    """Σ ω e'(z_i)(A_i·r)x̃ (m, d+1), and the slopes' Σ ω e'(z_i)e'(z_j) (m, m) and Σ ω e'(z_i) (m,)."""
    B = B._replace(kept=Kept(Z=B.hidden(model.U)))
    R = B.weigh(model.residual(B))
    D = model.slopes(B)
    weighted = B.weigh(D)
    second, first = weighted @ D.T, weighted.sum(axis=1)
    return model.pull(D, R, B.X), second, first


# In single precision OpenBLAS's kernels for AVX-512 may set the processor's "invalid" flag (seen at (379,5) times (5,))
# although all numbers that go in and come out are finite. A true NaN shows in the curvature of conjugate gradients.
@np.errstate(invalid="ignore")
def product(B: Block, model: Model, dU: Array, dA: Array, dtau: Array, free: slice) -> Sums:
    """JᵀωJ applied to k changes (dU, dA, dτ) of the model: (k, m, d+1), (k, m, q) and, of τ, the rows ``free``.

    The model changes by E = Σ_i A_i e'(z_i)(δu_i·x̃) + Σ_i δA_i e(z_i) + δτᵀx̃, with δτ zero but for those rows.
    """
    B = B.cast(model.U.dtype)
    used, parts = B.X[:, free], []
    for j in range(len(dU)):
        F, D = model.features(B), model.slopes(B)
        T = np.matmul(dU[j], B.X.T, out=scratch("T", *D.shape, dtype=D.dtype))
        T *= D
        E = B.weigh(model.A.T @ T + dA[j].T @ F + dtau[j].T @ used.T)
        FE = F @ E.T
        parts.append((model.pull(D, E, B.X), FE, used.T @ E.T))
    return _double(*(np.stack(part) for part in zip(*parts)))


@np.errstate(invalid="ignore")  # as for `product`
def product_homogeneous(B: Block, model: Model, V: Array, dtau: Array, free: slice) -> Sums:
    """Σ ω E e'(z_i)x̃ (k, m, d+1) and Σ ω E x̃ (k, free, 1) for k changes E = Σ_i e'(z_i)(v_i·x̃) + δτ·x̃ of one output.

    That is all a product needs where e(z) = e'(z) z/degree: e itself is not. V (k, m, d+1), δτ (k, free, 1).
    """
    B = B.cast(model.U.dtype)
    D, used = model.slopes(B), B.X[:, free]
    k, (m, n) = len(V), D.shape
    flat = scratch("T", k * m, n, dtype=D.dtype)
    np.matmul(V.reshape(k * m, -1), B.X.T, out=flat)
    T = flat.reshape(k, m, n)
    T *= D
    E = np.ones(m, D.dtype) @ T
    E += (used @ dtau[0, :, 0])[None] if k == 1 else dtau[:, :, 0] @ used.T
    E = B.weigh(E)
    np.multiply(D, E[:, None, :], out=T)
    return _double((flat @ B.X).reshape(k, m, -1), (E @ used)[:, :, None])


def _double(*parts: Array) -> Sums:
    """Sums over many blocks are in double precision, whatever the blocks are in."""
    return tuple(np.asarray(part, dtype=np.float64) for part in parts)


def jacobian_gram(B: Block, model: Model) -> Sums:
    """With j = (e'(z_i)x̃)_i of length m(d+1): Σ ω j jᵀ, Σ ω j fᵀ, Σ ω j x̃ᵀ."""
    F, D = model.features(B), model.slopes(B)
    J = (D.T[:, :, None] * B.X[:, None, :]).reshape(len(B.X), -1)
    weighted = J if B.weight is None else J * B.weight[:, None]
    return weighted.T @ J, weighted.T @ F.T, weighted.T @ B.X


def jacobian_gram_inside(B: Block, model: Model, Q: Array, back: Array | None = None) -> Sums:
    """The same in the coordinates Q (d+1, s), which hold the directions of the model: x̃ ↦ Qᵀx̃, u ↦ Qᵀu.

    ``back`` (s-1, m): Qᵀx̃ but for its constant is that of u·x̃ without biases, so hidden values known are enough.
    """
    U = model.U @ Q
    if back is None or B.kept.Z is None:
        X = B.X @ Q
    else:
        X = np.ones((len(B.X), Q.shape[1]))
        X[:, :-1] = (back @ (B.kept.Z - model.U[:, -1:])).T
    return jacobian_gram(B._replace(X=X, kept=Kept()), Model(model.shape, U, model.A))
