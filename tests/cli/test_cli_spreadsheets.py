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
    "two decimal marks": (
        lambda i: [str(X[i, 0]) if i % 3 else str(X[i, 0]).replace(".", ","), X[i, 1], Y[i]],
        "column 'a' is not all numbers",
        "write all numbers with the same decimal mark (here it was taken to be '.')",
    ),
    "text with gaps": (
        lambda i: [("Bern", "Oslo", "")[i % 3], X[i, 1], Y[i]],
        "column 'a' is not numeric (row 2 has 'Bern')",
        "use --one-hot to turn its categories into columns",
    ),
    "dates": (lambda i: [f"2024-03-{1 + i % 28:02d}", X[i, 1], Y[i]], "it holds 2024-03-01", "days since the first"),
    "other dates": (lambda i: [f"{1 + i % 28}/3/2024", X[i, 1], Y[i]], "row 2 has '1/3/2024'", "days since the first"),
    "units": (lambda i: [f"{float(X[i, 0])!r} kg", X[i, 1], Y[i]], "column 'a' is not numeric", "without units"),
    "formulas": (lambda i: [*X[i], f"=A{i + 2}*2"], "column 'y' is not numeric", "save its values, not its formulas"),
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


def lines(header: str = "a,b,y") -> str:
    return "\n".join([header, *(",".join(map(repr, plain(i))) for i in range(len(X)))]) + "\n"


BEGINNINGS: dict[str, tuple[bytes, str]] = {
    "UTF-16": (lines().encode("utf-16"), "read as UTF-16"),
    "Windows": (lines("größe,b,y").encode("cp1252"), "read as Windows-1252"),
    "comments": (f"# of the pump\n\n# 2024, spring\n{lines()}".encode(), "the first 3 lines, comments"),
    "names in a comment": (lines("# a,b,y").encode(), "the names of the columns are those of the last comment"),
    "a column called #": (lines("#,b,y").encode(), "the names of the columns are those of the last comment"),
}


@pytest.mark.parametrize("case", BEGINNINGS.values(), ids=BEGINNINGS)
def test_other_letters_and_comments_are_read_and_said(case: tuple[bytes, str], tmp_path: Path) -> None:
    content, said = case
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    result = run("recover", path, "--target", "y", "--width", 1)
    assert result.exit_code == 0, result.stderr
    assert said in result.stderr
    assert "behind 2 inputs" in result.stdout


def test_rows_after_comments_are_counted_as_a_spreadsheet_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"# one\n# two\n{lines()}1,oops,3\n", encoding="utf-8")
    assert f"row {len(X) + 4} has 'oops'" in run("recover", path).stderr


def test_an_empty_column_is_left_out_and_an_empty_target_refused(tmp_path: Path) -> None:
    path = table(tmp_path, ["a", "notes", "b", "y"], lambda i: [X[i, 0], "", X[i, 1], Y[i]])
    result = run("recover", path, "--width", 1)
    assert result.exit_code == 0, result.stderr
    assert "left out: column 'notes', which has no values" in result.stderr
    refused = run("recover", path, "--target", "notes")
    assert (refused.exit_code, "column 'notes' has no values; choose another target" in refused.stderr) == (2, True)
    assert "has no values" in run("recover", path, "--features", "a,notes").stderr
    path = table(tmp_path, ["a", "b", "y"], lambda i: [*X[i], ""])
    assert "column 'y' has no values; choose another target" in run("recover", path).stderr


def test_a_title_above_the_names_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"Report,,\n{lines()}", encoding="utf-8")
    refused = run("recover", path)
    assert refused.exit_code == 2
    assert "no name for 2 of 3 columns" in refused.stderr
    assert "remove titles" in refused.stderr


def test_a_copy_of_the_target_is_named(tmp_path: Path) -> None:
    path = table(tmp_path, ["a", "b", "cost", "y"], lambda i: [*X[i], 2.0 * Y[i] + 1.0, Y[i]])
    result = run("recover", path)
    assert result.stdout.splitlines()[1].startswith("Column 'cost' times 0.5, plus a constant, is the target.")
    assert "--ignore cost" in result.stdout
    assert "is the target" not in run("recover", table(tmp_path, ["a", "b", "y"], lambda i: [*X[i], X[i].sum()])).stdout


def test_a_number_that_stands_for_missing_is_named_though_the_rest_passes_for_noise(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    noisy = Y + rng.normal(size=len(Y))
    path = table(tmp_path, ["a", "b", "y"], lambda i: [-999 if i in (7, 70) else X[i, 0], X[i, 1], noisy[i]])
    result = run("recover", path)
    assert "n 2 rows of 120 column 'a' is -999" in result.stdout
    assert "rows 7, 70, counted from 0" in result.stdout


def test_a_title_above_the_names_is_named(tmp_path: Path) -> None:
    path = table(tmp_path, ["a", "b", "y"], plain)
    path.write_text("Measured in March\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    result = run("recover", path)
    assert result.exit_code == 2
    assert "the first line, 'Measured in March', looks like a title" in result.stderr


def test_a_spreadsheet_is_to_be_saved_as_csv(tmp_path: Path) -> None:
    (tmp_path / "book.xlsx").write_bytes(b"PK")
    result = run("recover", tmp_path / "book.xlsx")
    assert result.exit_code == 2
    assert "spreadsheets cannot be read; save it as csv" in result.stderr


def test_no_figure_is_told_twice(tmp_path: Path) -> None:
    told = run("recover", table(tmp_path, ["a", "b", "y"], plain)).stdout
    assert told.count("of the spread of y") == 1
