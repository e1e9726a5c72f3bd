"""Reading tables of text block by block: every number to the last bit, every bad line or value named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from relumine.data.sources.columnar import Batch, reading
from relumine.data.sources.columns import EMPTY, MOST, PLAINLY, TEXT, Text
from relumine.data.sources.dialect import MISSING, Dialect, comment_lines, open_text, sniff
from relumine.results import InvalidInput

# A number that is not written plainly, and a date or a time
_ADORNED = r"^[\s+\-$€£¥%]*\d+([.,'’\s ]\d{3})*([.,]\d+)?[\s%$€£¥]*$"
_WITH_UNIT = r"^[\s+-]*\d+([.,]\d+)?\s?[^\W\d_]{1,5}$"  # 12 kg; but 3rd, 4th are categories
_DATE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|^\d{1,2}:\d{2}"
_MARKS = {".": r"^\s*[+-]?\d+,(\d{1,2}|\d{4,})\s*$", ",": r"^\s*[+-]?\d+[.](\d{1,2}|\d{4,})\s*$"}  # the other one
_COUNTED = "put a number in its place (days since the first, say)"
_REMEDIES = {_ADORNED: PLAINLY, _DATE: _COUNTED, r"^=": "save its values, not its formulas"}
_PACKED = (".gz", ".bz2", ".zst")
_BLOCK = 1 << 24  # bytes parsed at once: a line must fit, and more is memory
_LINES_IN_BLOCK = 4  # of the longest line seen: a block must hold a line whole, and later ones may be longer


class Csv:
    """Separated values, with or without a header (which counts as row 1).

    ``on_bad``: called with the number of lines left out because they have too many or too few fields; None: such
    lines are errors, and so is text where a number should be.
    """

    name = "csv"
    endings = tuple(f".{kind}{packed}" for kind in ("csv", "tsv") for packed in ("", *_PACKED))
    named = tuple(f".{kind}{packed}" for kind in ("txt", "dat") for packed in ("", *_PACKED))
    slow = True  # to read again: parsing takes longer than reading the numbers

    def __init__(self, dialect: Dialect, on_bad: Callable[[int], None] | None = None) -> None:
        self.dialect, self.on_bad = dialect, on_bad
        self.skipped: dict[str, int] = {}  # comments at the top of each file: parts of one table may have other ones
        point = "[.]" if dialect.decimal == "." else ","
        self.number = rf"^\s*[+-]?((\d+{point}?\d*|{point}\d+)([eE][+-]?\d+)?|[iI]nf(inity)?)\s*$"
        self.block = min(max(_BLOCK, _LINES_IN_BLOCK * dialect.line), (1 << 31) - 1)

    @classmethod
    def of(cls, path: str, skip: bool, delimiter: str | None = None, decimal: str | None = None) -> Csv:
        """The reader of a file, whose dialect is worked out where it is not given, and of others like it."""
        return cls(sniff(path, delimiter, decimal), (lambda lines: None) if skip else None)

    def of_file(self, path: str) -> Dialect:
        """How a file is written: like the first one, but for the comments at its top."""
        if path not in self.skipped:
            self.skipped[path] = comment_lines(path)
        return replace(self.dialect, skipped=self.skipped[path])

    def schema(self, path: str) -> dict[str, Text | None]:
        """Columns, and what the first block shows of those that are not numbers.

        A column without name and values, which a mark at the end of every line makes, is none.
        """
        with reading(path, self.name):
            try:
                with self._reader(path, None, None) as reader:  # closed: it reads ahead in a thread of its own
                    names, first = reader.schema.names, next(iter(reader), None)
            except pa.ArrowInvalid as error:
                self._fits(path, error)
                raise
        if first is None:
            raise InvalidInput(f"{path} has a header but no rows")
        kept = [j for j, name in enumerate(names) if name.strip() or first.column(j).null_count < first.num_rows]
        called = [names[j] for j in kept]
        if (unnamed := sum(not name.strip() for name in called)) > 1:
            raise InvalidInput(
                f"{path}: row {self.of_file(path).first_row - 1} has no name for {unnamed} of {len(called)} columns",
                remedy="its first line must be the names of the columns: remove titles above it",
            )
        twice = sorted(name for name, times in Counter(called).items() if times > 1)
        if twice:
            raise InvalidInput(f"{path}: two columns have the same name {twice[0]!r}", remedy="rename one")
        whole = not path.lower().endswith(_PACKED) and Path(path).stat().st_size <= self.block
        row = self.of_file(path).first_row
        return {names[j]: self._kind(first.column(j), row, whole) for j in kept}

    def _kind(self, values: Any, row: int, whole: bool) -> Text | None:
        """None for numbers, else what shows that they are none; ``row``: of the first; ``whole``: these are all."""
        t = pa.types
        if values.null_count == len(values):
            return Text(EMPTY, "") if whole else None
        if t.is_floating(values.type) or t.is_integer(values.type):
            return None
        if t.is_binary(values.type):
            return Text("it holds letters that are not UTF-8", "save the file in UTF-8")
        if not t.is_string(values.type):
            first = next(value for value in values.to_pylist() if value is not None)
            return Text(f"it holds {first}", _COUNTED if t.is_temporal(values.type) else TEXT)
        fine = self._numbers(values)
        if self.on_bad is not None and pc.any(pc.match_substring_regex(values, self.number)).as_py():
            return None  # the others will be left out
        at = pc.index(fine, False).as_py()
        if at < 0:
            return Text(str(values.type))
        cell = values[at].as_py()
        remedy = next((remedy for pattern, remedy in _REMEDIES.items() if re.match(pattern, cell)), TEXT)
        if re.match(_WITH_UNIT, cell) and pc.count_distinct(values).as_py() > MOST:
            remedy = PLAINLY
        if re.match(_MARKS[self.dialect.decimal], cell):
            remedy = f"write all numbers with the same decimal mark (here it was taken to be {self.dialect.decimal!r})"
        return Text(f"row {row + at} has {cell[:60]!r}", remedy)

    def _numbers(self, values: Any) -> Any:
        return pc.or_(pc.match_substring_regex(values, self.number), pc.is_in(values, pa.array(MISSING)))

    def batches(self, path: str, columns: list[str], rows: int, groups: list[int] | None = None) -> Iterator[Batch]:
        """Record batches of at most ``rows`` rows."""
        kind = pa.float64() if self.on_bad is None else pa.string()
        bad: list[Any] = []
        row = self.of_file(path).first_row
        try:
            for whole in self._reader(path, columns, kind, bad):
                whole = whole if self.on_bad is None else self.only_numbers(whole)
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows), path, row + start
                row += whole.num_rows
        except pa.ArrowInvalid as error:
            if bad:
                raise InvalidInput(
                    f"{path}, row {bad[0].number}, has {bad[0].actual_columns} fields instead of "
                    f"{bad[0].expected_columns} ({bad[0].text[:60]!r})",
                    argument="bad_rows",
                    remedy="repair it or use bad_rows='skip'",
                ) from None
            self._fits(path, error)
            self._explain(path, columns)
            with reading(path, self.name):
                raise error

    def texts(self, path: str, columns: list[str]) -> Iterator[Batch]:
        """Record batches with every value as it is written."""
        row = self.of_file(path).first_row
        with reading(path, self.name):
            for block in self._reader(path, columns, pa.string()):
                yield block, path, row
                row += block.num_rows

    def _reader(
        self, path: str, columns: list[str] | None, kind: pa.DataType | None, bad: list[Any] | None = None
    ) -> Any:
        def ragged(row: Any) -> str:
            if self.on_bad is not None:
                self.on_bad(1)
                return "skip"
            if bad is not None:
                bad.append(row)
            return "error" if columns else "skip"

        return csv.open_csv(
            open_text(path, self.dialect.encoding, squeeze=self.dialect.delimiter == " "),
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=self.block,
                column_names=self.dialect.names,
                skip_rows=self.of_file(path).skipped,
            ),
            parse_options=csv.ParseOptions(delimiter=self.dialect.delimiter, invalid_row_handler=ragged),
            convert_options=csv.ConvertOptions(
                include_columns=columns,
                column_types=None if kind is None else dict.fromkeys(columns or [], kind),
                decimal_point=self.dialect.decimal,
                null_values=list(MISSING),
            ),
        )

    def _explain(self, path: str, columns: list[str]) -> None:
        """An error with column and row of the first value that is no number, if there is one."""
        row = self.of_file(path).first_row
        for block in self._reader(path, columns, pa.string()):
            worst: tuple[int, str, str] | None = None
            for name in columns:
                values = block.column(name)
                at = pc.index(self._numbers(values), False).as_py()
                if at >= 0 and (worst is None or at < worst[0]):
                    worst = at, name, values[at].as_py()
            if worst is not None:
                raise InvalidInput(
                    f"{path}: column {worst[1]!r} is {worst[2][:60]!r} in row {row + worst[0]}, not a number",
                    argument="features",
                    remedy="repair it, choose other features=, or use bad_rows='skip'",
                )
            row += block.num_rows

    def _fits(self, path: str, error: pa.ArrowInvalid) -> None:
        """If a line does not fit in a block, an error that names it."""
        if "straddling" not in str(error):
            return
        line, length, longest = 1, 0, (0, 0)
        with open_text(path, self.dialect.encoding) as stream:
            while data := stream.read(1 << 20):
                for k, part in enumerate(data.split(b"\n")):
                    if k:
                        line, length = line + 1, 0
                    length += len(part)
                    longest = max(longest, (length, line))
        raise InvalidInput(
            f"{path}, line {longest[1]}, has {longest[0]} bytes, more than fits in a block of {self.block}",
            remedy="shorten it, or leave out its long text",
        )

    def only_numbers(self, block: Any) -> Any:
        """Strings as numbers; what is none becomes null."""
        columns = []
        for values in block.columns:
            kept = pc.if_else(pc.match_substring_regex(values, self.number), values, None)
            if self.dialect.decimal != ".":
                kept = pc.replace_substring(kept, self.dialect.decimal, ".")
            columns.append(pc.utf8_trim_whitespace(kept).cast(pa.float64()))
        return pa.RecordBatch.from_arrays(columns, names=block.schema.names)
