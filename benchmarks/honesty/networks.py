"""Networks that are hard to see: few rows, weak or rare units, odd inputs, the wrong width or activation asked for."""

from __future__ import annotations

import numpy as np

import relumine as rl
from benchmarks.honesty.problem import (
    Array,
    Problem,
    Rng,
    clean,
    family,
    gaussian,
    log_uniform,
    planted,
    rows_for,
    uniform,
    whole,
)


def _rare(rng: Rng, d: int, n: int, low: float, high: float) -> tuple[Array, float]:
    """A direction w (d,) and a threshold that w·x exceeds on a share of low/n to high/n."""
    w = rng.normal(size=d)
    t = np.quantile(rng.normal(size=200_000), 1.0 - min(rng.uniform(low, high) / n, 0.5))
    return np.asarray(w / np.linalg.norm(w)), float(t)


@family
def generic(rng: Rng) -> Problem:
    net = planted(rng)
    return clean(rng, net, width=net.m)


@family
def width_unknown(rng: Rng) -> Problem:
    return clean(rng, planted(rng))


@family
def few_rows(rng: Rng) -> Problem:
    net = planted(rng)
    return clean(rng, net, n=max(int(rng.uniform(1.0, 3.0) * net.m * (net.d + 1)), net.d + 6), width=net.m)


@family
def few_rows_width_unknown(rng: Rng) -> Problem:
    net = planted(rng)
    return clean(rng, net, n=max(int(rng.uniform(1.0, 3.0) * net.m * (net.d + 1)), net.d + 6))


@family
def nearly_parallel(rng: Rng) -> Problem:
    net = planted(rng, family="nearly_parallel", angle=log_uniform(rng, 0.3, 15.0))
    return clean(rng, net, width=net.m)


@family
def nearly_equal_kinks(rng: Rng) -> Problem:
    """Two kinks so close that a few rows, or none, lie between them."""
    net = planted(rng)
    W, b = np.vstack([net.W, net.W[:1]]), np.append(net.b, net.b[0] + log_uniform(rng, 1e-4, 0.1))
    a = np.append(net.a, -net.a[0] * rng.uniform(0.5, 1.5))
    return clean(rng, rl.Network(W, b, a), width=None if rng.random() < 0.5 else net.m + 1)


@family
def large_bias(rng: Rng) -> Problem:
    net = planted(rng, family="large_bias")
    b = net.b.copy()
    b[-2:] *= rng.uniform(0.4, 0.9)
    return clean(rng, net.replace(b=b), width=net.m)


@family
def rare_unit(rng: Rng) -> Problem:
    """One more unit, behind whose kink a share of about 0.3/n to 12/n lies."""
    net = planted(rng)
    n = rows_for(rng, net)
    w, t = _rare(rng, net.d, n, 0.3, 12.0)
    wider = rl.Network(np.vstack([net.W, w]), np.append(net.b, -t), np.append(net.a, rng.uniform(0.5, 5.0)))
    return clean(rng, wider, n=n, width=None if rng.random() < 0.5 else wider.m)


@family
def moments_vanish(rng: Rng) -> Problem:
    net = planted(rng, family="hermite_roots")
    return clean(rng, net, width=net.m)


@family
def orthonormal(rng: Rng) -> Problem:
    net = planted(rng, family="orthonormal")
    return clean(rng, net, width=net.m)


@family
def signs_undetermined(rng: Rng) -> Problem:
    net = planted(rng, family="dependent")
    return clean(rng, net, width=net.m)


@family
def tiny_weight(rng: Rng) -> Problem:
    net = planted(rng)
    a = net.a.copy()
    a[0] *= log_uniform(rng, 1e-11, 1e-2)
    return clean(rng, net.replace(a=a), width=None if rng.random() < 0.5 else net.m)


@family
def width_too_small(rng: Rng) -> Problem:
    net = planted(rng)
    return clean(rng, net, width=max(net.m - whole(rng, 1, 3), 0))


@family
def width_too_large(rng: Rng) -> Problem:
    net = planted(rng)
    return clean(rng, net, width=net.m + whole(rng, 1, 4))


@family
def affine_part(rng: Rng) -> Problem:
    net = planted(rng)
    scale = log_uniform(rng, 1e-3, 1e4)
    return clean(rng, net.replace(v=scale * rng.normal(size=net.d), c=np.float64(scale * rng.normal())), width=net.m)


@family
def several_outputs(rng: Rng) -> Problem:
    net = planted(rng, outputs=whole(rng, 2, 4))
    return clean(rng, net, width=None if rng.random() < 0.5 else net.m)


@family
def rare_output(rng: Rng) -> Problem:
    """Two outputs; a unit of the second shows on a handful of rows only."""
    net = planted(rng)
    n = rows_for(rng, net)
    w, t = _rare(rng, net.d, n, 1.0, 9.0)

    v, inputs = rng.normal(size=net.d), gaussian(net.d)

    def target(X: Array) -> Array:
        return np.column_stack([net(X), X @ v + np.maximum(X @ w - t, 0.0) ** 2])

    return Problem(inputs(rng, n), inputs, target)


@family
def heavy_tailed_inputs(rng: Rng) -> Problem:
    net, nu = planted(rng), rng.uniform(1.0, 4.0)
    return clean(rng, net, lambda r, n: r.standard_t(nu, size=(n, net.d)), width=net.m)


@family
def lattice_inputs(rng: Rng) -> Problem:
    net, steps = planted(rng), log_uniform(rng, 1.0, 30.0)
    return clean(rng, net, lambda r, n: np.rint(r.normal(size=(n, net.d)) * steps) / steps, width=net.m)


@family
def clustered_inputs(rng: Rng) -> Problem:
    net = planted(rng)
    centres, size = rng.normal(size=(whole(rng, 2, 12), net.d)) * 2.0, log_uniform(rng, 1e-4, 0.5)

    def inputs(r: Rng, n: int) -> Array:
        return np.asarray(centres[r.integers(len(centres), size=n)] + size * r.normal(size=(n, net.d)))

    return clean(rng, net, inputs, width=net.m)


@family
def duplicated_rows(rng: Rng) -> Problem:
    """Every row several times: copies confirm nothing."""
    net = planted(rng)
    few = max(int(rng.uniform(0.8, 2.5) * net.m * (net.d + 1)), net.d + 6)
    X = rng.normal(size=(few, net.d))
    return Problem(np.repeat(X, whole(rng, 2, 5), axis=0), gaussian(net.d), net, options={"width": net.m})


@family
def correlated_inputs(rng: Rng) -> Problem:
    net = planted(rng)
    M = rng.normal(size=(net.d, net.d)) * np.logspace(0, -rng.uniform(0.0, 6.0), net.d)
    return clean(rng, net, lambda r, n: r.normal(size=(n, net.d)) @ M.T, width=net.m)


@family
def odd_units_of_measure(rng: Rng) -> Problem:
    """Columns of very different scale, far from zero."""
    net = planted(rng)
    scale, shift = 10.0 ** rng.uniform(-6, 6, size=net.d), 10.0 ** rng.uniform(-2, 4, size=net.d)
    W = net.W / scale
    moved = net.replace(W=W, b=net.b - W @ (scale * shift))
    return clean(rng, moved, lambda r, n: scale * (r.normal(size=(n, net.d)) + shift), width=net.m)


@family
def skewed_inputs(rng: Rng) -> Problem:
    net = planted(rng)
    return clean(rng, net, lambda r, n: r.exponential(size=(n, net.d)) - 1.0, width=net.m)


@family
def half_binary_inputs(rng: Rng) -> Problem:
    net = planted(rng)
    binary = rng.random(net.d) < 0.5

    def inputs(r: Rng, n: int) -> Array:
        X = r.normal(size=(n, net.d))
        return np.where(binary, np.sign(X), X)

    return clean(rng, net, inputs, width=net.m)


@family
def on_a_sphere(rng: Rng) -> Problem:
    net = planted(rng)

    def inputs(r: Rng, n: int) -> Array:
        X = r.normal(size=(n, net.d + 1))
        return np.asarray((X / np.linalg.norm(X, axis=1, keepdims=True))[:, : net.d] * 2.0)

    return clean(rng, net, inputs, width=net.m)


@family
def two_regions(rng: Rng) -> Problem:
    """A share of about 0.5/n to 10/n of the inputs lies elsewhere, and there the network does something else."""
    net = planted(rng)
    n = rows_for(rng, net)
    share, centre = min(rng.uniform(0.5, 10.0) / n, 0.3), 6.0 * np.sign(rng.normal(size=net.d))
    w = centre / np.linalg.norm(centre)
    wider = rl.Network(np.vstack([net.W, w]), np.append(net.b, -4.5), np.append(net.a, 1.0))

    def inputs(r: Rng, k: int) -> Array:
        return np.asarray(r.normal(size=(k, net.d)) + (r.random(k) < share)[:, None] * centre)

    return clean(rng, wider, inputs, n=n)


@family
def other_activation(rng: Rng) -> Problem:
    name = ("leaky_relu", "squared_relu", "tanh", "sigmoid", "erf")[whole(rng, 0, 4)]
    net = planted(rng, activation=name)
    return clean(rng, net, width=net.m, activation=name)


@family
def wrong_activation(rng: Rng) -> Problem:
    names = ("relu", "tanh", "sigmoid", "squared_relu", "leaky_relu")
    true, asked = rng.choice(5, size=2, replace=False)
    net = planted(rng, activation=names[true])
    return clean(rng, net, width=net.m, activation=names[asked])


@family
def on_an_interval(rng: Rng) -> Problem:
    """One input, kinks anywhere, also near the ends."""
    m = whole(rng, 1, 6)
    net = rl.Network(np.sign(rng.normal(size=(m, 1))), rng.uniform(-3.2, 3.2, m), rng.normal(size=m))
    return clean(rng, net, uniform(1), n=whole(rng, 4 * m + 6, 200), width=None if rng.random() < 0.5 else m)
