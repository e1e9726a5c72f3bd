"""A network for data that are noisy and few: how many units, and how strongly held, is chosen on rows set aside.

Units are fitted by variable projection with a ridge on the output weights, from the strongest ridge to the weakest,
each fit starting from the last: one path gives every strength. The mean of several
networks is a network, of less variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.data.holdout import same_rows, split
from relumine.data.sources import Samples
from relumine.data.whiten import Whitening, spanning
from relumine.fit.levenberg import Schedule, minimise
from relumine.fit.parallel import ALONE, Crew
from relumine.fit.rows import Rows
from relumine.fit.sign_free import Shape, shape_of
from relumine.fit.starts import random_directions
from relumine.fit.streamed import prepare_source
from relumine.network import Network

Array = NDArray[np.float64]

__all__ = ["RIDGES", "SHRINKAGES", "WIDTHS", "Choice", "affine_fit", "average", "choose", "fit_units"]

RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-6)
SHRINKAGES = (3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 0.0)
WIDTHS = (5, 15, 40)
_FOLDS, _FEW, _MOST = 3, 40, 3000  # parts of the rows; rows below which no unit is placed; rows enough to choose by
_CONSTANT = 1e-12  # spread of an output, over its mean, that is rounding
_STEPS = 8  # of least squares for each strength
_WORSE = 3  # strengths in a row that did worse than the best before the path is left


@dataclass(frozen=True)
class Choice:
    """What did best on rows set aside: ``width`` units at ``ridge`` (0 units: ``ridge`` shrinks the affine part)."""

    width: int
    ridge: float
    error: float


@dataclass(frozen=True)
class _Problem:
    """Samples in white coordinates, outputs divided by their spread ``units`` (q,).

    ``values`` (r,): variances of the standardised x along the directions in which it varies.
    """

    white: Whitening
    values: Array
    rows: Rows
    tau: Array
    units: Array

    @classmethod
    def of(cls, samples: Samples) -> _Problem:
        white, values, summary = spanning(samples)
        units = np.sqrt(np.maximum(np.diag(summary.y_covariance), 0.0))
        units = np.where(units > _CONSTANT * np.abs(summary.y_mean) + np.finfo(float).tiny, units, 1.0)
        # weights count as repetitions of rows, so they stay as they are
        rows, _, tau, _ = prepare_source(samples, units, (white, summary), weight=1.0)
        return cls(white, values, rows, tau, units)

    def network(self, shape: Shape, U: Array, A: Array, tau: Array) -> Network:
        """A network of the user's x and y, with (q, m) output weights; the mean of y where x does not vary."""
        if not len(self.values):
            q, d = len(self.units), len(self.white.mean)
            return Network(
                np.zeros((0, d)), np.zeros(0), np.zeros((q, 0)), shape.activation, c=self.tau[-1] * self.units
            )
        net = self.white.undo(shape.network(U, A, tau))
        return net.replace(a=net.a * self.units[:, None], v=net.v * self.units[:, None], c=net.c * self.units)


def affine_fit(samples: Samples, sigma: Activation, shrinkage: float) -> Network:
    """Ridge regression: along each principal direction the slope shrinks by λ/(λ + α)."""
    problem = _Problem.of(samples)
    values = problem.values
    tau = problem.tau * np.append(values / (values + shrinkage), 1.0)[:, None]
    return problem.network(shape_of(sigma), np.zeros((0, len(tau))), np.zeros((0, tau.shape[1])), tau)


def fit_units(
    samples: Samples,
    sigma: Activation,
    width: int,
    ridges: Sequence[float],
    rng: np.random.Generator,
    init: Network | None = None,
    crew: Crew = ALONE,
) -> Iterator[Network]:
    """Networks along the path of ridges, strongest first, from random directions or those of ``init``."""
    problem, shape = _Problem.of(samples), shape_of(sigma)
    D = len(problem.tau)
    if D == 1:  # no direction for a unit
        yield from (affine_fit(samples, sigma, ridge) for ridge in ridges)
        return
    U = random_directions(rng, width, D)
    if init is not None:
        inside = problem.white.redo(init)
        U = np.column_stack([inside.W, inside.b])
    rows = problem.rows.shared(crew)
    for ridge in ridges:
        schedule = Schedule(steps=_STEPS, damping=1e-2, ridge=ridge, plateau=6, gain=1e-3, tol=1e-12)
        at = minimise(rows, shape, U, schedule).at
        U = at.U
        yield problem.network(shape, U, at.A, problem.tau + at.tau)


def average(nets: Sequence[Network]) -> Network:
    """The mean of networks, as one network: their units side by side."""
    k = len(nets)
    return nets[0].replace(
        W=np.concatenate([net.W for net in nets]),
        b=np.concatenate([net.b for net in nets]),
        a=np.concatenate([net.a for net in nets], axis=-1) / k,
        v=np.mean([net.v for net in nets], axis=0),
        c=np.mean([net.c for net in nets], axis=0),
    )


def choose(
    samples: Samples, sigma: Activation, width: int | None, rng: np.random.Generator, init: Network | None = None
) -> Choice:
    """Width and strength by three-fold validation; ``width`` fixes the former."""
    few, index = _folds(samples, rng)
    distinct, d = len(np.unique(index)), samples.d
    errors: dict[tuple[int, float], list[float]] = {}
    widths: list[int] = []
    if distinct >= _FEW:
        widths = [k for k in WIDTHS if k * (d + 2) <= 2 * distinct] if width is None else [width]
    for fold in range(_FOLDS if distinct >= 2 * _FOLDS else 0):
        train, test = split(few, np.flatnonzero(index % _FOLDS == fold))
        for shrinkage in SHRINKAGES:
            errors.setdefault((0, shrinkage), []).append(_error(affine_fit(train, sigma, shrinkage), test))
        for k in widths:
            best, worse = np.inf, 0
            for ridge, net in zip(RIDGES, fit_units(train, sigma, k, RIDGES, np.random.default_rng(k), init)):
                error = _error(net, test)
                errors.setdefault((k, ridge), []).append(error)
                best, worse = (error, 0) if error < best else (best, worse + 1)
                if worse >= _WORSE:
                    break
    # a strength that some fold never reached did worse there than those it did reach
    means = {key: float(np.mean(e)) for key, e in errors.items() if len(e) == _FOLDS}
    if not means:
        return Choice(0, 1.0, float("nan"))
    (k, ridge), error = min(means.items(), key=lambda item: item[1])
    return Choice(k, ridge, error)


def _folds(samples: Samples, rng: np.random.Generator) -> tuple[Samples, NDArray[np.intp]]:
    """Rows enough to choose by, and for each a number that says its fold.

    Copies of a row have one number, so that weights and repetitions are the same thing.
    """
    groups, distinct = same_rows(samples.X)
    index = rng.permutation(distinct)[groups]
    few, _ = split(samples, np.flatnonzero(index >= _MOST))
    return few, index[index < _MOST]


def _error(net: Network, test: Samples) -> float:
    """Mean square error over the variance of y on the rows set aside, averaged over the outputs that vary there."""
    Y = test.Y
    E = np.average((net(test.X) - Y) ** 2, axis=0, weights=test.weight)
    centre = np.average(Y, axis=0, weights=test.weight)
    spread = np.average((Y - centre) ** 2, axis=0, weights=test.weight)
    varies = spread > (_CONSTANT * centre) ** 2 + np.finfo(float).tiny
    return float(np.mean(E[varies] / spread[varies])) if varies.any() else float(E.mean())
