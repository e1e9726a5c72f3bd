"""The front door: `recover` checks what came in, runs the method asked for, and turns failure into words."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from relumine import activations
from relumine.activations import Activation
from relumine.data.sources import Samples, Source, as_samples, count, materialise, open_source
from relumine.fit.journal import Journal
from relumine.papers.awasthi2021.method import recover_awasthi
from relumine.papers.mondelli2019.regimes import regime
from relumine.papers.zhong2017.method import recover_zhong
from relumine.recovery.auto import MEMORY, recover_auto
from relumine.results import InvalidInput, ProgressCallback, Recovery, RecoveryFailed, Status

__all__ = ["recover"]

_PAPERS: dict[str, Callable[..., Recovery]] = {"awasthi": recover_awasthi, "zhong": recover_zhong}
_STARTS, _HOPELESS = 20, 1  # starts before giving up, in general and where theory gives no hope


def recover(
    X: Any,
    y: ArrayLike | None = None,
    width: int | None = None,
    *,
    method: Literal["auto", "awasthi", "zhong"] = "auto",
    activation: str | Activation = "relu",
    sample_weight: ArrayLike | str | None = None,
    target: str | list[str] | None = None,
    features: list[str] | None = None,
    bad_rows: Literal["raise", "skip"] = "raise",
    storage: Literal["float64", "float32"] = "float64",
    engine: Literal["dask"] | None = None,
    client: Any = None,
    memory: float = MEMORY,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
    rng: int | np.random.Generator | None = None,
    starts: int | None = None,
    seconds: float | None = None,
    affine: Literal["keep", "consolidate"] = "keep",
    on_failure: Literal["raise", "return"] = "raise",
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Recovery:
    """Recover the network behind samples (X, y): its weights, with a certificate, or the reason why not.

    Parameters
    ----------
    X : (n, d) array, or a source of samples
        Inputs, one sample a row. Any continuous distribution; about 5·width·(d+1) rows for exact data. Or what
        :func:`relumine.data.sources.open_source` takes: the path, glob or folder of parquet, csv, arrow or npz files, a
        list of chunks (X, y), dask arrays or dataframes. What does not fit in ``memory`` stays where it is.
    y : (n,) or (n, q) array
        Outputs; several outputs share one hidden layer. Not for files, which name their ``target``.
    width : int, optional
        Number of hidden units; found from the data when None.
    method : {"auto", "awasthi", "zhong"}
        "auto": least squares in the sign-free form, exact. "awasthi": the tensor method of Awasthi et al. 2021, for
        ReLU with biases. "zhong": tensor start and gradient descent of Zhong et al. 2017, for homogeneous activations
        without biases and output weights ±1. Further options are passed on to those
        (:func:`relumine.papers.awasthi2021.method.recover_awasthi`,
        :func:`relumine.papers.zhong2017.method.recover_zhong`).
    activation : str or Activation, default "relu"
    sample_weight : (n,) array, optional
        Row weights (inverse noise variances); the name of a column for files.
    target, features : column names, optional
        Of files and dataframes: the output(s), and the inputs (all other columns by default).
    bad_rows : {"raise", "skip"}
        Rows with missing or infinite values: an error that says where, or left out and counted.
    storage : {"float64", "float32"}
        Type in which inputs are read from a source; float32 halves the traffic but rounds them, so nothing is exact.
    engine, client : "dask" and a distributed.Client, optional
        Read files on the workers of a cluster. Dask collections go to the workers anyway.
    memory : float, default 512e6
        Bytes that rows from a source may take; beyond that the search works on as many as fit, and all others are
        passed over where they are.
    checkpoint : path, optional
        File that keeps the state of a long run; a run with the same data and options that finds it goes on from there.
        Removed at the end.
    checkpoint_every : float, default 30
        Seconds between two writes of it.
    rng : int or Generator, optional
        Seed. The same seed gives the same answer.
    starts : int, optional
        Most starts before giving up (each is another random initialisation): 20, or one where theory says that no
        number of them helps (:func:`relumine.advise` calls it hard).
    seconds : float, optional
        Time limit; when it ends the search, the status is "interrupted" ("not recovered" for a hard problem) and the
        network the best so far.
    affine : {"keep", "consolidate"}
        When the affine part v·x + c cannot be removed by signs: keep it, or write it as two more ReLU units.
    on_failure : {"raise", "return"}
        Raise :class:`RecoveryFailed` (which carries the result) or return the result with its status.
    progress : callable, optional
        Called with a :class:`relumine.results.Progress` after every step.

    Returns
    -------
    Recovery
        ``.network``, ``.status`` (with ``.advice``), ``.certificate``, ``.standard_errors``, ``.stages``, …

    Raises
    ------
    InvalidInput
        Before any long work: shapes, NaN, strings, constant or dependent inputs.
    RecoveryFailed
        The network was not recovered and ``on_failure`` is "raise". (An interrupted run returns what it has.)

    Examples
    --------
    >>> import relumine as rl
    >>> truth = rl.planted.network(d=4, m=3, rng=0)
    >>> X, y = rl.planted.sample(truth, n=120, rng=1)
    >>> found = rl.recover(X, y, width=3, rng=0)
    >>> found.status.value, rl.metrics.parameter_error(truth, found.network) < 1e-9
    ('exact', True)
    """
    sigma = activations.get(activation)
    data = _data(X, y, sample_weight, target, features, bad_rows, storage, engine, client)
    if width is not None and (not isinstance(width, int | np.integer) or isinstance(width, bool) or width < 0):
        raise InvalidInput(f"width must be a whole number ≥ 0 or None (find it), got {width!r}")
    if starts is not None and (not isinstance(starts, int | np.integer) or starts < 1):
        raise InvalidInput(f"starts must be a whole number, at least 1; got {starts!r}")
    if seconds is not None and not (isinstance(seconds, int | float | np.number) and seconds > 0):
        raise InvalidInput(f"seconds must be a positive number or None, got {seconds!r}")
    if affine == "consolidate" and sigma != activations.RELU:
        raise InvalidInput(f"affine='consolidate' writes v·x + c as ReLU units; the activation is {sigma.name}")
    if affine not in ("keep", "consolidate") or on_failure not in ("raise", "return"):
        raise InvalidInput("affine is 'keep' or 'consolidate'; on_failure is 'raise' or 'return'")
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InvalidInput(f"rng must be a whole number ≥ 0, a numpy Generator or None; got {rng!r}") from None
    width = None if width is None else int(width)
    began = time.perf_counter()
    if method == "auto":
        if options:
            raise InvalidInput(f"method='auto' does not know the option {next(iter(options))!r}")
        if not isinstance(memory, int | float | np.number) or not memory >= 1e6:
            raise InvalidInput(f"memory is a number of bytes, at least 1e6; got {memory!r}")
        if not isinstance(checkpoint_every, int | float | np.number) or not checkpoint_every >= 0.0:
            raise InvalidInput(f"checkpoint_every is a number of seconds; got {checkpoint_every!r}")
        if checkpoint is not None and not isinstance(checkpoint, str | PathLike):
            raise InvalidInput(f"checkpoint is the path of a file; got {checkpoint!r}")
        journal = None
        if checkpoint is not None:
            asked = {"width": width, "activation": sigma.name, "starts": starts, "memory": memory}
            journal = open_journal(checkpoint, data, asked, generator, checkpoint_every)
        result = recover_auto(
            data,
            width,
            sigma,
            rng=generator,
            starts=_starts(data.d, width, sigma) if starts is None else int(starts),
            seconds=seconds,
            progress=progress,
            memory=memory,
            journal=journal,
        )
        if journal is not None and result.status.value != "interrupted":
            journal.path.unlink(missing_ok=True)
    elif method in _PAPERS:
        if width is None:
            raise InvalidInput(f"method={method!r} needs the width; method='auto' can find it")
        if checkpoint is not None:
            raise InvalidInput(f"method={method!r} keeps no checkpoint; method='auto' does")
        samples = _in_memory(data, method, memory)
        if samples.weight is not None:
            raise InvalidInput(f"method={method!r} does not take sample_weight; use method='auto'")
        try:
            result = _PAPERS[method](samples.X, samples.y, width, activation=sigma, rng=generator, **options)
        except TypeError as error:
            if options and "unexpected keyword argument" in str(error):
                raise InvalidInput(f"method={method!r}: {error}") from None
            raise
    else:
        raise InvalidInput(f"unknown method {method!r}; known: {', '.join(('auto', *_PAPERS))}")
    if not result.ok:
        timed_out = seconds is not None and time.perf_counter() - began >= seconds
        result = _explained(result, width, sigma, timed_out)
    if affine == "consolidate" and (np.any(result.network.v) or np.any(result.network.c)):
        result = _consolidated(result)
    if on_failure == "raise" and not result.ok and result.status.value != "interrupted":
        raise RecoveryFailed(result)
    return result


def _starts(d: int, width: int | None, sigma: Activation) -> int:
    """How many starts are worth their time."""
    return _HOPELESS if width and regime(d, width, sigma).verdict == "hard" else _STARTS


def _explained(result: Recovery, width: int | None, sigma: Activation, timed_out: bool) -> Recovery:
    """A failure with the theorem behind it, where there is one.

    Where weights are believed to be out of reach, a fit of the function alone has not recovered them, and neither has a
    search that ran out of time: more of it is not expected to help.
    """
    d, m = result.network.d, result.network.m if width is None else width
    if d < 1 or m < 1 or (known := regime(d, m, sigma)).verdict not in ("hard", "not determined"):
        return result
    final = result.status is Status.AMBIGUOUS or (result.status is Status.INTERRUPTED and timed_out)
    status = Status.NOT_RECOVERED if known.verdict == "hard" and final else result.status
    return replace(result, status=status, message=f"{result.message} {known.reason}")


def _data(
    X: Any,
    y: ArrayLike | None,
    sample_weight: ArrayLike | str | None,
    target: str | list[str] | None,
    features: list[str] | None,
    bad_rows: Literal["raise", "skip"],
    storage: Literal["float64", "float32"],
    engine: Literal["dask"] | None,
    client: Any,
) -> Samples | Source:
    """Arrays as checked samples, anything else as a source that can be read more than once."""
    plain = target is None and features is None and engine is None and bad_rows == "raise" and storage == "float64"
    mapped = isinstance(X, np.memmap) or type(X).__module__.split(".")[0] in ("dask", "dask_expr")
    if y is not None and plain and not mapped and not isinstance(X, str | PathLike):
        if isinstance(sample_weight, str):
            raise InvalidInput("sample_weight names a column only with files; with arrays pass the weights")
        return as_samples(X, y, sample_weight)
    source = open_source(
        X,
        y,
        target=target,
        features=features,
        sample_weight=sample_weight,
        bad_rows=bad_rows,
        storage=storage,
        engine=engine,
        client=client,
    )
    if source.passes is not None:
        raise InvalidInput(
            f"{source.label} can be read only once, which is enough for moments (relumine.data.moments) but not for a "
            "fit; pass a list of chunks, files, or an object whose __iter__ starts afresh"
        )
    return source


def _in_memory(data: Samples | Source, method: str, memory: float) -> Samples:
    if isinstance(data, Samples):
        return data
    needed = 8.0 * count(data) * (data.d + data.q)
    if needed > memory:
        raise InvalidInput(
            f"method={method!r} works on rows in memory; {data.label} has {needed / 1e6:.0f} MB of them, more than "
            f"memory={memory:g} bytes. Raise memory=, or use method='auto', which can leave them where they are"
        )
    return materialise(data)


def open_journal(
    path: str | PathLike[str], data: Samples | Source, options: dict[str, Any], rng: np.random.Generator, every: float
) -> Journal:
    """The journal of this run, known by its options and some of its rows; random numbers begin where it began."""
    head = (data.X[:64], data.y[:64]) if isinstance(data, Samples) else data.head(64)[:2]
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part[:64], dtype=np.float64).tobytes() for part in head))
    n = data.n if isinstance(data, Samples) else count(data)
    task = {key: repr(value) for key, value in {"rows": n, **options}.items()} | {"data": digest.hexdigest()}
    journal = Journal.open(path, task, rng.bit_generator.state, every)
    try:
        rng.bit_generator.state = journal.random
    except (ValueError, TypeError, KeyError):
        raise InvalidInput(f"checkpoint {path} was begun with another kind of random generator") from None
    return journal


def _consolidated(result: Recovery) -> Recovery:
    """The affine part as two more units; their parameters are not those of the fit, so standard errors end here."""
    notes = (
        *result.certificate.notes,
        "the affine part was then written as ReLU units; standard errors do not carry over",
    )
    return replace(
        result,
        network=result.network.consolidate(),
        standard_errors=None,
        units=replace(result.units, recovered=(), up_to_sign=()),
        certificate=replace(result.certificate, notes=notes),
    )
