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
_DEPTH = 12
_CLEAR = 1e-2  # how far from ±1 the signs of the least squares may be


def behind(at: Inquiry, V: Array | None = None, c: Array | None = None, free: list[Witness] | None = None) -> Found:
    """All layers behind the known ones and, if there is one, an open one V (m, width), c (m,), up to signs.

    ``free``: kinks that are not those of the open layer.
    """
    lift = Lift(at.known, V, c)
    search = _Surfaces(at, lift, free or [])
    known = search.all()
    if isinstance(known, Found):
        return known
    units = search.units(known)
    k = len(known.layers)
    at.known = known
    if len(lift.c):
        at.say(f"layer {k}: {len(lift.c)} units, signs from {len(units)} units of the next")
    if k + 1 >= _DEPTH:
        raise Stop(f"more than {_DEPTH} layers")
    return behind(at, np.array([u.w for u in units]), np.array([u.c for u in units]), search.rest())


class _Surfaces:
    """The units of one layer by their surfaces."""

    def __init__(self, at: Inquiry, lift: Lift, free: list[Witness]) -> None:
        self.at, self.lift, self.free = at, lift, free
        self.surfaces: list[Surface] = []
        self.tried: set[int] = set()
        at.mark = at.ask.count

    def all(self) -> Found | Known:
        """The network, if this layer is the last; else the known layers, with signs, in front of it."""
        at, lift, quiet, pairs, known = self.at, self.lift, 0, None, None
        k = len(lift.all.layers) + 1
        for turn in range(_TURNS):
            if turn or not self.free:
                self.free = self.free + _looked(at, lift, pairs)
            before, pairs = len(self.surfaces), None
            self.trace()
            at.run.report(f"layer {k}", turn, float("nan"), len(self.surfaces))
            at.tell(f"  layer {k} turn {turn}: {len(self.surfaces)} surfaces, {len(self.free)} kinks")
            xi = oriented(lift, self.surfaces)
            if xi is not None:
                known = at.known
                if len(xi):
                    known = Known(at.dim, (*known.layers, (xi[:, None] * lift.V, xi * lift.c)))
                found, pairs = _ended(at, known, self.units(known))
                if found is not None:
                    return found
            quiet = quiet + 1 if len(self.surfaces) == before else 0
            if quiet > _QUIET and pairs is None:
                break
        if known is None or not self.surfaces:
            front = f"{len(lift.c)} units, the signs of which stay open; " if len(lift.c) else ""
            raise Stop(f"layer {k - 1}: {front}of the layer behind it {len(self.surfaces)} units were found")
        return known

    def trace(self) -> None:
        """Follow the surface of every kink that is on none yet, the clearest first."""
        failed = 0
        for w in sorted(self.free, key=lambda w: -w.gap * abs(w.jump)):
            if id(w) in self.tried or _on_known(self.lift, w.point) or self.explained(w):
                continue
            self.tried.add(id(w))
            result = measure(self.at.ask, w, self.at.rng)
            if result is not None:
                normal = w.chord.chart.J.T @ result[0]
                surface = followed(self.at.ask, self.lift, w.point, normal, self.at.rng)
                if surface is not None:
                    self.surfaces.append(surface)
                    failed = 0
                    continue
            failed += 1
            if failed > _FAILED:
                return

    def explained(self, w: Witness) -> bool:
        """Whether a kink is on a surface that was followed."""
        return any(s.shows(w.point) for s in self.surfaces)

    def rest(self) -> list[Witness]:
        """Kinks of layers further behind."""
        return [w for w in self.free if not self.explained(w)]

    def units(self, known: Known) -> list[Unit]:
        """The units on the layer in front of them, now that its signs are known: A·h + b = 0 at all points."""
        units = []
        for surface in self.surfaces:
            H = known(np.array(surface.points))
            theta = only(np.column_stack([H, np.ones(len(H))]))
            if theta is not None:
                theta /= np.linalg.norm(theta[:-1])
                units.append(Unit(theta[:-1], float(theta[-1]), np.asarray(H.any(axis=0)), 1e-9))
        return units


def oriented(lift: Lift, surfaces: list[Surface]) -> Array | None:
    """ξ (m,) of the open layer by least squares: Σ_j θ_j ξ_j V_j = v for all surfaces; None: open, or contradictory."""
    m, rows, target = len(lift.c), [], []
    for s in surfaces:
        # units that the surface does not meet are linear on it: their part of v is free
        a, v = s.even
        idle = lift.V[~s.seen[:m]]
        keep = np.eye(lift.known.width) - np.linalg.pinv(idle) @ idle
        rows.append(keep @ (lift.V.T * a))
        target.append(keep @ v)
    if not rows or not m:
        return np.zeros(0) if rows else None
    A, v = np.concatenate(rows), np.concatenate(target)
    xi, _, rank, _ = np.linalg.lstsq(A, v, rcond=1e-8)
    if rank < m or np.abs(np.abs(xi) - 1.0).max() > _CLEAR:
        return None
    return np.asarray(np.sign(xi))


def _looked(at: Inquiry, lift: Lift, pairs: Pairs | None) -> list[Witness]:
    """Kinks on new chords that the known layers and the open one do not explain."""
    charts, starts, ends = chords(at.known, 4 if at.known.layers else 2, at.rng, pairs if at.known.layers else None)
    if pairs is not None and not at.known.layers:
        starts, ends = pairs
        charts = charts[:1] * len(starts)
    if not charts:
        raise Stop(f"no chart in which the active units of layer {len(at.known.layers)} move freely")
    scale = float(np.sqrt(at.dim) if not at.known.layers else np.median(np.linalg.norm(ends - starts, axis=1)))
    found = segments(at.ask, starts, ends, scale, _MOST * len(starts))
    new = [w for chart, segment in zip(charts, found) for w in witnesses_of(Chord(chart, segment, 0), 1.0)]
    return [w for w in new if not _on_known(lift, w.point)]


def _on_known(lift: Lift, x: Array) -> bool:
    """Whether x is on a hyperplane of a known unit, or of one of the open layer."""
    _, _, _, rows, offsets = lift.all.region(x)
    near = np.abs(rows @ x + offsets) <= 1e-7 * np.linalg.norm(rows, axis=1) * (1.0 + np.linalg.norm(x))
    return bool(near.any())


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
