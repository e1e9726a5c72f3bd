"""The front door: `recover` checks what was asked, opens the samples, runs the method, and turns failure into words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from time import perf_counter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.activations import Activation
from relumine.arguments import one_of
from relumine.arrays import among
from relumine.data.sources import Samples, Source, count, fits, in_memory, materialise, open_source, room, take
from relumine.data.sources.constant import without_constants
from relumine.fit.journal import Journal, digest
from relumine.fit.parallel import cores
from relumine.links import LINKS, LinkName
from relumine.papers.awasthi2021.method import recover_awasthi
from relumine.papers.mondelli2019.regimes import regime
from relumine.papers.zhong2017.method import recover_zhong
from relumine.recovery.asked import Asked, check
from relumine.recovery.diagnosis import diagnosed, doubted, running_numbers
from relumine.recovery.judge import explained
from relumine.recovery.large import first_rows, from_few
from relumine.recovery.layers import recover_layers
from relumine.recovery.linked import mapped_back
from relumine.recovery.order import alike_in_order
from relumine.recovery.story import Case, Problem, solve
from relumine.results import (
    InvalidInput,
    Origin,
    ProgressCallback,
    Recovery,
    RecoveryFailed,
    RelumineWarning,
    Stage,
    Status,
)
from relumine.run import Run
from relumine.version import __version__

_PAPERS: dict[str, Callable[..., Recovery]] = {"awasthi": recover_awasthi, "zhong": recover_zhong}
_STARTS, _HOPELESS = 20, 1  # starts before giving up, in general and where theory gives no hope
_PATIENCE = 600.0  # seconds: planted networks of up to 50 units and inputs are found within a tenth of it
# passes of all starts together and operations a second of a slow core: (100,100) with 50 000 rows gets five hours more
_PASSES, _SPEED, _MODEST = 60 * 2000, 2e10, 20
_LOOKED_AT = 20_000  # rows that a diagnosis looks at
_ALIKE = "rows next to each other are alike: unless they were only sorted, they show less than so many independent ones"
_COPIES = 8  # bytes in use for one byte of raw rows, at the worst moment


def recover(
    X: Any,
    y: ArrayLike | None = None,
    width: int | None = None,
    *,
    method: Literal["auto", "awasthi", "zhong"] = "auto",
    activation: str | Activation = "relu",
    link: LinkName | None = None,
    sample_weight: ArrayLike | str | None = None,
    checkpoint: str | PathLike[str] | None = None,
    rng: int | np.random.Generator | None = None,
    starts: int | None = None,
    seconds: float | None = None,
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
        without biases and output weights ±1. The last two make no search: they take no ``starts``, ``seconds`` or
        ``checkpoint``, and tell no progress.
    activation : str or Activation, default "relu"
    link : {"auto", "logit", "softmax", "log"}, optional
        y is a function of the network: a probability for each output (or two classes), the probabilities of several
        classes, an exponential. "auto": probabilities are recognised. The network gives logits, and ``.predict`` what
        was observed. Rows with a probability too close to 0 or 1 to be precise are left out.
    sample_weight : (n,) array, optional
        Row weights (inverse noise variances); the name of a column for files.
    checkpoint : path, optional
        File that keeps the state of a long run; a run with the same data and options that finds it goes on from there.
        Removed at the end.
    rng : int or Generator, optional
        Seed. The same seed gives the same answer.
    starts : int, optional
        How many starts to make at most (each is another random initialisation, followed by cycles while they help; at
        most three rounds for each start in all): 20, or one where theory says that no number of them helps
        (:func:`relumine.advise` calls it hard).
    seconds : float, optional
        Time limit: 600 by default, and more where the sums over all rows alone would take long; none with a
        ``checkpoint`` or ``float("inf")``. When it ends the search, the status is "interrupted" ("not recovered" for a
        hard problem) and the network the best so far. So does Ctrl-C, at the end of the step under way; a second one
        aborts.
    on_failure : {"raise", "return"}
        Raise :class:`RecoveryFailed` (which carries the result) or return the result with its status.
    progress : callable, optional
        Called with a :class:`relumine.results.Progress` after every step; if it raises KeyboardInterrupt, the search
        stops.
    **options
        ``target``, ``features``, ``ignore`` (column names), ``one_hot``, ``impute``, ``bad_rows``, ``storage``,
        ``engine``, ``client``, …: for the source of the samples, see :func:`relumine.data.sources.open_source`.
        ``memory`` (512e6): bytes that rows from a source may take; beyond that the search works on as many as fit, and
        all others are read chunk by chunk.
        ``affine`` ("keep"; or "consolidate"): where no choice of unit signs removes the affine part v·x + c, keep it or
        write it as two more ReLU units. ``checkpoint_every`` (30): seconds between two writes of the checkpoint, which
        is also written at the end of each minimisation. ``widths=(m1, m2, …)``: an experiment, several hidden layers of
        so many units from exact samples of one output; a handful of units in each, and about 20 rows per parameter.
        Others are for the method:
        :func:`relumine.papers.awasthi2021.method.recover_awasthi`,
        :func:`relumine.papers.zhong2017.method.recover_zhong`.

    Returns
    -------
    Recovery
        ``.network``, ``.status`` (with ``.advice``), ``.certificate``, ``.standard_errors``, ``.stages``, …

    Raises
    ------
    InvalidInput
        Before any work: an argument that cannot be used, an unknown option, something that the method cannot do.
        Before any long work: shapes, NaN, strings, dependent inputs.
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
    one_of("link", link, (None, *LINKS))
    asked = check(
        method=method,
        width=width,
        activation=activation,
        weighted=sample_weight is not None,
        checkpoint=checkpoint,
        rng=rng,
        starts=starts,
        seconds=seconds,
        on_failure=on_failure,
        progress=progress,
        options=options,
    )
    data = _opened(X, y, sample_weight, asked.source)
    run = Run.of(asked.rng, _seconds(data, asked), progress)
    _warn_of_running_numbers(data)
    d, names = data.d, data.names
    data, kept = without_constants(data)
    mapping, left = None, ""
    if link is not None:
        mapping, data, left = mapped_back(data, link, asked.memory)
    way = _several_layers if "widths" in asked.options else _of_a_paper if asked.method.name in _PAPERS else _own_way
    result = _looked_into(way(data, asked, run), data, asked.width, kept.tolist())
    if len(kept) < d:
        result = _with_constants(result, kept, d, names)
    if asked.affine == "consolidate" and (np.any(result.network.v) or np.any(result.network.c)):
        result = _consolidated(result)
    if mapping is not None:
        result = replace(result, mapping=mapping).noted(*mapping.notes, *([left] if left else []))
    if names is not None:
        result = replace(result, origin=_origin(result.origin, names, asked.source.get("target")))
    if on_failure == "raise" and not result.ok and result.status is not Status.INTERRUPTED:
        raise RecoveryFailed(result)
    return result


def _origin(origin: Origin, names: tuple[str, ...], target: Any) -> Origin:
    """With the names of the user's columns, for whoever shows the result."""
    called = target if isinstance(target, str) else ", ".join(target or ())
    return replace(origin, features=tuple(names), target=called)


def _opened(X: Any, y: ArrayLike | None, weight: ArrayLike | str | None, options: dict[str, Any]) -> Samples | Source:
    """Samples, wherever they are, with a target and to be read more than once."""
    source = open_source(X, y, sample_weight=weight, **options)
    if not source.q:
        raise InvalidInput(f"{source.label} has no target", argument="target", remedy="name one, or pass y")
    if source.passes is not None:
        raise InvalidInput(
            f"{source.label} can be read only once, which is enough for moments (relumine.data.moments) but not for a "
            "fit",
            argument="X",
            remedy="pass a list of chunks, files, or an object whose __iter__ starts afresh",
        )
    count(source)  # the first whole pass, which keeps the numbers of a file that is slow to parse
    return source


def _some(data: Samples | Source) -> Samples:
    """Rows from the beginning, in memory: what a diagnosis looks at."""
    return data if isinstance(data, Samples) else take(data, np.arange(min(count(data), _LOOKED_AT)))[0]


def _looked_into(result: Recovery, data: Samples | Source, width: int | None, kept: list[int]) -> Recovery:
    """What the rows show beside the network: why it failed, what else may explain them, that they belong together."""
    if not result.ok:
        began = perf_counter()
        with cores():  # small products: two BLAS threads take ten times as long as one where the processor is busy
            result = diagnosed(result, _some(data), width, kept)
        return replace(result, stages=(*result.stages, Stage("diagnosis", perf_counter() - began)))
    if result.status is Status.NOISY or not result.network.m:
        result = doubted(result, _some(data), kept)
    if result.ok and alike_in_order(np.asarray(data.head().X, dtype=np.float64)):
        return result.noted(_ALIKE)
    return result


def _warn_of_running_numbers(data: Samples | Source) -> None:
    """A column that numbers the rows is hardly ever meant as an input."""
    few = data.head()
    found = running_numbers(np.asarray(few.X, dtype=np.float64), data.names)
    if found is not None:
        warnings.warn(f"{found[0]}, and is used as an input. {found[1]}", RelumineWarning, 3)


def _own_way(data: Samples | Source, asked: Asked, run: Run) -> Recovery:
    """Least squares in the sign-free form: on all rows, or on a few first if there are many."""
    starts = _starts(data.d, asked.width, asked.activation) if asked.starts is None else asked.starts
    problem = Problem(asked.width, asked.activation, starts)
    if asked.checkpoint is not None:
        run.journal = _journal(data, asked, starts, run)
    with cores() as run.crew, run.interruptible():
        case = _few_or_all(data, asked.memory, problem, run)
        result = case.recovery()
    if case.evidence.timed_out and asked.seconds is None and not result.ok:
        limit = f"The search ended at the default time limit of {_seconds(data, asked):.0f} s; seconds= sets another."
        result = replace(result, message=f"{result.message} {limit}")
    unfinished = case.evidence.interrupted and result.status is not Status.EXACT
    if run.journal is not None and not unfinished:
        run.journal.path.unlink(missing_ok=True)
    return result


def _few_or_all(data: Samples | Source, memory: float, problem: Problem, run: Run) -> Case:
    """Rows beyond memory, or many more than a search takes, are searched by a few of them."""
    if not isinstance(data, Samples):
        limit = room(data, memory, _COPIES)
        if count(data) > limit:
            return from_few(data, limit, problem, run)
        data = materialise(data)
    if data.n > 3 * first_rows(data.d, data.q, problem.width):
        return from_few(data, data.n, problem, run)
    return solve(data, problem, run)


def _several_layers(data: Samples | Source, asked: Asked, run: Run) -> Recovery:
    """Two or more hidden layers, from rows in memory."""
    rows = in_memory(data, asked.memory, "widths")
    with run.interruptible():
        return recover_layers(rows, asked.options["widths"], run, asked.starts)


def _of_a_paper(data: Samples | Source, asked: Asked, _: Run) -> Recovery:
    """A method as its paper prints it; rows that do not fit in memory stay where they are."""
    options = {**asked.options, **({"memory": asked.memory} if "memory" in asked.method.options else {})}
    if fits(data, asked.memory):
        data = materialise(data)
    run = _PAPERS[asked.method.name]
    result = run(data, None, asked.width, activation=asked.activation, rng=asked.rng, **options)
    if result.ok or not (data.d and asked.width):
        return result
    theory = regime(data.d, asked.width, asked.activation)
    status, message = explained(result.status, result.message, theory, timed_out=False)
    return replace(result, status=status, message=message)


def _seconds(data: Samples | Source, asked: Asked) -> float | None:
    """The time limit: the one asked for, or the usual one; None where a checkpoint is kept."""
    if asked.seconds is not None or asked.checkpoint is not None:
        return asked.seconds
    return patience(data, asked.width)


def patience(data: Samples | Source, width: int | None) -> float:
    """The time limit in seconds where none is asked for: it grows with the work."""
    return _PATIENCE + _PASSES * 4.0 * (data.n or _LOOKED_AT) * (data.d + 1) * 1.5 * (width or _MODEST) / _SPEED


def _starts(d: int, width: int | None, sigma: Activation) -> int:
    """How many starts are worth their time."""
    return _HOPELESS if width and regime(d, width, sigma).verdict == "hard" else _STARTS


def _journal(data: Samples | Source, asked: Asked, starts: int, run: Run) -> Journal:
    """The journal of this run, known by all its rows and options; random numbers begin where it began."""
    assert asked.checkpoint is not None
    options = {"width": asked.width, "activation": asked.activation.name, "starts": starts, "memory": asked.memory}
    task = {key: repr(value) for key, value in options.items()} | {
        "version": __version__,
        "data": digest(data),
    }
    journal = Journal.open(asked.checkpoint, task, run.rng.bit_generator.state, asked.every)
    try:
        run.rng.bit_generator.state = journal.random
    except (ValueError, TypeError, KeyError):
        raise InvalidInput(
            f"checkpoint {asked.checkpoint} was begun with another kind of random generator",
            argument="checkpoint",
            remedy="remove it to start afresh",
        ) from None
    return journal


def _with_constants(result: Recovery, kept: NDArray[np.intp], d: int, names: tuple[str, ...] | None) -> Recovery:
    """The network in all of the user's columns: those that never change have weight 0."""
    se = result.standard_errors
    if se is not None:
        se = replace(se, W=among(se.W, kept, d, np.nan), v=among(se.v, kept, d, np.nan))
    left = [str(j) if names is None else repr(names[j]) for j in range(d) if j not in kept]
    note = f"left out, because it never changes: column {', '.join(left)} (its weights are 0)"
    return replace(result, network=result.network.embedded(kept, d), standard_errors=se).noted(note)


def _consolidated(result: Recovery) -> Recovery:
    """The affine part as two more units; their parameters are not those of the fit, so standard errors end here."""
    return replace(
        result,
        network=result.network.consolidate(),
        standard_errors=None,
        units=replace(result.units, recovered=(), up_to_sign=()),
    ).noted("the affine part was then written as ReLU units; standard errors do not carry over")
