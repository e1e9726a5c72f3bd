"""Records as people keep them: rows that remember others, half-exact ones, codes, digits that vary, huge entries."""

from __future__ import annotations

import numpy as np

import relumine as rl
from benchmarks.honesty.problem import (
    Array,
    Problem,
    Rng,
    asked,
    direction,
    family,
    gaussian,
    log_uniform,
    planted,
    rows_for,
    spread_of,
    whole,
)


@family
def memory_of_the_row_before(rng: Rng) -> Problem:
    """Each answer has a share of the answer before it."""
    net, share = planted(rng), log_uniform(rng, 1e-9, 0.5)
    observe = lambda r, X, y: y + share * np.roll(y, 1)  # noqa: E731
    return Problem(
        rng.normal(size=(rows_for(rng, net), net.d)), gaussian(net.d), net, observe, options=asked(rng, net, 0.6)
    )


@family
def difference_of_two_columns(rng: Rng) -> Problem:
    """A column comes twice, up to a little, and it is the little that bends."""
    net, apart = planted(rng), log_uniform(rng, 1e-9, 1e-2)
    bent = float(rng.random() < 0.5)

    def inputs(r: Rng, n: int) -> Array:
        X = r.normal(size=(n, net.d))
        return np.column_stack([X, X[:, 0] + apart * r.normal(size=n)])

    def target(X: Array) -> Array:
        z = (X[:, -1] - X[:, 0]) / apart
        return net(X[:, :-1]) + np.maximum(z - 1.0, 0.0) ** (1.0 + bent)

    return Problem(inputs(rng, rows_for(rng, net)), inputs, target, options={})


@family
def weights_of_twelve_orders(rng: Rng) -> Problem:
    """Weights between 1e-6 and 1e6 that have nothing to do with the noise; half of the time relu² on the tail, too."""
    net = planted(rng)
    n, w, wave = rows_for(rng, net), direction(rng, net.d), rng.uniform(5.0, 50.0, size=net.d)
    t, bent = rng.uniform(1.0, 3.0), float(rng.random() < 0.5)
    s = 0.0 if rng.random() < 0.5 else spread_of(net) * log_uniform(rng, 1e-3, 0.1)
    weight = lambda X: np.asarray(10.0 ** (6.0 * np.sin(X @ wave)))  # noqa: E731
    return Problem(
        rng.normal(size=(n, net.d)),
        gaussian(net.d),
        lambda X: net(X) + bent * np.maximum(X @ w - t, 0.0) ** 2,
        lambda r, X, y: y + s * r.normal(size=y.shape),
        weight,
        options=asked(rng, net, 0.6),
    )


@family
def entries_near_infinity(rng: Rng) -> Problem:
    """A few entries are 10^10 to 10^150 times as large as the others."""
    net, share = planted(rng), rng.uniform(0.002, 0.05)
    size = 10.0 ** rng.uniform(10.0, 150.0)

    def inputs(r: Rng, n: int) -> Array:
        return np.asarray(r.normal(size=(n, net.d)) * np.where(r.random((n, net.d)) < share, size, 1.0))

    return Problem(inputs(rng, rows_for(rng, net)), inputs, net, options=asked(rng, net))


@family
def whole_numbers_of_64_bits(rng: Rng) -> Problem:
    """Answers as whole numbers, beside 2^40 to 2^62: the last bits are lost."""
    net, shift = planted(rng), 2.0 ** rng.uniform(40.0, 62.0)
    counted = net.replace(a=net.a * log_uniform(rng, 1.0, 1e6) / spread_of(net), c=np.float64(shift))
    observe = lambda r, X, y: np.round(y)  # noqa: E731
    X = rng.normal(size=(rows_for(rng, net), net.d))
    return Problem(X, gaussian(net.d), counted, observe, options=asked(rng, net, 0.6), drawn=True)


@family
def half_precision_everywhere(rng: Rng) -> Problem:
    """Inputs and answers in half precision; y comes from the inputs as they are kept, or as they were."""
    net, kept = planted(rng), rng.random() < 0.5
    inputs = lambda r, n: r.normal(size=(n, net.d)).astype(np.float16).astype(float)  # noqa: E731

    def observe(r: Rng, X: Array, y: Array) -> Array:
        was = X if kept else X * (1.0 + 2.0**-12 * r.uniform(-1.0, 1.0, X.shape))
        return net(was).astype(np.float16).astype(float)

    return Problem(inputs(rng, rows_for(rng, net)), inputs, net, observe, options=asked(rng, net, 0.6), drawn=True)


@family
def codes(rng: Rng) -> Problem:
    """One input is the code of a category, 0, 1, 2 …, and each has an answer of its own; some are rare."""
    net, k = planted(rng), whole(rng, 3, 12)
    values, rare = rng.normal(size=k), rng.dirichlet(np.full(k, 0.7))

    def inputs(r: Rng, n: int) -> Array:
        return np.column_stack([r.normal(size=(n, net.d)), r.choice(k, size=n, p=rare).astype(float)])

    return Problem(
        inputs(rng, rows_for(rng, net)), inputs, lambda X: net(X[:, :-1]) + values[X[:, -1].astype(int)], options={}
    )


@family
def exact_rows_and_noisy_ones(rng: Rng) -> Problem:
    """A share of the rows is exact, the others have noise: computed and measured ones in one table."""
    net, share = planted(rng), rng.uniform(0.1, 0.98)
    s = spread_of(net) * log_uniform(rng, 1e-7, 0.3)
    observe = lambda r, X, y: y + s * (r.random(y.shape) >= share) * r.normal(size=y.shape)  # noqa: E731
    return Problem(
        rng.normal(size=(rows_for(rng, net), net.d)), gaussian(net.d), net, observe, options=asked(rng, net, 0.6)
    )


@family
def decimals_that_vary(rng: Rng) -> Problem:
    """Rounded to a step that depends on the place: fine on one side, up to a million times coarser on the other."""
    net, w, decades = planted(rng), direction(rng, 8), rng.uniform(1.0, 6.0)
    finest = spread_of(net) * log_uniform(rng, 1e-9, 1e-4)

    def observe(r: Rng, X: Array, y: Array) -> Array:
        step = finest * 10.0 ** np.round(decades * (X @ w[: net.d] > 0.7))
        return np.asarray(np.round(y / step) * step)

    return Problem(
        rng.normal(size=(rows_for(rng, net), net.d)), gaussian(net.d), net, observe, options=asked(rng, net, 0.6)
    )


@family
def units_that_nearly_cancel(rng: Rng) -> Problem:
    """Two units of opposite sign, 1e-7 to 1e-1 rad apart, with output weights up to one over that."""
    d, m, angle = whole(rng, 2, 6), whole(rng, 2, 5), log_uniform(rng, 1e-7, 1e-1)
    net = rl.planted.network(d, m, rng=rng)
    W, b, a = net.W.copy(), net.b.copy(), net.a.copy()
    W[1], b[1] = W[0] + angle * rng.normal(size=d), b[0] + angle * rng.normal()
    a[0] = a[0] * log_uniform(rng, 1.0, 1.0 / angle)
    a[1] = -a[0]
    net = rl.Network(W, b, a)
    s = 0.0 if rng.random() < 0.5 else spread_of(net) * log_uniform(rng, 1e-6, 0.1)
    noisy = lambda r, X, y: y + s * r.normal(size=y.shape)  # noqa: E731
    return Problem(rng.normal(size=(rows_for(rng, net), d)), gaussian(d), net, noisy, options=asked(rng, net, 0.6))
