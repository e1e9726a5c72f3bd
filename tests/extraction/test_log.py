"""The log of a box: rows and answers come back in their order, whatever the blocks are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relumine.extraction import log as module
from relumine.extraction import queries
from relumine.extraction.boxes import open_box
from relumine.extraction.log import Log
from relumine.extraction.queries import Manner, Queries


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 3), st.booleans(), st.sampled_from([100, 1 << 30]))
def test_rows_and_answers_in_their_order(sizes: list[int], q: int, early: bool, held: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 8 * 2 * 4)  # four rows of two inputs
        patch.setattr(module, "_HELD", held)
        log, rng = Log(), np.random.default_rng(len(sizes))
        X, Y = np.empty((0, 2)), np.empty((0, q))
        for size in sizes:
            rows, answers = rng.normal(size=(size, 2)), rng.normal(size=(size, q))
            X, Y = np.vstack([X, rows]), np.vstack([Y, answers])
            log.append(rows, answers)
            if early and len(log):
                log.whole()
        assert len(log) == len(X)
        if len(X):
            at = rng.integers(0, len(X), 5)
            np.testing.assert_array_equal(log.rows(at), X[at])
            np.testing.assert_array_equal(log.answers(at), Y[at])
            for whole, true in zip(log.whole(), (X, Y)):
                np.testing.assert_array_equal(whole, true)


def mapped(part: np.ndarray) -> bool:
    """Whether an array is in a file."""
    while part.base is not None and not isinstance(part, np.memmap):
        part = part.base
    return isinstance(part, np.memmap)


@pytest.mark.parametrize("room", [True, False])
def test_a_long_log_is_in_a_file_if_there_is_room_for_one(monkeypatch: pytest.MonkeyPatch, room: bool) -> None:
    def full() -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(module, "_BLOCK", 8 * 2 * 4)
    monkeypatch.setattr(module, "_HELD", 8 * 2 * 8)  # two blocks
    if not room:
        monkeypatch.setattr(module.tempfile, "TemporaryFile", full)
    log, X = Log(), np.arange(40.0).reshape(20, 2)
    log.append(X, X[:, :1])
    assert [mapped(rows) for rows, _ in log._blocks] == [False, False, room, room, room]
    np.testing.assert_array_equal(log.rows(np.arange(20)), X)
    assert mapped(log.whole()[0]) == room
    np.testing.assert_array_equal(log.whole()[0], X)


def test_what_was_handed_out_stays_when_more_is_asked() -> None:
    log = Log()
    log.append(np.zeros((2, 3)), np.zeros((2, 1)))
    X, _ = log.whole()
    log.append(np.ones((5, 3)), np.ones((5, 1)))
    np.testing.assert_array_equal(X, np.zeros((2, 3)))


def test_what_was_asked_is_copied() -> None:
    log, X = Log(), np.zeros((2, 3))
    log.append(X, np.zeros((2, 1)))
    X[:] = 7.0
    np.testing.assert_array_equal(log.whole()[0], np.zeros((2, 3)))


def test_a_log_that_takes_long_to_write_is_written_less_often(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 103.0])  # before and after a write
    log = Queries(open_box(lambda X: X[:, 0]), 2, Manner(save=tmp_path / "log.npz"))
    log.ask(np.ones((3, 2)))
    with monkeypatch.context() as patch:
        patch.setattr(queries.time, "monotonic", lambda: next(clock))
        log.save()
    assert log._every == 60.0  # twenty times as long
