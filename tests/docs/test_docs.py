"""What README and docs show runs, and prints what they say."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from relumine import __version__
from relumine.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = {
    page.name: blocks for page in PAGES if (blocks := re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.S))
}


@pytest.mark.parametrize("page", EXAMPLES)
def test_python_examples_run(page: str, tmp_path: Path) -> None:
    """The examples of a page run from top to bottom, as a reader would paste them."""
    namespace: dict[str, object] = {"__name__": "example"}
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()) as out:
        for block in EXAMPLES[page]:
            exec(compile(block, page, "exec"), namespace)
    if page == "README.md":
        assert out.getvalue().startswith("exact True\nerror on unseen rows")


@pytest.mark.parametrize("name", ["plot_recover", "plot_noise", "plot_decode", "plot_memory", "plot_classifier"])
def test_small_examples_of_the_gallery_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them run in `make docs`."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    code = (ROOT / "docs" / "gallery" / f"{name}.py").read_text()
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, name, "exec"), {"__name__": "example"})
    assert any(word in out.getvalue() for word in ("exact", "noisy"))


SHOWN = [
    (page.name, line)
    for page in PAGES
    for block in re.findall(r"```(?:console|bash|text)\n(.*?)```", page.read_text(), flags=re.S)
    for line in re.findall(r"^(?:\$ )?(relumine .*)", re.sub(r"\\\n\s*", " ", block), flags=re.M)
]


def test_commands_that_are_shown_have_these_options() -> None:
    """Every `relumine …` of a page names a command that there is, with options that it has."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for page, line in SHOWN:
        _, name, *words = shlex.split(line.replace("…", ""), comments=True)
        if name.startswith("-"):
            continue
        options = {option for parameter in commands[name].params for option in parameter.opts} | {"--help", "--debug"}
        for word in words:
            if re.match(r"--?[a-z]", word):
                assert word.partition("=")[0] in options, f"{page}: {line}"
    assert len(SHOWN) > 20


def test_local_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if target == "examples/index.rst":  # written from docs/gallery when the site is built
                continue
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("name", ["pyproject.toml", "CITATION.cff", "docs/cite.md"])
def test_the_version_is_the_same_everywhere(name: str) -> None:
    assert re.findall(r"^\s*version\s*[:=]\s*[\"{]?([\d.]+)", (ROOT / name).read_text(), flags=re.M) == [__version__]


def test_everything_in_the_reference_exists() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    for kind, path, listed in re.findall(r"\.\. auto(\w+):: ([\w.]+)\n(?:   :members:(.*)\n)?", page):
        module, _, name = path.rpartition(".")
        found = importlib.import_module(path) if kind == "module" else getattr(importlib.import_module(module), name)
        for member in filter(None, re.split(r"[,\s]+", listed)):
            assert hasattr(found, member), f"{path}.{member}"


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_nothing_depends_on_this_machine() -> None:
    here = os.path.expanduser("~")
    for page in PAGES:
        assert here not in page.read_text()
