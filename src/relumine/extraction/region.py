"""Where a box may be asked: a distribution or a range, inputs that are fixed, inputs that have a sum.

Inputs that cannot move by themselves are left out of the search. With u (k,) the inputs that move,

    x = x₀ + E u        E picks the columns of u; rows of a given sum S have x_last = S − Σ others

so a network of u is one of x with weights 0 for all others, and it holds where those are as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.arguments import is_whole, vector
from relumine.arrays import Array, among
from relumine.deep import DeepNetwork
from relumine.extraction.boxes import Box
from relumine.extraction.random_rows import WIDER
from relumine.extraction.sampling import Domain
from relumine.network import Network
from relumine.results import InvalidInput

Draw = Callable[[np.random.Generator, int], Array]
Sampler = Callable[[np.random.Generator, int], ArrayLike]
Net = TypeVar("Net", Network, DeepNetwork)


_SHOWN = 4  # inputs that a note names
_FAR = 10.0  # in units of scale: where a range has one end only, it is taken to be so long


class Where(NamedTuple):
    """Where to ask: lines in ``domain`` (None: they cannot be had), rows by ``draw``, a few of them ``wide``."""

    domain: Domain | None
    draw: Draw
    wide: Draw | None
    free: Free
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Free:
    """Which inputs move: the columns ``at`` (k,) of rows that are ``base`` (d,) elsewhere, and what follows from them.

    ``last``: the input that makes the sum of a row ``total``, or −1.

    Examples
    --------
    >>> Free(np.array([0.0, 5.0, 0.0]), np.array([0]), last=2, total=1.0).rows(np.array([[0.25]]))
    array([[ 0.25,  5.  , -4.25]])
    """

    base: Array
    at: NDArray[np.intp]
    last: int = -1
    total: float = 0.0

    @property
    def all(self) -> bool:
        """Whether every input moves by itself."""
        return len(self.at) == len(self.base)

    def rows(self, U: Array) -> Array:
        """X (n, d) for U (n, k)."""
        if self.all:
            return U
        X = np.tile(self.base, (len(U), 1))
        X[:, self.at] = U
        if self.last >= 0:
            X[:, self.last] = self.total - np.delete(X, self.last, axis=1).sum(axis=1)
        return X

    def box(self, box: Box) -> Box:
        """The box as one of the inputs that move."""
        return box if self.all else replace(box, ask=lambda U: box.ask(self.rows(U)), dim=len(self.at))

    def layer(self, W: Array) -> Array:
        """Weights (m, k) as (m, d)."""
        return among(W, self.at, len(self.base))

    def network(self, net: Net) -> Net:
        """A network of u as one of x."""
        return net if self.all else net.embedded(self.at, len(self.base))


@dataclass(frozen=True)
class Region:
    """What the user says about where to ask; see :func:`relumine.extract`."""

    mean: ArrayLike | None = None
    scale: ArrayLike | None = None
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    sampler: Sampler | None = None
    fixed: Mapping[Any, float] = field(default_factory=dict)
    total: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.fixed, Mapping):
            raise InvalidInput(
                f"fixed is a dict of values by the name or number of an input, got {self.fixed!r}", argument="fixed"
            )
        if not all(isinstance(v, int | float | np.number) and np.isfinite(v) for v in self.fixed.values()):
            raise InvalidInput(f"fixed holds values that are no numbers: {dict(self.fixed)!r}", argument="fixed")
        if self.total is not None and not (isinstance(self.total, int | float | np.number) and np.isfinite(self.total)):
            raise InvalidInput(f"total is the sum of the inputs of a row, got {self.total!r}", argument="total")
        if self.total is not None and self.sampler is not None:
            raise InvalidInput("total= and sampler= cannot be combined", argument="total")
        if self.one_sided and self.mean is not None:
            raise InvalidInput("give mean and scale, or low and high; not mean and one end of a range", argument="mean")
        ranged = self.low is not None or self.high is not None
        gaussian = self.mean is not None or (self.scale is not None and not self.one_sided)
        if ranged + gaussian + (self.sampler is not None) > 1:
            raise InvalidInput("give mean and scale, or low and high, or a sampler; not several of them")

    @property
    def one_sided(self) -> bool:
        """Whether one end of a range was given; scale then says how long it is."""
        return (self.low is None) != (self.high is None)

    def opened(self, d: int, columns: Sequence[str] | None) -> Where:
        """Where to ask a box of d inputs."""
        free = self._free(d, columns)
        names = [f"input {j}" for j in range(d)] if columns is None else [*columns]
        notes = self._notes(free, names)
        if self.sampler is not None:
            sampler = self.sampler
            return Where(None, lambda rng, n: _checked(sampler(rng, n), n, d)[:, free.at], None, free, notes)
        domain = self._domain(d, free)
        if not domain.limited:
            wide = Domain(domain.centre, WIDER * domain.scale)
            return Where(domain, domain.random_rows, wide.random_rows, free, notes)
        low, high = domain.centre - domain.scale, domain.centre + domain.scale
        ends = [f"from {a:.4g} to {b:.4g}" for a, b in zip(low, high)]
        parts = [f"{names[j]} {end}" for j, end in zip(free.at, ends)]
        parts = [f"every input {ends[0]}"] if len(ends) > 1 and len(set(ends)) == 1 else parts
        notes += (f"asked in this range: {', '.join(parts[:_SHOWN])}{', …' if len(parts) > _SHOWN else ''}",)
        return Where(domain, domain.random_rows, None, free, notes)

    def _domain(self, d: int, free: Free) -> Domain:
        """Centre and scale, or the range, of the inputs that move; a range with one end goes on for ten scales."""
        mean = vector("mean", 0.0 if self.mean is None else self.mean, d)
        scale = vector("scale", 1.0 if self.scale is None else self.scale, d)
        if not (scale[free.at] > 0.0).all():
            raise InvalidInput("scale must be positive for every input: an input that does not vary shows nothing")
        if self.low is None and self.high is None:
            return Domain(mean[free.at], scale[free.at])
        low = None if self.low is None else vector("low", self.low, d)
        high = low + _FAR * scale if self.high is None and low is not None else vector("high", self.high, d)
        low = high - _FAR * scale if low is None else low
        if free.last >= 0:
            high = _in_the_corner(low, high, free)
        below, above = low[free.at], high[free.at]
        if not (below < above).all():
            at = int(np.argmin(below < above))
            fixed = ", which is fixed: an input that does not vary shows nothing, leave it out"
            word = fixed if below[at] == above[at] else ""
            raise InvalidInput(f"low must be below high; it is not for input {free.at[at]}{word}", argument="low")
        return Domain(0.5 * (below + above), 0.5 * (above - below), limited=True)

    def _free(self, d: int, columns: Sequence[str] | None) -> Free:
        """The inputs that move: all but the fixed ones and, where rows have a sum, the last."""
        base, moving = np.zeros(d), np.ones(d, dtype=bool)
        for key, value in self.fixed.items():
            at = [*columns].index(key) if columns is not None and key in columns else key
            if not is_whole(at, 0) or at >= d:
                known = f"its name, one of {', '.join(columns[:_SHOWN])}, …, or " if columns else ""
                raise InvalidInput(
                    f"fixed names an input {key!r}, and there is none",
                    argument="fixed",
                    remedy=f"an input is named by {known}its number, 0 to {d - 1}",
                )
            base[at], moving[at] = value, False
        last = -1
        if self.total is not None:
            last = int(np.flatnonzero(moving)[-1]) if moving.any() else -1
            moving[last] = False
        if not moving.any():
            raise InvalidInput("no input is left to move", argument="fixed", remedy="fix fewer of them")
        return Free(base, np.flatnonzero(moving), last, float(self.total or 0.0))

    def _notes(self, free: Free, names: Sequence[str]) -> tuple[str, ...]:
        """On what rows the network holds."""
        notes = []
        if self.fixed:
            kept = [
                f"{names[j]} = {free.base[j]:g}"
                for j in np.setdiff1d(np.arange(len(free.base)), free.at)
                if j != free.last
            ]
            notes.append(f"the network holds where {', '.join(kept)}; its weights for these inputs are 0")
        if free.last >= 0:
            notes.append(
                f"the network holds for rows that sum to {free.total:g}: {names[free.last]} follows from the others, "
                "and its weights are 0"
            )
        return tuple(notes)


def _in_the_corner(low: Array, high: Array, free: Free) -> Array:
    """Upper ends so that whatever the moving inputs are, the one that makes the sum is in its range, too.

    With s = S − Σ low the room of a row, x_i ≤ low_i + s/k keeps the last input above its low: a box in the corner of
    the simplex, with its centre of gravity in it.
    """
    fixed = np.delete(free.base, [*free.at, free.last]).sum()
    room = free.total - fixed - low[free.at].sum() - low[free.last]
    if not room > 0.0 or low[free.last] + room > high[free.last]:
        raise InvalidInput(
            f"rows between low and high cannot sum to {free.total:g} whatever the inputs are",
            argument="total",
            remedy="lower low, or raise high",
        )
    high = high.copy()
    high[free.at] = np.minimum(high[free.at], low[free.at] + room / len(free.at))
    return high


def _checked(value: ArrayLike, n: int, d: int) -> Array:
    X = np.asarray(value, dtype=np.float64)
    if X.shape != (n, d) or not np.isfinite(X).all():
        raise InvalidInput(f"the sampler was asked for ({n}, {d}) finite numbers and gave shape {X.shape}")
    return X
