"""The planes of the first layer's units, measured again from kinks all over them: later layers need the digits."""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import Asked
from relumine.extraction.deep.surfaces.surface import bends

_SPARE = 5  # kinks more than a plane of d inputs needs; others near by hide one in ten
# How far to each side a kink is looked for, planes being known to six digits or more: the less, the less often there is
# another one, and the fewer digits are left of weak ones.
_WINDOWS = (1e-5, 1e-4, 1e-3)
_FLAT = 1e-8  # smallest over second smallest singular value of places on one plane: measured 1e-13, of weak ones 1e-10


def sharpened(ask: Asked, V: Array, c: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Planes V (m, d), c (m,) with rows of length one, by d + 5 kinks each: five rows a kink.

    A normal measured at one kink may have lost half of its digits where another kink is near: in acasxu one of fifty
    was off by 7e-7. One that is not confirmed by its kinks is left as it is.
    """
    V, c = V.copy(), c.copy()
    left, (_, d) = np.arange(len(c)), V.shape
    for n, window in zip((d + _SPARE) * np.array([1, 2, 4]), _WINDOWS):  # more where many are hidden
        X = rng.normal(size=(len(left), n, d)) * 2.0 ** rng.uniform(-1.0, 1.5, size=(len(left), n, 1))
        X -= (np.einsum("mnd,md->mn", X, V[left]) + c[left, None])[..., None] * V[left, None, :]
        found = bends(ask, list(X.reshape(-1, d)), list(np.repeat(window * V[left], n, axis=0)))
        for k, i in enumerate(left):
            plane = _plane(np.array([x for x in found[n * k : n * (k + 1)] if x is not None]).reshape(-1, d))
            if plane is not None:
                V[i] = plane[0] * np.sign(plane[0] @ V[i])
                c[i] = -float(V[i] @ plane[1])
                left = left[left != i]
        if not len(left):
            break
    return V, c


def _plane(X: Array) -> tuple[Array, Array] | None:
    """The normal of a plane through the rows of X and a point on it; the one that fits least may be another unit's."""
    for _ in range(2):
        if len(X) < X.shape[1] + 2:
            break
        middle = X.mean(axis=0)
        size, Wt = np.linalg.svd(X - middle)[1:]
        if size[-1] <= _FLAT * size[-2]:
            return Wt[-1], middle
        X = np.delete(X, int(np.abs((X - middle) @ Wt[-1]).argmax()), axis=0)
    return None
