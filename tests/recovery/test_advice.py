"""Advice before the work: what it says for sizes whose answer is known, and that it says it in words and in JSON."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from relumine.cli.advise import advise as command
from relumine.cli.guard import Guard
from relumine.papers.mondelli2019.regimes import regime
from relumine.recovery import costs as module
from relumine.recovery.advice import advise
from relumine.recovery.costs import rows_to_ask
from relumine.results import InvalidInput

CUBIC = "polynomial(0,1,0,1)"
SPEED = 26e9  # of a matrix product on the machine of docs/benchmarks.md, operations a second


@pytest.fixture
def known_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_gemm_speed", lambda: SPEED)


@pytest.mark.usefixtures("known_speed")
@pytest.mark.parametrize(
    ("d", "m", "ratio", "measured"),  # docs/benchmarks.md, "Exact recovery"
    [(20, 20, 5, 0.78), (10, 20, 5, 0.45), (50, 20, 5, 3.4), (100, 10, 5, 3.1), (10, 40, 8, 3.3), (50, 50, 6, 17.0)],
)
def test_time_is_that_of_measured_runs(d: int, m: int, ratio: int, measured: float) -> None:
    estimate = advise(d, m, samples=ratio * m * (d + 1)).seconds
    assert measured / 3.5 < estimate < 3.5 * measured


@pytest.mark.usefixtures("known_speed")
def test_memory_is_that_of_a_measured_run() -> None:
    assert advise(100, 100, samples=80_800).memory_bytes == pytest.approx(261e6, rel=0.3)


def test_a_good_case() -> None:
    advice = advise(10, 5)
    assert advice.verdict == "easy"
    assert advice.worth_trying
    assert advice.identifiable
    assert advice.order == 1
    assert advice.parameters == 5 * 11 + 11
    assert advice.samples == 5 * advice.parameters
    assert [name for name, _ in advice.methods] == ["auto", "awasthi", "zhong"]


@pytest.mark.parametrize(("d", "m", "order"), [(10, 10, 1), (10, 11, 2), (10, 55, 2), (10, 56, 3)])
def test_order_at_which_relu_units_are_determined(d: int, m: int, order: int) -> None:
    advice = advise(d, m)
    assert advice.order == order
    if order > 1:
        assert f"order {2 * order + 2}" in str(advice)
    assert ("zhong" in dict(advice.methods)) == (m <= d)


@pytest.mark.parametrize(("d", "r"), [(10, 40), (36, 230), (50, 1000)])
def test_cubic_units_between_the_powers_are_hard(d: int, r: int) -> None:
    advice = advise(d, r, CUBIC)
    assert advice.verdict == "hard"
    assert not advice.worth_trying
    for word in ("d^1.5", "d²", "Theorem 1", "mean of y", "Believed to be impossible"):
        assert word in str(advice)
    assert regime(d, r, CUBIC).reason == advice.hardness
    assert advice.identifiable == (d == 36)  # elsewhere there are more weights than coefficients
    assert advise(d, d // 2, CUBIC).worth_trying


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_what_no_data_can_show(name: str) -> None:
    advice = advise(10, 5, name)
    assert advice.verdict == "not determined"
    assert not advice.identifiable
    assert not advice.methods
    assert "samples " not in str(advice)
    assert "Cannot be recovered" in str(advice)


@pytest.mark.parametrize(
    ("name", "symmetry"),
    [
        ("relu", "(w, b) from (−w, −b), but for an affine part"),
        ("tanh", "(w, b, a) from (−w, −b, −a)"),
        ("sigmoid", "(w, b, a) from (−w, −b, −a), but for a constant"),
        ("leaky_relu(-1)", "(w, b) from (−w, −b)"),
    ],
)
def test_symmetries_in_words(name: str, symmetry: str) -> None:
    advice = advise(10, 5, name)
    assert symmetry in advice.symmetries
    assert symmetry in str(advice)
    assert ("how the scale of a unit is shared between (w, b) and a" in advice.symmetries) == ("relu" in name)
    assert ("awasthi" in dict(advice.methods)) == (name == "relu")


@pytest.mark.parametrize(
    ("samples", "words"),
    [(50, "under-determined"), (100, "rarely enough"), (150, "several starts"), (1000, "enough for exact data")],
)
def test_samples_in_words(samples: int, words: str) -> None:
    advice = advise(10, 5, samples=samples)  # 66 parameters
    assert any(words in remark for remark in advice.remarks)
    assert (advice.given, advice.samples) == (samples, 330)
    assert advice.worth_trying == (samples != 50)
    assert ("Not with these samples" in advice.title) == (samples == 50)


@pytest.mark.usefixtures("known_speed")
def test_too_large_for_any_machine() -> None:
    advice = advise(5000, 5000)
    assert not advice.worth_trying
    assert "Not on this machine" in advice.title
    assert any("does not fit" in remark for remark in advice.remarks)


def test_noise_has_its_words() -> None:
    assert any("standard error" in remark for remark in advise(10, 5, noise=True).remarks)


def test_advice_comes_quickly() -> None:
    began = time.process_time()
    advise(50, 50)
    assert time.process_time() - began < 1.0  # a guard against work, not a measure of speed


@pytest.mark.parametrize("arguments", [(0, 5), (5, 0), (5, 5, "relu", 0), (5, 5, "nonsense"), (True, 5), (5, 2.5)])
def test_bad_sizes_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(InvalidInput):
        advise(*arguments)  # type: ignore[arg-type]


def test_numpy_sizes_are_sizes() -> None:
    of_numpy = advise(np.int64(10), np.int64(5), samples=np.int64(100)).to_dict()  # type: ignore[arg-type]
    of_python = advise(10, 5, samples=100).to_dict()
    # the time is measured anew for each of them
    assert json.dumps(of_numpy | {"seconds": 0.0}) == json.dumps(of_python | {"seconds": 0.0})


# The command


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer(cls=Guard)  # with the guard that turns errors into words
    app.command("advise")(command)
    app.callback()(lambda: None)
    return app


def test_command_speaks(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["advise", "--dim", "10", "--width", "20"])
    assert result.exit_code == 0
    assert result.output.startswith("20 ReLU units in 10 dimensions: Possible in principle")
    assert "samples" in result.output
    result = CliRunner().invoke(app, ["advise", "--dim", "36", "--width", "230", "--activation", CUBIC])
    assert result.exit_code == 1
    assert "Theorem 1" in result.output.replace("\n", " ")


def test_command_prints_json(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["advise", "--dim", "10", "--width", "5", "--samples", "400", "--json"])
    content = json.loads(result.output)
    assert result.exit_code == 0
    assert (content["given"], content["samples"]) == (400, 330)
    assert content["worth_trying"] is True
    assert content["methods"].keys() == {"auto", "awasthi", "zhong"}


def test_command_refuses_in_words(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["advise", "--dim", "0", "--width", "5"])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_too_few_samples_are_not_worth_trying(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["advise", "--dim", "10", "--width", "20", "--samples", "100"])
    assert result.exit_code == 1
    assert "samples  1,155 needed for exact data; you have 100" in result.output
    noisy = str(advise(10, 20, samples=5000, noise=True))
    assert "2,310 or more needed for noisy data; you have 5,000" in noisy
    assert "enough for noisy data" in noisy
    assert "exact data;" not in noisy


def test_what_asking_takes_is_said_beside_what_samples_take() -> None:
    advice = advise(784, 128)
    assert advice.queries == rows_to_ask(784, 128)
    assert f"about {advice.queries:,} rows for extract" in str(advice)
    assert advise(10, 5, "leaky_relu(0.1)").queries is not None
    assert advise(10, 5, "tanh").queries is None
    assert advise(10, 5, "squared_relu").queries is None


@pytest.mark.parametrize(
    ("widths", "least", "most"),  # docs/deep.md: rows that were asked
    [((10, 10, 10), 3423, 4205), ((100, 50, 50), 31_639, 32_398), ((40, 20, 10, 10), 16_751, 18_787),
     ((784, 32, 32), 57_514, 60_655), ((10, 20, 20), 19_770, 22_228)],
)  # fmt: skip
def test_several_layers_are_about_queries(widths: tuple[int, ...], least: int, most: int) -> None:
    advice = advise(widths[0], widths[1:])
    assert most / 1.5 < advice.queries < 1.5 * least
    assert advice.samples is None
    assert advice.parameters == sum((a + 1) * b for a, b in pairwise((*widths, 1)))
    assert advice.worth_trying
    assert "rl.extract" in str(advice)


def test_several_layers_and_noise_do_not_go_together() -> None:
    assert not advise(20, (10, 10), noise=True).worth_trying


@pytest.mark.parametrize(("width", "named"), [((), "width"), ((5, 0), "width"), ((5, 2.5), "width")])
def test_layers_are_whole_numbers(width: object, named: str) -> None:
    with pytest.raises(InvalidInput, match="each layer") as error:
        advise(10, width)  # type: ignore[arg-type]
    assert error.value.argument == named


@pytest.mark.parametrize("more", [{"samples": 100}, {"weights": "separated"}])
def test_what_several_layers_would_ignore_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="about queries"):
        advise(10, (5, 5), **more)  # type: ignore[arg-type]


def test_one_layer_may_be_a_sequence() -> None:
    assert advise(10, [5]).samples == advise(10, 5).samples


def test_layers_on_the_command_line() -> None:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, ["--dim", "784", "--width", "32,32", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["queries"] == rows_to_ask(784, (32, 32))
