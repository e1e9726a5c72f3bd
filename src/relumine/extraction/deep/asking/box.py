"""The box as the search sees it: a plain number per row, counted, remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.extraction.log import Log
from relumine.extraction.queries import Unanswered

ROUNDING = 16.0 * float(np.finfo(float).eps)  # relative error of an answer: measured 1e-15 … 2e-15 for 784-128-128-1
# Numbers of the rows remembered (64 MB) up to which those beside others are, too: the normals of 784-128-1 take 200 000
# rows, 1.2 GB, in 256 places.
_FEW = 1 << 23
_ALONG, _CLOSER = 33, 4  # places of a chord asked for digits, and bisections of where they end
_INSIDE = 0.9  # of the stretch with digits: steps aside have room

Mask = NDArray[np.bool_]


class OutOfBudget(Exception):
    """The next call would ask more rows than allowed, or the time is up."""


class Asked:
    """ρ·f(x): several outputs as one by fixed random weights, so that what bends in any of them bends in this one.

    ``over`` says why no more may be asked; nothing while it may.
    ``log`` holds the rows asked and their answers (n, q); of those `beside` others only the first. ``digits``: which
    rows have answers with digits, all if None: behind a link others are an error; ``grid``: to which those are rounded.
    ``basis`` Q (d, r): while it is set, rows are coordinates u of inputs x = Qu. The log holds x, ``inside`` holds u of
    those asked in the first basis: with 784 inputs a hundredth of the memory.
    """

    def __init__(
        self,
        ask: Callable[[Array], Array],
        rng: np.random.Generator,
        budget: float,
        over: Callable[[], str],
        plain: bool | None = None,
        digits: Callable[[Array], Mask] | None = None,
        grid: float = 0.0,
    ) -> None:
        self._digits, self.grid = digits, grid
        self._ask, self._rng, self.budget, self._over = ask, rng, budget, over
        self._mix: Array | None = None
        self.basis: Array | None = None
        self.log, self.inside = Log(), Log()
        self._first: Array | None = None
        self.count, self._q = 0, 1
        self._asked_for, self.plain = plain, True

    def values(self, X: Array, remember: bool = True) -> Array:
        """All outputs, (n, q)."""
        if not len(X):
            return np.zeros((0, self._q))
        if self.count + len(X) > self.budget:
            raise OutOfBudget(f"{self.budget:.0f} queries were allowed")
        if why := self._over():
            raise OutOfBudget(why)
        answer = np.asarray(self._ask(self._inputs(X)), dtype=np.float64)
        self.plain = answer.ndim == 1 if self._asked_for is None else self._asked_for
        Y = answer[:, None] if answer.ndim == 1 else answer
        self._q = Y.shape[1]
        self.count += len(X)
        if remember:
            self.remember(X, Y)
        return Y

    def remember(self, X: Array, Y: Array) -> None:
        """Rows and all their outputs."""
        self._first = self.basis if self._first is None else self._first
        if self.basis is None or self.basis is not self._first:
            self.log.append(self._inputs(X), Y)
        else:
            self.inside.append(X, Y)

    @property
    def mark(self) -> tuple[int, int]:
        """How many rows are remembered, of both kinds."""
        return len(self.log), len(self.inside)

    def __call__(self, X: Array) -> Array:
        """One number per row."""
        Y = self.values(X)
        return np.asarray(Y @ self.mix(Y))

    def beside(self, X: Array) -> Array:
        """The same at rows so near to others that they show nothing else: remembered only while there are few."""
        inputs = X.shape[1] if self.basis is None else len(self.basis)
        Y = self.values(X, len(self.log) * inputs < _FEW)
        return np.asarray(Y @ self.mix(Y))

    @property
    def partial(self) -> bool:
        """Whether some rows may have answers without digits."""
        return self._digits is not None

    def digits(self, X: Array) -> Mask:
        """Which rows have answers with digits."""
        if self._digits is None or not len(X):
            return np.ones(len(X), dtype=bool)
        return self._digits(self._inputs(X))

    def _inputs(self, U: Array) -> Array:
        """x of the rows."""
        return U if self.basis is None else np.asarray(U @ self.basis.T)

    def coordinates(self, X: Array) -> Array:
        """The rows of inputs x: what a basis does not hold of them is left out."""
        return X if self.basis is None else np.asarray(X @ self.basis)

    def answered(self, X: Array) -> tuple[Array, Array]:
        """Those of the inputs x, whatever the basis, that have digits, and all outputs there."""
        basis, self.basis = self.basis, None
        try:
            X = X[self.digits(X)]
            return X, self.values(X)
        finally:
            self.basis = basis

    def within(self, starts: Array, ends: Array, scale: float) -> tuple[Mask, Array, Array]:
        """The longest stretch of each chord on which answers have digits; first of all which chords have one.

        ``scale``: distance from the middle within which most kinks are.
        """
        if self._digits is None or not len(starts):
            return np.ones(len(starts), dtype=bool), starts, ends
        middle, way = 0.5 * (starts + ends), 0.5 * (ends - starts)
        half = np.maximum(np.linalg.norm(way, axis=1), 1e-300)[:, None]
        tau = np.minimum(scale, half) / half
        t = tau * np.tan(np.linspace(-1.0, 1.0, _ALONG) * np.arctan(1.0 / tau))  # (n, _ALONG)
        t[:, 0], t[:, -1] = -1.0, 1.0
        good = self._along(middle, way, t)
        runs = [_longest(row) for row in good]
        some = np.array([b > a for a, b in runs])
        if not some.any():
            raise Unanswered("the rows it needs have probabilities of 0 or 1 to rounding, which say nothing")
        t, middle, way, runs = t[some], middle[some], way[some], [run for run in runs if run[1] > run[0]]
        n, (first, last) = np.arange(len(t)), np.array(runs).T
        out = np.stack([t[n, np.maximum(first - 1, 0)], t[n, np.minimum(last + 1, _ALONG - 1)]], axis=1)
        inside = np.stack([t[n, first], t[n, last]], axis=1)
        for _ in range(_CLOSER):
            between = 0.5 * (inside + out)
            good = self._along(middle, way, between)
            inside, out = np.where(good, between, inside), np.where(good, out, between)
        core, whole = inside.mean(axis=1, keepdims=True), np.abs(out) == 1.0
        inside = np.where(whole & self._along(middle, way, out), out, core + _INSIDE * (inside - core))
        return some, middle + inside[:, :1] * way, middle + inside[:, 1:] * way

    def _along(self, middle: Array, way: Array, t: Array) -> Mask:
        """Which of the places middle + t·way, t (n, k), have digits."""
        X = middle[:, None, :] + t[:, :, None] * way[:, None, :]
        return self.digits(X.reshape(-1, way.shape[1])).reshape(t.shape)

    def mix(self, Y: Array) -> Array:
        """ρ (q,): from the first answers (n, q), every output about as loud as the others."""
        if self._mix is None:
            loud = np.maximum(np.abs(Y).max(axis=0), 1e-300)
            self._mix = self._rng.choice([-1.0, 1.0], size=Y.shape[1]) * self._rng.uniform(0.5, 1.0, Y.shape[1]) / loud
            self._mix *= float(loud.max())
            if len(loud) == 1:
                self._mix = np.ones(1)
        return self._mix

    def data(self) -> tuple[Array, Array]:
        """Every row remembered, and its answers."""
        return self._joined(self.log.whole(), self.inside.whole())

    def since(self, mark: tuple[int, int], until: tuple[int, int] | None = None) -> tuple[Array, Array]:
        """The rows remembered after a ``mark``, up to another one unless that is now."""
        logs, parts = (self.log, self.inside), []
        for log, start, end in zip(logs, mark, self.mark if until is None else until):
            at = np.arange(start, end)
            parts.append((log.rows(at), log.answers(at)))
        return self._joined(*parts)

    def _joined(self, near: tuple[Array, Array], turned: tuple[Array, Array]) -> tuple[Array, Array]:
        """Rows x and rows u of the first basis in the coordinates of now."""
        (X, Y), (U, Z) = near, turned
        if not len(U):
            return self.coordinates(X), Y
        if self._first is not self.basis:
            U = self.coordinates(U @ cast("Array", self._first).T)
        return np.concatenate([self.coordinates(X).reshape(-1, U.shape[1]), U]), np.concatenate([Y, Z])


def _longest(good: Mask) -> tuple[int, int]:
    """First and last of the longest run of True; (0, -1): there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], good.astype(np.int8), [0]])))
    if not len(edges):
        return 0, -1
    longest = int((edges[1::2] - edges[::2]).argmax())
    return int(edges[2 * longest]), int(edges[2 * longest + 1]) - 1
