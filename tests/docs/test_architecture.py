"""The architecture page is true: what it names exists, every folder is on it, its walks are in the order of calls."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from tests.cli.cli_runs import run

import relumine as rl

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ROOMS = "recovery|data|fit|cli|papers|formats|activations|tensors|links|extraction|estimators|report"
NAMES = sorted(set(re.findall(rf"`((?:{ROOMS})\.[\w.]+)", PAGE)))


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_names_exists(name: str) -> None:
    parts = name.split(".")
    found = None
    for k in range(len(parts), 0, -1):
        try:
            found = import_module("relumine." + ".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            found = getattr(found, part)
        break
    assert found is not None


def test_every_package_is_on_the_page() -> None:
    for folder in (ROOT / "src" / "relumine").iterdir():
        if (folder / "__init__.py").exists():
            assert f"{folder.name}/" in PAGE, folder.name


STORIES = (
    "activations",
    "data",
    "estimators",
    "extraction",
    "extraction/deep",
    "extraction/deep/known",
    "extraction/deep/asking",
    "extraction/deep/first",
    "extraction/deep/surfaces",
    "extraction/deep/ending",
    "extraction/deep/behind",
    "fit",
    "recovery",
    "report",
    "results",
    "tensors",
)


@pytest.mark.parametrize("room", STORIES)
def test_every_module_of_a_package_is_named_beside_it(room: str) -> None:
    tree = PAGE[PAGE.index("src/relumine/\n") : PAGE.index("tests/  ")]
    name, indent = (room, " ") if room.count("/") < 2 else (room.rsplit("/")[-1], "   ")
    (entry,) = re.findall(rf"^ {indent}{name}/ .*(?:\n      .*)*", tree, re.MULTILINE)
    modules = {path.stem for path in (ROOT / "src" / "relumine" / room).glob("[!_]*.py")}
    assert modules <= set(re.findall(r"\w+", entry))


def first_calls(work: Callable[[], object]) -> list[str]:
    """Every function of the package that is called, by its first call."""
    root, found = str(ROOT / "src" / "relumine"), dict[str, None]()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            module = Path(code.co_filename).relative_to(root).with_suffix("").as_posix().replace("/", ".")
            found.setdefault(f"{module}.{code.co_qualname}")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return [*found]


def rows_file(folder: Path) -> Path:
    X, y = rl.planted.sample(rl.planted.network(d=5, m=4, rng=0), n=300, rng=1)
    np.savetxt(folder / "rows.csv", np.column_stack([X, y]), "%.17g", ",", header="a,b,c,d,e,y", comments="")
    return folder / "rows.csv"


def recovered(folder: Path) -> object:
    return rl.recover(*rl.planted.sample(rl.planted.network(d=5, m=4, rng=0), n=300, rng=1), width=4, rng=0)


def from_a_file(folder: Path) -> object:
    return run("recover", str(rows_file(folder)), "--width", "4")


def extracted(folder: Path) -> object:
    return rl.extract(rl.planted.network(d=5, m=4, rng=0), dim=5, rng=0)


def extracted_in_layers(folder: Path) -> object:
    return rl.extract(rl.planted.deep((10, 6, 5, 1), rng=0), dim=10, rng=0)


WALKS = {  # the words of the walk; who walks; what is only called where something is hard, large or wrong
    "Arrays through": (recovered, {"recovery.diagnosis.diagnosed"}),
    "A csv file through": (from_a_file, {"recovery.large.from_few"}),
    "A black box through": (extracted, set()),
    "Several hidden layers": (
        extracted_in_layers,
        {
            f"extraction.deep.{name}"
            for name in ("behind.further", "surfaces.following", "surfaces.probing", "behind.sparse", "behind.wide")
        },
    ),
}


@pytest.mark.parametrize("walk", WALKS)
def test_the_walks_are_in_the_order_of_calls(walk: str, tmp_path: Path) -> None:
    work, seldom = WALKS[walk]
    section = PAGE[PAGE.index(f"**{walk}") :].partition("\n**")[0]
    named = dict.fromkeys(re.findall(rf"`((?:{ROOMS})\.[\w.]+)", section))
    calls = first_calls(lambda: work(tmp_path))
    at = {name: next((i for i, call in enumerate(calls) if f"{call}.".startswith(f"{name}.")), None) for name in named}
    assert {name for name, i in at.items() if i is None} <= seldom
    order = [i for name, i in at.items() if i is not None]
    assert order == sorted(order), at


def test_a_status_is_decided_by_a_judge_alone() -> None:
    """Elsewhere a status is only compared with another, or looked up."""
    decided = set()
    for path in (ROOT / "src" / "relumine").rglob("*.py"):
        if path.stem == "judge" or path.parent.name == "results":
            continue
        tree = ast.parse(path.read_text())
        looked_at = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
        looked_at += [key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys if key]
        looked_at += [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "_verdict"]
        fine = {id(part) for node in looked_at for part in ast.walk(node)}
        for node in ast.walk(tree):
            status = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Status"
            if status and id(node) not in fine:
                decided.add(f"{path.name}:{node.lineno}")
    assert not decided
