"""How a table of text is written: what separates its columns, which decimal mark it has, whether it has a header.

What is not given is worked out from the first lines, and said.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from relumine.results import InvalidInput

_SAMPLE = 1 << 16  # bytes that show the dialect, and more if the first line is longer
_LONGEST = 1 << 26  # bytes of a first line: some four million columns
_LINES = 50  # lines looked at
_DELIMITERS = "\t;|,"  # the comma last: it may also be a decimal mark
_COMMA = r"[+-]?\d*,\d+([eE][+-]?\d+)?"  # a number with a decimal comma
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-", ".")


@dataclass(frozen=True)
class Dialect:
    """``delimiter`` (" ": any run of spaces), ``decimal`` mark, ``names`` of the columns where there is no header.

    ``line``: bytes of the longest line seen; ``said``: what was worked out, in sentences.
    """

    delimiter: str = ","
    decimal: str = "."
    names: tuple[str, ...] | None = None
    line: int = 0
    said: tuple[str, ...] = ()


def sniff(path: str, delimiter: str | None = None, decimal: str | None = None) -> Dialect:
    """Look at the first lines of a file; a given ``delimiter`` or ``decimal`` mark is taken as it is."""
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InvalidInput(f"delimiter is one character, got {delimiter!r}", argument="delimiter")
    if decimal not in (None, ".", ","):
        raise InvalidInput(f"decimal is '.' or ',', got {decimal!r}", argument="decimal")
    lines = _first_lines(path)
    found = _delimiter(lines, decimal) if delimiter is None else delimiter
    cells = [_cells(line, found, path) for line in lines]
    mark = _decimal(cells[1:], found) if decimal is None else decimal
    header = not all(_is_number(cell, mark) for cell in cells[0])
    names = None if header else tuple(f"x{j}" for j in range(len(cells[0])))
    said = []
    if found != "," and delimiter is None:
        said.append(f"columns are separated by { {chr(9): 'tabs', ' ': 'spaces'}.get(found, repr(found)) }")
    if mark != "." and decimal is None:
        said.append("the comma is the decimal mark")
    if names:
        said.append(f"no header: the first line holds numbers, so columns are called {names[0]} … {names[-1]}")
    return Dialect(found, mark, names, max(len(line.encode()) for line in lines), tuple(said))


def open_text(path: str, squeeze: bool = False) -> Any:
    """The bytes of a file, decompressed where its name says so; with ``squeeze`` runs of spaces are one."""
    stream = pa.input_stream(path, compression="detect")
    return pa.TransformInputStream(stream, Squeeze()) if squeeze else stream


class Squeeze:
    r"""Runs of spaces and tabs become one space, and none at either end of a line; fed block by block.

    Examples
    --------
    >>> squeeze = Squeeze()
    >>> squeeze(b"  1   2 ") + squeeze(b"  3 ") + squeeze(b"\n 4")
    b'1 2 3\n4'
    """

    def __init__(self) -> None:
        self.pending, self.fresh = b"", True

    def __call__(self, data: Any) -> bytes:
        """The block, but for spaces at its end, which may go on in the next."""
        data = self.pending + bytes(data)
        body = data.rstrip(b" \t\r")
        self.pending = data[len(body) :]
        body = re.sub(rb"[ \t]+", b" ", re.sub(rb"[ \t\r]*\n[ \t]*", b"\n", body))
        if self.fresh:
            body = body.lstrip(b" ")
        if body:
            self.fresh = body.endswith(b"\n")
        return body


def _first_lines(path: str) -> list[str]:
    """Some lines from the beginning that are not empty, the first of them whole."""
    try:
        with open_text(path) as stream:
            raw = stream.read(_SAMPLE)
            while b"\n" not in raw.lstrip() and len(raw) < _LONGEST and (more := stream.read(len(raw))):
                raw += more
            whole = not stream.read(1)
    except (OSError, EOFError, pa.ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read as csv (truncated, damaged or of another kind?): {error}") from None
    if b"\0" in raw:
        raise InvalidInput(f"{path} is not text: it holds null bytes", remedy="if it is UTF-16, save it as UTF-8")
    if not raw.strip():
        raise InvalidInput(f"{path} cannot be read as csv: it is empty")
    if b"\n" not in raw.lstrip() and not whole:
        raise InvalidInput(f"{path}, line 1, is longer than {_LONGEST >> 20} MB; is this a table?")
    try:
        # a character cut in two at the end of what was read is no error
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(raw, final=whole)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start})", remedy="save it as UTF-8") from None
    lines = text.splitlines()
    if not whole and len(lines) > 1:
        lines.pop()  # cut off
    return [line for line in lines if line.strip()][:_LINES]


def _delimiter(lines: Sequence[str], decimal: str | None) -> str:
    """The mark that every line has as often as the others; the most frequent of the first line where none is."""
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    order = _DELIMITERS[:-1] if decimal == "," and any(c in bare[0] for c in _DELIMITERS[:-1]) else _DELIMITERS
    # 1,5 2,5: commas in numbers and spaces between them
    if len(bare[-1].split()) > 1 and all(re.fullmatch(_COMMA, cell) for cell in bare[-1].split()):
        return " " if "\t" not in bare[-1] else "\t"
    for mark in order:
        if bare[0].count(mark) and len({line.count(mark) for line in bare}) == 1:
            return mark
    most = max(order, key=bare[0].count)
    if bare[0].count(most):
        return most
    return " " if len(bare[0].split()) > 1 else ","


def _cells(line: str, delimiter: str, path: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error as error:
        raise InvalidInput(f"{path}: a line cannot be split at {delimiter!r}: {error}", argument="delimiter") from None


def _decimal(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """A comma if numbers are written with one, and none with a point."""
    cells = [cell for row in rows for cell in row] if delimiter != "," else []
    comma = any(re.fullmatch(_COMMA, cell) for cell in cells)
    point = any(re.fullmatch(_COMMA.replace(",", "[.]"), cell) for cell in cells)
    return "," if comma and not point else "."


def _is_number(cell: str, decimal: str) -> bool:
    if cell.casefold() in _MISSING:
        return True
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True
