"""Several hidden layers from samples alone, without queries: an experiment (docs: "Deep networks").

No algorithm is known that does this in general, and there are reasons to believe that there is none (Daniely and Vardi
2021; Chen et al. 2022). For a handful of units the way of :func:`relumine.recover` carries over: a student with twice
the units in every layer, least squares in all layers at once (:mod:`relumine.fit.layers`), units left out one by one
while the others make up for them, and again from there with new units beside the old ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np

from relumine import planted
from relumine.arrays import Array
from relumine.data.sources import Samples
from relumine.data.whiten import Whitening, whitening
from relumine.deep import DeepNetwork
from relumine.fit.layers import LayersFit, Sweeps, minimise
from relumine.network import Network
from relumine.papers.capabilities import Capabilities
from relumine.recovery.evidence import Confirmations, Evidence, HeldOut
from relumine.recovery.judge import judge
from relumine.recovery.task import some_aside
from relumine.results import Certificate, InvalidInput, Recovery, SearchRecord, Stage
from relumine.run import Run

Maps = list[tuple[Array, Array]]


CAPABILITIES = Capabilities(
    "layers", activations=("relu",), biases=True, finds_width=True, streams=False, searches=True, options=("widths",)
)

_STARTS = 10  # each with _CYCLES rounds
_CYCLES = 4  # rounds from one start: of 15 problems (5, 5, 5) that were solved, none took more than three
_WIDER = 2  # times the units of each layer in the student: with 1.5 half as many problems (5, 5, 5) were solved
_STUDENT, _SHRINK, _POLISH = 150, 12, 100  # steps: of the student, after each unit left out, and at the end
_EXACT = 1e-20  # relative loss: residuals of 1e-10 of the spread of y
_HELD = 1e-9  # error on rows set aside, over the spread of y, that is rounding error
_FREE = 1e-4  # 1 − leverage from which a row could have contradicted the fit
_RANK = 1e-10  # singular values below this part of the largest are zero
_LARGEST = 2500  # parameters: steps are dense


@dataclass(frozen=True)
class _Rows:
    """White inputs and standard outputs, (n, d) and (n,)."""

    X: Array
    y: Array


def recover_layers(samples: Samples, widths: tuple[int, ...], run: Run, starts: int | None = None) -> Recovery:
    """A deep ReLU network with hidden layers of these ``widths`` from exact samples, one output."""
    began, sizes = time.perf_counter(), (samples.d, *widths, 1)
    parameters = sum((d + 1) * m for d, m in pairwise(sizes))
    _check(samples, widths, parameters)
    aside, distinct = some_aside(samples, run.rng)
    used, held = samples.at(np.delete(np.arange(samples.n), aside)), samples.at(aside)
    white = whitening(used.X)
    mean, spread = float(used.y.mean()), float(used.y.std()) or 1.0
    rows = _Rows(white.apply(used.X), (used.y - mean) / spread)
    enough = distinct > parameters
    fit, rounds = _search(rows, widths, run, starts or _STARTS) if enough else (_first(rows, widths, run), 0)
    net = _to_user(fit.network, white, mean, spread)
    exact = enough and fit.loss <= _EXACT
    evidence = Evidence(
        units=net.m,
        dim=samples.d,
        outputs=1,
        exact=exact,
        rows=used.n,
        numbers=used.n,
        distinct=distinct,
        parameters=parameters,
        affine=samples.d + 1,
        one_more=samples.d + 2,
        noise=spread * float(np.sqrt(fit.loss)),
        gain=1.0,
        interrupted=run.over,
        held=_held_out(net, held, spread),
    )
    if exact:
        evidence = _confirmed(evidence, fit.network, rows)
    verdict = judge(evidence)
    certificate = Certificate(
        residual=evidence.checked[0],
        rows=evidence.checked[1],
        confirmed=evidence.confirmed if exact else 0,
        unseen=evidence.unseen if exact else float("nan"),
        proves=verdict.proves,
        does_not_prove=verdict.does_not_prove,
        notes=("an experiment: several layers from samples alone, without queries",),
    )
    return Recovery(
        network=cast("Network", net),
        status=verdict.status,
        message=verdict.message,
        certificate=certificate,
        stages=(Stage("layers", time.perf_counter() - began, fit.loss, f"{rounds} rounds, {fit.reason}"),),
        method="layers",
        search=SearchRecord(starts=-(-rounds // _CYCLES), cycles=rounds, loss=fit.loss, rows=samples.n),
    )


def _check(samples: Samples, widths: tuple[int, ...], parameters: int) -> None:
    if samples.y.ndim != 1:
        raise InvalidInput("several layers from samples take one output", argument="y", remedy="pass one column")
    if not np.ptp(samples.y):
        raise InvalidInput("y is the same in every row", argument="y", remedy="check that it is the right column")
    if parameters > _LARGEST:
        raise InvalidInput(
            f"{parameters} parameters in {len(widths)} hidden layers: up to {_LARGEST} are tried from samples alone",
            argument="widths",
            remedy="ask a black box instead (extract), or look for one hidden layer (width)",
        )


def _search(rows: _Rows, widths: tuple[int, ...], run: Run, starts: int) -> tuple[LayersFit, int]:
    """Rounds of widening, fitting, leaving out and polishing; the best fit, and how many rounds there were."""
    wider = tuple(_WIDER * m for m in widths)
    fits: list[LayersFit] = []
    while len(fits) < starts * _CYCLES and not run.over:
        fresh = len(fits) % _CYCLES == 0
        student = _random((rows.X.shape[1], *wider, 1), run) if fresh else _widened(fits[-1].network, wider, run)
        student = minimise(student, rows.X, rows.y, run, steps=_STUDENT, tol=_EXACT).network
        fits.append(minimise(_contracted(student, rows, widths, run), rows.X, rows.y, run, steps=_POLISH))
        run.report("layers", len(fits), fits[-1].loss, sum(widths))
        if fits[-1].loss <= _EXACT:
            break
    return min(fits, key=lambda fit: fit.loss, default=_first(rows, widths, run)), len(fits)


def _first(rows: _Rows, widths: tuple[int, ...], run: Run) -> LayersFit:
    """Something to return where there are too few rows to look."""
    return LayersFit(_random((rows.X.shape[1], *widths, 1), run), (1.0,), "too few rows")


def _random(sizes: tuple[int, ...], run: Run) -> DeepNetwork:
    """A random network of small output."""
    *maps, (a, c) = planted.deep(sizes, run.rng).maps
    return DeepNetwork.of([*maps, (0.1 * a, c)])


def _widened(net: DeepNetwork, widths: tuple[int, ...], run: Run) -> DeepNetwork:
    """New random units beside the old ones, which do not see them; they add a tenth of the size of a random output."""
    fresh = _maps(_random((net.d, *widths, 1), run))
    old = _maps(net)
    for (W, b), (V, e) in zip(fresh, old):
        W[: len(V)] = 0.0
        W[: len(V), : V.shape[1]] = V
        b[: len(V)] = e
    W, V = fresh[-1][0], old[-1][0]
    W[:, V.shape[1] :] = 0.1 * run.rng.normal(size=(1, W.shape[1] - V.shape[1]))
    return _network(fresh)


def _contracted(net: DeepNetwork, rows: _Rows, widths: tuple[int, ...], run: Run) -> DeepNetwork:
    """Units left out one by one, each time the one whose loss the others make up for best, down to these widths."""
    while tuple(net.widths) != widths and not run.over:
        ways = [_without(net, rows.X, k, j) for k, m in enumerate(net.widths) if m > widths[k] for j in range(m)]
        least = sorted(ways, key=lambda way: float(np.sum((way(rows.X) - rows.y) ** 2)))
        fits: list[LayersFit] = []
        for way in least[:2]:
            fits.append(minimise(way, rows.X, rows.y, run, steps=_SHRINK, tol=_EXACT))
            if fits[-1].loss <= _EXACT:
                break
        net = min(fits, key=lambda fit: fit.loss).network
    return net if tuple(net.widths) == widths else _random((net.d, *widths, 1), run)


def _without(net: DeepNetwork, X: Array, k: int, j: int) -> DeepNetwork:
    """The network without unit j of layer k, the others of its layer making up for it: h_j ≈ Σ c_i h_i + c_0."""
    maps, h = _maps(net), X
    for W, b in maps[: k + 1]:
        h = net.activation(h @ W.T + b)
    keep = np.arange(h.shape[1]) != j
    F = np.column_stack([h[:, keep], np.ones(len(h))])
    c = np.linalg.lstsq(F, h[:, j], rcond=1e-10)[0]
    W, b = maps[k + 1]
    maps[k + 1] = W[:, keep] + np.outer(W[:, j], c[:-1]), b + W[:, j] * c[-1]
    maps[k] = maps[k][0][keep], maps[k][1][keep]
    return _network(maps)


def _maps(net: DeepNetwork) -> Maps:
    """Copies of all maps, the output's with one row."""
    return [(np.array(np.atleast_2d(W)), np.array(np.atleast_1d(b))) for W, b in net.maps]


def _network(maps: Maps) -> DeepNetwork:
    *hidden, (W, b) = maps
    return DeepNetwork.of([*hidden, (W[0], b[0])])


def _to_user(net: DeepNetwork, white: Whitening, mean: float, spread: float) -> DeepNetwork:
    """In the user's x and y."""
    maps = _maps(net)
    (W, b), (a, c) = maps[0], maps[-1]
    first = white.undo(Network(W, b, np.ones(len(W))))
    maps[0], maps[-1] = (first.W, first.b), (spread * a, spread * c + mean)
    return _network(maps)


def _held_out(net: DeepNetwork, held: Samples, spread: float) -> HeldOut:
    error = float(np.sqrt(np.mean((net(held.X) - held.y) ** 2))) / spread
    return HeldOut(held.n, error, error <= _HELD, error**2, _HELD**2)


def _confirmed(e: Evidence, net: DeepNetwork, rows: _Rows) -> Evidence:
    """The evidence with the rows that could have contradicted, and whether the parameters can change freely.

    J has rank p − m at most: the scale of each of m units can move to the next layer (Bona-Pellissier et al. 2022). A
    row of leverage |q_i|² = 1, J = QR, is fitted whatever its value.
    """
    J = Sweeps(net, rows.X).rows(0)
    norms = np.linalg.norm(J, axis=0)
    Q, s, _ = np.linalg.svd(J / np.where(norms > 0.0, norms, 1.0), full_matrices=False)
    h = (Q[:, s > _RANK * s[0]] ** 2).sum(axis=1)
    alone = np.flatnonzero(1.0 - h <= _FREE)
    confirmations = Confirmations(e.held.rows + len(h) - len(alone) if e.held else 0, tuple(alone.tolist()))
    least = float(s[J.shape[1] - net.m - 1])
    return replace(e, confirmations=confirmations, condition=float(s[0]) / least if least > _RANK * s[0] else np.inf)
