"""Signs of a layer with more units than move freely: the gradient is a sum over the units that are on.

Around x the activations in front are h = Jx + …, and the gradient of the box is Jᵀ Σ_j c_j V_j over the units j of the
layer that are on there; c_j = 0 for those that are off. If fewer than r = rank J are on, no other set of so few gives
it exactly, except by accident. The smallest Σ|c_j| finds it where r is large; that it is so sparse proves it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.extraction.deep.box import ROUNDING
from relumine.extraction.deep.inquiry import Inquiry

_POINTS, _TRIED = 20_000, 500  # random inputs; those with the most units on, at which gradients may be measured
_STEP = 1e-4  # length of a difference, over that of x: few meet a kink, and a second look shows those
_NOTHING = 1e-4  # |c_j| over the largest that is none: measured 1e-9 … 1e-6 for units that are off
_ENOUGH, _VOTES, _MOST = 6, 3, 0.9  # points that tell a sign: as many as are looked for; as must; that must agree


def sparse_signs(at: Inquiry, V: Array, c: Array) -> Array | None:
    """ξ (m,) of the units Vh + c behind the known layers; None where too few points tell, or they disagree."""
    X = at.rng.normal(size=(_POINTS, at.dim)) * 2.0 ** at.rng.uniform(-2.0, 4.0, size=(_POINTS, 1))
    free = np.min([(z > 0.0).sum(axis=1) for z in at.known.before(X)], axis=0)
    plus, minus = np.zeros(len(c)), np.zeros(len(c))
    for x in X[np.argsort(-free, kind="stable")[:_TRIED]]:
        if (plus + minus).min() >= _ENOUGH:
            break
        active, J, shift, _, _ = at.known.region(x)
        s, Ut = np.linalg.svd(J, full_matrices=False)[1:]
        U = Ut[s > 1e-3 * s[0]]  # (r, d): the directions of x that move h
        g = _gradient(at, x, U)
        vote = None if g is None else _vote(V[:, active] @ J @ U.T, g)
        if vote is None:
            continue
        side = np.sign(V[:, active] @ (J @ x + shift) + c)
        plus += vote * side > 0.0
        minus += vote * side < 0.0
    at.tell(f"   signs: {int((plus + minus).min())} points tell, {int(np.minimum(plus, minus).max())} against")
    if (plus + minus < _VOTES).any() or (np.maximum(plus, minus) < _MOST * (plus + minus)).any():
        return None
    return np.where(plus > minus, 1.0, -1.0)


def _gradient(at: Inquiry, x: Array, U: Array) -> Array | None:
    """The slopes at x along the rows of U (r, d); None where a difference meets a kink."""
    step = _STEP * (0.1 * np.sqrt(at.dim) + float(np.linalg.norm(x)))
    y = at.ask(np.concatenate([x[None], x + step * U, x - step * U]))
    slopes, back = (y[1 : len(U) + 1] - y[0]) / step, (y[0] - y[len(U) + 1 :]) / step
    noise = 8.0 * ROUNDING * float(np.abs(y).max()) / step
    size = float(np.abs(slopes).max())
    if size <= 1e3 * noise or np.abs(slopes - back).max() > 1e-6 * size + noise:
        return None
    return np.asarray(0.5 * (slopes + back))


def _vote(V: Array, g: Array) -> Array | None:
    """+1 for the units (m,) that are on, −1 for those that are off, 0 for those that nothing is known of."""
    m, k = V.shape
    size = np.linalg.norm(V, axis=1)
    use = size > 1e-6 * size.max(initial=0.0)
    A = (V[use] / size[use][:, None]).T  # (k, m')
    found = linprog(np.ones(2 * A.shape[1]), A_eq=np.column_stack([A, -A]), b_eq=g / np.abs(g).max(), method="highs")
    if found.x is None:
        return None
    x = np.abs(found.x[: A.shape[1]] - found.x[A.shape[1] :])
    loud = x > _NOTHING * x.max()
    if loud.sum() > k - 2:
        return None
    vote = np.zeros(m)
    vote[use] = np.where(loud, 1.0, -1.0)
    return vote
