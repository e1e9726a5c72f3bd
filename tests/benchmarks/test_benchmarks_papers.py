"""What the pages on decoding and hardness say is counted from the figures' JSON and from measures that can fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.counting import Count
from benchmarks.measures import decoding, sgd
from benchmarks.papers import blocks, mondelli2019, oymak2018
from benchmarks.results import RESULTS, Row

import relumine.papers.mondelli2019.sgd as descent

FIGURES = RESULTS.parent / "figures"
ROOT = RESULTS.parents[1]


def report(measure: str, rows: list[Row], **settings: float) -> Row:
    return {"measure": measure, "complete": True, "seconds": 1.0, "settings": settings, "rows": rows}


# -- the papers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paper", [oymak2018, mondelli2019])
def test_the_pages_hold_what_the_stored_figures_say(paper: Any) -> None:
    page, name = paper.PAGE, paper.__name__.rsplit(".", 1)[-1]
    said = {mark: text for where, mark, text in blocks(FIGURES) if where == page and mark.startswith(name)}
    assert said == paper.blocks(FIGURES / name)
    for mark, text in said.items():
        assert f"<!-- {mark}: begin -->\n{text}\n<!-- {mark}: end -->" in (ROOT / page).read_text()


def test_a_folder_without_figures_says_nothing(tmp_path: Path) -> None:
    assert oymak2018.blocks(tmp_path) == mondelli2019.blocks(tmp_path) == {}


def test_exact_runs_are_counted_over_all_sizes(tmp_path: Path) -> None:
    def cell(d: int, errors: list[float], steps: list[int]) -> Row:
        method = {"errors": errors, "steps": steps}
        return {"d": d, "ratio": 1.5, "centred": {"errors": [1.0, 0.1], "steps": [1000, 1000]}, "gauss-newton": method}

    cells = {"one": cell(50, [1e-28, 1e-3], [9, 20]), "two": cell(100, [1e-17, 1.1e-16], [12, 13])}
    (tmp_path / "figure2a.json").write_text(json.dumps({"sigma": 1.0, "cells": cells}))
    (text,) = oymak2018.blocks(tmp_path).values()
    assert "| n/d | σ = 1, centred gradient | σ = 1, Gauss–Newton |" in text
    assert text.endswith("| 1.5 | 0/4 | 2/4 (12) |")
    assert "d = 50, 100 together" in text


def test_iterations_that_were_never_enough_are_said() -> None:
    def trial(plain: int | None, centred: int) -> Row:
        reached = {"plain": plain, "centred": centred, "gauss-newton": 4}
        return {"d": 5, "n": 10} | {name: {"reached": count, "step": 2.0} for name, count in reached.items()}

    figure = {"bound": 1.0, "cells": {"a": trial(None, 10), "b": trial(300, 20)}}
    assert oymak2018.figure3([figure]).endswith("| 5 | 10 | 2 | 300 (1 of 2 never) | 10–20 | 4 | 15 |")
    # T(1) = P(X ≥ 1)² = 0.02517 and S = 1/4 of a standard normal: the theorem's step is 0.0895
    assert "22.3 to 22.3 times at σ = 1" in oymak2018.steps([figure])


def test_runs_of_the_descent_are_read_by_their_last_weights() -> None:
    def run(r: int, c: float, last: float) -> Row:
        ends = {"error": [2.0, 0.5], "weights": [1.2, 0.3], "weights_last": [1.0, last]}
        return {"r": r, "c": c, "start": 1.25, "cpu_seconds": 30.0, **ends}

    figure = {"seed": 3, "n": 1000, "cells": {"wide": run(20, 0.1, 0.4), "small": run(5, 0.2, 2e-7)}}
    assert "The 2 runs (seed 3, 1,000 samples each) took 60 s" in mondelli2019.figure1(figure)
    assert "| 5 | 0.2 | 2.00 | 0.50 | 1.25 | 0.3 | 2e-07 | 30 s |" in mondelli2019.figure1(figure)
    text = mondelli2019.reading(figure)
    assert "for r = 5 with c = 0.2 (2e-07), and in no other run" in text
    assert "At r = 20 and c = 0.1 the weight error went from 1.25 to 0.30" in text
    figure["cells"].pop("small")
    assert "for none of the runs" in mondelli2019.reading(figure)


def test_what_recover_could_not_do_is_said() -> None:
    head = {"d": 8, "r": 10, "n": 600, "limit": 60.0}
    stopped = head | {"estimate": 9000.0, "status": "interrupted", "error": 0.5, "parameter_error": None}
    refused = head | {"estimate": 864000.0, "status": "refused", "message": "estimated at 10 days"}
    text = mondelli2019.recovered({"cells": {"a": stopped | {"cpu_seconds": 31.0}, "b": refused}})
    assert "| 2.5 h | interrupted by its limit of 60 s on the clock | 0.5 |  | 31 s |" in text
    assert "| 600 (6 for each parameter) | 10 days | not begun: estimated at 10 days |" in text


# -- the measures -------------------------------------------------------------------------------------------


def test_decoding_counts_what_is_exact_and_what_is_not() -> None:
    enough = decoding.rate(0, 20, 5.0, 2.0, 3)
    assert (enough["newton"], enough["decode"], enough["wrong"]) == (3, 3, 0)
    assert 3 <= enough["most_steps"] <= decoding.STEPS
    few = decoding.rate(0, 20, 5.0, 0.9, 3)
    assert (few["newton"], few["decode"], few["wrong"], few["most_steps"]) == (0, 0, 0, 0)
    rows = [{"key": "a", "kind": "rate", **enough}, {"key": "b", "kind": "rate", **few}]
    text = decoding.elsewhere(report("decoding", rows, first=0))["docs/decode.md"]
    assert f"| 20 | 5 | 40 = 2 d | 3/3, at most {enough['most_steps']} steps | 3/3 | 0 |" in text
    assert "| 20 | 5 | 18 = 0.9 d | 0/3 | 0/3 | 0 |" in text
    assert decoding.comparable(report("decoding", rows))["decode exact, d=20 σ=5 n/d=2"] == Count(3, 3)


def test_decoding_measures_noise_memory_time_and_the_theorem() -> None:
    rows = []
    for kind, case in (
        ("time", ("gauss-newton", 30, 90, 0.0)),
        ("noise", (20, 200, 0.3, 4)),
        ("map", (20, 20_000, 0.0)),
        ("theorem", ("laplace", 10, 20, 400, 2)),
    ):
        measure = {"time": decoding.time, "noise": decoding.noise, "map": decoding.mapped}.get(kind, decoding.theorem)
        rows.append({"key": kind, "kind": kind, **measure(0, *case)})
    time, noise, memory, theorem = rows
    assert (time["status"], noise["noisy"], memory["status"], theorem["held"]) == ("exact", 4, "exact", 2)
    assert 0.7 < noise["over_bound"] < 1.5
    assert 0.5 < noise["z_squared"] < 2.0
    assert memory["peak_bytes"] > memory["n"] * 8  # at least the residuals
    assert 0.0 < theorem["largest"] < 1.0
    text = decoding.elsewhere(report("decoding", rows, first=0))["docs/decode.md"]
    assert "| 20 | 200 | 0.3 | 4/4 |" in text
    assert "memory map of 2 MB (d = 20, n = 20,000)" in text
    assert "in 2 of 2 runs" in text
    assert "| gauss-newton | (30, 90) | exact | exact |" in decoding.section(report("decoding", rows, first=0))


def test_the_theorem_is_measured_not_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An iteration that stays where it is breaks the bound at its first step."""
    real = decoding.descend
    monkeypatch.setattr(decoding, "descend", lambda parts, w, bound, step, centred: real(parts, w, bound, 0.0, centred))
    row = decoding.theorem(0, "normal", 10, 20, 400, 2)
    assert row["held"] == 0
    assert row["largest"] > 1.0


def test_the_compiled_descent_is_compared_with_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    for name in ("descend", "descend_plainly"):
        real = getattr(descent, name)
        monkeypatch.setattr(descent, name, lambda *a, name=name, real=real: called.append(name) or real(*a))
    rows = [{"key": "r=10", **sgd.case(10, 50, 5, 0.05)}]
    assert set(called) == {"descend", "descend_plainly"}
    row = rows[0]
    np.testing.assert_allclose(row["ratio"], row["steps_a_second"] / row["numpy_steps_a_second"])
    text = sgd.elsewhere(report("sgd", rows, d=5))["docs/hardness.md"]
    assert f"| 10 | {row['steps_a_second']:,.0f} |" in text
    assert sgd.comparable(report("sgd", rows))["against numpy, r=10"].ratio == row["ratio"]
