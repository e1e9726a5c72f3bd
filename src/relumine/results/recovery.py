"""The result of every method, and the error that carries one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from relumine.arrays import Array
from relumine.results.certificate import Certificate
from relumine.results.errors import InvalidInput, RelumineError
from relumine.results.records import Labels, Origin, Predictions, SearchRecord, Stage, StandardErrors, Units
from relumine.results.status import Diagnosis, Status
from relumine.results.words import described

if TYPE_CHECKING:
    from relumine.links import Link
    from relumine.network import Network

_LINEAR = (
    "A linear function explains the target to the last digit: there is no hidden unit to find. If you expected one, "
    "check which columns are used."
)
_NOISE = (
    "No hidden unit shows above the noise, so the linear fit is all that these rows tell. If you expect more, collect "
    "more rows, reduce the noise, or check which columns are used."
)
_CONSTANT = "The target is the same in every row: choose another column, or rows in which it varies."


@dataclass(frozen=True)
class Recovery:
    """The result of every method: the network, how it ended, the evidence, and where the time went.

    ``mapping``: how answers were mapped back to values of the network, where a link was given.
    """

    network: Network
    status: Status
    message: str
    certificate: Certificate
    units: Units = field(default_factory=Units)
    standard_errors: StandardErrors | None = None
    stages: tuple[Stage, ...] = ()
    method: str = "auto"
    search: SearchRecord = field(default_factory=SearchRecord)
    shown: Predictions | None = None
    origin: Origin = field(default_factory=Origin)
    mapping: Link | None = None
    diagnosis: Diagnosis | None = None

    @property
    def link(self) -> str | None:
        """The name of the link between the network and the answers: "logit", "softmax", "log" or None."""
        return None if self.mapping is None else self.mapping.name

    def predict(self, X: ArrayLike) -> Array:
        """What was observed at the rows of X: probabilities, where there is a link; else the values of the network.

        X: (n, d) numbers in the order of the inputs; of a dataframe the columns are found by name, if the inputs had
        names.
        """
        Z = self.network(self._inputs(X))
        return Z if self.mapping is None else self.mapping.answers(Z)

    def _inputs(self, X: Any) -> ArrayLike:
        """Rows of numbers: the columns of a dataframe by the names of the inputs, anything else as it is."""
        if isinstance(X, str | PathLike):
            remedy = "read it first, or use `relumine predict` on the command line"
            raise InvalidInput(
                f"predict takes rows of numbers, not the name of a file ({X})", argument="X", remedy=remedy
            )
        names = self.origin.features
        if not names or not hasattr(X, "columns"):
            return np.asarray(X)
        called = {str(column): column for column in X.columns}
        missing = [name for name in names if name not in called]
        if missing:
            raise InvalidInput(f"X has no column {missing[0]!r}", argument="X", remedy=f"it needs: {', '.join(names)}")
        return np.asarray(X[[called[name] for name in names]])

    @property
    def labels(self) -> Labels:
        """What a model file says beside the numbers of the network."""
        return Labels(self.origin.features, self.status.value, "" if self.mapping is None else self.mapping.form.word)

    def export(self, path: str | PathLike[str], *, dtype: Literal["float64", "float32"] = "float64") -> None:
        """Write the network as a model file, with its status, its link and the names of its inputs.

        ``.safetensors``, ``.onnx``, ``.npz`` or ``.json``. An ONNX graph then answers what was observed:
        probabilities, where there is a link. ``dtype``: as in :meth:`relumine.Network.save`.
        """
        self.network.save(path, dtype=dtype, labels=self.labels)

    def to_torch(self) -> Any:
        """The network as a torch module that ends with the link: it gives what was observed."""
        return self.network.to_torch(link=self.labels.link)

    @property
    def title(self) -> str:
        """How it ended, in a clause: the cause of a failure, where it is known."""
        if self.ok or self.diagnosis is None:
            return self.status.title
        stopped = self.status is Status.INTERRUPTED
        return f"{self.status.title if stopped else 'Not recovered'}: {self.diagnosis.cause.value}"

    @property
    def advice(self) -> str:
        """What to do next: about the cause of a failure, where it is known."""
        if self.status is Status.EXACT and not self.network.m:
            return _LINEAR if np.any(self.network.v) else _CONSTANT
        if self.status is Status.NOISY and not self.network.m:
            return _NOISE
        return self.status.advice if self.ok or self.diagnosis is None else self.diagnosis.advice

    @property
    def ok(self) -> bool:
        """Whether the status is a success."""
        return self.status.ok

    @property
    def seconds(self) -> float:
        """Total time of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def headline(self) -> str:
        """One sentence: what was recovered. The same in the terminal, in the report and in a notebook."""
        net = self.network
        if self.ok and not net.m:
            if not np.any(net.v) and self.status is Status.EXACT:
                target = self.origin.target or "y"
                return f"No hidden unit found: {target} is the same in every row; is it the right column?"
            share = self._explained()
            words = (
                f" explains {100.0 * share:.3g} % of the variance of {self.origin.target or 'y'}"
                if np.isfinite(share)
                else ""
            )
            return f"No hidden unit found: a linear fit{words}."
        return f"{self.title}{':' if self.ok else '. Best found:'} {described(net)}."

    def _explained(self) -> float:
        """The share of the variance of y: by the noise where the spread of y is known, else by the rows kept out."""
        spread, noise = self.origin.target_spread, self.certificate.noise
        left = noise / spread if spread > 0.0 and noise > 0.0 else self.certificate.residual
        return max(1.0 - left**2, 0.0) if np.isfinite(left) else float("nan")

    def told(self, advice: tuple[str, ...]) -> str:
        """The result in words for a terminal, with the advice of whoever tells it."""
        head = f"{self.headline.removesuffix('.')} ({self.method}, {self.seconds:.1f} s)"
        # of a wrong network, or of none, the condition of the fit says nothing
        known = self.certificate if self.ok and self.network.m else replace(self.certificate, condition=float("nan"))
        next_step = () if self.status is Status.EXACT else (f"advice: {line}" for line in advice)  # nothing left to do
        return "\n".join(part for part in (head, self.message, known.told(self.message), *next_step) if part)

    def __str__(self) -> str:
        return self.told((self.advice,))

    def _repr_html_(self) -> str:
        from relumine.report.notebook import recovery

        return recovery(self)

    def plot(self, features: Sequence[str] | None = None) -> Any:
        """Units, loss, bias and output weight as a matplotlib figure; ``features`` names the inputs."""
        from relumine.report.plots import recovery

        return recovery(self, features)

    def noted(self, *notes: str) -> Self:
        """The same with more notes on the certificate."""
        certificate = replace(self.certificate, notes=(*self.certificate.notes, *notes))
        return replace(self, certificate=certificate)

    def confidence_interval(self, level: float = 0.95) -> tuple[StandardErrors, StandardErrors]:
        """Lower and upper ends of normal confidence intervals, in the shapes of the parameters."""
        from scipy.special import ndtri

        if self.standard_errors is None:
            raise InvalidInput("no standard errors: they exist for noisy data with more rows than parameters")
        if not 0.0 < level < 1.0:
            raise InvalidInput(f"level must lie strictly between 0 and 1, got {level}")
        z, se, net = float(ndtri(0.5 + level / 2.0)), self.standard_errors, self.network

        def ends(sign: float) -> StandardErrors:
            return StandardErrors(
                *(np.asarray(getattr(net, key) + sign * z * getattr(se, key)) for key in ("W", "b", "a", "v", "c"))
            )

        return ends(-1.0), ends(+1.0)


class RecoveryFailed(RelumineError):
    """Raised when the network was not recovered; ``.recovery`` carries the best found and its status."""

    def __init__(self, recovery: Recovery) -> None:
        super().__init__(
            f"{recovery.title}. {recovery.message}\n{recovery.advice}\n"
            "(The best network found is in .recovery; on_failure='return' returns it instead of raising.)"
        )
        self.recovery = recovery

    def __reduce__(self) -> tuple[type[RecoveryFailed], tuple[Recovery]]:
        return type(self), (self.recovery,)
