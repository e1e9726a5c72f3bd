"""Reading a graph of another tool: input → linear → σ → … → linear → output, whatever the nodes are called.

Every value in the graph is a hidden layer (the input is layer 0), a linear map of one, or the sum of linear maps of two
that follow each other; every node leads from one to the next. A graph that needs anything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.formats.parameters import Parameters
from relumine.results import ModelFileError

SIGMAS = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Erf": "erf", "LeakyRelu": "leaky_relu"}
_SAME = ("Identity", "Cast", "Dropout", "Flatten", "Reshape", "Squeeze")
_FLOATS = (1, 11)  # what a Cast may lead to: single or double precision
# Attributes by their type (1 float, 2 integer, 4 tensor, 7 integers). There is no checksum, so an attribute that nobody
# knows is a damaged one, and its default must not stand in for it.
_KNOWN = {
    "Gemm": {"alpha": 1, "beta": 1, "transA": 2, "transB": 2},
    "LeakyRelu": {"alpha": 1},
    "Cast": {"to": 2, "saturate": 2},
    "Dropout": {"ratio": 1, "seed": 2},
    "Flatten": {"axis": 2},
    "Reshape": {"allowzero": 2},
    "Squeeze": {"axes": 7},
    "Transpose": {"perm": 7},
    "Constant": {"value": 4},
}
_MOST_NODES = 512  # some eight for each of sixty layers


@dataclass(frozen=True)
class Value:
    """``matrix`` (k, j) applied to hidden layer ``layer`` plus ``constant`` (k,); None: the layer itself.

    ``skip`` (k, i): applied to the layer before it, and added.
    """

    layer: int
    matrix: Array | None = None
    constant: Array | None = None
    skip: Array | None = None


class Hidden(NamedTuple):
    """A hidden layer σ(W· + b)."""

    sigma: str
    W: Array
    b: Array


class _TooMuch(Exception):
    """Raised with the reason why a graph is not such a network."""


def foreign(
    path: Path, graph: Any, constants: Mapping[str, NDArray[Any]], to_array: Callable[[Any], NDArray[Any]]
) -> Parameters:
    """The parameters of a graph made of Gemm, MatMul, Add and one kind of activation."""
    known = dict(constants)  # arrays, and what nodes that only rearrange arrays make of them
    inputs = [entry.name for entry in graph.input if entry.name not in known]
    values: dict[str, Value] = {}
    hidden: list[Hidden] = []
    try:
        if len(inputs) != 1 or len(graph.output) != 1:
            raise _TooMuch(f"it has {len(inputs)} inputs and {len(graph.output)} outputs, and not one of each")
        if len(graph.node) > _MOST_NODES:
            raise _TooMuch(f"it has {len(graph.node)} nodes")
        values[inputs[0]] = Value(0)
        for node in graph.node:  # ONNX lists nodes in an order in which every operand is known before it is used
            operands = [name for name in node.input if name]
            _sound(node, {*known, *values})
            if node.op_type == "Constant":
                tensors = [a.t for a in node.attribute if a.name == "value"]
                known |= {node.output[0]: to_array(tensors[0])} if tensors else {}
            elif operands and all(name in known for name in operands):
                known[node.output[0]] = _folded(node, [known[name] for name in operands])
            elif node.output:
                values[node.output[0]] = _step(node, operands, values, known, hidden)
        return _result(values.get(graph.output[0].name), hidden)
    except _TooMuch as reason:
        raise ModelFileError(
            f"{path} is not a chain of linear maps and activations that can be read: {reason}. "
            "It can still be queried: rl.extract takes an ONNX file"
        ) from None


def _sound(node: Any, taken: set[str]) -> None:
    """Refuse a node that no tool would write: unknown attributes, names that are not text, a value computed twice."""
    known = _KNOWN.get(node.op_type, {})
    odd = [a.name for a in node.attribute if known.get(a.name) != a.type]
    if odd:
        raise _TooMuch(f"the node {node.op_type} has an attribute {odd[0]!r} that is not known here")
    words = (node.name, _line(node.doc_string), node.domain, *node.input, *node.output)
    if not all(isinstance(word, str) and word.isprintable() for word in words):  # an attribute's bytes, say
        raise _TooMuch(f"a name at the node {node.op_type} is not text")
    if node.domain not in ("", "ai.onnx"):
        raise _TooMuch(f"the node {node.op_type} is not of ONNX itself, but of {node.domain!r}")
    if node.output and node.output[0] in taken:
        raise _TooMuch(f"the value {node.output[0]!r} is computed twice")


def _line(text: Any) -> Any:
    """A text of several lines as one; bytes, which are no text, as they are."""
    return " ".join(text.split()) if isinstance(text, str) else text


def _step(
    node: Any, operands: list[str], values: Mapping[str, Value], known: Mapping[str, NDArray[Any]], hidden: list[Hidden]
) -> Value:
    """What a node makes of its operands."""
    op = node.op_type
    moving = [values[name] for name in operands if name in values]
    fixed = [np.asarray(known[name], dtype=np.float64) for name in operands if name in known]
    if not moving or len(moving) + len(fixed) != len(operands):
        raise _TooMuch(f"the node {op} has operands that come from nowhere")
    if op == "Cast" and _attributes(node).get("to") not in _FLOATS:
        raise _TooMuch("it rounds values to another kind of number")
    if op == "Flatten" and _attributes(node).get("axis", 1) != 1:
        raise _TooMuch("it flattens rows into each other")
    first = moving[0]
    # what is left is an affine map, a sum, or σ; each is taken only in a place where such a network has it
    if op in _SAME and len(moving) == 1:
        return first
    if op in ("Gemm", "MatMul") and len(moving) == 1 and fixed and operands[0] in values:
        matrix, constant = _linear(node, fixed)
        if first.matrix is not None or first.constant is not None:
            raise _TooMuch("two linear maps follow each other")
        return Value(first.layer, matrix, constant)
    if op == "Add" and len(moving) == 2:
        return _sum(first, moving[1])
    affine = op == "Add" or (op == "Sub" and operands[0] in values)
    if affine and len(moving) == 1 and first.matrix is not None:
        return replace(first, constant=_shifted(first, fixed[0] if op == "Add" else -fixed[0]))
    if op in SIGMAS and first.layer == len(hidden) and first.matrix is not None and first.skip is None:
        # ONNX keeps the slope in single precision: 0.1 comes back as 0.1 and not as 0.10000000149
        slope = float(f"{_attributes(node).get('alpha', 0.01):.7g}")
        sigma = f"leaky_relu({slope!r})" if op == "LeakyRelu" else SIGMAS[op]
        hidden.append(Hidden(sigma, first.matrix, _shifted(first, np.zeros(()))))
        return Value(len(hidden))
    raise _TooMuch(f"the node {op} has no place in one")


def _linear(node: Any, fixed: list[Array]) -> tuple[Array, Array | None]:
    """Weights (k, j) and constant (k,) of a Gemm or MatMul whose first operand moves."""
    options = _attributes(node)
    weights = fixed[0]
    if weights.ndim == 1 and node.op_type == "MatMul":
        weights = weights[:, None]
    if weights.ndim != 2 or options.get("transA", 0):
        raise _TooMuch(f"the weights of a {node.op_type} have {weights.ndim} dimensions")
    matrix = options.get("alpha", 1.0) * (weights if options.get("transB", 0) else weights.T)
    if len(fixed) < 2:
        return matrix, None
    return matrix, _broadcast(options.get("beta", 1.0) * fixed[1], matrix.shape[0])


def _shifted(value: Value, by: Array) -> Array:
    assert value.matrix is not None
    k = value.matrix.shape[0]
    return _broadcast(by, k) + (np.zeros(k) if value.constant is None else value.constant)


def _broadcast(constant: Array, k: int) -> Array:
    if constant.size not in (1, k) or constant.ndim > 2:
        raise _TooMuch(f"a constant of shape {constant.shape} is added to {k} values")
    return np.broadcast_to(constant.ravel(), (k,))


def _sum(one: Value, two: Value) -> Value:
    """Units and a linear part of what stands in front of them: a skip connection."""
    units, skip = (one, two) if one.layer > two.layer else (two, one)
    simple = units.skip is None and skip.skip is None and units.layer == skip.layer + 1
    if not simple or units.matrix is None or skip.matrix is None:
        raise _TooMuch("it adds values that are not the units and a linear part")
    if len(units.matrix) != len(skip.matrix):
        raise _TooMuch("it adds values of different sizes")
    constant = _shifted(units, np.zeros(())) + _shifted(skip, np.zeros(()))
    return Value(units.layer, units.matrix, constant, skip.matrix)


def _result(value: Value | None, hidden: list[Hidden]) -> Parameters:
    if value is None or not hidden or value.matrix is None or value.layer != len(hidden):
        raise _TooMuch("its output is not a linear map of hidden units")
    if len({layer.sigma for layer in hidden}) > 1:
        raise _TooMuch(f"it has different activations: {', '.join(layer.sigma for layer in hidden)}")
    W, inputs = value.matrix, len(hidden[-1].W)
    if W.shape[1] != inputs or (value.skip is not None and value.skip.shape[1] != hidden[-1].W.shape[1]):
        raise _TooMuch(f"{inputs} hidden units meet {W.shape[1]} output weights")
    weights, biases = [*(layer.W for layer in hidden), W], [*(layer.b for layer in hidden)]
    return Parameters.of(weights, [*biases, _shifted(value, np.zeros(()))], value.skip, hidden[0].sigma)


def _folded(node: Any, operands: list[NDArray[Any]]) -> NDArray[Any]:
    """Constants led through a node that only rearranges them."""
    if node.op_type == "Transpose" and operands[0].ndim == 2:
        return operands[0].T
    if node.op_type in ("Identity", "Cast"):
        return operands[0]
    raise _TooMuch(f"it computes {node.op_type} of constants")


def _attributes(node: Any) -> dict[str, float]:
    """Numbers among a node's attributes."""
    return {a.name: (a.i if a.type == 2 else a.f) for a in node.attribute}
