"""How many units, and how strong a ridge: chosen by validation, with a loss that a few wrong entries cannot dominate.

Every fold starts from other random units. The networks that the folds found are where the members of the final model
start from, so that nothing is fitted twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.arrays import Array
from relumine.data.holdout import same_rows
from relumine.data.sources import Samples
from relumine.estimators.outliers import LEAST, limit
from relumine.estimators.regularised import Problem, average
from relumine.network import Network

Numbers = NDArray[np.intp]
Key = tuple[int, float]  # units and ridge; no units: the ridge shrinks the affine part


# Strengths for the weights and for the affine part, strongest first, and numbers of units; folds choose among them, so
# any grids of this order will do.
RIDGES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-6)
SHRINKAGES = (3.0, 1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 0.0)
WIDTHS = (5, 15, 40, 100, 250)
_FEW = 40  # different rows below which no unit is placed
_ENOUGH, _SHARE, _MOST = 3000, 0.1, 50_000  # rows to choose by: 3000, or a tenth of more, up to 50 000
_FOLDS = 3  # at least
# of the usual spread of y: an error below is no wrong entry, and changes R² by 1/(4n) at most; without noise every kink
# would be one
_MATTERS = 0.5
_LOOKS = 3  # for rows that do not belong: without the worst of them, others show
_NARROW = 1000  # rows from which two folds are enough to leave out widths
_PAYS = 0.9  # of the error: what a width must come down to for a wider one to be tried
_BEFORE, _AFTER = 5, 4  # strengths before and from the best of the first fold on that the other folds go through
_WORSE = 3  # strengths in a row that did worse than the best before the path is left
# Standard errors of the difference within which the simpler choice is taken. One costs up to 0.005 of R², a half
# nothing (seven tables, four folds): the differences are taken row by row, and are sharp.
_TIE = 0.5


@dataclass(frozen=True)
class Settled:
    """What the user has settled: ``width``, ``alpha``, both or neither; ``init``: a network to start from."""

    width: int | None
    alpha: float | None
    folds: int
    init: Network | None = None

    @property
    def ridges(self) -> tuple[float, ...]:
        """The path, which ends at ``alpha`` if that is given."""
        return RIDGES if self.alpha is None else (*(r for r in RIDGES if r > self.alpha), self.alpha)

    @property
    def look(self) -> Settled:
        """What a first look for outliers uses: few units and a strong ridge, so that outliers are not fitted."""
        width, alpha = 5 if self.width is None else self.width, 0.3 if self.alpha is None else self.alpha
        return Settled(width, alpha, _FOLDS, self.init)


@dataclass(frozen=True)
class Choice:
    """What did best on rows set aside: ``width`` units at ``ridge``, and the ``starts`` that the folds found.

    ``numbers``: the rows it was chosen by; ``residuals`` (k, q) there, each row set aside once, and its ``weight``;
    ``error``: the mean square of those over the variance of y. ``used``: rows that each start was fitted to.
    ``tried``: whether any candidate had units.
    """

    width: int
    ridge: float
    error: float = float("nan")
    starts: tuple[Network, ...] = ()
    numbers: Numbers | None = None
    residuals: Array | None = None
    weight: Array | None = None
    used: int = 0
    tried: bool = False

    @property
    def errors(self) -> tuple[Array, Array | None] | None:
        """Sizes of the residuals (k, q) and the weights of their rows, if any row was set aside."""
        return None if self.residuals is None else (np.abs(self.residuals), self.weight)


@dataclass(frozen=True)
class Cleaned:
    """``samples`` without outliers, and their row ``numbers``.

    ``out``: numbers of the rows left out, each off by so many ``times`` the usual error.
    """

    samples: Samples
    numbers: Numbers
    out: Numbers
    times: Array

    @classmethod
    def of(cls, samples: Samples, numbers: Numbers) -> Cleaned:
        """All of these samples kept; their rows have these numbers."""
        return cls(samples, numbers, np.zeros(0, np.intp), np.zeros(0))

    def without(self, out: Numbers, times: Array) -> Cleaned:
        """The same with more rows left out: ``out`` are numbers among the samples that are kept now."""
        if not len(out):
            return self
        gone, far = np.append(self.out, self.numbers[out]), np.append(self.times, times)
        rest = np.delete(np.arange(len(self.numbers)), out)
        return Cleaned(self.samples.at(rest), self.numbers[rest], gone, far)


def choose_without_outliers(
    kept: Cleaned, sigma: Activation, asked: Settled, rng: np.random.Generator
) -> tuple[Cleaned, Choice]:
    """Find outliers, then choose width and strength without them.

    The first look is at y alone: a value far beyond all others would spoil every fit. The next looks use one width and
    strength, which takes little time. Outliers that only the chosen network shows are left out of the final fit.
    """
    samples = kept.samples
    kept = kept.without(*_beyond(samples.Y - np.median(samples.Y, axis=0), samples))
    for _ in range(_LOOKS if len(samples.Y) >= LEAST else 0):
        more = kept.without(*strays(kept.samples, choose(kept.samples, sigma, asked.look, rng)))
        if more is kept:
            break
        kept = more
    choice = choose(kept.samples, sigma, asked, rng)
    return kept.without(*strays(kept.samples, choice)), choice


class _Table:
    """Squared errors (k,) of every candidate on the rows that were set aside so far, over the variance of y."""

    def __init__(self, few: Samples) -> None:
        self.few, self.seen = few, np.zeros(len(few.Y), dtype=bool)
        self.errors: dict[Key, Array] = {}
        self.nets: dict[Key, list[Network]] = {}
        centre = np.average(few.Y, axis=0, weights=few.weight)
        spread = np.average((few.Y - centre) ** 2, axis=0, weights=few.weight)
        varies = spread > (1e-12 * centre) ** 2 + np.finfo(float).tiny
        self.scale = np.where(varies, 1.0, 0.0) / np.where(varies, spread, 1.0) / max(varies.sum(), 1)

    def note(self, key: Key, net: Network, aside: NDArray[np.bool_]) -> float:
        """Enter a network's errors on the rows set aside; returns their mean."""
        errors = self.errors.setdefault(key, np.full(len(self.few.Y), np.nan))
        errors[aside] = ((net(self.few.X[aside]) - self.few.Y[aside]) ** 2) @ self.scale
        self.nets.setdefault(key, []).append(net)
        return self.mean(errors, aside)

    def mean(self, errors: Array, rows: NDArray[np.bool_]) -> float:
        """Mean of errors, where an outlier counts as the largest error that is none."""
        e, w = errors[rows], None if self.few.weight is None else self.few.weight[rows]
        return float(np.average(np.minimum(e, limit(np.sqrt(e), w) ** 2), weights=w))

    def compared(self) -> dict[Key, Array]:
        """Errors of the candidates that every fold so far has tried; a fold leaves out those that did worse before."""
        return {key: e for key, e in self.errors.items() if not np.isnan(e[self.seen]).any()}

    def best(self, keys: dict[Key, Array], tie: float) -> Key:
        """The simplest candidate whose error is not worse than the least by more than ``tie`` standard errors.

        Differences are taken row by row, which is far sharper than comparing two means.
        """
        w = None if self.few.weight is None else self.few.weight[self.seen]
        clipped = {}
        for key, errors in keys.items():
            e = errors[self.seen]
            clipped[key] = np.minimum(e, limit(np.sqrt(e), w) ** 2)
        means = {key: float(np.average(e, weights=w)) for key, e in clipped.items()}
        least = min(means, key=lambda key: means[key])
        total = float(len(clipped[least]) if w is None else w.sum())

        def tied(key: Key) -> bool:
            apart = clipped[key] - clipped[least]
            excess = means[key] - means[least]
            return excess <= tie * float(np.sqrt(np.average((apart - excess) ** 2, weights=w) / total))

        return min((key for key in means if tied(key)), key=lambda key: (key[0], -key[1]))


def choose(samples: Samples, sigma: Activation, asked: Settled, rng: np.random.Generator) -> Choice:
    """Width and strength by validation in folds.

    The first fold tries all widths, as long as more units pay, the second the two best of them, the others one.
    """
    numbers, fold_of, distinct = _folds(samples, asked.folds, rng)
    if not distinct:
        return Choice(0, 1.0 if asked.alpha is None else asked.alpha)
    few = samples.at(numbers)
    table, widths, windows = _Table(few), _widths(asked, distinct, samples.d), dict[int, slice]()
    affine = not widths or (asked.width is None and asked.alpha is None)
    seeds = rng.integers(2**31, size=int(fold_of.max()) + 1)
    for fold, seed in enumerate(seeds):
        aside = fold_of == fold
        table.seen |= aside
        problem = Problem.of(few.at(~aside), sigma)
        for shrinkage in SHRINKAGES if affine else ():
            table.note((0, shrinkage), problem.affine(shrinkage), aside)
        widths = _fold(table, problem, asked, widths, windows, aside, int(seed), wider=fold == 0)
        if len(few.Y) >= _NARROW and fold < 2 and widths:
            widths = _narrowed(table, widths, 2 - fold)
    # where there will be more rows than were chosen by, they will pay for the less simple of two that tie
    key = table.best(table.compared(), _TIE if len(few.Y) == len(samples.Y) else 0.0)
    return _chosen(table, key, numbers, fold_of)


def _fold(
    table: _Table,
    problem: Problem,
    asked: Settled,
    widths: Sequence[int],
    windows: dict[int, slice],
    aside: NDArray[np.bool_],
    seed: int,
    *,
    wider: bool,
) -> list[int]:
    """Try widths on one fold, each on the part of its path that ``windows`` says; returns those that were tried."""
    tried: list[int] = []
    least = np.inf
    for k in widths:
        # later folds go only through the part of the path around the best strength of the first fold
        ridges = asked.ridges[windows.get(k, slice(None))]
        if asked.init is None:
            nets = problem.path(k, ridges, np.random.default_rng([seed, k]))
        else:
            nets = problem.onward(asked.init, ridges, 2)
        best, worse = np.inf, 0
        for at, (ridge, net) in enumerate(zip(ridges, nets)):
            if asked.alpha is not None and ridge != asked.alpha:
                continue  # only on the way to the strength that was asked for
            error = table.note((k, ridge), net, aside)
            best, worse = (error, 0) if error < best else (best, worse + 1)
            if worse == 0 and wider:
                windows[k] = slice(max(at - _BEFORE, 0), at + _AFTER)
            if worse >= _WORSE:
                break
        tried.append(k)
        if wider and len(tried) > 1 and best > _PAYS * least:
            break
        least = min(least, best)
    return tried


def _narrowed(table: _Table, widths: Sequence[int], count: int) -> list[int]:
    """The ``count`` widths that did best so far, increasing."""
    errors = {key: e for key, e in table.compared().items() if key[0]}
    if count == 1 and errors:
        return [table.best(errors, 0.0)[0]]
    by_width = {k: min(table.mean(e, table.seen) for key, e in errors.items() if key[0] == k) for k in widths}
    return sorted(sorted(by_width, key=lambda k: by_width[k])[:count])


def _chosen(table: _Table, key: Key, numbers: Numbers, fold_of: Numbers) -> Choice:
    starts = tuple(table.nets[key])
    residuals = np.empty_like(table.few.Y)
    for fold, net in enumerate(starts):
        residuals[fold_of == fold] = table.few.Y[fold_of == fold] - net(table.few.X[fold_of == fold])
    error = table.mean(table.errors[key], table.seen)
    used = round(len(fold_of) * (1.0 - 1.0 / len(starts)))
    tried = any(width for width, _ in table.errors)
    return Choice(*key, error, starts, numbers, residuals, table.few.weight, used, tried)


def _widths(asked: Settled, distinct: int, d: int) -> list[int]:
    if asked.init is not None and asked.init.m:
        return [asked.init.m]
    if distinct < _FEW or asked.width == 0:
        return []
    if asked.width is not None:
        return [asked.width]
    allowed = [k for k in WIDTHS if k * (d + 2) <= distinct]
    # many rows do as well with fifteen units and a strong ridge as with five
    return allowed[1:] if len(allowed) > 1 and distinct >= _NARROW else allowed


def _folds(samples: Samples, folds: int, rng: np.random.Generator) -> tuple[Numbers, Numbers, int]:
    """Numbers of rows enough to choose by, the fold of each, and how many of them are different (0: too few).

    Copies of a row have one fold, so that weights and repetitions are the same thing.
    """
    groups, distinct = same_rows(samples.X)
    order = rng.permutation(distinct)[groups]
    count = min(distinct, _MOST, max(_ENOUGH, round(_SHARE * distinct)))
    folds = max(folds, _FOLDS)
    if distinct < 2 * folds:
        return np.zeros(0, np.intp), np.zeros(0, np.intp), 0
    numbers = np.flatnonzero(order < count)
    return numbers, order[numbers] % folds, count


def strays(samples: Samples, choice: Choice) -> tuple[Numbers, Array]:
    """Outliers, worst first, and how many times the usual error (the median) each is off.

    A row that a fold set aside is judged by that fold's network, which has not seen it; any other by their mean.
    """
    if choice.residuals is None:
        return np.zeros(0, np.intp), np.zeros(0)
    E = choice.residuals
    if len(E) < len(samples.Y):
        E = samples.Y - average(choice.starts)(samples.X)
        E[choice.numbers] = choice.residuals
    return _beyond(E, samples)


def _beyond(E: Array, samples: Samples) -> tuple[Numbers, Array]:
    """Outliers among errors E (n, q), worst first, and how many times the median each is off."""
    usual = np.median(np.abs(E), axis=0)
    r = np.linalg.norm(E / np.where(usual > 0.0, usual, np.inf), axis=1)
    spread = 1.4826 * np.median(np.abs(samples.Y - np.median(samples.Y, axis=0)), axis=0)
    matters = (np.abs(E) > _MATTERS * spread).any(axis=1)
    found = np.flatnonzero(matters & (r > limit(r, samples.weight)))
    found = found[np.argsort(-r[found], kind="stable")]
    return found, r[found] / max(float(np.median(r)), np.finfo(float).tiny)
