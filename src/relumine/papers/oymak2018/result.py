"""What :func:`relumine.papers.oymak2018.method.decode` returns and raises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relumine.arrays import Array
from relumine.papers.oymak2018.probes import Tails
from relumine.results import Certificate, RecoveryFailed, RelumineError, Stage, Status


@dataclass(frozen=True)
class Decoding:
    """The result of :func:`decode`.

    Attributes
    ----------
    w : (d,) array
        The decoded vector; *the* vector only if ``status.ok``.
    status, message, advice
        How it ended, why, and what to do about it.
    certificate : Certificate
        The evidence, from rows never used in the fit.
    standard_errors : (d,) array or None
        One for each coordinate, for noisy labels.
    history : (iterations + 1,) array
        Root mean square residual over the standard deviation of y, from the start to the last iterate.
    tails : Tails
        The smallest T(Θ) and the largest S(Θ) over the columns of X: the theorem's step and rate.
    step : float
        The step size μ of the gradient methods; NaN for Gauss–Newton.
    stages : tuple of Stage
        Where the time went.
    """

    w: Array
    status: Status
    message: str
    certificate: Certificate
    standard_errors: Array | None = None
    history: Array = field(default_factory=lambda: np.zeros(0))
    tails: Tails | None = None
    step: float = float("nan")
    stages: tuple[Stage, ...] = ()
    method: str = "gauss-newton"

    @property
    def ok(self) -> bool:
        """Whether ``w`` can be used as the answer."""
        return self.status.ok

    @property
    def iterations(self) -> int:
        """Steps of the fit that was kept."""
        return max(len(self.history) - 1, 0)

    @property
    def seconds(self) -> float:
        """Total time of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def title(self) -> str:
        """One clause for people."""
        return _TITLE.get(self.status, self.status.title)

    @property
    def advice(self) -> str:
        """What to do next."""
        return _ADVICE[self.status]

    def __str__(self) -> str:
        head = f"{self.title}: {len(self.w)} coordinates ({self.method}, {self.iterations} iterations, "
        parts = (
            f"{head}{self.seconds:.1f} s)",
            self.message,
            str(self.certificate) if self.certificate.rows else "",
            f"advice: {self.advice}",
        )
        return "\n".join(part for part in parts if part)


_TITLE = {
    Status.NOT_RECOVERED: "Not recovered",
    Status.UNDERDETERMINED: "These rows do not determine the vector",
}
_ADVICE = {
    Status.EXACT: "The vector reproduces rows it never saw to rounding error. Nothing more to do.",
    Status.NOISY: "Standard errors say how well each coordinate is known; four times the rows halve them.",
    Status.NOT_RECOVERED: "Do not use this vector. Try method='gauss-newton', more rows (n ≥ 2d), a larger "
    "bound, or check that the weights and the slope are the ones that made the labels.",
    Status.UNDERDETERMINED: "Collect more rows (n ≥ 1.5 d is comfortable), with probes that cross from "
    "−bound to bound in every column; drop columns that never vary.",
}


class DecodingFailed(RecoveryFailed):
    """Raised when w was not decoded; ``.decoding`` (also ``.recovery``) carries the best found."""

    def __init__(self, decoding: Decoding) -> None:
        RelumineError.__init__(
            self,
            f"{decoding.title}. {decoding.message}\n{decoding.advice}\n"
            "(The best vector found is in .decoding; on_failure='return' returns it instead of raising.)",
        )
        self.decoding = decoding
        self.recovery: Any = decoding

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.decoding,)
