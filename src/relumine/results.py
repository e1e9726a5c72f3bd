"""What a recovery returns: a network, a status whose text is the advice, a certificate, and where the time went."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relumine.arrays import Array

if TYPE_CHECKING:
    from relumine.links import Link
    from relumine.network import Network


__all__ = [
    "Cause",
    "Certificate",
    "Diagnosis",
    "InvalidInput",
    "Labels",
    "MissingPackage",
    "ModelFileError",
    "NotWritten",
    "Origin",
    "Predictions",
    "Progress",
    "Recovery",
    "RecoveryFailed",
    "RelumineError",
    "RelumineWarning",
    "SearchRecord",
    "Stage",
    "StandardErrors",
    "Status",
    "Units",
    "WidthEvidence",
    "counted",
    "described",
]


class RelumineError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidInput(RelumineError, ValueError):
    """The input cannot be used; the message says what was wrong, where, and what to do.

    Parameters
    ----------
    problem : str
        What was wrong, and where.
    argument : str, optional
        The argument that has to change, by its name in Python: a door with other names for it can say those.
    remedy : str, optional
        What to do; part of the message.
    """

    def __init__(self, problem: str, *, argument: str | None = None, remedy: str | None = None) -> None:
        super().__init__(problem if remedy is None else f"{problem}; {remedy}")
        self.problem, self.argument, self.remedy = problem, argument, remedy


class MissingPackage(InvalidInput):
    """An optional package is not installed; the message names it and how to get it.

    Examples
    --------
    >>> str(MissingPackage("ONNX files need onnx", "onnx"))
    'ONNX files need onnx; pip install onnx'
    """

    def __init__(self, problem: str, *packages: str) -> None:
        # the packages by their own names: that works from a checkout as well as from an index
        super().__init__(problem, remedy=f"pip install {' '.join(packages)}" if packages else None)


class ModelFileError(RelumineError, ValueError):
    """A model file is missing, damaged, or not ours."""


class NotWritten(RelumineError, OSError):
    """A file could not be written (no space, no permission); the message names it and what to do."""


class RelumineWarning(UserWarning):
    """Something was done differently from what was asked, or deserves a look."""


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
        "What is left looks like noise. Standard errors say how well each parameter is known; "
        "four times the samples halve them.",
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
    TOO_FEW_ROWS = "too few rows"
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


@dataclass(frozen=True)
class Stage:
    """One step of the run: its name, how long it took, the relative loss after it, and a word about it."""

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


def counted(k: int, thing: str) -> str:
    """A number and what it counts: '1 row', '1,078 rows'."""
    return f"{k:,} {thing}{'' if k == 1 else 's'}"


def described(net: Network) -> str:
    """A network in a clause: its units, inputs, outputs, and whether an affine part goes with them."""
    if not net.m:
        return f"no hidden units, an affine function of {counted(net.d, 'input')}"
    name = net.activation.name
    spoken = {"relu": "ReLU", "leaky_relu": "leaky ReLU", "squared_relu": "squared ReLU"}.get(name, name)
    behind = f"behind {counted(net.d, 'input')}" + (f" and {counted(net.q, 'output')}" if net.q is not None else "")
    widths: tuple[int, ...] = getattr(net, "widths", ())
    if widths:  # a DeepNetwork
        return f"{counted(len(widths), 'hidden layer')} of {' + '.join(map(str, widths))} {spoken} units {behind}"
    words = f"{counted(net.m, f'{spoken} unit')} {behind}"
    if np.any(net.v) or np.any(net.c):
        words += ", with an affine part" if np.any(net.v) else ", with an output bias"
    return words


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


@dataclass(frozen=True)
class Certificate:
    """Evidence for the network, and in words what it proves and what it does not.

    Attributes
    ----------
    residual : float
        Root mean square error over the standard deviation of y, on ``rows`` rows never used in the fit.
    rows : int
        How many rows that was (0: none could be spared).
    noise : float
        Estimated standard deviation of the label noise (0 for exact data).
    condition : float
        Condition number of the scaled Gauss–Newton matrix at the answer: large means some direction in parameter
        space hardly changes the fit. NaN where it was not computed.
    confirmed : int
        How many rows (or queries) confirm the network: each could have contradicted it, and did not.
    unseen : float
        At most this share of the inputs' distribution may still differ from the network, with 95 % confidence
        (3/confirmed, the rule of three); NaN where nothing was confirmed.
    proves, does_not_prove : str
        In words.
    notes : tuple of str
        Identifiability remarks: signs, absorbed units, near-parallel units, …
    """

    residual: float
    rows: int
    noise: float = 0.0
    condition: float = float("nan")
    confirmed: int = 0
    unseen: float = float("nan")
    proves: str = ""
    does_not_prove: str = ""
    notes: tuple[str, ...] = ()

    @property
    def evidence(self) -> str:
        """How many rows confirm the network, and what that leaves open, in words; empty where nothing was counted.

        Examples
        --------
        >>> Certificate(1e-15, 20, confirmed=1078, unseen=3 / 1078).evidence
        'confirmed by 1,078 rows; at most 0.28 % of inputs like these may still differ (95 %)'
        """
        if self.confirmed < 1:
            return ""
        open_share = f"; at most {100.0 * self.unseen:.2g} % of inputs like these may still differ (95 %)"
        rows = counted(self.confirmed, "row")
        return f"confirmed by {rows}" + (open_share if self.unseen < 1.0 else "")

    def __str__(self) -> str:
        lines = []
        if np.isfinite(self.residual):
            rows = counted(self.rows, "row")
            lines.append(f"error on unseen rows {self.residual:.3g} of the spread of y, on {rows} kept out of the fit")
        lines += [self.evidence] if self.evidence else []
        if self.noise > 0.0:
            lines.append(f"standard deviation of what is left {self.noise:.3g}, on the scale of y")
        if np.isfinite(self.condition):
            lines.append(f"condition of the fit {self.condition:.2g}")
        lines += [f"proves: {self.proves}"] if self.proves else []
        lines += [f"does not prove: {self.does_not_prove}"] if self.does_not_prove else []
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


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
        """What was observed at the rows of X: probabilities, where there is a link; else the values of the network."""
        Z = self.network(X)
        return Z if self.mapping is None else self.mapping.answers(Z)

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
        next_step = () if self.status is Status.EXACT else (f"advice: {line}" for line in advice)  # nothing left to do
        return "\n".join(part for part in (head, self.message, str(self.certificate), *next_step) if part)

    def __str__(self) -> str:
        return self.told((self.advice,))

    def _repr_html_(self) -> str:
        from relumine.report.notebook import recovery

        return recovery(self)

    def plot(self, features: Sequence[str] | None = None) -> Any:
        """Units, loss, bias and output weight as a matplotlib figure; ``features`` names the inputs."""
        from relumine.report.plots import recovery

        return recovery(self, features)

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
