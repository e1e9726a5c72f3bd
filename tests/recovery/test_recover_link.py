"""Samples of probabilities: mapped back, recovered, and given back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

import relumine as rl
from relumine.results import InvalidInput

NET = rl.planted.network(d=4, m=3, rng=0)
CLASSES = rl.planted.network(d=4, m=3, rng=2, outputs=3)


def rows(n: int = 400) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(n, 4))


@pytest.mark.parametrize("asked", ["auto", "logit"])
def test_one_probability(asked) -> None:
    X = rows()
    found = rl.recover(X, expit(NET(X)), width=3, link=asked, rng=0)
    assert found.link == "logit"
    assert found.status.value == "exact"
    assert rl.metrics.parameter_error(NET, found.network) < 1e-8
    np.testing.assert_allclose(found.predict(X), expit(NET(X)), atol=1e-9)
    assert "their logits" in str(found.certificate)


def test_arrays_are_in_memory_whatever_is_allowed_to_a_file() -> None:
    X = rows(40_000)
    assert X.nbytes > 1e6
    found = rl.recover(X, expit(NET(X)), width=3, link="logit", rng=0, memory=1e6)
    assert found.status.value == "exact"


def test_two_classes_are_one_logit() -> None:
    X = rows()
    P = np.column_stack([expit(-NET(X)), expit(NET(X))])
    found = rl.recover(X, P, width=3, link="auto", rng=0)
    assert found.network.q is None
    np.testing.assert_allclose(found.predict(X), P, atol=1e-9)


def test_several_classes() -> None:
    X = rows()
    P = softmax(CLASSES(X), axis=1)
    found = rl.recover(X, P, width=3, link="softmax", rng=0)
    assert found.status.value == "exact"
    np.testing.assert_allclose(found.predict(X), P, atol=1e-9)
    np.testing.assert_allclose(found.network(X).sum(axis=1), 0.0, atol=1e-8)


def test_exponentials() -> None:
    X = rows()
    found = rl.recover(X, np.exp(NET(X)), width=3, link="log", rng=0)
    np.testing.assert_allclose(found.predict(X), np.exp(NET(X)), rtol=1e-8)


def test_rows_without_digits_are_left_out() -> None:
    X = rows(800)
    steep = NET.replace(a=-30.0 * NET.a)
    p = expit(steep(X))
    assert ((p == 0.0) | (p == 1.0)).any()
    found = rl.recover(X, p, width=3, link="logit", rng=0, on_failure="return")
    assert "too few digits left out" in str(found.certificate)


def test_auto_leaves_values_alone() -> None:
    X = rows()
    found = rl.recover(X, NET(X), width=3, link="auto", rng=0)
    assert found.link is None
    np.testing.assert_array_equal(found.predict(X), found.network(X))


def test_rounded_probabilities_are_a_noisy_network() -> None:
    X = rows(4000)
    found = rl.recover(X, np.round(expit(NET(X)), 6), width=3, link="auto", rng=0, on_failure="return")
    assert found.status.value != "exact"
    np.testing.assert_allclose(found.predict(X), expit(NET(X)), atol=1e-4)


@pytest.mark.parametrize(
    ("y", "link", "word"),
    [
        (lambda X: NET(X), "probit", "link must be None"),
        (lambda X: NET(X), "logit", r"not in \[0, 1\]"),
        (lambda X: NET(X) - 100.0, "log", "positive answers"),
        (lambda X: (NET(X) > 0.0).astype(float), "logit", "labels"),
    ],
)
def test_what_is_no_such_link(y, link, word: str) -> None:
    X = rows()
    with pytest.raises(InvalidInput, match=word):
        rl.recover(X, y(X), link=link)
