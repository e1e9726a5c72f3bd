"""Hermite tensors from samples: one-pass, mergeable sums and three estimators of T_k = E[y He_k(x)], x ~ N(0, I).

With h_α the orthonormal Hermite features of x (rows of Φ, one column a sample):

- ``plain``: (1/n) Σ y He_k(x), the paper's Eq. (6). Order k ≤ 2h comes from the one GEMM Φ_h diag(y) Φ_hᵀ.
- ``debiased``: the plain estimator of y − g(x), plus the tensors of g, a polynomial of degree ≤ h fitted
  first. Same expectation, and the variance of what g explains is gone. The same GEMM.
- ``regressed``: least squares of y on all features of degree ≤ K; only what degree > K cannot explain is
  noise. Needs the C(d+K, K)-square Gram matrix ΦΦᵀ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import factorial
from os import PathLike
from typing import Literal, Self, get_args

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from relumine.arguments import one_of
from relumine.arrays import Array, slices
from relumine.data.moment_files import check_parts, load_sums, save_sums
from relumine.data.sources.chunks import Chunk, Source
from relumine.data.sources.samples import Samples
from relumine.results import InvalidInput, ModelFileError
from relumine.tensors.hermite import (
    feature_count,
    feature_slices,
    hermite_features,
    product_tensor,
    squared_norms,
)
from relumine.tensors.symmetric import SymmetricTensor

Estimator = Literal["plain", "debiased", "regressed"]


_CHUNK_NUMBERS = 1 << 20  # features held at once: 8 MB keep the GEMM at full speed, more do not make it faster
_ERROR_NUMBERS = 1 << 22  # features looked at for the errors: 32 MB, rows enough for errors good to a few percent
_MEMORY = 2 << 30  # bytes that the sums may take: 16 384 features, beyond which one GEMM takes minutes as well


@dataclass(frozen=True)
class MomentEstimate:
    """Estimated tensors T₀ … T_K, their RMS Frobenius errors, and what a polynomial could not explain.

    ``residual`` is the variance of y left after the polynomial that was fitted (plain fits none: NaN).
    """

    tensors: list[SymmetricTensor]
    errors: Array
    residual: float
    n: int
    estimator: Estimator


class MomentSums:
    """Sums over rows from which T₀ … T_K follow; ``+`` merges, so chunks, files and machines all do.

    Parameters
    ----------
    d : int
        Number of inputs.
    order : int
        K, the highest order wanted.
    estimator : {"plain", "debiased", "regressed"}
    baseline : (C(d+h, h),) array, optional
        For ``debiased``: coefficients of g in the orthonormal Hermite basis of degree ≤ h = ⌈K/2⌉, as
        :meth:`coefficients` of a regressed sum of order h gives them. Sums merge only if they share it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)); y = X[:, 0] * X[:, 1] + 5.0
    >>> halves = [MomentSums(3, 2, "regressed").add(X[r], y[r]) for r in (slice(0, 900), slice(900, None))]
    >>> T = (halves[0] + halves[1]).estimate().tensors
    >>> T[2].dense().round(6) + 0.0
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """

    def __init__(self, d: int, order: int, estimator: Estimator = "regressed", baseline: Array | None = None) -> None:
        one_of("estimator", estimator, get_args(Estimator))
        if d < 1 or order < 0:
            raise InvalidInput(f"moments need d ≥ 1 inputs and order ≥ 0, got d={d}, order={order}")
        self.d, self.order, self.estimator = d, order, estimator
        self.degree = _degree(order, estimator)
        size = features_needed(d, order, estimator)
        if (baseline is not None) != (estimator == "debiased"):
            raise InvalidInput("the debiased estimator, and no other, needs a baseline polynomial")
        if baseline is not None and baseline.shape != (size,):
            raise InvalidInput(f"the baseline must have shape ({size},), got {baseline.shape}")
        self.baseline = baseline
        self.n = 0
        self.squares = 0.0  # Σ r²
        self.second = np.zeros(order + 1)  # Σ r² ‖He_k(x)‖²
        self.cross = np.zeros(size)  # Σ r h(x)
        # regressed: Σ h hᵀ; otherwise Σ r h hᵀ
        self.matrix = np.zeros((size, size))

    def add(self, X: Array, y: Array) -> Self:
        """Add rows X (n, d), y (n,); memory does not grow with n. Returns itself."""
        if X.ndim != 2 or X.shape[1] != self.d or y.shape != X.shape[:1]:
            raise InvalidInput(f"expected X (n, {self.d}) and y (n,), got {X.shape} and {y.shape}")
        size = self.cross.size
        step = min(max(_CHUNK_NUMBERS // size, 256), max(len(X), 1))
        features, weighted = np.empty((2, size, step))
        for rows in slices(len(X), step):
            count = rows.stop - rows.start
            self._add_chunk(X[rows], y[rows], features[:, :count], weighted[:, :count])
        self.n += len(X)
        return self

    def _add_chunk(self, X: Array, y: Array, F: Array, weighted: Array) -> None:
        hermite_features(X, self.degree, out=F)
        r = y if self.baseline is None else y - self.baseline @ F
        self.squares += float(r @ r)
        self.second += squared_norms(X, self.order) @ (r * r)
        self.cross += F @ r
        if self.estimator == "regressed":
            self.matrix += F @ F.T
        else:
            np.multiply(F, r, out=weighted)
            self.matrix += weighted @ F.T

    def __add__(self, other: MomentSums) -> MomentSums:
        key = (self.d, self.order, self.estimator)
        if key != (other.d, other.order, other.estimator) or not _same(self.baseline, other.baseline):
            raise InvalidInput("moment sums merge only if d, order, estimator and baseline are the same")
        return self.with_parts(tuple(a + b for a, b in zip(self.parts(), other.parts())))

    def parts(self) -> tuple[Array, ...]:
        """The sums as arrays: n, Σr², Σr²‖He_k‖², Σrh and the matrix; what adds up and what a file holds."""
        return np.array(float(self.n)), np.array(self.squares), self.second, self.cross, self.matrix

    def with_parts(self, parts: tuple[Array, ...]) -> MomentSums:
        """Sums of the same kind with these :meth:`parts`."""
        sums = MomentSums(self.d, self.order, self.estimator, self.baseline)
        n, squares, sums.second, sums.cross, sums.matrix = parts
        sums.n, sums.squares = int(n), float(squares)
        return sums

    def save(self, path: str | PathLike[str]) -> None:
        """Write a safetensors file, atomically; :meth:`load` and ``+`` take up the sums on another day or machine."""
        save_sums(path, self)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> MomentSums:
        """Read a file written by :meth:`save`. Executes nothing; a damaged or foreign file is a clear error."""
        settings, parts, baseline = load_sums(path)
        try:
            return cls(*settings, baseline).with_parts(check_parts(cls(*settings, baseline), parts))
        except ValueError as error:
            raise ModelFileError(f"{path} does not hold valid moment sums: {error}") from error

    def coefficients(self) -> Array:
        """Least-squares coefficients of y in the orthonormal Hermite basis of degree ≤ K (regressed only)."""
        return self._regression()[0]

    def estimate(self) -> MomentEstimate:
        """T₀ … T_K with their estimated RMS Frobenius errors."""
        if self.n < 2:
            raise InvalidInput(f"no moments from {self.n} samples; add at least 2")
        return self._regressed() if self.estimator == "regressed" else self._averaged()

    def robust_errors(self, samples: Iterable[tuple[Array, Array]]) -> Array:
        """Errors of the regressed T_k from the residuals of some rows, in pieces; :meth:`estimate` uses their mean.

        What degree > K leaves over is larger where the features are, so the error is larger than that of
        equal residuals: Σ_n A_α(n)² r_n²/(1−h_n)² with A = (ΦΦᵀ)⁻¹Φ and h_n the leverage (HC3), scaled up to
        all rows.
        """
        beta, factor, _ = self._regression()
        variances, seen = np.zeros(beta.size), 0
        for X, y in samples:
            F = hermite_features(X, self.order)
            A = cho_solve(factor, F)
            leverage = np.einsum("an,an->n", A, F)
            # a row of leverage 1 is fitted whatever its label: its residual says nothing, and must not divide by zero
            variances += (A * A) @ ((y - beta @ F) / np.maximum(1.0 - leverage, 1e-3)) ** 2
            seen += len(X)
        variances *= self.n / seen
        parts = feature_slices(self.d, self.order)
        return np.array([np.sqrt(factorial(k) * variances[part].sum()) for k, part in enumerate(parts)])

    def _regression(self) -> tuple[Array, tuple[Array, bool], float]:
        """Coefficients, the Cholesky factor of ΦΦᵀ, and the residual variance."""
        size = self.cross.size
        if self.n <= size:
            raise InvalidInput(
                f"{self.n} samples cannot determine the {size} Hermite coefficients of degree ≤ {self.order} "
                f"in {self.d} dimensions; collect more than {size} (better {3 * size}), lower the order, "
                "reduce the dimension first (relumine.papers.awasthi2021.estimate_in_subspace), "
                "or use estimator='debiased'"
            )
        try:
            factor = cho_factor(self.matrix, lower=True)
        except LinAlgError:
            raise InvalidInput(
                "the Hermite features are linearly dependent on these samples (repeated rows, discrete "
                "inputs or too few samples); use estimator='debiased' or collect more"
            ) from None
        beta = cho_solve(factor, self.cross)
        variance = max(self.squares - float(beta @ self.cross), 0.0) / (self.n - size)
        return np.asarray(beta), factor, variance

    def _regressed(self) -> MomentEstimate:
        beta, factor, variance = self._regression()
        spread = np.diag(cho_solve(factor, np.eye(beta.size)))
        tensors, errors = [], np.zeros(self.order + 1)
        for k, part in enumerate(feature_slices(self.d, self.order)):
            tensors.append(SymmetricTensor(np.sqrt(factorial(k)) * beta[part], self.d, k))
            errors[k] = np.sqrt(factorial(k) * variance * spread[part].sum())
        return MomentEstimate(tensors, errors, variance, self.n, self.estimator)

    def _averaged(self) -> MomentEstimate:
        """Eq. (6): order ≤ h from the features, order a + b from the products of degrees a and b."""
        parts = feature_slices(self.d, self.degree)
        tensors: list[SymmetricTensor] = []
        for k in range(self.order + 1):
            if k <= self.degree:
                entries = np.sqrt(factorial(k)) * self.cross[parts[k]] / self.n
                tensors.append(SymmetricTensor(entries, self.d, k))
            else:
                a, b = self.degree, k - self.degree
                tensors.append(product_tensor(self.matrix[parts[a], parts[b]] / self.n, a, b, tensors))
        norms = np.array([T.norm for T in tensors])
        errors = np.sqrt(np.maximum(self.second / self.n - norms**2, 0.0) / self.n)
        residual = float("nan")
        if self.baseline is not None:
            residual = self.squares / self.n
            for k, part in enumerate(parts):
                lift = np.sqrt(factorial(k)) * self.baseline[part]
                tensors[k] = tensors[k] + SymmetricTensor(lift, self.d, k)
        return MomentEstimate(tensors, errors, residual, self.n, self.estimator)


def sums_of(
    rows: Source, order: int, estimator: Estimator = "regressed", *, baseline: Array | None = None
) -> MomentSums:
    """The sums over all rows of a source, in one pass (debiased without a ``baseline``: one more, to fit it).

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)); y = X[:, 0] * X[:, 1]
    >>> chunked = sums_of(open_source(X, y, chunk=7), 2)
    >>> np.allclose(chunked.matrix, MomentSums(3, 2).add(X, y).matrix, rtol=1e-12)
    True
    """
    if rows.q != 1:
        raise InvalidInput(
            f"moments are of one output; {rows.label} has {rows.q}",
            argument="target",
            remedy="choose one target column",
        )
    if estimator == "debiased" and baseline is None:
        if rows.passes is not None:
            raise InvalidInput(
                f"estimator='debiased' passes twice over the rows, and {rows.label} can be read once",
                argument="estimator",
                remedy="use 'regressed' or 'plain', or data that can be read again",
            )
        baseline = sums_of(rows, (order + 1) // 2, "regressed").coefficients()
    empty = MomentSums(rows.d, order, estimator, baseline)
    return empty.with_parts(rows.reduce(partial(_part, kind=(rows.d, order, estimator, baseline))))


def _part(chunk: Chunk, kind: tuple[int, int, Estimator, Array | None]) -> tuple[Array, ...]:
    if chunk.weight is not None:
        raise InvalidInput("moments do not take weights", argument="sample_weight", remedy="leave it out")
    return MomentSums(*kind).add(np.asarray(chunk.X, dtype=np.float64), chunk.Y[:, 0]).parts()


def estimate_from(rows: Source, order: int, estimator: Estimator = "regressed") -> MomentEstimate:
    """T₀ … T_K of a source whose inputs are standard normal, or are seen so (:mod:`relumine.data.views`).

    Examples
    --------
    >>> from relumine.data.sources import open_source
    >>> from relumine.data.views import Projected, Whitened, seen
    >>> from relumine.data.whiten import whitening_of
    >>> X = np.random.default_rng(0).normal(size=(4000, 3)) + 7.0
    >>> source = open_source(X, (X[:, 2] - 7.0) ** 2)
    >>> rows = seen(source, Whitened(whitening_of(source)[0]), Projected(np.eye(3)[2:]))
    >>> bool(abs(estimate_from(rows, 2).tensors[2].dense()[0, 0] - 2.0) < 0.1)
    True
    """
    sums = sums_of(rows, order, estimator)
    estimate = sums.estimate()
    if estimator != "regressed":
        return estimate
    return replace(estimate, errors=sums.robust_errors(_first_rows(rows, sums.cross.size)))


def _first_rows(rows: Source, features: int) -> Iterator[tuple[Array, Array]]:
    """The first rows, enough to estimate the errors of so many features; one piece of them is in memory at a time."""
    left, step = max(256, _ERROR_NUMBERS // features), max(256, _CHUNK_NUMBERS // features)
    for chunk in rows.chunks() if rows.passes is None else [rows.head(left)]:  # of a generator, those it kept
        X, y = np.asarray(chunk.X[:left], dtype=np.float64), chunk.Y[:left, 0]
        yield from ((X[s], y[s]) for s in slices(len(y), step))
        left -= len(y)
        if left <= 0:
            return


def estimate_tensors(X: Array, y: Array, order: int, estimator: Estimator = "regressed") -> MomentEstimate:
    """T₀ … T_K of samples in memory, X (n, d) and y (n,), whose inputs are standard normal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2)); y = np.maximum(X[:, 0], 0.0)
    >>> errors = {e: estimate_tensors(X, y, 4, e).errors[4] for e in ("plain", "debiased", "regressed")}
    >>> bool(errors["plain"] > 2 * errors["debiased"] and errors["plain"] > 2 * errors["regressed"])
    True
    """
    return estimate_from(Samples(X, y), order, estimator)


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def features_needed(d: int, order: int, estimator: Estimator) -> int:
    """How many features the estimator sums over; an error where their matrix does not fit in memory.

    Examples
    --------
    >>> features_needed(30, 4, "plain"), features_needed(10, 4, "regressed")
    (496, 1001)
    """
    size = feature_count(d, _degree(order, estimator))
    if 8 * size * size <= _MEMORY:
        return size
    remedy = ", or use estimator='debiased'" if estimator == "regressed" else ""
    raise InvalidInput(
        f"order {order} in {d} dimensions has {size} Hermite features for estimator={estimator!r}; their "
        f"{8 * size * size / 2**30:.0f} GB matrix is more than {_MEMORY / 2**30:.0f} GB. "
        "Reduce the dimension first (relumine.papers.awasthi2021.estimate_in_subspace, for a width below d)"
        f"{remedy}"
    )


def _degree(order: int, estimator: Estimator) -> int:
    return order if estimator == "regressed" else (order + 1) // 2
