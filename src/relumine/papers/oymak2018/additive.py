"""The additive model f(x; w) = Σ_k a_k φ(w_k + x_k): one-pass sums over the rows, and iterations on them.

φ(z) = s·z + (1 − s)·max(z, 0), the leaky ReLU with slope s left of the kink (Oymak & Asif 2018: s = 0,
a = 1). With the mask M_ik = 1[w_k + x_ik ≥ 0] its Jacobian is D diag(a), D = s + (1 − s) M, so all that an
iteration needs is a sum over rows of the residual r and the mask: M'r, M'1, Σr for the gradient, M'M as well
for Gauss–Newton.

For a_k > 0, a_k φ(w_k + x_k) = φ(a_k w_k + a_k x_k): known weights are a change of units, u = a ⊙ w. The
gradient iterations run in u, where the theorem of the paper holds unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg, eigsh

from relumine.arrays import Array, slices

# Elements of one block of rows: small enough to stay in the second-level cache through the six elementwise
# operations of a gradient pass, and large enough for a GEMM where the block feeds one.
GRADIENT_BLOCK, GEMM_BLOCK = 2**16, 2**21
DENSE = 6000  # above this d the d×d normal equations give way to conjugate gradients


class Iterate(NamedTuple):
    """A point of an iteration: ``w`` (d,), the root mean square residual there, the step size or damping."""

    w: Array
    rms: float
    step: float


class Sums(NamedTuple):
    """What one pass over the rows leaves: n, M'r (d,), M'1 (d,), Σr, Σr²."""

    n: int
    Mr: Array
    M1: Array
    r: float
    rr: float


class NormalEquations(NamedTuple):
    """``G`` = J'J (d, d), ``g`` = J'r (d,), rows n, rms of r; centred: J and r without their column means."""

    G: Array
    g: Array
    n: int
    rms: float


@dataclass(frozen=True)
class Additive:
    """Rows ``X`` (n, d), labels ``y`` (n,), known weights ``a`` (d,), slope s; ``out`` marks unused rows.

    X may be a memory map: it is only ever read in blocks of rows.
    """

    X: NDArray[np.floating]
    y: Array
    a: Array
    slope: float = 0.0
    out: NDArray[np.bool_] | None = None

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return int(self.X.shape[1])

    @cached_property
    def target(self) -> Array:
        """The labels y − s·Xa (n,): the leak's linear part does not depend on w and is taken out once."""
        if self.slope == 0.0:
            return self.y
        linear = [self.X[s] @ self.a for s in slices(len(self.y), max(1, GRADIENT_BLOCK // self.d))]
        return np.asarray(self.y - self.slope * np.concatenate(linear))

    def blocks(self, w: Array, size: int = GRADIENT_BLOCK) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, r, M) for blocks of rows, reading X once; r and M are zero on rows marked ``out``.

        The arrays are reused by the next block.
        """
        rows = max(1, min(size // self.d, len(self.y)))
        Z, M = np.empty((rows, self.d)), np.empty((rows, self.d))
        a, offset = (1.0 - self.slope) * self.a, self.slope * float(self.a @ w)
        for block in slices(len(self.y), rows):
            z, mask = Z[: block.stop - block.start], M[: block.stop - block.start]
            np.add(self.X[block], w, out=z)
            np.maximum(z, 0.0, out=mask)
            r = mask @ a + (offset - self.target[block])
            np.greater_equal(z, 0.0, out=mask)
            if self.out is not None:
                unused = np.flatnonzero(self.out[block])
                r[unused], mask[unused] = 0.0, 0.0
            yield block, r, mask

    @property
    def n(self) -> int:
        """Number of rows in use."""
        return len(self.y) - (0 if self.out is None else int(np.count_nonzero(self.out)))

    def residual(self, w: Array) -> Array:
        """f(x_i; w) − y_i, (n,); zero on rows marked ``out``."""
        r = np.empty(len(self.y))
        for block, part, _ in self.blocks(w):
            r[block] = part
        return r

    def sums(self, w: Array) -> Sums:
        """All sums a gradient needs in one pass: centring takes no second, Σ(r − r̄)M = M'r − r̄ M'1."""
        S, total, squares = np.zeros((2, self.d)), 0.0, 0.0
        for _, r, M in self.blocks(w):
            S += np.stack([r, np.ones_like(r)]) @ M
            total, squares = total + float(r.sum()), squares + float(r @ r)
        return Sums(self.n, S[0], S[1], total, squares)

    def gradient(self, w: Array, centred: bool) -> tuple[Array, float, float]:
        """∇L (Eq. 3) or the centred ∇L̂ (Eq. 4) in the units u = a ⊙ w, the loss it descends, the rms of r."""
        n, Mr, M1, r, rr = self.sums(w)
        rms = float(np.sqrt(rr / n))
        if centred:
            return (1.0 - self.slope) * (Mr - (r / n) * M1) / n, max(rr - r * r / n, 0.0) / (2 * n), rms
        return (self.slope * r + (1.0 - self.slope) * Mr) / n, rr / (2 * n), rms

    def normal_equations(self, w: Array, centred: bool = False) -> NormalEquations:
        """J'J and J'r in one pass; M'M is an exact single precision GEMM: a block's counts stay below 2²⁴."""
        d, s = self.d, self.slope
        MM, Mr, M1, total, squares = np.zeros((d, d)), np.zeros(d), np.zeros(d), 0.0, 0.0
        for _, r, M in self.blocks(w, max(GEMM_BLOCK, 256 * d)):
            half = M.astype(np.float32)
            MM += half.T @ half
            Mr += r @ M
            M1 += M.sum(axis=0)
            total, squares = total + float(r.sum()), squares + float(r @ r)
        n = self.n
        if centred:
            DD, Dr = (1.0 - s) ** 2 * (MM - np.outer(M1, M1) / n), (1.0 - s) * (Mr - (total / n) * M1)
        else:
            DD = (1.0 - s) ** 2 * MM
            if s != 0.0:
                DD += s * (1.0 - s) * (M1[:, None] + M1) + s * s * n
            Dr = s * total + (1.0 - s) * Mr
        return NormalEquations(self.a[:, None] * DD * self.a, self.a * Dr, n, float(np.sqrt(squares / n)))

    def curvature(self, w: Array, centred: bool) -> LinearOperator:
        """The map v ↦ D'Dv/n (D centred by columns if asked), one pass over X for each product."""
        s, n = self.slope, self.n

        def product(v: Array) -> Array:
            v = v.ravel()
            out, mean, M1 = np.zeros(self.d), 0.0, np.zeros(self.d)
            for block, _, M in self.blocks(w):
                t = (1.0 - s) * (M @ v) + (0.0 if centred else s * float(v.sum()))
                if self.out is not None:
                    t[self.out[block]] = 0.0
                out += t @ M
                M1 += M.sum(axis=0) if centred else 0.0
                mean += float(t.sum()) / n
            tail = -mean * M1 / n if centred else s * mean / (1.0 - s)
            return np.asarray((1.0 - s) * (out / n + tail))

        return LinearOperator(shape=(self.d, self.d), matvec=product, dtype=np.float64)


def largest_eigenvalue(problem: Additive, w: Array, centred: bool) -> float:
    """λ_max of D'D/n at w to about one per cent; gradient descent with a fixed step μ needs μ < 2/λ_max."""
    operator = problem.curvature(w, centred)
    start = np.random.default_rng(0).standard_normal(problem.d)
    if not operator.matvec(start).any():  # no mask ever switches, and eigsh refuses a zero matrix
        return 0.0
    if problem.d < 3:  # eigsh wants k < d; the trace bounds the eigenvalue from above, which is the safe side
        return float(sum(operator.matvec(e)[k] for k, e in enumerate(np.eye(problem.d))))
    return float(eigsh(operator, k=1, which="LA", tol=1e-2, v0=start, return_eigenvectors=False)[0])


def descend(
    batches: list[Additive], w: Array, bound: Array, step: float, centred: bool, safeguard: bool = False
) -> Iterator[Iterate]:
    """Iterate w ← P_Θ(w − μ ∇L̂_τ(w)) of Theorem 3.1, or with the plain gradient of Eq. (3).

    Batch τ serves step τ, cyclically. With ``safeguard`` (one batch) a step that raises the loss is taken
    back and halved; that costs nothing extra, as each pass yields the loss along with the gradient.
    """
    a, mu, last = batches[0].a, step, None  # last: point, gradient and loss before the step
    tau = 0
    while True:
        g, loss, rms = batches[tau % len(batches)].gradient(w, centred)
        if safeguard and last is not None and loss > last[2] * (1.0 + 1e-9) and mu > 1e-6 * step:
            mu /= 2.0
            w, g = last[0], last[1]
        else:
            yield Iterate(w, rms, mu)
            last = (w, g, loss)
            tau += 1
        w = np.clip(w - mu * g / a, -bound, bound)  # g is the gradient in u = a ⊙ w


def gauss_newton(
    problem: Additive, w: Array, bound: Array, damping: float = 1e-3, tries: int = 12
) -> Iterator[Iterate]:
    """Damped Gauss–Newton on Eq. (2), clipped to ±Θ: (J'J + λ δ̄ I) Δ = −J'r, δ̄ the mean of diag J'J.

    λ falls tenfold after a success and rises eightfold after a failure; once a step has failed, coordinates
    at ±Θ whose gradient points outwards rest. Ends when ``tries`` dampings in a row do not lower the loss, or
    two steps in a row lower Σr² by less than a fiftieth of the noise variance that is left.
    """
    lam, slow = damping, 0
    equations = _Step(problem, w)
    yield Iterate(w, equations.rms, lam)
    while True:
        for attempt in range(tries):
            candidate = np.clip(w + equations.solve(lam, bound, rest=attempt > 0), -bound, bound)
            rms = _rms(problem, candidate)
            if rms < equations.rms:
                break
            lam = 8.0 * max(lam, 1e-8)
        else:
            return
        # 0.01/n of the rms is 0.02 rms² of Σr²: a fiftieth of what one more free parameter would take away by chance
        slow = slow + 1 if equations.rms - rms < 0.01 / problem.n * rms else 0
        w, lam = candidate, lam / 10.0
        equations = _Step(problem, w)
        yield Iterate(w, equations.rms, lam)
        if slow == 2:
            return


def _rms(problem: Additive, w: Array) -> float:
    return float(np.sqrt(sum(float(r @ r) for _, r, _ in problem.blocks(w)) / problem.n))


class _Step:
    """The Gauss–Newton system at one point: Cholesky, or matrix-free conjugate gradients for large d."""

    def __init__(self, problem: Additive, w: Array) -> None:
        self.problem, self.w = problem, w
        if problem.d <= DENSE:
            self.G, self.g, _, self.rms = problem.normal_equations(w)
            self.mean = float(np.trace(self.G)) / problem.d
        else:
            g, _, self.rms = problem.gradient(w, centred=False)
            self.g = problem.n * problem.a * g
            self.mean = float(problem.n * np.mean(problem.a**2)) / 2.0

    def solve(self, lam: float, bound: Array, rest: bool) -> Array:
        w = self.w
        # the step goes along −g: with g < 0 a coordinate at +Θ wants to leave the box
        outward = np.where(self.g < 0.0, w >= bound, w <= -bound)
        resting = outward & rest
        free, delta = np.flatnonzero(~resting), np.zeros_like(w)
        if free.size == 0 or self.mean == 0.0:
            return delta
        shift = lam * self.mean
        if self.problem.d > DENSE:
            delta[free] = self._conjugate_gradients(free, shift)
            return delta
        A = self.G[np.ix_(free, free)] if free.size < w.size else self.G.copy()
        A[np.diag_indices_from(A)] += max(shift, 1e-13 * self.mean)
        try:
            delta[free] = -cho_solve(cho_factor(A, lower=True, overwrite_a=True, check_finite=False), self.g[free])
        except LinAlgError:  # singular J and hardly any damping: the caller raises λ and comes back
            return delta
        return delta

    def _conjugate_gradients(self, free: NDArray[np.intp], shift: float) -> Array:
        problem, a = self.problem, self.problem.a
        curvature = problem.curvature(self.w, centred=False)

        def product(v: Array) -> Array:
            full = np.zeros(problem.d)
            full[free] = v.ravel()
            return np.asarray((problem.n * a * curvature.matvec(a * full))[free] + shift * v.ravel())

        operator = LinearOperator(shape=(free.size, free.size), matvec=product, dtype=np.float64)
        solution, _ = cg(operator, -self.g[free], rtol=1e-6, maxiter=300)
        return np.asarray(solution)
