"""Reading parquet and arrow (ipc, feather) files batch by batch, in memory of one batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from relumine.data.sources.columns import Text
from relumine.results import InvalidInput

Batch = tuple[Any, str, int]  # record batch, where it stands, number of its first row there


@contextmanager
def reading(where: str, kind: str) -> Iterator[None]:
    """Whatever pyarrow finds wrong becomes an error that says where."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        said = " ".join(str(error).split())[:300]
        raise InvalidInput(
            f"{where} cannot be read as {kind} (truncated, damaged or of another kind?): {said}"
        ) from None


def numeric(kind: pa.DataType) -> bool:
    """Whether values of this type are real numbers."""
    t = pa.types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_decimal(kind))


class Parquet:
    """Parquet: row groups are read one after the other, each in batches (a scanner would hold whole row groups)."""

    name = "parquet"
    endings = (".parquet", ".pq")
    named: tuple[str, ...] = ()
    slow = False

    def schema(self, path: str) -> dict[str, Text | None]:
        """Columns, and the type of those that are not numeric."""
        with reading(path, self.name):
            return _types(pq.read_schema(path))

    def row_groups(self, path: str) -> list[int]:
        """Rows in each row group."""
        with reading(path, self.name):
            meta = pq.read_metadata(path)
            return [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]

    def batches(self, path: str, columns: list[str], rows: int, groups: list[int] | None = None) -> Iterator[Batch]:
        """Record batches of at most ``rows`` rows."""
        with reading(path, self.name):
            file = pq.ParquetFile(path, memory_map=False, pre_buffer=False, buffer_size=1 << 16)
        with file:
            for g in range(file.num_row_groups) if groups is None else groups:
                where, row = f"{path}, row group {g}", 0
                with reading(where, self.name):
                    for batch in file.iter_batches(rows, [g], columns, use_threads=False):
                        yield batch, where, row
                        row += batch.num_rows


class Arrow:
    """Arrow ipc files (feather version 2) and streams; their record batches are what row groups are in parquet."""

    name = "arrow"
    endings = (".arrow", ".ipc", ".feather", ".arrows")
    named: tuple[str, ...] = ()
    slow = False

    @contextmanager
    def _open(self, path: str) -> Iterator[tuple[pa.Schema, Iterator[Any]]]:
        with reading(path, self.name), pa.OSFile(path) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            opened = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            parts = (opened.get_batch(i) for i in range(opened.num_record_batches)) if is_file else iter(opened)
            yield opened.schema, parts

    def schema(self, path: str) -> dict[str, Text | None]:
        """Columns, and the type of those that are not numeric."""
        with self._open(path) as (schema, _):
            return _types(schema)

    def batches(self, path: str, columns: list[str], rows: int, groups: list[int] | None = None) -> Iterator[Batch]:
        """Record batches of at most ``rows`` rows."""
        with self._open(path) as (_, parts):
            number = 0
            while True:
                where = f"{path}, record batch {number}"
                with reading(where, self.name):
                    batch = next(parts, None)
                if batch is None:
                    return
                batch = batch.select(columns)
                for row in range(0, batch.num_rows, rows):
                    yield batch.slice(row, rows), where, row
                number += 1


def _types(schema: pa.Schema) -> dict[str, Text | None]:
    repeated = {name for name in schema.names if schema.names.count(name) > 1}
    if repeated:
        raise InvalidInput(f"several columns are called {sorted(repeated)[0]!r}; rename them")
    return {field.name: None if numeric(field.type) else Text(str(field.type)) for field in schema}
