"""`extract`, the door: what is asked is checked, the run is made, its result goes with its queries."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from relumine.extraction.boxes import open_box
from relumine.extraction.queries import Queries
from relumine.extraction.run import PROBE, WIDER, Run
from relumine.extraction.sampling import Sampler, make_sampler
from relumine.results import InvalidInput, ProgressCallback, Recovery, RecoveryFailed, Status

Array = NDArray[np.float64]

__all__ = ["Extraction", "extract"]


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

    def told(self, advice: tuple[str, ...]) -> str:
        """The result in words for a terminal, and what was asked."""
        failures = f", {self.retried} calls repeated, {self.dropped} rows dropped" if self.retried else ""
        return f"{super().told(advice)}\nqueries: {self.queries} rows in {self.calls} calls{failures}"


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
    A box that seems to have no units, or fewer than ``width``, is asked 2000 more before that is believed. Growing ends
    early when three batches in a row fail and predict rows set aside no better than those before.

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
    _check(dim, box.dim, width, budget, growth, batch, retries, rate_limit, seconds)
    assert dim is not None
    draw, wide = make_sampler(dim, mean, scale, low, high, sampler), None
    if low is None and sampler is None:
        wide = make_sampler(dim, mean, WIDER * np.asarray(1.0 if scale is None else scale), None, None, None)
    target = None if save is None else _target(Path(save), resume)
    seed = _seed(rng)
    queries = Queries(box, dim, retries=retries, pause=pause, rate_limit=rate_limit, batch=batch, save=target)
    if resume:
        if target is None:
            raise InvalidInput("resume=True needs save=, the file with the queries of the run to go on from")
        if target.exists():
            queries.resume()
    deadline = float("inf") if seconds is None else time.monotonic() + seconds
    run = Run(queries, draw, wide, seed, budget, deadline, progress, options)
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


def _check(
    dim: int | None,
    known: int | None,
    width: int | None,
    budget: int,
    growth: float,
    batch: int,
    retries: int,
    rate_limit: float | None,
    seconds: float | None,
) -> None:
    """The numbers at the door."""
    if dim is None:
        raise InvalidInput("dim is needed: the number of inputs of the black box")
    if known is not None and known != dim:
        raise InvalidInput(f"the black box has {known} inputs, and dim={dim} was given")
    for name, value, least in (("dim", dim, 1), ("budget", budget, 2 * PROBE), ("batch", batch, 1)):
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
