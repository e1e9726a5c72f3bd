"""Classifiers in files of other tools: the probabilities are asked for, in double, and the network behind is found."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

import relumine as rl
from relumine.extraction import extract, open_box

onnx: Any = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

D, M, Q = 5, 4, 3
RNG = np.random.default_rng(0)
MEAN, SCALE = RNG.normal(size=D).astype("f4"), RNG.uniform(0.5, 2.0, D).astype("f4")
W, A = RNG.normal(size=(D, M)).astype("f4"), RNG.normal(size=(M, Q)).astype("f4")
B, C = RNG.normal(size=M).astype("f4"), RNG.normal(size=Q).astype("f4")


def truth(X: np.ndarray) -> np.ndarray:
    """The file's own numbers, computed in double."""
    Z = (X - MEAN.astype("f8")) * SCALE
    return softmax(np.maximum(Z @ W + B.astype("f8"), 0.0) @ A + C.astype("f8"), axis=1)


def classifier(ending: str) -> bytes:
    """A graph as skl2onnx writes it for a scaler and a classifier: scaled in single precision, labels first."""
    h = onnx.helper
    single, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    nodes = [
        h.make_node("Scaler", ["X"], ["scaled"], domain="ai.onnx.ml", offset=MEAN.tolist(), scale=SCALE.tolist()),
        h.make_node("Cast", ["scaled"], ["cast"], to=single),
        h.make_node("MatMul", ["cast", "W"], ["z"]),
        h.make_node("Add", ["z", "B"], ["zb"]),
        h.make_node("Relu", ["zb"], ["h"]),
        h.make_node("MatMul", ["h", "A"], ["y"]),
        h.make_node("Add", ["y", "C"], ["yc"]),
        h.make_node("Softmax", ["yc"], ["p"], axis=1),
        h.make_node("ArgMax", ["p"], ["label"], axis=1, keepdims=0),
    ]
    outputs = [h.make_tensor_value_info("label", whole, ["N"])]
    if ending == "dictionaries":
        nodes.append(h.make_node("ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1, 2]))
        kind = h.make_map_type_proto(whole, h.make_tensor_type_proto(single, []))
        outputs.append(onnx.ValueInfoProto(name="maps", type=h.make_sequence_type_proto(kind)))
    elif ending == "columns":
        nodes.append(h.make_node("Split", ["p"], ["p0", "p1", "p2"], axis=1))
        outputs += [h.make_tensor_value_info(f"p{k}", single, ["N", 1]) for k in range(Q)]
    else:
        outputs.append(h.make_tensor_value_info("p", single, ["N", Q]))
    constants = [onnx.numpy_helper.from_array(v, n) for n, v in (("W", W), ("B", B), ("A", A), ("C", C))]
    entry = h.make_tensor_value_info("X", single, ["N", D])
    graph = h.make_graph(nodes, "classifier", [entry], outputs, constants)
    opsets = [h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 1)]
    model = h.make_model(graph, opset_imports=opsets)
    model.ir_version = 8
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("ending", ["array", "dictionaries", "columns"])
def test_a_classifier_with_labels_and_probabilities(ending: str, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(classifier(ending))
    X = np.random.default_rng(1).normal(size=(50, D))
    np.testing.assert_allclose(open_box(file).ask(X), truth(X), rtol=1e-12)
    found = extract(file, link="auto", mean=MEAN, scale=1.0 / SCALE, rng=0)
    assert (found.status.value, found.link, found.network.m) == ("exact", "softmax", M)
    np.testing.assert_allclose(found.predict(X), truth(X), atol=1e-9)


@pytest.mark.parametrize("ending", ["array", "dictionaries"])
def test_without_the_onnx_package_the_runtime_gives_single_precision(ending: str, tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(classifier(ending))
    monkeypatch.setattr("relumine.extraction.boxes.in_double", lambda path: None)
    X = np.random.default_rng(1).normal(size=(50, D)).astype("f4").astype("f8")
    np.testing.assert_allclose(open_box(file).ask(X), truth(X), atol=1e-5)


@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_a_file_by_skl2onnx(name: str, tmp_path: Path) -> None:
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    from tests.extraction.test_links import classes

    pipe, X, net = classes(name, 8, 0)
    (tmp_path / "model.onnx").write_bytes(to_onnx(pipe, X[:1]).SerializeToString())
    found = extract(tmp_path / "model.onnx", link="auto", mean=X.mean(axis=0), scale=X.std(axis=0), rng=0)
    assert rl.metrics.parameter_error(net, found.network) < 1e-8
    np.testing.assert_allclose(found.predict(X), pipe.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("kind", ["module", "file"])
@pytest.mark.parametrize("last", ["Sigmoid", "Softmax"])
def test_torch_with_batch_norm(last: str, kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    q = 1 if last == "Sigmoid" else 3
    layers = [torch.nn.Linear(D, M), torch.nn.BatchNorm1d(M), torch.nn.ReLU(), torch.nn.Linear(M, q)]
    module = torch.nn.Sequential(*layers, torch.nn.Sigmoid() if q == 1 else torch.nn.Softmax(1))
    for _ in range(5):
        module(1.0 + 2.0 * torch.randn(20, D))
    module.eval()
    box: Any = module
    if kind == "file":
        box = tmp_path / "model.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the newer exporter needs another package
            axes = {"X": {0: "n"}}
            torch.onnx.export(
                module, (torch.randn(4, D),), str(box), dynamo=False, input_names=["X"], dynamic_axes=axes
            )
    found = extract(box, link="auto", rng=0)
    assert (found.status.value, found.network.m) == ("exact", M)
    X = np.random.default_rng(1).normal(size=(50, D))
    with torch.no_grad():
        expected = module.double()(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(found.predict(X).reshape(expected.shape), expected, atol=1e-9)
