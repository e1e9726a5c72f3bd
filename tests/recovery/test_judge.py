"""The judge: facts in, one status out. No fit is needed to ask it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import relumine as rl
from relumine.papers.mondelli2019.regimes import Regime
from relumine.recovery.evidence import AllRows, Answers, Confirmations, Evidence, HeldOut, Looked
from relumine.recovery.judge import judge, with_answers
from relumine.recovery.large import _numbered
from relumine.results import Certificate, Recovery, Status

HELD = HeldOut(rows=20, error=1e-14, rounding=True, excess=1.0, limit=3.0)
EXACT = Evidence(
    units=4,
    dim=5,
    outputs=1,
    exact=True,
    rows=200,
    numbers=200,
    distinct=200,
    parameters=24,
    affine=6,
    one_more=6,
    noise=0.0,
    condition=100.0,
    gain=1e4,
    agreeing=1,
    width=4,
    held=HELD,
)
NOISY = replace(EXACT, exact=False, noise=0.1, gain=100.0, score=3.0, agreeing=2, held=replace(HELD, error=0.1))
HARD = Regime("hard", "Theorem 1 says so.", None)


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({}, Status.EXACT),
        ({"distinct": 24}, Status.UNDERDETERMINED),
        ({"held": replace(HELD, rounding=False)}, Status.UNDERDETERMINED),
        ({"blind": (2,)}, Status.EXACT),  # the Fisher matrix shows that it is determined all the same
        ({"blind": (2,), "condition": float("nan")}, Status.AMBIGUOUS),
        ({"condition": 1e15}, Status.AMBIGUOUS),
        ({"condition": float("nan")}, Status.EXACT),  # too large to know, and no unit is blind
        ({"discrete": True}, Status.AMBIGUOUS),
        ({"discrete": True, "units": 0}, Status.EXACT),
        ({"interrupted": True}, Status.EXACT),
        ({"all_rows": AllRows(10_000, 1e-14, 0, 200)}, Status.EXACT),
        ({"all_rows": AllRows(10_000, 1e-3, 3, 200)}, Status.NOT_RECOVERED),
        ({"confirmations": Confirmations(150)}, Status.EXACT),
        ({"confirmations": Confirmations(147, alone=(3, 7, 9), units=(1,))}, Status.AMBIGUOUS),
        ({"confirmations": Confirmations(150, press=9.0, carried=1.0)}, Status.EXACT),  # of rounding error
        ({"asked": 500}, Status.UNDERDETERMINED),
        ({"theory": HARD}, Status.EXACT),
        ({"theory": HARD, "condition": 1e15}, Status.NOT_RECOVERED),
        # noise is no argument against a residual that is rounding error
        ({"rival": 8, "score": 99.0, "agreeing": 0}, Status.EXACT),
    ],
)
def test_exact_evidence(facts: dict, status: Status) -> None:
    assert judge(replace(EXACT, **facts)).status is status


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({}, Status.NOISY),
        ({"parameters": 200}, Status.UNDERDETERMINED),
        ({"units": 0, "numbers": 30, "parameters": 6, "agreeing": 0}, Status.UNDERDETERMINED),
        ({"units": 0, "parameters": 6, "agreeing": 0, "gain": 0.0}, Status.NOISY),
        ({"parameters": 193}, Status.UNDERDETERMINED),
        ({"rival": 8}, Status.NOT_RECOVERED),
        ({"gain": 0.0}, Status.NOT_RECOVERED),
        ({"score": 5.0}, Status.NOT_RECOVERED),
        ({"score": float("inf")}, Status.NOT_RECOVERED),
        ({"alike": 5.0}, Status.NOT_RECOVERED),
        ({"alike": 4.9, "along": "input 2"}, Status.NOISY),
        ({"held": replace(HELD, excess=3.1)}, Status.NOT_RECOVERED),
        ({"agreeing": 1}, Status.NOT_RECOVERED),
        ({"interrupted": True}, Status.INTERRUPTED),
        ({"interrupted": True, "timed_out": True, "theory": HARD}, Status.NOT_RECOVERED),
        ({"interrupted": True, "theory": HARD}, Status.INTERRUPTED),
        ({"all_rows": AllRows(10_000, few=200, noise=0.1, noise_of_few=0.1)}, Status.NOISY),
        ({"all_rows": AllRows(10_000, few=200, noise=0.9, noise_of_few=0.1, noisier=True)}, Status.NOT_RECOVERED),
        ({"confirmations": Confirmations(150, press=1.2)}, Status.NOISY),
        ({"confirmations": Confirmations(9, press=4.0)}, Status.UNDERDETERMINED),
        ({"confirmations": Confirmations(147, alone=(3, 7, 9), units=(1,), press=1.2)}, Status.AMBIGUOUS),
        ({"confirmations": Confirmations(150, press=1.2, carried=3.0)}, Status.NOT_RECOVERED),
        ({"rows": 36, "confirmations": Confirmations(36, press=1.2, carried=2.9)}, Status.NOT_RECOVERED),
        ({"rows": 36, "confirmations": Confirmations(36, press=1.2, carried=3.1)}, Status.NOISY),
        ({"condition": float("inf")}, Status.AMBIGUOUS),
        ({"score": 7.0, "rival": 8, "rounding": 0.3}, Status.NOISY),  # no more than the rounding of y
        ({"score": 7.0, "rounding": 0.006}, Status.NOT_RECOVERED),
        ({"asked": 500}, Status.UNDERDETERMINED),
    ],
)
def test_noisy_evidence(facts: dict, status: Status) -> None:
    verdict = judge(replace(NOISY, **facts))
    assert verdict.status is status
    assert verdict.message
    assert bool(verdict.proves) is status.ok, "a failure proves nothing"


def test_every_verdict_says_why_in_its_own_numbers() -> None:
    """What is said of a check on all rows are that check's numbers, and what theory says comes at the end."""
    checked = judge(replace(EXACT, all_rows=AllRows(12_345, 2e-13, 0, 200)))
    assert "2.0e-13 of the spread of y on 12345 rows" in checked.message
    few = judge(replace(NOISY, rival=9, looked=Looked(200, 10_000, memory=True), theory=HARD))
    assert few.message.endswith("(Searched among 200 of 10000 rows, as many as memory= allows.) Theorem 1 says so.")
    assert "Only 200 of 10000 rows" in judge(replace(NOISY, interrupted=True, looked=Looked(200, 10_000))).message
    assert judge(replace(NOISY, asked=77)).does_not_prove.startswith("anything")


def test_the_rule_of_three() -> None:
    assert replace(EXACT, confirmations=Confirmations(300)).unseen == pytest.approx(0.01, rel=0.01)
    assert not replace(EXACT, confirmations=None).unseen <= 1.0
    few = replace(EXACT, confirmations=Confirmations(200 + HELD.rows), all_rows=AllRows(10_000, 1e-14, 0, 200))
    assert few.confirmed == 10_200, "rows set aside are among those the search never saw"


def test_what_nothing_confirms_is_named() -> None:
    alone = Confirmations(140, alone=(3, 7, 9), units=(1, 4))
    message = judge(replace(EXACT, confirmations=alone)).message
    assert "rows 3, 7 and 9 (counted from 0) would be fitted whatever the value" in message
    assert "units 1 and 4" in message
    many = judge(replace(EXACT, confirmations=Confirmations(140, alone=(3,), units=tuple(range(9))))).message
    assert "units 0, 1, 2, 3, 4 and 4 others" in many


def box(status: Status, error: float) -> Recovery:
    return Recovery(rl.planted.network(3, 2, rng=0), status, "as found.", Certificate(error, 20))


@pytest.mark.parametrize(
    ("status", "error", "answers", "expected"),
    [
        (Status.EXACT, 1e-14, Answers(0.0, False, 90), Status.EXACT),
        (Status.NOISY, 1e-7, Answers(0.0, True, 90), Status.NOISY),
        (Status.NOT_RECOVERED, 1e-7, Answers(0.0, True, 90), Status.NOISY),
        (Status.NOISY, 0.1, Answers(0.0, False, 90), Status.NOT_RECOVERED),  # the box repeats itself to the last bit
        (Status.NOISY, 0.1, Answers(0.05, False, 90), Status.NOISY),
        (Status.NOISY, 0.2, Answers(0.05, False, 90), Status.NOT_RECOVERED),
        (Status.NOT_RECOVERED, 0.2, Answers(0.05, False, 90, 3, 90, 1000), Status.NOT_RECOVERED),
    ],
)
def test_a_box_brings_evidence_of_its_own(status: Status, error: float, answers: Answers, expected: Status) -> None:
    found = with_answers(box(status, error), answers)
    assert found.status is expected
    assert ("90 of 1000 rows" in found.message) == bool(answers.stalled)


def test_rows_of_a_sample_are_named_by_their_numbers_among_all_rows() -> None:
    e = replace(EXACT, confirmations=Confirmations(140, alone=(1, 3), units=(1,)))
    named = _numbered(e, np.array([10, 25, 31, 47, 90])).confirmations
    assert named is not None
    assert (named.alone, named.rows) == ((25, 47), 140)
