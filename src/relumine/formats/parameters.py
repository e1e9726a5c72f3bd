"""What every format holds, and the checks they share."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.links import WORDS
from relumine.results import Labels, ModelFileError, Status

Array = NDArray[np.float64]

__all__ = [
    "ARRAYS",
    "FORMAT",
    "UNLABELLED",
    "Labels",
    "Parameters",
    "check_meta",
    "check_origin",
    "check_said",
    "check_shape",
    "described",
    "said",
    "signed",
]

FORMAT, VERSION = "relumine.network", "1"
ARRAYS = ("W", "b", "a", "v", "c")
_KNOWN = {"format", "version", "activation", "status", "link", "features", "features_sha256"}
_LONGEST = 1 << 22  # entries along one side: an array without entries may claim any


class Parameters(NamedTuple):
    """W (m, d), b (m,), a (m,) or (q, m), v (d,) or (q, d), c () or (q,), and σ or its name.

    What a reader returns has the right kind of numbers; :class:`~relumine.network.Network` checks shapes and values.
    """

    W: Array
    b: Array
    a: Array
    v: Array | None
    c: Array | None
    activation: str | Activation = "relu"

    @property
    def sigma(self) -> str:
        """The name of σ."""
        return self.activation if isinstance(self.activation, str) else self.activation.name

    def arrays(self) -> dict[str, Array]:
        """The arrays by name, contiguous; v and c must be there."""
        return {name: np.array(getattr(self, name), dtype=np.float64, order="C") for name in ARRAYS}


UNLABELLED: Final = Labels()


def digest(arrays: Mapping[str, Array], sigma: str) -> str:
    """A checksum of σ, shapes and values: a changed bit in a file is seen, not loaded."""
    total = sha256(sigma.encode())
    for name in ARRAYS:
        total.update(f"{name}{arrays[name].shape}".encode())
        total.update(np.ascontiguousarray(arrays[name], dtype="<f8").tobytes())
    return total.hexdigest()


def described(sigma: str, labels: Labels) -> dict[str, str]:
    """What a file says of itself: its format, σ, how the recovery ended, the link."""
    return {"format": FORMAT, "version": VERSION, "activation": sigma, **said(labels)}


def said(labels: Labels) -> dict[str, str]:
    """Status and link, where there are any."""
    return {name: word for name, word in (("status", labels.status), ("link", labels.link)) if word}


def signed(arrays: Mapping[str, Array], sigma: str, labels: Labels) -> dict[str, str]:
    """The same with a checksum of the numbers."""
    return {**described(sigma, labels), "sha256": digest(arrays, sigma)}


def check_origin(where: str, kind: str, form: Any, version: Any) -> None:
    """Whether a file says that it holds a network, in a version known here."""
    if form != FORMAT:
        raise ModelFileError(f"{where} is a {kind} file, but not a relumine network")
    if str(version) != VERSION:
        raise ModelFileError(f"{where} has format version {version!r}; this relumine reads {VERSION!r}; upgrade")


def check_meta(where: str, meta: Mapping[str, str], p: Parameters) -> Labels:
    """The labels of a file whose numbers match its checksum.

    A file without a checksum may come from another program; but then a key that nobody writes is a damaged one.
    """
    if "sha256" in meta and meta["sha256"] != digest(p.arrays(), p.sigma):
        raise ModelFileError(f"{where} is damaged: its numbers do not match its checksum")
    if "sha256" not in meta and set(meta) - _KNOWN:
        raise ModelFileError(f"{where} is damaged: unknown metadata {sorted(set(meta) - _KNOWN)[0]!r} and no checksum")
    return check_said(where, meta)


def check_said(where: str, meta: Mapping[str, str]) -> Labels:
    """Status and link as a file says them."""
    status, link = meta.get("status", ""), meta.get("link", "")
    if status and status not in {known.value for known in Status}:
        raise ModelFileError(f"{where} is damaged: {status!r} is no status")
    if link and link not in WORDS:
        raise ModelFileError(f"{where} is damaged: {link!r} is no link")
    return Labels(status=status, link=link)


def check_shape(where: str, name: str, shape: tuple[int, ...]) -> None:
    """Whether no side of an array is absurdly long: (0, 10¹⁵) takes no bytes in a file, and its v would."""
    if max(shape, default=0) > _LONGEST:
        raise ModelFileError(f"{where} is damaged: {name} is declared with shape {shape}")
