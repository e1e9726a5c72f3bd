"""Zhong 2017: exact tensors first, then operators against dense moments, then Algorithms 1 and 2 from samples."""

from itertools import islice

import numpy as np
import pytest

from relumine import InvalidInput, Status, metrics, planted
from relumine import activations as act
from relumine.data.moments import estimate_tensors
from relumine.data.views import Affine, Less, rows_of, seen
from relumine.papers.zhong2017 import moments as zhong_moments
from relumine.papers.zhong2017 import span
from relumine.papers.zhong2017.algorithms import Start, initialise, learn, partition
from relumine.papers.zhong2017.descent import descend, gradient, theorem_step
from relumine.papers.zhong2017.figure import distance
from relumine.papers.zhong2017.magsign import recover_magnitudes
from relumine.papers.zhong2017.method import recover_zhong
from relumine.tensors.hermite import hermite_tensor
from relumine.tensors.symmetric import SymmetricTensor

HOMOGENEOUS = ("relu", "leaky_relu(0.1)", "squared_relu", "polynomial(0,0,0,1)", "polynomial(0,0,0,0,1)")


# -- orders, operators, subspace


def test_orders_follow_from_the_activation():
    orders = {name: span.moment_orders(act.get(name)) for name in ("relu", "squared_relu", "tanh", "sigmoid", "erf")}
    assert orders["relu"] == span.Orders(1, 2, 4)
    assert orders["squared_relu"] == span.Orders(1, 2, 3)
    assert orders["tanh"] == orders["sigmoid"] == orders["erf"] == span.Orders(1, 3, 3)
    assert span.moment_orders(act.get("leaky_relu(0.3)")) == span.Orders(1, 2, 4)
    for name in ("linear", "quadratic"):
        with pytest.raises(InvalidInput, match="third and fourth moments vanish"):
            span.moment_orders(act.get(name))


@pytest.mark.parametrize("order", [2, 3, 4])
def test_operator_is_the_contracted_hermite_tensor(order):
    rng = np.random.default_rng(order)
    X, r, alpha = rng.normal(size=(7, 4)), rng.normal(size=7), rng.normal(size=4)
    P = sum(y * hermite_tensor(x, order).contract(*[alpha] * (order - 2)).dense() for x, y in zip(X, r)) / 7
    operator = span.moment_operator(rows_of(X, r), order, alpha)
    assert np.allclose(operator @ np.eye(4), P, atol=1e-12)
    assert np.allclose(operator @ alpha, P @ alpha, atol=1e-12)


def without_affine(rows):
    return seen(rows, Less(Affine(*span.affine_fit(rows))))


@pytest.mark.parametrize(("name", "d"), [("squared_relu", 20), ("squared_relu", 260), ("tanh", 12)])
def test_span_contains_the_weights(name, d):
    truth = planted.network(d, 3, rng=1, family="conditioned", activation=name)
    X, y = planted.sample(truth, 30_000 if d < 100 else 15_000, rng=2)
    rows = rows_of(X, y)
    V, values = span.weight_span(without_affine(rows), 3, span.moment_orders(truth.activation).second, rng=0)
    inside = np.linalg.norm(truth.W @ V.T, axis=1) / np.linalg.norm(truth.W, axis=1)
    assert np.allclose(V @ V.T, np.eye(3), atol=1e-6)
    assert inside.min() > (0.95 if d == 20 else 0.7)  # a random subspace would show √(3/d)
    assert np.abs(values[0]) >= np.abs(values[-1])


def test_lanczos_and_dense_agree(monkeypatch):
    truth = planted.network(30, 3, rng=1, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 5000, rng=2)
    V, values = span.weight_span(rows_of(X, y), 3, rng=0)
    monkeypatch.setattr(span, "_DENSE", 0)
    V2, values2 = span.weight_span(rows_of(X, y), 3, rng=0)
    assert values == pytest.approx(values2, rel=1e-5)
    assert np.linalg.svd(V @ V2.T)[1].min() > 1 - 1e-8


@pytest.mark.parametrize(("d", "n", "seed"), [(40, 1500, 1009), (40, 1500, 1028), (70, 2500, 1011)])
def test_a_unit_lost_by_the_first_span_is_found_in_turn(d, n, seed):
    rng = np.random.default_rng([seed, d, n])
    truth = planted.network(d, 5, rng, family="conditioned", activation="squared_relu")
    rows = rows_of(*planted.sample(truth, n, rng=rng))
    first, _ = span.weight_span(without_affine(rows), 5)
    V, values = zhong_moments.find_span(
        rows, 5, span.moment_orders(truth.activation), np.ones(d) / np.sqrt(d), np.random.default_rng(0)
    )
    inside = [np.linalg.norm(truth.W @ B.T, axis=1) / np.linalg.norm(truth.W, axis=1) for B in (first, V)]
    assert inside[0].min() < 0.7
    assert inside[1].min() > 0.95
    assert np.sign(values).sum() == truth.a.sum()  # the inertia of P₂ counts the signs of v


def test_moments_inside_are_exact_for_polynomials():
    truth = planted.network(4, 4, rng=0, family="conditioned", activation="polynomial(0,0,0,1)")
    X, y = planted.sample(truth, 300, rng=1)
    V = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0]
    M = zhong_moments.moments_inside(rows_of(X, 5.0 + X[:, 0] + y), V, 3)
    for order in (1, 2, 3):
        exact = SymmetricTensor.from_dense(truth.hermite(order) + (np.eye(4)[0] if order == 1 else 0.0)).transform(V)
        assert M[order].entries == pytest.approx(exact.entries, abs=1e-8)
    assert M[0].entries == pytest.approx([5.0], abs=1e-8)


def test_degree_of_the_polynomial_in_the_span():
    sizes = [(5, 20), (5, 250), (5, 600), (5, 2000), (5, 10**6), (10, 10**6), (40, 10**5), (3, 1000)]
    assert [zhong_moments._degree(k, n) for k, n in sizes] == [1, 3, 4, 5, 5, 3, 2, 5]


@pytest.mark.parametrize("dense", [True, False])
def test_affine_fit_is_least_squares(dense, monkeypatch):
    monkeypatch.setattr(span, "_DENSE", 200 if dense else 0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)) + np.array([0.0, 0.1, 0.0, 0.0, 2.0]), rng.normal(size=200)
    slope, constant = span.affine_fit(rows_of(X, y))
    expected = np.linalg.lstsq(np.column_stack([X, np.ones(200)]), y, rcond=None)[0]
    assert np.append(slope, constant) == pytest.approx(expected, abs=1e-8)


# -- RecMagSign on exact moments


@pytest.mark.parametrize("name", HOMOGENEOUS)
def test_magnitudes_and_signs_from_exact_moments(name):
    sigma = act.get(name)
    orders = span.moment_orders(sigma)
    rng = np.random.default_rng(3)
    truth = planted.network(4, 4, rng=rng, family="conditioned", activation=sigma)
    alpha = rng.normal(size=4)
    U = truth.W / np.linalg.norm(truth.W, axis=1, keepdims=True) * rng.choice([-1.0, 1.0], 4)[:, None]
    M1 = SymmetricTensor.from_dense(truth.hermite(orders.first)).contract(*[alpha] * (orders.first - 1))
    M2 = SymmetricTensor.from_dense(truth.hermite(orders.second)).contract(*[alpha] * (orders.second - 2))
    W, v = recover_magnitudes(U, M1.entries, M2.dense(), sigma, orders, alpha)
    assert set(np.abs(v)) == {1.0}
    found = truth.replace(W=W, a=v)
    assert metrics.parameter_error(truth, found) < 1e-10


def test_magnitudes_need_homogeneity():
    sigma = act.get("tanh")
    with pytest.raises(InvalidInput, match="homogeneous"):
        recover_magnitudes(np.eye(2), np.ones(2), np.eye(2), sigma, span.moment_orders(sigma), np.ones(2))


# -- descent


@pytest.mark.parametrize("name", ["relu", "squared_relu", "tanh"])
def test_gradient_against_differences(name):
    net = planted.network(4, 3, rng=0, family="conditioned", activation=name)
    X, y = planted.sample(net, 50, rng=1)
    rng = np.random.default_rng(2)
    W, v = net.W + 0.3 * rng.normal(size=net.W.shape), rng.normal(size=3)
    loss, in_W, in_v = gradient(rows_of(X, y), W, v, net.activation)
    assert loss == pytest.approx(0.5 * np.mean((net.replace(W=W, a=v)(X) - y) ** 2))
    h, D, e = 1e-6, rng.normal(size=W.shape), rng.normal(size=3)
    up, down = (gradient(rows_of(X, y), W + s * h * D, v + s * h * e, net.activation)[0] for s in (1, -1))
    assert (up - down) / (2 * h) == pytest.approx(float((in_W * D).sum() + in_v @ e), rel=1e-5)


@pytest.mark.parametrize("step", [0.02, "theorem", "search"])
@pytest.mark.parametrize("batches", [1, 4])
def test_descent_converges_linearly_near_the_truth(step, batches):
    truth = planted.network(6, 3, rng=0, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 4000, rng=1)
    W = truth.W + 0.1 * np.random.default_rng(2).normal(size=truth.W.shape)
    errors = [
        np.linalg.norm(it.W - truth.W)
        for it in islice(descend(rows_of(X, y), W, truth.a, truth.activation, step, batches=batches), 601)
    ]
    assert errors[-1] < 1e-3 * errors[0]
    halves = errors[300] / errors[0], errors[600] / errors[300]
    assert max(halves) < 0.3


def test_step_of_the_theorem():
    assert theorem_step(3.0 * np.eye(4), np.array([1.0, -2.0, 1.0, 1.0]), act.RELU) == pytest.approx(1 / 16)
    with pytest.raises(InvalidInput, match="step must be"):
        next(descend(rows_of(np.ones((3, 1)), np.ones(3)), np.ones((1, 1)), np.ones(1), act.RELU, "fast"))
    with pytest.raises(InvalidInput, match="partitioned"):
        next(descend(rows_of(np.ones((3, 1)), np.ones(3)), np.ones((1, 1)), np.ones(1), act.RELU, batches=9))


def test_a_step_far_too_large_ends_and_says_so():
    truth = planted.network(6, 3, rng=0, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 500, rng=1)
    start = Start(truth.W + 1.0, truth.a, np.eye(6)[:3], np.ones(3), span.Orders(1, 2, 3))
    end, losses = learn(X, y, start, truth.activation, step=50.0, iterations=200)
    assert len(losses) < 50
    assert np.isfinite(end.loss)


def test_partition_is_one():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    parts = [part.head() for part in partition(rows_of(X, y), 3, np.random.default_rng(0))]
    assert sorted(np.concatenate([part.Y[:, 0] for part in parts])) == list(y)
    assert all(np.array_equal(part.X[:, 0] / 2, part.Y[:, 0]) for part in parts)


# -- Algorithms 1 and 2 from samples


@pytest.mark.parametrize(("name", "n", "bound"), [("squared_relu", 6000, 0.35), ("relu", 20_000, 0.6)])
def test_initialisation_is_near_the_truth(name, n, bound):
    for seed in range(3):
        truth = planted.network(10, 5, rng=seed, family="conditioned", activation=name)
        X, y = planted.sample(truth, n, rng=100 + seed)
        start = initialise(X, y, 5, truth.activation, np.random.default_rng(seed))
        error, exact = distance(truth, start.W, start.v)
        assert exact
        assert error < bound


def test_plain_split_and_regressed_work_with_enough_samples():
    truth = planted.network(8, 3, rng=0, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 60_000, rng=1)
    for options in ({"moments": "plain"}, {"split": True}, {"moments": "regressed"}):
        start = initialise(X, y, 3, truth.activation, np.random.default_rng(0), **options)
        error, exact = distance(truth, start.W, start.v)
        assert exact, options
        assert error < 0.25, options


def test_selection_avoids_exploding_starts():
    """At n = 18d KCL's last stage often has two nearly parallel factors."""
    worst, wrong = {}, {}
    for select in (False, True):
        ends = []
        for seed in range(12):
            truth = planted.network(10, 5, rng=seed, family="conditioned", activation="squared_relu")
            X, y = planted.sample(truth, 180, rng=100 + seed)
            start = initialise(X, y, 5, truth.activation, np.random.default_rng(seed), select=select)
            ends.append(distance(truth, start.W, start.v))
        errors, exact = zip(*ends, strict=True)
        worst[select], wrong[select] = max(errors), 12 - sum(exact)
    assert worst[True] < 2.5 < worst[False]
    assert wrong[True] <= 1
    assert wrong[False] >= 4


def test_debiased_moments_have_less_variance():
    truth = planted.network(10, 5, rng=0, family="conditioned", activation="squared_relu")
    errors = {}
    for moments in ("plain", "debiased"):
        errors[moments] = []
        for seed in range(4):
            X, y = planted.sample(truth, 4000, rng=seed)
            inside = X @ np.linalg.qr(truth.W.T)[0]
            exact = SymmetricTensor.from_dense(truth.hermite(3)).transform(np.linalg.qr(truth.W.T)[0].T)
            errors[moments].append((estimate_tensors(inside, y, 3, moments).tensors[3] - exact).norm)
    assert np.mean(errors["debiased"]) < 0.6 * np.mean(errors["plain"])


@pytest.mark.parametrize(
    ("name", "d", "n"), [("squared_relu", 10, 2000), ("relu", 10, 4000), ("leaky_relu(0.1)", 8, 4000)]
)
def test_recovery_is_exact(name, d, n):
    truth = planted.network(d, 3, rng=0, family="conditioned", activation=name)
    found = recover_zhong(*planted.sample(truth, n, rng=1), width=3, activation=name, rng=0)
    assert found.status is Status.EXACT
    assert metrics.parameter_error(truth, found.network) < 1e-7
    assert [stage.name for stage in found.stages] == ["initialise", "descent"]
    again = recover_zhong(*planted.sample(truth, n, rng=1), width=3, activation=name, rng=0)
    assert np.array_equal(again.network.W, found.network.W)


def test_coloured_inputs_are_whitened():
    truth = planted.network(6, 3, rng=0, family="conditioned", activation="squared_relu")
    B = 2.0 * (np.eye(6) + 0.15 * np.random.default_rng(5).normal(size=(6, 6)))
    X, y = planted.sample(truth, 6000, rng=1, cov=B @ B.T)
    found = recover_zhong(X, y, width=3, rng=0, whiten=True)
    assert metrics.parameter_error(truth, found.network) < 1e-7
    with pytest.raises(InvalidInput, match="mean zero"):
        recover_zhong(X + 3.0, y, width=3, rng=0, whiten=True)


def test_the_tensor_estimate_alone_and_failure_in_words():
    truth = planted.network(6, 3, rng=0, family="conditioned", activation="squared_relu")
    X, y = planted.sample(truth, 30_000, rng=1)
    rough = recover_zhong(X, y, width=3, rng=0, iterations=0)
    assert rough.status in (Status.ESTIMATE, Status.NOT_RECOVERED)
    assert 1e-6 < metrics.parameter_error(truth, rough.network) < 0.5
    noise = np.random.default_rng(0).normal(size=len(y))
    lost = recover_zhong(X, noise, width=3, rng=0, iterations=50)
    assert lost.status is Status.NOT_RECOVERED
    assert not lost.units.recovered


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"width": 9}, "width ≤ d"),
        ({"width": 0}, "width ≤ d"),
        ({"activation": "tanh"}, "units, not tanh"),
        ({"activation": "quadratic"}, "is for relu, leaky_relu, squared_relu units, not quadratic"),
        ({"moments": "magic"}, "moments must be 'plain'"),
        ({"iterations": -1}, "iterations"),
        ({"y": np.ones(100)}, "constant"),
        ({"y": np.ones((100, 2))}, "one output"),
        ({"rows": 15}, "too few"),
    ],
)
def test_refusals(options, complaint):
    rows = options.pop("rows", 100)
    X = np.random.default_rng(0).normal(size=(rows, 6))
    arguments = {"width": 2, "y": X[:, 0] ** 2} | options
    with pytest.raises(InvalidInput, match=complaint):
        recover_zhong(X, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "n"), [(10, 2000), (30, 10_000), (50, 10_000), (100, 10_000)])
def test_the_papers_success_criterion(d, n):
    good = 0
    for seed in range(20):
        truth = planted.network(d, 5, rng=seed, family="conditioned", activation="squared_relu")
        X, y = planted.sample(truth, n, rng=100 + seed)
        start = initialise(X, y, 5, truth.activation, np.random.default_rng(seed))
        end, _ = learn(X, y, start, truth.activation, step=0.02, iterations=4000, tol=1e-9)
        error, exact = distance(truth, end.W, end.v)
        good += error <= 0.01 and exact
    assert good >= 19
