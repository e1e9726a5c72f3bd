"""Activations: closed forms against adaptive quadrature, claimed symmetries, names that round-trip, and the checker."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import eval_hermitenorm

from relumine import Network, metrics, planted
from relumine import activations as act
from relumine.results import InvalidInput, ModelFileError

NAMED = tuple(name for name in act.names() if "(" not in name)
NAMES = (*NAMED, "leaky_relu(0.1)", "leaky_relu(-1)", "polynomial(0.5,-1,0,2)", "polynomial(1,2,-0.5,0,0.25)")
every = pytest.mark.parametrize("name", NAMES)


def reference(sigma, k, b, r):
    """Adaptive quadrature, split at the kinks: independent of the package's panels."""
    cuts = sorted({(u - b) / r for u in (*sigma.kinks, 0.0)} if r > 0 else {0.0})
    edges = [-12.0, *[c for c in cuts if abs(c) < 12.0], 12.0]
    value = 0.0
    for left, right in itertools.pairwise(edges):
        value += quad(
            lambda z: float(sigma(np.array([r * z + b]))[0]) * eval_hermitenorm(k, z) * np.exp(-z * z / 2),
            left,
            right,
            epsabs=1e-13,
            epsrel=1e-13,
            limit=200,
            full_output=1,  # roundoff at 1e-13 is no news
        )[0]
    return value / np.sqrt(2 * np.pi)


@every
def test_check_accepts(name):
    act.check_activation(act.get(name))


def test_check_accepts_what_turns_fast_everywhere():
    class Wave(act.Elementwise):
        name = "wave"

        def __call__(self, z):
            return np.sin(40.0 * z) / 40.0

        def derivative(self, z):
            return np.cos(40.0 * z)

    act.check_activation(Wave())


@every
@pytest.mark.parametrize(("b", "r"), [(0.0, 1.0), (0.7, 0.4), (-1.5, 2.5), (0.3, 12.0), (1.2, 0.0)])
def test_hermite_against_adaptive_quadrature(name, b, r):
    sigma = act.get(name)
    for k in range(7):
        expected = reference(sigma, k, b, r)
        assert sigma.hermite(k, b, r) == pytest.approx(expected, rel=1e-9, abs=1e-10 * max(1.0, r) ** 4)


def test_hermite_constants_of_the_papers():
    c = [float(act.get("squared_relu").hermite(k, 0.0)) for k in range(5)]
    assert c == pytest.approx([0.5, np.sqrt(2 / np.pi), 1.0, np.sqrt(2 / np.pi), 0.0], abs=1e-15)
    assert abs(act.get("leaky_relu(0.3)").hermite(3, 0.0)) < 1e-16
    for odd in ("tanh", "erf", "sigmoid"):
        assert np.abs([act.get(odd).hermite(k, 0.0, 1.7) for k in (2, 4)]).max() < 1e-15


@every
def test_hermite_broadcasts(name):
    sigma = act.get(name)
    b, r = np.linspace(-1, 1, 3)[:, None], np.array([0.5, 2.0])
    table = sigma.hermite(2, b, r)
    assert table.shape == (3, 2)
    assert table[2, 1] == pytest.approx(float(sigma.hermite(2, 1.0, 2.0)), abs=1e-13)


@every
def test_name_round_trips(name, tmp_path):
    sigma = act.get(name)
    assert act.get(sigma.name) == sigma
    assert hash(act.get(sigma.name)) == hash(sigma)
    net = planted.network(3, 2, rng=0, activation=sigma)
    net.save(tmp_path / "net.safetensors")
    again = Network.load(tmp_path / "net.safetensors")
    assert again.activation == sigma
    assert np.array_equal(again.W, net.W)


def test_different_parameters_are_different():
    assert act.get("leaky_relu(0.1)") != act.get("leaky_relu(0.2)")
    assert act.get("leaky_relu(0)") != act.get("relu")
    assert act.get("polynomial(0,1)") == act.get("linear")


@every
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_rewritings_keep_the_function(name, seed):
    """Permutation, scale and flips (joint signs of odd σ, constants of sigmoid) are symmetries of the metric."""
    rng = np.random.default_rng(seed)
    net = planted.network(4, 3, rng=rng, activation=name)
    X = rng.normal(size=(20, 4))
    other = net.permuted(rng.permutation(3))
    if net.activation.reflection is not None:
        other = other.flip(np.flatnonzero(rng.random(3) < 0.5))
    if (degree := net.activation.homogeneity) is not None:
        t = rng.uniform(0.5, 2.0, 3)
        other = other.replace(W=other.W * t[:, None], b=other.b * t, a=other.a / t**degree)
    size = 1.0 + np.abs(net(X)).max()
    assert np.abs(other(X) - net(X)).max() < 1e-12 * size
    assert np.abs(other.canonical()(X) - net(X)).max() < 1e-12 * size
    assert metrics.parameter_error(net, other) < 1e-12
    assert np.allclose(net.canonical().W, other.canonical().W, atol=1e-12)
    assert np.allclose(net.canonical().c, other.canonical().c, atol=1e-12)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "squared_relu"])
def test_metric_sees_a_wrong_sign(name):
    net = planted.network(4, 3, rng=1, activation=name)
    wrong = net.replace(a=net.a * np.array([-1.0, 1.0, 1.0]))
    assert metrics.parameter_error(net, wrong) > 0.1


def test_get_says_what_is_wrong():
    for name, word in [
        ("swish", "unknown activation"),
        ("leaky_relu(a)", "must be numbers"),
        ("leaky_relu(1,2,3)", "does not take 3"),
        ("leaky_relu(1)", "linear"),
        ("polynomial(3)", "degree ≥ 1"),
        ("__import__(1)", "unknown activation"),
    ]:
        with pytest.raises(InvalidInput, match=word.replace("(", r"\(")):
            act.get(name)
    with pytest.raises(TypeError, match="name or an Activation"):
        act.get(3)


def test_register_is_what_files_need(tmp_path):
    class Sine(act.Elementwise):
        name = "sine_of_the_tests"
        reflection = act.Reflection(-1.0, 0.0, 0.0)

        def __call__(self, z):
            return np.sin(z)

        def derivative(self, z):
            return np.cos(z)

    net = planted.network(3, 2, rng=0, activation=Sine())
    net.save(tmp_path / "net.safetensors")
    with pytest.raises(ModelFileError, match="unknown activation"):
        Network.load(tmp_path / "net.safetensors")
    act.register(Sine())
    assert Network.load(tmp_path / "net.safetensors").activation == Sine()
    assert float(Sine().hermite(1, 0.0, 2.0)) == pytest.approx(2.0 * np.exp(-2.0), abs=1e-14)
    with pytest.raises(InvalidInput, match="taken"):
        act.register(type("Other", (Sine,), {"name": "relu"})())


class Good(act.LeakyReLU):
    def __init__(self):
        super().__init__(0.25)


@pytest.mark.parametrize(
    ("member", "value", "complaint"),
    [
        ("derivative", lambda self, z: np.where(z >= 0, 1.0, 0.3), "differences of σ"),
        ("kinks", (), "declare that point in kinks"),
        ("homogeneity", 2, "homogeneity = 2"),
        ("hermite", lambda self, k, b, r=1.0: act.LeakyReLU(0.2).hermite(k, b, r), "quadrature gives"),
        ("hermite", lambda self, k, b, r=1.0: 0.0, "must have the shape"),
        ("__call__", lambda self, z: float(np.sum(z)), "float64 array of the shape"),
        ("__call__", lambda self, z: np.where(np.abs(z) > 50, np.inf, z), "not finite"),
        ("name", "", "non-empty"),
    ],
)
def test_check_names_the_broken_promise(member, value, complaint):
    broken = Good()
    act.check_activation(broken)
    broken.__dict__.pop(member, None)
    broken.__class__ = type("Broken", (Good,), {member: value})
    with pytest.raises(InvalidInput, match=complaint):
        act.check_activation(broken)


def test_check_sees_a_wrong_reflection_and_missing_members():
    broken = Good()
    broken.reflection = act.Reflection(1.0, -1.0, 0.0)
    with pytest.raises(InvalidInput, match="reflection"):
        act.check_activation(broken)
    with pytest.raises(InvalidInput, match="has no name, homogeneity"):
        act.check_activation(np.tanh)
