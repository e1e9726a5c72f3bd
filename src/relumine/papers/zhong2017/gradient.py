"""Gradient descent on f̂_S(W) = (1/2|S|) Σ (Σ_i v_i σ(w_i·x) − y)² (Zhong 2017, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.results import InvalidInput

Array = NDArray[np.float64]
Step = float | Literal["theorem", "search"]

__all__ = ["Iterate", "Step", "descend", "gradient", "theorem_step"]

_CHUNK_NUMBERS = 1 << 17  # numbers of x in one chunk: 1 MB, so that the second product finds them in the cache


class Iterate(NamedTuple):
    """W (k, d), v (k,), the loss f̂_S there and the step that led there."""

    W: Array
    v: Array
    loss: float
    step: float


def gradient(X: Array, y: Array, W: Array, v: Array, sigma: Activation) -> tuple[float, Array, Array]:
    """Loss, its gradient in W (k, d), and in v (k,), in one pass over chunks of rows."""
    n = len(y)
    loss, in_W, in_v = 0.0, np.zeros_like(W), np.zeros_like(v)
    chunk = max(_CHUNK_NUMBERS // X.shape[1], 64)
    for start in range(0, n, chunk):
        rows = slice(start, start + chunk)
        Z = X[rows] @ W.T
        H = sigma(Z)
        r = H @ v - y[rows]
        loss += float(r @ r)
        in_v += r @ H
        in_W += (sigma.derivative(Z) * np.outer(r, v)).T @ X[rows]
    return 0.5 * loss / n, in_W / n, in_v / n


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
    X: Array,
    y: Array,
    W: Array,
    v: Array,
    sigma: Activation,
    step: Step = "search",
    *,
    batches: int = 1,
    both: bool = False,
) -> Iterator[Iterate]:
    """Iterates of gradient descent, endlessly; the first is the start.

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
    if isinstance(step, str) and step not in ("theorem", "search"):
        raise InvalidInput(f"step must be a number, 'theorem' or 'search', got {step!r}")
    if not 1 <= batches <= len(y):
        raise InvalidInput(f"{len(y)} rows cannot be partitioned into {batches} parts")
    search = step == "search"
    eta = theorem_step(W, v, sigma) if isinstance(step, str) else float(step)
    edges = np.linspace(0, len(y), batches + 1).astype(int)
    t = 0
    while True:
        rows = slice(edges[t % batches], edges[t % batches + 1])
        loss, in_W, in_v = gradient(X[rows], y[rows], W, v, sigma)
        yield Iterate(W, v, loss, eta)
        if not np.isfinite(loss):
            return
        if not both:
            in_v = np.zeros_like(v)
        if search:
            eta = _backtrack(X[rows], y[rows], W, v, sigma, loss, in_W, in_v, 2.0 * eta)
        W, v = W - eta * in_W, v - eta * in_v
        t += 1


def _backtrack(
    X: Array, y: Array, W: Array, v: Array, sigma: Activation, loss: float, in_W: Array, in_v: Array, eta: float
) -> float:
    """Halve η until the loss falls by η‖∇‖²/2 (Armijo); 0 if it never does, as at rounding error."""
    slope = float((in_W * in_W).sum() + in_v @ in_v)
    for _ in range(40):
        if gradient(X, y, W - eta * in_W, v - eta * in_v, sigma)[0] <= loss - 0.5 * eta * slope:
            return eta
        eta *= 0.5
    return 0.0
