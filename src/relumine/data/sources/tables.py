"""Sources that are files with named columns: parquet, csv, arrow; one file, many, a glob or a directory."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from numpy.typing import NDArray

from relumine.data.sources.chunks import LocalSource, Piece
from relumine.data.sources.columnar import Arrow, Parquet
from relumine.data.sources.delimited import Csv
from relumine.results import InvalidInput

__all__ = ["Columns", "TableSource", "choose_columns", "find_files", "open_tables", "pick", "reader_of"]

Reader = Parquet | Arrow | Csv
_READERS = (Parquet, Arrow, Csv)


@dataclass(frozen=True)
class Columns:
    """Which columns are inputs, targets and weight; ``vector``: y is (n,)."""

    features: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    vector: bool

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *self.targets, *([] if self.weight is None else [self.weight])]


class TableSource(LocalSource):
    """Files with the same columns, read in the order given; ``groups`` restricts a parquet file to some row groups."""

    def __init__(
        self, files: list[str], reader: Reader, columns: Columns, groups: list[int] | None = None, **options: Any
    ) -> None:
        self.files, self.reader, self.columns, self.groups = files, reader, columns, groups
        self.targets = columns.targets
        if isinstance(reader, Csv) and options.get("bad_rows") == "skip":
            reader.on_bad = self._count
        super().__init__(
            len(columns.features), len(columns.targets), vector=columns.vector, names=columns.features, **options
        )

    def _count(self, lines: int) -> None:
        self.skipped += lines

    def pieces(self, rows: int) -> Iterator[Piece]:
        """The batches of all files."""
        for path in self.files:
            for batch, where, row in self.reader.batches(path, self.columns.all, rows, self.groups):
                yield piece_of(batch, self.columns, where, row, self.dtype)


def open_tables(paths: Any, target: Any, features: Any, weight: Any, **options: Any) -> TableSource:
    """Find the files, check that all have the columns, and count the rows where the files say."""
    files = find_files(paths)
    reader = reader_of(files, options.get("bad_rows") == "skip")
    columns = choose_columns(files, reader, target, features, weight)
    n = None
    if isinstance(reader, Parquet) and options.get("bad_rows") != "skip" and weight is None:
        n = sum(sum(reader.row_groups(path)) for path in files)
    several = f" ({len(files)} files)" if len(files) > 1 else ""
    label = f"{paths if isinstance(paths, str | Path) else files[0]}{several}"
    return TableSource(files, reader, columns, n=n, label=label, **options)


def find_files(paths: Any) -> list[str]:
    """The files of a path, a glob, a directory or a list of these, each group in sorted order."""
    found: list[str] = []
    for entry in [paths] if isinstance(paths, str | Path) else list(paths):
        name = str(entry)
        if Path(name).is_dir():
            here = sorted(f for f in ds.dataset(name, format="parquet", schema=pa.schema([])).files if _known(f))
        elif Path(name).is_file():
            here = [name]
        else:
            here = sorted(f for f in glob.glob(name, recursive=True) if Path(f).is_file())
        if not here:
            kinds = ", ".join(e for r in _READERS for e in r.endings)
            raise InvalidInput(f"no data files at {name} (looked for {kinds})")
        found.extend(here)
    return found


def reader_of(files: list[str], skip: bool = False) -> Reader:
    """The reader of the files' kind, which the endings tell and must be the same for all."""
    kinds = {_known(f) for f in files}
    if None in kinds:
        odd = next(f for f in files if _known(f) is None)
        known = ", ".join(e for r in _READERS for e in r.endings)
        raise InvalidInput(f"{odd}: unknown kind of file; known endings: {known}, .npy, .npz")
    if len(kinds) > 1:
        raise InvalidInput(f"the files are of different kinds ({', '.join(sorted(k.name for k in kinds if k))})")
    kind = kinds.pop()
    assert kind is not None
    return Csv(lambda lines: None) if kind is Csv and skip else kind()


def choose_columns(files: list[str], reader: Reader, target: Any, features: Any, weight: Any) -> Columns:
    """Names from the columns of the first file, checked against all files."""
    columns = pick(files[0], reader.schema(files[0]), target, features, weight)
    for path in files[1:]:
        pick(path, reader.schema(path), target, columns.features, weight)
    return columns


def pick(where: str, schema: dict[str, str | None], target: Any, features: Any, weight: Any) -> Columns:
    """Columns by name from those that there are (name: None, or what a column is that is not numeric)."""
    if target is None:
        raise InvalidInput(f"name the target= column of {where}; it has: {_listed(schema)}")
    if weight is not None and not isinstance(weight, str):
        raise InvalidInput("sample_weight for files and dataframes is the name of a column")
    targets = (target,) if isinstance(target, str) else tuple(target)
    inputs = tuple(c for c in schema if c not in targets and c != weight) if features is None else tuple(features)
    columns = Columns(inputs, targets, weight, isinstance(target, str))
    missing = [c for c in columns.all if c not in schema]
    if missing:
        raise InvalidInput(f"{where} has no column {missing[0]!r}; it has: {_listed(schema)}")
    if not inputs or not targets:
        raise InvalidInput(f"at least one feature and one target column are needed; {where} has: {_listed(schema)}")
    twice = {c for c in columns.all if columns.all.count(c) > 1}
    if twice:
        raise InvalidInput(f"column {sorted(twice)[0]!r} is named twice among features, target and sample_weight")
    for c in columns.all:
        if schema[c] is not None:
            raise InvalidInput(
                f"{where}: column {c!r} is not numeric ({schema[c]}); leave it out with features=[…] or encode it"
            )
    return columns


def piece_of(batch: Any, columns: Columns, where: str, row: int, dtype: np.dtype[Any]) -> Piece:
    """The columns of a record batch as rows of matrices; missing values become NaN."""
    k = batch.num_rows
    X, Y = np.empty((k, len(columns.features)), dtype), np.empty((k, len(columns.targets)))
    with np.errstate(over="ignore"):  # float32: checked later
        for j, name in enumerate(columns.features):
            X[:, j] = _numbers(batch.column(name))
        for j, name in enumerate(columns.targets):
            Y[:, j] = _numbers(batch.column(name))
    weight = None if columns.weight is None else np.array(_numbers(batch.column(columns.weight)), dtype=np.float64)
    return Piece(X, Y, weight, where, row)


def _numbers(values: Any) -> NDArray[np.floating]:
    if not pa.types.is_floating(values.type) or pa.types.is_float16(values.type):
        values = values.cast(pa.float64())
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _known(path: str) -> type[Reader] | None:
    return next((r for r in _READERS if path.lower().endswith(r.endings)), None)


def _listed(schema: dict[str, str | None]) -> str:
    names = list(schema)
    return ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
