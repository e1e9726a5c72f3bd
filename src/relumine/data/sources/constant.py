"""Columns that never change: they say nothing about the target, and are left out of a fit."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from relumine.arrays import Array
from relumine.data.sources.chunks import Chunk, Source
from relumine.data.sources.samples import Samples


def without_constants(source: Source) -> tuple[Source, NDArray[np.intp]]:
    """The source without its constant inputs, and the numbers of the inputs it keeps; all of them, if none varies.

    Examples
    --------
    >>> X = np.column_stack([np.arange(5.0), np.full(5, 7.0), np.arange(5.0) ** 2])
    >>> without_constants(Samples(X, X[:, 0]))[1]
    array([0, 2])
    """
    # most data have no constant column, and the first rows show it: then no pass is needed
    head = np.asarray(source.head().X)
    every = np.arange(source.d)
    if source.passes is not None or (head != head[0]).any(axis=0).all():
        return source, every
    differs = source.reduce(partial(_differences, value=head[0]))[0]
    kept = np.flatnonzero(differs)
    if len(kept) in (0, source.d):
        return source, every
    names = None if source.names is None else tuple(source.names[j] for j in kept)
    if isinstance(source, Samples):
        return Samples(source.X[:, kept], source.y, source.weight, names, label=source.label), kept
    fewer = source.map(partial(_columns, kept=kept), len(kept))
    fewer.names = names
    return fewer, kept


def _differences(chunk: Chunk, value: Array) -> tuple[Array, ...]:
    """In how many rows each input differs from the value, (d,)."""
    return (np.not_equal(chunk.X, value).sum(axis=0).astype(float),)


def _columns(chunk: Chunk, kept: NDArray[np.intp]) -> Chunk:
    return chunk._replace(X=np.ascontiguousarray(chunk.X[:, kept]))
