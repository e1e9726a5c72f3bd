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
from scipy.linalg import qr

from relumine.network import Network
from relumine.results import InvalidInput

Array = NDArray[np.float64]
Signs = NDArray[np.int8]

__all__ = ["Identifiability", "counterexample", "sign_patterns"]

_BITS = 20  # at most 2^20 candidates are enumerated at once
_MOST = 1 << 16  # patterns listed before giving up


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
    a = np.atleast_2d(net.a)
    units = np.column_stack([net.W, net.b])
    # columns a_i(w_i, b_i), outputs stacked
    Q = (a[:, None, :] * units.T[None, :, :]).reshape(len(a) * (net.d + 1), net.m)
    size = np.linalg.norm(Q, axis=0)
    scale = float(size.max(initial=0.0)) or 1.0
    dead = size <= tol * scale
    live = np.flatnonzero(~dead)
    subsets = _zero_sums(Q[:, live] / scale, tol)
    flipped = np.zeros((len(subsets), net.m), dtype=bool)
    flipped[:, live] = subsets
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


def _zero_sums(Q: Array, tol: float) -> NDArray[np.bool_]:
    """All s ∈ {0,1}^m with ‖Qs‖ ≤ tol·√m, the empty one first."""
    m = Q.shape[1]
    _, values, right = np.linalg.svd(Q, full_matrices=True)
    rank = int((values > tol).sum())
    null = right[rank:].T  # (m, k): s must be a combination of its columns
    k = m - rank
    if k == 0:
        return np.zeros((1, m), dtype=bool)
    if k <= _BITS:
        candidates = _from_null_space(null)
    elif m <= 2 * _BITS:
        candidates = _meet_in_the_middle(Q, tol)
    else:
        raise InvalidInput(
            f"{m} units whose (w, b) span only {rank} dimensions leave 2^{k} sign patterns to try; at most "
            f"2^{_BITS}, "
            f"or {2 * _BITS} units, are possible"
        )
    sums = np.linalg.norm(candidates @ Q.T, axis=1)
    return np.asarray(candidates[sums <= tol * np.sqrt(m)])


def _from_null_space(null: Array) -> NDArray[np.bool_]:
    """0/1 vectors in the column space of ``null``: k well-chosen entries determine the others."""
    k = null.shape[1]
    _, _, pivots = qr(null.T, pivoting=True, mode="economic")
    free = pivots[:k]
    lift = null @ np.linalg.inv(null[free])  # (m, k): s = lift · s[free]
    found = []
    for start in range(0, 1 << k, 1 << 14):
        codes = np.arange(start, min(start + (1 << 14), 1 << k))
        s = ((codes[:, None] >> np.arange(k)) & 1) @ lift.T
        found.append(s[(np.minimum(np.abs(s), np.abs(s - 1.0)) < 1e-4).all(axis=1)] > 0.5)
    return _capped(np.concatenate(found))


def _meet_in_the_middle(Q: Array, tol: float) -> NDArray[np.bool_]:
    """Subsets of the two halves whose sums cancel, matched along one random direction (and checked by the
    caller).
    """
    m = Q.shape[1]
    half = m // 2
    direction = np.random.default_rng(0).normal(size=Q.shape[0])
    weights = direction @ Q / np.linalg.norm(direction)

    def subset_sums(part: Array) -> Array:
        sums = np.zeros(1)
        for w in part:  # doubles each time; bit j of the position says whether element j is in
            sums = np.concatenate([sums, sums + w])
        return sums

    left, right = subset_sums(weights[:half]), subset_sums(weights[half:])
    order = np.argsort(right, kind="stable")
    slack = tol * np.sqrt(m)
    low = np.searchsorted(right[order], -left - slack)
    high = np.searchsorted(right[order], -left + slack)
    counts = high - low
    if counts.sum() > 64 * _MOST:
        raise InvalidInput("too many sign patterns give the same function to list them; use fewer units")
    first = np.repeat(np.arange(len(left)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[np.repeat(low, counts) + within]
    bits_left = (first[:, None] >> np.arange(half)) & 1
    bits_right = (second[:, None] >> np.arange(m - half)) & 1
    return _capped(np.concatenate([bits_left, bits_right], axis=1).astype(bool))


def _capped(candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """In a fixed order, the empty set first."""
    if len(candidates) > 64 * _MOST:
        raise InvalidInput("too many sign patterns give the same function to list them; use fewer units")
    return candidates[np.lexsort([*candidates.T, candidates.sum(axis=1)])]
