"""What every format holds, and the checks they share."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.results import ModelFileError

Array = NDArray[np.float64]

__all__ = ["ARRAYS", "FORMAT", "VERSION", "Parameters", "check_origin", "check_shape", "digest"]

FORMAT, VERSION = "relumine.network", "1"
ARRAYS = ("W", "b", "a", "v", "c")
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


def digest(arrays: Mapping[str, Array], sigma: str) -> str:
    """A checksum of σ, shapes and values: a changed bit in a file is seen, not loaded."""
    total = sha256(sigma.encode())
    for name in ARRAYS:
        total.update(f"{name}{arrays[name].shape}".encode())
        total.update(np.ascontiguousarray(arrays[name], dtype="<f8").tobytes())
    return total.hexdigest()


def check_origin(where: str, kind: str, form: Any, version: Any) -> None:
    """Whether a file says that it holds a network, in a version known here."""
    if form != FORMAT:
        raise ModelFileError(f"{where} is a {kind} file, but not a relumine network")
    if str(version) != VERSION:
        raise ModelFileError(f"{where} has format version {version!r}; this relumine reads {VERSION!r}; upgrade")


def check_shape(where: str, name: str, shape: tuple[int, ...]) -> None:
    """Whether no side of an array is absurdly long: (0, 10¹⁵) takes no bytes in a file, and its v would."""
    if max(shape, default=0) > _LONGEST:
        raise ModelFileError(f"{where} is damaged: {name} is declared with shape {shape}")
