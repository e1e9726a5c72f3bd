"""Which way a box is asked: lines, layer after layer, or random rows; each says why the next one is tried."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relumine.activations import LeakyReLU
from relumine.extraction.asked import Asked
from relumine.extraction.by_lines import ByLines, by_lines
from relumine.extraction.deep.by_layers import Rest, by_layers
from relumine.extraction.kinds import Kind, kind_in, refusal
from relumine.extraction.queries import Queries
from relumine.extraction.random_rows import RandomRows
from relumine.extraction.region import Where
from relumine.extraction.sampling import Domain
from relumine.results import Recovery, Status
from relumine.run import Run

_NEARER = 1.0, 0.2, 0.04  # of the scale, in turn: layers are looked for up to a thousand of it from the centre
_CHOSEN, _RANDOM = 2_000_000, 100_000  # rows asked at most, where no budget is given


class Answered(NamedTuple):
    """``result``; the ``way`` rows were chosen; the ``rest`` of a deep network; the ``kind`` of the box, if known."""

    result: Recovery
    way: str
    rest: Rest | None = None
    kind: Kind | None = None


def answered(log: Queries, where: Where, run: Run, asked: Asked) -> Answered:
    """Chosen queries where they can be had; random ones otherwise, with the reason."""
    why = _why_random(log, where, asked)
    if why or where.domain is None:
        return _by_random_rows(log, where, run, asked, ByLines(None, why))
    log.begin("chosen", _CHOSEN if asked.budget is None else asked.budget)
    run.rng = np.random.default_rng(log.seed)
    tried, found = _by_chosen_rows(log, where.domain, run, asked)
    if found is not None:
        return found
    log.set_aside()
    return _by_random_rows(log, where, run, asked, tried, kind_in(log, where.domain, tried.jumps))


def _by_chosen_rows(log: Queries, domain: Domain, run: Run, asked: Asked) -> tuple[ByLines, Answered | None]:
    """One hidden layer by lines; several, where lines show them or find no network."""
    width, sigma = asked.sizes.width, asked.activation
    several = width is None and sigma.name == "relu" and domain.room is None and asked.sizes.depth != 1
    lines = by_lines(log, domain, run, width, sigma, several)
    failed = lines.result is not None and lines.result.status is Status.NOT_RECOVERED
    if several and (lines.deep or failed):
        other, rest = _by_layers(log, domain, run, asked)
        stopped = other.status is Status.INTERRUPTED
        if other.ok or stopped or rest is not None or (lines.result is None and log.link is None):
            return lines, Answered(other, "chosen", rest)
        if lines.result is None:  # the noise of a link was taken for depth
            lines = by_lines(log, domain, run, width, sigma)
        if lines.result is not None and log.link is None:
            lines = lines._replace(result=lines.result.noted(f"more layers were looked for, too. {other.message}"))
    return lines, None if lines.result is None else Answered(lines.result, "chosen")


def _by_layers(log: Queries, domain: Domain, run: Run, asked: Asked) -> tuple[Recovery, Rest | None]:
    """All layers of a deep network; behind a link, nearer to the centre if answers have no digits further out."""
    depth, widths = asked.sizes.depth, asked.sizes.widths
    expected = None if widths is None else tuple(widths)
    if log.link is None:
        # the first line again: its answers are in the log
        return by_layers(log, domain, run, depth, expected, [domain.line(np.random.default_rng(log.seed))])
    for nearer in _NEARER:
        with log.digits_only() as missing:
            result, rest = by_layers(log, Domain(domain.centre, nearer * domain.scale), run, depth, expected)
        if result.status is not Status.NOT_RECOVERED or not missing:
            break
    return result, rest


def _by_random_rows(
    log: Queries, where: Where, run: Run, asked: Asked, tried: ByLines, kind: Kind | None = None
) -> Answered:
    """A network fitted to random rows; none where lines were tried and the box is of a kind that has none."""
    log.begin("random")
    no_network = None if kind is None else refusal(log, kind)
    if no_network is not None:
        return Answered(no_network, "random", kind=kind)
    budget = _RANDOM if asked.budget is None else asked.budget
    rows = RandomRows(log, where.draw, where.wide, log.seed, budget, run, asked.search, tried.noise)
    result = rows.until_certain(asked.sizes.width, asked.growth)
    if asked.queries != "random":
        result = result.noted(f"random rows were asked, not chosen ones: {tried.why}")
    return Answered(result, "random", kind=kind)


def _why_random(log: Queries, where: Where, asked: Asked) -> str:
    """Why lines cannot be had, or ""."""
    if asked.queries == "random":
        return "as asked"
    if where.domain is None:
        return "a sampler draws the rows"
    if log.n and log.way != "chosen":
        return "the saved queries are random rows"
    if not (asked.activation.name == "relu" or isinstance(asked.activation, LeakyReLU)):
        return f"a network of {asked.activation.name} units is not piecewise linear"
    if set(asked.search) - {"activation"}:
        return f"{', '.join(sorted(set(asked.search) - {'activation'}))} can only be used with random rows"
    return ""
