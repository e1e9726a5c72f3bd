"""One round of the search: a student of more units than are looked for, contracted to the width, and perhaps signed.

At few samples per parameter the student sticks, at a loss of 0.05, say. Leaving units out is an escape: it is the
contracted network that then falls to rounding error, or ends lower than the one before. So a round can begin at the
network of the last one: its units that matter most stay, the others make room for random ones (:func:`renewed`). It
costs little: neither the student nor the contracted network is followed to the bottom of a basin that is not the right
one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from relumine.arrays import Array
from relumine.fit.levenberg import INTERRUPTED, Fit, Schedule, State, minimise
from relumine.fit.projection import project
from relumine.fit.prune import POLISH, SEARCH, prune
from relumine.fit.rows import AFFINE, MemoryRows
from relumine.fit.sign_free import Shape, shape_of
from relumine.fit.starts import Few, few_inside, lifted, random_directions, rest_span, with_slopes
from relumine.recovery.orient import LINEAR, orient
from relumine.recovery.task import MemoryTask
from relumine.run import Run

STUDENT = replace(SEARCH, plateau=15, tol=1e-3)
"""A student on its way to a network. Forty slow steps instead of fifteen: (10,10) at n/p = 2 took a third longer to the
same rate. At a loss of 1e-3 its units are found, and the rest is cheaper after contraction: (50,50) at n/p = 6 took
4.6 s instead of 5.3; at 1e-2 it is too early."""

# 1 % in eight steps: what goes on to rounding error falls faster; (50,50) at n/p = 3.5 took 130 steps to do so
_CONTRACT = replace(POLISH, steps=400, gain=1e-2, tol=1e-24)

# without the affine part the loss collapses in ten steps or sticks at once
_SIGNED = replace(POLISH, damping=1e-4, plateau=6, gain=0.2)

_WIDE = 16  # units beyond which the span is found in turn with the fit; fewer are found without affine part instead
# steps in all dimensions: two bring the span as near as the units that are right allow
_A_FEW = replace(SEARCH, steps=2)
# inside the span again: some ten steps, as costly as one in all dimensions
_AGAIN = replace(SEARCH, plateau=3, gain=0.05)
_FURTHER = 0.01  # of the loss in all dimensions: where a student inside the span may stop
_COLLAPSES = 0.05  # of its loss that two steps leave of a fit all of whose units are right
_PAYS = 0.8  # of the loss before: a turn that leaves more was the last one
_ROWS_INSIDE = 6  # for each unknown of a student inside the span: (200,32) went on as from all, 23 for each
_ROWS_SIGNED = 300  # for each where signs are told there, too: 2048-4-1 has 1300, which took three seconds more

_INSIDE = 4  # starts inside a span: a wrong end there costs far more than a start
_EVERY_WAY = 4  # units up to which all their signs are tried: sixteen projections, as much as two steps
_FOLLOWED = 3  # of them, from a span: of 18 networks (150,2) … (300,3) at n/p = 3 one was enough for 9, three for 15
_NEAR = 0.2  # relative loss from which signs are tried: 784-2-1 at n/p = 3 and 6 sticks at 0.03 … 0.06, (200,2) at 0.12
_SHARE = 0.05  # of the parameters that the affine part must be for its removal to help: (30,30) has 3 %, (10,5) 17 %


def renewed(fit: Fit, kept: int, k: int, rng: np.random.Generator) -> Array:
    """k directions (k, d+1): those ``kept`` units of a fit that cost most to leave out, and random ones."""
    dearest = np.sort(np.argsort(-fit.at.drop_costs(), kind="stable")[:kept])
    return np.concatenate([fit.at.U[dearest], random_directions(rng, k - len(dearest), fit.at.U.shape[1])])


def from_the_span(task: MemoryTask, k: int, width: int, span: Array, run: Run, stage: str) -> Fit:
    """A fit of ``width`` units that begins inside a span (r, d) of the weights: k units there, contracted.

    In r dimensions a step costs r/d of one in all, and k units have k(r+1) parameters: a student of 1.5 times the units
    has, for r ≪ d and few samples, almost as many parameters as there are rows, and inside the span far fewer. Where
    signs can be told there, the fit goes on without affine part, and in the sign-free form only if that sticks.
    """
    span = with_slopes(span, task.tau)
    if width > _WIDE:
        return _wide_from_the_span(task, k, width, span, run, stage)
    most, found = _ROWS_SIGNED * k * (len(span) + 1), list[Fit]()
    few = few_inside(task.rows, span, most)
    for _ in range(_INSIDE):
        U = random_directions(run.rng, k, len(span) + 1)
        fit = minimise(few.rows, task.shape, U, replace(STUDENT, plateau=6), run=run)
        found.append(prune(few.rows, task.shape, fit, width, run))
        least, *others = sorted(fit.loss for fit in found)
        if others and others[0] < 1.01 * least:  # two ended there: it is the best there is
            break
    best = min(found, key=lambda fit: fit.loss)
    U = best.at.U @ few.back
    pure = _pure_from(task, best, few, few_inside(_without_affine(task), span, most), run, stage)
    if pure is not None and (task.is_exact(pure.at.squares) or pure.reason == INTERRUPTED):
        return pure
    if pure is not None and pure.at.loss < project(task.rows, task.shape, U).loss:
        return refined(task, pure.at.U, run, stage)
    return refined(task, U, run, stage, SEARCH.damping)


def _wide_from_the_span(task: MemoryTask, k: int, width: int, span: Array, run: Run, stage: str) -> Fit:
    """The same for many units: the span is found in turn with the fit.

    The second moment of y does not show weak units. So two steps in all dimensions follow, and what they leave of y
    shows further directions: k units inside the span of both are contracted again, as long as that pays.
    """
    rows, shape = task.rows, task.shape
    start = random_directions(run.rng, k, len(span) + 1)
    U = _contracted_inside(rows, Inside(shape, span, start, replace(STUDENT, plateau=6)), width, run, stage)
    fit = minimise(rows, shape, U, _A_FEW, run=run, stage=stage)
    while fit.reason != INTERRUPTED and fit.loss > _COLLAPSES * fit.history[0]:
        W, rest = np.linalg.qr(fit.at.U[:, :-1].T)[0].T, rest_span(rows, fit.at.model, width // 4)
        start = np.zeros((k, width + len(rest) + 1))
        start[:width, :width], start[:width, -1] = fit.at.U[:, :-1] @ W.T, fit.at.U[:, -1]
        start[width:, width:] = random_directions(run.rng, k - width, len(rest) + 1)
        again = Inside(shape, np.concatenate([W, rest]), start, replace(_AGAIN, tol=_FURTHER * fit.loss))
        # across the span the affine part of y stays what it is now
        U = _contracted_inside(rows.less(fit.at.tau, AFFINE), again, width, run, stage)
        better = minimise(rows, shape, U, _A_FEW, run=run, stage=stage)
        if better.loss > _PAYS * fit.loss:
            break
        fit = better
    return refined(task, fit.at.U, run, stage, fit.state.damping)


class Inside(NamedTuple):
    """A student inside a span (r, d): of which shape, where it starts, (k, r+1), and when it ends."""

    shape: Shape
    span: Array
    start: Array
    schedule: Schedule


def _contracted_inside(rows: MemoryRows, student: Inside, width: int, run: Run, stage: str) -> Array:
    """Directions (width, d+1) of a student inside a span, contracted there."""
    few = few_inside(rows, student.span, _ROWS_INSIDE * student.start.size)
    start = lifted(student.start, student.span) @ np.linalg.pinv(few.back)
    fit = minimise(few.rows, student.shape, start, student.schedule, run=run, stage=stage)
    return prune(few.rows, student.shape, fit, width, run, stage).at.U @ few.back


def _without_affine(task: MemoryTask) -> MemoryRows:
    """The rows for a network without affine part but for an output bias."""
    return task.plain.centred(task.tau[-1])


def _pure_from(task: MemoryTask, fit: Fit, few: Few, plain_few: Few, run: Run, stage: str) -> Fit | None:
    """From a fit of a few rows inside a span, the best of all without affine part: signs are chosen inside the span.

    There they can hardly be told, so a few choices are followed, unless the first shows that the affine part is real.
    ``plain_few``: the same rows with their affine part.
    """
    if not _signs_help(task, len(fit.at.U)):
        return None
    rows, plain, best = _without_affine(task), shape_of(task.shape.activation, sign_free=False), None
    if len(fit.at.U) <= _EVERY_WAY:
        ways = _every_way(fit.at.U)
    else:
        turned = _turned(task.shape, fit, few.affine(task.tau), plain_few.rows)
        ways = [] if turned is None else [turned]
    found = sorted((minimise(plain_few.rows, plain, U, _SIGNED, run=run) for U in ways), key=lambda fit: fit.loss)
    for start in found[:_FOLLOWED]:
        pure = _sign_free(task, minimise(rows, plain, start.at.U @ few.back, _SIGNED, run=run, stage=stage))
        best = pure if best is None or pure.at.loss < best.at.loss else best
        if task.is_exact(best.at.squares) or best.loss > _NEAR or pure.reason == INTERRUPTED:
            break
    return best


def _every_way(U: Array) -> list[Array]:
    """The directions U (m, d+1) with all choices of signs."""
    return [np.array(signs)[:, None] * U for signs in product((1.0, -1.0), repeat=len(U))]


def contracted(task: MemoryTask, student: Fit, width: int, run: Run, stage: str) -> Fit:
    """The student with ``width`` units, while that pays."""
    fit = prune(task.rows, task.shape, student, width, run, stage)
    return fit.ended(INTERRUPTED) if run.over else refined(task, fit.at.U, run, stage)


def refined(task: MemoryTask, U: Array, run: Run, stage: str, damping: float = POLISH.damping) -> Fit:
    """A fit from the directions U (m, d+1), while that pays: down to rounding error or to where it gets slow."""
    return minimise(task.rows, task.shape, U, replace(_CONTRACT, damping=damping), run=run, stage=stage)


def signed(task: MemoryTask, fit: Fit, run: Run, stage: str) -> Fit | None:
    """A better fit by way of the signs, if there is one: most networks have no affine part, only an output bias.

    The affine part costs (d+1)q parameters, which is much where there are few units. Signs that remove it are found
    as soon as a fit comes close; then the units are fitted without it. Back in the sign-free form, that can only be
    better.
    """
    if fit.loss > _NEAR or not _signs_help(task, len(fit.at.U)):
        return None
    rows, plain = _without_affine(task), shape_of(task.shape.activation, sign_free=False)
    U = _turned(task.shape, fit, task.tau, rows)
    if U is None:
        return None
    found = minimise(rows, plain, U, _SIGNED, run=run, stage=stage)
    return None if found.at.loss >= fit.at.loss else _sign_free(task, found)


def _signs_help(task: MemoryTask, m: int) -> bool:
    """Whether m units can be flipped, a linear system tells which, and the affine part is worth the trouble."""
    reflection = task.shape.activation.reflection
    if reflection is None or reflection.scale != 1.0 or not reflection.slope:
        return False  # nothing to flip
    return 0 < m <= (task.rows.columns - 1) * task.q and task.parameters(0) >= _SHARE * task.parameters(m)


def _sign_free(task: MemoryTask, found: Fit) -> Fit:
    """A fit without affine part as one of the sign-free form, at the same directions."""
    at = project(task.rows, task.shape, found.at.U)
    loss = at.loss / max(task.rows.norm2, np.finfo(float).tiny)
    history = (*found.history[:-1], loss)
    return Fit(at, State(at.U, POLISH.damping, 2.0, history, found.state.products, found.reason))


def _turned(shape: Shape, fit: Fit, tau: Array, rows: MemoryRows) -> Array | None:
    """Directions (m, d+1) of the units, each with a sign that leaves little of the affine part; None if that is open.

    ``tau`` (d+1, q): the affine part taken out before the fit. A few units are turned in every way, and the loss
    without affine part, on ``rows``, decides; for more a linear system does, which a poor fit misleads sooner.
    """
    if len(fit.at.U) <= _EVERY_WAY:
        plain = shape_of(shape.activation, sign_free=False)
        return min(_every_way(fit.at.U), key=lambda U: project(rows, plain, U).loss)
    turned = orient(shape.network(fit.at.U, fit.at.A, tau + fit.at.tau), exact=False, bias=True, seconds=0.1)
    return np.column_stack([turned.network.W, turned.network.b]) if turned.how == LINEAR else None
