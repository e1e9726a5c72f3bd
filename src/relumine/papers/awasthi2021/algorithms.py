"""Awasthi, Tang, Vijayaraghavan 2021: depth-2 ReLU networks with biases from their Hermite tensors.

Each algorithm box is one function on tensors: :func:`algorithm_1` (exact), :func:`algorithm_4` (robust),
:func:`algorithm_6` (robust, full rank) and, on samples, :func:`algorithm_5` (low error). Algorithms 2 and 3
are :func:`~relumine.papers.awasthi2021.scalars.recover_scalars` and
:func:`~relumine.papers.awasthi2021.signs.fix_signs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from relumine.arguments import whole
from relumine.arrays import Array
from relumine.data.moments import Estimator
from relumine.data.sources import Source, count
from relumine.data.views import Between, rows_of, seen
from relumine.network import Network
from relumine.papers.awasthi2021.readout import fit_readout
from relumine.papers.awasthi2021.scalars import recover_scalars
from relumine.papers.awasthi2021.signs import fix_signs
from relumine.papers.awasthi2021.subspace import estimate_in_subspace
from relumine.papers.awasthi2021.thresholds import Thresholds, distinct_directions
from relumine.results import InvalidInput
from relumine.tensors.jennrich import RankOneTerms, jennrich, singular_values
from relumine.tensors.refine import refine_terms
from relumine.tensors.symmetric import SymmetricTensor, packed_size

Rng = int | np.random.Generator | None
Tensors = Sequence[SymmetricTensor | ArrayLike]


@dataclass(frozen=True)
class UnitTable:
    """Units (w_i, b_i, a_i), one a row, and how they were found.

    ``margin`` says how safely each sign was fixed (½ is ideal); None: every (w, b) is known up to a joint
    sign only. ``terms`` are the two decompositions, of T_{2ℓ+1} and T_{2ℓ+2}.
    """

    W: Array
    b: Array
    a: Array
    terms: tuple[RankOneTerms, RankOneTerms]
    margin: Array | None = None

    @property
    def m(self) -> int:
        """How many units."""
        return int(self.W.shape[0])

    def only(self, units: list[int]) -> UnitTable:
        """The same with some of the units."""
        index = np.asarray(units, dtype=np.intp)
        margin = None if self.margin is None else self.margin[index]
        return replace(self, W=self.W[index], b=self.b[index], a=self.a[index], margin=margin)

    def network(self, T: Tensors | None = None) -> Network:
        """Σ a_i σ(w_i·x + b_i), and the affine part that matches T₀ and T₁ if they are given.

        A wrong sign of (w, b) changes f by an affine function only, so matching T₀ and T₁ makes up for it.
        """
        net = Network(self.W, self.b, self.a)
        if T is None:
            return net
        # T_k = f̂_k of the units plus f̂_k of the affine part, which is c for k = 0 and v for k = 1
        f0, f1 = (np.asarray(getattr(t, "entries", t), dtype=np.float64) for t in T[:2])
        return net.replace(v=f1.ravel() - net.hermite(1), c=f0.reshape(()) - net.hermite(0))


def algorithm_1(T: Tensors, order: int, width: int, rng: Rng = None) -> UnitTable:
    """Algorithm 1: all units from the exact f̂₀ … f̂_{2ℓ+2}; for ℓ = 1 with their signs, else up to sign.

    It is Algorithm 4 with thresholds at rounding level, and FixSigns when ℓ = 1.

    Parameters
    ----------
    T : sequence
        ``T[k]`` = f̂_k for k = 0 … 2ℓ+2, as :class:`SymmetricTensor` or dense arrays.
    order : int
        ℓ ≥ 1; the w_i^{⊗ℓ} must be linearly independent, so width ≤ C(d+ℓ−1, ℓ).
    width : int
        m.
    rng : int or Generator, optional

    Examples
    --------
    >>> from relumine import metrics, planted
    >>> truth = planted.network(d=4, m=4, rng=0)
    >>> units = algorithm_1([truth.hermite(k) for k in range(5)], order=1, width=4, rng=0)
    >>> bool(metrics.parameter_error(truth, units.network()) < 1e-10)
    True
    """
    T = as_tensors(T, order)
    run = algorithm_6 if order == 1 else algorithm_4
    return run(T, order, width, Thresholds.exact(T, order), rng)


def algorithm_4(
    T: Tensors, order: int, width: int, eta: Thresholds, rng: Rng = None, *, errors: Array | None = None
) -> UnitTable:
    """Algorithm 4: a, and (w, b) up to sign, from estimates of f̂₀ … f̂_{2ℓ+2} with thresholds η₀ … η₃.

    ``errors`` are the RMS errors of the tensors, which weigh them in the refinement between steps 4 and 5.
    """
    T, ell, rng = as_tensors(T, order), order, np.random.default_rng(rng)
    check_width(width, T[1].d, order)

    # 1–3. View T_{2ℓ+1} as flatten(ℓ, ℓ, 1), T_{2ℓ+2} as flatten(ℓ, ℓ, 2); the ranks k', k'' are the numbers
    # of singular values above η₁; decompose both.
    odd, even = (
        jennrich(T[k], ell, rank_above(T[k], ell, width, eta0, eta1), rng)
        for k, eta0, eta1 in zip((2 * ell + 1, 2 * ell + 2), eta.eta0, eta.eta1)
    )
    # 4. Drop terms below η₂ and duplicates within η₃.
    W = distinct_directions((odd, even), eta, width)
    # Not in the box: all orders share these directions, so fit them together. It removes what Jennrich's
    # eigenproblem loses (rounding or sampling error alike); T₂ has the least noise and sees every unit.
    used = T[2 : 2 * ell + 3]
    scales = None if errors is None else [noise_level(t, errors[t.order]) for t in used]
    W = refine_terms(W, used, scales)
    # 5. RecoverScalars.
    a, b = recover_scalars(W, T, ell)
    return UnitTable(W, b, a, (odd, even))


def algorithm_5(
    X: ArrayLike | Source,
    y: ArrayLike | None,
    order: int,
    width: int,
    rng: Rng = None,
    *,
    estimator: Estimator = "regressed",
    thresholds: Mapping[str, Any] | None = None,
    accuracy: float = 0.01,
) -> Network:
    """Algorithm 5: a network of at most m + 2 units with low error, whatever the biases; x ~ N(0, I).

    Units whose |b| is too large to be seen are absorbed by the affine part. X (n, d) and y (n,), or a source of
    samples and None: everything is a sum over rows, so they may be larger than memory.

    Examples
    --------
    >>> from relumine import metrics, planted
    >>> truth = planted.network(d=6, m=3, rng=1)
    >>> g = algorithm_5(*planted.sample(truth, 20_000, rng=2), order=1, width=3, rng=0)
    >>> g.m <= 5, metrics.gaussian_distance(truth, g) < 0.1
    (True, True)
    """
    rows = rows_of(X, y)
    check_width(width, rows.d, order)
    n = count(rows)
    first, second = (seen(rows, Between(*half)) for half in ((0, n // 2), (n // 2, n)))
    # 1. T₀ … T_{2ℓ+2} from the first half.
    moments = estimate_in_subspace(first, 2 * order + 2, estimator, width)
    # 2. Algorithm 4.
    eta = Thresholds.from_errors(moments.errors, len(moments.basis), order).updated(thresholds)
    units = algorithm_4(moments.tensors, order, width, eta, rng, errors=moments.errors)
    units = units.only(visible(units, n // 2))
    # 3–4. Truncated least squares on the second half.
    return fit_readout(second, units.W @ moments.basis, units.b, units.a, accuracy=accuracy).consolidate()


def visible(units: UnitTable, n: int) -> list[int]:
    """Indices of the units with |b| ≤ √(2 log n): beyond, n samples hardly ever see the kink."""
    return [i for i in range(units.m) if abs(units.b[i]) <= np.sqrt(2.0 * np.log(max(n, 2)))]


def algorithm_6(
    T: Tensors, order: int, width: int, eta: Thresholds, rng: Rng = None, *, errors: Array | None = None
) -> UnitTable:
    """Algorithm 6 (ℓ = 1, linearly independent w_i): Algorithm 4, then FixSigns with T₁."""
    if order != 1:
        raise InvalidInput(f"Algorithm 6 is for the full-rank case, order=1; got order={order}")
    T = as_tensors(T, order)
    units = algorithm_4(T, order, width, eta, rng, errors=errors)
    W, b, margin = fix_signs(units.W, units.b, units.a, T[1].entries)
    return replace(units, W=W, b=b, margin=margin)


def rank_above(T: SymmetricTensor, order: int, width: int, eta0: float, eta1: float) -> int:
    """The largest r ≤ width with s_r(flatten(T, ℓ, k−ℓ)) > η₁; 0 for a tensor that is all noise."""
    if T.norm <= eta0:
        return 0
    return int((singular_values(T, order)[:width] > eta1).sum())


def noise_level(T: SymmetricTensor, error: float) -> float:
    """Standard error of one packed entry, at least rounding level (a polynomial has no sampling error)."""
    return float(max(error / np.sqrt(T.entries.size), 1e-14 * T.norm, np.finfo(float).tiny))


def check_width(width: int, d: int, order: int) -> None:
    """Raise unless 1 ≤ width ≤ C(d+ℓ−1, ℓ), the most that order ℓ can tell apart."""
    whole("order", order, 1)
    whole("width", width, 1)
    most = packed_size(d, order)
    if width > most:
        remedy = next(ell for ell in range(order, order + 64) if packed_size(d, ell) >= width) if d > 1 else None
        raise InvalidInput(
            f"order {order} in {d} dimensions can tell at most {most} units apart, width={width} asked; "
            + (f"use order={remedy}, or method='auto'" if remedy else "use method='auto'")
        )


def as_tensors(T: Tensors, order: int) -> list[SymmetricTensor]:
    """T₀ … T_{2ℓ+2} as symmetric tensors; an error says which is missing or malformed."""
    if len(T) < 2 * order + 3:
        raise InvalidInput(f"order {order} needs the tensors of order 0 … {2 * order + 2}, got {len(T)} of them")
    first = T[1].d if isinstance(T[1], SymmetricTensor) else np.asarray(T[1]).size
    out = []
    for k, t in enumerate(T):
        if not isinstance(t, SymmetricTensor):
            if np.shape(t) != (first,) * k:
                raise InvalidInput(f"T[{k}] must have shape {(first,) * k}, got {np.shape(t)}")
            t = SymmetricTensor.from_dense(t) if k else SymmetricTensor(np.asarray(t, float).reshape(1), first, 0)
        if (t.order, t.d) != (k, first) or not np.isfinite(t.entries).all():
            raise InvalidInput(f"T[{k}] must be a finite tensor of order {k} over {first} dimensions")
        out.append(t)
    return out
