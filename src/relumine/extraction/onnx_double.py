"""An ONNX file in single precision, computed in double: its weights are exact numbers, only its arithmetic rounds."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["in_double"]


def in_double(path: Path) -> bytes | None:
    """The model of a file with every single-precision tensor made double; None if it has parts this does not know."""
    try:
        onnx: Any = import_module("onnx")
        model = onnx.load(str(path))
    except Exception:  # not installed, or a file that only the runtime understands
        return None
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
    graph = model.graph

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
            if attribute.HasField("g") or attribute.graphs or model.functions:
                return None
            if attribute.HasField("t"):
                widened(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == single:
                attribute.i = double
    return bytes(model.SerializeToString())
