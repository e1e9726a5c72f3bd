"""Chosen queries from end to end: lines → units → polish → judge, as one Recovery."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from relumine.activations import Activation
from relumine.arrays import Array, is_single
from relumine.extraction.chosen import ROUGH, Chosen, chosen_queries
from relumine.extraction.deep.asking.depth import is_deep
from relumine.extraction.judge import BoxEvidence, certificate, judge
from relumine.extraction.lines import Ask
from relumine.extraction.polish import Signed, polishable, polished, refitted, signed, without_faint
from relumine.extraction.queries import BlackBoxFailed, Ended, Queries, Unanswered
from relumine.extraction.sampling import Domain
from relumine.network import Network
from relumine.results import InvalidInput, Predictions, Recovery, SearchRecord, Stage, Status, Units, counted
from relumine.run import Run

_CONFIRM = 300  # fresh random rows: at most 1 % of the inputs may then differ, with 95 % confidence
_EXACT = 1e-9  # relative error of a prediction that is rounding, as in the fit
_PER_PARAMETER = 2.5  # random rows for a fit of many parameters: with fewer it converges slowly
_MOST_NUMBERS = 10**8  # of inputs in those rows: 0.8 GB
_AGAIN = 8  # rows asked a second time: does the box repeat itself?
_SIZE = 1e140  # of the answers: squares of larger ones, or of those below one over it, leave the range of doubles
_LAST = 1e-13  # relative difference of two answers that is the order of a sum in double precision
_REPEATS = 1e-9  # relative difference of two answers to one question that is rounding


class ByLines(NamedTuple):
    """``result``; or None, and ``why`` lines cannot be had.

    ``deep``: there are more layers; ``jumps``: the answers jump; ``noise`` (q,): of answers too rough for lines.
    """

    result: Recovery | None
    why: str = ""
    deep: bool = False
    jumps: bool = False
    noise: Array | None = None


def by_lines(
    log: Queries, domain: Domain, run: Run, width: int | None, activation: Activation, look_deeper: bool = False
) -> ByLines:
    """One hidden layer by lines; with ``look_deeper`` it ends where there are more layers."""

    def ask(Z: Array) -> Array:
        return log.answers(domain.rows(Z))

    began = time.perf_counter()
    if log.n:
        _same_box(log)
    elif run.over:
        raise InvalidInput("the time (seconds=) was over before the black box was asked; give it more")
    try:  # does it answer at all, where inputs usually are?
        size = np.abs(ask(0.1 * domain.draw(np.random.default_rng(log.seed + 1), _AGAIN))).max()
    except Unanswered as error:
        log.forgive()
        return ByLines(None, f"it does not answer everywhere ({error})")
    if size > 0.0 and not 1.0 / _SIZE < size < _SIZE:
        word = f"the answers are of size {size:.0e}, too large or too small to be squared"
        raise InvalidInput(word, argument="f", remedy="multiply the answers by a suitable number")
    try:
        state = chosen_queries(
            ask,
            domain,
            run,
            width,
            lambda state: _polish(state, domain, log),
            lambda line: look_deeper and is_deep(ask, domain, run, line),
        )
    except (Unanswered, BlackBoxFailed) as error:  # far out, perhaps, where a box need not answer
        log.forgive()
        return ByLines(None, f"it does not answer everywhere along a line ({error})")
    if state.deep:
        return ByLines(None, state.reason, deep=True)
    over = state.ended or (run.over and not state.refused)
    if state.reason and not over and (state.refused or state.rough):
        rough = state.refused and state.noise.relative > ROUGH and not state.noise.curved
        return ByLines(None, state.reason, jumps=state.jumps, noise=state.noise.level if rough else None)
    stages = [Stage("lines and units", time.perf_counter() - began, None, f"{len(state.lines)} lines")]
    if over:
        return ByLines(_interrupted(state, domain, stages, log))
    try:
        return ByLines(_finished(ask, state, domain, run, activation, width, stages, log))
    except Ended as end:
        state.reason = str(end)
        return ByLines(_interrupted(state, domain, stages, log))


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
    state.network = polished(
        state.network, domain.standard(X), y.reshape(len(X), -1), state.tolerance, len(state.lines) > 1
    )


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
    state.network = without_faint(state.network, lambda: domain.standard(log.data(everything=True)[0]), state.tolerance)
    plain = domain.to_user(state.network).scaled()
    signs = signed(plain, activation, rough=state.rough, seconds=min(20.0, run.left))
    if not _agree(signs.network, plain, domain, state):  # what the signs took for error was not
        signs = Signed(plain, "the affine part is kept: it is small, but not zero", np.ones(plain.m, dtype=bool))
    order = np.argsort(-np.linalg.norm(signs.network.a, axis=0), kind="stable")
    net, signs = signs.network.permuted(order), signs._replace(open=signs.open[order])
    e, shown = _evidence(ask, net, state, domain, run, log)
    e = replace(e, notes=(signs.word,) if signs.word else ())
    status, message = judge(e)
    return Recovery(
        network=_shaped(net, log),
        status=status,
        message=message,
        certificate=certificate(e),
        units=_known_units(status, signs, width),
        stages=(*stages, Stage("signs and certificate", time.perf_counter() - began)),
        method="lines",
        search=_record(log, np.sqrt(np.mean((shown.truth - shown.predicted) ** 2, axis=0))),
        shown=shown,
    )


def _evidence(
    ask: Ask, net: Network, state: Chosen, domain: Domain, run: Run, log: Queries
) -> tuple[BoxEvidence, Predictions]:
    """Fresh random rows, and where lines looked for kinks.

    ``net``: in the user's coordinates, with (q, m) output weights; ``ask`` answers in standard ones. The random rows of
    the last look, which the network has not seen either, are among them.
    """
    looked = domain.draw(run.rng, 0) if state.fresh is None else state.fresh[:_CONFIRM]
    Z = np.vstack([looked, domain.draw(run.rng, _CONFIRM - len(looked))])
    y, predicted = ask(Z), net(domain.rows(Z))
    spread = np.maximum(y.std(axis=0), np.finfo(float).tiny)
    left = np.sqrt(np.mean((y - predicted) ** 2, axis=0))  # (q,)
    allowed = _EXACT * spread + 100.0 * state.noise(float(domain.d) ** 0.25)
    far = domain.scale.max() * max(abs(end) for line in state.lines for end in line.reach)
    again = log.apart(_AGAIN)
    where = "inside the range" if domain.limited else f"up to {far:.0e} from the centre"
    lines = f"along {counted(len(state.lines), 'line')}{' ' if domain.limited else ', '}{where}"
    return BoxEvidence(
        found=counted(net.m, "unit"),
        fresh=_CONFIRM,
        wrong=int((np.abs(y - predicted) > allowed).any(axis=1).sum()),
        residual=float((left / spread).max()),
        beside=f", and so do {state.between} others beyond and between its kinks on a fresh line",
        digits=-float(np.log10(state.noise.relative)) if state.rough else None,
        # the rounding of the answers, and what it does to the parameters: fresh rows show both
        noise=float(np.linalg.norm(left)) if state.rough else 0.0,
        left=state.reason,
        repeats=again <= ROUGH,
        varies=again > _LAST and not is_single(y),
        open=f"anything about kinks that were not looked for: they were looked for {lines}",
    ), Predictions(y, predicted)


def _known_units(status: Status, signs: Signed, width: int | None) -> Units:
    """Which units are known with their sign."""
    if not status.ok:
        return Units()
    m = len(signs.open)
    word = f"{(width or 0) - m} of {width} units were not found: no kink shows them"
    absorbed = (word,) if width is not None and m < width else ()
    return Units(tuple(np.flatnonzero(~signs.open).tolist()), tuple(np.flatnonzero(signs.open).tolist()), absorbed)


def _agree(one: Network, two: Network, domain: Domain, state: Chosen) -> bool:
    """Whether two networks are one function to the digits that are known, on rows that nobody is asked about."""
    X = domain.rows(domain.draw(np.random.default_rng(1), 64))
    y = two(X)
    allowed = 1e-9 * y.std(axis=0) + 30.0 * state.noise(float(domain.d) ** 0.25)
    return bool((np.abs(one(X) - y) <= allowed).all())


def _interrupted(state: Chosen, domain: Domain, stages: list[Stage], log: Queries) -> Recovery:
    """What is known when time or budget is over."""
    word = state.reason or "the time is over"
    e = BoxEvidence(ended=f"{word}. {log.n} rows were answered, {state.network.m} units found so far")
    status, message = judge(e)
    return Recovery(
        network=_shaped(domain.to_user(state.network).scaled(), log),
        status=status,
        message=message,
        certificate=certificate(e),
        stages=tuple(stages),
        method="lines",
        search=_record(log, state.noise.level),
    )


def _record(log: Queries, noise: Array) -> SearchRecord:
    """``noise`` (q,): standard deviation of what is left."""
    return SearchRecord(noise=tuple(noise.tolist()), rows=log.n, rows_searched=log.n)


def _shaped(net: Network, log: Queries) -> Network:
    """One output is a plain number."""
    return net.plain() if log.plain else net


def _same_box(log: Queries) -> None:
    """Refuse to go on from another box's answers."""
    saved = log.some(_AGAIN)[1]
    if not log.apart(_AGAIN) <= (1e-5 if is_single(saved) else _REPEATS):
        raise InvalidInput(f"the queries saved in {log.file} were answered by another box")
