"""Results on disk: one JSON file a measure, with machine, versions and seeds; rows are saved as they finish."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import gemm_speed

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "tensorly", "pyriemann", "relumine")
Row = dict[str, Any]


class Store:
    """The file of one measure: ``rows`` by key. A run that stopped goes on where it was.

    A file written with other settings (sizes, seeds) is begun anew.
    """

    def __init__(self, path: Path, measure: str, settings: Row, *, again: bool = False) -> None:
        self.path, self.measure, self.settings = path, measure, json.loads(json.dumps(settings))
        stored = None if again else load(path)
        if stored is None or stored.get("settings") != self.settings:
            stored = {}
        self.rows: dict[str, Row] = {row["key"]: row for row in stored.get("rows", [])}
        self.seconds: float = stored.get("seconds", 0.0)
        self.complete: bool = stored.get("complete", False)
        self.machine: Row = stored.get("machine") or machine()
        if self.rows and not self.complete:
            self._goes_on(machine())

    def _goes_on(self, here: Row) -> None:
        """The rows to come are of this machine and commit; those that are there say theirs, if it is another."""
        for name in ("cpu", "commit"):
            if self.machine.get(name) != here[name]:
                for row in self.rows.values():
                    row.setdefault(name, self.machine.get(name))
        self.machine = here

    def add(self, key: str, row: Row, seconds: float) -> None:
        """Keep a row; it is on disk when this returns."""
        self.rows[key] = {"key": key, **row}
        self.seconds += seconds
        self.write()

    def finish(self) -> None:
        """Nothing is missing."""
        self.complete = True
        self.write()

    def write(self) -> None:
        """One row a line, so that two runs can be read side by side; atomically."""
        head = {"measure": self.measure, "complete": self.complete, "seconds": round(self.seconds, 1)}
        head |= {"machine": self.machine, "settings": self.settings}
        lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
        rows = ",\n".join(f"  {json.dumps(_short(row))}" for row in self.rows.values())
        text = "{\n" + "\n".join(lines) + '\n "rows": [\n' + rows + "\n ]\n}\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(text)
        temporary.replace(self.path)


def load(path: Path) -> Row | None:
    """The JSON, or None where there is none."""
    return json.loads(path.read_text()) if path.exists() else None


def machine() -> Row:
    """Where and with what it was measured."""
    found: Row = {"cpu": _cpu(), "cores": os.cpu_count(), "system": platform.system()}
    found["memory_gb"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    found["threads"] = 1
    found["gemm_gflops"] = round(gemm_speed() / 1e9, 2)
    found["python"] = platform.python_version()
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    found["blas"] = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]  # type: ignore[index]
    return found | {"commit": _commit()}


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()


@cache
def _commit() -> str | None:
    """The commit that was measured: of this checkout, or named by RELUMINE_COMMIT for an exported copy of it."""
    if "RELUMINE_COMMIT" in os.environ:
        return os.environ["RELUMINE_COMMIT"]
    try:
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() or None


def _short(value: Any) -> Any:
    """Numbers to four digits: the rest is noise."""
    if isinstance(value, dict):
        return {k: _short(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_short(v) for v in value]
    if isinstance(value, float | np.floating):
        number = float(f"{value:.4g}")
        return number if np.isfinite(number) else None
    return int(value) if isinstance(value, np.integer) else bool(value) if isinstance(value, np.bool_) else value
