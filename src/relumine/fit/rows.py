"""Samples prepared for the fit: whitened, with a constant column, read in chunks that fit the cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.fit.parallel import total

Array = NDArray[np.float64]

__all__ = ["Rows", "chunk_rows"]

_CHUNK_NUMBERS = 1 << 16  # numbers in one chunk of hidden values: 512 kB, about the second-level cache


def chunk_rows(width: int) -> int:
    """How many rows of ``width`` numbers to handle at once."""
    return max(1, _CHUNK_NUMBERS // max(width, 1))


@dataclass(frozen=True)
class Rows:
    """The rows of a least squares problem.

    Attributes
    ----------
    X : (n, d+1) array
        Rows x̃ = (z, 1) with z white: Σ ω x̃ x̃ᵀ = Σω · I, so the affine part is eliminated by one product.
    Y : (n, q) array
        Targets. With ``affine`` their affine part has been removed: Σ ω x̃ yᵀ = 0.
    weight : (n, 1) array or None
        Row weights ω.
    affine : bool
        Whether the model has an affine part.
    """

    X: Array
    Y: Array
    weight: Array | None = None
    affine: bool = True

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def total(self) -> float:
        """Σω."""
        return float(self.n if self.weight is None else self.weight.sum())

    @property
    def norm2(self) -> float:
        """Σ ω‖y‖²: the loss of the model without hidden units."""
        return float(np.einsum("ij,ij->", self.weigh(self.Y), self.Y))

    def weigh(self, M: Array, rows: slice = slice(None)) -> Array:
        """ω M, or M itself where there are no weights."""
        return M if self.weight is None else M * self.weight[rows]

    def chunks(self, width: int, *, least: int = 64) -> list[slice]:
        """Row slices for work arrays of ``width`` numbers a row; at least ``least`` rows, for the sake of the GEMM."""
        step = max(chunk_rows(max(width, self.X.shape[1])), least)
        return [slice(start, min(start + step, self.n)) for start in range(0, self.n, step)]

    def sum(self, part: Callable[[slice], tuple[Array, ...]], width: int, *, least: int = 64) -> tuple[Array, ...]:
        """Σ part(chunk), componentwise; ``part`` returns fresh arrays."""
        return total(part, self.chunks(width, least=least))


def prepare(Z: Array, Y: Array, weight: Array | None = None, *, affine: bool = True) -> tuple[Rows, Array]:
    """Rows from white inputs Z (n, d) and targets Y (n, q); also the affine coefficients removed from Y, (d+1, q).

    Z may be the first d columns of an (n, d+1) array, which is then used as it is: its last column becomes 1.
    """
    n, d = Z.shape
    if isinstance(Z.base, np.ndarray) and Z.base.shape == (n, d + 1) and Z.ctypes.data == Z.base.ctypes.data:
        X = Z.base
    else:
        X = np.empty((n, d + 1))
        X[:, :-1] = Z
    X[:, -1] = 1.0
    omega = None if weight is None else weight[:, None]
    rows = Rows(X, Y, omega, affine)
    tau = np.zeros((X.shape[1], Y.shape[1]))
    if affine:
        # X̃ is orthogonal up to rounding; a second pass removes what the first left
        R = Y
        for _ in range(2):
            step = X.T @ rows.weigh(R) / rows.total
            R = R - X @ step
            tau += step
        rows = Rows(X, R, omega, affine)
    return rows, tau
