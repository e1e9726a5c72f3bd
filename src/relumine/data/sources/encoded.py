"""Tables whose columns are not all numbers: categories become columns of 0 and 1, gaps become medians, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.data.sources.checks import Kinds, RawRows, check_rows
from relumine.data.sources.columns import EMPTY, MOST, Columns, Named, Text, frame_schema, pick
from relumine.data.sources.csv_files import Csv
from relumine.data.sources.samples import Samples, as_samples
from relumine.data.sources.tables import find_files, reader_of
from relumine.results import InvalidInput, counted

Levels = bool | Mapping[str, list[str]]  # whether text is turned into columns, or which texts of which column are


def encoded_files(paths: Any, named: Named, one_hot: Levels, impute: str | None, **options: Any) -> Samples:
    """The columns of files, read into memory."""
    dialect = {name: options.pop(name, None) for name in ("delimiter", "decimal")}
    files, skip = find_files(paths), options["bad_rows"] == "skip"
    reader = reader_of(files, skip, **dialect)
    schema = reader.schema(files[0])
    columns = pick(files[0], _allowed(schema, named, one_hot), named)
    parts = []
    for path in files:
        blocks = (
            reader.texts(path, columns.all) if isinstance(reader, Csv) else reader.batches(path, columns.all, 1 << 16)
        )
        for block, *_ in blocks:
            numbers = [name for name in columns.all if schema[name] is None]
            if isinstance(reader, Csv) and numbers:
                found = reader.only_numbers(block.select(numbers))
                block = pa.RecordBatch.from_arrays(
                    [found.column(c) if c in numbers else block.column(c) for c in columns.all], names=columns.all
                )
            parts.append(block)
    whole = pa.Table.from_batches(parts)
    values = {name: whole.column(name).to_numpy() for name in columns.all}
    first_row = reader.of_file(files[0]).first_row if isinstance(reader, Csv) else 0
    place = files[0] if len(files) == 1 else "all files together", first_row
    text = {c for c in columns.features if schema[c] is not None}
    return _samples(values, columns, text, one_hot, impute, options, place)


def encoded_frame(frame: Any, named: Named, one_hot: Levels, impute: str | None, **options: Any) -> Samples:
    """The columns of a dataframe in memory."""
    schema = frame_schema(frame)
    columns = pick("the dataframe", _allowed(schema, named, one_hot), named)
    values = {name: frame[name].to_numpy() for name in columns.all}
    text = {c for c in columns.features if schema[c] is not None}
    return _samples(values, columns, text, one_hot, impute, options, ("", 0))


def _allowed(schema: dict[str, Text | None], named: Named, one_hot: Levels) -> dict[str, Text | None]:
    """The schema in which text may be an input, but neither target nor weight; a column without values stays none."""
    own = {named.weight, *([named.target] if isinstance(named.target, str) else named.target or ())}
    empty = {name for name, kind in schema.items() if kind is not None and kind.holds == EMPTY}
    return {name: kind if name in own | empty or not one_hot else None for name, kind in schema.items()}


def _samples(
    values: dict[str, NDArray[Any]],
    columns: Columns,
    text: set[str],
    one_hot: Levels,
    impute: str | None,
    options: dict[str, Any],
    place: tuple[str, int],
) -> Samples:
    """All columns as numbers, under the names they then have; what was done is in ``assumed``."""
    named: dict[str, Array] = {}
    said: list[str] = []
    for name in columns.features:
        if name in text:
            wanted = None if isinstance(one_hot, bool) else list(one_hot[name])
            named |= _indicators(name, values[name], wanted, said, place if options["bad_rows"] == "raise" else None)
        else:
            column = np.array(values[name], dtype=np.float64)
            named[name] = _filled(name, column, said) if impute == "median" else column
    n = len(next(iter(named.values())))
    Y = np.column_stack([np.empty((n, 0)), *(np.array(values[c], dtype=np.float64) for c in columns.targets)])
    y = None if not columns.targets else Y[:, 0] if columns.vector else Y
    weight = None if columns.weight is None else np.array(values[columns.weight], dtype=np.float64)
    X, kinds = np.column_stack(list(named.values())), Kinds("input", "target", tuple(named), columns.targets)
    check_rows(RawRows(X, Y, weight, *place), 0, kinds, X.dtype, options["bad_rows"] == "skip")  # with names and places
    found = as_samples(X, y, weight, bad_rows=options["bad_rows"])
    found.names, found.assumed = tuple(named), tuple(said)
    return found


def _indicators(
    name: str, values: NDArray[Any], wanted: list[str] | None, said: list[str], place: tuple[str, int] | None
) -> dict[str, Array]:
    """A column of 0 and 1 for each category but the first: all of them together would always add up to 1.

    A row without a category is an error, if the ``place`` of the rows is given; else it has NaN in each.
    """
    missing = np.array([value is None or value != value or str(value).strip() == "" for value in values])
    if place is not None and missing.any():
        where = f" of {place[0]}" if place[0] else ""
        raise InvalidInput(
            f"column {name!r} has no text in row {int(np.argmax(missing)) + place[1]}{where}",
            argument="one_hot",
            remedy="write a word there, which is then a category of its own, or leave out such rows: bad_rows='skip'",
        )
    words = np.array([str(value).strip() for value in values], dtype=object)
    levels = sorted(set(words[~missing]))
    if wanted is None and len(levels) > MOST:
        raise InvalidInput(
            f"column {name!r} has {len(levels)} different texts, too many for categories",
            argument="one_hot",
            remedy=f"leave it out: ignore=[{name!r}]",
        )
    kept = levels[1:] if wanted is None else wanted
    first = f"{levels[0]!r}" if wanted is None and levels else "any other"
    said.append(f"column {name!r}: a column of 0 and 1 for each of {', '.join(kept) or 'no category'}; {first}: all 0")
    return {f"{name}={level}": np.where(missing, np.nan, (words == level).astype(float)) for level in kept}


def _filled(name: str, column: Array, said: list[str]) -> Array:
    """The median of a column where it has a gap."""
    gaps = np.isnan(column)
    if gaps.all():
        raise InvalidInput(f"column {name!r} has no values", argument="features", remedy=f"use ignore=[{name!r}]")
    if gaps.any():
        median = float(np.median(column[~gaps]))
        said.append(f"column {name!r}: {counted(int(gaps.sum()), 'missing value')} filled with its median {median:g}")
        column = np.where(gaps, median, column)
    return column
