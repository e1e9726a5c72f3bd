"""Files of deep networks: affine maps W0, b0, …, WL, bL (the last is the output) and, where there is one, v.

An output map of shape (m,) with a number as constant is a network whose output is a plain number; in a file it has one
row, and the word ``outputs`` says "plain". The formats are those of one hidden layer, with a name of their own.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.formats import deep_onnx, npz
from relumine.formats.files import checked_size, read_bytes, write_atomically
from relumine.formats.parameters import UNLABELLED, check_said, check_shape, said
from relumine.results import InvalidInput, Labels, ModelFileError

Array = NDArray[np.float64]

__all__ = ["FORMAT", "DeepParameters", "from_mlp", "holds", "labels_of", "read", "write"]

FORMAT, VERSION = "relumine.deep", "1"
_MOST_LAYERS = 64
_MOST_TEXT = 1 << 24  # 16 MB: lists of Python objects take up to twenty times that
_NAMES = tuple(f"{letter}{k}" for k in range(_MOST_LAYERS) for letter in "Wb")
_SUFFIXES = (".safetensors", ".onnx", ".npz", ".json")
_SIGMAS = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "linear"}


class DeepParameters(NamedTuple):
    """Affine maps, input side first; v (m,) or (q, m) is the head's linear part, None for none."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    v: Array | None = None
    activation: str | Activation = "relu"

    @property
    def sigma(self) -> str:
        """The name of σ."""
        return self.activation if isinstance(self.activation, str) else self.activation.name

    @property
    def plain(self) -> bool:
        """Whether the output is a plain number."""
        return self.weights[-1].ndim == 1

    def arrays(self) -> dict[str, Array]:
        """The arrays by name as they go to a file: matrices and vectors."""
        content: dict[str, Array] = {}
        for k, (W, b) in enumerate(zip(self.weights, self.biases)):
            content |= {f"W{k}": np.atleast_2d(W), f"b{k}": np.atleast_1d(b)}
        if self.v is not None:
            content["v"] = np.atleast_2d(self.v)
        return {name: np.array(array, dtype=np.float64, order="C") for name, array in content.items()}

    @classmethod
    def of(cls, where: str, arrays: Mapping[str, Array], sigma: str, plain: bool) -> DeepParameters:
        """From the arrays of a file; the class that holds a network checks shapes and values."""
        depth = sum(re.fullmatch(r"W\d+", name) is not None for name in arrays)
        wanted = {f"{letter}{k}" for k in range(depth) for letter in "Wb"}
        if depth < 2 or wanted - set(arrays):
            missing = ", ".join(sorted(wanted - set(arrays))) or "W0, W1"
            raise ModelFileError(f"{where} is damaged: missing {missing}")
        for name in (*wanted, *({"v"} & set(arrays))):
            check_shape(where, name, arrays[name].shape)
            if arrays[name].ndim != (1 if name[0] == "b" else 2):
                raise ModelFileError(f"{where} is damaged: {name} has shape {arrays[name].shape}")
        weights = [np.asarray(arrays[f"W{k}"], dtype=np.float64) for k in range(depth)]
        biases = [np.asarray(arrays[f"b{k}"], dtype=np.float64) for k in range(depth)]
        v = arrays.get("v")
        if plain:
            if len(weights[-1]) != 1 or len(biases[-1]) != 1 or (v is not None and len(v) != 1):
                raise ModelFileError(f"{where} is damaged: one output is declared, and there are several")
            weights[-1], biases[-1] = weights[-1][0], biases[-1][0]
            v = None if v is None else v[0]
        return cls(tuple(weights), tuple(biases), v, sigma)


def holds(path: str | PathLike[str]) -> bool:
    """Whether a model file holds a deep network; False for what is no model file at all."""
    target = Path(path)
    kind = target.suffix.lower()
    try:
        checked_size(target)
        if kind == ".npz":
            found = npz.arrays(target, (), ("format",))
            return str(found["format"]) == FORMAT if "format" in found else "W1" in npz.arrays(target, ("W1",))
        if kind == ".safetensors":
            return _safetensors_meta(target).get("format") == FORMAT
        if kind == ".json":
            return f'"{FORMAT}"' in read_bytes(target)[:200].decode(errors="replace")
        return kind == ".onnx" and deep_onnx.is_deep(target, FORMAT)
    except ModelFileError:
        return False


def write(
    path: str | PathLike[str],
    p: DeepParameters,
    dtype: Literal["float64", "float32"] = "float64",
    labels: Labels = UNLABELLED,
) -> None:
    """Write a file of the format that its suffix says, atomically; of the ``labels`` status and link are kept."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in _SUFFIXES:
        raise InvalidInput(f"{target.name!r} says no format; end the name with one of {', '.join(_SUFFIXES)}")
    if dtype not in ("float64", "float32"):
        raise InvalidInput(f"dtype is 'float64' or 'float32', got {dtype!r}")
    if dtype == "float32" and kind != ".onnx":
        raise InvalidInput(f"{kind} files keep double precision; dtype='float32' is for .onnx")
    arrays, words = p.arrays(), _words(p) | said(labels)
    if kind == ".onnx":
        data = deep_onnx.to_bytes(arrays, words, p.activation, dtype)
    elif kind == ".json":
        content = words | {name: array.tolist() for name, array in arrays.items()}
        data = (json.dumps(content, allow_nan=False) + "\n").encode()
    elif kind == ".npz":
        buffer = io.BytesIO()
        content = words | arrays
        np.savez(buffer, **content)
        data = buffer.getvalue()
    else:
        from safetensors.numpy import save

        data = bytes(save(arrays, metadata=words | {"sha256": _digest(arrays, p.sigma)}))
    write_atomically(target, data)


def labels_of(path: str | PathLike[str]) -> Labels:
    """How the recovery ended and the link, as far as a file of a deep network says."""
    target = Path(path)
    return check_said(str(target), _READ[target.suffix.lower()](target)[1])


def read(path: str | PathLike[str]) -> DeepParameters:
    """Read a file of a deep network; npz files with W0, b0, W1, b1, … are enough."""
    target = Path(path)
    kind = target.suffix.lower()
    checked_size(target)
    if kind not in _SUFFIXES:
        raise ModelFileError(f"{target} is not a model file: the name should end in {', '.join(_SUFFIXES)}")
    arrays, words = _READ[kind](target)
    if words.get("format", FORMAT) != FORMAT:
        raise ModelFileError(f"{target} does not hold a deep network; Network.load reads it")
    if str(words.get("version", VERSION)) != VERSION:
        raise ModelFileError(f"{target} has format version {words['version']!r}; this relumine reads {VERSION!r}")
    if "sha256" in words and words["sha256"] != _digest(arrays, words.get("activation", "relu")):
        raise ModelFileError(f"{target} is damaged: its numbers do not match its checksum")
    last = max((name for name in arrays if name[0] == "W"), key=lambda name: int(name[1:]), default="W0")
    one = last in arrays and len(arrays[last]) == 1
    plain = words["outputs"] == "plain" if "outputs" in words else one
    return DeepParameters.of(str(target), arrays, str(words.get("activation", "relu")), plain)


def _words(p: DeepParameters) -> dict[str, str]:
    outputs = "plain" if p.plain else str(len(p.weights[-1]))
    return {"format": FORMAT, "version": VERSION, "activation": p.sigma, "outputs": outputs}


def _digest(arrays: Mapping[str, Array], sigma: str) -> str:
    total = sha256(sigma.encode())
    for name in sorted(arrays):
        total.update(f"{name}{arrays[name].shape}".encode())
        total.update(np.ascontiguousarray(arrays[name], dtype="<f8").tobytes())
    return total.hexdigest()


def _npz(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    found = npz.arrays(path, (*_NAMES, "v"), ("format", "version", "activation", "outputs", "status", "link"))
    words = {name: str(value) for name, value in found.items() if value.dtype.kind == "U"}
    return {name: value for name, value in found.items() if name not in words}, words


def _json(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    try:
        content = json.loads(read_bytes(path, _MOST_TEXT))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not readable JSON (truncated or foreign): {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError(f"{path} is a JSON file, but not a deep relumine network")
    arrays = {name: _numbers(path, name, content[name]) for name in (*_NAMES, "v") if name in content}
    return arrays, {name: value for name, value in content.items() if isinstance(value, str)}


def _numbers(path: Path, name: str, value: Any) -> Array:
    # looked at before numpy sees it: among strings numpy would make every entry as long as the longest
    rows = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    good = all(isinstance(row, list) and all(type(number) in (int, float) for number in row) for row in rows)
    try:
        if good:
            return np.array(value, dtype=np.float64)  # raises where rows differ in length
    except (ValueError, OverflowError):
        pass
    raise ModelFileError(f"{path} is damaged: {name} is not a rectangular array of numbers")


def _onnx(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    return deep_onnx.read(path, FORMAT)


def _safetensors_meta(path: Path) -> dict[str, str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a readable safetensors file (truncated or foreign): {error}") from error


def _safetensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    words = _safetensors_meta(path)
    try:
        with safe_open(str(path), framework="numpy") as file:
            names = [name for name in file.keys() if name in (*_NAMES, "v")]  # noqa: SIM118 - not a dict
            if any(file.get_slice(name).get_dtype() != "F64" for name in names):
                raise ModelFileError(f"{path} is damaged: its tensors are not float64")
            return {name: np.asarray(file.get_tensor(name)) for name in names}, words
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} is not a readable safetensors file (truncated or foreign): {error}") from error


def from_mlp(model: Any) -> DeepParameters:
    """The maps of a fitted scikit-learn MLPRegressor or MLPClassifier (up to the logits)."""
    kind = type(model).__name__
    if hasattr(model, "steps"):
        raise InvalidInput("from_sklearn reads the MLP itself; take it out of the pipeline: pipeline[-1]")
    if not all(hasattr(model, name) for name in ("hidden_layer_sizes", "activation")):
        raise InvalidInput(f"from_sklearn reads a scikit-learn MLPRegressor or MLPClassifier, got {kind}")
    if not hasattr(model, "coefs_"):
        raise InvalidInput(f"this {kind} is not fitted yet; call fit first")
    if model.activation not in _SIGMAS:
        raise InvalidInput(f"the activation {model.activation!r} of this {kind} is not known here")
    weights = [np.asarray(W.T, dtype=np.float64) for W in model.coefs_]
    biases = [np.asarray(b, dtype=np.float64) for b in model.intercepts_]
    if len(weights[-1]) == 1:
        weights[-1], biases[-1] = weights[-1][0], biases[-1][0]
    return DeepParameters(tuple(weights), tuple(biases), None, _SIGMAS[model.activation])


_READ = {".npz": _npz, ".json": _json, ".onnx": _onnx, ".safetensors": _safetensors}
