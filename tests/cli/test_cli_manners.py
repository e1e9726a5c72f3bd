"""Manners of the command line: errors by type, options by name, nothing overwritten, failures kept only if asked."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.cli_runs import run

import relumine as rl
from relumine import formats, report
from relumine.cli import guard
from relumine.cli.outcome import Outputs, finish
from relumine.cli.talk import Talk
from relumine.cli.words import in_options, spoken
from relumine.results import (
    Certificate,
    InvalidInput,
    MissingPackage,
    ModelFileError,
    NotWritten,
    Recovery,
    RecoveryFailed,
    Status,
)

COMMANDS = ("demo", "recover", "extract", "report", "predict", "export", "advise", "decode", "paper")


@pytest.fixture
def result() -> Recovery:
    X, y = rl.planted.sample(rl.planted.network(2, 1, rng=0), 40, rng=1)
    return rl.recover(X, y, 1, rng=0)


# -- errors ---------------------------------------------------------------------------------------------------


def test_exit_codes_follow_the_type(result: Recovery) -> None:
    kinds: list[tuple[Exception, int]] = [
        (RecoveryFailed(result), 1),
        (InvalidInput("pip install is only a word here"), 2),
        (ModelFileError("x"), 2),
        (FileNotFoundError(2, "No such file", "a.csv"), 2),
        (MemoryError(), 2),
        (MissingPackage("plots need matplotlib", "matplotlib"), 4),
        (ModuleNotFoundError("No module named 'pyarrow'"), 4),
        (ZeroDivisionError("x"), 70),
        (NotWritten("a.json cannot be written"), 74),
    ]
    assert [guard._explain(error)[0] for error, _ in kinds] == [code for _, code in kinds]
    assert "a fault of relumine" in guard._explain(ZeroDivisionError("x"))[1]
    assert guard._explain(kinds[3][0])[1] == "a.csv: No such file"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvalidInput("width must be ≥ 0, got -1", argument="width"), "--width must be ≥ 0, got -1"),
        (InvalidInput("rng must be ≥ 0", argument="rng"), "--seed must be ≥ 0"),
        (
            InvalidInput("x is NaN in row 3", argument="X", remedy="fill it or use bad_rows='skip'"),
            "x is NaN in row 3; fill it or use --skip-bad-rows",
        ),
        (
            InvalidInput("method 'zhong' is not for tanh", argument="activation", remedy="use method='auto'"),
            "method 'zhong' is not for tanh; use --method auto",
        ),
        (
            InvalidInput("no such target", argument="target", remedy="pass y"),
            "no such target; name the output with --target NAME",
        ),
        (InvalidInput("the argument of nobody", argument="zebra", remedy="stop"), "the argument of nobody; stop"),
        (InvalidInput("plain words"), "plain words"),
    ],
)
def test_errors_speak_of_options(error: InvalidInput, words: str) -> None:
    assert in_options(error) == words


def test_only_calls_are_translated() -> None:
    same = "at a width of 3, method zhong; f(x)=2, foo='bar', x=1"
    assert spoken(same) == same
    assert spoken("pass width=None or resume=True") == "pass no --width or --resume"


def test_an_option_out_of_range_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.zeros((9, 2)), y=np.zeros(9))
    result = run("recover", tmp_path / "a.npz", "--activation", "sigmoyd")
    assert result.exit_code == 2
    assert "sigmoyd" in result.stderr


@pytest.mark.parametrize("body", ["1 / 0", "raise SystemExit(0)", "def f(:", "import no_such_module_at_all"])
def test_a_module_that_fails_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"a_box_that_fails_{abs(hash(body)) % 10**8}"
    Path(f"{name}.py").write_text(body)
    result = run("extract", f"{name}:f", "--dim", 2)
    assert result.exit_code == 2, result.output
    assert f"{name} cannot be imported" in result.stderr
    assert "fault of relumine" not in result.stderr


def test_a_full_disk_has_its_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rl.planted.network(2, 1, rng=0).save(tmp_path / "net.safetensors")

    def refuse(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    result = run("export", tmp_path / "net.safetensors", "--to", "npz")
    assert result.exit_code == 74
    assert f"{tmp_path / 'net.npz'} cannot be written: No space left on device" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["net.safetensors"]


# -- options ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_short_options(command: str) -> None:
    result = run(command, "-h")
    assert result.exit_code == 0
    assert result.output == run(command, "--help").output
    assert "-o, --out" in result.output


def test_advice_goes_to_a_file_too(tmp_path: Path) -> None:
    words, numbers = tmp_path / "advice.txt", tmp_path / "advice.json"
    printed = run("advise", "--dim", 10, "--width", 20, "-o", words)
    assert printed.exit_code == 0
    assert words.read_text(encoding="utf-8").splitlines()[0] in " ".join(printed.stdout.split())
    assert run("advise", "--dim", 10, "--width", 20, "-o", numbers).exit_code == 0
    assert json.loads(numbers.read_text(encoding="utf-8"))["verdict"] == "known"
    assert run("advise", "--dim", 10, "--width", 20, "-o", tmp_path / "advice.doc").exit_code == 2


def test_exit_codes_are_in_the_help() -> None:
    assert "74 a file could not be written" in " ".join(run("-h").output.split())


def test_decode_takes_its_output_either_way(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    np.savez(tmp_path / "a.npz", X=X, y=np.maximum(X + np.array([0.3, -0.2]), 0.0).sum(axis=1))
    for place in (("w.csv",), ("-o", "v.csv")):
        words = (*place[:-1], tmp_path / place[-1])
        assert run("decode", tmp_path / "a.npz", *words, "--bound", 1, "-q").exit_code == 0
    assert (tmp_path / "w.csv").read_text() == (tmp_path / "v.csv").read_text()
    assert run("decode", tmp_path / "a.npz", "--bound", 1).exit_code == 2
    assert run("decode", tmp_path / "a.npz", tmp_path / "x.csv", "-o", tmp_path / "y.csv", "--bound", 1).exit_code == 2


def test_checkpoints_as_often_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rl.planted.sample(rl.planted.network(3, 2, rng=0), 80, rng=1)
    np.savez(tmp_path / "a.npz", X=X, y=y)
    given: dict[str, object] = {}
    genuine = rl.recover

    def watched(*arguments: object, **options: object) -> object:
        given.update(options)
        return genuine(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(rl, "recover", watched)
    words = ("--checkpoint", tmp_path / "c", "--checkpoint-every", 0.5)
    assert run("recover", tmp_path / "a.npz", "--width", 2, "-q", *words).exit_code == 0
    assert given["checkpoint_every"] == 0.5
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


# -- files ------------------------------------------------------------------------------------------------------


def test_nothing_that_is_read_is_overwritten(tmp_path: Path) -> None:
    net, rows = tmp_path / "net.safetensors", tmp_path / "rows.csv"
    rl.planted.network(2, 1, rng=0).save(net)
    rows.write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "link.csv").symlink_to(rows)
    content = rows.read_bytes(), net.read_bytes()
    for words in (
        ("predict", net, rows, "-o", rows),
        ("predict", net, rows, "-o", tmp_path / "link.csv"),
        ("predict", net, tmp_path / "*.csv", "-o", rows),
        ("export", net, "--to", "safetensors"),
        ("recover", rows, "--out", tmp_path / "a.json", "--save", tmp_path / "a.json"),
        ("decode", rows, rows, "--bound", 1),
    ):
        result = run(*words)
        assert (result.exit_code, "would overwrite" in result.stderr) == (2, True), words
    assert (rows.read_bytes(), net.read_bytes()) == content


def failed(result: Recovery) -> Recovery:
    return replace(result, status=Status.NOT_RECOVERED, message="It is not.")


@pytest.mark.parametrize("suffix", ["safetensors", "onnx", "npz", "json"])
def test_a_failure_is_kept_only_by_force_and_says_so(
    tmp_path: Path, result: Recovery, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"net.{suffix}"
    for force in (False, True):
        with pytest.raises(Exception) as ended:  # noqa: PT011 - typer's own
            finish(failed(result), Talk(), Outputs(out, force=force))
        assert ended.value.exit_code == 1  # type: ignore[attr-defined]
        assert out.exists() == force
    assert "--force" in capsys.readouterr().err
    assert formats.read_labels(out).status == "not recovered"
    np.testing.assert_array_equal(rl.Network.load(out).W, result.network.W)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    told = run("predict", out, tmp_path / "rows.csv")
    assert told.exit_code == 0
    assert "was not recovered (status: not recovered)" in told.stderr
    other = "npz" if suffix != "npz" else "json"
    assert run("export", out, "--to", other).exit_code == 0
    assert formats.read_labels(tmp_path / f"net.{other}").status == "not recovered"


def test_a_recovered_network_says_that(tmp_path: Path, result: Recovery) -> None:
    finish(result, Talk(quiet=True), Outputs(tmp_path / "net.safetensors"), names=["u", "v"])
    labels = formats.read_labels(tmp_path / "net.safetensors")
    assert labels == (("u", "v"), "exact", "")
    (tmp_path / "rows.csv").write_text("u,v\n1,2\n3,4\n")
    assert "warning" not in run("predict", tmp_path / "net.safetensors", tmp_path / "rows.csv").stderr


# -- words ------------------------------------------------------------------------------------------------------


def test_terminal_and_report_say_the_same(tmp_path: Path, result: Recovery, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = Certificate(1e-15, 20, confirmed=1078, unseen=3 / 1078)
    finish(replace(result, certificate=certificate), Talk(), Outputs(page=tmp_path / "r.html"))
    terminal, page = capsys.readouterr().out, (tmp_path / "r.html").read_text(encoding="utf-8")
    evidence = "confirmed by 1,078 rows; at most 0.28 % of inputs like these may still differ (95 %)"
    for words in (evidence, result.headline.removesuffix(".")):
        assert words in terminal
        assert words in page
    assert "of the spread of y" in terminal
    assert "of the spread of y" in page


def test_what_nothing_confirms_is_not_mentioned(result: Recovery) -> None:
    assert Certificate(1e-15, 20).evidence == ""
    assert Certificate(1e-15, 20, confirmed=2, unseen=1.5).evidence == "confirmed by 2 rows"
    assert "confirm" not in str(replace(result, certificate=Certificate(float("nan"), 0)))


def test_parameters_are_counted_one_way() -> None:
    net = rl.planted.network(10, 20, rng=0)
    assert net.parameters == 220
    assert "220 parameters" in run("demo", "--samples", 3).output
    result = replace(report.from_dict(report.as_dict(recovered(net))), standard_errors=None)
    assert "10\u00a0inputs, 220\u00a0parameters" in report.render(result)
    assert rl.Network(net.W, net.b, net.a, "tanh").parameters == 240
    assert rl.Network(net.W, net.b, net.a, c=1.0).parameters == 221
    assert rl.Network(net.W, net.b, np.ones((3, 20)), v=np.ones((3, 10))).parameters == 20 * 13 + 33


def recovered(net: rl.Network) -> Recovery:
    return Recovery(net, Status.EXACT, "", Certificate(1e-15, 20))


def test_no_advice_contradicts_its_message(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).normal(size=(12, 3)), y=np.arange(12.0) ** 2)
    result = run("recover", tmp_path / "a.npz", "--width", 5, "--json")
    assert result.exit_code == 1
    content = json.loads(result.stdout)
    assert content["status"] == "under-determined"
    assert "none is returned" not in content["message"] + content["advice"]
    assert "--width" in content["advice"]
    assert "width=" not in content["message"] + content["advice"]


# -- notebooks and the public surface ---------------------------------------------------------------------------


def test_notebooks_show_results_safely(result: Recovery) -> None:
    evil = "<script>alert(1)</script>"
    named = replace(result, message=evil, origin=replace(result.origin, features=(evil, "b"), advice=(evil,)))
    page = named._repr_html_()
    assert "Recovered exactly" in page
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3
    asked = rl.extract(rl.planted.network(2, 1, rng=0), dim=2, rng=0)._repr_html_()
    assert "rows asked" in asked
    large = rl.planted.network(300, 200, rng=0)._repr_html_()
    assert "200 ReLU units behind 300 inputs" in large
    assert "Shown are 8 of 200 units" in large
    assert len(large) < 20_000
    assert "no hidden units" in rl.Network(np.zeros((0, 2)), [], [], v=[1.0, 2.0])._repr_html_()
    several = rl.planted.network(3, 2, outputs=2, rng=0)._repr_html_()
    assert "2 ReLU units between 3 inputs and 2 outputs" in several


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    assert sorted(dir(rl)) == sorted(rl.__all__)
    assert all(getattr(rl, name) is not None for name in rl.__all__ if name != "estimators")
