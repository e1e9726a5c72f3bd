"""Bytes to disk and back: whole or not at all, and never more than fits."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from relumine.results import ModelFileError

__all__ = ["LARGEST", "checked_size", "read_bytes", "write_atomically"]

LARGEST = 1 << 28  # bytes of a model file: 33 million parameters; reading takes about three times that


def write_atomically(target: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old one or the whole new one, also if the machine stops in between."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def checked_size(path: Path, most: int = LARGEST) -> int:
    """The size of a file that exists, is a file (not a pipe, say) and is no larger than ``most``."""
    try:
        if not path.is_file():
            raise ModelFileError(f"no such model file: {path}")
        size = path.stat().st_size
    except (OSError, ValueError) as error:  # names too long or with a null byte; ModelFileError is a ValueError
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{str(path)!r} cannot be opened: {error}") from None
    if size > most:
        raise ModelFileError(f"{path} has {size / 2**20:.0f} MB; files of this kind are read up to {most >> 20} MB")
    return size


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """The content of a file no larger than ``most``."""
    size = checked_size(path, most)
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
