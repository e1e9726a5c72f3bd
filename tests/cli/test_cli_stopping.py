"""Progress, time limits, interrupts, and errors on the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.cli.cli_runs import run

import relumine as rl
from relumine.cli.recover import _expectation
from relumine.cli.watch import Watch
from relumine.results import Progress


def test_a_log_holds_the_last_step_of_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with Watch() as watch:
        for stage, steps in (("start 1", 3), ("start 2", 2)):
            for k in range(steps):
                watch(Progress(stage, k + 1, 10.0**-k, 3))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:4] for line in lines] == [["start", "1", "step", "3"], ["start", "2", "step", "2"]]


def test_the_time_left_is_told() -> None:
    step = Progress("start 1", 4, 0.5, 3, 2.0)
    watch = Watch(quiet=True)
    assert "left" not in watch.line(step)
    watch.expected = lambda units: 100.0 * units
    assert "about 5 min left" in watch.line(step)
    watch.expected = lambda units: 0.0
    assert "left" not in watch.line(step), "the estimate is used up"
    watch.limit = 600.0
    assert "at most 10 min left" in watch.line(step), "then the usual limit is told"
    assert "at most" in Watch(10.0).line(step)


def test_the_time_expected_grows_with_units_and_rows() -> None:
    class Rows:
        d, n = 50, 10_000

    few, many = (_expectation(Rows(), None, "relu")(units) for units in (10, 40))  # type: ignore[arg-type]
    Rows.n = 1000
    assert _expectation(Rows(), 10, "relu")(99) < few < many  # type: ignore[arg-type]


def test_a_box_is_told_by_its_rows_and_not_by_a_loss_that_it_has_not() -> None:
    with Watch(None, quiet=True) as watch:
        line = watch.line(Progress("gradients of 5 pieces", 1, float("nan"), 4, queries=1200, expected=3000))
        assert "4 units  1,200 of about 3,000 rows asked" in line
        assert "loss" not in line
        assert "12 rows asked" in watch.line(Progress("polish", 2, float("nan"), queries=12))


def test_first_interrupt_stops_gently_second_aborts() -> None:
    before, step = signal.getsignal(signal.SIGINT), Progress("start 1", 1, 0.5, 3)  # ignored in a background job
    with Watch(quiet=True) as watch:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)  # nothing to keep yet
        watch(step)
        signal.raise_signal(signal.SIGINT)
        assert watch.stopping
        with pytest.raises(KeyboardInterrupt):
            watch(step)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL  # the next one ends the process
    assert signal.getsignal(signal.SIGINT) is before


def test_time_limit_keeps_the_best_so_far(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12))
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=np.sin(3.0 * X).sum(axis=1))
    out = tmp_path / "net.safetensors"
    result = run("recover", path, "--width", 25, "--seconds", 0.5, "--starts", 1000, "--out", out)
    assert result.exit_code == 3
    assert "best network so far" in result.stderr
    assert rl.Network.load(out).d == 12


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_control_c_leaves_the_best_network_on_disk(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    np.savez(tmp_path / "a.npz", X=X, y=np.sin(3.0 * X).sum(axis=1))
    command = [sys.executable, "-m", "relumine.cli", "recover", "a.npz", "--width", "12", "--starts", "9999"]
    with subprocess.Popen(
        [*command, "--out", "net.npz", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "start 1" in line:
                break
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 3, err
    assert json.loads(out)["status"] == "interrupted"
    assert rl.Network.load(tmp_path / "net.npz").d == 12
    assert "Traceback" not in err


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = run("recover", tmp_path / "nowhere.csv", "--debug")
    assert isinstance(result.exception, rl.InvalidInput)
    assert isinstance(run("recover", tmp_path / "nowhere.csv").exception, SystemExit)


def test_errors_as_json(tmp_path: Path) -> None:
    result = run("recover", tmp_path / "nowhere.csv", "--json")
    content = json.loads(result.stdout)
    assert content["exit_code"] == result.exit_code == 2
    assert "no such file" in content["error"]


def test_completion_knows_values() -> None:
    command = [sys.executable, "-c", "from relumine.cli import app; app(prog_name='relumine')"]
    words = {"COMP_WORDS": "relumine recover a.csv --activation squ", "COMP_CWORD": "4"}
    environment = {**os.environ, "_RELUMINE_COMPLETE": "complete_bash", **words}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert "squared_relu" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="sends SIGKILL")
def test_killed_at_ten_random_moments(tmp_path: Path) -> None:
    """Whenever it is killed, the same command goes on: the same network, and nothing else is left in the folder."""
    X, y = rl.planted.sample(rl.planted.network(10, 10, rng=0), 8000, noise=0.05, rng=1)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    command = [sys.executable, "-m", "relumine", "recover", "rows.npz", "--width", "10", "--quiet"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([*command, "--out", "whole.npz"], cwd=tmp_path, check=True, env=environment, timeout=600)
    hits, state = 0, tmp_path / "state"
    for moment in np.random.default_rng(0).uniform(0.0, 2.0, size=10):
        words = [*command, "--out", "net.npz", "--checkpoint", "state", "--checkpoint-every", "0"]
        with subprocess.Popen(words, cwd=tmp_path, env=environment) as process:
            deadline = time.monotonic() + 120.0
            while not state.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(moment)
            hits += process.poll() is None
            process.kill()
        subprocess.run(words, cwd=tmp_path, check=True, env=environment, timeout=600)
        with np.load(tmp_path / "net.npz") as found, np.load(tmp_path / "whole.npz") as whole:
            for key in "Wba":
                np.testing.assert_array_equal(found[key], whole[key])
        assert {path.name for path in tmp_path.iterdir()} == {"rows.npz", "whole.npz", "net.npz"}
        (tmp_path / "net.npz").unlink()
    assert hits >= 5
