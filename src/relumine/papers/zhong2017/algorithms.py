"""Zhong, Song, Jain, Bartlett, Dhillon 2017: Algorithms 1 and 2, step by step as in the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.papers.zhong2017.gradient import Iterate, Step, descend
from relumine.papers.zhong2017.magsign import recover_magnitudes
from relumine.papers.zhong2017.moments import Moments, Sample, contract, find_span, moments_inside
from relumine.papers.zhong2017.span import Orders, moment_orders
from relumine.results import InvalidInput
from relumine.tensors.kcl import kcl
from relumine.tensors.symmetric import SymmetricTensor

Array = NDArray[np.float64]

__all__ = ["Moments", "Start", "initialise", "learn", "partition"]

_PROBE = 50  # steps by which starts are compared


@dataclass(frozen=True)
class Start:
    """Algorithm 1's result: W (k, d) and v = ±1 (k,); ``basis`` V (k, d), ``values``: eigenvalues of P̂₂."""

    W: Array
    v: Array
    basis: Array
    values: Array
    orders: Orders


def partition(X: Array, y: Array, parts: int, rng: np.random.Generator) -> list[Sample]:
    """Random disjoint parts of (almost) equal size."""
    return [(X[rows], y[rows]) for rows in np.array_split(rng.permutation(len(y)), parts)]


def initialise(
    X: Array,
    y: Array,
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
    """
    orders = moment_orders(sigma)
    S2, S3, S4 = partition(X, y, 3, rng) if split else [(X, y)] * 3
    alpha = rng.normal(size=X.shape[1]) / np.sqrt(X.shape[1])
    V, values = find_span(S2, width, orders, alpha, rng, moments)  # PowerMethod(P̂₂, k)
    M = moments_inside(S3, V, orders.third, moments)
    inside = _direction(M[orders.third], rng.spawn(1)[0])  # α outside the span only adds noise
    R3 = contract(M[orders.third], inside, 3)  # P̂₃(V, V, V)
    T = moments_inside(S4, V, orders.second, moments) if split else M
    Q1 = contract(T[orders.first], inside, 1).entries
    Q2 = contract(T[orders.second], inside, 2)
    stages: list[dict[str, Any]] = [{}, {"beside": [Q2]}, {"refine": False}, {"plugin": False, "refine": False}]
    starts = []
    for options in stages if select else stages[:1]:
        U = kcl(R3, rng, projections=projections, **options).factors
        W, v = recover_magnitudes(U, Q1, Q2.dense(), sigma, orders, inside)
        starts.append(Start(W @ V, v, V, values, orders))
    return min(starts, key=lambda start: _promise(S4, start, sigma)) if select else starts[0]


def _promise(S: Sample, start: Start, sigma: Activation) -> float:
    """The loss after a few steps of descent inside the span, where a step is cheap.

    The loss of the start itself would favour two nearly parallel units of opposite sign, which fit noise.
    """
    Z, W = S[0] @ start.basis.T, start.W @ start.basis.T
    return min(it.loss for it in islice(descend(Z, S[1], W, start.v, sigma), _PROBE + 1))


def _direction(M: SymmetricTensor, rng: np.random.Generator, tries: int = 30) -> Array:
    """A unit α for which M(I, I, I, α) shows every unit: the largest k-th singular value among random ones.

    A single random α may be nearly orthogonal to one of the weights, which then drowns in the noise.
    """
    candidates = rng.normal(size=(tries if M.order > 3 else 1, M.d))
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)

    def weakest(alpha: Array) -> float:
        return float(np.linalg.svd(contract(M, alpha, 3).flatten(1, 2), compute_uv=False)[-1])

    return np.asarray(max(candidates, key=weakest))


def learn(
    X: Array,
    y: Array,
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
    floor = tol * 0.5 * float(np.mean(y * y))
    losses: list[float] = []
    best: Iterate | None = None
    for it in islice(descend(X, y, start.W, start.v, sigma, step, batches=batches), iterations + 1):
        losses.append(it.loss)
        if np.isfinite(it.loss):
            best = it
        if progress is not None:
            progress(len(losses) - 1, it.loss)
        if it.loss <= floor or it.step == 0.0 or not it.loss < 1e6 * losses[0]:
            break
    assert best is not None
    return best, losses
