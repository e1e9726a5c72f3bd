"""A unit of the last layer that was found twice, with other weights of a unit in front that is seldom on.

Where that unit in front is on, and both of the two always are, only the sum of their weights from it shows. So one unit
may come back as two that share it in any way: a₁relu(w₁·h + b₁) + a₂relu(w₂·h + b₂), and s·(w₁, b₁) = (w₂, b₂) in all
other weights. One unit does as well: (a₁ + s·a₂) relu(w·h + b) with (a₁ + s·a₂) w = a₁w₁ + a₂w₂.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from relumine.arrays import Array
from relumine.network import Network

_ALIKE = 1e-6  # how far apart weights of the two may be, for rows of length one
_OTHER = 0.25  # share of the weights that may differ


def as_one(head: Network) -> Iterator[Network]:
    """The head with two of its units as one, for each two whose weights are the same in all but a few.

    Examples
    --------
    >>> W = np.array([[0.6, 0.8, 0.0, 0.5], [0.6, 0.8, 0.0, -0.1], [1.0, 0.0, 2.0, 0.0]])
    >>> (one,) = as_one(Network(W, np.array([1.0, 1.0, 0.0]), np.array([2.0, 1.0, 1.0])))
    >>> one.W.round(9).tolist(), one.a.tolist()
    ([[1.0, 0.0, 2.0, 0.0], [0.6, 0.8, 0.0, 0.3]], [1.0, 3.0])
    """
    T = np.column_stack([head.W, head.b])
    for i, j in combinations(range(head.m), 2):
        scale = _shared(T[i], T[j])
        if scale is None:
            continue
        a, b = np.atleast_2d(head.a)[:, i], np.atleast_2d(head.a)[:, j]
        both = a + scale * b
        if both @ both <= (_ALIKE * np.linalg.norm(a)) ** 2:
            continue  # what is left of the two is no unit
        row = (both @ a * T[i] + both @ b * T[j]) / (both @ both)
        rest = [k for k in range(head.m) if k not in (i, j)]
        both = both[0] if head.a.ndim == 1 else both
        yield head.replace(
            W=np.vstack([head.W[rest], row[:-1]]),
            b=np.append(head.b[rest], row[-1]),
            a=np.concatenate([head.a[..., rest], both[..., None]], axis=-1),
        )


def _shared(one: Array, two: Array) -> float | None:
    """The s > 0 with s·one = two in nearly all entries, but not in all; None where there is none."""
    use = np.abs(one) > _ALIKE * np.linalg.norm(one)
    if not use.any():
        return None
    scale = float(np.median(two[use] / one[use]))
    apart = np.abs(two - scale * one) > _ALIKE * np.linalg.norm(two)
    few = max(1, int(_OTHER * len(one)))
    return scale if scale > 0.0 and 0 < apart.sum() <= min(few, len(one) - 2) else None
