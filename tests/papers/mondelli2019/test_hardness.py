"""What cannot be learned: (A1)–(A4), the trivial predictors, Theorems 2 and 3, the map of regimes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

from relumine import Network, metrics, planted
from relumine.papers.mondelli2019.hardness import (
    hermite_number,
    mean_products,
    random_weights_bound,
    risk,
    separated_weights_bound,
    trivial_risks,
)
from relumine.papers.mondelli2019.isotropy import assumptions, correlation
from relumine.papers.mondelli2019.regimes import least_order, regime
from relumine.results import InvalidInput

CUBIC, QUARTIC = "polynomial(0,1,0,1)", "polynomial(0,0,1,0,1)"
EVEN, ODD, NEITHER = (
    ("leaky_relu(-1)", QUARTIC),
    ("tanh", "erf", CUBIC),
    ("relu", "squared_relu", "polynomial(1,1,1,1)"),
)


# The weights and what is assumed of them


@pytest.mark.parametrize("d", [3, 10, 50])
def test_closed_forms_of_the_assumptions(d: int) -> None:
    close = pytest.approx
    assert assumptions(planted.weights(d, d, family="identity")) == close((0.0, 0.0, 1.0, 0.0), abs=1e-10)
    found = assumptions(planted.weights(d, d, family="centred_identity"))
    assert found == close((0.0, 1 / (d - 1), 0.0, 1.0), abs=1e-10)
    assert found.delta <= (d + 1) / (d * (d - 1))
    assert found.eta_var <= 2.0
    assert assumptions(planted.weights(d, d + 1, 0, family="simplex")) == close((0.0, 1 / d, 0.0, 0.0), abs=1e-10)


@settings(max_examples=30, deadline=None)
@given(d=st.integers(2, 12), blocks=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_weights_keep_their_word(d: int, blocks: int, seed: int) -> None:
    simplex = planted.weights(d, blocks * (d + 1), seed, family="simplex")
    assert assumptions(simplex)[0] < 1e-10
    assert assumptions(simplex)[2:] == pytest.approx((0.0, 0.0), abs=1e-10)
    haar = planted.weights(d, blocks * d, seed, family="haar")
    assert np.allclose(haar[:d] @ haar[:d].T, np.eye(d), atol=1e-10)
    assert assumptions(haar).eta_var < 1e-10
    centred = planted.weights(d, blocks * d, seed, family="centred_haar")
    assert np.abs(centred.sum(axis=0)).max() < 1e-10
    assert np.allclose(haar - haar.mean(axis=0), centred)
    random = planted.weights(d, blocks * d, seed)
    assert assumptions(random).unit < 1e-12


def test_blocks_of_the_simplex_and_of_haar_matrices_are_turned_independently() -> None:
    for family, r in (("simplex", 18), ("haar", 16)):
        W = planted.weights(8, r, 0, family=family)  # type: ignore[arg-type]
        half = r // 2
        assert 0.2 < correlation(W[:half], W[half:]) < 1.0 - 1e-6


def test_random_weights_are_nearly_centred_and_nearly_orthogonal() -> None:
    found = assumptions(planted.weights(200, 1000, 0))
    assert found.delta < 0.45
    assert found.eta_avg < 0.01
    assert found.eta_var < 2.0


@pytest.mark.parametrize(
    ("family", "d", "r"), [("simplex", 4, 6), ("haar", 4, 6), ("identity", 4, 8), ("random", 1, 3), ("other", 4, 4)]
)
def test_weights_that_do_not_exist_are_refused(family: str, d: int, r: int) -> None:
    with pytest.raises(InvalidInput):
        planted.weights(d, r, family=family)  # type: ignore[arg-type]


# Risks


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu", CUBIC, "leaky_relu(-1)"])
def test_mean_products_equal_the_exact_gaussian_inner_product(name: str) -> None:
    rng = np.random.default_rng(0)
    W, V = rng.normal(size=(3, 2)), rng.normal(size=(2, 2))
    V[1] = -1.3 * W[0]  # parallel
    f = Network(W, np.zeros(3), np.ones(3), name)
    g = Network(V, np.zeros(2), np.ones(2), name)
    assert mean_products(W, V, name).sum() == pytest.approx(float(metrics.gaussian_inner(f, g)), rel=1e-9)
    assert risk(W, V, name) == pytest.approx(metrics.gaussian_distance(f, g) ** 2, rel=1e-8)


def least_squares_risks(X: np.ndarray, y: np.ndarray) -> list[float]:
    """What the best constant, the best a + b‖x‖² and the best a + xᵀAx leave of y."""
    i, j = np.triu_indices(X.shape[1])
    one = np.ones((len(X), 1))
    designs = (one, np.hstack([one, (X**2).sum(axis=1, keepdims=True)]), np.hstack([one, X[:, i] * X[:, j]]))
    return [float(np.mean((y - F @ np.linalg.lstsq(F, y, rcond=None)[0]) ** 2)) for F in designs]


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu", CUBIC, QUARTIC])
@pytest.mark.parametrize("norm", [1.0, 1.7])
def test_trivial_risks_in_closed_form_are_those_of_least_squares(name: str, norm: float) -> None:
    W = norm * planted.weights(4, 6, 3)
    net = Network(W, np.zeros(6), np.ones(6), name)
    X, y = planted.sample(net, 100_000, rng=0)
    exact, fitted = np.array(trivial_risks(W, name)), np.array(least_squares_risks(X, y))
    assert exact[0] >= exact[1] >= exact[2] >= 0.0
    assert fitted == pytest.approx(exact, rel=0.1, abs=1e-9)


def test_what_the_norm_explains() -> None:
    assert trivial_risks(np.eye(5), "quadratic") == pytest.approx((10.0, 0.0, 0.0), abs=1e-12)
    W = planted.weights(6, 9, 0)
    odd = trivial_risks(W, "tanh")  # odd functions do not see an even predictor
    assert odd.mean == pytest.approx(odd.norm) == pytest.approx(odd.quadratic)
    assert trivial_risks(W, "quadratic").quadratic < 1e-12 < trivial_risks(W, "quadratic").norm


# Theorems 2 and 3


def _families(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    d = int(rng.integers(8, 49))
    family = rng.choice(["identity", "centred_identity", "simplex", "simplex2", "haar", "random"])
    r = {"simplex": d + 1, "simplex2": 2 * (d + 1), "haar": d * int(rng.integers(1, 3)), "random": 2 * d}.get(family, d)
    return planted.weights(d, r, rng, family=str(family).rstrip("2")), str(family)  # type: ignore[arg-type]


def _estimate(rng: np.random.Generator, W: np.ndarray) -> np.ndarray:
    """Random guesses, few or many; or near the truth, or a part of it, where the bound must not bite."""
    d = W.shape[1]
    R = int(rng.choice([1, max(1, d // 8), d]))
    guess = rng.normal(size=(R, d))
    if rng.uniform() < 0.2:
        guess = W[: max(1, d // 4)]
    elif rng.uniform() < 0.2:
        guess = W + rng.uniform(0.0, 0.5) * rng.normal(size=W.shape) / np.sqrt(d)
    elif rng.uniform() < 0.3:
        d2 = 1 << (d.bit_length() - 1)
        guess = np.hstack([hadamard(d2)[:R].astype(float), np.zeros((min(R, d2), d - d2))])
    return np.asarray(guess / np.linalg.norm(guess, axis=1, keepdims=True))


@pytest.mark.parametrize("trials", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_estimate_beats_the_bounds(trials: int) -> None:
    """Monte Carlo risk with its error bar, across families, activations and estimates."""
    rng = np.random.default_rng(0)
    told = dict.fromkeys(("even identity", "odd centred", "simplex"), 0)
    for trial in range(trials):
        W, family = _families(rng)
        name = str(
            rng.choice(["polynomial(0,-3,0,1)", *EVEN, *ODD[1:], *NEITHER])
        )  # tanh needs many integrals: erf stands in
        W_hat = _estimate(rng, W)
        X = rng.normal(size=(600, W.shape[1]))
        y, prediction = (Network(V, np.zeros(len(V)), np.ones(len(V)), name)(X) for V in (W, W_hat))
        squares = (y - prediction) ** 2
        reached, bar = squares.mean(), 5.0 * squares.std() / np.sqrt(len(X))
        bound = separated_weights_bound(W, W_hat, name)
        assert bound.value <= reached + bar, (trial, family, name)
        assert random_weights_bound(W, W_hat, name).value <= reached + bar, (trial, family, name)
        if not bound.vacuous:
            told["even identity"] += family == "identity" and name in EVEN
            told["odd centred"] += family == "centred_identity" and name in ODD
            told["simplex"] += family.startswith("simplex")
    assert min(told.values()) >= 3, told  # each of the regimes that the paper names


@pytest.mark.parametrize(("name", "p"), [(CUBIC, 1), (QUARTIC, 2)])  # odd: Eq. 9; even: Eq. 10
def test_the_constants_of_theorem_2(name: str, p: int) -> None:
    d, W = 16, planted.weights(16, 16, family="centred_identity")
    W_hat = planted.weights(d, 5, rng=1)
    (_, delta, eta_avg, eta_var), epsilon = assumptions(W), np.abs(W @ W_hat.T).max()
    bound = separated_weights_bound(W, W_hat, name)
    one, two = hermite_number(name, 1), hermite_number(name, 2)
    assert eta_var == pytest.approx(1.0)
    assert bound.applies
    assert bound.epsilon == pytest.approx(epsilon)
    assert bound.c1 == pytest.approx(2.0 * one**2 * eta_avg * d + 2.0 * two**2 * eta_var**2 * d)
    assert bound.c2 == pytest.approx(2.0 * epsilon**p * (1.0 + eta_var) * 5 / d / (1.0 - delta**p * (1.0 + eta_var)))
    twice = separated_weights_bound(np.vstack([W, W]), W_hat, name)  # δ = 1: the condition on it fails
    assert (twice.applies, twice.value, twice.vacuous) == (False, 0.0, True)


@pytest.mark.parametrize("name", [*EVEN, *ODD, *NEITHER])
def test_bounds_are_below_the_exact_risk_and_tight_for_uncorrelated_estimates(name: str) -> None:
    d = 64
    W, W_hat = planted.weights(d, d + 1, 0, family="simplex"), planted.weights(d, 4, 1)
    bound, exact = separated_weights_bound(W, W_hat, name), risk(W, W_hat, name)
    assert 0.9 * bound.floor * (1.0 - bound.c2) < bound.value <= exact
    assert bound.c2 < 0.35


@pytest.mark.parametrize("name", ["polynomial(0,-3,0,1)", "polynomial(0,15,0,-10,0,1)"])  # He_3, He_5
def test_a_part_of_the_truth_beats_the_floor_but_not_the_bounds(name: str) -> None:
    W = planted.weights(64, 65, 0, family="simplex")
    part = W[:16]  # ε = 1: c₂ = 2R/d is near ½
    exact = risk(W, part, name)
    for bound in (separated_weights_bound(W, part, name), random_weights_bound(W, part, name)):
        assert 0.0 < bound.value <= exact < 0.85 * bound.floor


def test_even_activations_have_the_better_constants() -> None:
    W, W_hat = np.eye(64), hadamard(64) / 8.0
    even = separated_weights_bound(W, W_hat, QUARTIC)
    assert even.c1 == 0.0
    assert even.c2 == pytest.approx(2.0 / 64.0)
    odd = separated_weights_bound(W, W_hat, CUBIC)
    assert odd.c1 == pytest.approx(2.0 * hermite_number(CUBIC, 1) ** 2 * 64)
    assert odd.c2 == pytest.approx(2.0 / 8.0)


def test_two_negative_factors_are_not_a_bound() -> None:
    W = planted.weights(5, 5, family="identity")  # c₁ > floor and, with Ŵ = W, c₂ = 2
    bound = separated_weights_bound(W, W, "linear")
    assert bound.c1 > bound.floor
    assert bound.c2 > 1.0
    assert bound.value == 0.0
    assert bound.vacuous


def test_theorem_3_says_something_beyond_theorem_2() -> None:
    d, r = 40, 400  # more than d^{3/2}
    W, W_hat = planted.weights(d, r, 0), planted.weights(d, r, 1)
    assert separated_weights_bound(W, W_hat, CUBIC).vacuous
    bound = random_weights_bound(W, W_hat, CUBIC)
    assert 0.5 * bound.floor < bound.value <= risk(W, W_hat, CUBIC)
    assert random_weights_bound(W, W, CUBIC).vacuous


def test_theorems_ask_for_unit_weights() -> None:
    with pytest.raises(InvalidInput, match="unit weights"):
        separated_weights_bound(2.0 * np.eye(3), np.eye(3), "relu")
    with pytest.raises(InvalidInput, match="unit weights"):
        random_weights_bound(np.eye(3), 2.0 * np.eye(3), "relu")
    with pytest.raises(InvalidInput, match="matrix"):
        assumptions(np.ones(3))


# The map


@pytest.mark.parametrize(
    ("d", "r", "name", "weights", "verdict"),
    [
        (50, 40, "relu", "random", "easy"),
        (50, 200, "relu", "random", "known"),
        (50, 200, "tanh", "random", "open"),
        (50, 3, "linear", "random", "not determined"),
        (50, 3, "quadratic", "random", "not determined"),
        (50, 30, CUBIC, "random", "easy"),
        (50, 300, CUBIC, "random", "known"),
        (50, 400, CUBIC, "random", "hard"),
        (50, 2499, CUBIC, "random", "hard"),
        (50, 3000, CUBIC, "random", "not determined"),
        (50, 200, "polynomial(0,0,1,1,1)", "random", "open"),
        (50, 200, "polynomial(0,0,1,1,1)", "separated", "hard"),
        (50, 200, "relu", "separated", "known"),
    ],
)
def test_regimes(d: int, r: int, name: str, weights: str, verdict: str) -> None:
    found = regime(d, r, name, weights)  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert found.reason.endswith(".")


def test_least_order_counts_independent_powers() -> None:
    rng = np.random.default_rng(0)
    for d, r in ((2, 3), (3, 6), (3, 7), (4, 10), (4, 11)):
        order = least_order(d, r)
        assert order is not None
        W = rng.normal(size=(r, d))
        for k in (order - 1, order):
            powers = np.ones((r, 1))
            for _ in range(k):
                powers = np.einsum("ij,ik->ijk", powers, W).reshape(r, -1)
            assert (np.linalg.matrix_rank(powers) == r) == (k == order)
    assert least_order(1, 1) == 1
    assert least_order(1, 2) is None


@pytest.mark.parametrize(("d", "r", "weights"), [(0, 3, "random"), (3, 0, "random"), (3, 3, "any"), (2.5, 3, "random")])
def test_sizes_are_checked(d: float, r: int, weights: str) -> None:
    with pytest.raises(InvalidInput):
        regime(d, r, "relu", weights)  # type: ignore[arg-type]
