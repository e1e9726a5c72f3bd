"""How many digits numbers have; what rounding took from them is noise of known size.

Single precision, decimals of a text file and large offsets all round y to a grid of spacing u; the error is uniform,
with root mean square u/√12. No fit can be better known than that, and no network needs to explain more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relumine.arrays import Array, is_single

_DECIMALS = 12  # more of them are double precision
_FEWEST = 8  # different values: fewer say nothing about rounding
_FEW = 9.5  # digits beside the mean from which on nobody needs to be told
# times the rounding that the right network leaves: decimals are what they are, but a network computed in single
# precision rounds many times on the way (1 to 4 times were measured)
_DECIMALS_LEAVE, _COMPUTING_LEAVES = 1.5, 6.0
_ROOT12 = float(np.sqrt(12.0))  # a uniform error in a grid of spacing u has root mean square u/√12


@dataclass(frozen=True)
class Digits:
    """What rounding left of some numbers, column by column.

    ``rounding`` (q,): root mean square rounding error; ``leaves`` (q,): the most that the network which computed the
    numbers leaves unexplained; ``left``: digits of the column that has fewest, its spread over its rounding;
    ``words``: what to tell about it, "" for ordinary double precision.
    """

    rounding: Array
    leaves: Array
    left: float
    words: str


def digits_of(values: Array, name: str = "y") -> Digits:
    """The digits of ``values`` (n,) or (n, q).

    Examples
    --------
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> digits_of(y).words
    ''
    >>> digits_of(y.astype(np.float32).astype(float)).words
    'y has 7 digits (single precision)'
    >>> digits_of(y.round(3)).words
    'y has 3 decimals, about 3 digits beside its mean'
    >>> digits_of(y + 1e12).words
    'y has about 4 digits beside its mean: its offset of 1e+12 takes the others'
    """
    columns = values.reshape(len(values), -1)
    found = [_column(column) for column in columns.T]
    spread = columns.std(axis=0)
    rounding = np.array([u for u, _ in found])
    leaves = rounding * [_COMPUTING_LEAVES if kind in ("single", "double") else _DECIMALS_LEAVE for _, kind in found]
    beside = np.log10(np.maximum(spread, 1e-300) / np.maximum(rounding, 1e-300))
    worst = int(np.argmin(np.where(spread > 0.0, beside, np.inf)))
    left, kind = float(beside[worst]) if spread.any() else float("inf"), found[worst][1]
    # what is told is the grid, which is √12 times the error
    about = int(np.clip(np.floor(left - np.log10(_ROOT12) + 0.5), 0, 16))
    digits = {0: "less than one digit", 1: "about 1 digit"}.get(about, f"about {about} digits")
    words = {
        "0": f"{name} has whole numbers, {digits} beside its mean",
        "single": f"{name} has {min(about, 7)} digits (single precision)",
        "double": f"{name} has {digits} beside its mean: its offset of "
        f"{abs(float(columns[:, worst].mean())):.0e} takes the others",
    }.get(kind, f"{name} has {kind} {'decimal' if kind == '1' else 'decimals'}, {digits} beside its mean")
    ordinary = kind == "double" and left > _FEW
    return Digits(rounding, leaves, left, "" if ordinary else words)


def _column(x: Array) -> tuple[float, str]:
    """Root mean square rounding error of one column, and where it comes from: "double", "single" or decimals."""
    double = _rms(np.spacing(np.abs(x))) / _ROOT12
    if len(np.unique(x[:1024])) < _FEWEST:
        return double, "double"
    single = is_single(x[:64]) and is_single(x)
    # a grid that is found is far coarser than the precision, or _on_grid would not have told it
    decimals = _decimals(x, 1e-7 if single else 4.0 * float(np.finfo(float).eps))
    if decimals is not None:
        return 10.0**-decimals / _ROOT12, str(decimals)
    if single:
        return _rms(np.spacing(np.abs(x).astype(np.float32)).astype(np.float64)) / _ROOT12, "single"
    return double, "double"


def _decimals(x: Array, tolerance: float) -> int | None:
    """The fewest decimals with which every number can be written, to a relative tolerance; None if more than 12."""
    for k in range(_DECIMALS + 1):
        if all(_on_grid(part, k, tolerance) for part in (x[:64], x)):
            return k
    return None


def _on_grid(x: Array, k: int, tolerance: float) -> bool:
    scaled = x * 10.0**k
    return bool((np.abs(scaled - np.rint(scaled)) <= tolerance * np.abs(scaled)).all()) and bool(
        (tolerance * np.abs(scaled) < 0.1).all()  # beyond, every number is on the grid
    )


def _rms(x: Array) -> float:
    largest = float(np.abs(x).max(initial=0.0))
    return largest * float(np.sqrt(np.mean((x / largest) ** 2))) if largest > 0.0 else 0.0
