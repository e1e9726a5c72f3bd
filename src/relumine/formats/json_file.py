"""JSON, for people and other languages: the numbers in full (17 digits), nested lists as shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine.formats.files import read_bytes
from relumine.formats.json_text import parsed
from relumine.formats.layouts import Layout
from relumine.formats.parameters import WORDS
from relumine.results import ModelFileError

NAME = "JSON"
_MOST = 1 << 24  # 16 MB of text: lists of Python objects take up to twenty times that


def to_bytes(arrays: Mapping[str, NDArray[Any]], words: Mapping[str, str], features: Sequence[str] = ()) -> bytes:
    """The file's content: one object, arrays as nested lists."""
    # an empty list has no shape: the number of inputs would be lost with the last unit
    shape = {"shape": list(arrays["W"].shape)} if "W" in arrays else {}
    content = {**words, **shape, **{name: array.tolist() for name, array in arrays.items()}}
    return (json.dumps(content, allow_nan=False) + "\n").encode()


def read(path: Path, layout: Layout) -> tuple[dict[str, NDArray[np.float64]], dict[str, str]]:
    """Arrays and words of an object; what else it holds is left alone."""
    content = parsed(path, _MOST)
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} is a JSON file, but not a relumine network")
    words = {name: content[name] for name in WORDS if name in content}
    words |= {"version": str(words["version"])} if "version" in words else {}
    if not all(isinstance(word, str) for word in words.values()):
        raise ModelFileError(f"{path} is damaged: the activation, the status or the link is not a word")
    arrays = {name: _array(path, name, content[name]) for name in layout.names if content.get(name) is not None}
    if "W" in arrays and not arrays["W"].size:
        arrays["W"] = _empty(path, content.get("shape"))
        if "a" in arrays and arrays["a"].ndim == 2:
            arrays["a"] = arrays["a"].reshape(len(arrays["a"]), 0)
    return arrays, words


def form(path: Path) -> str:
    """Which layout the file says it has, near its beginning."""
    head = read_bytes(path)[:200].decode(errors="replace")
    found = re.search(r'"format":\s*"([^"]*)"', head)
    return "" if found is None else found[1]


def _array(path: Path, name: str, value: Any) -> NDArray[np.float64]:
    # looked at before numpy sees it: among strings numpy would make every entry as long as the longest
    rows = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    flat = [row if isinstance(row, list) else [row] for row in rows]
    if not all(type(number) in (int, float) for row in flat for number in row):
        raise ModelFileError(f"{path} is damaged: {name} is not an array of numbers")
    try:
        return np.array(value, dtype=np.float64)  # raises where rows differ in length
    except (ValueError, OverflowError):
        raise ModelFileError(f"{path} is damaged: {name} is not a rectangular array of numbers") from None


def _empty(path: Path, shape: Any) -> NDArray[np.float64]:
    """W of a network without units, whose inputs are counted by ``shape``."""
    if not (isinstance(shape, list) and len(shape) == 2 and shape[0] == 0 and isinstance(shape[1], int)):
        raise ModelFileError(f"{path} is damaged: W is empty and shape does not say (0, d)")
    if not 0 < shape[1] <= _MOST:
        raise ModelFileError(f"{path} is damaged: {shape[1]} inputs")
    return np.zeros((0, shape[1]))
