"""The signs of a layer's units behind two or more known layers, and whether these units are all.

Gradients in balls around corners (`sparse`) tell most signs. What they leave open is told by the gradients that the
other units explain, and a unit without which all are explained is none of this layer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relumine.arrays import Array
from relumine.extraction.deep.asking.inquiry import Inquiry, Mask, Pairs
from relumine.extraction.deep.asking.witnesses import Witness
from relumine.extraction.deep.behind.across import across
from relumine.extraction.deep.behind.balls import Point
from relumine.extraction.deep.behind.lacking import one_more
from relumine.extraction.deep.behind.passing import kept
from relumine.extraction.deep.behind.sparse import Gradients
from relumine.extraction.deep.first.units import Unit
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.surfaces.probing import one_sided
from relumine.extraction.deep.surfaces.surface import Lift, Surface

_NEXT = 60  # kinks next to which it is asked whether a unit is missing
_LOOKS = 6  # for kinks that tell open weights, before signs are asked for
# Gradients on a side of a unit, at the least, that others explain where it is off; share that they may not.
_FIT, _MISFIT = 5, 0.02
# Gradients on its other side, at the least, that they do not explain if it is on there. For units of the third layer of
# 12-6×6-1 that are seldom on they were 3 and 13, beside more than 330 on the side where these are off.
_NEEDED = 3
# Balls in which the box is asked before a unit is looked for that is on in nearly all of them, and how often that is
# tried, with more of them; those on each side of every other unit: what is on at all of them cannot be told from it.
_BALLS, _TRIES, _SIDE = 150, 3, 12
# How far off a gradient is where a unit is missing, and stretches on which that unit is looked for. In the fourth layer
# of a trained 784-8×8-1, two of 2170 were where one was on that is on at one random input of 2000.
_FAR, _STRETCHES = 1e-3, 6
_CHOICE, _ASIDE = 8, 1e-3  # of so many inputs the nearest ends a stretch; how far from corners its ends are
_SUM = 1e-6  # how far weights may be from a sum over other units, over their size
_TIMES = 6  # that gradients are asked for where weights count that nothing has told, or a gradient is not explained
# Looks in vain for what some inputs show that the same units do not, before it is looked for in the layer in front: in
# a trained 784-8×8-1 the third layer lacked a unit that no move and no gradient behind two layers had shown.
_VAIN = 4
MENDED = 4  # times that a known layer is mended
_BLIND = 4  # times that kinks are looked for where weights count that neither kinks nor gradients show


class Signs:
    """What gradients say about the units of the layer behind the known ones; measured once, whatever these are.

    ``open``: whether only signs are; ``missing``: stretches on which a unit that is missing changes sides;
    ``doubtful``: one may be missing, and was not found there; ``in_front``: a known layer that is not all there (its
    number), and stretches from inputs at which that shows.
    """

    def __init__(self, at: Inquiry) -> None:
        self.at, self.gradients = at, Gradients(at)
        self.open = self.doubtful = False
        self.missing: Pairs | None = None
        self.in_front: tuple[int, Pairs] | None = None
        self.looked: list[int] = []  # weights that were open when kinks were looked for before signs
        self.blind = 0  # times that kinks were looked for where weights count that none has shown
        self.asked = 0  # units with which gradients were asked for elsewhere
        self.sought = 0  # units with which they were asked for on both sides of those whose sign was open
        self.vain = (0, 0)  # units beside which inputs showed that something is missing, and how often
        self.tried = (0, 0)  # units beside which one more was looked for, and how often
        self.shown: list[Array] = []  # inputs at which the box depended on more than some set of units

    def told(self, units: list[Unit], free: list[Witness]) -> tuple[list[Unit], Array] | None:
        """The units with their signs ξ, once the box depends on nothing else, also next to the kinks ``free``.

        A surface further behind may have been followed far enough to pass for a unit, but then all of its kinks are on
        the same side of all others. What it leaves open hides what gradients say about these: so they are tried alone,
        too, and it is a doubt if nothing shows that it is none of them.
        """
        self.in_front = None
        self.open, shown, aside = False, np.array([u.known.sum() for u in units]), self._aside(units)
        for least in [0, *np.unique(shown[aside]) + 1]:
            some = ~aside | (shown >= least)
            found = self._of([units[i] for i in np.flatnonzero(some)], free, [units[i] for i in np.flatnonzero(~some)])
            if found is not None:
                some &= ~self._sums(units, aside, *found)  # what gradients need may still be a sum over others
                if len(found[0]) > some.sum():
                    sure, others = ([units[i] for i in np.flatnonzero(use)] for use in (some, ~some))
                    found = self._of(sure, free, others)
            if found is not None:
                return found
        return None

    def _sums(self, units: list[Unit], aside: Mask, found: list[Unit], xi: Array) -> Mask:
        """Which of the ``units`` that are ``aside`` and were found to be of this layer are sums over its others."""
        sums = np.zeros(len(units), dtype=bool)
        for i in np.flatnonzero(aside).tolist():
            rest = np.array([u.points is not units[i].points for u in found])
            mine = [u for u, other in zip(found, rest) if not other]
            others = [u for u, other in zip(found, rest) if other]
            sums[i] = bool(mine) and is_behind(self.at.known, others, xi[rest], mine[0])
        return sums

    def _aside(self, units: list[Unit]) -> Mask:
        """Which units are not beyond any of those that are known whole: they may be further behind."""
        lift = Lift(self.at.known)
        surfaces = [Surface(lift, np.zeros(0), np.append(u.w, u.c), np.append(u.known, True), u.points) for u in units]
        whole = [s for s in surfaces if s.seen.all()]
        found = [len(s.points) > 0 and len(one_sided(s, [t for t in whole if t is not s])) > 0 for s in surfaces]
        return np.array(found)

    def lacking(self, units: list[Unit]) -> Array | None:
        """±w (width,) of a unit beside these that is on nearly everywhere, if no signs fit without it."""
        V, c, known = arrays(units)
        often = self.tried[1] + 1 if self.tried[0] == len(units) else 1
        if self.open or often > _TRIES:
            return None
        self.tried = (len(units), often)
        V = kept(self.at.known, V, c, known, self.at.rng)
        self.gradients.measure(self.gradients.rank, max(often * _BALLS - len(self.gradients.points), 0))
        self.gradients.around(V, c, _SIDE)
        found = one_more(self.gradients.points, V, c, self.at.rng, known)
        self.at.tell(f"   one more unit that is nearly always on: {'no' if found is None else 'yes'}")
        return None if found is None else found[1]

    def _of(
        self, units: list[Unit], free: list[Witness], others: Sequence[Unit] = ()
    ) -> tuple[list[Unit], Array] | None:
        """These with their signs, but for those that are further behind; None: something is open.

        ``others`` are not to be of this layer: neither gradients nor moves next to their kinks must need them.
        """
        for _ in range(2):
            V, c, known = arrays(units)
            xi, left = self.gradients.signs(V, c, known, [u.points for u in units])
            if xi is None or left.all():
                return None
            self.open = True
            told = np.where(left, self.sides(V, c, xi, known, left), xi)
            if (rare := np.isnan(told)).any() and self.sought < len(c):  # none of the points is on its other side
                self.sought = len(c)
                self.gradients.around(kept(self.at.known, V, c, known, self.at.rng), c, _SIDE, rare, xi)
                self._beside(*self.gradients.told(V[~left], c[~left], xi[~left], known[~left]))
                told = np.where(left, self.sides(V, c, xi, known, left), xi)
            xi = told
            if np.isnan(xi).any():
                return None
            if xi.all():
                signs = self._others(units, xi, others)
                found = None if np.nan_to_num(signs).any() else self._weighed(units, V, c, xi, known, free, others)
                self.doubtful |= found is not None and bool(np.isnan(signs).any())
                return found
            units = [u for u, sign in zip(units, xi) if sign]
        return None

    def _others(self, units: list[Unit], xi: Array, others: Sequence[Unit]) -> Array:
        """The signs of the others, by gradients on both sides of each: 0 for those that are none of the units."""
        if not others:
            return np.zeros(0)
        left = np.arange(len(units) + len(others)) >= len(units)
        V, c, known = arrays([*units, *others])
        self.gradients.around(kept(self.at.known, V, c, known, self.at.rng), c, _SIDE, left)
        signs = self.sides(V, c, np.append(xi, np.zeros(len(others))), known, left)[left]
        behind = [is_behind(self.at.known, units, xi, other) for other in others]
        return np.where(np.isnan(signs) & np.array(behind), 0.0, signs)

    def sides(self, V: Array, c: Array, xi: Array, known: Mask, left: Mask) -> Array:
        """The signs (m,) of units that are ``left`` open, by the gradients that the others explain; 0 for those others.

        0 also for one that is further behind; not a number: still open. What gradients say of one is hidden where
        another one that is open is on: so each is guessed, and then told with the guesses of the others.
        """
        guess, signs = np.where(left, 0.0, xi), np.zeros(len(c))
        open_, on = np.flatnonzero(left).tolist(), kept(self.at.known, V, c, known, self.at.rng)
        if len(open_) > 1:
            H, fits = self._explained(V, c, guess, known)
            guess[open_] = [np.nan_to_num(side(H @ on[i] + c[i] > 0.0, fits, guess=True)) for i in open_]
        for i in open_:
            H, fits = self._explained(V, c, np.where(np.arange(len(c)) == i, 0.0, guess), known)
            signs[i] = side(H @ on[i] + c[i] > 0.0, fits)
            self.at.tell(
                f"   without a unit: {int(fits.sum())} of {len(fits)} gradients fit, its sign is {signs[i]:.0f}"
            )
        return signs

    def _explained(self, V: Array, c: Array, xi: Array, known: Mask) -> tuple[Array, Mask]:
        """h (n, width) where few units are on, and whether those with a sign explain the gradient there."""
        use = xi != 0.0
        points, fits = self.gradients.told(V[use], c[use], xi[use], known[use])
        return np.reshape([p.h for p in points], (-1, V.shape[1])), fits

    def _weighed(
        self, units: list[Unit], V: Array, c: Array, xi: Array, known: Mask, free: list[Witness], others: Sequence[Unit]
    ) -> tuple[list[Unit], Array] | None:
        """The units with the weights that no kink shows, once these are known and the box depends on nothing else."""
        hidden = int((~known).sum())
        V, c, known = self.gradients.weights(V, c, xi, known, [u.points for u in units], self.shown)
        self.at.tell(f"   {hidden} weights no kink shows, {int((~known).sum())} of them open")
        if not known.all() and self.blind < _BLIND:
            self.blind, self.missing = self.blind + 1, across(self.at, V, c, known)
            return None
        units = [replace(u, w=w, c=b, known=seen) for u, w, b, seen in zip(units, V, c, known)]
        return (units, xi) if self._whole(V, c, xi, known, free, others) else None

    def crossed(self, units: list[Unit]) -> bool:
        """Whether kinks are to be looked for first, where weights count that are open: gradients need most of them."""
        V, c, known = arrays(units)
        left = int((~known).sum())
        if not left or (self.looked and left >= self.looked[-1]) or len(self.looked) >= _LOOKS:
            return False
        self.missing = across(self.at, V, c, known)
        self.looked.append(left)
        return self.missing is not None

    def _whole(self, V: Array, c: Array, xi: Array, seen: Mask, free: list[Witness], others: Sequence[Unit]) -> bool:
        """Whether the box depends on nothing but these units, also next to kinks that they do not explain.

        Those of ``others`` among them.
        """
        at, known = self.at, Known(self.at.dim, (*self.at.known.layers, (xi[:, None] * V, xi * c)))
        surfaces = Lift(known)
        rest = [w for w in free if not surfaces.touches(w.point)]
        some = [rest[i] for i in at.rng.permutation(len(rest))[:_NEXT]]
        if not self.lonely(V, c, xi, seen):
            return False
        _, fits = self.gradients.told(V, c, xi, seen)
        beside = [u.points[i] for u in others for i in at.rng.permutation(len(u.points))[:_NEXT]]
        whole = at.complete(known, some, [*self.shown, *beside]) and int((~fits).sum()) <= _MISFIT * len(fits)
        if whole and not at.searched(known):
            at.tell("   a random input shows that a unit is missing")
            self.blind, whole = self.blind + 1, self.blind >= _BLIND  # it was looked for often enough
            self.doubtful |= whole
        if not whole and at.beside is not None:
            self.vain = (len(c), 1 + self.vain[1] * (self.vain[0] == len(c)))
            lacking = at.lacking(at.beside[0])
            front = lacking[0] if lacking is not None else len(at.known.layers) if self.vain[1] > _VAIN else 0
            before = {x.tobytes() for x in self.shown}
            self.shown += [x for x in at.beside[0] if x.tobytes() not in before]
            self.missing = at.narrowed(known)
            if front and at.mended >= MENDED:  # it was mended often enough
                self.doubtful = whole = True
            elif front and self.missing is not None:
                self.in_front = front, self.missing
        if whole:
            at.count_checks(len(known.layers), len(fits))
        at.tell(f"   {int(fits.sum())} of {len(fits)} gradients fit")
        at.tell(f"   {len(c)} units, the box depends on {'nothing' if whole else 'something'} more")
        return whole

    def confirmed(
        self, W: Array, b: Array, hidden: Mask, kinks: Sequence[Sequence[Array]]
    ) -> tuple[Array, Array, Mask, bool]:
        """A layer whose signs units behind told, with weights that are ``hidden``: no kink of its unit shows them.

        Units behind say nothing of such a weight where none of their kinks is at an input with both of its units on. So
        gradients are asked for there; and which weights stay open, and whether these units explain all gradients.
        """
        xi = np.ones(len(b))
        for _ in range(_TIMES):  # once more with other gradients, also next to those that nothing explained
            V, c, known = self.gradients.weights(np.where(hidden, 0.0, W), b, xi, ~hidden, kinks)
            V = np.where(hidden & (V == 0.0), W, V)
            _, fits = self._far(V, c, xi, known)
            if fits.all() and known.all():
                break
        open_ = f"{int((~known).sum())} of {int(hidden.sum())} weights open"
        self.at.tell(f"   {open_}, {int(fits.sum())} of {len(fits)} gradients fit")
        if fits.all():
            self.at.count_checks(len(self.at.known.layers) + 1, len(fits))
        return V, c, ~known, bool(fits.all())

    def _far(self, V: Array, c: Array, xi: Array, seen: Mask) -> tuple[list[Point], Mask]:
        """Gradients, also where a unit seldom on may be, and which are not far from what these units explain."""
        if self.asked < len(c):
            self.gradients.elsewhere(V, c, xi)
            self.asked = len(c)
        points, fits = self.gradients.told(V, c, xi, seen, _FAR)
        if not fits.all():  # a single one counts, if it is so once more
            self.gradients.again([p for p, near in zip(points, fits) if not near])
            points, fits = self.gradients.told(V, c, xi, seen, _FAR)
            self._beside(points, fits)
        return points, fits

    def needed(self, V: Array, c: Array, known: Mask, row: Array) -> int:
        """At how many gradients that units Vh + c do not explain one more is on, less at how many that they do.

        All with the right signs; ``row``: (w, b) of the other.
        """
        points, fits = self.gradients.told(V, c, np.ones(len(c)), known, _FAR)
        on = np.reshape([p.h for p in points], (-1, V.shape[1])) @ row[:-1] + row[-1] > 0.0
        return int((on & ~fits).sum() - (on & fits).sum())

    def _beside(self, points: list[Point], fits: Mask) -> None:
        """More gradients next to some of those that are not explained."""
        shown = [p.x for p, near in zip(points, fits) if not near and p.x is not None]
        self.gradients.beside(np.reshape(shown[:_STRETCHES], (-1, self.at.dim)))

    def lonely(self, V: Array, c: Array, xi: Array, seen: Mask) -> bool:
        """Whether no gradient is far from what these units explain, also where a unit that is seldom on may be.

        Else such a one changes sides between an input at which one is, and another.
        """
        points, fits = self._far(V, c, xi, seen)
        self.doubtful = not fits.all()
        if not self.doubtful or self.blind >= _BLIND:
            return True
        self.at.tell(f"   {int((~fits).sum())} of {len(fits)} gradients are far from what these units explain")
        if not fits.any():
            return False
        X = np.array([p.x for p in points])
        X += _ASIDE * (0.1 + np.abs(X)) * self.at.rng.normal(size=X.shape)  # lines from corner to corner miss kinks
        out = X[self.at.rng.permutation(np.flatnonzero(~fits))[:_STRETCHES]]
        some = self.at.rng.integers(int(fits.sum()), size=(len(out), _CHOICE))
        near = [X[fits][i[np.linalg.norm(X[fits][i] - x, axis=1).argmin()]] for x, i in zip(out, some)]
        self.blind, self.missing = self.blind + 1, (out, np.array(near))
        return False


def is_behind(front: Known, units: Sequence[Unit], xi: Array, other: Unit) -> bool:
    """Whether a surface is one of a unit behind these: its weights are a sum over those that are on where it has kinks.

    By all weights that are known; False where these are no more than the units.
    """
    if not other.points:
        return False
    V, c, known = arrays(units)
    on = xi * (front(np.array(other.points)) @ V.T + c) > 0.0
    use = other.known & known[on[0]].all(axis=0)
    if (on != on[0]).any() or int(on[0].sum()) >= int(use.sum()):
        return False
    A, w = V[on[0]][:, use], other.w[use]
    left = w - np.linalg.lstsq(A.T, w, rcond=None)[0] @ A
    return bool(np.linalg.norm(left) <= _SUM * np.linalg.norm(w))


def side(up: Mask, fits: Mask, guess: bool = False) -> float:
    """On which side a unit is on, ±1, by which gradients the others explain, and where it is ``up``; 0: further behind.

    Where the others explain all gradients on one side of a unit and none on its other side, it is on there. Where they
    do on both, it is further behind. Not a number: neither. ``guess``: on the side where it is off some suffice.
    """
    counts = [(int((here & fits).sum()), int((here & ~fits).sum())) for here in (up, ~up)]
    idle = [yes >= _FIT and (guess or no <= _MISFIT * yes) for yes, no in counts]
    needed = [no >= _NEEDED and not yes for yes, no in counts]
    return 0.0 if all(idle) else 1.0 if needed[0] and idle[1] else -1.0 if idle[0] and needed[1] else np.nan


def arrays(units: Sequence[Unit]) -> tuple[Array, Array, Mask]:
    """V (m, width), c (m,) and which weights are known (m, width)."""
    return np.array([u.w for u in units]), np.array([u.c for u in units]), np.array([u.known for u in units])
