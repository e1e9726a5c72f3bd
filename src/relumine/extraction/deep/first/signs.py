"""On which side a unit is on: where its dual direction changes nothing, it is off."""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import ROUNDING, Asked
from relumine.extraction.deep.asking.kinks import SIDE
from relumine.extraction.deep.asking.witnesses import Witness
from relumine.extraction.deep.first.units import Unit

_LOOKS, _MORE = 2, 6  # witnesses asked for each unit, two rows each; more where those do not tell
_STEP = 0.004  # length of a difference over the gap, as in a sketch
_STAY = 0.2  # of the way to the unit: a chord nearly parallel to it has base points next to it


def signs(ask: Asked, units: list[Unit]) -> Array:
    """ξ (m,): +1 if the unit is on where w·h + c > 0, −1 if it is on the other side, 0 if that is open.

    In a chart in which the rows V_A of all units are independent, the direction E V_A⁺ e_i moves z_i alone. On the off
    side of unit i nothing changes along it; on the on side the derivative is the whole jump.
    """
    duals = _Duals(np.array([u.w for u in units]))
    found = np.zeros(len(units))
    for i, u in enumerate(units):
        votes: list[float] = []
        for asked, w in enumerate(sorted(u.witnesses, key=lambda w: -w.clarity)[:_MORE]):
            if asked >= _LOOKS and any(votes):
                break
            inverse = duals.at(w)
            if inverse is not None:
                votes.append(_vote(ask, u, w, inverse[:, i]))
        votes = [v for v in votes if v]
        if votes and all(v == votes[0] for v in votes):
            found[i] = votes[0]
    return found


class _Duals:
    """V_A⁺ (|A|, m) for the units A that are on at a witness, each computed once; None where rows are dependent."""

    def __init__(self, V: Array) -> None:
        self.V = V
        self.known: dict[bytes, Array | None] = {}

    def at(self, w: Witness) -> Array | None:
        active = w.chord.chart.active
        key = active.tobytes()
        if key not in self.known:
            self.known[key] = _inverse(self.V[:, active])
        return self.known[key]


def _inverse(A: Array) -> Array | None:
    if A.shape[0] > A.shape[1]:
        return None
    U, s, V = np.linalg.svd(A, full_matrices=False)
    return np.asarray((V.T / s) @ U.T) if s[-1] > 1e-6 * s[0] else None


def _vote(ask: Asked, u: Unit, w: Witness, inverse: Array) -> float:
    """The side whose derivative along the dual direction is nothing, as seen from the other's."""
    chart = w.chord.chart
    dual = chart.E @ inverse
    speed = 1.0 / float(np.linalg.norm(dual))  # of z_i along it
    dual *= speed
    side = SIDE * w.gap * w.along
    points = np.stack([w.point - side, w.point + side])
    z = np.array([chart.heights(p) @ u.w[chart.active] + u.c for p in points])
    step = min(_STEP * w.room, _STAY * float(np.abs(z).min()) / speed)
    if step == 0.0:
        return 0.0
    y = ask(points + step * dual)
    slopes = np.abs(y - w.base) / step
    noise = 4.0 * max(ROUNDING * float(np.abs(y).max()), 4.0 * w.sigma) / step
    on = int(slopes.argmax())
    if slopes[on] <= 50.0 * noise or slopes[1 - on] > max(1e-5 * slopes[on], 5.0 * noise):
        return 0.0
    return float(np.sign(z[on]))
