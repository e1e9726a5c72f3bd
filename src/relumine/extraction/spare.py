"""The gradient that need not be asked: a network without an affine part leaves one for free.

Along a line with kinks t_1 < … < t_k the gradients g_0, …, g_k jump by g_i − g_{i−1} = a_i w_iᵀ, with w_i·u > 0 for
whatever sign w_i has in the network. Without an affine part (an output bias does not count) the units that are on at
the far left are those whose true w points the other way, F, and g_0 = −Σ_{i∈F} (g_i − g_{i−1}). Along u this is

    s_0 + Σ_{i∈F} (s_i − s_{i−1}) = 0        with the slopes s_r = g_r u (q,) that the line shows,

so F is read off the line, at no query, and gives one gradient from the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relumine.arrays import Array
from relumine.extraction.pieces import SURE, Crossings
from relumine.tensors.subsets import subsets

# Kinks up to which it is looked for: it saves one gradient of so many, and of 2¹² subsets none fits by chance where
# slopes are known to nine digits.
_MOST = 12
_DIGITS = 1e-8  # error of a slope, over the largest jump, beyond which a subset may fit by chance


class Spare(NamedTuple):
    """g_r = Σ_s ``share``_s g_s for the piece ``r``; share (k+1,), 0 at r."""

    r: int
    share: Array


def spare_piece(found: Crossings, error: Array) -> Spare | None:
    """The piece whose gradient follows from the others: of those that do, the one with the largest ``error`` (k+1,).

    None where no subset of the jumps fits the slopes, or several do.
    """
    k = len(found.t)
    if not 0 < k <= _MOST:
        return None
    slope = np.array([piece.slope for piece in found.pieces])  # (k+1, q)
    jump = np.diff(slope, axis=0)
    size = float(np.abs(jump).max())
    doubt = SURE * float(np.linalg.norm([piece.error for piece in found.pieces]))
    if not size > 0.0 or doubt > _DIGITS * size:
        return None
    fits = subsets(jump.T / size, -slope[0] / size, doubt / size)
    if len(fits) != 1:
        return None
    on = fits[0].astype(np.float64)
    relation = np.append(1.0, on) - np.append(on, 0.0)  # Σ_s relation_s g_s = 0
    r = int(np.argmax(np.where(relation != 0.0, error, -1.0)))
    share = -relation / relation[r]
    share[r] = 0.0
    return Spare(r, share)
