"""Boxes that turn bad half-way: a clear end within the limit, never called exact, and every answer is in the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import relumine as rl
from relumine.extraction import BlackBoxFailed, Queries, extract, open_box
from relumine.extraction.queries import Unanswered
from relumine.results import InvalidInput, Status

D, GOOD = 7, 150  # inputs; rows answered before it turns bad
NET, OTHER = rl.planted.network(D, 10, rng=0), rl.planted.network(D, 10, rng=1)


class Turning:
    """Answers as NET for the first rows, then otherwise; counts the rows that it answered as numbers."""

    def __init__(self, then: Callable[[np.ndarray], object]) -> None:
        self.then, self.rows, self.calls = then, 0, 0

    def __call__(self, X: np.ndarray) -> object:
        self.calls += 1
        if self.rows >= GOOD:
            return self.then(X)
        self.rows += len(X)
        return NET(X)


def hangs(X: np.ndarray) -> np.ndarray:
    time.sleep(3600.0)
    return NET(X)


BAD = {
    "wrong shape": (lambda X: np.zeros(len(X) + 1), InvalidInput),
    "NaN": (lambda X: np.full(len(X), np.nan), BlackBoxFailed),
    "strings": (lambda X: ["no"] * len(X), BlackBoxFailed),
    "an exception": (lambda X: 1 / 0, BlackBoxFailed),
    "hangs": (hangs, Status.INTERRUPTED),
}


@pytest.mark.parametrize("name", BAD)
def test_it_turns_bad(name: str, tmp_path: Path) -> None:
    then, end = BAD[name]
    box, log, began = Turning(then), tmp_path / "log.npz", time.monotonic()
    options = {"dim": D, "rng": 0, "seconds": 4.0, "save": log, "batch": 64, "retries": 1, "pause": 0.0}
    if isinstance(end, Status):
        result = extract(box, on_failure="return", **options)
        assert result.status is end
        assert len(result.X) == box.rows
    else:
        with pytest.raises(end):
            extract(box, on_failure="return", **options)
    assert time.monotonic() - began < 6.0
    with np.load(log) as saved:
        assert len(saved["X"]) == len(saved["y"]) == box.rows
        np.testing.assert_allclose(saved["y"], NET(saved["X"]), rtol=1e-12)
    if name in ("NaN", "hangs"):  # it goes on where it stopped
        again = extract(NET, resume=True, **options)
        assert again.status is Status.EXACT


NOT = {
    "changes its mind": None,
    "not piecewise linear": lambda X: np.sin(X).sum(axis=1),
    "a step function": lambda X: np.floor(2.0 * X[:, 0]) + (X[:, 1] > 0.3),
}


@pytest.mark.parametrize("name", NOT)
def test_it_is_no_network(name: str, tmp_path: Path) -> None:
    box, log, began = NOT[name] or Turning(OTHER), tmp_path / "log.npz", time.monotonic()
    result = extract(box, dim=D, rng=0, seconds=6.0, save=log, on_failure="return")
    assert not result.ok
    assert result.message
    assert time.monotonic() - began < 8.0
    with np.load(log) as saved:
        np.testing.assert_array_equal(saved["X"], result.X)
        np.testing.assert_array_equal(saved["y"], result.y)


@pytest.mark.parametrize("bad", [lambda X: np.zeros((len(X), 3)), lambda X: np.zeros(len(X) + 1)])
def test_a_first_answer_of_another_shape_decides_nothing(bad) -> None:
    answers = iter([bad])
    result = extract(lambda X: next(answers, NET)(X), dim=D, rng=0, pause=0.0)
    assert result.status is Status.EXACT
    assert result.network.q is None
    assert len(result.y) == len(result.X)


def test_a_number_of_outputs_that_changes_with_the_rows_is_an_error() -> None:
    def box(X: np.ndarray) -> np.ndarray:
        return np.zeros((len(X), 3)) if len(X) % 2 else NET(X)

    with pytest.raises(InvalidInput, match="outputs came before, and now"):
        extract(box, dim=D, rng=0, pause=0.0)


def test_one_call_in_ten_fails(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def box(X: np.ndarray) -> np.ndarray:
        if rng.uniform() < 0.1:
            raise ConnectionError("busy")
        return NET(X)

    result = extract(box, dim=D, rng=0, batch=16, pause=0.0, save=tmp_path / "log.npz")
    assert result.status is Status.EXACT
    assert result.retried > 0
    assert rl.metrics.parameter_error(NET, result.network) < 1e-9


def test_rows_that_are_no_numbers_are_never_asked() -> None:
    """Where answers have no digits a row may come out as NaN; the box must not see it."""
    asked: list[np.ndarray] = []
    log = Queries(open_box(lambda X: asked.append(X) or NET(X)), D)
    with pytest.raises(Unanswered, match="no numbers"):
        log.answers(np.array([[np.nan] * D, [0.0] * D]))
    assert not asked
    assert len(log.answers(np.zeros((1, D)))) == len(asked) == 1


@pytest.mark.parametrize("beyond", [0.0, 1.5])
def test_a_box_that_answers_on_one_side_only_is_asked_at_random(beyond: float) -> None:
    def box(X: np.ndarray) -> np.ndarray:
        return np.where(X[:, 0] > beyond, np.nan, np.abs(X[:, 1]))

    result = extract(box, dim=2, rng=0, retries=1, pause=0.0)
    assert result.status is Status.EXACT
    assert result.way == "random"
    assert any("does not answer everywhere" in note for note in result.certificate.notes)


def test_a_box_that_answers_otherwise_when_asked_again_is_not_believed() -> None:
    """Every first answer is that of a network, so fresh rows agree; only the same rows again show it."""
    asked: set[bytes] = set()

    def fickle(X: np.ndarray) -> np.ndarray:
        again = np.array([row.tobytes() in asked for row in X], dtype=float)
        asked.update(row.tobytes() for row in X)
        return NET(X) + 0.1 * again

    found = extract(fickle, dim=D, rng=0, on_failure="return")
    assert found.status is Status.NOT_RECOVERED
    assert "does not repeat itself" in found.message
