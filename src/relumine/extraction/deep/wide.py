"""Behind a layer whose signs are open: the units of the next one first, by their surfaces, then all signs at once.

A unit of the next layer has θ = (A/2, v, e) on φ = (|z|, h, 1), with v = ½ Σ_j A_j ξ_j V_j: linear in the signs ξ. All
units together are d·m₂ equations for m₁ signs, so this works for layers wider than what feeds them, too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.confirm import Found, judge
from relumine.extraction.deep.inquiry import Inquiry, Pairs, Stop
from relumine.extraction.deep.kinks import segments
from relumine.extraction.deep.last import finish
from relumine.extraction.deep.places import chords
from relumine.extraction.deep.surfaces import Lift, Surface, followed, only
from relumine.extraction.deep.units import Unit
from relumine.extraction.deep.witnesses import Chord, Witness, measure, witnesses_of

Array = NDArray[np.float64]

__all__ = ["behind", "oriented"]

_TURNS = 12  # looks along new lines
_QUIET = 2  # of them without a new unit, after which the layer is taken for complete
_MOST = 8_000  # queries for a line
_FAILED = 15  # witnesses in a row without a surface: the others belong to layers further behind
_SAME = 1e-8  # |θ·φ| over ‖θ‖‖φ‖ of a kink on the surface: measured 1e-12 … 1e-10
_CLEAR = 1e-2  # how far from ±1 the signs of the least squares may be


def behind(at: Inquiry, V: Array, c: Array, free: list[Witness]) -> Found:
    """All layers from the open one on: V (m, width), c (m,), up to signs; ``free``: kinks that are not its own."""
    lift, k = Lift(at.known, V, c), len(at.known.layers) + 1
    surfaces: list[Surface] = []
    tried: set[int] = set()
    quiet, known, pairs = 0, None, None
    for turn in range(_TURNS):
        if turn or not free:
            free = free + _looked(at, lift, pairs)
        before, pairs = len(surfaces), None
        _trace(at, lift, surfaces, free, tried)
        at.run.report(f"layer {k + 1}", turn, float("nan"), len(surfaces))
        at.tell(f"  layer {k + 1} turn {turn}: {len(surfaces)} surfaces, {len(free)} kinks")
        xi = oriented(lift, surfaces)
        if xi is not None:
            known = Known(at.dim, (*at.known.layers, (xi[:, None] * V, xi * c)))
            units = [u for u in (_unit(known, s) for s in surfaces) if u is not None]
            found, pairs = _ended(at, known, units)
            if found is not None:
                return found
        quiet = quiet + 1 if len(surfaces) == before else 0
        if quiet > _QUIET and pairs is None:
            break
    if known is None or not units:
        raise Stop(f"layer {k}: {len(c)} units, and of the layer behind them {len(surfaces)}: the signs stay open")
    at.known = known
    at.say(f"layer {k}: {len(c)} units, signs from {len(surfaces)} units of the next")
    rest = [w for w in free if not _explained(lift, surfaces, [w])[0]]
    return behind(at, np.array([u.w for u in units]), np.array([u.c for u in units]), rest)


def oriented(lift: Lift, surfaces: list[Surface]) -> Array | None:
    """ξ (m,) of the open layer by least squares: Σ_j θ_j ξ_j V_j = v for all surfaces; None: open, or contradictory."""
    m, rows, target = len(lift.c), [], []
    for s in surfaces:
        # units that the surface does not meet are linear on it: their part of v is free
        idle = lift.V[~s.met]
        keep = np.eye(lift.known.width) - np.linalg.pinv(idle) @ idle
        rows.append(keep @ (lift.V.T * s.theta[:m]))
        target.append(keep @ s.theta[m:-1])
    if not rows:
        return None
    A, v = np.concatenate(rows), np.concatenate(target)
    xi, _, rank, _ = np.linalg.lstsq(A, v, rcond=1e-8)
    if rank < m or np.abs(np.abs(xi) - 1.0).max() > _CLEAR:
        return None
    return np.asarray(np.sign(xi))


def _looked(at: Inquiry, lift: Lift, pairs: Pairs | None) -> list[Witness]:
    """Kinks on new lines that the known layers and the open one do not explain."""
    every = Known(at.dim)
    charts, starts, ends = chords(every, 2, at.rng)
    if pairs is not None:
        starts, ends = pairs
    found = segments(at.ask, starts, ends, float(np.sqrt(at.dim)), _MOST * len(starts))
    new = [w for segment in found for w in witnesses_of(Chord(charts[0], segment, 0), 1.0)]
    return [w for w in new if not _on_known(lift, w.point)]


def _on_known(lift: Lift, x: Array) -> bool:
    """Whether x is on a hyperplane of a known unit, or of one of the open layer."""
    _, _, _, rows, offsets = lift.all.region(x)
    near = np.abs(rows @ x + offsets) <= 1e-7 * np.linalg.norm(rows, axis=1) * (1.0 + np.linalg.norm(x))
    return bool(near.any())


def _explained(lift: Lift, surfaces: list[Surface], found: list[Witness]) -> NDArray[np.bool_]:
    X = np.array([w.point for w in found])
    on = [lift.off(s.theta, X) <= _SAME for s in surfaces]
    return np.asarray(np.any(on or [np.zeros(len(X), dtype=bool)], axis=0))


def _trace(at: Inquiry, lift: Lift, surfaces: list[Surface], free: list[Witness], tried: set[int]) -> None:
    """Follow the surface of every kink that is on none yet, the clearest first."""
    failed = 0
    for w in sorted(free, key=lambda w: -w.gap * abs(w.jump)):
        if id(w) in tried or _on_known(lift, w.point) or _explained(lift, surfaces, [w])[0]:
            continue
        tried.add(id(w))
        result = measure(at.ask, w, at.rng)
        surface = None if result is None else followed(at.ask, lift, w.point, result[0], at.rng)
        if surface is None:
            failed += 1
            if failed > _FAILED:
                return
            continue
        failed = 0
        surfaces.append(surface)


def _unit(known: Known, surface: Surface) -> Unit | None:
    """A unit's weights on the layer in front of it, now that its signs are known: A·h + b = 0 at all points."""
    F = known(np.array(surface.points))
    theta = only(np.column_stack([F, np.ones(len(F))]))
    if theta is None:
        return None
    theta /= np.linalg.norm(theta[:-1])
    return Unit(theta[:-1], float(theta[-1]), np.asarray(F.any(axis=0)), 1e-9)


def _ended(at: Inquiry, known: Known, units: list[Unit]) -> tuple[Found | None, Pairs | None]:
    """The network, if these units are the last."""
    if not units:
        return None, None
    before, at.known = at.known, known
    net, pairs = finish(at, units)
    found = None
    if net is not None:
        found, pairs = judge(at, net)
    if found is None:
        at.known = before
    return found, pairs
