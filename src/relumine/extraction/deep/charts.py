"""Known layers, and charts behind them: stretches of input space on which the known layers are one affine map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

__all__ = ["Chart", "Known"]


class Known:
    """The layers found so far, h_k = relu(W_k h_{k−1} + b_k) with h_0 = x; none at first."""

    def __init__(self, d: int, layers: tuple[tuple[Array, Array], ...] = ()) -> None:
        self.d, self.layers = d, layers

    @property
    def width(self) -> int:
        """Number of coordinates of h_k."""
        return len(self.layers[-1][1]) if self.layers else self.d

    def __call__(self, X: Array) -> Array:
        """h_k at the rows of X."""
        for W, b in self.layers:
            X = np.maximum(X @ W.T + b, 0.0)
        return X

    def before(self, X: Array) -> list[Array]:
        """z_1 … z_k at the rows of X."""
        found = []
        for W, b in self.layers:
            found.append(X @ W.T + b)
            X = np.maximum(found[-1], 0.0)
        return found

    def chart(self, x: Array) -> Chart | None:
        """The chart around x, or None where too few inputs move the active units of the last layer."""
        if not self.layers:
            eye = np.eye(self.d)
            return Chart(x, np.arange(self.d), eye, np.zeros(self.d), eye, eye[:0], np.zeros(0))
        M, shift, rows, offsets = np.eye(self.d), np.zeros(self.d), [], []
        for W, b in self.layers:
            M, shift = W @ M, W @ shift + b
            on = M @ x + shift > 0.0
            sign = np.where(on, 1.0, -1.0)
            rows.append(sign[:, None] * M)
            offsets.append(sign * shift)
            M, shift = np.where(on[:, None], M, 0.0), np.where(on, shift, 0.0)
        active = np.flatnonzero(on)
        if not len(active):
            return None
        J = M[active]
        s = np.linalg.svd(J, compute_uv=False)
        if len(s) < len(active) or s[-1] < 1e-6 * s[0]:
            return None
        E = np.linalg.pinv(J)
        return Chart(x, active, J, shift[active], E, np.concatenate(rows), np.concatenate(offsets))


@dataclass
class Chart:
    """h_A = J x + shift on {rows·x + offsets ≥ 0}: there the active units A of the last known layer move freely.

    ``E`` (d, |A|) is the pseudo-inverse of ``J`` (|A|, d): its columns move one active unit each.
    """

    centre: Array
    active: Array
    J: Array
    shift: Array
    E: Array
    rows: Array
    offsets: Array

    @property
    def dim(self) -> int:
        """Number of active units."""
        return len(self.active)

    def heights(self, X: Array) -> Array:
        """h_A at the rows of X."""
        return np.asarray(X @ self.J.T + self.shift)

    def reach(self, direction: Array, most: float, x: Array | None = None) -> tuple[float, float]:
        """How far one can go from x (the centre) along a direction, backwards and forwards, within the chart."""
        if not len(self.rows):
            return -most, most
        room = self.rows @ (self.centre if x is None else x) + self.offsets
        speed = self.rows @ direction
        with np.errstate(divide="ignore"):
            t = -room / speed
        forward = float(np.min(t[speed < 0.0], initial=most))
        backward = float(np.max(t[speed > 0.0], initial=-most))
        return backward, forward
