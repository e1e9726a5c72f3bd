"""The tests with other processors' arithmetic: `make test-portable`, or `python -m tests.portable [paths]`.

Another machine has another BLAS kernel, which adds in another order: the last bits of every product differ. OpenBLAS
shows the kernels of other processors here (OPENBLAS_CORETYPE). A number in the inputs that moves to its neighbour does
the same to everything after it. A test that passes here and fails there hangs on luck, and is named.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
WAYS = {
    "as it is": {},
    **{f"kernel {name}": {"OPENBLAS_CORETYPE": name} for name in KERNELS},
    "inputs moved up": {"RELUMINE_NUDGE": "up"},
    "inputs moved down": {"RELUMINE_NUDGE": "down"},
}
_PROBE = (
    "import numpy, scipy.linalg; A = numpy.ones((64, 64)); scipy.linalg.cho_factor(A @ A + 64 * numpy.eye(64)); "
    "from threadpoolctl import threadpool_info; print(threadpool_info()[0].get('architecture'))"
)


def environment(way: str) -> dict[str, str]:
    """The environment of a run; one BLAS thread, as in `make test`."""
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "CI": "true", **WAYS[way]}


def kernel(way: str) -> str | None:
    """The kernel that OpenBLAS uses this way, or None where this processor cannot run it."""
    done = subprocess.run([sys.executable, "-c", _PROBE], capture_output=True, text=True, env=environment(way))
    return done.stdout.strip() if done.returncode == 0 else None


def outcomes(way: str, paths: list[str], workers: str) -> dict[str, str]:
    """How each test ended this way: passed, failed, error or skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--no-header", f"--junitxml={report}", *paths]
        subprocess.run(command, env=environment(way), stdout=subprocess.DEVNULL, check=False)
        if not report.exists():
            return {"(the run itself)": "error"}
        found = {}
        for case in ET.parse(report).iter("testcase"):
            kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            found[f"{case.get('classname')}::{case.get('name')}"] = kinds[0] if kinds else "passed"
        return found


def main() -> int:
    """Run every way, then say which tests fail and where."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", default=[], help="tests to run; all of them by default")
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS], help="some of the ways only")
    parser.add_argument("-n", "--workers", default="2", help="processes")
    asked = parser.parse_args()
    failures: dict[str, list[str]] = {}
    known: dict[str, str] = {}
    for way in asked.ways:
        name = kernel(way)
        if name is None:
            print(f"{way}: this processor cannot run it", flush=True)
            continue
        before = known.get(name) if "RELUMINE_NUDGE" not in WAYS[way] else None
        if before is not None:
            print(f"{way}: the same kernel as {before!r}", flush=True)
            continue
        known.setdefault(name, way)
        ended = outcomes(way, asked.paths, asked.workers)
        red = [test for test, how in ended.items() if how in ("failure", "error")]
        print(f"{way} ({name}): {sum(how == 'passed' for how in ended.values())} passed, {len(red)} failed", flush=True)
        for test in red:
            print(f"    {test}", flush=True)
            failures.setdefault(test, []).append(way)
    for test, ways in failures.items():
        print(f"hangs on luck or is wrong: {test}\n    fails {', '.join(ways)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
