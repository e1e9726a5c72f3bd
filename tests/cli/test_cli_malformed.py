"""Two hundred malformed command lines: a word, a code that is not 0, no traceback, no hang, bounded memory."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import relumine as rl
from relumine.cli import app

COUNT = 200
HUGE = (
    "99999999999999999999",
    "-1",
    "1e400",
    "nan",
    "inf",
    "1.5.2",
    "",
    "0x10",
    "½",
    "10**9",
    "NULL",
    "--",
    "2147483648",
)
BAD_NAMES = ("no such.csv", "nöwhere.parquet", "a\x00b.csv", "", ".", "/", "x" * 5000 + ".csv", "*.csv.nope", "-")
OPTIONS = ("--wdith", "--Target", "-z", "--no-such-option", "--json=maybe", "--out", "--seed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that are wrong in one way each, and a few that are right."""
    here = tmp_path_factory.mktemp("malformed")
    chance = random.Random(7)
    good = np.column_stack(rl.planted.sample(rl.planted.network(2, 1, rng=0), 40, rng=1))
    lines = ["a,b,y", *(",".join(repr(v) for v in row) for row in good.tolist())]

    def put(name: str, content: str | bytes) -> None:
        (here / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    junk = bytes(chance.randrange(256) for _ in range(5000))
    for ending in ("csv", "parquet", "npz", "npy", "arrow", "safetensors", "onnx", "json", "txt", "csv.gz", "feather"):
        put(f"junk.{ending}", junk)
        put(f"empty.{ending}", b"")
        (here / f"folder.{ending}").mkdir()
    put("header.csv", "a,b,y\n")
    put("ragged.csv", "\n".join([*lines[:9], "1,2", *lines[9:]]))
    put("long.csv", "\n".join([*lines[:9], "1,2,3,4", *lines[9:]]))
    put("nan.csv", "\n".join([*lines[:9], "nan,1,2", *lines[9:]]))
    put("inf.csv", "\n".join([*lines[:9], "inf,1,2", *lines[9:]]))
    put("huge.csv", "\n".join([*lines[:9], "1e300,1,2", *lines[9:]]))
    put("text.csv", "\n".join([*lines[:9], "1,zwölf,2", *lines[9:]]))
    put("twice.csv", "\n".join(["a,a,y", *lines[1:]]))
    put("one column.csv", "y\n1\n2\n3\n")
    put("one row.csv", "a,b,y\n1,2,3\n")
    put("constant.csv", "a,b,y\n" + "1,2,3\n" * 30)
    put("null.csv", "a,b,y\n1,\x00,3\n" * 4)
    put("utf16.csv", "\n".join(lines).encode("utf-16")[:-1])  # cut in the middle of a letter
    put("letters.csv", b"gr\x81\xb6e,b,y\n1,2,3\n4,5,6\n")  # of no encoding that is read
    put("latin.csv", "größe,b,y\n1,2,3\n4,5,6\n".encode("latin-1"))
    put("quote.csv", 'a,b,y\n1,"2,3\n4,5,6\n')
    put("wide.csv", ",".join("1" * 20 for _ in range(20000)) + "\n")
    put("deep.json", b"[" * 100_000)
    put("other.json", b'{"format": "relumine.result", "version": 1}')
    put("lie.json", b'{"format": "relumine.result", "version": 1, "network": {"W": [["x"]], "d": 1e99}}')
    np.save(here / "objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    np.save(here / "cube.npy", np.zeros((2, 2, 2)))
    np.savez(here / "names.npz", A=good, B=good)
    rl.planted.network(7, 2, rng=0).save(here / "net.safetensors")
    put("good.csv", "\n".join(lines))
    return here


def lines(folder: Path) -> Iterator[list[str]]:
    """The command lines, always the same."""
    chance = random.Random(2024)
    files = sorted(p.name for p in folder.iterdir() if not p.name.startswith(("good", "net")))
    data = [f for f in files if not f.endswith((".safetensors", ".onnx", ".json"))]
    models = [f for f in files if f.endswith((".safetensors", ".onnx", ".json"))]
    for name in data:  # every bad file at least once
        yield ["recover", name]
    for name in models:
        yield [
            chance.choice(["predict", "export"]),
            name,
            *(["good.csv"] if chance.random() < 0.5 else ["--to", "onnx"]),
        ]
    while True:
        kind = chance.randrange(12)
        value, wrong, file = chance.choice(HUGE), chance.choice(BAD_NAMES), chance.choice(data)
        if kind == 0:
            yield ["recover", wrong, *chance.choice([[], ["--json"], ["-q"], ["--target", "y"]])]
        elif kind == 1:
            option = chance.choice(
                ["--width", "--seed", "--starts", "--seconds", "--activation", "--method", "--images"]
            )
            yield ["recover", "good.csv", option, chance.choice([v for v in HUGE if v not in ("2147483648",)])]
        elif kind == 2:
            yield ["recover", "good.csv", chance.choice(["--target", "--features", "--ignore"]), "no such colümn"]
        elif kind == 3:
            out = chance.choice(["no/such/folder.safetensors", "folder.json", "net.exe", "", "a.safetensors/b.npz"])
            yield ["recover", "good.csv", chance.choice(["--out", "--report", "--save"]), out]
        elif kind == 4:
            yield [
                chance.choice(["recover", "demo", "decode", "predict", "export", "paper"]),
                chance.choice(OPTIONS),
                value,
            ]
        elif kind == 5:
            yield ["decode", file, "w.csv", "--bound", chance.choice(["-1", "x", "nan", value])]
        elif kind == 6:
            yield ["predict", "net.safetensors", file]
        elif kind == 7:
            yield ["export", chance.choice([*models, wrong]), "--to", chance.choice(["onnx", "torch", "pickle", value])]
        elif kind == 8:
            yield [
                "demo",
                chance.choice(["--dim", "--width", "--samples", "--noise", "--seed"]),
                chance.choice(HUGE[:9]),
            ]
        elif kind == 9:
            spec = chance.choice(
                ["os:nope", "nö:f", "junk.onnx", "empty.onnx", "no.onnx", "good.csv", wrong, "os.path:sep"]
            )
            yield ["extract", spec, "--dim", chance.choice(["2", "-3", "x"]), "--budget", "50"]
        elif kind == 10:
            yield ["report", chance.choice([*models, *data, wrong]), "-o", "page.html"]
        else:
            yield [chance.choice(["", "recovr", "--nope", "paper", "\x00"]), chance.choice(["zhong1999", value, "☃"])]


def test_two_hundred_malformed_command_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    command = typer.main.get_command(app)  # built once: building takes longer than most of these lines
    monkeypatch.setattr("typer.testing._get_command", lambda app: command, raising=False)
    runner, before, wrong = CliRunner(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
    for _, words in zip(range(COUNT), lines(folder), strict=False):
        result = runner.invoke(app, words)
        fine = result.exit_code in (1, 2, 4) and "Traceback" not in result.output and len(result.output) < 20_000
        if not fine or not result.output.strip() or not isinstance(result.exception, SystemExit):
            wrong.append((words, result.exit_code, repr(result.exception), result.output[-300:]))
    assert not wrong
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 700_000  # kilobytes


@pytest.mark.parametrize(
    "words",
    [
        ["recover", "junk.parquet"],
        ["recover", "wide.csv"],
        ["predict", "net.safetensors", "/dev/zero"],
        ["report", "deep.json"],
    ],
    ids=lambda words: words[-1],
)
def test_real_processes_with_bounded_memory(folder: Path, words: list[str]) -> None:
    limited = ["sh", "-c", 'ulimit -d 1048576; exec "$@"', "sh"]  # kilobytes
    done = subprocess.run(
        [*limited, sys.executable, "-m", "relumine.cli", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert any(line.startswith("relumine: ") for line in done.stderr.splitlines())
