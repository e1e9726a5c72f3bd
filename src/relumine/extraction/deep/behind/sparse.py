"""Signs of a layer with more units than move freely, and weights that no kink shows: from gradients around corners.

What the box does in a small ball around a corner (`balls`) is a sum over the units of the layer that are on there
(`sums`). Balls are asked for where they tell most about what is still open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.behind import hidden
from relumine.extraction.deep.behind.balls import BALLS, EDGE, Point, affine_around, ball, corner, moved, normal
from relumine.extraction.deep.behind.passing import kept
from relumine.extraction.deep.behind.sums import FITS, added, fitted, told_by
from relumine.extraction.deep.known.climb import corners, furthest, headless
from relumine.extraction.deep.known.reach import reach

Mask = NDArray[np.bool_]

_POINTS, _CORNERS = 100_000, 1500  # random inputs; corners of the regions of some of them
# Times as many inputs at which it is asked, without the box, whether two units are on together. In the fourth layer of
# 100-16×8-1, two were at one input of 17 000, and never at usual ones.
_DRAWS = 20
_OUT = 30.0  # how far out corners are, over √d
_SOUGHT = 100  # inputs from which corners are looked for at which a unit is on, and as many at which it is off
_MOST = 400  # balls in which the box may be asked, for each number of units
# Of them at first, where h moves in the most directions; each further time; then on each side of a unit, at the least.
_FIRST, _MORE, _LEAST = 60, 40, 2
_ASIDE = 1e-2  # how far from a kink of a unit corners are looked for, over the size of x
_EACH = 6  # points for each weight that no kink has shown
# Corners near which it is asked whether a unit is missing. In a trained 100-16×8-1, one of the third layer is on at one
# random input of 10 000, and at one corner of 200.
_ELSEWHERE = 3000
_EDGES = (1, 2, 3, 4, 5, 6)  # of corners near to where a unit is on that seldom is
_BESIDE = 12  # corners beside one with a gradient that is not explained
# Such weights of which a proof is looked for that they never count, and units of all layers up to which it is.
_PROOFS, _SMALL = 24, 80


class Gradients:
    """How the box changes behind known layers, measured once, whatever the units of the next layer are."""

    def __init__(self, at: Inquiry) -> None:
        self.at, self.left, self.units = at, _MOST, 0
        self.points: list[Point] = []
        self.inputs, self.many = self._drawn()
        self.X, self.H = np.zeros((0, at.dim)), np.zeros((0, at.known.width))
        self.rank, self.moves, self.new = np.zeros(0), np.zeros(self.H.shape, dtype=bool), np.zeros(0, dtype=bool)
        self._begin(self.inputs[:_CORNERS])

    def _drawn(self) -> tuple[Array, Array]:
        """Random inputs, near and far, and what the known layers make of them."""
        X = self.at.rng.normal(size=(_POINTS, self.at.dim)) * 2.0 ** self.at.rng.uniform(-2.0, 4.0, size=(_POINTS, 1))
        return X, self.at.known(X)

    def _begin(self, X: Array, T: Array | None = None, edges: Sequence[int | None] = (None,)) -> None:
        """More corners, of the regions around the rows of X; units with the rows T, one each, stay on their side.

        ``edges``: of how many edges each, one after the other; all unless said.
        """
        at = self.at
        most = [edges[i % len(edges)] for i in range(len(X))]
        found = [corner(at.known, x, at.rng, None if T is None else T[i], most[i]) for i, x in enumerate(X)]
        X = np.reshape([x for x in found if np.linalg.norm(x) <= _OUT * np.sqrt(at.dim)], (-1, at.dim))
        if not len(X):
            return
        bases = [moved(at.known, *ball(at, x, BALLS[0]))[0] for x in X]
        moves = [np.linalg.norm(B, axis=1) > EDGE for B in bases]
        self.X, self.H = np.vstack([self.X, X]), np.vstack([self.H, at.known(X)])
        self.rank = np.append(self.rank, [B.shape[1] for B in bases])
        self.moves = np.vstack([self.moves, moves])
        self.new = np.append(self.new, np.ones(len(X), dtype=bool))

    def _seek(self, T: Array, kinks: Sequence[Sequence[Array]]) -> None:
        """Corners at which units with these rows (w, c) are on one side, and on the other: some are seldom on.

        From where they are as large as can be, and from next to their ``kinks``: there, what none of these has shown of
        a unit is off.
        """
        at, ways = self.at, np.repeat(np.vstack([T, -T]), _SOUGHT, axis=0)
        X = furthest(headless(at.known), ways, at.rng)
        for theta, points in zip(T, kinks):
            some = [points[i] for i in at.rng.permutation(len(points))[:_SOUGHT]]
            aside = [_ASIDE * (0.1 * np.sqrt(at.dim) + np.linalg.norm(x)) * normal(at.known, theta, x) for x in some]
            near = [x + sign * step for x, step in zip(some, aside) for sign in (1.0, -1.0)]
            X, ways = np.vstack([X, *near]), np.vstack([ways, *[theta] * len(near)])
        self._begin(X, ways)

    def signs(
        self, V: Array, c: Array, known: Mask | None = None, kinks: Sequence[Sequence[Array]] = ()
    ) -> tuple[Array | None, Mask]:
        """ξ (m,) of the units Vh + c behind the known layers, and which are open; None where no signs fit.

        ``known``: which weights are; where others count, they are part of what the gradient is made of; ``kinks``: some
        of each unit. Where a unit is on is guessed as if such weights kept it on its side.
        """
        known = np.ones(V.shape, dtype=bool) if known is None else known
        lacking, there = ~known.all(axis=0), kept(self.at.known, V, c, known, self.at.rng)
        tell, sought = partial(told_by, votes={}), np.zeros(len(c), dtype=bool)
        if len(c) > self.units:
            self.units, self.left = len(c), _MOST
        if not self.points:
            self.measure(self.rank - self.moves[:, lacking].sum(axis=1), _FIRST)
        xi, open_ = tell(self.points, V, c, known)
        while xi is not None and open_.any():
            if (open_ & ~sought).any() and not open_.all():
                some = np.flatnonzero(open_ & ~sought)
                self._seek(np.column_stack([there, c])[some], [kinks[i] for i in some.tolist()] if kinks else [])
                sought |= open_
            # few units on, more directions; and those that are open on either side
            Z = self.H @ there.T + c
            rank = self.rank - self.moves[:, lacking].sum(axis=1) + 0.3 * self.at.rng.random(len(Z))
            score = rank if open_.all() else rank - (Z * xi > 0.0).sum(axis=1)
            measured, each = 0, max(_MORE // (2 * int(open_.sum())), _LEAST)
            for z in Z[:, open_].T:  # one by one: few of the best corners are on the far side of a unit seldom on
                for side in (z > 0.0, z < 0.0):
                    measured += self.measure(np.where(side, score, -np.inf), each)
            if not measured:
                break
            xi, open_ = tell(self.points, V, c, known)
        self.at.tell(f"   signs: {len(self.points)} points, {'none fit' if xi is None else f'{int(open_.sum())} open'}")
        return xi, open_

    def around(self, V: Array, c: Array, count: int, units: Mask | None = None, xi: Array | None = None) -> None:
        """Points on both sides of each of the units Vh + c, so many, as far as there are such; of some ``units`` only.

        ``xi``: signs, 0 where they are open. Points tell only where fewer units with a sign are on than h moves in.
        """
        T = np.column_stack([V, c]) if units is None else np.column_stack([V, c])[units]
        T, xi = np.vstack([T, -T]), np.zeros(len(c)) if xi is None else xi

        def spare(H: Array, rank: Array) -> Array:
            return np.asarray(rank - ((H @ V.T + c) * xi > 0.0).sum(axis=1))

        def here(theta: Array) -> Array:
            left = spare(self.H, self.rank)
            return np.where((self.H @ theta[:-1] + theta[-1] > 0.0) & (left > 0.0), left, -np.inf)

        for theta in T:
            if np.isfinite(here(theta)).sum() < count:
                self._seek(theta[None], [])
                on = self.inputs[self.many @ theta[:-1] + theta[-1] > 0.0][:_SOUGHT]
                self._begin(on, np.tile(theta, (len(on), 1)))
        for theta in T:
            H = np.reshape([p.h for p in self.points], (-1, V.shape[1]))
            tells = spare(H, np.array([len(p.g) for p in self.points])) > 0.0
            lacking = max(count - int((tells & (H @ theta[:-1] + theta[-1] > 0.0)).sum()), 0)
            self.left += lacking
            self.measure(here(theta), lacking)

    def where_on(self, V: Array, c: Array, count: int) -> None:
        """Points where each of the units Vh + c is on, so many near to random inputs, as far as these show any.

        Corners of all edges may be far from them, and much else on or off there.
        """
        for theta in np.column_stack([V, c]):
            on = self.inputs[self.many @ theta[:-1] + theta[-1] > 0.0][:count]
            self._all_of(on, np.tile(theta, (len(on), 1)), _EDGES)

    def beside(self, X: Array) -> None:
        """Points around the rows of X: what a gradient shows that is seldom seen, others near by show, too."""
        near = np.repeat(X, _BESIDE, axis=0)
        far = _ASIDE * (0.1 * np.sqrt(self.at.dim) + np.linalg.norm(near, axis=1, keepdims=True))
        self._all_of(near + far / np.sqrt(self.at.dim) * self.at.rng.normal(size=near.shape), None, _EDGES)

    def elsewhere(self, V: Array, c: Array, xi: Array) -> None:
        """Points at corners far from the others, where few of the units are on: one that is missing may be, too."""
        self._all_of(
            corners(self.at.known, _ELSEWHERE, self.at.rng),
            use=lambda H, rank: ((H @ V.T + c) * xi > 0.0).sum(axis=1) < rank,
        )

    def _all_of(
        self,
        X: Array,
        T: Array | None = None,
        edges: Sequence[int | None] = (None,),
        use: Callable[[Array, Array], Mask] = lambda _, rank: rank > 0,
    ) -> None:
        """Points at all corners from there (`_begin`) that are of ``use``, by h and the directions it moves in."""
        before = len(self.X)
        self._begin(X, T, edges)
        new = use(self.H, self.rank) & (np.arange(len(self.X)) >= before)
        self.left += int(new.sum())
        self.measure(np.where(new, self.rank, -np.inf), int(new.sum()))

    def told(self, V: Array, c: Array, xi: Array, known: Mask, off: float = FITS) -> tuple[list[Point], Mask]:
        """The points at which few units are on, fewer than h moves in; which of these gradients those explain."""
        found, fits = [], []
        for p in self.points:
            more, either = added(p, known)
            on = (xi * (V @ p.h + c) > 0.0) | either
            if on.sum() + len(more) < len(p.g):
                found.append(p)
                fits.append(bool(fitted(V @ p.B, p.g, on[None], more, off)[0][0]))
        return found, np.array(fits, dtype=bool)

    def again(self, some: list[Point]) -> None:
        """Measure these points once more, each in another ball; where that fails a point tells nothing any more."""
        for p in some:
            found = None if p.x is None else affine_around(self.at, p.x)
            self.points = [q for q in self.points if q is not p] + ([] if found is None else [found])

    def weights(
        self,
        V: Array,
        c: Array,
        xi: Array,
        known: Mask,
        kinks: Sequence[Sequence[Array]] = (),
        also: Sequence[Array] = (),
    ) -> tuple[Array, Array, Mask]:
        """V and c with the weights that no kink shows, as far as gradients tell; which are known, or never count.

        A weight counts only where its two units are on together: balls are looked for there. It never counts if that
        is proved to be nowhere; for those that stay open, if none of the random inputs is such.
        """
        V, known = V.copy(), known.copy()
        open_ = np.argwhere(~known)
        if not len(open_):
            return V, c, known
        X = np.reshape([*[p.x for p in self.points if p.x is not None], *also], (-1, self.at.dim))
        asked = X, self.at.known(X)
        for i, j in self._meet(V, c, xi, open_, asked):
            known[i, j] = True
        self.left += _EACH * int((~known).sum())
        on = (self.H @ V.T + c) * xi > 0.0
        spare = self.rank - on.sum(axis=1) + 0.3 * self.at.rng.random(len(on))
        for i, j in np.argwhere(~known):
            self.measure(np.where(on[:, i] & self.moves[:, j], spare, -np.inf), _EACH)
        shown = [self.at.known(np.reshape(some, (-1, self.at.dim))) for some in kinks]
        V, c, known = hidden.weights(self.points, V, c, xi, known, shown)
        still, T = np.argwhere(~known), xi[:, None] * np.column_stack([V, c])
        for (i, j), inputs in zip(still, self._together(T, still, 1)):
            known[i, j] = not len(inputs) and not len(_met(*asked, T[i], j))
        return V, c, known

    def _together(self, T: Array, pairs: NDArray[np.intp], most: int) -> list[Array]:
        """For each pair (i, j) random inputs at which the unit of row i of T and unit j in front are on, up to so many.

        The inputs at hand first, then others, until there are enough of all.
        """
        found = [np.zeros((0, self.at.dim)) for _ in pairs]
        for draw in range(_DRAWS):
            lacking = [k for k, some in enumerate(found) if len(some) < most]
            if not lacking:
                break
            X, H = self._drawn() if draw else (self.inputs, self.many)
            on = H @ T[:, :-1].T + T[:, -1] > 0.0
            for k in lacking:
                i, j = pairs[k]
                found[k] = np.vstack([found[k], X[np.flatnonzero(on[:, i] & (H[:, j] > 0.0))[: most - len(found[k])]]])
        return found

    def _meet(
        self, V: Array, c: Array, xi: Array, pairs: NDArray[np.intp], asked: tuple[Array, Array]
    ) -> list[tuple[int, int]]:
        """Corners near which a unit is on, and one in front of it, for pairs (i, j); those proved to be so nowhere.

        They are looked for from random inputs at which both are on, from one that branch and bound finds, and from
        inputs ``asked`` before, (X, h).
        """
        at, never = self.at, []
        T = xi[:, None] * np.column_stack([V, c])
        layers = (*at.known.layers, (T[:, :-1], T[:, -1]))
        proofs = _PROOFS if sum(len(b) for _, b in layers) <= _SMALL else 0
        starts, units, pairs = [np.zeros((0, at.dim))], [T[:0]], at.rng.permutation(pairs)
        for number, ((i, j), inputs) in enumerate(zip(pairs.tolist(), self._together(T, pairs, _SOUGHT))):
            if number < proofs:
                x, sure = reach(layers, i, front=j)
                inputs = inputs if x is None else np.vstack([inputs, x])
                if x is None and sure and not len(inputs):
                    never.append((i, j))
            inputs = np.vstack([inputs, _met(*asked, T[i], j)])
            if len(inputs):
                starts.append(inputs[at.rng.integers(len(inputs), size=_SOUGHT)])
                units.append(np.tile(T[i], (_SOUGHT, 1)))
        self._begin(np.concatenate(starts), np.concatenate(units))
        return never

    def measure(self, score: Array, count: int) -> int:
        """The box in new balls, those with the highest score; how many were tried."""
        score, before = np.where(self.new, score, -np.inf), self.left
        for i in np.argsort(-score, kind="stable")[: min(count, self.left)]:
            if not np.isfinite(score[i]):
                break
            self.new[i], self.left = False, self.left - 1
            point = affine_around(self.at, self.X[i])
            if point is not None:
                self.points.append(point)
        return before - self.left


def _met(X: Array, H: Array, row: Array, j: int) -> Array:
    """The rows of X at which a unit is on, by its row (w, c) and h, and unit j in front of it."""
    return np.asarray(X[(H[:, j] > EDGE * np.linalg.norm(H, axis=1)) & (H @ row[:-1] + row[-1] > 0.0)])
