"""How a recovery ended, and why it failed: each status has a title and says what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How a recovery ended. ``.ok`` says whether the network can be used as *the* network; ``.advice`` what to do."""

    EXACT = "exact"
    NOISY = "noisy"
    ESTIMATE = "estimate"
    NOT_RECOVERED = "not recovered"
    UNDERDETERMINED = "under-determined"
    AMBIGUOUS = "ambiguous"
    INTERRUPTED = "interrupted"

    @property
    def ok(self) -> bool:
        """Whether the method reached what it promises."""
        return self in (Status.EXACT, Status.NOISY, Status.ESTIMATE)

    @property
    def title(self) -> str:
        """One clause for people."""
        return _TEXT[self][0]

    @property
    def advice(self) -> str:
        """What to do next."""
        return _TEXT[self][1]


_TEXT: dict[Status, tuple[str, str]] = {
    Status.EXACT: (
        "Recovered exactly",
        "The network reproduces rows it never saw to rounding error. Nothing more to do.",
    ),
    Status.NOISY: (
        "Recovered up to noise",
        "Standard errors say how well each parameter is known; four times the samples halve them.",
    ),
    Status.ESTIMATE: (
        "Estimated from moments",
        "The parameters carry the sampling error of the moments. For the exact network use method='auto', "
        "which refines by least squares.",
    ),
    Status.NOT_RECOVERED: (
        "Not recovered: the network does not explain the data up to noise",
        "Try a larger width= (or width=None, to have it found), more rows, more starts=, or another activation=: the "
        "data may not come from a one-hidden-layer network of this width and activation.",
    ),
    Status.UNDERDETERMINED: (
        "Too few samples for this width",
        "Collect more rows (about 5 numbers per parameter, see rl.advise) or ask for a smaller width=. "
        "Many different networks explain these data: do not take the returned one for the answer.",
    ),
    Status.AMBIGUOUS: (
        "The data fit, but they cannot single out this network",
        "Other networks may explain the same data. Sample inputs that vary continuously and reach both sides of "
        "every unit's kink.",
    ),
    Status.INTERRUPTED: (
        "Stopped before the end",
        "This is the best network so far, not a result. Run again with more time (seconds=).",
    ),
}


class Cause(Enum):
    """Why a network was not recovered, as far as the rows show it; the value is a clause for people."""

    FEW_POSSIBLE_ROWS = "the inputs take only a few values"
    CLASSES = "the target is a class, not a number"
    STEPS = "the target is constant in pieces"
    TOO_FEW_ROWS = "too few rows"
    SERIES = "the rows are a series"
    TOO_NARROW = "the width is too small"
    PROBABILITIES = "the target looks like probabilities"
    OUTLIERS = "a few rows do not belong to the others"
    SMOOTH = "the target is smooth"
    RUNNING_NUMBER = "an input is a running number"
    FEW_VALUES = "an input takes only a few values"
    NEARLY = "nearly explained"


@dataclass(frozen=True)
class Diagnosis:
    """What is behind a failure: its ``cause``, a sentence with the figures (``words``), and what to do (``advice``)."""

    cause: Cause
    words: str
    advice: str
