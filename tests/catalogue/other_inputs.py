"""Inputs that are not standard normal: uniform, and Gaussian with a mean and a condition number of 100."""

import numpy as np

import relumine as rl
from tests.catalogue.base import Planted, Problem


def uniform(seed: int) -> Planted:
    net = rl.planted.network(10, 10, rng=seed)
    X = np.random.default_rng(seed + 1).uniform(-np.sqrt(3), np.sqrt(3), size=(1100, 10))
    return net, X, net(X)


def shifted(seed: int) -> Planted:
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    cov = (Q * np.geomspace(1.0, 100.0, 10)) @ Q.T
    net = rl.planted.network(10, 10, rng=rng)
    # kinks pass through the data: the bias is measured from the mean of the inputs
    net = net.replace(b=net.b - net.W @ np.full(10, 3.0))
    return net, *rl.planted.sample(net, 1100, rng=rng, mean=np.full(10, 3.0), cov=cov)


PROBLEMS = (
    Problem("uniform inputs (10,10) n/p=10", 10, 10, uniform, most=40),
    Problem("mean 3, condition 100 (10,10) n/p=10", 10, 10, shifted, most=40),
)
