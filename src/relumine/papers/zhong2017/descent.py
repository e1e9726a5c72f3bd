"""Gradient descent on f̂_S(W) = (1/2|S|) Σ (Σ_i v_i σ(w_i·x) − y)² (Zhong 2017, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from relumine.activations import Activation
from relumine.arrays import Array, slices
from relumine.data.sources import Chunk, Source, count
from relumine.data.views import Between, seen
from relumine.results import InvalidInput

Step = float | Literal["theorem", "search"]


_BLOCK_NUMBERS = 1 << 17  # numbers of x in one block: 1 MB, so that the second product finds them in the cache


class Iterate(NamedTuple):
    """W (k, d), v (k,), the loss f̂_S there and the step that led there."""

    W: Array
    v: Array
    loss: float
    step: float


class Slope(NamedTuple):
    """The loss f̂_S at (W, v) and its gradient there: ``in_W`` (k, d), ``in_v`` (k,)."""

    loss: float
    in_W: Array  # noqa: N815
    in_v: Array

    @property
    def square(self) -> float:
        """‖∇f̂_S‖²."""
        return float((self.in_W * self.in_W).sum() + self.in_v @ self.in_v)


def gradient(rows: Source, W: Array, v: Array, sigma: Activation) -> Slope:
    """∇f̂_S(W, v), with the loss, in one pass over the rows.

    Examples
    --------
    >>> from relumine.activations import RELU
    >>> from relumine.data.views import rows_of
    >>> gradient(rows_of([[1.0], [-1.0]], [0.0, 0.0]), np.array([[2.0]]), np.ones(1), RELU)
    Slope(loss=1.0, in_W=array([[1.]]), in_v=array([2.]))
    """
    n, squares, in_W, in_v = rows.reduce(partial(_gradient_sums, W=W, v=v, sigma=sigma))
    return Slope(0.5 * float(squares) / float(n), in_W / n, in_v / n)


def _gradient_sums(chunk: Chunk, W: Array, v: Array, sigma: Activation) -> tuple[Array, ...]:
    """Number of rows, Σ r², Σ r v_i σ'(w_i·x) x, Σ r σ(w_i·x) with r = f(x) − y."""
    squares, in_W, in_v = 0.0, np.zeros_like(W), np.zeros_like(v)
    for s in slices(len(chunk.Y), max(_BLOCK_NUMBERS // W.shape[1], 64)):
        X, y = chunk.X[s], chunk.Y[s, 0]
        Z = X @ W.T
        H = sigma(Z)
        r = H @ v - y
        squares += float(r @ r)
        in_v += r @ H
        in_W += (sigma.derivative(Z) * np.outer(r, v)).T @ X
    return np.array(float(len(chunk.Y))), np.array(squares), in_W, in_v


def theorem_step(W: Array, v: Array, sigma: Activation) -> float:
    """η = 1/(k v_max² L₁² σ₁^{2p}) with σ'(z) ≤ L₁|z|^p (Algorithm 2, line 3; the constant L₁ made explicit).

    Examples
    --------
    >>> from relumine.activations import get
    >>> theorem_step(2.0 * np.eye(5), np.ones(5), get("squared_relu"))
    0.0125
    """
    p = sigma.homogeneity - 1 if sigma.homogeneity is not None else 0
    z = np.concatenate([-np.geomspace(1e-3, 1e2, 200), np.geomspace(1e-3, 1e2, 200)])
    L1 = float(np.max(np.abs(sigma.derivative(z)) / np.abs(z) ** p))
    largest = float(np.linalg.norm(W, 2))
    return 1.0 / (len(v) * float(np.max(np.abs(v))) ** 2 * L1**2 * largest ** (2 * p))


def descend(
    rows: Source, W: Array, v: Array, sigma: Activation, step: Step = "search", *, batches: int = 1, both: bool = False
) -> Iterator[Iterate]:
    """W ← W − η ∇f̂_S(W), endlessly; the first iterate is the start. A pass over the rows for each step or try.

    Parameters
    ----------
    step : float, "theorem" or "search"
        Fixed η; η of the theorem at the start; or by backtracking: doubled after every success, halved until
        the loss falls by at least half of what the gradient promises.
    batches : int
        Resampling: rows are partitioned and iteration t uses part t (again from the first when all are used).
    both : bool
        Also descend in v (random starts of the paper's Figure 1(c), II); v is fixed otherwise.
    """
    n = count(rows)
    if isinstance(step, str) and step not in ("theorem", "search"):
        raise InvalidInput(f"step must be a number, 'theorem' or 'search', got {step!r}")
    if not 1 <= batches <= n:
        raise InvalidInput(f"{n} rows cannot be partitioned into {batches} parts")
    eta = theorem_step(W, v, sigma) if isinstance(step, str) else float(step)
    edges = np.linspace(0, n, batches + 1).astype(int).tolist()
    parts = [seen(rows, Between(*edge)) for edge in pairwise(edges)] if batches > 1 else [rows]
    t, at = 0, None
    while True:
        part = parts[t % batches]
        here = gradient(part, W, v, sigma) if at is None else at
        yield Iterate(W, v, here.loss, eta)
        if not np.isfinite(here.loss):
            return
        here = here if both else here._replace(in_v=np.zeros_like(v))
        at = None
        if step == "search":
            eta, at = _backtrack(part, W, v, sigma, here, 2.0 * eta)
        if batches > 1:
            at = None  # the next step looks at other rows, where loss and gradient are others
        W, v = W - eta * here.in_W, v - eta * here.in_v
        t += 1


def _backtrack(
    rows: Source, W: Array, v: Array, sigma: Activation, here: Slope, eta: float
) -> tuple[float, Slope | None]:
    """Halve η until the loss falls by η‖∇‖²/2 (Armijo), and the slope there; 0 if it never does, as at rounding."""
    promise = here.square
    for _ in range(40):
        there = gradient(rows, W - eta * here.in_W, v - eta * here.in_v, sigma)
        if there.loss <= here.loss - 0.5 * eta * promise:
            return eta, there
        eta *= 0.5
    return 0.0, None
