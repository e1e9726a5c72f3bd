"""Mondelli & Montanari's Figure 1 in its quick form, and the compiled descent against its definition."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from relumine.papers.mondelli2019 import figure as figures

sgd = pytest.importorskip("relumine.papers.mondelli2019.sgd")
QUIET = Console(quiet=True)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 6),
    r=st.integers(1, 9),
    seen=st.integers(0, 1000),
    seed=st.integers(0, 2**32 - 1),
)
def test_compiled_descent_is_descent(n: int, d: int, r: int, seen: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, W, total = rng.normal(size=(n, d)), rng.normal(size=(r, d)), seen * rng.normal(size=(r, d))
    y = rng.normal(size=n)
    state = np.vstack([W, total])
    compiled = sgd.descend(X, y, state, seen, 0.02, 2.5)
    plain = sgd.descend_plainly(X, y, W, total, seen, 0.02, 2.5)
    assert np.allclose(compiled, plain, atol=1e-10)
    assert np.allclose(state, np.vstack([W, total]), atol=1e-10 * (1.0 + seen))


def test_blocks_join() -> None:
    """Two calls are one: what a resumed run relies on."""
    rng = np.random.default_rng(0)
    X, y, W = rng.normal(size=(101, 4)), rng.normal(size=101), rng.normal(size=(5, 4))
    once, twice = np.vstack([W, 0.0 * W]), np.vstack([W, 0.0 * W])
    whole = sgd.descend(X, y, once, 0, 0.01, 2.5)
    parts = [sgd.descend(X[:37], y[:37], twice, 0, 0.01, 2.5), sgd.descend(X[37:], y[37:], twice, 37, 0.01, 2.5)]
    assert np.allclose(np.concatenate(parts), whole, atol=1e-12)
    assert np.allclose(once, twice, atol=1e-10)


def test_compiled_tanh() -> None:
    u = np.concatenate([np.linspace(-30.0, 30.0, 2001), [0.0, 1e-9, -1e-9, 1e300, -1e300]])
    assert np.abs(np.array([sgd.tanh(v) for v in u]) - np.tanh(u)).max() < 2e-14
    assert np.isnan(sgd.tanh(np.nan))
    X, W = np.random.default_rng(0).normal(size=(70, 3)), np.eye(3)
    assert np.allclose(sgd.labels(X, W, 2.5), np.tanh(2.5 * X).sum(axis=1), atol=1e-13)


def test_weight_error_by_hand() -> None:
    W, estimate = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 1.0]])
    assert figures.weight_error(W, estimate) == pytest.approx(0.5 * (0 + 1) / 2 + 0.5 * (0 + 1) / 2)
    assert figures.weight_error(W, W[::-1]) == 0.0


def test_errors_are_relative_to_the_best_function_of_the_norm() -> None:
    rng = np.random.default_rng(0)
    q = rng.chisquare(5, size=(3, 400))
    y = 2.0 - 0.3 * q + rng.normal(size=q.shape)
    sums = [np.full(3, 400.0), q.sum(1), (q**2).sum(1), y.sum(1), (y * q).sum(1), (y**2).sum(1)]
    F = np.column_stack([np.ones(q.size), q.ravel()])
    rest = y - (F @ np.linalg.lstsq(F, y.ravel(), rcond=None)[0]).reshape(y.shape)
    loss = np.array([100.0, 200.0, 300.0])
    assert figures.relative_error(np.column_stack([*sums, loss])) == pytest.approx(loss / (rest**2).sum(1))


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("mondelli2019")
    paths = {name: folder / f"figure{name}.json" for name in ("1", "small")}
    for name, path in paths.items():
        figures.compute(name, True, path, QUIET)
    return paths


def cells(path: Path) -> dict[str, dict[str, object]]:
    return dict(json.loads(path.read_text())["cells"])


def test_few_units_are_learned_and_the_errors_move_together(quick: dict[str, Path]) -> None:
    content = cells(quick["1"])
    assert len(content) == 9
    for cell in content.values():
        error, weights, start = (np.array(cell[key]) for key in ("error", "weights", "start"))
        assert error[0] > 1.0
        assert np.corrcoef(np.log(error[1:]), np.log(weights[1:]))[0, 1] > 0.8
        if cell["r"] == 6:
            assert error[-1] < 0.1 * error[0]
            assert weights[-1] < 0.1 * start
    assert content["6,0.2"]["error"][-1] < content["18,0.2"]["error"][-1]  # type: ignore[index]


def test_a_run_continues_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (6, 6, 0.2, 10_000, 2_000, 1.0)
    whole = figures.run_sgd(*arguments, str(tmp_path / "whole.npz"))
    window, saved = figures._window, str(tmp_path / "part.npz")

    def stop(W: np.ndarray, state: np.ndarray, index: int, *rest: object) -> list[float]:
        if index == 3:
            raise KeyboardInterrupt
        return window(W, state, index, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(figures, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(figures, "_window", stop)
    with pytest.raises(KeyboardInterrupt):
        figures.run_sgd(*arguments, saved)
    monkeypatch.setattr(figures, "_window", window)
    assert Path(saved).exists()
    joined = figures.run_sgd(*arguments, saved)
    assert joined["error"] == whole["error"]
    assert joined["weights"] == whole["weights"]
    assert not Path(saved).exists()


def test_finished_cells_are_not_computed_again(quick: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    before = quick["1"].read_text()
    monkeypatch.setattr(figures, "run_sgd", None)
    figures.compute("1", True, quick["1"], QUIET)
    assert json.loads(quick["1"].read_text()) == json.loads(before)


def test_pictures_come_from_the_json(quick: dict[str, Path]) -> None:
    for path in quick.values():
        image = figures.plot(path)
        assert image is not None
        assert image.stat().st_size > 10_000


def test_recover_on_the_quick_teacher() -> None:
    from relumine.papers.mondelli2019.figure_recover import run_recover

    cell = run_recover(6, 6, 8, 60.0)
    assert cell["status"] == "exact"
    assert cell["error"] < 1e-12
    assert cell["weights"] < 1e-10
