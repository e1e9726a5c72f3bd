"""Known layers, and charts behind them: stretches of input space on which the known layers are one affine map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array


def passed(W: Array, b: Array) -> NDArray[np.intp]:
    """For each unit of a layer the one in front that it passes on as it is; −1 where it does not."""
    alone = (np.count_nonzero(W, axis=1) == 1) & (W.max(axis=1) == 1.0) & (b == 0.0)
    return np.where(alone, W.argmax(axis=1), -1)


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

    def gradient(self, X: Array, G: Array) -> Array:
        """The gradients (n, d) of G·h_k at the rows of X, G (n, width)."""
        for (W, _), z in zip(self.layers[::-1], self.before(X)[::-1]):
            G = np.asarray((G * (z > 0.0)) @ W)
        return G

    def region(self, x: Array) -> tuple[NDArray[np.intp], Array, Array, Array, Array]:
        """Around x: the active units A of the last layer, h_A = Jx + shift, valid on {rows·x + offsets ≥ 0}."""
        if not self.layers:
            return np.arange(self.d), np.eye(self.d), np.zeros(self.d), np.zeros((0, self.d)), np.zeros(0)
        at = self.regions(x[None])
        last = slice(at.on.shape[1] - self.width, None)
        active = np.flatnonzero(at.on[0, last])
        rows, offsets = at.rows[0], at.offsets[0]
        return active, rows[last][active], offsets[last][active], rows, offsets

    def regions(self, X: Array) -> Regions:
        """The regions around the rows of X."""
        n = len(X)
        on, rows, offsets = np.zeros((n, 0), dtype=bool), np.zeros((n, 0, self.d)), np.zeros((n, 0))
        M, shift = np.zeros((n, 0, self.d)), np.zeros((n, 0))
        found = [(on, rows, offsets)]
        for k, (W, b) in enumerate(self.layers):
            M, shift = (W @ M, shift @ W.T + b) if k else (np.broadcast_to(W, (n, *W.shape)), np.tile(b, (n, 1)))
            on = (M @ X[:, :, None])[:, :, 0] + shift > 0.0
            sign = np.where(on, 1.0, -1.0)
            found.append((on, sign[:, :, None] * M, sign * shift))
            M, shift = M * on[:, :, None], shift * on
        return Regions(*(np.concatenate(parts, axis=1) for parts in zip(*found)))

    def chart(self, x: Array) -> Chart | None:
        """The chart around x, or None where too few inputs move the active units of the last layer."""
        if not self.layers:
            eye = np.eye(self.d)
            return Chart(x, np.arange(self.d), eye, np.zeros(self.d), eye, eye[:0], np.zeros(0))
        active, J, shift, rows, offsets = self.region(x)
        if not len(active):
            return None
        s = np.linalg.svd(J, compute_uv=False)
        if len(s) < len(active) or s[-1] < 1e-6 * s[0]:
            return None
        return Chart(x, active, J, shift, np.asarray(np.linalg.pinv(J), dtype=np.float64), rows, offsets)

    def moving(self, x: Array, least: int = 2) -> Chart | None:
        """The chart around x in coordinates Ux, U orthonormal: all that moves the active units; None where little does.

        Behind several layers there may be more active units than directions that move them. ``least``: of both.
        """
        if not self.layers:
            return self.chart(x)
        active, J, _, rows, offsets = self.region(x)
        if len(active) < least:
            return None
        s, Vt = np.linalg.svd(J, full_matrices=False)[1:]
        U = Vt[s > 1e-6 * s[0]]
        return Chart(x, active, U, np.zeros(len(U)), U.T, rows, offsets) if len(U) >= least else None


@dataclass
class Regions:
    """Regions {rows·x + offsets ≥ 0}, one for each of n inputs: ``rows`` (n, units, d), ``offsets`` (n, units).

    The units are those of all layers, input side first; ``on``: which of them are, (n, units).
    """

    on: NDArray[np.bool_]
    rows: Array
    offsets: Array

    def room(self, X: Array, ways: Array, but: NDArray[np.intp] | None = None) -> tuple[Array, NDArray[np.intp]]:
        """How far one can go from the rows of X along ``ways`` (n, d), and the unit (n,) that then changes sides.

        ``but``: for each of them one that does not count.
        """
        n = len(X)
        if not self.rows.shape[1]:
            return np.full(n, np.inf), np.zeros(n, dtype=np.intp)
        speed = (self.rows @ ways[:, :, None])[:, :, 0]
        left = np.maximum((self.rows @ X[:, :, None])[:, :, 0] + self.offsets, 0.0)
        ahead = speed < 0.0
        if but is not None:
            ahead[np.arange(n), but] = False
        steps = np.where(ahead, left / np.where(ahead, -speed, 1.0), np.inf)
        number = steps.argmin(axis=1)
        return steps[np.arange(n), number], number


@dataclass
class Chart:
    """h_A = J x + shift on {rows·x + offsets ≥ 0}: there the active units A of the last known layer move freely.

    ``E`` (d, |A|) is the pseudo-inverse of ``J`` (|A|, d): its columns move one active unit each. Of a chart from
    `Known.moving`, J = Eᵀ are directions of x.
    """

    centre: Array
    active: NDArray[np.intp]
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
        ahead, behind = speed < 0.0, speed > 0.0  # a unit that nothing in front moves has no plane
        forward = float(np.min(-room[ahead] / speed[ahead], initial=most))
        backward = float(np.max(-room[behind] / speed[behind], initial=-most))
        return backward, forward
