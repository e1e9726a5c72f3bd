"""Deep networks f = head ∘ σ(W_k · + b_k) ∘ … ∘ σ(W_1 · + b_1): layers in front of a :class:`Network`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine import activations, formats
from relumine.activations import Activation
from relumine.arrays import Array, among
from relumine.formats import LAYERS, UNLABELLED, Labels, Parameters
from relumine.formats.sklearn_model import from_mlp
from relumine.network import Network, _real, _torch, row_chunks, rows_of
from relumine.results import InvalidInput, ModelFileError

Layer = tuple[Array, Array]

__all__ = ["Census", "DeepNetwork"]


@dataclass(frozen=True)
class Census:
    """Units that show no kink on some inputs, layer by layer: ``dead`` ones are never on, ``always_on`` never off.

    It is true if there are any.
    """

    dead: tuple[tuple[int, ...], ...]
    always_on: tuple[tuple[int, ...], ...]

    def __bool__(self) -> bool:
        return any(map(bool, (*self.dead, *self.always_on)))


@dataclass(frozen=True, eq=False, repr=False)
class DeepNetwork:
    """f(x) = head(h_k),  h_l = σ(W_l h_{l−1} + b_l),  h_0 = x. Rows are neurons; arrays are read-only float64.

    Parameters
    ----------
    layers : sequence of (W, b)
        The hidden layers in front of the last one, input side first; W is (m_l, m_{l−1}), b is (m_l,).
    head : Network
        The last hidden layer and the output; its activation is that of all layers. Its affine part sees the
        activations in front of it.

    Examples
    --------
    >>> head = Network(W=[[1.0, -1.0]], b=[0.0], a=[2.0])
    >>> deep = DeepNetwork([([[1.0], [-1.0]], [0.0, 0.0])], head)          # 2 relu(relu(x) − relu(−x)) = 2 relu(x)
    >>> deep([[3.0], [-3.0]])
    array([6., 0.])
    >>> deep.widths, deep.sizes
    ((2, 1), (1, 2, 1, 1))
    """

    layers: tuple[Layer, ...]
    head: Network

    def __init__(self, layers: Iterable[tuple[ArrayLike, ArrayLike]], head: Network) -> None:
        if not isinstance(head, Network):
            raise InvalidInput(f"head must be a Network, got {type(head).__name__}", argument="head")
        checked, last = [], None  # last: units of the layer before
        for k, (W, b) in enumerate(layers):
            W, b = _real(f"W of layer {k}", W), _real(f"b of layer {k}", b)
            if W.ndim != 2 or 0 in W.shape or b.shape != (len(W),):
                raise InvalidInput(
                    f"layer {k} must have W (m, d) and b (m,), got {W.shape} and {b.shape}", argument="layers"
                )
            if last is not None and W.shape[1] != last:
                raise InvalidInput(f"layer {k} takes {W.shape[1]} inputs, the one before has {last} units")
            last = len(W)
            W.flags.writeable = b.flags.writeable = False
            checked.append((W, b))
        if last is not None and head.d != last:
            raise InvalidInput(f"the head takes {head.d} inputs, the layer before has {last} units", argument="head")
        object.__setattr__(self, "layers", tuple(checked))
        object.__setattr__(self, "head", head)

    @classmethod
    def of(
        cls,
        maps: Sequence[tuple[ArrayLike, ArrayLike]],
        activation: str | Activation = "relu",
        v: ArrayLike | None = None,
    ) -> DeepNetwork:
        """From affine maps (W, b), input side first, with σ between two of them; the last one is the output.

        An output W of shape (m,), with a number as b, is a network whose output is a plain number.
        """
        if len(maps) < 2:
            raise InvalidInput("a network needs two maps at least: a hidden layer and the output", argument="maps")
        (W, b), (a, c) = maps[-2], maps[-1]
        return cls(maps[:-2], Network(W, b, a, activation, v, c))

    def _repr_html_(self) -> str:
        from relumine.report.notebook import network

        return network(self)

    # -- shape ---------------------------------------------------------------------------------------------

    @property
    def maps(self) -> tuple[Layer, ...]:
        """All affine maps, input side first: those of the hidden layers, then (a, c) of the output."""
        return (*self.hidden, (self.head.a, self.head.c))

    @property
    def hidden(self) -> tuple[Layer, ...]:
        """(W, b) of all hidden layers, the head's included."""
        return (*self.layers, (self.head.W, self.head.b))

    @property
    def activation(self) -> Activation:
        """σ of all layers."""
        return self.head.activation

    @property
    def d(self) -> int:
        """Number of inputs."""
        return int(self.hidden[0][0].shape[1])

    @property
    def q(self) -> int | None:
        """Number of outputs, or None when the output is a plain number."""
        return self.head.q

    @property
    def m(self) -> int:
        """Number of hidden units in all layers."""
        return sum(self.widths)

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of each hidden layer."""
        return tuple(len(b) for _, b in self.hidden)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Inputs, units of each hidden layer, outputs."""
        return (self.d, *self.widths, self.q or 1)

    @property
    def parameters(self) -> int:
        """Weights and biases of all maps."""
        return sum(W.size + b.size for W, b in self.maps)

    def __repr__(self) -> str:
        affine = ", affine part" if np.any(self.head.v) else ""
        return f"DeepNetwork({'-'.join(map(str, self.sizes))}, {self.activation.name}{affine})"

    # -- evaluation ----------------------------------------------------------------------------------------

    def __call__(self, X: ArrayLike) -> Array:
        """f at the rows of X: (n,) or, with q outputs, (n, q). Memory beyond the result does not grow with n."""
        X = rows_of(X, self.d)
        out = np.empty((X.shape[0], *self.head.a.shape[:-1]))
        for rows in row_chunks(len(X), max(self.sizes)):
            out[rows] = self.head(self.activations_before(X[rows], len(self.layers)))
        return out

    def activations_before(self, X: ArrayLike, layer: int) -> Array:
        """h_layer at the rows of X: (n, m_layer); h_0 is X."""
        h = rows_of(X, self.d)
        for W, b in self.hidden[:layer]:
            h = self.activation(h @ W.T + b)
        return h

    def census(self, X: ArrayLike) -> Census:
        """Which units are off, or on, at every row of X: such a unit is an affine map there, and shows no kink.

        Examples
        --------
        >>> deep = DeepNetwork([([[1.0], [-1.0]], [-9.0, 9.0])], Network([[1.0, 1.0]], [-8.0], [1.0]))
        >>> deep.census([[-1.0], [0.0], [2.0]])
        Census(dead=((0,), ()), always_on=((1,), ()))
        """
        X = rows_of(X, self.d)
        ever_on = [np.zeros(m, dtype=bool) for m in self.widths]
        ever_off = [np.zeros(m, dtype=bool) for m in self.widths]
        for rows in row_chunks(len(X), max(self.sizes)):
            h = X[rows]
            for k, (W, b) in enumerate(self.hidden):
                z = h @ W.T + b
                ever_on[k] |= (z > 0.0).any(axis=0)
                ever_off[k] |= (z < 0.0).any(axis=0)
                h = self.activation(z)
        dead = tuple(tuple(np.flatnonzero(~on).tolist()) for on in ever_on)
        return Census(dead, tuple(tuple(np.flatnonzero(~off).tolist()) for off in ever_off))

    # -- rewritings that keep the function --------------------------------------------------------------------

    def scaled(self) -> DeepNetwork:
        """Every row w of every layer a unit vector, its scale moved into the columns behind it (σ(tz) = tσ(z) only)."""
        if self.activation.homogeneity != 1:
            return self
        layers, scale = [], np.ones(self.d)  # what the columns of the next W have to be multiplied by
        for W, b in self.layers:
            norms = np.linalg.norm(W * scale, axis=1)
            norms = np.where(norms > 0.0, norms, 1.0)
            layers.append((W * scale / norms[:, None], b / norms))
            scale = norms
        head = self.head.replace(W=self.head.W * scale, v=self.head.v * scale).scaled()
        return DeepNetwork(layers, head)

    def canonical(self) -> DeepNetwork:
        """The same function in a normal form: unit rows, units of each layer in a fixed order, the head canonical.

        Networks that differ by the order of their units and by positive scales get the same parameters. In front of
        the head a unit's sign is part of the function; in the head it is fixed as in :meth:`Network.canonical`, whose
        affine part takes the difference.
        """
        net, layers, order = self.scaled(), [], np.arange(self.d)
        for W, b in net.layers:
            W = W[:, order]  # columns follow the new order of the layer before
            order = np.lexsort([*W.T[::-1], b][::-1])
            layers.append((W[order], b[order]))
        head = net.head.replace(W=net.head.W[:, order], v=net.head.v[..., order])
        return DeepNetwork(layers, head.canonical())

    def permuted(self, orders: Sequence[ArrayLike]) -> DeepNetwork:
        """Keep (and reorder) the units ``orders[l]`` of hidden layer l; columns behind follow."""
        if len(orders) != len(self.widths):
            raise InvalidInput(f"one order for each of {len(self.widths)} hidden layers, got {len(orders)}")
        layers, columns = [], np.arange(self.d)
        for (W, b), order in zip(self.layers, orders):
            rows = np.asarray(order, dtype=np.intp)
            layers.append((W[np.ix_(rows, columns)], b[rows]))
            columns = rows
        head = self.head.replace(W=self.head.W[:, columns], v=self.head.v[..., columns])
        return DeepNetwork(layers, head.permuted(orders[-1]))

    def embedded(self, at: NDArray[np.intp], d: int) -> DeepNetwork:
        """The same function of the inputs ``at`` (k,) among d: the others have weight 0."""
        if not self.layers:
            return DeepNetwork((), self.head.embedded(at, d))
        (W, b), *others = self.layers
        return DeepNetwork([(among(W, at, d), b), *others], self.head)

    def absorbed(self, X: ArrayLike) -> tuple[DeepNetwork, Census]:
        """The same function on inputs like X without the units that are idle there, and the units that still are.

        Units that are off at every row go (ReLU); units of the last hidden layer that are on at every row move into
        the affine part of the head. An always-on unit further in front is reported only: a layer has no affine part to
        take it. A layer keeps one unit at least.
        """
        if self.activation != activations.RELU:
            raise InvalidInput(f"absorbed() needs ReLU units, this network has {self.activation.name}")
        idle = self.census(X)
        keep = [[i for i in range(m) if i not in dead] or [0] for m, dead in zip(self.widths, idle.dead)]
        net = self.permuted(keep)
        on = [keep[-1].index(i) for i in idle.always_on[-1] if i in keep[-1]]
        head, a = net.head, np.where(np.isin(np.arange(net.head.m), on), net.head.a, 0.0)
        rest = [i for i in range(head.m) if i not in on]
        head = head.replace(v=head.v + a @ head.W, c=head.c + a @ head.b).permuted(rest)
        net = DeepNetwork(net.layers, head)
        return net, net.census(X)

    # -- files and other libraries -----------------------------------------------------------------------------

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Literal["float64", "float32"] = "float64",
        labels: Labels = UNLABELLED,
    ) -> None:
        """Write a model file, atomically: ``.safetensors``, ``.npz``, ``.json`` or ``.onnx`` by its suffix.

        ``dtype`` and ``labels``: as in :meth:`Network.save`.
        """
        formats.write(path, self._parameters(), LAYERS, dtype, labels)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DeepNetwork:
        """Read a file written by :meth:`save`, or an ONNX chain of linear maps and one kind of activation."""
        return cls._from(formats.read(path, LAYERS)[0], str(path))

    def to_torch(self, *, link: str = "") -> Any:
        """``nn.Sequential(Linear, σ, Linear, σ, …, Linear)`` in double precision, (n, d) to (n, q), and the link."""
        return _torch().to_module(self._parameters(), link)

    @classmethod
    def from_torch(cls, module: Any) -> DeepNetwork:
        """The network in an ``nn.Sequential`` of Linear and activations; one output becomes a plain number."""
        return cls._from(_torch().from_module(module), "the module")

    @classmethod
    def from_sklearn(cls, model: Any) -> DeepNetwork:
        """The network in a fitted ``MLPRegressor`` or ``MLPClassifier`` of any depth.

        A classifier's network ends before the link: its outputs are the logits.

        Examples
        --------
        >>> from sklearn.neural_network import MLPRegressor
        >>> X = np.linspace(-1.0, 1.0, 40).reshape(-1, 2)
        >>> model = MLPRegressor(hidden_layer_sizes=(3, 2), solver="lbfgs", random_state=0).fit(X, abs(X[:, 0]))
        >>> bool(np.allclose(DeepNetwork.from_sklearn(model)(X), model.predict(X)))
        True
        """
        return cls._from(from_mlp(model), type(model).__name__)

    @classmethod
    def _from(cls, p: Parameters, where: str) -> DeepNetwork:
        try:
            return cls.of(list(zip(p.weights, p.biases)), p.activation, p.v)
        except ValueError as error:
            raise ModelFileError(f"{where} does not hold a valid network: {error}") from error

    def _parameters(self) -> Parameters:
        v = self.head.v if self.head.v.any() else None
        return Parameters(tuple(W for W, _ in self.maps), tuple(b for _, b in self.maps), v, self.activation)
