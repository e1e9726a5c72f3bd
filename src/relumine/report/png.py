"""Signed numbers as a small picture: a palette PNG whose transparency follows |value|, so it suits light and dark."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

# blue and orange stay apart for every common form of colour blindness
NEGATIVE: Final = (36, 113, 190)
POSITIVE: Final = (222, 107, 17)
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def strength(values: NDArray[np.float64], largest: float) -> NDArray[np.float64]:
    """|value| as opacity in [0, 1]; the square root keeps small weights visible."""
    return np.asarray(np.sqrt(np.clip(np.abs(values) / max(largest, 1e-300), 0.0, 1.0)))


def data_uri(values: NDArray[np.float64], largest: float) -> str:
    """The matrix as a PNG, a pixel per entry: palette index 128 is 0, below it blue, above it orange."""
    shade = np.round(127.0 * np.sign(values) * strength(values, largest)).astype(np.int64) + 128
    rows, columns = shade.shape
    palette = b"".join(bytes(NEGATIVE if k < 128 else POSITIVE) for k in range(256))
    alpha = bytes(min(2 * abs(k - 128), 255) for k in range(256))
    lines = np.zeros((rows, columns + 1), dtype=np.uint8)  # each scan line begins with its filter, 0: none
    lines[:, 1:] = shade
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),
        (b"PLTE", palette),
        (b"tRNS", alpha),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    png = _SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return "data:image/png;base64," + base64.b64encode(png).decode()
