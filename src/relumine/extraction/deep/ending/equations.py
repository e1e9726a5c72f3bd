"""What rows say of one unit of the last layer that is missing: r = φθ at all inputs where it is on and no other is.

φ = (h, 1) are the activations in front, r is what is left of the answers, and θ = (w, b)a. Rows of one linear region of
the layers in front tell θ along the directions that φ has there. Rows elsewhere are the unit's, too, if they are as θ
predicts, or if they agree on θ along directions that were not met before.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

POOL = 500  # rows kept of a unit that are as predicted, and rows among which those that agree are looked for
_OFF, _DIGITS = 30.0, 1e4  # errors a row may be off by, and those over which a direction is known
# The size of rows over their error, and how many must agree on a direction. With three of size 3e5, some hundred rows
# agreed by chance now and then.
_TIERS = ((1e7, 3), (1e6, 4), (1e5, 6))
_WITHIN, _BEYOND = 1e-9, 1e-6  # length of a row's part outside the span that is none, and that is one
_PARALLEL = 1e-10  # 1 − |cos| of directions that are one
_APART, _NEARER = 1e-5, 0.9  # the same of rows that are two; or the part of one that is new is so much smaller
_PATTERNS = 4  # sets of units in front that come on together, the most frequent, of which rows that agree are sought
_SAME = 1e-5  # error of θ up to which two units are one
_NONE: Rows = np.zeros(0, dtype=np.intp)


class Equations:
    """Inputs X (n, d) at which the unit is on alone, with φ in F (n, m + 1) and r in R (n, q), and θ (m + 1, q).

    θ is right in the ``span`` of F. ``sought`` counts how often inputs were looked for that show each weight; ``guess``
    (m,) stands in place of open weights of which little shows: that they turn the unit off, or a sum of several.
    """

    def __init__(self, X: Array, F: Array, R: Array, noise: float) -> None:
        self.X, self.F, self.R, self.noise = X, F, R, noise
        self.sought, self.guess = np.zeros(F.shape[1] - 1, dtype=int), np.zeros(F.shape[1] - 1)
        self._solve()

    def copy(self) -> Equations:
        """As it is now: rows and θ are replaced, never changed."""
        other = copy(self)
        other.sought, other.guess = self.sought.copy(), self.guess.copy()
        return other

    def _solve(self) -> None:
        """θ by least squares, along directions that are known well enough."""
        U, s, Vt = np.linalg.svd(self.F, full_matrices=False)
        use = s * np.abs(self.R).max() > _DIGITS * self.noise
        self.span, self._s = Vt[use], s[use]
        self.theta = self.span.T @ ((U[:, use].T @ self.R) / self._s[:, None])

    @property
    def known(self) -> Mask:
        """The weights that are known (m,): their directions are in the span."""
        return np.asarray(np.sum(self.span**2, axis=0)[:-1] > 1.0 - 1e-6)

    @property
    def confirmed(self) -> bool:
        """Whether there are more rows than unknowns."""
        return len(self.F) >= len(self.span) + 3

    def unit(self) -> tuple[Array, float, Array]:
        """w (m,), b and a (q,) with a relu(w·h + b) = r, (w, b) of length one but for open weights."""
        U, s, Vt = np.linalg.svd(self.theta, full_matrices=False)
        sign = 1.0 if np.median(self.F @ U[:, 0]) > 0.0 else -1.0
        w = np.where(self.known, sign * U[:-1, 0], self.guess)
        return w, sign * float(U[-1, 0]), sign * s[0] * Vt[0]

    def strength(self, F: Array) -> Array:
        """w·h + b at rows φ (n, m + 1), without the open weights: negative where the unit is off."""
        w, b, _ = self.unit()
        return np.asarray(F @ np.append(w * self.known, b))

    def open(self, F: Array) -> Mask:
        """Rows φ at which the unit is on by what is known, and an open weight counts."""
        return np.asarray((self.strength(F) > 0.0) & (F[:, :-1][:, ~self.known] > 0.0).any(axis=1))

    def joins(self, other: Equations) -> bool:
        """Whether the other is this one, by the weights that both know; its rows are then taken."""
        both = np.append(self.known & other.known, True)
        apart = float(np.abs(self.theta - other.theta)[both].max())
        if both.sum() < 3 or apart > _SAME * float(np.abs(self.theta[both]).max()):
            return False
        self._add(other.X, other.F, other.R)
        return True

    def take(self, X: Array, F: Array, R: Array) -> None:
        """Those of further rows that are this unit's, as many as can be told."""
        while len(F):
            right = self._predicted(F, R)
            room = max(POOL - len(self.F), 0)
            more = np.flatnonzero(right)[:room]
            self._add(X[more], F[more], R[more])
            X, F, R = X[~right], F[~right], R[~right]
            if len(more):
                continue
            found = (self._agreeing(F, R, *tier) for tier in _TIERS)
            more = next((rows for rows in found if len(rows)), _NONE)
            more = more if len(more) else self._several(F, R)
            if not len(more):
                return
            self._add(X[more], F[more], R[more])
            X, F, R = (np.delete(part, more, axis=0) for part in (X, F, R))

    def tell(self, x: Array, j: int, weight: Array, error: Array) -> None:
        """Weight j times a (q,), with such an error, from elsewhere; x is an input at which the unit is on."""
        share = min(self.noise / max(float(np.abs(error).max()), 1e-300), 1.0)
        f = np.zeros((1, self.F.shape[1]))
        f[0, j] = share
        self._add(x[None], f, share * weight[None])

    def silence(self, F: Array) -> bool:
        """Numbers in place of open weights, so that the unit is off at rows φ where it is; whether there are new."""
        new, (w, b, _) = False, self.unit()
        for f in F:
            z = float(f @ np.append(w, b))
            j = int((f[:-1] * ~self.known).argmax())
            if z > 0.0 and f[j] > 0.0 and not self.known[j]:
                w[j] -= 2.0 * z / f[j]
                self.guess[j], new = w[j], True
        return new

    def _add(self, X: Array, F: Array, R: Array) -> None:
        if len(X):
            self.X, self.F = np.concatenate([self.X, X]), np.concatenate([self.F, F])
            self.R = np.concatenate([self.R, R])
            self._solve()

    def _off(self, F: Array, R: Array) -> tuple[Array, Array, Array]:
        """Of further rows: the part of F outside the span, what θ leaves of R, and the error of that."""
        inside = F @ self.span.T
        error = self.noise * np.sqrt(1.0 + np.sum((inside / self._s) ** 2, axis=1))
        return F - inside @ self.span, R - F @ self.theta, error

    def _predicted(self, F: Array, R: Array) -> Mask:
        """Rows in the span at which r is as it should be."""
        out, left, error = self._off(F, R)
        right = np.abs(left).max(axis=1) <= _OFF * error
        tells = np.abs(R).max(axis=1) > _OFF * error
        return np.asarray((np.linalg.norm(out, axis=1) <= _WITHIN) & right & tells)

    def _telling(self, out: Array, R: Array, error: Array, least: float) -> Mask:
        """Rows that can tell a new direction."""
        return np.asarray((np.linalg.norm(out, axis=1) > _BEYOND) & (least * error <= np.abs(R).max(axis=1)))

    def _agreeing(self, F: Array, R: Array, tells: float, least: int) -> Rows:
        """Rows that agree on θ along one direction outside the span: the most of them, so many at the ``least``.

        Rows that are multiples of each other are one: such are all those at which every unit in front is off.
        """
        out, left, error = self._off(F, R)
        rows = np.flatnonzero(self._telling(out, R, error, tells))[-POOL:]
        size, length = (np.linalg.norm(A[rows], axis=1, keepdims=True) for A in (out, F))
        way, slope, error = out[rows] / size, left[rows] / size, _OFF * error[rows] / size[:, 0]
        cosine, part = way @ way.T, size / length
        apart = (np.abs(F[rows] @ F[rows].T) < (1.0 - _APART) * length * length.T) | (part < _NEARER * part.T)
        best = _NONE
        for i in range(len(rows)):
            same = np.abs(cosine[i]) > 1.0 - _PARALLEL
            same &= np.abs(slope - np.sign(cosine[i])[:, None] * slope[i]).max(axis=1) <= error + error[i]
            if same.sum() > len(best) and (same & apart[i]).sum() >= least - 1:
                best = rows[same]
        return best

    def _several(self, F: Array, R: Array) -> Rows:
        """The same along several directions, those of units in front that come on together.

        With another unit on at all of these rows, r would be linear in φ as well. That shows only if they span two
        directions more than are new.
        """
        out, left, error = self._off(F, R)
        tells = self._telling(out, R, error, _TIERS[0][0])
        on = (F[:, :-1] > 0.0) & ~self.known
        _, group, count = np.unique(on, axis=0, return_inverse=True, return_counts=True)
        for g in np.argsort(-count)[:_PATTERNS]:
            rows = np.flatnonzero(tells & (group.ravel() == g))[-POOL:]
            while len(rows) > 4:
                U, s, _ = np.linalg.svd(out[rows], full_matrices=False)
                U = U[:, s > _BEYOND * s[0]]
                if len(rows) < U.shape[1] + 4 or np.linalg.matrix_rank(F[rows], tol=_BEYOND) < U.shape[1] + 2:
                    break
                worst = np.abs(left[rows] - U @ (U.T @ left[rows])).max(axis=1) / (_OFF * error[rows])
                if worst.max() <= 1.0:
                    return np.asarray(rows)
                rows = np.delete(rows, int(worst.argmax()))
        return _NONE
