"""Small balls around corners: there the box is one affine map of the activations in front.

In a small ball the box is an affine map of the activations h in front, f = G·h + …. Inside one region of the known
layers, h moves in few directions only. In a ball around a *corner*, where many known units change sides at once, it
moves in many, and the same G holds on all sides, as long as no unit further behind has a kink there: then the answers
would not be affine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import ROUNDING
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.known.charts import Known

Mask = NDArray[np.bool_]

BALLS = (1e-4, 1e-6)  # radius over the size of x: in most of the first there is no kink of a unit further behind
EDGE = 1e-4  # activation over all of them up to which a unit in front is at its edge: its weights say nothing of sides
_OVER = 8  # rows in a ball beyond twice the units
_SHORT = 0.7  # of the way to a unit that is to stay on its side
_MOVES = 1e-3  # singular value over the largest from which h moves in a direction


@dataclass
class Point:
    """In a ball h moves along the columns of B (width, r), and f by g (r,) along them; ``h`` in its middle, ``x``."""

    B: Array
    g: Array
    h: Array
    x: Array | None = None

    @property
    def moves(self) -> Mask:
        """Which units in front do."""
        return np.asarray(np.linalg.norm(self.B, axis=1) > EDGE)


def corner(
    known: Known, x: Array, rng: np.random.Generator, unit: Array | None = None, most: int | None = None
) -> Array:
    """A corner of the region around x: from edge to edge, until as many units as can be are about to change sides.

    ``unit``: (w, c) of one behind the known layers that is to stay on its side; ``most`` edges, not all.
    """
    W = known.layers[0][0]
    active, J, shift, rows, offsets = known.region(x)
    size = np.linalg.norm(rows, axis=1)
    rows, offsets = rows[size > 0.0] / size[size > 0.0, None], offsets[size > 0.0] / size[size > 0.0]
    wall = np.zeros((1, len(x))) if unit is None else (unit[active] @ J)[None]
    height = np.ones(1) if unit is None else unit[active] @ (J @ x + shift)[None].T + unit[-1]
    wall, left = wall * np.sign(height), np.abs(height)
    met = np.zeros((0, len(x)))
    for _ in range(min(*W.shape, len(W) if most is None else most)):
        u = rng.normal(size=len(W)) @ W
        u -= met.T @ (met @ u)
        u /= np.linalg.norm(u)
        u -= met.T @ (met @ u)
        room = np.maximum(rows @ x + offsets, 0.0)
        for way in (u, -u):
            steps = _steps(rows @ way, room)
            number, room_left = int(steps.argmin()), float(_steps(wall @ way, left)[0])
            if steps[number] < _SHORT * room_left:
                break
        else:
            break
        x, left = x + steps[number] * way, left + steps[number] * wall @ way
        new = rows[number] - met.T @ (met @ rows[number])
        met = np.vstack([met, new / np.linalg.norm(new)])
    return x


def normal(known: Known, unit: Array, x: Array) -> Array:
    """The direction in which a unit (w, c) behind the known layers grows at x; zero where it does not."""
    active, J, _, _, _ = known.region(x)
    n = unit[active] @ J
    return np.asarray(n / max(float(np.linalg.norm(n)), 1e-300))


def _steps(speed: Array, room: Array) -> Array:
    """How far it is to where so much room is used up, at such speeds; infinite where it is not."""
    ahead = speed < -1e-6
    return np.asarray(np.where(ahead, room / np.where(ahead, -speed, 1.0), np.inf))


def ball(at: Inquiry, x: Array, radius: float) -> tuple[Array, Array]:
    """x, and rows around it, as far as they move what is known."""
    W = at.known.layers[0][0]
    ways = at.rng.normal(size=(2 * at.known.width + _OVER, len(W))) @ W
    ways *= radius * (0.1 * np.sqrt(at.dim) + float(np.linalg.norm(x))) / np.linalg.norm(ways, axis=1, keepdims=True)
    return x, x + ways


def moved(known: Known, x: Array, near: Array) -> tuple[Array, Array]:
    """The directions (width, r) in which h moves between x and rows near to it, and by how much, (n, r)."""
    D = known(near) - known(x[None])
    _, s, Vt = np.linalg.svd(D, full_matrices=False)
    B = Vt[s > _MOVES * max(float(s[0]), 1e-300)].T
    return B, D @ B


def affine_around(at: Inquiry, x: Array) -> Point | None:
    """What the box does around x; None where it is not affine in what moves, or hardly moves at all."""
    for radius in BALLS:
        _, near = ball(at, x, radius)
        B, D = moved(at.known, x, near)
        if B.shape[1] < 2:
            return None
        y = at.ask(np.vstack([x, near]))
        change, noise = y[1:] - y[0], 8.0 * ROUNDING * float(np.abs(y).max())
        g = np.linalg.lstsq(D, change, rcond=None)[0]
        size = float(np.abs(change).max())
        if size <= 1e3 * noise:
            return None
        if np.abs(D @ g - change).max() <= 1e-6 * size + noise:
            return Point(B, g, at.known(x[None])[0], x)
    return None
