"""Model files and other libraries: what goes out comes back, and runs elsewhere."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relumine import Network
from relumine.activations import Elementwise, Step
from relumine.formats import SUFFIXES
from relumine.results import InvalidInput, MissingPackage, ModelFileError

X = np.random.default_rng(7).normal(size=(40, 3))
SIGMAS = [
    "relu",
    "leaky_relu(0.1)",
    "squared_relu",
    "sigmoid",
    "tanh",
    "silu",
    "linear",
    "quadratic",
    "polynomial(1,-2,0,0.5)",
]
WITH_ERF = ["erf", "gelu"]  # onnxruntime computes erf in single precision only


def a_network(seed: int = 0, *, q: int | None = None, m: int = 4, sigma: str = "relu", skip: bool = True) -> Network:
    rng = np.random.default_rng(seed)
    outputs = () if q is None else (q,)
    v = rng.normal(size=(*outputs, 3)) if skip else None
    a, c = rng.normal(size=(*outputs, m)), rng.normal(size=outputs)
    return Network(rng.normal(size=(m, 3)), rng.normal(size=m), a, sigma, v, c)


def same(one: Network, two: Network) -> bool:
    return one.activation == two.activation and all(
        np.array_equal(getattr(one, k), getattr(two, k)) and getattr(one, k).shape == getattr(two, k).shape
        for k in "Wbavc"
    )


def run(path, X: np.ndarray) -> np.ndarray:
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'relumine[onnx]'")
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()
    return session.run(None, {entry.name: X})[0]


# -- round trips ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10**6),
    q=st.sampled_from([None, 1, 3]),
    m=st.sampled_from([0, 1, 5]),
    sigma=st.sampled_from(SIGMAS),
    skip=st.booleans(),
)
def test_every_format_keeps_every_bit(tmp_path_factory, suffix, seed, q, m, sigma, skip) -> None:
    net = a_network(seed, q=q, m=m, sigma=sigma, skip=skip)
    path = tmp_path_factory.mktemp("round") / f"net{suffix}"
    net.save(path)
    assert same(Network.load(path), net)
    assert list(path.parent.iterdir()) == [path]


def test_extreme_numbers_survive(tmp_path) -> None:
    tiny, huge = np.nextafter(0.0, 1.0), np.finfo(float).max
    net = Network([[tiny, -huge]], [0.1], [1 / 3], v=[-0.0, 1e-300], c=np.pi)
    for suffix in (".safetensors", ".npz", ".json", ".onnx"):
        net.save(tmp_path / f"net{suffix}")
        assert same(Network.load(tmp_path / f"net{suffix}"), net)


def test_native_files_see_a_changed_bit(tmp_path) -> None:
    path = tmp_path / "net.safetensors"
    a_network().save(path)
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ModelFileError, match="checksum"):
        Network.load(path)


@pytest.mark.parametrize("suffix", [".safetensors", ".onnx"])
def test_a_checksum_whose_name_is_damaged_is_missed(tmp_path, suffix: str) -> None:
    path = tmp_path / f"net{suffix}"
    a_network().save(path)
    path.write_bytes(path.read_bytes().replace(b"sha256", b"sha257"))
    with pytest.raises(ModelFileError, match="unknown metadata 'sha257' and no checksum"):
        Network.load(path)


def test_plain_npz_is_a_network(tmp_path) -> None:
    """W, b, a are enough, also in single precision: what a user would write."""
    path = tmp_path / "net.npz"
    np.savez_compressed(path, W=np.eye(3, dtype=np.float32), b=np.zeros(3), a=np.ones(3))
    assert Network.load(path).m == 3
    net = a_network()
    net.save(path)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["W"], net.W)
        assert str(arrays["activation"]) == "relu"


def test_json_is_readable(tmp_path) -> None:
    net = a_network(q=2)
    net.save(tmp_path / "net.json")
    content = json.loads((tmp_path / "net.json").read_text())
    assert content["format"] == "relumine.network"
    assert content["a"] == net.a.tolist()


def test_names_that_say_no_format(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="says no format"):
        a_network().save(tmp_path / "net.txt")
    with pytest.raises(InvalidInput, match=r"float32.*\.onnx"):
        a_network().save(tmp_path / "net.json", dtype="float32")
    (tmp_path / "net.pt").write_bytes(b"x")
    with pytest.raises(ModelFileError, match=r"never opened.*from_torch"):
        Network.load(tmp_path / "net.pt")
    with pytest.raises(ModelFileError, match="no such model file"):
        Network.load(tmp_path)
    with pytest.raises(ModelFileError, match=r"cannot be opened|no such"):
        Network.load("net\0.json")


# -- ONNX -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [None, 1, 3])
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("skip", [False, True])
def test_onnxruntime_agrees(tmp_path, sigma: str, q: int | None, skip: bool) -> None:
    net = a_network(1, q=q, sigma=sigma, skip=skip)
    net.save(tmp_path / "net.onnx")
    out = run(tmp_path / "net.onnx", X)
    assert out.dtype == np.float64
    assert out.shape == net(X).shape
    np.testing.assert_allclose(out, net(X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("sigma", [*SIGMAS, *WITH_ERF])
def test_single_precision(tmp_path, sigma: str) -> None:
    net = a_network(2, sigma=sigma)
    net.save(tmp_path / "net.onnx", dtype="float32")
    out = run(tmp_path / "net.onnx", X.astype(np.float32))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, net(X), rtol=2e-5, atol=2e-5)
    assert Network.load(tmp_path / "net.onnx").activation == net.activation


def test_what_onnx_cannot_say(tmp_path) -> None:
    class Cosine(Elementwise):
        name = "cosine_of_a_test"

    class Softplus(Elementwise):
        name = "softplus_of_a_test"
        steps = (Step("Softplus", ("z",), "h"),)

    with pytest.raises(InvalidInput, match=r"no Erf in double.*float32"):
        a_network(sigma="erf").save(tmp_path / "net.onnx")
    with pytest.raises(InvalidInput, match=r"no Softplus in double.*float32"):
        a_network().replace(activation=Softplus()).save(tmp_path / "net.onnx")
    with pytest.raises(InvalidInput, match="cannot be written as ONNX"):
        a_network().replace(activation=Cosine()).save(tmp_path / "net.onnx")
    with pytest.raises(InvalidInput, match="beyond the range"):
        Network([[1e300]], [0.0], [1.0]).save(tmp_path / "net.onnx", dtype="float32")
    assert not list(tmp_path.iterdir())


def foreign(nodes, constants: dict[str, np.ndarray], path, inputs: tuple[str, ...] = ("in",)) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'relumine[onnx]'")
    h, kind = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [h.make_node(op, ins, outs, **options) for op, ins, outs, options in nodes]
    graph = h.make_graph(
        nodes,
        "g",
        [h.make_tensor_value_info(name, kind, [None, 3]) for name in inputs],
        [h.make_tensor_value_info("out", kind, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    path.write_bytes(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString())


def constants(q: int = 2, m: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    shapes = {"W": (m, 3), "b": (m,), "A": (q, m), "c": (q,), "V": (q, 3)}
    arrays = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return arrays | {"Wt": arrays["W"].T.copy(), "At": arrays["A"].T.copy(), "Vt": arrays["V"].T.copy()}


GRAPHS = {
    "gemm": [
        ("Gemm", ["in", "W", "b"], ["z"], {"transB": 1}),
        ("Relu", ["z"], ["h"], {}),
        ("Gemm", ["h", "A", "c"], ["out"], {"transB": 1}),
    ],
    "matmul": [
        ("MatMul", ["in", "Wt"], ["s"], {}),
        ("Add", ["b", "s"], ["z"], {}),
        ("LeakyRelu", ["z"], ["h"], {"alpha": 0.2}),
        ("MatMul", ["h", "At"], ["t"], {}),
        ("Add", ["t", "c"], ["out"], {}),
    ],
    "dressed": [
        ("Identity", ["in"], ["x"], {}),
        ("Transpose", ["W"], ["Wt2"], {}),
        ("Gemm", ["x", "Wt2", "b"], ["z"], {"alpha": 0.5, "beta": 2.0}),
        ("Tanh", ["z"], ["h"], {}),
        ("MatMul", ["h", "At"], ["t"], {}),
        ("Sub", ["t", "c"], ["u"], {}),
        ("MatMul", ["in", "Vt"], ["skip"], {}),
        ("Add", ["skip", "u"], ["out"], {}),
    ],
}


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_of_other_tools(tmp_path, name: str, q: int) -> None:
    """Read back as a network, they compute what the runtime computes."""
    foreign(GRAPHS[name], constants(q), tmp_path / "net.onnx")
    net = Network.load(tmp_path / "net.onnx")
    assert net.q == (None if q == 1 else q)
    np.testing.assert_allclose(
        net(X).reshape(40, -1), run(tmp_path / "net.onnx", X.astype(np.float32)).reshape(40, -1), atol=3e-6
    )


@pytest.mark.parametrize(
    ("nodes", "word"),
    [
        ([("Relu", ["in"], ["out"], {})], "Relu has no place"),
        ([*GRAPHS["gemm"][:1], ("Gemm", ["z", "At"], ["out"], {})], "two linear maps"),
        ([*GRAPHS["gemm"], ("Softmax", ["out"], ["out2"], {})], "Softmax has no place"),
        ([*GRAPHS["gemm"][:2], ("Relu", ["h"], ["out"], {})], "Relu has no place"),
        (GRAPHS["gemm"][:2], "output is not a linear map"),
        ([*GRAPHS["gemm"][:1], ("Sub", ["b", "z"], ["out"], {})], "Sub has no place"),
        (
            [*GRAPHS["gemm"][:1], ("MatMul", ["in", "Wt"], ["s"], {}), ("Sub", ["z", "s"], ["out"], {})],
            "Sub has no place",
        ),
        ([("Gemm", ["in", "W", "b"], ["z"], {"transB": 1}), ("Add", ["z", "A"], ["out"], {})], "a constant of shape"),
    ],
)
def test_graphs_that_are_more_than_one_layer(tmp_path, nodes, word: str) -> None:
    foreign(nodes, constants(), tmp_path / "net.onnx")
    with pytest.raises(ModelFileError, match=word):
        Network.load(tmp_path / "net.onnx")


def test_two_inputs_are_refused(tmp_path) -> None:
    foreign(GRAPHS["gemm"], constants(), tmp_path / "net.onnx", ("in", "other"))
    with pytest.raises(ModelFileError, match="2 inputs"):
        Network.load(tmp_path / "net.onnx")


def test_weights_in_a_second_file(tmp_path) -> None:
    """Beside the first they are read, as torch exports them; a path that leads elsewhere is not followed."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'relumine[onnx]'")
    (tmp_path / "inner").mkdir()
    path = tmp_path / "inner" / "net.onnx"
    foreign(GRAPHS["gemm"], constants(), path)
    whole = Network.load(path)
    model = onnx.load(path)
    onnx.external_data_helper.convert_model_to_external_data(model, location="net.onnx.data", size_threshold=0)
    onnx.save(model, path)
    second = path.with_name("net.onnx.data")
    assert second.exists()
    assert same(Network.load(path), whole)
    data, text = second.read_bytes(), path.read_bytes()
    second.write_bytes(data[:-8])
    with pytest.raises(ModelFileError, match="beyond the end"):
        Network.load(path)
    second.unlink()
    with pytest.raises(ModelFileError, match="no such model file"):
        Network.load(path)
    (tmp_path / "et.onnx.data").write_bytes(data)
    path.write_bytes(text.replace(b"net.onnx.data", b"../t.onnx.dat"))
    with pytest.raises(ModelFileError, match="not a file beside it"):
        Network.load(path)


# -- scikit-learn and torch -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
@pytest.mark.parametrize("q", [1, 2])
def test_from_sklearn(activation: str, q: int) -> None:
    from sklearn.neural_network import MLPRegressor

    y = np.column_stack([X[:, 0], X[:, 1] * X[:, 2]])[:, :q]
    y = y[:, 0] if q == 1 else y
    model = MLPRegressor(hidden_layer_sizes=(5,), activation=activation, max_iter=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(Network.from_sklearn(model)(X), model.predict(X), atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_from_sklearn_says_what_it_cannot_take() -> None:
    from sklearn.linear_model import Ridge
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline

    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(InvalidInput, match="got Ridge"):
        Network.from_sklearn(Ridge())
    with pytest.raises(InvalidInput, match="not fitted"):
        Network.from_sklearn(MLPRegressor())
    with pytest.raises(InvalidInput, match="out of the pipeline"):
        Network.from_sklearn(make_pipeline(MLPRegressor()))
    with pytest.raises(InvalidInput, match="2 hidden layers"):
        Network.from_sklearn(MLPRegressor(hidden_layer_sizes=(2, 2), max_iter=2).fit(X, y))
    with pytest.raises(InvalidInput, match="passes through logistic"):
        Network.from_sklearn(MLPClassifier(hidden_layer_sizes=(2,), max_iter=2).fit(X, y))


torch_reason = "torch is not installed: pip install 'relumine[torch]'"


@pytest.mark.parametrize("sigma", [*SIGMAS, *WITH_ERF])
@pytest.mark.parametrize("q", [None, 3])
@pytest.mark.parametrize("skip", [False, True])
def test_torch_and_back(sigma: str, q: int | None, skip: bool) -> None:
    torch = pytest.importorskip("torch", reason=torch_reason)
    net = a_network(4, q=q, sigma=sigma, skip=skip)
    module = net.to_torch()
    out = module(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(out.reshape(net(X).shape), net(X), rtol=1e-12, atol=1e-12)
    assert same(Network.from_torch(module), net)


def test_from_torch_reads_what_people_write() -> None:
    torch = pytest.importorskip("torch", reason=torch_reason)
    nn = torch.nn
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Dropout(0.1), nn.Linear(5, 2, bias=False)).eval()
    out = module(torch.from_numpy(X).float()).detach().numpy()
    np.testing.assert_allclose(Network.from_torch(module)(X), out, atol=1e-5)
    for wrong, word in (
        (nn.Linear(3, 1), "got Linear"),
        (nn.Sequential(nn.Linear(3, 5), nn.ReLU()), "got Linear, ReLU"),
        (nn.Sequential(nn.Linear(3, 5), nn.GELU("tanh"), nn.Linear(5, 1)), "GELU is not known"),
        (nn.Sequential(nn.Linear(3, 5), nn.ELU(), nn.Linear(5, 1)), "ELU is not known"),
    ):
        with pytest.raises(InvalidInput, match=word):
            Network.from_torch(wrong)


def test_without_torch_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "relumine.formats.torch_module", raising=False)
    with pytest.raises(MissingPackage, match="pip install torch"):
        a_network().to_torch()
