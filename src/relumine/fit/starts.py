"""Where the search begins: directions at random, in all dimensions or inside the span that the second moment shows."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from relumine.arrays import Array, unit_rows
from relumine.data.moments import estimate_tensors
from relumine.data.whiten import clear_root
from relumine.fit.passes import Model
from relumine.fit.rows import Block, MemoryRows, Sums, chunk_rows, prepare
from relumine.tensors.span import dominant_span
from relumine.tensors.spm import span_of_powers, subspace_power
from relumine.tensors.symmetric import packed_size

# block Krylov for the second moment: four powers of eight spare columns bring the span as near as the sample allows;
# it takes fewer products than the d×d matrix from this many inputs per column on
_POWERS, _SPARE, _KRYLOV = 4, 8, 12
_LOOK_NUMBERS, _LOOK_ROWS = 1 << 22, (2000, 20000)  # that show whether inputs are Gaussian: to 0.01 and better
_STILL = 1e-10  # variance of a few rows that is none, where all rows have 1: rounding leaves 1e-16, chance 0.1
_SAME = 0.9  # cosine from which two ends of the power iteration are one: units this close are rare, copies common


def random_directions(rng: np.random.Generator, k: int, D: int) -> Array:
    """k vectors (w, b) uniform on the sphere of R^D, D = d+1."""
    return unit_rows(rng.normal(size=(k, D)))


def second_moment_span(rows: MemoryRows, width: int) -> Array:
    """V (width, d), the dominant span of E[y (zzᵀ − I)], pooled over the outputs.

    For Gaussian z the moment is Σ_i a_i c_2(b_i) w_i w_iᵀ, so for width < d it shows the span of the weights (Zhong
    2017). The affine part of y is gone already, which removes most of the variance.
    """
    d = rows.X.shape[1] - 1
    if rows.outputs == 1 and d >= _KRYLOV * (width + _SPARE):
        return _krylov_span(rows, width)
    return dominant_span(_pooled(rows), width)[0]


def _pooled(rows: MemoryRows, without: Array | None = None) -> Array:
    """The squares (d, d) of the outputs' second moments, ``without`` some directions (d, r), orthonormal."""
    d = rows.columns - 1
    pooled = np.zeros((d, d))
    for output in range(rows.outputs):

        def part(B: Block, output: int = output) -> Sums:
            Z = B.X[:, :-1]
            return ((Z * B.weigh(B.Y[:, output])[:, None]).T @ Z,)

        M = rows.sum(part, d)[0] / rows.total
        if without is not None:
            M -= without @ (without.T @ M)
            M -= (M @ without) @ without.T
        pooled += M @ M  # squares add up whatever the signs of the outputs' weights
    return pooled


def _second_moment(rows: MemoryRows, V: Array) -> Array:
    """E[y zzᵀ] V for V (d, r) and one output, without the d×d matrix."""

    def part(B: Block) -> Sums:
        Z = B.X[:, :-1]
        return (Z.T @ ((Z @ V) * B.weigh(B.Y[:, 0])[:, None]),)

    return rows.sum(part, max(V.shape))[0] / rows.total


def _krylov_span(rows: MemoryRows, width: int) -> Array:
    """The same from the span of V, MV, M²V, …, for a random V of a few more columns than asked (block Lanczos).

    Each block is made orthogonal to those before it, so M on all of them is known when the last one is multiplied.
    """
    V = np.random.default_rng(0).normal(size=(rows.X.shape[1] - 1, width + _SPARE))
    K, MK = V[:, :0], V[:, :0]
    for _ in range(_POWERS + 1):
        for _ in range(2):  # once leaves what rounding makes of it
            V = np.linalg.qr(V - K @ (K.T @ V))[0]
        K, MK = np.hstack([K, V]), np.hstack([MK, _second_moment(rows, V)])
        V = MK[:, -V.shape[1] :]
    T = K.T @ MK
    values, vectors = np.linalg.eigh(0.5 * (T + T.T))
    top = np.argsort(-np.abs(values))[:width]
    return np.ascontiguousarray((K @ vectors[:, top]).T)


def with_slopes(span: Array, tau: Array) -> Array:
    """A span (r, d) and the slopes of the affine part tau (d+1, q) of y, at most r of them; its rows orthonormal.

    For Gaussian z, E[y z] = Σ_i a_i c_1(b_i) w_i lies in the span of the weights, too, and is known far better than the
    second moment: of 784-2-1 at n/p = 3 their span had cosines 0.87 and 0.09 with that of the second moment, and has
    0.98 and 0.40 with both.

    Examples
    --------
    >>> with_slopes(np.array([[1.0, 0.0, 0.0]]), np.array([[2.0], [3.0], [0.0], [4.0]])).shape
    (2, 3)
    """
    slopes = np.linalg.svd(tau[:-1].T, full_matrices=False)[2][: len(span)]
    return np.ascontiguousarray(np.linalg.qr(np.concatenate([span, slopes]).T)[0].T)


def span_directions(rng: np.random.Generator, k: int, span: Array) -> Array:
    """k vectors (w, b) with w uniform in the given span (r, d)."""
    return lifted(random_directions(rng, k, len(span) + 1), span)


def inside(rows: MemoryRows, span: Array) -> MemoryRows:
    """The rows with the coordinates of their inputs in a span (r, d), its rows orthonormal, as inputs: white as well.

    Examples
    --------
    >>> from relumine.fit.rows import MemoryRows
    >>> rows = MemoryRows(np.array([[3.0, 4.0, 1.0]]), np.array([[5.0]]))
    >>> inside(rows, np.array([[0.6, 0.8]])).X
    array([[5., 1.]])
    """
    X = np.column_stack([rows.X[:, :-1] @ span.T, rows.X[:, -1]])
    return replace(rows, X=X, kept=(), step=0)


class Few(NamedTuple):
    """A few ``rows`` with coordinates in a span as inputs, white.

    ``back`` (r+1, d+1): their x̃ is back·x̃ of all, so a direction u of theirs is u·back. ``tau`` (r+1, q): what they
    had left of an affine part, taken out of their Y.
    """

    rows: MemoryRows
    back: Array
    tau: Array

    def affine(self, tau: Array) -> Array:
        """An affine part (r+1, q) of these rows: what tau (d+1, q) is inside the span, and what was taken out."""
        return np.linalg.pinv(self.back).T @ tau + self.tau


def few_inside(rows: MemoryRows, span: Array, most: int, step: int = 1) -> Few:
    """At most so many rows inside a span (r, d), one in every ``step``, white again.

    All rows, where the few do not vary in every direction of the span: a column that is seldom other than 0, say.

    Examples
    --------
    >>> from relumine.fit.rows import prepare
    >>> rows, _ = prepare(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.ones((4, 1)))
    >>> few = few_inside(rows, np.array([[0.6, 0.8]]), 3)
    >>> bool(np.allclose(few.rows.X @ [2.0, 1.0], rows.X[:3] @ ([2.0, 1.0] @ few.back)))
    True
    """
    back = np.zeros((len(span) + 1, rows.columns))
    back[-1, -1] = 1.0
    root = None
    if rows.n > most and rows.weight is None:
        Z = rows.X[::step][:most, :-1] @ span.T
        mean = Z.mean(axis=0)
        Z -= mean
        root = clear_root(Z.T @ Z / most, _STILL)
    if root is None:
        back[:-1, :-1] = span
        return Few(inside(rows, span), back, np.zeros((len(back), rows.outputs)))
    whiten = np.linalg.inv(root)
    few, tau = prepare(Z @ whiten.T, rows.Y[::step][:most], free=rows.free)
    back[:-1, :-1], back[:-1, -1] = whiten @ span, -whiten @ mean
    return Few(few.shared(rows.crew), back, tau)


def rest_span(rows: MemoryRows, model: Model, r: int) -> Array:
    """Directions (r, d) across the weights of a model that the second moment of what it leaves of y shows.

    A unit too weak to be seen in the second moment of y is seen in that of the rest, once the strong ones are fitted.
    """
    W = np.linalg.qr(model.U[:, :-1].T)[0]
    step = chunk_rows(max(len(model.U), rows.columns))
    parts = [model.residual(Block(rows.X[s : s + step], rows.Y[s : s + step])).T for s in range(0, rows.n, step)]
    M = _pooled(replace(rows, Y=np.concatenate(parts), kept=(), step=0), W)
    return dominant_span(M, r)[0]


def lifted(U: Array, span: Array) -> Array:
    """Directions (k, d+1) in all dimensions from those (k, r+1) inside a span (r, d)."""
    return np.column_stack([U[:, :-1] @ span, U[:, -1]]).reshape(len(U), span.shape[1] + 1)


def moment_directions(rng: np.random.Generator, k: int, rows: MemoryRows, width: int) -> Array:
    """k vectors (w, b), the first of them with w from the third and fourth moments, for any width.

    For Gaussian z the columns of T_3 and T_4 flattened to d² rows span {w_i ⊗ w_i}; the subspace power method finds the
    rank-one elements of that span. This sees weights that the second moment cannot tell apart (orthonormal ones, say).
    """
    d = rows.X.shape[1] - 1
    T = estimate_tensors(rows.X[:, :-1], rows.Y @ _one_output(rows), 4, "debiased")
    rank = min(width, packed_size(d, 2) - 1)
    # each tensor in units of its sampling error: one of them may be nothing but noise
    span = span_of_powers(T.tensors[3:5], 2, rank, T.errors[3:5].tolist())
    found = subspace_power(span, d, 2, rng)[0][:k]
    U = random_directions(rng, k, d + 1)
    U[: len(found)] = np.column_stack([found, rng.normal(scale=0.5, size=len(found))])
    return U


def third_moment_directions(rng: np.random.Generator, k: int, rows: MemoryRows, steps: int = 20) -> Array:
    """k vectors (w, b), the first of them with w where the power iteration of the third moment ends.

    For Gaussian z, T = E[y He₃(z)] = Σ_i a_i c_3(b_i) w_i^{⊗3}, and v ← T(·, v, v)/‖·‖ ends at one of its terms if they
    are nearly orthogonal. T(·, v, v) = E[y (z·v)² z] − E[y z] − 2 E[y z·v] v is a pass over the rows: T is not formed.
    This is what odd σ show: their second moment vanishes where b = 0.
    """
    d = rows.X.shape[1] - 1
    y = _one_output(rows)
    V = random_directions(rng, 4 * k, d)
    for _ in range(steps):

        def part(B: Block, V: Array = V) -> Sums:
            P, weighted = V @ B.X[:, :-1].T, B.weigh(B.Y @ y)
            return ((P * P * weighted) @ B.X[:, :-1],)

        T = rows.sum(part, len(V))[0] / rows.total  # the affine part of y is gone, so E[y z] = 0
        strength = np.linalg.norm(T, axis=1, keepdims=True)
        V = T / np.maximum(strength, np.finfo(float).tiny)
    found: list[Array] = []
    for v in V[np.argsort(-strength[:, 0])]:
        if len(found) < k and all(abs(v @ w) < _SAME for w in found):
            found.append(v)
    U = random_directions(rng, k, d + 1)
    U[: len(found)] = np.column_stack([found, np.zeros(len(found))])
    return U


def _one_output(rows: MemoryRows) -> Array:
    """The combination (q,) of the outputs that varies most."""
    return np.linalg.svd(rows.Y, full_matrices=False)[2][0] if rows.outputs > 1 else np.ones(1)


def looks_gaussian(Z: Array, tolerance: float = 0.75) -> tuple[bool, float]:
    """Whether the fourth moments of white inputs Z are near those of a Gaussian; and the mean excess kurtosis.

    The second moment of y shows the weights only for (nearly) Gaussian inputs; uniform inputs have excess −1.2.
    """
    most = int(np.clip(_LOOK_NUMBERS // max(Z.shape[1], 1), *_LOOK_ROWS))
    sample = Z[:: max(1, Z.shape[0] // most)]
    squares = sample * sample  # x⁴ by np.power takes ten times as long
    excess = float(np.vdot(squares, squares) / squares.size - 3.0)
    return abs(excess) <= tolerance + 20.0 / np.sqrt(sample.size), excess
