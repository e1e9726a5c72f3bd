"""What a result says of itself: intervals, headline, advice, evidence."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import relumine as rl
from relumine import Network, Recovery, RecoveryFailed, Status
from relumine.results import Cause, Certificate, Diagnosis, InvalidInput, Labels, Origin, Stage, StandardErrors

NET = Network([[1.0, 0.0], [0.0, 2.0]], [0.5, -1.0], [1.0, 3.0], c=2.0)
ERRORS = StandardErrors(*(np.full_like(part, 0.1) for part in (NET.W, NET.b, NET.a, NET.v, NET.c)))
AFFINE = Network(np.zeros((0, 2)), np.zeros(0), np.zeros(0), v=[1.0, 0.0], c=2.0)


def result(status: Status = Status.NOISY, net: Network = NET, **changes) -> Recovery:
    return Recovery(net, status, "a message.", Certificate(residual=0.5, rows=20, noise=1.0), **changes)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_a_normal_variable_lies_in_its_interval_as_often_as_the_level_says(level: float) -> None:
    low, high = result(standard_errors=ERRORS).confidence_interval(level)
    for key in ("W", "b", "a", "v", "c"):
        centre = getattr(NET, key)
        np.testing.assert_allclose(0.5 * (getattr(low, key) + getattr(high, key)), centre)
        inside = norm.cdf(getattr(high, key), centre, 0.1) - norm.cdf(getattr(low, key), centre, 0.1)
        np.testing.assert_allclose(inside, level)


def test_no_interval_without_standard_errors_or_with_an_impossible_level() -> None:
    with pytest.raises(InvalidInput, match="standard errors"):
        result().confidence_interval()
    for level in (0.0, 1.0, 95.0):
        with pytest.raises(InvalidInput, match="level"):
            result(standard_errors=ERRORS).confidence_interval(level)


def test_the_share_of_the_variance_that_a_linear_fit_explains() -> None:
    # by the noise where the spread of y is known: 1 − 1²/2²; else by the rows kept out: 1 − 0.5²
    assert "explains 75 % of the variance of y" in result(net=AFFINE).headline
    known = result(net=AFFINE, origin=Origin(target="power", target_spread=4.0))
    assert "explains 93.8 % of the variance of power" in known.headline
    unknown = replace(known, certificate=Certificate(float("nan"), 0), origin=Origin())
    assert unknown.headline == "No hidden unit found: a linear fit."


@pytest.mark.parametrize("status", Status)
def test_a_failure_speaks_of_its_cause_and_a_success_does_not(status: Status) -> None:
    cause = Diagnosis(Cause.TOO_NARROW, "in words", "ask for more units")
    found = result(status, diagnosis=cause)
    assert status.title
    assert status.advice
    assert (found.advice == cause.advice) is not status.ok
    assert (cause.cause.value in found.title) is not status.ok
    assert found.title.startswith(status.title) is (status.ok or status is Status.INTERRUPTED)


def test_the_certificate_tells_what_it_knows() -> None:
    told = Certificate(0.25, 20, noise=0.5, condition=30.0, confirmed=300, unseen=0.01, proves="this", notes=("that",))
    for words in (
        "0.25 of the spread of y, on 20 rows",
        "confirmed by 300 rows",
        "at most 1 %",
        "0.5",
        "30",
        "note: that",
    ):
        assert words in str(told)
    assert Certificate(float("nan"), 0).evidence == ""
    assert str(Certificate(float("nan"), 0)) == ""
    assert "at most" not in Certificate(0.1, 1, confirmed=1, unseen=1.0).evidence


def test_times_and_labels() -> None:
    found = result(stages=(Stage("fit", 1.5), Stage("signs", 0.25)), origin=Origin(features=("u", "v")))
    assert found.seconds == 1.75
    assert found.labels == Labels(("u", "v"), "noisy", "")
    assert str(found).count("advice:") == 1
    assert "advice:" not in str(replace(found, status=Status.EXACT))


def test_a_failure_that_is_raised_carries_the_result_also_as_a_copy() -> None:
    error = copy.deepcopy(RecoveryFailed(result(Status.NOT_RECOVERED)))  # by __reduce__, as a pickle
    assert error.recovery.status is Status.NOT_RECOVERED
    assert "a message." in str(error)


def test_a_dataframe_is_predicted_by_the_names_of_its_columns() -> None:
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(80, 2))
    frame = pandas.DataFrame({"u": X[:, 0], "v": X[:, 1], "y": np.abs(X[:, 0]) + 2.0 * X[:, 1]})
    found = rl.recover(frame, target="y", rng=0)
    np.testing.assert_allclose(found.predict(frame[["v", "u"]]), frame["y"], atol=1e-12)
    np.testing.assert_allclose(found.predict(X), frame["y"], atol=1e-12)
    with pytest.raises(InvalidInput, match=r"X has no column 'v'; it needs: u, v"):
        found.predict(frame[["u"]])
    with pytest.raises(InvalidInput, match="not the name of a file"):
        found.predict("new.csv")
    with pytest.raises(InvalidInput, match=r"name the target= column .* u, v, y"):
        rl.recover(frame)
