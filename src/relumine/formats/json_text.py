"""JSON from files that may be hostile: values are counted in the text before any of them is built in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from relumine.formats.files import read_bytes
from relumine.results import ModelFileError

# A parsed value takes up to 32 bytes as a number and 64 as a list, an object or a text, however short it is in the
# file: `[],` is three bytes. A network of a million parameters with standard errors has 4·10⁶ values in 2·10⁵ lists.
_VALUES, _CONTAINERS, _TEXTS = 1 << 23, 1 << 20, 1 << 20


def parsed(path: Path, most: int) -> Any:
    """The content of a JSON file of at most ``most`` bytes; NaN and infinity are no JSON."""
    text = read_bytes(path, most)
    counts = (text.count(b","), _VALUES), (text.count(b"[") + text.count(b"{"), _CONTAINERS), (text.count(b'"'), _TEXTS)
    if any(number > limit for number, limit in counts):
        raise ModelFileError(f"{path} holds more values than a file of this kind can have")
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ModelFileError(f"{path} is no file of relumine: its brackets are too deep") from None
    except ValueError as error:  # also text that is not UTF-8
        raise ModelFileError(f"{path} is not readable JSON (truncated or foreign): {error}") from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")
