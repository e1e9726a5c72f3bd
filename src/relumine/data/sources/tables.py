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

from relumine.data.sources.arrays import MappedSource
from relumine.data.sources.checks import RawRows
from relumine.data.sources.chunks import Chunk
from relumine.data.sources.columnar import Arrow, Parquet
from relumine.data.sources.columns import Columns, Named, Text, pick
from relumine.data.sources.csv_files import Csv
from relumine.data.sources.local import LocalSource
from relumine.data.sources.spill import Spill
from relumine.results import InvalidInput

# A reader declares its ``endings`` (and those that only a file ``named`` outright may have), whether it is ``slow`` to
# read again, and gives schema(path) and batches(path, columns, rows, groups).
Reader = Parquet | Arrow | Csv
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_READERS: tuple[type[Reader], ...] = (Parquet, Arrow, Csv)


class TableSource(LocalSource):
    """Files with the same columns, read in the order given; ``groups`` restricts a parquet file to some row groups.

    What is slow to parse is parsed once: the first whole pass keeps its numbers on disk, unless ``spill`` is False.
    """

    def __init__(
        self,
        files: list[str],
        reader: Reader,
        columns: Columns,
        groups: list[int] | None = None,
        spill: bool = True,
        **options: Any,
    ) -> None:
        self.files, self.reader, self.columns, self.groups = files, reader, columns, groups
        self.kinds = self.kinds._replace(targets=columns.targets)
        self.spill = spill and reader.slow
        self.kept: MappedSource | None = None
        if isinstance(reader, Csv):
            self.assumed = reader.dialect.said
            if options.get("bad_rows") == "skip":
                reader.on_bad = self._count
        d, q, weighted = len(columns.features), len(columns.targets), columns.weight is not None
        super().__init__(d, q, vector=columns.vector, weighted=weighted, names=columns.features, **options)

    def _count(self, lines: int) -> None:
        self.skipped += lines

    def pieces(self, rows: int) -> Iterator[RawRows]:
        """The batches of all files."""
        for path in self.files:
            for batch, where, row in self.reader.batches(path, self.columns.all, rows, self.groups):
                yield piece_of(batch, self.columns, where, row, self.dtype)

    def chunks(self, rows: int | None = None) -> Iterator[Chunk]:
        """One pass: over the files, or over the numbers kept of them."""
        if self.kept is not None:
            return self.kept.chunks(rows)
        return self._keeping(super().chunks(rows)) if self.spill else super().chunks(rows)

    def first_chunks(self, rows: int) -> Iterator[Chunk]:
        """Chunks from the beginning; they are not written to disk, as a pass that ends early is not all rows."""
        return super().chunks(rows) if self.kept is None else self.kept.chunks(rows)

    def _keeping(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The same chunks; at the end their numbers are on disk, if it has room."""
        spill = Spill.begin()
        try:
            for chunk in chunks:
                if spill is not None and not spill.add(chunk):
                    spill = None
                yield chunk
            if spill is not None and self.n:
                arrays = spill.arrays(self.d, self.q, self.n)
                self.kept = MappedSource(*arrays, self.label, storage=self.dtype.name, chunk=self.chunk)
        finally:
            if spill is not None:
                spill.close()


def open_tables(
    paths: Any, named: Named, *, delimiter: str | None = None, decimal: str | None = None, **options: Any
) -> TableSource:
    """Find the files, check that all have the columns, and count the rows where the files say."""
    files = find_files(paths)
    reader = reader_of(files, options.get("bad_rows") == "skip", delimiter, decimal)
    columns = choose_columns(files, reader, named)
    n = sum(sum(reader.row_groups(path)) for path in files) if isinstance(reader, Parquet) else None
    several = f" ({len(files)} files)" if len(files) > 1 else ""
    label = f"{paths if isinstance(paths, str | Path) else files[0]}{several}"
    return TableSource(files, reader, columns, n=n, label=label, **options)


@dataclass(frozen=True)
class Look:
    """What a first look at files shows: ``names`` of the columns, and sentences on what was worked out (``said``).

    ``text``: columns that are not numeric, and a cell that shows it; ``mixed``: those of them that hold numbers too;
    ``named``: the file itself has names for its columns.
    """

    names: tuple[str, ...]
    text: dict[str, Text]
    mixed: frozenset[str]
    said: tuple[str, ...]
    named: bool


def look(paths: Any, delimiter: str | None = None, decimal: str | None = None) -> Look:
    """The columns of files, before any is chosen."""
    files = find_files(paths)
    reader = reader_of(files, False, delimiter, decimal)
    schema = reader.schema(files[0])
    text = {name: kind for name, kind in schema.items() if kind is not None}
    # the reader that skips lines takes a column for numeric as soon as it holds a number
    lenient = reader_of(files, True, delimiter, decimal).schema(files[0]) if text else {}
    mixed = frozenset(name for name in text if lenient[name] is None)
    said = reader.dialect.said if isinstance(reader, Csv) else ()
    return Look(tuple(schema), text, mixed, said, not isinstance(reader, Csv) or reader.dialect.named)


def endings() -> tuple[str, ...]:
    """The endings of the files that are looked for in a folder."""
    return tuple(ending for reader in _READERS for ending in reader.endings)


def find_files(paths: Any) -> list[str]:
    """The files of a path, a glob, a directory or a list of these, each group in sorted order."""
    found: list[str] = []
    for entry in [paths] if isinstance(paths, str | Path) else list(paths):
        name = str(entry)
        if not name or "\0" in name:
            raise InvalidInput("the name of the file is empty" if not name else f"a null byte in the name {name!r}")
        if Path(name).is_dir():
            dataset = ds.dataset(name, format="parquet", schema=pa.schema([]))
            here = sorted(f for f in dataset.files if _known(f, named=False))
        elif Path(name).is_file():
            here = [name]
        else:
            here = sorted(f for f in glob.glob(name, recursive=True) if Path(f).is_file())
        if not here and not any(mark in name for mark in "*?[") and not Path(name).is_dir():
            raise InvalidInput(f"no such file: {name}", argument="X", remedy=f"it is looked for in {Path.cwd()}")
        if not here:
            raise InvalidInput(f"no data files at {name} (looked for {', '.join(endings())})", argument="X")
        found.extend(here)
    return found


def reader_of(files: list[str], skip: bool = False, delimiter: str | None = None, decimal: str | None = None) -> Reader:
    """The reader of the files' kind, which the endings tell and must be the same for all."""
    kinds = {_known(f) for f in files}
    if None in kinds:
        odd = next(f for f in files if _known(f) is None)
        known = ", ".join(e for r in _READERS for e in (*r.endings, *r.named) if e.count(".") == 1)
        sheet = odd.lower().endswith(_SHEETS)
        raise InvalidInput(
            f"{odd}: {'spreadsheets cannot be read' if sheet else 'unknown kind of file'}",
            argument="X",
            remedy="save it as csv" if sheet else f"known endings: {known}, .npy, .npz, most of them also compressed",
        )
    if len(kinds) > 1:
        raise InvalidInput(f"the files are of different kinds ({', '.join(sorted(k.name for k in kinds if k))})")
    kind = kinds.pop()
    assert kind is not None
    if kind is Csv:
        return Csv.of(files[0], skip, delimiter, decimal)
    if delimiter is not None or decimal is not None:
        raise InvalidInput(f"delimiter= and decimal= are for text, and {files[0]} is {kind.name}", argument="delimiter")
    return kind()  # type: ignore[call-arg]


def choose_columns(files: list[str], reader: Reader, named: Named) -> Columns:
    """Names from the columns of the first file, checked against all files."""
    columns = pick(files[0], reader.schema(files[0]), named)
    for path in files[1:]:
        pick(path, reader.schema(path), named._replace(features=columns.features, ignore=()))
    return columns


def piece_of(batch: Any, columns: Columns, where: str, row: int, dtype: np.dtype[Any]) -> RawRows:
    """The columns of a record batch as rows of matrices; missing values become NaN."""
    k = batch.num_rows
    X, Y = np.empty((k, len(columns.features)), dtype), np.empty((k, len(columns.targets)))
    with np.errstate(over="ignore"):  # float32: checked later
        for j, name in enumerate(columns.features):
            X[:, j] = _numbers(batch.column(name))
        for j, name in enumerate(columns.targets):
            Y[:, j] = _numbers(batch.column(name))
    weight = None if columns.weight is None else np.array(_numbers(batch.column(columns.weight)), dtype=np.float64)
    return RawRows(X, Y, weight, where, row)


def _numbers(values: Any) -> NDArray[np.floating]:
    if not pa.types.is_floating(values.type) or pa.types.is_float16(values.type):
        values = values.cast(pa.float64())
    return values.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _known(path: str, named: bool = True) -> type[Reader] | None:
    return next((r for r in _READERS if path.lower().endswith((*r.endings, *(r.named if named else ())))), None)
