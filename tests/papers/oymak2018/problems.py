"""Planted vectors to decode."""

import numpy as np


def planted(d, n, rng, scale=3.0, noise=0.0, slope=0.0, weights=1.0, draw=None, reach=1.0):
    rng = np.random.default_rng(rng)
    w = rng.uniform(-reach, reach, d)
    X = scale * (rng.standard_normal((n, d)) if draw is None else draw(rng, (n, d)))
    return X, labels(X, w, slope, weights) + noise * rng.standard_normal(n), w


def labels(X, w, slope=0.0, weights=1.0):
    z = X + w
    return (weights * np.where(z >= 0.0, z, slope * z)).sum(axis=1)


def relative(w, truth):
    return float(((w - truth) ** 2).sum() / (truth**2).sum())


# The sums over rows
