"""Inputs rounded after y was computed leave noise of known size; it is named, and only where it is the cause."""

from __future__ import annotations

import numpy as np
import pytest

import relumine as rl
from relumine.results import Status

NET = rl.planted.network(4, 3, rng=0)
X = np.random.default_rng(1).normal(size=(400, 4))


@pytest.mark.parametrize(("rounded", "word"), [(X.round(2), "2 decimals"), (X.astype(np.float32), "single precision")])
def test_rounding_of_the_inputs_is_named(rounded: np.ndarray, word: str) -> None:
    found = rl.recover(rounded, NET(X), width=3, rng=0)
    assert found.status is Status.NOISY
    (note,) = [note for note in found.certificate.notes if "inputs were rounded" in note]
    assert word in note
    size = float(note.rsplit(" ", 1)[1])
    assert 0.5 * size < found.certificate.noise < 2.0 * size


def test_other_noise_is_not_blamed_on_it() -> None:
    y = NET(X.round(2)) + 0.05 * np.random.default_rng(2).normal(size=400)
    found = rl.recover(X.round(2), y, width=3, rng=0)
    assert not any("inputs were rounded" in note for note in found.certificate.notes)


def test_nor_said_where_y_belongs_to_the_rounded_inputs() -> None:
    found = rl.recover(X.round(2), NET(X.round(2)), width=3, rng=0)
    assert found.status is Status.EXACT
    assert not any("inputs were rounded" in note for note in found.certificate.notes)


def test_the_noise_claimed_is_never_less_than_the_network_itself_leaves() -> None:
    """Behind a large offset the way back to the user's coordinates costs digits, too."""
    y = NET(X) + 1e12
    found = rl.recover(X, y, width=3, rng=0, on_failure="return")
    assert found.status is Status.NOISY
    assert found.certificate.noise >= np.sqrt(np.mean((found.network(X) - y) ** 2))


@pytest.mark.parametrize("offset", [1e11, 1e12, 1e13])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_behind_an_offset_what_is_left_has_mean_zero(offset: float, seed: int) -> None:
    """To half a unit in the last place of the offset, which is all that c can say."""
    Z, y = rl.planted.sample(rl.planted.network(d=4, m=3, rng=seed), n=400, rng=seed + 1)
    found = rl.recover(Z, y + offset, width=3, rng=0, on_failure="return")
    assert abs(np.mean(found.network(Z) - (y + offset))) <= 0.6 * np.spacing(offset)
