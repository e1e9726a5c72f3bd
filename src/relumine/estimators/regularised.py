"""A network for data that are noisy: units fitted by variable projection with a ridge on their output weights.

The path goes from the strongest ridge to the weakest, each fit starting from the last: one path gives every strength.
The mean of several networks is a network, of less variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from relumine.activations import Activation
from relumine.arrays import Array
from relumine.data.sources import Samples
from relumine.data.whiten import Whitening, spanning
from relumine.fit.levenberg import Schedule, minimise
from relumine.fit.parallel import ALONE, Crew
from relumine.fit.rows import Rows
from relumine.fit.sign_free import Shape, shape_of
from relumine.fit.solvers import ConjugateGradients
from relumine.fit.starts import random_directions
from relumine.fit.streamed import prepare_source
from relumine.network import Network

_CONSTANT = 1e-12  # spread of an output, over its mean, that is rounding
# On noisy data a rough step is as good as an exact one: with eight products a step and two steps a strength, held-out
# errors were those of sixty products and eight steps, or better, in a fifth of the time (seven tables, four widths).
_PRODUCTS, _STEPS = 8, 2
# Where noise is what is left, two steps gain next to nothing: they end the fit. Where more units and steps go on paying
# they gain much more.
_PLATEAU, _GAIN = 2, 4e-2


@dataclass(frozen=True)
class Reach:
    """The range of the rows that were seen: ``low`` and ``high`` (r,) of each principal component of x, whitened."""

    white: Whitening
    low: Array
    high: Array

    @classmethod
    def of(cls, white: Whitening, X: Array) -> Reach:
        """From the least to the largest component of the rows X (n, d), and a tenth of that beyond."""
        Z = white.apply(X)
        low, high = Z.min(axis=0), Z.max(axis=0)
        return cls(white, low - 0.1 * (high - low), high + 0.1 * (high - low))

    def __call__(self, X: Array) -> Array:
        """X with the components that lie outside moved to the nearest end: x + L(clip(z) − z)."""
        Z = self.white.apply(X)
        Z -= np.clip(Z, self.low, self.high)
        out = np.flatnonzero(Z.any(axis=1))
        if not len(out):
            return X
        X = X.copy()
        X[out] -= Z[out] @ self.white.L.T
        return X


@dataclass(frozen=True)
class Problem:
    """Samples in white coordinates, outputs divided by their spread, ``scale`` (q,); units have the ``shape`` e.

    ``values`` (r,): variances of the standardised x along the directions in which it varies. ``tau`` (r+1, q): the
    affine part of y, which ``rows`` no longer have.
    """

    shape: Shape
    white: Whitening
    values: Array
    rows: Rows
    tau: Array
    scale: Array

    @classmethod
    def of(cls, samples: Samples, sigma: Activation, crew: Crew = ALONE) -> Problem:
        """The problem of these samples, its sums shared by a crew."""
        white, values, summary = spanning(samples)
        scale = np.sqrt(np.maximum(np.diag(summary.y_covariance), 0.0))
        scale = np.where(scale > _CONSTANT * np.abs(summary.y_mean) + np.finfo(float).tiny, scale, 1.0)
        # weights count as repetitions of rows, so they stay as they are
        rows, _, tau, _ = prepare_source(samples, scale, (white, summary), weight=1.0)
        return cls(shape_of(sigma), white, values, rows.shared(crew), tau, scale)

    def _network(self, U: Array, A: Array, tau: Array) -> Network:
        """A network of the user's x and y, with (q, m) output weights; the mean of y where x does not vary."""
        if not len(self.values):
            q, d = len(self.scale), len(self.white.mean)
            sigma, mean = self.shape.activation, self.tau[-1] * self.scale
            return Network(np.zeros((0, d)), np.zeros(0), np.zeros((q, 0)), sigma, c=mean)
        net = self.white.undo(self.shape.network(U, A, tau))
        return net.replace(a=net.a * self.scale[:, None], v=net.v * self.scale[:, None], c=net.c * self.scale)

    def affine(self, shrinkage: float) -> Network:
        """Ridge regression: along each principal direction the slope shrinks by λ/(λ + α)."""
        tau = self.tau * np.append(self.values / (self.values + shrinkage), 1.0)[:, None]
        return self._network(np.zeros((0, len(tau))), np.zeros((0, tau.shape[1])), tau)

    def path(self, width: int, ridges: Sequence[float], rng: np.random.Generator) -> Iterator[Network]:
        """Networks along the path of ridges, strongest first, from random directions."""
        return self._along(random_directions(rng, width, len(self.tau)), ridges, _STEPS)

    def onward(self, net: Network, ridges: Sequence[float], steps: int) -> Iterator[Network]:
        """Networks along the path of ridges, from the units of a network, so many steps at each ridge."""
        # rows (W L, b + W·mean): the units in white coordinates
        return self._along(np.column_stack([net.W @ self.white.L, net.b + net.W @ self.white.mean]), ridges, steps)

    def _along(self, U: Array, ridges: Sequence[float], steps: int) -> Iterator[Network]:
        if not len(self.values):  # no direction for a unit
            yield from (self.affine(ridge) for ridge in ridges)
            return
        schedule = Schedule(steps=steps, damping=1e-2, plateau=_PLATEAU, gain=_GAIN, tol=1e-12)
        solver = partial(ConjugateGradients, cap=_PRODUCTS)
        for ridge in ridges:
            fit = minimise(self.rows, self.shape, U, replace(schedule, ridge=ridge), solver=solver)
            U, schedule = fit.at.U, replace(schedule, damping=fit.state.damping)
            yield self._network(U, fit.at.A, self.tau + fit.at.tau)


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
