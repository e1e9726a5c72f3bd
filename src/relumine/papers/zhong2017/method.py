"""Zhong, Song, Jain, Bartlett, Dhillon 2017, from samples: tensor initialisation, then gradient descent.

Moments are sums over rows, wherever those are. Descent takes hundreds of passes: where rows are not in memory, it runs
on as many of them as memory allows first, and then, from close by, on all of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from relumine import activations
from relumine.activations import Activation
from relumine.arguments import one_of, whole
from relumine.data.holdout import how_many, kept_apart
from relumine.data.sources import Samples, Source, count, room
from relumine.data.views import Whitened, few_of, seen
from relumine.data.whiten import Whitening, summary_of, whitening_of
from relumine.network import Network
from relumine.papers.capabilities import Capabilities, options_of
from relumine.papers.samples import check_varies, checked, mean_square, rms_error
from relumine.papers.zhong2017.algorithms import Start, initialise, learn
from relumine.papers.zhong2017.descent import Step
from relumine.papers.zhong2017.moments import Moments
from relumine.papers.zhong2017.span import moment_orders
from relumine.results import Certificate, InvalidInput, Progress, ProgressCallback, Recovery, Stage, Status, Units


def _has_tensors(sigma: Activation) -> bool:
    """Homogeneous (RecMagSign), with a third or fourth moment (Assumption 5.3)."""
    try:
        return sigma.homogeneity is not None and bool(moment_orders(sigma))
    except InvalidInput:
        return False


_EXACT, _GOOD = 1e-9, 0.1  # held-out error over the deviation of y
_MEMORY = 512e6  # bytes for rows that are brought into memory, the front door's default
_COPIES = 4  # of a row while descent is at work: itself, its float64 chunk, products and derivatives
_PASSES = 30  # steps of descent on all rows where they are elsewhere: from close by, each halves the error or more
_FLOOR = 1e-26  # relative loss at which exact data are fitted to rounding error


@dataclass(frozen=True)
class ZhongRecovery(Recovery):
    """A recovery with the network of Algorithm 1, ``start``, and the losses of the descent from there."""

    start: Network | None = None
    losses: tuple[float, ...] = ()


def recover_zhong(
    X: ArrayLike | Source,
    y: ArrayLike | None,
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
    memory: float = _MEMORY,
    rng: int | np.random.Generator | None = None,
    progress: ProgressCallback | None = None,
) -> ZhongRecovery:
    """Recover f(x) = Σ_i v_i σ(w_i·x), v_i = ±1, by Algorithms 1 and 2 of Zhong et al. 2017.

    Parameters
    ----------
    X, y : (n, d), (n,) arrays, or a source and None
        Samples with x ~ N(0, I) (or centred Gaussian, with ``whiten``), labels without affine part or bias. A source
        (:func:`relumine.data.sources.open_source`) may be larger than memory.
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
    memory : float, default 512e6
        Bytes for the rows of a source that descent may bring into memory.
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
    rows = _check(checked(X, y, sigma, CAPABILITIES), width, moments, iterations)
    rng = np.random.default_rng(rng)
    clock = time.perf_counter()
    stages: list[Stage] = []
    losses: list[float] = []

    used, held = kept_apart(rows, rng, how_many(count(rows)))
    white = _centred(used, whiten)
    Z = used if white is None else seen(used, Whitened(white))
    start = initialise(Z, None, width, sigma, rng, moments=moments, split=split, projections=projections, select=select)
    stages.append(Stage("initialise", time.perf_counter() - clock, None, f"{moments} moments, orders {start.orders}"))
    end = start
    if iterations:
        few = few_of(Z, room(rows, memory, _COPIES), rng.spawn(1)[0])
        end, losses = _descend(few, start, sigma, stages, step, iterations, batches, progress)
        if not Z.resident:  # from close by a few steps on all rows are enough, and each is a pass over them
            end, more = _descend(Z, end, sigma, stages, step, min(iterations, _PASSES), batches, progress)
            losses += more
    net = Network(end.W, np.zeros(width), start.v, sigma)
    net = (net if white is None else white.undo(net)).scaled()
    return _report(net, start, losses, held, stages, _note(Z))


CAPABILITIES = Capabilities("zhong", activations=_has_tensors, options=options_of(recover_zhong))


def _descend(
    rows: Source,
    start: Start,
    sigma: Activation,
    stages: list[Stage],
    step: Step,
    iterations: int,
    batches: int,
    progress: ProgressCallback | None,
) -> tuple[Start, list[float]]:
    """Algorithm 2 on these rows: where it ends, as the start of what follows, and the losses."""
    clock, unit = time.perf_counter(), 0.5 * mean_square(rows)

    def report(t: int, loss: float) -> None:
        if progress is not None:
            progress(Progress("descent", t, loss / unit, len(start.v), time.perf_counter() - clock))

    end, losses = learn(
        rows, None, start, sigma, step=step, iterations=iterations, batches=batches, tol=_FLOOR, progress=report
    )
    note = f"{len(losses) - 1} steps" + ("" if rows.resident else f" on all {count(rows)} rows")
    stages.append(Stage("descent", time.perf_counter() - clock, end.loss / unit, note))
    return replace(start, W=end.W), losses


def _check(rows: Source, width: int, moments: str, iterations: int) -> Source:
    """Everything that can be refused before any long work."""
    n, d = count(rows), rows.d
    if not 1 <= width <= d:
        problem = f"method 'zhong' needs 1 ≤ width ≤ d = {d} (independent weights), got {width}"
        raise InvalidInput(problem, argument="width", remedy="use method='auto'")
    one_of("moments", moments, get_args(Moments))
    whole("iterations", iterations, 0)
    if n <= 2 * d + 10:  # fewer could not even give the affine part and a second moment of full rank
        raise InvalidInput(
            f"{n} samples are too few for {d} inputs; the method needs many times k·d = {width * d} "
            "(method='auto' about 5 times)"
        )
    return rows


def _centred(rows: Source, whiten: bool) -> Whitening | None:
    """The whitening without its shift (a unit without bias would get one), if asked; y must vary in any case."""
    if not whiten:
        check_varies(summary_of(rows))
        return None
    found, summary = whitening_of(rows)
    check_varies(summary)
    # six standard errors: by chance one input in 5·10⁸ would be refused
    if np.abs(found.mean).max() > 6.0 * np.sqrt(np.diag(summary.covariance).max() / summary.n):
        raise InvalidInput("method 'zhong' needs inputs of mean zero (its units have no bias); use method='auto'")
    return Whitening(np.zeros_like(found.mean), found.L)


def _note(rows: Source) -> tuple[str, ...]:
    if rows.resident:
        return ()
    return (f"the rows are not in memory: descent ran on those that fit, then at most {_PASSES} steps on all of them",)


def _report(
    net: Network, start: Start, losses: list[float], held: Samples, stages: list[Stage], notes: tuple[str, ...]
) -> ZhongRecovery:
    residual = rms_error(net, held) / (float(np.std(held.y)) or 1.0)
    # eigenvalues of P̂₂ come by decreasing size: the last of the k is the weakest direction of the span
    drop = float(np.abs(start.values[-1]) / np.abs(start.values[0]))
    status, message = _verdict(net.m, residual, held.n)
    every = tuple(range(net.m)) if status.ok else ()
    reflection = net.activation.reflection
    odd_or_even = reflection is not None and reflection.slope == 0.0
    certificate = Certificate(
        residual=residual,
        rows=held.n,
        proves="how well the network predicts rows it never saw" if status.ok else "",
        does_not_prove="that each parameter is exact" if status is Status.ESTIMATE else "",
        notes=(
            f"smallest over largest eigenvalue of the second moment {drop:.2g}: small means dependent weights",
            *notes,
        ),
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


def _verdict(units: int, residual: float, rows: int) -> tuple[Status, str]:
    """Status and words, from the error on rows never used over the deviation of y."""
    error = f"{residual:.1e} of the spread of y"
    if residual <= _EXACT:
        return Status.EXACT, f"{units} units, error {error} on {rows} rows never used."
    if residual <= _GOOD:
        return Status.ESTIMATE, f"{units} units; the descent stopped at an error of {error} on rows never used."
    return Status.NOT_RECOVERED, (
        f"The network misses {residual:.0%} of the standard deviation of y on rows never used. The start was too "
        "far off (more samples), or the target has biases, an affine part or another width (method='auto')."
    )
