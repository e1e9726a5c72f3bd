"""Model files: the affine maps of a network and the name of σ, to disk and back.

A format is one module with its `NAME`, `to_bytes` (arrays and words to the file's content), `read` (a path to both) and
`form` (the word that says which layout), and a line in the table below. How a network's arrays are called is the same
in all of them (:mod:`relumine.formats.layouts`).

Nothing here executes what a file says: arrays, numbers and names come in, anything else is a
:class:`~relumine.results.ModelFileError`. Sizes that a header declares are held against the size of the file before
memory is asked for.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from relumine.formats import json_file, npz, onnx_file, tensors
from relumine.formats.files import checked_size, write_atomically
from relumine.formats.layouts import LAYERS, ONE_LAYER, Layout
from relumine.formats.parameters import UNLABELLED, VERSION, Parameters, check_said, digest, said
from relumine.results import InvalidInput, Labels, ModelFileError

__all__ = [
    "LAYERS",
    "ONE_LAYER",
    "SUFFIXES",
    "UNLABELLED",
    "Labels",
    "Parameters",
    "layout_of",
    "read",
    "read_labels",
    "write",
]

_FORMATS: Final[dict[str, Any]] = {".safetensors": tensors, ".onnx": onnx_file, ".npz": npz, ".json": json_file}
SUFFIXES: Final = tuple(_FORMATS)
_BY_HAND = (".npz", ".json")  # people write these by hand, too: W, b and a are enough, and a checksum may be missing
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy", ".bin")


def write(
    path: str | PathLike[str],
    p: Parameters,
    layout: Layout = ONE_LAYER,
    dtype: Literal["float64", "float32"] = "float64",
    labels: Labels = UNLABELLED,
) -> None:
    """Write a model file, atomically; the suffix says which format, ``dtype`` the precision of an ONNX graph."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _FORMATS:
        raise InvalidInput(f"{target.name!r} says no format; end the name with one of {', '.join(SUFFIXES)}")
    if dtype not in ("float64", "float32"):
        raise InvalidInput(f"dtype is 'float64' or 'float32', got {dtype!r}", argument="dtype")
    if dtype == "float32" and suffix != ".onnx":
        raise InvalidInput(f"{suffix} files keep double precision; dtype='float32' is for .onnx", argument="dtype")
    arrays, words = layout.arrays(p), layout.words(p) | said(labels)
    if any(np.abs(array).max(initial=0.0) > np.finfo(dtype).max for array in arrays.values()):
        raise InvalidInput("some parameters are beyond the range of float32; export with dtype='float64'")
    arrays = {name: array.astype(dtype) for name, array in arrays.items()}
    if suffix != ".json":  # of the numbers as they are written: in dtype
        words["sha256"] = digest(arrays, layout.order(arrays), p.sigma)
    if suffix == ".onnx":
        data = onnx_file.to_bytes(arrays, words, layout.maps(p), p, labels.link)
    else:
        data = _FORMATS[suffix].to_bytes(arrays, words, labels.features)
    write_atomically(target, data)


def read(path: str | PathLike[str], layout: Layout) -> tuple[Parameters, Labels]:
    """Read a model file of any known format, by its suffix: the network, and what the file says beside it."""
    target, suffix = _known(path)
    where = str(target)
    arrays, words = _FORMATS[suffix].read(target, layout)
    form = words.get("format", layout.form if suffix == ".npz" else None)
    if form != layout.form:
        raise ModelFileError(f"{where} {layout.other.format(kind=_FORMATS[suffix].NAME)}")
    version = words.get("version", "?" if "format" in words else VERSION)
    if version != VERSION:
        raise ModelFileError(f"{where} has format version {version!r}; this relumine reads {VERSION!r}; upgrade")
    p = layout.parameters(where, arrays, words, "sha256" in words or suffix not in _BY_HAND)
    if "sha256" in words and words["sha256"] != digest(arrays, layout.order(arrays), p.sigma):
        raise ModelFileError(f"{where} is damaged: its numbers do not match its checksum")
    return p, check_said(where, words)._replace(features=tensors.names(where, words, p.weights[0].shape))


def read_labels(path: str | PathLike[str]) -> Labels:
    """What a model file says beside its numbers, which are read and checked, too."""
    return read(path, layout_of(path))[1]


def layout_of(path: str | PathLike[str]) -> Layout:
    """Whether a model file holds one hidden layer or several; what is no model file at all counts as one."""
    try:
        target, suffix = _known(path)
        return LAYERS if _FORMATS[suffix].form(target) == LAYERS.form else ONE_LAYER
    except ModelFileError:
        return ONE_LAYER


def _known(path: str | PathLike[str]) -> tuple[Path, str]:
    """A file that is there, and its suffix, which says a format."""
    target = Path(path)
    suffix = target.suffix.lower()
    checked_size(target)
    if suffix not in _FORMATS:
        hint = ""
        if suffix in _PICKLES:
            hint = " Pickles can execute code and are never opened: load the model yourself and use Network.from_torch"
            hint += " or Network.from_sklearn."
        raise ModelFileError(f"{target} is not a model file: the name should end in {', '.join(SUFFIXES)}.{hint}")
    return target, suffix
