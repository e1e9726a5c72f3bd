"""A recovery as a file: JSON that anyone can read, written whole or not at all, read without trust."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from relumine import formats
from relumine.formats.files import write_atomically
from relumine.network import Network
from relumine.results import Certificate, ModelFileError, Recovery, Stage, StandardErrors, Status, Units

__all__ = ["as_dict", "from_dict", "load", "save", "write_text"]

_FORMAT, _VERSION = "relumine.result", 1
_LARGEST = 512 << 20  # bytes of a result file that will be read
_KEYS = ("W", "b", "a", "v", "c")
_A_NETWORK = "this is a network; a report needs the file that `relumine recover --save result.json` writes"


def save(found: Recovery, path: str | os.PathLike[str]) -> None:
    """Write the whole result as JSON, atomically; :func:`load` reads it back.

    Examples
    --------
    >>> import relumine as rl, tempfile, pathlib
    >>> X, y = rl.planted.sample(rl.planted.network(d=2, m=1, rng=0), n=40, rng=1)
    >>> found = rl.recover(X, y, width=1, rng=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "result.json"
    >>> save(found, path)
    >>> bool((load(path).network.W == found.network.W).all())
    True
    """
    write_text(path, json.dumps(as_dict(found), ensure_ascii=False, allow_nan=False, default=str))


def as_dict(found: Recovery) -> dict[str, Any]:
    """The result as JSON values; NaN and infinity are null; objects that JSON cannot hold are left out of details."""
    net, se = found.network, found.standard_errors
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "status": found.status.value,
        "title": found.status.title,
        "message": found.message,
        "advice": found.status.advice,
        "method": found.method,
        "seconds": found.seconds,
        "network": {"activation": net.activation.name, "d": net.d, **{k: _plain(getattr(net, k)) for k in _KEYS}},
        "standard_errors": None if se is None else {k: _plain(getattr(se, k)) for k in _KEYS},
        "certificate": _plain(found.certificate),
        "units": _plain(found.units),
        "stages": _plain(found.stages),
        "details": _plain(found.details),
    }


def load(path: str | os.PathLike[str]) -> Recovery:
    """Read a file written by :func:`save`; a damaged or foreign file is a :class:`ModelFileError`."""
    file = Path(path)
    if not file.is_file():
        raise ModelFileError(f"no such result file: {path}")
    if file.suffix.lower() in formats.SUFFIXES and file.suffix.lower() != ".json":
        raise ModelFileError(f"{path}: {_A_NETWORK}")
    if file.stat().st_size > _LARGEST:
        raise ModelFileError(f"{path} is larger than {_LARGEST >> 20} MB; that is no result of relumine")
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a result file (not JSON): {error}") from None
    if isinstance(content, dict) and content.get("format") == "relumine.network":
        raise ModelFileError(f"{path}: {_A_NETWORK}")
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ModelFileError(f"{path} is JSON, but not a result saved by relumine (recover --save)")
    if content.get("version") != _VERSION:
        raise ModelFileError(f"{path} has version {content.get('version')!r}; this relumine reads {_VERSION}; upgrade")
    try:
        return from_dict(content)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from None


def from_dict(content: Mapping[str, Any]) -> Recovery:
    """The way back from :func:`as_dict`."""
    net = content["network"]
    network = Network(activation=str(net["activation"]), **_parameters(net, int(net["d"])))
    se = content["standard_errors"]
    errors = None if se is None else StandardErrors(**_parameters(se, network.d))
    if errors is not None:
        for k in _KEYS:
            if getattr(errors, k).shape != getattr(network, k).shape:
                raise ValueError(f"standard errors of {k} have another shape than {k}")
    certificate = dict(content["certificate"])
    for key in ("residual", "noise", "condition"):
        certificate[key] = _number(certificate[key])
    certificate |= {"rows": int(certificate["rows"]), "notes": tuple(str(note) for note in certificate["notes"])}
    units = content["units"]
    return Recovery(
        network=network,
        status=Status(content["status"]),
        message=str(content["message"]),
        certificate=Certificate(**certificate),
        units=Units(
            tuple(int(i) for i in units["recovered"]),
            tuple(int(i) for i in units["up_to_sign"]),
            tuple(str(line) for line in units["absorbed"]),
        ),
        standard_errors=errors,
        stages=tuple(_stage(stage) for stage in content["stages"]),
        method=str(content["method"]),
        details=dict(content["details"]),
    )


def _parameters(values: Mapping[str, Any], d: int) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    arrays = {k: _array(values[k]) for k in _KEYS}
    if arrays["W"].size == 0:  # [] has forgotten how many columns it had
        arrays["W"] = arrays["W"].reshape(0, d)
    return arrays


def _stage(stage: Mapping[str, Any]) -> Stage:
    loss = stage["loss"]
    return Stage(
        str(stage["name"]), _number(stage["seconds"]), None if loss is None else _number(loss), str(stage["note"])
    )


def _number(value: object) -> float:
    return float("nan") if value is None else float(value)  # type: ignore[arg-type]


def _array(value: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers, null for NaN; text or ragged lists are an error."""
    array = np.asarray(value)
    if array.dtype == object:  # nulls inside
        array = np.asarray(value, dtype=np.float64)
    if array.dtype.kind not in "fiu" and array.size:
        raise ValueError(f"expected numbers, got {array.dtype}")
    return array.astype(np.float64)


def _plain(value: Any) -> Any:
    """The value in JSON's own types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items() if _holds(v)}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _holds(value: Any) -> bool:
    kinds = (str, bool, int, float, list, tuple, Mapping, np.ndarray, np.generic, Enum)
    return value is None or isinstance(value, kinds) or dataclasses.is_dataclass(value)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text so that a reader sees the old file or the whole new one."""
    write_atomically(Path(path), text.encode("utf-8"))
