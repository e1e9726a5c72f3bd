"""The file of saved queries, .npz: rows and answers of a box, which way they were asked, and the seed of the run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from relumine.arrays import Array
from relumine.formats.files import write_atomically
from relumine.formats.npz import arrays
from relumine.results import InvalidInput

_MOST_BYTES = 1 << 34  # of a file of saved queries: two million rows of a thousand inputs


class SavedQueries(NamedTuple):
    """``X`` (n, d) and ``y`` (n,) or (n, q); ``way`` and ``seed`` of the run, None in files of other programs."""

    X: Array
    y: Array
    way: str | None
    seed: int | None


def write(file: Path, X: Array, y: Array, way: str, seed: int) -> None:
    """Write the file, atomically. Words and the seed go as numbers: a reader then never meets another type."""
    told = np.array([*way.encode()], dtype=np.float64)
    halves = np.array([seed >> 32, seed & 0xFFFFFFFF], dtype=np.float64)  # a double has only 53 of the 64 bits
    write_atomically(file, lambda stream: np.savez(stream, X=X, y=y, way=told, seed=halves))


def read(file: Path, dim: int) -> SavedQueries:
    """What an earlier run saved about a box of ``dim`` inputs; an error says what else the file holds."""
    found = arrays(file, ("X", "y", "way", "seed"), most=_MOST_BYTES)
    X, y = found.get("X", np.zeros(0)), found.get("y", np.zeros(0))
    if not {"X", "y"} <= set(found) or X.ndim != 2 or y.ndim not in (1, 2) or len(X) != len(y) or 0 in y.shape[1:]:
        held = ", ".join(f"{name} {array.shape}" for name, array in found.items()) or "nothing"
        raise InvalidInput(f"{file} does not hold saved queries, X (n, d) and y (n,) or (n, q): it has {held}")
    if X.shape[1] != dim:
        raise InvalidInput(f"the saved queries in {file} have {X.shape[1]} inputs, the box has {dim}")
    if not len(X):
        raise InvalidInput(f"{file} holds no answers to go on from; name another file, or remove it")
    if np.iscomplexobj(X) or np.iscomplexobj(y) or not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise InvalidInput(f"{file} holds NaN, infinite or complex values")
    way, seed = (np.asarray(found.get(name, [])).ravel()[:16] for name in ("way", "seed"))
    whole = len(seed) == 2 and all(
        ((part >= 0.0) & (part < end)).all() for part, end in ((way, 256.0), (seed, 2.0**32))
    )
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if not whole:
        return SavedQueries(X, y, None, None)
    return SavedQueries(X, y, bytes(way.astype(np.uint8)).decode(errors="replace"), int(seed[0]) << 32 | int(seed[1]))
