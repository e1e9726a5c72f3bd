"""Surfaces of units behind known layers: what is known of them, and where.

Behind known layers h = known(x) a unit bends f on the surface {θ·φ(x) = 0} with φ = (h, 1). Behind a layer z = Vh + c
that is known up to signs, as relu(ξz) = (|z| + ξz)/2, it is linear in φ = (relu(sz), h, 1), *whatever* the signs s.

Every kink x of the unit is an equation θ·φ(x) = 0. What the kinks so far say nothing about is a subspace of θ, called
``free``: the surface is known where φ(x) is orthogonal to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtrc

from relumine.arrays import Array
from relumine.extraction.deep.asking.box import ROUNDING, Asked
from relumine.extraction.deep.known.charts import Known, Regions, passed

Mask = NDArray[np.bool_]


_SHARP = 1e-8  # least change by the bend over the size of the answers: seven digits of its place
_NOTHING = 1e-5  # smallest over second smallest singular value: measured 1e-12 … 1e-9 for the points of one unit
_FINE = 1e-8  # error of weights that all points determine well; of others it was up to 1e-4
_SAME = 1e-7  # |θ·φ| over ‖θ‖‖φ‖ at a kink of the surface: 1e-12 … 1e-10, behind four layers up to 1e-8
_LEAST = 3  # entries that must be known, the constant among them
_COMMON, _MOSTLY = 4, 0.9  # points of one surface that must be on another, and share of those where that is known
_KNOWN = 1e-7  # the part of φ in ``free`` that is none: rounding leaves 1e-12
# Singular value of the points' φ, over the largest, below which its direction is not seen. Measured 5e-3 for the least
# that was, 4e-15 for others: a unit that is seldom off has kinks only where some units in front of it are all off.
_THIN = 1e-8
# Kinks that must agree on what is free, and how well, over θ; the share of φ in it that says something of it; 1 − |cos|
# of directions in it that are one, and of kinks that are two. Times as far off are those that are nearly the same, and
# the probability that so many agree by chance: with 1e-7, three kinks did, and said −0.95 of a weight of −0.14.
_AGREE, _NEAR, _CLEAR, _PARALLEL, _APART, _WIDE, _CHANCE = 3, 1e-8, 1e-2, 1e-10, 1e-6, 1000.0, 1e-4


class Lift:
    """φ = (relu(sz), h, 1) with h = known(x), z = Vh + c; without V and c, φ = (h, 1)."""

    def __init__(self, known: Known, V: Array | None = None, c: Array | None = None) -> None:
        self.known, self.V, self.c, self.all = known, np.zeros((0, known.width)), np.zeros(0), known
        if V is not None and c is not None:
            self.V, self.c = V, c
            self.all = Known(known.d, (*known.layers, (V, c)))  # as to regions, the signs make no difference
        self.m = len(self.c)
        self.size = self.m + known.width + 1
        # for each unit of all layers its entry of φ; none for those further in front
        layers = [len(b) for _, b in known.layers]
        entries = [np.full(k, -1) for k in layers[:-1]]
        entries += [self.m + np.arange(k) for k in layers[-1:]]
        for k in range(len(layers) - 1, 0, -1):  # what is passed on changes where the unit in front does
            front = passed(*known.layers[k])
            on = np.flatnonzero(front >= 0)
            entries[k - 1][front[on]], entries[k][on] = entries[k][on], -1
        entries.append(np.arange(self.m))
        self.entry = np.concatenate(entries)

    def __call__(self, X: Array, s: Array) -> Array:
        """φ at the rows of X, (n, m + width + 1)."""
        H = self.known(X)
        return np.column_stack([np.maximum(s * (H @ self.V.T + self.c), 0.0), H, np.ones(len(X))])

    def touches(self, x: Array) -> bool:
        """Whether x is on a hyperplane of a known unit, or of one of the open layer."""
        _, _, _, rows, offsets = self.all.region(x)
        size = np.linalg.norm(rows, axis=1)
        near = np.abs(rows @ x + offsets) <= 1e-7 * size * (1.0 + np.linalg.norm(x))
        return bool(near[size > 0.0].any())

    def slopes(self, theta: Array, s: Array, X: Array, at: Regions) -> Array:
        """The gradients of θ·φ at the rows of X, (n, d), in their regions; ``theta`` and ``s`` may be one each."""
        H, first = self.known(X), at.on.shape[1] - self.m - self.known.width
        on = s * (H @ self.V.T + self.c) > 0.0
        weights = (theta[..., : self.m] * s * on) @ self.V + theta[..., self.m : -1]
        weights = np.broadcast_to(weights, H.shape)
        if not self.known.layers:
            return weights
        last = slice(first, first + self.known.width)
        return np.asarray(((weights * at.on[:, last])[:, None, :] @ at.rows[:, last])[:, 0])


@dataclass(eq=False)
class Surface:
    """{θ·φ = 0} with signs ``s`` (m,); ``seen``: entries of θ that are known; ``points`` on it.

    ``free`` (size, r): orthonormal, what is not known of θ, all entries that are not seen unless said; ``error``: that
    of θ, about.
    """

    lift: Lift
    s: Array
    theta: Array
    seen: Mask
    points: list[Array] = field(default_factory=list)
    error: float = 1e-5
    free: Array | None = None

    @property
    def unknown(self) -> Array:
        """``free``."""
        return np.eye(len(self.theta))[:, ~self.seen] if self.free is None else self.free

    def value(self, X: Array) -> Array:
        """θ·φ at the rows of X."""
        return np.asarray(self.lift(X, self.s) @ self.theta)

    def slope(self, x: Array) -> Array:
        """Its gradient at x."""
        return np.asarray(self.lift.slopes(self.theta, self.s, x[None], self.lift.all.regions(x[None]))[0])

    def certain(self, x: Array) -> bool:
        """Whether all of the surface is known around x."""
        return bool(self.covers(self.lift(x[None], self.s))[0])

    def covers(self, F: Array) -> Mask:
        """The same for inputs with φ = F (n, size)."""
        return np.asarray(np.linalg.norm(F @ self.unknown, axis=1) <= _KNOWN * np.linalg.norm(F, axis=1))

    def shows(self, x: Array) -> bool:
        """Whether x is on it, where all of it is known."""
        return bool(self.among(self.lift(x[None], self.s))[0])

    def among(self, F: Array) -> Mask:
        """Which inputs with φ = F (n, size) are on it, where all of it is known."""
        on = np.abs(F @ self.theta) <= _SAME * np.linalg.norm(F, axis=1) * np.linalg.norm(self.theta)
        return np.asarray(on & self.covers(F))

    def through(self, x: Array) -> Surface:
        """The same surface, with θ changed in what is free so that x is on it.

        φ(x) says nothing about what is free but along its own part t there: θ − t (θ·φ)/(t·φ).
        """
        F, N = self.lift(x[None], self.s)[0], self.unknown
        part = F @ N
        size = float(part @ part)
        theta = self.theta - N @ part * float(F @ self.theta) / size if size > 0.0 else self.theta
        return Surface(self.lift, self.s, theta, self.seen, self.points, self.error, self.free)

    def learn(self, x: Array) -> None:
        """θ and what is free of it, with one more point x on the surface; nothing where x says nothing new."""
        F, N = self.lift(x[None], self.s)[0], self.unknown
        part = F @ N
        if np.linalg.norm(part) <= _KNOWN * np.linalg.norm(F):
            return
        self.theta = self.through(x).theta
        Q = np.linalg.qr(np.column_stack([part, np.eye(len(part))]))[0]  # the first column is along that part
        self.free = np.asarray(N @ Q[:, 1 : len(part)])
        self.seen = np.linalg.norm(self.free, axis=1) <= _KNOWN

    def take(self, X: Array) -> None:
        """θ and what is free of it, with more points on the surface (n, d), by all points together where they agree."""
        for x in X:
            self.learn(x)
        self.points += list(X)
        found = self.solved()
        if found is not None:
            self.theta, self.error = found

    def solved(self) -> tuple[Array, float] | None:
        """θ from all points together, and its error, about; None where there is no such θ, or several."""
        N, rest = self.unknown, ~self.seen
        U = np.linalg.svd(N[rest], full_matrices=True)[0][:, N.shape[1] :] if rest.any() else np.zeros((0, 0))
        Q = np.zeros((len(self.theta), int(self.seen.sum()) + U.shape[1]))
        Q[self.seen, : self.seen.sum()] = np.eye(int(self.seen.sum()))
        Q[rest, self.seen.sum() :] = U
        found = only(self.lift(np.array(self.points), self.s) @ Q)
        return None if found is None else (np.asarray(Q @ found[0]), found[1])

    def settled(self) -> Surface | None:
        """The same with ``seen`` and ``free`` as all points together tell; None where they tell next to nothing.

        All θ that the points allow are a subspace N, of which this is one: what is free are those of N that vanish
        where θ is known. Which entries these are is not said, so the most that can be are taken.
        """
        F = self.lift(np.array(self.points), self.s)
        F = F / np.linalg.norm(F, axis=1, keepdims=True)
        scale = np.linalg.norm(F, axis=0)
        scale = np.where(scale > _THIN, scale, 1.0)
        s, Vt = np.linalg.svd(F / scale, full_matrices=len(F) < F.shape[1])[1:]
        rank = min(int((s > _THIN * s[0]).sum()), len(scale) - 1)
        N = np.linalg.qr(Vt[rank:].T / scale[:, None])[0]
        best = None
        for row in N:
            free = N @ np.linalg.svd(row[None], full_matrices=True)[2][1:].T  # those of N that vanish at this entry
            theta = N @ (N.T @ self.theta)
            theta = theta - free @ (free.T @ theta)
            seen = np.linalg.norm(free, axis=1) <= _KNOWN
            new = Surface(self.lift, self.s, theta, seen, self.points, self.error, free if free.size else None)
            # θ·φ may vanish around a point, as what is off there does: that is no surface
            if (best is None or seen.sum() > best.seen.sum()) and seen[-1] and new.slope(self.points[0]).any():
                best = new
        if best is None or best.seen.sum() < _LEAST or np.linalg.norm(best.theta[best.seen]) <= _KNOWN:
            return None
        best.theta = best.theta / np.linalg.norm(best.theta)
        return best

    def joins(self, other: Surface) -> bool:
        """Whether the other is the same, by its points where this one is known; then this one learns from all of them.

        Two surfaces of one unit that were begun in different places may know different parts of θ.
        """
        F = self.lift(np.reshape(other.points, (-1, self.lift.known.d)), self.s)
        if self.among(F).sum() < max(_COMMON, _MOSTLY * self.covers(F).sum()):
            return False
        both = Surface(self.lift, self.s, self.theta, self.seen, list(self.points), self.error, self.free)
        for x in other.points:
            both.learn(x)
            both.points.append(x)
        found = both.solved()
        if found is None:
            return False
        (self.theta, self.error), self.seen, self.free, self.points = found, both.seen, both.free, both.points
        return True

    @property
    def even(self) -> tuple[Array, Array]:
        """θ on (|z|, h): θ_j relu(s_j z_j) = ½θ_j|z_j| + ½θ_j s_j z_j."""
        a, m = self.theta[: self.lift.m], self.lift.m
        return 0.5 * a, self.theta[m:-1] + 0.5 * (a * self.s) @ self.lift.V


def agreeing(surface: Surface, X: Array) -> Array:
    """Those of other kinks X that agree on something free of θ, the most of them; none where fewer than three do.

    With N a basis of what is free, a kink with φ·N = t·u, |u| = 1, says that θ has −θ·φ/t along u. A kink of another
    unit says so, too, but something else. How many are nearly the same tells how many are the same by chance: more must
    be.

    Examples
    --------
    >>> lift = Lift(Known(3))
    >>> unit = np.array([1.0, 2.0, 2.0, 4.0]) / 5.0  # x₁ + 2x₂ + 2x₃ + 4 = 0, and nothing is known of x₃ yet
    >>> surface = Surface(lift, np.zeros(0), unit * [1, 1, 0, 1], np.array([True, True, False, True]))
    >>> P = np.random.default_rng(0).normal(size=(9, 3))
    >>> P[:4, 2] = -(P[:4, 0] + 2.0 * P[:4, 1] + 4.0) / 2.0  # four of nine kinks are the unit's
    >>> surface.take(agreeing(surface, P))
    >>> len(surface.points), bool(surface.seen.all()), bool(np.allclose(np.abs(surface.theta), unit))
    (4, True, True)
    """
    F = surface.lift(X, surface.s)
    F = F / np.linalg.norm(F, axis=1, keepdims=True)
    part = F @ surface.unknown
    size = np.linalg.norm(part, axis=1)
    use = np.flatnonzero(size > _CLEAR)
    X, F, way, size = X[use], F[use], part[use] / size[use, None], size[use]
    says, slack = -(F @ surface.theta) / size, _NEAR * float(np.linalg.norm(surface.theta)) / size
    cosine, best = way @ way.T, np.zeros(0, dtype=np.intp)
    for i in range(len(X)):
        off = np.abs(says - np.sign(cosine[i]) * says[i]) / (slack + slack[i])
        off[np.abs(cosine[i]) < 1.0 - _PARALLEL] = np.inf
        other = (off <= 1.0) & (np.abs(F @ F[i]) < 1.0 - _APART)
        k, expected = int(other.sum()), max(float((off <= _WIDE).sum() - (off <= 1.0).sum()), 0.1) / _WIDE
        if k + 1 >= _AGREE and k + 1 > len(best) and len(X) * pdtrc(k - 1, expected) < _CHANCE:
            best = np.flatnonzero(off <= 1.0)
    return X[best]


def only(F: Array) -> tuple[Array, float] | None:
    """The one direction θ with Fθ = 0 (n, p), zero at columns that are, and its error, about.

    None if there is no such θ, or several.
    """
    F = F / np.linalg.norm(F, axis=1, keepdims=True)
    scale = np.linalg.norm(F, axis=0)
    use = scale > 0.0
    if use.sum() < 2 or len(F) < use.sum():
        return None
    s, Vt = np.linalg.svd(F[:, use] / scale[use], full_matrices=False)[1:]
    if s[-1] > _NOTHING * s[-2] or s[-2] < 1e-6 * s[0]:
        return None
    theta = np.zeros(len(scale))
    theta[use] = Vt[-1] / scale[use]
    # what is left of a direction that should vanish, over what the next one keeps: how far θ may have turned
    return theta / np.linalg.norm(theta), max(_FINE, float(s[-1] / s[-2]))


def bends(ask: Asked, bases: list[Array], ways: list[Array]) -> list[Array | None]:
    """The one kink of each base + τ·way, |τ| ≤ 1: two points on each side give its place, and one there confirms it."""
    if not bases:
        return []
    P, U = np.array(bases), np.array(ways)
    lost = ~(np.isfinite(P).all(axis=1) & np.isfinite(U).all(axis=1))  # no direction is left in a corner
    P[lost], U[lost] = 0.0, 0.0
    tau = np.array([-2.0, -1.0, 1.0, 2.0])
    y = ask((P[:, None, :] + tau[:, None] * U[:, None, :]).reshape(-1, P.shape[1])).reshape(-1, 4)
    size = np.abs(y).max(axis=1)
    left, right = y[:, 1] - y[:, 0], y[:, 3] - y[:, 2]
    jump = right - left
    clear = np.abs(jump) > _SHARP * size
    place = np.where(clear, (y[:, 1] + left - y[:, 2] + right) / np.where(clear, jump, 1.0), np.inf)
    good = np.flatnonzero(np.abs(place) <= 1.0)
    if not len(good):
        return [None] * len(P)
    points = P[good] + place[good, None] * U[good]
    wanted = y[good, 1] + left[good] * (place[good] + 1.0)
    fits = np.abs(ask(points) - wanted) <= 16.0 * (ROUNDING * size[good] + ask.grid)
    found: list[Array | None] = [None] * len(P)
    for i, x, fit in zip(good, points, fits):
        if fit:
            found[i] = x
    return found
