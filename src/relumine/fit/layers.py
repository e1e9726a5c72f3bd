"""Gauss–Newton for all layers of a deep network at once, over rows (x, y).

With h_l = σ(z_l), z_l = W_l h_{l−1} + b_l and residuals r = f(X) − y, a change δ of all maps changes the output by

    δz_l = δW_l h_{l−1} + δb_l + W_l δh_{l−1},   δh_l = σ'(z_l) δz_l           (forward sweep: Jδ)
    g_l = σ'(z_l) W_{l+1}ᵀ g_{l+1},   (Jᵀg)_{W_l} = Σ_n g_l h_{l−1}ᵀ            (backward sweep: Jᵀg)

Steps solve (JᵀJ + λD) δ = −Jᵀr with D = diag(JᵀJ): densely while that is cheap, by LSMR on the two sweeps beyond.
Positive scales between layers are directions in which nothing changes; the damping holds them where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, lsmr

from relumine.arrays import Array
from relumine.deep import DeepNetwork
from relumine.results import InvalidInput
from relumine.run import Run

_DENSE = 2500  # parameters up to which JᵀJ is formed: 50 MB, and a factorisation of 2 s
_CHUNK_NUMBERS = 1 << 22  # entries of J held at once while JᵀJ is summed (32 MB)
_FLOOR = 1e-28  # relative loss at which only rounding is left: 1e-14 of the root mean square of y
_VARIES = 1e-10  # least share of the mean square of activations, or of derivatives, that counts
_TRIES, _COSTLY = 12, 3  # dampings of a step; by LSMR each takes most of a minute for 16 641 parameters
_PRODUCTS = 150  # LSMR iterations of a step; from 1e-6 away each step of so many won three digits or more


@dataclass(frozen=True)
class LayersFit:
    """Where it ended: the network, the relative loss Σr²/Σ(y − ȳ)² after each step, and why it stopped."""

    network: DeepNetwork
    history: tuple[float, ...]
    reason: str

    @property
    def loss(self) -> float:
        """The last relative loss."""
        return self.history[-1]


class Sweeps:
    """J and Jᵀ of a network at some rows, never formed; parameters are one vector, map after map, W before b.

    ``skip``: the linear part v of the head is a parameter, too, and comes last.
    """

    def __init__(self, net: DeepNetwork, X: Array, skip: bool = False) -> None:
        self.free_skip = skip
        self.net, self.maps = net, [(np.atleast_2d(W), np.atleast_1d(b)) for W, b in net.maps]
        self.skip = np.atleast_2d(net.head.v)
        self.h, self.slope = [X], []
        for W, b in self.maps[:-1]:
            z = self.h[-1] @ W.T + b
            self.h.append(net.activation(z))
            self.slope.append(net.activation.derivative(z))
        W, b = self.maps[-1]
        self.value = self.h[-1] @ W.T + b + self.h[-2] @ self.skip.T  # (n, q)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(W.size + b.size for W, b in self.maps) + self.free_skip * self.skip.size

    def split(self, flat: Array) -> list[tuple[Array, Array]]:
        """A vector of parameters as maps."""
        parts, at = [], 0
        for W, b in self.maps:
            V = flat[at : at + W.size].reshape(W.shape)
            at += W.size
            parts.append((V, flat[at : at + b.size]))
            at += b.size
        return parts

    def forward(self, flat: Array) -> Array:
        """Jδ, (n, q)."""
        change: list[Array] = []  # of h_1, h_2, …, in place: for many rows memory takes longer than the products
        for k, ((W, _), (V, e)) in enumerate(zip(self.maps, self.split(flat))):
            z = self.h[k] @ V.T
            z += e
            if k:
                z += change[-1] @ W.T
            if k < len(self.slope):
                z *= self.slope[k]
            change.append(z)
        total = change[-1] + change[-3] @ self.skip.T if len(change) > 2 else change[-1]
        if self.free_skip:
            total = total + self.h[-2] @ flat[-self.skip.size :].reshape(self.skip.shape).T
        return np.asarray(total)

    def signals(self, G: Array) -> list[Array]:
        """g_l of every map for output weights G (n, q): the derivative of Σ G·f with respect to z_l."""
        found = [G]
        for k in range(len(self.slope) - 1, -1, -1):
            back = found[-1] @ self.maps[k + 1][0]
            if k == len(self.slope) - 2:
                back = back + G @ self.skip
            back *= self.slope[k]
            found.append(back)
        return found[::-1]

    def backward(self, G: Array) -> Array:
        """JᵀG, one number per parameter."""
        parts = [np.concatenate([(g.T @ h).ravel(), g.sum(axis=0)]) for g, h in zip(self.signals(G), self.h)]
        return np.concatenate([*parts, (G.T @ self.h[-2]).ravel()] if self.free_skip else parts)

    def rows(self, output: int) -> Array:
        """The rows of J for one output, (n, p)."""
        n = len(self.value)
        G = np.zeros_like(self.value)
        G[:, output] = 1.0
        blocks = []
        for g, h in zip(self.signals(G), self.h):
            blocks += [(g[:, :, None] * h[:, None, :]).reshape(n, -1), g]
        if self.free_skip:
            blocks.append((G[:, :, None] * self.h[-2][:, None, :]).reshape(n, -1))
        return np.concatenate(blocks, axis=1)

    def moved(self, flat: Array) -> DeepNetwork:
        """The network with δ added to its parameters."""
        new = [
            (W + V.reshape(W.shape), b + e.reshape(b.shape)) for (W, b), (V, e) in zip(self.net.maps, self.split(flat))
        ]
        v = self.net.head.v
        if self.free_skip:
            v = v + flat[-v.size :].reshape(v.shape)
        return DeepNetwork.of(new, self.net.activation, v)


def minimise(
    net: DeepNetwork,
    X: Array,
    y: Array,
    run: Run,
    *,
    weight: Array | None = None,
    skip: bool = False,
    free: NDArray[np.bool_] | None = None,
    steps: int = 30,
    slow: int | None = None,
    tol: float = _FLOOR,
) -> LayersFit:
    """Least squares in all layers, from a network that is already close; the loss never grows.

    Parameters
    ----------
    net : DeepNetwork
        The start. Its head's linear part v is kept as it is unless ``skip``.
    X : (n, d) array
    y : (n,) or (n, q) array
    run : Run
        Asked between two steps whether to end.
    weight : (n,) array, optional
        Factors of the residuals (not of their squares); one by default.
    skip : bool
        The linear part v of the head may change, too.
    free : (p,) array of bool, optional
        Which parameters may change (in the order of :class:`Sweeps`); all by default. For networks small enough for
        dense steps.
    steps : int
        Most steps.
    slow : int, optional
        Most steps that gain less than a tenth each; as many as there are by default.
    tol : float
        Relative loss at which to stop.

    Examples
    --------
    >>> import relumine as rl
    >>> truth = rl.planted.deep((4, 3, 3, 1), rng=0)
    >>> X = np.random.default_rng(1).normal(size=(300, 4))
    >>> start = DeepNetwork.of([(W + 1e-4, b) for W, b in truth.maps])
    >>> fit = minimise(start, X, truth(X), Run.of(0))
    >>> rl.metrics.parameter_error(truth, fit.network) < 1e-10
    True
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(X) != len(y) or len(X) == 0:
        raise InvalidInput(f"X has {len(X)} rows and y {len(y)}; they must agree, and there must be some")
    Y = y.reshape(len(y), -1)
    omega = np.ones((len(X), 1)) if weight is None else np.reshape(weight, (-1, 1))
    spread = max(float(np.sum((omega * (Y - Y.mean(axis=0))) ** 2)), np.finfo(float).tiny)
    history, lam, reason = [_loss(net, X, Y, omega) / spread], 1e-6, "step limit"
    lost = 0  # steps that gained little
    for step in range(steps):
        if run.over:
            reason = "interrupted"
            break
        if history[-1] <= tol:
            reason = "reached the tolerance"
            break
        sweeps = Sweeps(net, X, skip)
        dense = sweeps.size <= _DENSE
        solve = (_Dense if dense else _Iterative)(sweeps, Y, omega, free)
        for _ in range(_TRIES if dense else _COSTLY):
            delta = solve(lam)
            trial = None if delta is None or not np.isfinite(delta).all() else sweeps.moved(delta)
            loss = np.inf if trial is None else _loss(trial, X, Y, omega) / spread
            if trial is not None and loss < history[-1]:
                break
            lam = max(10.0 * lam, 1e-12)
        else:
            reason = "no further decrease"
            break
        gained = loss < 0.9 * history[-1]
        net, lam = trial, max(lam * 0.05, 1e-15)
        history.append(loss)
        run.report("polish", step + 1, loss)
        lost += not gained
        if not gained and (loss < 1e-20 or not dense):
            reason = "rounding error"
            break
        if slow is not None and lost >= slow:
            reason = "little gained"
            break
    return LayersFit(net, tuple(history), reason)


def rank(net: DeepNetwork, X: Array, tol: float = 1e-10) -> tuple[int, int]:
    """Rank of J at the rows of X (columns of length one), and its largest possible value.

    That is p minus one for each hidden unit, whose scale can move to the next layer: equality means that the parameters
    are locally identifiable from these rows (Bona-Pellissier et al. 2022).
    """
    sweeps = Sweeps(net, X)
    if sweeps.size > _DENSE:
        raise InvalidInput(f"the rank of {sweeps.size} parameters is not computed; up to {_DENSE}")
    J = np.concatenate([sweeps.rows(k) for k in range(sweeps.value.shape[1])])
    norms = np.linalg.norm(J, axis=0)
    s = np.linalg.svd(J / np.where(norms > 0.0, norms, 1.0), compute_uv=False)
    return int((s > tol * s[0]).sum()), sweeps.size - net.m


def _loss(net: DeepNetwork, X: Array, Y: Array, omega: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(np.sum((omega * (net(X).reshape(Y.shape) - Y)) ** 2))
    return value if np.isfinite(value) else np.inf


class _Dense:
    """Form JᵀJ once, of the parameters that may change, factor it for each damping."""

    def __init__(self, sweeps: Sweeps, Y: Array, omega: Array, free: NDArray[np.bool_] | None = None) -> None:
        self.size, self.use = sweeps.size, slice(None) if free is None else np.flatnonzero(free)
        self.g = -sweeps.backward(omega**2 * (sweeps.value - Y))[self.use]
        self.H = np.zeros((len(self.g), len(self.g)))
        for part, factor in _parts(sweeps, omega):
            for k in range(Y.shape[1]):
                J = factor * part.rows(k)[:, self.use]
                self.H += J.T @ J
        diagonal = np.diag(self.H)
        self.scale = diagonal + 1e-12 * diagonal.max(initial=0.0) + np.finfo(float).tiny

    def __call__(self, lam: float) -> Array | None:
        # unit diagonal before factoring: columns of different layers differ by orders of magnitude
        root = np.sqrt(self.scale)
        system = self.H / np.outer(root, root)
        system[np.diag_indices(len(root))] += max(lam, 1e-13)
        delta = np.zeros(self.size)
        try:
            factor = cho_factor(system, check_finite=False)
        except LinAlgError:
            return None
        delta[self.use] = cho_solve(factor, self.g / root) / root
        return delta


class _Iterative:
    """LSMR on the sweeps, δ = S^(−1/2) u A^(−1/2) in each map: A = Σ φφᵀ, φ = ω(h, 1), S = Σ ggᵀ/n over n rows.

    S ⊗ A is what JᵀJ would be in this map if h and g were independent (Martens and Grosse 2015). For the last hidden
    layer of a trained 784-64-64-1, 150 products won five digits; with columns of length one it had been one and a half.
    """

    def __init__(self, sweeps: Sweeps, Y: Array, omega: Array, free: NDArray[np.bool_] | None = None) -> None:
        if sweeps.free_skip:
            raise InvalidInput(f"a linear part of {sweeps.size} parameters: dense steps go up to {_DENSE}")
        if free is not None:
            raise InvalidInput(f"some parameters fixed, and {sweeps.size} of them: dense steps go up to {_DENSE}")
        self.sweeps, self.omega, self.target = sweeps, omega, (omega * (Y - sweeps.value)).ravel()
        n = len(Y)
        squares = [np.zeros((len(b), len(b))) for _, b in sweeps.maps]
        for k in range(Y.shape[1]):
            G = np.zeros_like(Y)
            G[:, k] = 1.0
            for S, g in zip(squares, sweeps.signals(G)):
                S += g.T @ g / n
        self.left = [_inverse_root(S) for S in squares]
        self.right = [_inverse_root(_gram(h, omega)) for h in sweeps.h]

    def __call__(self, lam: float) -> Array | None:
        shape = self.sweeps.value.shape
        J = LinearOperator(
            (self.target.size, self.sweeps.size),
            matvec=lambda u: (self.omega * self.sweeps.forward(self._change(np.ravel(u)))).ravel(),
            rmatvec=lambda g: self._change(self.sweeps.backward(self.omega * np.reshape(g, shape)), back=True),
            dtype=np.float64,
        )
        found = lsmr(J, self.target, damp=float(np.sqrt(lam)), atol=1e-14, btol=1e-14, maxiter=_PRODUCTS)
        return self._change(np.asarray(found[0]))

    def _change(self, flat: Array, back: bool = False) -> Array:
        """δ = P u Qᵀ of every map; ``back``: its transpose Pᵀ u Q."""
        parts = []
        for (V, e), P, Q in zip(self.sweeps.split(flat), self.left, self.right):
            u = np.column_stack([V, e])
            u = P.T @ u @ Q if back else P @ u @ Q.T
            parts += [u[:, :-1].ravel(), u[:, -1]]
        return np.concatenate(parts)


def _gram(H: Array, omega: Array) -> Array:
    """Σ φφᵀ of φ = ω(h, 1)."""
    G = omega * H
    total = omega.T @ G
    return np.block([[G.T @ G, total.T], [total, np.sum(omega**2).reshape(1, 1)]])


def _inverse_root(S: Array) -> Array:
    """Upper triangular P with PᵀSP = 1; variances that are nearly zero are raised to a small number first."""
    size = float(np.trace(S)) / max(len(S), 1)
    R = np.linalg.cholesky(S + (_VARIES * size + np.finfo(float).tiny) * np.eye(len(S))).T
    return np.asarray(np.linalg.inv(R), dtype=np.float64)


def _parts(sweeps: Sweeps, omega: Array) -> Iterator[tuple[Sweeps, Array]]:
    """The same sweeps and factors a few rows at a time, so that the rows of J fit in memory."""
    X = sweeps.h[0]
    step = max(1, _CHUNK_NUMBERS // sweeps.size)
    for start in range(0, len(X), step):
        yield Sweeps(sweeps.net, X[start : start + step], sweeps.free_skip), omega[start : start + step]
