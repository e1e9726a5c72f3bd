"""`extract`, the door: what is asked is checked, the run is made, its result goes with its queries."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from relumine.arrays import Array
from relumine.extraction.asked import check
from relumine.extraction.boxes import open_box
from relumine.extraction.deep.by_layers import Rest
from relumine.extraction.kinds import explained
from relumine.extraction.links import linked
from relumine.extraction.queries import Queries
from relumine.extraction.region import Where
from relumine.extraction.ways import Answered, answered
from relumine.links import Link, LinkName
from relumine.results import InvalidInput, ProgressCallback, Recovery, RecoveryFailed, Stage, Status
from relumine.run import Run

_ADVICE = {
    Status.NOISY: "Parameters are known to the digits of the answers, or to their noise. More digits make them "
    "exact; where it is random, four times the rows (budget=) halve the errors.",
    Status.NOT_RECOVERED: "The message says what was seen. What may help: a link (link='auto') for probabilities, all "
    "digits of the answers, where inputs usually are (mean= and scale=, or low= and high=), another activation=, a "
    "larger budget=.",
    Status.UNDERDETERMINED: "Ask more rows (budget=) or for fewer units (width=): many networks explain the answers so "
    "far.",
    Status.AMBIGUOUS: "Other networks may answer the same where it was asked. Ask in a wider region (scale=, or low= "
    "and high=).",
    Status.INTERRUPTED: "This is what is known so far, not a result. Give it more time (seconds=) or rows (budget=): "
    "with save= every answer is kept, and resume=True goes on from there.",
}


@dataclass(frozen=True)
class Extraction(Recovery):
    """A :class:`~relumine.results.Recovery` and what it took.

    ``way``: "chosen" or "random" queries. ``queries``: rows asked (a row asked again after a failure counts once);
    ``calls``: calls of the box, ``retried`` of them repetitions after a failure; ``dropped``: rows it never answered.
    ``X`` and ``y``: every row and its answer. ``rest``: where a deep network was found half-way, the layers that are
    certain and the box behind them.
    """

    queries: int = 0
    way: str = "random"
    calls: int = 0
    retried: int = 0
    dropped: int = 0
    X: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    y: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    rest: Rest | None = None

    @property
    def advice(self) -> str:
        """What to do next, in arguments of :func:`extract`."""
        return _ADVICE.get(self.status, self.status.advice)

    @property
    def headline(self) -> str:
        """One sentence: what was recovered, or that nothing was."""
        nothing = not (self.ok or self.network.m or self.rest or np.isfinite(self.certificate.residual))
        if nothing and self.status is Status.NOT_RECOVERED:
            return "Not recovered: this black box does not answer as a network of this kind would."
        return super().headline

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
    link: LinkName | None = None,
    mean: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    rng: int | np.random.Generator | None = None,
    seconds: float | None = None,
    on_failure: Literal["raise", "return"] = "raise",
    **options: Any,
) -> Extraction:
    """Recover the network inside a black box by asking it: about one row per parameter, where each can be chosen.

    Along a line the function is piecewise linear, and every unit has a kink on it: the kinks of one long line, and the
    jumps of the gradient across them, show all units (docs: "Look inside a black box"). The width is found. What these
    units do not explain is searched in the same way until nothing is left, and fresh random rows must agree.

    Random rows are asked instead where lines do not work, and the result says so: ``queries="random"``, a
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
        How many rows to ask at most; two million by default, 100 000 if they are random.
    queries : {"chosen", "random"}
        Choose every row by the answers before, or draw all of them.
    link : {"auto", "logit", "softmax", "log"}, optional
        The box answers a function of the network: a probability for each output (or two classes), the probabilities of
        several classes, an exponential. "auto": probabilities are recognised. The network found gives logits, and
        ``.predict`` what the box would answer.
    mean, scale : float or (d,) array, optional
        Where inputs usually are: centre and scale of lines and of Gaussian rows; standard by default.
    low, high : float or (d,) array, optional
        Ask in this range only; kinks outside are not looked for. With one end alone (``low=0``: positive inputs) the
        range is ten ``scale`` long.
    rng : int or Generator, optional
        Seed. The same seed asks the same rows.
    seconds : float, optional
        Time limit: an hour if None; ``float("inf")`` for no limit.
    on_failure : {"raise", "return"}
        Raise :class:`RecoveryFailed` (which carries the result) or return the result with its status.
    **options
        *The layers.* ``depth``, ``widths``: hidden layers, and the units of each, where they are known: what is found
        is compared with them. Without them (and without ``width``, which says that there is one layer) both are found.

        *Where to ask.* ``fixed`` ({name or number of an input: value}): inputs that stay as they are; ``total``: every
        row sums to this; ``sampler(rng, n)``: draws the queries instead.

        *How to ask.* ``rows`` ("one" or "many"; recognised): whether a function takes a single row (d,) or many (n, d);
        ``columns``: names of the inputs, the box is then handed a pandas DataFrame; ``batch`` (4096): most rows in one
        call; ``workers`` (1): calls at the same time, in threads, for boxes that wait rather than compute;
        ``timeout`` (300): seconds that one call may take before it is abandoned and counts as failed; ``retries`` (4),
        ``pause`` (0.05): a call that raises or gives NaN is tried again so often, after ``pause``, 2·``pause``, …
        seconds, then the batch is split, and a single row that keeps failing is left out; ``rate_limit``: most rows per
        second.

        *The log.* ``save``: keep all queries in this .npz file, also when the run is interrupted or the box fails;
        ``resume``: begin with the queries in ``save``; ``progress``: as in :func:`relumine.recover`.

        *Random rows.* ``growth`` (1.5): factor between batches where the width is given; all others (activation,
        starts, …) are passed on to :func:`relumine.recover`.

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
    given = {"dim": dim, "width": width, "budget": budget, "queries": queries, "link": link, "rng": rng}
    region = {"mean": mean, "scale": scale, "low": low, "high": high}
    asked = check({**options, **given, **region, "seconds": seconds, "on_failure": on_failure})
    began = time.monotonic()
    box = open_box(f, asked.manner.timeout, asked.manner.calling(link))
    where = asked.region.opened(_inputs(dim, box.dim), box.columns)
    run = Run(np.random.default_rng(0), began + asked.limit, asked.progress)
    log = Queries(where.free.box(box), len(where.free.at), asked.manner, asked.seed, run)
    if asked.progress is not None:
        run.progress = _counting(asked.progress, log)
    mapping = None
    if link is not None:
        mapping, where = _linked(link, log, where, queries)
    found = _told(answered(log, where, run, asked), log, where, mapping)
    if seconds is None and found.status is Status.INTERRUPTED and run.left <= 0.0:
        found = replace(found, message=f"{found.message} Without seconds= the limit is {asked.limit / 60.0:g} minutes.")
    rest_of_time = time.monotonic() - began - found.seconds
    if rest_of_time > 0.05 * found.seconds:  # so that the total is that of the call
        found = replace(found, stages=(*found.stages, Stage("asking, and what else it took", rest_of_time)))
    if on_failure == "raise" and not found.ok and found.status is not Status.INTERRUPTED:
        raise RecoveryFailed(found)
    return found


def _counting(progress: ProgressCallback, log: Queries) -> ProgressCallback:
    """Steps are told with the rows asked so far."""
    return lambda step: progress(replace(step, queries=log.count))


def _inputs(dim: int | None, known: int | None) -> int:
    """Number of inputs, from the user and from the box."""
    if dim is None and known is None:
        raise InvalidInput("dim is needed: the number of inputs of the black box", argument="dim")
    if None not in (dim, known) and dim != known:
        raise InvalidInput(f"the black box has {known} inputs, and dim={dim} was given", argument="dim")
    return int(dim or known or 0)


def _linked(link: str, log: Queries, where: Where, queries: str) -> tuple[Link | None, Where]:
    """The link, recognised from a few answers; and where those have digits."""
    assert where.domain is not None  # a sampler and a link were refused
    fresh = not log.n
    mapping, domain = linked(link, log, where.domain)
    if fresh and queries == "chosen":
        log.begin("chosen")
    elif fresh:
        log.set_aside()
    return mapping, where._replace(domain=domain)


def _told(answer: Answered, log: Queries, where: Where, mapping: Link | None) -> Extraction:
    """The result as one of all inputs, with what was asked."""
    free, rest = where.free, answer.rest
    result = explained(answer.result, log, where.domain, answer.kind)
    result = result.noted(*where.notes, *(() if mapping is None else mapping.notes))
    if rest is not None and not free.all:
        ask, layers, unsigned = rest.ask, rest.layers, rest.unsigned
        if layers:
            layers = ((free.layer(layers[0][0]), layers[0][1]), *layers[1:])
        elif unsigned is not None:
            unsigned = (free.layer(unsigned[0]), unsigned[1])
        rest = replace(rest, layers=layers, unsigned=unsigned, ask=lambda X: ask(X[:, free.at]))
    U, y = log.data(everything=True, mapped=False)
    return Extraction(
        **{f.name: getattr(result, f.name) for f in fields(Recovery)}
        | {"network": free.network(result.network), "mapping": mapping},
        queries=log.count,
        way="chosen" if result.method == "lines" else answer.way,
        calls=log.calls,
        retried=log.retried,
        dropped=log.dropped,
        X=free.rows(U),
        y=y,
        rest=rest,
    )
