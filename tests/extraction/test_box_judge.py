"""The judge of chosen queries: facts in, a status out, and rows confirm only what stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relumine import extract, planted
from relumine.extraction.judge import BoxEvidence, certificate, judge
from relumine.results import Status

GOOD = BoxEvidence(found="3 units", fresh=300, residual=1e-15)


@pytest.mark.parametrize(
    ("facts", "status", "word"),
    [
        ({}, Status.EXACT, "300 fresh random rows"),
        ({"digits": 7.0}, Status.NOISY, "is their rounding (they have about 7 digits)"),
        ({"digits": 7.0, "varies": True}, Status.NOISY, "is noise: asked again"),
        ({"wrong": 2}, Status.NOT_RECOVERED, "2 of 300 fresh random rows contradict"),
        ({"fresh": 0}, Status.NOT_RECOVERED, "contradict"),
        ({"left": "something is left"}, Status.NOT_RECOVERED, "but something is left"),
        ({"repeats": False}, Status.NOT_RECOVERED, "does not repeat itself"),
        ({"other": "depth=2 was asked for."}, Status.NOT_RECOVERED, "depth=2"),
        ({"other": "depth=2 was asked for.", "wrong": 1}, Status.NOT_RECOVERED, "1 of 300 fresh"),
        ({"other": "depth=2 was asked for.", "repeats": False}, Status.NOT_RECOVERED, "does not repeat itself"),
        ({"ended": "the time is over"}, Status.INTERRUPTED, "the time is over"),
        ({"kind": "It is a tree."}, Status.NOT_RECOVERED, "It is a tree."),
        (
            {"reason": "no unit", "layers": (4,)},
            Status.NOT_RECOVERED,
            "1 layer is certain, as far as the rows asked show (4 units). The search",
        ),
    ],
)
def test_every_fact_has_its_verdict(facts: dict[str, object], status: Status, word: str) -> None:
    e = replace(GOOD, **facts)  # type: ignore[arg-type]
    found, message = judge(e)
    assert found is status
    assert word in message
    shown = certificate(e)
    confirmed = 300 if status.ok or [*facts] == ["other"] else 0
    assert shown.confirmed == confirmed
    assert bool(shown.proves) == bool(confirmed)
    assert (shown.unseen < 0.01) == bool(confirmed)


def test_nothing_confirms_a_box_that_does_not_repeat_itself() -> None:
    truth = planted.network(4, 3, rng=0)
    before: set[bytes] = set()

    def box(X: np.ndarray) -> np.ndarray:
        again = np.array([row.tobytes() in before for row in X])
        before.update(row.tobytes() for row in X)
        return truth(X) + 1.0 * again

    found = extract(box, dim=4, rng=0, seconds=20.0, on_failure="return")
    assert not found.ok
    assert found.certificate.confirmed == 0
    assert found.certificate.proves == ""


def test_tiny_noise_is_not_called_rounding() -> None:
    net, rng = planted.network(4, 3, rng=0), np.random.default_rng(0)
    result = extract(lambda X: net(X) + 1e-7 * rng.normal(size=len(X)), dim=4, rng=0)
    assert (result.status, result.network.m) == (Status.NOISY, 3)
    assert "noise: asked again" in result.message
