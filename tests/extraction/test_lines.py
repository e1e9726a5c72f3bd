"""Kinks of functions of one variable, known exactly: however close, weak or far they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relumine.extraction.lines import kinks
from relumine.extraction.pieces import Crossings, Line, Noise, Piece

LINE = Line(np.zeros(1), np.ones(1), (-1e4, 1e4), 1.0)


def search(f, **options):
    """The kinks of f(t) on [−10⁴, 10⁴], the points asked, and the number of calls."""
    asked: list[np.ndarray] = []

    def ask(X: np.ndarray) -> np.ndarray:
        asked.append(X[:, 0])
        return np.asarray(f(X[:, 0]), dtype=float).reshape(len(X), -1)

    (found,) = kinks(ask, [LINE], **options)
    return found, np.concatenate(asked), len(asked)


def ramp(t: np.ndarray, at: float) -> np.ndarray:
    return np.maximum(t - at, 0.0)


@pytest.mark.parametrize(
    ("f", "at", "jumps"),
    [
        (lambda t: 3.0 * t + 2.0, [], []),
        (lambda t: 0.0 * t, [], []),
        (np.abs, [0.0], [2.0]),
        (lambda t: np.maximum(0.0, 1.0 - np.abs(t - 0.3)), [-0.7, 0.3, 1.3], [1.0, -2.0, 1.0]),
        (
            lambda t: ramp(t, 1.0) - 2.0 * ramp(t, 1.000001) + ramp(t, 1.000003) + 0.1 * t,
            [1.0, 1.000001, 1.000003],
            [1, -2, 1],
        ),
        (lambda t: np.abs(t - 3000.0) + np.abs(t + 5000.0), [-5000.0, 3000.0], [2.0, 2.0]),
        (lambda t: np.abs(t - 2.0) + 1e-8 * np.abs(t - 0.5), [0.5, 2.0], [2e-8, 2.0]),
        (lambda t: ramp(t, 0.02087) * -1.5464 + ramp(t, 0.02776) * 21.58, [0.02087, 0.02776], [-1.5464, 21.58]),
        (lambda t: sum((-1) ** i * np.abs(t - i) for i in range(40)), list(range(40)), [2.0, -2.0] * 20),
    ],
)
def test_known_kinks(f, at, jumps) -> None:
    found, asked, _ = search(f)
    assert found.whole
    # rounding of the values, 1e-15, moves a kink by that over its jump
    atol = max(1e-8, 1e-15 / np.abs([np.inf, *jumps]).min())
    np.testing.assert_allclose(found.t, at, atol=atol, rtol=1e-9)
    np.testing.assert_allclose(found.jump[:, 0], jumps, atol=1e-9, rtol=1e-4)
    assert len(found.pieces) == len(at) + 1
    assert len(np.unique(asked)) > 0.95 * len(asked)  # on a regular grid a crossing may be asked before


def test_a_kink_that_one_output_does_not_have() -> None:
    found, _, _ = search(lambda t: np.stack([np.abs(t - 1.0), np.abs(t + 1.0)], axis=1))
    np.testing.assert_allclose(found.t, [-1.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(found.jump, [[0.0, 2.0], [2.0, 0.0]], atol=1e-10)


def test_queries_and_calls() -> None:
    """About 13 queries a kink, in rounds of one call."""
    rng = np.random.default_rng(0)
    at, jump = rng.standard_cauchy(100), rng.normal(size=100)
    found, asked, calls = search(lambda t: np.maximum(t[:, None] - at, 0.0) @ jump)
    assert len(found.t) == 100
    np.testing.assert_allclose(found.t, np.sort(at), rtol=1e-7, atol=1e-7)
    assert len(asked) < 1800
    assert calls < 80


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_any_network_of_one_input(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    at, jump = rng.standard_cauchy(m), rng.choice([-1.0, 1.0], m) * rng.uniform(0.1, 2.0, m)
    order = np.argsort(at)
    if m > 1 and np.diff(at[order]).min() < 1e-4:
        return
    found, _, _ = search(lambda t: np.maximum(t[:, None] - at, 0.0) @ jump)
    inside = np.abs(at[order]) < 5e3
    assert len(found.t) >= inside.sum()
    if not inside.any():  # all of them beyond the ends of the line
        return
    nearest = np.abs(found.t[:, None] - at[order][inside]).min(axis=0)
    assert (nearest <= 1e-6 * (1.0 + np.abs(at[order][inside]))).all()


def test_the_noise_is_measured() -> None:
    rng = np.random.default_rng(0)
    found, _, _ = search(lambda t: np.abs(t - 1.0) + 1e-5 * rng.normal(size=len(t)))
    assert 1e-6 < found.noise.level[0] < 1e-4
    assert len(found.t) == 1
    assert abs(found.t[0] - 1.0) < 1e-3
    single, _, _ = search(lambda t: np.abs(t.astype(np.float32) - np.float32(1.0)))
    assert abs(single.t[0] - 1.0) < 1e-4


def test_what_bends_everywhere_or_jumps_is_known() -> None:
    assert search(np.sin)[0].noise.curved
    assert search(lambda t: np.maximum(t, 0.0) ** 2)[0].noise.curved
    found, asked, _ = search(lambda t: np.clip(np.floor(t), -5.0, 5.0), most=5000)
    assert not found.whole
    assert len(asked) < 6000


def test_a_rough_function_is_left_alone() -> None:
    rng = np.random.default_rng(1)
    _, asked, _ = search(lambda t: t + 0.1 * rng.normal(size=len(t)), rough=1e-6)
    assert len(asked) <= 60


def test_a_floor_hides_what_is_below_it() -> None:
    f = lambda t: np.abs(t - 2.0) + 1e-9 * np.abs(t - 0.5)  # noqa: E731
    assert len(search(f)[0].t) == 2
    assert len(search(f, floor=Noise(np.array([1e-7]), np.array([1e-7])))[0].t) == 1


def test_several_lines_in_one_call() -> None:
    calls = []
    W, b = np.random.default_rng(0).normal(size=(8, 3)), np.random.default_rng(1).normal(size=8)

    def ask(X: np.ndarray) -> np.ndarray:
        calls.append(len(X))
        return np.maximum(X @ W.T + b, 0.0).sum(axis=1, keepdims=True)

    rng = np.random.default_rng(2)
    lines = [Line(rng.normal(size=3), u / np.linalg.norm(u), (-1e4, 1e4), 2.0) for u in rng.normal(size=(5, 3))]
    for line, found in zip(lines, kinks(ask, lines)):
        true = np.sort(-(W @ line.origin + b) / (W @ line.direction))
        np.testing.assert_allclose(found.t, true, rtol=1e-8, atol=1e-8)
    assert len(calls) < 80


@pytest.mark.parametrize(("apart", "leaps"), [(1e-12, False), (1e-9, True)])
def test_a_steep_slope_is_no_jump(apart: float, leaps: bool) -> None:
    """Two pieces of slope 10 that end 1e-13 from each other: a difference of 1e-12 is the slope, one of 1e-9 a jump."""
    noise, line = Noise(np.full(1, 1e-17), np.zeros(1)), Line(np.zeros(1), np.ones(1), (-9.0, 9.0))
    t = np.array([0.0, 1.0])
    left = Piece(t, 10.0 * t[:, None], noise)
    right = Piece(t + 1.0 + 1e-13, 10.0 + apart + 10.0 * t[:, None], noise)
    found = Crossings(line, np.ones(1), np.zeros((1, 1)), (left, right), noise)
    assert found.leaps is leaps


def test_a_kink_in_a_wide_stub_far_out_is_no_curvature() -> None:
    """In single precision stubs far out reach over half of the line, and there are only two: one may have a kink."""

    def box(X: np.ndarray) -> np.ndarray:
        x = X[:, 0].astype(np.float32)
        return np.float32(0.3) + np.maximum(x, 0) * np.float32(0.7) - np.maximum(x - np.float32(2000.3), 0)

    (result,) = kinks(lambda X: box(X)[:, None].astype(float), [LINE], rough=2e-5)
    assert not result.noise.curved
    assert result.noise.relative < 1e-5
    assert np.abs(result.t).min() < 1e-5
