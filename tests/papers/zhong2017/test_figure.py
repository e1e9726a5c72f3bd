"""The figures of Zhong 2017 in their quick form: computed, resumed, and plotted from the JSON alone."""

import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from relumine.papers.cells import finished, picture, save
from relumine.papers.zhong2017 import figure as figures

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zhong2017")
    paths = {name: folder / f"figure{name}.json" for name in figures.FIGURES}
    for name, path in paths.items():
        figures.compute(name, True, path, QUIET)
    return paths


def cells(path):
    return list(json.loads(path.read_text())["cells"].values())


def test_descent_recovers_where_the_grid_is_easy(quick):
    for cell in cells(quick["1a"]):
        if cell["n"] == 3000:
            assert cell["rate"] == 1.0
            assert max(cell["errors"]) < figures.RECOVERED


def test_debiased_start_beats_the_plain_one(quick):
    for cell in cells(quick["1b"]):
        assert np.mean(cell["debiased"]["errors"]) < np.mean(cell["plain"]["errors"])
        assert all(cell["debiased"]["sums"])


def test_tensor_start_converges_linearly_and_first(quick):
    (trial,) = cells(quick["1c"])
    iteration, tensor = (np.array(trial["curves"]["tensor"][key]) for key in ("iteration", "loss"))
    straight = (tensor < 1e-3) & (tensor > 1e-22)
    slope, intercept = np.polyfit(iteration[straight], np.log(tensor[straight]), 1)
    rest = np.log(tensor[straight]) - slope * iteration[straight] - intercept
    assert 1.0 - rest.var() / np.log(tensor[straight]).var() > 0.98
    assert slope < 0.0
    reached = {
        name: next((i for i, loss in zip(c["iteration"], c["loss"], strict=True) if loss < 1e-8), np.inf)
        for name, c in trial["curves"].items()
    }
    assert all(reached["tensor"] < other for name, other in reached.items() if name != "tensor")


def test_the_threshold_is_on_the_grid(quick):
    for cell in cells(quick["line"]):
        *good, last = cell["tried"]
        assert all(recovered == 2 for _, recovered in good)
        assert cell["least"] % figures.LINE_STEP == 0
        assert cell["least"] in (last[0], last[0] + figures.LINE_STEP)
        assert 250 <= cell["least"] <= 750


def test_auto_is_exact_on_the_same_problems(quick):
    assert all(cell["rate"] == 1.0 for cell in cells(quick["auto"]))


def test_a_second_run_computes_only_what_is_missing(quick, monkeypatch):
    path = quick["1b"]
    content = json.loads(path.read_text())
    lost = content["cells"].pop("d=20 n=1000")
    save(content, path)
    calls = []

    def cell(*arguments):
        calls.append(arguments)
        return lost

    monkeypatch.setitem(figures.CELL, "1b", cell)
    figures.compute("1b", True, path, QUIET)
    assert calls == [(20, 1000, 2)]
    assert not list(path.parent.glob("*.partial"))
    with pytest.raises(Exception, match="another run"):
        figures.compute("1a", True, path, QUIET)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_plots_read_the_json_only(quick, name, monkeypatch):
    pytest.importorskip("matplotlib")
    for step in ("problem", "trial", "initialise", "learn", "recover"):
        monkeypatch.delattr(figures, step)
    assert figures.plot(quick[name]).read_bytes().startswith(b"\x89PNG")


def test_line():
    assert figures.line({10: 510, 20: 1010, 40: 2010}) == pytest.approx((50.0, 10.0, 1.0), abs=1e-9)
    assert figures.line({10: 500, 20: 1000, 30: 500})[2] == pytest.approx(0.0, abs=1e-9)


def test_cells_do_not_depend_on_the_number_of_processes():
    missing = [(key, figures.CELL["1b"], arguments) for key, arguments in figures.grid("1b", True)[:2]]
    alone = dict(finished(missing, 1))
    together = dict(finished(missing, 2))
    assert json.dumps(alone, sort_keys=True) == json.dumps(together, sort_keys=True)


def test_a_picture_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "figure.json"
    save({"figure": "1a", "cells": {}}, path)
    image = path.with_suffix(".png")
    image.write_bytes(b"old")

    class Figure:
        def savefig(self, target, **options):
            with open(target, "wb") if isinstance(target, str | Path) else nullcontext(target) as file:
                file.write(b"half")
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        picture(path, lambda content, plt: Figure())
    assert image.read_bytes() == b"old"
