"""A look at an ONNX file before it is parsed: everything beside its numbers must be small.

A parsed protocol buffer can take a hundred times the memory of its bytes when they are empty messages, and exactly that
memory when they are numbers. So the bytes that are not numbers of initializers are counted first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from relumine.results import ModelFileError

_MOST = 1 << 21  # bytes of graph, names and constants: a graph of ours has some 500
_MOST_FIELDS = 20_000  # in one message: a graph that can be read has 512 nodes at most
_GRAPH, _INITIALIZER, _NUMBERS = 7, 5, (4, 9, 10)  # field numbers; packed floats, raw bytes, packed doubles


def bounded(path: Path, data: bytes) -> None:
    """Raise if the file is cut short or has more than numbers in it."""
    view = memoryview(data)
    numbers = 0
    try:
        for field, graph in _fields(view):
            for kind, tensor in _fields(graph) if field == _GRAPH else ():
                if kind == _INITIALIZER:
                    numbers += sum(len(content) for name, content in _fields(tensor) if name in _NUMBERS)
    except (IndexError, ValueError) as error:
        raise ModelFileError(f"{path} is not a readable ONNX file (truncated or foreign): {error}") from None
    if len(data) - numbers > _MOST:
        raise ModelFileError(f"{path} is no one-hidden-layer network: it has {len(data) - numbers} bytes of graph")


def _fields(view: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(field number, content) of the length-delimited fields of a message; the others are skipped."""
    at = 0
    for _ in range(_MOST_FIELDS):
        if at >= len(view):
            return
        key, at = _varint(view, at)
        wire = key & 7  # how long the content is: 0 a varint, 1 eight bytes, 5 four, 2 says it itself
        if wire == 2:
            size, at = _varint(view, at)
            if size > len(view) - at:
                raise ValueError("a field is longer than the file")
            yield key >> 3, view[at : at + size]
            at += size
        elif wire == 0:
            at = _varint(view, at)[1]
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise ValueError("not a protocol buffer")
    raise ValueError("it has too many parts")


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """A variable-length integer and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("not a protocol buffer")
