"""All layers, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from relumine.deep import DeepNetwork
from relumine.extraction.deep.box import Asked, OutOfBudget
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.places import chords
from relumine.extraction.deep.signs import signs
from relumine.extraction.deep.units import Layer, Unit
from relumine.fit.layers import minimise
from relumine.network import Network
from relumine.recovery.orient import orient
from relumine.run import Run

Array = NDArray[np.float64]

__all__ = ["Found", "extract_deep"]

_ROUNDS = 14
_CONFIRM = 300
_DEPTH = 12


@dataclass
class Found:
    """What was found.

    ``network``: all of it, or None; ``known``: the layers that are certain (W, b), unit rows; ``reason``: how it ended;
    ``residual``: root mean square error over that of the spread, on ``confirmed`` fresh rows.
    """

    network: DeepNetwork | None
    known: tuple[tuple[Array, Array], ...]
    reason: str
    queries: int
    residual: float = np.inf
    confirmed: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether fresh rows confirm the network to rounding error."""
        return self.network is not None and self.confirmed > 0


class _Stop(Exception):
    """Why the search ends here."""


def extract_deep(
    ask: Callable[[Array], Array], dim: int, run: Run, *, budget: float = np.inf, verbose: bool = False
) -> Found:
    """Every layer of a ReLU network behind ``ask``, (n, d) to (n,) or (n, q)."""
    began = time.perf_counter()
    asked = Asked(ask, run.rng, budget, lambda: run.over)
    search = _Search(asked, dim, run, verbose)
    try:
        network = search.layers()
        result = search.judge(network)
    except (_Stop, OutOfBudget) as reason:
        result = Found(None, search.known.layers, str(reason), 0, notes=search.notes)
    result.queries, result.seconds = asked.count, time.perf_counter() - began
    return result


class _Search:
    def __init__(self, asked: Asked, dim: int, run: Run, verbose: bool) -> None:
        self.ask, self.dim, self.run, self.rng = asked, dim, run, run.rng
        self.known = Known(dim)
        self.pool: tuple[Array, Array] = (np.zeros((0, dim)), np.zeros((0, 1)))
        self.lines = 4
        self.notes: list[str] = []
        self.verbose = verbose

    def tell(self, text: str) -> None:
        if self.verbose:
            print(text, self.ask.count)  # noqa: T201

    def say(self, text: str) -> None:
        self.notes.append(text)
        if self.verbose:
            print(text, self.ask.count)  # noqa: T201

    def layers(self) -> DeepNetwork:
        for k in range(_DEPTH):
            layer = Layer(self.ask, self.known, self.rng)
            head = self.units(layer, k)
            if head is not None:
                return DeepNetwork(self.known.layers, head)
            self.say(f"layer {k + 1}: {self.known.width} units")
        raise _Stop(f"more than {_DEPTH} layers")

    def units(self, layer: Layer, k: int) -> Network | None:
        """Look until no new units come. The head, if this layer is the last; else the layer joins those known."""
        quiet, before, pairs, why = 0, -1, None, "no unit was seen on three chords"
        for turn in range(_ROUNDS):
            count = (8 if turn == 0 else 4) if k else (self.lines if turn == 0 else 2)
            charts, starts, ends = chords(self.known, count, self.rng, pairs)
            if not charts:
                why = f"no chart in which the active units of layer {k} move freely"
                continue
            layer.look(charts, starts, ends)
            self.check(layer, k)
            units = layer.accepted
            seen = [u for u in layer.units if u.hits >= 2 and u.score > 0.5]
            owned = sum(w.owner >= 0 for w in layer.witnesses)
            self.run.report(f"layer {k + 1}", turn, float("nan"), len(units))
            self.tell(f"  layer {k + 1} turn {turn}: {len(units)} of {len(layer.units)}, {owned}/{len(layer.witnesses)} kinks")
            pairs = None
            if owned > 0.9 * len(layer.witnesses) and len(seen):
                head, pairs = self.finish(seen)
                if head is not None:
                    self.say(f"layer {k + 1}: {len(seen)} units, the last")
                    return head
            quiet = quiet + 1 if len(units) == before else 0
            before = len(units)
            if pairs is None and len(units) and len(seen) == len(units) and (quiet >= 2 or not k):
                xi = signs(self.ask, units)
                if xi.all():
                    W, b = xi[:, None] * np.array([u.w for u in units]), xi * np.array([u.c for u in units])
                    self.known = Known(self.dim, (*self.known.layers, (W, b)))
                    return None
                why = f"{len(units)} units, the signs of {int((xi == 0).sum())} are open"
                self.tell(why)
        raise _Stop(f"layer {k + 1}: {why}")

    def check(self, layer: Layer, k: int) -> None:
        """Whether what was seen is piecewise linear at all."""
        bad = sum(len(c.segment.unresolved) for c in layer.chords)
        if bad > 2 + 0.1 * len(layer.witnesses):
            jump = max(c.segment.jump for c in layer.chords)
            raise _Stop("jumps" if jump > 0.0 else "smooth")

    def finish(self, units: list[Unit]) -> tuple[Network | None, tuple[Array, Array] | None]:
        """y on (|z|, h, 1): zero residual means that this layer is the last, whatever its signs.

        Where most rows fit exactly and some do not, those show a unit that is still missing: pairs of inputs to look
        between.
        """
        V, c = np.array([u.w for u in units]), np.array([u.c for u in units])
        size = len(units) + self.known.width + 1
        for n in (max(3 * size, 100), max(3 * size, 100) + _CONFIRM):
            X, Y = self.rows(n)
            H = self.known(X)
            F = np.column_stack([np.abs(H @ V.T + c), H, np.ones(len(X))])
            B, fits = _robust(F, Y)
            inliers = int(fits.sum())
            self.tell(f"   {inliers} of {n} rows fit")
            if inliers < size + 20 or inliers < 0.5 * n:
                return None, None
            if inliers < n:
                out, good = np.flatnonzero(~fits), np.flatnonzero(fits)
                few = self.rng.choice(out, size=4)
                return None, (X[few], X[self.rng.choice(good, size=4)])
        m = len(units)
        a = 2.0 * B[:m].T
        # a|z|/2 = a relu(z) − az/2
        v, e = B[m:-1].T - 0.5 * a @ V, B[-1] - 0.5 * a @ c
        head = Network(V, c, a, v=v, c=e)
        if self.ask.plain:
            head = Network(V, c, a[0], v=v[0], c=e[0])
        turned = orient(head, exact=False, bias=True).network
        if np.abs(turned.v).max(initial=0.0) < 1e-4 * np.abs(turned.a).max():
            turned = turned.replace(v=np.zeros_like(turned.v))
        else:
            self.say("signs of the last layer are open: an affine part is kept")
        return turned, None

    def rows(self, n: int) -> tuple[Array, Array]:
        """Random inputs and their answers, the first n of those drawn so far and as many more as needed."""
        missing = n - len(self.pool[0])
        if missing > 0:
            X = self.rng.normal(size=(missing, self.dim)) * 2.0 ** self.rng.uniform(-1.0, 1.5, size=(missing, 1))
            Y = self.ask.values(X)
            self.pool = (np.concatenate([self.pool[0], X]), np.concatenate([self.pool[1].reshape(-1, Y.shape[1]), Y]))
        return self.pool[0][:n], self.pool[1][:n]

    def judge(self, net: DeepNetwork) -> Found:
        """Polish, then hold against rows that nothing has used."""
        if net.parameters <= 2500:
            wanted = max(int(1.5 * net.parameters) + 100 - self.ask.count, _CONFIRM)
            X, Y = self.rows(wanted)
            old, answers = self.ask.data()
            pick = self.rng.permutation(len(old))[: 3 * net.parameters]
            X, Y = np.concatenate([X, old[pick]]), np.concatenate([Y, answers[pick]])
            net = minimise(net, X, Y[:, 0] if self.ask.plain else Y, self.run, steps=10).network
        X = self.rng.normal(size=(_CONFIRM, self.dim))
        Y = self.ask.values(X)
        left = float(np.sqrt(np.mean((net(X).reshape(Y.shape) - Y) ** 2)) / max(float(Y.std()), 1e-300))
        return Found(net, net.hidden, "all layers", 0, left, _CONFIRM if left < 1e-8 else 0, self.notes)


def _robust(F: Array, Y: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Least squares of Y (n, q) on F (n, p) that ignores rows that do not fit, and the rows that do."""
    scale = np.linalg.norm(F, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    weight = 1.0 / np.linalg.norm(F, axis=1)
    G, target = F * weight[:, None] / scale, Y * weight[:, None]
    level = np.ones(len(F))
    size = float(np.abs(target).max())
    for _ in range(30):  # minimises Σ|r|, then least squares over the rows that fit
        B = np.linalg.lstsq(level[:, None] * G, level[:, None] * target, rcond=1e-13)[0]
        r = np.abs(G @ B - target).max(axis=1)
        fits = r <= 1e-8 * size
        if fits.all():
            break
        level = 1.0 / np.sqrt(np.maximum(r, 1e-12 * size))
        level /= level.max()
    return B / scale[:, None], fits
