"""Samples, wherever they are: arrays, files, chunks, dask collections; one protocol to read them."""

from relumine.data.sources.chunks import Chunk, Source
from relumine.data.sources.gather import count, fits, in_memory, materialise, room, take
from relumine.data.sources.opening import open_source
from relumine.data.sources.samples import Samples, as_samples

__all__ = [
    "Chunk",
    "Samples",
    "Source",
    "as_samples",
    "count",
    "fits",
    "in_memory",
    "materialise",
    "open_source",
    "room",
    "take",
]
