"""A recovery as a file: JSON that anyone can read, written whole or not at all, read without trust."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from relumine import formats
from relumine.deep import DeepNetwork
from relumine.extraction import Extraction
from relumine.formats.files import write_atomically
from relumine.formats.json_text import parsed
from relumine.links import Link, form_of
from relumine.network import Network
from relumine.results import ModelFileError, Recovery, StandardErrors

_FORMAT, _VERSION = "relumine.result", 2
_LARGEST = 256 << 20  # bytes of a result file: 8 million numbers of 17 digits, with standard errors, are 170 MB
_HEAD = 4096  # bytes in which a result says what it is
_KEYS = ("W", "b", "a", "v", "c")
_ASKED = ("queries", "calls", "retried", "dropped")
_PARTS = ("status", "message", "certificate", "units", "stages", "method", "search", "shown", "origin")
_LATER = ("cycles",)  # fields that files of this version did not have from the beginning
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
    write_text(path, json.dumps(as_dict(found), ensure_ascii=False, allow_nan=False))


def as_dict(found: Recovery) -> dict[str, Any]:
    """The result as JSON values; NaN and infinity are null. Of an extraction the counts are kept, not the rows."""
    net, se = found.network, found.standard_errors
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "status": found.status.value,
        "title": found.title,
        "message": found.message,
        "advice": found.advice,
        "diagnosis": None if found.diagnosis is None else _plain(found.diagnosis),
        "method": found.method,
        "seconds": found.seconds,
        "network": _network(net),
        "standard_errors": None if se is None else _plain(se),
        "certificate": _plain(found.certificate),
        "units": _plain(found.units),
        "stages": _plain(found.stages),
        "search": _plain(found.search),
        "shown": None if found.shown is None else _plain(found.shown),
        "origin": _plain(found.origin),
        "link": found.labels.link or None,
        "asked": {key: getattr(found, key) for key in _ASKED} if isinstance(found, Extraction) else None,
    }


def _network(net: Network | DeepNetwork) -> dict[str, Any]:
    """The parameters by name; of a deep network its affine maps, input side first, and the head's linear part."""
    said = {"activation": net.activation.name, "d": net.d}
    if isinstance(net, DeepNetwork):
        return said | {"maps": [[_plain(W), _plain(b)] for W, b in net.maps], "v": _plain(net.head.v)}
    return said | {k: _plain(getattr(net, k)) for k in _KEYS}


def _as_network(part: Mapping[str, Any]) -> Network:
    """The way back from :func:`_network`."""
    if "maps" in part:
        maps = [(_array(W), _array(b)) for W, b in part["maps"]]
        return cast("Network", DeepNetwork.of(maps, str(part["activation"]), _array(part["v"])))
    return Network(activation=str(part["activation"]), **_parameters(part, int(part["d"])))


def is_result(path: str | os.PathLike[str]) -> bool:
    """Whether a file says in its first line that it holds a result, of whatever version."""
    try:
        with Path(path).open("rb") as file:
            return f'"{_FORMAT}"'.encode() in file.read(_HEAD)
    except (OSError, ValueError):  # names too long or with a null byte
        return False


def load(path: str | os.PathLike[str]) -> Recovery:
    """Read a file written by :func:`save`; a damaged or foreign file is a :class:`ModelFileError`."""
    file = Path(path)
    if not file.is_file():
        raise ModelFileError(f"no such result file: {path}")
    if file.suffix.lower() in formats.SUFFIXES and file.suffix.lower() != ".json":
        raise ModelFileError(f"{path}: {_A_NETWORK}")
    content = parsed(file, _LARGEST)
    if isinstance(content, dict) and content.get("format") == "relumine.network":
        raise ModelFileError(f"{path}: {_A_NETWORK}")
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ModelFileError(f"{path} is JSON, but not a result saved by relumine (recover --save)")
    if content.get("version") == 1:  # it had a dictionary of anything, which cannot be checked
        raise ModelFileError(f"{path} was saved by an earlier relumine (version 1); run the recovery again to save it")
    if content.get("version") != _VERSION:
        raise ModelFileError(f"{path} has version {content.get('version')!r}; this relumine reads {_VERSION}; upgrade")
    try:
        return from_dict(content)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from None


def from_dict(content: Mapping[str, Any]) -> Recovery:
    """The way back from :func:`as_dict`."""
    network, asked, errors = _as_network(content["network"]), content["asked"], content["standard_errors"]
    kinds = get_type_hints(Recovery, localns={"Network": Network, "Link": Link})
    parts = {key: _as(kinds[key], content[key]) for key in _PARTS} | {
        "standard_errors": None if errors is None else _errors(errors, network),
        "diagnosis": _as(kinds["diagnosis"], content.get("diagnosis")),
        "mapping": None if content.get("link") is None else Link(form_of(content["link"])),
    }
    shown = parts["shown"]
    if shown is not None and (shown.truth.ndim != 2 or shown.truth.shape != shown.predicted.shape):
        raise ValueError(f"true and predicted values have shapes {shown.truth.shape} and {shown.predicted.shape}")
    if asked is None:
        return Recovery(network, **parts)
    return Extraction(network, **parts | {key: _as(int, asked[key]) for key in _ASKED})


def _parameters(values: Mapping[str, Any], d: int) -> dict[str, NDArray[np.float64]]:
    arrays = {k: _array(values[k]) for k in _KEYS}
    if arrays["W"].size == 0:  # [] has forgotten how many columns it had
        arrays["W"] = arrays["W"].reshape(0, d)
    return arrays


def _errors(values: Mapping[str, Any], network: Network) -> StandardErrors:
    errors = StandardErrors(**_parameters(values, network.d))
    for k in _KEYS:
        if getattr(errors, k).shape != getattr(network, k).shape:
            raise ValueError(f"standard errors of {k} have another shape than {k}")
    return errors


# -- values -------------------------------------------------------------------------------------------------------


def _as(kind: Any, value: Any) -> Any:
    """A value of JSON as the type that a field of ours declares; anything else is an error.

    Examples
    --------
    >>> from relumine.results import Stage
    >>> _as(Stage, {"name": "fit", "seconds": 2, "loss": None, "note": ""})
    Stage(name='fit', seconds=2.0, loss=None, note='')
    >>> _as(tuple[int, ...], ["1"])
    Traceback (most recent call last):
    ...
    ValueError: expected int, got str
    """
    if get_origin(kind) in (Union, UnionType):  # of something and None
        return None if value is None else _as(get_args(kind)[0], value)
    if get_origin(kind) is np.ndarray:
        return _array(value)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        given = [f.name for f in dataclasses.fields(kind) if f.name in value or f.name not in _LATER]
        return kind(**{name: _as(hints[name], value[name]) for name in given})  # type: ignore[operator]
    if get_origin(kind) is tuple and isinstance(value, list):
        inner = get_args(kind)
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_as(k, v) for k, v in zip(kinds, value, strict=True))
    if kind is float and (value is None or type(value) is int):  # null is NaN
        value = math.nan if value is None else float(value)
    if issubclass(kind, Enum):
        return kind(value)
    if type(value) is not kind:
        raise ValueError(f"expected {getattr(kind, '__name__', kind)}, got {type(value).__name__}")
    return value


def _array(value: object) -> NDArray[np.float64]:
    """Numbers, null for NaN; text or ragged lists are an error."""
    array = np.asarray(value)
    if array.dtype == object:  # nulls inside
        array = np.asarray(value, dtype=np.float64)
    if array.dtype.kind not in "fiu" and array.size:
        raise ValueError(f"expected numbers, got {array.dtype}")
    return array.astype(np.float64)


def _plain(value: Any) -> Any:
    """The value in JSON's own types."""
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text so that a reader sees the old file or the whole new one."""
    write_atomically(Path(path), text.encode("utf-8"))
