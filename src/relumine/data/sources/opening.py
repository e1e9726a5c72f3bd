"""`open_source`: whatever holds the samples, one protocol to read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from relumine.data.sources.arrays import open_arrays, open_npy, open_npz
from relumine.data.sources.chunks import Source
from relumine.data.sources.streams import StreamSource
from relumine.results import InvalidInput

__all__ = ["open_source"]


def open_source(
    X: Any,
    y: Any = None,
    *,
    target: str | list[str] | None = None,
    features: list[str] | None = None,
    sample_weight: Any = None,
    bad_rows: Literal["raise", "skip"] = "raise",
    storage: Literal["float64", "float32"] = "float64",
    engine: Literal["dask"] | None = None,
    client: Any = None,
    chunk: int | None = None,
) -> Source:
    """A source of samples: arrays, files, chunks, dask collections.

    Parameters
    ----------
    X : array, path, iterable or dask collection
        - (n, d) array or numpy memmap, with ``y``;
        - path of an npz file with members X and y, or of an npy file (y: another or an array);
        - path, glob, directory or list of parquet, csv, arrow or feather files, with ``target``;
        - iterable of chunks (X, y) or (X, y, weight); a generator is read once, which is enough for moments only;
        - dataframe, with ``target``;
        - dask array (with ``y``) or dask dataframe (with ``target``).
    y : (n,) or (n, q) array, optional
    target : str or list of str, optional
        Target column(s) of files and dataframes; a list gives y (n, q).
    features : list of str, optional
        Input columns; all others by default.
    sample_weight : (n,) array or column name, optional
        Rows of weight zero are left out.
    bad_rows : {"raise", "skip"}
        Rows with missing, NaN or infinite values: an error that says where, or left out and counted
        (``source.skipped``).
    storage : {"float64", "float32"}
        Type in which X is kept; sums are float64 either way.
    engine : {None, "dask"}
        "dask": files are read by the workers of ``client``.
    client : distributed.Client, optional
    chunk : int, optional
        Rows read at a time (about 8 MB by default); results do not depend on it.

    Examples
    --------
    >>> source = open_source(np.ones((10, 2)), np.ones(10), chunk=4)
    >>> [c.first for c in source.chunks()], source.n
    ([0, 4, 8], 10)
    """
    if bad_rows not in ("raise", "skip") or storage not in ("float64", "float32") or engine not in (None, "dask"):
        raise InvalidInput("bad_rows is 'raise' or 'skip', storage 'float64' or 'float32', engine None or 'dask'")
    if chunk is not None and (not isinstance(chunk, int | np.integer) or chunk < 1):
        raise InvalidInput(f"chunk is a number of rows, at least 1; got {chunk!r}")
    options: dict[str, Any] = {"bad_rows": bad_rows, "storage": storage, "chunk": chunk}
    if isinstance(X, Source):
        return X
    if _is_dask(X):
        from relumine.data.dask import open_collection

        return open_collection(X, y, target, features, sample_weight, client, **options)
    if isinstance(X, str | Path) or _paths(X):
        return _open_path(X, y, target, features, sample_weight, engine, client, options)
    if engine is not None:
        raise InvalidInput("engine='dask' reads files; for data in memory pass dask arrays")
    if target is not None and y is None and hasattr(X, "dtypes") and hasattr(X, "columns"):
        return _open_frame(X, target, features, sample_weight, options)
    if target is not None:
        raise InvalidInput("target names a column of files or dataframes; with arrays pass y")
    if y is not None:
        names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
        return open_arrays(X, y, sample_weight, names, **options)
    if not isinstance(X, Iterable) or isinstance(X, np.ndarray):
        raise InvalidInput(f"y is missing: with X an array pass y too (X is a {type(X).__name__})")
    if sample_weight is not None:
        raise InvalidInput("weights of chunks come with them: (X, y, weight)")
    return StreamSource(X, **options)


def _open_path(
    X: Any, y: Any, target: Any, features: Any, weight: Any, engine: Any, client: Any, options: dict[str, Any]
) -> Source:
    ending = Path(X).suffix.lower() if isinstance(X, str | Path) else ""
    if ending in (".npy", ".npz"):
        if engine is not None or target is not None:
            raise InvalidInput(f"{X}: target= and engine= are for files with named columns")
        if not Path(X).is_file():
            raise InvalidInput(f"no such file: {X}")
        return open_npz(Path(X), weight, **options) if ending == ".npz" else open_npy(Path(X), y, weight, **options)
    from relumine.data.sources.tables import open_tables

    if y is not None:
        raise InvalidInput("for files with columns name the target= column(s) instead of passing y")
    if engine == "dask":
        from relumine.data.dask import open_files

        return open_files(X, target, features, weight, client, **options)
    return open_tables(X, target, features, weight, **options)


def _open_frame(frame: Any, target: Any, features: Any, weight: Any, options: dict[str, Any]) -> Source:
    """A dataframe in memory."""
    from relumine.data.sources.tables import pick

    schema = {str(c): None if getattr(t, "kind", "O") in "fiub" else str(t) for c, t in frame.dtypes.items()}
    columns = pick("the dataframe", schema, target, features, weight)
    X, y = (frame[list(names)].to_numpy(dtype=np.float64) for names in (columns.features, columns.targets))
    weights = None if weight is None else frame[weight].to_numpy(dtype=np.float64)
    return open_arrays(X, y[:, 0] if columns.vector else y, weights, columns.features, **options)


def _paths(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(p, str | Path) for p in X)


def _is_dask(X: Any) -> bool:
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")
