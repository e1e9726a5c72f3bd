"""One unit more: what gradients say of a unit that is on nearly everywhere, and so has next to no kinks.

Such a unit w is part of every gradient around corners (`balls`): G = Σ_j c_j V_j + μw, over the units j that are on. So
no signs fit without it. But of two gradients G and G', along the directions C in which h moves around both, there is a
t for which G − tG' is without w:

    (G − tG')C = Σ_j c_j V_j C,    j on at one of the two.                                                         (1)

The least Σ|c_j|, with t free, finds these units as in `sums`; that they are so few proves it, and tells signs. With
them, what is left of each gradient once the units that are on are taken off is a multiple of w:

    (I − P − ρρᵀ) Bᵀ w = 0,    P: onto the rows V_j B of the units that are on, ρ: what is left, of length one.     (2)

These are many equations, linear in w. That they have a solution confirms the signs, too. Where it is off, if anywhere,
lines show its kinks: all of them have the same w·h.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.asking.kinks import segments
from relumine.extraction.deep.behind.balls import Point
from relumine.extraction.deep.behind.sums import FITS, Mask
from relumine.extraction.deep.known.climb import furthest, headless, lowest

_BEST, _PAIRS = 150, 2000  # points with the most directions, and pairs of them with the most in common: six seconds
_OVER = 2  # directions beyond the units on that prove these are right
_NOTHING = 1e-4  # |c_j| over the largest that is none
# Pairs that tell a sign, and all that are needed; share of them that agree: one set of units in ten is another. Where h
# has ten entries, three of four said that units on at 95 % of the points are off: all signs of small layers are tried.
_VOTES, _ENOUGH, _AGREE = 5, 20, 0.85
_TRIED = 9  # signs of which all are tried: three seconds
_SAME = 1e-9  # cosine from one on of directions that are one
_ONLY = 1e-4  # least over second least singular value of (2): measured 5e-10, and 0.1 with a wrong sign
_KNOWN = 0.999  # cosine of w with a unit from which it is that one, with a wrong sign, or on at nearly all points
# Share of the points at which w is on; of those, which must agree on it; how far off they may be, over half of them,
# and that which is rounding: in the fourth layer of a trained 100-16×8-1 up to 3e-6. Where nearly the same units of the
# next layer were on at all points, wrong signs had a w in common at 89 % of them.
_MOSTLY, _ALL, _STRAY, _ROUND = 0.8, 0.97, 10.0, 1e-5
# Times that points are weighed anew, and least error that counts, over that of the best tenth: in the fourth layer of a
# trained 100-16×8-1, w was off by 4.8e-7, and by 1.2e-8 then.
_WEIGHED, _BOUND = 5, 0.3
# Share of the points of the best signs from which others are as good.
_RIVAL = 0.9
# Lines to where w·h is lowest, and as many to where it is highest; queries for each; lines that show a bias, and how
# many biases are tried; how far off a kink may be, over the size of h.
_ENDS, _NEAR, _MOST, _LINES, _CHOICE, _SLACK = 12, 6, 8_000, 3, 4, 1e-6
_LEAST, _FEW, _FEW_AGREE = 2, 4, 0.9  # points for each weight of w that tell; and that are tried first, and must agree


def one_more(
    points: list[Point], V: Array, c: Array, rng: np.random.Generator, known: Mask | None = None
) -> tuple[Array, Array] | None:
    """ξ (m,) of the units Vh + c, and ±w (width,) of length one, of one more that is on at nearly all points; or None.

    ``known`` (m, width): which weights are. The others tell only on which side their unit stays; where it is on, any
    multiple of the unit in front is in a gradient.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> V, w, points = rng.normal(size=(4, 9)), np.full(9, 1.0 / 3.0), []
    >>> for h in np.abs(rng.normal(size=(60, 9))):
    ...     on = V @ h > 0.0  # a gradient is some sum over these units and w
    ...     points.append(Point(np.eye(9), rng.normal(size=on.sum()) @ V[on] + rng.normal() * w, h))
    >>> xi, found = one_more(points, -V, np.zeros(4), rng)
    >>> xi, bool(abs(found @ w) > 1.0 - 1e-9)
    (array([-1., -1., -1., -1.]), True)
    """
    known = np.ones(V.shape, dtype=bool) if known is None else known
    for_, against = _votes(points, V, c, rng, known) if len(c) > _TRIED else (np.zeros(len(c)), np.zeros(len(c)))
    open_ = np.flatnonzero(_open(for_, against))
    if len(open_) > _TRIED:
        return None
    few = [points[i] for i in rng.permutation(len(points))[: _FEW * V.shape[1]]]  # these rule out most
    found: list[tuple[int, Array, Array]] = []
    for some in product((1.0, -1.0), repeat=len(open_)):
        xi = np.where(for_ > against, 1.0, -1.0)
        xi[open_] *= some
        if len(open_) and in_common(few, V, c, xi, known, _FEW_AGREE) is None:
            continue
        if (both := in_common(points, V, c, xi, known)) is not None:
            found.append((both[1], xi, both[0]))
    most = max((count for count, _, _ in found), default=0)
    best = [(xi, w) for count, xi, w in found if count > _RIVAL * most]
    return best[0] if len(best) == 1 else None


def _votes(points: list[Point], V: Array, c: Array, rng: np.random.Generator, known: Mask) -> tuple[Array, Array]:
    """How many pairs of points say that each unit is on where Vh + c > 0, and how many that it is off there, by (1)."""
    best = sorted(points, key=lambda p: -len(p.g))[:_BEST]
    pairs = list(combinations(range(len(best)), 2))
    cosines = [np.linalg.svd(best[i].B.T @ best[j].B, compute_uv=False) for i, j in pairs]
    count = np.array([int((s > 1.0 - _SAME).sum()) for s in cosines])
    for_, against = np.zeros(len(c)), np.zeros(len(c))
    for k in np.argsort(-count + 0.5 * rng.random(len(count)))[:_PAIRS]:
        if (for_ + against).min() > _ENOUGH and not _open(for_, against).any():
            break
        one, two = (best[i] for i in pairs[k])
        on = _either_on(one, two, V, known)
        if on is None:
            continue
        up = np.sign(V @ one.h + c)
        vote = np.where(up == np.sign(V @ two.h + c), on * up, 0.0)
        for_ += vote > 0.0
        against += vote < 0.0
    return for_, against


def _open(for_: Array, against: Array) -> Mask:
    """Of which units too few pairs tell the sign, or too few of them agree."""
    both, most = for_ + against, np.maximum(for_, against)
    return np.asarray((both < _VOTES) | (most < _AGREE * both))


def _either_on(one: Point, two: Point, V: Array, known: Mask) -> Array | None:
    """+1 for the units that are on at one of two points, −1 for the others, by (1); 0: nothing is known. Or None."""
    U, s, Wt = np.linalg.svd(one.B.T @ two.B)
    k = int((s > 1.0 - _SAME).sum())
    if k <= _OVER + 1:  # too few for any unit
        return None
    full = np.vstack([V * known, np.eye(V.shape[1])[~known.all(axis=0)]])
    G, other, A = one.g @ U[:, :k], two.g @ Wt[:k].T, full @ (one.B @ U[:, :k])
    size = np.linalg.norm(A, axis=1)
    use = size > _NOTHING * size.max(initial=0.0)
    A, m = A[use] / size[use, None], int(use.sum())
    G, other = (v / max(float(np.linalg.norm(v)), 1e-300) for v in (G, other))
    cost, columns = np.append(np.ones(2 * m), [0.0, 0.0]), np.vstack([A, -A, other, -other]).T
    found = linprog(cost, A_eq=columns, b_eq=G, method="highs")
    if found.x is None:
        return None
    x, t = np.abs(found.x[:m] - found.x[m : 2 * m]), abs(found.x[-2] - found.x[-1])
    loud = x > _NOTHING * max(float(x.max(initial=0.0)), t)
    if loud.sum() + 1 > k - _OVER or t < _NOTHING:
        return None
    on = np.zeros(len(full))
    on[use] = np.where(loud, 1.0, -1.0)
    return on[: len(V)]


def in_common(
    points: list[Point], V: Array, c: Array, xi: Array, known: Mask, agree: float = _ALL
) -> tuple[Array, int] | None:
    """±w (width,) of a unit beside those with signs ξ, on at nearly all points, by (2), and how many tell; or None.

    ``agree``: share of the points at which it is on that must.
    """
    rows, few = [], 0
    for p in points:
        on = xi * (V @ p.h + c) > 0.0
        A = np.vstack([(V * known)[on] @ p.B, p.B[p.moves & ~known[on].all(axis=0)]])
        if len(A) + 1 >= len(p.g):
            continue
        few += 1
        Q = np.linalg.qr((A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300)).T)[0]
        rest = p.g - Q @ (Q.T @ p.g)
        size = float(np.linalg.norm(rest))
        if size > FITS * np.linalg.norm(p.g):  # else it is off there
            M = p.B.T - Q @ (Q.T @ p.B.T)
            rows.append(M - np.outer(rest, rest @ M) / size**2)
    use = rows
    for _ in range(3):
        if len(use) < max(_LEAST * V.shape[1], _MOSTLY * few, agree * len(rows)):
            return None
        _, s, Wt = np.linalg.svd(np.vstack(use), full_matrices=False)
        if np.abs(Wt[-1]).max() > _KNOWN:  # a unit in front that stays out of all of them
            return None
        off = np.array([np.linalg.norm(M @ Wt[-1]) for M in rows])
        use = [M for M, near in zip(rows, off <= max(_STRAY * float(np.median(off)), _ROUND)) if near]
    new = (np.abs(V @ Wt[-1]) < _KNOWN * np.linalg.norm(V, axis=1)).all()
    return (_weighed(use, Wt[-1]), len(use)) if new and s[-1] <= _ONLY * s[-2] else None


def _weighed(rows: list[Array], w: Array) -> Array:
    """The same w, each point weighed by how near to it w is: some gradients have four digits more than others."""
    for _ in range(_WEIGHED):
        off = np.array([np.linalg.norm(M @ w) for M in rows])
        size = 1.0 / np.maximum(off, max(_BOUND * float(np.quantile(off, 0.1)), 1e-300))
        w = np.linalg.svd(np.vstack([M * a for M, a in zip(rows, size)]), full_matrices=False)[2][-1]
    return np.asarray(w)


def biases(at: Inquiry, w: Array) -> list[tuple[float, list[Array]]]:
    """What the bias of a unit w·h + c may be, the likeliest first, and its kinks then; ``w`` (width,) of length one.

    Lines go from random inputs to where w·h is lowest, and highest. Of all their kinks, those of the unit have the same
    w·h on every line that meets one.
    """
    ways, net = np.zeros((2 * _ENDS, len(w) + 1)), headless(at.known)
    ways[:_ENDS, :-1], ways[_ENDS:, :-1] = w, -w
    near = [lowest(net, way, _NEAR, at.rng) for way in (w, -w)]  # beside all of h, w·h may be small only far out
    ends = np.vstack([furthest(net, ways, at.rng), *near])
    found = segments(at.ask, at.rng.normal(size=(len(ends), at.dim)), ends, float(np.sqrt(at.dim)), _MOST * len(ends))
    X = np.concatenate([segment.points for segment in found])
    line = np.repeat(np.arange(len(found)), [len(segment.points) for segment in found])
    H = at.known(X)
    slack = _SLACK * np.sqrt(1.0 + np.sum(H * H, axis=1))
    return [(-z, list(X[np.abs(H @ w - z) <= slack])) for z in repeated(H @ w, slack, line)]


def repeated(heights: Array, slack: Array, line: NDArray[np.intp]) -> list[float]:
    """Values that kinks on several lines have in common, up to ``slack`` (n,); those on most lines first."""
    found: list[tuple[int, float]] = []
    for z, near in zip(heights, slack):
        lines = len(set(line[np.abs(heights - z) <= near].tolist()))
        if lines >= _LINES and not any(abs(z - other) <= near for _, other in found):
            found.append((lines, float(z)))
    return [z for _, z in sorted(found, reverse=True)[:_CHOICE]]
