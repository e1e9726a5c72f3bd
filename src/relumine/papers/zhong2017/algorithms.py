"""Zhong, Song, Jain, Bartlett, Dhillon 2017: Algorithms 1 and 2, step by step as in the paper.

Samples are arrays X (n, d), y (n,), or a source and None: every step is a sum over rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from relumine.activations import Activation
from relumine.arrays import Array, unit_rows
from relumine.data.sources import Source, count
from relumine.data.views import Only, Projected, few_of, rows_of, seen
from relumine.papers.samples import mean_square
from relumine.papers.zhong2017.descent import Iterate, Step, descend
from relumine.papers.zhong2017.magsign import recover_magnitudes
from relumine.papers.zhong2017.moments import Moments, contract, find_span, moments_inside
from relumine.papers.zhong2017.span import Orders, moment_orders
from relumine.results import InvalidInput
from relumine.tensors.kcl import kcl
from relumine.tensors.symmetric import SymmetricTensor

_PROBE = 50  # steps by which starts are compared: exploding starts have shown themselves by then
_PROBE_ROWS = 20_000  # rows for that comparison where they have to be read from elsewhere
_TRIES = 30  # random α among which the one that shows the weakest unit best is taken


@dataclass(frozen=True)
class Start:
    """Algorithm 1's result: W (k, d) and v = ±1 (k,); ``basis`` V (k, d), ``values``: eigenvalues of P̂₂."""

    W: Array
    v: Array
    basis: Array
    values: Array
    orders: Orders


def partition(rows: Source, parts: int, rng: np.random.Generator) -> list[Source]:
    """S₁ … S_p: random disjoint parts of (almost) equal size.

    Examples
    --------
    >>> rows = rows_of(np.ones((7, 2)), np.arange(7.0))
    >>> [part.n for part in partition(rows, 3, np.random.default_rng(0))]
    [3, 2, 2]
    """
    return [seen(rows, Only(np.sort(numbers))) for numbers in np.array_split(rng.permutation(count(rows)), parts)]


def initialise(
    X: ArrayLike | Source,
    y: ArrayLike | None,
    width: int,
    sigma: Activation,
    rng: np.random.Generator,
    *,
    moments: Moments = "debiased",
    split: bool = False,
    projections: int = 100,
    select: bool = False,
) -> Start:
    """Algorithm 1, Initialization via Tensor Method. x ~ N(0, I), no biases, k ≤ d, σ homogeneous.

    ``split``: the paper's partition into S₂, S₃, S₄; otherwise every step uses all rows. ``moments``: "plain" averages
    as in the paper, "debiased" or "regressed" as in :mod:`relumine.papers.zhong2017.moments`. ``select`` (ours): of
    KCL's stages, and of its last one with P̂₂ fitted beside P̂₃, take the one from whose start descent gets furthest;
    noise can make two factors nearly parallel, and their magnitudes explode.

    Examples
    --------
    >>> from relumine import planted
    >>> truth = planted.network(d=8, m=3, rng=0, family="conditioned", activation="squared_relu")
    >>> start = initialise(*planted.sample(truth, 20_000, rng=1), 3, truth.activation, np.random.default_rng(0))
    >>> start.v.sum() == truth.a.sum(), start.orders
    (np.True_, Orders(first=1, second=2, third=3))
    """
    rows, orders = rows_of(X, y), moment_orders(sigma)
    # 1. S₂, S₃, S₄.
    S2, S3, S4 = partition(rows, 3, rng) if split else [rows] * 3
    alpha = rng.normal(size=rows.d) / np.sqrt(rows.d)
    # 2–3. V = PowerMethod(P̂₂, k).
    V, values = find_span(S2, width, orders, alpha, rng, moments)
    # 4. R̂₃ = P̂₃(V, V, V), all moments inside the span.
    M = moments_inside(S3, V, orders.third, moments)
    inside = _direction(M[orders.third], rng.spawn(1)[0])  # α outside the span only adds noise
    R3 = contract(M[orders.third], inside, 3)
    T = moments_inside(S4, V, orders.second, moments) if split else M
    Q1 = contract(T[orders.first], inside, 1).entries
    Q2 = contract(T[orders.second], inside, 2)
    stages: list[dict[str, Any]] = [{}, {"beside": [Q2]}, {"refine": False}, {"plugin": False, "refine": False}]
    starts = []
    for options in stages if select else stages[:1]:
        # 5–6. û_i = KCL(R̂₃), then w_i and v_i = RecMagSign(V, û, S₄).
        U = kcl(R3, rng, projections=projections, **options).factors
        W, v = recover_magnitudes(U, Q1, Q2.dense(), sigma, orders, inside)
        starts.append(Start(W @ V, v, V, values, orders))
    if not select:
        return starts[0]
    few = few_of(seen(S4, Projected(V)), _PROBE_ROWS, rng.spawn(1)[0])
    return min(starts, key=lambda start: _promise(few, start, sigma))


def _promise(inside: Source, start: Start, sigma: Activation) -> float:
    """The loss after a few steps of descent inside the span, where a step is cheap.

    The loss of the start itself would favour two nearly parallel units of opposite sign, which fit noise.
    """
    return min(it.loss for it in islice(descend(inside, start.W @ start.basis.T, start.v, sigma), _PROBE + 1))


def _direction(M: SymmetricTensor, rng: np.random.Generator) -> Array:
    """A unit α for which M(I, I, I, α) shows every unit: the largest k-th singular value among random ones.

    A single random α may be nearly orthogonal to one of the weights, which then drowns in the noise.
    """
    candidates = unit_rows(rng.normal(size=(_TRIES if M.order > 3 else 1, M.d)))

    def weakest(alpha: Array) -> float:
        return float(np.linalg.svd(contract(M, alpha, 3).flatten(1, 2), compute_uv=False)[-1])

    return np.asarray(max(candidates, key=weakest))


def learn(
    X: ArrayLike | Source,
    y: ArrayLike | None,
    start: Start,
    sigma: Activation,
    *,
    step: Step = "search",
    iterations: int = 2000,
    batches: int = 1,
    tol: float = 1e-24,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[Iterate, list[float]]:
    """Algorithm 2, lines 6–10: gradient descent in W from Algorithm 1's start, v fixed; also the losses on the way.

    Stops at ``iterations``, at a loss below ``tol`` · mean y²/2, or when no step lowers the loss.
    """
    if iterations < 1:
        raise InvalidInput(f"iterations must be at least 1, got {iterations}")
    rows = rows_of(X, y)
    floor = tol * 0.5 * mean_square(rows)
    losses: list[float] = []
    best: Iterate | None = None
    for it in islice(descend(rows, start.W, start.v, sigma, step, batches=batches), iterations + 1):
        losses.append(it.loss)
        if np.isfinite(it.loss):
            best = it
        if progress is not None:
            progress(len(losses) - 1, it.loss)
        # a million times the first loss: it has diverged, and will not come back
        if it.loss <= floor or it.step == 0.0 or not it.loss < 1e6 * losses[0]:
            break
    assert best is not None
    return best, losses
