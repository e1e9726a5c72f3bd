"""What kind of function a box is, if lines did not recover it: told from about a hundred rows, with what to do then.

At random places x and in random directions u the box is asked at x, x ± hu and x ± hu/2. With

    Δ(h) = f(x + hu) − 2f(x) + f(x − hu)

a piecewise linear function has Δ = 0 at nearly all places; a smooth one Δ(h) ≈ 4 Δ(h/2); one made of steps does not
move at all, f(x ± hu) = f(x), or jumps; a random one gives another answer to the same question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from relumine.arrays import Array
from relumine.extraction.judge import BoxEvidence, certificate, judge
from relumine.extraction.queries import BlackBoxFailed, Ended, Queries, Unanswered
from relumine.extraction.sampling import Domain
from relumine.links import link_of
from relumine.network import Network
from relumine.results import InvalidInput, Recovery, Status

_PLACES = 24  # five rows each; a network with a thousand kinks on a line bends at one place in a hundred
# h, in units of the inputs' scale: a smooth function then bends by 1e-4 of its size, and rounding by 1e-15
_STEP = 1e-2
_BENT = 1e-9  # of the size of the answers: more than double precision leaves in Δ, less than any curvature of interest
_MOST = 0.8  # share of the places that must agree
_JUMPS = (
    "The answers jump between two neighbouring points of a line, as those of labels, trees and rounding do: this is no "
    "continuous function. queries='random' fits a network to it nevertheless."
)
_ROUNDINGS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("whole numbers", np.round),
    ("whole numbers", np.floor),
    ("whole numbers", np.trunc),
    ("one decimal", lambda X: np.round(X, 1)),
    ("two decimals", lambda X: np.round(X, 2)),
    ("three decimals", lambda X: np.round(X, 3)),
)
_NO_STEPS = ("piecewise linear", "constant", "unknown")  # what a few places say of a box that jumps elsewhere
_LABELS = 16  # different answers, at most, that are labels and not numbers
_DECIMALS = 8  # rounding to more is that of single precision, or does no harm


@dataclass(frozen=True)
class Kind:
    """``name``; ``word``: a sentence on what it is and what would help; ``hopeless``: no search will find a network."""

    name: str
    word: str = ""
    hopeless: bool = False


def kind_of(ask: Callable[[Array], Array], again: Callable[[Array], Array], draw: Callable[[int], Array]) -> Kind:
    """The kind of a box by its answers.

    Parameters
    ----------
    ask, again : callable
        (n, d) → (n, q), in standard coordinates; ``again`` asks the box although it has answered before.
    draw : callable
        n → (n, d), places where inputs usually are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = lambda X: np.tanh(X[:, :1])
    >>> kind_of(f, f, lambda n: rng.normal(size=(n, 3))).name
    'smooth'
    """
    x = draw(_PLACES)
    u = draw(_PLACES)
    u *= _STEP * np.linalg.norm(x, axis=1, keepdims=True) / np.linalg.norm(u, axis=1, keepdims=True)
    rows = ask(np.concatenate([x, x - u, x + u, x - 0.5 * u, x + 0.5 * u]))
    parts = np.array(np.split(rows, 5))
    good = np.isfinite(parts).all(axis=(0, 2))  # a link has no digits elsewhere
    if good.sum() < _PLACES // 2:
        return Kind("unknown")
    x, rows = x[good], parts[:, good].reshape(-1, parts.shape[2])
    here, before, after, nearer, next_to = parts[:, good]
    size = max(float(np.abs(here).max()), 1e-300)
    bend, small = (np.abs(a + b - 2.0 * here).max(axis=1) for a, b in ((before, after), (nearer, next_to)))
    other = np.abs(again(x) - here)
    if np.nanmax(other) > 1e-6 * size:
        word = "The box is random, or looks at other rows of the call: asked the same again, it gives other answers."
        return Kind("random", word, hopeless=bool((np.nanmean(other, axis=0) > 0.5 * here.std(axis=0)).all()))
    values = np.unique(rows, axis=0)
    if len(values) == 1:
        return Kind(
            "constant", "The answers are all the same: where inputs usually are (mean=, scale=), nothing varies."
        )
    still = np.maximum(np.abs(nearer - here), np.abs(next_to - here)).max(axis=1) <= 1e-14 * size
    if still.mean() >= 0.5 and (still | (small > _BENT * size)).all():
        return _pieces(values)
    if _probabilities(rows):
        word = "The answers are probabilities: link='auto' maps them back to the values of a network."
        return Kind("probabilities", word, hopeless=True)
    rounded = _rounded(rows)
    if rounded is not None:
        return rounded
    bent = bend > _BENT * size
    smooth = bent & (bend > 3.0 * small) & (bend < 5.0 * small)
    if smooth.mean() >= _MOST:
        word = (
            "The answers bend everywhere, smoothly: this is no network of ReLU units. Smooth units are searched with "
            "activation='tanh', 'sigmoid', 'gelu' or 'silu'."
        )
        return Kind("smooth", word, hopeless=True)
    return Kind("piecewise linear" if bent.mean() < 0.5 else "unknown")


def rounds_inputs(ask: Callable[[Array], Array], X: Array) -> Kind | None:
    """Whether the box rounds its inputs first: asked at rounded rows it answers the same, past them it does not.

    With r(x) the rounded row, f(r(x)) = f(x) everywhere, and f(2x − r(x)), as far from x on the other side, differs at
    many places: one coordinate in two is rounded to another number there. A tree has no such grid.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(24, 3))
    >>> rounds_inputs(lambda X: np.round(X, 1) @ np.ones((3, 1)), X).name
    'rounded inputs'
    >>> rounds_inputs(lambda X: X @ np.ones((3, 1)), X) is None
    True
    """
    Y = ask(X)
    least = 1e-12 * float(np.abs(Y).max(initial=0.0))
    for name, rounding in _ROUNDINGS:
        R = rounding(X)
        same, past = (np.abs(ask(other) - Y).max(axis=1) <= least for other in (R, 2.0 * X - R))
        if same.all() and past.mean() < _MOST:
            word = (
                f"The box rounds its inputs to {name}: between them the answers do not change, so no kink can be "
                "placed. From Python, a sampler= that draws inputs so rounded finds the network from random rows."
            )
            return Kind("rounded inputs", word, hopeless=True)
    return None


def kind_in(log: Queries, domain: Domain, jumps: bool = False) -> Kind:
    """The kind of the box behind a log; unknown where it does not answer, or where no more can be asked.

    ``jumps``: lines have met jumps.
    """
    rng = np.random.default_rng(log.seed + 4)
    try:
        kind = kind_of(
            lambda Z: log.answers(domain.rows(Z)),
            lambda Z: log.again(log.box.rounded(domain.rows(Z))),
            lambda n: domain.draw(rng, n),
        )
        if jumps or kind.name in ("labels", "steps", "unknown", "smooth", "rounded"):
            kind = rounds_inputs(log.answers, domain.rows(domain.draw(rng, _PLACES))) or kind
    except (Ended, Unanswered, BlackBoxFailed):
        log.forgive()
        kind = _rounded(log.some(5 * _PLACES)[1]) or Kind("unknown")
    return Kind("jumps", _JUMPS, hopeless=True) if jumps and kind.name in _NO_STEPS else kind


def refusal(log: Queries, kind: Kind) -> Recovery | None:
    """A result that says what the box is, where random rows would be asked in vain; else None."""
    if not kind.hopeless or (log.link is not None and kind.name == "probabilities"):
        return None
    e = BoxEvidence(kind=kind.word)
    network = Network(np.zeros((0, log.dim)), np.zeros(0), np.zeros(0))
    return Recovery(network, *judge(e), certificate(e), method="lines")


def explained(result: Recovery, log: Queries, domain: Domain | None, kind: Kind | None) -> Recovery:
    """The result with a sentence on what the box is, where no network was found in it; ``kind``: as far as is known."""
    failed = result.status in (Status.NOT_RECOVERED, Status.INTERRUPTED)
    if not failed or domain is None or log.link is not None or not log.n:
        return result
    # random rows have spent their budget; what kind it is was asked before them, if at all
    if log.way == "chosen":
        kind = kind_in(log, domain)
    elif kind is None or not kind.word:
        kind = _rounded(log.some(5 * _PLACES)[1]) or Kind("unknown")
    if not kind.word or kind.word in result.message:
        return result
    # what is no network needs no words on how far the search for one came
    return replace(result, message=kind.word if kind.hopeless else f"{result.message} {kind.word}")


def _pieces(values: Array) -> Kind:
    """Answers that do not move when the input does."""
    if len(values) <= _LABELS:
        some = ", ".join(f"{v:g}" for v in np.unique(values)[:4])
        word = (
            f"The answers are labels, {len(values)} different ones ({some}{', …' if len(values) > 4 else ''}): they "
            "say on which side of a boundary a row is, not how far. Ask for probabilities (predict_proba, "
            "with link='auto') or scores instead."
        )
        return Kind("labels", word, hopeless=True)
    word = (
        "The answers are constant but for jumps, as those of trees and of rounding to few digits: this is no network."
    )
    return Kind("steps", word, hopeless=True)


def _probabilities(rows: Array) -> bool:
    if np.ptp(rows, axis=0).max() < 1e-6:  # too much alike to tell
        return False
    try:
        return link_of("auto", rows) is not None
    except InvalidInput:  # labels
        return False


def _rounded(rows: Array) -> Kind | None:
    """Whether all answers are rounded to a few decimals."""
    size = float(np.ptp(rows, axis=0).max(initial=0.0))
    for k in range(_DECIMALS + 1):
        scaled = rows * 10.0**k
        if (np.abs(scaled - np.round(scaled)) <= 1e-9 * min(size, 1.0) + 1e-15 * np.abs(scaled)).all():
            word = f"The answers are rounded to {k} decimals: ask for more of them, or for answers on a larger scale."
            return Kind("rounded", word)
    return None
