"""Where the queries fall, Gaussian or uniform in a range, and where lines may run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relumine.arrays import Array
from relumine.extraction.pieces import Line
from relumine.network import Network

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

    def random_rows(self, rng: np.random.Generator, n: int) -> Array:
        """X (n, d), drawn."""
        return self.rows(self.draw(rng, n))

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
