"""JSON, for people and other languages: the numbers in full (17 digits), nested lists as shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relumine.formats.json_text import parsed
from relumine.formats.parameters import ARRAYS, UNLABELLED, Labels, Parameters, check_meta, check_origin, described
from relumine.results import ModelFileError

__all__ = ["read", "to_bytes"]

_MOST = 1 << 24  # 16 MB of text: lists of Python objects take up to twenty times that


def to_bytes(p: Parameters, labels: Labels = UNLABELLED) -> bytes:
    """The file's content."""
    head: dict[str, Any] = described(p.sigma, labels)
    arrays = {name: array.tolist() for name, array in p.arrays().items()}
    # an empty list has no shape: the number of inputs would be lost with the last unit
    head["shape"] = list(p.W.shape)
    return (json.dumps(head | arrays, allow_nan=False) + "\n").encode()


def read(path: Path) -> tuple[Parameters, Labels]:
    """Read an object with W, b, a and, where they are there, v, c and activation."""
    content = parsed(path, _MOST)
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} is a JSON file, but not a relumine network")
    check_origin(str(path), "JSON", content.get("format"), content.get("version"))
    missing = {"W", "b", "a"} - set(content)
    if missing:
        raise ModelFileError(f"{path} is damaged: missing {', '.join(sorted(missing))}")
    arrays = {name: _array(path, name, content[name]) for name in ARRAYS if content.get(name) is not None}
    if not arrays["W"].size:
        arrays["W"] = _empty(path, content.get("shape"))
        if arrays["a"].ndim == 2:
            arrays["a"] = arrays["a"].reshape(len(arrays["a"]), 0)
    meta = {key: content.get(key, default) for key, default in (("activation", "relu"), ("status", ""), ("link", ""))}
    if not all(isinstance(word, str) for word in meta.values()):
        raise ModelFileError(f"{path} is damaged: the activation, the status or the link is not a word")
    p = Parameters(arrays["W"], arrays["b"], arrays["a"], arrays.get("v"), arrays.get("c"), meta["activation"])
    return p, check_meta(str(path), meta, p)


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
