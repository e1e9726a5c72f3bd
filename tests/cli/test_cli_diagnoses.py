"""Tables as people bring them, through the command line: the first sentence of a failure is its diagnosis."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.cli_runs import run
from tests.cli.own_tables import TABLES, OwnTable, write

import relumine as rl
from relumine import report
from relumine.results import Cause, Status


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_first_sentence_is_the_diagnosis(table: OwnTable, tmp_path: Path) -> None:
    path = write(table, tmp_path)
    result = run("recover", path, "--json", "--save", tmp_path / "r.json", *table.options)
    content = json.loads(result.stdout)
    assert content["message"].startswith(table.says)
    found = report.load(tmp_path / "r.json")
    if table.cause is None:
        assert (result.exit_code, content["diagnosis"]) == (0, None)
        assert found.status is Status.EXACT
        return
    assert result.exit_code == 1
    assert found.diagnosis is not None
    assert found.diagnosis.cause is table.cause
    assert content["message"].startswith(found.diagnosis.words.partition(" link=")[0])
    assert found.headline.startswith(f"Not recovered: {table.cause.value}. Best found: ")
    assert "confirmed by" not in str(found), "no row confirms a network that was not recovered"


def table_of(name: str) -> OwnTable:
    return next(table for table in TABLES if table.name == name)


def test_words_name_options_that_there_are(tmp_path: Path) -> None:
    """Advice speaks of options here, and every one of them is an option of the command."""
    text = run("recover", "--help").output
    for name in ("few rows", "probabilities", "outliers"):
        advice = json.loads(run("recover", write(table_of(name), tmp_path), "--json").stdout)["advice"]
        assert "=" not in advice.replace("(5 numbers", ""), advice
        for option in (word.strip(".,;:()") for word in advice.split() if word.startswith("--")):
            assert option in text, advice


def test_a_good_approximation_is_offered_and_can_be_kept(tmp_path: Path) -> None:
    path, out = write(table_of("nearly"), tmp_path), tmp_path / "net.safetensors"
    result = run("recover", path, "--width", 12, "--starts", 1, "--out", out)
    assert result.exit_code == 1
    assert "R² = 0.9" in result.stdout
    assert "--out net.safetensors --force" in result.stdout
    assert not out.exists()
    assert run("recover", path, "--width", 12, "--starts", 1, "--out", out, "--force").exit_code == 1
    assert rl.Network.load(out).m == 12


def test_a_running_number_is_warned_of_by_name(tmp_path: Path) -> None:
    result = run("recover", write(table_of("running number"), tmp_path))
    assert "column 'id' is a running number" in result.stderr
    assert "--ignore id" in result.stderr
    assert "running" not in run("recover", write(table_of("running number"), tmp_path), "--ignore", "id").stderr


def test_categories_gaps_and_constants_come_back_in_the_users_columns(tmp_path: Path) -> None:
    path, net = write(table_of("categories"), tmp_path), tmp_path / "net.safetensors"
    refused = run("recover", path)
    assert refused.exit_code == 2
    assert "--one-hot" in refused.stderr
    result = run("recover", path, "--one-hot", "--out", net, "--json")
    content = json.loads(result.stdout)
    assert content["features"] == ["city=Oslo", "city=Rome", "unit", "x0", "x1", "x2"]
    assert any("never changes: column 'unit'" in note for note in content["certificate"]["notes"])
    found = rl.Network.load(net)
    assert not found.W[:, 2].any()
    # a unit that the city moves: its bias by 0.7 and −0.4, in units of its first weight
    moved = found.W[np.argmax(np.abs(found.W[:, 0]))]
    np.testing.assert_allclose(moved[:2] / moved[3], [0.7, -0.4], atol=1e-9)
    answer = run("predict", net, path)
    assert "root mean square error against y: " in answer.stderr
    assert float(answer.stderr.rpartition("y: ")[2].split()[0]) < 1e-12
    assert answer.stderr.endswith(" of its spread)\n")


@pytest.mark.parametrize("options", [(), ("--impute", "median")])
def test_an_empty_cell_among_categories_is_named_with_what_to_do(options: tuple[str, ...], tmp_path: Path) -> None:
    lines = [f"{('Bern', 'Oslo', '')[i % 3]},{i * i % 7},{i}" for i in range(30)]
    path = tmp_path / "cities.csv"
    path.write_text("\n".join(["city,u,y", *lines]), encoding="utf-8")
    refused = run("recover", path, "--one-hot", *options)
    assert refused.exit_code == 2
    assert "column 'city' has no text in row 4 of " in refused.stderr
    assert "write a word there" in refused.stderr
    assert "--skip-bad-rows" in refused.stderr
    assert "--impute" not in refused.stderr


def test_gaps_are_filled_with_the_median(tmp_path: Path) -> None:
    """Only inputs, never the target; what was filled is said."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    lines = [f"{'' if i == 3 else a},{b},{a + 2 * b}" for i, (a, b) in enumerate(X.tolist())]
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(["u,v,y", *lines]), encoding="utf-8")
    refused = run("recover", path, "--width", 0).stderr
    assert "row 5" in refused
    assert "--impute median" in refused
    result = run("recover", path, "--width", 0, "--impute", "median", "--out", tmp_path / "net.safetensors", "--force")
    new_rows = run(
        "predict", tmp_path / "net.safetensors", path
    ).stderr  # which has no --impute: the medians are not kept
    assert "--impute" not in new_rows
    assert "fill gaps as for the rows" in new_rows
    assert "column 'u': 1 missing value filled with its median" in result.stderr
    source = rl.data.sources.open_source(path, target="y", impute="median")
    assert source.head().X[3, 0] == np.median(np.delete(X[:, 0], 3))
    assert run("recover", path, "--impute", "mean").exit_code == 2
    path.write_text("\n".join(["u,v,y", *lines[:20], "1,2,"]), encoding="utf-8")
    refused = run("recover", path, "--width", 0, "--impute", "median").stderr
    assert "target column 'y' has no value" in refused
    assert "row 22" in refused  # as a spreadsheet counts


def test_a_constant_target_is_named(tmp_path: Path) -> None:
    rows = np.column_stack([np.random.default_rng(0).normal(size=(60, 2)), np.full(60, 3.0)])
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header="u,v,load", comments="")
    result = run("recover", tmp_path / "a.csv")
    assert result.stdout.startswith("No hidden unit found: load is the same in every row")


def test_the_time_of_a_diagnosis_counts() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    found = rl.recover(X, X[:, 0] * X[:, 1], 2, rng=0, on_failure="return")
    assert found.diagnosis is not None
    assert found.stages[-1].name == "diagnosis"


def test_what_a_diagnosis_advises_exists() -> None:
    """Every activation named in an advice is one that --activation takes."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    found = rl.recover(X, X[:, 0] * X[:, 1], rng=0, on_failure="return")
    assert found.diagnosis is not None
    assert found.diagnosis.cause is Cause.SMOOTH
    for name in re.findall("'([a-z]+)'", found.diagnosis.advice):
        rl.activations.get(name)


def test_dependent_columns_are_named_with_the_option_that_drops_one(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    rows = np.column_stack([X, X @ [1.0, 2.0], np.maximum(X[:, 0], 0.0)])
    path = tmp_path / "a.csv"
    np.savetxt(path, rows, delimiter=",", header="u,v,w,y", comments="")
    result = run("recover", path)
    assert result.exit_code == 2
    assert "'u', 'v', 'w' are linearly dependent" in result.stderr
    assert "--ignore w" in result.stderr
    assert run("recover", path, "--ignore", "w").exit_code == 0


def test_every_cause_is_met_by_a_table() -> None:
    assert {table.cause for table in TABLES} - {None} == set(Cause) - {Cause.RUNNING_NUMBER}
