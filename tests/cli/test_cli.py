"""The command line: it works the first time, writes whole files, and fails in words."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import relumine as rl
from relumine.cli import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_help_and_version() -> None:
    assert run("--version").output.strip() == f"relumine {rl.__version__}"
    for command in ("demo", "recover", "extract", "report", "predict", "export", "advise", "decode", "paper"):
        assert command in run("--help").output
        assert run(command, "--help").exit_code == 0


def test_demo_recovers_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "demo.png"
    result = run("demo", "--dim", 5, "--width", 8, "--out", out)
    assert result.exit_code == 0, result.output
    assert "Status: exact" in result.output
    assert "Try next" in result.output
    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert list(tmp_path.iterdir()) == [out]


def test_demo_with_noise_and_with_too_little(tmp_path: Path) -> None:
    out = tmp_path / "demo.png"
    result = run("demo", "--dim", 4, "--width", 3, "--noise", 0.05, "--samples", 1500, "--out", out)
    assert result.exit_code == 0
    assert "Status: noisy" in result.output
    result = run("demo", "--samples", 150, "--out", out)
    assert result.exit_code == 1
    assert "under-determined" in result.output
    result = run("demo", "--samples", 3, "--out", out)
    assert result.exit_code == 2
    assert "3 rows are too few for 10 inputs" in result.output
    assert "Traceback" not in result.output


def test_demo_without_a_place_for_the_picture(tmp_path: Path) -> None:
    result = run("demo", "--dim", 4, "--width", 3, "--out", tmp_path / "no" / "where.png")
    assert result.exit_code == 0
    assert "No picture" in result.output


# -- decode ------------------------------------------------------------------------------------------------


@pytest.fixture
def probes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    w, X = rng.uniform(-1, 1, 12), 3.0 * rng.normal(size=(40, 12))
    return X, np.maximum(X + w, 0.0).sum(axis=1), w


def write_csv(path: Path, X: np.ndarray, y: np.ndarray) -> Path:
    header = ",".join([*(f"x{k}" for k in range(X.shape[1])), "y"])
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=header, comments="", fmt="%.17g")
    return path


def test_decode_csv(tmp_path: Path, probes: tuple) -> None:
    X, y, w = probes
    result = run("decode", write_csv(tmp_path / "a.csv", X, y), tmp_path / "w.csv", "--bound", 1)
    assert result.exit_code == 0, result.output
    assert "Recovered exactly" in result.output
    rows = list(csv.DictReader((tmp_path / "w.csv").read_text().splitlines()))
    assert rows[3]["coordinate"] == "x3"
    np.testing.assert_allclose([float(row["w"]) for row in rows], w, atol=1e-9)


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_decode_numpy_files(tmp_path: Path, probes: tuple, kind: str) -> None:
    X, y, w = probes
    source, target = tmp_path / f"a.{kind}", []
    if kind == "npy":
        np.save(source, np.column_stack([y, X]))
        target = ["--target", "0"]
    else:
        np.savez(source, X=X, y=y)
    result = run("decode", source, tmp_path / "w.json", "--bound", 1, "--json", *target)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "exact"
    np.testing.assert_allclose(json.loads((tmp_path / "w.json").read_text())["w"], w, atol=1e-9)


def test_decode_noise_quietly(tmp_path: Path, probes: tuple) -> None:
    rng = np.random.default_rng(1)
    X = 3.0 * rng.normal(size=(200, 12))
    y = np.maximum(X + probes[2], 0.0).sum(axis=1) + 0.1 * rng.normal(size=200)
    result = run("decode", write_csv(tmp_path / "a.csv", X, y), tmp_path / "w.csv", "--bound", 1.5, "-q")
    assert (result.exit_code, result.output) == (0, "")
    rows = csv.DictReader((tmp_path / "w.csv").read_text().splitlines())
    assert all(float(row["standard_error"]) > 0.0 for row in rows)


def test_decode_that_fails_writes_nothing(tmp_path: Path, probes: tuple) -> None:
    X, y, _ = probes
    result = run("decode", write_csv(tmp_path / "a.csv", X[:9], y[:9]), tmp_path / "w.csv", "--bound", 1)
    assert result.exit_code == 1
    assert "9 rows for 12" in result.output
    assert not (tmp_path / "w.csv").exists()


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        ("a,b,y\n1,2,x\n", [], "number"),
        ("", [], "empty"),
        ("a,b\n", [], "no rows"),
        ("1,2,x\n3,4,z\n5,6,z\n", [], "number"),
        ("a,b,y\n1,2,3\n1,2\n", [], "fields"),
        (None, [], "no such file"),
        ("a,y\n1,2\n2,3\n", ["--target", "zz"], "zz"),
        ("a,y\n1,2\n2,3\n", ["--bound", "-1"], "positive"),
        ("a,y\n1,2\n2,3\n", ["--method", "magic"], "magic"),
    ],
)
def test_decode_bad_input_in_words(tmp_path: Path, content: str | None, options: list[str], word: str) -> None:
    source = tmp_path / "a.csv"
    if content is not None:
        source.write_text(content)
    result = run("decode", source, tmp_path / "w.csv", "--bound", "1", *options)
    assert result.exit_code == 2
    assert word in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "w.csv").exists()
