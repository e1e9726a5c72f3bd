"""Which rows confirm a fit: those that could have contradicted it.

h_i = ω_i j_iᵀ(JᵀωJ)⁻¹j_i is the leverage of a row, between 0 and 1. Leaving the row out turns its residual r_i into
r_i/(1 − h_i). A row with h_i = 1 is fitted whatever its value: it confirms nothing. All others do, each as well as a
row that was set aside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from relumine.arrays import Array
from relumine.fit.fisher import Factor, jacobian, placed, spread, tangents
from relumine.fit.passes import Model
from relumine.fit.rows import Block, MemoryRows, chunk_rows

Numbers = NDArray[np.intp]


# A row whose y is moved by Δ shows (1 − h)Δ. With 1e-4 a change of 1e-5 standard deviations still leaves 1e-9, what
# counts as rounding error. Genuine fits at three rows per parameter stay below 0.999, saturated rows reach 1 − 1e-9.
_SLACK = 1e-4
_EXACT_WORK = 3e7  # multiplications (about 3 ms) up to which every leverage is computed, not estimated
# Projections, first a few: a leverage of 1 is estimated below _LOW by the few and below _NEAR by all once in 10^5
_FEW, _SKETCH = 24, 64
_LOW, _NEAR = 0.15, 0.4  # estimates beyond which all projections are made, and the leverage is computed after all
_SINGLE = 1e8  # condition up to which estimates are made in single precision, in half the time: right to 1e-3 there
_LIKELY = 0.5  # sum of leverages, which may be estimates, from which a cluster is looked at more closely
_RANK = 1e-10  # of the largest singular value: rows of a cluster that differ by less do not differ
_SHARE = 0.1  # of the largest change among units: what takes part in a change that only unconfirmed rows restrain


@dataclass(frozen=True)
class Confirmation:
    """What the rows of a fit say about it.

    ``confirmed``: different rows that could have contradicted it; ``alone``: numbers of the rows that could not,
    ``units``: units that those alone determine. ``left_out`` (q,): root mean square of what the fit misses each row by
    when that is left out, r_i/(1 − h_i), in the units of the rows. ``carried`` (q,): by how many rows these squares are
    carried, (Σs)²/Σs² of the squares s; a third of the rows for Gaussian noise, a handful where
    something happens on a few rows only.
    """

    confirmed: int
    alone: tuple[int, ...]
    units: tuple[int, ...]
    left_out: Array
    carried: Array


def unseen_share(confirmed: int, level: float = 0.95) -> float:
    """ε with (1 − ε)^k = 1 − level: k confirmations and no contradiction, so no more of the inputs can differ.

    About 3/k at 95 %: the rule of three.

    Examples
    --------
    >>> round(unseen_share(100), 4), unseen_share(0)
    (0.0295, 1.0)
    """
    return 1.0 if confirmed <= 0 else float(-np.expm1(np.log1p(-level) / confirmed))


def leverages(rows: MemoryRows, at: Factor) -> Array:
    """h (n, q): of every row and output, between 0 and 1.

    For many rows an estimate from 64 random projections, |Ω L⁻¹R⁻¹j|², and the exact value where that is not small.
    """
    P, q = len(at.root), at.net.a.shape[0]
    targets = _projections(at) if rows.n * q * P * P > _EXACT_WORK and P > 2 * _SKETCH else None
    h = np.empty((rows.n, q))
    step = chunk_rows(P)
    for start in range(0, rows.n, step):
        s = slice(start, start + step)
        weight = np.ones((len(rows.X[s]), 1)) if rows.weight is None else rows.weight[s, None]
        T = tangents(rows.X[s], at.net, at.free)
        if targets is not None:
            h[s] = _estimated(T, targets, weight)
        near = np.ones((len(T), q), dtype=bool) if targets is None else h[s] > _NEAR
        for o in np.flatnonzero(near.any(axis=0)):
            some = np.flatnonzero(near[:, o])
            h[start + some, o] = _squares(at, spread(T[some], at.net, int(o), at.free)) * weight[some, 0]
    return np.minimum(h, 1.0)


def _projections(at: Factor) -> Array:
    """(Ω L⁻¹R⁻¹)ᵀ of every output, on the columns of the tangents: (S, q, 64)."""
    P, q = len(at.root), at.net.a.shape[0]
    omega = np.random.default_rng(0).normal(size=(_SKETCH, P)) / np.sqrt(_SKETCH)
    S = solve_triangular(at.L, omega.T, lower=True, trans="T") / at.root[:, None]
    where = [placed(at.net, at.free, o) for o in range(q)]
    found = np.stack([factors[:, None] * S[numbers] for numbers, factors in where], axis=1)
    return found.astype(np.float32) if at.condition < _SINGLE else found


@np.errstate(invalid="ignore")  # as for the products of passes
def _estimated(T: Array, targets: Array, weight: Array) -> Array:
    """Leverages (k, q) as the projections of the tangents T (k, S) show them; weight (k, 1)."""
    T = T.astype(targets.dtype)

    def mean(rows: Numbers | slice, some: slice) -> Array:
        part = targets[:, :, some]
        found = (T[rows] @ part.reshape(len(part), -1)).reshape(-1, *part.shape[1:])
        return np.asarray(np.einsum("iok,iok->io", found, found, dtype=np.float64) * (_SKETCH / part.shape[2]))

    h: Array = mean(slice(None), slice(_FEW)) * weight
    more = np.flatnonzero((h > _LOW).any(axis=1))
    share = _FEW / _SKETCH
    h[more] = share * h[more] + (1.0 - share) * mean(more, slice(_FEW, None)) * weight[more]
    return h


def _squares(at: Factor, J: Array) -> Array:
    """|L⁻¹R⁻¹j|² for the rows j of J (k, P)."""
    if not J.size:
        return np.zeros(len(J))
    half = solve_triangular(at.L, (J / at.root).T, lower=True, overwrite_b=True, check_finite=False)
    return np.asarray(np.einsum("pk,pk->k", half, half))


def confirmation(
    rows: MemoryRows, model: Model, at: Factor, groups: Numbers | None = None, h: Array | None = None
) -> Confirmation:
    """Which rows confirm the fit ``model`` (whose network is that of ``at``), and what nothing confirms.

    ``groups`` (n,): the same number for equal rows. Copies of a row count once: together their leverage is the sum.
    ``h`` (n, q): the leverages, if they are known already.
    """
    h = leverages(rows, at) if h is None else h
    groups = np.arange(rows.n) if groups is None else np.unique(groups, return_inverse=True)[1]
    together = np.stack([np.bincount(groups, column) for column in h.T], axis=1)
    slack = _slack(at)
    free = np.asarray((1.0 - together > slack).all(axis=1))
    alone = np.flatnonzero(~free[groups])
    squares = _left_out(rows, model, groups, np.minimum(together, 1.0 - slack))[free[groups]] ** 2
    return Confirmation(
        confirmed=int(free.sum()),
        alone=tuple(alone.tolist()),
        units=_restrained_by(rows, at, alone),
        left_out=np.sqrt(squares.sum(axis=0) / max(len(squares), 1)),
        carried=carrying(squares),
    )


def _slack(at: Factor) -> float:
    """Least 1 − h of a row that is free.

    The factor's own rounding error must not make a row look so; nearly singular fits are judged for that.
    """
    return float(np.clip(100.0 * np.finfo(float).eps * at.condition, _SLACK, 0.1))


def without_clusters(rows: MemoryRows, at: Factor, clusters: Numbers, h: Array, found: Confirmation) -> Confirmation:
    """The confirmation less that of clusters whose value and slope would be fitted whatever they are.

    ``clusters`` (n,): the same number for rows next to each other. However many they are, they show an affine function
    and no more. With an orthonormal basis Q of those on a cluster and H its block of the hat matrix, that function is
    fitted whatever it is if all eigenvalues of QᵀHQ are 1; so the leverages ``h`` (n, q) add up to at least 1. relu(z)²
    behind three clusters was called three units, one for each of them, exact.
    """
    several = np.bincount(clusters) > 2
    if not several.any():
        return found
    several &= np.stack([np.bincount(clusters, column) for column in h.T], axis=1).max(axis=1) > _LIKELY
    each = (np.flatnonzero(clusters == c) for c in np.flatnonzero(several))
    alone = [some for some in each if _own_plane(rows, at, some)]
    if not alone:
        return found
    more = np.sort(np.concatenate(alone))
    together = np.union1d(more, np.array(found.alone, dtype=np.intp)).tolist()
    units = sorted(set(found.units).union(_restrained_by(rows, at, more)))
    return replace(found, alone=tuple(together), units=tuple(units))


def _own_plane(rows: MemoryRows, at: Factor, some: Numbers) -> bool:
    """Whether the fit has parameters for any affine function on these rows, which are more than determine one."""
    X, weight = rows.X[some], np.ones(len(some)) if rows.weight is None else rows.weight[some]
    root = np.sqrt(weight)[:, None]
    Q, sizes, _ = np.linalg.svd(root * X, full_matrices=False)
    Q = Q[:, sizes > _RANK * sizes[0]]
    if len(np.unique(X, axis=0)) <= Q.shape[1]:
        return False  # each of them is judged by its own leverage
    for o in range(at.net.a.shape[0]):
        J = root * jacobian(X, at.net, o, at.free) / at.root
        half = solve_triangular(at.L, J.T @ Q, lower=True)
        if np.linalg.eigvalsh(half.T @ half)[0] >= 1.0 - _slack(at):
            return True
    return False


def carrying(squares: Array) -> Array:
    """(Σs)²/Σs² of each column of ``squares`` (n, q): as many rows, if they were equal, would have this sum."""
    shares = squares / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    return np.asarray(1.0 / np.maximum((shares**2).sum(axis=0), 1.0 / max(len(squares), 1)))


def _left_out(rows: MemoryRows, model: Model, groups: Numbers, h: Array) -> Array:
    """By how much each row is missed without it and its copies, (n, q), in units of the row's own noise.

    r_i + r̄ h/(1 − h) with the mean residual r̄ and the leverage h (groups, q) of all copies: r_i/(1 − h_i) for one.
    """
    R = residuals(rows, model)
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    total = np.bincount(groups, weight)
    mean = np.stack([np.bincount(groups, weight * column) / total for column in R.T], axis=1)
    return np.asarray((R + (mean * h / (1.0 - h))[groups]) * np.sqrt(weight)[:, None])


def residuals(rows: MemoryRows, model: Model) -> Array:
    """What the model leaves of Y, (n, q)."""
    step = chunk_rows(max(len(model.U), 1))
    starts = range(0, rows.n, step)
    return np.concatenate([model.residual(Block(rows.X[s : s + step], rows.Y[s : s + step])).T for s in starts])


def _restrained_by(rows: MemoryRows, at: Factor, alone: Numbers) -> tuple[int, ...]:
    """Units that change if the y of a row with leverage 1 does: δθ = (JᵀωJ)⁻¹j, which no other row notices."""
    net, found = at.net, np.zeros(at.net.m, dtype=bool)
    size = net.d + 1 + net.a.shape[0]
    for o in range(net.a.shape[0] if net.m else 0):
        for start in range(0, alone.size, 256):
            J = jacobian(rows.X[alone[start : start + 256]], net, o, at.free) / at.root
            half = solve_triangular(at.L, J.T, lower=True)
            change = solve_triangular(at.L, half, lower=True, trans="T")[: net.m * size]  # in scaled coordinates
            by_unit = np.linalg.norm(change.reshape(net.m, size, -1), axis=1)
            found |= (by_unit > _SHARE * by_unit.max(axis=0, initial=1e-300)).any(axis=1)
    return tuple(np.flatnonzero(found).tolist())
