"""Boxes as people meet them: each is either recovered to what its digits allow, or refused with the right reason."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax
from tests.cli.cli_runs import run
from tests.extraction.black_boxes import SECRET, WIDE, Flaky, found

import relumine as rl
from relumine.extraction import asked, open_box
from relumine.extraction.kinds import kind_of, rounds_inputs
from relumine.results import InvalidInput, Status


def one_row(x: np.ndarray) -> float:
    """Refuses a matrix."""
    if x.ndim != 1:
        raise TypeError("one row, please")
    return float(SECRET(x[None])[0])


def adds_up(x: np.ndarray) -> float:
    """Takes a matrix for a row, and answers one number."""
    return float(np.maximum(np.tensordot(x, np.ones(x.shape), x.ndim), 0.0))


def by_index(x: np.ndarray) -> float:
    """Takes a matrix for a row, and answers as many numbers as there are inputs."""
    return np.maximum(x[0] - 2.0 * x[1] + 0.5, 0.0)


@pytest.mark.parametrize("rows", [None, "one"])
def test_a_function_of_one_row(rows: str | None) -> None:
    result = found(one_row, rows=rows)
    assert result.status is Status.EXACT
    assert rl.metrics.parameter_error(SECRET, result.network) < 1e-8


@pytest.mark.parametrize("dim", [5, 8])  # 8 rows are asked first
@pytest.mark.parametrize("box", [adds_up, by_index])
def test_a_function_of_one_row_that_takes_a_matrix_for_one(box, dim: int) -> None:
    result = found(box, dim=dim)
    assert (result.status, result.network.m) == (Status.EXACT, 1)


def test_a_function_of_one_row_with_several_outputs() -> None:
    result = found(lambda x: WIDE(np.atleast_2d(x))[0] if x.ndim == 1 else 1 / 0)
    assert result.status is Status.EXACT
    assert rl.metrics.parameter_error(WIDE, result.network) < 1e-8


@pytest.mark.parametrize("rows", [None, "one"])
def test_named_columns(rows: str | None) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")

    def box(frame):
        return np.maximum(frame["age"] - 2.0 * frame["income"], 0.0) + frame["height"]

    result = found(box, dim=None, columns=["age", "height", "income"], rows=rows)
    assert result.status is Status.EXACT
    assert np.allclose(np.abs(result.network.W), [[1.0, 0.0, 2.0]] / np.sqrt(5.0), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "value"), [("columns", "age"), ("columns", []), ("rows", "two"), ("dim", 4), ("rows", 1)]
)
def test_wrong_forms_are_refused(name: str, value: object) -> None:
    options = {"columns": ["a", "b", "c", "d", "e"]} if name != "columns" else {}
    with pytest.raises(InvalidInput):
        found(SECRET, **{**options, name: value})


def mlp(columns: list[str] | None = None):
    """A fitted regressor behind a scaler, without the fitting, and its network."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = 3.0 + 2.0 * rng.normal(size=(60, 5))
    if columns is not None:
        X = pytest.importorskip("pandas").DataFrame(X, columns=columns)
    pipe = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(6,), max_iter=20, random_state=0))
    pipe[-1].set_params(tol=1e9, n_iter_no_change=1)  # converged, as far as it knows
    pipe.fit(X, rng.normal(size=60))
    W = pipe[-1].coefs_[0].T / pipe[0].scale_
    net = rl.Network(
        W, pipe[-1].intercepts_[0] - W @ pipe[0].mean_, pipe[-1].coefs_[1][:, 0], c=pipe[-1].intercepts_[1][0]
    )
    return pipe, net, LinearRegression().fit(X, rng.normal(size=60))


@pytest.mark.parametrize("columns", [None, ["a", "b", "c", "d", "e"]])
def test_a_pipeline(columns: list[str] | None) -> None:
    pipe, net, linear = mlp(columns)
    result = found(pipe, dim=None, mean=3.0, scale=2.0)
    assert result.status is Status.EXACT
    assert rl.metrics.parameter_error(net, result.network) < 1e-8
    assert found(linear, dim=None).network.m == 0


def test_a_classifier_is_asked_for_probabilities_and_never_for_labels() -> None:
    from scipy.special import expit

    def proba(X):
        return np.column_stack([expit(-SECRET(X)), expit(SECRET(X))])

    classifier = SimpleNamespace(predict=lambda X: SECRET(X) > 0.0, predict_proba=proba, n_features_in_=5)
    result = found(classifier, dim=None, link="auto")
    assert (result.status, result.link) == (Status.EXACT, "logit")
    with pytest.raises(InvalidInput, match=r"link='auto'"):
        found(classifier)
    without = SimpleNamespace(predict=classifier.predict, classes_=[0, 1], decision_function=SECRET)
    assert found(without).status is Status.EXACT
    with pytest.raises(InvalidInput, match="labels"):
        found(SimpleNamespace(predict=classifier.predict, classes_=[0, 1]))


def test_a_keras_model_is_asked_in_single_precision() -> None:
    class Model:
        __module__ = "keras.models"

        def __call__(self, X):
            return SECRET(X.astype(np.float32)).astype(np.float32)

    assert open_box(Model()).kind is np.float32
    assert found(Model()).status is Status.NOISY


def test_batch_norm_of_a_torch_module_is_folded() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1))
    net(3.0 * torch.randn(64, 4) + 1.0)  # the running means are no longer 0
    result = found(net, dim=4)
    assert result.status is Status.EXACT
    X = np.random.default_rng(0).normal(size=(50, 4))
    with torch.no_grad():
        expected = net.double().eval()(torch.from_numpy(X)).numpy()[:, 0]
    assert np.abs(result.network(X) - expected).max() < 1e-9


class Slow:
    """A box that takes its time for every call, and counts how many are made at the same time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now, self.most, self.lock = seconds, 0, 0, threading.Lock()

    def __call__(self, X: np.ndarray) -> np.ndarray:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return SECRET(X)


class Crowd(Slow):
    """Calls wait a little for each other until so many were made at the same time, however busy the machine is."""

    def __init__(self, wanted: int) -> None:
        super().__init__(0.0)
        self.wanted, self.met = wanted, threading.Event()

    def __call__(self, X: np.ndarray) -> np.ndarray:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.most >= self.wanted:
                self.met.set()
        self.met.wait(0.3)
        with self.lock:
            self.now -= 1
        return SECRET(X)


def test_workers_ask_at_the_same_time_and_answers_keep_their_order() -> None:
    crowd = Crowd(4)
    result = found(crowd, batch=4, workers=8)
    assert result.status is Status.EXACT
    assert 4 <= crowd.most <= 8
    assert np.allclose(result.y, SECRET(result.X), rtol=1e-12, atol=1e-12)
    assert found(Flaky(0.2), batch=4, workers=3, retries=20).status is Status.EXACT


@pytest.mark.slow
def test_eight_workers_take_a_fifth_of_the_time() -> None:
    spent = []
    for workers in (1, 8):
        began = time.monotonic()
        assert found(Slow(0.05), batch=1, workers=workers).status is Status.EXACT
        spent.append(time.monotonic() - began)
    assert spent[1] <= spent[0] / 5.0


class Hangs:
    """Never comes back from a call that reaches its row number ``row``."""

    def __init__(self, row: int) -> None:
        self.row, self.seen, self.free = row, 0, threading.Event()

    def __call__(self, X: np.ndarray) -> np.ndarray:
        self.seen += len(X)
        if self.seen >= self.row:
            self.free.wait(60.0)
        return SECRET(X)


@pytest.mark.parametrize("workers", [1, 4])
def test_a_box_that_hangs_ends_in_time_and_is_resumed(tmp_path: Path, workers: int) -> None:
    hangs, began = Hangs(60), time.monotonic()
    result = found(hangs, seconds=1.5, batch=8, workers=workers, save=tmp_path / "log.npz", on_failure="return")
    assert time.monotonic() - began < 2.2
    hangs.free.set()
    assert result.status is Status.INTERRUPTED
    assert 0 < len(result.X) < 60
    again = found(SECRET, save=tmp_path / "log.npz", resume=True)
    assert again.status is Status.EXACT
    assert len(again.X) > len(result.X)


@pytest.mark.parametrize("workers", [0, 1.5, True])
def test_workers_are_a_number(workers: object) -> None:
    with pytest.raises(InvalidInput):
        found(SECRET, workers=workers)


def test_without_a_limit_there_is_one_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "_LIMIT", 0.5)
    result = found(Slow(0.1), batch=4, on_failure="return")
    assert result.status is Status.INTERRUPTED
    assert "seconds=" in result.message


def test_links_and_workers_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("a_classifier_of_mine.py").write_text(
        "import numpy as np\n"
        "def f(X):\n"
        "    return 1 / (1 + np.exp(-np.maximum(X[:, 0] + 2 * X[:, 1] + 0.3, 0) + X[:, 2]))\n"
    )
    options = ("--dim", 3, "--json", "-q", "--workers", 2)
    result = run("extract", "a_classifier_of_mine:f", *options, "--link", "auto", "--mean", 0.1, "--scale", 1.5)
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["status"] == "exact"
    assert "logits" in str(content["certificate"])
    assert run("extract", "a_classifier_of_mine:f", *options, "--link", "probit").exit_code == 2


NOISE = np.random.default_rng(0)
KINDS = {
    "labels": lambda X: (X[:, 0] - X[:, 1] > 0.2).astype(float),
    "constant": lambda X: np.full(len(X), 2.5),
    "random": lambda X: SECRET(X) + 0.1 * NOISE.normal(size=len(X)),
    "rounded": lambda X: SECRET(X).round(4),
    "smooth": lambda X: np.tanh(SECRET(X) + X[:, 0]) * X[:, 1],
    "probabilities": lambda X: softmax(WIDE(X), axis=1),
    "steps": lambda X: np.floor(8.0 * X[:, 0] + 3.0 * X[:, 1]) + 0.125 * np.floor(X[:, 2] * 4.0),
    "piecewise linear": SECRET,
    "unknown": lambda X: SECRET(X) + 1e-3 * np.sin(1e6 * X[:, 0]),  # bends everywhere, but not smoothly
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_hundred_rows_tell_the_kind(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def ask(X: np.ndarray) -> np.ndarray:
        return KINDS[name](X).reshape(len(X), -1)

    assert kind_of(ask, ask, lambda n: rng.normal(size=(n, 5))).name == name


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("labels", "labels"),
        ("smooth", "activation='tanh'"),
        ("probabilities", "link='auto'"),
        ("steps", "constant but for jumps"),
    ],
)
def test_what_is_no_network_is_refused_soon_and_by_its_name(name: str, word: str) -> None:
    began = time.monotonic()
    result = found(KINDS[name], on_failure="return", seconds=20.0)
    assert result.status is Status.NOT_RECOVERED
    assert word in result.message
    assert time.monotonic() - began < 10.0


def test_rounding_is_named_when_time_is_over() -> None:
    result = found(lambda X: SECRET(X).round(3), on_failure="return", seconds=2.0)
    assert result.status.ok or "3 decimals" in result.message


@pytest.mark.parametrize(
    ("rounding", "words", "d"),
    [
        (np.round, "whole numbers", 1),
        (np.round, "whole numbers", 6),
        (np.floor, "whole numbers", 6),
        (np.trunc, "whole numbers", 6),
        (lambda X: np.round(X, 2), "two decimals", 6),
    ],
)
def test_a_box_that_rounds_its_inputs_is_refused_for_that_reason(
    rounding: Callable[[NDArray[np.float64]], NDArray[np.float64]], words: str, d: int
) -> None:
    secret = rl.planted.network(d, 3, rng=d)
    result = rl.extract(lambda X: secret(rounding(X)), dim=d, rng=0, on_failure="return")
    assert not result.ok
    assert result.message.startswith(f"The box rounds its inputs to {words}")
    assert result.queries < 1000


def test_what_is_said_of_rounded_inputs_helps() -> None:
    secret = rl.planted.network(6, 4, rng=0)

    def whole(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        return rng.integers(-9, 10, (n, 6)).astype(float)

    result = rl.extract(lambda X: secret(np.round(X)), dim=6, sampler=whole, rng=0)
    assert result.status is Status.EXACT
    assert rl.metrics.parameter_error(secret, result.network) < 1e-9


def test_a_tree_does_not_round_its_inputs() -> None:
    X = np.random.default_rng(0).normal(size=(24, 3))
    assert rounds_inputs(lambda X: (X[:, :1] > 0.3) + 2.0 * (X[:, 1:2] > -0.2), X) is None
    assert rounds_inputs(lambda X: np.floor(8.0 * X[:, :1] + 3.0 * X[:, 1:2]), X) is None
