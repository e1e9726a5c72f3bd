"""Probabilities, restricted inputs and failures of one's own code, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from tests.cli.cli_runs import run

import relumine as rl
from relumine import formats, report

NET = rl.planted.network(d=3, m=2, rng=0)
MODULE = """
import numpy as np

def relu(X):
    return np.maximum(X[:, 0] + 2 * X[:, 1] - X[:, 2] + 0.3, 0)

def own_fault(X):
    return X[:, {}["temperature"]]

def premium(frame):
    return np.maximum(frame["age"] - 2 * frame["sum"], 0)

def labels(X):
    return (X[:, 0] > X[:, 1]).astype(float)

def two_probabilities(X):
    p = 1 / (1 + np.exp(-relu(X)))
    return np.column_stack([1 - p, p])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "boxes_of_mine.py").write_text(MODULE)
    X = np.random.default_rng(1).normal(size=(200, 3))
    table = np.column_stack([X, expit(NET(X))])
    np.savetxt("rows.csv", table, delimiter=",", header="u,v,w,p", comments="", fmt="%.17g")
    return tmp_path


def test_probabilities_in_a_file_come_back_as_probabilities(folder: Path) -> None:
    files = ("--out", "net.safetensors", "--save", "r.json", "--report", "page.html")
    done = run("recover", "rows.csv", "--link", "auto", "--width", 2, *files)
    assert done.exit_code == 0, done.output
    assert "their logits" in done.stdout
    assert formats.read_labels(folder / "net.safetensors").link == "logit"
    assert report.load(folder / "r.json").link == "logit"
    assert "logit of p" in (folder / "page.html").read_text(encoding="utf-8")
    p = np.loadtxt("rows.csv", delimiter=",", skiprows=1)[:, 3]
    for name in ("net.safetensors", "r.json"):
        told = run("predict", name, "rows.csv", "--json")
        np.testing.assert_allclose(json.loads(told.stdout)["predictions"], p, atol=1e-9)
        assert "through the link (logit)" in told.stderr
    assert run("recover", "rows.csv", "--link", "probit").exit_code == 2


@pytest.mark.parametrize("kind", ["onnx", "npz", "json", "torch"])
def test_an_export_keeps_the_link(folder: Path, kind: str) -> None:
    pytest.importorskip({"onnx": "onnx", "torch": "torch"}.get(kind, "numpy"))
    run("recover", "rows.csv", "--link", "auto", "--width", 2, "--out", "net.safetensors")
    done = run("export", "net.safetensors", "--to", kind)
    assert done.exit_code == 0, done.output
    if kind != "torch":
        told = run("predict", f"net.{kind}", "rows.csv", "--features", "u,v,w", "--json")
        p = np.loadtxt("rows.csv", delimiter=",", skiprows=1)[:, 3]
        np.testing.assert_allclose(json.loads(told.stdout)["predictions"], p, atol=1e-9)


def test_restricted_inputs(folder: Path) -> None:
    done = run("extract", "boxes_of_mine:relu", "--dim", 3, "--fixed", "1=0.5", "--low", 0, "--out", "net.json")
    assert done.exit_code == 0, done.output
    assert "holds where input 1 = 0.5" in done.stdout
    assert not rl.Network.load("net.json").W[:, 1].any()
    pytest.importorskip("pandas")
    named = run("extract", "boxes_of_mine:premium", "--columns", "age,sum,years", "--fixed", "years=3")
    assert named.exit_code == 0, named.output
    assert "holds where years = 3" in named.stdout
    for wrong in ("1", "a=2", "1=b"):
        assert run("extract", "boxes_of_mine:relu", "--dim", 3, "--fixed", wrong).exit_code == 2


def test_the_traceback_of_ones_own_code_is_shown_on_request(folder: Path) -> None:
    short = run("extract", "boxes_of_mine:own_fault", "--dim", 3)
    assert short.exit_code == 2
    assert "KeyError: 'temperature'" in short.stderr
    assert "--traceback shows where" in short.stderr
    assert "Traceback" not in short.stderr
    long = run("extract", "boxes_of_mine:own_fault", "--dim", 3, "--traceback")
    assert long.exit_code == 2
    assert "in own_fault" in long.stderr
    (folder / "breaks_at_once.py").write_text("import no_such_module_at_all\n")
    broken = run("extract", "breaks_at_once:f", "--dim", 3, "--traceback")
    assert "breaks_at_once.py" in broken.stderr


def test_what_was_not_recovered_is_written_with_force_and_says_so(folder: Path) -> None:
    failed = run("extract", "boxes_of_mine:labels", "--dim", 3, "--out", "net.json")
    assert failed.exit_code == 1
    assert not (folder / "net.json").exists()
    assert "--starts" not in failed.stdout
    assert "--link auto" in failed.stdout
    forced = run("extract", "boxes_of_mine:labels", "--dim", 3, "--out", "net.json", "--force", "--json")
    assert formats.read_labels("net.json").status == "not recovered"
    assert json.loads(forced.stdout)["seconds"] > 0.0


def test_probabilities_without_a_link_are_told_and_reported(folder: Path) -> None:
    """Two outputs were answered and nothing was found: that has one output, and cannot be compared with them."""
    result = run("extract", "boxes_of_mine:two_probabilities", "--dim", 3, "--report", "page.html")
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("Not recovered: this black box does not answer as a network of this kind would")
    assert "--link auto" in result.stdout
    assert (folder / "page.html").exists()


def test_a_module_a_number_of_inputs_and_a_file_that_are_wrong_are_named(folder: Path) -> None:
    assert "there is no boxes_of_yours.py here" in run("extract", "boxes_of_yours:f", "--dim", 3).stderr
    assert "does it take 1 input?" in run("extract", "boxes_of_mine:relu", "--dim", 1).stderr
    with pytest.raises(rl.results.InvalidInput, match=r"model.h5: of model files only .onnx"):
        rl.extract("model.h5", dim=3)
