"""Samples prepared for the fit: whitened, with a constant column, summed over in blocks that fit the cache.

A fit asks one thing of its rows: Σ part(block), where a part is a function of a few arrays and returns arrays whose
size does not depend on the number of rows. Rows in memory and rows that stay elsewhere
(:class:`relumine.fit.streamed.StreamedRows`) answer it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from relumine.arrays import Array, slices
from relumine.fit.parallel import ALONE, Crew, scratch

Sums = tuple[Array, ...]


# which columns of X̃ a model may use beside its hidden units
AFFINE, CONSTANT, NOTHING = slice(None), slice(-1, None), slice(0, 0)

_CHUNK_NUMBERS = 1 << 16  # double precision numbers in one block of hidden values: 512 kB, the second-level cache
# Numbers that may be remembered: 512 MB of smooth units, which keep more than one array, 256 MB of others. Without, a
# student of (100,100) at n/p = 5 computes its hidden values four times a step, a quarter of the time of its passes, and
# a product of 525 units tanh and 50 inputs takes nine times as long.
_KEPT, _KEPT_ALWAYS = 1 << 26, 1 << 25
_SINGLE = 1 << 28  # numbers of X̃, 1 GB, up to which a copy in single precision is worth its memory, half of X̃
_CHUNK_ROWS = 512  # the fewest rows of a block: a GEMM with fewer is slow, whatever the cache holds


def chunk_rows(width: int, precision: DTypeLike = np.float64) -> int:
    """How many rows of ``width`` numbers to handle at once."""
    return max(_CHUNK_ROWS, _CHUNK_NUMBERS * 8 // (max(width, 1) * np.dtype(precision).itemsize))


class Kept(NamedTuple):
    """What passes with the same directions need not compute again: hidden values, features or slopes, each (m, k).

    ``X`` (k, d+1): the inputs in the precision of the passes.
    """

    Z: Array | None = None
    F: Array | None = None
    D: Array | None = None
    X: Array | None = None


class Block(NamedTuple):
    """A few rows: ``X`` (k, d+1), ``Y`` (k, q), ``weight`` (k,) or None; ``kept``: what is known of them already."""

    X: Array
    Y: Array
    weight: Array | None = None
    kept: Kept = Kept()

    def hidden(self, U: Array) -> Array:
        """U X̃ᵀ (m, k): remembered for this U, or computed into a work array."""
        if self.kept.Z is not None:
            return self.kept.Z
        return np.matmul(U, self.X.T, out=scratch("Z", len(U), len(self.X), dtype=self.X.dtype))

    def cast(self, dtype: DTypeLike) -> Block:
        """The same inputs and weights in another precision; Y stays what it is."""
        if self.X.dtype == dtype:
            return self
        X = self.kept.X
        if X is None or X.dtype != dtype:
            X = scratch("X", *self.X.shape, dtype=dtype)
            X[...] = self.X
        return self._replace(X=X, weight=None if self.weight is None else self.weight.astype(dtype))

    def weigh(self, M: Array) -> Array:
        """ω M for M (…, k), or M itself where there are no weights."""
        return M if self.weight is None else M * self.weight


class Rows(Protocol):
    """What a fit needs to know about its samples.

    X̃ has rows (z, 1) with z white: Σ ω x̃ x̃ᵀ = Σω · I, so the affine part is eliminated by one product. The model may
    use the columns ``free`` of X̃ beside its units, and what they explain of Y has been removed: Σ ω x̃_free yᵀ = 0.
    """

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def columns(self) -> int:
        """Columns of X̃, d+1."""

    @property
    def outputs(self) -> int:
        """Columns of Y, q."""

    @property
    def free(self) -> slice:
        """The columns of X̃ whose coefficients the model may choose: AFFINE, CONSTANT or NOTHING."""

    @property
    def total(self) -> float:
        """Σω."""

    @property
    def norm2(self) -> float:
        """Σ ω‖y‖²: the loss of the model without hidden units."""

    def sum(self, part: Callable[[Block], Sums], width: int, precision: DTypeLike = np.float64) -> Sums:
        """Σ part(block), componentwise, over blocks for work arrays of ``width`` numbers a row, of this precision.

        ``part`` returns fresh arrays.
        """

    def remember(
        self, keep: Callable[[Block], Kept], width: int, precision: DTypeLike, arrays: int, known: Rows | None = None
    ) -> Rows:
        """These rows with what ``keep`` returns for each block: so many ``arrays`` (width, k), if memory allows.

        Sums for this width and precision find it; ``keep`` finds what ``known`` ones, of the same samples, remember.
        """

    def knowing(self, known: Rows) -> Rows:
        """These rows with what ``known`` ones, of the same samples, remember."""

    def shared(self, crew: Crew) -> Self:
        """These rows, their sums shared by a crew."""

    def squares(self) -> Array:
        """Σ ω y², output by output, (q,)."""

    def less(self, tau: Array, free: slice) -> Self:
        """These rows with Y − X̃ tau for Y, where ``tau`` (d+1, q) is zero but for the rows ``free``."""

    def over(self, scale: Array) -> Self:
        """These rows with every output divided by its ``scale`` (q,); inf makes it zero."""

    def centred(self, mean: Array) -> Rows:
        """These rows, of a model with NOTHING free, for one with a CONSTANT: Y without its mean (q,)."""


class InSingle:
    """Inputs in single precision, made when they are first asked for, once for all rows that share them.

    To make them for every product took a tenth of (50,50), and a third of 784-2-1.
    """

    def __init__(self, X: Array) -> None:
        self.of = X

    @cached_property
    def X(self) -> Array | None:
        """The copy; None where its memory is not worth it."""
        return self.of.astype(np.float32) if self.of.size <= _SINGLE else None


_NONE = InSingle(np.empty((0, 0)))


@dataclass(frozen=True)
class MemoryRows:
    """Rows in memory: ``X`` (n, d+1), ``Y`` (n, q), ``weight`` (n,) or None."""

    X: Array
    Y: Array
    weight: Array | None = None
    free: slice = field(default_factory=lambda: AFFINE)  # a slice is not hashable, so no plain default
    kept: tuple[Kept, ...] = ()
    step: int = 0
    crew: Crew = field(default=ALONE, repr=False, compare=False)  # who shares the sums
    single: InSingle = field(default=_NONE, repr=False, compare=False)  # rows made of these share it, as they do X

    def __post_init__(self) -> None:
        if self.single.of is not self.X:
            object.__setattr__(self, "single", InSingle(self.X))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def columns(self) -> int:
        """Columns of X̃, d+1."""
        return int(self.X.shape[1])

    @property
    def outputs(self) -> int:
        """Columns of Y, q."""
        return int(self.Y.shape[1])

    @cached_property
    def total(self) -> float:
        """Σω."""
        return float(self.n if self.weight is None else self.weight.sum())

    @cached_property
    def norm2(self) -> float:
        """Σ ω‖y‖²."""
        return float(self.squares().sum())

    def squares(self) -> Array:
        """Σ ω y², output by output, (q,)."""
        weighted = self.Y if self.weight is None else self.Y * self.weight[:, None]
        return np.asarray(np.einsum("ij,ij->j", weighted, self.Y))

    def _slices(self, width: int, precision: DTypeLike) -> tuple[int, Sequence[slice]]:
        step = chunk_rows(max(width, self.columns), precision)
        return step, slices(self.n, step) or [slice(0, 0)]

    def sum(self, part: Callable[[Block], Sums], width: int, precision: DTypeLike = np.float64) -> Sums:
        """Σ part(block), componentwise."""

        def sliced(item: tuple[slice, Kept]) -> Sums:
            s, kept = item
            return part(Block(self.X[s], self.Y[s], None if self.weight is None else self.weight[s], kept))

        step, slices = self._slices(width, precision)
        # remembered values belong to blocks of one size; a pass in other blocks computes its own
        kept = self.kept if self.kept and step == self.step else [Kept()] * len(slices)
        return self.crew.total(sliced, list(zip(slices, kept)))

    def remember(
        self, keep: Callable[[Block], Kept], width: int, precision: DTypeLike, arrays: int, known: Rows | None = None
    ) -> MemoryRows:
        """One GEMM in three is saved by an array that takes no more memory than X̃, or than a fixed amount.

        Two arrays spare smooth activations, which take longer than the GEMMs: they may take more.
        """
        step, slices = self._slices(width, precision)
        X = self.single.X if np.dtype(precision) == np.float32 else None
        kept = [Kept(X=None if X is None else X[s]) for s in slices]
        others = known.kept if isinstance(known, MemoryRows) and known.step == step and known.X is self.X else ()

        def fill(item: tuple[int, slice]) -> Sums:
            k, s = item
            found = kept[k]._replace(Z=others[k].Z if others else None)
            kept[k] = keep(Block(self.X[s], self.Y[s], kept=found))._replace(X=kept[k].X)
            return (np.zeros(0),)

        limit = max(self.columns, (_KEPT if arrays > 1 else _KEPT_ALWAYS) // max(self.n, 1))
        if 0 < arrays * width * np.dtype(precision).itemsize <= 8 * limit:
            self.crew.total(fill, list(enumerate(slices)))
        return replace(self, kept=tuple(kept), step=step)

    def knowing(self, known: Rows) -> MemoryRows:
        """Hidden values, as they were remembered."""
        if not isinstance(known, MemoryRows) or known.X is not self.X:
            return self
        return replace(self, kept=known.kept, step=known.step)

    def shared(self, crew: Crew) -> MemoryRows:
        """The same rows, summed by a crew."""
        return replace(self, crew=crew)

    def less(self, tau: Array, free: slice) -> MemoryRows:
        """Y − X̃ tau for Y."""
        return self._of(self.Y - self.X[:, free] @ tau[free], free)

    def over(self, scale: Array) -> MemoryRows:
        """Y over ``scale`` (q,)."""
        return self._of(self.Y / scale, self.free)

    def centred(self, mean: Array) -> MemoryRows:
        """The same rows for a model with a constant: Y without its mean (q,)."""
        return self._of(self.Y - mean, CONSTANT)

    def _of(self, Y: Array, free: slice) -> MemoryRows:
        """The same inputs with other outputs, for a model that may use the columns ``free``."""
        return replace(self, Y=Y, free=free, kept=(), step=0)


R = TypeVar("R", bound=Rows)


def affine_moment(B: Block) -> Sums:
    """Σ ω x̃ yᵀ (d+1, q) and Σ ω y² (q,)."""
    weighted = B.Y if B.weight is None else B.Y * B.weight[:, None]
    return B.X.T @ weighted, np.einsum("ij,ij->j", weighted, B.Y)


def without_affine(rows: R, free: slice = AFFINE, tau: Array | None = None) -> tuple[R, Array]:
    """Rows whose Y has lost what the columns ``free`` of X̃ explain, and the coefficients (d+1, q) taken out.

    tau = Σ ω x̃ yᵀ / Σω, because X̃ is orthogonal; up to rounding, so a second pass removes what the first left. A
    ``tau`` that is known beforehand stands for the first.
    """
    found = np.zeros((rows.columns, rows.outputs))
    for known in (tau, None):
        step = np.zeros_like(found)
        moment = rows.sum(affine_moment, rows.columns)[0] / rows.total if known is None else known
        step[free] = moment[free]
        rows, found = rows.less(step, free), found + step
    return rows, found


def prepare(Z: Array, Y: Array, weight: Array | None = None, *, free: slice = AFFINE) -> tuple[MemoryRows, Array]:
    """Rows from white inputs Z (n, d) and targets Y (n, q); also the affine coefficients removed from Y, (d+1, q)."""
    X = np.column_stack([Z, np.ones(len(Z))])
    return without_affine(MemoryRows(X, Y, weight, NOTHING), free)
