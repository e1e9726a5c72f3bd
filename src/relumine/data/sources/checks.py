"""The one check of the numbers in rows; an error names the argument, the place, and what to do about it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.arrays import Array
from relumine.data.sources.chunks import Chunk
from relumine.results import InvalidInput

# A slope, y over x, is at most the square of this, and squares of slopes must not overflow when they are added up.
LARGE = 1e70
_LARGE_SINGLE = 1e30  # the same for rows kept in single precision


class RawRows(NamedTuple):
    """Rows as they were read, not yet checked; ``where`` and ``row`` (of the first of them) say where they stand."""

    X: NDArray[np.floating]
    Y: Array
    weight: Array | None
    where: str
    row: int


class Kinds(NamedTuple):
    """What inputs and targets are called in errors, and the names of their columns, if they have any."""

    X: str = "input"
    Y: str = "target"
    inputs: tuple[str, ...] | None = None
    targets: tuple[str, ...] | None = None
    vector: bool = False


def real_numbers(name: str, value: ArrayLike, *, copy: bool = True) -> NDArray[Any]:
    """An array of real numbers, C-contiguous float64 (as it is, without ``copy``); an error says what else it is."""
    if hasattr(value, "toarray"):
        raise InvalidInput(f"{name} is a sparse matrix", argument=name, remedy=f"pass {name}.toarray()")
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInput(f"{name} is a masked array", argument=name, remedy="drop or fill its masked rows first")
    try:
        array = np.asanyarray(value)
    except ValueError as error:
        raise InvalidInput(f"{name} is not a rectangular array of numbers: {error}", argument=name) from None
    if array.dtype == object or array.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name} must hold real numbers, got dtype {array.dtype}",
            argument=name,
            remedy="encode categories or parse strings first",
        )
    return np.ascontiguousarray(array, dtype=np.float64) if copy else array


def check_shapes(X: tuple[int, ...], y: tuple[int, ...], weight: tuple[int, ...] | None = None) -> None:
    """X (n, d), y (n,) or (n, q), weight (n,)."""
    if len(X) != 2 or X[1] == 0:
        remedy = "for one input use X.reshape(-1, 1)" if len(X) == 1 else None
        raise InvalidInput(f"X must have shape (n, d), one sample a row; got {X}", argument="X", remedy=remedy)
    if len(y) not in (1, 2):
        raise InvalidInput(f"y must have shape (n,) or (n, q); got {y}", argument="y")
    if X[0] != y[0]:
        raise InvalidInput(
            f"X has {X[0]} rows but y has {y[0]}", argument="y", remedy="they must describe the same samples"
        )
    if weight is not None and weight != (X[0],):
        raise InvalidInput(
            f"sample_weight must have shape ({X[0]},), one weight a row; got {weight}", argument="sample_weight"
        )


def check_rows(piece: RawRows, first: int, kinds: Kinds, dtype: np.dtype[Any], skip: bool) -> tuple[Chunk, int]:
    """The piece as a chunk, and how many of its rows were left out as not finite (without ``skip``: none).

    Rows of weight zero are left out, too: they are not used.
    """
    X, Y, weight = piece.X, piece.Y, piece.weight
    limit = LARGE if dtype == np.float64 else _LARGE_SINGLE
    with np.errstate(over="ignore", invalid="ignore"):  # a sum of squares is finite for good rows
        size = float(np.vdot(X, X)) + float(np.vdot(Y, Y))
        chunk = Chunk(np.ascontiguousarray(X, dtype=dtype), Y, weight, first)
    if weight is None and size <= limit:
        return chunk, 0
    good = _good_rows(piece, kinds, limit, skip)
    used = good if weight is None else good & (weight > 0.0)
    return chunk if used.all() else chunk.at(used), int((~good).sum())


def _good_rows(piece: RawRows, kinds: Kinds, limit: float, skip: bool) -> NDArray[np.bool_]:
    """Which rows are finite; without ``skip`` all are, or an error says where."""
    columns = [(kinds.X, piece.X, kinds.inputs), (kinds.Y, piece.Y, kinds.targets)]
    if piece.weight is not None:
        weight = np.where(piece.weight >= 0.0, piece.weight, np.nan)  # a negative one is as bad as none
        columns.append(("sample_weight", weight[:, None], None))
    good = np.ones(len(piece.Y), dtype=bool)
    place = f"{piece.where}, " if piece.where else ""
    for kind, values, names in columns:
        bad = ~np.isfinite(values)
        if bad.any() and not skip:
            i, j = np.argwhere(bad)[0]
            value = piece.weight[i] if kind == "sample_weight" and piece.weight is not None else values[i, j]
            alone = kind == "sample_weight" or (kind == "y" and kinds.vector)
            called = "" if alone else f" column {repr(names[j]) if names else j}"
            gap = "has no value" if names and np.isnan(value) else f"is {value}"
            raise InvalidInput(
                f"{kind}{called} {gap} in {place}row {piece.row + i}",
                argument="bad_rows" if names else kind,
                remedy="drop or fill such rows, or leave them out with bad_rows='skip'"
                + (", or fill gaps with impute='median'" if names and kind == kinds.X else ""),
            )
        good &= ~bad.any(axis=1)
        largest = float(np.abs(values[good]).max(initial=0.0))
        if largest > limit:
            where = f" in {piece.where}" if piece.where else ""
            raise InvalidInput(
                f"{kind} values around {largest:.1e}{where} are too large to compute with",
                argument=kind if kind in ("X", "y") else None,
                remedy=f"rescale them (divide by {10.0 ** np.floor(np.log10(largest)):.0e}, say)",
            )
    return good
