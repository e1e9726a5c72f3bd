"""T(θ), S(θ) against brute force and quadrature; Lemma 3.3 between them; the theorem's step and rate."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from relumine.papers.oymak2018.probes import Tails, column_tails, sample_tails, tails
from relumine.results import InvalidInput

DISTRIBUTIONS = {
    "normal": stats.norm(scale=2.0),
    "shifted": stats.norm(loc=0.7, scale=1.0),
    "student": stats.t(df=2, scale=1.5),
    "laplace": stats.laplace(scale=1.0),
    "uniform": stats.uniform(-3.0, 6.0),
    "exponential": stats.expon(loc=-1.0),
}
DISCRETE = {
    "poisson": stats.poisson(2.0, loc=-2),
    "signs": stats.rv_discrete(values=([-2, 2], [0.5, 0.5])),
    "atom": stats.rv_discrete(values=([-2, 0, 2], [0.01, 0.98, 0.01])),
}


def brute_force(below, theta):
    """T and S straight from Definition 2.1, with the supremum on a fine grid."""
    gamma = np.linspace(-theta, theta, 20_001)
    G = below(gamma)
    return (1 - G[-1]) * G[0], float((G * (1 - G)).max())


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("theta", [0.25, 1.0, 2.5])
def test_continuous_distributions_match_the_definition(name, theta):
    X = DISTRIBUTIONS[name]
    T_0, S_0 = brute_force(X.cdf, theta)
    found = tails(X, theta)
    assert pytest.approx(T_0, abs=1e-12) == found.T
    assert pytest.approx(S_0, abs=1e-7) == found.S


@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.parametrize("theta", [0.5, 1.0, 2.0, 2.5])
def test_discrete_distributions_match_the_definition(name, theta):
    X = DISCRETE[name]
    support = np.arange(-30, 60)
    mass = X.pmf(support)
    T_0, S_0 = brute_force(lambda g: np.array([mass[support < t].sum() for t in np.atleast_1d(g)]), theta)
    found = tails(X, theta)
    assert pytest.approx(T_0, abs=1e-9) == found.T
    assert pytest.approx(S_0, abs=1e-9) == found.S


def test_the_printed_form_of_s_breaks_its_own_bound():
    """P(X ≥ γ)P(X < −γ) exceeds 1/4, which the paper states as a bound; the form used here does not."""
    X, theta = stats.norm(), 1.0
    printed = max(X.sf(g) * X.cdf(-g) for g in np.linspace(-theta, theta, 201))
    assert printed > 0.5
    assert pytest.approx(0.25) == tails(X, theta).S


@given(
    x=st.lists(st.sampled_from([-3.0, -2.0, -1.0, 0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=30),
    theta=st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 4.0]),
)
def test_a_sample_is_its_own_distribution(x, theta):
    values = np.array(x)
    T_0, S_0 = brute_force(lambda g: (values[None, :] < np.asarray(g)[:, None]).mean(axis=1), theta)
    found = sample_tails(x, theta)
    assert pytest.approx(T_0) == found.T
    assert pytest.approx(S_0) == found.S
    assert found.T <= found.S + 1e-15
    assert found.S <= 0.25 + 1e-15


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_lemma_3_3(name):
    """|a − b| S ≥ sgn(a − b) Φ_X(a, b) ≥ |a − b| T, with Φ_X by quadrature."""
    X, theta = DISTRIBUTIONS[name], 1.0
    T, S = tails(X, theta)
    rng = np.random.default_rng(0)
    for a, b in rng.uniform(-theta, theta, (8, 2)):
        edges = [0.0, *sorted([float(X.cdf(-a)), float(X.cdf(-b))]), 1.0]

        def expect(g, edges=edges):
            """E g(X) over quantiles: the integrand is bounded, with kinks at the edges only."""
            pieces = pairwise(edges)
            return sum(integrate.quad(lambda u: g(X.ppf(u)), p, q)[0] for p, q in pieces)

        gap = lambda x, a=a, b=b: np.maximum(a + x, 0.0) - np.maximum(b + x, 0.0)  # noqa: E731
        phi = expect(lambda x, a=a, gap=gap: gap(x) * (a + x >= 0)) - expect(gap) * float(X.sf(-a))
        assert abs(a - b) * S * (1 + 1e-6) >= np.sign(a - b) * phi >= abs(a - b) * T * (1 - 1e-6)


def test_columns_agree_with_samples_one_by_one():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((301, 5)) * [0.5, 1.0, 2.0, 1.0, 1.0] + [0.0, 0.0, 0.0, 3.0, -3.0]
    T, S = column_tails(X, 1.0, rows=64)
    for k in range(5):
        one = sample_tails(X[:, k], 1.0)
        assert T[k] == pytest.approx(one.T)
        assert S[k] == pytest.approx(one.S, abs=1e-5)  # 1/4 is rounded up from (150·151)/301²
        assert S[k] >= one.S - 1e-15


def test_step_and_rate_are_lemma_3_2_with_half_of_t_and_three_halves_of_s():
    alpha, beta = 0.1 / 2, 0.2 * 3 / 2
    probe = Tails(0.1, 0.2)
    assert probe.step == pytest.approx(alpha / beta**2)
    assert probe.rate == pytest.approx(1 - alpha**2 / beta**2)


@settings(max_examples=30)
@given(T=st.floats(0.01, 0.25), accuracy=st.floats(1e-12, 0.5))
def test_iterations_reach_the_accuracy_and_not_earlier(T, accuracy):
    probe = Tails(T, 0.25)
    K = probe.iterations(accuracy)
    assert probe.rate ** (K / 2) <= accuracy * (1 + 1e-9)
    assert probe.rate ** ((K - 1) / 2) > accuracy * (1 - 1e-9)


def test_blind_probes_need_infinitely_many_steps():
    probe = tails(stats.uniform(-0.5, 1.0), 1.0)
    assert (probe.T, probe.rate, probe.step) == (0.0, 1.0, 0.0)
    assert math.isinf(probe.iterations(0.1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: tails([1.0, 2.0], 1.0),
        lambda: tails(stats.norm(), -1.0),
        lambda: tails(stats.norm(), float("nan")),
        lambda: sample_tails([], 1.0),
        lambda: sample_tails([1.0, np.nan], 1.0),
        lambda: Tails(0.1, 0.2).iterations(2.0),
    ],
)
def test_bad_input_is_named(call):
    with pytest.raises(InvalidInput):
        call()
