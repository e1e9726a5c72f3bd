"""Units of one line: steps that cross kinks are seen, whichever they cross."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import relumine as rl
from relumine.extraction.lines import kinks
from relumine.extraction.pieces import Line
from relumine.extraction.units import Precision, units_of_line


def along_first_axis(f, d: int) -> rl.Network:
    """The units that the line t·e₁ shows."""

    def ask(X: np.ndarray) -> np.ndarray:
        return np.asarray(f(X)).reshape(len(X), -1)

    line = Line(np.zeros(d), np.eye(d)[0], (-1e4, 1e4))
    (found,) = kinks(ask, [line])
    return units_of_line(ask, found, Precision())


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("d", [2, 3, 8, 30])
def test_a_step_across_both_kinks_of_its_piece(d: int, side: float, sign: float) -> None:
    """Its difference is that of two other units, which it does not cross: only a further row can tell."""
    W = np.full((2, d), 0.1)
    W[:, 0], W[:, 1] = 1.0, [-9.5 * side, 9.5 * side]
    truth = rl.Network(W, [0.5, -0.5], [1.0 * sign, 1.3 * sign])
    net = along_first_axis(truth, d)
    assert net.m == 2
    X = np.random.default_rng(0).normal(size=(200, d))
    np.testing.assert_allclose(net(X)[:, 0], truth(X), atol=1e-10)


def test_few_steps_are_wrong_after_one_line() -> None:
    """Units nearly parallel to the line, all of one sign: 7 of 100 networks were wrong without the further row."""
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(2, 7)), int(rng.integers(2, 8))
        W = rng.normal(size=(m, d)) * np.where(np.arange(d) == 0, 0.2, 1.0)
        truth = rl.Network(W, rng.normal(size=m), rng.uniform(0.5, 2.0, m))
        net = along_first_axis(truth, d)
        X = rng.normal(size=(50, d))
        wrong += bool(np.abs(net(X)[:, 0] - truth(X)).max() > 1e-5)
    assert wrong <= 1


def test_no_step_of_an_affine_function_is_doubted() -> None:
    """Its one piece ends far out, where rounding is a thousand times that of the middle."""
    rng = np.random.default_rng(0)
    model = LinearRegression().fit(rng.normal(size=(60, 5)), rng.normal(size=60))
    rows = 0

    def count(X: np.ndarray) -> np.ndarray:
        nonlocal rows
        rows += len(X)
        return model.predict(X)

    net = along_first_axis(count, 5)
    assert net.m == 0
    np.testing.assert_allclose(net.v[0], model.coef_, atol=1e-13)
    assert rows <= 60
