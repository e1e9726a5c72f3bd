"""Deep networks in files: what comes back is what was written, and damage is seen."""

import json

import numpy as np
import pytest

import relumine as rl
from relumine.formats import LAYERS, read_labels

NETS = [
    rl.planted.deep((5, 4, 3, 1), rng=0),
    rl.planted.deep((3, 4, 4, 2, 3), rng=1, activation="leaky_relu(0.2)"),
    rl.DeepNetwork([([[1.0, 2.0]], [0.5])], rl.Network([[1.0]], [0.0], [[2.0]], v=[[3.0]], c=[1.0])),
]


@pytest.mark.parametrize("net", NETS, ids=str)
@pytest.mark.parametrize("suffix", ["safetensors", "npz", "json", "onnx"])
def test_round_trip(net, suffix, tmp_path):
    if suffix == "onnx":
        pytest.importorskip("onnx")
    file = tmp_path / f"net.{suffix}"
    net.save(file)
    for back in (rl.DeepNetwork.load(file), rl.Network.load(file)):
        assert isinstance(back, rl.DeepNetwork)
        assert back.sizes == net.sizes
        assert back.q == net.q
        assert back.activation == net.activation
        for (W, b), (V, c) in zip(net.maps, back.maps):
            np.testing.assert_array_equal(W, V)
            np.testing.assert_array_equal(b, c)
        np.testing.assert_array_equal(net.head.v, back.head.v)


@pytest.mark.parametrize("net", NETS, ids=str)
def test_onnx_runs_as_it_says(net, tmp_path):
    pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    net.save(tmp_path / "net.onnx")
    X = np.random.default_rng(0).normal(size=(7, net.d))
    session = ort.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"X": X})[0], net(X), rtol=1e-12, atol=1e-12)


def test_a_shallow_file_stays_shallow(tmp_path):
    net = rl.planted.network(4, 3, rng=0)
    for suffix in ("safetensors", "npz", "json"):
        net.save(tmp_path / f"net.{suffix}")
        assert isinstance(rl.Network.load(tmp_path / f"net.{suffix}"), rl.Network)
        with pytest.raises(rl.ModelFileError):
            rl.DeepNetwork.load(tmp_path / f"net.{suffix}")


def test_plain_arrays_are_enough(tmp_path):
    net = rl.planted.deep((5, 4, 3, 1), rng=0)
    arrays = {
        f"{letter}{k}": part for k, pair in enumerate(net.maps) for letter, part in zip("Wb", map(np.atleast_1d, pair))
    }
    arrays["W2"] = np.atleast_2d(arrays["W2"])
    np.savez(tmp_path / "net.npz", **arrays)
    assert rl.metrics.parameter_error(rl.Network.load(tmp_path / "net.npz"), net) == 0.0


@pytest.mark.parametrize(
    "change",
    [{"W1": [[1.0]]}, {"W0": "x"}, {"b0": [1.0, None]}, {"version": "9"}, {"outputs": "2"}, {"W0": [[1e999] * 5] * 4}],
)
def test_damage_is_seen(change, tmp_path):
    file = tmp_path / "net.json"
    rl.planted.deep((5, 4, 3, 1), rng=0).save(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(rl.ModelFileError):
        rl.DeepNetwork.load(file)


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "onnx"])
def test_one_changed_byte_never_changes_a_number(suffix, tmp_path):
    net, file, rng = NETS[0], tmp_path / f"net.{suffix}", np.random.default_rng(0)
    net.save(file)
    data = file.read_bytes()
    for at in range(0, len(data), 5):
        out = bytearray(data)
        out[at] ^= int(rng.integers(1, 256))
        file.write_bytes(bytes(out))
        try:
            back = rl.Network.load(file)
        except rl.ModelFileError:
            continue
        assert (back.activation, back.q) == (net.activation, net.q)
        assert rl.metrics.parameter_error(net, back) == 0.0, at


@pytest.mark.parametrize(
    ("outputs", "rows", "biases", "skips"),
    [("plain", 2, 2, None), ("plain", 1, 2, None), ("plain", 1, 1, 2), ("3", 2, 2, None), ("", 1, 1, None)],
)
def test_outputs_that_are_declared_must_be_there(outputs, rows, biases, skips):
    arrays = {"W0": np.ones((4, 3)), "b0": np.ones(4), "W1": np.ones((2, 4)), "b1": np.ones(2)}
    arrays |= {"W2": np.ones((rows, 2)), "b2": np.ones(biases)} | ({} if skips is None else {"v": np.ones((skips, 2))})
    with pytest.raises(rl.ModelFileError, match="output is declared"):
        LAYERS.parameters("a file", arrays, {"outputs": outputs}, True)


def test_names_of_the_inputs_are_kept(tmp_path):
    file = tmp_path / "net.safetensors"
    labels = rl.results.Labels(("u", "v", "w", "x", "y"), "exact")
    NETS[0].save(file, labels=labels)
    assert read_labels(file) == labels


def test_a_graph_of_another_tool_with_a_skip_connection(tmp_path):
    """The head's linear part sees the layer in front of it, also in a file that does not say who wrote it."""
    onnx = pytest.importorskip("onnx")
    file = tmp_path / "net.onnx"
    NETS[2].save(file)
    model = onnx.load(file)
    graph = onnx.helper.make_graph(
        [
            *model.graph.node[:3],
            onnx.helper.make_node("Gemm", ["h0", "v"], ["skip"], transB=1),
            *model.graph.node[3:5],
            onnx.helper.make_node("Add", ["skip", "units"], ["Y"]),
        ],
        "g",
        model.graph.input,
        model.graph.output,
        model.graph.initializer,
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    file.write_bytes(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())
    X = np.random.default_rng(0).normal(size=(7, 2))
    np.testing.assert_allclose(rl.Network.load(file)(X), NETS[2](X)[:, 0], rtol=1e-12)


def test_scikit_learn_of_any_depth():
    neural = pytest.importorskip("sklearn.neural_network")
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = neural.MLPRegressor(hidden_layer_sizes=(4, 3, 2), solver="lbfgs", max_iter=20, random_state=0)
    with pytest.warns(Warning, match="converge|iterations"):
        model.fit(X, abs(X[:, 0]))
    net = rl.DeepNetwork.from_sklearn(model)
    assert net.widths == (4, 3, 2)
    np.testing.assert_allclose(net(X), model.predict(X), rtol=1e-12, atol=1e-12)


def test_torch_both_ways():
    torch = pytest.importorskip("torch")
    net = rl.planted.deep((5, 4, 3, 2), rng=0)
    X = np.random.default_rng(0).normal(size=(7, 5))
    module = net.to_torch()
    np.testing.assert_allclose(module(torch.from_numpy(X)).detach().numpy(), net(X), rtol=1e-12, atol=1e-12)
    assert rl.metrics.parameter_error(rl.DeepNetwork.from_torch(module), net) == 0.0
