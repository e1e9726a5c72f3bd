"""Whether a layer is the last: are the answers linear in (|z|, h, 1)?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.extraction.deep.asking.inquiry import Inquiry, Pairs
from relumine.extraction.deep.ending.linear import SMALL, oriented
from relumine.extraction.deep.first.units import Unit
from relumine.fit.layers import minimise
from relumine.network import Network

_FITS = 1e-8  # relative error of a row that fits: measured 1e-15 … 1e-10 where the layers in front have all digits
LACKING = 0.1  # share of the rows that may differ for units that few inputs show
_TRIMS, _TIMES = 3, 5.0  # times that rows further off than so many times the median are left out
_ROBUST = 200_000  # entries of the matrix up to which a linear programme is worth its time


def finish(
    at: Inquiry, units: list[Unit], tol: float = _FITS, lacking: float = LACKING
) -> tuple[DeepNetwork | None, Pairs | None]:
    """The answers on (|z|, h, 1): zero residual means that this layer is the last, whatever its signs.

    Where most rows fit exactly and some do not, those show a unit that is still missing: pairs of inputs to look
    between. ``lacking``: share of the rows that may differ; the units that these show come later.
    """
    V, c = np.array([u.w for u in units]), np.array([u.c for u in units])
    size = len(units) + at.known.width + 1
    # rows asked on both sides of these units' kinks: at random inputs some of them may never change sides
    old, answers = at.ask.since(at.mark)
    pick = at.rng.permutation(len(old))[: 4 * size]
    X, Y = at.rows(max(3 * size, 100))
    X, Y = np.concatenate([X, old[pick]]), np.concatenate([Y, answers[pick]])
    H = at.known(X)
    F = np.column_stack([np.abs(H @ V.T + c), H, np.ones(len(X))])
    B, fits = robust(F, Y, tol)
    inliers = int(fits.sum())
    at.tell(f"   {inliers} of {len(X)} rows fit")
    if inliers < size + 20 or inliers < 0.5 * len(X):
        rough = 1e3 * tol
        if tol == _FITS and (np.abs(F @ B - Y).max(axis=1) <= rough * np.abs(F @ B).max()).mean() > 0.9:
            return finish(at, units, rough, lacking)  # the layers in front have lost digits, which polishing gives back
        return None, None
    loud = np.abs(B[: len(units)]).max(axis=1)
    # a unit that was found twice, once badly: nearly all of it goes to the better one
    twins = _alike(np.column_stack([V, c])) & (loud[:, None] < 1e-3 * loud)
    idle = (loud <= 1e-7 * loud.max()) | twins.any(axis=1)
    if idle.any():
        return finish(at, [u for u, no in zip(units, idle) if not no], tol, lacking)
    return _repaired(at, _head(at, units, B), np.array([u.known for u in units]), 10.0 * tol, lacking)


def _alike(T: Array) -> NDArray[np.bool_]:
    """Which rows are parallel to a thousandth, (m, m)."""
    T = T / np.linalg.norm(T, axis=1, keepdims=True)
    return np.asarray(np.abs(T @ T.T) > 1.0 - 1e-6)


def affine(at: Inquiry) -> DeepNetwork | None:
    """The network, if the box is an affine map of the last known layer: that one was the last."""
    *layers, (W, b) = at.known.layers
    X, Y = at.rows(3 * len(b) + 100)
    F = np.column_stack([at.known(X), np.ones(len(X))])
    B, _ = robust(F, Y)
    if np.abs(F @ B - Y).max() > 1e-4 * float(Y.std()):
        return None
    a, c = B[:-1].T, B[-1]
    return DeepNetwork(layers, Network(W, b, a[0], c=c[0]) if at.ask.plain else Network(W, b, a, c=c))


def _head(at: Inquiry, units: list[Unit], B: Array) -> Network:
    """a|z|/2 + v·h + c, as ReLU units: a|z|/2 = a relu(z) − az/2."""
    V, c, m = np.array([u.w for u in units]), np.array([u.c for u in units]), len(units)
    a = 2.0 * B[:m].T
    v, e = B[m:-1].T - 0.5 * a @ V, B[-1] - 0.5 * a @ c
    return Network(V, c, a[0], v=v[0], c=e[0]) if at.ask.plain else Network(V, c, a, v=v, c=e)


def _repaired(
    at: Inquiry, head: Network, known: NDArray[np.bool_], tol: float, lacking: float
) -> tuple[DeepNetwork | None, Pairs | None]:
    """The network if nearly all rows asked so far fit; and where some do not, pairs of rows to look between.

    Those may show weights that no witness has seen, as their units are seldom on together: these weights, and the
    output's, are fitted to them. Or they show units that few inputs do.
    """
    X, Y = at.near()
    H = at.known(X)
    weight = 1.0 / (1.0 + np.linalg.norm(H, axis=1))  # far rows would drown the others: f is nearly homogeneous
    scale = float((np.abs(Y) * weight[:, None]).max())
    first = head
    for _ in range(8):
        wrong = np.abs(head(H).reshape(Y.shape) - Y).max(axis=1) * weight > tol * scale
        at.tell(f"   {int(wrong.sum())} of the {len(X)} rows asked so far do not fit, {int((~known).sum())} open")
        if not wrong.any():
            at.open = None
            return DeepNetwork(at.known.layers, oriented(head.merge(1e-6))), None
        start = DeepNetwork((), head)
        if known.all() or start.parameters > SMALL:
            break
        size = 3 * start.parameters + 100
        rows = np.concatenate(
            [
                at.rng.permutation(np.flatnonzero(wrong))[:size],
                at.rng.permutation(np.flatnonzero(~wrong))[:size],
            ]
        )
        target = Y[rows, 0] if at.ask.plain else Y[rows]
        rest = start.parameters - head.W.size + head.v.size
        free = np.concatenate([(~known).ravel(), np.zeros(head.m, dtype=bool), np.ones(rest - head.m, dtype=bool)])
        fit = minimise(start, H[rows], target, at.run, steps=25, weight=weight[rows], skip=True, free=free)
        at.tell(f"   repair: {fit.history[0]:.1e} to {fit.loss:.1e}, {fit.reason}")
        if fit.loss > max(1e-13, tol**2):
            break
        head = fit.network.head
    right = at.rng.permutation(np.flatnonzero(~wrong))[:1000]
    some = at.rng.permutation(np.flatnonzero(wrong))[:4]
    pairs = (X[some], np.stack([_partner(X[right], x) for x in X[some]])) if len(right) else None
    net, at.open = DeepNetwork(at.known.layers, first), ~known
    # behind one layer all units are met on lines, for fewer rows
    few = len(net.layers) > 1 and wrong.mean() <= lacking and net.parameters <= SMALL
    return net if few else None, pairs


def _partner(X: Array, x: Array) -> Array:
    """The row of X nearest to x that is not so near that a kink between the two could not be measured."""
    away = np.linalg.norm(X - x, axis=1)
    return np.asarray(X[np.where(away > 0.1 * np.linalg.norm(x), away, np.inf).argmin()])


def robust(F: Array, Y: Array, tol: float = _FITS) -> tuple[Array, NDArray[np.bool_]]:
    """Least squares of Y (n, q) on F (n, p) over the rows that fit exactly, and which do: first Σ|r| is minimised."""
    scale = np.linalg.norm(F, axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    weight = 1.0 / np.maximum(np.linalg.norm(F, axis=1), 1e-300)
    G, target = F * weight[:, None] / scale, Y * weight[:, None]
    size = float(np.abs(target).max())
    if not np.isfinite(G).all():
        return np.zeros((F.shape[1], Y.shape[1])), np.zeros(len(F), dtype=bool)
    B = np.linalg.lstsq(G, target, rcond=1e-13)[0]
    fits = np.abs(G @ B - target).max(axis=1) <= tol * size
    n, p = G.shape
    if not fits.all() and n * p <= _ROBUST:
        mix = target @ np.cos(np.arange(Y.shape[1]))  # several outputs: a row that fits one mixture fits all
        eye = np.eye(n)
        found = linprog(
            np.concatenate([np.zeros(p), np.ones(2 * n)]),
            A_eq=np.column_stack([G, eye, -eye]),
            b_eq=mix / size,
            bounds=[(None, None)] * p + [(0, None)] * (2 * n),
            method="highs",
        )
        if found.x is not None:
            off, level = np.abs(G @ found.x[:p] - mix / size), 100.0 * tol
            for _ in range(_TRIMS):
                near = off <= level
                if near.sum() <= p:
                    break
                B = np.linalg.lstsq(G[near], target[near], rcond=1e-13)[0]
                off = np.abs(G @ B - target).max(axis=1) / size
                level = max(tol, _TIMES * float(np.median(off)))
            fits = np.abs(G @ B - target).max(axis=1) <= tol * size
    return B / scale[:, None], fits
