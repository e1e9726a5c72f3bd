"""`open_source`: whatever holds the samples, one protocol to read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from relumine.data.sources.arrays import open_arrays, open_npy, open_npz
from relumine.data.sources.chunks import Source
from relumine.data.sources.columns import Except, Text, pick
from relumine.data.sources.streams import StreamSource
from relumine.results import InvalidInput

__all__ = ["open_source"]


def open_source(
    X: Any,
    y: Any = None,
    *,
    target: str | list[str] | None = None,
    features: list[str] | None = None,
    ignore: list[str] | None = None,
    one_hot: bool | dict[str, list[str]] = False,
    impute: Literal["median"] | None = None,
    sample_weight: Any = None,
    bad_rows: Literal["raise", "skip"] = "raise",
    storage: Literal["float64", "float32"] = "float64",
    engine: Literal["dask"] | None = None,
    client: Any = None,
    chunk: int | None = None,
    delimiter: str | None = None,
    decimal: Literal[".", ","] | None = None,
) -> Source:
    """A source of samples: arrays, files, chunks, dask collections.

    Parameters
    ----------
    X : array, path, iterable or dask collection
        - (n, d) array or numpy memmap, with ``y``;
        - path of an npz file with members X and y, or of an npy file (y: another or an array; or all columns in one,
          called x0, x1, …, with ``target``);
        - path, glob, directory or list of parquet, csv, tsv, arrow or feather files, with ``target``;
        - iterable of chunks (X, y) or (X, y, weight); a generator is read once, which is enough for moments only;
        - dataframe, with ``target``;
        - dask array (with ``y``) or dask dataframe (with ``target``).
    y : (n,) or (n, q) array, optional
    target : str or list of str, optional
        Target column(s) of files and dataframes; a list gives y (n, q), an empty one a source without target.
    features : list of str, optional
        Input columns; all others by default.
    ignore : list of str, optional
        Columns that are not inputs, where ``features`` does not name those that are.
    one_hot : bool or dict, default False
        Text columns of files and dataframes become columns of 0 and 1, called "city=Rome", one for each category but
        the first; a dict says which categories of which column have one. The rows are then read into memory.
    impute : {None, "median"}
        Missing inputs of files and dataframes are filled with the median of their column, in memory.
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
    delimiter, decimal : str, optional
        Of csv and other text: what separates the columns, and the decimal mark. Worked out from the first lines when
        None, and so is whether there is a header; ``source.assumed`` says what was.

    Examples
    --------
    >>> source = open_source(np.ones((10, 2)), np.ones(10), chunk=4)
    >>> [c.first for c in source.chunks()], source.n
    ([0, 4, 8], 10)
    """
    if bad_rows not in ("raise", "skip") or storage not in ("float64", "float32") or engine not in (None, "dask"):
        raise InvalidInput("bad_rows is 'raise' or 'skip', storage 'float64' or 'float32', engine None or 'dask'")
    if chunk is not None and (not isinstance(chunk, int | np.integer) or chunk < 1):
        raise InvalidInput(f"chunk is a number of rows, at least 1; got {chunk!r}", argument="chunk")
    if impute not in (None, "median"):
        raise InvalidInput(f"impute must be 'median', the only way there is; got {impute!r}", argument="impute")
    if ignore is not None and features is not None:
        raise InvalidInput("features= names the inputs, so ignore= has nothing to leave out", argument="ignore")
    features = Except(ignore) if ignore is not None else features  # type: ignore[assignment]  # one argument from here
    options: dict[str, Any] = {"bad_rows": bad_rows, "storage": storage, "chunk": chunk}
    text = {name: value for name, value in (("delimiter", delimiter), ("decimal", decimal)) if value is not None}
    if (one_hot or impute) and not isinstance(X, Source):
        return _open_encoded(X, target, features, sample_weight, one_hot, impute, options | text)
    if isinstance(X, str | Path) or _paths(X):
        where = None if engine is None else client
        return _open_path(X, y, target, features, sample_weight, (engine, where), options, text)
    if text:
        name = next(iter(text))
        raise InvalidInput(f"{name}= is for files of text; X is a {type(X).__name__}", argument=name)
    if isinstance(X, Source):
        return X
    if _is_dask(X):
        from relumine.data.dask import open_collection

        return open_collection(X, y, target, features, sample_weight, client, **options)
    if engine is not None:
        raise InvalidInput("engine='dask' reads files; for data in memory pass dask arrays", argument="engine")
    return _open_memory(X, y, target, features, sample_weight, options)


def _open_encoded(
    X: Any, target: Any, features: Any, weight: Any, one_hot: Any, impute: Any, options: dict[str, Any]
) -> Source:
    """Tables of files and dataframes with categories or gaps."""
    from relumine.data.sources.encoded import encoded_files, encoded_frame

    if hasattr(X, "dtypes") and hasattr(X, "columns") and not _is_dask(X):
        return encoded_frame(X, target, features, weight, one_hot, impute, **options)
    if not (isinstance(X, str | Path) or _paths(X)) or str(X).lower().endswith((".npy", ".npz")):
        name = "one_hot" if one_hot else "impute"
        raise InvalidInput(f"{name}= is for files and dataframes with named columns", argument=name)
    return encoded_files(X, target, features, weight, one_hot, impute, **options)


def _open_memory(X: Any, y: Any, target: Any, features: Any, weight: Any, options: dict[str, Any]) -> Source:
    """Arrays, dataframes and iterables of chunks."""
    if target is not None and y is None and hasattr(X, "dtypes") and hasattr(X, "columns"):
        return _open_frame(X, target, features, weight, options)
    if target is not None or features is not None:
        raise InvalidInput("target, features and ignore name columns of files or dataframes; with arrays pass y")
    if isinstance(weight, str):
        raise InvalidInput(
            "sample_weight names a column only with files; with arrays pass the weights", argument="sample_weight"
        )
    if y is not None:
        return open_arrays(X, y, weight, **options)
    if not isinstance(X, Iterable) or isinstance(X, np.ndarray):
        raise InvalidInput(f"y is missing: with X an array pass y too (X is a {type(X).__name__})", argument="y")
    if weight is not None:
        raise InvalidInput("weights of chunks come with them: (X, y, weight)", argument="sample_weight")
    return StreamSource(X, **options)


def _open_path(
    X: Any, y: Any, target: Any, features: Any, weight: Any, dask: tuple[Any, Any], options: dict[str, Any], text: Any
) -> Source:
    ending = Path(X).suffix.lower() if isinstance(X, str | Path) else ""
    if ending in (".npy", ".npz"):
        if dask[0] is not None or text:
            raise InvalidInput(f"{X}: engine=, delimiter= and decimal= are for files with named columns")
        if not Path(X).is_file():
            raise InvalidInput(f"no such file: {X}", argument="X")
        if ending == ".npz":
            return open_npz(Path(X), target, weight, **options)
        return open_npy(Path(X), y, target, features, weight, **options)
    from relumine.data.sources.tables import open_tables

    if y is not None:
        raise InvalidInput("for files with columns name the target= column(s) instead of passing y", argument="y")
    if dask[0] == "dask":
        from relumine.data.dask import open_files

        return open_files(X, target, features, weight, dask[1], **options, **text)
    return open_tables(X, target, features, weight, **options, **text)


def _open_frame(frame: Any, target: Any, features: Any, weight: Any, options: dict[str, Any]) -> Source:
    """A dataframe in memory."""
    schema = {str(c): None if getattr(t, "kind", "O") in "fiub" else Text(str(t)) for c, t in frame.dtypes.items()}
    columns = pick("the dataframe", schema, target, features, weight)
    y = frame[list(columns.targets)].to_numpy(dtype=np.float64)
    weights = None if weight is None else frame[weight].to_numpy(dtype=np.float64)
    return open_arrays(frame[list(columns.features)], y[:, 0] if columns.vector else y, weights, **options)


def _paths(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(p, str | Path) for p in X)


def _is_dask(X: Any) -> bool:
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")
