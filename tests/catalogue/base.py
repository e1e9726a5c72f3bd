"""What a problem is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import relumine as rl

Planted = tuple[rl.Network, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """``make(seed)`` gives the network, inputs (n, d) and outputs; ``bar``: share of seeds that must be exact.

    ``most``: seeds worth running; ``biased``: units have biases, or output weights other than ±1.
    """

    name: str
    d: int
    m: int
    make: Callable[[int], Planted]
    outputs: int = 1
    biased: bool = True
    bar: float = 0.95
    most: int = 100


def generic(d: int, m: int, ratio: float, **family: Any) -> Callable[[int], Planted]:
    """A planted network and ``ratio`` samples for each of its m(d+1) parameters."""

    def make(seed: int) -> Planted:
        net = rl.planted.network(d, m, rng=seed, **family)
        return net, *rl.planted.sample(net, int(ratio * max(m, 1) * (d + 1)), rng=seed + 1)

    return make


def random_network(d: int, m: int, ratio: float, **rest: Any) -> Problem:
    """Random directions, |b| ≤ 1, |a| in ½ … 2."""
    return Problem(f"({d},{m}) n/p={ratio:g}", d, m, generic(d, m, ratio), **rest)
