"""Boxes to look into."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import relumine as rl
from relumine.extraction import extract

SECRET = rl.planted.network(d=5, m=3, rng=0)


WIDE = rl.planted.network(d=5, m=4, rng=3, outputs=3)


def found(f, **options):
    return extract(f, **{"dim": 5, "rng": 0, "pause": 0.0, **options})


def in_single_precision(
    d: int, m: int, seed: int, *, normal: bool = False
) -> tuple[rl.Network, Callable[..., np.ndarray]]:
    """A network of single-precision numbers, and a box that computes it so; ``normal``: normal weights, no bias c."""
    rng, single = np.random.default_rng(seed), np.float32
    if normal:
        W, b, a, c = rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=m), 0.0
    else:
        W, b = rng.normal(size=(m, d)) / np.sqrt(d), rng.uniform(-0.7, 0.7, m)
        a, c = rng.choice([-1, 1], m) * rng.uniform(0.5, 2, m), rng.uniform(-1, 1)
    W, b, a, c = W.astype(single), b.astype(single), a.astype(single), single(c)
    return rl.Network(W, b, a, c=float(c)), lambda X: np.maximum(X.astype(single) @ W.T + b, 0) @ a + c


class Flaky:
    """Fails now and then, by raising or by NaN, but not twice at the same rows for long."""

    def __init__(self, share: float, how: str = "raise", rows: bool = False) -> None:
        self.rng, self.share, self.how, self.rows, self.failures = np.random.default_rng(5), share, how, rows, 0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        y = SECRET(X)
        if self.rows:
            bad = self.rng.uniform(size=len(X)) < self.share
            self.failures += int(bad.sum())
            return np.where(bad, np.nan, y)
        if self.rng.uniform() < self.share:
            self.failures += 1
            if self.how == "raise":
                raise ConnectionError("try again")
            return np.full(len(X), np.nan) if self.how == "nan" else y[:-1]
        return y


# -- what it finds ---------------------------------------------------------------------------------------------
