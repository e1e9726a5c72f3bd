"""Where the queries fall: Gaussian, uniform in a box, or as the user draws them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.results import InvalidInput

Array = NDArray[np.float64]
Sampler = Callable[[np.random.Generator, int], ArrayLike]

__all__ = ["Sampler", "make_sampler"]


def make_sampler(
    d: int,
    mean: ArrayLike | None,
    scale: ArrayLike | None,
    low: ArrayLike | None,
    high: ArrayLike | None,
    sampler: Sampler | None,
) -> Callable[[np.random.Generator, int], Array]:
    """A function (rng, n) → (n, d) from what the user gave: mean and scale, or low and high, or a function."""
    ranged, gaussian = low is not None or high is not None, mean is not None or scale is not None
    if ranged + gaussian + (sampler is not None) > 1:
        raise InvalidInput("give mean and scale, or low and high, or a sampler; not several of them")
    if sampler is not None:
        return lambda rng, n: _checked(sampler(rng, n), n, d)
    if ranged:
        if low is None or high is None:
            raise InvalidInput("a range needs both low and high")
        below, above = _vector("low", low, d), _vector("high", high, d)
        if not (below < above).all():
            raise InvalidInput(f"low must be below high; it is not for input {int(np.argmin(below < above))}")
        return lambda rng, n: rng.uniform(below, above, size=(n, d))
    centre = _vector("mean", 0.0 if mean is None else mean, d)
    spread = _vector("scale", 1.0 if scale is None else scale, d)
    if not (spread > 0.0).all():
        raise InvalidInput("scale must be positive for every input: an input that does not vary shows nothing")
    return lambda rng, n: centre + spread * rng.normal(size=(n, d))


def _vector(name: str, value: ArrayLike, d: int) -> Array:
    try:
        vector = np.broadcast_to(np.asarray(value, dtype=np.float64), (d,))
    except ValueError:
        raise InvalidInput(f"{name} must be a number or {d} numbers, got {value!r}") from None
    if not np.isfinite(vector).all():
        raise InvalidInput(f"{name} must be finite")
    return vector


def _checked(value: ArrayLike, n: int, d: int) -> Array:
    X = np.asarray(value, dtype=np.float64)
    if X.shape != (n, d) or not np.isfinite(X).all():
        raise InvalidInput(f"the sampler was asked for ({n}, {d}) finite numbers and gave shape {X.shape}")
    return X
