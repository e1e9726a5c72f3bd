"""A small fit that several tests begin with."""

from __future__ import annotations

import numpy as np

from relumine import activations
from relumine.data.whiten import whitening
from relumine.fit.rows import AFFINE, CONSTANT, NOTHING, prepare
from relumine.fit.sign_free import shape_of
from relumine.fit.starts import (
    random_directions,
)

SHAPE = shape_of(activations.RELU)


PLAIN = shape_of(activations.RELU, sign_free=False)


FREE = (NOTHING, CONSTANT, AFFINE)


def problem(
    seed: int, n: int = 120, d: int = 4, m: int = 3, q: int = 2, *, weighted: bool = False, free: slice = AFFINE
):
    """Rows of a random least squares problem with no exact answer, and directions to try."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    weight = rng.uniform(0.2, 2.0, size=n) if weighted else None
    white = whitening(X, weight)
    rows, tau = prepare(white.apply(X), rng.normal(size=(n, q)), weight, free=free)
    return rows, tau, random_directions(rng, m, d + 1)
