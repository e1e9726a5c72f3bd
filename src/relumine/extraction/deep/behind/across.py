"""Ways across units with an open weight, where it counts: kinks on them tell it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs
from relumine.extraction.deep.known.climb import both_sides
from relumine.extraction.deep.known.reach import opened

Mask = NDArray[np.bool_]

_WEIGHTS, _EACH = 6, 4  # open weights at a time, and ways for each: three kinks must agree
_FAR, _ASIDE = 2.0, 0.3  # how far across the unit, over the way to it, and how far aside
_FLAT = 1e-9  # gradient of a unit over its weights that is none
_BEYOND = 0.03  # how far beyond an input at which a weight may turn its unit over, over the way there


def across(at: Inquiry, V: Array, c: Array, known: Mask) -> Pairs | None:
    """Pairs of inputs on both sides of units Vh + c with a weight that is not ``known``, its unit in front on at both.

    None: there are no such inputs for any of these weights.
    """
    open_, found = np.argwhere(~known), list[Pairs]()
    for i, j in open_[at.rng.permutation(len(open_))].tolist():
        starts, ends = _ways(at, V[i], float(c[i]), j)
        if len(starts):
            found.append((starts, ends))
        if len(found) == _WEIGHTS:
            break
    return (np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])) if found else None


def _ways(at: Inquiry, w: Array, b: float, j: int) -> Pairs:
    """Those across one unit, w_j = 0 for its open weight.

    Where neither random inputs nor climbs have unit j in front on at both ends, branch and bound finds an input that
    has, near to the unit; or one that is beyond it if the weight is large enough.
    """
    T = np.tile(np.append(w, b) / np.linalg.norm(np.append(w, b)), (_EACH, 1))
    down, up = both_sides(at.known, T, np.full(_EACH, j), at.rng)
    H, K = at.known(down), at.known(up)
    good = (H[:, j] > 0.0) & (K[:, j] > 0.0) & (H @ w < -b) & (K @ w > -b)
    x, weight = (None, 0.0) if good.all() else opened([*at.known.layers, (w[None], np.array([b]))], 0, j)
    if x is None:
        return down[good], up[good]
    if weight:
        return down[H[:, j] > 0.0], (x + _BEYOND * (x - down))[H[:, j] > 0.0]
    g = at.known.gradient(x[None], w[None])[0]
    size = float(np.linalg.norm(g))
    if size <= _FLAT * np.linalg.norm(w):  # with all units in front off there is no way across
        return down[good], up[good]
    way = float(at.known(x[None])[0] @ w + b) / size  # from x to the unit
    aside = _ASIDE * way / np.sqrt(at.dim) * at.rng.normal(size=(2, _EACH, at.dim))
    good = good[:, None]
    return np.where(good, down, x - _FAR * way * g / size + aside[0]), np.where(good, up, x + aside[1])
