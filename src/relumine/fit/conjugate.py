"""Conjugate gradients in (U, A, τ), for systems whose matrix is known by its products alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from relumine.arrays import Array
from relumine.fit.projection import Unknowns
from relumine.run import Run

Preconditioner = Callable[[Unknowns], Unknowns]


class Matrix(Protocol):
    """What is known of H: its products; a ``run`` that may end between them."""

    @property
    def run(self) -> Run | None:
        """Asked between products."""

    def product(self, x: Unknowns) -> Unknowns:
        """Hx."""


class Solved(NamedTuple):
    """An approximate solution x of (H + λ)x = b, what is left of b, the products it took, and whether it got there."""

    x: Unknowns
    rest: Unknowns
    products: int
    converged: bool


def conjugate_gradients(
    H: Matrix, b: Unknowns, damping: Array, tolerance: float, cap: int, apply: Preconditioner
) -> Solved:
    """Solve until what is left of b, in the norm of the preconditioner, is ``tolerance`` of b; damping (m,).

    Flexible: the preconditioner ``apply`` may itself be a solve that is not carried to its end.
    """
    x, r = b.plus(-1.0, b), b
    z = apply(r)
    p, rz = z, r.dot(z)
    target = tolerance**2 * rz
    count = 0
    while count < cap and rz > target and not (H.run is not None and H.run.over):
        count += 1
        Hp = H.product(p)
        full = Unknowns(Hp.U + damping[:, None] * p.U, Hp.A, Hp.tau)
        curvature = p.dot(full)
        if not np.isfinite(curvature) or curvature <= 0.0:
            break
        t = rz / curvature
        x, before, r = x.plus(t, p), r, r.plus(-t, full)
        z = apply(r)
        rz, previous = r.dot(z), rz
        p = z.plus((rz - before.dot(z)) / previous, p)
    return Solved(x, r, count, rz <= target)
