"""What a network that is right at most inputs leaves of the answers, and the units by which that is explained so far.

    r(x) = f(x) − f̂(x),    φ = (h, 1): the activations in front of the last layer

Rows are asked here, and kept until it is clear that they are of use.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.ending.equations import POOL, Equations
from relumine.extraction.deep.ending.linear import error, oriented, sized, tied
from relumine.extraction.deep.known.charts import Known

Mask = NDArray[np.bool_]
Some = tuple[Array, Array, Array]  # inputs X (n, d), φ (n, m + 1) and r (n, q)

_ROWS = 20_000  # of the rows that fit against which units are held
_SELDOM = 0.05  # share of the rows: a unit in front that is on at fewer may have wrong weights into all units behind


class Residue:
    """``units``: those found so far, and those of the network with open weights, besides ``net``.

    ``loose``: units in front whose weight in the linear part v of the head is open, too.
    """

    def __init__(self, at: Inquiry, net: DeepNetwork, slack: float) -> None:
        self.at, self.net, self.front = at, net, Known(at.dim, net.layers)
        self.units: list[Equations] = []
        self.tried: list[int] = []  # units in front whose weights were looked for
        self.loose: list[int] = []  # those of which the weight in v is open
        W = net.layers[0][0]
        self.basis = np.linalg.qr(W.T)[0] if len(W) < at.dim else np.eye(at.dim)
        X, Y = at.ask.data()
        scale = float((np.abs(Y).max(axis=1) / sized(X)).max())
        off = error(net, X, Y)
        self.level = slack * scale
        self.noise = scale * max(10.0 * float(np.median(off)), 1e-15)  # of most rows: others may show a faint unit
        use = (off > slack) | (at.rng.random(len(X)) < _ROWS / len(X))
        self.X, self.Y = X[use], Y[use]  # and all that is asked here, at the end
        self.first = len(self.X)
        if at.open is not None:
            H = self.front(self.X)
            # a polish shares what shows of a unit in front that is seldom on among all its weights
            seldom = at.open.any(axis=0) & ((H > 0.0).mean(axis=0) < _SELDOM)
            open_ = at.open | seldom
            self.net = DeepNetwork(net.layers, tied(oriented(net.head, open_), open_, H))
            if self.net.head.v.any():
                self.loose = np.flatnonzero(seldom).tolist()
            self.reopen(self.X, self.Y, open_)

    def reopen(self, X: Array, Y: Array, open_: Mask) -> None:
        """Units of the network with open weights are missing ones, of which rows that fit say a part."""
        F, R = self.left([], X, Y)
        fits, keep, head = np.abs(R).max(axis=1) <= self.level, [], self.net.head
        for i in range(head.m):
            z = F @ np.append(head.W[i], head.b[i])
            on = fits & (z > 0.0) & ~(F[:, :-1][:, open_[i]] > 0.0).any(axis=1)
            rows = self.at.rng.permutation(np.flatnonzero(on))[:POOL]
            if open_[i].any() and len(rows) > head.d:
                r = np.outer(z[rows], np.atleast_2d(head.a)[:, i])
                unit = Equations(X[rows], F[rows], r, 0.1 * self.noise)
                size = float(np.linalg.norm(np.append(head.W[i] * ~open_[i], head.b[i])))
                unit.guess = head.W[i] * open_[i] / size
                self.units.append(unit)
            else:
                keep.append(i)
        self.net = DeepNetwork(self.net.layers, head.permuted(keep))

    def ask(self, P: Array) -> tuple[Array, Array]:
        """Those of the rows of P that have digits, and the answers; the log gets them if all goes well."""
        P = P[self.at.ask.digits(P)]
        Y = self.at.ask.values(P, remember=False).reshape(len(P), self.Y.shape[1])
        self.X, self.Y = np.concatenate([self.X, P]), np.concatenate([self.Y, Y])
        return P, Y

    def remember(self) -> None:
        """The rows asked, in the log."""
        self.at.ask.remember(self.X[self.first :], self.Y[self.first :])

    # -- what is left --------------------------------------------------------------------------------------------

    def network(self, units: list[Equations]) -> DeepNetwork:
        """With these units, as far as they are known."""
        head = self.net.head
        parts = [unit.unit() for unit in units]
        W = np.vstack([head.W, *[w[None] for w, _, _ in parts]])
        b = np.concatenate([head.b, [b for _, b, _ in parts]])
        a = np.column_stack([np.atleast_2d(head.a), *[a for _, _, a in parts]])
        return DeepNetwork(self.net.layers, head.replace(W=W, b=b, a=a.reshape((*np.shape(head.a)[:-1], -1))))

    def left(self, units: list[Equations], X: Array, Y: Array) -> tuple[Array, Array]:
        """φ (n, m + 1) and what these units leave of the answers (n, q), both over the size of the input."""
        size = sized(X)[:, None]
        F = np.column_stack([self.front(X), np.ones(len(X))])
        return F / size, (Y - self.network(units)(X).reshape(Y.shape)) / size

    def wrong(self, R: Array) -> Mask:
        """What is left is more than rounding."""
        return np.asarray(np.abs(R).max(axis=1, initial=0.0) > self.level)

    def differing(self) -> int:
        """How many of all rows are not explained."""
        return int(self.wrong(self.left(self.units, self.X, self.Y)[1]).sum())

    def open(self, units: list[Equations], F: Array) -> Mask:
        """Rows φ at which an open weight of these units counts, or one of the linear part."""
        return np.asarray((F[:, self.loose] > 0.0).any(axis=1) | _open(units, F))

    def contradicting(self, units: list[Equations], X: Array, Y: Array) -> Some:
        """Those of the rows that these units do not explain.

        But for rows at which an open weight of these counts: they tell of no other unit.
        """
        F, R = self.left(units, X, Y)
        tell = self.wrong(R) & ~self.open(units, F)
        return X[tell], F[tell], R[tell]

    def asked(self, units: list[Equations], P: Array) -> Some:
        """The same of the box at the rows of P."""
        return self.contradicting(units, *self.ask(P))

    def kept(self, step: Callable[[], bool], fewer: int = 0) -> bool:
        """Whether a step has found something; it is taken back unless so many rows fewer differ then, or no more."""
        before = self.net, [unit.copy() for unit in self.units], self.loose
        if not step():
            return False
        after, now = (self.net, self.units, self.loose), self.differing()
        self.net, self.units, self.loose = before
        if now > self.differing() - fewer:
            return False
        self.net, self.units, self.loose = after
        return True


def _open(units: list[Equations], F: Array) -> Mask:
    """Rows at which one of these units is on, and a weight of it that is open counts."""
    found = np.zeros(len(F), dtype=bool)
    for unit in units:
        found |= unit.open(F)
    return found
