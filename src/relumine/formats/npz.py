"""numpy's npz: a zip of the arrays, and of the words as arrays of one string."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from relumine.formats.files import LARGEST, checked_size
from relumine.formats.layouts import LAYERS, Layout
from relumine.formats.parameters import WORDS
from relumine.results import ModelFileError

NAME = "npz"
_EXPANSION, _SMALL = 16, 1 << 20  # weights hardly compress: a file that claims more than this is a bomb


def to_bytes(arrays: Mapping[str, NDArray[Any]], words: Mapping[str, str], features: Sequence[str] = ()) -> bytes:
    """The file's content; ``np.load(path, allow_pickle=False)`` reads it anywhere."""
    content: dict[str, Any] = {**words, **arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    return buffer.getvalue()


def read(path: Path, layout: Layout) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The arrays of the layout and the words that the file has."""
    found = arrays(path, layout.names, WORDS)
    words = {name: str(found.pop(name)) for name in WORDS if name in found}
    return found, words


def form(path: Path) -> str:
    """Which layout the file says it has, or its arrays show."""
    found = arrays(path, (), ("format",))
    return str(found["format"]) if found else LAYERS.form if arrays(path, ("W1",)) else ""


def arrays(
    path: Path, numbers: tuple[str, ...], words: tuple[str, ...] = (), most: int = LARGEST
) -> dict[str, NDArray[Any]]:
    """Those of the named arrays that the file has, each read only after its header was held against its size."""
    size = checked_size(path, most)
    budget = min(_EXPANSION * size + _SMALL, most)
    found: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            for name in (*numbers, *words):
                if name in members:
                    budget -= members[name].file_size
                    if budget < 0:
                        raise ModelFileError(f"it expands to more than {_EXPANSION} times its size")
                    if members[name].compress_size > size:  # memory for that many bytes would be taken at once
                        raise ModelFileError(f"{name} is declared with more bytes than the file has")
                    found[name] = _array(archive.read(members[name]), name in words)
    except ModelFileError as error:
        raise ModelFileError(f"{path} is damaged: {error}") from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError, NotImplementedError) as error:
        raise ModelFileError(f"{path} is not a readable npz file (truncated or foreign): {error}") from error
    return found


def _array(data: bytes, word: bool) -> NDArray[Any]:
    """One member, an npy file: no objects, and as many bytes as its header declares."""
    file = io.BytesIO(data)
    version = npy.read_magic(file)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, _, dtype = header(file)
    except Exception:  # numpy evaluates the header as a literal, and each kind of nonsense raises its own error
        raise ModelFileError("an array has an unreadable header") from None
    if any(k < 0 for k in shape) or prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ModelFileError(f"an array of shape {shape} is declared, and other than that many bytes are there")
    if (dtype.kind, word) not in (("f", False), ("U", True)) or dtype.itemsize > 1024 or (word and shape):
        raise ModelFileError(f"dtype {dtype}, where {'a word' if word else 'float64'} belongs")
    file.seek(0)
    return np.asarray(npy.read_array(file, allow_pickle=False))
