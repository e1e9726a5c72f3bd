"""What must not be believed too soon, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.extraction.black_boxes import SECRET, WIDE, found

from relumine.results import InvalidInput, RecoveryFailed


def test_a_misfit_is_not_called_rounding() -> None:
    """8e-6 of a sine in single-precision answers is forty times their rounding."""
    box = lambda X: (SECRET(X) + 8e-6 * np.sin(3.0 * X[:, 0])).astype(np.float32)  # noqa: E731
    assert not found(box, width=3, budget=500, on_failure="return").ok


@pytest.mark.parametrize("width", [3, None])
def test_rounding_of_large_answers_is_known_as_such(width: int | None) -> None:
    result = found(lambda X: (SECRET(X) + 1000.0).astype(np.float32), width=width, budget=2000, queries="random")
    assert result.status.value == "noisy"
    assert result.network.m == 3
    assert "rounding" in result.message


@pytest.mark.parametrize("seed", range(3))
def test_a_unit_that_is_seldom_on_is_found(seed: int) -> None:
    result = found(lambda X: np.maximum(X[:, 0] - 2.3, 0.0), dim=4, rng=seed)
    assert (result.status.value, result.network.m) == ("exact", 1)
    result = found(lambda X: X[:, 1] + np.maximum(X[:, 0] - 2.3, 0.0), dim=4, width=1, rng=seed)
    assert (result.status.value, result.network.m) == ("exact", 1)


def test_no_error_on_few_rows_is_not_rounding() -> None:
    """The rows set aside are all zeros and so is the error on them, but the answers are in double precision."""
    result = found(lambda X: np.maximum(X[:, 0] - 2.3, 0.0), budget=392, on_failure="return")
    assert result.status.value != "noisy"


def test_an_affine_box_is_believed_after_many_rows() -> None:
    result = found(lambda X: X[:, 1] - 1.0, queries="random")
    assert (result.status.value, result.network.m) == ("exact", 0)
    assert result.queries > 2000
    assert np.abs(result.X).max() > 6.0
    assert found(lambda X: X[:, 1], budget=60, queries="random").queries == 60  # never beyond the budget
    result = found(lambda X: X[:, 1] - 1.0)
    assert (result.status.value, result.network.m) == ("exact", 0)
    assert np.abs(result.X).max() > 1000.0


def test_an_affine_box_that_does_not_answer_far_out() -> None:
    def box(X: np.ndarray) -> np.ndarray:
        if (np.abs(X) > 4.5).any():
            raise ValueError("out of range")
        return X[:, 1] - 1.0

    result = found(box, retries=0)
    assert (result.status.value, result.network.m) == ("exact", 0)


def test_a_guessed_width_leaves_nothing_absorbed() -> None:
    assert found(SECRET).units.absorbed == ()
    assert "2 of 5 units" in found(SECRET, width=5).units.absorbed[0]


def test_growing_ends_when_it_does_not_help() -> None:
    """A given width that is too small: the budget is not spent on it."""
    with pytest.raises(RecoveryFailed, match="3 batches in a row") as caught:
        found(WIDE, width=2, starts=2)
    assert caught.value.recovery.queries < 5000


def test_what_failed_with_many_units_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from relumine.extraction import random_rows as run

    widths, recover = [], run.recover
    monkeypatch.setattr(run, "_MANY", 8)
    monkeypatch.setattr(
        run, "recover", lambda X, y, width, **more: widths.append(width) or recover(X, y, width, **more)
    )
    result = found(lambda X: np.sin(X).sum(axis=1), dim=4, budget=190, on_failure="return", queries="random")
    assert result.status.value == "not recovered"
    assert result.queries == 190
    assert widths == [4, 8]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"seconds": 1e-9}, "seconds"),
        ({"seconds": -1}, "seconds must be"),
        ({"rng": -1}, "rng must be"),
        ({"rng": "x"}, "rng must be"),
        ({"save": "no/such/folder/q.npz"}, "no folder"),
    ],
)
def test_refused_before_the_box_is_asked(options, word: str) -> None:
    def never(X: np.ndarray) -> np.ndarray:
        raise AssertionError("the box was asked")

    with pytest.raises(InvalidInput, match=word):
        found(never, **options)


def test_complex_answers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="complex"):
        found(lambda X: SECRET(X) + 1j)


@pytest.mark.parametrize(
    ("X", "y", "word"),
    [
        (np.zeros((0, 5)), np.zeros(0), "no answers"),
        (np.zeros((2, 5)), np.zeros((2, 1, 1)), r"does not hold saved queries.*y \(2, 1, 1\)"),
    ],
)
def test_logs_that_are_no_logs(tmp_path: Path, X, y, word: str) -> None:
    np.savez(tmp_path / "q.npz", X=X, y=y)
    with pytest.raises(InvalidInput, match=word):
        found(SECRET, save=tmp_path / "q.npz", resume=True)
