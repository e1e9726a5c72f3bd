"""The samples as `auto` works on them: some rows set aside, the rest white, outputs on one scale, affine part out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.data.sources import Samples
from relumine.data.whiten import Whitening, whitening
from relumine.fit.rows import Rows, prepare
from relumine.fit.sign_free import Shape, shape_of
from relumine.network import Network

Array = NDArray[np.float64]

__all__ = ["Task", "make_task"]


@dataclass(frozen=True)
class Task:
    """A least squares problem in white coordinates and the way back.

    ``rows``: white, with the affine part ``tau`` (d+1, q) taken out of Y; ``plain``: the same rows with it, for
    models without affine part. ``units`` (q,): what the outputs were divided by. ``exact``: relative loss that is
    rounding error. ``held``: rows never used in the fit. ``discrete``: every input takes only a few values.
    """

    rows: Rows
    plain: Rows
    tau: Array
    shape: Shape
    white: Whitening
    units: Array
    exact: float
    held: Samples
    vector: bool
    discrete: bool

    @property
    def q(self) -> int:
        """Number of outputs."""
        return int(self.rows.Y.shape[1])

    @property
    def values(self) -> int:
        """Numbers to explain: rows times outputs."""
        return self.rows.n * self.q

    def parameters(self, width: int) -> int:
        """Free parameters of a network of that width, affine part included."""
        D = int(self.rows.X.shape[1])
        per_unit = D - 1 + self.q + (0 if self.shape.homogeneous else 1)
        return width * per_unit + D * self.q

    def widest(self, share: float = 0.85) -> int:
        """The largest width whose parameters take no more than ``share`` of the numbers to explain."""
        per_unit = self.parameters(1) - self.parameters(0)
        return max(int((share * self.values - self.parameters(0)) / per_unit), 0)

    def to_user(self, net: Network) -> Network:
        """A network of white coordinates and scaled outputs as one of the user's x and y; largest |a| first."""
        net = net.replace(a=net.a * self.units[:, None], v=net.v * self.units[:, None], c=net.c * self.units)
        net = self.white.undo(net).scaled()
        if self.vector:
            net = Network(net.W, net.b, net.a[0], net.activation, net.v[0], net.c[0])
        return net


def make_task(samples: Samples, activation: Activation, rng: np.random.Generator) -> Task:
    """Set rows aside, whiten, scale."""
    Y = samples.y.reshape(samples.n, -1)
    spare = int(np.clip(round(0.02 * samples.n), 4, 2000)) if samples.n > 8 else 1
    aside = np.zeros(samples.n, dtype=bool)
    aside[rng.choice(samples.n, size=spare, replace=False)] = True
    used = np.flatnonzero(~aside)
    weight = None if samples.weight is None else samples.weight[used]
    white = whitening(samples.X, weight, used)
    wide = np.empty((used.size, samples.d + 1))
    rows, tau = prepare(white.apply(samples.X, used, out=wide[:, :-1]), Y[used], weight)
    # what is left of y beside its affine part sets the scale of every output
    left = np.sqrt(np.einsum("ij,ij->j", rows.weigh(rows.Y), rows.Y) / rows.total)
    magnitude = np.abs(Y[used]).max(axis=0)
    affine = left <= 1e-12 * magnitude
    units = np.where(affine, np.where(magnitude > 0.0, magnitude, 1.0), left)
    rows = Rows(rows.X, np.where(affine, 0.0, rows.Y / units), rows.weight, affine=True)
    plain = Rows(rows.X, Y[used] / units, rows.weight, affine=False)
    rounding = 64.0 * np.finfo(float).eps * float(np.max(magnitude / units))
    exact = max(1e-18, rounding**2)
    held = Samples(samples.X[aside], Y[aside], None if samples.weight is None else samples.weight[aside])
    return Task(
        rows,
        plain,
        tau / units,
        shape_of(activation),
        white,
        units,
        exact,
        held,
        samples.y.ndim == 1,
        _discrete(samples.X),
    )


def _discrete(X: Array, most: int = 8) -> bool:
    """Whether every column takes at most a few distinct values: then no kink is seen, only its effect on a lattice."""
    return len(X) > 2 * most and all(np.unique(column).size <= most for column in X[:4096].T)
