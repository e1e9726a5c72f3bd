"""Boxes to look into."""

from __future__ import annotations

import numpy as np

import relumine as rl
from relumine.extraction import extract

SECRET = rl.planted.network(d=5, m=3, rng=0)


WIDE = rl.planted.network(d=5, m=4, rng=3, outputs=3)


def found(f, **options):
    return extract(f, **{"dim": 5, "rng": 0, "pause": 0.0, **options})


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
