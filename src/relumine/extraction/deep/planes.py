"""The planes of a first layer once more, from kinks all over them: what is followed behind it needs all their digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.deep.box import Asked
from relumine.extraction.deep.surfaces import bends

Array = NDArray[np.float64]

__all__ = ["sharpened"]

_SPARE = 4  # kinks more than a plane of d inputs needs; others near by hide one in ten
_WINDOW = 1e-4  # how far to each side a kink is looked for: planes are known to six digits or more
_FLAT = 1e-9  # smallest over second smallest singular value of places on one plane: measured 1e-13 … 1e-11


def sharpened(ask: Asked, V: Array, c: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Planes V (m, d), c (m,) with rows of length one, by d + 4 kinks each: five rows a kink.

    A normal measured at one kink may have lost half of its digits where another kink is near: in acasxu one of fifty
    was off by 7e-7. One that is not confirmed by its kinks is left as it is.
    """
    m, d = V.shape
    n = d + _SPARE
    X = rng.normal(size=(m, n, d)) * 2.0 ** rng.uniform(-1.0, 1.5, size=(m, n, 1))
    X -= (np.einsum("mnd,md->mn", X, V) + c[:, None])[..., None] * V[:, None, :]
    found = bends(ask, list(X.reshape(-1, d)), list(np.repeat(_WINDOW * V, n, axis=0)))
    V, c = V.copy(), c.copy()
    for i in range(m):
        on = np.array([x for x in found[n * i : n * (i + 1)] if x is not None])
        if len(on) <= d:
            continue
        middle = on.mean(axis=0)
        size, Wt = np.linalg.svd(on - middle)[1:]
        if size[-1] <= _FLAT * size[-2]:
            V[i] = Wt[-1] * np.sign(Wt[-1] @ V[i])
            c[i] = -float(V[i] @ middle)
    return V, c
