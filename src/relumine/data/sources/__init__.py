"""The door for samples: arrays, files, chunks, functions, dask collections; one protocol to read them."""

from relumine.data.sources.chunks import Chunk, Source
from relumine.data.sources.gather import count, materialise, take
from relumine.data.sources.opening import open_source
from relumine.data.sources.samples import Samples, as_samples
from relumine.data.sources.streams import FunctionSource

__all__ = [
    "Chunk",
    "FunctionSource",
    "Samples",
    "Source",
    "as_samples",
    "count",
    "materialise",
    "open_source",
    "take",
]
