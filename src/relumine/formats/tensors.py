"""safetensors, the native format: float64 tensors W, b, a, v, c; what they are and a checksum in the metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np

from relumine.formats.files import checked_size
from relumine.formats.parameters import ARRAYS, UNLABELLED, Labels, Parameters, check_meta, check_origin, signed
from relumine.results import ModelFileError

__all__ = ["read", "to_bytes"]

_HEADER = 1 << 16  # ours has some 500 bytes, and the names of the inputs
_NAMES = 1 << 15  # bytes of names that are kept


def to_bytes(p: Parameters, labels: Labels = UNLABELLED) -> bytes:
    """The file's content; names of the d inputs are kept beside the numbers unless they are too long."""
    from safetensors.numpy import save

    arrays = p.arrays()
    meta = signed(arrays, p.sigma, labels)
    # names have a checksum of their own: that of the numbers stays what earlier versions expect
    text = json.dumps(labels.features)
    if len(labels.features) == arrays["W"].shape[1] and len(json.dumps(text)) < _NAMES:
        meta |= {"features": text, "features_sha256": sha256(text.encode()).hexdigest()}
    return bytes(save(arrays, metadata=meta))


def read(path: Path) -> tuple[Parameters, Labels]:
    """Read W, b, a, v, c and the labels; the library checks every declared shape against the bytes there are."""
    from safetensors import SafetensorError, safe_open

    size = checked_size(path)
    try:
        with path.open("rb") as file:
            declared = int.from_bytes(file.read(8), "little")
        if size < 8 or declared > size - 8:
            raise SafetensorError("it ends before its header does")
        if declared > _HEADER:
            raise ModelFileError(f"{path} is a safetensors file, but not a relumine network: its header is too long")
        with safe_open(str(path), framework="numpy") as file:
            meta = file.metadata() or {}
            check_origin(str(path), "safetensors", meta.get("format"), meta.get("version"))
            missing = set(ARRAYS) - set(file.keys())
            if missing:
                raise ModelFileError(f"{path} is damaged: missing {', '.join(sorted(missing))}")
            wrong = [k for k in ARRAYS if file.get_slice(k).get_dtype() != "F64"]
            if wrong:
                raise ModelFileError(f"{path} is damaged: {', '.join(wrong)} not float64")
            arrays = {k: np.asarray(file.get_tensor(k)) for k in ARRAYS}
    except ModelFileError:
        raise
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a readable safetensors file (truncated or foreign): {error}") from error
    p = Parameters(**arrays, activation=meta.get("activation", "relu"))
    return p, check_meta(str(path), meta, p)._replace(features=_names(path, meta, p))


def _names(path: Path, meta: Mapping[str, str], p: Parameters) -> tuple[str, ...]:
    """Names of the inputs, as they were kept with the network; none if there are none."""
    text = meta.get("features")
    if text is None:
        return ()
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    intact = sha256(text.encode()).hexdigest() == meta.get("features_sha256")
    known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not intact or not known or p.W.ndim != 2 or len(names) != p.W.shape[1]:
        raise ModelFileError(f"{path} is damaged: the names of its inputs do not match their checksum")
    return tuple(names)
