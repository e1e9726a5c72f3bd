"""Network: validation, evaluation, rewritings that keep the function, files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import relumine as rl
from relumine import Network
from relumine.results import InvalidInput, ModelFileError

X = np.random.default_rng(99).normal(size=(50, 4))


def random_network(seed: int, *, outputs: int | None = None, m: int = 5) -> Network:
    rng = np.random.default_rng(seed)
    shape = () if outputs is None else (outputs,)
    return Network(
        rng.normal(size=(m, 4)),
        rng.normal(size=m),
        rng.normal(size=(*shape, m)),
        v=rng.normal(size=(*shape, 4)),
        c=rng.normal(size=shape),
    )


networks = st.builds(random_network, st.integers(0, 10**6), outputs=st.sampled_from([None, 1, 3]))


def close(f: Network, g: Network, tol: float = 1e-12) -> None:
    scale = 1.0 + np.abs(f(X)).max()
    np.testing.assert_allclose(g(X) / scale, f(X) / scale, atol=tol)


def test_evaluation_is_the_formula() -> None:
    net = random_network(0, outputs=2)
    expected = np.maximum(X @ net.W.T + net.b, 0.0) @ net.a.T + X @ net.v.T + net.c
    np.testing.assert_allclose(net(X), expected, atol=1e-13)
    assert net(X).shape == (50, 2)
    assert random_network(0)(X).shape == (50,)


def test_evaluation_in_chunks_equals_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    net = random_network(1)
    whole = net(X)
    monkeypatch.setattr("relumine.network._CHUNK_NUMBERS", 35)
    np.testing.assert_allclose(net(X), whole, rtol=1e-14, atol=1e-14)


def test_immutable() -> None:
    W = np.eye(4)
    net = Network(W, np.zeros(4), np.ones(4))
    W[0, 0] = 7.0
    assert net.W[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        net.W[0, 0] = 2.0
    with pytest.raises(AttributeError):
        net.W = W  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"W": np.ones(3), "b": [0.0], "a": [1.0]}, "W must have shape"),
        ({"W": np.ones((2, 3)), "b": [0.0], "a": [1.0, 1.0]}, "b must have shape"),
        ({"W": np.ones((2, 3)), "b": [0.0, 0.0], "a": [1.0]}, "a must have shape"),
        ({"W": np.ones((1, 2)), "b": [np.nan], "a": [1.0]}, "b holds NaN"),
        ({"W": np.ones((1, 2)), "b": [0.0], "a": [np.inf]}, "a holds NaN or infinite"),
        ({"W": [["x", "y"]], "b": [0.0], "a": [1.0]}, "real numbers"),
        ({"W": np.ones((1, 2)), "b": [0.0], "a": [1.0], "v": [1.0]}, "v must have shape"),
        ({"W": np.ones((1, 2)), "b": [0.0], "a": [1.0], "c": [1.0, 2.0]}, "c must have shape"),
        ({"W": np.ones((1, 2)), "b": [0.0], "a": [1.0], "activation": "nope"}, "unknown activation"),
    ],
)
def test_bad_parameters_are_named(arguments: dict, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Network(**arguments)


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"shape \(n, 4\)"):
        random_network(0)(np.ones((3, 5)))


@given(net=networks, data=st.data())
@settings(max_examples=40, deadline=None)
def test_flips_keep_the_function_and_undo_themselves(net: Network, data: st.DataObject) -> None:
    units = data.draw(st.lists(st.integers(0, net.m - 1), unique=True))
    flipped = net.flip(units)
    close(net, flipped)
    close(net, flipped.canonical())
    again = flipped.flip(units)
    np.testing.assert_allclose(again.W, net.W)
    np.testing.assert_allclose(again.v, net.v, atol=1e-12)


@given(net=networks, data=st.data())
@settings(max_examples=40, deadline=None)
def test_canonical_form_does_not_see_symmetries(net: Network, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(net.m)))
    units = data.draw(st.lists(st.integers(0, net.m - 1), unique=True))
    scale = np.array(data.draw(st.lists(st.floats(0.1, 10.0), min_size=net.m, max_size=net.m)))
    other = net.flip(units).permuted(order)
    other = other.replace(W=other.W * scale[:, None], b=other.b * scale, a=other.a / scale)
    one, two = net.canonical(), other.canonical()
    for name in "Wbavc":
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-10)


@given(net=networks)
@settings(max_examples=25, deadline=None)
def test_consolidate_and_back(net: Network) -> None:
    pure = net.consolidate()
    assert not pure.v.any()
    assert not pure.c.any()
    assert pure.m <= net.m + 2 * min(net.q or 1, net.d + 1)
    close(net, pure)
    close(net, pure.merge(1e-9))
    assert rl.metrics.parameter_error(net, pure.merge(1e-9)) < 1e-9


def test_consolidate_two_features_per_unit() -> None:
    """Claim D.14: α σ(z) + α' σ(−z) for each unit, plus an affine part: m + 2 units."""
    net = random_network(3)
    doubled = net.replace(
        W=np.concatenate([net.W, -net.W]), b=np.concatenate([net.b, -net.b]), a=np.concatenate([net.a, 0.3 * net.a])
    )
    pure = doubled.consolidate()
    assert pure.m <= net.m + 2
    close(doubled, pure)


def test_a_unit_without_weights_has_a_normal_form_too() -> None:
    net = Network([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], [-2.0, 0.5], [3.0, 1.0])
    one, two = net.canonical(), net.flip([0]).canonical()
    for name in "Wbavc":
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    close(net, one)


def test_consolidate_keeps_a_weak_direction_of_the_affine_part() -> None:
    net = random_network(3, outputs=2).replace(v=np.diag([1.0, 1e-6, 0.0, 0.0])[:2], c=[0.0, 0.0])
    np.testing.assert_allclose(net.consolidate()(X), net(X), rtol=0.0, atol=1e-12)


def test_consolidate_constant() -> None:
    net = Network(np.zeros((0, 3)), np.zeros(0), np.zeros(0), c=2.5)
    pure = net.consolidate()
    np.testing.assert_allclose(pure(np.ones((2, 3))), 2.5)


def test_merge_counts_units() -> None:
    net = random_network(4)
    double = net.replace(
        W=np.concatenate([net.W, 2.0 * net.W[:2], -net.W[2:3], np.zeros((1, 4))]),
        b=np.concatenate([net.b, 2.0 * net.b[:2], -net.b[2:3], [1.5]]),
        a=np.concatenate([net.a, [0.1, 0.2, 0.3, 0.7]]),
    )
    merged = double.merge(1e-9)
    assert merged.m == net.m
    close(double, merged)
    assert net.replace(a=np.array([1.0, 0.0, 1.0, 1.0, 1.0])).merge().m == net.m - 1


def test_hermite_tensors_by_monte_carlo_free_quadrature() -> None:
    """In one dimension f̂_k is an integral: compare with adaptive quadrature split at the kinks."""
    from scipy.integrate import quad
    from scipy.special import eval_hermitenorm

    net = Network([[2.0], [-0.7]], [0.5, 0.2], [1.0, -2.0], v=[0.3], c=0.1)
    kinks = [-0.25, 0.2 / 0.7]
    for k in range(7):
        value = quad(
            lambda x, k=k: float(net([[x]])[0]) * eval_hermitenorm(k, x) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi),
            -10,
            10,
            points=kinks,
            epsabs=1e-11,
            limit=200,
        )[0]
        np.testing.assert_allclose(net.hermite(k).ravel()[0], value, atol=1e-8)


def test_hermite_is_symmetric_and_rotates() -> None:
    net = random_network(5)
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    T = net.hermite(3)
    np.testing.assert_allclose(T, T.transpose(1, 2, 0), atol=1e-14)
    turned = net.replace(W=net.W @ Q, v=net.v @ Q).hermite(3)
    np.testing.assert_allclose(turned, np.einsum("abc,ai,bj,ck->ijk", T, Q, Q, Q), atol=1e-12)
    assert random_network(5, outputs=2).hermite(2).shape == (2, 4, 4)


@pytest.mark.parametrize("outputs", [None, 3])
def test_save_and_load(tmp_path, outputs: int | None) -> None:
    net = random_network(6, outputs=outputs)
    net.save(tmp_path / "net.safetensors")
    again = Network.load(tmp_path / "net.safetensors")
    for name in "Wbavc":
        np.testing.assert_array_equal(getattr(again, name), getattr(net, name))
    assert again.activation == net.activation
    assert list(tmp_path.iterdir()) == [tmp_path / "net.safetensors"]


def test_bad_files_are_clear(tmp_path) -> None:
    path = tmp_path / "net.safetensors"
    with pytest.raises(ModelFileError, match="no such model file"):
        Network.load(path)
    random_network(0).save(path)
    whole = path.read_bytes()
    for cut in (0, 5, 60, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ModelFileError, match="not a readable safetensors file"):
            Network.load(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ModelFileError):
        Network.load(path)
    save_file({"weight": np.ones(3)}, path)
    with pytest.raises(ModelFileError, match="not a relumine network"):
        Network.load(path)
    good = {"format": "relumine.network", "version": "1", "activation": "relu"}
    save_file({"W": np.ones((1, 2))}, path, metadata=good)
    with pytest.raises(ModelFileError, match="missing a, b, c, v"):
        Network.load(path)
    tensors = {"W": np.ones((1, 2)), "b": np.zeros(1), "a": np.ones(1), "v": np.zeros(2), "c": np.zeros(())}
    save_file({**tensors, "b": np.array([np.nan])}, path, metadata=good)
    with pytest.raises(ModelFileError, match="b holds NaN"):
        Network.load(path)
    save_file({**tensors, "a": np.ones(1, dtype=np.float32)}, path, metadata=good)
    with pytest.raises(ModelFileError, match="a not float64"):
        Network.load(path)
    save_file(tensors, path, metadata={**good, "version": "7"})
    with pytest.raises(ModelFileError, match="version '7'"):
        Network.load(path)


def test_failed_save_leaves_the_old_file(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.safetensors"
    random_network(0).save(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        random_network(1).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
