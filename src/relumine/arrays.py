"""The one kind of array in the package, double precision, and what many modules do with arrays.

Other kinds of arrays are spelled out where they are needed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def unit_rows(W: NDArray[np.floating]) -> Array:
    """w_i/‖w_i‖ for the rows of W (m, d); a row of zeros stays zero.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    return np.asarray(W / np.where(norms > 0.0, norms, 1.0))


def among(values: Array, at: NDArray[np.intp], d: int, fill: float = 0.0) -> Array:
    """The columns of ``values`` (…, k) as columns ``at`` (k,) of d, and ``fill`` in the others.

    Examples
    --------
    >>> among(np.array([[1.0, 2.0]]), np.array([0, 2]), 4)
    array([[1., 0., 2., 0.]])
    """
    wide = np.full((*values.shape[:-1], d), fill)
    wide[..., at] = values
    return wide


def slices(n: int, rows: int) -> list[slice]:
    """n rows in blocks of at most ``rows``.

    Examples
    --------
    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def is_single(x: Array) -> bool:
    """Whether every number is one of single precision: it comes back unchanged from float32.

    Examples
    --------
    >>> is_single(np.array([0.5, 3.0])), is_single(np.array([0.1]))
    (True, False)
    """
    with np.errstate(over="ignore"):  # beyond the range of float32 it comes back as infinity, which differs
        return bool((x.astype(np.float32) == x).all())
