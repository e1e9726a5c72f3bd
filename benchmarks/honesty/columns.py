"""Inputs as tables have them: rows nearly repeated, counts, rare columns, columns from others, odd scales."""

from __future__ import annotations

import numpy as np

from benchmarks.honesty.problem import (
    Array,
    Problem,
    Rng,
    asked,
    clean,
    direction,
    family,
    gaussian,
    log_uniform,
    planted,
    rows_for,
    whole,
)


def _nearly_repeated(rng: Rng, X: Array) -> Array:
    """Every row several times, up to so little that no function shows it."""
    X = np.repeat(X, whole(rng, 2, 5), axis=0)
    return np.asarray(X + log_uniform(rng, 1e-15, 1e-8) * rng.normal(size=X.shape))


@family
def nearly_repeated_rows(rng: Rng) -> Problem:
    net = planted(rng)
    few = max(int(rng.uniform(0.8, 2.5) * net.m * (net.d + 1)), net.d + 6)
    X = _nearly_repeated(rng, rng.normal(size=(few, net.d)))
    return Problem(X, gaussian(net.d), net, options=asked(rng, net))


@family
def nearly_repeated_tail(rng: Rng) -> Problem:
    """relu² with d+1 rows behind the kink, and near copies of all rows."""
    d = whole(rng, 1, 4)
    w, X = direction(rng, d), rng.normal(size=(whole(rng, 80, 300), d))
    s = np.sort(X @ w)
    t = 0.5 * (s[-d - 1] + s[-d - 2])
    return Problem(_nearly_repeated(rng, X), gaussian(d), lambda X: np.maximum(X @ w - t, 0.0) ** 2)


@family
def counts(rng: Rng) -> Problem:
    """Inputs are whole numbers, small ones or large ones."""
    net, mean = planted(rng), log_uniform(rng, 0.3, 30.0)
    moved = net.replace(W=net.W / np.sqrt(mean), b=net.b - net.W.sum(axis=1) * np.sqrt(mean))
    return clean(rng, moved, lambda r, n: r.poisson(mean, size=(n, net.d)).astype(float), **asked(rng, net))


@family
def curve_of_counts(rng: Rng) -> Problem:
    d, mean = whole(rng, 1, 4), log_uniform(rng, 0.3, 5.0)
    w = direction(rng, d)

    def inputs(r: Rng, n: int) -> Array:
        return r.poisson(mean, size=(n, d)).astype(float)

    return Problem(inputs(rng, whole(rng, 60, 500)), inputs, lambda X: np.sqrt(np.abs(X @ w)))


@family
def sparse_inputs(rng: Rng) -> Problem:
    """Most entries are 0; half of the time those that are not act by their square, too."""
    net, share = planted(rng), log_uniform(rng, 0.02, 0.5)
    bent = rng.normal(size=net.d) * (rng.random() < 0.5)

    def inputs(r: Rng, n: int) -> Array:
        return np.asarray(r.normal(size=(n, net.d)) * (r.random((n, net.d)) < share))

    return Problem(inputs(rng, rows_for(rng, net)), inputs, lambda X: net(X) + X**2 @ bent, options=asked(rng, net))


@family
def rare_column(rng: Rng) -> Problem:
    """One more column, 0 but for a share of 1/n to 12/n, where it takes three values and acts by its square."""
    net = planted(rng)
    n, size, mixed = rows_for(rng, net), rng.uniform(0.5, 3.0), rng.random() < 0.5
    share = min(rng.uniform(1.0, 12.0) / n, 0.5)

    def inputs(r: Rng, k: int) -> Array:
        return np.column_stack([r.normal(size=(k, net.d)), (r.random(k) < share) * r.choice([1.0, 2.0, 3.0], size=k)])

    def target(X: Array) -> Array:
        return net(X[:, :-1]) + size * X[:, -1] * (X[:, 0] ** 2 if mixed else X[:, -1])

    return Problem(inputs(rng, n), inputs, target, options=asked(rng, net))


@family
def categories(rng: Rng) -> Problem:
    """Another plane for each of a few categories, which come as columns of 0 and 1."""
    d, k = whole(rng, 1, 4), whole(rng, 2, 6)
    W, b = rng.normal(size=(k, d)), rng.normal(size=k)

    def inputs(r: Rng, n: int) -> Array:
        return np.hstack([r.normal(size=(n, d)), np.eye(k)[r.integers(k, size=n)][:, 1:]])

    def target(X: Array) -> Array:
        which = np.where(X[:, d:].any(axis=1), X[:, d:].argmax(axis=1) + 1, 0)
        return np.einsum("nd,nd->n", X[:, :d], W[which]) + b[which]

    return Problem(inputs(rng, whole(rng, 60, 600)), inputs, target)


@family
def columns_from_others(rng: Rng) -> Problem:
    """Columns that follow from others, up to a little; the network does not look at them."""
    net, k = planted(rng), whole(rng, 1, 3)
    M, apart = rng.normal(size=(net.d, k)), log_uniform(rng, 1e-12, 1e-2)

    def inputs(r: Rng, n: int) -> Array:
        X = r.normal(size=(n, net.d))
        return np.hstack([X, X @ M + apart * r.normal(size=(n, k))])

    wider = net.replace(W=np.hstack([net.W, np.zeros((net.m, k))]), v=np.zeros(net.d + k))
    return clean(rng, wider, inputs, **asked(rng, net))


@family
def far_from_zero(rng: Rng) -> Problem:
    """Inputs 10² to 10¹² times as far from 0 as they vary."""
    net = planted(rng)
    centre = 10.0 ** rng.uniform(2.0, 12.0) * direction(rng, net.d)

    def inputs(r: Rng, n: int) -> Array:
        return np.asarray(centre + r.normal(size=(n, net.d)))

    return Problem(inputs(rng, rows_for(rng, net)), inputs, lambda X: net(X - centre), options=asked(rng, net))


@family
def huge_or_tiny(rng: Rng) -> Problem:
    """Inputs and answers of any size; half of the time something bends that is no unit."""
    net, bent = planted(rng), float(rng.random() < 0.5)
    (of_x, of_y), w, t = 10.0 ** rng.uniform(-69.0, 69.0, size=2), direction(rng, net.d), rng.uniform(0.0, 3.0)

    def inputs(r: Rng, n: int) -> Array:
        return np.asarray(of_x * r.normal(size=(n, net.d)))

    def target(X: Array) -> Array:
        return np.asarray(of_y * (net(X / of_x) + bent * np.maximum(X / of_x @ w - t, 0.0) ** 2))

    return Problem(inputs(rng, rows_for(rng, net)), inputs, target, options=asked(rng, net))
