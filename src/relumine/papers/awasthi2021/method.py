"""Awasthi, Tang, Vijayaraghavan 2021, from samples: moments, Algorithm 6 or 4, and Algorithm 5 where units hide.

Samples touch the method through sums over rows alone, so they may be arrays or a source larger than memory.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from relumine.activations import Activation
from relumine.arguments import one_of
from relumine.arrays import Array
from relumine.data.holdout import how_many, kept_apart
from relumine.data.moments import Estimator, features_needed
from relumine.data.sources import Chunk, Samples, Source, count
from relumine.data.views import Less, Whitened, seen
from relumine.data.whiten import Summary, Whitening, summary_of, whitening_of
from relumine.network import Network
from relumine.papers.awasthi2021.algorithms import UnitTable, algorithm_4, algorithm_6, check_width, visible
from relumine.papers.awasthi2021.readout import fit_readout
from relumine.papers.awasthi2021.subspace import SubspaceMoments, estimate_in_subspace
from relumine.papers.awasthi2021.thresholds import Thresholds
from relumine.papers.capabilities import Capabilities, options_of
from relumine.papers.samples import check_varies, checked, rms_error
from relumine.results import Certificate, InvalidInput, Recovery, Stage, Status, Units
from relumine.tensors.jennrich import RankOneTerms

Goal = Literal["auto", "parameters", "function"]


_SURE = 0.1  # a sign whose margin (½ is ideal) is smaller is a guess
_GOOD_FIT = 0.3  # a held-out residual below this counts as an estimate of the network,
_CLOSE_FIT = 0.05  # and below this as one even with units missing: what they add is affine
_STANDARD = 6.0  # standard errors within which mean and covariance count as those of N(0, I)
_CHECKS = 10  # held-out rows at least: of 150 problems with fewer, 18 seemed to fit, most of them wrong by 1 or more
_HELD_OUT = 10_000  # rows tell a residual to one percent; more would be missed by the moments


@dataclass(frozen=True)
class AwasthiRecovery(Recovery):
    """A recovery with what Algorithm 4 worked with: thresholds, errors of the tensors, the two decompositions."""

    thresholds: Thresholds | None = None
    tensor_errors: Array | None = None
    terms: tuple[RankOneTerms, ...] = ()


def recover_awasthi(
    X: ArrayLike | Source,
    y: ArrayLike | None,
    width: int,
    *,
    order: int = 1,
    estimator: Estimator = "regressed",
    thresholds: Mapping[str, Any] | None = None,
    rng: int | np.random.Generator | None = None,
    activation: str | Activation = "relu",
    goal: Goal = "auto",
    whiten: bool | None = None,
    reduce: bool | None = None,
) -> Recovery:
    """Recover a ReLU network from samples by its Hermite tensors (Gaussian inputs).

    Parameters
    ----------
    X, y : (n, d), (n,) arrays, or a source and None
        Samples; x must be Gaussian, of any mean and covariance. A source (:func:`relumine.data.sources.open_source`)
        may be larger than memory: about eight passes over it.
    width : int
        m ≤ C(d+ℓ−1, ℓ).
    order : int
        ℓ: 1 for linearly independent directions (m ≤ d), more for overcomplete networks.
    estimator : {"regressed", "debiased", "plain"}
        How the tensors are estimated; ``plain`` is the paper's Eq. (6).
    thresholds : mapping, optional
        Any of eta0 … eta3 (:class:`~relumine.papers.awasthi2021.thresholds.Thresholds`); the others come from the
        estimated sampling error.
    rng : int or Generator, optional
        Same seed, same answer.
    activation : str
        Must be ReLU.
    goal : {"auto", "parameters", "function"}
        ``parameters``: the tensors' own estimates (Algorithm 6, or 4 with the affine part of T₀ and T₁).
        ``function``: output weights and affine part by least squares (Algorithm 5). ``auto``: the former if
        every unit was found with its sign, else the latter.
    whiten : bool, optional
        Make the inputs standard by their mean and covariance; None: only if they are not already.
    reduce : bool, optional
        Work in the span of the weights (m < d); None: whenever m < d.

    Returns
    -------
    Recovery
        With status ESTIMATE, UNDERDETERMINED (the samples show no unit) or NOT_RECOVERED.

    Examples
    --------
    >>> from relumine import metrics, planted
    >>> truth = planted.network(d=6, m=3, rng=1)
    >>> found = recover_awasthi(*planted.sample(truth, 40_000, rng=2), width=3, rng=0)
    >>> found.status.value, found.units.recovered, metrics.parameter_error(truth, found.network) < 0.2
    ('estimate', (0, 1, 2), True)
    """
    rows = _check(checked(X, y, activation, CAPABILITIES), width, order, estimator, thresholds, goal, reduce)
    rng = np.random.default_rng(rng)
    stages: list[Stage] = []
    clock = time.perf_counter()

    def stage(name: str, note: str = "") -> None:
        nonlocal clock
        stages.append(Stage(name, time.perf_counter() - clock, note=note))
        clock = time.perf_counter()

    used, held = kept_apart(rows, rng, _held_out(count(rows)))
    carry, summary = _standardise(used, whiten)
    deviation = check_varies(summary)
    Z = used if carry is None else seen(used, Whitened(carry))
    stage("inputs", "standard already" if carry is None else "whitened by their mean and covariance")
    moments = estimate_in_subspace(Z, 2 * order + 2, estimator, width if reduce is not False else None)
    stage("moments", f"{estimator}, {len(moments.basis)} of {rows.d} dimensions")

    # thresholds from the estimated sampling errors, where the user gives none
    eta = Thresholds.from_errors(moments.errors, len(moments.basis), order).updated(thresholds)
    algorithm = algorithm_6 if order == 1 else algorithm_4
    units = algorithm(moments.tensors, order, width, eta, rng, errors=moments.errors)
    units = units.only(visible(units, summary.n))
    stage("decomposition", f"{units.m} of {width} units")

    net, sure = _assemble(units, moments, Z, goal, deviation, width)
    net = net if carry is None else carry.undo(net)
    stage("network", "Algorithm 6" if sure else "affine part by regression")
    found = _Found(net, units, moments, eta, sure, width, order, summary.n)
    return _report(found, held, _notes(units, used, summary), tuple(stages))


CAPABILITIES = Capabilities("awasthi", activations=("relu",), biases=True, options=options_of(recover_awasthi))


def _check(
    rows: Source,
    width: int,
    order: int,
    estimator: Estimator,
    thresholds: Mapping[str, Any] | None,
    goal: str,
    reduce: bool | None,
) -> Source:
    """Everything that can be refused before any long work."""
    one_of("estimator", estimator, get_args(Estimator))
    one_of("goal", goal, get_args(Goal))
    check_width(width, rows.d, order)
    Thresholds.from_errors(np.ones(2 * order + 3), rows.d, order).updated(thresholds)
    inside = rows.d if reduce is False else min(width, rows.d)  # dimensions in which tensors are estimated
    needed = max(features_needed(inside, 2 * order + 2, estimator), rows.d + 1)
    n = count(rows)
    if n - _held_out(n) <= needed:
        raise InvalidInput(
            f"{n} samples are too few: estimator={estimator!r} at order {order} fits {needed} "
            "coefficients, and some rows are held out. Collect at least "
            f"{needed + needed // 5 + 10} (several times that for accuracy), "
            "or use estimator='debiased' or method='auto'"
        )
    return rows


def _held_out(n: int) -> int:
    """A tenth of the rows, at least two and at most 10⁴, is kept aside for the certificate."""
    return how_many(n, share=0.1, least=2, most=_HELD_OUT)


def _standardise(rows: Source, whiten: bool | None) -> tuple[Whitening | None, Summary]:
    """The whitening to use, or None where mean and covariance are standard within six standard errors."""
    if whiten is False:
        return None, summary_of(rows)
    found, summary = whitening_of(rows)
    apart = max(
        float(np.abs(found.mean).max()) * np.sqrt(summary.n),
        float(np.abs(summary.covariance - np.eye(rows.d)).max()) * np.sqrt(summary.n / 2.0),
    )
    return (found if whiten or apart > _STANDARD else None), summary


def _assemble(
    units: UnitTable, moments: SubspaceMoments, Z: Source, goal: Goal, deviation: float, width: int
) -> tuple[Network, bool]:
    """Algorithm 6's network when it found everything and fits; else Algorithm 5 makes the best of the units.

    The second answer says whether every unit has its own sign and weight from the tensors.
    """
    sure = units.m == width and units.margin is not None and bool((units.margin > _SURE).all())
    W = units.W @ moments.basis
    net = _from_tensors(Network(W, units.b, units.a), Z, sure)
    # nine tenths of the limit: the verdict below is on other rows, which must not overturn what is decided here
    if goal == "function" or (goal == "auto" and not (sure and rms_error(net, Z) <= 0.9 * _GOOD_FIT * deviation)):
        return fit_readout(Z, W, units.b, units.a).merge(1e-12), False
    return net, sure


def _from_tensors(net: Network, Z: Source, sure: bool) -> Network:
    """Algorithm 6's network; where a sign or a unit is missing, with the affine part that fits y best."""
    if sure:
        return net
    rest = fit_readout(seen(Z, Less(net)), np.zeros((0, Z.d)), np.zeros(0), np.zeros(0))
    return net.replace(v=rest.v, c=rest.c)


@dataclass(frozen=True)
class _Found:
    """What the steps found, for the report."""

    net: Network
    units: UnitTable
    moments: SubspaceMoments
    eta: Thresholds
    sure: bool
    width: int
    order: int
    n: int


def _report(found: _Found, held: Samples, notes: tuple[str, ...], stages: tuple[Stage, ...]) -> AwasthiRecovery:
    net, units, moments = found.net, found.units, found.moments
    deviation = float(np.std(held.y)) or 1.0
    residual = rms_error(net, held) / deviation
    polynomial = float(np.sqrt(moments.residual)) / deviation if np.isfinite(moments.residual) else 0.0
    status, message = _verdict(found, residual, polynomial, held.n)
    rest = f"its affine part is in v and c, the rest in the residual ({residual:.1%})"
    absorbed = (f"a unit not seen above the sampling error: {rest}",) * (found.width - units.m)
    signed = tuple(np.flatnonzero(units.margin > _SURE).tolist()) if found.sure and units.margin is not None else ()
    return AwasthiRecovery(
        network=net,
        status=status,
        message=message,
        certificate=Certificate(
            residual=residual,
            rows=held.n,
            proves="how well the network predicts rows it never saw",
            does_not_prove="that each parameter is exact: they carry the sampling error of the moments",
            notes=notes,
        ),
        units=Units(signed, tuple(i for i in range(net.m) if i not in signed), absorbed),
        stages=stages,
        method="awasthi",
        thresholds=found.eta,
        tensor_errors=moments.errors,
        terms=units.terms,
    )


def _verdict(found: _Found, residual: float, polynomial: float, rows: int) -> tuple[Status, str]:
    """Status and words, from the residual on ``rows`` held out and that of the polynomial of degree 2ℓ+2."""
    m, width = found.units.m, found.width
    # as good as the polynomial is as good as these moments can judge, also for noisy labels
    fits = residual <= max(_GOOD_FIT if m == width else _CLOSE_FIT, 1.1 * polynomial)
    if m == 0 and residual > _CLOSE_FIT:
        return Status.UNDERDETERMINED, _no_unit(found.units, found.eta, found.order, found.n)
    if fits and rows < _CHECKS:
        return Status.UNDERDETERMINED, (
            f"The network fits, but {rows} rows never used are too few to tell a fit from chance; "
            f"collect at least {10 * _CHECKS} samples."
        )
    if fits:
        hidden = f"; {width - m} left no trace and went into the affine part." if m < width else "."
        return Status.ESTIMATE, f"{m} of {width} units found{hidden}"
    return Status.NOT_RECOVERED, (
        f"{m} of {width} units found, but the network misses {residual:.0%} of the standard "
        f"deviation of y (a fitted polynomial {polynomial:.0%}). "
        "Try more samples, another order, or method='auto'."
    )


def _no_unit(units: UnitTable, eta: Thresholds, order: int, n: int) -> str:
    """Say how far the strongest unit is below the noise, and how many samples would lift it out."""
    ratios = [
        level / max(float(terms.singular_values[0]), np.finfo(float).tiny)
        for terms, level in zip(units.terms, eta.eta1)
    ]
    more = max(min(ratios), 1.0) ** 2
    return (
        f"With {n} samples no unit stands out of the sampling error of T_{2 * order + 1} and "
        f"T_{2 * order + 2}; at least about {2.0 * more * n:.1g} would be needed with this estimator. "
        "The network returned is the affine fit."
    )


def _notes(units: UnitTable, rows: Source, summary: Summary) -> tuple[str, ...]:
    notes = []
    pairs = sum(terms.complex_pairs for terms in units.terms)
    if pairs:
        notes.append(f"{pairs} pairs of complex eigenvalues: two units that one of the tensors cannot tell apart")
    scale = np.sqrt(np.diag(summary.covariance))
    kurtosis = rows.reduce(partial(_fourth, mean=summary.mean, scale=scale))[0] / summary.n
    worst = int(np.abs(kurtosis - 3.0).argmax())
    # √(24/n) is the standard error of a Gaussian's kurtosis; an excess below 0.3 moves the moments less than they err
    if abs(kurtosis[worst] - 3.0) > max(0.3, 6.0 * np.sqrt(24.0 / summary.n)):
        notes.append(
            f"input column {worst} is not Gaussian (kurtosis {kurtosis[worst]:.1f}, 3 for a Gaussian): "
            "the method's moments are for Gaussian inputs only"
        )
    return tuple(notes)


def _fourth(chunk: Chunk, mean: Array, scale: Array) -> tuple[Array, ...]:
    """Σ ((x − mean)/scale)⁴, each column."""
    return ((((chunk.X - mean) / scale) ** 4).sum(axis=0),)
