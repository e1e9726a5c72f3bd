"""From what a box answered to a verdict: the one place where the status of an extraction by chosen queries is decided.

Every rule looks at the facts and says what is wrong, if anything is; the first that speaks decides. Random rows are
judged as samples are (:mod:`relumine.recovery.judge`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from relumine.fit.leverage import unseen_share
from relumine.results import Certificate, Recovery, Status, counted


@dataclass(frozen=True)
class BoxEvidence:
    """Facts about a network found by asking a box.

    ``found``: what it is, in words; empty if none was found. ``fresh`` random rows that could have contradicted it,
    ``wrong`` of which did, with relative error ``residual``; ``beside``: what else agrees, in words. ``digits``: of
    the answers, where they have fewer than double precision, and ``noise``, the standard deviation that leaves.
    ``left``: what the network does not explain, in words. ``repeats``: asked again, the box gives the same answers,
    of which the last digits may differ (``varies``).
    ``other``: how the network differs from what the user asked for. ``ended``: why the search was stopped early.
    ``kind``: what the box is, if that is no network. ``reason``: why no network was found behind ``layers`` hidden
    layers that are certain, of so many units, and ``sides`` of the next whose planes are known. ``open``: what is not
    shown by all this, ``notes``: remarks.
    """

    found: str = ""
    fresh: int = 0
    wrong: int = 0
    residual: float = float("nan")
    beside: str = ""
    digits: float | None = None
    noise: float = 0.0
    left: str = ""
    repeats: bool = True
    varies: bool = False
    other: str = ""
    ended: str = ""
    kind: str = ""
    reason: str = ""
    layers: tuple[int, ...] = ()
    sides: int = 0
    open: str = ""
    notes: tuple[str, ...] = ()


Rule = Callable[[BoxEvidence], tuple[Status, str] | None]


def judge(e: BoxEvidence) -> tuple[Status, str]:
    """Weigh the evidence: the status, and why.

    Examples
    --------
    >>> judge(BoxEvidence("3 units", fresh=300, residual=2e-15))[0].value
    'exact'
    >>> judge(BoxEvidence("3 units", fresh=300, residual=2e-15, repeats=False))[0].value
    'not recovered'
    """
    for rule in _RULES:
        if (decided := rule(e)) is not None:
            return decided
    if e.digits is not None:
        what = "noise: asked again, the box answers a little differently" if e.varies else "their rounding"
        return Status.NOISY, (
            f"{e.found}; the error of {e.residual:.1e} of the spread of y on {e.fresh} fresh rows is {what} "
            f"(they have about {e.digits:.0f} digits), and the parameters are known no better than that."
        )
    return Status.EXACT, f"{e.found}; error {e.residual:.1e} of the spread of y on {e.fresh} fresh random rows."


def _stopped(e: BoxEvidence) -> tuple[Status, str] | None:
    return (Status.INTERRUPTED, f"{_certain(e)}Stopped early: {e.ended}.") if e.ended else None


def _no_network(e: BoxEvidence) -> tuple[Status, str] | None:
    return (Status.NOT_RECOVERED, e.kind) if e.kind else None


def _half_way(e: BoxEvidence) -> tuple[Status, str] | None:
    return (Status.NOT_RECOVERED, f"{_certain(e)}The search ended there: {e.reason}.") if e.reason else None


def _something_left(e: BoxEvidence) -> tuple[Status, str] | None:
    if not e.left:
        return None
    word = f"{e.found} were found, but {e.left}: the box may have further layers, or not be piecewise linear."
    return Status.NOT_RECOVERED, word if e.repeats else f"{word} {_UNLIKE}"


def _does_not_repeat_itself(e: BoxEvidence) -> tuple[Status, str] | None:
    return None if e.repeats else (Status.NOT_RECOVERED, f"{e.found}. {_UNLIKE}")


def _contradicted(e: BoxEvidence) -> tuple[Status, str] | None:
    if e.fresh > 0 and not e.wrong:
        return None
    return Status.NOT_RECOVERED, f"{e.wrong} of {e.fresh} fresh random rows contradict the network of {e.found}."


def _not_as_asked(e: BoxEvidence) -> tuple[Status, str] | None:
    if not e.other:
        return None
    word = f"{e.found}; error {e.residual:.1e} of the spread of y on {e.fresh} fresh random rows."
    return Status.NOT_RECOVERED, f"{word} {e.other}"


_UNLIKE = "The box does not repeat itself: asked again, it gave other answers."
_RULES: tuple[Rule, ...] = (
    _stopped,
    _no_network,
    _half_way,
    _something_left,
    _does_not_repeat_itself,
    _contradicted,
    _not_as_asked,
)


def _certain(e: BoxEvidence) -> str:
    """Which layers are certain, in a sentence: a unit that no row asked has turned on cannot show."""
    sides = f"Of the next layer {e.sides} units are known up to the side on which each is on. " if e.sides else ""
    if not e.layers:
        return sides.replace("next", "first")
    units, are = ", ".join(map(str, e.layers)), "is" if len(e.layers) == 1 else "are"
    return f"{counted(len(e.layers), 'layer')} {are} certain, as far as the rows asked show ({units} units). {sides}"


def certificate(e: BoxEvidence) -> Certificate:
    """The evidence as a user sees it; rows confirm only what the judge accepts, also where another was asked for."""
    confirmed = e.fresh if judge(replace(e, other=""))[0].ok else 0
    proves = f"{confirmed} fresh random rows, each free to contradict the network, agree with it{e.beside}"
    return Certificate(
        residual=e.residual,
        rows=e.fresh,
        noise=e.noise,
        confirmed=confirmed,
        unseen=unseen_share(confirmed) if confirmed else float("nan"),
        proves=proves if confirmed else "",
        does_not_prove=e.open,
        notes=e.notes,
    )


def stopped(found: Recovery) -> Recovery:
    """The last recovery from random rows, where the user stopped the search for more."""
    return replace(found, status=Status.INTERRUPTED, message=f"Stopped early. {found.message}")


def lines_contradict(found: Recovery, wrong: int, rows: int, repeats: bool) -> Recovery:
    """Random rows are all reproduced: what ``wrong`` of ``rows`` rows asked along a line before make of that.

    A box that does not repeat itself has noise, which lines cannot follow: what they met further out is then only said.
    """
    if not wrong:
        return found
    fact = f"{wrong} of {rows} rows asked along a line contradict"
    if not repeats:
        word = f"{fact} the network: further out than random rows fall the box is something else"
        return found.noted(f"{word}. Give mean= and scale= to ask there")
    return replace(
        found,
        status=Status.NOT_RECOVERED,
        message=f"{found.network.m} units reproduce all random rows, but {fact} them: the box is something else there, "
        "or its answers depend on the other rows of a call. Give low= and high= to ask in a range alone, or "
        "queries='random'.",
    )
