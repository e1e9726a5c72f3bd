"""The kinks of a piecewise linear function along lines: where f(x₀ + t·u) changes its slope, and by how much.

A hyperplane w·x + b = 0 that is not parallel to u meets the line once, at t = −(w·x₀ + b)/(w·u). For random u this is
Cauchy distributed, so the search runs in the angle φ = arctan(t/τ): kinks are then spread evenly, and those a million
units away cost no more than those at hand.

How to use it::

    line = Line(x0, u, (-1e4, 1e4), tau)           # x0, u (d,); t from … to; tau: where most kinks are expected
    (found,) = kinks(ask, [line])                  # ask: (n, d) -> (n, q); one call a round for all lines together
    found.t, found.jump                            # (k,) increasing, and the jumps of the slope ∂f/∂t there, (k, q)
    found.pieces                                   # k + 1 pieces: .lo, .hi, .value(t), .slope, .error
    found.whole, found.doubts                      # whether every stretch was resolved, and those that were not
    found.noise(t)                                 # (n, q): standard deviation of the answers' rounding at t, measured

Every stretch lies between two pieces of which at least a *stub* is known: three points on one line.

1. The lines of its two stubs agree: one query in the middle confirms that there is no kink.
2. They cross inside: ask at the crossing. If the value fits, ask a point on each side; if these fit, too, it is a kink.
3. Otherwise ask in the middle. An answer that fits one of the pieces shows that this half has no kink.
4. An answer that fits neither becomes a stub, by two more points beside it, and splits the stretch.

A comparison is made against the noise of the answers, measured from the second differences of the first stubs, times
how far a prediction extrapolates. What is left too short for any difference to exceed that is one kink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from relumine.arrays import Array, is_single
from relumine.extraction.pieces import SURE, Crossings, Line, Noise, Piece, crossing

Ask = Callable[[Array], Array]


_EPS = float(np.finfo(float).eps)
_SINGLE = 0.25 * float(np.finfo(np.float32).eps)  # relative: rounding to single precision has a spread of 0.14 to 0.29
_CELLS = 6  # stretches of the first round; their stubs also measure the noise, so fewer would not do
_STUB = 1e-6  # half-width of a stub in radians, for answers in double precision: seldom on a kink, ten digits of slope
_SUSPECT = 1e-13  # relative noise that is no rounding of double precision: wider stubs tell what it is
_SHORT = 1e-8  # noise that leaves a stub no digit of slope
_OUTER = 1e-11  # the same far out, where slopes that cancel leave fewer digits
_WIDEST = 1e-2  # radians that a stub may take where answers are rough
_INNER = 30.0  # up to so many τ rounding is taken for constant, beyond for proportional to |t|
_ROUNDS = 120  # a kink takes about two rounds for every halving between it and its neighbours
_APART = 4.0  # a point beside a crossing lies where the two lines differ by this many times what still fits
_BLUNT = 4.0  # a stretch on which two lines differ by less than so many times what fits is not split further
_TRIES = 6  # places at which a stub is tried in a stretch, each narrower than the last
_VAGUE = 1e-3  # a value that may be off by this share of what tells two pieces apart is not told by them
_NEAR = 0.05  # a crossing nearer to an end than this share of the stretch is no good place to split


@dataclass
class _Stretch:
    """What lies between two pieces.

    ``stage``: what it asks next, ``asks``: where; ``point``: one answered already; ``fair``: not a crossing.
    """

    line: int
    left: Piece
    right: Piece
    asks: list[float] = field(default_factory=list)
    stage: str = ""
    point: tuple[float, Array] | None = None
    tries: int = 0
    fair: bool = True

    def crossing(self) -> float | None:
        """Where the two lines meet; None if nowhere inside."""
        return crossing(self.left, self.right)

    def blunt(self) -> bool:
        """Whether the stretch is so short that the two lines cannot be told apart on it."""
        middle = 0.5 * (self.left.hi + self.right.lo)
        apart = np.abs(self.right.slope - self.left.slope) * (self.right.lo - self.left.hi)
        gap = np.abs(self.right.value(middle) - self.left.value(middle))
        return bool((apart + gap <= _BLUNT * SURE * self.left.noise(middle)).all())

    def agree(self) -> bool:
        """Whether the outermost points of either piece fit the other."""
        one, two = self.left, self.right
        ends = ((one, two.t[0], two.v[0]), (one, two.t[-1], two.v[-1]), (two, one.t[0], one.v[0]))
        return all(piece.fits(t, v) for piece, t, v in (*ends, (two, one.t[-1], one.v[-1])))


def kinks(
    ask: Ask,
    lines: Sequence[Line],
    *,
    floor: Noise | None = None,
    most: int | None = None,
    rough: float = np.inf,
    over: Callable[[], bool] = lambda: False,
) -> list[Crossings]:
    """All kinks of f along the lines.

    Parameters
    ----------
    ask : callable
        (n, d) → (n, q), pure; called once a round with what all stretches of all lines want to know.
    lines : sequence of Line
    floor : Noise, optional
        Error of the values that ``ask`` returns, where it is known to exceed their rounding.
    most : int, optional
        Queries after which the search of what is still open is given up; ``doubts`` names it.
    rough : float
        Relative noise beyond which the search does not begin, as it does not for a function that bends everywhere.
    over : callable
        Asked between rounds whether to come to an end.

    Examples
    --------
    >>> line = Line(np.zeros(1), np.ones(1), (-100.0, 100.0))
    >>> (found,) = kinks(lambda X: np.abs(X - 1.0) + np.maximum(X + 3.0, 0.0), [line])
    >>> found.t.round(9).tolist(), found.jump.round(9).tolist()
    ([-3.0, 1.0], [[1.0], [2.0]])
    """
    search = _Search(ask, list(lines), floor)
    search.begin()
    hopeless = search.noise.curved or search.noise.relative > rough
    for _ in range(0 if hopeless else _ROUNDS):
        if not search.open or over() or (most is not None and search.asked >= most):
            break
        search.round()
    return search.results()


class _Search:
    """The state: open stretches, kinks found, and what could not be resolved."""

    def __init__(self, ask: Ask, lines: list[Line], floor: Noise | None) -> None:
        self.ask, self.lines, self.floor = ask, lines, floor
        self.open: list[_Stretch] = []
        self.pieces: list[list[Piece]] = [[] for _ in lines]
        self.lost: list[list[tuple[float, float]]] = [[] for _ in lines]
        self.noise = Noise(np.zeros(1), np.zeros(1))
        self.near: list[Array] = []
        self.far: list[Array] = []
        self.width = _STUB
        self.asked = 0

    def values(self, where: list[tuple[int, float]]) -> Array:
        """Answers (n, q) to points (line, t)."""
        self.asked += len(where)
        X = np.stack([self.lines[k].origin + t * self.lines[k].direction for k, t in where])
        return self.ask(X)

    # -- the first stubs, and the noise ------------------------------------------------------------------------

    def begin(self) -> None:
        """Stubs at the ends of the cells; where answers are rough the stubs are made wider and asked again."""
        spots = [(k, phi) for k, line in enumerate(self.lines) for phi in _grid(line)]
        t, v = self._stubs(spots, self.width)
        noise = self._measure(spots, t, v)
        wanted = min(float(np.sqrt(noise.relative)), _WIDEST)
        # a floor is what the caller knows about the noise: then stubs are only too short for it, or not
        if noise.relative > (_SUSPECT if self.floor is None else _SHORT):
            wanted = max(wanted, 16.0 * self.width)
            wide = self._stubs(spots, wanted)
            rough = self._measure(spots, *wide, self.far)
            # rounding does not grow with the distance of the points, curvature does
            noise.curved = self.floor is None and rough.relative > 30.0 * noise.relative
            if not noise.curved:
                self.width, (t, v), noise = wanted, wide, rough
        self.noise = noise
        good: dict[int, Piece] = {}
        for turn in range(3):  # a stub on a kink is moved
            bad = [i for i in range(len(spots)) if i not in good]
            if turn and bad:
                shift = [(k, phi + (0.11 if phi < 0.0 else -0.11) * turn * np.pi / _CELLS) for k, phi in spots]
                t[bad], v[bad] = self._stubs([shift[i] for i in bad], self.width / 4.0**turn)
            for i in bad:
                piece = Piece(t[i], v[i], noise)
                if piece.straight():
                    good[i] = piece
        for k in range(len(self.lines)):
            mine = [good[i] for i in sorted(good) if spots[i][0] == k]
            self.pieces[k] = mine
            self.open += [_Stretch(k, one, two) for one, two in pairwise(mine)]

    def _stubs(self, spots: list[tuple[int, float]], width: float) -> tuple[Array, Array]:
        """Three points at every spot (line, φ): t (n, 3) and the answers (n, 3, q)."""
        t = np.empty((len(spots), 3))
        for row, (k, phi) in zip(t, spots):
            line = self.lines[k]
            ends = line.angle(line.reach[0]) + 1.3 * width, line.angle(line.reach[1]) - 1.3 * width
            phi = float(np.clip(phi + 0.3 * width, *ends))  # other points for every width: none is asked twice
            row[:] = [line.place(phi + step) for step in (-width, 0.0, width)]
        V = self.values([(k, at) for (k, _), row in zip(spots, t) for at in row])
        return t, V.reshape(len(spots), 3, -1)

    def _measure(self, spots: list[tuple[int, float]], t: Array, v: Array, further: Sequence[Array] = ()) -> Noise:
        """σ from how far the middle of a stub lies off its ends: rounding, but for the few stubs that bend.

        ``further``: what narrower stubs far out showed. A line has only two there, and a wide one reaches so far that a
        kink may lie in it: of 3000 boxes in single precision 11 were taken for curved by that.
        """
        scale = np.array([self.lines[k].scale for k, _ in spots])
        off, far = _offs(t, v), np.abs(t[:, 1])
        near = far <= _INNER * scale
        near |= not near.any()
        # a box whose values happen to be exact still rounds elsewhere: no less than its last place
        least = _SINGLE if is_single(v) and len(np.unique(v)) > v.size // 2 else 2.0 * _EPS
        size = np.maximum(np.median(np.abs(v[near, 1]), axis=0), 0.01 * np.abs(v[near, 1]).max(axis=0))
        size = np.where(size > 0.0, size, 1.0)  # zero wherever it was asked: any scale will do
        level = np.maximum(_spread(off[near]), least * size)
        steep = np.abs(v[:, 1] - np.median(v[near, 1], axis=0)) / np.maximum(far, scale)[:, None]
        slope = np.maximum(np.median(steep, axis=0), 0.01 * steep.max(axis=0))
        outside = [*further, *(off[~near] / far[~near, None])]
        growth = np.maximum(_spread(np.array(outside).reshape(-1, off.shape[1])), least * slope)
        if self.floor is not None:
            level, growth = np.maximum(level, self.floor.level), np.maximum(growth, self.floor.growth)
        self.near, self.far = list(off[near]), outside
        # relative to how much the values vary, not to what they are: an offset has no digits to offer
        vary = np.abs(v[near, 1] - np.median(v[near, 1], axis=0)).max(axis=0) + scale.max() * slope
        outer = growth / np.where(slope > 0.0, slope, 1.0)
        relative = np.maximum(level / np.where(vary > 0.0, vary, size), np.where(outer > _OUTER, outer, 0.0))
        return Noise(level, growth, float(relative.max()))

    def _more_noise(self, line: Line, t: Array, v: Array) -> None:
        """Every further stub is one more measurement: the noise is never taken for less than most of them show."""
        off, near = _offs(t[None], v[None])[0], abs(t[1]) <= _INNER * line.scale
        (self.near if near else self.far).append(off if near else off / abs(t[1]))
        # a few stubs beside one kink are no measurement: eight or more, of which most must agree
        if near and len(self.near) % 8 == 0:
            level = np.maximum(self.noise.level, _spread(np.array(self.near)))
            self.noise.relative *= float((level / self.noise.level).max())
            self.noise.level = level
        elif not near and len(self.far) % 8 == 0:
            self.noise.growth = np.maximum(self.noise.growth, _spread(np.array(self.far)))

    # -- rounds --------------------------------------------------------------------------------------------------

    def round(self) -> None:
        """What every open stretch wants to know, in one call; then what follows from it."""
        for stretch in self.open:
            stretch.left, stretch.right = stretch.left.find(), stretch.right.find()
            self._wish(stretch)
        V = self.values([(stretch.line, t) for stretch in self.open for t in stretch.asks])
        todo, self.open, at = self.open, [], 0
        for stretch in todo:
            values = V[at : at + len(stretch.asks)]
            at += len(stretch.asks)
            stretch.left, stretch.right = stretch.left.find(), stretch.right.find()
            self._learn(stretch, values)

    def _wish(self, s: _Stretch) -> None:
        """The points a stretch asks for next."""
        if s.stage == "sides" and s.point is not None:
            s.asks = self._sides(s, s.point[0])
            return
        if s.stage == "check" and s.point is not None:
            end = s.left.hi if s.left.fits(*s.point) else s.right.lo
            s.asks = [0.5 * (end + s.point[0])]
        elif s.stage == "middle":
            s.asks = [self._between(s, 0.5)]
        elif s.stage != "split":
            crossing = None if s.agree() else s.crossing()
            s.stage = "flat" if s.agree() else "middle" if crossing is None else "crossing"
            s.asks = [self._between(s, 0.5) if crossing is None else crossing]
        if s.stage == "split":
            s.asks = self._stub(s)

    def _sides(self, s: _Stretch, t: float) -> list[float]:
        """A point on each side of t, as near as the two lines can be told apart there.

        Two kinks of opposite sign have their crossing behind both of them: it lies on the right line by construction,
        and only a point just before it does not lie on the left one.
        """
        apart = self._apart(s, t)
        before, after = t - s.left.hi, s.right.lo - t
        return [t - min(max(apart, 1e-6 * before), 0.25 * before), t + min(max(apart, 1e-6 * after), 0.25 * after)]

    def _apart(self, s: _Stretch, t: float) -> float:
        """How far from a crossing t the two lines can be told apart."""
        bend = np.abs(s.right.slope - s.left.slope)
        doubt = SURE * np.maximum(s.left.doubt(t), s.right.doubt(t))
        return _APART * float((doubt / np.maximum(bend, np.finfo(float).tiny)).min())

    def _between(self, s: _Stretch, share: float) -> float:
        """A point inside the stretch, by angle."""
        line, a, b = self.lines[s.line], s.left.hi, s.right.lo
        t = line.place((1.0 - share) * line.angle(a) + share * line.angle(b))
        return t if a < t < b else (1.0 - share) * a + share * b

    def _stub(self, s: _Stretch) -> list[float]:
        """A stub at the point answered last (two more points) or elsewhere, no wider than a tenth of the stretch."""
        line = self.lines[s.line]
        low, high = line.angle(s.left.hi), line.angle(s.right.lo)
        width = min(self.width, 0.05 * (high - low)) / 4.0**s.tries
        if s.point is not None:
            room = min(line.angle(s.point[0]) - low, high - line.angle(s.point[0]))
            s.point = s.point if room >= _NEAR * (high - low) else None
        if s.point is None:
            # the middle first; where that is a kink, beside it
            middle = self._between(s, 0.5 + 0.13 * ((s.tries + 1) // 2) * (-1.0) ** s.tries)
        else:
            middle = s.point[0]
        phi = line.angle(middle)
        ends = [line.place(phi - width), line.place(phi + width)]
        return ends if s.point is not None else [*ends, middle]

    def _learn(self, s: _Stretch, values: Array) -> None:
        """What the answers mean for the stretch."""
        if s.stage == "split":
            self._split(s, values)
        elif s.stage == "check":
            self._checked(s, values[0])
        elif s.stage == "sides":
            fits = s.left.fits(s.asks[0], values[0]), s.right.fits(s.asks[1], values[1])
            for piece, fit, t, v in zip((s.left, s.right), fits, s.asks, values):
                if fit:
                    piece.add(t, v)
            if not all(fits):
                self._behind(s, values, fits)
            elif not self._confirmed(s):
                self._again(s, "split")
        else:
            s.point = (s.asks[0], values[0])
            s.fair = s.stage != "crossing"  # a stub at a crossing is likely to stand on a kink
            left, right = s.left.fits(*s.point), s.right.fits(*s.point)
            if s.stage == "middle" and left != right and self._vague(s, s.left if left else s.right):
                self._again(s, "check")
            elif s.stage == "middle" and left != right:  # no kink on this half
                (s.left if left else s.right).add(*s.point)
                self._again(s, "")
            elif s.stage == "crossing" and (left or right):  # both predict the same there, one of them better
                # nearer to a piece than the two can be told apart, the crossing may lie on the wrong side of the kink
                room = min(s.point[0] - s.left.hi, s.right.lo - s.point[0])
                self._again(s, "sides" if self._apart(s, s.point[0]) <= room else "middle")
            elif not (left and right and s.stage == "flat" and self._joined(s)):
                self._again(s, "split")

    @staticmethod
    def _vague(s: _Stretch, piece: Piece) -> bool:
        """Whether the point fits a piece because nearly anything would: a stub says little about far places."""
        assert s.point is not None
        t, v = s.point
        apart = np.abs(s.left.value(t) - s.right.value(t))
        return bool((SURE * piece.doubt(t) > _VAGUE * np.maximum(apart, np.abs(v - piece.value(t)))).all())

    def _checked(self, s: _Stretch, value: Array) -> None:
        """The point asked in the middle belongs to a piece if one between the two does, on the line through both."""
        assert s.point is not None
        t, v = np.array([s.asks[0], s.point[0]]), np.vstack([value, s.point[1]])
        piece = s.left if s.left.fits(*s.point) else s.right
        if Piece(np.append(piece.t, t), np.vstack([piece.v, v]), piece.noise).straight():
            piece.add(*s.point)
            piece.add(s.asks[0], value)
            self._again(s, "")
        else:
            s.point = (s.asks[0], value)
            self._again(s, "split")

    def _behind(self, s: _Stretch, values: Array, fits: tuple[bool, bool]) -> None:
        """The crossing lies behind both of two kinks: all three points then belong to one of the pieces."""
        assert s.point is not None
        for fit, other, t, v in ((fits[1], s.right, s.asks[0], values[0]), (fits[0], s.left, s.asks[1], values[1])):
            if fit and other.fits(t, v) and other.fits(*s.point):
                other.add(*s.point)
                other.add(t, v)
                self._again(s, "")
                return
        self._again(s, "split")

    def _joined(self, s: _Stretch) -> bool:
        """One piece, if all points of both are on one line."""
        assert s.point is not None
        t, v = s.point
        both = Piece(np.concatenate([s.left.t, [t], s.right.t]), np.vstack([s.left.v, v, s.right.v]), s.left.noise)
        if both.straight():
            s.left.add(t, v)
            s.left.join(s.right)
            return True
        return False

    def _confirmed(self, s: _Stretch) -> bool:
        """Whether the pieces as they are known now still meet inside, and at the answer that was asked first."""
        kink = s.crossing()
        if kink is None or s.point is None:
            return False
        return (s.left if s.point[0] <= kink else s.right).fits(*s.point)

    def _again(self, s: _Stretch, stage: str) -> None:
        """Next round; what is too short for a kink inside to be told from noise is left as it is."""
        line = self.lines[s.line]
        low, high = line.angle(s.left.hi), line.angle(s.right.lo)
        tiny = high - low <= 64.0 * _EPS * max(abs(low), abs(high))
        if not (tiny or s.tries >= _TRIES or (stage == "split" and s.blunt())):
            s.stage = stage
            self.open.append(s)
        elif s.crossing() is None and not s.blunt():
            self.lost[s.line].append((s.left.hi, s.right.lo))

    def _split(self, s: _Stretch, values: Array) -> None:
        """Two stretches with a new piece between them, if the stub is straight."""
        ends = (s.point[0], s.point[1]) if s.point is not None else (s.asks[2], values[2])
        t, v = np.array([s.asks[0], ends[0], s.asks[1]]), np.vstack([values[0], ends[1], values[1]])
        distinct = t[0] < t[1] < t[2] and s.left.hi < t[0] and t[2] < s.right.lo
        piece = Piece(t, v, s.left.noise) if distinct else None
        if distinct and s.fair and not s.tries:
            self._more_noise(self.lines[s.line], t, v)
        if piece is None or not piece.straight():
            s.point, s.tries = None, s.tries + (1 if distinct else _TRIES)
            self._again(s, "split")
            return
        self.pieces[s.line].append(piece)
        self.open += [_Stretch(s.line, s.left, piece), _Stretch(s.line, piece, s.right)]

    # -- the end ---------------------------------------------------------------------------------------------------

    def results(self) -> list[Crossings]:
        """Pieces in order, and a kink between any two of them."""
        found = []
        for k, line in enumerate(self.lines):
            still = [(s.left.find().hi, s.right.find().lo) for s in self.open if s.line == k]
            whole = {id(piece): piece for piece in (piece.find() for piece in self.pieces[k])}
            pieces = _without_seams(sorted(whole.values(), key=lambda piece: piece.lo))
            t, jump = np.empty(max(len(pieces) - 1, 0)), np.zeros((max(len(pieces) - 1, 0), len(self.noise.level)))
            for i, (one, two) in enumerate(pairwise(pieces)):
                crossing = _Stretch(k, one, two).crossing()
                t[i] = 0.5 * (one.hi + two.lo) if crossing is None else crossing
                jump[i] = two.slope - one.slope
            doubts = sorted([*still, *self.lost[k]]) if pieces else [line.reach]
            found.append(Crossings(line, t, jump, tuple(pieces), self.noise, tuple(doubts)))
        return found


def _without_seams(pieces: list[Piece]) -> list[Piece]:
    """Neighbours that the noise alone had kept apart: their slopes agree and their points lie on one line."""
    kept = pieces[:1]
    for piece in pieces[1:]:
        last = kept[-1]
        equal = (np.abs(piece.slope - last.slope) <= SURE * (piece.error + last.error)).all()
        if equal:
            both = Piece(np.concatenate([last.t, piece.t]), np.vstack([last.v, piece.v]), last.noise)
            if both.straight():
                kept[-1] = both
                continue
        kept.append(piece)
    return kept


def _grid(line: Line) -> Array:
    """Angles of the first stubs; not at regular places, where the kinks of a constructed network may lie."""
    grid = np.linspace(line.angle(line.reach[0]), line.angle(line.reach[1]), _CELLS + 1)
    grid[1:-1] += 0.0713 * (grid[1] - grid[0])
    return grid


def _offs(t: Array, v: Array) -> Array:
    """How far the middle of stubs, t (n, 3) and v (n, 3, q), lies off the line of their ends, over √1.5: (n, q)."""
    share = ((t[:, 1] - t[:, 0]) / (t[:, 2] - t[:, 0]))[:, None]
    return np.asarray(np.abs(v[:, 1] - (1.0 - share) * v[:, 0] - share * v[:, 2]) / np.sqrt(1.5))


def _spread(offs: Array) -> Array:
    """Standard deviation from |normal| values (n, q), some of them much too large: their median is 0.67 σ."""
    return np.asarray(np.median(offs, axis=0) / 0.67) if len(offs) else np.zeros(offs.shape[1:])
