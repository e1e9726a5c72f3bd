"""A measurement in a process of its own, for its peak memory."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.results import ROOT, Row

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def run_alone(function: str, *arguments: float | str) -> Row:
    """The row that ``module:function`` returns for these arguments, computed by a fresh interpreter."""
    command = [sys.executable, "-c", "from benchmarks.child import main; main()", function, *map(json.dumps, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def main() -> None:
    """The other side: call the function and print what it returns."""
    module, name = sys.argv[1].split(":")
    arguments: list[Any] = [json.loads(text) for text in sys.argv[2:]]
    print(json.dumps(getattr(import_module(module), name)(*arguments)))


def peak_bytes(*, reset: bool = False) -> int:
    """Most memory this process has had since it began, or since the last reset (Linux)."""
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if reset:
        _RESET.write_text("5")
    # not ru_maxrss, which begins with that of the parent
    return 1024 * int(next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
