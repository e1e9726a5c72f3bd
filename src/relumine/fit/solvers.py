"""Two ways to solve the damped Gauss–Newton system (H + λ diag(s) ⊗ I) δ = g: densely, or by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotrs

from relumine.fit.projection import Linearisation, Unknowns
from relumine.fit.rows import NOTHING

Array = NDArray[np.float64]

__all__ = ["ConjugateGradients", "Dense", "Solution", "Solver", "choose"]

_DENSE = 250  # unknowns m(d+1) up to which H is formed: (10, 20) and smaller


class Solution(NamedTuple):
    """A step δ (m, d+1), the decrease of the loss it predicts (over Σω), and the products it took."""

    step: Array
    predicted: float
    products: int


class Solver(Protocol):
    """Solve for a step at one linearisation; called again with more damping when the step was no good."""

    def __call__(self, damping: Array) -> Solution | None:
        """δ for the given damping per unit, (m,); None where the system cannot be solved."""


class Dense:
    """Form H once per linearisation, factor it for each damping."""

    def __init__(self, lin: Linearisation) -> None:
        self.H = lin.normal_matrix()
        self.g = lin.gradient

    def __call__(self, damping: Array) -> Solution | None:
        """Cholesky solve."""
        m, D = self.g.shape
        system = self.H.copy()
        system[np.diag_indices(m * D)] += np.repeat(damping, D)
        try:
            step = cho_solve(cho_factor(system, overwrite_a=True, check_finite=False), self.g.ravel())
        except LinAlgError:
            return None
        predicted = float(step @ (2.0 * self.g.ravel() - self.H @ step))
        return Solution(step.reshape(m, D), predicted, 1)


class ConjugateGradients:
    """Never form H: each product costs a few GEMMs of the size of the data.

    For white x̃ the matrix is nearly a Kronecker product, so K ⊗ I with K from E[e'(z_i)e'(z_j)] is a good
    preconditioner; the affine part joins as q more "units" with slope 1, and A has its Gram matrix.
    """

    def __init__(self, lin: Linearisation, tolerance: float = 0.1, cap: int = 60) -> None:
        self.lin, self.tolerance, self.cap = lin, tolerance, cap

    def _preconditioner(self, damping: Array) -> Callable[[Unknowns], Unknowns]:
        at, free = self.lin.at, self.lin.rows.free
        second, first = self.lin.slopes
        m, q = at.A.shape
        K = np.zeros((m + q, m + q))
        K[:m, :m] = second * (at.A @ at.A.T) + np.diag(damping)
        K[m:, m:] = np.eye(q)
        if free != NOTHING:
            K[:m, m:] = first[:, None] * at.A
            K[m:, :m] = K[:m, m:].T
        # a shift far below anything that matters keeps K positive definite in spite of rounding
        K[np.diag_indices(m)] += 1e-12 * np.trace(K[:m, :m]) / m
        factor, gram = cho_factor(K), cho_factor(at.G + 1e-12 * np.trace(at.G) / m * np.eye(m))

        def apply(x: Unknowns) -> Unknowns:
            # LAPACK itself: for small systems the checks of cho_solve take longer than the product over the rows
            stacked = dpotrs(factor[0], np.concatenate([x.U, x.tau.T]), lower=factor[1])[0]
            tau = np.zeros_like(x.tau)
            tau[free] = stacked[m:].T[free]
            return Unknowns(stacked[:m], dpotrs(gram[0], x.A, lower=gram[1])[0], tau)

        return apply

    def __call__(self, damping: Array) -> Solution | None:
        """Preconditioned conjugate gradients on the joint system in (U, A, τ)."""
        at, g = self.lin.at, self.lin.gradient
        if not np.isfinite(self.lin.slopes[0]).all():  # an activation that overflows
            return None
        apply = self._preconditioner(damping)
        zero = Unknowns(np.zeros_like(at.U), np.zeros_like(at.A), np.zeros((at.U.shape[1], at.A.shape[1])))
        x, r = zero, Unknowns(g, zero.A, zero.tau)
        z = apply(r)
        p, rz = z, r.dot(z)
        target = self.tolerance**2 * rz
        Hx, count = zero, 0
        while count < self.cap and not (self.lin.run is not None and self.lin.run.over):
            count += 1
            Hp = self.lin.product(p)
            full = Unknowns(Hp.U + damping[:, None] * p.U, Hp.A, Hp.tau)
            curvature = p.dot(full)
            if not np.isfinite(curvature) or curvature <= 0.0:
                break
            t = rz / curvature
            x, r, Hx = x.plus(t, p), r.plus(-t, full), Hx.plus(t, Hp)
            z = apply(r)
            rz, previous = r.dot(z), rz
            if rz <= target:
                break
            p = z.plus(rz / previous, p)
        if not np.isfinite(x.U).all() or not x.U.any():
            return None
        predicted = 2.0 * float(np.vdot(g, x.U)) - x.dot(Hx)
        return Solution(x.U, predicted, count)


def choose(lin: Linearisation) -> Solver:
    """Dense while forming H costs no more than the products conjugate gradients would take."""
    m, D = lin.at.U.shape
    return Dense(lin) if m * D <= _DENSE else ConjugateGradients(lin)
