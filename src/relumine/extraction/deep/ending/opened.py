"""Open weights of units of the last layer: those of which no row has told so far, as the unit in front is seldom on.

Next to where that one turns on, its weights do not decide which units behind it are on: there they are told, of one
unit, or of all units at once (`columns`). Where only sums of them show, the least ones are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.ending.columns import inside, several, solved, walked
from relumine.extraction.deep.ending.equations import Equations
from relumine.extraction.deep.ending.linear import sized
from relumine.extraction.deep.ending.residue import Residue
from relumine.extraction.deep.ending.showing import Place, joint

_NEAR = 3  # inputs from which an open weight is looked for
_EDGE = np.array([0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995])  # of the way to where the unit in front of it turns off
_OFTEN = 3  # times that such inputs are looked for, and inputs with the same units on
_WAY, _LINEAR = (0.0, 0.5, 1.0), 1e-5  # where to ask on a way, and how far off what is left may be from linear on it
_NOTHING = 1e-9  # of the largest column of these equations: none
_SHARES = (0.1, 0.3, 0.6, 1.0, 1.0)  # of the rows, by which all open weights are solved for at once


class Opened(Residue):
    """More weights of units found."""

    def each(self, look: Callable[[int, Equations, list[Equations]], None]) -> bool:
        """Look at each unit with open weights, beside the others; whether more is known of any."""
        more = False
        for i, unit in enumerate(self.units):
            if not unit.known.all():
                known = len(unit.span)

                def step(i: int = i, known: int = known) -> bool:
                    look(i, self.units[i], [*self.units[:i], *self.units[i + 1 :]])
                    return len(self.units[i].span) > known

                more |= self.kept(step)
        return more

    def together(self) -> bool:
        """The same, next to where the unit in front of an open weight turns on: the weight cannot turn this one off."""
        X = self.X
        F = np.column_stack([self.front(X), np.ones(len(X))])

        def look(i: int, unit: Equations, others: list[Equations]) -> None:
            for j in np.flatnonzero(~unit.known):
                P = [self.to_edge(x, int(j)) for x in self.both(i, int(j), X, F)]
                if P:
                    unit.take(*self.asked(others, np.concatenate(P)))

        return self.each(look)

    def both(self, i: int, j: int, X: Array, F: Array) -> Array:
        """Some inputs at which a unit is on, by what is known, and unit j in front: of those asked, then others."""
        unit = self.units[i]
        z = unit.strength(F)
        there = np.flatnonzero((z > 0.0) & (F[:, j] > 0.0))
        unit.sought[j] += 1
        if unit.sought[j] > _OFTEN:
            return X[:0]
        if len(there) and unit.sought[j] == 1:
            # alone among those that are open, and hardly on
            others = (F[there][:, :-1][:, ~unit.known] > 0.0).sum(axis=1)
            return X[there[np.lexsort((F[there, j] / z[there], others))[:_NEAR]]]
        unit.sought[j] = _OFTEN
        place = Place(len(self.net.layers), self.net.head.m + i, j)
        shown = joint(self.network(self.units), [place], X, self.at.rng)
        return np.reshape([P[0] for _, P in shown], (-1, self.at.dim))

    def to_edge(self, x: Array, j: int) -> Array:
        """Inputs on the way from x to where unit j in front turns off, nearer and nearer to that."""
        *_, rows, offsets = self.front.region(x)
        k = len(rows) - self.front.width + j
        g, z = rows[k], float(rows[k] @ x + offsets[k])
        return np.asarray(x - _EDGE[:, None] * z / max(float(g @ g), 1e-300) * g)

    def columns(self) -> bool:
        """Weights of units in front into several units, from where those turn on; whether more is known."""
        more, X = False, self.X
        H, open_ = self.front(X), np.zeros((len(self.units), self.front.width), dtype=bool)
        for i, unit in enumerate(self.units):
            open_[i] = ~unit.known
        loose = np.isin(np.arange(self.front.width), self.loose)
        for j in np.flatnonzero((open_.sum(axis=0) > 1) | loose).tolist():
            starts = X[H[:, j] > 0.0]
            if len(starts) and self.tried.count(j) < _OFTEN:
                self.tried.append(j)
                more |= self.kept(partial(self.column, j, starts))
        return more

    def column(self, j: int, starts: Array) -> bool:
        """The weights of unit j in front, as far as inputs next to where it turns on tell them; whether any is new."""
        units = [unit for unit in self.units if not unit.known[j]]
        P, on = self.beside(j, starts, units)
        if len(P) < len(units):
            return False
        head = self.network(self.units).head
        way, tau = inside(self.front, P, j, np.where(np.arange(head.d) == j, 0.0, head.W), head.b)
        some = np.all([self.at.ask.digits(P + t * way) for t in _WAY], axis=0)
        P, on, way, tau = P[some], on[some], way[some], tau[some]
        zero, half, r = (self.left_at(P + t * way) for t in _WAY)
        noise, size = self.noise * sized(P), np.abs(r - zero).max(axis=1)
        straight = np.abs(r - 2.0 * half + zero).max(axis=1) <= np.maximum(3.0 * noise, _LINEAR * size)
        use = straight & ~self.wrong(zero / sized(P)[:, None])  # nothing else is missing there, none changes sides
        P, on, tau, noise, r = P[use], on[use], tau[use], noise[use], (r - zero)[use]
        if len(P) < len(units):
            return False
        parts, (n, q), linear = [unit.unit() for unit in units], r.shape, bool(self.net.head.v.any())
        A = np.concatenate(
            [
                np.stack([np.outer(mine, a) for mine, (_, _, a) in zip(on.T, parts)], axis=2).reshape(n * q, -1),
                np.tile(np.eye(q), (n, 1))[:, : q * linear],
            ],
            axis=1,
        )
        delta, off, told = solved(A, (r / tau[:, None]).ravel(), np.repeat(noise / tau, q))
        if not told[: len(units)].any():
            return False
        for i, (unit, (w, _, a)) in enumerate(zip(units, parts)):
            if told[i]:
                unit.tell(P[on[:, i]][0], j, (w[j] + delta[i]) * a, off[i] * a)
        if linear:
            self.loose = [k for k in self.loose if k != j] + ([] if told[len(units) :].all() else [j])
        self.guess([(unit, j) for unit in units], delta, [j] if linear else [])
        return True

    def beside(self, j: int, starts: Array, units: list[Equations]) -> tuple[Array, NDArray[np.bool_]]:
        """Inputs where unit j in front turns on, a few for each set of these units that are on there, and those sets.

        None at which another open weight counts.
        """
        P = walked(self.front, starts, j, self.at.rng)
        F = np.column_stack([self.front(P), np.ones(len(P))])
        F[:, j] = 0.0
        use = ~self.open(self.units, F)
        P, on = P[use], np.array([unit.strength(F[use]) > 0.0 for unit in units]).reshape(len(units), -1).T
        some = several(on, _OFTEN, self.at.rng) if on.any() else np.zeros(0, dtype=np.intp)
        return P[some], on[some]

    def left_at(self, P: Array) -> Array:
        """What is left at these inputs (n, q)."""
        X, Y = self.ask(P)
        return np.asarray(self.left(self.units, X, Y)[1] * sized(X)[:, None])

    def shared(self) -> bool:
        """Whether open weights of several units at once explain more rows; the least ones where only sums show.

        Where a unit in front is seldom on, its weights into many units are open, and in the linear part, too.
        """
        more = False
        for share in _SHARES:
            more |= self.kept(partial(self.by_rows, share), fewer=1)
        return more

    def by_rows(self, share: float) -> bool:
        """Open weights by least squares, from this share of the rows at which they count; False where none do."""
        F, R = self.left(self.units, self.X, self.Y)
        places = [(unit, int(j)) for unit in self.units for j in np.flatnonzero(~unit.known)]
        rows = np.flatnonzero(self.open(self.units, F))
        if not places or not len(rows):
            return False
        F, R = F[rows], R[rows]
        # first rows at which open weights hardly count: there it is known which units are on
        doubt = np.max([F[:, j] / (np.abs(unit.strength(F)) + _NOTHING) for unit, j in places], axis=0)
        use = np.argsort(doubt)[: int(share * len(rows)) + 1]
        columns = []
        for unit, j in places:
            w, b, a = unit.unit()
            columns.append(((F[use] @ np.append(w, b) > 0.0) * F[use, j])[:, None] * a)
        q, linear = R.shape[1], sorted({j for _, j in places}) if self.net.head.v.any() else []
        columns += [np.outer(F[use, j], np.eye(q)[k]) for j in linear for k in range(q)]
        A = np.stack([column.ravel() for column in columns], axis=1)
        scale = np.linalg.norm(A, axis=0)
        counts = scale > _NOTHING * scale.max(initial=0.0)
        change = np.zeros(len(scale))
        change[counts] = np.linalg.lstsq(A[:, counts] / scale[counts], R[use].ravel(), rcond=1e-12)[0] / scale[counts]
        self.guess(places, change, linear)
        return True

    def guess(self, places: list[tuple[Equations, int]], change: Array, linear: list[int]) -> None:
        """Add to open weights, and to these columns of v."""
        for (unit, j), delta in zip(places, change):
            unit.guess[j] += delta
        v = np.array(np.atleast_2d(self.net.head.v))
        v[:, linear] += change[len(places) :][: v.shape[0] * len(linear)].reshape(len(linear), v.shape[0]).T
        head = self.net.head
        self.net = DeepNetwork(self.net.layers, head.replace(v=v.reshape(np.shape(head.v))))

    def silenced(self) -> bool:
        """Whether open weights were replaced: the box says that a unit is off where it would be on without them."""
        new, X, Y = False, self.X, self.Y
        for i, unit in enumerate(self.units):
            F, R = self.left([*self.units[:i], *self.units[i + 1 :]], X, Y)
            new |= unit.silence(F[unit.open(F) & ~self.wrong(R)])
        return new
