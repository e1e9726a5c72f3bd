"""From evidence to a verdict: the one place where a status is decided.

Every rule looks at the facts and says what is wrong, if anything is; the first that speaks decides. If none does, the
network is exact, or recovered up to noise. What is added to the words afterwards (stopped early, hard in theory, not
all rows) is decided here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from relumine.papers.mondelli2019.regimes import Regime
from relumine.recovery.evidence import Answers, Evidence
from relumine.recovery.search import STRUCTURE
from relumine.results import Recovery, Status, counted

_SINGULAR = 1e14  # condition from which a Fisher matrix of doubles is singular: its inverse has two digits left
# Numbers beyond the parameters that a noise estimate needs: with 5, one in 100 is three times too small. And as many as
# there are parameters, and five for each parameter of one unit more: units that were searched for fit more of the noise
# than they count, and a unit that is missing passes for noise. 50 exact rows of (8,6) were called 2 units and noise of
# 0.12, and it was 0.52.
_SPARE, _ONE_MORE = 10, 5
_REPEATED = 3.0  # times the difference between answers to one question that may be left: three standard deviations
_PRESS = 2.0  # leave-one-out error over the claimed noise from which the claim is wrong
# Rows that carry what is left: fewer are not noise, which a third of all rows carry. Of few rows a share: among 20 to
# 47 rows with Gaussian noise the least of 71 was 0.096, with one outlier it is 1/n.
_CARRIED, _OF_FEW = 8.0, 1.0 / 12.0


@dataclass(frozen=True)
class Verdict:
    """A status, the reason in words, and what it proves and does not."""

    status: Status
    message: str
    proves: str = ""
    does_not_prove: str = ""


Rule = Callable[[Evidence], tuple[Status, str] | None]


def judge(e: Evidence) -> Verdict:
    """Weigh the evidence.

    Examples
    --------
    >>> e = Evidence(units=2, dim=3, outputs=1, exact=False, rows=9, numbers=9, distinct=9, parameters=12, affine=4,
    ...              one_more=4, noise=0.1)
    >>> judge(e).status.value, judge(e).message
    ('under-determined', '9 numbers cannot determine 12 parameters.')
    """
    status, message = _decided(e)
    if e.interrupted and status is not Status.EXACT:
        status, message = Status.INTERRUPTED, f"Stopped early. {message}"
    if e.looked is not None:
        message = f"{message} ({looked_in_words(e)}.)"
    if not status.ok:
        status, message = explained(status, message, e.theory, e.timed_out)
    does_not = _DOES_NOT.get(status, "") if e.asked is None else "anything (there are more parameters than numbers)"
    return Verdict(status, message, _PROVES.get(status, ""), does_not)


def _decided(e: Evidence) -> tuple[Status, str]:
    for rule in _OF_EXACT if e.exact else _OF_NOISY:
        if (found := rule(e)) is not None:
            return found
    if e.rounded:
        return Status.NOISY, (
            f"{counted(e.units, 'unit')}; what is left has standard deviation {e.noise:.3g} on the scale of y, no more "
            "than its rounding: with more digits of y the parameters would be known better."
        )
    if not e.exact:
        return Status.NOISY, (
            f"{counted(e.units, 'unit')}; what is left looks like noise of standard deviation {e.noise:.3g}, on the "
            "scale of y."
        )
    error, rows = e.checked
    units = counted(e.units, "unit")
    return Status.EXACT, f"{units}; error {error:.1e} of the spread of y on {rows} rows never used in the fit."


# -- before any search --------------------------------------------------------------------------------------------


def _never_enough(e: Evidence) -> tuple[Status, str] | None:
    if e.asked is None:
        return None
    width, affine = 1 if e.width is None else e.width, f"the {e.affine} of an affine part"
    return Status.UNDERDETERMINED, (
        f"{counted(e.numbers, 'number')} (those of the rows used in the fit) cannot determine the "
        f"{e.asked - e.affine} parameters of {counted(width, 'unit')} and {affine}, so no unit was looked for: what is "
        "returned is the affine fit."
    )


# -- every row used is reproduced to rounding error: is this *the* network? ----------------------------------------


def _too_few_rows(e: Evidence) -> tuple[Status, str] | None:
    if not e.units or e.distinct > e.parameters:
        return None
    different = e.distinct * e.rows // max(e.numbers, 1)
    return Status.UNDERDETERMINED, f"{different} different rows cannot determine {e.parameters} parameters."


def _not_on_rows_aside(e: Evidence) -> tuple[Status, str] | None:
    if e.held is None or e.held.rounding:
        return None
    return Status.UNDERDETERMINED, f"The fit is exact on {e.rows} rows but not on those set aside."


def _few_behind_a_kink(e: Evidence) -> tuple[Status, str] | None:
    if not e.blind or e.condition < _SINGULAR:  # a condition that is not known does not help
        return None
    return Status.AMBIGUOUS, f"Every row is reproduced, but behind the kink of unit {e.blind[0]} lie too few rows."


def _singular(e: Evidence) -> tuple[Status, str] | None:
    if not e.condition >= _SINGULAR:
        return None
    fact = "Every row is reproduced" if e.exact else "What is left looks like noise"
    return Status.AMBIGUOUS, f"{fact}, but the fit is singular: some parameters can change unnoticed."


def _lattice(e: Evidence) -> tuple[Status, str] | None:
    if not (e.units and e.discrete):
        return None
    return (
        Status.AMBIGUOUS,
        "Every row is reproduced, but each input takes only a few values: kinks between them do not show.",
    )


def _unconfirmed(e: Evidence) -> tuple[Status, str] | None:
    if e.confirmations is None or not e.confirmations.alone:
        return None
    return Status.AMBIGUOUS, (
        f"{'Every row is reproduced' if e.exact else 'What is left looks like noise'}, but "
        f"{_listed('row', e.confirmations.alone)} (counted from 0) would be fitted whatever the value, and no "
        f"other row confirms {_listed('unit', e.confirmations.units) or 'the network'}."
    )


def _listed(noun: str, numbers: tuple[int, ...], most: int = 5) -> str:
    """Unit 3; units 1, 2 and 5."""
    if len(numbers) <= 1:
        return f"{noun} {numbers[0]}" if numbers else ""
    rest = len(numbers) - most
    shown = [str(number) for number in numbers[:most]] + ([f"{rest} others"] if rest > 0 else [])
    return f"{noun}s {', '.join(shown[:-1])} and {shown[-1]}"


def _other_rows_off(e: Evidence) -> tuple[Status, str] | None:
    if e.all_rows is None or not e.all_rows.off:
        return None
    return Status.NOT_RECOVERED, (
        f"The network is exact on the {e.all_rows.few} rows it was found from, but not on {e.all_rows.off} of the "
        f"other {e.all_rows.rows}: something happens there that those rows do not show."
    )


# -- something is left: is it noise, and is this the best network? -------------------------------------------------


def _too_few_numbers(e: Evidence) -> tuple[Status, str] | None:
    if e.parameters >= e.numbers:
        return Status.UNDERDETERMINED, f"{e.numbers} numbers cannot determine {e.parameters} parameters."
    spare = e.numbers - e.parameters
    if e.units and spare < (_SPARE if e.rounded else max(_SPARE, e.parameters)):  # rounding is of known size
        return Status.UNDERDETERMINED, (
            f"{e.parameters} parameters leave only {spare} of {e.numbers} numbers to show the noise."
        )
    if spare < _ONE_MORE * e.one_more and not (e.units and e.rounded):
        which = "another" if e.units else "a"
        return Status.UNDERDETERMINED, f"{e.numbers} numbers are too few to tell {which} hidden unit from noise."
    return None


def _a_series(e: Evidence) -> tuple[Status, str] | None:
    if e.independent - e.parameters >= max(_SPARE, e.parameters) or e.rounded:
        return None
    return Status.UNDERDETERMINED, (
        f"In this order the rows are worth about {e.independent * e.rows / e.numbers:.2g} independent ones: too few to "
        f"tell {e.parameters} parameters from noise that changes slowly, too."
    )


def _rival(e: Evidence) -> tuple[Status, str] | None:
    if e.rival is None or e.rounded:  # the simplest network within rounding wins
        return None
    return (
        Status.NOT_RECOVERED,
        f"A network of {e.rival} units explains significantly more than this one of {e.units}.",
    )


def _chance(e: Evidence) -> tuple[Status, str] | None:
    if not e.units or e.gain > 0.0:
        return None
    return (
        Status.NOT_RECOVERED,
        "The hidden units explain no more than chance would: the data look like an affine function and noise.",
    )


def _structure(e: Evidence) -> tuple[Status, str] | None:
    if e.score < STRUCTURE or e.rounded:  # rounding is not at random, and shows
        return None
    return Status.NOT_RECOVERED, (
        f"What is left is not noise: its correlation with another unit is {e.score:.1f} standard errors, where noise "
        f"stays below {STRUCTURE:g}."
    )


def _off_alike(e: Evidence) -> tuple[Status, str] | None:
    if e.alike < STRUCTURE or e.rounded:
        return None
    where = f"with nearly the same {e.along}" if e.along else "next to each other"
    return Status.NOT_RECOVERED, (
        f"What is left is not noise: rows {where} are off by similar amounts ({e.alike:.1f} standard errors, where "
        f"independent noise stays below {STRUCTURE:g})."
    )


def _does_not_generalise(e: Evidence) -> tuple[Status, str] | None:
    if e.held is None or e.held.excess <= e.held.limit:
        return None
    return (
        Status.NOT_RECOVERED,
        "The error on rows set aside is larger than the fit's own: it does not generalise.",
    )


def _left_out(e: Evidence) -> tuple[Status, str] | None:
    if e.confirmations is None or not e.confirmations.press > _PRESS:
        return None
    return Status.UNDERDETERMINED, (
        f"Each row, left out in turn, is missed by {e.confirmations.press:.2g} times the noise claimed: there are "
        "too few rows for this many parameters."
    )


def _on_a_few_rows(e: Evidence) -> tuple[Status, str] | None:
    least = _CARRIED if e.rows >= 6 * _CARRIED else _OF_FEW * e.rows
    if e.confirmations is None or e.confirmations.carried >= least:
        return None
    return Status.NOT_RECOVERED, (
        f"About {e.confirmations.carried:.0f} of {e.rows} rows carry nearly all of what is left: outliers, or "
        "something that only those rows show."
    )


def _alone(e: Evidence) -> tuple[Status, str] | None:
    if not e.units or e.agreeing >= 2:
        return None
    return Status.NOT_RECOVERED, "No two starts agree on a network, so none can be trusted."


def _other_rows_noisier(e: Evidence) -> tuple[Status, str] | None:
    if e.all_rows is None or not e.all_rows.noisier:
        return None
    return Status.NOT_RECOVERED, (
        f"What is left has standard deviation {e.all_rows.noise:.3g} on all rows but {e.all_rows.noise_of_few:.3g} on "
        f"the {e.all_rows.few} random ones the network was found from: some rows do not belong to it."
    )


_OF_EXACT: tuple[Rule, ...] = (
    _never_enough,
    _too_few_rows,
    _not_on_rows_aside,
    _few_behind_a_kink,
    _singular,
    _lattice,
    _unconfirmed,
    _other_rows_off,
)
_OF_NOISY: tuple[Rule, ...] = (
    _never_enough,
    _too_few_numbers,
    _a_series,
    _rival,
    _chance,
    _structure,
    _does_not_generalise,
    _left_out,
    _singular,
    _unconfirmed,
    _alone,
    _other_rows_noisier,
    _on_a_few_rows,
    _off_alike,
)


# -- what is added ------------------------------------------------------------------------------------------------


def explained(status: Status, message: str, theory: Regime | None, timed_out: bool) -> tuple[Status, str]:
    """A failure with the theorem behind it, where there is one.

    Where weights are believed to be out of reach, a fit of the function alone has not recovered them, and neither has a
    search that ran out of time: more of it is not expected to help.
    """
    if theory is None or theory.verdict not in ("hard", "not determined"):
        return status, message
    final = status is Status.AMBIGUOUS or (status is Status.INTERRUPTED and timed_out)
    status = Status.NOT_RECOVERED if theory.verdict == "hard" and final else status
    return status, f"{message} {theory.reason}"


def looked_in_words(e: Evidence) -> str:
    """How many of all rows were looked at, and why not more; empty if all were."""
    if e.looked is None:
        return ""
    if e.looked.memory:
        return f"Searched among {e.looked.rows} of {e.looked.of} rows, as many as memory= allows"
    return f"Only {e.looked.rows} of {e.looked.of} rows were looked at"


def with_answers(found: Recovery, answers: Answers) -> Recovery:
    """The recovery from the answers of a black box, with what those show beside the rows.

    A box that repeats itself has no noise: what looks like noise is its rounding, or something that was not found.
    """
    error, status, message = found.certificate.residual, found.status, found.message
    known = answers.repeated > 0.0 and error <= _REPEATED * answers.repeated
    if status is not Status.EXACT and answers.rounded and not answers.repeated:
        status, message = (
            Status.NOISY,
            (
                f"{counted(found.network.m, 'unit')}; the error of {error:.1e} of the spread of y that is left is the "
                "rounding of answers in single precision, and the parameters are known no better than that."
            ),
        )
    elif status is Status.NOISY and not known and not answers.rounded:
        status, message = (
            Status.NOT_RECOVERED,
            (
                f"The error of {error:.1e} of the spread of y that is left looks like noise, but is more than the "
                f"answers to the same question differ. {answers.rows} rows were answered."
            ),
        )
    if answers.stalled and not status.ok:
        message = (
            f"{message} {answers.stalled} batches in a row predicted rows set aside no better than those before, so "
            f"no more was asked: {answers.asked} of {answers.budget} rows."
        )
    return replace(found, status=status, message=message)


_PROVES = {
    Status.EXACT: "this network reproduces rows it never saw to rounding error, so on this input distribution it is "
    "the function; for ReLU units that are not parallel the parameters are then the network's, up to permutation, "
    "scale and flips (for other activations this is expected, not proved)",
    Status.NOISY: "the residual shows no structure against 256 random hidden units, nor between rows next to each "
    "other, and rows set aside are predicted as well as the noise allows; several starts agree",
}
_DOES_NOT = {
    Status.EXACT: "that no unit hides where no sample fell (kinks outside the data), nor that a wider network with the "
    "same values on these inputs does not exist",
    Status.NOISY: "that units weaker than the noise do not exist",
}
