"""Signs, an output bias, a linear part: which of them are known, and what stays open."""

from __future__ import annotations

import numpy as np
import pytest

import relumine as rl
from relumine import Status
from relumine.activations import RELU
from relumine.arrays import unit_rows
from relumine.data.sources import as_samples
from relumine.fit.projection import project
from relumine.fit.rows import AFFINE
from relumine.recovery.signs import settle
from relumine.recovery.task import make_task
from relumine.run import Run


def test_affine_part_is_kept_or_consolidated() -> None:
    truth = rl.planted.network(6, 4, rng=0).replace(v=np.arange(6.0), c=-2.0)
    X, y = rl.planted.sample(truth, 400, rng=1)
    kept = rl.recover(X, y, width=4, rng=0)
    assert kept.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, kept.network) < 1e-9
    assert kept.units.up_to_sign == (0, 1, 2, 3)
    pure = rl.recover(X, y, width=4, rng=0, affine="consolidate").network
    assert pure.m == 6
    assert not pure.v.any()
    np.testing.assert_allclose(pure(X), y, atol=1e-9)


@pytest.mark.parametrize(("d", "m", "outputs"), [(10, 5, None), (8, 12, 3), (4, 12, None)])
def test_an_output_bias_leaves_the_signs_known(d: int, m: int, outputs: int | None) -> None:
    """Trained networks have one: what is found is then W, b, a, c and no linear part."""
    truth = rl.planted.network(d, m, rng=1, outputs=outputs)
    truth = truth.replace(c=np.full(np.shape(truth.c), 0.7))
    X, _ = rl.planted.sample(truth, n=8 * m * (d + 1), rng=2)
    X = 2.0 * X + 1.0
    found = rl.recover(X, truth(X), width=m, rng=0)
    assert found.status is rl.Status.EXACT
    assert not found.network.v.any()
    np.testing.assert_allclose(found.network.c, 0.7, atol=1e-9)
    assert rl.metrics.parameter_error(truth, found.network) < 1e-10
    assert len(found.units.recovered) == m
    # the signs, too: units match one to one, not up to a flip
    pairs = np.abs(truth.scaled().W[:, None] - found.network.W[None]).max(axis=2)
    assert (pairs.min(axis=1) < 1e-9).all()


@pytest.mark.parametrize(("d", "m", "outputs"), [(10, 5, None), (6, 8, 3), (5, 7, None)])
def test_an_output_bias_leaves_the_signs_known_in_noise(d: int, m: int, outputs: int | None) -> None:
    """Also with more units than inputs, where the signs are an integer problem."""
    truth = rl.planted.network(d, m, rng=1, outputs=outputs)
    truth = truth.replace(c=np.full(np.shape(truth.c), 0.7))
    X, _ = rl.planted.sample(truth, n=60 * m * (d + 1), rng=2)
    X = X + 0.5
    y = truth(X)
    y = y + 0.05 * y.std(axis=0) * np.random.default_rng(3).normal(size=y.shape)
    found = rl.recover(X, y, width=m, rng=0)
    assert found.status is rl.Status.NOISY
    assert not found.network.v.any()
    assert len(found.units.recovered) == m
    errors = found.standard_errors
    assert errors is not None
    assert not errors.v.any()
    assert (np.abs(found.network.c - 0.7) < 4.5 * errors.c).all()
    pairs = np.abs(truth.scaled().W[:, None] - found.network.W[None]).max(axis=2)
    assert (pairs.min(axis=1) < 0.1).all()


@pytest.mark.parametrize(("seed", "clear"), [(0, True), (1, False), (2, True), (3, True)])
def test_signs_that_noise_leaves_open_are_not_claimed(seed: int, clear: bool) -> None:
    """Few inputs, much noise: v says little about which units are flipped.

    The second has two units so close that starts seldom agree; by the last bit of a sum two of them do, or none.
    """
    truth = rl.planted.network(3, 6, rng=seed).replace(c=0.7)
    X = np.random.default_rng(seed + 50).normal(size=(3000, 3))
    y = truth(X)
    y = y + 0.3 * y.std() * np.random.default_rng(seed + 99).normal(size=3000)
    found = rl.recover(X, y, width=6, rng=0, on_failure="return")
    U, V = (np.column_stack([net.W, net.b]) for net in (truth.scaled(), found.network))
    cosines = (V @ U.T) / np.linalg.norm(V, axis=1)[:, None] / np.linalg.norm(U, axis=1)
    nearest = cosines[np.arange(len(V)), np.abs(cosines).argmax(axis=1)]
    assert all(nearest[i] > 0.0 for i in found.units.recovered)
    assert found.status is rl.Status.NOISY or (not clear and found.status is rl.Status.NOT_RECOVERED)
    assert sorted(found.units.recovered + found.units.up_to_sign) == ([0, 1, 2, 3, 4, 5] if found.ok else [])


def test_a_linear_part_is_kept_in_noise() -> None:
    truth = rl.planted.network(6, 4, rng=3).replace(v=np.arange(6.0) / 4.0, c=1.0)
    X, y = rl.planted.sample(truth, n=3000, rng=4, noise=0.1)
    found = rl.recover(X, y, width=4, rng=0)
    assert found.status is rl.Status.NOISY
    assert found.network.v.any()
    assert found.units.up_to_sign == (0, 1, 2, 3)


def test_a_linear_part_is_kept() -> None:
    truth = rl.planted.network(6, 4, rng=3).replace(v=np.arange(6.0), c=1.0)
    X, y = rl.planted.sample(truth, n=600, rng=4)
    found = rl.recover(X, y, width=4, rng=0)
    assert found.status is rl.Status.EXACT
    assert found.network.v.any()
    assert found.units.up_to_sign == (0, 1, 2, 3)


def test_a_bias_and_flips_that_only_move_it_leave_the_signs_open() -> None:
    """Two parallel units of opposite weight: flipping both adds a constant, which the output bias takes."""
    W = np.array([[1.0, 0.2, -0.3], [1.0, 0.2, -0.3], [-0.4, 1.0, 0.7]])
    truth = rl.Network(W, [0.5, -0.5, 0.2], [1.0, -1.0, 1.3], c=0.7)
    X = np.random.default_rng(0).normal(size=(600, 3))
    found = rl.recover(X, truth(X), width=3, rng=0)
    assert found.status is rl.Status.EXACT
    lone = int(np.argmin(np.abs(np.abs(found.network.W @ W[2] / np.linalg.norm(W[2])) - 1.0)))
    assert found.units.recovered == (lone,)
    assert len(found.units.up_to_sign) == 2


@pytest.mark.parametrize("seed", range(4))
def test_of_many_flips_some_match_by_chance_and_are_not_taken(seed: int) -> None:
    """With 2^26 sets of flips and one slope to make vanish, some do to eight digits: an affine part that is there."""
    net = rl.planted.network(1, 26, rng=seed, bias=2.0).replace(v=np.array([0.37]))
    X = np.random.default_rng(seed).uniform(-3.0, 3.0, size=(1500, 1))
    task = make_task(as_samples(X, net(X)), RELU, np.random.default_rng(0))
    inside = task.white.redo(net)
    at = project(task.rows, task.shape, unit_rows(np.column_stack([inside.W, inside.b])))
    answer = settle(task, at, Run.of(0))
    assert answer.exact
    assert answer.free == AFFINE
