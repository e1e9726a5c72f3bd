"""What a black box can be: functions by name, commands, files, modules, trained networks."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.extraction.black_boxes import SECRET, WIDE, found

import relumine as rl
from relumine.extraction import BlackBoxFailed, extract, open_box
from relumine.results import InvalidInput


def test_module_and_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_box_of_a_test.py").write_text(
        "import numpy as np\ndef f(X):\n    return np.abs(X[:, 0] - X[:, 1])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert found("a_box_of_a_test:f", dim=2).network.m == 1
    for wrong in ("a_box_of_a_test:g", "no_such_module_at_all:f", "math:pi"):
        with pytest.raises(InvalidInput, match=r"cannot be imported|is not a function"):
            open_box(wrong)


COMMAND = """
import sys
for line in sys.stdin:
    x = [float(w) for w in line.split(",")]
    print(repr(max(x[0] - 2 * x[1] + 0.3, 0.0)), -max(x[1] + x[0], 0.0))
"""


@pytest.mark.parametrize("as_text", [True, False])
def test_a_command(tmp_path: Path, as_text: bool) -> None:
    script = tmp_path / "box.py"
    script.write_text(COMMAND)
    command = f"{sys.executable} {script}" if as_text else [sys.executable, str(script)]
    result = found(command, dim=2, width=2)
    assert result.status.value == "exact"
    assert result.network.q == 2


def test_a_command_without_a_time_limit() -> None:
    words = [sys.executable, "-c", "import sys\nfor row in sys.stdin: print(abs(float(row)))"]
    assert found(words, dim=1, width=1, timeout=float("inf")).status.value == "exact"


def test_a_command_that_fails(tmp_path: Path) -> None:
    script = tmp_path / "box.py"
    script.write_text("raise SystemExit('no licence')")
    with pytest.raises(BlackBoxFailed, match="no licence"):
        found([sys.executable, str(script)], retries=1)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_onnx_file(tmp_path: Path, dtype) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'relumine[onnx]'")
    WIDE.save(tmp_path / "net.onnx", dtype=dtype)
    result = extract(tmp_path / "net.onnx", rng=0)
    assert result.status.value == "exact"
    assert rl.metrics.parameter_error(rl.Network.load(tmp_path / "net.onnx"), result.network) < 1e-9


def test_a_torch_module() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'relumine[torch]'")
    module = WIDE.to_torch()
    result = extract(module, rng=0)
    assert rl.metrics.parameter_error(WIDE, result.network) < 1e-9
    torch.manual_seed(0)
    single = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).train()
    result = extract(single, width=4, rng=0)
    assert single.training
    assert rl.metrics.parameter_error(rl.Network.from_torch(single), result.network) < 1e-9


def test_a_torch_module_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'relumine[torch]'")
    nn = "torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))"
    (tmp_path / "a_torch_box_of_a_test.py").write_text(f"import torch\ntorch.manual_seed(0)\nnet = {nn}\n")
    monkeypatch.syspath_prepend(tmp_path)
    box = open_box("a_torch_box_of_a_test:net")
    assert (box.name, box.dim) == ("a_torch_box_of_a_test:net", 3)
    module = import_module("a_torch_box_of_a_test").net.double()
    X = np.eye(3)
    np.testing.assert_allclose(box.ask(X), module(torch.from_numpy(X)).detach().numpy(), rtol=1e-14)


def test_what_is_no_box() -> None:
    for wrong, word in (
        (3, "got int"),
        ("no/such.onnx", "no such ONNX"),
        ("'open", "split into words"),
        ([], "got list"),
    ):
        with pytest.raises(InvalidInput, match=word):
            open_box(wrong)
    with pytest.raises(InvalidInput, match="dim is needed"):
        extract(SECRET)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"dim": 0}, "dim must be"),
        ({"budget": 3}, "budget must be"),
        ({"width": -1}, "width must be"),
        ({"growth": 1.0}, "growth"),
        ({"rate_limit": 0.0}, "rate_limit"),
        ({"retries": -1}, "retries"),
        ({"low": 0.0, "mean": 1.0}, "one end of a range"),
        ({"timeout": 0.0}, "timeout must be"),
        ({"workers": 0}, "workers must be"),
        ({"rows": "two"}, "rows must be"),
        ({"columns": "abc"}, "columns is a list"),
        ({"depth": 0}, "depth is a number"),
        ({"widths": (3, 0)}, "widths are the units"),
        ({"widths": (3, 2), "depth": 3}, "widths are the units"),
        ({"fixed": {7: 1.0}}, "there is none"),
        ({"fixed": {0: "a"}}, "no numbers"),
        ({"fixed": dict.fromkeys(range(5), 0.0)}, "no input is left"),
        ({"total": "one"}, "total is the sum"),
        ({"total": 1.0, "low": 1.0, "high": 2.0}, "cannot sum to 1"),
        ({"link": "probit"}, "link must be"),
        ({"starts": 0}, "starts must be"),
        ({"target": "y"}, "target is for samples"),
        ({"low": 1.0, "high": 0.0}, "low must be below high"),
        ({"fixed": {0: 1.0}, "low": [0.0] * 5, "high": [1.0, 1.0, 1.0, 0.0, 1.0]}, "not for input 3, which is fixed"),
        ({"fixed": {0: 1.0}, "scale": [0.0, 1.0, 1.0, 0.0, 1.0]}, "scale must be positive"),
        ({"low": 0.0, "high": 1.0, "mean": 0.0}, "not several"),
        ({"scale": 0.0}, "scale must be positive"),
        ({"mean": [1.0, 2.0]}, "mean must be a number or 5"),
        ({"sampler": lambda rng, n: np.zeros((n, 2))}, "the sampler"),
        ({"resume": True}, "resume=True needs save"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_bad_arguments_are_named(options, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        found(SECRET, **options)


# -- boxes that fail ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.data / 16.0, data.target


def trained(digits, width: int, target: str):
    from sklearn.neural_network import MLPRegressor

    X, t = digits
    y = {"digit": t.astype(float), "is 3": (t == 3).astype(float), "all": np.eye(10)[t]}[target]
    return MLPRegressor(hidden_layer_sizes=(width,), max_iter=60, random_state=0).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("width", "target", "asked"),
    [
        (16, "digit", 16),
        pytest.param(16, "digit", None, marks=pytest.mark.slow),
        pytest.param(32, "is 3", 32, marks=pytest.mark.slow),
        pytest.param(32, "is 3", None, marks=pytest.mark.slow),
        pytest.param(32, "all", 32, marks=pytest.mark.slow),
        pytest.param(32, "all", None, marks=pytest.mark.slow),
    ],
)
def test_networks_trained_on_digits(digits, width: int, target: str, asked: int | None) -> None:
    model = trained(digits, width, target)
    truth = rl.Network.from_sklearn(model)
    p = sum(getattr(truth, k).size for k in "Wbac")
    result = extract(model.predict, dim=64, width=asked, budget=8 * p, rng=0)
    assert result.queries <= 8 * p
    assert rl.metrics.parameter_error(truth, result.network) < 1e-7 * np.abs(truth.scaled().a).max()
    X = np.random.default_rng(1).normal(size=(1000, 64))
    np.testing.assert_allclose(result.network(X), truth(X), atol=1e-7 * truth(X).std())


@pytest.mark.parametrize("name", ["digits_64_16_1_double", "digits_64_16_1"])
def test_an_onnx_file_of_another_tool(name: str) -> None:
    """64-16-1, trained on digits, written by skl2onnx in double and in single precision; see data/README.md."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'relumine[onnx]'")
    path = Path(__file__).parent / "data" / f"{name}.onnx"
    truth = rl.Network.load(path)
    p = sum(getattr(truth, k).size for k in "Wbac")
    result = extract(path, width=16, budget=8 * p, rng=0)
    assert result.status.value == "exact"
    assert result.queries <= 8 * p
    assert rl.metrics.parameter_error(truth, result.network) < 1e-7
    X = np.random.default_rng(1).normal(size=(1000, 64))
    np.testing.assert_allclose(result.network(X), truth(X), atol=1e-7 * truth(X).std())


def test_an_onnx_file_that_cannot_be_made_double_is_asked_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = import_module("relumine.extraction.boxes")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'relumine[onnx]'")
    path = Path(__file__).parent / "data" / "digits_64_16_1.onnx"
    X = np.random.default_rng(0).normal(size=(50, 64))
    double = open_box(path)
    assert double.kind is np.float64
    for broken in (None, b"not a model"):
        monkeypatch.setattr(boxes, "in_double", lambda _, broken=broken: broken)
        single = open_box(path)
        assert single.kind is np.float32
        np.testing.assert_allclose(single.ask(X), double.ask(X), rtol=1e-4)


@pytest.mark.slow
def test_a_box_in_single_precision() -> None:
    """The function comes back to seven digits; the weakest unit, 250 times weaker than the strongest, to five."""
    truth = rl.Network.load(Path(__file__).parent / "data" / "digits_64_16_1.onnx")
    p = sum(getattr(truth, k).size for k in "Wbac")
    result = extract(lambda X: truth(X).astype(np.float32), dim=64, width=16, budget=8 * p, rng=0)
    assert result.ok
    assert not result.network.v.any()
    assert rl.metrics.parameter_error(truth, result.network) < 1e-4


# -- what must not be believed too soon ------------------------------------------------------------------------------


def test_a_function_of_one_row_that_has_as_many_inputs_as_rows_are_asked_first() -> None:
    """Asked for eight rows of eight inputs it answers eight numbers, which are not one for each row."""
    at = np.linspace(-1.0, 1.0, 8)
    found = extract(lambda x: np.maximum(x - at, 0.0).sum(axis=0), dim=8, rng=0)
    assert found.status.value == "exact"
    X = np.random.default_rng(1).normal(size=(20, 8))
    np.testing.assert_allclose(found.network(X), np.maximum(X - at, 0.0).sum(axis=1), rtol=1e-10)
