"""`open_source`: whatever holds the samples, one protocol to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from relumine.arguments import is_whole, one_of
from relumine.data.sources.arrays import open_arrays, open_npy, open_npz
from relumine.data.sources.chunks import Source
from relumine.data.sources.columns import Named, frame_schema, pick
from relumine.data.sources.streams import StreamSource
from relumine.results import InvalidInput


def open_source(
    X: Any,
    y: Any = None,
    *,
    target: str | list[str] | None = None,
    features: str | list[str] | None = None,
    ignore: str | list[str] | None = None,
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
    features : str or list of str, optional
        Input columns; all others by default.
    ignore : str or list of str, optional
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
    features, ignore = ([names] if isinstance(names, str) else names for names in (features, ignore))
    given = {
        name: value
        for name, value in {
            "y": y,
            "target": target,
            "features": features,
            "ignore": ignore,
            "one_hot": one_hot or None,
            "impute": impute,
            "sample_weight": sample_weight,
            "engine": engine,
            "client": client,
            "delimiter": delimiter,
            "decimal": decimal,
        }.items()
        if value is not None
    }
    # every argument is checked before a file is opened or a cluster is asked
    _check_values(bad_rows, storage, chunk, given)
    kind = _kind(X, given)
    _check_taken(kind, X, given)
    if isinstance(X, Source):
        return X
    named = Named(target, features, ignore or (), sample_weight)
    return kind.open(X, named, given, {"bad_rows": bad_rows, "storage": storage, "chunk": chunk})


def _check_values(bad_rows: str, storage: str, chunk: Any, given: dict[str, Any]) -> None:
    """Refuse values that no source knows."""
    for name, value, known in (
        ("bad_rows", bad_rows, ("raise", "skip")),
        ("storage", storage, ("float64", "float32")),
        ("engine", given.get("engine"), (None, "dask")),
        ("impute", given.get("impute"), (None, "median")),
    ):
        one_of(name, value, known)
    if chunk is not None and not is_whole(chunk, 1):
        raise InvalidInput(f"chunk is a number of rows, at least 1; got {chunk!r}", argument="chunk")
    if "ignore" in given and "features" in given:
        raise InvalidInput("features= names the inputs, so ignore= has nothing to leave out", argument="ignore")


# -- what samples can come in, and which arguments go with it ---------------------------------------------------------


class _Kind(NamedTuple):
    """``what`` it is, in words; the arguments it ``takes``; ``open``: X, columns, other arguments, how to read."""

    what: str
    takes: tuple[str, ...]
    open: Callable[[Any, Named, dict[str, Any], dict[str, Any]], Source]


def _kind(X: Any, given: dict[str, Any]) -> _Kind:
    """The first kind that X is."""
    if isinstance(X, Source):
        return _SOURCE
    if isinstance(X, str | Path) or _paths(X):
        ending = Path(X).suffix.lower() if isinstance(X, str | Path) else ""
        return {".npy": _NPY, ".npz": _NPZ}.get(ending, _TABLES)
    if _is_dask(X):
        return _DASK
    if "y" not in given and hasattr(X, "dtypes") and hasattr(X, "columns"):
        return _FRAME
    if "y" in given or not isinstance(X, Iterable) or isinstance(X, np.ndarray):
        return _ARRAYS
    return _CHUNKS


_INSTEAD = {  # what to do about an argument that many try
    ("y", "files with columns"): "name the column(s) with target=",
    ("y", "a dataframe whose columns are named"): "name the column(s) with target=, or give X without the target",
    ("target", "arrays"): "pass y",
    ("features", "arrays"): "give the columns of X that are inputs",
    ("sample_weight", "chunks"): "give chunks (X, y, weight)",
    ("engine", "arrays"): "pass dask arrays",
}


def _check_taken(kind: _Kind, X: Any, given: dict[str, Any]) -> None:
    """Refuse an argument that this kind of samples would ignore."""
    for name in given:
        if name not in kind.takes:
            others = " or ".join(other.what for other in _KINDS if name in other.takes)
            raise InvalidInput(
                f"{name}= goes with {others}, not with {kind.what} (X is a {type(X).__name__})",
                argument=name,
                remedy=_INSTEAD.get((name, kind.what)),
            )
    encoded = {"one_hot", "impute"} & set(given)
    if encoded and "engine" in given:
        raise InvalidInput(f"{min(encoded)}= reads all rows into memory, and engine= does not", argument="engine")


def _open_arrays(X: Any, named: Named, given: dict[str, Any], options: dict[str, Any]) -> Source:
    if "y" not in given:
        raise InvalidInput(f"y is missing: with X an array pass y too (X is a {type(X).__name__})", argument="y")
    if isinstance(named.weight, str):
        raise InvalidInput(
            "sample_weight names a column only with files; with arrays pass the weights", argument="sample_weight"
        )
    return open_arrays(X, given["y"], named.weight, **options)


def _open_npy(X: Any, named: Named, given: dict[str, Any], options: dict[str, Any]) -> Source:
    return open_npy(_existing(X), given.get("y"), named, **options)


def _open_npz(X: Any, named: Named, given: dict[str, Any], options: dict[str, Any]) -> Source:
    return open_npz(_existing(X), named.target, named.weight, **options)


def _open_tables(X: Any, named: Named, given: dict[str, Any], options: dict[str, Any]) -> Source:
    options = options | {name: given[name] for name in ("delimiter", "decimal") if name in given}
    if {"one_hot", "impute"} & set(given):
        from relumine.data.sources.encoded import encoded_files

        return encoded_files(X, named, given.get("one_hot", False), given.get("impute"), **options)
    if "engine" in given:
        from relumine.data.dask import open_files

        return open_files(X, named, given.get("client"), **options)
    from relumine.data.sources.tables import open_tables

    return open_tables(X, named, **options)


def _open_dask(X: Any, named: Named, given: dict[str, Any], options: dict[str, Any]) -> Source:
    from relumine.data.dask import open_collection

    return open_collection(X, given.get("y"), named, given.get("client"), **options)


def _open_frame(frame: Any, named: Named, given: dict[str, Any], options: dict[str, Any]) -> Source:
    """A dataframe in memory."""
    if {"one_hot", "impute"} & set(given):
        from relumine.data.sources.encoded import encoded_frame

        return encoded_frame(frame, named, given.get("one_hot", False), given.get("impute"), **options)
    columns = pick("the dataframe", frame_schema(frame), named)
    y = frame[list(columns.targets)].to_numpy(dtype=np.float64)
    weights = None if columns.weight is None else frame[columns.weight].to_numpy(dtype=np.float64)
    return open_arrays(frame[list(columns.features)], y[:, 0] if columns.vector else y, weights, **options)


_COLUMNS = ("target", "features", "ignore", "sample_weight")
_SOURCE = _Kind("a source that is open already", (), lambda X, named, given, options: X)
_ARRAYS = _Kind("arrays", ("y", "sample_weight"), _open_arrays)
_CHUNKS = _Kind("chunks", (), lambda X, named, given, options: StreamSource(X, **options))
_FRAME = _Kind("a dataframe whose columns are named", (*_COLUMNS, "one_hot", "impute"), _open_frame)
_NPY = _Kind("an npy file", ("y", *_COLUMNS), _open_npy)
_NPZ = _Kind("an npz file", ("target", "sample_weight"), _open_npz)
_TABLES = _Kind(
    "files with columns",
    (*_COLUMNS, "one_hot", "impute", "engine", "client", "delimiter", "decimal"),
    _open_tables,
)
_DASK = _Kind("a dask collection", ("y", *_COLUMNS, "engine", "client"), _open_dask)
_KINDS = (_ARRAYS, _FRAME, _TABLES, _NPY, _NPZ, _DASK, _CHUNKS, _SOURCE)


def _existing(X: Any) -> Path:
    if not Path(X).is_file():
        raise InvalidInput(f"no such file: {X}", argument="X")
    return Path(X)


def _paths(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(p, str | Path) for p in X)


def _is_dask(X: Any) -> bool:
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")
