"""One unit, and none."""

import numpy as np

import relumine as rl
from tests.catalogue.base import Planted, Problem, generic


def affine(seed: int) -> Planted:
    rng = np.random.default_rng(seed)
    net = rl.Network(np.zeros((0, 10)), np.zeros(0), np.zeros(0), v=rng.normal(size=10), c=rng.normal())
    return net, *rl.planted.sample(net, 220, rng=rng)


PROBLEMS = (Problem("m=1 (10,1) n/p=20", 10, 1, generic(10, 1, 20)), Problem("m=0 affine", 10, 0, affine))
