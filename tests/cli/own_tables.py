"""Tables as people bring them, each with what should be said of it: the cause of the failure, or None and a network."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import relumine as rl
from relumine.results import Cause

__all__ = ["TABLES", "OwnTable", "write"]


@dataclass(frozen=True)
class OwnTable:
    """Columns by name, the target last; ``cause``: of the failure, None if the network is found.

    ``says``: how the first sentence begins; ``options``: of the command line.
    """

    name: str
    columns: Callable[[], dict[str, np.ndarray]]
    cause: Cause | None
    says: str
    options: tuple[str, ...] = ()


def write(table: OwnTable, folder: Path) -> Path:
    """The table as a csv file."""
    path, columns = folder / f"{table.name.replace(' ', '-')}.csv", table.columns()
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return path


def _named(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": y}


def _planted(d: int, m: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return rl.planted.sample(rl.planted.network(d, m, rng=seed), n, rng=seed + 1)


def _few_rows() -> dict[str, np.ndarray]:
    X, y = _planted(8, 6, 50, 0)
    return _named(X, y)


def _two_classes() -> dict[str, np.ndarray]:
    X, y = _planted(4, 4, 500, 1)
    return _named(X, (y > np.median(y)).astype(int))


def _three_classes() -> dict[str, np.ndarray]:
    """The largest of three scores: the numbers of the classes have no order."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 4))
    return _named(X, np.argmax(X @ rng.normal(size=(4, 3)), axis=1))


def _steps() -> dict[str, np.ndarray]:
    """What a decision tree gives: a number for each of some boxes."""
    rng = np.random.default_rng(8)
    X = rng.uniform(-1.0, 1.0, size=(1200, 3))
    box = np.floor(3.0 * X[:, 0]) * 7 + np.floor(3.0 * X[:, 1])
    return _named(X, np.sin(box) + 0.1 * box)


def _probabilities() -> dict[str, np.ndarray]:
    X, y = _planted(5, 6, 800, 3)
    return _named(X, 1.0 / (1.0 + np.exp(-2.0 * y / y.std())))


def _percentages() -> dict[str, np.ndarray]:
    columns = _probabilities()
    return columns | {"y": 100.0 * columns["y"]}


def _wrong_input() -> dict[str, np.ndarray]:
    """A comma was forgotten in two rows."""
    X, y = _planted(4, 4, 500, 1)
    X[[3, 77], 0] = 1e6
    return _named(X, y)


def _numbered_categories() -> dict[str, np.ndarray]:
    """A region, given as a number, adds something; what its number would do in between is anyone's guess."""
    X, y = _planted(4, 4, 500, 1)
    region = np.random.default_rng(3).choice([1010, 3000, 8001, 9000], size=500)
    return {"region": region} | _named(X, y + 2.0 * (region == 3000))


def _binary_inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    X = rng.integers(0, 2, size=(400, 8))
    return _named(X, np.maximum(X @ rng.normal(size=(8, 6)) - 0.5, 0.0).sum(axis=1))


def _smooth() -> dict[str, np.ndarray]:
    X = np.random.default_rng(5).normal(size=(2000, 3))
    return _named(X, np.sin(3.0 * X[:, 0]) + X[:, 0] * X[:, 1])


def _outliers() -> dict[str, np.ndarray]:
    X, y = _planted(5, 5, 600, 6)
    y[[17, 100, 333]] += [50.0, -80.0, 60.0]
    return _named(X, y)


def _running_number() -> dict[str, np.ndarray]:
    X, y = _planted(4, 4, 500, 7)
    return {"id": np.arange(1, 501)} | _named(X, y)


def _too_narrow() -> dict[str, np.ndarray]:
    """Six units, and three are asked for."""
    X, y = _planted(5, 6, 600, 3)
    return _named(X, y)


def _nearly() -> dict[str, np.ndarray]:
    """Two hidden layers: one of twenty units comes near."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(600, 6))
    inner = np.maximum(X @ rng.normal(size=(6, 8)) / 2 + 0.2, 0.0)
    return _named(X, np.maximum(inner @ rng.normal(size=(8, 5)) / 2 + 0.1, 0.0) @ rng.normal(size=5))


def _categories() -> dict[str, np.ndarray]:
    """A city moves the kinks; one column never changes, and another has gaps."""
    rng = np.random.default_rng(9)
    X, city = rng.normal(size=(600, 3)), rng.integers(0, 3, size=600)
    shift = np.array([0.0, 0.7, -0.4])[city]
    y = np.maximum(X @ [1.0, -0.5, 0.3] + shift, 0.0) - 2.0 * np.maximum(X @ [0.4, 1.0, 1.0] - 0.2, 0.0)
    return {"city": np.array(["Bern", "Oslo", "Rome"])[city], "unit": np.full(600, 3)} | _named(X, y)


def _series() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    X = 0.2 * rng.normal(size=(120, 2))
    for i in range(1, len(X)):
        X[i] += 0.98 * X[i - 1]
    return _named(X, rl.planted.network(2, 2, rng=4)(X) + 0.002 * rng.normal(size=120))


TABLES = (
    OwnTable("few rows", _few_rows, Cause.TOO_FEW_ROWS, "50 rows cannot show"),
    OwnTable("two classes", _two_classes, Cause.CLASSES, "There are only two values (0 and 1) in the target"),
    OwnTable("three classes", _three_classes, Cause.CLASSES, "There are only 3 values in the target"),
    OwnTable("steps", _steps, Cause.STEPS, "The target takes only 36 different values in 1,200 rows"),
    OwnTable("series", _series, Cause.SERIES, "The inputs change slowly from row to row"),
    OwnTable("probabilities", _probabilities, Cause.PROBABILITIES, "Every value of the target lies between 0 and 1"),
    OwnTable("percentages", _percentages, Cause.PROBABILITIES, "Every value of the target lies between 0 and 100"),
    OwnTable("wrong input", _wrong_input, Cause.OUTLIERS, "In 2 rows of 500 column 'x0' is 1e+06"),
    OwnTable(
        "numbered categories", _numbered_categories, Cause.FEW_VALUES, "Every row is explained, but column 'region'"
    ),
    OwnTable("binary inputs", _binary_inputs, Cause.FEW_POSSIBLE_ROWS, "Each input is 0 or 1, so only"),
    OwnTable("smooth", _smooth, Cause.SMOOTH, "The target has no kinks"),
    OwnTable("outliers", _outliers, Cause.OUTLIERS, "In 3 rows of 600 the network is off"),
    OwnTable("too narrow", _too_narrow, Cause.TOO_NARROW, "3 units cannot explain these rows", ("--width", "3")),
    OwnTable("running number", _running_number, None, "4 units"),
    OwnTable(
        "nearly",
        _nearly,
        Cause.NEARLY,
        "The best network has R² = ",
        ("--width", "20", "--starts", "2"),
    ),
    OwnTable("categories", _categories, None, "2 units", ("--one-hot",)),
)
