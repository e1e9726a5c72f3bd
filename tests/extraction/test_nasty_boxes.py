"""Boxes that are none, or nearly none: whatever they do, no network is called certain that they contradict."""

from __future__ import annotations

import numpy as np
import pytest
from tests.extraction.black_boxes import SECRET, found

import relumine as rl
from relumine.extraction import extract
from relumine.extraction.boxes import open_box
from relumine.extraction.queries import Queries
from relumine.results import InvalidInput, Status


@pytest.mark.parametrize("answer", [np.ones(2), np.ones(1), 1.0, np.ones(8), np.ones((8, 3)), [[1.0] * 8]])
def test_one_answer_to_everything_is_no_function_of_rows(answer) -> None:
    """Eight rows are asked first: eight numbers are not yet one for each row."""
    with pytest.raises(InvalidInput, match=r"an answer of shape .*wrap it to answer"):
        found(lambda X: answer, retries=1)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_answers_whose_squares_are_no_numbers(size: float) -> None:
    with pytest.raises(InvalidInput, match="multiply the answers"):
        found(lambda X: size * SECRET(X))


JUMPS = {
    "labels": lambda X: (X[:, 0] > 0.2).astype(float),
    "labels that hardly vary": lambda X: (X[:, 0] > 3.5).astype(float),
    "a jump": lambda X: SECRET(X) + 0.5 * (X[:, 0] > 0.3),
    "a small jump": lambda X: SECRET(X) + 1e-6 * (X[:, 0] > 0.3),
}


@pytest.mark.parametrize("name", JUMPS)
def test_what_jumps_is_refused_soon(name: str) -> None:
    result = found(JUMPS[name], on_failure="return", seconds=60.0)
    assert result.status is Status.NOT_RECOVERED
    assert ("labels" in result.message) if name == "labels" else ("jump" in result.message)
    assert "layers" not in result.message
    assert result.queries < 1000


def counted_up():
    calls = 0

    def box(X: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += len(X)
        return SECRET(X) * (1.0 + 0.3 * np.sin(calls))

    return box


OTHER_ROWS = {
    "the first row is subtracted": lambda: lambda X: SECRET(X) - SECRET(X)[0],
    "even calls differ": lambda: lambda X: SECRET(X) * (1.0 + 1e-3 * (len(X) % 2)),
    "the mean is subtracted": lambda: lambda X: SECRET(X - X.mean(axis=0)),
    "a counter": counted_up,
}


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_answers_that_depend_on_the_call_are_not_called_exact(name: str) -> None:
    result = found(OTHER_ROWS[name](), on_failure="return", seconds=2.0)
    assert result.status is not Status.EXACT
    assert not result.ok or result.certificate.noise > 0.0


def test_rows_on_a_line_count_against_what_random_rows_show() -> None:
    """A parabola further out than random rows fall: lines see it, and what they saw is not forgotten."""
    box = lambda X: SECRET(X) + np.maximum(np.abs(X[:, 0]) - 6.0, 0.0) ** 2  # noqa: E731
    result = found(box, on_failure="return", seconds=30.0)
    assert result.status is Status.NOT_RECOVERED
    assert "along a line contradict" in result.message


@pytest.mark.parametrize(
    ("box", "units"),
    [
        (lambda X: SECRET(X).round(2), 3),
        (lambda X: 1e12 + SECRET(X), 3),
        (lambda X: 1.0 + 1e-12 * SECRET(X), 3),
        (lambda X: 1e-12 * SECRET(X), 3),
        (lambda X: SECRET(X) + 1e-9 * np.maximum(X[:, 2], 0.0), 4),
    ],
    ids=["two decimals", "an offset", "small beside an offset", "small", "a weak unit"],
)
def test_few_digits_are_noise_of_known_size(box, units: int) -> None:
    result = found(box, seconds=60.0)
    assert result.ok
    assert result.network.m == units
    X = np.random.default_rng(1).normal(size=(500, 5))
    y = box(X)
    assert np.sqrt(np.mean((result.network(X) - y) ** 2)) < max(2.0 * result.certificate.noise, 1e-9 * y.std())


def test_rows_without_an_answer_are_left_out_however_many() -> None:
    """A third of all rows, beside others that are answered: it is those rows, not the box."""
    result = found(lambda X: np.where(X[:, 0] > 0.4, np.nan, SECRET(X)), retries=1)
    assert result.status is Status.EXACT
    assert result.dropped > 20
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-8


def test_units_twice_and_parallel_ones() -> None:
    W, b, a = SECRET.W, SECRET.b, SECRET.a
    twice = rl.Network(np.vstack([W, W[:1]]), np.append(b, b[0]), np.append(a, 0.5))
    parallel = rl.Network(np.vstack([W, W[:1], -W[1:2]]), [*b, b[0] + 0.7, -b[1]], [*a, 0.5, -0.8])
    X = np.random.default_rng(0).normal(size=(100, 5))
    for truth, units in ((twice, 3), (parallel, 4)):
        result = found(truth)
        assert (result.status, result.network.m) == (Status.EXACT, units)
        np.testing.assert_allclose(result.network(X), truth(X), atol=1e-9)


CORNERS = {
    "clipped far out": (4, 3, lambda X: np.clip(rl.planted.network(4, 6, rng=3)(X), -600.0, 600.0)),
    "a corner": (2, 2, lambda X: rl.planted.network(2, 4, rng=2)(X) + np.maximum(X.min(axis=1) - 1.9, 0.0)),
}


@pytest.mark.parametrize("name", CORNERS)
def test_what_lies_in_a_corner_is_found_or_missed_without_a_fault(name: str) -> None:
    """All units of the last layer may be accounted for, and a ray may lead nowhere: then there is nothing to ask."""
    dim, seed, box = CORNERS[name]
    result = extract(box, dim=dim, rng=seed, seconds=20.0, on_failure="return")
    X = np.random.default_rng(1).normal(size=(2000, dim))
    off = np.abs(result.network(X) - box(X)) > 1e-6
    assert not result.ok or off.mean() <= result.certificate.unseen


def with_a_unit_far_out(X: np.ndarray) -> np.ndarray:
    """Behind it lie 3 inputs in a million."""
    return SECRET(X) + 2.0 * np.maximum(X[:, 0] - 4.5, 0.0)


def test_what_lines_met_far_out_counts_against_rounded_answers() -> None:
    """An offset leaves too few digits for lines, and no random row lies behind the last kink."""
    result = found(lambda X: (with_a_unit_far_out(X) + 1e5).astype(np.float32), on_failure="return", seconds=60.0)
    assert (result.way, result.status) == ("random", Status.NOT_RECOVERED)
    assert "along a line contradict" in result.message


@pytest.mark.parametrize(("box", "said"), [(SECRET, False), (with_a_unit_far_out, True)])
def test_what_lines_met_far_out_is_said_beside_noise(box, said: bool) -> None:
    rng = np.random.default_rng(1)
    result = found(lambda X: box(X) + 1e-3 * rng.normal(size=len(X)), seconds=60.0)
    assert (result.way, result.status) == ("random", Status.NOISY)
    assert any("along a line contradict" in note for note in result.certificate.notes) == said


def test_large_terms_that_cancel_far_out_are_rounding_and_no_other_answer() -> None:
    """Asked beside other rows a box adds in another order; 6000 from the centre the last digits are 0.0002 apart."""
    calls = 0

    def box(X: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return X[:, 0] + (-1.0) ** calls * 3e-8 * np.linalg.norm(X, axis=1)

    X = np.random.default_rng(0).normal(size=(8, 5))
    X[3, 1:] *= 6000.0
    log = Queries(open_box(box), 5)
    log.ask(X)
    assert 0.0 < log.apart(8) < 1e-6
