"""The papers' pages name what exists: every box in the tables, every module path."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import relumine as rl

PAGES = {p.name: p.read_text() for p in (Path(__file__).parents[2] / "docs").glob("*.md")}
PAPERS = ("awasthi2021", "zhong2017", "oymak2018", "mondelli2019")


def found(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("page", ["awasthi.md", "zhong.md", "decode.md", "hardness.md", "papers.md"])
def test_names_on_the_pages_exist(page: str) -> None:
    text = PAGES[page]
    names = set(re.findall(r"\brelumine(?:\.\w+)+", text))
    names |= {f"relumine.papers.{n}" for n in re.findall(rf"\b(?:{'|'.join(PAPERS)})\.[A-Za-z]\w*", text)}
    missing = [n for n in names if not n.startswith("relumine.papers.figure") and not found(n)]
    assert not missing


@pytest.mark.parametrize("paper", PAPERS)
def test_a_room_exports_what_it_names_and_shows_how(paper: str) -> None:
    room = getattr(rl.papers, paper)
    assert all(hasattr(room, name) for name in room.__all__)
    assert ">>>" in room.__doc__


@pytest.mark.parametrize("paper", PAPERS)
def test_the_table_of_rooms_names_their_boxes(paper: str) -> None:
    row = next(line for line in PAGES["papers.md"].splitlines() if line.startswith(f"| [`{paper}`]"))
    named = re.findall(r"`(\w+)`", row)[1:]
    assert named
    assert set(named) <= set(getattr(rl.papers, paper).__all__)


@pytest.mark.parametrize("paper", PAPERS)
def test_no_module_hides_behind_a_name_of_its_room(paper: str) -> None:
    room = getattr(rl.papers, paper)
    modules = {path.stem for path in Path(room.__file__).parent.glob("*.py")}
    assert not modules & set(room.__all__)
