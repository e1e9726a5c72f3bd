"""A link goes with its network: into every file, every export, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relumine as rl
from relumine import report
from relumine.formats import read_labels
from relumine.links import WORDS, Link, form_of
from relumine.results import Certificate, ModelFileError, Recovery, Status

PLAIN = rl.planted.network(d=4, m=3, rng=0)
SEVERAL = rl.planted.network(d=4, m=3, rng=1, outputs=3)
SKIP = PLAIN.replace(v=[0.3, 0.0, -0.2, 0.1], c=0.5)
DEEP, DEEP_SEVERAL = (rl.planted.deep((4, 3, 3, q), rng=0) for q in (1, 3))
X = np.random.default_rng(0).normal(size=(50, 4))
CASES = [
    *((net, word) for net in (PLAIN, SKIP, DEEP) for word in WORDS if word != "softmax"),
    *((net, word) for net in (SEVERAL, DEEP_SEVERAL) for word in WORDS if word != "two classes"),
]


def result(net, word: str) -> Recovery:
    return Recovery(net, Status.EXACT, "", Certificate(0.0, 10), mapping=Link(form_of(word)))


@pytest.mark.parametrize(("net", "word"), CASES)
@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".json", ".onnx"])
def test_every_file_keeps_the_link(net, word: str, suffix: str, tmp_path: Path) -> None:
    if suffix == ".onnx":
        pytest.importorskip("onnx")
    file = tmp_path / f"net{suffix}"
    result(net, word).export(file)
    kept = read_labels(file)
    assert (kept.link, kept.status) == (word, "exact")
    loaded = rl.Network.load(file)
    assert loaded.q == net.q
    np.testing.assert_array_equal(loaded(X), net(X))  # the network itself gives logits


@pytest.mark.parametrize(("net", "word"), CASES)
def test_onnx_answers_what_was_observed(net, word: str, tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    result(net, word).export(tmp_path / "net.onnx")
    session = ort.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"X": X})
    expected = result(net, word).predict(X)
    assert answer.shape == expected.shape
    np.testing.assert_allclose(answer, expected, rtol=1e-12, atol=1e-14)  # the runtime rounds small p as 1 − p


@pytest.mark.parametrize(("net", "word"), CASES)
def test_torch_answers_what_was_observed(net, word: str) -> None:
    torch = pytest.importorskip("torch")
    with torch.no_grad():
        answer = result(net, word).to_torch()(torch.from_numpy(X)).numpy()
    expected = result(net, word).predict(X)
    np.testing.assert_allclose(answer, expected.reshape(answer.shape), rtol=1e-12)


@pytest.mark.parametrize(("net", "word"), CASES)
def test_a_saved_result_keeps_its_link(net, word: str, tmp_path: Path) -> None:
    report.save(result(net, word), tmp_path / "r.json")
    loaded = report.load(tmp_path / "r.json")
    np.testing.assert_array_equal(loaded.predict(X), result(net, word).predict(X))


def test_a_word_that_is_no_link(tmp_path: Path) -> None:
    result(PLAIN, "logit").export(tmp_path / "net.json")
    text = (tmp_path / "net.json").read_text().replace('"logit"', '"probit"')
    (tmp_path / "net.json").write_text(text)
    with pytest.raises(ModelFileError, match="'probit' is no link"):
        rl.Network.load(tmp_path / "net.json")
