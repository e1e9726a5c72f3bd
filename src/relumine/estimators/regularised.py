"""A network for data that are noisy and few: how many units, and how strongly held, is chosen on rows set aside.

Units are fitted by variable projection with a ridge on the output weights, from the strongest ridge to the weakest,
each fit starting from the last: one path gives every strength. The mean of several
networks is a network, of less variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.data.sources import Samples
from relumine.fit.levenberg import Schedule, minimise
from relumine.fit.parallel import ALONE, Crew
from relumine.fit.rows import MemoryRows, prepare
from relumine.fit.sign_free import Shape, shape_of
from relumine.fit.starts import random_directions
from relumine.network import Network

Array = NDArray[np.float64]

__all__ = ["RIDGES", "SHRINKAGES", "WIDTHS", "Choice", "Frame", "affine_fit", "average", "choose", "fit_units"]

RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-6)
SHRINKAGES = (3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 0.0)
WIDTHS = (5, 15, 40)
_FOLDS, _FEW, _MOST = 3, 40, 3000  # parts of the rows; rows below which no unit is placed; rows enough to choose by
_CONSTANT = 1e-12  # spread of an output, over its mean, that is rounding
_STEPS = 8  # of least squares for each strength
_WORSE = 3  # strengths in a row that did worse than the best before the path is left


@dataclass(frozen=True)
class Frame:
    """White coordinates z = (x − mean) T that leave out directions in which x does not vary.

    ``T`` (d, r), ``B`` (r, d) with x ≈ mean + z B; ``values`` (r,): variances of the standardised x along them.
    """

    mean: Array
    T: Array
    B: Array
    values: Array

    @classmethod
    def of(cls, X: Array, weight: Array | None) -> Frame:
        """Mean and principal directions of the standardised columns; constant and dependent columns drop out."""
        mean = np.average(X, axis=0, weights=weight)
        centred = X - mean
        gram = (centred if weight is None else centred * weight[:, None]).T @ centred
        gram /= len(X) if weight is None else weight.sum()
        scale = np.sqrt(np.diag(gram))
        varies = scale > 1e-10 * (np.abs(mean) + scale + np.finfo(float).tiny)
        scale = np.where(varies, scale, 1.0)
        values, V = np.linalg.eigh(np.where(np.outer(varies, varies), gram / np.outer(scale, scale), 0.0))
        keep = values > 1e-8 * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
        root, V = np.sqrt(values[keep]), V[:, keep]
        return cls(mean, V / scale[:, None] / root, (V * root).T * scale, values[keep])

    def white(self, X: Array) -> Array:
        """Z (n, r)."""
        return np.asarray((X - self.mean) @ self.T)

    def undo(self, net: Network) -> Network:
        """The network of x that equals ``net`` of z."""
        W, v = net.W @ self.T.T, net.v @ self.T.T
        return Network(W, net.b - W @ self.mean, net.a, net.activation, v, net.c - v @ self.mean)

    def directions(self, net: Network) -> Array:
        """(w, b) of a network of x as directions (m, r+1) of z."""
        return np.column_stack([net.W @ self.B.T, net.b + net.W @ self.mean])


@dataclass(frozen=True)
class Choice:
    """What did best on rows set aside: ``width`` units at ``ridge`` (0 units: ``ridge`` shrinks the affine part)."""

    width: int
    ridge: float
    error: float


@dataclass(frozen=True)
class _Problem:
    """Samples in white coordinates, outputs divided by their spread ``units`` (q,)."""

    frame: Frame
    rows: MemoryRows
    tau: Array
    units: Array

    @classmethod
    def of(cls, samples: Samples) -> _Problem:
        frame = Frame.of(samples.X, samples.weight)
        Y = samples.y.reshape(samples.n, -1)
        centre = np.average(Y, axis=0, weights=samples.weight)
        units = np.sqrt(np.average((Y - centre) ** 2, axis=0, weights=samples.weight))
        units = np.where(units > _CONSTANT * np.abs(centre) + np.finfo(float).tiny, units, 1.0)
        rows, tau = prepare(frame.white(samples.X), Y / units, samples.weight)
        return cls(frame, rows, tau, units)

    def network(self, shape: Shape, U: Array, A: Array, tau: Array) -> Network:
        """A network of the user's x and y, with (q, m) output weights; the mean of y where x does not vary."""
        if not len(self.frame.values):
            q, d = len(self.units), len(self.frame.mean)
            return Network(
                np.zeros((0, d)), np.zeros(0), np.zeros((q, 0)), shape.activation, c=self.tau[-1] * self.units
            )
        net = self.frame.undo(shape.network(U, A, tau))
        return net.replace(a=net.a * self.units[:, None], v=net.v * self.units[:, None], c=net.c * self.units)


def affine_fit(samples: Samples, sigma: Activation, shrinkage: float) -> Network:
    """Ridge regression: along each principal direction the slope shrinks by λ/(λ + α)."""
    problem = _Problem.of(samples)
    values = problem.frame.values
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
    U = random_directions(rng, width, D) if init is None else problem.frame.directions(init)
    rows = replace(problem.rows, crew=crew)
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
    parts = _folds(samples, rng)
    distinct, d = len(np.unique(parts.index)), samples.X.shape[1]
    errors: dict[tuple[int, float], list[float]] = {}
    widths: list[int] = []
    if distinct >= _FEW:
        widths = [k for k in WIDTHS if k * (d + 2) <= 2 * distinct] if width is None else [width]
    for fold in range(_FOLDS if distinct >= 2 * _FOLDS else 0):
        train, test = parts.split(samples, fold)
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


@dataclass(frozen=True)
class _Parts:
    """A fold for every row; copies of a row are in one fold, so that weights and repetitions are the same thing."""

    rows: NDArray[np.intp]
    index: NDArray[np.intp]

    def split(self, samples: Samples, fold: int) -> tuple[Samples, Samples]:
        out = self.index % _FOLDS == fold

        def take(r: NDArray[np.intp]) -> Samples:
            return Samples(samples.X[r], samples.y[r], None if samples.weight is None else samples.weight[r])

        return take(self.rows[~out]), take(self.rows[out])


def _folds(samples: Samples, rng: np.random.Generator) -> _Parts:
    distinct, inverse = np.unique(samples.X, axis=0, return_inverse=True)
    order = rng.permutation(len(distinct))
    index = order[inverse.ravel()]
    rows = np.flatnonzero(index < _MOST)
    return _Parts(rows, index[rows])


def _error(net: Network, test: Samples) -> float:
    """Mean square error over the variance of y on the rows set aside, averaged over the outputs that vary there."""
    Y = test.y.reshape(test.n, -1)
    E = np.average((net(test.X) - Y) ** 2, axis=0, weights=test.weight)
    centre = np.average(Y, axis=0, weights=test.weight)
    spread = np.average((Y - centre) ** 2, axis=0, weights=test.weight)
    varies = spread > (_CONSTANT * centre) ** 2 + np.finfo(float).tiny
    return float(np.mean(E[varies] / spread[varies])) if varies.any() else float(E.mean())
