"""The one atomic write: whole or not at all, nothing left behind, and an error that names the file."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import relumine as rl
from relumine import report
from relumine.formats import files
from relumine.formats.files import write_atomically
from relumine.results import NotWritten


def test_old_or_new_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    write_atomically(target, b"old")
    write_atomically(target, b"new" * 100_000)
    assert target.read_bytes() == b"new" * 100_000
    assert list(tmp_path.iterdir()) == [target]


def test_the_usual_permissions(tmp_path: Path) -> None:
    plain, target = tmp_path / "plain", tmp_path / "target"
    plain.write_bytes(b"")
    write_atomically(target, b"")
    assert target.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("call", ["fsync", "write", "replace"])
@pytest.mark.parametrize(
    ("code", "remedy"),
    [(errno.ENOSPC, "free some space"), (errno.EACCES, "allow writing"), (errno.EIO, "name a file elsewhere")],
)
def test_what_the_system_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, remedy: str
) -> None:
    target = tmp_path / "net.json"
    target.write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    if call == "fsync":
        monkeypatch.setattr(os, "fsync", refuse)
    elif call == "replace":
        monkeypatch.setattr(Path, "replace", refuse)
    else:
        opened = Path.open

        def opening(path: Path, *options: object) -> object:
            file = opened(path, *options)  # type: ignore[arg-type]
            file.close()
            refuse()

        monkeypatch.setattr(files, "_OPEN_FILES", tmp_path / "nowhere")  # as on a system without nameless files
        monkeypatch.setattr(Path, "open", opening)
    with pytest.raises(NotWritten, match=re.escape(str(target))) as caught:
        rl.planted.network(2, 1, rng=0).save(target)
    assert os.strerror(code) in str(caught.value)
    assert remedy in str(caught.value)
    monkeypatch.undo()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a", b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_opened_does_not_undo_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.open

    def refuses(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if Path(path) == tmp_path and flags == os.O_RDONLY:  # one may write there, and not list
            raise PermissionError(13, "Permission denied")
        return usual(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", refuses)
    write_atomically(tmp_path / "a.bin", b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["no/where.npz", "file/in.npz", "x" * 300 + ".npz", "nul\0.npz"])
def test_impossible_names(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotWritten, match="cannot be written"):
        write_atomically(tmp_path / name, b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    target, wrong = tmp_path / "a", []
    write_atomically(target, b"0" * 50_000)
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            content = target.read_bytes()
            if len(content) != 50_000 or len(set(content)) != 1:
                wrong.append(content[:10])

    reader = threading.Thread(target=look)
    reader.start()
    for k in range(50):
        write_atomically(target, b"%d" % (k % 10) * 50_000)
    done.set()
    reader.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files without a name are Linux's")
def test_what_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    try:
        os.close(os.open(tmp_path, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        pytest.skip("not on this file system")
    code = """
import sys, time
from pathlib import Path
from relumine.formats import files
from relumine.formats.files import write_atomically

def slowly(file):
    file.write(b"x" * 1000)
    print("half", flush=True)
    time.sleep(60)

write_atomically(Path(sys.argv[1]), slowly)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.kill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("linked", [True, False])
def test_a_file_gets_its_name_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError

    if not linked:
        monkeypatch.setattr(os, "link", refuse)
    for content in (b"old", b"new" * 1000):
        write_atomically(tmp_path / "a", lambda file, content=content: file.write(content))  # type: ignore[misc]
        assert (tmp_path / "a").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kilobytes; only root may make one."""
    if not (sys.platform == "linux" and shutil.which("mount") and os.geteuid() == 0):
        pytest.skip("needs root on Linux")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mount is not permitted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_full_disk_names_the_file_and_keeps_the_old_one(full_disk: Path) -> None:
    net = rl.planted.network(20, 100, rng=0)  # 17 kB
    net.save(full_disk / "net.safetensors")
    before = (full_disk / "net.safetensors").read_bytes()
    larger = rl.planted.network(100, 100, rng=0)
    X, y = rl.planted.sample(rl.planted.network(2, 1, rng=0), 40, rng=1)
    found = rl.recover(X, y, 1, rng=0)
    for write, name in (
        (larger.save, "net.safetensors"),
        (larger.save, "net.npz"),
        (lambda path: report.save(found_with(found, larger), path), "result.json"),
    ):
        with pytest.raises(NotWritten, match=f"{name} cannot be written: No space left on device; free some space"):
            write(full_disk / name)
    assert (full_disk / "net.safetensors").read_bytes() == before
    assert [path.name for path in full_disk.iterdir()] == ["net.safetensors"]


def found_with(found: rl.Recovery, net: rl.Network) -> rl.Recovery:
    return replace(found, network=net, standard_errors=None)
