"""Deep networks: shape, evaluation, rewritings that keep the function, comparison up to symmetry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relumine as rl
from relumine.metrics import deep_match, parameter_error

SIZES = [(4, 3, 3, 1), (5, 4, 3, 2, 1), (3, 6, 4, 3), (4, 2, 1)]


def rows(d, n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def naive(net, X):
    """One row at a time, one unit at a time."""
    out = []
    for x in X:
        h = x
        for W, b in net.hidden:
            before, h = h, net.activation(np.array([sum(w * v for w, v in zip(row, h)) for row in W]) + b)
        out.append(net.head.a @ h + net.head.v @ before + net.head.c)
    return np.array(out)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("activation", ["relu", "leaky_relu(0.1)"])
def test_evaluation_agrees_with_one_unit_at_a_time(sizes, activation):
    net = rl.planted.deep(sizes, rng=0, activation=activation)
    net = rl.DeepNetwork(net.layers, net.head.replace(v=np.ones_like(net.head.v)))
    X = rows(net.d)
    np.testing.assert_allclose(net(X), naive(net, X), rtol=1e-12, atol=1e-12)
    assert net.sizes == sizes
    assert net.widths == sizes[1:-1]
    assert net.m == sum(sizes[1:-1])


def test_evaluation_in_pieces_is_the_same(monkeypatch):
    net, X = rl.planted.deep((4, 3, 3, 2), rng=0), rows(4, 50)
    whole = net(X)
    monkeypatch.setattr("relumine.network._CHUNK_NUMBERS", 12)
    np.testing.assert_allclose(net(X), whole, rtol=0, atol=1e-14)
    assert net.census(X) == net.census(X[::-1])


@given(seed=st.integers(0, 10_000), depth=st.integers(1, 4), scale=st.floats(0.01, 100.0))
@settings(max_examples=40, deadline=None)
def test_order_and_scale_change_nothing(seed, depth, scale):
    rng = np.random.default_rng(seed)
    sizes = (3, *rng.integers(1, 5, size=depth).tolist(), 1)
    net = rl.planted.deep(sizes, rng=seed)
    other = net.permuted([rng.permutation(m) for m in net.widths])
    layers = [(W * scale, b * scale) for W, b in other.layers]
    back = 1.0 / scale if layers else 1.0
    for k in range(1, len(layers)):
        layers[k] = (layers[k][0] / scale, layers[k][1])
    other = rl.DeepNetwork(layers, other.head.replace(W=other.head.W * back))
    X = rows(3, 20, seed)
    np.testing.assert_allclose(other(X), net(X), rtol=1e-9, atol=1e-9)
    assert parameter_error(net, other) < 1e-9
    one, two = net.canonical(), other.canonical()
    np.testing.assert_allclose(one(X), net(X), rtol=1e-9, atol=1e-9)
    for (W, b), (V, c) in zip(one.maps, two.maps):
        np.testing.assert_allclose(W, V, atol=1e-9)
        np.testing.assert_allclose(b, c, atol=1e-9)


def test_a_changed_weight_is_seen_whatever_the_order():
    net = rl.planted.deep((5, 4, 3, 1), rng=0)
    layers = [(W.copy(), b) for W, b in net.layers]
    layers[0][0][1, 2] += 0.25
    other = rl.DeepNetwork(layers, net.head).permuted([[3, 1, 0, 2], [2, 0, 1]])
    assert 0.05 < parameter_error(net, other) < 0.5
    _, errors = deep_match(net, other)
    assert int((errors[0] > 1e-9).sum()) == 1


def test_the_sign_of_a_unit_in_front_is_part_of_the_function():
    net = rl.planted.deep((5, 4, 3, 1), rng=0)
    (W, b), *rest = net.layers
    flipped = rl.DeepNetwork([(np.diag([-1.0, 1, 1, 1]) @ W, b * [-1.0, 1, 1, 1]), *rest], net.head)
    assert parameter_error(net, flipped) > 0.1


def test_other_widths_are_infinitely_far():
    assert parameter_error(rl.planted.deep((4, 3, 3, 1), rng=0), rl.planted.deep((4, 3, 2, 1), rng=0)) == np.inf
    shallow = rl.planted.network(4, 3, rng=0)
    assert parameter_error(shallow, rl.DeepNetwork((), shallow)) == 0.0


def test_idle_units_are_found_and_absorbed():
    net = rl.planted.deep((4, 5, 4, 1), rng=1)
    (W, b), X = net.layers[0], rows(4, 200)
    b, c = b.copy(), net.head.b.copy()
    b[2], c[1], c[3] = -100.0, 100.0, -100.0
    net = rl.DeepNetwork([(W, b)], net.head.replace(b=c))
    census = net.census(X)
    assert census.dead[0] == (2,)
    assert 3 in census.dead[1]
    assert 1 in census.always_on[1]
    small, left = net.absorbed(X)
    np.testing.assert_allclose(small(X), net(X), rtol=1e-10, atol=1e-10)
    assert small.widths[0] == 4
    assert not left.dead[1]
    assert not left.always_on[1]


def test_a_layer_whose_units_are_all_off_keeps_one():
    net, X = rl.planted.deep((4, 3, 2, 1), rng=0), rows(4, 50)
    off = rl.DeepNetwork([(net.layers[0][0], np.full(3, -100.0))], net.head)
    small, _ = off.absorbed(X)
    assert small.layers[0][0].shape == (1, 4)
    np.testing.assert_allclose(small(X), off(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("layers", "head"),
    [
        ([([[1.0, 2.0]], [0.0])], rl.Network([[1.0, 1.0]], [0.0], [1.0])),  # widths do not join
        ([([[1.0, np.nan]], [0.0])], rl.Network([[1.0]], [0.0], [1.0])),
        ([([[1.0, 2.0]], [0.0, 1.0])], rl.Network([[1.0]], [0.0], [1.0])),
        ([], "head"),
    ],
)
def test_what_is_no_network_is_refused(layers, head):
    with pytest.raises(rl.InvalidInput):
        rl.DeepNetwork(layers, head)


def test_arrays_cannot_be_changed():
    net = rl.planted.deep((4, 3, 3, 1), rng=0)
    with pytest.raises(ValueError, match="read-only"):
        net.layers[0][0][0, 0] = 1.0


@pytest.mark.parametrize("sizes", [(4,), (4, 3), (4, 0, 1), (4, 2.5, 1)])
def test_planted_refuses_sizes_that_are_none(sizes):
    with pytest.raises(rl.InvalidInput):
        rl.planted.deep(sizes)


@pytest.mark.parametrize("net", [rl.planted.network(2, 3, rng=0, outputs=2), rl.planted.deep((2, 3, 2, 1), rng=0)])
def test_a_network_among_more_inputs_is_the_same_function(net):
    X, at = np.random.default_rng(0).normal(size=(20, 5)), np.array([3, 1])
    wide = net.embedded(at, 5)
    assert wide.d == 5
    np.testing.assert_allclose(wide(X), net(X[:, at]), rtol=0.0, atol=1e-14)


def test_the_only_output_as_a_plain_number():
    net = rl.planted.network(2, 3, rng=0, outputs=1).replace(v=np.ones((1, 2)), c=np.ones(1))
    X = np.random.default_rng(0).normal(size=(20, 2))
    plain = net.plain()
    assert plain.q is None
    np.testing.assert_allclose(plain(X), net(X)[:, 0], rtol=0.0, atol=1e-14)
    assert plain.plain() is plain
