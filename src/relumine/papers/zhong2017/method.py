"""Zhong, Song, Jain, Bartlett, Dhillon 2017, from samples: tensor initialisation, then gradient descent."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine import activations
from relumine.activations import Activation
from relumine.data.sources import Samples, as_samples
from relumine.data.whiten import Whitening, whitening
from relumine.network import Network
from relumine.papers.zhong2017.algorithms import Moments, Start, initialise, learn
from relumine.papers.zhong2017.gradient import Step
from relumine.papers.zhong2017.span import moment_orders
from relumine.results import Certificate, InvalidInput, Progress, ProgressCallback, Recovery, Stage, Status, Units

Array = NDArray[np.float64]

__all__ = ["Start", "ZhongRecovery", "initialise", "learn", "recover_zhong"]

_EXACT, _GOOD = 1e-9, 0.1  # held-out error over the deviation of y


@dataclass(frozen=True)
class ZhongRecovery(Recovery):
    """A recovery with the network of Algorithm 1, ``start``, and the losses of the descent from there."""

    start: Network | None = None
    losses: tuple[float, ...] = ()


def recover_zhong(
    X: ArrayLike,
    y: ArrayLike,
    width: int,
    *,
    activation: str | Activation = "squared_relu",
    moments: Moments = "debiased",
    split: bool = False,
    projections: int = 100,
    select: bool = True,
    step: Step = "search",
    iterations: int = 2000,
    batches: int = 1,
    whiten: bool = False,
    rng: int | np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
) -> ZhongRecovery:
    """Recover f(x) = Σ_i v_i σ(w_i·x), v_i = ±1, by Algorithms 1 and 2 of Zhong et al. 2017.

    Parameters
    ----------
    X, y : (n, d), (n,) arrays
        Samples with x ~ N(0, I) (or centred Gaussian, with ``whiten``), labels without affine part or bias.
    width : int
        k ≤ d.
    activation : str or Activation
        Homogeneous, with a non-vanishing third or fourth moment: ReLU, leaky ReLU, squared ReLU.
    moments : {"debiased", "plain", "regressed"}
        How moments are estimated; "plain" is the paper's, "debiased" finds span and fit in turn.
    split : bool
        The paper's partition of the rows: a third each for subspace, tensor and signs.
    projections : int
        L, random projections in KCL.
    select : bool
        Keep the stage of KCL from whose start descent gets furthest (the paper keeps the last).
    step : float, "theorem" or "search"
        Step size of the descent: a number, Algorithm 2's η, or backtracking.
    iterations : int
        Most steps of descent; 0 gives the tensor estimate itself.
    batches : int
        Resampling: part t of so many parts in step t.
    whiten : bool
        Divide x by its covariance first (the mean must be zero: there are no biases).
    rng : int or Generator, optional
        Same seed, same answer.
    progress : callable, optional
        Called with a :class:`relumine.results.Progress` after every step of the descent.

    Returns
    -------
    Recovery
        EXACT where rows never used are reproduced to rounding error, else ESTIMATE or NOT_RECOVERED.

    Examples
    --------
    >>> from relumine import metrics, planted
    >>> truth = planted.network(d=8, m=3, rng=0, family="conditioned", activation="squared_relu")
    >>> found = recover_zhong(*planted.sample(truth, 3000, rng=1), width=3, rng=0)
    >>> found.status.value, metrics.parameter_error(truth, found.network) < 1e-8
    ('exact', True)
    """
    sigma = activations.get(activation)
    samples = _check(as_samples(X, y), width, sigma, moments, iterations)
    rng = np.random.default_rng(rng)
    clock, stages = time.perf_counter(), []

    (rows, target), (held_X, held_y) = _set_aside(samples, rng)
    white = _centred(rows) if whiten else None
    Z = rows if white is None else white.apply(rows)
    start = initialise(
        Z, target, width, sigma, rng, moments=moments, split=split, projections=projections, select=select
    )
    stages.append(Stage("initialise", time.perf_counter() - clock, None, f"{moments} moments, orders {start.orders}"))

    clock, W = time.perf_counter(), start.W
    losses: list[float] = []
    norm = 0.5 * float(np.mean(target * target))

    def report(t: int, loss: float) -> None:
        if progress is not None:
            progress(Progress("descent", t, loss / norm, width, time.perf_counter() - clock))

    if iterations:
        end, losses = learn(
            Z, target, start, sigma, step=step, iterations=iterations, batches=batches, tol=1e-26, progress=report
        )
        W = end.W
        stages.append(Stage("descent", time.perf_counter() - clock, end.loss / norm, f"{len(losses) - 1} steps"))
    net = Network(W, np.zeros(width), start.v, sigma)
    net = (net if white is None else white.undo(net)).scaled()
    return _report(net, start, losses, held_X, held_y, stages)


def _check(samples: Samples, width: int, sigma: Activation, moments: str, iterations: int) -> Samples:
    """Everything that can be refused before any long work."""
    if samples.y.ndim != 1:
        hint = "pass y.ravel()" if samples.y.shape[1] == 1 else "recover one output at a time, or use method='auto'"
        raise InvalidInput(f"method 'zhong' takes one output, y has shape {samples.y.shape}; {hint}")
    if not 1 <= width <= samples.d:
        raise InvalidInput(
            f"method 'zhong' needs 1 ≤ width ≤ d = {samples.d} (independent weights), got {width}; use method='auto'"
        )
    if sigma.homogeneity is None:
        raise InvalidInput(
            f"method 'zhong' finds magnitudes for homogeneous activations only (relu, leaky_relu, squared_relu), "
            f"{sigma.name} is not; use method='auto'"
        )
    moment_orders(sigma)
    if moments not in get_args(Moments):
        raise InvalidInput(f"unknown moments {moments!r}; known: {', '.join(get_args(Moments))}")
    if iterations < 0:
        raise InvalidInput(f"iterations must be at least 0, got {iterations}")
    if samples.n <= 2 * samples.d + 10:
        raise InvalidInput(
            f"{samples.n} samples are too few for {samples.d} inputs; the method needs many times k·d = "
            f"{width * samples.d} (method='auto' about 5 times)"
        )
    if not np.ptp(samples.y) > 1e-12 * float(np.abs(samples.y).max()):
        raise InvalidInput("y is constant: there is no network to recover; check that y is the right column")
    return samples


def _set_aside(samples: Samples, rng: np.random.Generator) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """A random fiftieth of the rows (4 to 2000) is kept for the certificate."""
    spare = int(np.clip(samples.n // 50, 4, 2000))
    held = np.zeros(samples.n, dtype=bool)
    held[rng.choice(samples.n, spare, replace=False)] = True
    return (samples.X[~held], samples.y[~held]), (samples.X[held], samples.y[held])


def _centred(X: Array) -> Whitening:
    """The whitening without its shift: a unit without bias would get one."""
    found = whitening(X)
    if np.abs(found.mean).max() > 6.0 * np.sqrt(np.diag(found.L @ found.L.T).max() / len(X)):
        raise InvalidInput("method 'zhong' needs inputs of mean zero (its units have no bias); use method='auto'")
    return Whitening(np.zeros_like(found.mean), found.L)


def _report(net: Network, start: Start, losses: list[float], X: Array, y: Array, stages: list[Stage]) -> ZhongRecovery:
    residual = float(np.sqrt(np.mean((net(X) - y) ** 2)) / (np.std(y) or 1.0))
    drop = float(np.abs(start.values[-1]) / np.abs(start.values[0]))
    if residual <= _EXACT:
        status, message = Status.EXACT, f"{net.m} units, relative error {residual:.1e} on {len(y)} rows never used."
    elif residual <= _GOOD:
        status = Status.ESTIMATE
        message = f"{net.m} units; the descent stopped at relative error {residual:.1e} on rows never used."
    else:
        status = Status.NOT_RECOVERED
        message = (
            f"The network misses {residual:.0%} of the standard deviation of y on rows never used. The start was too "
            "far off (more samples), or the target has biases, an affine part or another width (method='auto')."
        )
    every = tuple(range(net.m)) if status.ok else ()
    reflection = net.activation.reflection
    odd_or_even = reflection is not None and reflection.slope == 0.0
    certificate = Certificate(
        residual=residual,
        rows=len(y),
        proves="how well the network predicts rows it never saw" if status.ok else "",
        does_not_prove="that each parameter is exact" if status is Status.ESTIMATE else "",
        notes=(f"smallest over largest eigenvalue of the second moment {drop:.2g}: small means dependent weights",),
    )
    return ZhongRecovery(
        network=net,
        status=status,
        message=message,
        certificate=certificate,
        units=Units((), every) if odd_or_even else Units(every),
        stages=tuple(stages),
        method="zhong",
        start=Network(start.W, np.zeros(net.m), start.v, net.activation),
        losses=tuple(losses),
    )
