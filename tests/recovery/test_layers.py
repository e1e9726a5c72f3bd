"""Several layers from samples alone: what is found is right, and what is not certain is not called exact."""

from __future__ import annotations

import numpy as np
import pytest

import relumine as rl
from relumine.recovery.layers import _contracted, _Rows, _widened, _without
from relumine.results import InvalidInput, Status
from relumine.run import Run


def rows_of(net: rl.DeepNetwork, n: int, seed: int = 1) -> _Rows:
    X = np.random.default_rng(seed).normal(size=(n, net.d))
    return _Rows(X, net(X))


def test_widening_keeps_the_old_units_as_they_are() -> None:
    net = rl.planted.deep((3, 2, 4, 1), rng=0)
    X = np.random.default_rng(1).normal(size=(50, 3))
    wider = _widened(net, (5, 6), Run.of(2))
    assert wider.widths == (5, 6)
    (W1, b1), (W2, b2), (a, _) = wider.maps
    (V1, e1), (V2, e2), (c, _) = net.maps
    np.testing.assert_array_equal(W1[:2], V1)
    np.testing.assert_array_equal(b1[:2], e1)
    np.testing.assert_array_equal(W2[:4], np.column_stack([V2, np.zeros((4, 3))]))
    np.testing.assert_array_equal(b2[:4], e2)
    np.testing.assert_array_equal(a[:4], c)
    assert np.ptp(wider(X) - net(X)) > 0.0  # the new ones do something


def test_a_unit_that_others_make_up_for_is_left_out_for_nothing() -> None:
    """The same unit twice, in either layer."""
    net = rl.planted.deep((3, 3, 3, 1), rng=3)
    (W1, b1), (W2, b2), (a, c) = net.maps
    rows = rows_of(net, 200)
    first = rl.DeepNetwork.of(
        [(np.vstack([W1, W1[:1]]), np.append(b1, b1[0])), (np.column_stack([W2, 0 * b2]), b2), (a, c)]
    )
    np.testing.assert_allclose(_without(first, rows.X, 0, 0)(rows.X), rows.y, atol=1e-12)
    second = rl.DeepNetwork.of([(W1, b1), (np.vstack([W2, W2[:1]]), np.append(b2, b2[0])), (np.append(a, 0.0), c)])
    np.testing.assert_allclose(_without(second, rows.X, 1, 0)(rows.X), rows.y, atol=1e-12)
    assert _contracted(second, rows, (3, 3), Run.of(0)).widths == (3, 3)
    np.testing.assert_allclose(_contracted(second, rows, (3, 3), Run.of(0))(rows.X), rows.y, atol=1e-9)


@pytest.mark.parametrize("seed", [71001, 71003])
def test_two_layers_of_three_units(seed: int) -> None:
    """Inputs with a mean and a scale of their own; whatever is called exact is, parameters included."""
    truth = rl.planted.deep((3, 3, 3, 1), rng=seed)
    X = 3.0 * np.random.default_rng(seed + 1).normal(size=(560, 3)) + 1.0
    y = 10.0 * truth((X - 1.0) / 3.0) + 5.0
    found = rl.recover(X, y, widths=(3, 3), rng=seed, on_failure="return")
    assert found.method == "layers"
    assert found.network.widths == (3, 3)
    if found.status is Status.EXACT:
        Z = 3.0 * np.random.default_rng(9).normal(size=(4000, 3)) + 1.0
        off = np.abs(found.network(Z) - 10.0 * truth((Z - 1.0) / 3.0) - 5.0) > 1e-7
        assert off.mean() <= 3.0 * found.certificate.unseen
    assert found.certificate.notes


def test_a_column_that_never_changes_has_weight_zero() -> None:
    truth = rl.planted.deep((2, 2, 2, 1), rng=4)
    X = np.random.default_rng(1).normal(size=(300, 2))
    wide = np.column_stack([X[:, 0], np.full(300, 7.0), X[:, 1]])
    found = rl.recover(wide, truth(X), widths=(2, 2), rng=0, seconds=20, on_failure="return")
    assert found.network.d == 3
    assert not found.network.maps[0][0][:, 1].any()


def test_a_dead_unit_is_not_called_exact() -> None:
    """Its parameters can change freely."""
    truth = rl.planted.deep((2, 2, 2, 1), rng=0)
    (W1, b1), (W2, b2), (a, c) = truth.maps
    dead = rl.DeepNetwork.of([(W1, np.array([b1[0], -50.0])), (W2, b2), (a, c)])
    X = np.random.default_rng(1).normal(size=(300, 2))
    found = rl.recover(X, dead(X), widths=(2, 2), rng=0, seconds=20, on_failure="return")
    assert found.status is not Status.EXACT


def test_too_few_rows_are_said_before_any_search() -> None:
    truth = rl.planted.deep((3, 3, 3, 1), rng=0)
    X = np.random.default_rng(1).normal(size=(25, 3))
    found = rl.recover(X, truth(X), widths=(3, 3), on_failure="return")
    assert found.status is Status.UNDERDETERMINED


def test_rows_beyond_memory_are_refused() -> None:
    X = np.random.default_rng(1).normal(size=(50_000, 3))
    with pytest.raises(InvalidInput, match="needs all rows in memory"):
        rl.recover([(X, X[:, 0])], widths=(3, 3), memory=1e6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"widths": (3,)}, "two or more"),
        ({"widths": "33"}, "two or more"),
        ({"widths": (3, 3), "width": 3}, "not both"),
        ({"widths": (3, 3), "activation": "tanh"}, "tanh"),
        ({"widths": (300, 300)}, "up to 2500"),
    ],
)
def test_requests_that_make_no_sense(options: dict, words: str) -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.raises(InvalidInput, match=words):
        rl.recover(X, X[:, 0], **options)


def test_rows_are_counted_as_the_user_counts_them() -> None:
    X = np.random.default_rng(0).normal(size=(4, 3))
    with pytest.raises(InvalidInput, match=r"4 rows are too few .* needs 5"):
        rl.recover(X, X[:, 0], widths=(2, 2))


def test_a_target_that_never_changes_shows_no_layers() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(InvalidInput, match="the same in every row"):
        rl.recover(X, np.full(50, 2.0), widths=(1, 1))
