"""Outliers: rows whose error lies far beyond where the tail of the other errors leads.

Errors have heavy tails in real tables, so no number of standard deviations tells a wrong entry from a rare one. The
tail itself does: if a share p of the errors exceeds q(p), and q grows like p^(−1/a) from one share to a smaller one, it
is expected to go on like that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array

LEAST = 100  # rows: in fewer there is no tail to look at
_TAIL, _TAIL_ROWS = 0.01, 10  # the tail is measured from ten times this share to this share, or this many rows
_BEYOND = 10.0  # the limit is where one row is expected among ten times as many
_FEW, _FEW_SHARE = 3, 1e-3  # more rows than this beyond the limit are a kind of row, not wrong entries


def exceeded(r: Array, weight: Array | None, share: float) -> float:
    """q(p): the number that a ``share`` p of the weight of r (n,) reaches or exceeds; inf for less than one row.

    Examples
    --------
    >>> exceeded(np.arange(1.0, 11.0), None, 0.2)
    9.0
    """
    order = np.argsort(-r, kind="stable")
    above = np.cumsum(np.ones(len(r)) if weight is None else weight[order])
    # half a row of tolerance would not do: weights are repetitions, and p·Σω is rounded
    at = int(np.searchsorted(above, share * above[-1] * (1.0 - 1e-12)))
    return float(r[order[at]])


def tail_end(r: Array, weight: Array | None = None, times: float = 1.0) -> float:
    """Where the tail of r ≥ 0 (n,) leads: b = q(p)·(q(p)/q(10p))^s with s = log₁₀(10 n p ``times``).

    inf where there is no tail to follow: too few rows, or as many at q(p) as at q(10p).
    """
    n = float(len(r) if weight is None else weight.sum())
    if n < LEAST:
        return float("inf")
    near = max(_TAIL, _TAIL_ROWS / n)
    far = min(10.0 * near, 0.5)
    q, wide = exceeded(r, weight, near), exceeded(r, weight, far)
    if not q > wide > 0.0:
        return float("inf")
    return float(q * (q / wide) ** (np.log(_BEYOND * n * near * times) / np.log(far / near)))


def few(beyond: NDArray[np.bool_], weight: Array | None) -> bool:
    """Whether the rows ``beyond`` (n,) are few enough to be wrong; more are a kind of row."""
    rows, n = (
        (float(beyond.sum()), len(beyond)) if weight is None else (float(weight[beyond].sum()), float(weight.sum()))
    )
    return rows <= max(_FEW, _FEW_SHARE * n)


def limit(r: Array, weight: Array | None = None) -> float:
    """The error beyond which a row is an outlier, for errors r ≥ 0 (n,): the end of their tail.

    inf where no row is beyond, or so many that they must be a kind of row of their own and no wrong entries.

    Examples
    --------
    >>> r = np.abs(np.random.default_rng(0).normal(size=1000))
    >>> limit(r)
    inf
    >>> r[:2] = 20.0, 30.0
    >>> 3.0 < limit(r) < 20.0
    True
    """
    bound = tail_end(r, weight)
    beyond = r > bound
    return bound if beyond.any() and few(beyond, weight) else float("inf")
