"""Theorem 3.4 and Claim 4.8: listed sign patterns against brute force, and the functions they give."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from relumine import planted
from relumine.network import Network
from relumine.papers.awasthi2021.identifiability import counterexample, sign_patterns
from relumine.results import InvalidInput
from relumine.tensors import subsets


def signed(net: Network, signs: np.ndarray) -> Network:
    return net.replace(W=signs[:, None] * net.W, b=signs * net.b)


def brute_force(net: Network) -> set[tuple[int, ...]]:
    X = np.random.default_rng(0).normal(size=(200, net.d)) * 2
    return {s for s in product((1, -1), repeat=net.m) if np.abs(signed(net, np.array(s))(X) - net(X)).max() < 1e-9}


@given(st.integers(0, 10_000), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_patterns_are_all_patterns(seed: int, m: int) -> None:
    # small integers: zero sums are common
    rng = np.random.default_rng(seed)
    units = rng.integers(-1, 2, size=(m, 3)).astype(float)
    units[:, 0] = np.where(units[:, 0] == 0.0, 1.0, units[:, 0])
    net = Network(units[:, :2], units[:, 2], rng.choice([-1.0, 1.0, 2.0], size=m))
    found = sign_patterns(net)
    assert {tuple(p) for p in found.patterns.tolist()} == brute_force(net)
    assert (found.patterns[0] == 1).all()
    assert not (found.identifiable and len(found.patterns) > 1)


def test_meeting_in_the_middle_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    units = rng.integers(-1, 2, size=(10, 3)).astype(float)
    units[:, 0] = 1.0
    net = Network(units[:, :2], units[:, 2], rng.choice([-1.0, 1.0], size=10))
    expected = sign_patterns(net).patterns
    assert len(expected) > 4
    monkeypatch.setattr(subsets, "_BITS", 5)
    np.testing.assert_array_equal(sign_patterns(net).patterns, expected)
    monkeypatch.setattr(subsets, "_BITS", 4)
    with pytest.raises(InvalidInput, match="subsets to try"):
        sign_patterns(net)


def test_full_rank_networks_are_identifiable() -> None:
    for seed in range(5):
        found = sign_patterns(planted.network(6, 6, rng=seed))
        assert found.identifiable
        assert found.patterns.tolist() == [[1] * 6]


def test_generic_overcomplete_networks_are_identifiable() -> None:
    assert sign_patterns(planted.network(3, 16, rng=0)).identifiable


def test_dependent_networks_are_not() -> None:
    net = planted.network(4, 6, rng=0, family="dependent")
    found = sign_patterns(net)
    assert not found.identifiable
    assert found.patterns.tolist() == [[1] * 6, [-1] * 6]
    assert found.remarks == ("2 sign patterns give the same function",)


def test_patterns_satisfy_equation_2_with_its_sign_restored() -> None:
    net = planted.network(4, 6, rng=1, family="dependent").replace(b=np.zeros(6))
    # a pair (w, b, a), (w', b', a') with a zero sum that includes biases
    W = np.array([[1.0, 0.0], [0.6, 0.8], [-1.6, -0.8]])
    b = np.array([0.5, 1.0, -1.5])
    net = Network(W, b, np.ones(3)).scaled()
    found = sign_patterns(net)
    assert len(found.patterns) == 2
    for s in found.patterns:
        lhs = (net.a * ndtr(s * net.b) * s) @ net.W
        np.testing.assert_allclose(lhs, (net.a * ndtr(net.b)) @ net.W, atol=1e-12)
        right = net.a @ (net.b * ndtr(net.b))
        assert net.a @ (s * net.b * ndtr(s * net.b)) == pytest.approx(right, abs=1e-12)
    flipped = found.patterns[1]
    printed = net.a @ (net.b * ndtr(flipped * net.b))  # as printed, without ξ_i before b_i
    assert abs(printed - net.a @ (net.b * ndtr(net.b))) > 1e-2


@pytest.mark.parametrize("seed", range(4))
def test_claim_4_8(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(6, 4))
    f, g, signs = counterexample(W)
    X = rng.normal(size=(1000, 4))
    assert np.abs(f(X) - g(X)).max() < 1e-12
    assert np.abs(f(X)).max() > 0.1
    assert (signs == -1).any()
    found = sign_patterns(f)
    assert len(found.patterns) >= 2
    assert signs.tolist() in found.patterns.tolist()


def test_claim_4_8_needs_dependent_rows() -> None:
    with pytest.raises(InvalidInput, match="linearly independent"):
        counterexample(np.eye(3))
    f, g, signs = counterexample([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert signs.tolist() == [-1, -1, 1]  # the independent row is left alone
    x = np.array([[0.3, 0.4, 0.5]])
    assert f(x) == pytest.approx(g(x))


def test_remarks_name_dead_and_parallel_units() -> None:
    net = Network([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], b=[0.0, 1.0, 0.0], a=[1.0, 1.0, 0.0])
    found = sign_patterns(net)
    assert not found.identifiable
    assert any("units 0 and 1 are parallel" in r for r in found.remarks)
    assert any("unit 2 has a = 0" in r for r in found.remarks)


def test_several_outputs_must_all_stay() -> None:
    dependent = planted.network(3, 4, rng=0, family="dependent")
    both = Network(dependent.W, dependent.b, np.stack([dependent.a, np.arange(1.0, 5.0)]))
    assert len(sign_patterns(dependent).patterns) == 2
    assert len(sign_patterns(both).patterns) == 1


def test_no_units() -> None:
    assert sign_patterns(Network(np.zeros((0, 2)), [], [])).patterns.shape == (1, 0)
