"""Rows that are less than they seem: clusters, series, mixtures, leaks, answers that depend on something unseen."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

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
def clusters_on_the_tail(rng: Rng) -> Problem:
    """relu² behind d+1 or a few more rows, each of which comes with others next to it."""
    d, n = whole(rng, 1, 4), whole(rng, 80, 300)
    w, X = direction(rng, d), rng.normal(size=(n, d))
    s, behind = np.sort(X @ w), d + 1 + whole(rng, 0, 1)
    t = 0.5 * (s[-behind] + s[-behind - 1])
    tail, width = X[X @ w > t], log_uniform(rng, 1e-6, 3e-2)
    near = np.repeat(tail, whole(rng, 2, 20), axis=0)
    X = np.vstack([X, near + width * rng.normal(size=near.shape)])
    options = {"width": 1} if rng.random() < 0.5 else {}
    return Problem(rng.permutation(X), gaussian(d), lambda X: np.maximum(X @ w - t, 0.0) ** 2, options=options)


@family
def repeated_measurements(rng: Rng) -> Problem:
    """As many places as a network has parameters, up to three times as many, several noisy rows near each."""
    net = planted(rng)
    places = max(int(rng.uniform(1.0, 3.0) * net.m * (net.d + 1)), net.d + 6)
    s, width = spread_of(net) * log_uniform(rng, 1e-3, 0.3), log_uniform(rng, 1e-6, 3e-2)
    X = np.repeat(rng.normal(size=(places, net.d)), whole(rng, 3, 12), axis=0)[:1500]
    X = X + width * rng.normal(size=X.shape)
    noisy = lambda r, X, y: y + s * r.normal(size=y.shape)  # noqa: E731
    return Problem(rng.permutation(X), gaussian(net.d), net, noisy, options=asked(rng, net, 0.6))


@family
def noise_that_varies_and_few_rows(rng: Rng) -> Problem:
    net = planted(rng)
    n = max(int(rng.uniform(1.5, 4.0) * net.m * (net.d + 1)), net.d + 8)
    w, s, decades = direction(rng, net.d), spread_of(net) * log_uniform(rng, 1e-2, 0.3), rng.uniform(0.3, 1.5)
    noisy = lambda r, X, y: y + s * 10.0 ** (decades * np.tanh(X @ w)) * r.normal(size=y.shape)  # noqa: E731
    return Problem(rng.normal(size=(n, net.d)), gaussian(net.d), net, noisy, options=asked(rng, net, 0.6))


@family
def two_networks_by_a_coin(rng: Rng) -> Problem:
    """Nothing in the inputs says which of the two answers."""
    net = planted(rng)
    other = rl.planted.network(net.d, net.m, rng=rng)
    share, far = log_uniform(rng, 0.005, 0.5), log_uniform(rng, 1e-3, 1.0)

    def observe(r: Rng, X: Array, y: Array) -> Array:
        return np.where(r.random(len(X)) < share, y + far * (other(X) - y), y)

    return Problem(
        rng.normal(size=(rows_for(rng, net), net.d)), gaussian(net.d), net, observe, options=asked(rng, net, 0.6)
    )


@family
def a_series(rng: Rng) -> Problem:
    """Rows in the order of time, along one path through the inputs; half of the time the noise changes slowly, too."""
    net, slow = planted(rng), 1.0 - log_uniform(rng, 1e-3, 0.5)
    s, slow_noise = spread_of(net) * log_uniform(rng, 1e-3, 0.3), slow if rng.random() < 0.5 else 0.0
    n = rows_for(rng, net)

    def series(r: Rng, length: int, d: int, rho: float) -> Array:
        steps = np.sqrt(1.0 - rho**2) * r.normal(size=(length, d))
        steps[0] /= np.sqrt(1.0 - rho**2)
        return np.asarray(lfilter([1.0], [1.0, -rho], steps, axis=0))

    path = series(rng, 10 * n, net.d, slow**0.1)

    def inputs(r: Rng, count: int) -> Array:
        return path[r.integers(len(path), size=count)]

    noisy = lambda r, X, y: y + s * series(r, len(X), 1, slow_noise)[:, 0]  # noqa: E731
    return Problem(
        path[np.sort(rng.choice(len(path), n, replace=False))], inputs, net, noisy, options=asked(rng, net, 0.6)
    )


@family
def answers_are_counts(rng: Rng) -> Problem:
    """Poisson counts with the network as their mean: whole numbers, and noise that depends on the answer."""
    net, mean = planted(rng), log_uniform(rng, 0.3, 300.0)
    size = mean / spread_of(net)
    counted = net.replace(a=net.a * size, c=np.float64(mean * rng.uniform(0.0, 2.0)))
    observe = lambda r, X, y: r.poisson(np.maximum(y, 0.0)).astype(float)  # noqa: E731
    X = rng.normal(size=(rows_for(rng, net), net.d))
    return Problem(X, gaussian(net.d), counted, observe, options=asked(rng, net, 0.6), drawn=True)


@family
def leak_now_and_then(rng: Rng) -> Problem:
    """One more column holds the answer itself, up to a little, but for a share of 2/n to 60/n, where it is 0."""
    net, apart = planted(rng), log_uniform(rng, 1e-9, 0.1)
    rows = rows_for(rng, net)
    share = min(rng.uniform(2.0, 60.0) / rows, 0.5)
    s = spread_of(net)

    def inputs(r: Rng, n: int) -> Array:
        X = r.normal(size=(n, net.d))
        leaked = (net(X) + s * apart * r.normal(size=n)) * (r.random(n) >= share)
        return np.column_stack([X, leaked])

    return Problem(inputs(rng, rows), inputs, lambda X: net(X[:, :-1]))


@family
def weights_and_copies(rng: Rng) -> Problem:
    """relu² behind d+1 rows beside a network; those rows come many times, with weights of any size, and noise."""
    net = planted(rng)
    n, w = rows_for(rng, net), direction(rng, net.d)
    X = rng.normal(size=(n, net.d))
    s = np.sort(X @ w)
    t, noise = 0.5 * (s[-net.d - 1] + s[-net.d - 2]), spread_of(net) * log_uniform(rng, 1e-6, 1e-1)
    X = np.vstack([X, np.repeat(X[X @ w > t], whole(rng, 1, 10), axis=0)])
    wave = rng.uniform(0.5, 5.0, size=net.d)

    def weight(X: Array) -> Array:
        return np.asarray(10.0 ** (2.0 * np.sin(X @ wave)))

    return Problem(
        rng.permutation(X),
        gaussian(net.d),
        lambda X: net(X) + np.maximum(X @ w - t, 0.0) ** 2,
        lambda r, X, y: y + noise / np.sqrt(weight(X)) * r.normal(size=y.shape),
        weight,
        options=asked(rng, net, 0.6),
    )


@family
def a_place_with_its_own_answer(rng: Rng) -> Problem:
    """Many rows are exactly 0, and there the answer is another one than next to it."""
    net, share, jump = planted(rng), rng.uniform(0.02, 0.8), log_uniform(rng, 1e-6, 1.0)
    s = 0.0 if rng.random() < 0.5 else spread_of(net) * log_uniform(rng, 1e-3, 0.1)

    def inputs(r: Rng, n: int) -> Array:
        return np.asarray(r.normal(size=(n, net.d)) * (r.random((n, 1)) >= share))

    target = lambda X: net(X) + jump * (~X.any(axis=1))  # noqa: E731
    noisy = lambda r, X, y: y + s * r.normal(size=y.shape)  # noqa: E731
    return Problem(inputs(rng, rows_for(rng, net)), inputs, target, noisy, options=asked(rng, net, 0.6))


@family
def noise_under_a_ceiling(rng: Rng) -> Problem:
    """Answers are cut off above and below after the noise, as an instrument does."""
    net = planted(rng)
    size = spread_of(net)
    s, cut = size * log_uniform(rng, 1e-3, 0.5), size * rng.uniform(0.3, 3.0)
    mean = float(net(np.random.default_rng(0).normal(size=(2000, net.d))).mean())

    def observe(r: Rng, X: Array, y: Array) -> Array:
        return np.clip(y + s * r.normal(size=y.shape), mean - cut, mean + cut)

    return Problem(
        rng.normal(size=(rows_for(rng, net), net.d)), gaussian(net.d), net, observe, options=asked(rng, net, 0.6)
    )


@family
def wave_in_a_corner(rng: Rng) -> Problem:
    """A network, and a wave of any height where two or three inputs are large together."""
    net = planted(rng)
    w, rate, height = direction(rng, net.d), log_uniform(rng, 1.0, 100.0), log_uniform(rng, 1e-5, 1.0)
    k, t = min(net.d, whole(rng, 2, 3)), rng.uniform(0.3, 1.5)
    s = 0.0 if rng.random() < 0.5 else spread_of(net) * log_uniform(rng, 1e-3, 0.1)

    def target(X: Array) -> Array:
        return net(X) + height * (X[:, :k] > t).all(axis=1) * np.sin(rate * (X @ w))

    noisy = lambda r, X, y: y + s * r.normal(size=y.shape)  # noqa: E731
    n = rows_for(rng, net)
    return Problem(rng.normal(size=(n, net.d)), gaussian(net.d), target, noisy, options=asked(rng, net, 0.6))


@family
def bump_in_one_output(rng: Rng) -> Problem:
    """Several outputs share their units; one of them also has a bump that a few rows see."""
    d, m, q = whole(rng, 1, 6), whole(rng, 1, 4), whole(rng, 2, 5)
    net = rl.planted.network(d, m, rng=rng, outputs=q)
    n = int(np.clip(rng.uniform(4.0, 12.0) * (m + 1) * (d + 1), d + 6, 600))
    centre, height = rng.normal(size=d), log_uniform(rng, 1e-4, 3.0)
    squares = ((rng.normal(size=(100_000, d)) - centre) ** 2).sum(axis=1)
    size = np.quantile(squares, min(rng.uniform(0.5, 10.0) / n, 0.3))
    s = 0.0 if rng.random() < 0.5 else log_uniform(rng, 1e-4, 0.1)

    def target(X: Array) -> Array:
        y = net(X).copy()
        y[:, 0] += height * np.maximum(1.0 - ((X - centre) ** 2).sum(axis=1) / size, 0.0) ** 2
        return y

    noisy = lambda r, X, y: y + s * r.normal(size=y.shape)  # noqa: E731
    options = {"width": m} if rng.random() < 0.6 else {}
    return Problem(rng.normal(size=(n, d)), gaussian(d), target, noisy, options=options)
