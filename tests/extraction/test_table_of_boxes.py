"""The table in docs/extract.md: every kind of box ends as it says there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax
from tests.extraction.black_boxes import SECRET, WIDE, Flaky, found
from tests.extraction.test_kinds_of_boxes import mlp, one_row

import relumine as rl
from relumine.results import InvalidInput, RecoveryFailed

DOCS = (Path(__file__).parents[2] / "docs" / "extract.md").read_text(encoding="utf-8")
DEEP = rl.planted.deep((8, 6, 5, 1), rng=0)
LEAKY = SECRET.replace(activation="leaky_relu(0.1)")
TANH = rl.planted.network(d=4, m=3, rng=1, activation="tanh")
SHARES = SECRET.replace(b=SECRET.b - SECRET.W @ np.full(5, 0.15))
NOISE = np.random.default_rng(0)


def shares(X: np.ndarray) -> np.ndarray:
    assert (np.abs(X.sum(axis=1) - 1.0) < 1e-9).all()
    return SHARES(X)


def positive(X: np.ndarray) -> np.ndarray:
    assert (X >= 0.0).all()
    return SECRET(X)


def tree(X: np.ndarray) -> np.ndarray:
    return np.floor(8.0 * X[:, 0] + 3.0 * X[:, 1]) + 0.125 * np.floor(X[:, 2] * 4.0)


def raises(X: np.ndarray) -> np.ndarray:
    raise KeyError("temperature")


# the first words of a row of the table: the box, options, the status; a word of the message or of the error
TABLE: dict[str, tuple[Any, dict[str, Any], str, str]] = {
    "a function of a matrix": (SECRET, {}, "exact", "3 units"),
    "several outputs": (WIDE, {}, "exact", "4 units"),
    "a function of one row": (one_row, {}, "exact", "3 units"),
    "a deep network": (DEEP, {"dim": 8}, "exact", "2 hidden layers of 6, 5 units"),
    "leaky ReLU units": (LEAKY, {"activation": "leaky_relu(0.1)"}, "exact", "3 units"),
    "smooth units, named": (TANH, {"dim": 4, "width": 3, "activation": "tanh"}, "exact", ""),
    "one probability": (lambda X: expit(SECRET(X)), {"link": "auto"}, "exact", "3 units"),
    "probabilities of classes": (lambda X: softmax(WIDE(X), axis=1), {"link": "auto"}, "exact", "4 units"),
    "exponentials": (lambda X: np.exp(SECRET(X)), {"link": "log"}, "exact", "3 units"),
    "positive inputs only": (positive, {"low": 0.0, "scale": 0.3}, "exact", ""),
    "inputs that are fixed": (SECRET, {"fixed": {1: 0.5}}, "exact", ""),
    "shares that sum to 1": (shares, {"total": 1.0, "low": 0.0, "high": 1.0}, "exact", ""),
    "all answers the same": (lambda X: np.full(len(X), 2.5), {}, "exact", "0 units"),
    "it fails now and then": (Flaky(0.1), {"batch": 64, "retries": 20}, "exact", "3 units"),
    "single precision": (lambda X: SECRET(X.astype("f4")).astype("f4"), {}, "noisy", "their rounding"),
    "rounded to six decimals": (lambda X: SECRET(X).round(6), {}, "noisy", ""),
    "random answers": (
        lambda X: SECRET(X) + 0.01 * NOISE.normal(size=len(X)),
        {"width": 3, "budget": 3000},
        "noisy",
        "",
    ),
    "labels": (lambda X: (SECRET(X) > -1.0).astype(float), {}, "not recovered", "labels"),
    "constant pieces": (tree, {}, "not recovered", "constant but for jumps"),
    "smooth units, not named": (lambda X: np.tanh(X @ np.ones(5)) * X[:, 0], {}, "not recovered", "activation='tanh'"),
    "probabilities without a link": (lambda X: softmax(WIDE(X), axis=1), {}, "not recovered", "link='auto'"),
    "rounded probabilities": (
        lambda X: expit(SECRET(X)).round(4),
        {"link": "auto"},
        "refused",
        "rounded to 4 decimals",
    ),
    "complex numbers": (lambda X: SECRET(X) + 1j, {}, "refused", "complex"),
    "another number of inputs": (lambda X: X @ np.ones(5), {"dim": 4}, "failed", "ValueError: matmul"),
    "an exception in your code": (raises, {}, "failed", "KeyError: 'temperature'"),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_box_ends_as_the_table_says(name: str) -> None:
    box, options, status, word = TABLE[name]
    if status in ("refused", "failed"):
        kind: Any = InvalidInput if status == "refused" else rl.BlackBoxFailed
        with pytest.raises(kind, match=word):
            found(box, **options)
        return
    result = found(box, seconds=30.0, on_failure="return", **options)
    assert result.status.value == status, result.message
    assert word in result.message
    assert result.seconds > 0.0


def test_a_pipeline_and_a_command(tmp_path: Path) -> None:
    pipe, _, _ = mlp()
    assert found(pipe, dim=None, mean=3.0, scale=2.0).status.value == "exact"
    script = tmp_path / "simulate.py"
    script.write_text(
        "import sys\nfor line in sys.stdin:\n    x, y = map(float, line.split(','))\n    print(max(x - 2 * y, 0.0))\n"
    )
    result = found([sys.executable, str(script)], dim=2)
    assert (result.status.value, result.network.m) == ("exact", 1)


def test_the_documentation_has_the_table() -> None:
    for name, (_, _, status, _) in TABLE.items():
        assert f"| {name} | {status} |" in DOCS
    assert len(TABLE) >= 20


@pytest.mark.parametrize("name", ["labels", "constant pieces"])
def test_advice_names_options_of_extract_only(name: str) -> None:
    with pytest.raises(RecoveryFailed) as caught:
        found(TABLE[name][0])
    told = str(caught.value) + str(caught.value.recovery)
    assert "starts" not in told
    assert "samples" not in told
    assert "link='auto'" in told
