"""One unit a hundred times weaker than the others."""

import relumine as rl
from tests.catalogue.base import Planted, Problem


def make(seed: int) -> Planted:
    net = rl.planted.network(10, 5, rng=seed)
    a = net.a.copy()
    a[0] = 0.01
    net = net.replace(a=a)
    return net, *rl.planted.sample(net, 20 * 55, rng=seed + 1)


PROBLEMS = (Problem("one |a|=0.01 (10,5) n/p=20", 10, 5, make),)
