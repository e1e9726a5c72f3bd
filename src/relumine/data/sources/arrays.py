"""Sources that are arrays: in memory, mapped, or in npy and npz files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.data.sources.chunks import LocalSource, Piece, split
from relumine.data.sources.samples import Samples, as_samples
from relumine.results import InvalidInput

Array = NDArray[np.float64]

__all__ = ["ArraySource", "MappedSource", "NpzSource", "open_arrays", "open_npy", "open_npz"]


class ArraySource(LocalSource):
    """Samples in memory, checked when they came in: chunks are views."""

    ahead = 0
    checked = True

    def __init__(self, samples: Samples, names: tuple[str, ...] | None = None, **options: Any) -> None:
        self.samples = samples
        self.Y = samples.y.reshape(samples.n, -1)
        options.setdefault("label", f"arrays of {samples.n} rows")
        super().__init__(samples.d, self.Y.shape[1], vector=samples.y.ndim == 1, n=samples.n, names=names, **options)

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Views of the arrays."""
        return split(self.samples.X, self.Y, self.samples.weight, rows, "X", 0)


class MappedSource(LocalSource):
    """Arrays that are read slice by slice and never copied as a whole: memory maps, float32 arrays."""

    def __init__(
        self, X: NDArray[Any], y: NDArray[Any], weight: NDArray[Any] | None, where: str = "X", **options: Any
    ) -> None:
        _shapes(X.shape, y.shape, None if weight is None else weight.shape)
        for name, array in (("X", X), ("y", y)):
            if array.dtype.kind not in "fiub":
                raise InvalidInput(f"{name} must hold real numbers, got dtype {array.dtype}")
        self.X, self.y, self.weight, self.where = X, y, weight, where
        n = None if options.get("bad_rows") == "skip" or weight is not None else len(X)
        options.setdefault("label", f"{where} of {len(X)} rows")
        super().__init__(X.shape[1], 1 if y.ndim == 1 else y.shape[1], vector=y.ndim == 1, n=n, **options)

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Copies of slices."""
        for start in range(0, len(self.X), rows):
            s = slice(start, start + rows)
            # a float32 map is not widened only to be narrowed again
            X = np.array(self.X[s], dtype=self.dtype if self.X.dtype == self.dtype else np.float64, order="C")
            Y = np.array(self.y[s], dtype=np.float64).reshape(len(X), self.q)
            weight = None if self.weight is None else np.array(self.weight[s], dtype=np.float64)
            yield Piece(X, Y, weight, self.where, start)


class NpzSource(LocalSource):
    """Members X, y (and sample_weight) of an npz file, read as streams: compressed or not, memory is one chunk's."""

    def __init__(self, path: Path, weight: str | None, **options: Any) -> None:
        self.path, self.members = path, ("X", "y") + (() if weight is None else (weight,))
        with self._open() as archive:
            headers = [_header(archive, name, path) for name in self.members]
        shapes = [shape for _, shape, _, _ in headers]
        _shapes(*shapes)
        n = None if options.get("bad_rows") == "skip" or weight is not None else shapes[0][0]
        q = 1 if len(shapes[1]) == 1 else shapes[1][1]
        super().__init__(shapes[0][1], q, vector=len(shapes[1]) == 1, n=n, label=str(path), **options)
        self.total = shapes[0][0]

    def _open(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, OSError) as error:
            raise InvalidInput(f"{self.path} is not a readable npz file (truncated or foreign): {error}") from None

    def pieces(self, rows: int) -> Iterator[Piece]:
        """Rows decoded from the members side by side."""
        with self._open() as archive:
            streams = [_header(archive, name, self.path) for name in self.members]
            for start in range(0, self.total, rows):
                k = min(rows, self.total - start)
                X, y, *weight = (_next_rows(*stream[:3], k, f"{self.path}, member") for stream in streams)
                Y = np.asarray(y, dtype=np.float64).reshape(k, self.q)
                X = X if X.dtype == self.dtype else np.asarray(X, dtype=np.float64)
                yield Piece(X, Y, np.asarray(weight[0], dtype=np.float64) if weight else None, str(self.path), start)


def open_arrays(X: ArrayLike, y: ArrayLike, weight: ArrayLike | None, names: Any, **options: Any) -> LocalSource:
    """Arrays as a source; what is mapped, or to be kept in float32, is checked chunk by chunk, the rest at once."""
    lazy = isinstance(X, np.memmap) or isinstance(y, np.memmap)
    if lazy or options.get("storage") == "float32" or options.get("bad_rows") == "skip":
        for name, value in (("X", X), ("y", y), ("sample_weight", weight)):
            if isinstance(value, np.ma.MaskedArray):
                raise InvalidInput(f"{name} is a masked array; drop or fill its masked rows first")
        X, y = np.asanyarray(X), np.asanyarray(y)
        if X.ndim == 2 and not lazy and X.dtype.kind in "fiub" and options.get("storage") == "float32":
            with np.errstate(over="ignore"):
                X = np.ascontiguousarray(X, dtype=np.float32)
        return MappedSource(X, y, None if weight is None else np.asanyarray(weight), names=names, **options)
    return ArraySource(as_samples(X, y, weight), names, **options)


def open_npy(path: Path, y: Any, weight: ArrayLike | None, **options: Any) -> LocalSource:
    """``path`` holds X; y is an array or the path of another npy file."""
    if y is None:
        raise InvalidInput(f"{path} holds one array, taken as X; pass y too (an array or another npy file)")
    target = _map(Path(y)) if isinstance(y, str | Path) else np.asanyarray(y)
    weights = None if weight is None else np.asanyarray(weight)
    return MappedSource(_map(path), target, weights, where=str(path), label=str(path), **options)


def open_npz(path: Path, weight: Any, **options: Any) -> LocalSource:
    """An npz file with members X and y."""
    if weight is not None and not isinstance(weight, str):
        raise InvalidInput(f"sample_weight for {path} is the name of a member of the file")
    return NpzSource(path, weight, **options)


def _map(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"{path} is not a readable npy file (truncated or foreign): {error}") from None


def _shapes(X: tuple[int, ...], y: tuple[int, ...], weight: tuple[int, ...] | None = None) -> None:
    if len(X) != 2 or X[1] == 0:
        hint = "; for one input use X.reshape(-1, 1)" if len(X) == 1 else ""
        raise InvalidInput(f"X must have shape (n, d), one sample a row; got {X}{hint}")
    if len(y) not in (1, 2) or (len(y) == 2 and y[1] == 0):
        raise InvalidInput(f"y must have shape (n,) or (n, q); got {y}")
    if X[0] != y[0]:
        raise InvalidInput(f"X has {X[0]} rows but y has {y[0]}; they must describe the same samples")
    if weight is not None and weight != (X[0],):
        raise InvalidInput(f"sample_weight must have shape ({X[0]},), one weight a row; got {weight}")


def _header(archive: zipfile.ZipFile, name: str, path: Path) -> tuple[IO[bytes], tuple[int, ...], np.dtype[Any], str]:
    """The stream of a member, after its header; its shape and type."""
    try:
        stream = archive.open(f"{name}.npy")
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except KeyError:
        has = ", ".join(n.removesuffix(".npy") for n in archive.namelist())
        raise InvalidInput(f"{path} has no member {name!r}; it has: {has}") from None
    except (ValueError, zipfile.BadZipFile, OSError, EOFError) as error:
        raise InvalidInput(f"{path}, member {name!r}, cannot be read: {error}") from None
    if dtype.kind not in "fiub":
        raise InvalidInput(f"{path}: {name} must hold real numbers, got dtype {dtype}")
    if fortran and len(shape) > 1:
        raise InvalidInput(f"{path}: {name} is stored by columns; save np.ascontiguousarray({name}) instead")
    return stream, shape, dtype, name


def _next_rows(stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any], rows: int, where: str) -> NDArray[Any]:
    width = int(np.prod(shape[1:], dtype=np.int64))
    wanted = rows * width * dtype.itemsize
    try:
        data = stream.read(wanted)
    except (zipfile.BadZipFile, OSError, EOFError, zipfile.zlib.error) as error:  # type: ignore[attr-defined]
        raise InvalidInput(f"{where} cannot be read: {error}") from None
    if len(data) < wanted:
        raise InvalidInput(f"{where} is truncated")
    return np.frombuffer(data, dtype=dtype).reshape(rows, *shape[1:])
