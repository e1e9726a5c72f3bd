"""FixSigns (Awasthi 2021, Algorithm 3): the joint sign of (w_i, b_i) from the first Hermite coefficient."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from relumine.arrays import Array
from relumine.results import InvalidInput


def fix_signs(W: Array, b: Array, a: Array, f1: Array) -> tuple[Array, Array, Array]:
    """(ξ_i w_i, ξ_i b_i) and how far each sign was from flipping, for linearly independent rows W.

    Solve Σ_i z_i a_i w_i = f̂₁. The truth is z_i = ξ_i Φ(ξ_i b_i), which is Φ(b_i) for ξ_i = +1 and Φ(b_i) −
    1 for ξ_i = −1, so we compare z_i with the midpoint Φ(b_i) − ½. The paper compares with 0: the same answer
    on exact tensors, but its margin min(Φ(b), Φ(−b)) shrinks with |b| where this one is always ½.

    Parameters
    ----------
    W, b, a : (m, d), (m,), (m,) arrays
        Units known up to the sign of (w, b); a ≠ 0.
    f1 : (d,) array
        f̂₁ = E[f(x) x].

    Returns
    -------
    W, b : arrays
        With the signs fixed.
    margin : (m,) array
        Distance of z_i from the midpoint; ½ is ideal, and a small value says the sign is a guess.

    Examples
    --------
    >>> f1 = 2.0 * ndtr(0.5) * np.array([1.0, 0.0])                # one unit: a = 2, b = ½, w = e₁
    >>> fix_signs(np.array([[-1.0, 0.0]]), np.array([-0.5]), np.array([2.0]), f1)[1]
    array([0.5])
    """
    if W.shape[0] > W.shape[1] or np.linalg.matrix_rank(W) < W.shape[0]:
        raise InvalidInput(
            f"FixSigns needs linearly independent directions, got {W.shape[0]} of rank "
            f"{np.linalg.matrix_rank(W)}; their signs may not be determined "
            "(rl.papers.awasthi2021.sign_patterns lists what is possible)"
        )
    z = np.linalg.lstsq((a[:, None] * W).T, f1, rcond=None)[0]
    margin = z - (ndtr(b) - 0.5)
    sign = np.where(margin >= 0.0, 1.0, -1.0)
    return sign[:, None] * W, sign * b, np.abs(margin)
