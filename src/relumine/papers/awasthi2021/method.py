"""Awasthi, Tang, Vijayaraghavan 2021, from samples: moments, Algorithm 6 or 4, and Algorithm 5 where units
hide.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine import activations
from relumine.activations import Activation
from relumine.data.moments import Estimator, features_needed
from relumine.data.sources import Samples, as_samples
from relumine.data.whiten import Whitening, whitening
from relumine.network import Network
from relumine.papers.awasthi2021.algorithms import (
    UnitTable,
    algorithm_1,
    algorithm_4,
    algorithm_5,
    algorithm_6,
    check_width,
    visible,
)
from relumine.papers.awasthi2021.readout import fit_readout
from relumine.papers.awasthi2021.subspace import SubspaceMoments, estimate_in_subspace
from relumine.papers.awasthi2021.thresholds import Thresholds
from relumine.results import Certificate, InvalidInput, Recovery, Stage, Status, Units
from relumine.tensors.jennrich import RankOneTerms

Array = NDArray[np.float64]
Goal = Literal["auto", "parameters", "function"]

__all__ = [
    "AwasthiRecovery",
    "UnitTable",
    "algorithm_1",
    "algorithm_4",
    "algorithm_5",
    "algorithm_6",
    "recover_awasthi",
]

_SURE = 0.1  # a sign whose margin (½ is ideal) is smaller is a guess
_GOOD_FIT = 0.3  # a held-out residual below this counts as an estimate of the network,
_CLOSE_FIT = 0.05  # and below this as one even with units missing: what they add is affine


@dataclass(frozen=True)
class AwasthiRecovery(Recovery):
    """A recovery with what Algorithm 4 worked with: thresholds, errors of the tensors, the two decompositions."""

    thresholds: Thresholds | None = None
    tensor_errors: Array | None = None
    terms: tuple[RankOneTerms, ...] = ()


def recover_awasthi(
    X: ArrayLike,
    y: ArrayLike,
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
    X, y : (n, d), (n,) arrays
        Samples; x must be Gaussian, of any mean and covariance.
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
    samples = _check(as_samples(X, y), width, order, estimator, thresholds, activation, goal, reduce)
    rng = np.random.default_rng(rng)
    stages: list[Stage] = []
    clock = time.perf_counter()

    def stage(name: str, note: str = "") -> None:
        nonlocal clock
        stages.append(Stage(name, time.perf_counter() - clock, note=note))
        clock = time.perf_counter()

    used, held = _split(samples, rng)
    carry = _standardise(used.X, whiten)
    Z = used.X if carry is None else carry.apply(used.X)
    stage("inputs", "standard already" if carry is None else "whitened by their mean and covariance")
    moments = estimate_in_subspace(Z, used.y, 2 * order + 2, estimator, width if reduce is not False else None)
    stage("moments", f"{estimator}, {len(moments.basis)} of {samples.d} dimensions")

    eta = Thresholds.from_errors(moments.errors, len(moments.basis), order).updated(thresholds)
    algorithm = algorithm_6 if order == 1 else algorithm_4
    units = algorithm(moments.tensors, order, width, eta, rng, errors=moments.errors)
    units = units.only(visible(units, used.n))
    stage("decomposition", f"{units.m} of {width} units")

    sure = units.m == width and units.margin is not None and bool((units.margin > _SURE).all())
    net = _from_tensors(units, moments, Z, used.y, sure)
    # Algorithm 6 when it found everything and fits; else Algorithm 5 makes the best of the units
    if goal == "function" or (goal == "auto" and not (sure and _misfit(net, Z, used.y) <= 0.9 * _GOOD_FIT)):
        net = fit_readout(Z, used.y, units.W @ moments.basis, units.b, units.a).merge(1e-12)
        sure = False
    net = net if carry is None else carry.undo(net)
    stage("network", "Algorithm 6" if sure else "affine part by regression")
    return _report(net, units, moments, eta, used, held, width, order, sure, stages)


def _check(
    samples: Samples,
    width: int,
    order: int,
    estimator: Estimator,
    thresholds: Mapping[str, Any] | None,
    activation: str | Activation,
    goal: str,
    reduce: bool | None,
) -> Samples:
    """Everything that can be refused before any long work."""
    if activations.get(activation).name != "relu":
        raise InvalidInput(
            f"method 'awasthi' is for ReLU units, not {activations.get(activation).name}; use method='auto'"
        )
    if samples.y.ndim != 1:
        one = samples.y.shape[1] == 1
        hint = "pass y.ravel()" if one else "recover one output at a time, or use method='auto'"
        raise InvalidInput(f"method 'awasthi' takes one output, y has shape {samples.y.shape}; {hint}")
    if estimator not in get_args(Estimator):
        raise InvalidInput(f"unknown estimator {estimator!r}; known: {', '.join(get_args(Estimator))}")
    if goal not in get_args(Goal):
        raise InvalidInput(f"unknown goal {goal!r}; known: {', '.join(get_args(Goal))}")
    check_width(width, samples.d, order)
    Thresholds.from_errors(np.ones(2 * order + 3), samples.d, order).updated(thresholds)
    spread = float(np.ptp(samples.y))
    if spread <= 1e-12 * float(np.abs(samples.y).max()):
        raise InvalidInput("y is constant: there is no network to recover; check that y is the right column")
    inside = samples.d if reduce is False else min(width, samples.d)
    needed = max(features_needed(inside, 2 * order + 2, estimator), samples.d + 1)
    if samples.n - _held_out(samples.n) <= needed:
        raise InvalidInput(
            f"{samples.n} samples are too few: estimator={estimator!r} at order {order} fits {needed} "
            "coefficients, and some rows are held out. Collect at least "
            f"{needed + needed // 5 + 10} (several times that for accuracy), "
            "or use estimator='debiased' or method='auto'"
        )
    return samples


def _held_out(n: int) -> int:
    return min(n // 10, 10_000)


def _split(samples: Samples, rng: np.random.Generator) -> tuple[Samples, Samples]:
    """A random tenth of the rows (at most 10⁴) is kept aside for the certificate."""
    held = np.zeros(samples.n, dtype=bool)
    held[rng.choice(samples.n, _held_out(samples.n), replace=False)] = True
    return Samples(samples.X[~held], samples.y[~held]), Samples(samples.X[held], samples.y[held])


def _standardise(X: Array, whiten: bool | None) -> Whitening | None:
    """The whitening to use, or None where mean and covariance are standard within six standard errors."""
    if whiten is False:
        return None
    found = whitening(X)
    n, d = X.shape
    apart = max(
        float(np.abs(found.mean).max()) * np.sqrt(n),
        float(np.abs(found.L @ found.L.T - np.eye(d)).max()) * np.sqrt(n / 2.0),
    )
    return found if whiten or apart > 6.0 else None


def _from_tensors(units: UnitTable, moments: SubspaceMoments, Z: Array, y: Array, sure: bool) -> Network:
    """Algorithm 6's network; where a sign or a unit is missing, with the affine part that fits y best."""
    net = Network(units.W @ moments.basis, units.b, units.a)
    if sure:
        return net
    rest = fit_readout(Z, y - net(Z), np.zeros((0, Z.shape[1])), np.zeros(0), np.zeros(0))
    return net.replace(v=rest.v, c=rest.c)


def _misfit(net: Network, X: Array, y: Array) -> float:
    """Root mean square error over the standard deviation of y."""
    return float(np.sqrt(np.mean((net(X) - y) ** 2))) / (float(np.std(y)) or 1.0)


def _report(
    net: Network,
    units: UnitTable,
    moments: SubspaceMoments,
    eta: Thresholds,
    used: Samples,
    held: Samples,
    width: int,
    order: int,
    sure: bool,
    stages: list[Stage],
) -> Recovery:
    rows = held if held.n else used
    deviation = float(np.std(rows.y)) or 1.0
    residual = _misfit(net, rows.X, rows.y)
    polynomial = float(np.sqrt(moments.residual)) / deviation if np.isfinite(moments.residual) else 0.0
    missing = width - units.m
    # as good as the polynomial of degree 2ℓ+2 is as good as these moments can judge, also for noisy labels
    fits = residual <= max(_CLOSE_FIT if missing else _GOOD_FIT, 1.1 * polynomial)
    if units.m == 0 and residual > _CLOSE_FIT:
        status, message = Status.UNDERDETERMINED, _no_unit(units, eta, order, used.n)
    elif fits:
        status, message = Status.ESTIMATE, f"{units.m} of {width} units found"
        message += f"; {missing} left no trace and went into the affine part." if missing else "."
    else:
        status = Status.NOT_RECOVERED
        message = (
            f"{units.m} of {width} units found, but the network misses {residual:.0%} of the standard "
            f"deviation of y (a fitted polynomial {polynomial:.0%}). "
            "Try more samples, another order, or method='auto'."
        )
    rest = f"its affine part is in v and c, the rest in the residual ({residual:.1%})"
    absorbed = (f"a unit not seen above the sampling error: {rest}",) * missing
    every = tuple(range(net.m))
    signed = tuple(np.flatnonzero(units.margin > _SURE).tolist()) if sure and units.margin is not None else ()
    return AwasthiRecovery(
        network=net,
        status=status,
        message=message,
        certificate=Certificate(
            residual=residual,
            rows=held.n,
            proves="how well the network predicts rows it never saw",
            does_not_prove="that each parameter is exact: they carry the sampling error of the moments",
            notes=_notes(units, used.X),
        ),
        units=Units(signed, tuple(i for i in every if i not in signed), absorbed),
        stages=tuple(stages),
        method="awasthi",
        thresholds=eta,
        tensor_errors=moments.errors,
        terms=units.terms,
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


def _notes(units: UnitTable, X: Array) -> tuple[str, ...]:
    notes = []
    pairs = sum(terms.complex_pairs for terms in units.terms)
    if pairs:
        notes.append(f"{pairs} pairs of complex eigenvalues: two units that one of the tensors cannot tell apart")
    kurtosis = np.mean(((X - X.mean(axis=0)) / X.std(axis=0)) ** 4, axis=0)
    worst = int(np.abs(kurtosis - 3.0).argmax())
    if abs(kurtosis[worst] - 3.0) > max(0.3, 6.0 * np.sqrt(24.0 / len(X))):
        notes.append(
            f"input column {worst} is not Gaussian (kurtosis {kurtosis[worst]:.1f}, 3 for a Gaussian): "
            "the method's moments are for Gaussian inputs only"
        )
    return tuple(notes)
