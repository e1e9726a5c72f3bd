"""One-pass stochastic gradient descent with Polyak–Ruppert averaging for y = Σ_i tanh(κ w_i·x), compiled.

The algorithm is ``descend_plainly``: predict with the average of the estimates so far, then step. ``descend`` does the
same arithmetic in blocks of B samples, so that the weights are read twice a block instead of twice a sample. Let
W_0 and T_0 = Σ (estimates before the block) be known and let c_k be the step's coefficients, W_{k+1} = W_k − c_k x_kᵀ.
Then, with the Gram matrix G = XXᵀ of the block,

    W_j x_j = W_0 x_j − Σ_{k<j} c_k G_kj
    T_j x_j = T_0 x_j + (j+1) W_0 x_j − Σ_{k<j} (j−k) c_k G_kj        T_j = T_0 + W_0 + … + W_j

so a block costs one product X·[W_0; T_0]ᵀ, a triangular sweep over the c_k, and one product back. Nothing is
approximated: the two functions differ by rounding alone.
"""

from __future__ import annotations

import numba
import numpy as np

from relumine.arrays import Array

BLOCK = 24  # samples: 16 to 48 take the same time at r = 350, 4 twice as long
_HARMLESS = {"contract", "reassoc", "nsz", "arcp"}  # order of sums and fused products; NaN stays NaN


def descend_plainly(X: Array, y: Array, W: Array, total: Array, seen: int, step: float, slope: float) -> Array:
    """The definition, a sample at a time: W and ``total`` are changed in place, the averages' predictions returned.

    ``total`` is the sum of the ``seen`` estimates before the first row of X; row j is predicted before it is used.
    The loss is (ŷ − y)²/2, so the step of w_i is s(ŷ − y)σ'(w_i·x)x.
    """
    predictions = np.empty(len(X))
    for j, (x, label) in enumerate(zip(X, y, strict=True)):
        total += W
        predictions[j] = np.tanh(slope / (seen + j + 1) * (total @ x)).sum()
        h = np.tanh(slope * (W @ x))
        W -= np.outer(step * (h.sum() - label) * slope * (1.0 - h * h), x)
    return predictions


def descend(X: Array, y: Array, state: Array, seen: int, step: float, slope: float) -> Array:
    """``descend_plainly``, compiled: ``state`` (2r, d) is W over ``total`` and is changed in place.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(50, 3)), rng.normal(size=(2, 3))
    >>> state = np.vstack([W, np.zeros_like(W)])
    >>> predictions = descend(X, np.sin(X[:, 0]), state, seen=0, step=0.01, slope=2.5)
    >>> predictions.shape
    (50,)
    """
    return np.asarray(_descend(X, y, state, seen, step, slope, BLOCK))


def labels(X: Array, W: Array, slope: float) -> Array:
    """y = Σ_i tanh(κ w_i·x) for the rows of X (n, d)."""
    return np.asarray(_labels(X, W, slope, BLOCK))


# error_model: a division that might raise would keep the loop from being vectorised
@numba.njit(cache=True, fastmath=_HARMLESS, error_model="numpy")
def tanh(u: float) -> float:
    """(1 − e)/(1 + e) with e = exp(−2u) by a polynomial and six squarings, within 2e-14: loops of it vectorise."""
    u = 20.0 if u > 20.0 else u
    u = -20.0 if u < -20.0 else u
    t = u * (2.0 / 64.0)
    e = 1.0 / 479001600.0
    e = 1.0 / 39916800.0 - t * e
    e = 1.0 / 3628800.0 - t * e
    e = 1.0 / 362880.0 - t * e
    e = 1.0 / 40320.0 - t * e
    e = 1.0 / 5040.0 - t * e
    e = 1.0 / 720.0 - t * e
    e = 1.0 / 120.0 - t * e
    e = 1.0 / 24.0 - t * e
    e = 1.0 / 6.0 - t * e
    e = 0.5 - t * e
    e = 1.0 - t * e
    e = 1.0 - t * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    e = e * e
    return (1.0 - e) / (1.0 + e)


@numba.njit(cache=True, fastmath=_HARMLESS, error_model="numpy")
def _labels(X, W, slope, block):  # type: ignore[no-untyped-def]
    y = np.empty(len(X))
    for start in range(0, len(X), block):
        Z = np.dot(X[start : start + block], W.T)
        for j in range(len(Z)):
            total = 0.0
            for i in range(len(W)):
                total += tanh(slope * Z[j, i])
            y[start + j] = total
    return y


@numba.njit(cache=True, fastmath=_HARMLESS, error_model="numpy")
def _sweep(Z, G, y, C, predictions, seen, step, slope):  # type: ignore[no-untyped-def]
    """The triangular part: Z (B, 2r) holds W_0x_j beside T_0x_j; C (B, r) receives the c_k."""
    B, r = len(y), Z.shape[1] // 2
    now, average = np.empty(r), np.empty(r)
    for j in range(B):
        for i in range(r):
            now[i] = Z[j, i]
            average[i] = Z[j, r + i] + (j + 1) * Z[j, i]
        k = 0
        while k < j:  # four c_k at once: fewer passes over now and average
            k1, k2, k3 = k + 1, k + 2, k + 3
            g0 = G[k, j]
            g1 = G[k1, j] if k1 < j else 0.0
            g2 = G[k2, j] if k2 < j else 0.0
            g3 = G[k3, j] if k3 < j else 0.0
            a0, a1, a2, a3 = g0 * (j - k), g1 * (j - k1), g2 * (j - k2), g3 * (j - k3)
            c0, c1, c2, c3 = C[k], C[min(k1, B - 1)], C[min(k2, B - 1)], C[min(k3, B - 1)]
            for i in range(r):
                now[i] -= g0 * c0[i] + g1 * c1[i] + g2 * c2[i] + g3 * c3[i]
                average[i] -= a0 * c0[i] + a1 * c1[i] + a2 * c2[i] + a3 * c3[i]
            k += 4
        scale = slope / (seen + j + 1)
        predicted, fitted = 0.0, 0.0
        for i in range(r):
            predicted += tanh(scale * average[i])
        for i in range(r):
            h = tanh(slope * now[i])
            now[i] = h
            fitted += h
        predictions[j] = predicted
        size = step * (fitted - y[j]) * slope
        for i in range(r):
            C[j, i] = size * (1.0 - now[i] * now[i])


@numba.njit(cache=True)
def _descend(X, y, state, seen, step, slope, block):  # type: ignore[no-untyped-def]
    n, d = X.shape
    r = len(state) // 2
    predictions = np.empty(n)
    C, D = np.zeros((block, r)), np.empty((block, r))
    for start in range(0, n, block):
        rows = X[start : start + block]
        B = len(rows)
        Z = np.dot(rows, state.T)
        _sweep(Z, np.dot(rows, rows.T), y[start : start + B], C, predictions[start : start + B], seen, step, slope)
        for k in range(B):
            for i in range(r):
                D[k, i] = (B - 1 - k) * C[k, i]
        back, sums = np.dot(C[:B].T, rows), np.dot(D[:B].T, rows)
        for i in range(r):
            for axis in range(d):
                w = state[i, axis]
                state[r + i, axis] += B * w - sums[i, axis]
                state[i, axis] = w - back[i, axis]
        seen += B
    return predictions
