"""A user's own file, the first time: what is assumed is said, what is wrong is named, what was found is kept."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.cli_runs import run

import relumine as rl

NAMES = ["room temp", "flow, total", "Ünit", "p"]


@pytest.fixture(scope="module")
def truth() -> rl.Network:
    return rl.planted.network(4, 3, rng=0)


@pytest.fixture(scope="module")
def rows(truth: rl.Network) -> np.ndarray:
    return np.column_stack(rl.planted.sample(truth, 150, rng=1))


def write(path: Path, header: list[str] | None, rows: list[list[object]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([header] if header else [])
        writer.writerows(rows)
    return path


@pytest.fixture
def data(tmp_path: Path, rows: np.ndarray) -> Path:
    return write(tmp_path / "data.csv", [*NAMES, "y"], rows.tolist())


def test_csv_to_network_to_report_to_onnx(tmp_path: Path, data: Path, rows: np.ndarray, truth: rl.Network) -> None:
    """The newcomer's way, to the last digit."""
    ort = pytest.importorskip("onnxruntime")
    net, page = tmp_path / "net.safetensors", tmp_path / "report.html"
    result = run("recover", data, "--target", "y", "--out", net, "--report", page)
    assert result.exit_code == 0, result.output
    assert rl.metrics.parameter_error(truth, rl.Network.load(net)) < 1e-9
    assert "room temp" in page.read_text(encoding="utf-8")
    assert run("export", net, "--to", "onnx").exit_code == 0
    session = ort.InferenceSession(str(tmp_path / "net.onnx"))
    X = rows[:, :-1]
    (predicted,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(predicted.ravel(), rl.Network.load(net)(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(predicted.ravel(), rows[:, -1], rtol=0, atol=1e-10)


def test_json_is_all_there_is_on_stdout(data: Path) -> None:
    result = run("recover", data, "--width", 3, "--json")
    content = json.loads(result.stdout)
    assert (content["status"], content["features"], content["target"]) == ("exact", NAMES, "y")
    assert np.shape(content["network"]["W"]) == (3, 4)
    assert "target: y" in result.stderr
    assert "loss" in result.stderr
    quiet = run("recover", data, "--width", 3, "-q")
    assert (quiet.exit_code, quiet.output) == (0, "")


@pytest.mark.parametrize(
    ("kind", "said"), [("headerless", "no header"), ("semicolons", "';'"), ("tabs", "tabs"), ("index", "row numbers")]
)
def test_other_dialects(tmp_path: Path, rows: np.ndarray, kind: str, said: str) -> None:
    header, lines, path = [*NAMES, "y"], rows.tolist(), tmp_path / "a.csv"
    if kind == "headerless":
        write(path, None, lines)
    elif kind == "semicolons":
        write(path, header, [[repr(v).replace(".", ",") for v in row] for row in lines], ";")
    elif kind == "tabs":
        write(path, header, lines, "\t")
    else:
        write(path, ["", *header], [[i, *row] for i, row in enumerate(lines)])
    result = run("recover", path, "--width", 3, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "exact"
    assert said in result.stderr


@pytest.mark.parametrize("kind", ["parquet", "npz", "npy"])
def test_other_files(tmp_path: Path, rows: np.ndarray, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(dict(zip([*NAMES, "y"], rows.T, strict=True))), path)
    elif kind == "npz":
        np.savez(path, X=rows[:, :-1], y=rows[:, -1])
    else:
        np.save(path, rows)
    result = run("recover", path, "--width", 3, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "exact"


def test_text_is_named_and_can_be_left_out(tmp_path: Path, rows: np.ndarray) -> None:
    path = write(tmp_path / "a.csv", ["my city", *NAMES, "y"], [["Rome", *row] for row in rows.tolist()])
    result = run("recover", path)
    assert result.exit_code == 2
    assert "'my city'" in result.stderr
    assert "--ignore 'my city'" in result.stderr
    assert run("recover", path, "--ignore", "my city", "--width", 3, "-q").exit_code == 0
    assert run("recover", path, "--features", "p,Ünit,room temp,'flow, total'", "--width", 3, "-q").exit_code == 2
    names = 'p,Ünit,room temp,"flow, total"'
    assert run("recover", path, "--features", names, "--width", 3, "-q").exit_code == 0


def test_missing_values_are_named_and_can_be_left_out(tmp_path: Path, rows: np.ndarray) -> None:
    lines: list[list[object]] = rows.tolist()
    lines[6][2] = ""
    path = write(tmp_path / "a.csv", [*NAMES, "y"], lines)
    result = run("recover", path)
    assert result.exit_code == 2
    assert "Ünit" in result.stderr
    assert "row 8" in result.stderr  # as a spreadsheet counts
    assert "--skip-bad-rows" in result.stderr
    result = run("recover", path, "--skip-bad-rows", "--width", 3)
    assert result.exit_code == 0
    assert "left out: 1 rows" in result.stderr


def test_failure_has_a_code_a_reason_and_no_network(tmp_path: Path, rows: np.ndarray) -> None:
    path = write(tmp_path / "a.csv", [*NAMES, "y"], rows[:12].tolist())
    out, page = tmp_path / "net.safetensors", tmp_path / "r.html"
    result = run("recover", path, "--width", 5, "--out", out, "--report", page, "--save", tmp_path / "r.json")
    assert result.exit_code == 1
    assert "too few rows" in result.output
    assert not out.exists()
    assert "too few rows" in page.read_text(encoding="utf-8")
    assert run("report", tmp_path / "r.json", "-o", tmp_path / "again.html").exit_code == 0


def test_predict_by_name_and_by_order(tmp_path: Path, data: Path, rows: np.ndarray) -> None:
    net, saved = tmp_path / "net.safetensors", tmp_path / "result.json"
    assert run("recover", data, "--width", 3, "-q", "--out", net, "--save", saved).exit_code == 0
    result = run("predict", net, data, "--out", tmp_path / "p.csv")
    assert "error against y" in result.stdout
    values = np.loadtxt(tmp_path / "p.csv", skiprows=1)
    np.testing.assert_allclose(values, rows[:, -1], atol=1e-10)
    # the columns in another order and without y: a saved result knows the names
    turned = write(tmp_path / "t.csv", NAMES[::-1], rows[:, 3::-1].tolist())
    result = run("predict", saved, turned, "--json")
    np.testing.assert_allclose(json.loads(result.stdout)["predictions"], rows[:, -1], atol=1e-10)
    result = run("predict", net, turned, "--features", 'room temp,"flow, total",Ünit,p', "--out", tmp_path / "p.npy")
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), rows[:, -1], atol=1e-10)
    assert run("predict", net, write(tmp_path / "s.csv", ["a", "b"], [[1, 2]])).exit_code == 2


def test_predict_leaves_out_bad_rows_if_told(tmp_path: Path) -> None:
    rl.planted.network(2, 1, rng=0).save(tmp_path / "net.safetensors")
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,\n5,6\n")
    told = run("predict", tmp_path / "net.safetensors", tmp_path / "rows.csv")
    assert told.exit_code == 2
    assert "--skip-bad-rows" in told.stderr
    left = run("predict", tmp_path / "net.safetensors", tmp_path / "rows.csv", "--skip-bad-rows")
    assert left.exit_code == 0
    assert "left out: 1 rows" in left.stderr
    assert len(left.stdout.splitlines()) == 3


def test_predict_matches_names_kept_with_the_network(tmp_path: Path, data: Path, rows: np.ndarray) -> None:
    net = tmp_path / "net.safetensors"
    assert run("recover", data, "--width", 3, "-q", "-o", net).exit_code == 0
    turned = write(tmp_path / "t.csv", NAMES[::-1], rows[:, 3::-1].tolist())
    result = run("predict", net, turned, "--json")
    np.testing.assert_allclose(json.loads(result.stdout)["predictions"], rows[:, -1], atol=1e-10)
    # names that are missing are an error, columns without names go by position
    wrong = write(tmp_path / "w.csv", ["a", "b", "c", "d"], rows[:, :4].tolist())
    assert "no column 'room temp'" in run("predict", net, wrong).stderr
    bare = write(tmp_path / "b.csv", None, rows[:, :4].tolist())
    np.testing.assert_allclose(json.loads(run("predict", net, bare, "--json").stdout)["predictions"], rows[:, -1])
    # a format without names says what it does
    assert run("export", net, "--to", "npz").exit_code == 0
    assert "columns taken by position: a, b, c, d" in run("predict", tmp_path / "net.npz", wrong).stderr
    content = bytearray(net.read_bytes())
    at = content.index(b"room temp")
    content[at : at + 4] = b"rome"
    net.write_bytes(content)
    result = run("predict", net, turned)
    assert (result.exit_code, "damaged" in result.stderr) == (2, True)


def test_names_that_nobody_gave_are_not_asked_for(tmp_path: Path, rows: np.ndarray) -> None:
    bare, net, saved = write(tmp_path / "b.csv", None, rows.tolist()), tmp_path / "n.safetensors", tmp_path / "r.json"
    assert run("recover", bare, "--width", 3, "-q", "-o", net, "--save", saved).exit_code == 0
    named = write(tmp_path / "n.csv", NAMES, rows[:, :4].tolist())
    for file in (net, saved):
        result = run("predict", file, named)
        assert (result.exit_code, "by position: room temp" in result.stderr) == (0, True)


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_one_cell_of_text_is_named_and_its_row_can_be_skipped(tmp_path: Path, rows: np.ndarray, delimiter: str) -> None:
    lines: list[list[object]] = rows.tolist()
    lines[6][2] = "oops"
    path = write(tmp_path / "a.csv", [*NAMES, "y"], lines, delimiter)
    result = run("recover", path)
    assert result.exit_code == 2
    for word in ("'Ünit'", "8 has 'oops'", "--skip-bad-rows"):
        assert word in result.stderr
    result = run("recover", path, "--skip-bad-rows", "--width", 3)
    assert result.exit_code == 0, result.output
    assert "left out: 1 rows" in result.stderr


def test_decode_skips_rows_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    lines: list[list[object]] = np.column_stack(
        [X, np.maximum(X + np.array([0.3, -0.2, 0.1]), 0.0).sum(axis=1)]
    ).tolist()
    lines[5][1] = "oops"
    path, options = write(tmp_path / "a.csv", ["a", "b", "c", "y"], lines), ("--bound", 1)
    assert "--skip-bad-rows" in run("decode", path, tmp_path / "w.json", *options).stderr
    assert run("decode", path, tmp_path / "w.json", *options, "--skip-bad-rows").exit_code == 0
    np.testing.assert_allclose(json.loads((tmp_path / "w.json").read_text())["w"], [0.3, -0.2, 0.1], atol=1e-9)


def test_a_failed_recovery_speaks_of_options(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = rl.planted.network(3, 6, rng=0)(X)
    path = write(tmp_path / "a.csv", ["a", "b", "c", "y"], np.column_stack([X, y]).tolist())
    page = tmp_path / "r.html"
    result = run("recover", path, "--width", 1, "--starts", 1, "--report", page, "--json")
    assert result.exit_code == 1
    text = page.read_text(encoding="utf-8")
    section = text[text.index('id="advice"') :]
    section = section[: section.index("</section>")]
    assert "a larger --width" in section
    assert "a larger --width" in json.loads(result.stdout)["advice"]
    for word in ("width=None", "starts=", "Should work", "samples  "):
        assert word not in section
    assert "is determined" not in text
    assert "per standard deviation of the input" in text


def test_a_linear_function_is_called_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    power = X @ [1.0, 2.0] + rng.normal(size=300)
    path = write(tmp_path / "a.csv", ["a", "b", "power"], np.column_stack([X, power]).tolist())
    result = run("recover", path, "--width", 0)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("No hidden unit found: a linear fit explains 8")
    assert "of power (auto" in result.stdout


def test_wrong_headers_are_explained(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,a,y\n1,2,3,4\n", encoding="utf-8")
    assert "the same name 'a'" in run("recover", tmp_path / "a.csv").stderr
    (tmp_path / "b.csv").write_bytes(b"gr\x81\xb6e,y\n" + b"1.0,2.0\n" * 20_000)
    assert "save it as csv, in UTF-8" in run("recover", tmp_path / "b.csv").stderr


@pytest.mark.parametrize("kind", ["onnx", "npz", "json", "safetensors"])
def test_export_and_back(tmp_path: Path, truth: rl.Network, kind: str) -> None:
    truth.save(tmp_path / "a.safetensors")
    out = tmp_path / f"b.{kind}"
    assert run("export", tmp_path / "a.safetensors", "--to", kind, "--out", out).exit_code == 0
    X = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_allclose(rl.Network.load(out)(X), truth(X), atol=1e-12)
    assert run("export", tmp_path / "a.safetensors", "--to", "safetensors").exit_code == 2  # would overwrite itself


def test_export_to_torch(tmp_path: Path, truth: rl.Network) -> None:
    truth.save(tmp_path / "a.safetensors")
    result = run("export", tmp_path / "a.safetensors", "--to", "torch")
    try:
        import torch
    except ImportError:
        assert result.exit_code == 4
        assert "pip install torch" in result.stderr
    else:
        assert result.exit_code == 0
        assert torch.load(tmp_path / "a.pt", weights_only=True)


def test_extract_a_function_and_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("a_box_of_mine.py").write_text(
        "import sys\n"
        "def f(X):\n"
        "    return [max(x[0] + 2 * x[1] + 0.3, 0) - 2 * max(x[1] - x[2] - 0.2, 0) for x in X]\n"
        "if __name__ == '__main__':\n"
        "    for y in f([[float(v) for v in line.split(',')] for line in sys.stdin]): print(repr(y))\n"
    )
    options = ("--dim", 3, "--width", 2, "--json", "-q")
    result = run("extract", "a_box_of_mine:f", *options, "--report", "r.html", "--queries", "q.npz")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["status"] == "exact"
    assert content["queries"] >= len(np.load("q.npz")["X"]) >= 12
    result = run("extract", "--command", f"{sys.executable} a_box_of_mine.py", *options)
    assert json.loads(result.stdout)["status"] == "exact"


def test_paper_lists_and_refuses() -> None:
    result = run("paper")
    assert result.exit_code == 0
    assert "zhong2017" in result.output
    assert run("paper", "zhong1017").exit_code == 2
    assert run("paper", "zhong2017", "--figure", "9z").exit_code == 2


def test_paper_draws_what_was_computed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    source = Path(__file__).parents[2] / "docs" / "figures" / "oymak2018" / "figure2a.json"
    if not source.exists():
        pytest.skip("no computed figure here")
    (tmp_path / "figure2a.json").write_bytes(source.read_bytes())
    result = run("paper", "oymak2018", "--figure", "2a", "--plot-only", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figure2a.png").exists()


# -- stopping -------------------------------------------------------------------------------------------------
