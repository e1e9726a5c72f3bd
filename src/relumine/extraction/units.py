"""Hidden units from the kinks of one line: the gradient jumps across each of them by a_i w_i.

Between neighbouring kinks t_{r−1} < t < t_r the function is affine, F_r(x) = g_r·x + …, with g_r (q, d). Then

    g_r − g_{r−1} = a_r w_rᵀ       (rank one for q outputs),        b_r = −w_r·x(t_r),

and f(x) = F_s(x) + Σ_{r>s} a_r relu(z_r) + Σ_{r≤s} a_r relu(−z_r) with z_r = w_r·x + b_r, w_r·u > 0, for any piece s.

1. A gradient takes d − 1 queries: the derivative along the line is known from the line, and so is the value to which
   the others are compared. The step is a share of the piece: the longer, the more digits; but a step may cross a kink
   that the line meets elsewhere.
2. Such steps are seen afterwards, at no query: the units found say on which side of each of them every query lies. A
   step that crosses a kink, or ends on one (a step across the very next kink looks like that, whatever its unit), is
   asked again, shorter; and once more, as long as is safe, when all units are known.
   One gradient follows from the others where the network has no affine part (:mod:`relumine.extraction.spare`).
3. Short pieces give few digits. The units found show where else their region is wide: there the gradient is measured
   again, with steps as long as that region allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from relumine.arrays import Array
from relumine.extraction.lines import Ask
from relumine.extraction.pieces import Crossings
from relumine.extraction.spare import Spare, spare_piece
from relumine.network import Network

_ROUNDS = 8  # of steps asked again; each leaves a few per cent of those before
_SHORTER = 1.0 / 16.0  # never the other way: two steps across one kink from both of its sides would hide each other
_TOUCH = 0.02  # a query whose |z| is below this share of the base's has crossed, or is too near to tell
_BLIND = 0.1  # error of a gradient, over the jump it is to show, beyond which it is not worth measuring
_NOISY = 0.3  # the same for a step made shorter
_PROBE = 100.0  # times the noise that a prediction by a gradient may be off: a wrong one was off by 10⁶ times and more
_OTHER = 30.0  # times its error that a gradient measured again may differ; the error is known to a factor of few
_LEAP = 0.5  # share of the way to the nearest kink that a step takes where all kinks are known


@dataclass(frozen=True)
class Precision:
    """How long steps are and how many pieces are measured again.

    ``step``: share of half a piece. ``target``: error of an entry of w_i (unit length) that needs no better
    measurement. ``again``: share of the pieces that may be measured again.
    """

    step: float = 0.12
    target: float = 2e-11  # the largest error of 784-128-1 is then 3e-11 … 8e-11; half of it takes 0.06 p more rows
    again: float = 0.16

    @classmethod
    def for_noise(cls, relative: float) -> Precision:
        """Double precision: most pieces are good enough. Single: longer steps, and all pieces twice."""
        if relative < 1e-11:
            return cls()
        return cls(step=0.12, target=0.0, again=1.0)


def units_of_line(
    ask: Ask, found: Crossings, precision: Precision, room: tuple[Array, Array] | None = None, known: bool = False
) -> Network:
    """The function as far as this line shows it: a network with as many units as the line has kinks.

    ``room``: lowest and highest values of the inputs, if they are limited. ``known``: the function vanishes around
    t = 0, so the gradient there need not be asked.
    """
    return _Measurement(ask, found, precision, room, known).network()


def roomiest(found: Crossings) -> float:
    """A place t in the piece with the most room around it, for its distance from the centre."""
    base, half = _bases(found)
    return float(base[np.argmax(half / (found.line.scale + np.abs(base)))])


class _Measurement:
    """Pieces r = 0 … k: bases, steps, gradients."""

    def __init__(
        self, ask: Ask, found: Crossings, precision: Precision, room: tuple[Array, Array] | None, known: bool
    ) -> None:
        found = _usable(found, precision)
        self.ask, self.found, self.line, self.precision, self.room = ask, found, found.line, precision, room
        self.base, self.half = _bases(found)
        d, k = len(self.line.direction), len(found.t)
        self.q = len(found.noise.level)
        self.basis = _complement(self.line.direction)  # (d, d−1)
        self.steps = np.repeat((precision.step * self.half)[:, None], d - 1, axis=1)
        self.values = np.array([piece.nearby(t) for piece, t in zip(found.pieces, self.base)]).reshape(k + 1, self.q)
        self.slope = np.array([piece.slope for piece in found.pieces]).reshape(k + 1, self.q)
        self.across = np.zeros((k + 1, self.q, d - 1))
        self.error = _errors(found, precision, self.base, self.half)
        weak = _weaker(found)
        # a shorter step than this shows noise, and what it seems to cross is noise as well
        self.shortest = precision.step * self.half * self.error / np.maximum(_NOISY * weak, np.finfo(float).tiny)
        self.better: dict[int, Array] = {}
        self.along, self.tilts = np.zeros(k), np.zeros((k, d - 1))
        self.known = known
        self.spare: Spare | None = spare_piece(found, self.error) if d > 2 and not known else None
        if known:
            self.spare = Spare(int(np.searchsorted(found.t, 0.0)), np.zeros(k + 1))
            self.values[self.spare.r] = 0.0
        if self.spare is not None:
            self.error[self.spare.r] = np.linalg.norm(self.spare.share * self.error)

    @property
    def asked(self) -> list[int]:
        """Pieces whose gradient is asked for."""
        return [r for r in range(len(self.base)) if self.spare is None or r != self.spare.r]

    def network(self) -> Network:
        """Steps 1 to 3 of the module's text."""
        self._inward()
        self._measure({r: np.arange(self.basis.shape[1]) for r in self.asked})
        self._settle()
        self._measure({r: self._lengthened(r) for r in self.asked})
        self._settle()  # a longer step may have crossed a kink that was not known well enough
        self._verify()
        for r in self.asked:  # a step made shorter shows less
            self.error[r] *= self.precision.step * self.half[r] / np.abs(self.steps[r]).min(initial=np.inf)
        self._again()
        return self._assembled()

    def _settle(self) -> None:
        """Ask again, shorter, the steps that crossed a kink, as the units found say, until none has."""
        for _ in range(_ROUNDS):
            W = self.units()[0]
            self.along, self.tilts = W @ self.line.direction, W @ self.basis
            crossed = {r: js for r in self.asked if len(js := self._crossed(r))}
            if not crossed:
                break
            for r, js in crossed.items():
                self.steps[r, js] *= _SHORTER
            self._measure(crossed)

    def _verify(self) -> None:
        """Ask pieces again, with shorter steps, whose gradient one more row contradicts.

        A step across both kinks of its piece at once is not seen by :meth:`_settle` where both units have one sign: the
        difference then belongs to two other units that it does not cross. One row per piece tells, half a weighted mean
        of all its steps: units of one sign make f convex there (or concave), and a convex function that is not affine
        lies below its chords. A gradient that was not asked for is held against a row like the others.
        """
        pieces = self.asked if self.known else [*range(len(self.base))]
        for _ in range(_ROUNDS):
            if self.spare is not None and self.spare.r in pieces:
                self._inferred(self.spare.r)
            pieces = [r for r in self._contradicted(pieces) if self._worth(r).any()]
            if not pieces:
                break
            if self.spare is not None and self.spare.r in pieces:
                self.spare, self.error = None, _errors(self.found, self.precision, self.base, self.half)
            self.values[pieces] = self.ask(self.line.at(self.base[pieces]))  # that may have been wrong, too
            for r in pieces:
                self.steps[r, self._worth(r)] *= _SHORTER
            self._measure({r: np.arange(self.basis.shape[1]) for r in pieces})
            self._settle()

    def _inferred(self, r: int) -> None:
        """The differences from a piece whose gradient was not asked for, and steps that cross no kink."""
        self.across[r] = self.gradient(r) @ self.basis
        for _ in range(_ROUNDS):
            self.steps[r, self._crossed(r)] *= _SHORTER

    def _contradicted(self, pieces: list[int]) -> list[int]:
        """Pieces where the gradient does not predict the answer at half a mean of its steps."""
        if not pieces or not self.basis.shape[1]:
            return []
        weight = np.random.default_rng(len(pieces)).dirichlet(np.ones(self.basis.shape[1]), size=len(pieces))
        moves = 0.5 * weight * self.steps[pieces]
        V = self.ask(self.line.at(self.base[pieces]) + moves @ self.basis.T)
        predicted = self.values[pieces] + np.einsum("rqj,rj->rq", self.across[pieces], moves)
        noise = np.linalg.norm(self.found.noise(self.base[pieces]).reshape(len(pieces), -1), axis=1)
        allowed = _PROBE * (noise + self.error[pieces] * np.linalg.norm(moves, axis=1))
        off = np.linalg.norm(V - predicted, axis=1) > allowed  # False for rows without digits
        return [r for r, wrong in zip(pieces, off) if wrong]

    def _worth(self, r: int) -> NDArray[np.bool_]:
        """Steps (d−1,) from piece r that can be made shorter and still show more than noise."""
        return np.asarray(np.abs(self.steps[r]) * _SHORTER > self.shortest[r])

    # -- gradients -------------------------------------------------------------------------------------------------

    def _inward(self) -> None:
        """Where inputs are limited, every step goes to the side with more room and no further than that."""
        if self.room is None:
            return
        low, high = self.room
        for r, t in enumerate(self.base):
            x = self.line.at(np.array(t))
            B = self.basis
            with np.errstate(divide="ignore"):
                up = np.where(B > 0.0, (high - x)[:, None] / B, np.where(B < 0.0, (low - x)[:, None] / B, np.inf)).min(
                    0
                )
                down = np.where(
                    B > 0.0, (x - low)[:, None] / B, np.where(B < 0.0, (x - high)[:, None] / B, np.inf)
                ).min(0)
            self.steps[r] = np.minimum(self.steps[r], np.maximum(up, down)) * np.where(up >= down, 1.0, -1.0)

    def _measure(self, wanted: dict[int, NDArray[np.intp]]) -> None:
        """Differences along the columns ``wanted[r]`` of the basis, in calls of a few thousand rows."""
        batch: list[tuple[int, NDArray[np.intp]]] = []
        for r, js in wanted.items():
            batch.append((r, js))
            if sum(len(js) for _, js in batch) >= 4096:
                self._ask(batch)
                batch = []
        self._ask(batch)

    def _ask(self, batch: list[tuple[int, NDArray[np.intp]]]) -> None:
        batch = [(r, js) for r, js in batch if len(js)]
        if not batch:
            return
        V = self._answers(batch)
        for _ in range(_ROUNDS):  # a row without digits (NaN): the step is asked again, shorter
            cut = np.isnan(V).any(axis=1)
            if not cut.any():
                break
            ends = np.cumsum([len(js) for _, js in batch])[:-1]
            for (r, js), bad in zip(batch, np.split(cut, ends)):
                self.steps[r, js[bad]] *= _SHORTER
            V = self._answers(batch)
        at = 0
        for r, js in batch:
            difference = V[at : at + len(js)] - self.values[r]
            self.across[r][:, js] = (difference / self.steps[r, js, None]).T
            at += len(js)

    def _answers(self, batch: list[tuple[int, NDArray[np.intp]]]) -> Array:
        """The values at the ends of the steps, (n, q)."""
        rows = [self.line.at(np.array(self.base[r])) + self.steps[r, js, None] * self.basis[:, js].T for r, js in batch]
        return self.ask(np.concatenate(rows))

    def gradient(self, r: int) -> Array:
        """g_r, (q, d)."""
        if r in self.better:
            return self.better[r]
        inferred = self.spare is not None and r == self.spare.r
        return np.asarray(self.gradients()[r] if inferred else self._measured(slice(r, r + 1))[0])

    def gradients(self) -> Array:
        """g of all pieces, (k + 1, q, d): measured, measured better, or a sum of others."""
        G = self._measured(slice(None))
        if self.better:
            G[[*self.better]] = [*self.better.values()]
        if self.spare is not None and self.spare.r not in self.better:
            G[self.spare.r] = np.tensordot(self.spare.share, G, 1)
        return np.asarray(G)

    def _measured(self, pieces: slice) -> Array:
        """g = B·(the differences across) + u·(the slope along the line), all pieces in one product."""
        across, (d, free) = self.across[pieces], self.basis.shape
        G = (across.reshape(len(across) * self.q, free) @ self.basis.T).reshape(-1, self.q, d)
        return np.asarray(G + self.slope[pieces, :, None] * self.line.direction)

    def units(self) -> tuple[Array, Array, Array]:
        """W (k, d) of unit length with W·u ≥ 0, b (k,), A (k, q)."""
        pairs = [_rank_one(J, self.line.direction) for J in np.diff(self.gradients(), axis=0)]
        W = np.array([w for w, _ in pairs]).reshape(-1, len(self.line.direction))
        A = np.array([a for _, a in pairs]).reshape(-1, self.q)
        b = -np.einsum("ij,ij->i", W, self.line.at(self.found.t))
        return W, b, A

    # -- steps that crossed a kink -----------------------------------------------------------------------------------

    def _sides(self, r: int, js: NDArray[np.intp]) -> tuple[Array, Array]:
        """The z of all units at the base of piece r, (k, 1), and their change along each step, (k, |js|)."""
        start = self.along * (self.base[r] - self.found.t)
        return start[:, None], self.tilts[:, js] * self.steps[r, js]

    def _crossed(self, r: int) -> NDArray[np.intp]:
        """Directions in which the step from piece r meets a kink."""
        start, change = self._sides(r, np.arange(self.basis.shape[1]))
        size = np.abs(start)
        inside = np.sign(start) * (start + change)
        return np.flatnonzero((inside < _TOUCH * size).any(axis=0) & self._worth(r))

    def _lengthened(self, r: int) -> NDArray[np.intp]:
        """Directions whose steps were made shorter, now that the kinks are known: either way, as long as is safe."""
        wanted = self.precision.step * self.half[r]
        js = np.flatnonzero(np.abs(self.steps[r]) < 0.5 * wanted)
        if self.room is not None:
            js = js[:0]
        start, change = self._sides(r, js)
        with np.errstate(divide="ignore"):
            reach = np.abs(start / np.where(change == 0.0, 1e-300, change))
        toward = start * change < 0.0
        ahead = np.where(toward, reach, np.inf).min(axis=0, initial=np.inf)
        behind = np.where(toward, np.inf, reach).min(axis=0, initial=np.inf)
        factor = np.where(ahead >= behind, _LEAP * ahead, -_LEAP * behind)
        longer = np.clip(factor * self.steps[r, js], -wanted, wanted)
        good = np.abs(longer) > 2.0 * np.abs(self.steps[r, js])
        self.steps[r, js[good]] = longer[good]
        return np.asarray(js[good])

    # -- short pieces ------------------------------------------------------------------------------------------------

    def _again(self) -> None:
        """Measure the gradients again that leave the units least certain, where their region is wide."""
        W, b, A = self.units()
        size = np.linalg.norm(A, axis=1)
        if not len(size):
            return
        weak = np.minimum(np.append(size, np.inf), np.insert(size, 0, np.inf))  # the weaker unit beside each piece
        doubt = self.error / np.maximum(weak, np.finfo(float).tiny)
        order = np.argsort(-doubt)[: int(np.ceil(self.precision.again * len(doubt)))]
        known = np.isfinite(W).all(axis=1) & np.isfinite(b)  # a link may have no digits beside some
        for r in order[doubt[order] > self.precision.target]:
            self._remeasure(int(r), W[known], b[known])

    def _remeasure(self, r: int, W: Array, b: Array) -> None:
        """The gradient of piece r from the widest place of its region that is easily found."""
        x = _widest(self.line.at(np.array(self.base[r])), W, b, self.room)
        z = np.abs(W @ x + b)
        steps = _LEAP * (z[:, None] / np.maximum(np.abs(W), 1e-300)).min(axis=0)
        steps = np.minimum(steps, 1.0 + np.abs(x).max())
        if self.room is not None:
            up, down = self.room[1] - x, x - self.room[0]
            steps = np.minimum(steps, np.maximum(up, down)) * np.where(up >= down, 1.0, -1.0)
        error = float(np.linalg.norm(self.found.noise(float(np.linalg.norm(x))))) / max(
            np.median(np.abs(steps)), 1e-300
        )
        if error > 0.5 * self.error[r] or not steps.all():
            return
        V = self.ask(np.vstack([x, x + np.diag(steps)]))
        if np.isnan(V).any():  # no digits there
            return
        gradient = np.asarray((V[1:] - V[0]).T / steps)
        # a unit that is not known yet may lie between here and the line: then it is another gradient
        doubt = self.error[r] * float(np.linalg.norm(np.abs(self.steps[r]).min() / self.steps[r]))
        if np.linalg.norm(gradient - self.gradient(r)) > _OTHER * doubt:
            return
        self.better[r], self.error[r] = gradient, error

    def _assembled(self) -> Network:
        """The sum of the module's text, from the piece known best."""
        W, b, A = self.units()
        best = int(np.argmin(self.error))
        g = self.gradient(best)
        c = self.values[best] - g @ self.line.at(np.array(self.base[best]))
        sign = np.where(np.arange(len(b)) >= best, 1.0, -1.0)
        return Network(sign[:, None] * W, sign * b, A.T, "relu", g, c)


def _bases(found: Crossings) -> tuple[Array, Array]:
    """The middle of every piece, (k+1,), and how far one may go from there in other directions.

    Outer pieces count as long as τ + |t|. A kink at |t| far beyond the median τ of all is that of a unit nearly
    parallel to the line, w·u ≈ τ/(|t|√d): in other directions it is nearer, by that factor, than along the line.
    """
    line, t = found.line, found.t
    if not len(t):
        middle = 0.5 * (max(line.reach[0], -line.scale) + min(line.reach[1], line.scale))
        return np.array([middle]), np.array([0.5 * min(line.scale, line.reach[1] - line.reach[0])])
    first = max(line.reach[0], t[0] - 2.0 * (line.scale + abs(t[0])))
    last = min(line.reach[1], t[-1] + 2.0 * (line.scale + abs(t[-1])))
    ends = np.concatenate([[first], t, [last]])
    base = 0.5 * (ends[1:] + ends[:-1])
    tilt = np.minimum(1.0, np.median(np.abs(t)) / np.maximum(np.abs(t), np.finfo(float).tiny))
    return base, np.asarray((np.abs(base[:, None] - t) * tilt).min(axis=1))


def _errors(found: Crossings, precision: Precision, base: Array, half: Array) -> Array:
    """Standard deviation of a difference over a step from each piece, (k+1,)."""
    sigma = np.linalg.norm(found.noise(base).reshape(len(base), -1), axis=1)
    return np.asarray(np.sqrt(2.0) * sigma / np.maximum(precision.step * half, np.finfo(float).tiny))


def _weaker(found: Crossings) -> Array:
    """The smaller jump of the two kinks of each piece, (k+1,), as an entry of a_i w_i in other directions than u."""
    if not len(found.t):
        return np.full(1, np.inf)
    tilt = np.minimum(1.0, np.median(np.abs(found.t)) / np.maximum(np.abs(found.t), np.finfo(float).tiny))
    jump = np.linalg.norm(found.jump, axis=1) / np.maximum(tilt, np.finfo(float).tiny)
    return np.asarray(np.minimum(np.append(jump, np.inf), np.insert(jump, 0, np.inf)))


def bluntness(found: Crossings) -> tuple[int, float]:
    """What a line does not show: how many kinks are too close to others, and how near the rest comes to that."""
    precision = Precision.for_noise(1.0)
    usable = _usable(found, precision)
    ratio = _errors(usable, precision, *_bases(usable)) / np.maximum(_weaker(usable), np.finfo(float).tiny)
    return len(found.t) - len(usable.t), float(ratio.max())


def effort(found: Crossings) -> float:
    """About how many rows beyond one gradient a piece this line takes, over those: for steps that cross, short pieces.

    A unit nearly parallel to the line has a small jump |a w·u| on it, but is as steep as others in other directions: a
    step s, along which z changes by some s/√d, crosses its kink at a distance |t − t_i| along the line if
    |w·u| |t − t_i| is less than that. Of small jumps most are small for that reason, not for |a|.
    """
    precision, (base, half) = Precision(), _bases(found)
    jump = np.linalg.norm(found.jump, axis=1)
    if not len(jump):
        return 0.0
    away = np.abs(base[:, None] - found.t) / (precision.step * half[:, None])
    crossed = np.minimum(erfc(np.sqrt(0.5) * away * jump / np.median(jump)).sum(axis=1), 1.0)
    short = _errors(found, precision, base, half) / np.maximum(_weaker(found), np.finfo(float).tiny)
    return float(2.0 * crossed.mean() + (short > precision.target).mean())


def _usable(found: Crossings, precision: Precision) -> Crossings:
    """Without pieces so short that their gradient would be noise: their two kinks count as one.

    If they are two, what is left shows it: other lines meet them further apart.
    """
    while len(found.t) > 1:
        base, half = _bases(found)
        ratio = (_errors(found, precision, base, half) / np.maximum(_weaker(found), np.finfo(float).tiny))[1:-1]
        worst = int(np.argmax(ratio))
        if ratio[worst] <= _BLIND:
            break
        found = found.without(worst + 1)
    return found


def _complement(u: Array) -> Array:
    """An orthonormal basis (d, d−1) of the complement of a unit vector u: columns of a reflection."""
    first = int(np.argmax(np.abs(u)))
    v = u.copy()
    v[first] += np.copysign(1.0, u[first])
    H = np.eye(len(u)) - np.outer(v, v) * (2.0 / (v @ v))
    return np.delete(H, first, axis=1)


def _rank_one(J: Array, u: Array) -> tuple[Array, Array]:
    """J (q, d) ≈ a wᵀ with |w| = 1 and w·u ≥ 0: w (d,), a (q,)."""
    if len(J) == 1:
        w, a = J[0], np.ones(1)
    else:
        left, s, right = np.linalg.svd(J, full_matrices=False)
        w, a = s[0] * right[0], left[:, 0]
    size = float(np.linalg.norm(w))
    sign = 1.0 if w @ u >= 0.0 else -1.0
    return np.asarray(sign * w / max(size, np.finfo(float).tiny)), np.asarray(sign * size * a)


def _widest(x: Array, W: Array, b: Array, room: tuple[Array, Array] | None) -> Array:
    """A point of x's region with |z_i| ≥ μ for all units, μ as large as the first of a few guesses that works.

    The shortest move that takes every unit closer than μ to μ; it must not take another across.
    """
    z, gram = W @ x + b, W @ W.T
    side, mu = np.where(z >= 0.0, 1.0, -1.0), max(1.0, float(np.median(np.abs(z))))
    for _ in range(20):
        close = np.abs(z) < mu
        if close.sum() < len(x):
            # W_cᵀ(W_c W_cᵀ)⁺: any place will do, so the square of the condition costs nothing
            pull = np.linalg.lstsq(gram[np.ix_(close, close)], (side * mu - z)[close], rcond=None)[0]
            moved = x + pull @ W[close]
            inside = room is None or bool((moved > room[0]).all() and (moved < room[1]).all())
            if inside and (side * (W @ moved + b) >= 0.5 * mu).all():
                return np.asarray(moved)
        mu *= 0.5
    return x
