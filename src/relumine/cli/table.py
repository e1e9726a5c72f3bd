"""A user's own file as inputs and targets: what the columns are is worked out, and every assumption is said."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from relumine.data.sources import Source, open_source
from relumine.results import InvalidInput

Array = NDArray[np.float64]

__all__ = ["Table", "columns_of", "open_table"]

_HEADS = 1 << 16  # bytes that show the dialect
_LONGEST = 1 << 20  # characters of a line
_ARRAYS = (".npy", ".npz")
_TABLES = (".parquet", ".arrow", ".feather", ".csv")


@dataclass
class Table:
    """Names of the columns and, once chosen, the source to read; ``assumed``: sentences for the user.

    ``text``: columns that are not numeric, and where that shows; ``mixed``: those of them that hold numbers too;
    ``named``: the names are the file's own.
    """

    path: str
    names: list[str]
    text: dict[str, str] = field(default_factory=dict)
    values: Array | None = None  # a csv in another dialect, read here
    assumed: list[str] = field(default_factory=list)
    mixed: frozenset[str] = frozenset()
    named: bool = True

    def column(self, name: str) -> str:
        """The column meant: its name, its name but for case and spaces, or its number from 0."""
        if name in self.names:
            return name
        near = [c for c in self.names if c.strip().casefold() == name.strip().casefold()]
        if len(near) == 1:
            return near[0]
        if name.lstrip("-").isdigit() and len(name) < 10 and -len(self.names) <= int(name) < len(self.names):
            return self.names[int(name)]
        listed = ", ".join(self.names[:12]) + (f", … ({len(self.names)} in all)" if len(self.names) > 12 else "")
        raise InvalidInput(f"{self.path} has no column {name!r}; it has: {listed}")

    def choose(
        self, target: str | None, features: Sequence[str], ignore: Sequence[str], skip_bad_rows: bool = False
    ) -> tuple[list[str], list[str]]:
        """Names of the inputs and of the targets."""
        left_out = {self.column(name) for name in ignore}
        left_out |= {name for name in self.names if not features and _is_index(name, self.names)}
        for name in left_out - {self.column(name) for name in ignore}:
            self.assumed.append(f"left out: the column without a name ({name!r}), it looks like row numbers")
        if target is not None:
            targets = [self.column(name) for name in target.split(",")] if target not in self.names else [target]
        else:
            rest = [c for c in self.names if c not in left_out and c not in features]
            named = [c for c in rest if c.strip() in ("y", "Y")]
            if not rest:
                raise InvalidInput(f"{self.path} leaves no column for the target; name it with --target")
            targets = named[:1] or rest[-1:]
            why = "" if named else ", the last column"
            self.assumed.append(f"target: {targets[0]}{why} (choose with --target)")
        inputs = [self.column(n) for n in features] or [c for c in self.names if c not in left_out and c not in targets]
        for name in (*inputs, *targets):
            if name in self.mixed and skip_bad_rows:
                continue
            if name in self.mixed:
                raise InvalidInput(
                    f"{self.path}: column {name!r} is not all numbers ({self.text[name]}); repair that cell, leave "
                    f"out such rows with --skip-bad-rows, or leave out the column with --ignore {_quoted(name)}"
                )
            if name in self.text:
                raise InvalidInput(
                    f"{self.path}: column {name!r} is not numeric ({self.text[name]}); "
                    f"leave it out with --ignore {_quoted(name)}, or write its categories as numbers"
                )
        if not inputs:
            raise InvalidInput(f"{self.path} has no input columns besides the target {targets[0]!r}")
        return inputs, targets

    def source(self, inputs: list[str], targets: list[str], skip_bad_rows: bool = False) -> Source:
        """The rows."""
        bad = "skip" if skip_bad_rows else "raise"
        if self.values is not None:
            place = {name: j for j, name in enumerate(self.names)}
            X, Y = self.values[:, [place[c] for c in inputs]], self.values[:, [place[c] for c in targets]]
            good = np.isfinite(X).all(axis=1) & np.isfinite(Y).all(axis=1)
            if not good.all() and not skip_bad_rows:
                row = int(np.argmin(good))
                name = next(c for c in (*inputs, *targets) if not np.isfinite(self.values[row, place[c]]))
                raise InvalidInput(
                    f"{self.path}: column {name!r} is missing or not finite in data row {row + 1}; "
                    "fill or drop such rows, or use --skip-bad-rows"
                )
            return open_source(X, Y[:, 0] if len(targets) == 1 else Y, bad_rows=bad)  # type: ignore[arg-type]
        if self.path.lower().endswith(_ARRAYS):
            return open_source(self.path, bad_rows=bad)  # type: ignore[arg-type]
        target = targets[0] if len(targets) == 1 else targets
        return open_source(self.path, target=target, features=inputs, bad_rows=bad)  # type: ignore[arg-type]


def open_table(path: str) -> Table:
    """Look at a file (or a glob, or a folder of files): its kind, its columns, its dialect."""
    if not path or "\0" in path:
        raise InvalidInput("the name of the file is empty" if not path else "the name of the file holds a null byte")
    lower = path.lower()
    if lower.endswith(_ARRAYS):
        return _arrays(path)
    if lower.endswith((".csv", ".tsv", ".txt", ".dat", ".csv.gz")) and os.path.exists(path):
        if not Path(path).is_file():
            raise InvalidInput(f"{path} is not a file")
        odd = _dialect(path)
        if odd is not None:
            return odd
    if os.path.isdir(path):
        path = _inside(path)
    if not os.path.exists(path) and not any(c in path for c in "*?["):
        raise InvalidInput(f"no such file: {path}")
    from relumine.data.sources.tables import find_files, reader_of  # pyarrow, which --help need not load

    files = find_files(path)
    schema = reader_of(files).schema(files[0])
    text = {name: kind for name, kind in schema.items() if kind is not None}
    # the reader that skips lines takes a column for numeric as soon as it holds a number
    lenient = reader_of(files, skip=True).schema(files[0]) if text else {}
    return Table(path, list(schema), text, mixed=frozenset(name for name in text if lenient[name] is None))


def columns_of(text: str | None) -> list[str]:
    """Names separated by commas; quotes allow a comma in a name."""
    if text is None:
        return []
    try:
        names = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise InvalidInput(f"cannot read the names {text[:60]!r}: {error}") from None
    return [name for name in names if name]


def _inside(folder: str) -> str:
    """The data files directly in a folder, as a glob; what lies deeper is not searched for."""
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file() and not entry.name.startswith("."))
    found = {ending for name in names for ending in _TABLES if name.lower().endswith(ending)}
    if len(found) != 1:
        kinds = f"of several kinds ({', '.join(sorted(found))})" if found else f"({', '.join(_TABLES)}) in this folder"
        raise InvalidInput(
            f"{folder}: {'data files ' if found else 'no data files '}{kinds}; name them, as in 'folder/*.csv'"
        )
    return os.path.join(glob.escape(folder), f"*{found.pop()}")


def _arrays(path: str) -> Table:
    if not Path(path).is_file():
        raise InvalidInput(f"no such file: {path}")
    if path.lower().endswith(".npz"):
        d = open_source(path).d
        return Table(path, [*(f"x{j}" for j in range(d)), "y"], named=False)
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InvalidInput(f"{path} is not a readable npy file: {error}") from None
    if values.ndim != 2 or values.shape[1] < 2 or values.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}: expected rows of numbers, inputs and target; got {values.dtype} {values.shape}")
    names = [f"x{j}" for j in range(values.shape[1])]
    table = Table(path, names, values=np.asarray(values, dtype=np.float64), named=False)
    table.assumed.append(f"an array has no names: its columns are called {table.names[0]} … {table.names[-1]}")
    return table


def _dialect(path: str) -> Table | None:
    """A csv that is not plain (no header, another delimiter), read here; None for a plain one."""
    opener = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            raw = file.read(_HEADS)
    except (EOFError, gzip.BadGzipFile) as error:
        raise InvalidInput(f"{path} is not a readable gzip file: {error}") from None
    if b"\0" in raw:
        raise InvalidInput(f"{path} is not text: it holds null bytes (if it is UTF-16, save it as UTF-8)")
    if not raw.strip():
        raise InvalidInput(f"{path} is empty")
    try:
        # a character cut in two at the end of what was read is no error
        lines = codecs.getincrementaldecoder("utf-8-sig")().decode(raw, final=len(raw) < _HEADS).splitlines()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    first = next(line for line in lines if line.strip())
    delimiter = max(",;\t|", key=first.count)
    if not first.count(delimiter):
        delimiter = " " if len(first.split()) > 1 else ","
    head = _fields(first, delimiter)
    header = not all(_number(cell, delimiter) is not None for cell in head)
    twice = [name for name in head if head.count(name) > 1] if header else []
    if twice:
        raise InvalidInput(f"{path}: two columns have the same name {twice[0]!r}; rename one")
    if header and delimiter == "," and path.lower().endswith((".csv", ".csv.gz")):
        return None
    return _read(path, opener, delimiter, head if header else None)


def _read(path: str, opener: object, delimiter: str, header: list[str] | None) -> Table:
    """Row by row, with the line of whatever is wrong."""
    names = header or []
    numbers = array("d")  # eight bytes each, as they will be
    text: dict[str, str] = {}
    with io.TextIOWrapper(opener(path, "rb"), encoding="utf-8-sig", errors="replace") as file:  # type: ignore[operator]
        seen = header is None
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            cells = _fields(line[:_LONGEST], delimiter)
            if not seen:
                seen = True
                continue
            names = names or [f"x{j}" for j in range(len(cells))]
            if len(cells) != len(names):
                raise InvalidInput(f"{path}, line {number}: {len(cells)} fields instead of {len(names)}")
            values = [_number(cell, delimiter) for cell in cells]
            for name, cell, value in zip(names, cells, values, strict=True):
                if value is None:
                    text.setdefault(name, f"line {number} has {cell[:40]!r}")
            numbers.extend(np.nan if value is None else value for value in values)
    if not numbers:
        raise InvalidInput(f"{path} has a header but no rows")
    values_read = np.array(numbers).reshape(-1, len(names))
    some = np.isfinite(values_read).any(axis=0)
    mixed = frozenset(name for name, any_number in zip(names, some, strict=True) if name in text and any_number)
    table = Table(path, names, text, values_read, mixed=mixed, named=header is not None)
    if header is None:
        table.assumed.append(f"no header: the first line holds numbers, so columns are called {names[0]} … {names[-1]}")
    if delimiter != ",":
        said = {"\t": "tabs", " ": "spaces"}.get(delimiter, repr(delimiter))
        table.assumed.append(f"columns are separated by {said}")
    return table


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error as error:
        raise InvalidInput(f"a line cannot be split at {delimiter!r}: {error}") from None


def _number(cell: str, delimiter: str) -> float | None:
    """The number in a cell, NaN for a missing one, None for text; with ';' a comma is a decimal point."""
    if cell.casefold() in ("", "na", "n/a", "nan", "null"):
        return float("nan")
    try:
        return float(cell.replace(",", ".") if delimiter == ";" else cell)
    except ValueError:
        return None


def _is_index(name: str, names: list[str]) -> bool:
    return name == names[0] and (not name.strip() or name == "Unnamed: 0")


def _quoted(name: str) -> str:
    return f"'{name}'" if any(c.isspace() or c in '"$&;()<>|*?' for c in name) else name
