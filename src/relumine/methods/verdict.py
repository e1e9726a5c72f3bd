"""From a fit to an answer: signs back, refit without affine part, standard errors, certificate, status."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as fisher_f

from relumine.fit.inference import Inference, infer, parameter_count, structure_score
from relumine.fit.levenberg import minimise
from relumine.fit.projection import Projection
from relumine.fit.prune import POLISH
from relumine.fit.rows import Rows
from relumine.fit.sign_free import shape_of
from relumine.methods.search import STRUCTURE
from relumine.methods.task import Task
from relumine.network import Network
from relumine.results import Certificate, Recovery, Stage, StandardErrors, Status, Units
from relumine.steps.orient import orient

Array = NDArray[np.float64]

__all__ = ["Answer", "conclude", "settle"]

_DENSE_EXACT, _DENSE_NOISY = 1600, 4000  # parameters up to which the Fisher matrix is formed


@dataclass(frozen=True)
class Answer:
    """A network in white coordinates with its residual R (n, q) and relative loss; ``affine``: v, c are free."""

    net: Network
    R: Array
    loss: float
    affine: bool
    signs: str


def settle(task: Task, at: Projection, loss: float) -> Answer:
    """The fit as a network: with signs that make the affine part vanish if there are such, else with it."""
    net = task.shape.network(at.U, at.A, task.tau + at.tau)
    with_affine = Answer(net, at.R, loss, True, "")
    if not net.m:
        return with_affine
    exact = loss <= task.exact
    orientation = orient(net, exact=exact)
    if exact and orientation.residual > 1e-5:
        return replace(with_affine, signs="no choice of signs that removes the affine part was found")
    # refit as a pure network: v = c = 0 is information, and uses it
    turned = orientation.network
    plain = shape_of(net.activation, sign_free=False)
    U = np.column_stack([turned.W, turned.b])
    fit = minimise(task.plain, plain, U, POLISH)
    pure = plain.network(fit.at.U, fit.at.A, np.zeros_like(task.tau))
    pure_loss = fit.at.loss / task.rows.norm2
    how = f"signs from {orientation.how}"
    if exact:
        fits = pure_loss <= 4.0 * task.exact
    else:
        spare = task.values - task.parameters(net.m)
        extra = task.tau.size
        ratio = (pure_loss - loss) / extra / (loss / max(spare, 1))
        fits = spare > 0 and ratio < float(fisher_f.isf(1e-4, extra, spare))
    if not fits:
        return replace(with_affine, signs="no choice of signs removes the affine part")
    return Answer(pure, fit.at.R, pure_loss, False, how)


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
    details: dict[str, object],
) -> Recovery:
    """Weigh the evidence."""
    began = time.perf_counter()
    exact = answer.loss <= task.exact
    net, errors, inference = _finished(task, answer, _DENSE_EXACT if exact else _DENSE_NOISY)
    residual = _held_out(task, net)
    status, message = _judge(task, answer, net, inference, residual, agreeing, rival)
    if interrupted and status is not Status.EXACT:
        status, message = Status.INTERRUPTED, f"Interrupted; {message[0].lower()}{message[1:]}"
    units, remarks = _remarks(task, answer, net, width, status)
    noise = float(np.sqrt(np.mean(inference.noise**2)))
    certificate = Certificate(
        residual=residual,
        rows=task.held.n,
        noise=0.0 if exact else noise,
        condition=inference.condition,
        proves=_PROVES.get(status, ""),
        does_not_prove=_DOES_NOT.get(status, ""),
        notes=(*remarks, *notes),
    )
    stages = [*stages, Stage("certificate", time.perf_counter() - began, answer.loss)]
    details = {**details, "relative_loss": answer.loss, "noise": inference.noise}
    return Recovery(net, status, message, certificate, units, errors, tuple(stages), "auto", details)


def _finished(task: Task, answer: Answer, limit: int) -> tuple[Network, StandardErrors | None, Inference]:
    """The network in the user's coordinates, largest output weight first, with its standard errors."""
    net = task.to_user(answer.net)
    order = np.argsort(-np.linalg.norm(np.atleast_2d(net.a), axis=0), kind="stable")
    count = parameter_count(answer.net, affine=answer.affine)
    rows = Rows(task.rows.X, answer.R, task.rows.weight)
    if 0 < count <= limit:
        inference = infer(rows, answer.net, task.white, task.units, affine=answer.affine)
    else:
        spread2 = np.einsum("ij,ij->j", rows.weigh(rows.Y), rows.Y) / max(rows.n - count / task.q, 1.0)
        inference = Inference(np.sqrt(spread2) * task.units, float("nan"), None)
    se = inference.errors
    if se is not None:
        se = StandardErrors(se.W[order], se.b[order], se.a[:, order], se.v, se.c)
        if task.vector:
            se = StandardErrors(se.W, se.b, se.a[0], se.v[0], se.c[0])
    return net.permuted(order), se, inference


def _held_out(task: Task, net: Network) -> float:
    """Root mean square error on the rows set aside, over the standard deviation of y."""
    truth = task.held.y
    spread = np.sqrt(np.mean(np.var(task.plain.Y, axis=0) * task.units**2))
    error = np.sqrt(np.mean((net(task.held.X).reshape(truth.shape) - truth) ** 2))
    return float(error / spread) if spread > 0.0 else float(error)


def _judge(
    task: Task, answer: Answer, net: Network, inference: Inference, residual: float, agreeing: int, rival: int | None
) -> tuple[Status, str]:
    """The status and one sentence of reasons."""
    exact = answer.loss <= task.exact
    N, p = task.values, parameter_count(answer.net, affine=answer.affine)
    if exact and residual > 1e3 * max(np.sqrt(task.exact), 1e-9):
        return Status.UNDERDETERMINED, f"The fit is exact on {task.rows.n} rows but not on those set aside."
    if exact:
        blind = _one_sided(task, answer)
        if blind or not (np.isnan(inference.condition) or inference.condition < 1e14):
            which = f"unit {blind[0]} switches on fewer rows than it has parameters" if blind else "the fit is singular"
            return Status.AMBIGUOUS, f"Every row is reproduced, but {which}."
        if answer.net.m and task.discrete:
            return (
                Status.AMBIGUOUS,
                "Every row is reproduced, but each input takes only a few values: kinks are unseen.",
            )
        return (
            Status.EXACT,
            f"{net.m} units, relative error {residual:.1e} on {task.held.n} rows never used in the fit.",
        )
    if p >= N:
        return Status.UNDERDETERMINED, f"{N} numbers cannot determine {p} parameters."
    if rival is not None:
        return (
            Status.NOT_RECOVERED,
            f"A network of {rival} units explains the data better, by more than its size accounts for.",
        )
    directions = np.column_stack([answer.net.W, answer.net.b])
    score = structure_score(task.rows, task.shape, answer.R, directions)
    noise = inference.noise / task.units
    held = task.held
    held_error = (net(held.X).reshape(held.y.shape) - held.y) / task.units
    scale = 1.0 if held.weight is None else np.sqrt(held.weight)[:, None]
    excess = float(np.mean((held_error * scale / np.maximum(noise, 1e-300)) ** 2))
    if N * log(max(answer.loss, 1e-300)) + (p - task.parameters(0)) * log(N) >= 0.0 and answer.net.m:
        return (
            Status.NOT_RECOVERED,
            "The hidden units explain no more than chance would: the data look affine plus noise.",
        )
    if score >= STRUCTURE:
        return (
            Status.NOT_RECOVERED,
            f"The residual is not noise (score {score:.1f}, noise stays below {STRUCTURE:.0f}).",
        )
    if excess > float(fisher_f.isf(1e-6, held.y.size, max(N - p, 1))):
        return Status.NOT_RECOVERED, "The error on rows set aside is larger than the fit's own: it does not generalise."
    if agreeing < 2 and answer.net.m:
        return Status.NOT_RECOVERED, "No two starts agree on a network, so none can be trusted."
    return (
        Status.NOISY,
        f"{net.m} units; what is left looks like noise of standard deviation {_rms(inference.noise):.3g}.",
    )


def _rms(x: Array) -> float:
    return float(np.sqrt(np.mean(x**2)))


def _one_sided(task: Task, answer: Answer) -> list[int]:
    """Units with fewer rows on one side of a kink than the d parameters those rows must determine."""
    if not task.shape.activation.kinks:
        return []
    (active,) = task.rows.sum(
        lambda s: ((task.rows.X[s, :-1] @ answer.net.W.T + answer.net.b > 0.0).sum(axis=0),), answer.net.m
    )
    minor = np.minimum(active, task.rows.n - active)
    needed = answer.net.d / task.q
    return [int(i) for i in np.flatnonzero(minor < needed)]


def _remarks(task: Task, answer: Answer, net: Network, width: int | None, status: Status) -> tuple[Units, list[str]]:
    """Which units are known how well, and what to tell about signs and absorbed units."""
    everyone = tuple(range(net.m))
    remarks, absorbed = [], []
    if answer.affine and net.m:
        remarks.append(f"signs: {answer.signs}; the affine part is kept" if answer.signs else "the affine part is kept")
    elif answer.signs:
        remarks.append(answer.signs)
    if width is not None and net.m < width:
        absorbed.append(
            f"{width - net.m} of {width} units: they never switch on these data, so they are part of v·x + c"
        )
    if not status.ok:
        return Units((), (), tuple(absorbed)), remarks
    flippable = answer.affine and net.activation.reflection is not None and net.m > 0
    return Units(() if flippable else everyone, everyone if flippable else (), tuple(absorbed)), remarks


_PROVES = {
    Status.EXACT: "this network reproduces rows it never saw to rounding error, so on this input distribution it is "
    "the function; by the uniqueness of ReLU networks without parallel units its parameters are the network's, up to "
    "permutation, scale and flips",
    Status.NOISY: "the residual shows no structure against 256 random hidden units and rows set aside are predicted as "
    "well as the noise allows; several starts agree",
}
_DOES_NOT = {
    Status.EXACT: "that no unit hides where no sample fell (kinks outside the data), nor that a wider network with the "
    "same values on these inputs does not exist",
    Status.NOISY: "that units weaker than the noise do not exist",
}
