"""A recovery as a file: JSON that anyone can read, written whole or not at all, read without trust."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from relumine import formats
from relumine.deep import DeepNetwork
from relumine.extraction import Extraction
from relumine.formats.files import write_atomically
from relumine.formats.json_text import parsed
from relumine.links import Link, form_of
from relumine.network import Network
from relumine.results import (
    Cause,
    Certificate,
    Diagnosis,
    ModelFileError,
    Origin,
    Predictions,
    Recovery,
    SearchRecord,
    Stage,
    StandardErrors,
    Status,
    Units,
    WidthEvidence,
)

__all__ = ["as_dict", "from_dict", "is_result", "load", "save", "write_text"]

_FORMAT, _VERSION = "relumine.result", 2
_LARGEST = 256 << 20  # bytes of a result file: 8 million numbers of 17 digits, with standard errors, are 170 MB
_HEAD = 4096  # bytes in which a result says what it is
_KEYS = ("W", "b", "a", "v", "c")
_ASKED = ("queries", "calls", "retried", "dropped")
_A_NETWORK = "this is a network; a report needs the file that `relumine recover --save result.json` writes"

Item = TypeVar("Item")


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
    if content.get("version") == 1:
        raise ModelFileError(f"{path} was saved by an earlier relumine (version 1); run the recovery again to save it")
    if content.get("version") != _VERSION:
        raise ModelFileError(f"{path} has version {content.get('version')!r}; this relumine reads {_VERSION}; upgrade")
    try:
        return from_dict(content)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path} is damaged: {type(error).__name__}: {error}") from None


def from_dict(content: Mapping[str, Any]) -> Recovery:
    """The way back from :func:`as_dict`."""
    network, asked = _as_network(content["network"]), content["asked"]
    kinds: dict[str, Callable[[Any], Any]] = {
        "status": Status,
        "message": _text,
        "certificate": _certificate,
        "units": _units,
        "standard_errors": _or_none(lambda part: _errors(part, network)),
        "stages": _each(_stage),
        "method": _text,
        "search": _search,
        "shown": _or_none(_shown),
        "origin": _origin,
        "diagnosis": _or_none(_diagnosis),
    }
    parts: dict[str, Any] = {
        key: kind(content.get(key) if key == "diagnosis" else content[key]) for key, kind in kinds.items()
    }
    parts["mapping"] = _or_none(lambda word: Link(form_of(word)))(content.get("link"))
    if asked is None:
        return Recovery(network, **parts)
    return Extraction(network, **parts | {key: _whole(asked[key]) for key in _ASKED})


# -- the parts, each with every field named -----------------------------------------------------------------------


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


def _certificate(part: Mapping[str, Any]) -> Certificate:
    numbers, words = ("residual", "noise", "condition", "unseen"), ("proves", "does_not_prove")
    kinds = dict.fromkeys(numbers, _number) | dict.fromkeys(words, _text)
    return _built(Certificate, part, rows=_whole, confirmed=_whole, notes=_each(_text), **kinds)


def _units(part: Mapping[str, Any]) -> Units:
    return _built(Units, part, recovered=_each(_whole), up_to_sign=_each(_whole), absorbed=_each(_text))


def _diagnosis(part: Mapping[str, Any]) -> Diagnosis:
    return _built(Diagnosis, part, cause=Cause, words=_text, advice=_text)


def _stage(part: Mapping[str, Any]) -> Stage:
    return _built(Stage, part, name=_text, seconds=_number, loss=_or_none(_number), note=_text)


def _width(part: Mapping[str, Any]) -> WidthEvidence:
    return _built(WidthEvidence, part, width=_whole, loss=_number, bic=_number)


def _losses(part: Any) -> tuple[str, tuple[float, ...]]:
    name, losses = part
    return _text(name), _each(_number)(losses)


def _search(part: Mapping[str, Any]) -> SearchRecord:
    counts = dict.fromkeys(("starts", "rows", "rows_searched"), _whole)
    lists = {"trace": _each(_losses), "widths": _each(_width), "noise": _each(_number)}
    return _built(SearchRecord, {"wider": None, **part}, loss=_number, wider=_or_none(_whole), **counts, **lists)


def _shown(part: Mapping[str, Any]) -> Predictions:
    shown = _built(Predictions, part, truth=_array, predicted=_array, unseen=bool)
    if shown.truth.ndim != 2 or shown.truth.shape != shown.predicted.shape:
        raise ValueError(f"true and predicted values have shapes {shown.truth.shape} and {shown.predicted.shape}")
    return shown


def _origin(part: Mapping[str, Any]) -> Origin:
    kinds = {"source": _text, "features": _each(_text), "target": _text, "seed": _or_none(_whole)}
    return _built(Origin, part, spread=_each(_number), target_spread=_number, advice=_each(_text), **kinds)


def _built(cls: type[Item], part: Mapping[str, Any], **kinds: Callable[[Any], Any]) -> Item:
    """One of our dataclasses from its fields, each of the kind it should be."""
    return cls(**{key: kind(part[key]) for key, kind in kinds.items()})


# -- values -------------------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {type(value).__name__}")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"expected a whole number, got {type(value).__name__}")
    return value


def _number(value: object) -> float:
    if value is not None and not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {type(value).__name__}")
    return float("nan") if value is None else float(value)


def _each(kind: Callable[[Any], Item]) -> Callable[[object], tuple[Item, ...]]:
    """A list of such values."""

    def read(values: object) -> tuple[Item, ...]:
        if not isinstance(values, list):
            raise ValueError(f"expected a list, got {type(values).__name__}")
        return tuple(kind(value) for value in values)

    return read


def _or_none(kind: Callable[[Any], Item]) -> Callable[[Any], Item | None]:
    """Such a value, or null."""
    return lambda value: None if value is None else kind(value)


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
