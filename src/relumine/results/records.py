"""What a result holds beside its network, as plain records: times, units, standard errors, how the search went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from relumine.arrays import Array


@dataclass(frozen=True)
class Stage:
    """One step of the run: its name, how long it took, the relative loss after it, and a note about it."""

    name: str
    seconds: float
    loss: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Progress:
    """What a progress callback receives: the stage, the iteration in it, the relative loss, units found so far.

    ``loss`` is NaN where nothing is fitted. Of a black box: ``queries``, the rows asked so far, and how many are
    ``expected`` for the units found, where that is known.
    """

    stage: str
    iteration: int
    loss: float
    units: int | None = None
    seconds: float = 0.0
    queries: int | None = None
    expected: int | None = None


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True)
class Units:
    """Which units of the returned network are known how well; indices are rows of ``network.W``.

    ``recovered``: all parameters; ``up_to_sign``: (w, b) only up to a joint sign (the sign cannot be known or
    was not found); ``absorbed``: one line for each part of the target that lives in the affine part instead.
    """

    recovered: tuple[int, ...] = ()
    up_to_sign: tuple[int, ...] = ()
    absorbed: tuple[str, ...] = ()


@dataclass(frozen=True)
class StandardErrors:
    """One standard error for each parameter of the network, in the same shapes; NaN where there is none."""

    W: Array
    b: Array
    a: Array
    v: Array
    c: Array


@dataclass(frozen=True)
class WidthEvidence:
    """For one width: the relative loss reached and its Bayesian information criterion (smaller is better)."""

    width: int
    loss: float
    bic: float


@dataclass(frozen=True)
class SearchRecord:
    """How the search went.

    ``starts``: initialisations used; ``cycles``: how often the search went on from the network of a start; ``trace``:
    the losses of each stage, step by step; ``widths``: what was tried; ``loss``: relative loss of the result;
    ``noise`` (q,): standard deviation of what is left of each output;
    ``rows``: rows that decided, ``rows_searched``: rows among which the network was found; ``wider``: the width of a
    network that explains significantly more, if there is one.
    """

    starts: int = 0
    trace: tuple[tuple[str, tuple[float, ...]], ...] = ()
    widths: tuple[WidthEvidence, ...] = ()
    loss: float = float("nan")
    noise: tuple[float, ...] = ()
    rows: int = 0
    rows_searched: int = 0
    cycles: int = 0
    wider: int | None = None


@dataclass(frozen=True)
class Predictions:
    """Some rows to look at: ``truth`` and ``predicted`` (k, q); ``unseen``: the fit never used them."""

    truth: Array
    predicted: Array
    unseen: bool = True


@dataclass(frozen=True)
class Origin:
    """Where the samples came from, as a door knows it: names for the report, and what makes a run repeatable.

    ``spread`` (d,): standard deviation of each input, ``target_spread``: of the target; empty and NaN if unknown.
    """

    source: str = ""
    features: tuple[str, ...] = ()
    target: str = ""
    seed: int | None = None
    spread: tuple[float, ...] = ()
    target_spread: float = float("nan")
    advice: tuple[str, ...] = ()


class Labels(NamedTuple):
    """What a model file says beside the numbers: names of the d inputs (safetensors), how it ended, the link."""

    features: tuple[str, ...] = ()
    status: str = ""
    link: str = ""
