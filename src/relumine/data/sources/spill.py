"""Rows that were slow to parse, kept as plain numbers in a file without a name: the next pass only reads."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.data.sources.chunks import Chunk

_SHARE = 0.5  # of the free space of the disk that may be taken; beyond it rows are parsed again on every pass
_IN_MEMORY = ("tmpfs", "ramfs")


class Spill:
    """A temporary file of rows (x, y, weight). It has no name: the system removes it, also after SIGKILL."""

    def __init__(self, file: IO[bytes], room: int) -> None:
        self.file, self.room, self.written = file, room, 0

    @classmethod
    def begin(cls) -> Spill | None:
        """A file on a disk with space; None where there is none."""
        folder = _disk()
        if folder is None:
            return None
        try:
            return cls(tempfile.TemporaryFile(dir=folder), int(_SHARE * shutil.disk_usage(folder).free))
        except OSError:
            return None

    def add(self, chunk: Chunk) -> bool:
        """Write the rows; False if there is no room, and then nothing is kept."""
        parts = [chunk.X, chunk.Y, *([] if chunk.weight is None else [chunk.weight[:, None]])]
        data = np.concatenate(parts, axis=1, dtype=np.float64)
        self.written += data.nbytes
        try:
            if self.written > self.room:
                raise OSError("no room")
            data.tofile(self.file)
        except OSError:  # a full disk is no reason to fail: the rows can be parsed again
            self.close()
            return False
        return True

    def arrays(self, d: int, q: int, rows: int) -> tuple[Array, Array, Array | None]:
        """X (rows, d), Y (rows, q) and weight (rows,) of the file, mapped; it lives as long as they do."""
        self.file.flush()
        columns = self.written // (8 * rows)
        whole: NDArray[np.float64] = np.memmap(self.file, dtype=np.float64, mode="r", shape=(rows, columns))
        self.close()
        return whole[:, :d], whole[:, d : d + q], whole[:, -1] if columns > d + q else None

    def close(self) -> None:
        """Give the space back."""
        self.file.close()


def _disk() -> str | None:
    """A folder for temporary files that is not in memory: TMPDIR if it is set, else /var/tmp, else the system's."""
    chosen = os.environ.get("TMPDIR")
    for folder in [chosen] if chosen else ["/var/tmp", tempfile.gettempdir()]:
        if os.access(folder, os.W_OK) and (chosen or _file_system(folder) not in _IN_MEMORY):
            return folder
    return None


def _file_system(folder: str) -> str:
    """The kind of file system a folder is on; empty where that cannot be known."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return ""
    here = os.path.realpath(folder)
    above = [(len(at), kind) for at, kind in mounts if os.path.commonpath([at, here]) == at]
    return max(above, default=(0, ""))[1]
