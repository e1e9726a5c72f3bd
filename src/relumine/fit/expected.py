"""The Gauss–Newton matrix of Gaussian inputs, as it is on average: a product with it does not pass over the rows.

For one output and e homogeneous of degree 1, e'(z) = α + β sign(z), a change of the model is Σ_i e'(z_i)(v_i·x̃), where
the affine part counts as a unit with e' = 1. With φ_i = e'(z_i), z_i = w_i·x + b_i and x ~ N(0, I), Stein's identity
gives

    E[φ_i φ_j x xᵀ] = c_ij I + p_ij w_i w_iᵀ + p_ji w_j w_jᵀ + q_ij (w_i w_jᵀ + w_j w_iᵀ)
    E[φ_i φ_j x]    = t_ij w_i + t_ji w_j

with c = E[φ_i φ_j], t = E[φ_i' φ_j], p = E[φ_i'' φ_j], q = E[φ_i' φ_j']: normal densities and the error function. A
product takes some m²d operations, one over the rows n m d. What it leaves to conjugate gradients is the deviation of
the sample from its mean: eigenvalues between (1 ± √(p/n))² for n rows and p parameters, whatever the weights are.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import erf, owens_t

from relumine.arrays import Array
from relumine.fit.projection import Linearisation, Projection
from relumine.fit.rows import Rows, Sums

# the least deviation of z_j given z_i, of that of z_j: two units nearer to each other than this are as far apart
_APART = 1e-3
# How far the means of products of slopes may be off, and how far by chance, over √n. Of (40,30) at 9000 rows: 0.008 for
# Gaussian inputs, 0.034 for those with t₃ tails, which took 19 products instead of 31. With weights along a tenth of
# the inputs 0.053 for t₃ and 0.14 for log-normal ones, which took 187 instead of 21 and 172 instead of 35.
_OFF, _CHANCE = 0.02, 2.0
_CENTRE = 1e-9  # of a deviation: a kink this near to the middle of the inputs counts as this far from it


class Expected(Linearisation):
    """The linearisation of another one's model, averaged over Gaussian inputs instead of its rows."""

    def __init__(self, lin: Linearisation) -> None:
        super().__init__(lin.rows, lin.at, lin.precision, run=lin.run)

    @staticmethod
    def knows(rows: Rows, at: Projection) -> bool:
        """Whether the formulas hold for this model: one output, e homogeneous of degree 1."""
        return at.model.shape.degree == 1 and rows.outputs == 1

    @cached_property
    def _coefficients(self) -> tuple[Array, Array, Array, Array, Array]:
        """W (m+1, d) and c, t, p, q (m+1, m+1); the affine part comes last, with w = 0."""
        m = len(self.at.U)
        up, down = self.at.model.shape.derivative(np.array([1.0, -1.0]))
        alpha, beta = 0.5 * (up + down), 0.5 * (up - down)
        W, b = self.at.U[:, :-1], self.at.U[:, -1]
        C = W @ W.T
        variance = np.maximum(np.diag(C), np.finfo(float).tiny)
        density = np.exp(-0.5 * b**2 / variance) / np.sqrt(2.0 * np.pi * variance)  # of z_i at 0
        # z_j given z_i = 0: its mean, its deviation, its density at 0
        pull = C / variance[:, None]
        mean = b - pull * b[:, None]
        spread = np.sqrt(np.maximum(variance - pull * C, _APART**2 * variance))
        there = np.exp(-0.5 * (mean / spread) ** 2) / (np.sqrt(2.0 * np.pi) * spread)
        side = erf(mean / (np.sqrt(2.0) * spread))
        sign = erf(b / np.sqrt(2.0 * variance))
        both = _both(b / np.sqrt(variance), mean / spread)
        there[np.diag_indices(m)], side[np.diag_indices(m)], both[np.diag_indices(m)] = 0.0, 0.0, 1.0
        c, t, p, q = (np.zeros((m + 1, m + 1)) for _ in range(4))
        c[:m, :m] = alpha**2 + alpha * beta * (sign[:, None] + sign) + beta**2 * both
        c[:m, m] = c[m, :m] = alpha + beta * sign
        c[m, m] = 1.0
        given = np.column_stack([alpha + beta * side, np.ones(m)])  # E[φ_j | z_i = 0]
        t[:m] = 2.0 * beta * density[:, None] * given
        p[:m] = -(b / variance)[:, None] * t[:m]
        p[:m, :m] -= 4.0 * beta**2 * density[:, None] * there * pull
        q[:m, :m] = 4.0 * beta**2 * density[:, None] * there
        return np.vstack([W, np.zeros((1, W.shape[1]))]), c, t, p, 0.5 * (q + q.T)

    def holds(self, second: Array) -> bool:
        """Whether E[e'(z_i)e'(z_j)] (m, m) is, on the rows, what it is for Gaussian inputs."""
        off = second - self._coefficients[1][: len(second), : len(second)]
        return bool(np.sqrt(np.mean(off**2)) <= (_OFF + _CHANCE / np.sqrt(self.rows.n)) * second.max())

    def _pulled(self, V: Array, dtau: Array) -> Sums:
        """Σ ω E e'(z_i)x̃ and Σ ω E x̃ over Σω, on average, for k changes V (k, m, d+1), δτ (k, free, 1)."""
        W, c, t, p, q = self._coefficients
        k, m, D = V.shape
        v = np.zeros((k, m + 1, D))
        v[:, :m] = V
        v[:, m, self.rows.free] = dtau[:, :, 0]
        along = W @ np.swapaxes(v[:, :, :-1], 1, 2)  # w_i·v_j
        own, constant = np.diagonal(along, axis1=1, axis2=2)[:, None, :], v[:, None, :, -1]
        P = c @ v
        to_i = (p * along + q * own + t * constant).sum(axis=2)
        P[:, :, :-1] += to_i[:, :, None] * W + (q * along + p.T * own + t.T * constant) @ W
        P[:, :, -1] += (t * along + t.T * own).sum(axis=2)
        return P[:, :m], P[:, m, self.rows.free, None]


def _both(h: Array, given: Array) -> Array:
    """E[sign(z_i) sign(z_j)] (m, m) by Owen's function; h = b/deviation (m,), given (m, m): that of z_j at z_i = 0."""
    h = np.where(np.abs(h) < _CENTRE, _CENTRE, h)
    T = owens_t(h[:, None], given / h[:, None])
    apart = np.where(h[:, None] * h < 0.0, 2.0, 0.0)
    return np.asarray(1.0 - 4.0 * (T + T.T) - apart)
