"""Samples in memory: a source with one resident chunk, checked when it comes in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.arrays import Array, slices
from relumine.data.sources.checks import LARGE, Kinds, RawRows, check_rows, check_shapes, real_numbers
from relumine.data.sources.chunks import Change, Chunk, gather
from relumine.data.sources.local import NUMBERS, LocalSource, Mapped
from relumine.results import InvalidInput


class Samples(LocalSource):
    """Checked rows in memory: ``X`` (n, d), ``Y`` (n, q), float64 and finite; ``weight`` (n,) or None.

    ``y`` is Y in the shape the user gave: (n,) or (n, q). Without y there is no target, q = 0.

    Examples
    --------
    >>> samples = Samples(np.ones((3, 2)), np.arange(3.0))
    >>> samples.Y.shape, samples.y.shape, [len(c.Y) for c in samples.chunks(2)]
    ((3, 1), (3,), [2, 1])
    """

    ahead = 0
    resident = True
    n: int

    def __init__(
        self,
        X: NDArray[np.floating],
        y: Array | None = None,
        weight: Array | None = None,
        names: tuple[str, ...] | None = None,
        **options: Any,
    ) -> None:
        y = np.empty((len(X), 0)) if y is None else y
        self.X: Array = np.asarray(X, dtype=np.float64)
        self.weight = weight
        self.Y: Array = y[:, None] if y.ndim == 1 else y
        options.setdefault("label", f"arrays of {len(X)} rows")
        if options.get("chunk") is None:  # as many rows as inputs: else the d×d sums take a tenth of the products
            options["chunk"] = max(NUMBERS // max(X.shape[1] + self.Y.shape[1], 1), X.shape[1])
        super().__init__(X.shape[1], self.Y.shape[1], vector=y.ndim == 1, n=len(X), names=names, **options)

    @property
    def y(self) -> Array:
        """The targets, (n,) or (n, q)."""
        return self.Y[:, 0] if self.vector else self.Y

    def at(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Samples:
        """Some of the rows, by their numbers or by a mask."""
        X, Y, weight, _ = Chunk(self.X, self.Y, self.weight).at(rows)
        return Samples(X, Y[:, 0] if self.vector else Y, weight, self.names)

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """Views of the arrays."""
        whole = Chunk(self.X, self.Y, self.weight)
        return (whole.at(s)._replace(first=s.start) for s in slices(len(self.Y), rows or self.chunk))

    def rows_at(self, indices: NDArray[np.intp]) -> Chunk:
        """The rows of these numbers."""
        if len(indices) and indices[-1] >= len(self.Y):
            raise InvalidInput(f"{self.label} has no row {indices[np.searchsorted(indices, len(self.Y))]}")
        return Chunk(self.X, self.Y, self.weight).at(indices)

    def map(self, change: Change, d: int | None = None, dropped: int = 0) -> Samples:
        """Changed once, and kept."""
        few = max(1, NUMBERS // (self.d + self.q))  # memory of this size is used again, that of a larger chunk is not
        X, Y, weight, _ = gather(Mapped(self, change, d).chunks(few), len(self.Y) - dropped, self.label)
        return Samples(X, Y[:, 0] if self.vector else Y, weight, self.names if d is None else None, label=self.label)


def as_samples(
    X: ArrayLike,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    *,
    bad_rows: str = "raise",
    chunk: int | None = None,
) -> Samples:
    """Check X (n, d), y (n,) or (n, q) and sample_weight (n,); errors name the argument, the place and the remedy.

    Rows of weight zero are left out, and the other weights are scaled to mean 1: they say how the noise varies.

    Examples
    --------
    >>> as_samples([[1.0, float("nan")], [0.0, 1.0]], [1.0, 2.0])
    Traceback (most recent call last):
    ...
    relumine.results.errors.InvalidInput: X column 1 is nan in row 0; drop or fill such rows, or leave them out with \
bad_rows='skip'
    """
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    X = real_numbers("X", X)
    y = np.empty((len(X), 0)) if y is None else real_numbers("y", y)
    weight = None if sample_weight is None else real_numbers("sample_weight", sample_weight)
    check_shapes(X.shape, y.shape, None if weight is None else weight.shape)
    if len(X) < 2:
        raise InvalidInput(f"at least 2 samples are needed, got {len(X)}", argument="X")
    vector = y.ndim == 1
    piece = RawRows(X, y[:, None] if vector else y, weight, "", 0)
    rows, skipped = check_rows(piece, 0, Kinds("X", "y", names, None, vector), X.dtype, bad_rows == "skip")
    if len(rows.Y) < 2:
        what = "sample_weight" if weight is not None else "X"
        raise InvalidInput(f"{what} leaves {len(rows.Y)} rows to use", argument=what, remedy="at least 2 are needed")
    for name, values in (("X", rows.X), ("y", rows.Y)):
        largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
        if 0.0 < largest < 1.0 / LARGE:
            raise InvalidInput(f"{name} has magnitudes around {largest:.1e}", argument=name, remedy="rescale it")
    if rows.weight is not None:  # first over the largest: the sum of huge ones would overflow
        scaled = rows.weight / rows.weight.max()
        rows = rows._replace(weight=scaled / scaled.mean())
    found = Samples(rows.X, rows.Y[:, 0] if vector else rows.Y, rows.weight, names, chunk=chunk)
    found.skipped = skipped
    return found
