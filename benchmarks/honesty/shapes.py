"""Functions that are not networks of one hidden layer, or look like smaller ones than they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import relumine as rl
from benchmarks.honesty.problem import (
    Array,
    Inputs,
    Problem,
    Rng,
    clean,
    direction,
    family,
    gaussian,
    log_uniform,
    planted,
    rows_for,
    uniform,
    whole,
)

relu = rl.activations.get("relu")


def _of(rng: Rng, d: int, target: Callable[[Array], Array], n: int | None = None, widths: bool = True) -> Problem:
    inputs = gaussian(d)
    options = {"width": whole(rng, 1, 6)} if widths and rng.random() < 0.4 else {}
    return Problem(inputs(rng, n or whole(rng, 60, 600)), inputs, target, options=options)


def _along(rng: Rng, d: int, n: int) -> tuple[Array, Inputs, Array]:
    """A direction w (d,), normal inputs, and n rows of them: what bends along one direction."""
    w, inputs = direction(rng, d), gaussian(d)
    return w, inputs, inputs(rng, n)


def _above(X: Array, w: Array, rows: int) -> float:
    """A threshold on w·x that the last ``rows`` of the rows of X exceed."""
    s = np.sort(X @ w)
    return float(0.5 * (s[-rows] + s[-rows - 1]))


def _curve(z: Array) -> Array:
    """A smooth step from 0 to 1 on [0, 1]."""
    u = np.clip(z, 0.0, 1.0)
    return np.asarray(3.0 * u * u - 2.0 * u**3)


@family
def smooth_ramp(rng: Rng) -> Problem:
    """A smooth step so short that a few rows lie on it: straight lines explain them."""
    n, width = whole(rng, 40, 300), log_uniform(rng, 0.02, 0.6)
    t, inputs = rng.uniform(-3.0, 3.0), uniform(1, 5.0)
    return Problem(inputs(rng, n), inputs, lambda X: _curve((X[:, 0] - t) / width))


@family
def ramp_of_two_rows(rng: Rng) -> Problem:
    """The same in d dimensions with d to d+2 rows on the ramp."""
    d, n = whole(rng, 1, 5), whole(rng, 80, 300)
    w, inputs, X = _along(rng, d, n)
    s = np.sort(X @ w)
    first = whole(rng, n // 4, n // 2)
    low, high = s[first], s[first + whole(rng, d, d + 2) + 1]
    return Problem(X, inputs, lambda X: _curve((X @ w - low) / (high - low)))


@family
def smooth_tail(rng: Rng) -> Problem:
    """relu² with d to d+2 rows behind the kink: a plane explains them."""
    d, n = whole(rng, 1, 6), whole(rng, 80, 400)
    w, inputs, X = _along(rng, d, n)
    t = _above(X, w, whole(rng, d, d + 2))
    return Problem(X, inputs, lambda X: np.maximum(X @ w - t, 0.0) ** 2)


@family
def smooth_tail_on_network(rng: Rng) -> Problem:
    """A network plus such a tail."""
    net = planted(rng)
    w, inputs, X = _along(rng, net.d, rows_for(rng, net))
    t = _above(X, w, whole(rng, 1, net.d + 2))
    return Problem(X, inputs, lambda X: net(X) + 3.0 * np.maximum(X @ w - t, 0.0) ** 2)


@family
def two_tails(rng: Rng) -> Problem:
    d, n = whole(rng, 1, 4), whole(rng, 80, 400)
    w, inputs, X = _along(rng, d, n)
    high, low = _above(X, w, d + 1), -_above(X, -w, d + 1)
    return Problem(X, inputs, lambda X: np.maximum(X @ w - high, 0.0) ** 2 - np.maximum(low - X @ w, 0.0) ** 1.5)


@family
def copies_on_the_tail(rng: Rng) -> Problem:
    """The d+1 rows of a tail, each several times."""
    d, n = whole(rng, 1, 4), whole(rng, 80, 300)
    w, inputs, X = _along(rng, d, n)
    t = _above(X, w, d + 1)
    X = np.vstack([X, np.repeat(X[X @ w > t], whole(rng, 1, 4), axis=0)])
    return Problem(X, inputs, lambda X: np.maximum(X @ w - t, 0.0) ** 2)


@family
def weights_on_the_tail(rng: Rng) -> Problem:
    """The rows of a tail weigh little or much."""
    d, n = whole(rng, 1, 4), whole(rng, 80, 300)
    w, inputs, X = _along(rng, d, n)
    t, heavy = _above(X, w, d + 1), log_uniform(rng, 1e-3, 1e3)
    return Problem(
        X, inputs, lambda X: np.maximum(X @ w - t, 0.0) ** 2, weight=lambda X: np.where(X @ w > t, heavy, 1.0)
    )


@family
def outputs_on_the_tail(rng: Rng) -> Problem:
    """Several outputs, each another curve behind the same kink."""
    d, q, n = whole(rng, 1, 4), whole(rng, 2, 3), whole(rng, 80, 300)
    w, inputs, X = _along(rng, d, n)
    t = _above(X, w, whole(rng, 1, d + 1))
    powers, V = rng.uniform(1.2, 3.0, q), rng.normal(size=(d, q))
    return Problem(X, inputs, lambda X: np.maximum(X @ w - t, 0.0)[:, None] ** powers + X @ V)


@family
def max_of_planes(rng: Rng) -> Problem:
    d, k = whole(rng, 1, 6), whole(rng, 2, 5)
    W, b = rng.normal(size=(k, d)), rng.uniform(-1, 1, k)
    return _of(rng, d, lambda X: (X @ W.T + b).max(axis=1))


@family
def min_of_max(rng: Rng) -> Problem:
    d = whole(rng, 1, 5)
    W, b = rng.normal(size=(2, 2, d)), rng.uniform(-1, 1, (2, 2))
    return _of(rng, d, lambda X: np.einsum("nd,ijd->nij", X, W).__add__(b).max(axis=2).min(axis=1))


@family
def two_hidden_layers(rng: Rng) -> Problem:
    d, m, k = whole(rng, 1, 6), whole(rng, 2, 4), whole(rng, 1, 3)
    W, b = rng.normal(size=(m, d)) / np.sqrt(d), rng.uniform(-1, 1, m)
    V, c, a = rng.normal(size=(k, m)), rng.uniform(-1, 1, k), rng.normal(size=k)
    return _of(rng, d, lambda X: np.maximum(np.maximum(X @ W.T + b, 0.0) @ V.T + c, 0.0) @ a)


@family
def rarely_deep(rng: Rng) -> Problem:
    """Two hidden layers whose second bends only on a share of about 0.5/n to 10/n."""
    net = planted(rng)
    n = rows_for(rng, net)
    top = np.quantile(net(rng.normal(size=(100_000, net.d))), 1.0 - min(rng.uniform(0.5, 10.0) / n, 0.5))
    return _of(rng, net.d, lambda X: np.minimum(net(X), top), n=n)


@family
def tree(rng: Rng) -> Problem:
    d, depth = whole(rng, 1, 5), whole(rng, 1, 3)
    column, cut = rng.integers(d, size=depth), rng.normal(size=depth)
    leaves = rng.normal(size=2**depth)
    bits = 2 ** np.arange(depth)
    return _of(rng, d, lambda X: leaves[((X[:, column] > cut) * bits).sum(axis=1)])


@family
def step_on_network(rng: Rng) -> Problem:
    net = planted(rng)
    w, t = direction(rng, net.d), rng.uniform(-3.0, 3.0)
    return _of(rng, net.d, lambda X: net(X) + (X @ w > t), n=rows_for(rng, net))


@family
def periodic(rng: Rng) -> Problem:
    d, rate = whole(rng, 1, 4), log_uniform(rng, 0.3, 20.0)
    w = direction(rng, d)
    return _of(rng, d, lambda X: np.sin(rate * (X @ w)))


@family
def sharp_softplus(rng: Rng) -> Problem:
    """softplus(βz)/β, β up to 10⁶: ReLU but for a sliver."""
    net, beta = planted(rng), log_uniform(rng, 10.0, 1e6)

    def target(X: Array) -> Array:
        return np.asarray(np.logaddexp(0.0, beta * (X @ net.W.T + net.b)) @ net.a / beta)

    return _of(rng, net.d, target, n=rows_for(rng, net))


@family
def rounded_kink(rng: Rng) -> Problem:
    """ReLU units whose kink is a parabola of width ε: exact but where a row falls on it."""
    net, eps = planted(rng), log_uniform(rng, 1e-4, 0.3)

    def target(X: Array) -> Array:
        Z = X @ net.W.T + net.b
        soft = np.where(np.abs(Z) < eps, (Z + eps) ** 2 / (4.0 * eps), np.maximum(Z, 0.0))
        return np.asarray(soft @ net.a)

    return _of(rng, net.d, target, n=rows_for(rng, net))


@family
def bump_on_network(rng: Rng) -> Problem:
    """A network and a bump on a share of about 0.3/n to 10/n."""
    net = planted(rng)
    n, w = rows_for(rng, net), direction(rng, net.d)
    s = np.sort(rng.normal(size=100_000))
    first, share = rng.uniform(0.02, 0.9), min(rng.uniform(0.3, 10.0) / n, 0.08)
    low, high = s[int(first * 1e5)], s[int((first + share) * 1e5)]

    def target(X: Array) -> Array:
        u = np.clip((X @ w - low) / (high - low), 0.0, 1.0)
        return net(X) + np.sin(np.pi * u) ** 2

    return _of(rng, net.d, target, n=n)


@family
def product_of_inputs(rng: Rng) -> Problem:
    d = whole(rng, 2, 5)
    return _of(rng, d, lambda X: X[:, 0] * X[:, 1])


@family
def length(rng: Rng) -> Problem:
    d = whole(rng, 1, 5)
    return _of(rng, d, lambda X: np.linalg.norm(X, axis=1))


@family
def radial_bump(rng: Rng) -> Problem:
    d, size = whole(rng, 1, 5), log_uniform(rng, 0.2, 3.0)
    return _of(rng, d, lambda X: np.exp(-(X**2).sum(axis=1) / (2.0 * size**2)))


@family
def polynomial(rng: Rng) -> Problem:
    d, power = whole(rng, 1, 4), whole(rng, 2, 5)
    w = direction(rng, d)
    return _of(rng, d, lambda X: (X @ w) ** power)


@family
def gated(rng: Rng) -> Problem:
    """One network where x₁ > t, another elsewhere."""
    d, t = whole(rng, 1, 5), rng.uniform(0.0, 3.5)
    one, other = rl.planted.network(d, 2, rng=rng), rl.planted.network(d, 1, rng=rng)
    return _of(rng, d, lambda X: np.where(X[:, 0] > t, other(X), one(X)))


@family
def saturating(rng: Rng) -> Problem:
    """A network clipped at both ends, far out."""
    net = planted(rng)
    n = rows_for(rng, net)
    answers = net(rng.normal(size=(50_000, net.d)))
    share = min(rng.uniform(0.3, 10.0) / n, 0.4)
    low, high = np.quantile(answers, [share / 2.0, 1.0 - share / 2.0])
    return _of(rng, net.d, lambda X: np.clip(net(X), low, high), n=n)


@family
def many_units(rng: Rng) -> Problem:
    """A smooth function as a network of 60 units: more than the rows can show."""
    d = whole(rng, 1, 4)
    net = rl.planted.network(d, 60, rng=rng, bias=2.0)
    return _of(rng, d, net, n=whole(rng, 60, 300))


@family
def square_root(rng: Rng) -> Problem:
    d, t = whole(rng, 1, 4), rng.uniform(-1.0, 3.0)
    w = direction(rng, d)
    return _of(rng, d, lambda X: np.sqrt(np.maximum(X @ w - t, 0.0)))


@family
def slab(rng: Rng) -> Problem:
    """A network and a step of any height between two planes, where a share of about 0.5/n to 8/n lies."""
    net = planted(rng)
    n, w, c, height = rows_for(rng, net), direction(rng, net.d), rng.uniform(-1.0, 1.0), log_uniform(rng, 1e-7, 3.0)
    half = min(rng.uniform(0.5, 8.0) / n, 0.2) / 0.6
    return _of(rng, net.d, lambda X: net(X) + height * (np.abs(X @ w - c) < half), n=n)


@family
def ball(rng: Rng) -> Problem:
    """A network and a cap on a ball of such a share; or beyond one."""
    net, outside = planted(rng), rng.random() < 0.5
    n, centre, height = rows_for(rng, net), rng.normal(size=net.d), log_uniform(rng, 1e-7, 3.0)
    squares = ((rng.normal(size=(100_000, net.d)) - centre) ** 2).sum(axis=1)
    share = min(rng.uniform(0.5, 10.0) / n, 0.3)
    size, sign = np.quantile(squares, 1.0 - share if outside else share), -1.0 if outside else 1.0

    def target(X: Array) -> Array:
        return net(X) + height * np.maximum(sign * (1.0 - ((X - centre) ** 2).sum(axis=1) / size), 0.0)

    return _of(rng, net.d, target, n=n)


@family
def tiny_wave(rng: Rng) -> Problem:
    net, size, rate = planted(rng), log_uniform(rng, 1e-12, 1e-3), log_uniform(rng, 0.5, 50.0)
    w = direction(rng, net.d)
    return _of(rng, net.d, lambda X: net(X) + size * np.sin(rate * (X @ w)), n=rows_for(rng, net))


@family
def clean_rows(rng: Rng) -> Problem:
    """A control: an easy network, which must be called exact."""
    net = rl.planted.network(whole(rng, 2, 6), whole(rng, 1, 3), rng=rng, bias=0.5)
    return clean(rng, net, n=12 * (net.m + 1) * (net.d + 1), width=net.m)
