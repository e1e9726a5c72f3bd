"""safetensors, the native format: float64 tensors; what they are and a checksum in the metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from relumine.arrays import Array
from relumine.formats.files import LARGEST, checked_size
from relumine.formats.layouts import Layout
from relumine.results import ModelFileError

NAME = "safetensors"
_HEADER = 1 << 16  # ours has some 500 bytes, and the names of the inputs
_NAMES = 1 << 15  # bytes of names that are kept: with them the header must stay readable


def to_bytes(arrays: Mapping[str, Array], words: Mapping[str, str], features: Sequence[str] = ()) -> bytes:
    """The file's content; names of the d inputs are kept beside the numbers unless they are too long."""
    from safetensors.numpy import save

    meta, text = dict(words), json.dumps(features)
    # names have a checksum of their own: that of the numbers stays what earlier versions expect
    if len(features) == next(iter(arrays.values())).shape[1] and len(json.dumps(text)) < _NAMES:
        meta |= {"features": text, "features_sha256": sha256(text.encode()).hexdigest()}
    return bytes(save(dict(arrays), metadata=meta))


def read(path: Path, layout: Layout) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays of the layout and the words that the file has."""
    return stored(path, layout.names)


def stored(path: Path, names: Sequence[str], most: int = LARGEST) -> tuple[dict[str, Array], dict[str, str]]:
    """Those of the named arrays that a file has, and its words, if it is no larger than ``most`` bytes.

    The library checks every declared shape against the bytes there are.
    """
    from safetensors import SafetensorError, safe_open

    size = checked_size(path, most)
    try:
        with path.open("rb") as file:
            declared = int.from_bytes(file.read(8), "little")
        if size < 8 or declared > size - 8:
            raise SafetensorError("it ends before its header does")
        if declared > _HEADER:
            raise ModelFileError(f"{path} is a safetensors file, but not one of relumine: its header is too long")
        with safe_open(str(path), framework="numpy") as file:
            present = [name for name in file.keys() if name in names]  # noqa: SIM118 - not a dict
            wrong = [name for name in present if file.get_slice(name).get_dtype() != "F64"]
            if wrong:
                raise ModelFileError(f"{path} is damaged: {', '.join(wrong)} not float64")
            return {name: np.asarray(file.get_tensor(name)) for name in present}, file.metadata() or {}
    except ModelFileError:
        raise
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a readable safetensors file (truncated or foreign): {error}") from error


def form(path: Path) -> str:
    """Which layout the file says it has."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            return str((file.metadata() or {}).get("format", ""))
    except (SafetensorError, OSError, ValueError, OverflowError):
        return ""


def names(where: str, words: Mapping[str, str], shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the inputs, as they were kept with a network whose first W has this shape; none if there are none."""
    text = words.get("features")
    if text is None:
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    intact = sha256(text.encode()).hexdigest() == words.get("features_sha256")
    known = isinstance(found, list) and all(isinstance(name, str) for name in found)
    if not intact or not known or len(shape) != 2 or len(found) != shape[1]:
        raise ModelFileError(f"{where} is damaged: the names of its inputs do not match their checksum")
    return tuple(found)
