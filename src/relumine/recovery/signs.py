"""Signs back: the fit is one of the sign-free form, and the network behind it has, as a rule, no affine part.

Which units are flipped so that the affine part vanishes is found (:mod:`relumine.recovery.orient`), the network is
refitted without it, and what is known of every sign is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import log10

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from relumine.activations import RELU
from relumine.arrays import Array
from relumine.fit import passes
from relumine.fit.fisher import parameter_count
from relumine.fit.levenberg import minimise
from relumine.fit.passes import Model
from relumine.fit.projection import Projection, project
from relumine.fit.prune import POLISH, noisy_polish
from relumine.fit.rows import AFFINE, CONSTANT, NOTHING, Rows
from relumine.fit.sign_free import shape_of
from relumine.network import Network, flip_columns
from relumine.papers.awasthi2021.identifiability import sign_patterns
from relumine.recovery.orient import flippable, largest_unit, open_signs, orient
from relumine.recovery.task import Task
from relumine.results import Status, Units
from relumine.run import Run

_LEFT = 4.0  # times what the chosen flips leave of the affine part: as much may be left by the right ones
_ALL_FLIPS = 11  # units up to which the flips of all others are tried: 1024 projections at most
_LEVEL = 1e-4  # of the F test: how often a true absence of an affine part may be denied
_PATIENCE = 20.0  # seconds for the integer problem of the signs: with many units it has no other end


@dataclass(frozen=True)
class Answer:
    """A network in white coordinates, the model of ``rows`` that it is, and its relative loss.

    ``squares`` (q,): Σω r² of each output. ``exact``: the residual is rounding error. ``free``: which of (v, c) are
    parameters; all of them if the signs are open. ``signs``: where they come from; ``open`` (m,): units whose sign the
    noise leaves open.
    """

    net: Network
    rows: Rows
    model: Model
    squares: Array
    loss: float
    exact: bool
    free: slice
    signs: str
    open: NDArray[np.bool_] | None = None


def settle(task: Task, at: Projection, run: Run, *, hurried: bool = False, doubtful: bool = False) -> Answer:
    """The fit as a network: with signs that leave no affine part, or an output bias alone, if there are such.

    ``hurried``: a fit that was stopped on its way, or is surely not the network, is not worth more time; ``doubtful``:
    one that is hardly the network is worth a second of it.
    """
    net = task.shape.network(at.U, at.A, task.tau + at.tau)
    loss = at.loss / max(task.rows.norm2, np.finfo(float).tiny) if task.bent.any() else 0.0
    kept = "no choice of unit signs makes the affine part vanish, so it is part of the network"
    with_affine = Answer(net, task.rows, at.model, at.squares, loss, task.is_exact(at.squares), AFFINE, kept)
    if not net.m:
        return replace(with_affine, signs="")
    if hurried and not with_affine.exact:
        return replace(with_affine, signs="signs that remove the affine part were not looked for")
    seconds = 1.0 if hurried or doubtful else float(np.clip(run.left, 1.0, _PATIENCE))
    for free in (NOTHING, CONSTANT):
        signed = _signed(task, with_affine, free, seconds, run.unhurried())
        if signed is not None:
            return signed
    return with_affine


def _signed(task: Task, answer: Answer, free: slice, seconds: float, run: Run) -> Answer | None:
    """The answer with flips that leave of its affine part only what is ``free``, if there are such."""
    net, exact, bias = answer.net, answer.exact, free == CONSTANT
    if bias and _flips(net) and _chance(task, answer, free):
        return None
    orientation = orient(net, exact=exact, bias=bias, seconds=seconds)
    U, how = np.column_stack([orientation.network.W, orientation.network.b]), orientation.how
    if exact and orientation.residual > (1e-7 if bias else 1e-5):
        # a row that lies on a kink may count for either side, so this asks for more than the fewest rows
        blind = one_sided(task, net, spare=net.d + 1)
        if bias or not blind or net.m > _ALL_FLIPS or net.activation.reflection != RELU.reflection:
            return None
        U, how = _from_the_remainder(task, net, blind[0]), "unit signs found, and one unit from what is left"
    # refit without the rest of the affine part: that it vanishes is information, and uses it
    rows, plain = task.plain.centred(task.tau[-1]) if bias else task.plain, shape_of(net.activation, sign_free=False)
    fit = minimise(rows, plain, U, POLISH if exact else noisy_polish(task.values), run=run)
    loss = fit.at.loss / max(task.rows.norm2, np.finfo(float).tiny)
    now_exact = task.is_exact(fit.at.squares)  # perhaps only now: the fit with affine part was stopped on its way
    if not now_exact and (exact or _worse(task, answer, loss, free)):
        return None
    tau = np.zeros_like(task.tau)
    tau[free] = (task.tau + fit.at.tau)[free]
    pure = plain.network(fit.at.U, fit.at.A, tau)
    how += "; an output bias is kept" if bias else ""
    signed = Answer(pure, rows, fit.at.model, fit.at.squares, loss, now_exact, free, how)
    if now_exact or not _flips(net):
        return signed
    # what these flips leave is noise; others that leave a few times as much may be the right ones
    limit = _LEFT * max(orientation.residual * largest_unit(net), _noise(task, answer))
    return replace(signed, open=open_signs(orientation.network, limit, bias=bias))


def _worse(task: Task, answer: Answer, loss: float, free: slice) -> bool:
    """Whether a fit without most of the affine part loses more than the parameters it saves are worth (F test)."""
    spare = task.values - task.parameters(answer.net.m)
    saved = parameter_count(answer.net, AFFINE) - parameter_count(answer.net, free)
    ratio = (loss - answer.loss) / saved / (answer.loss / max(spare, 1))
    return spare <= 0 or bool(ratio >= fdtri(saved, spare, 1.0 - _LEVEL))


def _flips(net: Network) -> bool:
    """Whether units can be flipped at all: σ(−z) = σ(z) + an affine function."""
    return net.activation.reflection is not None and net.activation.reflection.scale == 1.0


def _chance(task: Task, answer: Answer, free: slice) -> bool:
    """Whether there are so many flips that some make the affine part vanish, to the digits known of it, by chance."""
    net = answer.net
    digits = (
        8.0
        if answer.exact
        else float(np.clip(np.log10(largest_unit(net) / max(_noise(task, answer), 1e-300)), 0.0, 8.0))
    )
    constraints = parameter_count(net, AFFINE) - parameter_count(net, free)
    return net.m * log10(2.0) > digits * constraints - 3.0


def _noise(task: Task, answer: Answer) -> float:
    """Roughly the standard error of an affine coefficient, on the task's scale."""
    return 3.0 * float(np.sqrt(answer.loss / task.rows.n))


def _from_the_remainder(task: Task, net: Network, unit: int) -> Array:
    """Directions (m, d+1) of a pure network one unit of which is on for almost every row.

    Too few rows lie behind its kink to show it, but without affine part it need not be seen there: it is what the other
    units leave, v·x + c for the right flips of those. All flips are tried; the loss tells which is right.
    """
    plain = shape_of(net.activation, sign_free=False)
    net = net.flip([unit]) if _active(task.rows, net)[unit] > 0.5 * task.rows.n else net  # now off almost everywhere
    others = [i for i in range(net.m) if i != unit]
    best, lowest = np.column_stack([net.W, net.b]), np.inf
    for code in range(1 << len(others)):
        turned = net.flip([i for k, i in enumerate(others) if code >> k & 1])
        U = np.column_stack([turned.W, turned.b])
        U[unit] = [*np.sum(turned.v, axis=0), np.sum(turned.c)]
        (positive,) = task.rows.sum(partial(passes.active, U=U[unit : unit + 1]), 1)
        U[unit] *= 1.0 if positive[0] > 0.5 * task.rows.n else -1.0
        loss = project(task.plain, plain, U).loss
        if loss < lowest:
            best, lowest = U, loss
    return best


def one_sided(task: Task, net: Network, spare: int = 0) -> list[int]:
    """Units with too few rows on one side of their kink, the fewest first.

    Those rows show a(w·x + b), d+1 numbers: so many rows can be met whatever they say; ``spare``: and so many more.
    """
    if not task.shape.activation.kinks:
        return []
    active = _active(task.rows, net)
    minor = np.minimum(active, task.rows.n - active)
    return [int(i) for i in np.argsort(minor, kind="stable") if minor[i] <= net.d + 1 + spare]


def _active(rows: Rows, net: Network) -> Array:
    """For how many rows each unit is on the positive side of its kink, (m,)."""
    return rows.sum(partial(passes.active, U=np.column_stack([net.W, net.b])), net.m)[0]


def known_units(answer: Answer, net: Network, width: int | None, status: Status) -> tuple[Units, list[str]]:
    """Which units are known how well, and what to tell about signs and absorbed units."""
    remarks, absorbed = [], []
    if answer.signs and (status.ok or status is Status.AMBIGUOUS):  # of other networks the signs mean nothing
        remarks.append(answer.signs)
    if width is not None and net.m < width:
        absorbed.append(
            f"{width - net.m} of {width} units are left out: on these data they never switch, or are like others"
        )
    if not status.ok or not net.m:
        return Units((), (), tuple(absorbed)), remarks
    if _flips(net) and not flip_columns(net).any():
        remarks.append("the activation is even: (w, b) and (−w, −b) are the same unit")
        return Units((), tuple(range(net.m)), tuple(absorbed)), remarks
    unknown: NDArray[np.bool_] = np.zeros(net.m, dtype=bool)
    if _flips(net):
        turned = flippable(answer.net, bias=True) if answer.free == CONSTANT else None
        unknown[:] = answer.free != NOTHING if turned is None else turned
        open_signs = net.m - (net.d + 1) * (net.q or 1)  # signs that generic data leave to an integer problem
        pure = answer.free == NOTHING and answer.exact and net.activation.name == "relu"
        if pure and open_signs <= 16 and net.m <= 40:
            unknown = np.asarray((sign_patterns(net, 1e-8).patterns < 0).any(axis=0))
    if answer.open is not None and answer.open.any():
        unknown |= answer.open
        remarks.append("the noise leaves some signs open: other choices leave an affine part that is no larger")
    elif unknown.any() and answer.free != AFFINE:
        remarks.append("several choices of signs give the same function (Awasthi et al. 2021, Theorem 3.4)")
    signed, unsigned = (tuple(np.flatnonzero(which).tolist()) for which in (~unknown, unknown))
    return Units(signed, unsigned, tuple(absorbed)), remarks
