"""Which subsets of given vectors have a given sum: s ∈ {0,1}^m with Qs = t.

Flipping units changes the affine part by a sum over the flipped ones, so the signs of a network are such a subset.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.optimize import Bounds, LinearConstraint, milp

from relumine.arrays import Array, unit_rows
from relumine.results import InvalidInput

Bits = NDArray[np.bool_]


_BITS = 20  # at most 2^20 candidates are enumerated at once
_MOST = 1 << 16  # subsets listed before giving up: signs with so many others are open anyway


def subsets(Q: Array, t: Array, tol: float) -> Bits:
    """All s ∈ {0,1}^m with ‖Qs − t‖ ≤ tol·√m, fewest ones first. Q is (r, m) with entries of order 1.

    The solutions of Qs = t form an affine space of dimension k = m − rank; k well-chosen entries of s determine the
    others, so 2^k cases are tried, not 2^m. Where k is large, two halves of 2^{m/2} sums meet in the middle.

    Examples
    --------
    >>> subsets(np.array([[1.0, 2.0, 3.0]]), np.array([3.0]), 1e-9).astype(int)
    array([[0, 0, 1],
           [1, 1, 0]])
    """
    m = Q.shape[1]
    rank = _rank(Q, tol)
    if m - rank <= _BITS:
        # entries come out of a solve within 1e-4 of 0 or 1 where Q is known to tol; their sums are checked below
        candidates = _from_solution_space(Q, t, rank, 1e-4)
    elif m <= 2 * _BITS:
        candidates = _meet_in_the_middle(Q, t, tol)
    else:
        raise InvalidInput(
            f"{m} vectors that span only {rank} dimensions leave 2^{m - rank} subsets to try; at most 2^{_BITS}, "
            f"or {2 * _BITS} vectors, are possible"
        )
    sums = np.linalg.norm(candidates @ Q.T - t, axis=1)
    return _ordered(candidates[sums <= tol * np.sqrt(max(m, 1))])


def nearest_subset(Q: Array, t: Array, *, seconds: float = 10.0) -> Bits | None:
    """The s ∈ {0,1}^m with Qs nearest to t, for a t known only roughly; None where none was found in time."""
    m = Q.shape[1]
    rank = _rank(Q, 1e-9)
    if m - rank > 14:  # 16 384 candidates take milliseconds; each bit more doubles them, and the program does not mind
        return _integer_program(Q, t, None, seconds)
    candidates = _from_solution_space(Q, t, rank, np.inf)
    return np.asarray(candidates[np.argmin(np.linalg.norm(candidates @ Q.T - t, axis=1))])


def some_subset(Q: Array, t: Array, tol: float, *, seconds: float = 20.0) -> Bits | None:
    """One s ∈ {0,1}^m with Qs = t within tol, or None: no such subset, or none found in time."""
    m = Q.shape[1]
    if m - _rank(Q, tol) <= _BITS or m <= 2 * _BITS:
        try:
            found = subsets(Q, t, tol)
            return found[0] if len(found) else None
        except InvalidInput:  # too many to list them; one is enough
            pass
    return _integer_program(Q, t, tol, seconds)


def _rank(Q: Array, tol: float) -> int:
    return int((np.linalg.svd(Q, compute_uv=False) > tol).sum()) if Q.size else 0


def _from_solution_space(Q: Array, t: Array, rank: int, rounding: float) -> Bits:
    """0/1 vectors within ``rounding`` of the solution space of Qs = t, one for each choice of the free entries."""
    # s = particular + null·c; pivoted QR picks k rows of null that are as independent as can be: the free entries
    particular = np.linalg.lstsq(Q, t, rcond=None)[0]
    # of many outputs Q is tall: its (r, r) factor, which nobody needs, would take gigabytes
    null = np.linalg.svd(Q, full_matrices=Q.shape[0] < Q.shape[1])[2][rank:].T  # (m, k)
    k = null.shape[1]
    free = qr(null.T, pivoting=True, mode="economic")[2][:k]
    lift = null @ np.linalg.inv(null[free]) if k else null
    found = []
    for start in range(0, 1 << k, 1 << 14):
        codes = np.arange(start, min(start + (1 << 14), 1 << k))
        chosen = ((codes[:, None] >> np.arange(k)) & 1) - particular[free]
        s = particular + chosen @ lift.T
        near = np.minimum(np.abs(s), np.abs(s - 1.0)).max(axis=1, initial=0.0) < rounding
        found.append(s[near] > 0.5)
    return np.concatenate(found)


def _meet_in_the_middle(Q: Array, t: Array, tol: float) -> Bits:
    """Subsets of the two halves whose sums add up to t along one random direction (the caller checks the others)."""
    m = Q.shape[1]
    half = m // 2
    # a sum within tol√m of t is within that along a direction of length 1, too
    direction = unit_rows(np.random.default_rng(0).normal(size=(1, Q.shape[0])))[0]
    weights, target = direction @ Q, float(direction @ t)

    def sums_of(part: Array) -> Array:
        sums = np.zeros(1)
        for weight in part:  # doubles each time; bit j of the position says whether element j is in
            sums = np.concatenate([sums, sums + weight])
        return sums

    left, right = sums_of(weights[:half]), sums_of(weights[half:])
    # for each sum on the left a range of the sorted sums on the right completes it to the target
    order = np.argsort(right, kind="stable")
    slack = tol * np.sqrt(m)
    low = np.searchsorted(right[order], target - left - slack)
    high = np.searchsorted(right[order], target - left + slack)
    counts = high - low
    if counts.sum() > 64 * _MOST:  # one direction lets many pairs through that the others then refuse
        raise InvalidInput("too many subsets have this sum to list them; use fewer units")
    first = np.repeat(np.arange(len(left)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[np.repeat(low, counts) + within]
    bits_left = (first[:, None] >> np.arange(half)) & 1
    bits_right = (second[:, None] >> np.arange(m - half)) & 1
    return np.concatenate([bits_left, bits_right], axis=1).astype(bool)


def _ordered(candidates: Bits) -> Bits:
    if len(candidates) > _MOST:
        raise InvalidInput("too many subsets have this sum to list them; use fewer units")
    return candidates[np.lexsort([*candidates.T, candidates.sum(axis=1)])]


def _integer_program(Q: Array, t: Array, tol: float | None, seconds: float) -> Bits | None:
    """HiGHS: any s with |Qs − t| ≤ tol, or for tol None the s with the smallest largest deviation."""
    # unknowns (s, e): Qs − e ≤ t ≤ Qs + e, with e bounded by tol, or minimised
    m = Q.shape[1]
    slack = np.ones((Q.shape[0], 1))
    bounds = Bounds(np.zeros(m + 1), np.append(np.ones(m), np.inf if tol is None else tol))
    answer = milp(
        c=np.append(np.zeros(m), 1.0 if tol is None else 0.0),
        constraints=[LinearConstraint(np.hstack([Q, -slack]), ub=t), LinearConstraint(np.hstack([Q, slack]), lb=t)],
        integrality=np.append(np.ones(m), 0.0),
        bounds=bounds,
        options={"time_limit": seconds},
    )
    return None if answer.x is None else np.asarray(answer.x[:m] > 0.5)
