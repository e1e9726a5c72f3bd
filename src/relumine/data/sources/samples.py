"""The door for samples: what comes in is checked once, in the user's words, before any long work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.results import InvalidInput

Array = NDArray[np.float64]

__all__ = ["Samples", "as_samples"]

_LARGE = 1e100


@dataclass(frozen=True)
class Samples:
    """Checked samples: ``X`` (n, d) and ``y`` (n,) or (n, q), float64 and finite; ``weight`` (n,), mean 1, or None.

    ``names``: of the inputs, where they have any.
    """

    X: Array
    y: Array
    weight: Array | None = None
    names: tuple[str, ...] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of inputs."""
        return int(self.X.shape[1])


def as_samples(X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Samples:
    """Check X (n, d), y (n,) or (n, q) and sample_weight (n,); errors name the argument, the place and the remedy.

    Rows of weight zero are left out, and the other weights are scaled to mean 1: they say how the noise varies.

    Examples
    --------
    >>> as_samples([[1.0, float("nan")], [0.0, 1.0]], [1.0, 2.0])
    Traceback (most recent call last):
    ...
    relumine.results.InvalidInput: X has 1 NaN or infinite value, first in row 0, column 1; drop or fill such rows
    """
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    X, y = _numbers("X", X), _numbers("y", y)
    if X.ndim != 2 or X.shape[1] == 0:
        hint = "; for one input use X.reshape(-1, 1)" if X.ndim == 1 else ""
        raise InvalidInput(f"X must have shape (n, d), one sample a row; got {X.shape}{hint}")
    if (y.ndim == 2 and y.shape[1] == 0) or y.ndim not in (1, 2):
        raise InvalidInput(f"y must have shape (n,) or (n, q); got {y.shape}")
    if X.shape[0] != y.shape[0]:
        raise InvalidInput(f"X has {X.shape[0]} rows but y has {y.shape[0]}; they must describe the same samples")
    if X.shape[0] < 2:
        raise InvalidInput(f"at least 2 samples are needed, got {X.shape[0]}")
    _finite("X", X)
    _finite("y", y)
    weight = None
    if sample_weight is not None:
        weight = _numbers("sample_weight", sample_weight)
        if weight.shape != (X.shape[0],):
            raise InvalidInput(f"sample_weight must have shape ({X.shape[0]},), one weight a row; got {weight.shape}")
        _finite("sample_weight", weight)
        if (weight < 0.0).any() or (weight > 0.0).sum() < 2:
            raise InvalidInput("sample_weight must be non-negative with at least two positive entries")
        used = weight > 0.0
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
        weight = weight / weight.max()
        weight = weight / weight.mean()
    return Samples(X, y, weight, names)


def _numbers(name: str, value: ArrayLike) -> Array:
    if hasattr(value, "toarray"):
        raise InvalidInput(f"{name} is a sparse matrix; pass {name}.toarray()")
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInput(f"{name} is a masked array; drop or fill its masked rows first")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"{name} is not a rectangular array of numbers: {error}") from None
    if array.dtype == object or array.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name} must hold real numbers, got dtype {array.dtype}; encode categories or parse strings first"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def _finite(name: str, array: Array) -> None:
    # a maximum is finite for good data: cheap passes and no n-sized mask
    largest = max(float(array.max()), -float(array.min()))
    if np.isfinite(largest):
        if largest > _LARGE or 0.0 < largest < 1.0 / _LARGE:
            raise InvalidInput(f"{name} has magnitudes around {largest:.1e}, beyond what squares can hold; rescale it")
        return
    bad = ~np.isfinite(array)
    where = np.argwhere(bad)[0]
    place = f"row {where[0]}" + (f", column {where[1]}" if array.ndim == 2 else "")
    plural = "value" if bad.sum() == 1 else "values"
    raise InvalidInput(f"{name} has {bad.sum()} NaN or infinite {plural}, first in {place}; drop or fill such rows")
