"""On which side a unit is on: where its dual direction changes nothing, it is off."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.deep.box import ROUNDING, Asked
from relumine.extraction.deep.kinks import SIDE
from relumine.extraction.deep.units import Unit
from relumine.extraction.deep.witnesses import Witness

Array = NDArray[np.float64]

__all__ = ["signs"]

_LOOKS = 2  # witnesses asked for each unit: two rows each
_STEP = 0.004  # length of a difference over the gap, as in a sketch


def signs(ask: Asked, units: list[Unit]) -> Array:
    """ξ (m,): +1 if the unit is on where w·h + c > 0, −1 if it is on the other side, 0 if that is open.

    In a chart in which the rows V_A of all units are independent, the direction E V_A⁺ e_i moves z_i alone. On the off
    side of unit i nothing changes along it; on the on side the derivative is the whole jump.
    """
    V = np.array([u.w for u in units])
    found = np.zeros(len(units))
    for i, u in enumerate(units):
        votes = []
        usable = [w for w in sorted(u.witnesses, key=lambda w: -w.clarity) if _independent(V, w)]
        for w in usable[:_LOOKS]:
            votes.append(_vote(ask, V, u, i, w))
        votes = [v for v in votes if v]
        if votes and all(v == votes[0] for v in votes):
            found[i] = votes[0]
    return found


def _independent(V: Array, w: Witness) -> bool:
    A = V[:, w.chord.chart.active]
    if A.shape[0] > A.shape[1]:
        return False
    s = np.linalg.svd(A, compute_uv=False)
    return bool(s[-1] > 1e-6 * s[0])


def _vote(ask: Asked, V: Array, u: Unit, i: int, w: Witness) -> float:
    """The side whose derivative along the dual direction is nothing, as seen from the other's."""
    chart = w.chord.chart
    dual = chart.E @ np.linalg.pinv(V[:, chart.active])[:, i]
    dual /= np.linalg.norm(dual)
    side, step = SIDE * w.gap * w.along, _STEP * w.room
    points = np.stack([w.point - side, w.point + side])
    y = ask(points + step * dual)
    slopes = np.abs(y - w.base) / step
    noise = 4.0 * max(ROUNDING * float(np.abs(y).max()), 4.0 * w.sigma) / step
    z = np.array([chart.heights(p) @ u.w[chart.active] + u.c for p in points])
    on = int(slopes.argmax())
    if slopes[on] <= 50.0 * noise or slopes[1 - on] > max(1e-5 * slopes[on], 5.0 * noise):
        return 0.0
    return float(np.sign(z[on]))
