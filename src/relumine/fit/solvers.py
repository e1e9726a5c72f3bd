"""Two ways to solve the damped Gauss–Newton system (H + λ diag(s) ⊗ I) δ = g: densely, or by conjugate gradients."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg.lapack import dposv

from relumine.arrays import Array
from relumine.fit.conjugate import conjugate_gradients
from relumine.fit.precondition import precondition
from relumine.fit.projection import Linearisation, Unknowns

_COARSEST, _FINEST = 0.1, 1e-4  # relative tolerance of a step; below the second single precision gives little
_BOTTOM = 1e-30  # relative loss that is rounding error alone
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
        _, step, failed = dposv(system.T, self.g.ravel(), overwrite_a=True)
        if failed:
            return None
        predicted = float(step @ (2.0 * self.g.ravel() - self.H @ step))
        return Solution(step.reshape(m, D), predicted, 1)


class ConjugateGradients:
    """Never form H: each product costs a few GEMMs of the size of the data."""

    def __init__(self, lin: Linearisation, tolerance: float | None = None, cap: int = 60) -> None:
        self.lin, self.tolerance, self.cap = lin, _forcing(lin) if tolerance is None else tolerance, cap

    def __call__(self, damping: Array) -> Solution | None:
        """Preconditioned conjugate gradients on the joint system in (U, A, τ)."""
        at, g = self.lin.at, self.lin.gradient
        if not np.isfinite(self.lin.slopes[0]).all():  # an activation that overflows
            return None
        if not g.any():  # no unit is on at any row: there is nowhere to go, and nothing to precondition
            return Solution(np.zeros_like(g), 0.0, 0)
        b = Unknowns(g, np.zeros_like(at.A), np.zeros((at.U.shape[1], at.A.shape[1])))
        found = conjugate_gradients(self.lin, b, damping, self.tolerance, self.cap, precondition(self.lin, damping))
        step = found.x.U
        if not np.isfinite(step).all() or not step.any():
            return None
        # the loss falls by 2 g·δ − δ·Hδ, and Hδ is what has left the residual, less the damping
        gained = 2.0 * float(np.vdot(g, step)) - found.x.dot(b.plus(-1.0, found.rest))
        return Solution(step, gained + float(damping @ (step * step).sum(axis=1)), found.products)


def _forcing(lin: Linearisation) -> float:
    """How well to solve for a step: no better than the linear model holds, and not beyond rounding error.

    At a distance δ a share δ of the rows lies on the other side of a kink, so a full step leaves δ^1.5, and √δ of the
    gradient is enough; δ² is the relative loss.
    """
    loss = max(lin.at.loss / max(lin.rows.norm2, np.finfo(float).tiny), _BOTTOM)
    return float(np.clip(max(loss**0.25, (_BOTTOM / loss) ** 0.5), _FINEST, _COARSEST))


def choose(lin: Linearisation) -> Solver:
    """Dense while forming H costs no more than the products conjugate gradients would take."""
    m, D = lin.at.U.shape
    return Dense(lin) if m * D <= _DENSE else ConjugateGradients(lin)
