"""Chosen queries from end to end: lines → units → polish → judge, as one Recovery."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from relumine.activations import Activation
from relumine.extraction.chosen import JUMPS, ROUGH, Chosen, chosen_queries
from relumine.extraction.deep.depth import is_deep
from relumine.extraction.judge import certify, known_units
from relumine.extraction.lines import Ask
from relumine.extraction.polish import Signed, polishable, polished, refitted, signed
from relumine.extraction.queries import BlackBoxFailed, Ended, Queries, Unanswered
from relumine.extraction.sampling import Domain
from relumine.network import Network
from relumine.results import Certificate, InvalidInput, Recovery, SearchRecord, Stage, Status
from relumine.run import Run

Array = NDArray[np.float64]

__all__ = ["DEEP", "by_lines"]

DEEP = "deep"

_PER_PARAMETER = 2.5  # random rows for a fit of many parameters: with fewer it converges slowly
_MOST_NUMBERS = 10**8  # of inputs in those rows: 0.8 GB
_AGAIN = 8  # rows asked a second time: does the box repeat itself?
_SIZE = 1e140  # of the answers, or one over it
_REPEATS = 1e-9  # relative difference of two answers to one question that is rounding


def by_lines(
    log: Queries, domain: Domain, run: Run, width: int | None, activation: Activation, look_deeper: bool = False
) -> tuple[Recovery | None, str]:
    """The recovery and ""; or None and why lines cannot be had: `DEEP` if ``look_deeper`` and there are more layers."""

    def ask(Z: Array) -> Array:
        return log.answers(domain.rows(Z))

    began = time.perf_counter()
    if log.n:
        _same_box(log)
    elif run.over:
        raise InvalidInput("the time (seconds=) was over before the black box was asked; give it more")
    # does it answer at all, where inputs usually are?
    size = np.abs(ask(0.1 * domain.draw(np.random.default_rng(log.seed + 1), _AGAIN))).max()
    if size > 0.0 and not 1.0 / _SIZE < size < _SIZE:
        word = f"the answers are of size {size:.0e}, and their squares are no longer numbers"
        raise InvalidInput(word, argument="f", remedy="give answers in another unit")
    try:
        state = chosen_queries(
            ask,
            domain,
            run,
            width,
            lambda state: _polish(state, domain, log),
            lambda line, sure: look_deeper and is_deep(ask, domain, run, line, sure),
        )
    except (Unanswered, BlackBoxFailed) as error:  # far out, perhaps, where a box need not answer
        log.forgive()
        return None, f"it does not answer everywhere along a line ({error})"
    if state.deep:
        return None, DEEP
    log.jumps = state.reason == JUMPS
    if state.refused and state.noise.relative > ROUGH and not state.noise.curved:
        log.roughness = state.noise.level
    over = state.ended or (run.over and not state.refused)
    if state.reason and not over and (state.refused or state.rough):
        return None, state.reason
    stages = [Stage("lines and units", time.perf_counter() - began, None, f"{len(state.lines)} lines")]
    if over:
        return _interrupted(state, domain, stages, log), ""
    try:
        return _finished(ask, state, domain, run, activation, width, stages, log), ""
    except Ended as end:
        state.reason = str(end)
        return _interrupted(state, domain, stages, log), ""


def _polish(state: Chosen, domain: Domain, log: Queries) -> None:
    """All rows asked so far decide together, where that is not too much work; units that are one become one."""
    net = state.network
    if log.link is not None and not state.seen and polishable(net, 1 << 30):
        # probabilities have fewer digits than short steps need: as many random rows as parameters give them back
        log.answers(domain.rows(domain.draw(np.random.default_rng(log.seed + 3), (net.m + 1) * (net.d + 1))))
    rows = round(_PER_PARAMETER * (net.m + 1) * (net.d + 1))
    if state.rough and not polishable(net, 1 << 30) and net.m and rows * net.d <= _MOST_NUMBERS:
        # what lines leave of single precision is a start; random rows give the digits
        Z = domain.draw(np.random.default_rng(log.seed + 5), rows)
        state.network = refitted(net, Z, log.answers(domain.rows(Z)), state.tolerance)
        return
    if not polishable(net, log.n):
        return
    X, y = log.data(everything=True)
    Z = (X - domain.centre) / domain.scale
    state.network = polished(state.network, Z, y.reshape(len(X), -1), state.tolerance, len(state.lines) > 1)


def _finished(
    ask: Ask,
    state: Chosen,
    domain: Domain,
    run: Run,
    activation: Activation,
    width: int | None,
    stages: list[Stage],
    log: Queries,
) -> Recovery:
    """Signs, fresh rows, and what they say."""
    began = time.perf_counter()
    plain = domain.to_user(state.network).scaled()
    signs = signed(plain, activation, rough=state.rough, seconds=min(20.0, run.left))
    if not _agree(signs.network, plain, domain, state):  # what the signs took for error was not
        signs = Signed(plain, "the affine part is kept: it is small, but not zero", np.ones(plain.m, dtype=bool))
    order = np.argsort(-np.linalg.norm(signs.network.a, axis=0), kind="stable")
    net, signs = signs.network.permuted(order), signs._replace(open=signs.open[order])
    certificate, status, word, shown = certify(ask, net, state, domain, run)
    if state.reason:
        status = Status.NOT_RECOVERED
        word = f"{net.m} units were found, but {state.reason}: it may have further layers, or not be piecewise linear."
    unlike = _unlike(log)
    if unlike:
        status, word = Status.NOT_RECOVERED, f"{word} {unlike}"
    certificate = replace(certificate, notes=(*((signs.word,) if signs.word else ()), *certificate.notes))
    return Recovery(
        network=_shaped(net, log),
        status=status,
        message=word,
        certificate=certificate,
        units=known_units(status, signs, width),
        stages=(*stages, Stage("signs and certificate", time.perf_counter() - began)),
        method="lines",
        search=_record(state, log),
        shown=shown,
    )


def _agree(one: Network, two: Network, domain: Domain, state: Chosen) -> bool:
    """Whether two networks are one function to the digits that are known, on rows that nobody is asked about."""
    X = domain.rows(domain.draw(np.random.default_rng(1), 64))
    y = two(X)
    allowed = 1e-9 * y.std(axis=0) + 30.0 * state.noise(float(domain.d) ** 0.25)
    return bool((np.abs(one(X) - y) <= allowed).all())


def _interrupted(state: Chosen, domain: Domain, stages: list[Stage], log: Queries) -> Recovery:
    """What is known when time or budget is over."""
    word = state.reason or "the time is over"
    return Recovery(
        network=_shaped(domain.to_user(state.network).scaled(), log),
        status=Status.INTERRUPTED,
        message=f"Stopped early: {word}. {log.n} rows were answered, {state.network.m} units found so far.",
        certificate=Certificate(residual=float("nan"), rows=0),
        stages=tuple(stages),
        method="lines",
        search=_record(state, log),
    )


def _record(state: Chosen, log: Queries) -> SearchRecord:
    return SearchRecord(noise=tuple(state.noise.level.tolist()), rows=log.n, rows_searched=log.n)


def _shaped(net: Network, log: Queries) -> Network:
    """One output is a plain number."""
    if not log.plain:
        return net
    return Network(net.W, net.b, net.a[0], net.activation, net.v[0], net.c[0])


def _same_box(log: Queries) -> None:
    """Refuse to go on from another box's answers."""
    X, saved = log.some(_AGAIN)
    answers = log.again(X)
    size = np.abs(saved).max(axis=0) + saved.std(axis=0)
    single = bool((saved.astype(np.float32) == saved).all())
    if not (np.nanmax(np.abs(answers - saved), axis=0) <= (1e-5 if single else _REPEATS) * size).all():
        raise InvalidInput(f"the queries saved in {log.file} were answered by another box")


def _unlike(log: Queries) -> str:
    """In words, if the box answers a question differently the second time."""
    X, saved = log.some(_AGAIN)
    answers = log.again(X)
    size = np.abs(saved).max(axis=0) + saved.std(axis=0)
    if (np.nanmax(np.abs(answers - saved), axis=0) <= ROUGH * size + np.finfo(float).tiny).all():
        return ""
    return "The box does not repeat itself: asked again, it gave other answers."
