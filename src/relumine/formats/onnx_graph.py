"""Reading a graph of another tool: input → linear → σ → linear → output, whatever the nodes are called.

Every value in the graph is one of four things, and every node leads from one to the next. A graph that needs a fifth
thing is not a one-hidden-layer network and is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine.formats.parameters import Parameters
from relumine.results import ModelFileError

Array = NDArray[np.float64]

__all__ = ["foreign"]

_SIGMAS = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Erf": "erf"}
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
_MOST_NODES = 64


@dataclass(frozen=True)
class Value:
    """``matrix`` (k, j) applied to ``of`` ("input" or "hidden") plus ``constant`` (k,); None: the thing itself."""

    of: str
    matrix: Array | None = None
    constant: Array | None = None


class _TooMuch(Exception):
    """Why a graph is not one hidden layer."""


def foreign(
    path: Path, graph: Any, constants: Mapping[str, NDArray[Any]], to_array: Callable[[Any], NDArray[Any]]
) -> Parameters:
    """The parameters of a graph made of Gemm, MatMul, Add and one activation."""
    known = dict(constants)
    inputs = [entry.name for entry in graph.input if entry.name not in known]
    values: dict[str, Value] = {}
    hidden: list[tuple[str, Array, Array]] = []
    try:
        if len(inputs) != 1 or len(graph.output) != 1:
            raise _TooMuch(f"it has {len(inputs)} inputs and {len(graph.output)} outputs, and not one of each")
        if len(graph.node) > _MOST_NODES:
            raise _TooMuch(f"it has {len(graph.node)} nodes")
        values[inputs[0]] = Value("input")
        for node in graph.node:
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
            f"{path} is not a network of one hidden layer that can be read: {reason}. "
            "It can still be queried: rl.extract takes an ONNX file"
        ) from None


def _sound(node: Any, taken: set[str]) -> None:
    """Refuse a node that is not what its tool wrote."""
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
    node: Any,
    operands: list[str],
    values: Mapping[str, Value],
    known: Mapping[str, NDArray[Any]],
    hidden: list[tuple[str, Array, Array]],
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
    if op in _SAME and len(moving) == 1:
        return moving[0]
    if op in ("Gemm", "MatMul") and len(moving) == 1 and fixed and operands[0] in values:
        matrix, constant = _linear(node, fixed)
        if moving[0].matrix is not None or moving[0].constant is not None:
            raise _TooMuch("two linear maps follow each other")
        return Value(moving[0].of, matrix, constant)
    if op == "Add" and len(moving) == 2:
        return _sum(moving[0], moving[1])
    if op in ("Add", "Sub") and len(moving) == 1 and moving[0].matrix is not None and operands[0] in values:
        return replace(moving[0], constant=_shifted(moving[0], fixed[0] if op == "Add" else -fixed[0]))
    if op == "Add" and len(moving) == 1 and moving[0].matrix is not None:
        return replace(moving[0], constant=_shifted(moving[0], fixed[0]))
    if op in (*_SIGMAS, "LeakyRelu") and moving[0].of == "input" and moving[0].matrix is not None and not hidden:
        slope = _attributes(node).get("alpha", 0.01)
        sigma = _SIGMAS.get(op) or f"leaky_relu({float(f'{slope:.7g}')!r})"
        matrix = moving[0].matrix
        hidden.append((sigma, matrix, _shifted(moving[0], np.zeros(()))))
        return Value("hidden")
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
    """Units and a linear part from the input: a skip connection is kept as a pair in ``of``."""
    if {one.of, two.of} != {"input", "hidden"} or one.matrix is None or two.matrix is None:
        raise _TooMuch("it adds values that are not the units and a linear part")
    if one.matrix.shape[0] != two.matrix.shape[0]:
        raise _TooMuch("it adds values of different sizes")
    units, skip = (one, two) if one.of == "hidden" else (two, one)
    assert units.matrix is not None
    assert skip.matrix is not None
    both = np.concatenate([units.matrix, skip.matrix], axis=1)
    return Value("both", both, _shifted(one, np.zeros(())) + _shifted(two, np.zeros(())))


def _result(value: Value | None, hidden: list[tuple[str, Array, Array]]) -> Parameters:
    if value is None or not hidden or value.matrix is None or value.of not in ("hidden", "both"):
        raise _TooMuch("its output is not a linear map of hidden units")
    sigma, W, b = hidden[0]
    c = _shifted(value, np.zeros(()))
    a, v = value.matrix[:, : len(W)], value.matrix[:, len(W) :]
    if a.shape[1] != len(W) or v.shape[1] not in (0, W.shape[1]):
        raise _TooMuch(f"{len(W)} hidden units meet {a.shape[1]} output weights")
    skip = v if v.shape[1] else None
    if len(a) == 1:  # one output is a plain number
        return Parameters(W, b, a[0], None if skip is None else skip[0], c[0], sigma)
    return Parameters(W, b, a, skip, c, sigma)


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
