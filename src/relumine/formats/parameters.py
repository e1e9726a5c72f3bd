"""What every format holds: affine maps with σ between them, and a few words beside the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import numpy as np

from relumine.activations import Activation
from relumine.arrays import Array
from relumine.links import WORDS as LINKS
from relumine.results import Labels, ModelFileError, Status

UNLABELLED: Final = Labels()
VERSION: Final = "1"
WORDS: Final[tuple[str, ...]] = (  # that a file may say beside its arrays
    *("format", "version", "activation", "outputs", "status", "link"),
    *("sha256", "features", "features_sha256"),
)
_LONGEST = 1 << 22  # entries along one side: an array without entries may claim any


class Parameters(NamedTuple):
    """Affine maps (W, b), input side first, with σ between two of them; the last is the output.

    An output W of shape (m,), with a number as b, is a network whose output is a plain number. ``v`` is the linear part
    of the output, of what stands in front of the last hidden layer; None for none. What a reader returns has the right
    kind of numbers; the class that holds a network checks shapes and values.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    v: Array | None = None
    activation: str | Activation = "relu"

    @property
    def sigma(self) -> str:
        """The name of σ."""
        return self.activation if isinstance(self.activation, str) else self.activation.name

    @property
    def plain(self) -> bool:
        """Whether the output is a plain number."""
        return self.weights[-1].ndim == 1

    @classmethod
    def of(cls, weights: Sequence[Array], biases: Sequence[Array], v: Array | None, sigma: str) -> Parameters:
        """From matrices and vectors of another tool: one output becomes a plain number."""
        if len(weights[-1]) == 1:
            weights, biases = [*weights[:-1], weights[-1][0]], [*biases[:-1], biases[-1][0]]
            v = None if v is None else v[0]
        return cls(tuple(weights), tuple(biases), v, sigma)


def digest(arrays: Mapping[str, Array], order: Sequence[str], sigma: str) -> str:
    """A checksum of σ, shapes and values: a changed bit in a file is seen, not loaded."""
    total = sha256(sigma.encode())
    for name in order:
        total.update(f"{name}{arrays[name].shape}".encode())
        total.update(np.ascontiguousarray(arrays[name], dtype="<f8").tobytes())
    return total.hexdigest()


def said(labels: Labels) -> dict[str, str]:
    """Status and link as words for a file, where there are any."""
    return {name: word for name, word in (("status", labels.status), ("link", labels.link)) if word}


def check_said(where: str, words: Mapping[str, str]) -> Labels:
    """Status and link from the words of a file.

    A file without a checksum may come from another program. An unknown word in it is taken for damage.
    """
    if "sha256" not in words and set(words) - set(WORDS):
        raise ModelFileError(f"{where} is damaged: unknown metadata {min(set(words) - set(WORDS))!r} and no checksum")
    status, link = words.get("status", ""), words.get("link", "")
    if status and status not in {known.value for known in Status}:
        raise ModelFileError(f"{where} is damaged: {status!r} is no status")
    if link and link not in LINKS:
        raise ModelFileError(f"{where} is damaged: {link!r} is no link")
    return Labels(status=status, link=link)


def check_shape(where: str, name: str, shape: tuple[int, ...]) -> None:
    """Whether no side of an array is absurdly long: (0, 10¹⁵) takes no bytes in a file, and its v would."""
    if max(shape, default=0) > _LONGEST:
        raise ModelFileError(f"{where} is damaged: {name} is declared with shape {shape}")
