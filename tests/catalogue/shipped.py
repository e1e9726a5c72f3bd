"""Trained networks of other people, where their files are at hand (a folder ``shared/nets`` beside the checkout)."""

from pathlib import Path

import numpy as np
from tests.catalogue.base import Planted, Problem

import relumine as rl

FOLDER = Path(__file__).parents[3] / "shared" / "nets"
NETS = (
    ("mnist_0vs1 784-2-1", "mnist_0vs1_784_2_1", 784, 2, 3),
    ("mnist_2vs3 784-2-1", "mnist_2vs3_784_2_1", 784, 2, 3),
    ("simulated 2048-4-1", "simulated_2048_4_1", 2048, 4, 1),
    ("cifar10 3072-2-1", "cifar10_0vs1_3072_2_1", 3072, 2, 1),
    ("unitary 784-128-1", "unitary_784_128_1", 784, 128, 1),
)
_LONG = 100  # units from which on a recovery takes a quarter of an hour: only the benchmarks run it


def shipped(file: str, seed: int, ratio: float = 6) -> Planted:
    with np.load(FOLDER / f"{file}.npz") as arrays:
        net = rl.Network(arrays["W"], arrays["b"], arrays["a"], c=arrays["c"])
    return net, *rl.planted.sample(net, int(ratio * net.m * (net.d + 1)), rng=seed)


PROBLEMS = tuple(
    Problem(f"{name} n/p={ratio}", d, m, lambda seed, f=file, r=ratio: shipped(f, seed, r), bar=1.0, most=most)  # type: ignore[misc]
    for name, file, d, m, most in NETS
    for ratio in (6, 3)
    if (ratio == 6 or d < 1000) and m < _LONG
)
