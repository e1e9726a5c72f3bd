"""From a fit to an answer: signs back, refit without affine part, standard errors, certificate, status."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from math import log, log10

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri

from relumine.activations import RELU
from relumine.fit import passes
from relumine.fit.inference import Fitted, Inference, infer, parameter_count, structure_score
from relumine.fit.levenberg import minimise
from relumine.fit.passes import Model
from relumine.fit.projection import Projection, project
from relumine.fit.prune import POLISH, noisy_polish
from relumine.fit.rows import AFFINE, CONSTANT, NOTHING, Rows
from relumine.fit.sign_free import shape_of
from relumine.network import Network, flip_columns
from relumine.papers.awasthi2021.identifiability import sign_patterns
from relumine.recovery.orient import open_signs, orient
from relumine.recovery.search import STRUCTURE
from relumine.recovery.task import Task
from relumine.results import (
    Certificate,
    InvalidInput,
    Predictions,
    Recovery,
    SearchRecord,
    Stage,
    StandardErrors,
    Status,
    Units,
)
from relumine.tensors.subsets import subsets

Array = NDArray[np.float64]

__all__ = ["Answer", "conclude", "settle"]

_LEFT = 4.0  # times what the chosen flips leave of the affine part: as much may be left by the right ones
_SHOWN = 2000  # rows set aside whose predictions go with the result
_DENSE_EXACT, _DENSE_NOISY = 1600, 4000  # parameters up to which the Fisher matrix is formed


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


def settle(task: Task, at: Projection, *, seconds: float = 20.0, hurried: bool = False) -> Answer:
    """The fit as a network: with signs that leave no affine part, or an output bias alone, if there are such.

    ``hurried``: a fit that was stopped on its way is not worth more time.
    """
    net = task.shape.network(at.U, at.A, task.tau + at.tau)
    loss = at.loss / max(task.rows.norm2, np.finfo(float).tiny) if task.bent.any() else 0.0
    kept = "no choice of signs that removes the affine part, or leaves an output bias, was found"
    with_affine = Answer(net, task.rows, at.model, at.squares, loss, task.is_exact(at.squares), AFFINE, kept)
    if not net.m:
        return replace(with_affine, signs="")
    if hurried and not with_affine.exact:
        return replace(with_affine, signs="no time to look for signs that remove the affine part")
    return _signed(task, with_affine, NOTHING, seconds) or _signed(task, with_affine, CONSTANT, seconds) or with_affine


def _signed(task: Task, answer: Answer, free: slice, seconds: float) -> Answer | None:
    """The answer with flips that leave of its affine part only what is ``free``, if there are such."""
    net, exact, bias = answer.net, answer.exact, free == CONSTANT
    if bias and _flips(net) and _chance(task, answer, free):
        return None
    orientation = orient(net, exact=exact, bias=bias, seconds=seconds)
    U, how = np.column_stack([orientation.network.W, orientation.network.b]), f"signs from {orientation.how}"
    if exact and orientation.residual > (1e-7 if bias else 1e-5):
        blind = _one_sided(task, net)
        if bias or len(blind) != 1 or net.m > 11 or net.activation.reflection != RELU.reflection:
            return None
        U, how = _from_the_remainder(task, net, blind[0]), "signs, and one unit, from what the others leave"
    # refit without the rest of the affine part: that it vanishes is information, and uses it
    rows, plain = task.plain.centred(task.tau[-1]) if bias else task.plain, shape_of(net.activation, sign_free=False)
    fit = minimise(rows, plain, U, POLISH if exact else noisy_polish(task.values))
    loss = fit.at.loss / max(task.rows.norm2, np.finfo(float).tiny)
    now_exact = task.is_exact(fit.at.squares)  # perhaps only now: the fit with affine part was stopped on its way
    if not now_exact and (exact or _worse(task, answer, loss, free)):
        return None
    tau = np.zeros_like(task.tau)
    tau[free] = (task.tau + fit.at.tau)[free]
    pure = plain.network(fit.at.U, fit.at.A, tau)
    how += "; an output bias stays" if bias else ""
    signed = Answer(pure, rows, fit.at.model, fit.at.squares, loss, now_exact, free, how)
    if now_exact or not _flips(net):
        return signed
    # what these flips leave is noise; others that leave a few times as much may be the right ones
    limit = _LEFT * max(orientation.residual * _size(net), _noise(task, answer))
    return replace(signed, open=open_signs(orientation.network, limit, bias=bias))


def _worse(task: Task, answer: Answer, loss: float, free: slice) -> bool:
    """Whether a fit without most of the affine part loses more than the parameters it saves are worth (F test)."""
    spare = task.values - task.parameters(answer.net.m)
    saved = parameter_count(answer.net, AFFINE) - parameter_count(answer.net, free)
    ratio = (loss - answer.loss) / saved / (answer.loss / max(spare, 1))
    return spare <= 0 or ratio >= _fisher_limit(1e-4, saved, spare)


def _flips(net: Network) -> bool:
    """Whether units can be flipped at all: σ(−z) = σ(z) + an affine function."""
    return net.activation.reflection is not None and net.activation.reflection.scale == 1.0


def _chance(task: Task, answer: Answer, free: slice) -> bool:
    """Whether there are so many flips that some make the affine part vanish, to the digits known of it, by chance."""
    net = answer.net
    digits = 8.0 if answer.exact else float(np.clip(np.log10(_size(net) / max(_noise(task, answer), 1e-300)), 0.0, 8.0))
    constraints = parameter_count(net, AFFINE) - parameter_count(net, free)
    return net.m * log10(2.0) > digits * constraints - 3.0


def _size(net: Network) -> float:
    """Of the largest a_i(w_i, b_i)."""
    units = np.abs(np.atleast_2d(net.a)) * np.abs(np.column_stack([net.W, net.b])).max(axis=1)
    return float(units.max())


def _noise(task: Task, answer: Answer) -> float:
    """Of an affine coefficient, about, in the task's units."""
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


def conclude(
    task: Task,
    answer: Answer,
    *,
    width: int | None,
    agreeing: int,
    rival: int | None,
    interrupted: bool,
    notes: list[str],
    stages: list[Stage],
    search: SearchRecord,
) -> Recovery:
    """Weigh the evidence."""
    began = time.perf_counter()
    order = _order(task.to_user(answer.net))
    answer = replace(answer, net=answer.net.permuted(order), open=None if answer.open is None else answer.open[order])
    limit = _DENSE_EXACT if answer.exact else 0 if interrupted else _DENSE_NOISY
    net, errors, inference = _finished(task, answer, limit)
    held = _held_out(task, net)
    if answer.exact:
        status, message = _judge_exact(task, answer, inference, held)
    else:
        status, message = _judge_noisy(task, answer, inference, held, agreeing, rival)
    if interrupted and status is not Status.EXACT:
        status, message = Status.INTERRUPTED, f"Stopped early. {message}"
    units, remarks = _remarks(answer, net, width, status)
    certificate = Certificate(
        residual=float(np.max(held * task.units / np.where(task.spread > 0.0, task.spread, task.units))),
        rows=task.held.n,
        noise=0.0 if answer.exact else _rms(inference.noise),
        condition=inference.condition,
        proves=_PROVES.get(status, ""),
        does_not_prove=_DOES_NOT.get(status, ""),
        notes=(*remarks, *notes),
    )
    stages = [*stages, Stage("certificate", time.perf_counter() - began, answer.loss)]
    shown = slice(0, _SHOWN)
    predicted = net(task.held.X[shown]).reshape(-1, task.q)
    search = replace(search, loss=answer.loss, noise=tuple(inference.noise.tolist()))
    return Recovery(
        network=net,
        status=status,
        message=message,
        certificate=certificate,
        units=units,
        standard_errors=errors,
        stages=tuple(stages),
        search=search,
        shown=Predictions(task.held.y[shown].reshape(predicted.shape), predicted),
    )


def _order(net: Network) -> NDArray[np.intp]:
    """Largest output weight first."""
    return np.argsort(-np.linalg.norm(np.atleast_2d(net.a), axis=0), kind="stable")


def _finished(task: Task, answer: Answer, limit: int) -> tuple[Network, StandardErrors | None, Inference]:
    """The network in the user's coordinates with its standard errors."""
    count = parameter_count(answer.net, answer.free)
    if 0 < count <= limit:
        fitted = Fitted(answer.rows, answer.net, answer.model, answer.squares, answer.free, answer.exact)
        inference = infer(fitted, task.white, task.units)
    else:
        spread2 = answer.squares / max(answer.rows.n - count / task.q, 1.0)
        inference = Inference(np.sqrt(spread2) * task.units, float("nan"), None)
    se = inference.errors
    if se is not None and task.vector:
        se = StandardErrors(se.W, se.b, se.a[0], se.v[0], se.c[0])
    return task.to_user(answer.net), se, inference


def _held_out(task: Task, net: Network) -> Array:
    """Root mean square error of each output on the rows set aside, (q,), in the task's units."""
    truth, weight = task.held.y, task.held.weight
    error = (net(task.held.X).reshape(truth.shape) - truth) / task.units
    return np.asarray(np.sqrt(np.average(error**2, axis=0, weights=weight)))


def _judge_exact(task: Task, answer: Answer, inference: Inference, held: Array) -> tuple[Status, str]:
    """Every row used is reproduced to rounding error: is this *the* network?"""
    numbers, p = task.distinct * max(int(task.bent.sum()), 1), parameter_count(answer.net, answer.free)
    if answer.net.m and numbers <= p:
        return Status.UNDERDETERMINED, f"{task.distinct} different rows cannot determine {p} parameters."
    if (held > 100.0 * task.rounding).any():
        return Status.UNDERDETERMINED, f"The fit is exact on {task.rows.n} rows but not on those set aside."
    blind = _one_sided(task, answer.net)
    if blind and not inference.condition < 1e14:  # singular, or too large to know
        return Status.AMBIGUOUS, f"Every row is reproduced, but behind the kink of unit {blind[0]} lie too few rows."
    if inference.condition >= 1e14:
        return Status.AMBIGUOUS, "Every row is reproduced, but the fit is singular: some parameters can change freely."
    if answer.net.m and task.discrete:
        return Status.AMBIGUOUS, "Every row is reproduced, but each input takes only a few values: kinks are unseen."
    error = float(np.max(held * task.units / np.where(task.spread > 0.0, task.spread, task.units)))
    return (
        Status.EXACT,
        f"{answer.net.m} units; relative error {error:.1e} on {task.held.n} rows never used in the fit.",
    )


def _judge_noisy(
    task: Task, answer: Answer, inference: Inference, held: Array, agreeing: int, rival: int | None
) -> tuple[Status, str]:
    """Something is left: is it noise, and is this the best network?"""
    N, p = task.values, parameter_count(answer.net, answer.free)
    m, one_more = answer.net.m, task.parameters(1) - task.parameters(0)
    if p >= N:
        return Status.UNDERDETERMINED, f"{N} numbers cannot determine {p} parameters."
    if not m and 5 * one_more + task.parameters(0) > N:
        return Status.UNDERDETERMINED, f"{N} numbers are too few to tell a hidden unit from noise."
    if rival is not None:
        return Status.NOT_RECOVERED, f"A network of {rival} units explains significantly more than this one of {m}."
    if m and N * log(max(answer.loss, 1e-300)) + (p - task.parameters(0)) * log(N) >= 0.0:
        return Status.NOT_RECOVERED, "The hidden units explain no more than chance would: affine plus noise, it seems."
    score = structure_score(answer.rows, task.shape, answer.model)
    if score >= STRUCTURE:
        return Status.NOT_RECOVERED, f"The residual is not noise (score {score:.1f}; noise stays below {STRUCTURE:g})."
    excess = float(np.mean((held / np.maximum(inference.noise / task.units, task.rounding)) ** 2))
    if excess > _fisher_limit(1e-6, task.held.y.size, max(N - p, 1)):
        return Status.NOT_RECOVERED, "The error on rows set aside is larger than the fit's own: it does not generalise."
    if m and agreeing < 2:
        return Status.NOT_RECOVERED, "No two starts agree on a network, so none can be trusted."
    return Status.NOISY, f"{m} units; what is left looks like noise of standard deviation {_rms(inference.noise):.3g}."


def _fisher_limit(level: float, above: int, below: int) -> float:
    """What Fisher's ratio exceeds with probability ``level``; scipy.stats would take a second to import."""
    return float(fdtri(above, below, 1.0 - level))


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _one_sided(task: Task, net: Network) -> list[int]:
    """Units with too few rows on one side of their kink: those rows show a(w·x + b), d+1 numbers to determine."""
    if not task.shape.activation.kinks:
        return []
    active = _active(task.rows, net)
    minor = np.minimum(active, task.rows.n - active)
    return [int(i) for i in np.flatnonzero(minor <= net.d)]


def _active(rows: Rows, net: Network) -> Array:
    """For how many rows each unit is on the positive side of its kink, (m,)."""
    return rows.sum(partial(passes.active, U=np.column_stack([net.W, net.b])), net.m)[0]


def _remarks(answer: Answer, net: Network, width: int | None, status: Status) -> tuple[Units, list[str]]:
    """Which units are known how well, and what to tell about signs and absorbed units."""
    remarks, absorbed = [], []
    if answer.signs:
        remarks.append(f"{answer.signs}; it is kept" if answer.free == AFFINE else answer.signs)
    if width is not None and net.m < width:
        absorbed.append(
            f"{width - net.m} of {width} units: on these data they are affine, or equal to others up to an affine part"
        )
    if not status.ok or not net.m:
        return Units((), (), tuple(absorbed)), remarks
    flippable: NDArray[np.bool_] = np.zeros(net.m, dtype=bool)
    if _flips(net):
        flippable[:] = _undetermined_with_bias(answer.net) if answer.free == CONSTANT else answer.free == AFFINE
        open_signs = net.m - (net.d + 1) * (net.q or 1)  # signs that generic data leave to an integer problem
        pure = answer.free == NOTHING and answer.exact and net.activation.name == "relu"
        if pure and open_signs <= 16 and net.m <= 40:
            flippable = np.asarray((sign_patterns(net, 1e-8).patterns < 0).any(axis=0))
    if answer.open is not None and answer.open.any():
        flippable |= answer.open
        remarks.append("the noise leaves some signs open: other choices leave an affine part that is no larger")
    elif flippable.any() and answer.free != AFFINE:
        remarks.append("several choices of signs give the same function (Theorem 3.4)")
    known, unknown = np.flatnonzero(~flippable), np.flatnonzero(flippable)
    return Units(tuple(known.tolist()), tuple(unknown.tolist()), tuple(absorbed)), remarks


def _undetermined_with_bias(net: Network) -> NDArray[np.bool_]:
    """Units (m,) that can be flipped together without changing the function but for the output bias."""
    M = flip_columns(net).reshape(net.q or 1, net.d + 1, net.m)[:, :-1].reshape(-1, net.m)
    try:
        zero_sums = subsets(M / np.abs(M).max(), np.zeros(len(M)), 1e-8)
    except InvalidInput:  # more than can be listed: nothing is known
        return np.ones(net.m, dtype=bool)
    return np.asarray(zero_sums.any(axis=0))


_PROVES = {
    Status.EXACT: "this network reproduces rows it never saw to rounding error, so on this input distribution it is "
    "the function; for ReLU units that are not parallel the parameters are then the network's, up to permutation, "
    "scale and flips (for other activations this is expected, not proved)",
    Status.NOISY: "the residual shows no structure against 256 random hidden units and rows set aside are predicted as "
    "well as the noise allows; several starts agree",
}
_DOES_NOT = {
    Status.EXACT: "that no unit hides where no sample fell (kinks outside the data), nor that a wider network with the "
    "same values on these inputs does not exist",
    Status.NOISY: "that units weaker than the noise do not exist",
}
