"""What is known when a verdict is asked for: facts about rows, residual, kinks, starts and theory. No verdicts here.

A new kind of evidence is a field of :class:`Evidence` (None or neutral where it was not looked for), the line that
fills it in :func:`gather`, and a rule in :mod:`relumine.recovery.judge`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log

import numpy as np
from scipy.special import fdtri

from relumine.arrays import Array
from relumine.data.holdout import same_rows
from relumine.fit.fisher import parameter_count
from relumine.fit.inference import Inference, structure_score
from relumine.fit.leverage import unseen_share
from relumine.fit.neighbours import alike
from relumine.fit.rows import MemoryRows
from relumine.network import Network
from relumine.papers.mondelli2019.regimes import Regime, regime
from relumine.recovery.order import independent_rows
from relumine.recovery.signs import Answer, one_sided
from relumine.recovery.task import MemoryTask, Task

_AFFINE = 2560.0 * np.finfo(float).eps  # relative error of an affine output on rows set aside that is rounding
_ROUNDED = 100.0  # times the rounding error of the fit that rows set aside may be off: they are not fitted to
_CHANCE = 1e-6  # how often noise alone may exceed the limit on the error of rows set aside


@dataclass(frozen=True)
class HeldOut:
    """Rows never used in the fit: how many, and the error there over the spread of y.

    ``rounding``: the error is rounding error in every output. ``excess``: its square over the noise of the fit, which
    exceeds ``limit`` once in a million if the network is right.
    """

    rows: int
    error: float
    rounding: bool
    excess: float
    limit: float


@dataclass(frozen=True)
class AllRows:
    """What the rows that the search did not see have to say.

    ``rows``: their number. Exact data: ``error`` over the spread of y, ``off``: how many of them contradict (at least
    one if all are off together). Noisy data: ``noise`` of all rows and ``noise_of_few``, standard deviations, and
    whether it is ``noisier`` there in some output. ``different``: of all rows, as far as is known.
    """

    rows: int
    error: float = float("nan")
    off: int = 0
    few: int = 0
    noise: float = float("nan")
    noise_of_few: float = float("nan")
    noisier: bool = False
    different: float = float("inf")


@dataclass(frozen=True)
class Looked:
    """Only ``rows`` of ``of`` rows were looked at; ``memory``: because no more fit into memory."""

    rows: int
    of: int
    memory: bool = False


@dataclass(frozen=True)
class Confirmations:
    """Which rows could have contradicted the network and did not.

    ``rows``: their number; ``alone``: rows used that could not have contradicted, ``units``: those that no other row
    confirms; ``press``: leave-one-out error over the claimed noise (1 if the claim is right); ``carried``: by how many
    rows that error is carried (a third of them for Gaussian noise).
    """

    rows: int
    alone: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    press: float = float("nan")
    carried: float = float("inf")


@dataclass(frozen=True)
class Answers:
    """What a black box shows beside its rows.

    ``repeated``: by how much answers to one question differ, over the spread of y (0: not at all); ``rounded``: what
    the network leaves is the rounding of answers in single precision, and every unit does more than that; ``rows``
    answered. ``stalled``: batches in a row that brought nothing, after which ``asked`` of ``budget`` rows it was ended.
    """

    repeated: float
    rounded: bool
    rows: int
    stalled: int = 0
    asked: int = 0
    budget: int = 0


@dataclass(frozen=True)
class Evidence:
    """Facts about a fitted network of ``units`` units in ``dim`` dimensions.

    ``exact``: the residual on the ``rows`` used is rounding error. ``numbers``: values of y to explain, ``distinct``:
    those of different rows, ``independent``: as many as they are worth if the rows are a series; ``parameters`` to
    explain them with, ``affine`` of them without units, ``one_more`` for one unit more. ``asked``: parameters of a
    network of ``width`` units, where there were too few rows to look for it.
    ``blind``: units with too few rows behind their kink. ``discrete``: each input takes a few values only.
    ``noise``: standard deviation of what is left, ``rounding``: the most that rounding of y leaves.
    ``condition``: of the Fisher matrix. ``gain``: what the units explain, less what they cost (BIC; below 0: nothing).
    ``score``: of the residual against other units, ``alike``: between rows next to each other, ``along``: the input in
    whose order they are, empty for another order. ``agreeing`` starts, ``rival``: the width of one that explains more.
    ``interrupted``: the search was; ``timed_out``: by the time limit.
    """

    units: int
    dim: int
    outputs: int
    exact: bool
    rows: int
    numbers: int
    distinct: int
    parameters: int
    affine: int
    one_more: int
    noise: float
    independent: float = float("inf")
    rounding: float = 0.0
    condition: float = float("nan")
    gain: float = 0.0
    score: float = 0.0
    alike: float = 0.0
    along: str = ""
    blind: tuple[int, ...] = ()
    discrete: bool = False
    agreeing: int = 0
    rival: int | None = None
    width: int | None = None
    asked: int | None = None
    interrupted: bool = False
    timed_out: bool = False
    held: HeldOut | None = None
    all_rows: AllRows | None = None
    looked: Looked | None = None
    confirmations: Confirmations | None = None
    theory: Regime | None = None

    @property
    def rounded(self) -> bool:
        """What is left is no more than the rounding of y: a network has nothing more to explain."""
        return not self.exact and self.noise <= self.rounding

    @property
    def confirmed(self) -> int:
        """Rows that could have contradicted the network and did not, those the search never saw included."""
        confirmed = 0 if self.confirmations is None else self.confirmations.rows
        if self.all_rows is None:
            return confirmed
        if isfinite(self.all_rows.error):  # rows set aside are among those that the search never saw
            confirmed = self.all_rows.rows + max(confirmed - (0 if self.held is None else self.held.rows), 0)
        return int(min(confirmed, self.all_rows.different))

    @property
    def unseen(self) -> float:
        """At most this share of the inputs may still differ, at 95 % (the rule of three); NaN if nothing confirms."""
        return unseen_share(self.confirmed) if self.confirmed else float("nan")

    @property
    def checked(self) -> tuple[float, int]:
        """The error over the spread of y on rows never used in the fit, and how many those are: all, or some."""
        if self.asked is None and self.all_rows is not None and isfinite(self.all_rows.error):
            return self.all_rows.error, self.all_rows.rows
        return (float("nan"), 0) if self.held is None or self.asked is not None else (self.held.error, self.held.rows)


def gather(
    task: Task,
    answer: Answer,
    net: Network,
    inference: Inference,
    *,
    width: int | None,
    agreeing: int = 0,
    rival: int | None = None,
    interrupted: bool = False,
    timed_out: bool = False,
) -> Evidence:
    """The facts about an answer to a task; ``net``: it in the user's coordinates."""
    m, p, N = net.m, parameter_count(answer.net, answer.free), task.values
    units_seen = m if width is None else width
    # the score of a fit with more parameters than numbers has no meaning, and its matrix is singular
    tested = not answer.exact and p < N
    next_to, along = _alike(task, answer, net) if tested else (0.0, "")
    return Evidence(
        units=m,
        dim=net.d,
        outputs=task.q,
        exact=answer.exact,
        rows=task.rows.n,
        numbers=N,
        distinct=task.distinct * max(int(task.bent.sum()), 1),
        parameters=p,
        affine=task.parameters(0),
        one_more=task.parameters(1) - task.parameters(0),
        noise=0.0 if answer.exact else _noise(task, net, inference, p),
        independent=_independent(task) if tested else float("inf"),
        rounding=rms(task.digits.leaves),
        condition=inference.condition,
        gain=-N * log(max(answer.loss, 1e-300)) - (p - task.parameters(0)) * log(N),
        score=structure_score(answer.rows, task.shape, answer.model) if tested else 0.0,
        alike=next_to,
        along=along,
        blind=tuple(one_sided(task, answer.net)) if answer.exact else (),
        discrete=task.discrete,
        agreeing=agreeing,
        rival=rival,
        width=width,
        interrupted=interrupted,
        timed_out=timed_out,
        held=_held_out(task, net, inference, max(N - p, 1)),
        confirmations=_confirmations(task, inference),
        theory=regime(net.d, units_seen, net.activation) if net.d and units_seen else None,
    )


def _alike(task: Task, answer: Answer, net: Network) -> tuple[float, str]:
    """How much alike rows next to each other are off, and in the order of which input; of rows in memory."""
    if not isinstance(task, MemoryTask) or not isinstance(answer.rows, MemoryRows):
        return 0.0, ""
    used = np.delete(task.samples.X, task.aside, axis=0)
    score, k = alike(answer.rows, answer.model, used, net.W, task.groups)
    names = task.samples.names
    return score, "" if k is None else f"input {k}" if names is None else f"input '{names[k]}'"


def _independent(task: Task) -> float:
    """Of the numbers used, as many as are independent, by the order in which the rows came; of rows in memory."""
    if not isinstance(task, MemoryTask):
        return float("inf")
    share = independent_rows(task.samples.X, task.samples.y) / task.samples.n
    return share * task.values if share < 1.0 else float("inf")


def _noise(task: Task, net: Network, inference: Inference, p: int) -> float:
    """The standard deviation claimed: never below the rounding of y, nor what the returned network itself leaves.

    Behind a large offset or a steep plane the way back to the user's coordinates costs digits, too.
    """
    found = [rms(inference.noise), rms(task.digits.rounding)]
    if isinstance(task, MemoryTask):
        left = np.delete(task.samples.y - net(task.samples.X), task.aside, axis=0).reshape(task.rows.n, -1)
        weight = None if task.samples.weight is None else np.delete(task.samples.weight, task.aside)
        spare = max(1.0 - p / (task.rows.n * task.q), 1.0 / task.rows.n)
        found.append(rms(np.sqrt(np.average(left**2, axis=0, weights=weight) / spare)))
    return max(found)


def _confirmations(task: Task, inference: Inference) -> Confirmations:
    """All rows that could have contradicted: those set aside, and those whose leverage left them free."""
    found, aside = inference.confirmation, same_rows(task.held.X)[1] if task.held.n else 0
    if found is None:
        return Confirmations(aside)
    noise = np.maximum(inference.noise, task.digits.rounding) / task.scale
    press = found.left_out[task.bent] / np.maximum(noise[task.bent], np.finfo(float).tiny)
    carried = float(found.carried[task.bent].min(initial=np.inf))
    alone = found.alone
    if alone and isinstance(task, MemoryTask):  # as the user counts rows: those set aside are among them
        alone = tuple(np.delete(np.arange(task.samples.n), task.aside)[list(alone)].tolist())
    return Confirmations(aside + found.confirmed, alone, found.units, float(press.max(initial=0.0)), carried)


def _held_out(task: Task, net: Network, inference: Inference, spare: int) -> HeldOut:
    """The rows set aside: root mean square error of each output, on the task's scale, in its three readings."""
    truth, weight = task.held.y, task.held.weight
    error = (net(task.held.X).reshape(truth.shape) - truth) / task.scale
    held = np.sqrt(np.average(error**2, axis=0, weights=weight))
    # an output that looked affine was judged so at rounding error, and must be affine to that here, too
    limit = np.where(task.bent, _ROUNDED * task.rounding, _AFFINE)
    return HeldOut(
        rows=task.held.n,
        error=float(np.max(held * task.scale / np.where(task.spread > 0.0, task.spread, task.scale))),
        rounding=not bool((held > limit).any()),
        excess=float(np.mean((held / np.maximum(inference.noise / task.scale, task.rounding)) ** 2)),
        limit=float(fdtri(truth.size, spare, 1.0 - _CHANCE)),  # Fisher's ratio; scipy.stats takes a second to import
    )


def rms(x: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(x**2)))
