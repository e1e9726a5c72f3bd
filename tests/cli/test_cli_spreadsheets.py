"""Files as spreadsheets write them: what can be read is read, and what cannot is named with what to do about it."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.cli_runs import run

import relumine as rl

X = np.random.default_rng(0).normal(size=(120, 2))
Y = np.abs(X @ [1.0, 0.5]) - 0.3 * X[:, 1] + 0.2


def table(folder: Path, header: list[str], row: Callable[[int], list[object]], **dialect: int) -> Path:
    path = folder / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, **dialect)  # type: ignore[arg-type]
        writer.writerow(header)
        writer.writerows(row(i) for i in range(len(X)))
    return path


def plain(i: int) -> list[object]:
    return [*X[i].tolist(), float(Y[i])]


READ: dict[str, tuple[list[str], Callable[[int], list[object]], tuple[str, ...], dict[str, int]]] = {
    "quotes around everything": (['size, "net"', "äge °C", "y"], plain, (), {"quoting": csv.QUOTE_ALL}),
    "a mark at the end of each line": (["a", "b", "y", ""], lambda i: [*plain(i), ""], (), {}),
    "several of them": (["a", "b", "y", "", " "], lambda i: [*plain(i), "", ""], (), {}),
    "gaps of many kinds": (
        ["a", "b", "y"],
        lambda i: [("?", "-", ".", "None", "#DIV/0!", "NA")[i] if i < 6 else X[i, 0], X[i, 1], Y[i]],
        ("--skip-bad-rows",),
        {},
    ),
    "a target with gaps": (["a", "b", "y"], lambda i: [*X[i], "" if i == 7 else Y[i]], ("--skip-bad-rows",), {}),
}


@pytest.mark.parametrize("case", READ.values(), ids=READ)
def test_is_read(case: tuple, tmp_path: Path) -> None:
    header, row, options, dialect = case
    result = run("recover", table(tmp_path, header, row, **dialect), "--width", 1, *options)
    assert result.exit_code == 0, result.stderr
    assert "behind 2 inputs" in result.stdout


NAMED: dict[str, tuple[Callable[[int], list[object]], str, str]] = {
    "percent": (lambda i: [f"{100 * X[i, 0]:.4f}%", X[i, 1], Y[i]], "column 'a' is not numeric", "write its numbers"),
    "thousands": (lambda i: [*X[i], f"{9000 * Y[i]:,.2f}"], "column 'y' is not all numbers", "marks between thousands"),
    "currency": (lambda i: [f"${i + 1:,}.50", X[i, 1], Y[i]], "column 'a' is not numeric", "currency signs"),
    "dates": (lambda i: [f"2024-03-{1 + i % 28:02d}", X[i, 1], Y[i]], "it holds 2024-03-01", "days since the first"),
    "other dates": (lambda i: [f"{1 + i % 28}/3/2024", X[i, 1], Y[i]], "row 2 has '1/3/2024'", "days since the first"),
    "yes and no": (lambda i: [*X[i], "yes" if Y[i] > 1 else "no"], "this is classification", "probabilities"),
    "gap": (lambda i: ["" if i == 7 else X[i, 0], X[i, 1], Y[i]], "'a' has no value in", "--impute median"),
    "gap in the target": (lambda i: [*X[i], "" if i == 7 else Y[i]], "'y' has no value in", "--skip-bad-rows"),
}


@pytest.mark.parametrize("case", NAMED.values(), ids=NAMED)
def test_is_named_with_a_remedy(case: tuple, tmp_path: Path) -> None:
    row, problem, remedy = case
    path = table(tmp_path, ["a", "b", "y"], row)
    result = run("recover", path)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert remedy in result.stderr
    assert "--target NAME" not in result.stderr, "the target was named well"
    with pytest.raises(rl.InvalidInput, match=r"numeric|no value|not a number"):
        rl.recover(path, target="y")


def test_categories_are_named_as_they_are_written(tmp_path: Path) -> None:
    path = table(tmp_path, ["city", "b", "y"], lambda i: [("Bern", "Oslo")[i % 2], X[i, 1], X[i, 1]])
    result = run("recover", path, "--one-hot")
    assert "column 'city': a column of 0 and 1 for each of Oslo; 'Bern': all 0" in result.stderr
