"""Rows in the order in which they came: independent of each other, sorted, or a series.

Von Neumann's ratio Σ(x_{i+1} − x_i)²/2Σ(x_i − x̄)² of a column is 1, give or take 1/√n, for independent rows, and 1 − ρ
for a series whose neighbours have correlation ρ.
"""

from __future__ import annotations

import numpy as np

from relumine.arrays import Array

_SERIES = 0.5  # of the ratio of independent rows: with less, three rows say no more than one
_CHANCE = 6.0  # standard errors 1/√n of the ratio beyond which it is no accident


def alike_in_order(X: Array) -> bool:
    """Whether rows next to each other are alike in some input: a series, groups of rows, or sorted ones.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> alike_in_order(X), alike_in_order(X.cumsum(axis=0)), alike_in_order(np.repeat(X, 10, axis=0))
    (False, True, True)
    """
    return bool((_ratios(X) < min(_SERIES, 1.0 - _CHANCE / len(X) ** 0.5)).any())


def independent_rows(X: Array, y: Array) -> float:
    """About how many independent rows these are worth: n(1 − ρ)/(1 + ρ) if all inputs change slowly from row to row.

    Noise that changes as slowly as the inputs cannot be told from what they do. ρ is that of the input that changes
    most; where it is by chance, or where the rows are sorted by an input or by y, all of them count.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> independent_rows(X, X[:, 0]), independent_rows(X.cumsum(axis=0), X[:, 0]) < 10
    (300.0, True)
    >>> independent_rows(X[np.argsort(X[:, 1])], X[:, 0])
    300.0
    """
    n, ratios = len(X), _ratios(X)
    steps = np.diff(np.column_stack([X, y]), axis=0)
    in_order = (((steps >= 0.0).all(axis=0) | (steps <= 0.0).all(axis=0)) & steps.any(axis=0)).any()
    ratio = float(ratios.max(initial=0.0))
    if not len(ratios) or in_order or ratio > 1.0 - _CHANCE / n**0.5:
        return float(n)
    return n * ratio / (2.0 - ratio)


def _ratios(X: Array) -> Array:
    """Von Neumann's ratio of every column that varies."""
    squares = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    steps = (np.diff(X, axis=0) ** 2).sum(axis=0) / 2.0
    return np.asarray(steps[squares > 0.0] / squares[squares > 0.0])
