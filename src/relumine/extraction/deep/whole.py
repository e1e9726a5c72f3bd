"""All layers, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from relumine.deep import DeepNetwork
from relumine.extraction.deep.box import Asked, OutOfBudget
from relumine.extraction.deep.charts import Known
from relumine.extraction.deep.kind import kind
from relumine.extraction.deep.places import chords
from relumine.extraction.deep.signs import signs
from relumine.extraction.deep.units import Layer, Unit
from relumine.extraction.lines import Line
from relumine.extraction.queries import Ended, Unanswered
from relumine.fit.layers import minimise
from relumine.network import Network
from relumine.recovery.orient import orient
from relumine.run import Run

Array = NDArray[np.float64]

__all__ = ["Found", "extract_deep"]

_ROUNDS, _BRIEF = 40, 8  # looks at a layer; where the one before it may be another
_FEW, _MORE = 6, 6  # units of a small layer: deeper units look alike on many lines, so take more of them
_ROBUST = 200_000  # entries of the matrix up to which a linear programme is worth its time
# Fresh rows where inputs usually are: at most 0.3 % of them may differ, with 95 % confidence. With 300 of them, two of
# fifty boxes of random shape were called exact and lacked a unit that is on for one input in a hundred; with 1000, one
# of six with three hidden layers lacked one that is on for one in a thousand.
_CONFIRM, _CAREFUL = 1000, 5000
_WIDE, _FAR = 3.0, 300  # and so many further out, so much further
_MOVES = 25  # pairs of inputs that the known layers cannot tell apart
_SMALL, _LARGE = 2500, 12_000  # parameters up to which all layers are polished densely, and at all: a minute
_EXACT = 1e-8  # relative error on fresh inputs that counts as rounding: measured 1e-15 … 4e-9 where all units are right
_FINE = 3e-10  # and that which is not polished again
_DEPTH = 12


_KINDS = {
    "constant": "the box gives the same answer everywhere it was asked: no unit shows",
    "noisy": "the box gives different answers to the same question: kinks cannot be told from noise",
    "steps": "the box is made of steps (a tree, a rounded answer, labels): a ReLU network is continuous and slopes",
    "smooth": "the box bends everywhere (a smooth activation, a softmax inside): a ReLU network bends at kinks only",
}


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
    doubts: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list, repr=False)
    seconds: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether fresh rows confirm the network to rounding error."""
        return self.network is not None and self.confirmed > 0


class _Stop(Exception):
    """Why the search ends here."""


def extract_deep(
    ask: Callable[[Array], Array],
    dim: int,
    run: Run,
    *,
    budget: float = np.inf,
    plain: bool | None = None,
    lines: list[Line] | None = None,
) -> Found:
    """Every layer of a ReLU network behind ``ask``, (n, d) to (n,) or (n, q).

    Parameters
    ----------
    ask : callable
        The box, in coordinates in which inputs are of order one.
    dim : int
        Number of inputs.
    run : Run
    budget : float
        Most rows to ask.
    lines : list of Line, optional
        Lines that were searched before and cost nothing to search again.
    plain : bool, optional
        Whether the network's output is to be a plain number; found from the shape of the answers by default.

    Examples
    --------
    >>> import relumine as rl
    >>> secret = rl.planted.deep((8, 6, 5, 1), rng=0)
    >>> found = extract_deep(secret, 8, Run.of(rng=0))
    >>> found.exact, found.network, rl.metrics.parameter_error(secret, found.network) < 1e-6
    (True, DeepNetwork(8-6-5-1, relu), True)
    """
    began = time.perf_counter()
    asked = Asked(ask, run.rng, budget, lambda: run.over, plain)
    search = _Search(asked, dim, run, lines or [])
    try:
        search.first()
        result = search.layers()
    except (_Stop, OutOfBudget, Ended, Unanswered) as reason:
        result = Found(None, search.known.layers, str(reason), 0, notes=search.notes)
    result.queries, result.seconds = asked.count, time.perf_counter() - began
    result.trace = search.trace
    return result


class _Search:
    def __init__(self, asked: Asked, dim: int, run: Run, given: list[Line]) -> None:
        self.given = given
        self.ask, self.dim, self.run, self.rng = asked, dim, run, run.rng
        self.known = Known(dim)
        self.pool: tuple[Array, Array] = (np.zeros((0, dim)), np.zeros((0, 1)))
        self.lines = 4
        self.mark = 0
        self.notes: list[str] = []
        self.trace: list[str] = []

    def tell(self, text: str) -> None:
        self.trace.append(f"{text} [{self.ask.count}]")

    def say(self, text: str) -> None:
        self.notes.append(text)
        self.tell(text)

    def first(self) -> None:
        """Whether lines are worth their queries."""
        what = kind(self.ask, self.dim, self.rng)
        if what != "piecewise linear":
            raise _Stop(_KINDS[what])

    def layers(self, k: int = 0, rounds: int = _ROUNDS) -> Found:
        """Layer k + 1 and all behind it; of several sets of units that may be the layer, the first that works."""
        if k == _DEPTH:
            raise _Stop(f"more than {_DEPTH} layers")
        before = self.known
        result = self.units(Layer(self.ask, before, self.rng), k, rounds)
        if isinstance(result, Found):
            return result
        furthest: tuple[int, Known, _Stop] | None = None
        for W, b in result:
            self.known = Known(self.dim, (*before.layers, (W, b)))
            self.say(f"layer {k + 1}: {len(b)} units")
            try:
                return self.layers(k + 1, _ROUNDS if len(result) == 1 else _BRIEF)
            except _Stop as reason:
                if furthest is None or len(self.known.layers) > furthest[0]:
                    furthest = (len(self.known.layers), self.known, reason)
        assert furthest is not None
        # of several candidates none led to the end: none is certain
        self.known = furthest[1] if len(result) == 1 else before
        raise furthest[2]

    def units(self, layer: Layer, k: int, rounds: int) -> Found | list[tuple[Array, Array]]:
        """Look until no new units come. The network, if this layer is the last; else what the layer may be."""
        self.mark = self.ask.count
        quiet, before, patience, pairs, why = 0, -1, 2, None, "no unit was seen on three chords"
        for turn in range(rounds):
            count = (8 if turn == 0 else 4) if k else (self.lines if turn == 0 else 2)
            if not k and turn == 0 and self.given:
                layer.look_along(self.given)
                count = max(count - len(self.given), 1)
            charts, starts, ends = chords(self.known, count, self.rng, pairs)
            if not charts:
                why = f"no chart in which the active units of layer {k} move freely"
                continue
            layer.look(charts, starts, ends)
            if not k:
                self.check(layer)
            units = layer.accepted
            seen = [u for u in layer.units if u.hits >= 2 and u.score > 0.5]
            owned = sum(w.owner >= 0 for w in layer.witnesses)
            self.run.report(f"layer {k + 1}", turn, float("nan"), len(units))
            self.tell(
                f"  layer {k + 1} turn {turn}: {len(units)} of {len(layer.units)}, {owned}/{len(layer.witnesses)} kinks"
            )
            pairs = None
            if turn == 1 and k and not layer.witnesses and (found := self.affine()) is not None:
                return found
            if turn >= 5 and not layer.witnesses:
                raise _Stop(f"layer {k + 1}: f does not bend behind the layers found, and is not an affine map of them")
            if owned > 0.9 * len(layer.witnesses) and len(seen):
                net, pairs = self.finish(seen)
                if net is not None:
                    affine = bool(net.head.v.any())
                    self.tell(f"  layer {k + 1}: {len(seen)} units, the last{', affine part' if affine else ''}")
                    if not affine or (patience := patience - 1) < 0:
                        found, pairs = self.judge(net)
                        if found is not None:
                            return found
            quiet = quiet + 1 if len(units) == before else 0
            before = len(units)
            enough = quiet >= 2 or (not k and (len(units) > _FEW or turn >= _MORE))
            settled = len(seen) == len(units) or len(layer.units) <= _FEW
            if pairs is None and len(units) and settled and enough:
                options = []
                for some in _hypotheses(units, [u for u in layer.units if u.hits >= 3]):
                    xi = signs(self.ask, some)
                    why = f"{len(some)} units, the signs of {int((xi == 0).sum())} are open"
                    if xi.all():
                        W, b = xi[:, None] * np.array([u.w for u in some]), xi * np.array([u.c for u in some])
                        if self.complete(Known(self.dim, (*self.known.layers, (W, b)))):
                            options.append((W, b))
                        else:
                            why = f"{len(some)} units, and the box sees more than they do"
                    self.tell(why)
                if options:
                    return options
        hint = ""
        if "signs" in why:
            hint = "; the layer may be wider than what feeds it, or made of other pieces (maxima, sorting)"
        raise _Stop(f"layer {k + 1}: {why}{hint}")

    def complete(self, known: Known) -> bool:
        """Whether the box depends on nothing but the activations of the known layers, as far as moves show."""
        pairs = []
        for _ in range(_MOVES):
            x = self.rng.normal(size=self.dim) * 2.0 ** self.rng.uniform(-1.0, 1.5)
            other = known.unseen_move(x, self.rng)
            if other is not None:
                pairs.append((x, other))
        if not pairs:
            return True
        y = self.ask(np.concatenate([np.array(pairs)[:, 0], np.array(pairs)[:, 1]]))
        one, two = np.split(y, 2)
        return bool((np.abs(one - two) <= 1e-7 * (np.abs(y).max() + 1e-300)).all())

    def check(self, layer: Layer) -> None:
        """Whether what was seen is piecewise linear at all."""
        seen = [chord.segment for chord in layer.chords]
        bad = sum(segment.unresolved for segment in seen)
        if bad > 2 + 0.1 * len(layer.witnesses):
            step = max(segment.step for segment in seen)
            raise _Stop(f"not piecewise linear: {bad} stretches unresolved, step {step}")

    def finish(self, units: list[Unit]) -> tuple[DeepNetwork | None, tuple[Array, Array] | None]:
        """The answers on (|z|, h, 1): zero residual means that this layer is the last, whatever its signs.

        Where most rows fit exactly and some do not, those show a unit that is still missing: pairs of inputs to look
        between.
        """
        V, c = np.array([u.w for u in units]), np.array([u.c for u in units])
        size = len(units) + self.known.width + 1
        # rows asked on both sides of these units' kinks: at random inputs some of them may never change sides
        old, answers = self.ask.since(self.mark)
        pick = self.rng.permutation(len(old))[: 4 * size]
        X, Y = self.rows(max(3 * size, 100))
        X, Y = np.concatenate([X, old[pick]]), np.concatenate([Y, answers[pick]])
        H = self.known(X)
        B, fits = _robust(np.column_stack([np.abs(H @ V.T + c), H, np.ones(len(X))]), Y)
        inliers = int(fits.sum())
        self.tell(f"   {inliers} of {len(X)} rows fit")
        if inliers < size + 20 or inliers < 0.5 * len(X):
            return None, None
        if inliers < 0.7 * len(X):
            return None, self.between(X[~fits], X[fits])
        idle = np.abs(B[: len(units)]).max(axis=1) <= 1e-7 * np.abs(B[: len(units)]).max()
        if idle.any():
            return self.finish([u for u, no in zip(units, idle) if not no])
        return self.repaired(self.head(units, B), np.array([u.known for u in units]))

    def affine(self) -> Found | None:
        """The network, if the box is an affine map of the last known layer: that one was the last."""
        *layers, (W, b) = self.known.layers
        X, Y = self.rows(3 * len(b) + 100)
        F = np.column_stack([self.known(X), np.ones(len(X))])
        B, _ = _robust(F, Y)
        if np.abs(F @ B - Y).max() > 1e-4 * float(Y.std()):
            return None
        a, c = B[:-1].T, B[-1]
        head = Network(W, b, a[0], c=c[0]) if self.ask.plain else Network(W, b, a, c=c)
        known, self.known = self.known, Known(self.dim, tuple(layers))
        found = self.judge(DeepNetwork(layers, head))[0]
        if found is None:
            self.known = known
        return found

    def head(self, units: list[Unit], B: Array) -> Network:
        """a|z|/2 + v·h + c, as ReLU units: a|z|/2 = a relu(z) − az/2."""
        V, c, m = np.array([u.w for u in units]), np.array([u.c for u in units]), len(units)
        a = 2.0 * B[:m].T
        v, e = B[m:-1].T - 0.5 * a @ V, B[-1] - 0.5 * a @ c
        return Network(V, c, a[0], v=v[0], c=e[0]) if self.ask.plain else Network(V, c, a, v=v, c=e)

    def repaired(
        self, head: Network, known: NDArray[np.bool_]
    ) -> tuple[DeepNetwork | None, tuple[Array, Array] | None]:
        """The network once every row asked so far fits; else pairs of rows to look between.

        Rows that do not fit may show weights that no witness has seen, as their units are seldom on together: those
        weights, and the output's, are fitted to them.
        """
        X, Y = self.ask.data()
        near = np.linalg.norm(X, axis=1) <= 60.0 * np.sqrt(self.dim)  # far out the errors of known layers show
        X, Y = X[near], Y[near]
        H = self.known(X)
        weight = 1.0 / (1.0 + np.linalg.norm(H, axis=1))  # far rows would drown the others: f is nearly homogeneous
        scale = float((np.abs(Y) * weight[:, None]).max())
        for _ in range(8):
            wrong = np.abs(head(H).reshape(Y.shape) - Y).max(axis=1) * weight > 1e-7 * scale
            self.tell(f"   {int(wrong.sum())} of the {len(X)} rows asked so far do not fit, {int((~known).sum())} open")
            if not wrong.any():
                return DeepNetwork(self.known.layers, _turned(head.merge(1e-6))), None
            start = DeepNetwork((), head)
            if start.parameters > 2500:
                break
            size = 3 * start.parameters + 100
            rows = np.concatenate(
                [
                    self.rng.permutation(np.flatnonzero(wrong))[:size],
                    self.rng.permutation(np.flatnonzero(~wrong))[:size],
                ]
            )
            target = Y[rows, 0] if self.ask.plain else Y[rows]
            rest = start.parameters - head.W.size + head.v.size
            free = np.concatenate([(~known).ravel(), np.zeros(head.m, dtype=bool), np.ones(rest - head.m, dtype=bool)])
            fit = minimise(start, H[rows], target, self.run, steps=25, weight=weight[rows], skip=True, free=free)
            self.tell(f"   repair: {fit.history[0]:.1e} to {fit.loss:.1e}, {fit.reason}")
            if fit.loss > 1e-13:
                break
            head = fit.network.head
        right = self.rng.permutation(np.flatnonzero(~wrong))[:1000]
        some = self.rng.permutation(np.flatnonzero(wrong))[:4]
        nearest = [right[np.linalg.norm(X[right] - X[i], axis=1).argmin()] for i in some]
        return None, (X[some], X[nearest]) if len(right) else None

    def between(self, out: Array, good: Array) -> tuple[Array, Array]:
        """Pairs of inputs, one of which shows something that the other does not."""
        return out[self.rng.integers(len(out), size=4)], good[self.rng.integers(len(good), size=4)]

    def rows(self, n: int) -> tuple[Array, Array]:
        """Random inputs and their answers, the first n of those drawn so far and as many more as needed."""
        missing = n - len(self.pool[0])
        if missing > 0:
            X = self.rng.normal(size=(missing, self.dim)) * 2.0 ** self.rng.uniform(-1.0, 1.5, size=(missing, 1))
            Y = self.ask.values(X)
            self.pool = (np.concatenate([self.pool[0], X]), np.concatenate([self.pool[1].reshape(-1, Y.shape[1]), Y]))
        return self.pool[0][:n], self.pool[1][:n]

    def judge(self, net: DeepNetwork) -> tuple[Found | None, tuple[Array, Array] | None]:
        """Polish, then hold against rows that nothing has used; pairs to look between where some of them do not fit."""
        X, Y = self.ask.data()
        error = np.abs(net(self.pool[0]).reshape(self.pool[1].shape) - self.pool[1]).max(axis=1)
        if np.quantile(error, 0.9) > 1e-5 * float(self.pool[1].std()):
            return None, None
        near = self.rng.permutation(np.flatnonzero(np.linalg.norm(X, axis=1) <= 5.0 * np.sqrt(self.dim)))
        if net.parameters <= _SMALL:
            near = near[: 3 * net.parameters]
            net = self.polished(net, np.concatenate([self.pool[0], X[near]]), np.concatenate([self.pool[1], Y[near]]))
        left, pairs = self.fresh(net)
        if _FINE < left < 1e-5 and net.parameters <= _LARGE:
            net = self.polished(net, *self.rows(int(1.15 * net.parameters) + 100))
            left, pairs = self.fresh(net)
        if left < _EXACT:
            return Found(net, net.hidden, "all layers", 0, left, self.near(net), self.notes, self.doubts(net)), None
        return None, pairs

    def doubts(self, net: DeepNetwork) -> list[str]:
        """Weights that no row asked brings into play: their two units were never on together."""
        H, words = self.ask.data()[0], []
        for k, (W, b) in enumerate(net.hidden):
            on = H @ W.T + b > 0.0
            together = on.T.astype(np.float64) @ (np.abs(H) > 0.0).astype(np.float64)
            idle = int((together == 0.0).sum())
            if k and idle:
                words.append(f"layer {k + 1}: {idle} of {W.size} weights join units that were never on together")
            H = np.where(on, H @ W.T + b, 0.0)
        return words

    def polished(self, net: DeepNetwork, X: Array, Y: Array) -> DeepNetwork:
        """Gauss–Newton in all layers."""
        steps = 10 if net.parameters <= _SMALL else 2
        fit = minimise(net, X, Y[:, 0] if self.ask.plain else Y, self.run, steps=steps)
        self.tell(f"  polish {fit.history[0]:.1e} to {fit.loss:.1e}")
        return fit.network

    def near(self, net: DeepNetwork) -> int:
        """How many fresh rows: more behind more layers, with a linear part left, or with weights seldom in play."""
        return _CAREFUL if len(net.hidden) > 2 or net.head.v.any() or self.doubts(net) else _CONFIRM

    def fresh(self, net: DeepNetwork) -> tuple[float, tuple[Array, Array] | None]:
        """Root mean square error over the spread, on inputs never asked before, and pairs where only some fit."""
        near = self.near(net)
        X = self.rng.normal(size=(near + _FAR, self.dim))
        X[near:] *= _WIDE  # further out, too: a unit that is seldom on near by may be on there
        Y = self.ask.values(X)
        error = np.abs(net(X).reshape(Y.shape) - Y).max(axis=1) / max(float(Y[:near].std()), 1e-300)
        left, bad = float(np.sqrt(np.mean(error**2))), error > 1e-6
        self.tell(f"  residual {left:.1e}, worst {error.max():.1e}")
        return left, None if bad.all() or not bad.any() else self.between(X[bad], X[~bad])


def _hypotheses(units: list[Unit], others: list[Unit]) -> list[list[Unit]]:
    """Sets of units that may be the layer: those that most chords show; in a small layer any of those seen three times.

    Behind two units a deeper one has only four normals, so it is met in the same place on many chords, and a true one
    may be invisible on half of them.
    """
    if len(others) > _FEW:
        return [units]
    sets = [list(some) for k in range(len(others), 0, -1) for some in combinations(others, k)]
    return sorted(sets, key=lambda some: (-len(some), -sum(u.score for u in some)))


def _turned(head: Network) -> Network:
    """The signs that leave no linear part, where there are such."""
    turned = orient(head, exact=False, bias=True, seconds=2.0).network
    if np.abs(turned.v).max(initial=0.0) < 1e-4 * np.abs(turned.a).max():
        return turned.replace(v=np.zeros_like(turned.v))
    return turned


def _robust(F: Array, Y: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Least squares of Y (n, q) on F (n, p) over the rows that fit exactly, and which do: first Σ|r| is minimised."""
    scale = np.linalg.norm(F, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    weight = 1.0 / np.maximum(np.linalg.norm(F, axis=1), 1e-300)
    G, target = F * weight[:, None] / scale, Y * weight[:, None]
    size = float(np.abs(target).max())
    if not np.isfinite(G).all():
        return np.zeros((F.shape[1], Y.shape[1])), np.zeros(len(F), dtype=bool)
    B = np.linalg.lstsq(G, target, rcond=1e-13)[0]
    fits = np.abs(G @ B - target).max(axis=1) <= 1e-8 * size
    n, p = G.shape
    if not fits.all() and n * p <= _ROBUST:
        mix = target @ np.cos(np.arange(Y.shape[1]))  # several outputs: a row that fits one mixture fits all
        eye = np.eye(n)
        found = linprog(
            np.concatenate([np.zeros(p), np.ones(2 * n)]),
            A_eq=np.column_stack([G, eye, -eye]),
            b_eq=mix / size,
            bounds=[(None, None)] * p + [(0, None)] * (2 * n),
            method="highs",
        )
        if found.x is not None:
            near = np.abs(G @ found.x[:p] - mix / size) <= 1e-6
            if near.sum() > p:
                B = np.linalg.lstsq(G[near], target[near], rcond=1e-13)[0]
                fits = np.abs(G @ B - target).max(axis=1) <= 1e-8 * size
    return B / scale[:, None], fits
