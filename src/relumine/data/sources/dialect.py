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
_LINES = 50  # lines looked at: a mark that each of so many has equally often separates columns
_DELIMITERS = "\t;|,"  # the comma last: it may also be a decimal mark
_COMMA = r"[+-]?\d*,\d+([eE][+-]?\d+)?"  # a number with a decimal comma
_COMMENT = "#"
_ENCODINGS = {"utf-16": "UTF-16", "cp1252": "Windows-1252 (Latin-1)"}  # those that are said
MISSING = (  # what people and spreadsheets write where a number is not known
    *("", "#N/A", "#NA", "N/A", "NA", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "n/a", "None", "none"),
    *("?", "-", "."),
    *("#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?"),
)
_BLANK = frozenset(mark.casefold() for mark in MISSING)


@dataclass(frozen=True)
class Dialect:
    """``delimiter`` (" ": any run of spaces), ``decimal`` mark, ``names`` of the columns where there is no header.

    ``named``: the names are the file's own; ``encoding``: how bytes are letters; ``skipped``: lines before the header
    or the first row that are comments; ``line``: bytes of the longest line seen; ``said``: what was worked out, in
    sentences.
    """

    delimiter: str = ","
    decimal: str = "."
    names: tuple[str, ...] | None = None
    named: bool = True
    encoding: str = "utf-8"
    skipped: int = 0
    line: int = 0
    said: tuple[str, ...] = ()

    @property
    def first_row(self) -> int:
        """The number of the first row of data, as a spreadsheet counts."""
        return self.skipped + (2 if self.names is None else 1)


def sniff(path: str, delimiter: str | None = None, decimal: str | None = None) -> Dialect:
    """Look at the first lines of a file; a given ``delimiter`` or ``decimal`` mark is taken as it is."""
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InvalidInput(f"delimiter is one character, got {delimiter!r}", argument="delimiter")
    if decimal not in (None, ".", ","):
        raise InvalidInput(f"decimal is '.' or ',', got {decimal!r}", argument="decimal")
    raw, whole = _beginning(path)
    encoding = _encoding(raw, whole, path)
    lines = _lines(raw, whole, encoding)
    skipped = _comments(lines)
    remark = lines[skipped - 1].lstrip().removeprefix(_COMMENT).strip() if skipped else ""
    lines = [line for line in lines[skipped:] if line.strip()][:_LINES]
    if not lines:
        raise InvalidInput(f"{path} holds comments only, and no rows")
    _no_title(lines, delimiter, decimal, path)
    found = _delimiter(lines, decimal) if delimiter is None else delimiter
    cells = [_cells(line, found, path) for line in lines]
    mark = _decimal(cells[1:], found) if decimal is None else decimal
    header = not all(_is_number(cell, mark) for cell in cells[0])
    names, named = None, True
    if not header:
        called = _cells(remark, found, path)  # as numpy.savetxt writes names; a first column may be called "#"
        called[:1] = [called[0] or _COMMENT] if called else []
        named = len(called) == len(cells[0]) and all(called)
        names = tuple(called) if named else tuple(f"x{j}" for j in range(len(cells[0])))
    said = []
    if encoding in _ENCODINGS:
        said.append(f"the file is not UTF-8; read as {_ENCODINGS[encoding]}")
    if skipped:
        said.append(f"left out: the first {'line, a comment' if skipped == 1 else f'{skipped} lines, comments'}")
    if found != "," and delimiter is None:
        said.append(f"columns are separated by { {chr(9): 'tabs', ' ': 'spaces'}.get(found, repr(found)) }")
    if mark != "." and decimal is None:
        said.append("the comma is the decimal mark")
    if names and named:
        said.append("the names of the columns are those of the last comment")
    if names and not named:
        said.append(f"no header: the first line holds numbers, so columns are called {names[0]} … {names[-1]}")
    longest = max(len(line.encode()) for line in lines)
    return Dialect(found, mark, names, named, encoding, skipped, longest, tuple(said))


def comment_lines(path: str) -> int:
    """How many lines at the beginning of a file are comments."""
    raw, whole = _beginning(path)
    return _comments(_lines(raw, whole, _encoding(raw, whole, path)))


def _no_title(lines: list[str], delimiter: str | None, decimal: str | None, path: str) -> None:
    """Refuse a first line of one field above names and rows of several: it is a title."""
    below = lines[1:]
    if len(below) < 2:
        return
    found = _delimiter(below, decimal) if delimiter is None else delimiter
    cells = [_cells(line, found, path) for line in below]
    fields, names = {len(row) for row in cells}, [cell for cell in cells[0] if not _is_number(cell, decimal or ".")]
    if found != " " and fields != {1} and len(fields) == 1 and names and len(_cells(lines[0], found, path)) == 1:
        raise InvalidInput(
            f"{path}: the first line, {lines[0].strip()[:60]!r}, looks like a title; the lines below it have "
            f"{min(fields)} columns",
            remedy="remove it, so that the first line is the names of the columns",
        )


def open_text(path: str, encoding: str = "utf-8", squeeze: bool = False) -> Any:
    """The text of a file in UTF-8, decompressed where its name says so; with ``squeeze`` runs of spaces are one."""
    stream = pa.input_stream(path, compression="detect")
    if encoding != "utf-8":
        stream = pa.transcoding_input_stream(stream, encoding, "utf-8")
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


def _beginning(path: str) -> tuple[bytes, bool]:
    """Some bytes from the beginning, the first line whole; and whether these are all."""
    try:
        with open_text(path) as stream:
            raw = stream.read(_SAMPLE)
            while b"\n" not in raw.lstrip() and len(raw) < _LONGEST and (more := stream.read(len(raw))):
                raw += more
            whole = not stream.read(1)
    except (OSError, EOFError, pa.ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read as csv (truncated, damaged or of another kind?): {error}") from None
    if not raw.strip():
        raise InvalidInput(f"{path} cannot be read as csv: it is empty")
    if b"\n" not in raw.lstrip() and not whole:
        raise InvalidInput(f"{path}, line 1, is longer than {_LONGEST >> 20} MB; is this a table?")
    return raw, whole


def _encoding(raw: bytes, whole: bool, path: str) -> str:
    """UTF-8; UTF-16 where the file begins with its mark; else that of Windows, which spreadsheets write."""
    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in raw and not marked:
        raise InvalidInput(f"{path} is not text: it holds null bytes", remedy="save it as csv, in UTF-8")
    for encoding in ("utf-16",) if marked else ("utf-8", "cp1252"):
        try:
            _decoded(raw, whole, encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    raise InvalidInput(f"{path} is not text that can be read", remedy="save it as csv, in UTF-8")


def _decoded(raw: bytes, whole: bool, encoding: str) -> str:
    # a character cut in two at the end of what was read is no error
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
    return decoder.decode(raw, final=whole)


def _lines(raw: bytes, whole: bool, encoding: str) -> list[str]:
    """The lines of the beginning, but for one that is cut off."""
    lines = _decoded(raw, whole, encoding).splitlines()
    return lines[:-1] if not whole and len(lines) > 1 else lines


def _comments(lines: Sequence[str]) -> int:
    """How many lines at the beginning are comments, or empty between comments.

    Examples
    --------
    >>> _comments(["# of the pump", "# 2024", "a,b", "1,2"]), _comments(["#a,b", "1,2"]), _comments(["# a b", "1 2"])
    (2, 1, 1)
    """
    count = next((k for k, line in enumerate(lines) if line.strip() and not line.startswith(_COMMENT)), len(lines))
    return count if any(line.strip() for line in lines[:count]) else 0


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
    if cell.casefold() in _BLANK:
        return True
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True
