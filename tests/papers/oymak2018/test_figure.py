"""The figures of Oymak 2018 in their quick form: computed, resumed, and plotted from the JSON alone."""

import json

import numpy as np
import pytest
from rich.console import Console

from relumine.papers.cells import save
from relumine.papers.oymak2018 import figure as figures

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oymak2018")
    paths = {name: folder / f"figure{name}.json" for name in ("2b", "3a")}
    for name, path in paths.items():
        figures.compute(name, True, path, QUIET)
    return paths


def test_figure_2_quick(quick):
    cells = json.loads(quick["2b"].read_text())["cells"].values()
    assert {(c["d"], c["ratio"]) for c in cells} == {(d, r) for d in (20, 40) for r in (1.5, 2.0, 3.0)}
    for cell in cells:
        assert max(cell["gauss-newton"]["errors"]) < 1e-16
        assert max(cell["gauss-newton"]["steps"]) <= 20
        if cell["ratio"] >= 2.0:
            assert np.mean(cell["centred"]["errors"]) <= 1e-8
            assert max(cell["centred"]["steps"]) <= 1000


def test_figure_3_quick(quick):
    for trial in json.loads(quick["3a"].read_text())["cells"].values():
        for name in ("centred", "plain", "gauss-newton"):
            assert trial[name]["loss"][-1] < 1e-6 * trial[name]["loss"][0]
        # at d = 20 centring saves less than at the paper's 100: the plain step shrinks like 1/d
        assert trial["plain"]["reached"] > 4 * trial["centred"]["reached"]
        assert trial["gauss-newton"]["reached"] < trial["centred"]["reached"]


def test_a_second_run_computes_only_what_is_missing(quick, monkeypatch):
    path = quick["2b"]
    content = json.loads(path.read_text())
    lost = content["cells"].pop("d=20 n/d=2.0")
    save(content, path)
    calls = []

    def cell(sigma, *arguments):
        calls.append(arguments)
        return lost

    monkeypatch.setattr(figures, "figure2_cell", cell)
    figures.compute("2b", True, path, QUIET)
    assert calls == [(20, 2.0, 2, 1000)]
    assert json.loads(path.read_text())["cells"]["d=20 n/d=2.0"] == lost
    assert not list(path.parent.glob("*.partial"))


def test_another_runs_file_is_not_overwritten(quick):
    with pytest.raises(Exception, match="another run"):
        figures.compute("2a", True, quick["2b"], QUIET)


@pytest.mark.parametrize("name", ["2b", "3a"])
def test_plots_read_the_json_only(quick, name, monkeypatch):
    pytest.importorskip("matplotlib")
    for step in ("planted", "centred", "plain", "newton"):
        monkeypatch.delattr(figures, step)
    image = figures.plot(quick[name])
    assert image.read_bytes().startswith(b"\x89PNG")
