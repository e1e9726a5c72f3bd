"""A run that was stopped, even killed, goes on where it was and ends with the same network."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from itertools import pairwise

import numpy as np
import pytest
from safetensors import safe_open

import relumine as rl
from relumine.data.sources import as_samples, open_source
from relumine.fit.journal import Journal, digest


@pytest.fixture(scope="module")
def planted():
    truth = rl.planted.network(d=6, m=6, rng=0)
    return truth, *rl.planted.sample(truth, n=500, noise=0.02, rng=1)


class Stop(Exception):
    pass


def stopper(after: int):
    steps = iter(range(after))

    def progress(_: object) -> None:
        if next(steps, None) is None:
            raise Stop

    return progress


@pytest.mark.parametrize("after", [0, 1, 17, 40, 60])
def test_a_run_stopped_at_any_step_ends_with_the_same_network(after: int, planted, tmp_path) -> None:
    _, X, y = planted
    undisturbed = rl.recover(X, y, width=6, rng=0)
    path, options = tmp_path / "state", {"width": 6, "rng": 0, "checkpoint_every": 0.0}
    with pytest.raises(Stop):
        rl.recover(X, y, checkpoint=path, progress=stopper(after), **options)
    assert path.exists()
    steps = []
    found = rl.recover(X, y, checkpoint=path, progress=steps.append, **options)
    np.testing.assert_array_equal(found.network.W, undisturbed.network.W)
    np.testing.assert_array_equal(found.network.a, undisturbed.network.a)
    assert found.status is undisturbed.status
    everything = []
    rl.recover(X, y, width=6, rng=0, progress=everything.append)
    assert len(steps) == len(everything) - after - 1, "steps in the journal are not taken again"
    assert not path.exists(), "removed when all is done"


def test_it_can_be_stopped_again_and_again(planted, tmp_path) -> None:
    _, X, y = planted
    undisturbed = rl.recover(X, y, width=6, rng=0)
    path = tmp_path / "state"
    for _ in range(100):
        try:
            found = rl.recover(X, y, width=6, rng=0, checkpoint=path, checkpoint_every=0.0, progress=stopper(9))
        except Stop:
            continue
        break
    np.testing.assert_array_equal(found.network.W, undisturbed.network.W)


def test_the_seed_comes_from_the_journal(planted, tmp_path) -> None:
    """Without a seed a run is a new one each time; going on is not a new run."""
    _, X, y = planted
    path = tmp_path / "state"
    with pytest.raises(Stop):
        rl.recover(X, y, width=6, checkpoint=path, checkpoint_every=0.0, progress=stopper(30))
    with safe_open(path, framework="numpy") as file:
        start = file.get_tensor("0.start")
    copy = path.read_bytes()
    first = rl.recover(X, y, width=6, checkpoint=path)
    path.write_bytes(copy)
    second = rl.recover(X, y, width=6, checkpoint=path)
    np.testing.assert_array_equal(first.network.W, second.network.W)
    assert start.shape == (9, 7)


def test_another_run_is_refused(planted, tmp_path) -> None:
    _, X, y = planted
    path = tmp_path / "state"
    with pytest.raises(Stop):
        rl.recover(X, y, width=6, rng=0, checkpoint=path, checkpoint_every=0.0, progress=stopper(3))
    with pytest.raises(rl.InvalidInput, match="width"):
        rl.recover(X, y, width=5, rng=0, checkpoint=path)
    with pytest.raises(rl.InvalidInput, match="data"):
        rl.recover(X, y + 1.0, width=6, rng=0, checkpoint=path)


@pytest.mark.parametrize("content", [b"", b"junk", b"\xff" * 64])
def test_a_damaged_journal_is_said(content: bytes, planted, tmp_path) -> None:
    _, X, y = planted
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(rl.InvalidInput, match="remove it"):
        rl.recover(X, y, width=6, rng=0, checkpoint=path)


def test_a_half_written_file_is_never_read(planted, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer dies between writing and renaming: the old file stands."""
    _, X, y = planted
    path = tmp_path / "state"
    with pytest.raises(Stop):
        rl.recover(X, y, width=6, rng=0, checkpoint=path, checkpoint_every=0.0, progress=stopper(20))
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            rl.recover(X, y, width=6, rng=0, checkpoint=path, checkpoint_every=0.0)
    assert path.read_bytes() == before
    found = rl.recover(X, y, width=6, rng=0, checkpoint=path)
    np.testing.assert_array_equal(found.network.W, rl.recover(X, y, width=6, rng=0).network.W)


def test_a_folder_is_no_journal(tmp_path) -> None:
    with pytest.raises(rl.InvalidInput, match="is a folder; name a file in it"):
        Journal.open(tmp_path, {}, {}, 30.0)


def test_no_folder_no_journal(tmp_path) -> None:
    with pytest.raises(rl.InvalidInput, match="no folder"):
        Journal.open(tmp_path / "nowhere" / "state", {}, {}, 30.0)


RUN = """
    import numpy as np, sys, time, relumine as rl
    truth = rl.planted.network(d=8, m=8, rng=0)
    X, y = rl.planted.sample(truth, n=4000, noise=0.05, rng=1)
    slow = float(sys.argv[2])
    found = rl.recover(
        X, y, width=8, rng=0, checkpoint=sys.argv[1] if sys.argv[1] != "-" else None, checkpoint_every=0.0,
        progress=lambda _: time.sleep(slow),
    )
    print(found.network.W.tobytes().hex())
"""


def killed_and_resumed(tmp_path, moments: list[float]) -> int:
    """SIGKILL after each of the given seconds; how many kills hit a run that was still going."""
    script = tmp_path / "run.py"
    script.write_text(textwrap.dedent(RUN))
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    reference = subprocess.run(
        [sys.executable, script, "-", "0"], capture_output=True, check=True, env=environment, timeout=300
    ).stdout
    hits = 0
    for moment in moments:
        path = tmp_path / "state"
        path.unlink(missing_ok=True)
        run = subprocess.Popen([sys.executable, script, path, "0.01"], stdout=subprocess.DEVNULL, env=environment)
        deadline = time.monotonic() + 60.0
        while not path.exists() and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moment)
        hits += run.poll() is None
        run.send_signal(signal.SIGKILL)
        run.wait()
        again = subprocess.run(
            [sys.executable, script, path, "0"], capture_output=True, check=True, env=environment, timeout=300
        )
        assert again.stdout == reference
    return hits


def test_killed_once(tmp_path) -> None:
    assert killed_and_resumed(tmp_path, [0.3]) == 1


@pytest.mark.slow
def test_killed_at_ten_random_moments(tmp_path) -> None:
    moments = np.random.default_rng(0).uniform(0.0, 3.0, size=10).tolist()
    assert killed_and_resumed(tmp_path, moments) >= 5


def test_stopped_at_the_last_step_of_a_stage(planted, tmp_path) -> None:
    """Where the plateau is noticed: a resumed run must notice it, too."""
    _, X, y = planted
    steps = []
    undisturbed = rl.recover(X, y, width=6, rng=0, progress=steps.append)
    last = [k for k, (one, next_) in enumerate(pairwise(steps)) if one.stage != next_.stage]
    assert last
    for k in last:
        path = tmp_path / f"state{k}"
        with pytest.raises(Stop):
            rl.recover(X, y, width=6, rng=0, checkpoint=path, checkpoint_every=0.0, progress=stopper(k))
        found = rl.recover(X, y, width=6, rng=0, checkpoint=path)
        np.testing.assert_array_equal(found.network.W, undisturbed.network.W)


def test_any_generator_and_no_other(planted, tmp_path) -> None:
    _, X, y = planted
    path, options = tmp_path / "state", {"width": 6, "checkpoint_every": 0.0}
    with pytest.raises(Stop):
        rl.recover(X, y, rng=np.random.Generator(np.random.MT19937(0)), checkpoint=path, progress=stopper(5), **options)
    with pytest.raises(rl.InvalidInput, match="generator"):
        rl.recover(X, y, rng=0, checkpoint=path, **options)
    found = rl.recover(X, y, rng=np.random.Generator(np.random.MT19937(1)), checkpoint=path, **options)
    again = rl.recover(X, y, width=6, rng=np.random.Generator(np.random.MT19937(0)))
    np.testing.assert_array_equal(found.network.W, again.network.W)


@pytest.mark.parametrize(
    "options", [{"checkpoint": 5}, {"checkpoint": "/proc/x"}, {"checkpoint": "x", "checkpoint_every": "y"}]
)
def test_what_cannot_be_a_checkpoint(options: dict, planted) -> None:
    _, X, y = planted
    with pytest.raises(rl.InvalidInput, match="checkpoint"):
        rl.recover(X, y, width=6, **options)


@pytest.mark.parametrize("change", ["a late row of X", "a late row of y", "a weight", "the weights gone"])
def test_one_other_number_is_another_run(change: str, planted, tmp_path) -> None:
    """Not only among the first rows."""
    _, X, y = planted
    weight = np.ones(len(y))
    path, options = tmp_path / "state", {"width": 6, "rng": 0, "checkpoint": tmp_path / "state"}
    with pytest.raises(Stop):
        rl.recover(X, y, sample_weight=weight, checkpoint_every=0.0, progress=stopper(3), **options)
    before = path.read_bytes()
    X2, y2, weight2 = X.copy(), y.copy(), weight.copy()
    if change == "a late row of X":
        X2[400, 3] = np.nextafter(X2[400, 3], 9.0)
    elif change == "a late row of y":
        y2[499] += 1e-12
    elif change == "a weight":
        weight2[450] = 2.0
    with pytest.raises(rl.InvalidInput, match="data differ") as caught:
        rl.recover(X2, y2, sample_weight=None if change == "the weights gone" else weight2, **options)
    assert caught.value.argument == "checkpoint"
    assert path.read_bytes() == before


def test_the_digest_is_of_the_rows_and_not_of_their_chunks(planted) -> None:
    _, X, y = planted
    digests = {digest(open_source([(X[:k], y[:k]), (X[k:], y[k:])])) for k in (1, 100, 499)}
    assert digests == {digest(open_source(X, y))} == {digest(as_samples(X, y))}
    assert digest(as_samples(X, y[:, None])) != digest(as_samples(X, y))
    assert digest(as_samples(X[::-1], y[::-1])) != digest(as_samples(X, y))


def test_finished_minimisations_are_kept_at_once(planted, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the first interval is over; here whatever a write costs, as a slow disk is no part of this."""
    monkeypatch.setattr("relumine.fit.journal._COST", 0.0)
    _, X, y = planted
    path = tmp_path / "state"
    steps = []
    rl.recover(X, y, width=6, rng=0, progress=steps.append)
    first = sum(step.stage == "start 1" for step in steps)
    with pytest.raises(Stop):
        rl.recover(X, y, width=6, rng=0, checkpoint=path, checkpoint_every=1e9, progress=stopper(first + 1))
    with safe_open(path, framework="numpy") as file:
        assert "0.U" in file.keys()  # noqa: SIM118
    again = []
    rl.recover(X, y, width=6, rng=0, checkpoint=path, progress=again.append)
    assert again[0].stage != "start 1", "the first start is not taken again"


def test_a_failed_write_leaves_nothing_behind(planted, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, X, y = planted

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("relumine.formats.files.os.fsync", full)
    with pytest.raises(rl.InvalidInput, match=r"state cannot be written: .*No space left"):
        rl.recover(X, y, width=6, rng=0, checkpoint=tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


def test_a_timeout_is_gone_on_from(planted, tmp_path) -> None:
    _, X, y = planted
    undisturbed = rl.recover(X, y, width=6, rng=0)
    path = tmp_path / "state"

    def slow(_: object) -> None:
        time.sleep(0.02)

    stopped = rl.recover(X, y, width=6, rng=0, checkpoint=path, seconds=0.3, progress=slow)
    assert stopped.status is rl.Status.INTERRUPTED
    found = rl.recover(X, y, width=6, rng=0, checkpoint=path)
    np.testing.assert_array_equal(found.network.W, undisturbed.network.W)
