"""An ONNX file as a box, computed in double precision: its scores and not its labels; only the arithmetic rounds."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def telling(kinds: list[str]) -> list[int]:
    """Which outputs tell something, by their types: the first of floating point.

    Where labels come first, as classifiers have it, all of floating point behind them: probabilities, together or class
    by class; or a sequence of maps from class to probability.

    Examples
    --------
    >>> telling(["tensor(int64)", "tensor(float)", "tensor(float)"]), telling(["tensor(double)", "tensor(double)"])
    ([1, 2], [0])
    """
    floating = [i for i, kind in enumerate(kinds) if kind in ("tensor(float)", "tensor(double)")]
    if floating and kinds[0] != kinds[floating[0]]:
        return floating
    maps = [i for i, kind in enumerate(kinds) if kind.startswith("seq(map(")]
    return floating[:1] or maps[:1] or [0]


def in_double(path: Path) -> bytes | None:
    """The model of a file with every single-precision tensor made double; None if it has parts this does not know.

    Of a classifier the nodes that make labels, and dictionaries of probabilities, are left out.
    """
    try:
        onnx: Any = import_module("onnx")
        model = onnx.load(str(path))
    except Exception:  # not installed, or a file that only the runtime understands
        return None
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
    graph = model.graph
    if model.functions or any(a.HasField("g") or a.graphs for node in graph.node for a in node.attribute):
        return None
    _numbers_only(onnx, graph)
    _plain_scalers(onnx, graph)

    def widened(tensor: Any) -> None:
        if tensor.data_type == single:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype("f8"), tensor.name))

    for tensor in graph.initializer:
        widened(tensor)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == single:
            value.type.tensor_type.elem_type = double
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                widened(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == single:
                attribute.i = double
    return bytes(model.SerializeToString())


def _numbers_only(onnx: Any, graph: Any) -> None:
    """Keep the outputs that tell something, and the nodes they need; ZipMap's dictionaries become its array."""
    names = {onnx.TensorProto.FLOAT: "tensor(float)", onnx.TensorProto.DOUBLE: "tensor(double)"}
    zipped = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "ZipMap"}
    kinds = [
        "seq(map(" if output.name in zipped else names.get(output.type.tensor_type.elem_type, "tensor(int64)")
        for output in graph.output
    ]
    kept = [graph.output[i] for i in telling(kinds)]
    single = onnx.TensorProto.FLOAT
    kept = [
        onnx.helper.make_tensor_value_info(zipped[entry.name], single, None) if entry.name in zipped else entry
        for entry in kept
    ]
    wanted, nodes = {entry.name for entry in kept}, []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted |= set(node.input)
            nodes.append(node)
    _replaced(graph.output, kept)
    _replaced(graph.node, nodes[::-1])


def _replaced(part: Any, content: list[Any]) -> None:
    """Put entries in the place of all that a repeated field holds; some of them may be among these."""
    copies = [type(entry).FromString(entry.SerializeToString()) for entry in content]
    del part[:]
    part.extend(copies)


def _plain_scalers(onnx: Any, graph: Any) -> None:
    """(x − offset)·scale by Sub and Mul: the operator Scaler answers in single precision only."""
    nodes = []
    for node in graph.node:
        if node.op_type != "Scaler" or node.domain != "ai.onnx.ml":
            nodes.append(node)
            continue
        values = {a.name: np.array(a.floats, dtype=np.float64) for a in node.attribute}
        place = node.output[0]
        for name, default in (("offset", np.zeros(1)), ("scale", np.ones(1))):
            graph.initializer.append(onnx.numpy_helper.from_array(values.get(name, default), f"{place} {name}"))
        nodes.append(onnx.helper.make_node("Sub", [node.input[0], f"{place} offset"], [f"{place} moved"]))
        nodes.append(onnx.helper.make_node("Mul", [f"{place} moved", f"{place} scale"], [place]))
    _replaced(graph.node, nodes)
