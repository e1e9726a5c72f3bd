"""ONNX: the network as a graph that any runtime can run, in double precision; and graphs of other tools read back.

z = Gemm(x, W, b);  h = σ(z);  y = Gemm(h, a, c) [+ x v];  [the link];  [Squeeze for a single output]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine import activations
from relumine.activations import Activation, steps_of
from relumine.formats.files import checked_size, read_bytes
from relumine.formats.layouts import LAYERS, Layout
from relumine.formats.onnx_graph import SIGMAS, foreign
from relumine.formats.onnx_wire import bounded
from relumine.formats.parameters import Parameters, check_shape
from relumine.links import form_of
from relumine.results import InvalidInput, MissingPackage, ModelFileError

NAME = "ONNX"
_PRODUCER = "relumine"  # of the producer and of the graph
_OPSET, _IR = 17, 8  # old enough for every runtime of the last years
# operators that onnxruntime (1.31, tried one by one) has in single precision only
_SINGLE_ONLY = ("Erf", "Softplus", "Softsign", "Atan", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Gelu")
Node = Callable[..., Any]  # makes a node of a graph: operator, inputs, outputs, attributes


def _onnx() -> Any:
    try:
        return import_module("onnx")
    except ImportError:
        raise MissingPackage("ONNX files need the onnx package", "onnx") from None


def to_bytes(
    arrays: Mapping[str, NDArray[Any]],
    words: Mapping[str, str],
    maps: Sequence[tuple[str, str]],
    p: Parameters,
    link: str,
) -> bytes:
    """The file's content. Input ``X`` (N, d), output ``Y`` (N,) or (N, q); ``maps``: names of the affine maps."""
    onnx = _onnx()
    h, kind = onnx.helper, arrays[maps[0][0]].dtype
    constants: dict[str, NDArray[Any]] = {}
    for W, b in maps:
        constants |= {W: np.atleast_2d(arrays[W]), b: np.atleast_1d(arrays[b])}
    nodes: list[Any] = []
    node = _maker(h, kind, constants)
    before, value = "", "X"  # names of what the last hidden layer and the next map are applied to
    for W, b in maps[:-1]:
        layer = W[1:]  # "" or the number of the layer
        nodes.append(h.make_node("Gemm", [value, W, b], [f"z{layer}"], transB=1))
        nodes += sigma_nodes(node, activations.get(p.activation), kind, layer)
        before, value = value, f"h{layer}"
    nodes.append(h.make_node("Gemm", [value, *maps[-1]], ["units"], transB=1))
    value = "units"
    if "v" in arrays and arrays["v"].any():
        constants["v"] = np.atleast_2d(arrays["v"])
        nodes.append(h.make_node("Gemm", [before, "v", "units"], ["sum"], transB=1))
        value = "sum"
    last, outputs = ending(node, value, p.plain, len(constants[maps[-1][0]]), link)
    constants |= {"axis": np.array([1])} if not outputs else {}
    element = h.np_dtype_to_tensor_dtype(kind)
    graph = h.make_graph(
        [*nodes, *last],
        _PRODUCER,
        [h.make_tensor_value_info("X", element, ["N", constants[maps[0][0]].shape[1]])],
        [h.make_tensor_value_info("Y", element, ["N", *outputs])],
        [onnx.numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()],
    )
    model = h.make_model(graph, producer_name=_PRODUCER, opset_imports=[h.make_opsetid("", _OPSET)])
    model.ir_version = _IR
    h.set_model_props(model, dict(words))
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _maker(h: Any, kind: np.dtype[Any], constants: dict[str, NDArray[Any]]) -> Node:
    """``make_node`` of ONNX; a number among the inputs becomes a constant of the graph."""

    def node(op: str, inputs: Sequence[str | float], outputs: Sequence[str], **options: Any) -> Any:
        names = [value if isinstance(value, str) else f"number{value!r}" for value in inputs]
        constants.update({k: np.array(v, dtype=kind) for k, v in zip(names, inputs) if not isinstance(v, str)})
        return h.make_node(op, names, outputs, **options)

    return node


def ending(node: Node, value: str, plain: bool, outputs: int, link: str) -> tuple[list[Any], list[int]]:
    """Nodes from the sum ``value`` (N, q) through the link to ``Y``, and the shape of a row of it.

    The node for a plain output takes a constant ``axis``.
    """
    nodes = []
    if link:
        form = form_of(link)
        nodes, value = form.onnx(node, value), "linked"
        plain, outputs = plain and not form.stacked, 2 if form.stacked else outputs
    if plain:
        return [*nodes, node("Squeeze", [value, "axis"], ["Y"])], []
    return [*nodes, node("Identity", [value], ["Y"])], [outputs]


def sigma_nodes(node: Node, sigma: Activation, kind: np.dtype[Any], layer: str = "") -> list[Any]:
    """Nodes that lead from ``z`` to ``h`` (with the name of the layer), in operators every runtime has."""
    steps = steps_of(sigma)
    if not steps:
        raise InvalidInput(f"the activation {sigma.name} cannot be written as ONNX", remedy="use .safetensors")
    single = [step.op for step in steps if step.op in _SINGLE_ONLY]
    if kind == np.float64 and single:
        raise InvalidInput(
            f"onnxruntime has no {single[0]} in double precision, which {sigma.name} needs",
            remedy="export with dtype='float32'",
        )
    return [
        node(
            step.op,
            [f"{value}{layer}" if isinstance(value, str) else value for value in step.inputs],
            [f"{step.output}{layer}"],
        )
        for step in steps
    ]


def read(path: Path, layout: Layout) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Arrays and words of a graph: our own exactly, those of other tools where they are such a network and no more."""
    model = _model(path)
    names = [tensor.name for tensor in model.graph.initializer]
    if len(set(names)) < len(names):
        raise ModelFileError(f"{path} is damaged: two of its tensors have the same name")
    constants = {tensor.name: constant(path, tensor) for tensor in model.graph.initializer}
    words = {entry.key: entry.value for entry in model.metadata_props}
    if not all(isinstance(word, str) for entry in words.items() for word in entry):
        raise ModelFileError(f"{path} is damaged: its metadata are not text")
    if words.get("format") == layout.form:
        plain = words.get("link") == "two classes" or any(node.op_type == "Squeeze" for node in model.graph.node)
        return layout.of_graph(str(path), constants, plain), words
    if "relumine" in words.get("format", ""):
        return {}, words
    if model.producer_name == _PRODUCER or model.graph.name == _PRODUCER:
        raise ModelFileError(f"{path} is damaged: it was written by relumine, and does not say so in its metadata")
    p = foreign(path, model.graph, constants, lambda tensor: constant(path, tensor))
    return layout.arrays(p), layout.words(p)


def form(path: Path) -> str:
    """Which layout the file says it has, or, of another tool's graph, its activations show."""
    model = _model(path)
    words = {str(entry.key): str(entry.value) for entry in model.metadata_props}  # a damaged one may hold bytes
    if words.get("format", "").startswith(_PRODUCER):
        return words["format"]
    return LAYERS.form if sum(node.op_type in SIGMAS for node in model.graph.node) > 1 else ""


def _model(path: Path) -> Any:
    """The file parsed, if that is all of it: a damaged tag hides a field, and its default would stand in for it."""
    data = read_bytes(path)
    bounded(path, data)
    try:
        model = _onnx().load_model_from_string(data)
        size = model.ByteSize()
        model.DiscardUnknownFields()
        whole = model.ByteSize() == size
    except Exception as error:  # the parser's own kinds of error; nothing of the file has been used yet
        if isinstance(error, MissingPackage):
            raise
        raise ModelFileError(f"{path} is not a readable ONNX file (truncated or foreign): {error}") from None
    if not whole:
        raise ModelFileError(f"{path} has parts that the onnx package does not know: damaged, or of a newer version")
    return model


def constant(path: Path, tensor: Any) -> NDArray[Any]:
    """A tensor of the file as an array, its declared shape held against the numbers there are."""
    onnx = _onnx()
    try:
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except Exception:
        raise ModelFileError(f"{path}: the tensor {tensor.name!r} has an unknown type") from None
    field = {"float64": tensor.double_data, "float32": tensor.float_data, "int64": tensor.int64_data}.get(kind.name)
    if field is None:
        raise ModelFileError(f"{path}: the tensor {tensor.name!r} has type {kind}, where float64 or float32 belongs")
    raw: bytes = _beside(path, tensor) if tensor.data_location == onnx.TensorProto.EXTERNAL else tensor.raw_data
    if raw and (len(raw) % kind.itemsize or len(field)):
        raise ModelFileError(f"{path} is damaged: {tensor.name!r} is kept twice, or its last number is cut")
    values = np.frombuffer(raw, kind) if raw else np.array(field, kind)
    shape = tuple(tensor.dims)
    if any(k < 0 for k in shape) or values.size != np.prod(shape, dtype=object):
        raise ModelFileError(
            f"{path} is damaged: {tensor.name!r} is declared with shape {shape} and has {values.size} numbers"
        )
    check_shape(str(path), repr(tensor.name), shape)
    return values.reshape(shape)


def _beside(path: Path, tensor: Any) -> bytes:
    """The bytes of a tensor that is kept in a second file, which must lie beside the first (torch exports such)."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    name = entries.get("location", "")
    other = path.parent / name
    if not name or Path(name).name != name or name in (".", "..") or other.is_symlink():
        raise ModelFileError(f"{path} keeps {tensor.name!r} in {name!r}, which is not a file beside it")
    size = checked_size(other)
    try:
        start, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        raise ModelFileError(f"{path} is damaged: the place of {tensor.name!r} is not a number") from None
    if start < 0 or length < 0 or start + length > size:
        raise ModelFileError(f"{path} is damaged: {tensor.name!r} lies beyond the end of {name}")
    with other.open("rb") as file:
        file.seek(start)
        return bytes(file.read(length))
