"""What the arrays of a network are called in a file: W, b, a, v, c for one hidden layer, W0, b0, W1, … for several."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from relumine.arrays import Array
from relumine.formats.parameters import VERSION, Parameters, check_shape
from relumine.results import ModelFileError

Arrays = dict[str, Array]

_MOST_LAYERS = 64  # whose arrays are looked for in a file


class Layout(ABC):
    """``form``: the word that names it in a file; ``names``: the arrays it may have; ``other``: what else a file is."""

    form: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    other: ClassVar[str]

    @abstractmethod
    def maps(self, p: Parameters) -> list[tuple[str, str]]:
        """The names of the affine maps, input side first."""

    @abstractmethod
    def arrays(self, p: Parameters) -> Arrays:
        """The arrays by name as they go to a file, the W of the first layer first."""

    @abstractmethod
    def order(self, arrays: Mapping[str, Array]) -> Sequence[str]:
        """In which order a checksum takes the arrays."""

    @abstractmethod
    def parameters(self, where: str, arrays: Mapping[str, Array], words: Mapping[str, str], whole: bool) -> Parameters:
        """The parameters from the arrays of a file; ``whole``: none may be missing, not even one that has a default."""

    def words(self, p: Parameters) -> dict[str, str]:
        """What a file says of itself."""
        return {"format": self.form, "version": VERSION, "activation": p.sigma}

    def of_graph(self, where: str, constants: Mapping[str, Array], one: bool) -> Arrays:
        """The arrays from the constants of an ONNX graph; ``one``: its output is a plain number."""
        return {name: constants[name] for name in self.names if name in constants}


class OneLayer(Layout):
    """W (m, d), b (m,), a (m,) or (q, m), v (d,) or (q, d), c () or (q,)."""

    form = "relumine.network"
    names = ("W", "b", "a", "v", "c")
    other = "is a {kind} file, but not a relumine network"

    def maps(self, p: Parameters) -> list[tuple[str, str]]:
        """The hidden layer and the output."""
        return [("W", "b"), ("a", "c")]

    def arrays(self, p: Parameters) -> Arrays:
        """All five; v may be zero."""
        (W, a), (b, c) = p.weights, p.biases
        v = np.zeros((*a.shape[:-1], W.shape[1])) if p.v is None else p.v
        return {name: np.array(part, dtype=np.float64, order="C") for name, part in zip(self.names, (W, b, a, v, c))}

    def order(self, arrays: Mapping[str, Array]) -> Sequence[str]:
        """W, b, a, v, c."""
        return self.names

    def of_graph(self, where: str, constants: Mapping[str, Array], one: bool) -> Arrays:
        """In a graph a is a matrix, and v is left out where it is zero."""
        _complete(where, constants, ("W", "b", "a", "c"))
        W, a, c = constants["W"], np.atleast_2d(constants["a"]), np.atleast_1d(constants["c"])
        v = np.atleast_2d(constants.get("v", np.zeros((len(a), *W.shape[1:]))))
        if one:
            if {len(a), len(v), len(c)} != {1}:
                raise ModelFileError(f"{where} is damaged: one output is declared, and its weights are of several")
            a, v, c = a[0], v[0], c[0]
        return dict(zip(self.names, (W, constants["b"], a, v, c)))

    def parameters(self, where: str, arrays: Mapping[str, Array], words: Mapping[str, str], whole: bool) -> Parameters:
        """W, b and a are enough, unless ``whole``."""
        _complete(where, arrays, self.names if whole else ("W", "b", "a"))
        W, b, a, v = (arrays.get(name) for name in "Wbav")
        assert W is not None and b is not None and a is not None  # noqa: PT018
        check_shape(where, "W", W.shape)
        c = arrays.get("c", np.zeros(a.shape[:-1]))
        return Parameters((W, a), (b, c), v, words.get("activation", "relu"))


class Layers(Layout):
    """W0 (m₀, d), b0 (m₀,), …, the last map is the output; v (q, m) only if it is not zero.

    All are matrices and vectors: whether the output is a plain number is a word of its own, ``outputs``.
    """

    form = "relumine.deep"
    names = (*(f"{letter}{k}" for k in range(_MOST_LAYERS) for letter in "Wb"), "v")
    other = "does not hold a deep network; Network.load reads it"

    def maps(self, p: Parameters) -> list[tuple[str, str]]:
        """W0, b0, W1, b1, …"""
        return [(f"W{k}", f"b{k}") for k in range(len(p.weights))]

    def arrays(self, p: Parameters) -> Arrays:
        """Every W as a matrix and every b as a vector, also those of a plain output."""
        content: Arrays = {}
        for (W, b), one, two in zip(self.maps(p), p.weights, p.biases):
            content |= {W: np.atleast_2d(one), b: np.atleast_1d(two)}
        if p.v is not None:
            content["v"] = np.atleast_2d(p.v)
        return {name: np.array(array, dtype=np.float64, order="C") for name, array in content.items()}

    def words(self, p: Parameters) -> dict[str, str]:
        """Also how many outputs there are, or that it is a plain number."""
        return super().words(p) | {"outputs": "plain" if p.plain else str(len(p.weights[-1]))}

    def order(self, arrays: Mapping[str, Array]) -> Sequence[str]:
        """By their names."""
        return sorted(arrays)

    def parameters(self, where: str, arrays: Mapping[str, Array], words: Mapping[str, str], whole: bool) -> Parameters:
        """Two maps or more; one row at the end is a plain number, unless the file says otherwise."""
        # one W for each map: how many maps there are is not told elsewhere
        depth = sum(re.fullmatch(r"W\d+", name) is not None for name in arrays)
        wanted = [f"{letter}{k}" for k in range(max(depth, 2)) for letter in "Wb"]
        _complete(where, arrays, wanted)
        for name in (*wanted, *({"v"} & set(arrays))):
            check_shape(where, name, arrays[name].shape)
            if arrays[name].ndim != (1 if name[0] == "b" else 2):
                raise ModelFileError(f"{where} is damaged: {name} has shape {arrays[name].shape}")
        weights = [np.asarray(arrays[f"W{k}"], dtype=np.float64) for k in range(depth)]
        biases = [np.asarray(arrays[f"b{k}"], dtype=np.float64) for k in range(depth)]
        v, sigma = arrays.get("v"), words.get("activation", "relu")
        q = len(weights[-1])
        outputs = words.get("outputs", "" if whole else "plain" if q == 1 else str(q))
        if outputs == str(q):
            return Parameters(tuple(weights), tuple(biases), v, sigma)
        if outputs != "plain" or {q, len(biases[-1]), 1 if v is None else len(v)} != {1}:
            raise ModelFileError(f"{where} is damaged: {outputs or 'no'} output is declared, and {q} are there")
        return Parameters.of(weights, biases, v, sigma)


def _complete(where: str, arrays: Mapping[str, Array], wanted: Sequence[str]) -> None:
    missing = set(wanted) - set(arrays)
    if missing:
        raise ModelFileError(f"{where} is damaged: missing {', '.join(sorted(missing))}")


ONE_LAYER: Final = OneLayer()
LAYERS: Final = Layers()
