"""What a recovery costs, before it begins: seconds for samples, rows and seconds for a box that can be asked.

The time of ``recover`` with ``method="auto"`` was fitted to measured runs (docs/advise.md): about 2000 conjugate
gradient products, √(m/d) times as many for m > d, each two products of an n × (d+1) with a (d+1) × 1.5m matrix. That
reproduces the runs listed there within a factor of three. The speed of a matrix product is measured when it is needed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from math import ceil

import numpy as np

from relumine.activations import Activation

# Products of one start, and units of its student over the width. With these (10,5), (10,10), (10,20), (30,30) and
# (60,10) at five or six rows a parameter took 0.2, 0.5, 0.4, 0.8 and 1.9 times the estimate.
_PRODUCTS, _OVER = 2000, 1.5
_CALL = 7e-5  # seconds around a product, which small problems notice
_SMOOTH = 3.0  # a smooth σ costs more per row than a kink, and takes more steps
_CALIBRATION = 0.15  # seconds that measuring the speed of a product may take: advice should come at once
_ONE_MORE = 20_000  # rows for gradients that are worth a choice of one more line, about eight rows a kink
_MORE = 3  # lines at most to choose from, beside the first: of six 784-128-1 two took 1.3 p by the first, none by four
# Rows of 63 deep networks of 15 shapes (docs/deep.md), least squares of their relative errors: a constant; per weight
# of the first layer, of the second, of those behind; per unit. All but the two wide shapes are within a factor of 1.5.
_DEEP = (620.0, 1.85, 1.1, 70.0, 155.0)
_WIDE = 2.7  # times as many where a layer is wider than what feeds it: 2.5–2.9 in 10-20-20-1 and 5-15-10-1
_ROW, _DEEP_ROW = 7e-5, 3e-4  # seconds of our own for a row, within a factor of 3: 784-128-1; networks of docs/deep.md


def seconds_of_search(n: int, d: int, m: int, sigma: Activation) -> float:
    """CG products of n × (d+1) × 1.5m, two GEMMs of two operations each, for one start."""
    operations = 4.0 * n * (d + 1) * max(ceil(_OVER * m), m + 2)
    smooth = 1.0 if sigma.kinks and sigma.reflection is not None and sigma.reflection.scale == 1.0 else _SMOOTH
    products = _PRODUCTS * smooth * max(1.0, m / d) ** 0.5
    return float(products * (_CALL + operations / _gemm_speed()))


def lines_to_choose_from(kinks: int, d: int) -> int:
    """Lines that are searched beside the first, for the one whose gradients take the fewest rows."""
    return min(kinks * d // _ONE_MORE, _MORE)


def rows_to_ask(dim: int, width: int | Sequence[int]) -> int:
    """About how many rows chosen queries take, for one hidden layer or several.

    One layer: a gradient for every piece, 1.1 times, and 7 rows a kink of each line. Several: see docs/deep.md.

    Examples
    --------
    >>> rows_to_ask(784, 128)
    115116
    >>> rows_to_ask(784, (32, 32))
    58079
    """
    widths = (int(width),) if isinstance(width, int | np.integer) else tuple(int(m) for m in width)
    if len(widths) == 1:
        lines = 1 + lines_to_choose_from(widths[0], dim)
        return round(1.1 * (widths[0] + 1) * (dim - 1) + (7 * widths[0] + 21) * lines + 340)
    first, *behind = (a * b for a, b in pairwise((dim, *widths)))
    rows = float(np.dot(_DEEP, (1, first, behind[0], sum(behind[1:]), sum(widths))))
    return round(rows * (_WIDE if any(b > a for a, b in pairwise((dim, *widths))) else 1.0))


def seconds_of_asking(rows: int, deep: bool) -> float:
    """Time beside that of the box itself."""
    return rows * (_DEEP_ROW if deep else _ROW)


def _gemm_speed() -> float:
    """Operations per second of a matrix product of the size that the fit uses, measured now; the best of a few."""
    n, d, m = 1500, 64, 96
    A, B, out = np.ones((n, d)), np.ones((d, m)), np.empty((n, m))
    best, end = np.inf, time.perf_counter() + _CALIBRATION
    for _ in range(200):
        began = time.perf_counter()
        np.dot(A, B, out=out)
        now = time.perf_counter()
        best = min(best, now - began)
        if now > end:
            break
    return float(2.0 * n * d * m / max(best, 1e-9))
