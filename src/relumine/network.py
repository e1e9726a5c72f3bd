"""The model f(x) = Σ_i a_i σ(w_i·x + b_i) + v·x + c and the rewritings that keep its function."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine import activations, formats
from relumine.activations import Activation
from relumine.arrays import Array, among, slices, unit_rows
from relumine.formats import LAYERS, ONE_LAYER, UNLABELLED, Labels, Parameters
from relumine.formats.sklearn_model import from_mlp
from relumine.results import InvalidInput, MissingPackage, ModelFileError

__all__ = ["Network", "flip_columns"]

_CHUNK_NUMBERS = 1 << 20  # hidden activations held at once during evaluation (8 MB)


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """f(x) = Σ_i a_i σ(w_i·x + b_i) + v·x + c. A row of ``W`` is a neuron; arrays are read-only float64.

    Parameters
    ----------
    W : (m, d) array
        Hidden weights, one row per neuron.
    b : (m,) array
        Hidden biases.
    a : (m,) or (q, m) array
        Output weights; (q, m) for q outputs that share the hidden layer.
    activation : str or Activation, default "relu"
    v : (d,) or (q, d) array, optional
        Linear part; zero by default.
    c : float or (q,) array, optional
        Constant part; zero by default.

    Examples
    --------
    >>> net = Network(W=[[1.0, 0.0], [0.0, 2.0]], b=[0.0, -1.0], a=[1.0, 3.0])
    >>> net([[1.0, 1.0], [-1.0, 0.0]])
    array([4., 0.])
    >>> net.flip([0]).v                          # |z| does not care; the affine part takes the difference
    array([1., 0.])
    """

    W: Array
    b: Array
    a: Array
    activation: Activation = activations.RELU
    v: Array = field(default_factory=lambda: np.zeros(0))
    c: Array = field(default_factory=lambda: np.zeros(0))

    def __init__(
        self,
        W: ArrayLike,
        b: ArrayLike,
        a: ArrayLike,
        activation: str | Activation = "relu",
        v: ArrayLike | None = None,
        c: ArrayLike | None = None,
    ) -> None:
        W, b, a = _real("W", W), _real("b", b), _real("a", a)
        if W.ndim != 2 or W.shape[1] == 0:
            raise InvalidInput(f"W must have shape (m, d) with d ≥ 1, got {W.shape}")
        m, d = W.shape
        if b.shape != (m,):
            raise InvalidInput(f"b must have shape ({m},) to match W {W.shape}, got {b.shape}")
        if a.ndim not in (1, 2) or a.shape[-1] != m or a.shape[0] == 0 < a.ndim - 1:
            raise InvalidInput(f"a must have shape ({m},) or (q, {m}) to match W {W.shape}, got {a.shape}")
        outputs = a.shape[:-1]
        v = np.zeros((*outputs, d)) if v is None else _real("v", v)
        c = np.zeros(outputs) if c is None else _real("c", c)
        if v.shape != (*outputs, d):
            raise InvalidInput(f"v must have shape {(*outputs, d)}, got {v.shape}")
        if c.shape != outputs:
            raise InvalidInput(f"c must have shape {outputs}, got {c.shape}")
        for name, value in (("W", W), ("b", b), ("a", a), ("v", v), ("c", c)):
            value.flags.writeable = False
            object.__setattr__(self, name, value)
        object.__setattr__(self, "activation", activations.get(activation))

    # -- shape ---------------------------------------------------------------------------------------------

    @property
    def m(self) -> int:
        """Number of hidden units."""
        return int(self.W.shape[0])

    @property
    def d(self) -> int:
        """Number of inputs."""
        return int(self.W.shape[1])

    @property
    def q(self) -> int | None:
        """Number of outputs, or None when the output is a plain number."""
        return int(self.a.shape[0]) if self.a.ndim == 2 else None

    @property
    def parameters(self) -> int:
        """How many free numbers the function has: d + q per unit, one more where its scale counts, and the affine part.

        A homogeneous unit's scale moves freely between (w, b) and a, so it is not counted.

        Examples
        --------
        >>> Network([[1.0, 0.0], [0.0, 2.0]], [0.0, -1.0], [1.0, 3.0]).parameters
        6
        """
        q = self.q or 1
        affine = q * (self.d + 1) if np.any(self.v) else q if np.any(self.c) else 0
        return self.m * (self.d + q + (self.activation.homogeneity is None)) + affine

    def _repr_html_(self) -> str:
        from relumine.report.notebook import network

        return network(self)

    def __repr__(self) -> str:
        outputs = "" if self.q is None else f", q={self.q}"
        affine = ", affine part" if np.any(self.v) or np.any(self.c) else ""
        return f"Network(d={self.d}, m={self.m}{outputs}, {self.activation.name}{affine})"

    def replace(self, **changes: Any) -> Network:
        """A copy with some of W, b, a, activation, v, c replaced."""
        return Network(**{**{k: getattr(self, k) for k in ("W", "b", "a", "activation", "v", "c")}, **changes})

    # -- evaluation ----------------------------------------------------------------------------------------

    def __call__(self, X: ArrayLike) -> Array:
        """f at the rows of X: (n,) or, with q outputs, (n, q). Memory beyond the result does not grow with n."""
        X = rows_of(X, self.d)
        out = np.empty((X.shape[0], *self.a.shape[:-1]))
        for rows in row_chunks(len(X), max(self.m, self.d)):
            hidden = self.activation(X[rows] @ self.W.T + self.b)
            out[rows] = hidden @ self.a.T + X[rows] @ self.v.T + self.c
        return out

    def hermite(self, k: int) -> Array:
        """f̂_k = E[f(x) He_k(x)] for x ~ N(0, I): the exact order-k population tensor.

        Shape (d,)*k, with a leading q for several outputs: Σ_i a_i c_k(‖w_i‖, b_i) (w_i/‖w_i‖)^{⊗k}, and the
        affine part in orders 0 and 1.

        Examples
        --------
        >>> Network([[0.0, 1.0]], [0.0], [1.0]).hermite(1)     # Φ(0) w
        array([0. , 0.5])
        """
        if k < 0:
            raise InvalidInput(f"the order of a Hermite tensor must be ≥ 0, got {k}")
        norms = np.linalg.norm(self.W, axis=1)
        U = unit_rows(self.W)
        power = np.ones((self.m, 1))
        for _ in range(k):  # rows of power: u_i ⊗ … ⊗ u_i as vectors of length d^k
            power = (power[:, :, None] * U[:, None, :]).reshape(self.m, -1)
        tensor = (self.a * self.activation.hermite(k, self.b, norms)) @ power
        tensor = np.reshape(tensor, self.a.shape[:-1] + (self.d,) * k)
        return np.asarray(tensor + (self.c if k == 0 else self.v if k == 1 else 0.0))

    # -- rewritings that keep the function --------------------------------------------------------------------

    def flip(self, units: Iterable[int] | None = None) -> Network:
        """(w_i, b_i) → (−w_i, −b_i) for the given units (all by default); a and the affine part absorb the change.

        Uses σ(−z) = sσ(z) + pz + q (Awasthi 2021, Claim D.14 for ReLU).
        """
        if self.activation.reflection is None:
            raise InvalidInput(f"{self.activation.name} has no reflection: its units cannot be flipped")
        s, p, q = self.activation.reflection
        chosen = np.zeros(self.m, dtype=bool)
        chosen[np.arange(self.m) if units is None else list(units)] = True
        sign = np.where(chosen, -1.0, 1.0)
        # a σ(z) = a s σ(−z) − a p z + a q
        moved = np.where(chosen, self.a, 0.0)
        return self.replace(
            W=sign[:, None] * self.W,
            b=sign * self.b,
            a=np.where(chosen, s, 1.0) * self.a,
            v=self.v - p * moved @ self.W,
            c=self.c + moved @ (q - p * self.b),
        )

    def scaled(self) -> Network:
        """Every w_i a unit vector, the scale moved into b and a (homogeneous σ only; others are unchanged)."""
        degree = self.activation.homogeneity
        if degree is None:
            return self
        norms = np.linalg.norm(self.W, axis=1)
        norms = np.where(norms > 0.0, norms, 1.0)
        return self.replace(W=self.W / norms[:, None], b=self.b / norms, a=self.a * norms**degree)

    def canonical(self) -> Network:
        """The same function in a normal form: unit rows (homogeneous σ), a fixed sign for every unit, a fixed order.

        Where σ has a reflection, the largest entry of each w is positive and the affine part takes the difference,
        so networks equal up to permutation, scale and flips get the same parameters. A pure ReLU network may get
        an affine part this way: it is the same function.
        """
        net = self.scaled()
        if net.activation.reflection is not None and net.m:
            # the largest entry of w is far from zero, so rounding cannot turn its sign; for w = 0 the bias decides
            lead = np.take_along_axis(net.W, np.abs(net.W).argmax(axis=1)[:, None], axis=1)[:, 0]
            lead = np.where(lead == 0.0, net.b, lead)
            net = net.flip(np.flatnonzero(lead < 0.0))
        return net.permuted(np.lexsort([*net.W.T[::-1], net.b][::-1]))

    def permuted(self, order: ArrayLike) -> Network:
        """Keep (and reorder) the units ``order``."""
        index = np.asarray(order, dtype=np.intp)
        return self.replace(W=self.W[index], b=self.b[index], a=self.a[..., index])

    def embedded(self, at: NDArray[np.intp], d: int) -> Network:
        """The same function of the inputs ``at`` (k,) among d: the others have weight 0."""
        return self.replace(W=among(self.W, at, d), v=among(self.v, at, d))

    def plain(self) -> Network:
        """The first output alone, as a plain number: a (m,), v (d,) and c ()."""
        return self if self.q is None else self.replace(a=self.a[0], v=self.v[0], c=self.c[0])

    def merge(self, tol: float = 1e-9) -> Network:
        """Merge units that are equal within ``tol`` (up to scale and sign where σ allows), drop those with a ≈ 0.

        Distances are between (w, b), for homogeneous σ after scaling w to length 1. A unit with w = 0 is a constant
        and moves to c; a unit whose |a| is below ``tol`` times the largest is dropped. Undoes
        :meth:`consolidate`: a pair (w, b, a), (−w, −b, −a) is affine.
        """
        net = self._without_constant_units().scaled()
        groups = net._groups(tol)
        if net.activation.reflection is not None:
            net = net.flip(i for group in groups for i in group if net._opposed(group[0], i))
        size = np.linalg.norm(np.atleast_2d(net.a), axis=0)
        W, b, a = [], [], []
        # (w, b) of a group is the mean weighted by ‖a‖: the function hardly shows where a weak unit has its kink
        for group in groups:
            weights = (
                size[group] / size[group].sum() if size[group].sum() > 0.0 else np.full(len(group), 1.0 / len(group))
            )
            W.append(weights @ net.W[group])
            b.append(float(weights @ net.b[group]))
            a.append(net.a[..., group].sum(axis=-1))
        merged = net.replace(
            W=np.reshape(W, (len(groups), net.d)),
            b=np.array(b),
            a=np.stack(a, axis=-1) if groups else np.zeros((*net.a.shape[:-1], 0)),
        )
        kept = np.linalg.norm(np.atleast_2d(merged.a), axis=0)
        return merged.permuted(np.flatnonzero(kept > tol * max(size.max(initial=0.0), np.finfo(float).tiny)))

    def consolidate(self) -> Network:
        """A pure ReLU network for the same function (Awasthi 2021, Claim D.14): at most m + 2 units.

        Equal units are merged, then v·x + c = β₀σ(w₀·x + b₀) − β₀σ(−w₀·x − b₀). With q outputs the affine part has
        rank r ≤ min(q, d+1) and takes 2r units. :meth:`merge` is the way back.
        """
        if self.activation.name != "relu":
            raise InvalidInput(f"consolidate() needs ReLU units, this network has {self.activation.name}")
        net = self.merge(1e-12)  # equal but for rounding: a pair of units that only resemble each other must stay two
        affine = np.column_stack([np.atleast_2d(net.v), np.atleast_1d(net.c)])  # (q, d+1)
        left, s, right = np.linalg.svd(affine, full_matrices=False)
        # below that a direction of the affine part is rounding error of the others, and two units for it would be noise
        rank = int((s > 1e-15 * max(s.max(initial=0.0), np.finfo(float).tiny)).sum())
        beta, rows = left[:, :rank] * s[:rank], right[:rank]
        a = np.concatenate([np.atleast_2d(net.a), beta, -beta], axis=1)
        pure = Network(
            W=np.concatenate([net.W, rows[:, :-1], -rows[:, :-1]]),
            b=np.concatenate([net.b, rows[:, -1], -rows[:, -1]]),
            a=a if self.q is not None else a[0],
        )
        return pure.scaled()

    def _without_constant_units(self) -> Network:
        constant = ~np.any(self.W, axis=1)
        if not constant.any():
            return self
        c = self.c + self.a[..., constant] @ self.activation(self.b[constant])
        return self.replace(c=c).permuted(np.flatnonzero(~constant))

    def _opposed(self, i: int, j: int) -> bool:
        return bool(self.W[i] @ self.W[j] + self.b[i] * self.b[j] < 0.0)

    def _groups(self, tol: float) -> list[list[int]]:
        """Greedy clusters of units equal within tol; up to a joint sign where σ has a reflection."""
        units = np.column_stack([self.W, self.b])
        free = list(range(self.m))
        groups = []
        while free:
            head, rest = free[0], np.array(free)
            apart = np.linalg.norm(units[rest] - units[head], axis=1)
            if self.activation.reflection is not None:
                apart = np.minimum(apart, np.linalg.norm(units[rest] + units[head], axis=1))
            near = apart <= tol
            groups.append(rest[near].tolist())
            free = rest[~near].tolist()
        return groups

    # -- files and other libraries -----------------------------------------------------------------------------

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Literal["float64", "float32"] = "float64",
        labels: Labels = UNLABELLED,
    ) -> None:
        """Write a model file, atomically: a reader sees the old file or the whole new one.

        Parameters
        ----------
        path : path
            The suffix says which format: ``.safetensors`` (native), ``.onnx``, ``.npz`` or ``.json``.
        dtype : {"float64", "float32"}
            Precision of an ONNX graph; the other formats always keep double precision.
        labels : Labels, optional
            What the file says beside the numbers: names of the inputs (.safetensors), how the recovery ended.
        """
        formats.write(path, self._parameters(), ONE_LAYER, dtype, labels)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Network:
        """Read a file written by :meth:`save`, or an ONNX graph of another tool that is one hidden layer.

        A file of a deep network gives a :class:`~relumine.deep.DeepNetwork`.

        Executes nothing; a damaged or foreign file is a :class:`~relumine.results.ModelFileError`, and memory is
        bounded by the size of the file.
        """
        if formats.layout_of(path) is LAYERS:
            return cast("Network", import_module("relumine.deep").DeepNetwork.load(path))
        p, _ = formats.read(path, ONE_LAYER)
        try:
            return cls._from(p, str(path))
        except ValueError as error:
            raise ModelFileError(f"{path} does not hold a valid network: {error}") from error

    def to_torch(self, *, link: str = "") -> Any:
        """A torch module in double precision: ``nn.Sequential(Linear, σ, Linear)``, plus a skip connection if v ≠ 0.

        It maps (n, d) to (n, q), and to (n, 1) where the output is a plain number; through a ``link`` ("logit",
        "two classes", "softmax", "log") at the end, if one is named.
        """
        return _torch().to_module(self._parameters(), link)

    @classmethod
    def from_torch(cls, module: Any) -> Network:
        """The network in an ``nn.Sequential(Linear, activation, Linear)``; one output becomes a plain number."""
        return cls._from(_torch().from_module(module), "this module")

    @classmethod
    def from_sklearn(cls, model: Any) -> Network:
        """The network in a fitted ``sklearn.neural_network.MLPRegressor`` with one hidden layer.

        Examples
        --------
        >>> from sklearn.neural_network import MLPRegressor
        >>> X = np.linspace(-1.0, 1.0, 40).reshape(-1, 2)
        >>> model = MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs", random_state=0).fit(X, abs(X[:, 0]))
        >>> bool(np.allclose(Network.from_sklearn(model)(X), model.predict(X)))
        True
        """
        p, kind = from_mlp(model), type(model).__name__
        if model.out_activation_ != "identity":
            link = model.out_activation_
            raise InvalidInput(f"the output of this {kind} passes through {link}; a Network's does not")
        return cls._from(p, f"this {kind}")

    @classmethod
    def _from(cls, p: Parameters, where: str) -> Network:
        if len(p.weights) != 2:
            raise InvalidInput(f"{where} has {len(p.weights) - 1} hidden layers; a Network has one")
        (W, a), (b, c) = p.weights, p.biases
        return cls(W, b, a, p.activation, p.v, c)

    def _parameters(self) -> Parameters:
        return Parameters((self.W, self.a), (self.b, self.c), self.v, self.activation)


def rows_of(X: ArrayLike, d: int) -> Array:
    """X (n, d) as a float64 array, or an error that says its shape."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != d:
        raise InvalidInput(f"X must have shape (n, {d}), one sample a row; got {X.shape}")
    return X


def row_chunks(n: int, width: int) -> list[slice]:
    """n rows in blocks of which ``width`` numbers a row can be held at once."""
    return slices(n, max(1, _CHUNK_NUMBERS // width))


def _torch() -> Any:
    bridge = import_module("relumine.formats.torch_module")
    if bridge.torch is None:
        raise MissingPackage("torch modules need torch", "torch")
    return bridge


def _real(name: str, value: ArrayLike) -> Array:
    """A fresh float64 array of finite numbers, or an error that names the parameter."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" and array.size:
        raise InvalidInput(f"{name} must hold real numbers, got dtype {array.dtype}")
    array = np.array(array, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} holds NaN or infinite values")
    return array


def flip_columns(net: Network) -> Array:
    """What flipping unit i adds to (v, c), as column i, outputs stacked: ((d+1)q, m). For ReLU a_i (w_i, b_i)."""
    shape = ((net.d + 1) * (net.q or 1), net.m)
    if net.activation.reflection is None:
        return np.zeros(shape)
    _, slope, constant = net.activation.reflection
    units = np.column_stack([-slope * net.W, constant - slope * net.b])
    return np.asarray(np.einsum("qm,md->qdm", np.atleast_2d(net.a), units).reshape(shape))
