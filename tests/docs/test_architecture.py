"""The architecture page is true: every function and module that it names exists, and so does every folder."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

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
    "fit",
    "recovery",
    "report",
    "results",
    "tensors",
)


@pytest.mark.parametrize("room", STORIES)
def test_every_module_of_a_package_is_named_beside_it(room: str) -> None:
    tree = PAGE[PAGE.index("src/relumine/\n") : PAGE.index("tests/  ")]
    (entry,) = re.findall(rf"^  {room}/ .*(?:\n    .*)*", tree, re.MULTILINE)
    modules = {path.stem for path in (ROOT / "src" / "relumine" / room).glob("[!_]*.py")}
    assert modules <= set(re.findall(r"\w+", entry))
