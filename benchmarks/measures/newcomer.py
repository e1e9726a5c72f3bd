"""The path of a newcomer: from `git clone` to the prediction for a table of one's own, with a stopwatch.

Every step is a command as the front page has it, in an empty folder. With ``install`` the package is cloned and
installed into a new environment; else the commands are those of the environment that runs this.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import relumine as rl
from benchmarks.results import Row
from benchmarks.text import duration, table

NAME = "newcomer"
FULL: Row = {"install": True}
QUICK: Row = {"install": None}  # nothing
MINUTES = (1.0, 0.0)
CHECKOUT = Path(__file__).parents[2]
NOTEBOOK = """import relumine as rl
found = rl.recover("exact.csv", target="force", rng=0)
found._repr_html_()
print(found.headline, found.predict([[0.0, 1.0, 2.0, 3.0]]))"""
SIMULATOR = """import numpy as np
import relumine as rl
net = rl.planted.network(d=5, m=8, rng=3)
def response(X):
    return net(X)"""
WORKS = "relumine recover messy.csv --target price --one-hot --skip-bad-rows --ignore id --report messy.html"


def exact_table(path: Path) -> None:
    """800 rows of a network of five units, with all digits."""
    X, y = rl.planted.sample(rl.planted.network(4, 5, rng=7), 800, rng=8)
    header = "speed,temp,load,angle,force"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=header, comments="", fmt="%.17g")
    np.savetxt(path.with_name("new.csv"), X[:5], delimiter=",", header=header[:21], comments="", fmt="%.17g")


def messy_table(path: Path) -> None:
    """600 rows with semicolons, decimal commas, an id, a city and gaps; a price with a kink in the year, and noise."""
    rng = np.random.default_rng(9)
    size, year, city = rng.normal(90.0, 25.0, 600), rng.integers(1900, 2024, 600), rng.integers(0, 3, 600)
    price = 3.0 * size + 4.0 * np.maximum(year - 1975, 0) + 40.0 * (city == 1) + rng.normal(0.0, 8.0, 600)
    gaps = np.where(rng.random(600) < 0.02, "", year.astype(str))
    rows = zip(range(1, 601), np.array(["Bern", "Oslo", "Rome"])[city], size, gaps, price)
    lines = [f"{i};{town};{s:.2f};{y};{p:.1f}".replace(".", ",") for i, town, s, y, p in rows]
    path.write_text("\n".join(["id;city;size;year;price", *lines]), encoding="utf-8")


def steps(install: bool) -> list[tuple[str, str]]:
    """What is done, in words where the command is not what a newcomer types, and the command itself."""
    first = [
        ("`git clone` (from a local copy)", f"git clone -q {CHECKOUT} relumine"),
        ("`pip install .` into a new environment", "python3 -m venv env && env/bin/pip install -q ./relumine"),
    ]
    typed = [
        "relumine recover exact.csv --target force --out net.safetensors --report report.html",
        "relumine predict net.safetensors new.csv --out predictions.csv",
        "relumine recover messy.csv --target price",
        "relumine recover messy.csv --target price --one-hot",
        WORKS,
        "relumine extract simulator:response --dim 5 --out box.safetensors",
    ]
    later = [(f"`{command}`", command) for command in typed]
    later.insert(2, ("in Python: import, `rl.recover`, the result as a table, a prediction", "python notebook.py"))
    return [*(first if install else []), *later]


def path(install: bool) -> Row:
    """Clock and CPU seconds of every step, and the first line of the answer."""
    done = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exact_table(folder / "exact.csv")
        messy_table(folder / "messy.csv")
        (folder / "notebook.py").write_text(NOTEBOOK, encoding="utf-8")
        (folder / "simulator.py").write_text(SIMULATOR, encoding="utf-8")
        programs = folder / "env" / "bin" if install else Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
        for words, command in steps(install):
            began, spent = time.perf_counter(), _children()
            ran = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
            said = ran.stdout.strip().splitlines() or ran.stderr.strip().splitlines()[-1:]  # an error is the last line
            seconds = {"clock": time.perf_counter() - began, "cpu": _children() - spent}
            done.append({"step": words, "code": ran.returncode, "said": said[0] if said else "", **seconds})
    return {"steps": done}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cells(settings: Row, rows: dict[str, Row]) -> Iterator[tuple[str, Callable[[], Row]]]:
    if settings["install"] is not None:
        yield "path", partial(path, settings["install"])


def elsewhere(report: Row) -> dict[str, str]:
    if not report["rows"]:
        return {}
    done = report["rows"][0]["steps"]
    if report["settings"]["install"] and any(step["code"] for step in done[:5]):
        return {}
    lines = [[step["step"], duration(step["clock"]), duration(step["cpu"])] for step in done]
    said = [f"- {step['step']}: *{step['said'].replace('*', '')}*" for step in done if step["step"].startswith("`rel")]
    return {
        "docs/installation.md": "\n\n".join(
            [
                "*Clock* is the waiting time, here on a busy machine with packages from a nearby mirror; *CPU time* is "
                "about what an idle one would take. `python -m benchmarks run --only newcomer`.",
                table(["step", "clock", "CPU time"], lines),
                "What the commands answer, first line:",
                "\n".join(said),
            ]
        )
    }


def comparable(report: Row) -> dict[str, Any]:
    return {}
