"""The samples as `auto` works on them: some rows set aside, the rest white, outputs on one scale, affine part out."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.arrays import Array
from relumine.data.digits import Digits, digits_of
from relumine.data.holdout import same_rows, set_aside
from relumine.data.sources import Samples, Source
from relumine.data.views import without
from relumine.data.whiten import Whitening
from relumine.fit.inference import structure_score
from relumine.fit.passes import Model
from relumine.fit.rows import MemoryRows, Rows
from relumine.fit.sign_free import Shape, shape_of
from relumine.fit.streamed import prepare_source
from relumine.network import Network
from relumine.results import InvalidInput, counted

_EPS = float(np.finfo(float).eps)
_SCORE = 6.0  # of the residual of an affine fit, from which on it is not rounding; noise stays below 5
_OFFSET = 1e8  # standard deviations of y from which on the rounding of c shows
_COARSE = 1e-5  # relative rounding of y beyond which nothing can be called exact
_FLAT, _FLAT_EVERYWHERE = 32.0 * _EPS, 256.0 * _EPS  # of a few rows, of all: what rounding leaves of an affine output


@dataclass(frozen=True)
class Task:
    """A least squares problem in white coordinates and the way back.

    ``rows``: white, with the affine part ``tau`` (d+1, q) taken out of Y; ``plain``: the same rows with it, for
    models without affine part. ``scale`` (q,): what the outputs were divided by. ``rounding`` (q,): root mean square
    residual, on that scale, that is rounding error. ``bent`` (q,): outputs that are not affine. ``held``: rows never
    used in the fit, ``spread`` (q,): standard deviation of y. ``distinct``: number of different rows used.
    ``discrete``: every input takes only a few values. ``digits``: what rounding left of y. ``groups`` (n,): the same
    number for equal rows used, None if all differ.
    """

    rows: Rows
    plain: Rows
    tau: Array
    shape: Shape
    white: Whitening
    scale: Array
    rounding: Array
    bent: NDArray[np.bool_]
    held: Samples
    spread: Array
    distinct: int
    vector: bool
    discrete: bool
    digits: Digits
    groups: NDArray[np.intp] | None

    @property
    def q(self) -> int:
        """Number of outputs."""
        return self.rows.outputs

    @property
    def values(self) -> int:
        """Numbers to explain: rows times outputs that are not affine (at least one)."""
        return self.rows.n * max(int(self.bent.sum()), 1)

    def parameters(self, width: int) -> int:
        """Free parameters of a network of that width, affine part included, for the outputs that are not affine."""
        D, q = self.rows.columns, max(int(self.bent.sum()), 1)
        per_unit = D - 1 + q + (0 if self.shape.homogeneous else 1)
        return width * per_unit + D * q

    def widest(self, share: float = 0.85) -> int:
        """The largest width whose parameters take no more than ``share`` of the numbers to explain."""
        per_unit = self.parameters(1) - self.parameters(0)
        return max(int((share * self.values - self.parameters(0)) / per_unit), 0)

    def is_exact(self, squares: Array) -> bool:
        """Whether a residual, given by Σω r² of each output (q,), is rounding error in every one."""
        rms = np.sqrt(squares / self.rows.total)
        return bool((rms <= self.rounding).all() and self.rounding.max() <= _COARSE)

    def to_user(self, net: Network) -> Network:
        """A network of white coordinates and scaled outputs as one of the user's x and y."""
        net = net.replace(a=net.a * self.scale[:, None], v=net.v * self.scale[:, None], c=net.c * self.scale)
        net = self.white.undo(net).scaled()
        return net.plain() if self.vector else net


@dataclass(frozen=True)
class MemoryTask(Task):
    """A task whose rows are in memory, as the search needs.

    ``samples``: as they came; ``aside``: numbers of those set aside.
    """

    rows: MemoryRows
    plain: MemoryRows
    samples: Samples
    aside: NDArray[np.intp]

    def to_user(self, net: Network) -> Network:
        """A network of the user's x and y; behind an offset that takes most digits, with residuals of mean zero.

        On the way back a large c is rounded several times, each time by as much as y itself was.
        """
        net = super().to_user(net)
        if not (np.abs(net.c) > _OFFSET * self.spread).any():
            return net
        used = np.delete(np.arange(self.samples.n), self.aside)
        left = (self.samples.y - net(self.samples.X))[used]
        weight = None if self.samples.weight is None else self.samples.weight[used]
        return net.replace(c=net.c + np.average(left, axis=0, weights=weight))


def make_task(samples: Samples, activation: Activation, rng: np.random.Generator) -> MemoryTask:
    """Set rows aside, whiten, scale: what is left of y beside its affine part sets the scale of every output."""
    if not samples.q:
        raise InvalidInput(f"{samples.label} has no target", argument="target", remedy="name one, or pass y")
    aside, distinct = some_aside(samples, rng)
    rest = without(samples, aside)
    Y = np.delete(samples.Y, aside, axis=0)
    weight = None if samples.weight is None else np.delete(samples.weight, aside)
    magnitude = _largest(Y, weight)
    magnitude[magnitude == 0.0] = 1.0
    rows, plain, tau, white = prepare_source(rest, magnitude)
    # what is in memory stays there
    assert isinstance(rows, MemoryRows)
    assert isinstance(plain, MemoryRows)
    left = np.sqrt(rows.squares() / rows.total)
    targets = Y / magnitude
    deviation = np.where(np.ptp(targets, axis=0) > 0.0, _deviation(targets, weight), 1.0)
    bent = (left > _FLAT) | _hidden_in_the_last_digits(rows, left, deviation, shape_of(activation))
    left[~bent] = 1.0
    return MemoryTask(
        rows=rows.over(np.where(bent, left, np.inf)),
        plain=plain.over(left),
        tau=tau / left,
        shape=shape_of(activation),
        white=white,
        scale=magnitude * left,
        rounding=np.maximum(1e-9, 16.0 * _EPS / left),
        bent=bent,
        held=Samples(*samples.rows_at(aside)[:3]),
        spread=magnitude * _deviation(Y / magnitude, weight),
        distinct=distinct,
        vector=samples.vector,
        discrete=_discrete(samples.X),
        digits=digits_of(samples.y),
        groups=np.delete(same_rows(samples.X)[0], aside) if distinct < samples.n - len(aside) else None,
        samples=samples,
        aside=aside,
    )


def some_aside(samples: Samples, rng: np.random.Generator) -> tuple[NDArray[np.intp], int]:
    """Numbers of the rows to set aside, and how many different rows are left: enough for a linear fit, or an error."""
    aside, distinct = set_aside(samples.X, rng)
    if samples.n - len(aside) <= samples.d:
        raise InvalidInput(
            f"{counted(samples.n, 'row')} {'is' if samples.n == 1 else 'are'} too few for "
            f"{counted(samples.d, 'input')}: even a linear fit with rows to check it needs {samples.d + 2}",
            argument="X",
            remedy=f"collect more; a network of 5 units takes about {25 * (samples.d + 1):,}",
        )
    return aside, distinct


def _hidden_in_the_last_digits(rows: MemoryRows, left: Array, deviation: Array, shape: Shape) -> NDArray[np.bool_]:
    """Whether what is left of an affine fit, (q,), is rounding error in size but not at random.

    An offset of 1e15 leaves y a digit or two: a network behind it looks like rounding, but the score test shows it.
    What is below 1e-9 of the ``deviation`` (q,) of y does not matter.
    """
    found = np.zeros(left.shape, dtype=bool)
    for o in np.flatnonzero((left > 1e-9 * deviation) & (left <= _FLAT)):
        alone = MemoryRows(rows.X, rows.Y[:, [o]] / left[o], rows.weight)
        nothing = Model(shape, np.zeros((0, rows.columns)), np.zeros((0, 1)))
        found[o] = structure_score(alone, shape, nothing) >= _SCORE
    return found


def whole_task(source: Source, small: Task, held: NDArray[np.intp]) -> Task:
    """The problem of all rows but those set aside, on the scale of the small one."""
    rows, plain, tau, white = prepare_source(without(source, held), small.scale)
    bent = small.bent | (np.sqrt(rows.squares() / rows.total) > _FLAT_EVERYWHERE)
    rows = rows.over(np.where(bent, 1.0, np.inf))
    small = replace(_plain(small), groups=None)  # of its rows, not of these
    return replace(small, rows=rows, plain=plain, tau=tau, white=white, bent=bent, distinct=rows.n)


def _plain(task: Task) -> Task:
    """The task as one whose rows may be anywhere: without the fields of rows in memory."""
    return Task(**{field.name: getattr(task, field.name) for field in fields(Task)})


def _largest(Y: Array, weight: Array | None) -> Array:
    """Largest |y| of each output (q,), every row in units of its own noise: rounding is judged against it."""
    size = np.abs(Y)
    if weight is not None:
        size *= np.sqrt(weight / weight.mean())[:, None]
    return np.asarray(size.max(axis=0))


def _deviation(Y: Array, weight: Array | None) -> Array:
    """Weighted standard deviation of each output, (q,)."""
    centred = Y - np.average(Y, axis=0, weights=weight)
    return np.asarray(np.sqrt(np.average(centred**2, axis=0, weights=weight)))


def _discrete(X: Array, most: int = 8) -> bool:
    """Whether every column takes at most a few distinct values: then no kink is seen, only its effect on a lattice."""
    return len(X) > 2 * most and all(np.unique(column).size <= most for column in X[:4096].T)
