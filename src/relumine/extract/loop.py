"""`extract`: ask, recover, look at the certificate, ask more."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from math import ceil
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.extract.boxes import open_box
from relumine.extract.queries import Queries
from relumine.extract.sampling import Sampler, make_sampler
from relumine.methods.recover import recover
from relumine.results import InvalidInput, Progress, ProgressCallback, Recovery, RecoveryFailed, Status

Array = NDArray[np.float64]

__all__ = ["Extraction", "extract"]

_PER_PARAMETER = 5  # queries for each of the width·(d+1) parameters, at first
_PER_GUESS = 4  # the same while the width is a guess: one that is twice too large then takes 8 per true parameter
_PROBE = 8  # rows asked twice: does the box repeat itself?
_COARSE = 1e-5  # relative residual that can be the rounding of a single-precision box
_QUICK = 2  # starts while more queries can still be had


@dataclass(frozen=True)
class Extraction(Recovery):
    """A :class:`~relumine.results.Recovery` and what it took.

    ``queries``: rows asked (a row asked again after a failure counts once); ``calls``: calls of the box, ``retried`` of
    them repetitions after a failure; ``dropped``: rows it never answered. ``X`` and ``y``: every row and its answer.
    """

    queries: int = 0
    calls: int = 0
    retried: int = 0
    dropped: int = 0
    X: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    y: Array = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def recovery(self) -> Recovery:
        """The result of the last recovery, without the queries."""
        return Recovery(**{f.name: getattr(self, f.name) for f in fields(Recovery)})

    def __str__(self) -> str:
        failures = f", {self.retried} calls repeated, {self.dropped} rows dropped" if self.retried else ""
        return f"{super().__str__()}\nqueries: {self.queries} rows in {self.calls} calls{failures}"


def extract(
    f: Any,
    dim: int | None = None,
    width: int | None = None,
    budget: int = 100_000,
    *,
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
    rate_limit: float | None = None,
    save: str | PathLike[str] | None = None,
    resume: bool = False,
    rng: int | np.random.Generator | None = None,
    seconds: float | None = None,
    progress: ProgressCallback | None = None,
    on_failure: Literal["raise", "return"] = "raise",
    **options: Any,
) -> Extraction:
    """Recover the network inside a black box by asking it: as few rows as needed, until the certificate holds.

    With the width given the first batch has 5·width·(d+1) rows, and each further one half as many again. Without it
    widths 4, 8, 16, … are tried, each with 4 rows per parameter: between 4 and 8 for each of the m·(d+1) in the end.

    Parameters
    ----------
    f : callable, str, path, list of str or torch module
        A function from (n, d) to (n,) or (n, q); ``"module:function"``; an ``.onnx`` file; a torch module; or a
        command that reads rows of comma-separated numbers and prints a line for each (no shell is involved).
    dim : int, optional
        Number of inputs; known from an ONNX file or a torch module.
    width : int, optional
        Number of hidden units; found when None.
    budget : int
        Most rows to ask.
    mean, scale : float or (d,) array, optional
        Centre and spread of Gaussian queries; standard by default.
    low, high : float or (d,) array, optional
        Ask uniformly in this range instead.
    sampler : callable, optional
        ``sampler(rng, n)`` draws the queries instead.
    growth : float
        Factor between batches where the width is given.
    batch : int
        Most rows in one call of the box.
    retries, pause : int, float
        A call that raises or gives NaN is tried again so often, after ``pause``, 2·``pause``, … seconds; then the batch
        is split, and a single row that keeps failing is left out.
    timeout : float
        Seconds that a command may take for one call.
    rate_limit : float, optional
        Most rows per second.
    save : path, optional
        Keep all queries in this .npz file, also when the run is interrupted or the box fails.
    resume : bool
        Begin with the queries in ``save``.
    rng, seconds, progress, on_failure, options
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
    >>> found.status.value, found.network.m, found.queries
    ('exact', 3, 104)
    """
    box = open_box(f, timeout)
    dim = box.dim if dim is None else dim
    _check(dim, box.dim, width, budget, growth, batch, retries, rate_limit)
    assert dim is not None
    draw = make_sampler(dim, mean, scale, low, high, sampler)
    target = None if save is None else Path(save)
    if target is not None and target.exists() and not resume:
        raise InvalidInput(f"{target} exists; pass resume=True to go on from it, or name another file")
    queries = Queries(box, dim, retries=retries, pause=pause, rate_limit=rate_limit, batch=batch, save=target)
    if resume:
        if target is None:
            raise InvalidInput("resume=True needs save=, the file with the queries of the run to go on from")
        if target.exists():
            queries.resume()
    seed = rng if isinstance(rng, int | np.integer) else int(np.random.default_rng(rng).integers(2**63))
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    run = _Run(queries, draw, int(seed), budget, deadline, progress, options)
    result = run.until_certain(width, growth)
    X, y = queries.data()
    found = Extraction(
        **{f.name: getattr(result, f.name) for f in fields(Recovery)},
        queries=queries.count,
        calls=queries.calls,
        retried=queries.retried,
        dropped=queries.dropped,
        X=X,
        y=y,
    )
    if on_failure == "raise" and not found.ok and found.status is not Status.INTERRUPTED:
        raise RecoveryFailed(found)
    return found


@dataclass
class _Run:
    """One extraction: what it asks, and what it takes for certain."""

    queries: Queries
    draw: Callable[[np.random.Generator, int], Array]
    seed: int
    budget: int
    deadline: float
    progress: ProgressCallback | None
    options: dict[str, Any]
    noise: Array = field(default_factory=lambda: np.zeros(1))

    def until_certain(self, width: int | None, growth: float) -> Recovery:
        """Ask, recover, ask more."""
        self._repeats_itself()
        d, noisy = self.queries.dim, bool(self.noise.any())
        guess = 4 if width is None else max(width, 1)
        share = _PER_PARAMETER if width is not None else 10 * _PER_GUESS if noisy else _PER_GUESS
        rows = max(share * guess * (d + 1), 2 * (d + 2))
        found: Recovery | None = None
        for _ in range(64):
            try:
                self._ask(rows)
            except KeyboardInterrupt:
                if found is None:
                    raise
                return replace(found, status=Status.INTERRUPTED)
            last = self._room() <= 0 or self._out_of_time()
            starts = {} if last or "starts" in self.options else {"starts": _QUICK}
            found = self._recover(guess if width is None and not (noisy or last) else width, **starts)
            if width is None and found.certificate.residual <= _COARSE and not self._certain(found):
                found = self._fewer(found)
            if last or self._certain(found) or found.status is Status.INTERRUPTED:
                break
            guess = 2 * guess if width is None else guess
            rows = rows * 2 if width is None else ceil(rows * growth)
        assert found is not None
        return self._in_words(found)

    def _ask(self, rows: int) -> None:
        """Bring the number of answered rows to ``rows``, if the budget allows."""
        for _ in range(4):  # rows that were dropped are replaced, a few times
            need = min(rows - self.queries.n, self._room())
            if need <= 0 or self._out_of_time():
                return
            self._report(rows)
            # a stream of its own for every point of the run, so that a resumed run asks new rows
            rng = np.random.default_rng(
                np.random.SeedSequence(self.seed, spawn_key=(self.queries.n, self.queries.count))
            )
            self.queries.ask(self.draw(rng, need), lambda: not self._out_of_time())

    def _repeats_itself(self) -> None:
        """Ask a few rows twice: what differs is noise, and what does not repeat saved answers is another box."""
        resumed = self.queries.n > 0
        if not resumed:
            self._ask(min(_PROBE, self.budget))
        X, y = self.queries.data()
        first, y = X[:_PROBE], y.reshape(len(X), -1)
        known = self.queries.again(first) if resumed else y[:_PROBE]
        self.noise = _rms(self.queries.again(first) - known) / np.sqrt(2.0)
        spread = y.std(axis=0)
        if resumed and (_rms(known - y[:_PROBE]) > 10.0 * self.noise + 10.0 * _COARSE * spread).any():
            raise InvalidInput(f"the queries saved in {self.queries.file} were answered by another box")

    def _recover(self, width: int | None, **more: Any) -> Recovery:
        X, y = self.queries.data()
        left = self.deadline - time.monotonic()
        limit = None if np.isinf(left) else max(left, 0.1)
        return recover(
            X,
            y,
            width,
            rng=self.seed,
            seconds=limit,
            progress=self.progress,
            on_failure="return",
            **{**self.options, **more},
        )

    def _certain(self, found: Recovery) -> bool:
        """Exact; or as good as the noise seen between two answers to the same question, or their rounding, allows."""
        if found.status is Status.EXACT:
            return True
        if self._rounded(found):
            return _visible(found) == found.network.m
        y = self.queries.data()[1]
        share = float(np.max(self.noise / np.maximum(np.atleast_1d(y.std(axis=0)), np.finfo(float).tiny)))
        return found.status is Status.NOISY and found.certificate.residual <= 3.0 * share

    def _rounded(self, found: Recovery) -> bool:
        """Whether the answers are single-precision numbers and what is left is of the size of their rounding."""
        y = self.queries.data()[1]
        single = bool((np.abs(y) < 1e30).all() and (y.astype(np.float32) == y).all() and (y % 1.0).any())
        known = found.status in (Status.NOISY, Status.NOT_RECOVERED)
        return single and known and found.certificate.residual <= _COARSE

    def _fewer(self, found: Recovery) -> Recovery:
        """The rows are explained, but by more units than are needed: again with those that matter."""
        most = min(_visible(found), found.network.m - 1)
        for width in range(most, max(most - 2, 0), -1):
            other = self._recover(width, starts=_QUICK)
            if self._certain(other):
                return other
        return found

    def _in_words(self, found: Recovery) -> Recovery:
        """A box that repeats itself has no noise: what looks like noise is its rounding, or something not found."""
        if self._certain(found) and found.status is not Status.EXACT and not self.noise.any():
            word = (
                f"{found.network.m} units; the relative error {found.certificate.residual:.1e} that is left is the "
                "rounding of answers in single precision, and the parameters are known no better than that."
            )
            return replace(found, status=Status.NOISY, message=word)
        if found.status is Status.NOISY and not self._certain(found):
            word = (
                f"The relative error {found.certificate.residual:.1e} that is left looks like noise, but is more than "
                f"the answers to the same question differ. {self.queries.n} rows were answered."
            )
            return replace(found, status=Status.NOT_RECOVERED, message=word)
        return found

    def _room(self) -> int:
        return self.budget - self.queries.count

    def _out_of_time(self) -> bool:
        return time.monotonic() > self.deadline

    def _report(self, rows: int) -> None:
        if self.progress is not None:
            self.progress(Progress(f"queries to {min(rows, self.budget)}", self.queries.n, 1.0))


def _visible(found: Recovery) -> int:
    """How many units do more than rounding: equal ones count once, and those a hundred thousand times weaker do not."""
    net = found.network.merge(1e-4)
    size = np.linalg.norm(np.atleast_2d(net.a), axis=0) * np.linalg.norm(net.W, axis=1)
    return int((size > _COARSE * size.max(initial=0.0)).sum())


def _rms(difference: Array) -> Array:
    """Root mean square of each column, NaN left out."""
    good = np.isfinite(difference).all(axis=1)
    return np.asarray(np.sqrt(np.mean(difference[good] ** 2, axis=0)) if good.any() else np.zeros(difference.shape[1]))


def _check(
    dim: int | None,
    known: int | None,
    width: int | None,
    budget: int,
    growth: float,
    batch: int,
    retries: int,
    rate_limit: float | None,
) -> None:
    """The numbers at the door."""
    if dim is None:
        raise InvalidInput("dim is needed: the number of inputs of the black box")
    if known is not None and known != dim:
        raise InvalidInput(f"the black box has {known} inputs, and dim={dim} was given")
    for name, value, least in (("dim", dim, 1), ("budget", budget, 2 * _PROBE), ("batch", batch, 1)):
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
