"""Labels that are not the network's own: rounded, shifted, noisy in every way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import relumine as rl
from benchmarks.honesty.problem import (
    Array,
    Inputs,
    Problem,
    Rng,
    family,
    gaussian,
    log_uniform,
    planted,
    rows_for,
    spread_of,
    whole,
)

Observe = Callable[[Rng, Array, Array], Array]


def _observed(
    rng: Rng, net: rl.Network, observe: Observe, inputs: Inputs | None = None, n: int | None = None, known: float = 0.7
) -> Problem:
    inputs = inputs or gaussian(net.d)
    options = {"width": net.m} if rng.random() < known else {}
    return Problem(inputs(rng, n or rows_for(rng, net)), inputs, net, observe, options=options)


def _single(X: Array) -> Array:
    return X.astype(np.float32).astype(np.float64)


def _biased(rng: Rng) -> rl.Network:
    net = planted(rng)
    return net.replace(c=np.float64(rng.uniform(-2.0, 2.0)))


@family
def single_precision_labels(rng: Rng) -> Problem:
    return _observed(rng, _biased(rng), lambda r, X, y: _single(y))


@family
def single_precision_network(rng: Rng) -> Problem:
    """Everything computed in single precision."""
    net = _biased(rng)
    W, b, a, c = (np.asarray(part, dtype=np.float32) for part in (net.W, net.b, net.a, net.c))

    def observe(r: Rng, X: Array, y: Array) -> Array:
        return (np.maximum(X.astype(np.float32) @ W.T + b, 0.0) @ a + c).astype(np.float64)

    inputs: Inputs = lambda r, n: _single(r.normal(size=(n, net.d)))  # noqa: E731
    return _observed(rng, net, observe, inputs)


@family
def single_precision_inputs(rng: Rng) -> Problem:
    """y comes from inputs with more digits than those that were kept."""
    net = _biased(rng)

    def observe(r: Rng, X: Array, y: Array) -> Array:
        return net(X * (1.0 + 2.0**-25 * r.uniform(-1.0, 1.0, size=X.shape)))

    return _observed(rng, net, observe, lambda r, n: _single(r.normal(size=(n, net.d))))


@family
def decimals(rng: Rng) -> Problem:
    k = whole(rng, 0, 8)
    return _observed(rng, _biased(rng), lambda r, X, y: np.round(y, k))


@family
def decimals_everywhere(rng: Rng) -> Problem:
    k, net = whole(rng, 1, 5), _biased(rng)
    return _observed(rng, net, lambda r, X, y: np.round(y, k), lambda r, n: np.round(r.normal(size=(n, net.d)), k))


@family
def offset(rng: Rng) -> Problem:
    shift, net = 10.0 ** rng.uniform(2.0, 16.5), planted(rng)
    return _observed(rng, net.replace(c=np.float64(shift)), lambda r, X, y: y)


@family
def offset_in_single_precision(rng: Rng) -> Problem:
    shift, net = 10.0 ** rng.uniform(0.0, 7.5), planted(rng)
    problem = _observed(rng, net.replace(c=np.float64(shift)), lambda r, X, y: _single(y))
    return replace(problem, drawn=True)


@family
def steep_plane(rng: Rng) -> Problem:
    """An affine part 10² to 10¹⁵ times the units."""
    scale, net = 10.0 ** rng.uniform(2.0, 15.0), planted(rng)
    return _observed(rng, net.replace(v=scale * rng.normal(size=net.d)), lambda r, X, y: y)


@family
def gaussian_noise(rng: Rng) -> Problem:
    net = planted(rng)
    s = spread_of(net) * log_uniform(rng, 1e-3, 0.5)
    return _observed(rng, net, lambda r, X, y: y + s * r.normal(size=y.shape))


@family
def noise_and_few_rows(rng: Rng) -> Problem:
    net = planted(rng)
    n, s = (
        max(int(rng.uniform(1.2, 4.0) * net.m * (net.d + 1)), net.d + 6),
        spread_of(net) * log_uniform(rng, 1e-3, 0.5),
    )
    return _observed(rng, net, lambda r, X, y: y + s * r.normal(size=y.shape), n=n)


@family
def tiny_noise(rng: Rng) -> Problem:
    net = planted(rng)
    s = spread_of(net) * log_uniform(rng, 1e-11, 1e-5)
    return _observed(rng, net, lambda r, X, y: y + s * r.normal(size=y.shape))


@family
def noise_with_tails(rng: Rng) -> Problem:
    net, nu = planted(rng), rng.uniform(2.2, 5.0)
    s = spread_of(net) * log_uniform(rng, 1e-2, 0.3)
    return _observed(rng, net, lambda r, X, y: y + s * r.standard_t(nu, size=y.shape))


@family
def outliers(rng: Rng) -> Problem:
    net, share, far = planted(rng), rng.uniform(0.005, 0.1), log_uniform(rng, 1.0, 100.0)
    s = spread_of(net)

    def observe(r: Rng, X: Array, y: Array) -> Array:
        return np.asarray(y + s * far * (r.random(y.shape) < share) * r.normal(size=y.shape))

    return _observed(rng, net, observe)


@family
def noise_that_varies(rng: Rng) -> Problem:
    net = planted(rng)
    s = spread_of(net) * log_uniform(rng, 1e-2, 0.3)
    return _observed(rng, net, lambda r, X, y: y + s * np.abs(X[:, 0]) * r.normal(size=y.shape))


@family
def noise_of_a_percentage(rng: Rng) -> Problem:
    net, share = planted(rng), log_uniform(rng, 1e-4, 0.3)
    return _observed(rng, net, lambda r, X, y: y * (1.0 + share * r.normal(size=y.shape)))


@family
def coin_noise(rng: Rng) -> Problem:
    net = planted(rng)
    s = spread_of(net) * log_uniform(rng, 1e-3, 0.3)
    return _observed(rng, net, lambda r, X, y: y + s * r.choice([-1.0, 1.0], size=y.shape))


@family
def noise_in_the_inputs(rng: Rng) -> Problem:
    net, s = planted(rng), log_uniform(rng, 1e-8, 0.2)
    return _observed(rng, net, lambda r, X, y: net(X + s * r.normal(size=X.shape)))


@family
def known_weights(rng: Rng) -> Problem:
    """Noise of very different size, the weights say so."""
    net, decades = planted(rng), rng.uniform(0.5, 3.0)
    s = spread_of(net) * log_uniform(rng, 1e-3, 0.1)

    def weight(X: Array) -> Array:
        return np.asarray(10.0 ** (decades * np.tanh(X[:, 0])))

    problem = _observed(rng, net, lambda r, X, y: y + s / np.sqrt(weight(X)) * r.normal(size=y.shape))
    return Problem(problem.X, problem.inputs, net, problem.observe, weight, problem.options)


@family
def nothing_but_noise(rng: Rng) -> Problem:
    d = whole(rng, 1, 8)
    inputs = gaussian(d)
    return Problem(
        inputs(rng, whole(rng, 40, 600)), inputs, lambda X: np.zeros(len(X)), lambda r, X, y: r.normal(size=len(X))
    )


@family
def noise_and_a_plane(rng: Rng) -> Problem:
    d = whole(rng, 1, 8)
    v, s, inputs = rng.normal(size=d), log_uniform(rng, 1e-6, 1.0), gaussian(d)
    return Problem(
        inputs(rng, whole(rng, 40, 600)), inputs, lambda X: X @ v + 1.0, lambda r, X, y: y + s * r.normal(size=len(X))
    )


@family
def noise_and_far_rows(rng: Rng) -> Problem:
    """A few rows far out have all the leverage."""
    net = planted(rng)
    s, share = spread_of(net) * log_uniform(rng, 1e-2, 0.3), rng.uniform(0.005, 0.05)

    def inputs(r: Rng, n: int) -> Array:
        return np.asarray(r.normal(size=(n, net.d)) * np.where(r.random(n) < share, 20.0, 1.0)[:, None])

    return _observed(rng, net, lambda r, X, y: y + s * r.normal(size=y.shape), inputs)


@family
def noise_and_a_rare_unit(rng: Rng) -> Problem:
    net = planted(rng)
    n, w = rows_for(rng, net), rng.normal(size=net.d)
    w /= np.linalg.norm(w)
    t = np.quantile(rng.normal(size=100_000), 1.0 - min(rng.uniform(1.0, 20.0) / n, 0.5))
    wider = rl.Network(np.vstack([net.W, w]), np.append(net.b, -t), np.append(net.a, rng.uniform(1.0, 10.0)))
    s = spread_of(net) * log_uniform(rng, 1e-3, 0.2)
    return _observed(rng, wider, lambda r, X, y: y + s * r.normal(size=y.shape), n=n, known=0.5)


@family
def noise_and_a_smooth_target(rng: Rng) -> Problem:
    d, s = whole(rng, 1, 4), log_uniform(rng, 1e-3, 0.3)
    w, inputs = rng.normal(size=d), gaussian(d)
    options = {"width": whole(rng, 1, 6)} if rng.random() < 0.5 else {}
    n = whole(rng, 40, 600)
    return Problem(
        inputs(rng, n), inputs, lambda X: np.sin(X @ w), lambda r, X, y: y + s * r.normal(size=y.shape), options=options
    )


@family
def one_noisy_output(rng: Rng) -> Problem:
    net = planted(rng, outputs=whole(rng, 2, 3))
    s = log_uniform(rng, 1e-3, 0.5)

    def observe(r: Rng, X: Array, y: Array) -> Array:
        y = y.copy()
        y[:, 0] += s * r.normal(size=len(y))
        return y

    return _observed(rng, net, observe)


@family
def noise_and_other_activations(rng: Rng) -> Problem:
    name = ("leaky_relu", "squared_relu", "tanh", "sigmoid")[whole(rng, 0, 3)]
    net = planted(rng, activation=name)
    s = spread_of(net) * log_uniform(rng, 1e-3, 0.3)
    problem = _observed(rng, net, lambda r, X, y: y + s * r.normal(size=y.shape))
    return Problem(problem.X, problem.inputs, net, problem.observe, options={**problem.options, "activation": name})


@family
def noise_copied_rows(rng: Rng) -> Problem:
    """Each row several times with its own noise, and few different ones."""
    net = planted(rng)
    few = max(int(rng.uniform(1.0, 3.0) * net.m * (net.d + 1)), net.d + 6)
    s = spread_of(net) * log_uniform(rng, 1e-2, 0.3)
    X = np.repeat(rng.normal(size=(few, net.d)), whole(rng, 2, 5), axis=0)
    return Problem(X, gaussian(net.d), net, lambda r, X, y: y + s * r.normal(size=y.shape), options={"width": net.m})


@family
def half_precision_labels(rng: Rng) -> Problem:
    net = planted(rng).replace(c=np.float64(rng.uniform(-1.0, 1.0) * log_uniform(rng, 1e-2, 1e2)))
    return _observed(rng, net, lambda r, X, y: y.astype(np.float16).astype(np.float64))


@family
def significant_digits(rng: Rng) -> Problem:
    """So many digits of every number, however small it is."""
    k = whole(rng, 2, 7)

    def observe(r: Rng, X: Array, y: Array) -> Array:
        last = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(y), 1e-300))) - k + 1)
        return np.asarray(np.round(y / last) * last)

    return _observed(rng, _biased(rng), observe)


@family
def mixed_digits(rng: Rng) -> Problem:
    """Some rows have few decimals and the others many: at random, or on one side of a plane."""
    few, many, share, placed = whole(rng, 1, 6), whole(rng, 6, 15), rng.uniform(0.02, 0.98), rng.random() < 0.5

    def observe(r: Rng, X: Array, y: Array) -> Array:
        there = X[:, 0] > 4.0 * share - 2.0 if placed else r.random(len(X)) < share
        return np.where(there, np.round(y, few), np.round(y, many))

    return _observed(rng, planted(rng), observe)


@family
def noise_on_one_side(rng: Rng) -> Problem:
    net, t = planted(rng), rng.uniform(-1.0, 3.0)
    s = spread_of(net) * log_uniform(rng, 1e-4, 0.5)
    return _observed(rng, net, lambda r, X, y: y + s * (X[:, 0] > t) * r.normal(size=y.shape))


@family
def noise_that_grows(rng: Rng) -> Problem:
    net, rate = planted(rng), rng.uniform(0.5, 2.0)
    s = spread_of(net) * log_uniform(rng, 1e-5, 0.1)
    return _observed(rng, net, lambda r, X, y: y + s * np.exp(rate * X[:, 0]) * r.normal(size=y.shape))


@family
def skewed_noise(rng: Rng) -> Problem:
    net = planted(rng)
    s = spread_of(net) * log_uniform(rng, 1e-3, 0.3)
    return _observed(rng, net, lambda r, X, y: y + s * (r.exponential(size=y.shape) ** 2 - 2.0))


@family
def now_and_then_another(rng: Rng) -> Problem:
    """A share of about 0.5/n to 12/n of the rows, which nothing tells apart, comes from another network."""
    net = planted(rng)
    other, n = rl.planted.network(net.d, 2, rng=rng), rows_for(rng, net)
    share = min(rng.uniform(0.5, 12.0) / n, 0.4)
    return _observed(rng, net, lambda r, X, y: np.where(r.random(len(y)) < share, other(X), y), n=n)


@family
def weights_that_hide(rng: Rng) -> Problem:
    """Rows behind a plane weigh next to nothing, and there is something else."""
    net, t, little = planted(rng), rng.uniform(-0.5, 2.5), log_uniform(rng, 1e-16, 1e-4)
    s, inputs = spread_of(net) * log_uniform(rng, 1e-3, 0.1) * (rng.random() < 0.5), gaussian(net.d)
    return Problem(
        inputs(rng, rows_for(rng, net)),
        inputs,
        lambda X: net(X) + np.maximum(X[:, 0] - t, 0.0) ** 2,
        lambda r, X, y: y + s * r.normal(size=y.shape),
        weight=lambda X: np.where(X[:, 0] > t, little, 1.0),
        options={"width": net.m} if rng.random() < 0.5 else {},
    )
