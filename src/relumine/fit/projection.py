"""Variable projection: the linear parameters are always at their best, and the step concerns the directions.

For given U the best (A, τ) solve a linear least squares problem; :func:`project` solves it, :class:`Linearisation`
gives what a Gauss–Newton step in U needs. Everything is a sum over rows (:mod:`relumine.fit.passes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg.lapack import dposv

from relumine.arrays import Array
from relumine.fit import passes
from relumine.fit.passes import Model
from relumine.fit.rows import NOTHING, Rows, Sums
from relumine.fit.sign_free import Shape
from relumine.run import Run


@dataclass(frozen=True)
class Projection:
    """The best linear parameters for given directions.

    ``model``: U (m, d+1), A (m, q) and the affine part τ = −CᵀA that goes with A (what the features bring is taken
    out); ``C`` (m, d+1): affine part of every feature, as far as the model may use it; ``G`` (m, m): Gram matrix of the
    features without that part, over Σω, with the ridge; ``squares`` (q,): Σω r² of each output; ``loss``: their sum
    plus the ridge's share. ``rows``: those it was made of, which remember their hidden values if memory allows.
    """

    model: Model
    C: Array
    G: Array
    squares: Array
    loss: float
    rows: Rows

    @property
    def U(self) -> Array:
        """Directions (m, d+1)."""
        return self.model.U

    @property
    def A(self) -> Array:
        """Output weights (m, q)."""
        return self.model.A

    @property
    def tau(self) -> Array:
        """Affine coefficients (d+1, q)."""
        return -self.C.T @ self.A

    def drop_costs(self) -> Array:
        """By how much (over Σω) the loss grows when unit i is left out and the others' weights readjust, (m,)."""
        return _drop_costs(self.G, self.A)

    def cheapest(self, most: int, allowance: float) -> list[int]:
        """Units to leave out, each the least costly after those before it, without a look at the rows.

        At most so many, at least one, and no further one that takes the growth of the loss (over Σω) beyond what is
        allowed.
        """
        h, left, out, growth = self.G @ self.A, np.arange(len(self.U)), list[int](), 0.0
        while len(out) < most:
            G = self.G[np.ix_(left, left)]
            costs = _drop_costs(G, _solve(G, h[left]) if out else self.A)
            least = int(np.argmin(costs))
            growth += float(costs[least])
            if out and growth > allowance:
                break
            out.append(int(left[least]))
            left = np.delete(left, least)
        return out


def _drop_costs(G: Array, A: Array) -> Array:
    """‖A_i‖²/(G⁻¹)_ii: what the sum of squares grows by without feature i, (m,)."""
    values, vectors = np.linalg.eigh(G)
    floor = max(1e-13 * float(values.max(initial=0.0)), np.finfo(float).tiny)  # equal units: either can go
    inverse = (vectors**2 / np.maximum(values, floor)).sum(axis=1)
    return np.asarray((A**2).sum(axis=1) / inverse)


def project(rows: Rows, shape: Shape, U: Array, ridge: float = 0.0) -> Projection:
    """Solve for (A, τ) at the directions U; ``ridge`` is relative to the mean diagonal of the Gram matrix."""
    m = len(U)
    features = Model(shape, U, np.zeros((m, rows.outputs)))
    rows = rows.remember(partial(passes.hidden, U=U), m, np.float64, 1)  # several passes need them
    G, used, h = (sums / rows.total for sums in rows.sum(partial(passes.gram, model=features, free=rows.free), m))
    C = np.zeros((m, rows.columns))
    C[:, rows.free] = used
    G -= C @ C.T
    penalty = ridge * float(np.trace(G)) / max(m, 1)
    G[np.diag_indices(m)] += penalty
    A = _solve(G, h)
    model = Model(shape, U, A, None if rows.free == NOTHING else -C.T @ A)
    (squares,) = rows.sum(partial(passes.residual_squares, model=model), m)
    loss = float(squares.sum()) + penalty * rows.total * float((A * A).sum())
    return Projection(model, C, G, squares, loss, rows)


def _only(C: Array, free: slice) -> Array:
    """The coefficients C (…, d+1) of X̃ that a model may use; the others are 0."""
    used = np.zeros_like(C)
    used[:, free] = C[:, free]
    return used


def _solve(G: Array, h: Array) -> Array:
    """G⁻¹h for a symmetric positive semidefinite G, by Cholesky, or by pseudo-inverse where G is singular.

    By LAPACK itself: the checks of cho_factor and cho_solve took a tenth of (10,5).
    """
    if not G.size:
        return np.zeros_like(h)
    _, x, failed = dposv(G, h)
    if not failed and np.isfinite(x).all():
        return np.asarray(x)
    return np.asarray(np.linalg.pinv(G, rcond=1e-13, hermitian=True) @ h)


@dataclass(frozen=True)
class Unknowns:
    """A change of directions ``U`` (m, d+1), output weights ``A`` (m, q) and affine part ``tau`` (d+1, q).

    Or several changes at once: all arrays then have one more axis, the first.
    """

    U: Array
    A: Array
    tau: Array

    def dot(self, other: Unknowns) -> float:
        """Inner product."""
        return float(np.vdot(self.U, other.U) + np.vdot(self.A, other.A) + np.vdot(self.tau, other.tau))

    def plus(self, t: float, other: Unknowns) -> Unknowns:
        """self + t·other."""
        return Unknowns(self.U + t * other.U, self.A + t * other.A, self.tau + t * other.tau)


def _several(x: Array) -> Array:
    """With the axis of several changes, if it is of one."""
    return x if x.ndim == 3 else x[None]


class Linearisation:
    """The model linearised at a projection: E = Σ_i A_i e'(z_i)(δu_i·x̃) + Σ_i δA_i e⊥(z_i) + δτᵀx̃.

    e⊥ is the feature without its affine part, so δA and δτ do not interact. Gradient and matrix are computed in double
    precision, products in ``precision``: conjugate gradients solve for a step to a tenth, and single precision, which
    takes half the time, is a millionth. A solver that takes many products asks the ``run``, if there is one, between
    them.
    """

    def __init__(
        self, rows: Rows, at: Projection, precision: DTypeLike = np.float32, *, run: Run | None = None
    ) -> None:
        self.rows, self.at, self.precision, self.run = rows, at, precision, run
        self.known = rows.knowing(at.rows)

    @cached_property
    def light(self) -> tuple[Rows, Model]:
        """Model and rows for products, with what they would compute every time."""
        model = self.at.model.cast(self.precision)
        keep, arrays = partial(passes.kept, model=model), 2 if model.shape.costly else 1
        return self.rows.remember(keep, len(model.U), self.precision, arrays, self.known), model

    @cached_property
    def _first_order(self) -> tuple[Array, Array, Array]:
        sums = self.known.sum(partial(passes.linearise, model=self.at.model), len(self.at.U))
        gradient, second, first = (part / self.rows.total for part in sums)
        if self.at.model.shape.homogeneous:
            # along u_i itself the loss does not change, A_i makes up for it; what rounding leaves there is, near the
            # end, most of the gradient, and no product of conjugate gradients removes it
            U = self.at.U
            along = np.einsum("ij,ij->i", gradient, U) / np.maximum(np.einsum("ij,ij->i", U, U), np.finfo(float).tiny)
            gradient -= along[:, None] * U
        return gradient, second, first

    @property
    def gradient(self) -> Array:
        """Half the descent direction of the loss in U, over Σω: (m, d+1). In A and τ it is zero by projection."""
        return self._first_order[0]

    @property
    def slopes(self) -> tuple[Array, Array]:
        """E[e'(z_i)e'(z_j)] (m, m) and E[e'(z_i)] (m,)."""
        return self._first_order[1:]

    @property
    def scale(self) -> Array:
        """Mean diagonal of each unit's block of the Gauss–Newton matrix, (m,): ‖A_i‖² E[e'(z_i)²]."""
        return np.asarray((self.at.A**2).sum(axis=1) * np.diag(self.slopes[0]))

    def product(self, x: Unknowns) -> Unknowns:
        """JᵀJx/Σω in one pass over the rows, for one change or for several."""
        C = self.at.C[:, self.rows.free]
        change = Unknowns(_several(x.U), _several(x.A), _several(x.tau[..., self.rows.free, :] - C.T @ x.A))
        alike = self.at.model.shape.degree is not None and self.at.A.shape[1] == 1
        U, A, tail = self._product_homogeneous(change) if alike else self._product(change)
        tau = np.zeros_like(x.tau)
        tau[..., self.rows.free, :] = tail.reshape(tau[..., self.rows.free, :].shape)
        return Unknowns(U.reshape(x.U.shape), A.reshape(x.A.shape) - C @ tau[..., self.rows.free, :], tau)

    def _product(self, x: Unknowns) -> Sums:
        """The sums over the rows, for k changes: (k, m, d+1), (k, m, q) and (k, free, q), over Σω."""
        rows, model = self.light
        dU, dA, dtau = (part.astype(self.precision) for part in (x.U, x.A, x.tau))
        part = partial(passes.product, model=model, dU=dU, dA=dA, dtau=dtau, free=rows.free)
        return tuple(sums / rows.total for sums in rows.sum(part, len(model.U), self.precision))

    def _product_homogeneous(self, x: Unknowns) -> Sums:
        """The same where e(z) = e'(z) z/degree and there is one output.

        E = Σ_i e'(z_i)(v_i·x̃) + δτ·x̃ with v_i = A_i δu_i + δA_i u_i/degree, and Σ E e(z_i) = u_i·(Σ E e'(z_i)x̃)/degree.
        """
        at, degree = self.at, self.at.model.shape.degree or 1.0
        P, tail = self._pulled(at.A * x.U + x.A / degree * at.U, x.tau)
        return at.A * P, np.einsum("ij,kij->ki", at.U, P)[:, :, None] / degree, tail

    def _pulled(self, V: Array, dtau: Array) -> Sums:
        """Σ ω E e'(z_i)x̃ (k, m, d+1) and Σ ω E x̃ (k, free, 1), over Σω, for k changes."""
        (rows, model), one = self.light, self.precision
        part = partial(passes.product_homogeneous, model=model, V=V.astype(one), dtau=dtau.astype(one), free=rows.free)
        return tuple(sums / rows.total for sums in rows.sum(part, len(model.U), one))

    def normal_matrix(self) -> Array:
        """The Gauss–Newton matrix in U with A and τ eliminated (Kaufman's approximation), (m(d+1), m(d+1)), over Σω.

        Block (i, j) is (A_i·A_j) times that of the columns e'(z_i)x̃ projected off the features and x̃.
        """
        at, (m, D) = self.at, self.at.U.shape
        sums = self.rows.sum(partial(passes.jacobian_gram, model=at.model), m * D)
        H, N, M = (part / self.rows.total for part in sums)
        M = _only(M, self.rows.free)
        N -= M @ at.C.T
        H -= M @ M.T
        H -= N @ _solve(at.G, N.T)
        H = H.reshape(m, D, m, D) * (at.A @ at.A.T)[:, None, :, None]
        return np.asarray(H.reshape(m * D, m * D))
