"""Decode w from y = Σ_k a_k φ(w_k + x_k): Oymak & Asif 2018, and damped Gauss–Newton on the same loss.

The paper's box: w_{τ+1} = P_Θ(w_τ − μ ∇L̂_τ(w_τ)), with the centred gradient of Eq. (4), P_Θ clipping to ±Θ,
and μ = 2T(Θ)/(9S(Θ)²). Gauss–Newton solves the same equations in some ten steps and from fewer rows.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.arguments import generator, is_number, one_of, vector, whole
from relumine.arrays import Array, slices
from relumine.data.holdout import hold_out, how_many
from relumine.data.sources import as_samples
from relumine.papers.oymak2018.additive import Additive, descend, gauss_newton, largest_eigenvalue
from relumine.papers.oymak2018.judge import judge, size, too_few
from relumine.papers.oymak2018.probes import Tails, column_tails
from relumine.papers.oymak2018.result import Decoding, DecodingFailed
from relumine.results import (
    InvalidInput,
    Progress,
    ProgressCallback,
    RelumineWarning,
    Stage,
    Status,
)

Method = Literal["gauss-newton", "centered", "plain"]


HUGE = 1e100  # squares of larger numbers overflow when they are summed
BLIND = 1e-3  # a column with T(Θ) below this hardly ever crosses from −Θ to Θ


def decode(
    X: ArrayLike,
    y: ArrayLike,
    bound: ArrayLike,
    method: Method = "gauss-newton",
    *,
    weights: ArrayLike | None = None,
    slope: float = 0.0,
    step: float | Literal["auto", "theorem"] = "auto",
    batches: int = 1,
    start: ArrayLike | None = None,
    starts: int = 5,
    max_iter: int | None = None,
    rng: int | np.random.Generator | None = 0,
    on_failure: Literal["raise", "return"] = "raise",
    progress: ProgressCallback | None = None,
) -> Decoding:
    """Recover w from y_i = Σ_k a_k φ(w_k + x_ik), φ the (leaky) ReLU.

    Parameters
    ----------
    X : (n, d) array
        Known probes, one a row. A memory map is read in blocks of rows and never copied.
    y : (n,) array
        Labels.
    bound : float or (d,) array
        Θ with |w_k| ≤ Θ. Gauss–Newton also takes ``numpy.inf``.
    method : "gauss-newton", "centered" or "plain"
        Damped Gauss–Newton; the paper's centred projected gradient; the same without centring.
    weights : (d,) array, optional
        Known non-zero output weights a; ones if not given.
    slope : float
        Slope of φ left of its kink, in [−1, 1): 0 is the ReLU, −1 the absolute value.
    step : "auto", "theorem" or float
        Gradient methods: 1.5/λ_max at the start, halved whenever the loss rises; the theorem's; or a fixed μ.
    batches : int
        Gradient methods: split the rows in K batches and take K steps, each on its own batch (Theorem 3.1).
        1 uses all rows in every step.
    start : (d,) array, optional
        First w; zero if not given.
    starts : int
        Gauss–Newton fits at most, each from its own start and with its own held-out rows.
    max_iter : int, optional
        Steps of one fit at most: 50 (Gauss–Newton), 1000 (gradient).
    rng : int or Generator
        Chooses held-out rows and further starts.
    on_failure : "raise" or "return"
        Raise :class:`DecodingFailed`, or return the failed :class:`Decoding` with its status.
    progress : callable, optional
        Called with a :class:`~relumine.results.Progress` after every step.

    Returns
    -------
    Decoding

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> w = rng.uniform(-1, 1, 20)
    >>> X = 5 * rng.standard_normal((40, 20))
    >>> found = decode(X, np.maximum(w + X, 0).sum(axis=1), bound=1.0)
    >>> found.status
    <Status.EXACT: 'exact'>
    >>> bool(np.abs(found.w - w).max() < 1e-12)
    True
    """
    cap = (50 if method == "gauss-newton" else 1000) if max_iter is None else max_iter
    options = _Options(method, step, batches, cap, progress)
    random = generator(rng)
    _check_options(options, slope, starts, on_failure)
    problem, theta = _door(X, y, bound, weights, slope)
    if batches > 1 and problem.n < 10 * batches:
        raise InvalidInput(f"{problem.n} rows are too few for {batches} batches of at least 10", argument="batches")
    first = np.zeros(problem.d) if start is None else vector("start", start, problem.d)
    began = time.perf_counter()
    probe = _probes(problem, theta)
    stages = [Stage("probes", time.perf_counter() - began, note=f"T={probe.T:.3g} S={probe.S:.3g}")]
    if problem.n < problem.d + 2:  # d unknowns, one row to check, and one more so that chance cannot fit it
        found = too_few(problem, first)
    else:
        found = _attempts(problem, theta, first, starts, options, probe, random, stages)
    found = replace(found, tails=probe, stages=tuple(stages), method=method)
    if on_failure == "raise" and not found.ok:
        raise DecodingFailed(found)
    return found


@dataclass(frozen=True)
class _Options:
    method: Method
    step: float | Literal["auto", "theorem"]
    batches: int
    max_iter: int
    progress: ProgressCallback | None

    @property
    def centred(self) -> bool:
        return self.method == "centered"


def _attempts(
    problem: Additive,
    theta: Array,
    w: Array,
    starts: int,
    options: _Options,
    probe: Tails,
    rng: np.random.Generator,
    stages: list[Stage],
) -> Decoding:
    """Fit, certify on rows held out of that fit, and start again elsewhere while neither exact nor noise."""
    best: Decoding | None = None
    reach = np.minimum(theta, 2.0 * float(np.std(problem.X[: min(len(problem.y), 1000)])))
    for attempt in range(starts if options.method == "gauss-newton" else 1):
        part = replace(problem, out=_hold_out(problem, rng))
        began = time.perf_counter()
        w_fit, history, mu = _fit(part, theta, np.clip(w, -theta, theta), options, probe)
        stages.append(Stage(f"fit {attempt + 1}", time.perf_counter() - began, float(history[-1])))
        began = time.perf_counter()
        found = judge(problem, part, theta, w_fit, options.method, rng.uniform(-0.5, 0.5, problem.d) * reach)
        stages.append(Stage(f"certificate {attempt + 1}", time.perf_counter() - began, note=found.status.value))
        found = replace(found, history=history, step=mu)
        # an exact but undetermined fit is final; an undetermined stop on the way is not
        if found.ok or (found.status is Status.UNDERDETERMINED and found.certificate.residual < 1e-9):
            return found
        if best is None or history[-1] < best.history[-1]:
            best = found
        w = rng.uniform(-0.5, 0.5, problem.d) * reach
    assert best is not None  # starts ≥ 1
    return best


def _hold_out(problem: Additive, rng: np.random.Generator) -> NDArray[np.bool_]:
    """2 % of the rows, at least 2 and at most 1000, but never so many that the fit has fewer than d + 1."""
    n = len(problem.y)
    out = np.zeros(n, dtype=bool)
    out[hold_out(n, rng, how_many(n, least=2, most=1000, leave=problem.d + 1))] = True
    return out


def _fit(problem: Additive, theta: Array, w: Array, options: _Options, probe: Tails) -> tuple[Array, Array, float]:
    """Run one iteration to its end: (w, relative residuals from the start on, last step size)."""
    if options.method == "gauss-newton":
        iterates, mu, steps = gauss_newton(problem, w, theta), float("nan"), options.max_iter
    else:
        mu = _step_size(problem, w, options, probe)
        parts = _batches(problem, options.batches)
        iterates = descend(parts, w, theta, mu, options.centred, safeguard=options.step == "auto" and len(parts) == 1)
        steps = options.max_iter if len(parts) == 1 else len(parts)
    deviation = float(np.std(problem.y)) or 1.0
    rounding = np.finfo(np.float64).eps * np.sqrt(problem.d) * size(problem, w)
    history: list[float] = []
    began, last = time.perf_counter(), w
    for iterate in islice(iterates, steps + 1):
        moved, last = float(np.abs(iterate.w - last).max()), iterate.w
        history.append(iterate.rms / deviation)
        mu = mu if options.method == "gauss-newton" else iterate.step
        if options.progress is not None:
            options.progress(
                Progress(options.method, len(history) - 1, history[-1], seconds=time.perf_counter() - began)
            )
        # rounding of a sum of d terms, or a fixed point of the piecewise linear map: nothing moves any more
        if iterate.rms <= rounding or (len(history) > 1 and moved <= 1e-13 * float(np.abs(last).max())):
            break
    return last, np.array(history), mu


def _step_size(problem: Additive, w: Array, options: _Options, probe: Tails) -> float:
    if options.step == "theorem":
        if not probe.T > 0.0:
            raise InvalidInput(
                "step='theorem' is zero here: T(bound) = 0, some column never crosses ±bound; "
                "use step='auto', wider probes or a smaller bound"
            )
        return probe.step / (1.0 - problem.slope) ** 2  # Lemma 3.3 scales with (1 − s)²
    if options.step == "auto":
        # a zero curvature moves nothing whatever the step; D'D/n is at least of order 1/n otherwise
        return 1.5 / max(largest_eigenvalue(problem, w, options.centred), 1e-12)
    return float(options.step)


def _batches(problem: Additive, count: int) -> list[Additive]:
    if count == 1:
        return [problem]
    edges = np.linspace(0, len(problem.y), count + 1).astype(int)
    pieces = [slice(i, j) for i, j in pairwise(edges)]
    return [
        replace(problem, X=problem.X[p], y=problem.y[p], out=None if problem.out is None else problem.out[p])
        for p in pieces
    ]


def _probes(problem: Additive, theta: Array) -> Tails:
    T, S = column_tails(problem.X, theta)
    # below 3/√BLIND rows a single column may show nothing by chance: look at all of them together
    seen = T if problem.n > 3.0 / np.sqrt(BLIND) else np.full_like(T, T.mean())
    blind = np.flatnonzero(seen < BLIND)
    if blind.size and np.isfinite(theta).all():
        shown = ", ".join(map(str, blind[:5])) + (", …" if blind.size > 5 else "")
        warnings.warn(
            f"the probes hardly see the bound: T(bound) < {BLIND} in {blind.size} of {problem.d} columns "
            f"({shown}); coordinates near ±bound may never switch there. Use wider probes or a smaller bound",
            RelumineWarning,
            stacklevel=3,
        )
    return Tails(float(T.min()), float(S.max()))


def _door(
    X: ArrayLike, y: ArrayLike, bound: ArrayLike, weights: ArrayLike | None, slope: float
) -> tuple[Additive, Array]:
    rows: NDArray[np.floating]
    if isinstance(X, np.memmap) and X.ndim == 2 and X.dtype == np.float32 and X.shape[1] > 0:
        rows = np.asarray(X)  # as_samples would make a double precision copy of the file
        labels = as_samples(np.zeros((len(X), 1)), y).y
        for s in slices(len(X), 4096):
            if not np.isfinite(X[s]).all():
                where = f"rows {s.start} to {s.stop - 1}"
                raise InvalidInput(f"X has NaN or infinite values in {where}; drop or fill such rows")
    else:
        samples = as_samples(X, y)
        rows, labels = samples.X, samples.y
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise InvalidInput(f"y must have shape (n,), one label a row; got {labels.shape}")
    d = rows.shape[1]
    if max(rows.max(), -rows.min(), labels.max(), -labels.min()) > HUGE:
        raise InvalidInput(f"X or y holds values beyond {HUGE:g}, whose squares overflow; rescale them")
    theta = vector("bound", bound, d, finite=False)
    if not (theta > 0.0).all():
        raise InvalidInput("bound must be positive: it is Θ in |w_k| ≤ Θ")
    a = np.ones(d) if weights is None else vector("weights", weights, d)
    if (a == 0.0).any():
        raise InvalidInput("weights must be non-zero: a coordinate with weight 0 leaves no trace in y; drop its column")
    return Additive(rows, np.ascontiguousarray(labels.reshape(len(labels))), a, float(slope)), theta


def _check_options(options: _Options, slope: float, starts: int, on_failure: str) -> None:
    """Whatever can be refused before the rows are looked at."""
    one_of("method", options.method, get_args(Method))
    one_of("on_failure", on_failure, ("raise", "return"))
    if isinstance(options.step, str):
        one_of("step", options.step, ("auto", "theorem"))
    elif not (is_number(options.step) and 0.0 < options.step < float("inf")):
        raise InvalidInput(
            f"step must be 'auto', 'theorem' or a finite number above 0, got {options.step!r}", argument="step"
        )
    if not (is_number(slope) and -1.0 <= slope < 1.0):
        raise InvalidInput(
            f"slope must lie in [-1, 1), got {slope!r}: at 1 the model is linear, only Σ a_k w_k is seen",
            argument="slope",
        )
    for name, value in (("batches", options.batches), ("starts", starts), ("max_iter", options.max_iter)):
        whole(name, value, 1)
