"""Model files: W, b, a, v, c and the name of σ, to disk and back.

A format is one module with `to_bytes` (parameters and labels to the file's content) and `read` (a path to both), and a
line in each of the two tables below.

Nothing here executes what a file says: arrays, numbers and names come in, anything else is a
:class:`~relumine.results.ModelFileError`. Sizes that a header declares are held against the size of the file before
memory is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Final, Literal

from relumine.formats import json_file, npz, onnx_file, tensors
from relumine.formats.files import checked_size, write_atomically
from relumine.formats.parameters import UNLABELLED, Labels, Parameters, check_shape
from relumine.results import InvalidInput, ModelFileError

__all__ = ["SUFFIXES", "UNLABELLED", "Labels", "Parameters", "read", "read_labels", "write"]

_READ: Final[dict[str, Callable[[Path], tuple[Parameters, Labels]]]] = {
    ".safetensors": tensors.read,
    ".onnx": onnx_file.read,
    ".npz": npz.read,
    ".json": json_file.read,
}
_WRITE: Final[dict[str, Callable[[Parameters, Labels], bytes]]] = {
    ".safetensors": tensors.to_bytes,
    ".onnx": onnx_file.to_bytes,
    ".npz": npz.to_bytes,
    ".json": json_file.to_bytes,
}
SUFFIXES: Final = tuple(_READ)
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy", ".bin")


def write(
    path: str | PathLike[str],
    p: Parameters,
    dtype: Literal["float64", "float32"] = "float64",
    labels: Labels = UNLABELLED,
) -> None:
    """Write a model file, atomically; the suffix says which format, ``dtype`` the precision of an ONNX graph."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _WRITE:
        raise InvalidInput(f"{target.name!r} says no format; end the name with one of {', '.join(SUFFIXES)}")
    if dtype not in ("float64", "float32"):
        raise InvalidInput(f"dtype is 'float64' or 'float32', got {dtype!r}", argument="dtype")
    if suffix == ".onnx":
        data = onnx_file.to_bytes(p, labels, dtype)
    elif dtype == "float64":
        data = _WRITE[suffix](p, labels)
    else:
        raise InvalidInput(f"{suffix} files keep double precision; dtype='float32' is for .onnx", argument="dtype")
    write_atomically(target, data)


def read(path: str | PathLike[str]) -> Parameters:
    """Read a model file of any known format, by its suffix."""
    return _read(path)[0]


def read_labels(path: str | PathLike[str]) -> Labels:
    """What a model file says beside its numbers, which are read and checked, too."""
    return _read(path)[1]


def _read(path: str | PathLike[str]) -> tuple[Parameters, Labels]:
    target = Path(path)
    suffix = target.suffix.lower()
    checked_size(target)
    if suffix not in _READ:
        hint = ""
        if suffix in _PICKLES:
            hint = " Pickles can execute code and are never opened: load the model yourself and use Network.from_torch"
            hint += " or Network.from_sklearn."
        raise ModelFileError(f"{target} is not a model file: the name should end in {', '.join(SUFFIXES)}.{hint}")
    found, labels = _READ[suffix](target)
    check_shape(str(target), "W", found.W.shape)
    return found, labels
