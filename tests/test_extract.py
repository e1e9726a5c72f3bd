"""Black boxes of every kind, asked politely, give their network away; broken ones end in words, with answers saved."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import relumine as rl
from relumine.extract import BlackBoxFailed, extract, open_box
from relumine.results import InvalidInput, ModelFileError, RecoveryFailed

SECRET = rl.planted.network(d=5, m=3, rng=0)
WIDE = rl.planted.network(d=5, m=4, rng=3, outputs=3)


def found(f, **options):
    return extract(f, **{"dim": 5, "rng": 0, "pause": 0.0, **options})


class Flaky:
    """Fails now and then, by raising or by NaN, but not twice at the same rows for long."""

    def __init__(self, share: float, how: str = "raise", rows: bool = False) -> None:
        self.rng, self.share, self.how, self.rows, self.failures = np.random.default_rng(5), share, how, rows, 0

    def __call__(self, X: np.ndarray) -> np.ndarray:
        y = SECRET(X)
        if self.rows:
            bad = self.rng.uniform(size=len(X)) < self.share
            self.failures += int(bad.sum())
            return np.where(bad, np.nan, y)
        if self.rng.uniform() < self.share:
            self.failures += 1
            if self.how == "raise":
                raise ConnectionError("try again")
            return np.full(len(X), np.nan) if self.how == "nan" else y[:-1]
        return y


# -- what it finds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [3, None])
def test_a_function(width: int | None) -> None:
    result = found(SECRET, width=width)
    assert result.status.value == "exact"
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-9
    assert result.queries == len(result.X) + 8 == len(result.y) + 8
    assert result.queries < 200
    np.testing.assert_array_equal(SECRET(result.X), result.y)
    assert type(result.recovery) is rl.Recovery
    assert "queries: " in str(result)


def test_the_width_is_found_with_at_most_eight_queries_a_parameter() -> None:
    for m in (4, 5, 7):
        net = rl.planted.network(d=8, m=m, rng=m)
        result = found(net, dim=8)
        assert result.network.m == m
        assert rl.metrics.parameter_error(net, result.network) < 1e-9
        assert result.queries <= 8 * m * 10


def test_all_outputs_at_once() -> None:
    result = found(WIDE)
    assert result.network.q == 3
    assert rl.metrics.parameter_error(WIDE, result.network) < 1e-9
    assert found(lambda X: SECRET(X)[:, None]).network.q is None  # one output is a plain number


@pytest.mark.parametrize(
    "where",
    [
        {"mean": [1.0, 0.0, -1.0, 0.0, 5.0], "scale": 2.0},
        {"low": -3.0, "high": [1.0, 2.0, 3.0, 4.0, 5.0]},
        {"sampler": lambda rng, n: rng.laplace(size=(n, 5))},
    ],
)
def test_queries_where_the_user_wants_them(where) -> None:
    moved = SECRET.replace(b=SECRET.b - SECRET.W @ np.asarray(where.get("mean", np.zeros(5))))
    result = found(moved, width=3, **where)
    assert rl.metrics.parameter_error(moved, result.network) < 1e-8
    if "low" in where:
        assert (result.X >= -3.0).all()
        assert (np.asarray(where["high"]) - result.X).min() >= 0.0


def test_options_are_passed_on() -> None:
    net = rl.planted.network(d=4, m=3, rng=1, activation="tanh")
    result = found(net, dim=4, width=3, activation="tanh")
    assert rl.metrics.parameter_error(net, result.network) < 1e-7


def test_a_noisy_box_is_known_as_one() -> None:
    rng = np.random.default_rng(0)
    result = found(lambda X: SECRET(X) + 0.01 * rng.normal(size=len(X)), width=3, budget=3000)
    assert result.status.value == "noisy"
    assert rl.metrics.parameter_error(SECRET, result.network) < 0.05


def test_a_box_that_repeats_itself_is_never_called_noisy() -> None:
    """Something deterministic that is not a small network: a rough residual must not pass for noise."""
    result = found(lambda X: np.sin(40.0 * X).sum(axis=1) + X[:, 0], budget=200, on_failure="return", starts=1)
    assert not result.ok


def test_the_budget_is_kept() -> None:
    deep = lambda X: np.abs(np.abs(X @ np.ones(5)) - 1.0) ** 1.5  # noqa: E731
    with pytest.raises(RecoveryFailed) as caught:
        found(deep, budget=150, width=2, starts=2)
    assert caught.value.recovery.queries <= 150
    assert len(caught.value.recovery.X) == 142


def test_the_same_seed_asks_the_same() -> None:
    np.testing.assert_array_equal(found(SECRET, width=3).X, found(SECRET, width=3).X)


# -- boxes -----------------------------------------------------------------------------------------------------


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
        ({"low": 0.0}, "both low and high"),
        ({"low": 1.0, "high": 0.0}, "low must be below high"),
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


@pytest.mark.parametrize("how", ["raise", "nan", "short"])
def test_one_call_in_twenty_fails(how: str) -> None:
    box = Flaky(0.05, how)
    result = found(box, width=3, batch=4)
    assert box.failures > 0
    assert result.retried >= box.failures
    assert result.dropped == 0
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-9


def test_one_row_in_twenty_is_nan() -> None:
    box = Flaky(0.05, rows=True)
    result = found(box, width=3)
    assert box.failures > 0
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-9


def test_rows_that_never_work_are_left_out() -> None:
    """A region where the box always fails: the batch is split around it."""

    def box(X: np.ndarray) -> np.ndarray:
        if (X[:, 0] > 1.8).any():
            raise ValueError("out of range")
        return SECRET(X)

    result = found(box, width=3, retries=1)
    assert result.dropped > 0
    assert (result.X[:, 0] <= 1.8).all()
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-8


def test_nan_for_ever_stops_with_a_word(tmp_path: Path) -> None:
    with pytest.raises(BlackBoxFailed, match=r"does not answer.*NaN"):
        found(lambda X: np.full(len(X), np.nan))
    asked = 0

    def dies(X: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += len(X)
        return SECRET(X) if asked <= 40 else np.full(len(X), np.nan)

    path = tmp_path / "queries.npz"
    with pytest.raises(BlackBoxFailed, match=r"saved in .*queries\.npz"):
        found(dies, width=3, save=path, batch=8)
    with np.load(path) as saved:
        np.testing.assert_array_equal(SECRET(saved["X"]), saved["y"])
        assert len(saved["X"]) >= 24


def test_resume_goes_on(tmp_path: Path) -> None:
    path, asked = tmp_path / "queries.npz", []

    def counting(X: np.ndarray) -> np.ndarray:
        asked.append(len(X))
        if sum(asked) > 50 and len(asked) < 100:
            asked.extend([0] * 100)
            raise KeyboardInterrupt
        return SECRET(X)

    with pytest.raises(KeyboardInterrupt):
        found(counting, width=3, save=path, batch=10)
    with np.load(path) as saved:
        before = saved["X"]
    assert len(before) >= 30
    with pytest.raises(InvalidInput, match="exists; pass resume=True"):
        found(counting, width=3, save=path)
    result = found(counting, width=3, save=path, resume=True)
    np.testing.assert_array_equal(result.X[: len(before)], before)
    assert len(np.unique(result.X[:, 0])) == len(result.X)  # nothing was asked twice and counted twice
    assert result.queries == len(result.X) - len(before) + 16
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-9
    with np.load(path) as saved:
        np.testing.assert_array_equal(saved["X"], result.X)


def test_resume_sees_another_box_and_damage(tmp_path: Path) -> None:
    path = tmp_path / "queries.npz"
    found(SECRET, width=3, save=path)
    with pytest.raises(InvalidInput, match="another box"):
        found(lambda X: SECRET(X) + X[:, 0], width=3, save=path, resume=True)
    with pytest.raises(InvalidInput, match="5 inputs"):
        found(SECRET, dim=4, save=path, resume=True)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ModelFileError, match="not a readable npz"):
        found(SECRET, save=path, resume=True)


def test_the_rate_is_kept() -> None:
    """Rows per second over the whole run; the times are those of the calls, so a slow machine cannot fail this."""
    times: list[tuple[float, int]] = []

    def box(X: np.ndarray) -> np.ndarray:
        times.append((time.monotonic(), len(X)))
        return SECRET(X)

    began = time.monotonic()
    found(box, width=3, rate_limit=600.0)
    before_last = sum(rows for _, rows in times[:-1])
    assert before_last >= 16
    assert times[-1][0] - began >= before_last / 600.0


def test_time_is_kept() -> None:
    result = found(lambda X: np.sin(9.0 * X).sum(axis=1), seconds=1.0, on_failure="return", budget=10**6)
    assert not result.ok


# -- trained networks --------------------------------------------------------------------------------------------


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
    """64-16-1, trained on digits, written by skl2onnx in double and in single precision; see tests/data/README.md."""
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
    boxes = import_module("relumine.extract.boxes")
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


@pytest.mark.parametrize(
    "box",
    [
        lambda X: np.column_stack([WIDE(X)[:, 0]] * 2),
        lambda X: 1 / 0,
        lambda X: X[:, 0] * np.nan,
        lambda X: SECRET(X) * (1.0 + 3e-5),
    ],
)
def test_resume_verifies_the_box(tmp_path: Path, box) -> None:
    """A box that fails, or that answers a little differently, is not the one whose answers were saved."""
    path = tmp_path / "queries.npz"
    found(SECRET, width=3, save=path)
    with pytest.raises((BlackBoxFailed, InvalidInput), match=r"had answered|another box"):
        found(box, width=3, save=path, resume=True, retries=1)
    assert found(SECRET, width=3, save=path, resume=True).status.value == "exact"


def test_resume_bears_the_rounding_of_single_precision(tmp_path: Path) -> None:
    path, offset = tmp_path / "queries.npz", 1000.0
    single = lambda X: (SECRET(X) + offset).astype(np.float32)  # noqa: E731
    found(single, width=3, save=path)
    offset += 1e-4  # one unit in the last place
    assert found(single, width=3, save=path, resume=True).ok
    offset += 0.1
    with pytest.raises(InvalidInput, match="another box"):
        found(single, width=3, save=path, resume=True)


def test_a_misfit_is_not_called_rounding() -> None:
    """8e-6 of a sine in single-precision answers is forty times their rounding."""
    box = lambda X: (SECRET(X) + 8e-6 * np.sin(3.0 * X[:, 0])).astype(np.float32)  # noqa: E731
    assert not found(box, width=3, budget=500, on_failure="return").ok


@pytest.mark.parametrize("width", [3, None])
def test_rounding_of_large_answers_is_known_as_such(width: int | None) -> None:
    result = found(lambda X: (SECRET(X) + 1000.0).astype(np.float32), width=width, budget=2000)
    assert result.status.value == "noisy"
    assert result.network.m == 3
    assert "single precision" in result.message


@pytest.mark.parametrize("seed", range(3))
def test_a_unit_that_is_seldom_on_is_found(seed: int) -> None:
    result = found(lambda X: np.maximum(X[:, 0] - 2.3, 0.0), dim=4, rng=seed)
    assert (result.status.value, result.network.m) == ("exact", 1)
    result = found(lambda X: X[:, 1] + np.maximum(X[:, 0] - 2.3, 0.0), dim=4, width=1, rng=seed)
    assert (result.status.value, result.network.m) == ("exact", 1)


def test_no_error_on_few_rows_is_not_rounding() -> None:
    """The rows set aside are all zeros and so is the error on them, but the answers are in double precision."""
    result = found(lambda X: np.maximum(X[:, 0] - 2.3, 0.0), budget=392, on_failure="return")
    assert result.status.value != "noisy"


def test_an_affine_box_is_believed_after_many_rows() -> None:
    result = found(lambda X: X[:, 1] - 1.0)
    assert (result.status.value, result.network.m) == ("exact", 0)
    assert result.queries > 2000
    assert np.abs(result.X).max() > 6.0
    assert found(lambda X: X[:, 1], budget=60).queries == 60  # never beyond the budget


def test_an_affine_box_that_does_not_answer_far_out() -> None:
    def box(X: np.ndarray) -> np.ndarray:
        if (np.abs(X) > 4.5).any():
            raise ValueError("out of range")
        return X[:, 1] - 1.0

    result = found(box, retries=0)
    assert (result.status.value, result.network.m) == ("exact", 0)


def test_a_guessed_width_leaves_nothing_absorbed() -> None:
    assert found(SECRET).units.absorbed == ()
    assert "2 of 5 units" in found(SECRET, width=5).units.absorbed[0]


def test_growing_ends_when_it_does_not_help() -> None:
    """A given width that is too small: the budget is not spent on it."""
    with pytest.raises(RecoveryFailed, match="3 batches in a row") as caught:
        found(WIDE, width=2, starts=2)
    assert caught.value.recovery.queries < 5000


def test_what_failed_with_many_units_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from relumine.extract import run

    widths, recover = [], run.recover
    monkeypatch.setattr(run, "_MANY", 8)
    monkeypatch.setattr(
        run, "recover", lambda X, y, width, **more: widths.append(width) or recover(X, y, width, **more)
    )
    result = found(lambda X: np.sin(X).sum(axis=1), dim=4, budget=190, on_failure="return")
    assert result.status.value == "not recovered"
    assert result.queries == 190
    assert widths == [4, 8]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"seconds": 1e-9}, "seconds"),
        ({"seconds": -1}, "seconds must be"),
        ({"rng": -1}, "rng must be"),
        ({"rng": "x"}, "rng must be"),
        ({"save": "no/such/folder/q.npz"}, "no folder"),
    ],
)
def test_refused_before_the_box_is_asked(options, word: str) -> None:
    def never(X: np.ndarray) -> np.ndarray:
        raise AssertionError("the box was asked")

    with pytest.raises(InvalidInput, match=word):
        found(never, **options)


def test_complex_answers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="complex"):
        found(lambda X: SECRET(X) + 1j)


@pytest.mark.parametrize(
    ("X", "y", "word"),
    [
        (np.zeros((0, 5)), np.zeros(0), "no answers"),
        (np.zeros((2, 5)), np.zeros((2, 1, 1)), r"does not hold saved queries.*y \(2, 1, 1\)"),
    ],
)
def test_logs_that_are_no_logs(tmp_path: Path, X, y, word: str) -> None:
    np.savez(tmp_path / "q.npz", X=X, y=y)
    with pytest.raises(InvalidInput, match=word):
        found(SECRET, save=tmp_path / "q.npz", resume=True)
