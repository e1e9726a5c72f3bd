"""What docs/zhong.md, guarantees.md, recover.md and advise.md say of measurements: measured, counted, in words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.counting import Count
from benchmarks.measures import MEASURES, advice, first_steps, noise, smooth, zhong
from benchmarks.papers import zhong2017
from benchmarks.results import ROOT, Row, load

import relumine as rl
from benchmarks import __main__ as command
from relumine.recovery import begin

FIGURES = ROOT / "docs" / "figures" / "zhong2017"


def run(name: str, folder: Path, **settings: object) -> Row:
    """A small run of a measure, through the same door as a large one."""
    measure = MEASURES[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "QUICK", measure.QUICK | settings)
        assert command.main(["run", "--quick", "--only", name, "--out", str(folder)]) == 0
    report = load(folder / f"{name}.json")
    assert report is not None
    return report


# -- what the figures show ----------------------------------------------------------------------------------


def cell_1a(d: int, n: int, errors: list[float], v: list[bool], steps: list[int]) -> Row:
    rate = float(np.mean([e <= 0.01 and s for e, s in zip(errors, v, strict=True)]))
    return {"d": d, "n": n, "rate": rate, "errors": errors, "v": v, "steps": steps}


def test_failures_of_figure_1a_are_told_apart() -> None:
    cells = [
        cell_1a(10, 1000, [1e-4, 1e-4], [True, True], [300, 400]),
        cell_1a(10, 2000, [1e-4, 1e-4], [True, True], [300, 400]),
        cell_1a(20, 1000, [1.5, 0.3], [False, True], [4000, 4000]),
        cell_1a(20, 2000, [1e-4, 1e-4], [True, True], [300, 400]),
        cell_1a(30, 1000, [7.0, 1e-4], [True, True], [3, 400]),
        cell_1a(30, 2000, [1e-4, 1e-4], [True, True], [300, 400]),
    ]
    text = zhong2017.rates(cells)
    assert "9 of 12 trials recover, and all 6 with n ≥ 2000" in text
    assert "is 1000 at d = 10 and 2000 up to d = 30" in text
    assert "Of the 3 failures 1 have wrong signs; of the other 2, 1 diverged and 1 had not arrived" in text
    assert "4000 steps (error 0.3)" in text


def test_the_line_is_that_of_the_smallest_n() -> None:
    cells = [{"d": d, "tried": [[2500, 4], [n, 4], [n - 250, 1]], "least": n} for d, n in ((10, 500), (20, 1000))]
    text = zhong2017.smallest(cells)
    assert "Every one of 4 trials" in text
    assert "| smallest n | 500 | 1000 |" in text
    assert "n = 50.0 d + 0, with R² = 1.000" in text
    assert "bottom" not in text


def test_starts_are_counted_by_error_and_signs() -> None:
    def cell(n: int, good: float, bad: float, sums: list[bool]) -> Row:
        plain = {"errors": [bad] * 2, "sums": sums}
        return {"d": 10, "n": n, "debiased": {"errors": [good] * 2, "sums": [True, True]}, "plain": plain}

    text = zhong2017.starts([cell(1000, 0.6, 3.0, [True, False]), cell(2000, 0.4, 0.7, [True, True])])
    assert "| debiased moments | 2000 |" in text
    assert "| plain moments | > 2000 |" in text
    assert "in 2 of 2 cells with debiased and in 1 with plain moments" in text


def test_descents_arrive_diverge_or_stay() -> None:
    def curve(*losses: float) -> Row:
        return {"iteration": list(range(len(losses))), "loss": list(losses)}

    tensor, known = curve(1.0, 1e-9, 1e-20), curve(1.0, 0.1, 1e-9)
    ends = [curve(1.0, 1e20), curve(1.0, 0.9, 0.43)]
    cells = [
        {"curves": {"tensor": tensor, "random W and v": e, "random W, v known": known, "small random W and v": known}}
        for e in ends
    ]
    text = zhong2017.descents(cells)
    assert "in 2 of 2, after 1 to 1 steps, and is first in 2" in text
    assert "reaches it in 0: 1 diverged and 1 ended at a loss of 0.43" in text
    assert "arrives in 2 of 2" in text


def test_auto_counts_what_is_exact() -> None:
    cells = [{"d": 10, "n": n, "errors": errors} for n, errors in ((150, [1e-13, 2.0]), (200, [1e-13, 1e-9]))]
    assert "3 of 4 exact to 1e-8, 1 of 2 at n = 3kd. The largest error of all is 2e+00" in zhong2017.auto(cells)


def test_every_stored_figure_has_its_words(tmp_path: Path) -> None:
    found = zhong2017.blocks(FIGURES)
    assert list(found) == ["figure 1a", "smallest n", "figure 1b", "figure 1c", "auto"]
    page = (ROOT / zhong2017.PAGE).read_text()
    for mark, text in found.items():
        assert f"<!-- {mark}: begin -->\n{text}\n<!-- {mark}: end -->" in page
    (tmp_path / "figureauto.json").write_text((FIGURES / "figureauto.json").read_text())
    assert list(zhong2017.blocks(tmp_path)) == ["auto"]


# -- measures -----------------------------------------------------------------------------------------------


def test_choices_of_the_tensor_start_are_switched_off_and_on_again(tmp_path: Path) -> None:
    choices = {"span and fit in turn": [[40, 1000]], "debiased moments": [[10, 2000]], "α chosen": [[8, 500]]}
    small = {"choices": choices, "seeds": 1, "few": [10], "activations": ["relu"], "rows": 2000}
    report = run("zhong", tmp_path, **small)
    found = zhong.starts_of(report)
    span, moments = found["span and fit in turn", 40, 1000], found["debiased moments", 10, 2000]
    assert min(r["share"] for r in span["with"]) > max(r["share"] for r in span["without"])
    assert [r["descent"] for r in moments["with"]] == [True]
    assert moments["with"][0]["error"] < moments["without"][0]["error"]
    assert any(a != b for a, b in zip(*found["α chosen", 8, 500].values(), strict=True))
    again = zhong.start("span and fit in turn", 40, 1000, 100)
    assert again["with"]["share"] == pytest.approx(span["with"][0]["share"], rel=1e-3)
    text = zhong.elsewhere(report)["docs/zhong.md"]
    assert "| debiased moments | squared_relu | (10, 2000) | 1 of 1 / " in text
    assert "exact to 1e-8 in 1 of 1 runs" in text
    assert "| relu | 1 of 1 | 1 of 1 |" in text
    assert "squared_relu 0.491 and 26.8" in text
    assert zhong.comparable(report)["auto, relu, b"] == Count(1, 1)


def test_linear_units_have_a_singular_hessian() -> None:
    row = zhong.hessian("linear", rows=1000)
    assert zhong._ends(row["quadrature"]).startswith("0 and ")


def test_intervals_are_counted(tmp_path: Path) -> None:
    report = run("noise", tmp_path, problems=[[4, 2, 500, 10.0, None, "relu", 2], [3, 3, 300, 3.0, 30.0, "relu", 1]])
    first, second = noise.gather(report).values()
    assert [row["intervals"] for row in first] == [2 * 4 + 2 + 2] * 2
    assert 0.5 < noise.covered(first).rate <= 1.0
    text = noise.elsewhere(report)["docs/guarantees.md"]
    assert "| d = 4, m = 2 | 500 | 50 | 10 | 2 of 2 |" in text
    assert "two units 30° apart" in text
    report["rows"].append(first[0] | {"status": "not recovered", "covered": 0, "intervals": 0, "sure": 0})
    assert "| 2 of 3 |" in noise.elsewhere(report)["docs/guarantees.md"]
    assert noise.comparable(report)["called noisy, d = 4, m = 2, n = 500, signal over noise 10"] == Count(2, 3)
    report["rows"] = [row | {"sure": 0, "sure_covered": 0} for row in second]
    assert noise.elsewhere(report)["docs/guarantees.md"].endswith(" % of 15 | none |")


def test_units_in_doubt_are_left_out() -> None:
    net, X = rl.planted.network(3, 3, rng=0), np.random.default_rng(0).normal(size=(400, 3))
    found = rl.recover(X, net(X), width=3, rng=0)
    rough = replace(found.certificate, notes=("known only roughly, so that …: unit 0, 2",))
    assert noise.undoubted(found) == [0, 1, 2]
    assert noise.undoubted(replace(found, certificate=rough)) == [1]
    other = replace(found.certificate, notes=("other networks fit about as well",))
    assert noise.undoubted(replace(found, certificate=other)) == []


def test_intervals_cover_only_the_truth() -> None:
    right = noise.fit(4, 2, 500, 10.0, None, "relu", 0.95, 60000)
    narrow = noise.fit(4, 2, 500, 10.0, None, "relu", 0.01, 60000)
    assert narrow["covered"] < 0.25 * right["intervals"]  # half of them, if one end were not looked at
    assert 0.75 * right["intervals"] < right["covered"] <= right["intervals"]


def test_single_starts_by_damping(tmp_path: Path) -> None:
    report = run("first_steps", tmp_path, d=5, m=3, ratio=8, seeds=2)
    assert list(first_steps.counts(report)) == ["0.001", "0.1"]
    assert first_steps.counts(report)["0.001"].hits >= 1
    assert "(d, m) = (5, 3), n/p = 8" in first_steps.elsewhere(report)["docs/recover.md"]


def test_smooth_networks_by_samples(tmp_path: Path) -> None:
    report = run("smooth", tmp_path, m=3, ratios=[20, 30], seeds=1)
    assert [row["n"] for row in report["rows"]] == [300, 450] * 3
    words = smooth.elsewhere(report)
    assert set(words) == {"docs/advise.md", "docs/hardness.md"}
    assert "| d = m = 3; samples: | 20 per parameter | 30 per parameter |" in words["docs/advise.md"]
    assert "| orthonormal, b = 0, a = 1 | 1 of 1 (1 start) | 1 of 1 (1 start) |" in words["docs/hardness.md"]
    assert "| orthonormal, without the third moment | " in words["docs/hardness.md"]
    assert begin.third_moment_directions is not smooth.at_random


def test_estimates_beside_times(tmp_path: Path) -> None:
    report = run("advice", tmp_path, sizes=[[5, 3, 6, "relu"]])
    report["rows"][0] |= {"estimate": 3.0, "seconds": 4.0, "starts": 2}
    assert "| (5, 3) | relu | 108 | 3 s | 2 s | 1.5 |" in advice.elsewhere(report)["docs/advise.md"]
    assert json.dumps(advice.comparable(report)) == "{}"
