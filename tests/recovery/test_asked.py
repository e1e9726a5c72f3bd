"""Every argument is checked before a source is opened, by name, with what to do; options find their way."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import relumine as rl
from relumine.recovery import door
from relumine.recovery.asked import METHODS, known_options


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be opened."""

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("the source was opened before the request was checked")

    monkeypatch.setattr(door, "open_source", opened)


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize(
    ("argument", "request_"),
    [
        ("width", {"width": -1}),
        ("width", {"width": 2.0}),
        ("width", {"width": True}),
        ("rng", {"rng": "seed"}),
        ("rng", {"rng": -3}),
        ("method", {"method": "magic"}),
        ("starts", {"starts": 0}),
        ("starts", {"starts": True}),
        ("seconds", {"seconds": 0.0}),
        ("seconds", {"seconds": float("nan")}),
        ("affine", {"affine": "drop"}),
        ("affine", {"affine": "consolidate", "activation": "tanh"}),
        ("on_failure", {"on_failure": "ignore"}),
        ("progress", {"progress": "loud"}),
        ("memory", {"memory": 10}),
        ("memory", {"memory": "1e9"}),
        ("checkpoint", {"checkpoint": 5}),
        ("checkpoint_every", {"checkpoint": "x", "checkpoint_every": -1.0}),
        ("wdith", {"wdith": 3}),
        ("order", {"order": 1}),  # an option of another method
        ("width", {"method": "awasthi"}),
        ("activation", {"method": "awasthi", "width": 2, "activation": "tanh"}),
        ("activation", {"method": "zhong", "width": 2, "activation": "sigmoid"}),
        ("sample_weight", {"method": "zhong", "width": 2, "sample_weight": np.ones(40)}),
        ("checkpoint", {"method": "zhong", "width": 2, "checkpoint": "x"}),
        ("checkpoint_every", {"method": "zhong", "width": 2, "checkpoint_every": 5.0}),
        ("seconds", {"method": "awasthi", "width": 2, "seconds": 5.0}),
        ("starts", {"method": "zhong", "width": 2, "starts": 5}),
    ],
)
@pytest.mark.parametrize("where", ["arrays", "a cluster"])
def test_nothing_is_opened_for_a_request_that_cannot_be_met(where: str, argument: str, request_: dict) -> None:
    data = {"X": np.ones((40, 3)), "y": np.ones(40)} if where == "arrays" else {"X": "*.parquet", "engine": "dask"}
    with pytest.raises(rl.InvalidInput) as caught:
        rl.recover(**data, **request_)
    assert caught.value.argument == argument


def test_an_unknown_option_lists_the_known_ones() -> None:
    with pytest.raises(rl.InvalidInput, match="features") as caught:
        rl.recover(np.ones((40, 3)), np.ones(40), tarket="y")
    assert "target" in str(caught.value)
    assert "checkpoint_every" in str(caught.value)


def test_every_method_declares_its_options() -> None:
    source, auto = known_options(METHODS["auto"])
    assert {"target", "features", "bad_rows", "storage", "engine", "client"} <= set(source)
    assert set(auto) == {"memory", "affine", "checkpoint_every"}
    assert {"order", "estimator", "thresholds", "goal"} <= set(METHODS["awasthi"].options)
    assert {"moments", "iterations", "step"} <= set(METHODS["zhong"].options)
    assert not {"rng", "activation", "X", "width"} & set(METHODS["zhong"].options)


def test_options_go_to_the_source(tmp_path) -> None:
    truth = rl.planted.network(3, 2, rng=0)
    X, y = rl.planted.sample(truth, 200, rng=1)
    table = np.column_stack([X, y, np.arange(200.0)])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="a,b,c,y,t", comments="", fmt="%.17g")
    found = rl.recover(tmp_path / "rows.csv", width=2, target="y", features=["a", "b", "c"], memory=1e6, rng=0)
    assert found.status is rl.Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < 1e-9


def test_recover_has_few_parameters() -> None:
    assert len(inspect.signature(rl.recover).parameters) < 15


def test_several_outputs_are_refused_by_methods_of_one() -> None:
    X = np.random.default_rng(0).normal(size=(400, 3))
    for name in ("awasthi", "zhong"):
        with pytest.raises(rl.InvalidInput, match="one output"):
            rl.recover(X, np.column_stack([X[:, 0], X[:, 1] ** 2]), 2, method=name)
