"""Subsets of vectors with a given sum, against all 2^m of them where m is small and a planted one where it is not."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest

from relumine.results import InvalidInput
from relumine.tensors.subsets import nearest_subset, some_subset, subsets


def brute(Q: np.ndarray, t: np.ndarray) -> list[tuple[int, ...]]:
    every = [s for s in product((0, 1), repeat=Q.shape[1]) if np.allclose(Q @ s, t)]
    return sorted(every, key=lambda s: (sum(s), s[::-1]))


def planted(r: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(r, m)), rng.random(m) < 0.5


@pytest.mark.parametrize(("r", "m"), [(1, 6), (2, 8), (3, 3), (4, 7)])
@pytest.mark.parametrize("seed", range(3))
def test_all_of_them_and_the_smallest_first(r: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Q = rng.integers(-2, 3, size=(r, m)).astype(float)
    t = Q @ (rng.random(m) < 0.5)
    assert [tuple(s) for s in subsets(Q, t, 1e-9).astype(int)] == brute(Q, t)
    assert len(subsets(Q, t + 0.5, 1e-9)) == 0


@pytest.mark.parametrize("m", [12, 24])  # by the space of solutions; two halves that meet in the middle
def test_a_sum_known_to_some_digits(m: int) -> None:
    Q, s = planted(2, m, 0)
    off = np.array([1.0, -1.0]) / np.sqrt(2.0)
    assert subsets(Q, Q @ s + 1e-7 * off, 1e-7).tolist() == [s.tolist()]
    assert not len(subsets(Q, Q @ s + 1e-5 * off, 1e-7))


def test_too_many_to_list_are_refused_and_one_of_them_is_found() -> None:
    with pytest.raises(InvalidInput, match="too many subsets"):
        subsets(np.ones((1, 30)), np.array([15.0]), 1e-9)
    found = some_subset(np.ones((1, 30)), np.array([15.0]), 1e-9)
    assert found is not None
    assert found.sum() == 15
    with pytest.raises(InvalidInput, match=r"leave 2\^48 subsets"):
        subsets(planted(2, 50, 0)[0], np.zeros(2), 1e-9)


def test_one_subset_or_none() -> None:
    Q, s = planted(3, 10, 1)
    found = some_subset(Q, Q @ s, 1e-9)
    assert found is not None
    assert found.tolist() == s.tolist()
    assert some_subset(Q, Q @ s + 0.01, 1e-9) is None


@pytest.mark.parametrize("m", [8, 18])  # all candidates; the integer program
def test_the_nearest_of_them(m: int) -> None:
    Q, s = planted(3, m, 2)
    found = nearest_subset(Q, Q @ s + 1e-6)
    assert found is not None
    assert found.tolist() == s.tolist()


def test_many_equations_take_the_memory_of_their_matrix() -> None:
    Q = np.random.default_rng(0).normal(size=(4000, 6))
    Q[:, 5] = -Q[:, 4]
    tracemalloc.start()
    found = subsets(Q, np.zeros(4000), 1e-9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.astype(int).tolist() == [[0] * 6, [0, 0, 0, 0, 1, 1]]
    assert peak < 50 * Q.nbytes  # a square of 4000 numbers is 670 times as much
