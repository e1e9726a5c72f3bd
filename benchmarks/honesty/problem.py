"""A problem with a known truth, and the list of families that draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import relumine as rl

Array = NDArray[np.float64]
Rng = np.random.Generator
Inputs = Callable[[Rng, int], Array]
Family = Callable[[Rng], "Problem"]

FAMILIES: dict[str, Family] = {}


@dataclass(frozen=True)
class Problem:
    """Rows ``X`` (n, d) drawn by ``inputs``, labels observed(target(X)).

    ``observe`` adds noise or rounding; None: y is the target itself. ``drawn``: y is drawn around the target (counts),
    so what a user can be told about is the label, not its mean. ``weight`` (n,) of rows X, None: equal.
    ``options``: what `recover` is asked for.
    """

    X: Array
    inputs: Inputs
    target: Callable[[Array], Array]
    observe: Callable[[Rng, Array, Array], Array] | None = None
    weight: Callable[[Array], Array] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    drawn: bool = False

    def truth(self, rng: Rng, X: Array) -> Array:
        """What an exact claim is held against at the rows of X."""
        return self.labels(rng, X) if self.drawn else self.target(X)

    def labels(self, rng: Rng, X: Array) -> Array:
        """What is observed at the rows of X."""
        y = self.target(X)
        return y if self.observe is None else self.observe(rng, X, y)


def family(draw: Family) -> Family:
    """Put a family on the list; its name is the function's."""
    FAMILIES[draw.__name__] = draw
    return draw


def gaussian(d: int) -> Inputs:
    return lambda rng, n: rng.normal(size=(n, d))


def uniform(d: int, size: float = 3.0) -> Inputs:
    return lambda rng, n: rng.uniform(-size, size, size=(n, d))


def whole(rng: Rng, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(rng.integers(low, high + 1))


def log_uniform(rng: Rng, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def planted(rng: Rng, **options: Any) -> rl.Network:
    """A network of 1–6 units in 1–8 dimensions."""
    least = 2 if options.get("family") in ("nearly_parallel", "large_bias", "dependent") else 1
    d, m = whole(rng, least, 8), whole(rng, least, 6)
    if options.get("family") in ("orthonormal", "conditioned"):
        m = min(m, d)
    return rl.planted.network(d, m, rng=rng, **options)


def rows_for(rng: Rng, net: rl.Network, low: float = 4.0, high: float = 12.0) -> int:
    """So many rows per parameter, at most 600."""
    return int(np.clip(rng.uniform(low, high) * (net.m + 1) * (net.d + 1), net.d + 6, 600))


def clean(rng: Rng, net: rl.Network, inputs: Inputs | None = None, n: int | None = None, **options: Any) -> Problem:
    """A network's own answers, nothing added."""
    inputs = inputs or gaussian(net.d)
    return Problem(inputs(rng, n or rows_for(rng, net)), inputs, net, options=options)


def direction(rng: Rng, d: int) -> Array:
    """A random direction (d,)."""
    w = rng.normal(size=d)
    return np.asarray(w / np.linalg.norm(w))


def asked(rng: Rng, net: rl.Network, known: float = 0.5) -> dict[str, int]:
    """The width, in this share of the problems; else it is to be found."""
    return {"width": net.m} if rng.random() < known else {}


def spread_of(net: rl.Network) -> float:
    """How much the answers of a network vary, for Gaussian inputs."""
    return float(net(np.random.default_rng(0).normal(size=(2000, net.d))).std()) + 1e-12
