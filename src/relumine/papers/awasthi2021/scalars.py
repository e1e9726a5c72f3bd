"""RecoverScalars (Awasthi 2021, Algorithm 2): a and, up to the sign of w, b from the directions and four tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import eval_hermitenorm

from relumine.arrays import Array
from relumine.results import InvalidInput
from relumine.tensors.symmetric import SymmetricTensor, best_weights

BIAS_LIMIT = 8.0  # e^{−b²/2} < 1e-13 beyond: no tensor in double precision sees such a unit


def recover_scalars(W: Array, T: Sequence[SymmetricTensor], order: int) -> tuple[Array, Array]:
    """(a, b) of the units with directions W, up to the sign of (w, b): Algorithm 2, corrected.

    ζ_k = (−1)^k a He_{k−2}(b) φ(b) belongs to the Hermite polynomial of degree k − 2. For ℓ = 1, b = −ζ₃/ζ₂
    and a = √(2π) ζ₂ e^{b²/2}. For ℓ ≥ 2, q = argmax_{ℓ+1, ℓ+2} |ζ_q|, r = q − 2, He_{r+1} = b He_r − r
    He_{r−1} gives b = −(ζ_{q+1} + r ζ_{q−1})/ζ_q, and a = (−1)^q √(2π) ζ_q e^{b²/2}/He_r(b). (The printed q
    and He_q are slips.)

    Parameters
    ----------
    W : (m, d) array
        Unit rows.
    T : sequence of SymmetricTensor
        ``T[k]`` of order k, for k up to ℓ+3 (3 when ℓ = 1).
    order : int
        ℓ; {w_i^{⊗ℓ}} must be linearly independent.

    Returns
    -------
    a, b : (m,) arrays
        b is cut off at ±8, beyond which no tensor sees a unit, so both are finite.

    Examples
    --------
    >>> from relumine.network import Network
    >>> net = Network([[0.6, 0.8], [1.0, 0.0]], b=[0.5, -1.0], a=[2.0, -3.0])
    >>> T = [SymmetricTensor.from_dense(net.hermite(k)) if k else None for k in range(4)]
    >>> a, b = recover_scalars(net.W, T, order=1)
    >>> a.round(10), b.round(10)
    (array([ 2., -3.]), array([ 0.5, -1. ]))
    """
    if order < 1:
        raise InvalidInput(f"order must be ≥ 1, got {order}")
    needed = (2, 3) if order == 1 else tuple(range(order, order + 4))
    zeta = {k: best_weights(W, T[k])[0] for k in needed}
    if order == 1:
        q = np.full(len(W), 2)
    else:
        q = np.where(np.abs(zeta[order + 1]) >= np.abs(zeta[order + 2]), order + 1, order + 2)
    a, b = np.zeros(len(W)), np.zeros(len(W))
    for k in sorted(set(q.tolist())):
        at, r = q == k, k - 2
        below = r * zeta[k - 1][at] if r else 0.0
        middle = np.where(zeta[k][at] == 0.0, np.finfo(float).tiny, zeta[k][at])
        with np.errstate(over="ignore"):
            b[at] = np.clip(-(zeta[k + 1][at] + below) / middle, -BIAS_LIMIT, BIAS_LIMIT)
        he = eval_hermitenorm(r, b[at])
        # |He_r| is large wherever ζ_q is the larger of two neighbours (Lemma 4.3); the floor only guards bad
        # input
        he = np.where(np.abs(he) < 1e-3, np.copysign(1e-3, he), he)
        a[at] = (-1.0) ** k * np.sqrt(2.0 * np.pi) * zeta[k][at] * np.exp(0.5 * b[at] ** 2) / he
    return a, b
