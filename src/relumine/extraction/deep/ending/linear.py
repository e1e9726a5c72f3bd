"""The linear part v·h of the head: weights of units that were on wherever they count.

A network has no such part. Where unit i was on at every row at which unit j in front of it is, the weight from j to i
shows in v_j alone; and with some weights missing, the signs of the units cannot be found by making all of v vanish.

A unit that is on at nearly all rows is all of v: a relu(w·h + b) = aw·h + ab there. At the few rows where it is off the
box is short of that, by v·h + ab, up to the signs of the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.inquiry import Inquiry
from relumine.extraction.deep.known.charts import Known
from relumine.extraction.deep.known.climb import before, climbed
from relumine.network import Network, flip_columns
from relumine.recovery.orient import orient

_NONE = 1e-6  # |v_j| over the largest |a_i| that is none: measured 1e-12 … 1e-9
_MANY = 0.5  # share of the entries of v from which they are a unit of their own, on wherever the box was asked
SMALL = 2500  # parameters up to which all layers are polished densely, and units are found that few rows show: seconds
# Relative error of a row that contradicts a network polished as a whole, and another: measured 1e-15 … 1e-10 where
# nothing is missing. A unit of one that was fitted to the digits changed no answer by more than 1e-6.
_WRONG, _LARGE = 1e-8, 1e-7
_STARTS = 8  # rows from which inputs are looked for, four times as many at random
_BEST = 12  # of what is found there that the box is asked at
_SIGNS, _BLOCK = 16, 4096  # units of which all signs are tried, half a second, and so many of these at a time
# Rows by which signs are chosen where a unit was on at all of them, and how many choices are tried. For networks that
# were fitted to the digits the right one was the fiftieth; of two such units the 271st by 300 rows, the 98th by 3000.
_SOME, _SIDES = 3000, 400
_OFF, _ROWS = 3, 40  # rows at which a unit is off that tell its weights, at the least, and of which they are told


def error(net: DeepNetwork, X: Array, Y: Array) -> Array:
    """Of each row, over the size of the answers; far out f grows like ‖x‖, and so do errors."""
    size = sized(X)
    off = np.abs(net(X).reshape(Y.shape) - Y).max(axis=1) / size
    return np.asarray(off / max(float((np.abs(Y).max(axis=1) / size).max(initial=0.0)), 1e-300))


def contradiction(net: DeepNetwork, X: Array, Y: Array) -> float:
    """The error from which a row contradicts a network that is right at most of these rows."""
    return max(_WRONG if net.parameters <= SMALL else _LARGE, 100.0 * typical(error(net, X, Y), 10.0))


def typical(off: Array, times: float = 100.0) -> float:
    """The error of nine rows in ten, as far as it is that of most: at more than one in ten a unit may be missing."""
    return min(float(np.quantile(off, 0.9)), times * float(np.median(off)))


def sized(X: Array) -> Array:
    """The size of inputs (n,) that f, and its errors, grow with: 1 + ‖x‖/√d."""
    return np.asarray(1.0 + np.linalg.norm(X, axis=1) / np.sqrt(X.shape[1]))


def oriented(head: Network, open_: NDArray[np.bool_] | None = None) -> Network:
    """The signs that leave no linear part, where there are such; else those that leave few entries of it.

    Where a weight is open (m, d), its column of v may stay: that may be what shows of it. If others stay, too, no unit
    is turned over: of one that is off at few rows, these tell its weights.
    """
    closed = np.ones(head.d, dtype=bool) if open_ is None else ~open_.any(axis=0)
    if not closed.any():
        return head
    part = head.replace(W=head.W[:, closed], v=head.v[..., closed])
    turned = orient(part, exact=False, bias=True, seconds=2.0).network
    whole = head.flip(np.flatnonzero(np.sum(turned.W * part.W, axis=1) < 0.0))
    if np.abs(turned.v).max(initial=0.0) < 1e-4 * np.abs(turned.a).max():
        return whole.replace(v=np.where(closed, 0.0, whole.v))
    return sparsest(whole) if closed.all() else head


def never_off(net: DeepNetwork, X: Array) -> NDArray[np.bool_]:
    """Which units i of the head (m, d) are off at no row at which unit j in front is on: v_j shows the weight, too."""
    H = Known(net.d, net.layers)(X)
    off = H @ net.head.W.T + net.head.b <= 0.0
    return np.asarray(off.T.astype(np.float64) @ (H > 0.0).astype(np.float64) == 0.0)


def tied(head: Network, open_: NDArray[np.bool_], H: Array) -> Network:
    """The head without a linear part, if all that is left of it is in columns with an open weight (m, d).

    Each entry goes to a unit with an open weight there: the one on at most of the rows of H (n, d) that show it.
    """
    columns = np.flatnonzero(head.v) if head.q is None else np.zeros(0, dtype=np.intp)
    if not len(columns) or not open_[:, columns].any(axis=0).all():
        return head
    W, on = np.array(head.W), H @ head.W.T + head.b > 0.0
    for j in columns:
        some = np.flatnonzero(open_[:, j])
        i = some[on[H[:, j] > 0.0][:, some].sum(axis=0).argmax()]
        W[i, j] += head.v[j] / head.a[i]
    return head.replace(W=W, v=np.zeros_like(head.v))


def sparsest(head: Network) -> Network:
    """The signs that leave fewest entries of v, if those are less than half: ξ in [0, 1] that minimises ‖v + Mξ‖₁."""
    q = head.q or 1
    M = flip_columns(head).reshape(q, head.d + 1, head.m)[:, :-1].reshape(q * head.d, head.m)
    v, eye = np.atleast_2d(head.v).ravel(), np.eye(q * head.d)
    found = linprog(
        np.concatenate([np.zeros(head.m), np.ones(2 * len(v))]),
        A_eq=np.column_stack([M, eye, -eye]),
        b_eq=-v,
        bounds=[(0.0, 1.0)] * head.m + [(0.0, None)] * (2 * len(v)),
        method="highs",
    )
    if found.x is None:
        return head
    turned = head.flip(np.flatnonzero(found.x[: head.m] > 0.5))
    some = np.abs(np.atleast_2d(turned.v)).max(axis=0) > _NONE * np.abs(head.a).max()
    return turned.replace(v=turned.v * some) if some.mean() < 0.5 else head


def into_units(at: Inquiry, net: DeepNetwork, X: Array, Y: Array, slack: float) -> DeepNetwork:
    """The network with v as weights of units, as far as all rows allow it, and the box where those units are off.

    First with the signs that leave v only where some unit was off at no row with that activation. Then all of v as
    weights of one unit, then entry by entry, if these are few: many of them are a unit of their own. Entries that no
    row needs are left out.
    """
    if net.head.v.any():
        turned = DeepNetwork(net.layers, oriented(net.head, never_off(net, at.ask.data()[0])))
        net = net if (error(turned, X, Y) > slack).any() else turned
    some = np.abs(net.head.v) > _NONE * np.abs(net.head.a).max(initial=0.0)
    less = DeepNetwork(net.layers, net.head.replace(v=net.head.v * some))
    if not some.all() and not (error(less, X, Y) > slack).any():
        net = less
    columns = np.flatnonzero(np.atleast_2d(net.head.v).any(axis=0))
    few = len(columns) < _MANY * net.head.d
    for some in [columns, *columns[:, None][: len(columns) * few]] if len(columns) else []:
        for i in range(net.head.m):
            trial = _moved(net, i, some)
            if trial is None or (error(trial, X, Y) > slack).any():
                continue
            P, answers = at.ask.answered(np.concatenate([_off(n, i, some, X, at.rng) for n in (net, trial)]))
            if not (error(trial, P, answers) > slack).any():
                net = trial
                break
        if not net.head.v.any():
            break
    return net


def one_sided(head: Network, H: Array) -> list[Array]:
    """Directions ±v_ξ, of length one, along which the rows of H (n, d) go least far down: those of a unit that is on.

    v_ξ = v + Mξ as the signs ξ of the head's units may be.
    """
    if head.q is not None or head.m > _SIGNS:
        return []
    far = H[np.argsort(-np.linalg.norm(H, axis=1))[:: max(len(H) // _SOME, 1)]]
    far = far / np.maximum(np.linalg.norm(far, axis=1, keepdims=True), 1.0)
    M, best = flip_columns(head)[:-1], np.zeros((0, head.d + 1))
    for xi in np.array_split(_patterns(head.m), max((1 << head.m) // _BLOCK, 1)):
        V = head.v + xi @ M.T
        V = V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300)
        z = V @ far.T
        both = np.vstack([np.column_stack([z.min(axis=1), V]), np.column_stack([-z.max(axis=1), -V])])
        best = np.vstack([best, both])
        best = best[np.argsort(-best[:, 0], kind="stable")[:_SIDES]]
    return list(best[:, 1:])


def _patterns(m: int) -> Array:
    """All of {0, 1}^m, (2^m, m)."""
    return ((np.arange(1 << m)[:, None] >> np.arange(m)) & 1).astype(np.float64)


def _moved(net: DeepNetwork, i: int, columns: NDArray[np.intp]) -> DeepNetwork | None:
    """These entries of v as weights of unit i; None if its outputs a_i are not those of v."""
    head = net.head
    v, a = np.array(np.atleast_2d(head.v)), np.atleast_2d(head.a)[:, i]
    w = a @ v[:, columns] / max(float(a @ a), 1e-300)
    if np.abs(np.outer(a, w) - v[:, columns]).max() > _NONE * np.abs(v).max():
        return None
    W = np.array(head.W)
    W[i, columns] += w
    v[:, columns] = 0.0
    return DeepNetwork(net.layers, head.replace(W=W, v=v.reshape(np.shape(head.v))))


def _off(net: DeepNetwork, i: int, columns: NDArray[np.intp], old: Array, rng: np.random.Generator) -> Array:
    """Inputs at which unit i of the head is off, as far as there are such, with one of these units in front on."""
    front = len(net.layers) - 1

    def score(zs: list[Array]) -> tuple[Array, list[Array]]:
        h, z, on = np.maximum(zs[front], 0.0), zs[-1][:, i], zs[front][:, columns]
        size = 1.0 + np.linalg.norm(h, axis=1)
        loud, first = on.max(axis=1), columns[on.argmax(axis=1)]
        seeds, n = [np.zeros_like(z) for z in zs], np.arange(len(z))
        off = -z <= loud
        seeds[-1][off, i] = -1.0 / size[off]
        seeds[front][n[~off], first[~off]] = 1.0 / size[~off]
        value = np.minimum(-z, loud)
        seeds[front] -= (value / size**3)[:, None] * h
        return value / size, seeds

    zs = before(net, old)
    near = np.minimum(-zs[-1][:, i], zs[front][:, columns].max(axis=1)) / (1.0 + np.linalg.norm(zs[front], axis=1))
    start = np.concatenate([old[near.argsort()[-_STARTS:]], old[rng.integers(len(old), size=4 * _STARTS)]])
    found = climbed(net, start, score, rng)
    return np.asarray(found.X[found.score.argsort()[-_BEST:]])
