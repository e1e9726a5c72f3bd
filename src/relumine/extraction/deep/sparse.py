"""Signs of a layer with more units than move freely: how the box changes is a sum over the units that are on.

In a small ball the box is an affine map of the activations h in front, f = G·h + …, with G = Σ_j c_j V_j over the units
j of the layer that are on there; c_j = 0 for those that are off. Inside one region of the known layers, h moves in few
directions only. In a ball around a *corner*, where many known units change sides at once, it moves in many, and the
same G holds on all sides, as long as no unit further behind has a kink there: then the answers would not be affine.

If fewer units are on than the r directions in which h moves, no other set of so few gives G there, except by accident.
In small layers all signs are tried at once, and each point rules out those by which so few are on that do not give it.
In others the smallest Σ|c_j| finds the set; that it is so sparse proves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.box import ROUNDING
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.climb import furthest, headless
from relumine.extraction.deep.inquiry import Inquiry

Mask = NDArray[np.bool_]

_POINTS, _CORNERS = 20_000, 1500  # random inputs; corners of the regions of some of them
_SOUGHT = 40  # inputs from which corners are looked for at which a unit is on, and as many at which it is off
_MOST = 400  # balls in which the box may be asked, for each number of units
_FIRST, _MORE = 60, 40  # of them at first, where h moves in the most directions; each further time
_BALLS = (1e-4, 1e-6)  # radius over the size of x: in most of the first there is no kink of a unit further behind
_OVER, _OUT = 8, 30.0  # rows in a ball beyond twice the units; how far out corners are, over √d
_ASIDE = 1e-2  # how far from a kink of a unit corners are looked for, over the size of x
_SHORT = 0.7  # of the way to a unit that is to stay on its side
_MOVES = 1e-3  # singular value over the largest from which h moves in a direction
_NOTHING = 1e-4  # |c_j| over the largest that is none: measured 1e-9 … 1e-6 for units that are off
_VOTES, _AGREE = 3, 0.9  # points that must tell a sign; share of them that must agree
_ON = 2  # points at which a unit must count: one that is off at all of them may be none of this layer's
_ALL = 10  # units up to which all signs are tried: 1024
_FITS = 1e-5  # departure from a gradient that is none, over its size: measured 1e-9 … 1e-7 where the units are right
_EACH = 6  # points for each weight that no kink has shown
_EDGE = 1e-4  # activation over all of them up to which a unit in front is at its edge: its weights say nothing of sides
_BATCH = 8192  # sets of units whose fits are computed at once


@dataclass
class _Point:
    """In a ball h moves along the columns of B (width, r), and f by g (r,) along them; ``h`` in its middle."""

    B: Array
    g: Array
    h: Array

    @property
    def moves(self) -> Mask:
        """Which units in front do."""
        return np.asarray(np.linalg.norm(self.B, axis=1) > _EDGE)


class Gradients:
    """How the box changes behind known layers, measured once, whatever the units of the next layer are."""

    def __init__(self, at: Inquiry) -> None:
        self.at, self.left, self.units = at, _MOST, 0
        self.points: list[_Point] = []
        X = at.rng.normal(size=(_POINTS, at.dim)) * 2.0 ** at.rng.uniform(-2.0, 4.0, size=(_POINTS, 1))
        self.many = at.known(X)
        self.X, self.H = np.zeros((0, at.dim)), np.zeros((0, at.known.width))
        self.rank, self.moves, self.new = np.zeros(0), np.zeros(self.H.shape, dtype=bool), np.zeros(0, dtype=bool)
        self._begin(X[:_CORNERS])

    def _begin(self, X: Array, T: Array | None = None) -> None:
        """More corners, of the regions around the rows of X; units with the rows T, one each, stay on their side."""
        at = self.at
        found = [_corner(at.known, x, at.rng, None if T is None else T[i]) for i, x in enumerate(X)]
        X = np.reshape([x for x in found if np.linalg.norm(x) <= _OUT * np.sqrt(at.dim)], (-1, at.dim))
        bases = [_moved(at.known, *_ball(at, x, _BALLS[0]))[0] for x in X]
        moves = [np.linalg.norm(B, axis=1) > _EDGE for B in bases]
        self.X, self.H = np.vstack([self.X, X]), np.vstack([self.H, at.known(X)])
        self.rank = np.append(self.rank, [B.shape[1] for B in bases])
        self.moves = np.vstack([self.moves, np.reshape(moves, (-1, at.known.width))])
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
            aside = [_ASIDE * (0.1 * np.sqrt(at.dim) + np.linalg.norm(x)) * _normal(at.known, theta, x) for x in some]
            near = [x + sign * step for x, step in zip(some, aside) for sign in (1.0, -1.0)]
            X, ways = np.vstack([X, *near]), np.vstack([ways, *[theta] * len(near)])
        self._begin(X, ways)

    def signs(
        self, V: Array, c: Array, known: Mask | None = None, kinks: Sequence[Sequence[Array]] = ()
    ) -> tuple[Array | None, Mask]:
        """ξ (m,) of the units Vh + c behind the known layers, and which are open; None where no signs fit.

        ``known``: which weights are; where others count, they are part of what the gradient is made of; ``kinks``: some
        of each unit.
        """
        known = np.ones(V.shape, dtype=bool) if known is None else known
        lacking = ~known.all(axis=0)
        tell, sought = partial(_told, votes={}), np.zeros(len(c), dtype=bool)
        if len(c) > self.units:
            self.units, self.left = len(c), _MOST
        if not self.points:
            self.measure(self.rank - self.moves[:, lacking].sum(axis=1), _FIRST)
        xi, open_ = tell(self.points, V, c, known)
        while xi is not None and open_.any():
            if (open_ & ~sought).any() and not open_.all():
                some = np.flatnonzero(open_ & ~sought)
                self._seek(np.column_stack([V, c])[some], [kinks[i] for i in some.tolist()] if kinks else [])
                sought |= open_
            # few units on, more directions; and those that are open on either side
            Z = self.H @ V.T + c
            rank = self.rank - self.moves[:, lacking].sum(axis=1) + 0.3 * self.at.rng.random(len(Z))
            score = rank if open_.all() else rank - (Z * xi > 0.0).sum(axis=1)
            measured = 0
            for side in (Z[:, open_] > 0.0, Z[:, open_] < 0.0):
                measured += self.measure(np.where(side.any(axis=1), score, -np.inf), _MORE // 2)
            if not measured:
                break
            xi, open_ = tell(self.points, V, c, known)
        self.at.tell(f"   signs: {len(self.points)} points, {'none fit' if xi is None else f'{int(open_.sum())} open'}")
        return xi, open_

    def told(self, V: Array, c: Array, xi: Array, known: Mask) -> tuple[Array, Mask]:
        """h (n, width) of the points at which few units are on; which of these gradients those explain.

        Few: fewer than h moves in.
        """
        H, fits = [], []
        for p in self.points:
            more, either = _added(p, known)
            on = (xi * (V @ p.h + c) > 0.0) | either
            if on.sum() + len(more) < len(p.g):
                H.append(p.h)
                fits.append(bool(_fitted(V @ p.B, p.g, on[None], more)[0][0]))
        return np.reshape(H, (-1, V.shape[1])), np.array(fits, dtype=bool)

    def weights(self, V: Array, c: Array, xi: Array, known: Mask) -> tuple[Array, Mask]:
        """V with the weights that no kink has shown, as far as gradients tell; and which are known, or never count.

        A gradient is Σ_l c_l (V_l + δ_l)B over the units that are on: least squares give c_l, and for each unit j in
        front Σ_l c_l δ_lj. A weight never counts if its two units are on together at none of the random inputs.
        """
        V, known = V.copy(), known.copy()
        on, together = (self.many @ V.T + c) * xi > 0.0, self.many > 0.0
        known |= (on.T.astype(float) @ together.astype(float)) == 0.0
        columns, units = np.flatnonzero(~known.all(axis=0)), np.flatnonzero(~known.all(axis=1))
        if not len(columns):
            return V, known
        self._seek(np.column_stack([V, c])[units], [])
        self.left += _EACH * int((~known).sum())
        on = (self.H @ V.T + c) * xi > 0.0
        spare = self.rank - on.sum(axis=1) + 0.3 * self.at.rng.random(len(on))
        for i, j in np.argwhere(~known):
            self.measure(np.where(on[:, i] & self.moves[:, j], spare, -np.inf), _EACH)
        rows: dict[int, list[Array]] = {int(j): [] for j in columns}
        for p in self.points:
            moved = columns[p.moves[columns]]
            active = (xi * (V @ p.h + c) > 0.0) | _either(p, known)
            A = np.vstack([V[active] @ p.B, p.B[moved]])
            if not len(moved) or len(A) >= len(p.g):
                continue
            size = np.maximum(np.linalg.norm(A, axis=1), 1e-300)
            found = np.linalg.lstsq((A / size[:, None]).T, p.g, rcond=1e-9)[0] / size
            if np.linalg.norm(found @ A - p.g) <= _FITS * np.linalg.norm(p.g):
                strength = np.zeros(len(c))
                strength[active] = found[: active.sum()]
                for j, total in zip(moved, found[active.sum() :]):
                    rows[int(j)].append(np.append(strength, total))
        for j, some in rows.items():
            self._solve(V, known, j, np.reshape(some, (-1, len(c) + 1)))
        return V, known

    @staticmethod
    def _solve(V: Array, known: Mask, j: int, rows: Array) -> None:
        """Σ_l c_l δ_lj = t for the open weights of unit j in front, rows (c, t); they are known once two rows agree."""
        lack = np.flatnonzero(~known[:, j])
        size = np.maximum(np.linalg.norm(rows[:, :-1], axis=1, keepdims=True), 1e-300)
        A, t = rows[:, lack] / size, rows[:, -1] / size[:, 0]
        if len(A) < len(lack) + 1 or np.linalg.matrix_rank(A, 1e-6) < len(lack):
            return
        delta = np.linalg.lstsq(A, t, rcond=None)[0]
        if np.abs(A @ delta - t).max() <= _FITS * max(float(np.abs(delta).max()), _FITS):
            V[lack, j] += delta
            known[lack, j] = True

    def measure(self, score: Array, count: int) -> int:
        """The box in new balls, those with the highest score; how many were tried."""
        score, before = np.where(self.new, score, -np.inf), self.left
        for i in np.argsort(-score, kind="stable")[: min(count, self.left)]:
            if not np.isfinite(score[i]):
                break
            self.new[i], self.left = False, self.left - 1
            point = _affine(self.at, self.X[i])
            if point is not None:
                self.points.append(point)
        return before - self.left


def _corner(known: Known, x: Array, rng: np.random.Generator, unit: Array | None = None) -> Array:
    """A corner of the region around x: from edge to edge, until as many units as can be are about to change sides.

    ``unit``: (w, c) of one behind the known layers that is to stay on its side.
    """
    W = known.layers[0][0]
    active, J, shift, rows, offsets = known.region(x)
    size = np.linalg.norm(rows, axis=1)
    rows, offsets = rows[size > 0.0] / size[size > 0.0, None], offsets[size > 0.0] / size[size > 0.0]
    wall = np.zeros((1, len(x))) if unit is None else (unit[active] @ J)[None]
    height = np.ones(1) if unit is None else unit[active] @ (J @ x + shift)[None].T + unit[-1]
    wall, left = wall * np.sign(height), np.abs(height)
    met = np.zeros((0, len(x)))
    for _ in range(min(W.shape)):
        u = rng.normal(size=len(W)) @ W
        u -= met.T @ (met @ u)
        u /= np.linalg.norm(u)
        u -= met.T @ (met @ u)
        room = np.maximum(rows @ x + offsets, 0.0)
        for way in (u, -u):
            steps = _steps(rows @ way, room)
            number, most = int(steps.argmin()), float(_steps(wall @ way, left)[0])
            if steps[number] < _SHORT * most:
                break
        else:
            break
        x, left = x + steps[number] * way, left + steps[number] * wall @ way
        new = rows[number] - met.T @ (met @ rows[number])
        met = np.vstack([met, new / np.linalg.norm(new)])
    return x


def _normal(known: Known, unit: Array, x: Array) -> Array:
    """The direction in which a unit (w, c) behind the known layers grows at x; zero where it does not."""
    active, J, _, _, _ = known.region(x)
    n = unit[active] @ J
    return np.asarray(n / max(float(np.linalg.norm(n)), 1e-300))


def _steps(speed: Array, room: Array) -> Array:
    """How far it is to where so much room is used up, at such speeds; infinite where it is not."""
    ahead = speed < -1e-6
    return np.asarray(np.where(ahead, room / np.where(ahead, -speed, 1.0), np.inf))


def _ball(at: Inquiry, x: Array, radius: float) -> tuple[Array, Array]:
    """x, and rows around it, as far as they move what is known."""
    W = at.known.layers[0][0]
    ways = at.rng.normal(size=(2 * at.known.width + _OVER, len(W))) @ W
    ways *= radius * (0.1 * np.sqrt(at.dim) + float(np.linalg.norm(x))) / np.linalg.norm(ways, axis=1, keepdims=True)
    return x, x + ways


def _moved(known: Known, x: Array, near: Array) -> tuple[Array, Array]:
    """The directions (width, r) in which h moves between x and rows near to it, and by how much, (n, r)."""
    D = known(near) - known(x[None])
    _, s, Vt = np.linalg.svd(D, full_matrices=False)
    B = Vt[s > _MOVES * max(float(s[0]), 1e-300)].T
    return B, D @ B


def _affine(at: Inquiry, x: Array) -> _Point | None:
    """What the box does around x; None where it is not affine in what moves, or hardly moves at all."""
    for radius in _BALLS:
        _, near = _ball(at, x, radius)
        B, D = _moved(at.known, x, near)
        if B.shape[1] < 2:
            return None
        y = at.ask(np.vstack([x, near]))
        change, noise = y[1:] - y[0], 8.0 * ROUNDING * float(np.abs(y).max())
        g = np.linalg.lstsq(D, change, rcond=None)[0]
        size = float(np.abs(change).max())
        if size <= 1e3 * noise:
            return None
        if np.abs(D @ g - change).max() <= 1e-6 * size + noise:
            return _Point(B, g, at.known(x[None])[0])
    return None


def _told(
    points: list[_Point], V: Array, c: Array, known: Mask, votes: dict[int, Array | None]
) -> tuple[Array | None, Mask]:
    """Signs, and which of them are open; None where no signs fit. ``votes``: of points that were asked before."""
    if len(c) <= _ALL:
        return _tried(points, V, c, known, np.zeros(len(c)))
    xi, open_ = _voted(points, V, c, known, votes)
    if xi is None or not 0 < open_.sum() <= _ALL:
        return xi, open_
    tried, still = _tried(points, V, c, known, np.where(open_, 0.0, xi))
    return (xi, open_) if tried is None else (tried, still & open_)


def _tried(points: list[_Point], V: Array, c: Array, known: Mask, fixed: Array) -> tuple[Array | None, Mask]:
    """The signs that most points show and none rules out, and which of them are open; None if all are ruled out.

    ``fixed``: those that are known, 0 for others. A point shows signs by which fewer units are on than it has
    directions, if these units give its gradient and each of them counts. It rules out those by which so few are on
    that do not give it. Weights that are not known add the units in front that they belong to, and the units whose
    side depends on them may be on or off.
    """
    m, free = len(c), np.flatnonzero(fixed == 0.0)
    xi = np.tile(fixed, (1 << len(free), 1))
    xi[:, free] = np.where((np.arange(len(xi))[:, None] >> np.arange(len(free))) & 1, 1.0, -1.0)
    shown = np.zeros(len(xi), dtype=np.intp)
    for p in sorted(points, key=lambda p: -len(p.g)):
        more, either = _added(p, known)
        on = (xi * np.sign(V @ p.h + c) > 0.0) | either
        few = np.flatnonzero(on.sum(axis=1) + len(more) < len(p.g))
        sets, which = np.unique(on[few], axis=0, return_inverse=True)
        fits, loud = _fitted(V @ p.B, p.g, sets, more)
        shown[few] += (fits & ((loud == sets) | either).all(axis=1))[which.ravel()]
        wrong = few[~fits[which.ravel()]]
        xi, shown = np.delete(xi, wrong, axis=0), np.delete(shown, wrong)
        if not len(xi):
            return None, np.ones(m, dtype=bool)
    best = int(shown.argmax())
    rivals = (xi[shown > shown[best] // _VOTES] != xi[best]).any(axis=0)
    counts = np.zeros(m, dtype=np.intp)  # points at which each unit is on, and counts
    for p in points:
        more, either = _added(p, known)
        on = (xi[best] * np.sign(V @ p.h + c) > 0.0) | either
        if on.sum() + len(more) < len(p.g):
            counts += _fitted(V @ p.B, p.g, on[None], more)[1][0] & on & ~either
    return xi[best], np.asarray(rivals | (shown[best] < _VOTES) | (counts < _ON))


def _added(p: _Point, known: Mask) -> tuple[Array, Mask]:
    """The rows of B of units in front with a weight that is not known; the units whose side depends on such a one."""
    return p.B[~known.all(axis=0) & p.moves], _either(p, known)


def _either(p: _Point, known: Mask) -> Mask:
    """The units whose side depends on weights that are not known."""
    return np.asarray((~known & (p.h > _EDGE * np.linalg.norm(p.h))).any(axis=1))


def _fitted(A: Array, g: Array, sets: Mask, more: Array) -> tuple[Mask, Mask]:
    """Which sets of the rows of A (m, r), with all of ``more``, give g (r,); which of those of A count, (n, m)."""
    m = len(A)
    A, sets = np.vstack([A, more]), np.column_stack([sets, np.ones((len(sets), len(more)), dtype=bool)])
    size = np.linalg.norm(A, axis=1)
    A = A / np.maximum(size, 1e-300)[:, None] * (size > 1e-9 * size.max(initial=0.0))[:, None]
    G, b, length = A @ A.T, A @ g, float(np.linalg.norm(g))
    fits, loud = np.zeros(len(sets), dtype=bool), np.zeros(sets.shape, dtype=bool)
    for at in range(0, len(sets), _BATCH):
        on = sets[at : at + _BATCH]
        M = G * (on[:, :, None] & on[:, None, :]) + np.eye(len(A)) * (~on[:, :, None] + 1e-14)
        c = np.linalg.solve(M, (on * b)[:, :, None])[:, :, 0] * on
        fits[at : at + _BATCH] = np.linalg.norm(g - c @ A, axis=1) <= _FITS * length
        loud[at : at + _BATCH] = np.abs(c) > _NOTHING * np.abs(c).max(axis=1, initial=1e-300, keepdims=True)
    return fits, loud[:, :m]


def _voted(
    points: list[_Point], V: Array, c: Array, known: Mask, votes: dict[int, Array | None]
) -> tuple[Array | None, Mask]:
    """Signs by the smallest Σ|c_j| of each point, and which of them are open; None if no point tells.

    ``votes``: of points that were asked before, by their number.
    """
    plus, minus, on = np.zeros(len(c)), np.zeros(len(c)), np.zeros(len(c))
    for i, p in enumerate(points):
        if i not in votes:
            more, either = _added(p, known)
            vote = _vote(np.vstack([V @ p.B, more]), p.g)
            votes[i] = None if vote is None else np.where(either, 0.0, vote[: len(c)])
        vote = votes[i]
        if vote is not None:
            side = np.sign(V @ p.h + c)
            plus += vote * side > 0.0
            minus += vote * side < 0.0
            on += vote > 0.0
    both = plus + minus
    if not both.any():
        return None, np.ones(len(c), dtype=bool)
    return np.where(plus > minus, 1.0, -1.0), (both < _VOTES) | (np.maximum(plus, minus) < _AGREE * both) | (on < _ON)


def _vote(V: Array, g: Array) -> Array | None:
    """+1 for the units (m,) that are on, −1 for those that are off, 0 for those that nothing is known of."""
    m, k = V.shape
    size = np.linalg.norm(V, axis=1)
    use = size > 1e-6 * size.max(initial=0.0)
    A = (V[use] / size[use][:, None]).T  # (k, m')
    found = linprog(np.ones(2 * A.shape[1]), A_eq=np.column_stack([A, -A]), b_eq=g / np.abs(g).max(), method="highs")
    if found.x is None:
        return None
    x = np.abs(found.x[: A.shape[1]] - found.x[A.shape[1] :])
    loud = x > _NOTHING * x.max()
    if loud.sum() > k - 2:
        return None
    vote = np.zeros(m)
    vote[use] = np.where(loud, 1.0, -1.0)
    return vote
