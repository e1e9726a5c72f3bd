"""Where the queries fall: Gaussian, uniform in a range, or as the user draws them; and where lines may run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from relumine.arrays import Array
from relumine.extraction.pieces import Line
from relumine.network import Network
from relumine.results import InvalidInput

Sampler = Callable[[np.random.Generator, int], ArrayLike]


REACH = 1e4  # how far lines go where inputs are not limited, in units of τ: one kink in 16 000 lies further out


@dataclass(frozen=True)
class Domain:
    """Standard coordinates z = (x − ``centre``)/``scale``: of order 1, or within ±1 where inputs are ``limited``."""

    centre: Array
    scale: Array
    limited: bool = False

    @property
    def d(self) -> int:
        """Number of inputs."""
        return len(self.centre)

    @property
    def room(self) -> tuple[Array, Array] | None:
        """Lowest and highest z, if they are limited."""
        return (-np.ones(self.d), np.ones(self.d)) if self.limited else None

    def rows(self, Z: Array) -> Array:
        """X = centre + scale·Z; within the range to the last bit."""
        plain = not self.limited and not self.centre.any() and (self.scale == 1.0).all()
        X = Z if plain else np.asarray(self.centre + self.scale * Z)
        return np.clip(X, self.centre - self.scale, self.centre + self.scale) if self.limited else X

    def standard(self, X: Array) -> Array:
        """Z of the rows X."""
        return np.asarray((X - self.centre) / self.scale)

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Z (n, d): standard Gaussian, or uniform in the range."""
        return rng.uniform(-1.0, 1.0, (n, self.d)) if self.limited else rng.normal(size=(n, self.d))

    def line(self, rng: np.random.Generator, origin: Array | None = None, through: Array | None = None) -> Line:
        """A line in a random direction or ``through`` a second point, from a point near the centre or the one given.

        |z₀| = 1, not √d: b = −w·z(t) then has the error of w once, not √d times. τ = d^¼ lies between the kinks of
        units with |b| ≪ |w| (t ≈ 1) and |b| ≈ |w| (t ≈ √d).
        """
        if origin is None:
            origin = rng.normal(size=self.d)
            origin *= (0.3 if self.limited else 1.0) / np.linalg.norm(origin)
        u = rng.normal(size=self.d) if through is None else through - origin
        u /= np.linalg.norm(u)
        tau = float(self.d) ** 0.25
        reach = (-REACH * tau, REACH * tau)
        if self.limited:
            ends = np.sort(np.stack([(-1.0 - origin) / u, (1.0 - origin) / u]), axis=0)
            reach = (0.999 * float(ends[0].max()), 0.999 * float(ends[1].min()))
        return Line(origin, u, reach, tau)

    def to_user(self, net: Network) -> Network:
        """A network of z as one of x: w_x = w/scale, b_x = b − w_x·centre."""
        W, v = net.W / self.scale, net.v / self.scale
        return net.replace(W=W, b=net.b - W @ self.centre, v=v, c=net.c - v @ self.centre)


def make_domain(
    d: int, mean: ArrayLike | None, scale: ArrayLike | None, low: ArrayLike | None, high: ArrayLike | None
) -> Domain:
    """Where lines may run, from what the user gave; checked by :func:`make_sampler`."""
    if low is not None and high is not None:
        below, above = _vector("low", low, d), _vector("high", high, d)
        return Domain(0.5 * (below + above), 0.5 * (above - below), limited=True)
    return Domain(
        _vector("mean", 0.0 if mean is None else mean, d), _vector("scale", 1.0 if scale is None else scale, d)
    )


def make_sampler(
    d: int,
    mean: ArrayLike | None,
    scale: ArrayLike | None,
    low: ArrayLike | None,
    high: ArrayLike | None,
    sampler: Sampler | None,
) -> Callable[[np.random.Generator, int], Array]:
    """A function (rng, n) → (n, d) from what the user gave: mean and scale, or low and high, or a function."""
    ranged, gaussian = low is not None or high is not None, mean is not None or scale is not None
    if ranged + gaussian + (sampler is not None) > 1:
        raise InvalidInput("give mean and scale, or low and high, or a sampler; not several of them")
    if sampler is not None:
        return lambda rng, n: _checked(sampler(rng, n), n, d)
    if ranged:
        if low is None or high is None:
            raise InvalidInput("a range needs both low and high")
        below, above = _vector("low", low, d), _vector("high", high, d)
        if not (below < above).all():
            at = int(np.argmin(below < above))
            word = "is fixed: an input that does not vary shows nothing, leave it out" if below[at] == above[at] else ""
            raise InvalidInput(f"low must be below high; it is not for input {at}{', which ' + word if word else ''}")
        return lambda rng, n: rng.uniform(below, above, size=(n, d))
    centre = _vector("mean", 0.0 if mean is None else mean, d)
    spread = _vector("scale", 1.0 if scale is None else scale, d)
    if not (spread > 0.0).all():
        raise InvalidInput("scale must be positive for every input: an input that does not vary shows nothing")
    return lambda rng, n: centre + spread * rng.normal(size=(n, d))


def _vector(name: str, value: ArrayLike, d: int) -> Array:
    try:
        vector = np.broadcast_to(np.asarray(value, dtype=np.float64), (d,))
    except ValueError:
        raise InvalidInput(f"{name} must be a number or {d} numbers, got {value!r}") from None
    if not np.isfinite(vector).all():
        raise InvalidInput(f"{name} must be finite")
    return vector


def _checked(value: ArrayLike, n: int, d: int) -> Array:
    X = np.asarray(value, dtype=np.float64)
    if X.shape != (n, d) or not np.isfinite(X).all():
        raise InvalidInput(f"the sampler was asked for ({n}, {d}) finite numbers and gave shape {X.shape}")
    return X
