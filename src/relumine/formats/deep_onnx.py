"""Deep networks as ONNX graphs, Gemm and σ in turn, and the chains of other tools read back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from relumine import activations
from relumine.activations import Activation
from relumine.formats.files import read_bytes
from relumine.formats.onnx_file import _IR, _OPSET, _onnx, constant, ending, sigma_nodes
from relumine.formats.onnx_graph import _SIGMAS, _attributes
from relumine.formats.onnx_wire import bounded
from relumine.results import InvalidInput, ModelFileError

Array = NDArray[np.float64]

__all__ = ["is_deep", "read", "to_bytes"]

_SAME = ("Identity", "Cast", "Dropout", "Flatten", "Reshape", "Squeeze")
_MOST_NODES = 512


def to_bytes(
    arrays: Mapping[str, Array],
    words: dict[str, str],
    sigma: str | Activation,
    dtype: Literal["float64", "float32"] = "float64",
) -> bytes:
    """The file's content. Input ``X`` (N, d), output ``Y`` (N,) or (N, q)."""
    onnx = _onnx()
    h, kind = onnx.helper, np.dtype(dtype)
    if any(np.abs(array).max(initial=0.0) > np.finfo(kind).max for array in arrays.values()):
        raise InvalidInput("some parameters are beyond the range of float32; export with dtype='float64'")
    constants: dict[str, NDArray[Any]] = {name: array.astype(kind) for name, array in arrays.items()}
    depth = sum(name[0] == "W" for name in arrays)
    nodes, value = [], "X"
    for k in range(depth - 1):
        nodes.append(h.make_node("Gemm", [value, f"W{k}", f"b{k}"], [f"z{k}"], transB=1))
        before, value = value, f"h{k}"
        nodes += sigma_nodes(h, activations.get(sigma), kind, constants, str(k))
    nodes.append(h.make_node("Gemm", [value, f"W{depth - 1}", f"b{depth - 1}"], ["units"], transB=1))
    result = "units"
    if "v" in arrays:
        nodes.append(h.make_node("Gemm", [before, "v", "units"], ["sum"], transB=1))
        result = "sum"
    plain, link = words["outputs"] == "plain", words.get("link", "")
    last, outputs = ending(h, result, plain, len(arrays[f"W{depth - 1}"]), link)
    constants |= {"axis": np.array([1])} if not outputs else {}
    element = h.np_dtype_to_tensor_dtype(kind)
    graph = h.make_graph(
        [*nodes, *last],
        "relumine",
        [h.make_tensor_value_info("X", element, ["N", arrays["W0"].shape[1]])],
        [h.make_tensor_value_info("Y", element, ["N", *outputs])],
        [onnx.numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()],
    )
    model = h.make_model(graph, producer_name="relumine", opset_imports=[h.make_opsetid("", _OPSET)])
    model.ir_version = _IR
    h.set_model_props(model, words)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def is_deep(path: Path, form: str) -> bool:
    """Whether a graph is ours and deep, or has more than one node that is an activation."""
    model = _model(path)
    meta = {str(entry.key): str(entry.value) for entry in model.metadata_props}  # a damaged one may hold bytes
    if meta.get("format", "").startswith("relumine"):
        return meta["format"] == form
    return sum(node.op_type in (*_SIGMAS, "LeakyRelu") for node in model.graph.node) > 1


def read(path: Path, form: str) -> tuple[dict[str, Array], dict[str, str]]:
    """Arrays by name and the words beside them."""
    model = _model(path)
    constants = {tensor.name: constant(path, tensor) for tensor in model.graph.initializer}
    meta = {str(entry.key): str(entry.value) for entry in model.metadata_props}
    if meta.get("format") == form:
        arrays = {name: value for name, value in constants.items() if name == "v" or name[:1] in ("W", "b")}
        return {name: np.asarray(value, dtype=np.float64) for name, value in arrays.items()}, meta
    return _chain(path, model.graph, constants)


def _model(path: Path) -> Any:
    data = read_bytes(path)
    bounded(path, data)
    try:
        return _onnx().load_model_from_string(data)
    except Exception as error:  # the parser's own kinds of error; nothing of the file has been used yet
        raise ModelFileError(f"{path} is not a readable ONNX file (truncated or foreign): {error}") from None


def _chain(path: Path, graph: Any, known: dict[str, NDArray[Any]]) -> tuple[dict[str, Array], dict[str, str]]:
    """A chain of Gemm or MatMul + Add with one kind of activation between them."""

    def refuse(why: str) -> ModelFileError:
        return ModelFileError(f"{path} is not a chain of linear maps and activations: {why}")

    inputs = [entry.name for entry in graph.input if entry.name not in known]
    if len(inputs) != 1 or len(graph.output) != 1 or len(graph.node) > _MOST_NODES:
        raise refuse(f"{len(inputs)} inputs, {len(graph.output)} outputs, {len(graph.node)} nodes")
    maps: list[list[Array]] = []
    sigmas: list[str] = []
    at = inputs[0]
    for node in graph.node:
        options, operands = _attributes(node), [name for name in node.input if name]
        if node.op_type == "Constant":
            tensors = [a.t for a in node.attribute if a.name == "value"]
            known |= {node.output[0]: constant(path, tensors[0])} if tensors else {}
            continue
        if node.op_type == "Transpose" and operands and operands[0] in known:
            known[node.output[0]] = known[operands[0]].T
            continue
        fixed = [np.asarray(known[name], dtype=np.float64) for name in operands if name in known]
        if at not in operands:
            raise refuse(f"the node {node.op_type} does not continue the chain")
        if node.op_type in ("Gemm", "MatMul") and fixed and fixed[0].ndim == 2 and operands[0] == at:
            if len(maps) > len(sigmas):
                raise refuse("two linear maps follow each other")
            W = options.get("alpha", 1.0) * (fixed[0] if options.get("transB", 0) else fixed[0].T)
            b = options.get("beta", 1.0) * fixed[1].ravel() if len(fixed) > 1 else np.zeros(1)
            maps.append([W, np.zeros(len(W)) + b])
        elif node.op_type in ("Add", "Sub") and len(fixed) == 1 and len(maps) == len(sigmas) + 1 and operands[0] == at:
            maps[-1][1] = maps[-1][1] + (fixed[0].ravel() if node.op_type == "Add" else -fixed[0].ravel())
        elif node.op_type == "Add" and len(fixed) == 1 and len(maps) == len(sigmas) + 1:
            maps[-1][1] = maps[-1][1] + fixed[0].ravel()
        elif node.op_type in (*_SIGMAS, "LeakyRelu") and len(maps) == len(sigmas) + 1:
            slope = float(f"{options.get('alpha', 0.01):.7g}")
            sigmas.append(_SIGMAS.get(node.op_type) or f"leaky_relu({slope!r})")
        elif node.op_type not in _SAME:
            raise refuse(f"the node {node.op_type} has no place in one")
        at = node.output[0]
    if at != graph.output[0].name or len(maps) != len(sigmas) + 1 or len(set(sigmas)) != 1:
        raise refuse(f"{len(maps)} linear maps and the activations {', '.join(sigmas) or 'none'}")
    arrays: dict[str, Array] = {}
    for k, (W, b) in enumerate(maps):
        arrays |= {f"W{k}": W, f"b{k}": b}
    return arrays, {"activation": sigmas[0]}
