"""The gradient that is not asked for: which one, only where it follows, and what it saves."""

from __future__ import annotations

import numpy as np
import pytest

import relumine as rl
from relumine.extraction import extract
from relumine.extraction.lines import kinks
from relumine.extraction.sampling import Domain
from relumine.extraction.spare import spare_piece
from relumine.results import Status


def network(d: int, m: int, seed: int, q: int = 1, slope: float = 0.0) -> rl.Network:
    rng = np.random.default_rng(seed)
    W, b, a = rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=(q, m))
    return rl.Network(W, b, a, v=slope * rng.normal(size=(q, d)), c=np.ones(q))


def line_of(net: rl.Network, seed: int = 0):
    line = Domain(np.zeros(net.d), np.ones(net.d)).line(np.random.default_rng(seed))
    (found,) = kinks(net, [line])
    return found


@pytest.mark.parametrize(("m", "q"), [(1, 1), (2, 1), (5, 1), (12, 1), (4, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_it_follows_from_the_others(m: int, q: int, seed: int) -> None:
    net = network(6, m, seed, q)
    found = line_of(net, seed)
    assert len(found.t) == m
    ends = np.concatenate([[found.t[0] - 1.0], found.t, [found.t[-1] + 1.0]])
    on = found.line.at(0.5 * (ends[1:] + ends[:-1])) @ net.W.T + net.b > 0.0
    gradients = np.einsum("qm,rm,md->rqd", net.a, on, net.W)
    error = np.arange(m + 1.0)
    spare = spare_piece(found, error)
    assert spare is not None
    assert spare.share[spare.r] == 0.0
    np.testing.assert_allclose(np.einsum("s,sqd->qd", spare.share, gradients), gradients[spare.r], atol=1e-12)


def test_none_with_an_affine_part_or_many_units() -> None:
    for net in (network(6, 5, 0, slope=0.3), network(6, 13, 0)):
        found = line_of(net)
        assert spare_piece(found, np.ones(len(found.t) + 1)) is None


def test_none_where_two_would_do() -> None:
    # |x₁ + 1| − |x₁ − 1|: equal jumps of opposite sign, one on and one off on either side
    net = rl.Network(np.ones((2, 1)) * [[1.0], [1.0]], np.array([1.0, -1.0]), np.array([[1.0, -1.0]]))
    assert spare_piece(line_of(net), np.ones(3)) is None


def test_what_it_saves() -> None:
    """A gradient has d − 1 rows."""
    pure, sloped = network(60, 3, 1), network(60, 3, 1, slope=0.3)
    found = [extract(net, dim=60, rng=0) for net in (pure, sloped)]
    assert [one.status for one in found] == [Status.EXACT] * 2
    assert found[1].queries - found[0].queries >= 55
    x = np.random.default_rng(5).normal(size=(50, 60))
    for net, one in zip((pure, sloped), found):
        np.testing.assert_allclose(one.network(x), net(x)[:, 0], atol=1e-9)


def test_a_chance_match_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inferred gradient that is wrong is contradicted by a row, and then asked for."""
    from relumine.extraction import units
    from relumine.extraction.spare import Spare

    monkeypatch.setattr(units, "spare_piece", lambda found, error: Spare(1, np.zeros(len(found.t) + 1)))
    net = network(20, 4, 2)
    result = extract(net, dim=20, rng=0)
    assert (result.status, result.network.m) == (Status.EXACT, 4)
