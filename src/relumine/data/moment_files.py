"""Moment sums as safetensors files: written atomically, and checked when they are read, as any file may be damaged."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relumine.arrays import Array
from relumine.formats.files import write_atomically
from relumine.formats.tensors import stored
from relumine.results import ModelFileError

if TYPE_CHECKING:
    from relumine.data.moments import MomentSums


_FORMAT, _VERSION = "relumine.moment-sums", "1"
_NAMES = ("n", "squares", "second", "cross", "matrix")
_LARGEST = (2 << 30) + (1 << 26)  # the largest matrix that MomentSums allows, and the rest


def save_sums(path: str | PathLike[str], sums: MomentSums) -> None:
    """Write sums; a reader sees the old file or the whole new one."""
    from safetensors.numpy import save

    arrays = {name: np.array(part, order="C") for name, part in zip(_NAMES, sums.parts())}
    if sums.baseline is not None:
        arrays["baseline"] = np.array(sums.baseline, order="C")
    meta = {
        "format": _FORMAT,
        "version": _VERSION,
        "d": str(sums.d),
        "order": str(sums.order),
        "estimator": sums.estimator,
    }
    write_atomically(Path(path), save(arrays, metadata=meta))


def load_sums(path: str | PathLike[str]) -> tuple[tuple[int, int, Any], dict[str, Array], Array | None]:
    """(d, order, estimator), the sums by name, and the baseline if there is one; all finite float64 numbers."""
    arrays, meta = stored(Path(path), (*_NAMES, "baseline"), _LARGEST)
    if meta.get("format") != _FORMAT:
        raise ModelFileError(f"{path} is a safetensors file, but does not hold moment sums")
    if meta.get("version") != _VERSION:
        raise ModelFileError(f"{path} has version {meta.get('version')!r}; this relumine reads {_VERSION!r}")
    if missing := set(_NAMES) - set(arrays):
        raise ModelFileError(f"{path} is damaged: missing {', '.join(sorted(missing))}")
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelFileError(f"{path} is damaged: {name} is not finite")
    try:
        settings = int(meta["d"]), int(meta["order"]), meta["estimator"]
    except (KeyError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged: {error}") from None
    return settings, arrays, arrays.pop("baseline", None)


def check_parts(empty: MomentSums, arrays: dict[str, Array]) -> tuple[Array, ...]:
    """The sums in order, if their shapes are those of ``empty``."""
    for name, zero in zip(_NAMES, empty.parts()):
        if arrays[name].shape != zero.shape:
            raise ModelFileError(f"{name} has shape {arrays[name].shape}; these settings give {zero.shape}")
    if arrays["n"] < 0 or arrays["n"] != np.floor(arrays["n"]) or arrays["squares"] < 0:
        raise ModelFileError("a number of rows or a sum of squares is negative or broken")
    return tuple(arrays[name] for name in _NAMES)
