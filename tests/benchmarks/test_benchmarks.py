"""The benchmark harness: every method runs or says why not, results survive a stop, comparisons do not cry wolf."""

from __future__ import annotations

import inspect
import json
import time
from pathlib import Path

import numpy as np
import pytest
from benchmarks.clock import budget
from benchmarks.compare import Speed, findings
from benchmarks.counting import Count, fewer, wilson
from benchmarks.measures import MEASURES, ablation, beside, frontier, hard, rates
from benchmarks.measures.fair import contest, exact
from benchmarks.methods import METHODS, OURS
from benchmarks.results import ROOT, Store, load, machine
from benchmarks.tables import elsewhere, page, write
from benchmarks.text import seeds_of
from tests.catalogue import CATALOGUE
from tests.catalogue.base import Problem, generic
from tests.catalogue.shipped import FOLDER

import relumine as rl
from benchmarks import __main__ as command
from benchmarks import reaching

TINY = Problem("tiny", 4, 2, generic(4, 2, 60, family="conditioned"), biased=False)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs_or_says_why_not(name: str) -> None:
    method = METHODS[name]
    why = method.skip(TINY)
    if why is not None:
        assert "not installed" in why
        pytest.skip(why)
    _, X, y = TINY.make(0)
    found = method.run(X, y, 2, 1.0)
    assert found.W.shape == (2, 4)
    # hidden units that explain something: no affine function comes near
    affine = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y)[1][0] / len(y)
    assert np.mean((found(X) - y) ** 2) < 0.5 * affine


@pytest.mark.parametrize("name", ["relumine", "relumine zhong", "scipy LM", "scipy TRF"])
def test_methods_that_can_be_exact_are(name: str) -> None:
    truth, X, y = TINY.make(0)
    assert rl.metrics.parameter_error(truth, METHODS[name].run(X, y, 2, 3.0, rng=5)) < 1e-8


def test_methods_say_what_they_cannot_do() -> None:
    wide = Problem("wide", 3, 5, generic(3, 5, 6))
    assert "width 5 > d = 3" in str(METHODS["relumine zhong"].skip(wide))
    assert "width 5 > d = 3" in str(METHODS["relumine awasthi"].skip(wide))
    many = Problem("several outputs", 4, 2, generic(4, 2, 20, outputs=2), outputs=2)
    assert all(METHODS[name].skip(many) for name in METHODS if name != OURS)


@pytest.mark.parametrize("name", CATALOGUE)
def test_problems_make_what_they_say(name: str) -> None:
    problem = CATALOGUE[name]
    if "-1 n/p" in name and not FOLDER.exists():
        pytest.skip("the trained networks are not beside the checkout")
    if problem.d * problem.m > 1600:
        pytest.skip("large")
    truth, X, y = problem.make(3)
    assert (truth.d, truth.m) == (problem.d, problem.m)
    assert X.shape == (len(y), problem.d)
    np.testing.assert_allclose(truth(X), y)
    assert (y.shape[1] if y.ndim > 1 else 1) == problem.outputs


def test_a_budget_ends_what_does_not_end_itself() -> None:
    began, turns = time.process_time(), 0
    with budget(0.1):
        while True:
            turns += 1
    assert turns > 0
    assert time.process_time() - began < 1.0


def test_a_budget_swallows_nothing_else() -> None:
    with pytest.raises(ZeroDivisionError), budget(10.0):
        raise ZeroDivisionError


def test_the_contest_is_fair() -> None:
    results = contest(TINY, 0, [OURS, "scipy LM"])
    assert exact(results[OURS])
    assert exact(results["scipy LM"])
    assert results["scipy LM"]["seconds"] < 3.0


def test_ablation_finds_the_network_with_all_parts() -> None:
    planted = generic(6, 3, 20)(1)
    assert ablation.search(planted, 5.0, 0, (True, 1.5, True, ""))["exact"]
    assert ablation.search(planted, 5.0, 0, (False, 1.0, False, ""))["starts"] >= 1
    assert ablation.search(planted, 5.0, 0, (True, 1.5, False, "cycles and early signs"))["exact"]


# -- counting -----------------------------------------------------------------------------------------------


def test_wilson_against_known_values() -> None:
    np.testing.assert_allclose(wilson(0, 10), (0.0, 0.2775), atol=5e-4)
    np.testing.assert_allclose(wilson(20, 20), (0.8389, 1.0), atol=5e-4)
    np.testing.assert_allclose(wilson(5, 10), (0.2366, 0.7634), atol=5e-4)


def test_fewer_needs_more_than_chance() -> None:
    assert fewer(Count(10, 20), Count(20, 20))
    assert not fewer(Count(19, 20), Count(20, 20))
    assert not fewer(Count(20, 20), Count(10, 20))


# -- results, comparison, tables ----------------------------------------------------------------------------


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "toy.json"
    store = Store(path, "rates", {"seeds": 2})
    store.add("one", {"x": np.float64(1.23456789), "y": float("inf"), "z": np.int64(3)}, 1.0)
    again = Store(path, "rates", {"seeds": 2})
    assert again.rows == {"one": {"key": "one", "x": 1.235, "y": None, "z": 3}}
    assert (again.seconds, again.complete) == (1.0, False)
    again.finish()
    assert Store(path, "rates", {"seeds": 2}).complete
    assert not Store(path, "rates", {"seeds": 3}).rows
    assert not Store(path, "rates", {"seeds": 2}, again=True).rows
    machine = json.loads(path.read_text())["machine"]
    assert {"cpu", "cores", "numpy", "scipy", "relumine", "blas", "gemm_gflops", "python"} <= set(machine)


def toy_rates(hits: int, runs: int, seconds: float) -> dict:
    ours = [{"seconds": seconds, "loss": 1e-30, "error": 1e-12 if k < hits else 1.0} for k in range(runs)]
    other = {"seconds": 1.0, "loss": 1e-3, "error": 2.0}
    rows = [
        {"key": str(k), "problem": "(10,5) n/p=6", "seed": k, "methods": {OURS: mine, "scipy LM": other}}
        for k, mine in enumerate(ours)
    ]
    machine = {"cpu": "toy", "cores": 1, "memory_gb": 1, "python": "3", "blas": "b", "gemm_gflops": 40.0}
    head = {"measure": "rates", "complete": True, "seconds": 1.0, "machine": machine, "settings": rates.QUICK}
    return head | {"rows": rows}


def compared(tmp_path: Path, old: dict, new: dict) -> int:
    for name, report in (("old", old), ("new", new)):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "rates.json").write_text(json.dumps(report))
    return command.main(["compare", str(tmp_path / "old"), str(tmp_path / "new")])


def test_compare_sees_a_regression_and_does_not_cry_wolf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = toy_rates(20, 20, 0.5)
    assert compared(tmp_path, usual, toy_rates(19, 20, 0.55)) == 0
    assert "worse:" not in capsys.readouterr().out
    assert compared(tmp_path, usual, toy_rates(12, 20, 0.5)) == 1
    assert "worse: rates: exact, (10,5) n/p=6: 20/20" in capsys.readouterr().out
    assert compared(tmp_path, usual, toy_rates(20, 20, 1.5)) == 1
    assert "worse: rates: time" in capsys.readouterr().out
    assert compared(tmp_path, toy_rates(12, 20, 1.5), usual) == 0
    assert "better: rates: exact" in capsys.readouterr().out
    assert command.main(["compare", str(tmp_path / "nowhere"), str(tmp_path / "new")]) == 1


def test_a_slower_machine_is_not_a_slower_program() -> None:
    old, new = toy_rates(20, 20, 0.5), toy_rates(20, 20, 1.0)
    new["machine"]["gemm_gflops"] = 20.0
    assert all(f.verdict == 0 for f in findings("rates", rates.comparable(old), rates.comparable(new)))
    assert findings("hot", {"a": Speed(0.8)}, {"a": Speed(0.5)})[0].verdict == -1
    assert findings("hot", {"a": Speed(0.8)}, {"a": Speed(0.7)})[0].verdict == 0


def test_tables_come_from_the_results(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "rates.json").write_text(json.dumps(toy_rates(19, 20, 0.25)))
    (tmp_path / "README.md").write_text("a\n<!-- recovery table: begin -->old<!-- recovery table: end -->\nb\n")
    assert write(tmp_path / "results", tmp_path) == ["rates"]
    text = (tmp_path / "docs" / "benchmarks.md").read_text()
    assert "| relumine | 19/20 (76–99%) | 19/20 |" in text
    assert (tmp_path / "docs" / "figures" / "bench-rates.svg").exists()
    shown = (tmp_path / "README.md").read_text()
    assert "| (10,5) n/p=6 | 19/20 | 0.25 s | 0/20 (all of them) |" in shown
    assert shown.startswith("a\n")
    assert shown.endswith("b\n")
    assert "old" not in shown


def test_the_search_is_compared_on_the_seeds_that_both_codes_have_run() -> None:
    def row(code: str, seconds: list[float], **rest: object) -> dict[str, object]:
        runs = {"exact": 2, "runs": len(seconds), "wrong": 0, "stopped": 0, "seconds": seconds}
        return {"problem": "(10,5) n/p=2", "code": code} | runs | rest

    rows = [row("now", [1.0, 1.0, 7.0]), row("before", [3.0, 1.0], earlier=True)]
    head = {"measure": "beside", "settings": beside.FULL, "seconds": 9.0}
    text = beside.section(head | {"rows": rows})
    assert "| 2 s † | 1 s | 0.50 |" in text, "two of the four seconds, on two seeds"
    assert beside.comparable({"rows": rows}) == {"exact, (10,5) n/p=2": Count(2, 3)}


def test_two_codes_take_turns() -> None:
    codes = {"now": (2, ROOT), "before": (1, ROOT)}
    rows = beside.in_turns(codes, "(4,2)", 20, first=0, patience=60.0)
    assert {code: (row["exact"], row["runs"], row["wrong"]) for code, row in rows.items()} == {
        "now": (2, 2, 0),
        "before": (1, 1, 0),
    }
    assert all(row["in_turns"] and len(row["seconds"]) == row["runs"] for row in rows.values())


def test_how_far_a_search_gets_is_told_by_the_code() -> None:
    row = reaching.reach(4, 4, 20, 0, 60.0)
    assert (row["status"], row["units"]) == ("exact", 4)
    assert row["error"] < 1e-20
    head = {"measure": "hard", "settings": hard.FULL, "seconds": 9.0}
    stopped = {"key": "now", "status": "interrupted", "units": 525, "steps": 3, "error": 0.5, "seconds": 601.0}
    text = hard.elsewhere(head | {"rows": [stopped]})["docs/hardness.md"]
    assert "| now | interrupted | 525 | 3 | 0.5 | 10 min |" in text
    assert hard.comparable({"rows": [stopped, row | {"error": 0.1}]}) == {"not called exact and wrong": Count(1, 2)}


def test_rows_of_another_machine_say_so(tmp_path: Path) -> None:
    path, settings = tmp_path / "frontier.json", {"first": 0}
    first = Store(path, "frontier", settings)
    first.machine = first.machine | {"cpu": "another", "commit": "abc"}
    first.add("a", {"exact": 1}, 1.0)
    later = Store(path, "frontier", settings)
    later.add("b", {"exact": 1}, 1.0)
    later.finish()
    report = load(path)
    assert report is not None
    assert [(row["key"], row.get("cpu"), row.get("commit")) for row in report["rows"]] == [
        ("a", "another", "abc"),
        ("b", None, None),
    ]
    assert report["machine"]["cpu"] == machine()["cpu"]
    assert seeds_of(report).endswith("2 s. 1 of 2 rows are from another.")


def test_frontier_is_where_every_larger_number_suffices() -> None:
    counts = {12: Count(20, 20), 8: Count(19, 20), 6: Count(20, 20), 5: Count(12, 20), 4: Count(20, 20)}
    assert frontier.smallest(counts) == 6
    assert frontier.smallest({12: Count(0, 5)}) is None


def test_the_stored_pages_are_those_of_the_stored_results() -> None:
    """Nothing in docs/benchmarks.md and the README's table is typed."""
    root = Path(command.RESULTS).parents[1]
    found = {name: load(command.RESULTS / f"{name}.json") for name in MEASURES}
    reports = {name: report for name, report in found.items() if report is not None and "settings" in report}
    if not reports or not all(report["complete"] for report in reports.values()):
        pytest.skip("a benchmark is running, or has been stopped")
    assert (root / "docs" / "benchmarks.md").read_text() == page(reports)
    for path, name, text in elsewhere(reports):
        assert f"<!-- {name}: begin -->\n{text}\n<!-- {name}: end -->" in (root / path).read_text(), (path, name)


def test_every_measure_has_a_plan() -> None:
    assert sum(measure.MINUTES[1] for measure in MEASURES.values()) < 5.05  # about five minutes
    for measure in MEASURES.values():
        for settings in (measure.FULL, measure.QUICK):
            cells = measure.cells(settings, {})
            keys = [key for key, _ in zip((key for key, _ in cells), range(2000))]
            assert keys or not measure.MINUTES[settings is measure.QUICK]  # some have nothing that is quick
            assert len(set(keys)) == len(keys)


def test_run_writes_rows_and_skips_what_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "--quick", "--only", "width_unknown", "--seeds", "1", "--out", str(tmp_path)]
    assert command.main(arguments) == 0
    report = load(tmp_path / "width_unknown.json")
    assert report is not None
    assert report["complete"]
    assert [row["right_width"] for row in report["rows"]] == [True, True]
    assert command.main(arguments) == 0
    assert "done already" in capsys.readouterr().out


def test_no_jobs_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["run", "--jobs", "0"])
    assert "--jobs must be at least 1, got 0" in capsys.readouterr().err


def test_measures_side_by_side_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # `make test-portable` moves inputs in this process alone, and processes of their own would not see it
    monkeypatch.setattr(rl, "recover", inspect.unwrap(rl.recover))
    arguments = ["run", "--quick", "--only", "width_unknown", "memory", "--seeds", "1", "--jobs", "2"]
    assert command.main([*arguments, "--out", str(tmp_path / "two")]) == 0
    assert command.main(["run", *arguments[1:4], "--seeds", "1", "--out", str(tmp_path / "one")]) == 0
    two, one = load(tmp_path / "two" / "width_unknown.json"), load(tmp_path / "one" / "width_unknown.json")
    assert two is not None
    assert one is not None
    assert [row["error"] for row in two["rows"]] == [row["error"] for row in one["rows"]]
    assert (tmp_path / "two" / "memory.json").exists()
