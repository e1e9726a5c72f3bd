"""The thresholds η₀ … η₃ of Awasthi 2021, Algorithm 4, from the errors of the tensors, and its step 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from relumine.arrays import Array
from relumine.results import InvalidInput
from relumine.tensors.jennrich import RankOneTerms
from relumine.tensors.symmetric import SymmetricTensor, packed_size

Pair = tuple[float, float]


_SAFETY = 1.15  # Gaussian noise stays below 1.15 times the formula in 99 of 100 draws (d = 3 … 10)
_SPREAD = 8.0  # how much more than its noise an ill-conditioned eigenproblem may move a direction
_FAR = 0.5  # directions further apart than this are never taken for one


@dataclass(frozen=True)
class Thresholds:
    """η₀ … η₃ of Algorithm 4, as pairs for T_{2ℓ+1} and T_{2ℓ+2}, whose errors differ.

    - ``eta0``: bound on ‖T_k − f̂_k‖_F; a tensor whose norm is below it is all noise and is not decomposed.
    - ``eta1``: singular values of flatten(T_k, ℓ, k−ℓ) above it count towards the rank.
    - ``eta2``: rank-one terms with a weight below it are dropped.
    - ``eta3``: of two directions closer than this (up to sign), one is dropped. None: judged for each pair
      from the sampling error of the two terms, since a strong unit is known much better than a weak one.

    Examples
    --------
    >>> Thresholds.from_errors(np.full(5, 0.01), d=5, order=1).updated(eta3=0.1).eta3
    0.1
    """

    eta0: Pair
    eta1: Pair
    eta2: Pair
    eta3: float | None

    @classmethod
    def exact(cls, T: Sequence[SymmetricTensor], order: int) -> Thresholds:
        """For exact tensors: everything at rounding level."""
        size = [T[k].norm for k in (2 * order + 1, 2 * order + 2)]
        # Jennrich loses up to half the digits of exact tensors; a true unit weighs far more than 1e-10 of them all
        tiny = (1e-10 * size[0], 1e-10 * size[1])
        return cls(eta0=(0.0, 0.0), eta1=tiny, eta2=tiny, eta3=1e-4)

    @classmethod
    def from_errors(cls, errors: Array, d: int, order: int) -> Thresholds:
        """From the RMS Frobenius error of each T_k.

        A p × q matrix of independent noise with Frobenius norm e has largest singular value e(1/√p + 1/√q),
        which sets η₁; a rank-one term of that size is noise as well, which sets η₂.
        """
        level: list[float] = []
        for k in (2 * order + 1, 2 * order + 2):
            p, q = packed_size(d, order), packed_size(d, k - order)
            level.append(_SAFETY * float(errors[k]) * (p**-0.5 + q**-0.5))
        both = (level[0], level[1])
        return cls((float(errors[2 * order + 1]), float(errors[2 * order + 2])), both, both, None)

    def updated(self, changes: Mapping[str, Any] | None = None, **more: Any) -> Thresholds:
        """A copy with some of eta0 … eta3 replaced; one number stands for both tensors."""
        new = {**(changes or {}), **more}
        known = {field.name for field in fields(self)}
        for name, value in new.items():
            if name not in known:
                raise InvalidInput(f"unknown threshold {name!r}; known: {', '.join(sorted(known))}")
            if value is None and name == "eta3":
                continue
            numbers = np.asarray(value, dtype=np.float64)
            if numbers.size not in ((1,) if name == "eta3" else (1, 2)) or not (numbers >= 0.0).all():
                raise InvalidInput(f"{name} must be a number ≥ 0 (or two, for T_2ℓ+1 and T_2ℓ+2), got {value!r}")
            pair = np.broadcast_to(numbers.ravel(), (2,))
            new[name] = float(pair[0]) if name == "eta3" else (float(pair[0]), float(pair[1]))
        return replace(self, **new)


def distinct_directions(found: tuple[RankOneTerms, RankOneTerms], eta: Thresholds, width: int) -> Array:
    """Step 4: drop weak terms and duplicates (also up to sign); at most ``width`` rows remain.

    The strongest terms, relative to their tensor's noise, come first, so of two duplicates the better one
    stays. With η₃ given, any two directions closer than it are one. Without, a term can only repeat one of
    the *other* tensor, each at most once, and within a multiple of what their noise can move them.
    """
    vectors = np.concatenate([t.vectors for t in found])
    origin = np.repeat([0, 1], [len(t.weights) for t in found])
    noise = np.asarray(eta.eta2)[origin]
    weights = np.abs(np.concatenate([t.weights for t in found]))
    doubt = noise / np.maximum(weights, np.finfo(float).tiny)  # about the error of the direction
    kept: list[int] = []
    single: list[int] = []  # kept terms that have not met their copy from the other tensor
    for i in np.argsort(doubt, kind="stable").tolist():
        if weights[i] <= noise[i] or len(kept) == width:
            continue
        rivals = kept if eta.eta3 is not None else [j for j in single if origin[j] != origin[i]]
        apart = np.minimum(*(np.linalg.norm(vectors[rivals] - s * vectors[i], axis=1) for s in (1.0, -1.0)))
        limit = eta.eta3 if eta.eta3 is not None else np.minimum(_FAR, _SPREAD * (doubt[rivals] + doubt[i]))
        if (apart > limit).all():
            kept.append(i)
            single.append(i)
        elif eta.eta3 is None:
            single.remove(rivals[int(apart.argmin())])
    return np.asarray(vectors[kept])
