"""Units of the last layer that few inputs show: what is left of the answers is a network of these alone.

With all layers in front known, and a head that is right at most inputs,

    r(x) = f(x) − f̂(x) = φ(x)·θ,    φ = (h, 1), θ = a_i (w_i, b_i)                                                 (1)

wherever one missing unit i is on and no other (or off, if it was on at all rows so far and is part of v·h + c). That is
so next to the edge of {r ≠ 0}. There (1) is solved in one linear region of the layers in front, and then followed into
others: each unit in front that changes sides on the way adds one direction of φ, and three rows that agree on θ along
it take it in (`equations`). A row of the box is an equation for all weights at once, where following the surface of a
unit takes many rows for each.
"""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending.equations import Equations
from relumine.extraction.deep.ending.linear import error, oriented, sized
from relumine.extraction.deep.ending.opened import Opened
from relumine.extraction.deep.ending.residue import Some
from relumine.extraction.deep.known.places import breaks

_TURNS = 30  # times that units, or weights of them, are looked for: networks fitted to the digits lacked up to eight
_STARTS, _HALVES = 4, 8  # inputs to start from, and times that the way to the edge is halved: there one unit is on
_STALE, _NEARLY = 4, 0.01  # turns without fewer rows that differ, and the share of them that others wait for a polish
_MOST, _LEFT = 20_000, 0.5  # rows to ask, and the share of those that differed which may do so in the end
_RIGHT = 1000  # rows that fit among which the nearest is looked for
# Rounds of rays from rows of a unit into other regions, those where weights stay open, and rays in each.
_ROUNDS, _AGAIN, _RAYS = 12, 4, 8
_STRETCH = np.array([0.25, 0.5, 0.75])  # of a ray in one region: three rows confirm one direction
_CROSSED = 3  # regions that a ray crosses, at the most
_REACH = (1.0, 0.1, 0.01, 1e-3)  # of the first region, in which rows must agree: other missing units may end it
_MORE = 6  # rows of a region, beyond one for each direction
_BESIDE = 2  # rows that show an open weight, beside which there are more
# Places at which a unit must end, how near to them, and the share at which it does: others may be on there. A sum of
# two units ended nowhere, single ones at nine places in ten.
_ENDS, _CLOSE, _SHARE = 12, 0.05, 0.4


def completed(at: Inquiry, net: DeepNetwork, slack: float) -> DeepNetwork:
    """The network with the units of its last layer that rows asked so far show it to lack, as far as they show them.

    ``net`` is right at most inputs; ``slack`` is the error of a row that contradicts it (`linear.error`).
    `Inquiry.open` says which weights of the last layer no row has shown, before and after.
    """
    if not net.layers or not (error(net, *at.ask.data()) > slack).any():
        return net
    search = _Missing(at, net, slack)
    if not search.all():
        return net
    search.remember()
    known = [np.ones(search.net.head.W.shape, dtype=bool), *[unit.known[None] for unit in search.units]]
    whole, at.open = search.network(search.units), ~np.concatenate(known)
    return DeepNetwork(net.layers, oriented(whole.head, at.open))


class _Missing(Opened):
    """Unit after unit, with all weights."""

    def all(self) -> bool:
        """Unit after unit, until all rows are explained or nothing new comes; whether most rows that differed fit."""
        began, first, best, stale = self.at.ask.count, 0, np.inf, 0
        for turn in range(_TURNS):
            X, Y = self.X, self.Y
            F, R = self.left(self.units, X, Y)
            wrong, open_ = self.wrong(R), self.open(self.units, F)
            old = int(wrong[: self.first].sum())
            first = first if turn else old
            self.at.tell(
                f"   {len(self.units)} units missing or in part: {old} of {self.first} rows differ, "
                f"{int(wrong[self.first :].sum())} of {len(X) - self.first} new, at {int((wrong & open_).sum())} a "
                "weight is open"
            )
            if not wrong.any() or self.at.run.over or self.at.ask.count - began > _MOST:
                break
            best, stale = min(best, old), 0 if old < best else stale + 1
            if stale > _STALE or (turn and old <= _NEARLY * first and 2 * (wrong & open_).sum() > wrong.sum()):
                break  # a polish first
            new = self.begun(X[wrong & ~open_], X[~wrong])
            if not (
                self.further() or new or self.columns() or self.together() or self.shared() or self.kept(self.silenced)
            ):
                break
        return old <= _LEFT * first

    def begun(self, wrong: Array, right: Array) -> bool:
        """One more unit, the one of several that explains most rows; False where there is none."""
        found = [unit for x in self.edges(wrong, right) if (unit := self.local(x)) is not None]
        for unit in found:
            self.grow(unit, self.units)
        gains = [self.gain(unit) for unit in found]  # by the same rows: one may have been found twice, once badly
        for k in np.argsort(gains)[::-1].tolist():
            if gains[k] > 0 and self.ends(found[k]):
                if not any(old.joins(found[k]) for old in self.units):
                    self.units.append(found[k])
                return True
        return False

    def edges(self, wrong: Array, right: Array) -> Array:
        """Next to the edges of what is not explained, on the way from rows that differ to the nearest that do not."""
        out = wrong[self.at.rng.permutation(len(wrong))[:_STARTS]]
        right = right[self.at.rng.permutation(len(right))[:_RIGHT]]
        if not len(right) or not len(out):
            return out
        good = right[[np.linalg.norm(right - x, axis=1).argmin() for x in out]]
        for _ in range(_HALVES):
            middle = 0.5 * (out + good)
            has, bad = self.at.ask.digits(middle), np.zeros(len(out), dtype=bool)
            bad[has] = self.wrong(self.left(self.units, *self.ask(middle))[1])
            out, good = np.where(bad[:, None], middle, out), np.where(bad[:, None], good, middle)
        return out

    def local(self, x: Array) -> Equations | None:
        """θ as far as the linear region of the layers in front around x shows it; None if no part of it is linear."""
        for reach in _REACH:
            rows = self.asked(self.units, x[None])
            for _ in range(2):
                if not len(rows[0]):
                    return None
                rows = _joined(rows, self.asked(self.units, self.inside(x, rows[0], reach)))
            X, F, R = rows
            on = F.any(axis=0)
            if len(X) < on.sum() + 3 and len(X) < _MORE + len(self.directions(x)):
                continue
            scale = np.linalg.norm(F[:, on], axis=0)
            B = np.linalg.lstsq(F[:, on] / scale, R, rcond=1e-15)[0] / scale[:, None]
            worst = float(np.abs(R - F[:, on] @ B).max())
            if worst <= self.noise:
                return Equations(X, F, R, max(3.0 * worst, 0.03 * self.noise))
        return None

    def directions(self, x: Array) -> Array:
        """An orthonormal basis (k, d) of the directions that move the activations in front at x."""
        active, J, *_ = self.front.region(x)
        if not len(active):
            return np.zeros((0, len(x)))
        s, Vt = np.linalg.svd(J, full_matrices=False)[1:]
        return np.asarray(Vt[s > 1e-9 * s[0]])

    def inside(self, x: Array, X: Array, reach: float = 1.0) -> Array:
        """Inputs in the linear region of the layers in front around x, on chords from some of the rows of X in it."""
        V = self.directions(x)
        *_, rows, offsets = self.front.region(x)
        base = X[self.at.rng.integers(len(X), size=len(V) + _MORE)]
        way = self.at.rng.normal(size=(len(base), len(V))) @ V
        way /= np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-300)
        speed, room = way @ rows.T, base @ rows.T + offsets
        end = np.where(speed < -1e-12, room / np.maximum(-speed, 1e-12), np.inf).min(axis=1)
        end = np.minimum(end, 3.0 * np.sqrt(self.at.dim) * sized(base))
        return np.asarray(base + (reach * end * self.at.rng.uniform(0.1, 0.9, size=len(end)))[:, None] * way)

    def gain(self, unit: Equations) -> int:
        """How many more rows are explained with the unit; 0 if one that only known weights count at contradicts it."""
        if not unit.confirmed:
            return 0
        X, Y = self.X, self.Y
        F, before = self.left(self.units, X, Y)
        was, now = self.wrong(before), self.wrong(self.left([*self.units, unit], X, Y)[1])
        return 0 if (now & ~was & ~unit.open(F)).any() else int(was.sum()) - int(now.sum())

    def ends(self, unit: Equations) -> bool:
        """Whether what is left begins where the unit says: a sum of two that are on together begins elsewhere."""
        w, b, _ = unit.unit()
        found = [np.zeros((0, self.at.dim))]
        for x in unit.X[self.at.rng.permutation(len(unit.X))[:_ENDS]]:
            down = _length(-self.slope(x, w))
            way = 3.0 * np.sqrt(self.at.dim) * sized(x[None]) * _length(down + 0.5 * self.aside())
            t = breaks(self.front, x, x + way)
            z = self.front(x + t[:, None] * way) @ w + b
            k = int(np.flatnonzero(np.append((z[:-1] > 0.0) & (z[1:] <= 0.0), True))[0])
            if k + 1 < len(t):
                zero = t[k] + (t[k + 1] - t[k]) * z[k] / (z[k] - z[k + 1])
                near = _CLOSE * min(zero - t[k], t[k + 1] - zero)
                found.append(x + np.array([[zero - near], [zero + near]]) * way)
        P = np.concatenate(found)
        P = P[~(self.front(P)[:, ~unit.known] > 0.0).any(axis=1)]
        right = ~self.wrong(self.left([*self.units, unit], *self.ask(P))[1])
        return bool(len(right)) and float(right.mean()) >= _SHARE

    # -- their weights -------------------------------------------------------------------------------------------

    def grow(self, unit: Equations, others: list[Equations], rounds: int = _ROUNDS) -> None:
        """Follow the unit into other regions, until all its weights are known."""
        pool = self.contradicting(others, self.X, self.Y)
        for x in self.at.rng.permutation(pool[0][unit.open(pool[1])])[:_BESIDE]:
            pool = _joined(pool, self.asked(others, self.inside(x, x[None])))
        for _ in range(rounds):
            unit.take(*pool)
            if unit.known.all() or self.at.run.over:
                return
            pool = self.asked(others, np.concatenate([self.ray(unit) for _ in range(_RAYS)]))

    def ray(self, unit: Equations) -> Array:
        """Three inputs in another region on the way from a row of the unit; every other time towards an open weight."""
        rng, base = self.at.rng, unit.X[self.at.rng.integers(len(unit.X))]
        way = self.aside()
        closed = np.flatnonzero(~unit.known & (self.front(base[None])[0] == 0.0))
        if len(closed) and rng.random() < 0.5:
            way = self.towards(base, int(rng.choice(closed)), unit) + 0.3 * way
        way = _length(way) * np.sqrt(self.at.dim) * sized(base[None]) * 10.0 ** rng.uniform(-1.0, 0.5)
        t = breaks(self.front, base, base + way)  # 0 and 1 among them
        k = int(rng.integers(1, min(len(t) - 2, _CROSSED) + 1)) if len(t) > 2 else 0
        return np.asarray(base + (t[k] + (t[k + 1] - t[k]) * _STRETCH[:, None]) * way)

    def aside(self) -> Array:
        """A random direction that the first layer sees, of length one."""
        return _length(self.basis @ self.at.rng.normal(size=self.basis.shape[1]))

    def slope(self, x: Array, w: Array) -> Array:
        """The gradient of w·h at x."""
        active, J, *_ = self.front.region(x)
        return np.asarray(w[active] @ J)

    def towards(self, x: Array, j: int, unit: Equations) -> Array:
        """The direction in which unit j in front, which is off, comes on and this one does not go off."""
        *_, rows, _ = self.front.region(x)
        way, up = _length(-rows[len(rows) - self.front.width + j]), _length(self.slope(x, unit.unit()[0]))
        return np.asarray(way + (max(-float(way @ up), 0.0) + 0.1) * up)

    def further(self) -> bool:
        """More weights of the units found; whether there were any."""
        return self.each(lambda i, unit, others: self.grow(unit, others, _AGAIN))


def _joined(one: Some, two: Some) -> Some:
    return np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]]), np.concatenate([one[2], two[2]])


def _length(v: Array) -> Array:
    """v of length one."""
    return np.asarray(v / max(float(np.linalg.norm(v)), 1e-300))
