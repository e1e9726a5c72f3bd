"""Six units, two biases: what a method cannot take from the biases alone."""

import numpy as np

import relumine as rl
from tests.catalogue.base import Planted, Problem


def make(seed: int) -> Planted:
    net = rl.planted.network(10, 6, rng=seed)
    net = net.replace(b=np.repeat(net.b[:2], 3))
    return net, *rl.planted.sample(net, 20 * 66, rng=seed + 1)


PROBLEMS = (Problem("repeated biases (10,6) n/p=20", 10, 6, make),)
