"""Which sign patterns give the same ReLU network (Awasthi 2021, Theorem 3.4), and Claim 4.8's counterexample.

σ(z) − σ(−z) = z: flipping (w_i, b_i) for i in a set S changes f by −Σ_{i∈S} a_i (w_i·x + b_i). So f stays the
same exactly if Σ_{i∈S} a_i (w_i, b_i) = 0, d + 1 linear equations in the indicator of S. These are Eq. (2),
in which the paper's second equation has lost a sign: it must read Σ a_i ξ_i b_i Φ(ξ_i b_i) = Σ a_i b_i
Φ(b_i).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.arrays import Array
from relumine.network import Network, flip_columns
from relumine.results import InvalidInput
from relumine.tensors.subsets import subsets

Signs = NDArray[np.int8]


@dataclass(frozen=True)
class Identifiability:
    """``patterns`` (p, m): every ξ ∈ {±1}^m for which Σ a_i σ(ξ_i(w_i·x + b_i)) is the same function.

    The first row is all +1. ``identifiable`` says that there is no other and that Theorem 3.4's conditions
    hold (no a_i = 0, no two parallel w_i): then (W, b, a) are the only parameters, up to order and scale,
    with this function and width. ``remarks`` say in words what is not determined.
    """

    patterns: Signs
    identifiable: bool
    remarks: tuple[str, ...]


def sign_patterns(net: Network, tol: float = 1e-9) -> Identifiability:
    """All sign patterns that leave the function of a ReLU network unchanged (Theorem 3.4, Eq. 2).

    Candidates come from the null space of the (d+1) × m matrix with columns a_i(w_i, b_i): its dimension k =
    m − rank is usually small, and k entries of the indicator determine the others, so 2^k cases are tried,
    not 2^m; where k is large, two halves of 2^{m/2} subset sums meet in the middle.

    Parameters
    ----------
    net : Network
        ReLU; several outputs are allowed (all must stay the same).
    tol : float
        Largest ‖Σ_{i∈S} a_i(w_i, b_i)‖ relative to the largest ‖a_i(w_i, b_i)‖ that counts as zero.

    Examples
    --------
    >>> net = Network([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], b=[0.0, 0.0, 0.0], a=[0.6, 0.8, -1.0])
    >>> found = sign_patterns(net)                   # 0.6 e₁ + 0.8 e₂ − (0.6, 0.8) = 0
    >>> found.patterns, found.identifiable
    (array([[ 1,  1,  1],
           [-1, -1, -1]], dtype=int8), False)
    """
    if net.activation.name != "relu":
        raise InvalidInput(f"Theorem 3.4 is about ReLU networks, this one has {net.activation.name} units")
    net = net.scaled()
    Q = flip_columns(net)  # columns a_i(w_i, b_i)
    size = np.linalg.norm(Q, axis=0)
    scale = float(size.max(initial=0.0)) or 1.0
    dead = size <= tol * scale
    live = np.flatnonzero(~dead)
    zero_sums = subsets(Q[:, live] / scale, np.zeros(len(Q)), tol)
    flipped = np.zeros((len(zero_sums), net.m), dtype=bool)
    flipped[:, live] = zero_sums
    patterns = np.where(flipped, -1, 1).astype(np.int8)
    remarks = [f"unit {i} has a = 0: its weights do not matter" for i in np.flatnonzero(dead)]
    remarks += [
        f"units {i} and {j} are parallel: they may be one unit, or two of which only a sum is determined"
        for i, j in _parallel(net.W, tol)
    ]
    identifiable = len(patterns) == 1 and not remarks
    if len(patterns) > 1:
        remarks.append(f"{len(patterns)} sign patterns give the same function")
    return Identifiability(patterns, identifiable, tuple(remarks))


def counterexample(W: ArrayLike, tol: float = 1e-9) -> tuple[Network, Network, Signs]:
    """Claim 4.8: for linearly dependent rows w_i, networks f ≠ g in their signs with the same function.

    Take Σ β_i w_i = 0; then a = β, b = 0, and flipping every unit with β_i ≠ 0 changes nothing.

    Returns
    -------
    f, g : Network
    signs : (m,) array
        g is f with (w_i, b_i) multiplied by signs_i.

    Examples
    --------
    >>> f, g, signs = counterexample([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> x = np.array([[0.3, -2.0]])
    >>> bool(abs(f(x) - g(x))[0] < 1e-14), signs
    (True, array([-1, -1, -1], dtype=int8))
    """
    rows = Network(W, np.zeros(len(np.asarray(W))), np.zeros(len(np.asarray(W)))).W
    _, s, right = np.linalg.svd(rows.T, full_matrices=True)
    rank = int((s > tol * max(s.max(initial=0.0), np.finfo(float).tiny)).sum())
    if rank == rows.shape[0]:
        raise InvalidInput(
            f"the {rows.shape[0]} rows of W are linearly independent: by Theorem 4.1 such a network is "
            "identifiable and there is no counterexample; add a row that depends on the others"
        )
    beta = right[-1]
    beta = np.where(np.abs(beta) > tol, beta, 0.0)
    signs = np.where(beta != 0.0, -1, 1).astype(np.int8)
    f = Network(rows, np.zeros(len(rows)), beta)
    return f, f.replace(W=signs[:, None] * rows), signs


def _parallel(W: Array, tol: float) -> list[tuple[int, int]]:
    cosines = np.abs(W @ W.T)
    i, j = np.nonzero(np.triu(cosines > 1.0 - tol, 1))
    return list(zip(i.tolist(), j.tolist()))
