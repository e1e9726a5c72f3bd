"""What probes x can see of a vector w through Σ_k relu(w_k + x_k): the tail functions of Oymak & Asif 2018.

Definition 2.1, with G(γ) = P(X < γ):

    T(θ) = P(X ≥ θ) P(X < −θ),        S(θ) = sup_{|γ| ≤ θ} P(X ≥ γ) P(X < γ)

The paper prints P(X < −γ) in S; that product reaches P(X ≥ −θ) P(X < θ), which tends to 1 as θ grows and
contradicts the bound S ≤ 1/4 stated next to it. Lemma 3.3 needs the form used here: for u, v in [−θ, θ] the
covariance of 1[X ≥ u] and 1[X ≥ v] is P(X ≥ max(u, v)) P(X < min(u, v)), between T(θ) and S(θ).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.arrays import Array, slices
from relumine.results import InvalidInput

Probability = Callable[[float], float]
_NUMBERS = 1 << 22  # compared at once: 4 MB of answers


class Tails(NamedTuple):
    """T(θ) and S(θ) of a probe distribution, and what Theorem 3.1 makes of them.

    Examples
    --------
    >>> probe = Tails(T=0.2, S=0.25)
    >>> round(probe.step, 3), round(probe.rate, 3), probe.iterations(1e-3)
    (0.711, 0.929, 188)
    """

    T: float
    S: float

    @property
    def step(self) -> float:
        """The theorem's learning rate μ = 2T/(9S²)."""
        return 2.0 * self.T / (9.0 * self.S**2) if self.S > 0.0 else 0.0

    @property
    def rate(self) -> float:
        """The theorem's factor 1 − (T/3S)²: ‖w_τ − w*‖² shrinks at least so fast in each step."""
        return 1.0 - (self.T / (3.0 * self.S)) ** 2 if self.S > 0.0 else 1.0

    def iterations(self, accuracy: float) -> float:
        """Steps (and batches K) after which ‖w_K − w*‖ ≤ accuracy·‖w_0 − w*‖; infinite where T = 0."""
        if not 0.0 < accuracy < 1.0:
            raise InvalidInput(f"accuracy must lie strictly between 0 and 1, got {accuracy}")
        if self.rate >= 1.0:
            return math.inf
        # the paper's rate is for squared norms, hence the 2
        return math.ceil(2.0 * math.log(accuracy) / math.log(self.rate))


def tails(distribution: Any, bound: float) -> Tails:
    """T(θ), S(θ) at θ = ``bound`` of a frozen ``scipy.stats`` distribution, continuous or discrete.

    Examples
    --------
    >>> from scipy import stats
    >>> probe = tails(stats.norm(scale=5.0), bound=1.0)
    >>> round(probe.T, 4), probe.S
    (0.177, 0.25)
    >>> tails(stats.uniform(-1.0, 2.0), bound=1.0).T        # probes in [-1, 1] never leave the bound
    0.0
    """
    if not (hasattr(distribution, "cdf") and hasattr(distribution, "ppf")):
        raise InvalidInput(
            "expected a frozen scipy.stats distribution such as stats.norm(scale=5), "
            f"got {type(distribution).__name__}; for numbers use sample_tails"
        )
    atom: Probability = getattr(distribution, "pmf", None) or (lambda t: 0.0)
    below = lambda t: float(distribution.cdf(t) - atom(t))  # noqa: E731
    return _tails(below, lambda t: float(distribution.cdf(t)), float(distribution.ppf(0.5)), bound)


def sample_tails(x: ArrayLike, bound: float) -> Tails:
    """T(θ), S(θ) of the empirical distribution of the numbers in ``x`` (all entries together).

    Examples
    --------
    >>> sample_tails([-3.0, -2.0, -0.5, 0.5, 2.0, 3.0, 4.0, 5.0], bound=1.0)
    Tails(T=0.125, S=0.25)
    """
    values = np.sort(np.asarray(x, dtype=np.float64), axis=None)
    if values.size == 0 or not np.isfinite(values[[0, -1]]).all():
        raise InvalidInput("x must hold at least one number, all finite")
    below = lambda t: float(np.searchsorted(values, t, side="left")) / values.size  # noqa: E731
    at_most = lambda t: float(np.searchsorted(values, t, side="right")) / values.size  # noqa: E731
    return _tails(below, at_most, float(values[(values.size - 1) // 2]), bound)


def _tails(below: Probability, at_most: Probability, median: float, bound: float) -> Tails:
    """T and S from P(X < t), P(X ≤ t) and a median."""
    if not bound >= 0.0:
        raise InvalidInput(f"bound must be non-negative, got {bound}")
    T = (1.0 - below(bound)) * below(-bound)
    # G(1 − G) grows towards G = 1/2, which G crosses at the median: G(m) ≤ 1/2 ≤ G(m+) = P(X ≤ m)
    gamma = min(max(median, -bound), bound)
    levels = [below(gamma)] + ([at_most(median)] if -bound <= median < bound else [])
    return Tails(T, max(p * (1.0 - p) for p in levels))


def column_tails(X: NDArray[np.floating], bound: ArrayLike, rows: int | None = None) -> tuple[Array, Array]:
    """T̂_k(Θ_k) and an upper bound Ŝ_k(Θ_k) ≤ 1/4 for each column of X (n, d), in one pass over it.

    The proof of Theorem 3.1 is coordinatewise: for columns with different distributions it holds with
    min_k T_k and max_k S_k. Ŝ_k is 1/4 as soon as the median lies within ±Θ_k (exact without atoms).
    """
    theta = np.broadcast_to(np.asarray(bound, dtype=np.float64), X.shape[1:])
    low, high = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for s in slices(len(X), rows or max(1, _NUMBERS // X.shape[1])):
        low += np.count_nonzero(X[s] < -theta, axis=0)
        high += np.count_nonzero(X[s] >= theta, axis=0)
    low, high = low / X.shape[0], high / X.shape[0]
    p = np.clip(0.5, low, 1.0 - high)
    return high * low, p * (1.0 - p)
