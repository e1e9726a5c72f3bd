"""Bytes to disk and back: a file is written whole or not at all, and only read if it is not too large."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from relumine.results import ModelFileError, NotWritten

LARGEST = 1 << 28  # bytes of a model file: 33 million parameters; reading takes about three times that
_ELSEWHERE: Final = "name a file elsewhere"
_REMEDIES: Final = (
    ((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), f"free some space, or {_ELSEWHERE}"),
    ((errno.EACCES, errno.EPERM, errno.EROFS), f"allow writing in its folder, or {_ELSEWHERE}"),
    ((errno.ENOENT, errno.ENOTDIR), f"make its folder, or {_ELSEWHERE}"),
)
_OPEN_FILES = Path("/proc/self/fd")  # on Linux


def write_atomically(target: Path, data: bytes | Callable[[BinaryIO], None]) -> None:
    """Write a file so that a reader sees the old one or the whole new one, also if the machine stops in between.

    ``data`` is what to write, or writes it into the open file itself, where that is too much to hold twice.
    Whatever goes wrong, no part of the new file stays behind; what the system refuses is a
    :class:`~relumine.results.NotWritten` that names the file and what to do.
    """
    temporary = target.parent / f".relumine-{secrets.token_hex(8)}"  # in the same folder: only so is a rename atomic
    try:
        try:
            with _new_file(temporary) as file:
                if callable(data):
                    data(file)
                else:
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
                _name(file, temporary)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(target.parent)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        refused = getattr(error, "errno", None)
        remedy = next((words for codes, words in _REMEDIES if refused in codes), _ELSEWHERE)
        why = getattr(error, "strerror", None) or error
        raise NotWritten(f"{target} cannot be written: {why}; {remedy}") from error


def _new_file(path: Path) -> BinaryIO:
    """A new file in the folder of ``path``; without a name, if the system can: a killed run leaves nothing then."""
    if hasattr(os, "O_TMPFILE") and _OPEN_FILES.exists():
        try:
            return os.fdopen(os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o666), "w+b")
        except OSError:
            pass  # not on every file system; what else is wrong shows again below
    return path.open("xb")


def _name(file: BinaryIO, path: Path) -> None:
    """Give a file without a name this one."""
    if path.exists():
        return
    folder = os.open(_OPEN_FILES, os.O_RDONLY)
    try:
        # with a folder for the source, Python follows the link to the open file
        os.link(str(file.fileno()), path, src_dir_fd=folder, follow_symlinks=True)
    except OSError:  # not allowed everywhere
        file.seek(0)
        with path.open("xb") as copy:
            shutil.copyfileobj(file, copy)
            copy.flush()
            os.fsync(copy.fileno())
    finally:
        os.close(folder)


def _sync(folder: Path) -> None:
    """Bring the new name itself to the disk, where folders can be opened and synchronised; the file itself is safe."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
