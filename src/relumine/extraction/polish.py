"""From the sum that lines show to a network as people write it: all digits, the activation, signs.

Digits. On which side of each unit a row lies is known exactly; given that, f is linear in P_i = a_i (w_i, b_i) and the
affine part: f(x) = Σ_i [z_i > 0] P_i·x̃ + τ·x̃. So all rows asked decide together, in one linear least squares problem
(and a second one, should a side change). With q outputs P_i is (q, d+1) of rank one.

Signs. Lines know every unit up to the sign of (w, b), because relu(z) = z + relu(−z): a flip moves an affine function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lstsq
from scipy.linalg.lapack import dpocon, dpotrf

from relumine.activations import Activation, LeakyReLU
from relumine.arrays import Array
from relumine.network import Network, flip_columns
from relumine.recovery.orient import flippable, orient

_COLUMNS = 1500  # parameters up to which all rows are fitted together
_PRODUCTS = 60  # of conjugate gradients, which gain a digit in five where there are three rows a parameter
_SOLVED = 1e-8  # of the squared gradient left: a change to four digits, and the next one to four more
_REGULAR = 1e-11  # reciprocal condition of AᵀA: a refinement then gains five digits
_REFINED = 4  # solutions with one factor: three have all digits, and one more costs little
_SIDES = 6  # solutions at most: one suffices where no side changes
_WEAK = 1e-4  # of the strongest unit: what noise adds to a network in single precision was 1e-6, its units 0.03
_FAINT = 1e-6  # of the strongest unit: one that weak may be an error of another; stronger ones always showed
_HARDLY = 0.1  # of what is tolerated: units of 1e-9 of the answers are found, and those that were errors had 1e-11
_SPARES = 120  # units tried in turn: is any of them to spare?
_VANISHES = 1e-7  # of the affine part, relative to the largest unit: what is left of it is error, not a part
_ROUGHLY = 3e-4  # the same for answers in single precision
_DIGITS = 8.0  # to which the affine part is known: with more flips than that many digits, some match by chance


def polished(net: Network, Z: Array, Y: Array, tolerance: Callable[[Array], Array], twins: bool = False) -> Network:
    """The network fitted to rows Z (n, d) with answers Y (n, q); the same where that is too much work or no better.

    ``tolerance``: how far it may be off at a distance from the centre, (n, q). ``twins``: units may stand beside each
    other that correct one another; one is put in their place where the rows allow that.
    """
    allowed = tolerance(np.linalg.norm(Z, axis=1))
    if not polishable(net, len(Z)):
        return net
    best = _least_squares(net, Z, Y, allowed)
    if _off(best, Z, Y, allowed) > 1.0:  # units are missing: the others must not make up for them
        best = net
    if twins:
        best = _without_twins(net, Z, Y, allowed, best)
    return _without_spares(best, Z, Y, allowed) if twins and _off(best, Z, Y, allowed) <= 1.0 else best


def refitted(net: Network, Z: Array, Y: Array, tolerance: Callable[[Array], Array]) -> Network:
    """The units fitted to random rows Z (n, d) with answers Y (n, q), their affine part with them.

    Without those that the fit has made so weak that every row fits as well without them, and with one for units of one
    kink: two of opposite sign, found on two lines, may cancel.
    """
    allowed = tolerance(np.linalg.norm(Z, axis=1))
    best = _least_squares(net, Z, Y, allowed)
    best = _without_twins(best, Z, Y, allowed, best)
    size = np.linalg.norm(best.a, axis=0)
    fewer = best.permuted(np.flatnonzero(size > _WEAK * size.max(initial=0.0)))
    return fewer if _off(fewer, Z, Y, allowed) <= 1.0 else best


def _without_twins(net: Network, Z: Array, Y: Array, allowed: Array, otherwise: Network) -> Network:
    """One unit for those of nearly one kink, fitted again, where every row allows that; else ``otherwise``."""
    for same in (1e-2, 1e-3, 1e-4, 1e-5):
        fewer = net.merge(same)
        if fewer.m < otherwise.m:
            fewer = _least_squares(fewer, Z, Y, allowed)
            if _off(fewer, Z, Y, allowed) <= 1.0:
                return fewer
    return otherwise


def without_faint(net: Network, rows: Callable[[], Array], tolerance: Callable[[Array], Array]) -> Network:
    """Without the units that none of the ``rows`` (n, d) could have shown: they are errors of the others, not units.

    A unit may go if a·relu(z), or a·relu(−z) = a·relu(z) − az with az added to the affine part, stays far within
    the ``tolerance`` at every row.
    """
    size = np.linalg.norm(net.a, axis=0) * np.linalg.norm(net.W, axis=1)
    faint = np.flatnonzero(size < _FAINT * size.max(initial=0.0))
    if not len(faint):
        return net
    Z, v, c, gone = rows(), net.v.copy(), net.c.copy(), []
    allowed = tolerance(np.linalg.norm(Z, axis=1))
    for i in faint:
        z, a = Z @ net.W[i] + net.b[i], net.a[:, i]
        on, off = (float((np.outer(np.maximum(side, 0.0), np.abs(a)) / allowed).max()) for side in (z, -z))
        if min(on, off) > _HARDLY:
            continue
        gone.append(i)
        if off < on:
            v, c = v + np.outer(a, net.W[i]), c + a * net.b[i]
    return net.replace(v=v, c=c).permuted(np.delete(np.arange(net.m), gone))


def polishable(net: Network, rows: int) -> bool:
    """Whether there are rows enough, and parameters few enough, to fit all together."""
    return 0 < net.m <= _COLUMNS // (net.d + 1) - 1 and rows >= 1.1 * (net.m + 1) * (net.d + 1)


def _without_spares(net: Network, Z: Array, Y: Array, allowed: Array) -> Network:
    """Without units that the others can do without, weakest first; every row must still fit."""
    tries, searching = 0, True
    while searching and tries < _SPARES:
        searching = False
        for i in np.argsort(np.linalg.norm(net.a, axis=0)):
            tries += 1
            fewer = _least_squares(net.permuted(np.delete(np.arange(net.m), i)), Z, Y, allowed)
            if _off(fewer, Z, Y, allowed) <= 1.0:
                net, searching = fewer, True
                break
    return net


def _least_squares(net: Network, Z: Array, Y: Array, allowed: Array) -> Network:
    """A few solutions of the linear problem, each with the sides of the one before; the best of them."""
    weight = 1.0 / allowed.max(axis=1, keepdims=True)
    ones, best, least = np.column_stack([Z, np.ones(len(Z))]), net, _off(net, Z, Y, allowed)
    for _ in range(_SIDES):
        on = Z @ net.W.T + net.b > 0.0
        on = np.column_stack([on, np.ones(len(Z))])
        # the change, not the parameters: its error is a share of the change
        solve = _directly if on.shape[1] * ones.shape[1] <= _COLUMNS else _by_products
        P = solve(on * weight, ones, (Y - net(Z)) * weight).transpose(2, 0, 1)
        units = np.einsum("qm,md->qmd", net.a, np.column_stack([net.W, net.b])) + P[:, :-1]
        W, b, a = _rank_one_units(units, net)
        net = Network(W, b, a, v=net.v + P[:, -1, :-1], c=net.c + P[:, -1, -1])
        off = _off(net, Z, Y, allowed)
        if not off < 0.5 * least:
            best = net if off < least else best
            break
        best, least = net, off
    return best


def _directly(on: Array, ones: Array, R: Array) -> Array:
    """P (m+1, d+1, q) that makes Σ_i on_i (ones·P_i) ≈ R, for on (n, m+1), ones (n, d+1), R (n, q)."""
    columns = (on[:, :, None] * ones[:, None, :]).reshape(len(R), -1)
    columns /= (scale := np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny))
    P = _by_normal_equations(columns, R)
    if P is None:
        P = lstsq(columns, R, cond=1e-13, lapack_driver="gelsy")[0]
    return np.asarray((P / scale[:, None]).reshape(on.shape[1], ones.shape[1], -1))


def _by_normal_equations(A: Array, R: Array) -> Array | None:
    """argmin |A P − R| by a Cholesky factor of AᵀA, each refinement gaining its digits; None if A is too close to rank
    deficient. At 18 000 × 1464 a twelfth of the time of a QR with pivoting.
    """
    G = A.T @ A
    factor, failed = dpotrf(G, lower=1)
    if failed or dpocon(factor, float(np.abs(G).sum(axis=0).max()), uplo="L")[0] < _REGULAR:
        return None
    P = np.zeros((A.shape[1], R.shape[1]))
    for _ in range(_REFINED):
        P += cho_solve((factor, True), A.T @ (R - A @ P))
    return P


def _by_products(on: Array, ones: Array, R: Array) -> Array:
    """The same by conjugate gradients on random rows, products in single precision.

    For Gaussian rows E[on_i on_j x xᵀ] ≈ P(both are on)·1, so (onᵀon)⁻¹ ⊗ 1 is nearly the inverse of what is solved.
    """
    G, X = on.astype(np.float32), ones.astype(np.float32)
    inverse = np.linalg.pinv(on.T @ on, rcond=1e-9)

    def normal(P: Array) -> Array:
        predicted = np.einsum("ni,ni->n", G, X @ P.T.astype(np.float32))
        return np.asarray((G * predicted[:, None]).T @ X, dtype=np.float64)

    solved = []
    for r in R.T:
        P, left = np.zeros((on.shape[1], ones.shape[1])), np.asarray((on * r[:, None]).T @ ones)
        towards = step = inverse @ left
        size = first = float(np.vdot(left, towards))
        for _ in range(_PRODUCTS):
            if not size > _SOLVED * first:
                break
            image = normal(step)
            length = size / float(np.vdot(step, image))
            P, left = P + length * step, left - length * image
            towards = inverse @ left
            size, before = float(np.vdot(left, towards)), size
            step = towards + (size / before) * step
        solved.append(P)
    return np.stack(solved, axis=2)


def _rank_one_units(units: Array, net: Network) -> tuple[Array, Array, Array]:
    """(q, m, d+1) as a_i (w_i, b_i), the nearest product for each unit: W, b, a (q, m), on the side they were."""
    W, b, a = net.W.copy(), net.b.copy(), net.a.copy()
    for i in range(net.m):
        left, s, right = np.linalg.svd(units[:, i], full_matrices=False)
        size = float(np.linalg.norm(right[0, :-1]))
        if s[0] > 0.0 and size > 0.0:
            sign = 1.0 if right[0, :-1] @ net.W[i] >= 0.0 else -1.0
            W[i], b[i], a[:, i] = (
                sign * right[0, :-1] / size,
                sign * right[0, -1] / size,
                sign * s[0] * left[:, 0] * size,
            )
    return W, b, a


def _off(net: Network, Z: Array, Y: Array, allowed: Array) -> float:
    """The largest error over what is tolerated."""
    return float((np.abs(net(Z) - Y) / allowed).max())


class Signed(NamedTuple):
    """``network`` with its signs; ``word``: how they were found; ``open`` (m,): units whose sign is not determined."""

    network: Network
    word: str
    open: NDArray[np.bool_]


def signed(net: Network, activation: Activation, *, rough: bool = False, seconds: float = 20.0) -> Signed:
    """The network of ``activation`` units (ReLU or leaky ReLU) with no affine part, or an output bias alone, if any is.

    ``net``: ReLU units with (q, m) output weights and an affine part. For ReLU a slope ≠ 0 is looked for where no
    choice of signs fits.
    """
    if not net.m:
        return Signed(net, "", np.zeros(0, dtype=bool))
    limit = _ROUGHLY if rough else _VANISHES
    word = "no choice of unit signs makes the affine part vanish, so it is part of the network"
    tried = [as_leaky(net, activation.slope) if isinstance(activation, LeakyReLU) else net]
    slope = None if isinstance(activation, LeakyReLU) or rough else _slope(net)
    if slope is not None:
        tried.append(as_leaky(net, slope))
    for form in tried:
        for bias in (False, True):
            if bias and form.m * np.log10(2.0) > _DIGITS * form.d * (form.q or 1) - 3.0:
                continue
            turned = orient(form, exact=not rough, bias=bias, seconds=seconds)
            if turned.residual > limit:
                continue
            found = turned.network
            pure = found.replace(v=np.zeros_like(found.v), c=found.c if bias else np.zeros_like(found.c))
            how = turned.how + ("; an output bias is kept" if bias else "")
            if form is not tried[0]:
                how += f"; the affine part is that of leaky ReLU units of slope {slope:.6g}"
            return Signed(pure, how, _open(pure, bias))
    return Signed(tried[0], word, np.ones(net.m, dtype=bool))


def as_leaky(net: Network, slope: float) -> Network:
    """The same function by leaky units: relu(z) = (leaky(z) − s z)/(1 − s)."""
    a = net.a / (1.0 - slope)
    return Network(net.W, net.b, a, LeakyReLU(slope), net.v - slope * a @ net.W, net.c - slope * a @ net.b)


def _slope(net: Network) -> float | None:
    """The slope s of leaky units that leave no affine part but a constant, if there is one.

    Σ a_i leaky(ξ_i z_i) has the affine part ½ ρ Σ ξ_i J_i z_i with J_i = a_i(1 − s) and ρ = (1 + s)/(1 − s), beside
    ½ Σ J_i |z_i|. Where the J_i w_i are independent, all coefficients ρ ξ_i must have one absolute value.
    """
    if net.m < 2 or net.m > net.d * (net.q or 1):
        return None
    columns = flip_columns(net).reshape(net.q or 1, net.d + 1, net.m)[:, :-1].reshape(-1, net.m)
    affine = (net.v + 0.5 * net.a @ net.W).ravel()
    singular = np.linalg.svd(columns, compute_uv=False)
    if singular[-1] <= 1e-9 * singular[0]:
        return None
    rho = 2.0 * np.linalg.lstsq(columns, affine, rcond=None)[0]
    size = float(np.median(np.abs(rho)))
    left = np.abs(columns @ (0.5 * np.sign(rho) * size) - affine).max()
    if left > _VANISHES * np.abs(columns).max() or abs(size - 1.0) <= 1e-6:
        return None
    return (size - 1.0) / (size + 1.0)


def _open(net: Network, bias: bool) -> NDArray[np.bool_]:
    """Units (m,) whose sign is open; where that cannot be listed, by counting: eight digits seldom agree by chance."""
    found = flippable(net, bias=bias)
    if found is not None:
        return found
    equations = (net.d + (not bias)) * (net.q or 1)
    return np.full(net.m, net.m * np.log10(2.0) > _DIGITS * equations - 3.0)
