"""`extract`, the door: what is asked is checked, the run is made, its result goes with its queries."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine import activations
from relumine.activations import Activation, LeakyReLU
from relumine.extraction.boxes import Form, open_box
from relumine.extraction.by_lines import DEEP, by_lines
from relumine.extraction.deep.by_layers import Rest, by_layers
from relumine.extraction.kinds import explained, refused
from relumine.extraction.links import Link, LinkName, linked
from relumine.extraction.queries import Queries
from relumine.extraction.random_rows import PROBE, WIDER, RandomRows
from relumine.extraction.sampling import Domain, Sampler, make_domain, make_sampler
from relumine.results import InvalidInput, ProgressCallback, Recovery, RecoveryFailed, Status
from relumine.run import Run

Array = NDArray[np.float64]

__all__ = ["Extraction", "extract"]

_LIMIT = 3600.0  # seconds, where the user gives none: an endless search helps nobody, and a log can be resumed


@dataclass(frozen=True)
class Extraction(Recovery):
    """A :class:`~relumine.results.Recovery` and what it took.

    ``way``: "chosen" or "random" queries. ``queries``: rows asked (a row asked again after a failure counts once);
    ``calls``: calls of the box, ``retried`` of them repetitions after a failure; ``dropped``: rows it never answered.
    ``X`` and ``y``: every row and its answer. ``rest``: where a deep network was found half-way, the layers that are
    certain and the box behind them. ``mapping``: how answers were mapped back, if they were.
    """

    queries: int = 0
    way: str = "random"
    calls: int = 0
    retried: int = 0
    dropped: int = 0
    X: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    y: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    rest: Rest | None = None
    mapping: Link | None = None

    @property
    def link(self) -> str | None:
        """The name of the link between the network and the answers: "logit", "softmax", "log" or None."""
        return None if self.mapping is None else self.mapping.name

    def predict(self, X: ArrayLike) -> Array:
        """What the box would answer: probabilities, where there is a link; else the values of the network."""
        Z = self.network(np.asarray(X, dtype=np.float64))
        return Z if self.mapping is None else self.mapping.answers(Z)

    @property
    def recovery(self) -> Recovery:
        """The result of the last recovery, without the queries."""
        return Recovery(**{f.name: getattr(self, f.name) for f in fields(Recovery)})

    def told(self, advice: tuple[str, ...]) -> str:
        """The result in words for a terminal, and what was asked."""
        failures = f", {self.retried} calls repeated, {self.dropped} rows dropped" if self.retried else ""
        return f"{super().told(advice)}\nqueries: {self.queries} rows in {self.calls} calls{failures}"


def extract(
    f: Any,
    dim: int | None = None,
    width: int | None = None,
    budget: int | None = None,
    *,
    queries: Literal["chosen", "random"] = "chosen",
    depth: int | None = None,
    widths: Sequence[int] | None = None,
    link: LinkName | None = None,
    mean: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    sampler: Sampler | None = None,
    growth: float = 1.5,
    batch: int = 4096,
    retries: int = 4,
    pause: float = 0.05,
    timeout: float = 300.0,
    rows: Literal["one", "many"] | None = None,
    columns: Sequence[str] | None = None,
    workers: int = 1,
    rate_limit: float | None = None,
    save: str | PathLike[str] | None = None,
    resume: bool = False,
    rng: int | np.random.Generator | None = None,
    seconds: float | None = None,
    progress: ProgressCallback | None = None,
    on_failure: Literal["raise", "return"] = "raise",
    **options: Any,
) -> Extraction:
    """Recover the network inside a black box by asking it: about one row per parameter, where each can be chosen.

    Along a line the function is piecewise linear, and every unit has a kink on it: the kinks of one long line, and the
    jumps of the gradient across them, show all units (docs: "Look inside a black box"). The width is found. The rest
    that the units leave is searched in the same way until there is none, and fresh random rows must agree.

    Random rows are asked instead where lines cannot be had, and the result says so: ``queries="random"``, a
    ``sampler``, activations other than (leaky) ReLU, answers with noise, a log of random rows that is resumed. With the
    width given the first batch then has 5·width·(d+1) rows, and each further one half as many again; without it widths
    4, 8, 16, … are tried, each with 4 rows per parameter.

    Query only what you may: the owner of a service may not allow this.

    Parameters
    ----------
    f : callable, estimator, str, path, list of str or torch module
        A function from (n, d) to (n,) or (n, q), or of one row; a fitted scikit-learn estimator or pipeline (asked by
        ``predict``, with a ``link`` by ``predict_proba``); ``"module:function"``; an ``.onnx`` file; a torch module; or
        a command that reads rows of comma-separated numbers and prints a line for each (no shell is involved).
    dim : int, optional
        Number of inputs; known from an ONNX file, a torch module, a fitted estimator, or ``columns``.
    width : int, optional
        Number of hidden units; found when None. Chosen queries do not need it.
    budget : int, optional
        Most rows to ask; two million by default, 100 000 if they are random.
    queries : {"chosen", "random"}
        Choose every row by the answers before, or draw all of them.
    depth, widths : int, sequence of int, optional
        Hidden layers, and the units of each, where they are known: what is found is held against them. Without them
        (and without ``width``, which says that there is one layer) both are found.
    link : {"auto", "logit", "softmax", "log"}, optional
        The box answers a function of the network: a probability for each output (or two classes), the probabilities of
        several classes, an exponential. "auto": probabilities are recognised. The network found gives logits, and
        ``.predict`` what the box would answer.
    mean, scale : float or (d,) array, optional
        Where inputs usually are: centre and scale of lines and of Gaussian rows; standard by default.
    low, high : float or (d,) array, optional
        Ask in this range only; kinks outside are not looked for.
    sampler : callable, optional
        ``sampler(rng, n)`` draws the queries instead.
    growth : float
        Factor between batches of random rows where the width is given.
    batch : int
        Most rows in one call of the box.
    retries, pause : int, float
        A call that raises or gives NaN is tried again so often, after ``pause``, 2·``pause``, … seconds; then the batch
        is split, and a single row that keeps failing is left out.
    timeout : float
        Seconds that one call may take; then it is abandoned and counts as failed.
    rows : {"one", "many"}, optional
        Whether a function takes a single row (d,) or many (n, d); found out by the first call when None.
    columns : sequence of str, optional
        Names of the inputs: the box is handed a pandas DataFrame with these columns.
    workers : int
        Calls of the box at the same time, in threads: for boxes that wait rather than compute.
    rate_limit : float, optional
        Most rows per second.
    save : path, optional
        Keep all queries in this .npz file, also when the run is interrupted or the box fails.
    resume : bool
        Begin with the queries in ``save``.
    seconds : float, optional
        Most seconds that this may take: an hour if None; ``float("inf")`` for no limit.
    rng, progress, on_failure, options
        As in :func:`relumine.recover`; ``options`` (activation, starts, …) are passed on to it.

    Returns
    -------
    Extraction
        A :class:`~relumine.results.Recovery` with ``.queries``, ``.X``, ``.y``.

    Raises
    ------
    BlackBoxFailed
        The box keeps failing.
    RecoveryFailed
        The budget ended before the network was certain, and ``on_failure`` is "raise".

    Examples
    --------
    >>> import relumine as rl
    >>> secret = rl.planted.network(d=5, m=3, rng=0)
    >>> found = extract(secret, dim=5, rng=1)
    >>> found.status.value, found.network.m, found.way
    ('exact', 3, 'chosen')
    """
    box = open_box(f, timeout, _form(link, rows, columns))
    dim = box.dim if dim is None else dim
    _check(dim, box.dim, width, budget, growth, batch, retries, rate_limit, seconds, queries, workers)
    assert dim is not None
    where = _Where(
        make_domain(dim, mean, scale, low, high) if sampler is None else None,
        make_sampler(dim, mean, scale, low, high, sampler),
        None
        if low is not None or sampler is not None
        else make_sampler(dim, mean, WIDER * np.asarray(1.0 if scale is None else scale), None, None, None),
    )
    target = None if save is None else _target(Path(save), resume)
    limit = _LIMIT if seconds is None else seconds
    run = Run(np.random.default_rng(0), time.monotonic() + limit, progress)
    log = Queries(
        box,
        dim,
        retries=retries,
        pause=pause,
        rate_limit=rate_limit,
        batch=batch,
        save=target,
        timeout=timeout,
        workers=workers,
        run=run,
    )
    log.seed = _seed(rng)
    if resume:
        if target is None:
            raise InvalidInput("resume=True needs save=, the file with the queries of the run to go on from")
        if target.exists():
            log.resume()
    shape = _Shape(depth if widths is None or depth is not None else len(widths), _widths(widths, width, depth))
    mapping = None
    if link is not None:
        mapping, where = _linked(link, log, where, queries)
    result, way, rest = _asked(log, where, queries, run, width, growth, budget, options, shape)
    result = explained(result, log, where.domain)
    if seconds is None and result.status is Status.INTERRUPTED and run.left <= 0.0:
        word = f"{result.message} Without seconds= the limit is {_LIMIT / 60.0:g} minutes."
        result = replace(result, message=word)
    if mapping is not None:
        notes = (*result.certificate.notes, *mapping.notes)
        result = replace(result, certificate=replace(result.certificate, notes=notes))
    log.link = None
    X, y = log.data(everything=True)
    found = Extraction(
        **{f.name: getattr(result, f.name) for f in fields(Recovery)},
        queries=log.count,
        way="chosen" if result.method == "lines" else way,
        calls=log.calls,
        retried=log.retried,
        dropped=log.dropped,
        X=X,
        y=y,
        rest=rest,
        mapping=mapping,
    )
    if on_failure == "raise" and not found.ok and found.status is not Status.INTERRUPTED:
        raise RecoveryFailed(found)
    return found


def _form(link: str | None, rows: str | None, columns: Sequence[str] | None) -> Form:
    """How the box is to be asked, checked."""
    if rows not in (None, "one", "many"):
        raise InvalidInput(f"rows must be 'one', 'many' or None (find out), got {rows!r}", argument="rows")
    if columns is not None and (isinstance(columns, str) or not len(columns)):
        raise InvalidInput(f"columns is a list of names, one for each input; got {columns!r}", argument="columns")
    return Form(link, rows, None if columns is None else tuple(columns))


class _Where(NamedTuple):
    """Where to ask: lines in ``domain`` (None: they cannot be had), rows by ``draw``, a few of them ``wide``."""

    domain: Domain | None
    draw: Callable[[np.random.Generator, int], Array]
    wide: Callable[[np.random.Generator, int], Array] | None


def _linked(link: str, log: Queries, where: _Where, queries: str) -> tuple[Link | None, _Where]:
    """The link, recognised from a few answers; and where those have digits."""
    if where.domain is None:
        raise InvalidInput("link= with a sampler: where answers have digits is not known", argument="link")
    fresh = not log.n
    mapping, domain = linked(link, log, where.domain)
    if fresh and queries == "chosen":
        log.way = "chosen"
    elif fresh:
        log.set_aside()
    return mapping, where._replace(domain=domain)


def _asked(
    log: Queries,
    where: _Where,
    queries: str,
    run: Run,
    width: int | None,
    growth: float,
    budget: int | None,
    options: dict[str, Any],
    shape: _Shape,
) -> tuple[Recovery, str, Rest | None]:
    """Chosen queries where they can be had; random ones otherwise, with the reason."""
    activation = activations.get(options.get("activation", "relu"))
    reason = _why_random(log, where, queries, activation, options)
    if not reason and where.domain is not None:
        log.way, log.budget = "chosen", 2_000_000 if budget is None else budget
        run.rng = np.random.default_rng(log.seed)
        deep = width is None and activation.name == "relu" and not where.domain.limited and shape.depth != 1
        result, reason = by_lines(log, where.domain, run, width, activation, deep)
        if deep and (reason == DEEP or (result is not None and result.status is Status.NOT_RECOVERED)):
            # the first line again: its answers are in the log
            line = where.domain.line(np.random.default_rng(log.seed))
            other, rest = by_layers(log, where.domain, run, shape.depth, shape.widths, [line])
            if result is None or other.ok or rest is not None:
                return other, "chosen", rest
        if result is not None:
            return result, "chosen", None
        log.set_aside()
    log.way = "random"
    rows = RandomRows(log, where.draw, where.wide, log.seed, 100_000 if budget is None else budget, run, options)
    no_network = refused(log, where.domain) if where.domain is not None and queries != "random" else None
    result = no_network or rows.until_certain(width, growth)
    if reason and queries != "random" and result.method != "lines":
        notes = (*result.certificate.notes, f"random rows were asked, not chosen ones: {reason}")
        result = replace(result, certificate=replace(result.certificate, notes=notes))
    return result, "random", None


class _Shape(NamedTuple):
    """What the user says about the layers."""

    depth: int | None = None
    widths: tuple[int, ...] | None = None


def _widths(widths: Sequence[int] | None, width: int | None, depth: int | None) -> tuple[int, ...] | None:
    """The widths, checked against what else is said."""
    if depth is not None and (not isinstance(depth, int | np.integer) or isinstance(depth, bool) or depth < 1):
        raise InvalidInput(f"depth is a number of hidden layers, at least 1; got {depth!r}", argument="depth")
    if widths is None:
        return None
    given = tuple(int(m) for m in widths)
    if not given or min(given) < 1 or (depth is not None and depth != len(given)) or width is not None:
        raise InvalidInput(
            f"widths are the units of each hidden layer, as many as depth says; got {widths!r}",
            argument="widths",
            remedy="give width for one layer, or widths for several",
        )
    return given


def _why_random(log: Queries, where: _Where, queries: str, activation: Activation, options: dict[str, Any]) -> str:
    """Why lines cannot be had, or ""."""
    if queries == "random":
        return "as asked"
    if where.domain is None:
        return "a sampler draws the rows"
    if log.n and log.way != "chosen":
        return "the saved queries are random rows"
    if not (activation.name == "relu" or isinstance(activation, LeakyReLU)):
        return f"a network of {activation.name} units is not piecewise linear"
    if set(options) - {"activation"}:
        return f"{', '.join(sorted(set(options) - {'activation'}))} belong to a search among random rows"
    return ""


def _check(
    dim: int | None,
    known: int | None,
    width: int | None,
    budget: int | None,
    growth: float,
    batch: int,
    retries: int,
    rate_limit: float | None,
    seconds: float | None,
    queries: str,
    workers: int,
) -> None:
    """The numbers at the door."""
    if queries not in ("chosen", "random"):
        raise InvalidInput(f"queries must be 'chosen' or 'random', got {queries!r}", argument="queries")
    if dim is None:
        raise InvalidInput("dim is needed: the number of inputs of the black box")
    if known is not None and known != dim:
        raise InvalidInput(f"the black box has {known} inputs, and dim={dim} was given")
    for name, value, least in (
        ("dim", dim, 1),
        ("budget", budget, 2 * PROBE),
        ("batch", batch, 1),
        ("workers", workers, 1),
    ):
        if name == "budget" and value is None:
            continue
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise InvalidInput(f"{name} must be a whole number, at least {least}; got {value!r}")
    if not isinstance(retries, int | np.integer) or retries < 0:
        raise InvalidInput(f"retries must be a whole number, at least 0; got {retries!r}")
    if width is not None and (not isinstance(width, int | np.integer) or isinstance(width, bool) or width < 0):
        raise InvalidInput(f"width must be a whole number ≥ 0 or None (find it), got {width!r}")
    if not growth > 1.0:
        raise InvalidInput(f"growth must be above 1, got {growth}")
    if rate_limit is not None and not rate_limit > 0.0:
        raise InvalidInput(f"rate_limit is a number of rows per second and must be positive, got {rate_limit}")
    if seconds is not None and not (isinstance(seconds, int | float | np.number) and seconds > 0):
        raise InvalidInput(f"seconds must be a positive number or None, got {seconds!r}")


def _target(target: Path, resume: bool) -> Path:
    """The file of the log, refused before the box is asked if it cannot be written."""
    if target.exists() and not resume:
        raise InvalidInput(f"{target} exists; pass resume=True to go on from it, or name another file")
    if target.is_dir() or not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InvalidInput(f"save={str(target)!r}: there is no folder {target.parent} in which it can be written")
    return target


def _seed(rng: Any) -> int:
    """A number from which the random streams of the run are drawn."""
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InvalidInput(f"rng must be a whole number ≥ 0, a numpy Generator or None; got {rng!r}") from None
    return int(rng) if isinstance(rng, int | np.integer) else int(generator.integers(2**63))
