"""Before a night of computing: can this problem be solved, by what, and at what cost on this machine?"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

from relumine import activations
from relumine.activations import Activation
from relumine.arguments import is_whole, whole
from relumine.papers import METHODS
from relumine.papers.mondelli2019.regimes import Regime, regime
from relumine.recovery.costs import rows_to_ask, seconds_of_asking, seconds_of_search
from relumine.results import InvalidInput, spelled
from relumine.tensors.symmetric import packed_size

_PER_PARAMETER, _PER_PARAMETER_SMOOTH = 5, 20  # samples, for exact data; smooth units need more to be told apart
_NOISE = 2  # times as many for noisy labels, at least
# Bytes over those of the rows, and beside them: (100,100) with 80 800 exact rows took 261 MB in all. Noisy rows that
# are refined all together take more: (60,10) with 60 000 of them 4.3 times their size.
_MEMORY_OVER_DATA, _MEMORY_BASE = 3, 64_000_000
_DAY, _WEEK = 86_400.0, 604_800.0  # seconds; a search that takes longer than a week is not advised
_LAYERS = (
    "Several hidden layers are found by asking: rl.extract, or relumine extract. From samples alone no efficient "
    "method is known; rl.recover(X, y, widths=…) is an experiment for a few units."
)
_WORDS = {
    "not determined": "Cannot be recovered: different weights give the same function",
    "hard": "Believed to be impossible in reasonable time, whatever the number of samples",
    "known": "Possible in principle; more units than inputs, so expect it to take longer",
    "open": "May work: more units than inputs, and no theorem either way",
    "easy": "Should work",
}


@dataclass(frozen=True)
class Advice:
    """What to expect of a recovery of ``width`` units in ``dim`` dimensions; ``print`` it for the words.

    Attributes
    ----------
    title : str
        The short answer.
    verdict : str
        "easy", "known", "open", "hard" or "not determined" (see :class:`relumine.papers.mondelli2019.regimes.Regime`).
    identifiable : bool
        Whether the function determines the weights, for weights in general position, up to the ``symmetries``.
    order : int or None
        The ℓ at which it does (tensors of order 2ℓ + 2 for ReLU).
    methods : tuple of (name, remark)
        Methods of :func:`relumine.recover` that apply.
    parameters, samples, memory_bytes, seconds : number
        p, samples needed, peak memory and time for those samples (or for the samples there are).
    queries, asking_seconds : number or None
        Rows to ask, if the network is inside a black box that can be asked anywhere (:func:`relumine.extract`), and the
        time that takes beside the box's own; None for smooth units, which are found from random rows.
    given : int or None
        The samples there are, if they were named.
    noise : bool
        Whether ``samples`` is for noisy labels.
    hardness : str
        Which result applies, in words.
    symmetries, remarks : tuple of str
        What no data can tell; what else to know.
    """

    dim: int
    width: int | tuple[int, ...]
    activation: str
    title: str
    verdict: str
    identifiable: bool
    order: int | None
    methods: tuple[tuple[str, str], ...]
    parameters: int
    samples: int | None
    queries: int | None
    asking_seconds: float | None
    given: int | None
    noise: bool
    memory_bytes: int
    seconds: float
    hardness: str
    symmetries: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def worth_trying(self) -> bool:
        """Neither hopeless, nor beyond this machine, nor short of samples."""
        short = self.given is not None and self.given <= self.parameters
        return self.verdict not in ("hard", "not determined") and self.seconds < _WEEK and not short

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "methods": dict(self.methods), "worth_trying": self.worth_trying}

    def __str__(self) -> str:
        units = self.width if isinstance(self.width, int) else " and ".join(map(str, self.width))
        lines = [f"{units} {spelled(self.activation)} units in {self.dim} dimensions: {self.title}.", "", self.hardness]
        if self.samples is None:
            lines += ["", f"memory   {_size(self.memory_bytes)}"]
        elif self.verdict != "not determined":
            affine = self.dim + 1
            data = "or more needed for noisy data" if self.noise else "needed for exact data"
            have = "" if self.given is None else f"; you have {self.given:,}"
            lines += [
                "",
                f"samples  {self.samples:,} {data}{have} ({self.parameters - affine:,} parameters, and {affine:,} "
                "for an affine part)",
                f"memory   {_size(self.memory_bytes)}",
                f"time     {_duration(self.seconds)} on this machine (rough: within a factor of three or so)",
            ]
            lines += ["methods  " + "\n         ".join(f"{name}: {text}" for name, text in self.methods)]
        if self.queries is not None and self.asking_seconds is not None:
            lines += [
                f"queries  about {self.queries:,} rows for extract, if it is a black box that you may ask anywhere "
                f"({_duration(self.asking_seconds)}, and the time of the box)"
            ]
        remarks = [*(f"data cannot tell {what}" for what in self.symmetries), *self.remarks]
        return "\n".join(lines + ([""] if remarks else []) + [f"- {remark}" for remark in remarks])


def advise(
    dim: int,
    width: int | list[int] | tuple[int, ...],
    activation: str | Activation = "relu",
    samples: int | None = None,
    *,
    weights: Literal["random", "separated"] = "random",
    noise: bool = False,
) -> Advice:
    """What will it cost, and can it work?

    Parameters
    ----------
    dim : int
        d inputs.
    width : int, or list or tuple of int
        m hidden units; of each layer, if there are several: then the answer is about queries.
    activation : str or Activation, default "relu"
    samples : int, optional
        How many you have; memory and time are then for those.
    weights : {"random", "separated"}
        In general position, or any separated isotropic ones (for which more is believed to be hard).
    noise : bool, default False
        Whether the labels are noisy.

    Examples
    --------
    >>> advice = advise(10, 20)
    >>> advice.verdict, advice.order, advice.parameters, advice.samples
    ('known', 2, 231, 1155)
    >>> advise(784, 128).queries, advise(784, (32, 32)).queries
    (115116, 58079)
    >>> advise(50, 1000, "polynomial(0,1,0,1)").title
    'Believed to be impossible in reasonable time, whatever the number of samples'
    """
    sigma = activations.get(activation)
    if isinstance(width, list | tuple):
        layers = _checked(dim, width, sigma)
        if len(layers) > 1:
            if samples is not None or weights != "random":
                word = "for several hidden layers the advice is about queries to a black box"
                raise InvalidInput(f"{word}; leave samples= and weights= out", argument="samples")
            return _several_layers(int(dim), layers, sigma, noise)
        width = layers[0]
    where = regime(dim, width, activation, weights)
    if samples is not None:
        whole("samples", samples, 1)
    dim, width = int(dim), int(width)
    per_unit = dim + 1 if sigma.homogeneity is not None else dim + 2
    p = width * per_unit + dim + 1
    per = (_PER_PARAMETER if sigma.kinks else _PER_PARAMETER_SMOOTH) * (_NOISE if noise else 1)
    n = per * p if samples is None else int(samples)
    seconds, memory = seconds_of_search(n, dim, width, sigma), _MEMORY_BASE + _MEMORY_OVER_DATA * 8 * n * (dim + 1)
    rows = None if not sigma.kinks or sigma.homogeneity != 1 else rows_to_ask(dim, width)
    remarks = []
    if where.verdict != "not determined":
        remarks = [*_about_samples(n, p, per, samples, noise), *_about_noise(noise), *_about_size(seconds, memory)]
    title = _WORDS[where.verdict]
    if where.verdict in ("easy", "known", "open"):
        if n <= p:
            title = "Not with these samples: there are more parameters than numbers"
        elif seconds > _WEEK:
            title = "Not on this machine: it would take weeks or longer"
    return Advice(
        dim=dim,
        width=width,
        activation=sigma.name,
        title=title,
        verdict=where.verdict,
        identifiable=where.order is not None or where.verdict in ("easy", "open"),
        order=where.order,
        methods=() if where.verdict == "not determined" else _methods(dim, width, sigma, where),
        parameters=p,
        samples=per * p,
        queries=rows,
        asking_seconds=None if rows is None else seconds_of_asking(rows, deep=False),
        given=None if samples is None else n,
        noise=bool(noise),
        memory_bytes=memory,
        seconds=seconds,
        hardness=where.reason,
        symmetries=_symmetries(sigma),
        remarks=tuple(remarks),
    )


def _checked(dim: int, widths: list[int] | tuple[int, ...], sigma: Activation) -> tuple[int, ...]:
    """Units of each layer."""
    if not len(widths) or not all(is_whole(m, 1) for m in widths):
        raise InvalidInput(
            f"width is a whole number, at least 1, or one for each layer; got {widths!r}", argument="width"
        )
    whole("dim", dim, 1)
    if len(widths) > 1 and sigma.name != "relu":
        raise InvalidInput(
            f"several hidden layers are found for relu units only, not {sigma.name}", argument="activation"
        )
    return tuple(int(m) for m in widths)


def _several_layers(dim: int, widths: tuple[int, ...], sigma: Activation, noise: bool) -> Advice:
    """What asking costs; docs/deep.md has what was measured, and how far it goes."""
    rows, sizes = rows_to_ask(dim, widths), (dim, *widths)
    remarks = ["the estimate holds within a factor of two for layers like those of docs/deep.md"]
    title = "Should work"
    if noise:
        title = "Not with noise: every further layer needs more digits than noisy answers have"
    elif len(widths) > 3:
        title = "The first layers should work; more than three are seldom found whole"
    elif any(b > a for a, b in pairwise(sizes)):
        title = "May work: a layer that is wider than what feeds it takes more rows"
    return Advice(
        dim=dim,
        width=widths,
        activation=sigma.name,
        title=title,
        verdict="hard" if noise else "easy" if title == "Should work" else "open",
        identifiable=not noise,
        order=None,
        methods=(),
        parameters=sum((a + 1) * b for a, b in pairwise(sizes)) + widths[-1] + 1,
        samples=None,
        queries=rows,
        asking_seconds=seconds_of_asking(rows, deep=True),
        given=None,
        noise=bool(noise),
        memory_bytes=_MEMORY_BASE + _MEMORY_OVER_DATA * 8 * rows * (dim + 1),
        seconds=seconds_of_asking(rows, deep=True),
        hardness=_LAYERS,
        symmetries=(
            "the order of the units in a layer",
            "how the scale of a unit is shared with the weights behind it",
        ),
        remarks=tuple(remarks),
    )


def _methods(d: int, m: int, sigma: Activation, where: Regime) -> tuple[tuple[str, str], ...]:
    doubt = " (but see above: do not expect it to succeed)" if where.verdict == "hard" else ""
    found = [("auto", "least squares with restarts; the result says whether it is exact" + doubt)]
    if METHODS["awasthi"].takes(sigma) and where.order is not None:
        order = 2 * where.order + 2
        cost = f"tensors of order {order}, {_size(8 * packed_size(min(d, m), order))}"
        found.append(("awasthi", f"proved for Gaussian inputs, order={where.order} ({cost}); needs far more samples"))
    if METHODS["zhong"].takes(sigma) and m <= d:
        found.append(("zhong", "proved for Gaussian inputs, no biases and output weights ±1; needs more samples"))
    return tuple(found)


def _symmetries(sigma: Activation) -> tuple[str, ...]:
    found = ["the order of the units"]
    if sigma.homogeneity is not None:
        found.append("how the scale of a unit is shared between (w, b) and a")
    if sigma.reflection is not None:
        scale, slope, constant = sigma.reflection
        if scale < 0.0:
            found.append("(w, b, a) from (−w, −b, −a)" + (", but for a constant" if constant else ""))
        else:
            found.append("(w, b) from (−w, −b)" + (", but for an affine part" if slope or constant else ""))
    return tuple(found)


def _about_samples(n: int, p: int, per: int, named: int | None, noise: bool) -> list[str]:
    if named is None:
        return []
    ratio = f"{n:,} samples for {p:,} parameters, an affine part included, are {n / p:.2g} for each"
    if n <= p:
        return [f"{ratio}: under-determined; about {per * p:,} are needed"]
    if n < 0.35 * per * p:  # two for each were enough for up to twenty units, three for thirty (docs/benchmarks.md)
        return [f"{ratio}: rarely enough; about {per} for each work from the first start"]
    if n < 0.9 * per * p:
        return [f"{ratio}: may need several starts; {per} for each work from the first"]
    return [f"{ratio}: enough for {'noisy' if noise else 'exact'} data"]


def _about_noise(noise: bool) -> list[str]:
    if not noise:
        return ["if the labels are noisy: the same search, with standard errors; take twice the samples or more"]
    return [
        "with noise every parameter gets a standard error, halved by four times the samples; weak units may be missed",
        "that is twice what exact data need; take more where the noise is as large as the signal",
    ]


def _about_size(seconds: float, memory: int) -> list[str]:
    found = []
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on every system
        there = 0
    if there and memory > there:
        found.append(f"it does not fit: {_size(memory)} needed, this machine has {_size(there)}")
    if seconds > _DAY:
        found.append("an estimate this long is a guess: try a smaller width or dimension first")
    return found


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if count < 1000.0:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000.0
    return f"{count:.3g} PB"


def _duration(seconds: float) -> str:
    for unit, length, most in (("seconds", 1.0, 100.0), ("minutes", 60.0, 100.0), ("hours", 3600.0, 48.0)):
        if seconds < most * length:
            value = seconds / length
            return "about a second" if value < 1.5 else f"{value:.0f} {unit}"
    return f"{seconds / _DAY:.0f} days" if seconds < 60 * _DAY else f"{seconds / _DAY / 365.0:.2g} years"
