"""Sources that are arrays in files: memory maps, npy and npz. What a header declares is held against the file first."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from relumine.arrays import slices
from relumine.data.sources.checks import RawRows, check_shapes, real_numbers
from relumine.data.sources.columns import Named, pick
from relumine.data.sources.local import LocalSource
from relumine.data.sources.samples import as_samples
from relumine.results import InvalidInput

_DEFLATE = 1032  # times its size is the most that deflate expands; a member that declares more is not what it says


class MappedSource(LocalSource):
    """Arrays that are read slice by slice and never copied as a whole: memory maps, float32 arrays."""

    def __init__(
        self, X: NDArray[Any], y: NDArray[Any], weight: NDArray[Any] | None, where: str = "X", **options: Any
    ) -> None:
        check_shapes(X.shape, y.shape, None if weight is None else weight.shape)
        self.X, self.y, self.weight, self.where = X, y, weight, where
        options.setdefault("label", f"{where} of {len(X)} rows")
        d, q, weighted = X.shape[1], 1 if y.ndim == 1 else y.shape[1], weight is not None
        super().__init__(d, q, vector=y.ndim == 1, n=len(X), weighted=weighted, **options)

    def pieces(self, rows: int) -> Iterator[RawRows]:
        """Copies of slices."""
        # a float32 map is not widened only to be narrowed again
        dtype = self.dtype if self.X.dtype == self.dtype else np.float64
        for s in slices(len(self.X), rows):
            X = np.array(self.X[s], dtype=dtype, order="C")
            Y = np.array(self.y[s], dtype=np.float64).reshape(len(X), self.q)
            weight = None if self.weight is None else np.array(self.weight[s], dtype=np.float64)
            yield RawRows(X, Y, weight, self.where, s.start)


class ColumnsSource(LocalSource):
    """Some columns of one mapped array (n, k) as inputs, others as targets; they are called x0 … x(k−1)."""

    def __init__(self, path: Path, named: Named, **options: Any) -> None:
        self.values, self.path = _map(path), path
        names = npy_names(path, self.values.shape)
        columns = pick(str(path), dict.fromkeys(names), named)
        place = {name: j for j, name in enumerate(names)}
        self.inputs, self.outputs = ([place[c] for c in group] for group in (columns.features, columns.targets))
        self.weight = None if columns.weight is None else place[columns.weight]
        self.kinds = self.kinds._replace(targets=columns.targets)
        super().__init__(
            len(self.inputs),
            len(self.outputs),
            vector=columns.vector,
            n=len(self.values),
            weighted=columns.weight is not None,
            names=columns.features,
            label=str(path),
            **options,
        )

    def pieces(self, rows: int) -> Iterator[RawRows]:
        """Copies of slices, column by column."""
        for s in slices(len(self.values), rows):
            part = np.asarray(self.values[s], dtype=np.float64)
            weight = None if self.weight is None else part[:, self.weight].copy()
            yield RawRows(
                np.ascontiguousarray(part[:, self.inputs]), part[:, self.outputs], weight, str(self.path), s.start
            )


class NpzSource(LocalSource):
    """Members X, y (and sample_weight) of an npz file, read as streams: compressed or not, memory is one chunk's."""

    def __init__(self, path: Path, weight: str | None, targets: bool = True, **options: Any) -> None:
        self.path, self.targets = path, targets
        self.members = ("X", *(("y",) if targets else ()), *(() if weight is None else (weight,)))
        with _open_zip(path) as archive:
            shapes = [_member(archive, name, path).shape for name in self.members]
        n = shapes[0][0] if shapes[0] else 0
        y = shapes[1] if targets else (n, 0)
        check_shapes(shapes[0], y, None if weight is None else shapes[-1])
        d, q, weighted = shapes[0][1], 1 if len(y) == 1 else y[1], weight is not None
        super().__init__(d, q, vector=len(y) == 1, n=n, weighted=weighted, label=str(path), **options)
        self.total = n

    def pieces(self, rows: int) -> Iterator[RawRows]:
        """Rows decoded from the members side by side."""
        with _open_zip(self.path) as archive:
            streams = [_member(archive, name, self.path) for name in self.members]
            for s in slices(self.total, rows):
                k = s.stop - s.start
                X, *rest = (_next_rows(stream, k, f"{self.path}, member") for stream in streams)
                Y = np.asarray(rest.pop(0), dtype=np.float64).reshape(k, self.q) if self.targets else np.empty((k, 0))
                weight = np.asarray(rest[0], dtype=np.float64) if rest else None
                X = X if X.dtype == self.dtype else np.asarray(X, dtype=np.float64)
                yield RawRows(X, Y, weight, str(self.path), s.start)


def open_arrays(X: ArrayLike, y: ArrayLike, weight: ArrayLike | None, **options: Any) -> LocalSource:
    """Arrays as a source: those in memory are checked at once, those that are mapped chunk by chunk."""
    single = options.get("storage") == "float32"
    if not (single or isinstance(X, np.memmap) or isinstance(y, np.memmap)):
        return as_samples(X, y, weight, bad_rows=options["bad_rows"], chunk=options["chunk"])
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    X, y = real_numbers("X", X, copy=False), real_numbers("y", y, copy=False)
    weights = None if weight is None else real_numbers("sample_weight", weight, copy=False)
    if single and not isinstance(X, np.memmap):
        with np.errstate(over="ignore"):  # what does not fit is found, and named, when it is read
            X = np.ascontiguousarray(X, dtype=np.float32)
    return MappedSource(X, y, weights, names=names, **options)


def open_npy(path: Path, y: Any, named: Named, **options: Any) -> LocalSource:
    """``path`` holds X, and y is an array or another npy file; or it holds all columns, called x0, x1, …"""
    if y is None and named.target is None:
        raise InvalidInput(
            f"{path} holds one array",
            argument="y",
            remedy="pass y too (an array or another npy file), or name the target= column among x0, x1, …",
        )
    if named.target is not None:
        return ColumnsSource(path, named, **options)
    labels = _map(Path(y)) if isinstance(y, str | Path) else real_numbers("y", y, copy=False)
    weights = None if named.weight is None else real_numbers("sample_weight", named.weight, copy=False)
    return MappedSource(_map(path), labels, weights, where=str(path), label=str(path), **options)


def open_npz(path: Path, target: Any, weight: Any, **options: Any) -> LocalSource:
    """An npz file with members X and y (``target=[]``: X alone)."""
    if target is not None and list(target):
        raise InvalidInput(f"{path}: the target of an npz file is its member y", argument="target")
    if weight is not None and not isinstance(weight, str):
        raise InvalidInput(f"sample_weight for {path} is the name of a member of the file", argument="sample_weight")
    return NpzSource(path, weight, targets=target is None, **options)


def npy_names(path: Path, shape: Sequence[int] | None = None) -> list[str]:
    """The columns of an npy file, which has no names for them: x0, x1, …"""
    shape = _map(path).shape if shape is None else shape
    if len(shape) != 2 or shape[1] < 1:
        raise InvalidInput(f"{path}: expected rows of numbers (n, k), inputs and target; got shape {tuple(shape)}")
    return [f"x{j}" for j in range(shape[1])]


def npz_members(path: Path) -> list[str]:
    """The names of the arrays in an npz file."""
    with _open_zip(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise InvalidInput(f"{path} is not a readable npz file (truncated or foreign): {error}") from None


class _Member(NamedTuple):
    stream: IO[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _map(path: Path) -> NDArray[Any]:
    """The array of an npy file, mapped: its header is held against the size of the file first."""
    try:
        with path.open("rb") as file:
            _declared(file, str(path), path.stat().st_size)
        return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (OSError, ValueError, EOFError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path} is not a readable npy file (truncated or foreign): {error}") from None


def _declared(stream: IO[bytes], where: str, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array that ``size`` bytes, header and all, can hold."""
    version = npy.read_magic(stream)
    shape, fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)
    if dtype.kind not in "fiub":
        raise InvalidInput(f"{where} must hold real numbers, got dtype {dtype}")
    needed = prod(shape) * dtype.itemsize
    # np.load would ask for that much memory first and look at the file afterwards
    if any(k < 0 for k in shape) or needed > size - stream.tell():
        raise InvalidInput(
            f"{where} is not a readable npy file: its header declares shape {shape}, {needed:.3g} bytes, "
            f"and {max(size - stream.tell(), 0)} bytes follow"
        )
    return shape, fortran, dtype


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> _Member:
    """The stream of a member, after its header; its shape and type."""
    where = f"{path}, member {name!r},"
    try:
        info = archive.getinfo(f"{name}.npy")
        size = min(info.file_size, _DEFLATE * (info.compress_size + 1))
        stream = archive.open(info)
        shape, fortran, dtype = _declared(stream, where, size)
    except KeyError:
        has = ", ".join(n.removesuffix(".npy") for n in archive.namelist())
        raise InvalidInput(f"{path} has no member {name!r}; it has: {has}") from None
    except (ValueError, zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{where} cannot be read: {error}") from None
    if fortran and len(shape) > 1:
        raise InvalidInput(f"{where} is stored by columns", remedy=f"save np.ascontiguousarray({name}) instead")
    return _Member(stream, shape, dtype)


def _next_rows(member: _Member, rows: int, where: str) -> NDArray[Any]:
    wanted = rows * prod(member.shape[1:]) * member.dtype.itemsize
    try:
        data = member.stream.read(wanted)
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{where} cannot be read: {error}") from None
    if len(data) < wanted:
        raise InvalidInput(f"{where} is truncated")
    return np.frombuffer(data, dtype=member.dtype).reshape(rows, *member.shape[1:])
