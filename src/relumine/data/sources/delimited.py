"""Reading csv files block by block: every number to the last bit, every bad line or value named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from relumine.data.sources.columnar import Batch, reading
from relumine.results import InvalidInput

__all__ = ["Csv"]

_NUMBER = r"^\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI]nf(inity)?)\s*$"
_MISSING = ("", "#N/A", "#NA", "N/A", "NA", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "n/a")


class Csv:
    """Comma-separated values with a header; row numbers count the header as row 1.

    ``on_bad``: called with the number of lines left out because they have too many or too few fields; None: such
    lines are errors, and so is text where a number should be.
    """

    name = "csv"
    endings = (".csv", ".csv.gz", ".csv.bz2", ".csv.zst")

    def __init__(self, on_bad: Callable[[int], None] | None = None) -> None:
        self.on_bad = on_bad

    def schema(self, path: str) -> dict[str, str | None]:
        """Columns, and what the first block shows of those that are not numbers."""
        with reading(path, self.name):
            reader = self._reader(path, None, None, 1 << 20)
            names = reader.schema.names
            first = next(iter(reader), None)
        if len(set(names)) < len(names):
            raise InvalidInput(f"{path}: two columns have the same name; rename one")
        if first is None:
            raise InvalidInput(f"{path} has a header but no rows")
        kinds: dict[str, str | None] = {}
        for name in names:
            values, kinds[name] = first.column(name), None
            if (
                pa.types.is_floating(values.type)
                or pa.types.is_integer(values.type)
                or values.null_count == len(values)
            ):
                continue
            kinds[name] = str(values.type)
            if pa.types.is_string(values.type):
                fine = pc.or_(pc.match_substring_regex(values, _NUMBER), pc.is_in(values, pa.array(_MISSING)))
                if self.on_bad is not None and pc.any(fine).as_py():  # the others will be left out
                    kinds[name] = None
                elif (at := pc.index(fine, False).as_py()) >= 0:
                    kinds[name] = f"row {at + 2} has {values[at].as_py()[:60]!r}"
        return kinds

    def row_groups(self, path: str) -> None:
        """Not known without reading."""

    def batches(self, path: str, columns: list[str], rows: int, groups: list[int] | None = None) -> Iterator[Batch]:
        """Record batches of at most ``rows`` rows."""
        kind = pa.float64() if self.on_bad is None else pa.string()
        bad: list[Any] = []
        row = 2
        try:
            for block in self._reader(path, columns, kind, min(max(rows * len(columns) * 20, 1 << 20), 1 << 24), bad):
                whole = block if self.on_bad is None else _only_numbers(block)
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows), path, row + start
                row += whole.num_rows
        except pa.ArrowInvalid as error:
            if bad:
                raise InvalidInput(
                    f"{path}, row {bad[0].number}, has {bad[0].actual_columns} fields instead of "
                    f"{bad[0].expected_columns} ({bad[0].text[:60]!r}); repair it or use bad_rows='skip'"
                ) from None
            self._explain(path, columns)
            with reading(path, self.name):
                raise error

    def _reader(
        self, path: str, columns: list[str] | None, kind: pa.DataType | None, block: int, bad: list[Any] | None = None
    ) -> Any:
        def ragged(row: Any) -> str:
            if self.on_bad is not None:
                self.on_bad(1)
                return "skip"
            if bad is not None:
                bad.append(row)
            return "error" if columns else "skip"

        convert = csv.ConvertOptions(
            include_columns=columns, column_types=None if kind is None else dict.fromkeys(columns or [], kind)
        )
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, block_size=block),
            parse_options=csv.ParseOptions(invalid_row_handler=ragged),
            convert_options=convert,
        )

    def _explain(self, path: str, columns: list[str]) -> None:
        """An error with column and row of the first value that is no number, if there is one."""
        row = 2
        for block in self._reader(path, columns, pa.string(), 1 << 20):
            worst: tuple[int, str, str] | None = None
            for name in columns:
                values = block.column(name)
                fine = pc.or_(pc.match_substring_regex(values, _NUMBER), pc.is_in(values, pa.array(_MISSING)))
                at = pc.index(fine, False).as_py()
                if at >= 0 and (worst is None or at < worst[0]):
                    worst = at, name, values[at].as_py()
            if worst is not None:
                raise InvalidInput(
                    f"{path}: column {worst[1]!r} is {worst[2][:60]!r} in row {row + worst[0]}, not a number; "
                    "repair it, choose other features=, or use bad_rows='skip'"
                )
            row += block.num_rows


def _only_numbers(block: Any) -> Any:
    """Strings as numbers; what is none becomes null."""
    columns = []
    for values in block.columns:
        try:
            columns.append(values.cast(pa.float64()))
        except pa.ArrowInvalid:
            kept = pc.if_else(pc.match_substring_regex(values, _NUMBER), values, None)
            columns.append(pc.utf8_trim_whitespace(kept).cast(pa.float64()))
    return pa.RecordBatch.from_arrays(columns, names=block.schema.names)
