"""Leverages against the dense hat matrix, leave-one-out residuals against refits, and rows that confirm nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import cholesky

import relumine as rl
from relumine.data.whiten import whitening
from relumine.fit import fisher, leverage
from relumine.fit.passes import Model
from relumine.fit.rows import AFFINE, CONSTANT, NOTHING, MemoryRows
from relumine.fit.sign_free import shape_of
from relumine.fit.sketch import sketched_confirmation


def rows_of(net, n, rng, *, weight=None, free=AFFINE):
    X = np.column_stack([rng.normal(size=(n, net.d)), np.ones(n)])
    return MemoryRows(X, net(X[:, :-1]).reshape(n, -1), weight, free)


def network(d, m, q, rng, activation="relu"):
    return rl.planted.network(d, m, rng=rng, outputs=q, activation=activation)


def factor_of(rows, net, free):
    found = fisher.factor(net, free, fisher.fisher(fisher.tangent_gram(rows, net, free), net, free))
    assert found is not None
    return found


def dense(rows, net, free):
    """Diagonal of J(JᵀωJ)⁺Jᵀω from an SVD of all of J, (n, q)."""
    q = net.a.shape[0]
    J = np.concatenate([fisher.jacobian(rows.X, net, o, free) for o in range(q)])
    if rows.weight is not None:
        J *= np.sqrt(np.tile(rows.weight, q))[:, None]
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    return (U[:, s > 1e-9 * s[0]] ** 2).sum(axis=1).reshape(q, -1).T


@pytest.mark.parametrize("free", [AFFINE, CONSTANT, NOTHING], ids=["affine", "constant", "nothing"])
@pytest.mark.parametrize(("q", "activation", "weighted"), [(1, "relu", False), (3, "relu", True), (2, "tanh", False)])
def test_leverages_are_the_diagonal_of_the_hat_matrix(free, q, activation, weighted):
    rng = np.random.default_rng(0)
    net = network(4, 3, q, rng, activation)
    rows = rows_of(net, 80, rng, weight=rng.uniform(0.1, 3.0, 80) if weighted else None, free=free)
    at = factor_of(rows, net, free)
    h = leverage.leverages(rows, at)
    np.testing.assert_allclose(h, dense(rows, net, free), atol=1e-10)
    assert h.sum() == pytest.approx(fisher.parameter_count(net, free), rel=1e-8)


@pytest.mark.parametrize("free", [AFFINE, CONSTANT, NOTHING], ids=["affine", "constant", "nothing"])
@pytest.mark.parametrize(("q", "activation"), [(1, "relu"), (3, "relu"), (2, "tanh")])
def test_the_matrix_of_all_outputs_is_the_sum_of_those_of_their_jacobians(free, q, activation):
    rng = np.random.default_rng(4)
    net, sizes = network(3, 2, q, rng, activation), rng.uniform(0.5, 2.0, q)
    rows = rows_of(net, 30, rng, weight=rng.uniform(0.1, 3.0, 30), free=free)
    J = [fisher.jacobian(rows.X, net, o, free) for o in range(q)]
    apart = 1e-6 * rng.normal(size=(net.m, net.d))  # the jacobian itself, against a difference of two networks
    moved = (net.replace(W=net.W + apart)(rows.X[:, :-1]) - net.replace(W=net.W - apart)(rows.X[:, :-1])) / 2e-6
    theta = np.zeros(J[0].shape[1])
    theta[: net.m * (4 + q)].reshape(net.m, 4 + q)[:, :3] = apart / 1e-6
    np.testing.assert_allclose(np.stack([part @ theta for part in J], axis=1), moved, atol=1e-6)
    gram = fisher.tangent_gram(rows, net, free)
    total = sum(s * (part * rows.weight[:, None]).T @ part for s, part in zip(sizes, J))
    np.testing.assert_allclose(fisher.fisher(gram, net, free, sizes), total, atol=1e-10)


@given(st.integers(0, 10**6))
def test_leverages_lie_between_zero_and_one_and_add_up_to_the_parameters(seed):
    rng = np.random.default_rng(seed)
    net = network(int(rng.integers(1, 4)), int(rng.integers(1, 4)), 1, rng)
    rows = rows_of(net, 60, rng, free=NOTHING)
    at = fisher.factor(net, NOTHING, fisher.fisher(fisher.tangent_gram(rows, net, NOTHING), net, NOTHING))
    if at is not None and at.condition < 1e8:
        h = leverage.leverages(rows, at)
        assert (h >= 0.0).all()
        assert h.sum() == pytest.approx(fisher.parameter_count(net, NOTHING), rel=1e-6)


def test_estimates_are_close_and_exact_where_they_are_near_one(monkeypatch):
    rng = np.random.default_rng(1)
    net = network(12, 12, 1, rng)
    rows = rows_of(net, 900, rng)
    rows.X[0, :-1] *= 1e4  # a row that has all the leverage of its direction
    at = factor_of(rows, net, AFFINE)
    monkeypatch.setattr(leverage, "_EXACT_WORK", np.inf)
    exact = leverage.leverages(rows, at)[:, 0]
    monkeypatch.setattr(leverage, "_EXACT_WORK", 0.0)
    estimated = leverage.leverages(rows, at)[:, 0]
    assert exact[0] > 0.999
    near = exact > 0.7
    np.testing.assert_allclose(estimated[near], exact[near], atol=1e-9)
    assert estimated.sum() == pytest.approx(exact.sum(), rel=0.05)


def test_a_residual_over_one_minus_leverage_is_that_of_a_fit_without_the_row():
    """For smooth units, to first order: a refit without the row, by Gauss–Newton, misses it by r/(1 − h)."""
    rng = np.random.default_rng(2)
    net = network(2, 2, 1, rng, "tanh")
    rows = rows_of(net, 40, rng, free=NOTHING)
    at = factor_of(rows, net, NOTHING)
    J, r = fisher.jacobian(rows.X, net, 0, NOTHING), 1e-6 * rng.normal(size=40)
    r -= J @ np.linalg.lstsq(J, r, rcond=None)[0]  # the residual of a fit
    h = leverage.leverages(rows, at)[:, 0]
    for i in range(5):
        others = np.arange(40) != i
        step = np.linalg.lstsq(J[others], r[others], rcond=None)[0]
        assert r[i] - J[i] @ step == pytest.approx(r[i] / (1.0 - h[i]), rel=1e-6)


def model_of(net):
    U = np.column_stack([net.W, net.b])
    return Model(shape_of(net.activation, sign_free=False), U, net.a.T.copy())


def confirmed(X, net, free=NOTHING, groups=None, weight=None):
    X = np.column_stack([X, np.ones(len(X))])
    rows = MemoryRows(X, net(X[:, :-1]).reshape(len(X), -1), weight, free)
    return leverage.confirmation(rows, model_of(net), factor_of(rows, net, free), groups)


def tail(d, rows, n=200):
    """One unit with so many rows behind its kink."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    w = np.ones(d) / np.sqrt(d)
    s = np.sort(X @ w)
    return X, rl.Network(w[None], [-0.5 * (s[-rows] + s[-rows - 1])], [[1.0]])


@pytest.mark.parametrize("d", [1, 2, 5])
def test_rows_of_a_tail_confirm_nothing_if_they_are_as_many_as_its_parameters(d):
    X, net = tail(d, d + 1)
    found = confirmed(X, net)
    assert found.confirmed == 200 - (d + 1)
    assert set(found.alone) == set(np.flatnonzero(net(X)[:, 0] > 0.0))
    assert found.units == (0,)
    one_more = confirmed(*tail(d, d + 4))
    assert one_more.confirmed == 200
    assert one_more.alone == one_more.units == ()


@pytest.mark.parametrize(("clusters", "named"), [(2, True), (5, False)])
def test_a_cluster_confirms_a_value_and_a_slope_and_no_more(clusters, named):
    """Two units, one before all clusters, one before the last: of two each has its own, of five the last has one."""
    rng = np.random.default_rng(0)
    places = np.column_stack([np.linspace(2.0, 4.0, clusters), rng.normal(size=clusters)])
    far = np.repeat(places, 10, axis=0) + 1e-3 * rng.normal(size=(10 * clusters, 2))
    X = np.vstack([far, rng.uniform(-1.0, 1.0, size=(60, 2))])
    which = np.concatenate([np.repeat(np.arange(clusters), 10), clusters + np.arange(60)])
    net = rl.Network([[1.0, 0.0], [1.0, 0.0]], [-1.5, -0.5 * (places[-1, 0] + places[-2, 0])], [[1.0, 1.0]])
    rows = MemoryRows(np.column_stack([X, np.ones(len(X))]), net(X))
    at = factor_of(rows, net, NOTHING)
    h = leverage.leverages(rows, at)
    before = leverage.confirmation(rows, model_of(net), at, h=h)
    found = leverage.without_clusters(rows, at, which, h, before)
    last = set(range(10 * clusters - 10, 10 * clusters))
    assert before.alone == ()
    assert set(found.alone) == (set(range(10 * clusters)) if named else last)
    assert 1 in found.units


def test_rows_that_confirm_nothing_say_nothing_about_the_noise():
    X, net = tail(2, 3)
    X = np.column_stack([X, np.ones(200)])
    behind = net(X[:, :-1])[:, 0] > 0.0
    y = net(X[:, :-1]) + np.where(behind, 1e3, 0.1)[:, None]  # whatever these three are: a fit would follow them
    rows = MemoryRows(X, y, None, NOTHING)
    found = leverage.confirmation(rows, model_of(net), factor_of(rows, net, NOTHING))
    assert found.left_out[0] == pytest.approx(0.1, rel=1e-6)
    assert found.carried[0] == pytest.approx(197.0, rel=1e-6)


def test_copies_of_a_row_count_once():
    X, net = tail(2, 3)
    behind = np.flatnonzero(net(X)[:, 0] > 0.0)
    copies = np.concatenate([np.arange(200), behind, behind])
    found = confirmed(X[copies], net, groups=copies)
    assert found.confirmed == 197
    assert len(found.alone) == 9
    assert confirmed(X[copies], net).confirmed == 206  # what it would be if they counted as rows of their own


def test_weights_do_not_hide_a_saturated_row():
    X, net = tail(2, 3)
    behind = net(X)[:, 0] > 0.0
    for heavy in (1e-6, 1e6):
        assert confirmed(X, net, weight=np.where(behind, heavy, 1.0)).confirmed == 197


def test_a_ramp_of_two_rows_is_named():
    X = np.concatenate([np.linspace(-5, 0.29, 50), [0.35, 0.42], np.linspace(0.51, 5, 50)])[:, None]
    net = rl.Network([[1.0], [1.0], [1.0]], [-0.3, -0.5, 2.0], [[5.0, -5.0, 1.0]])
    found = confirmed(X, net)
    assert found.alone == (50, 51)
    assert found.units == (0, 1)


def test_with_several_outputs_a_row_is_free_only_if_all_of_them_are():
    X, net = tail(1, 2)
    two = rl.Network(np.vstack([net.W, [[1.0]]]), np.append(net.b, 0.3), [[0.0, 1.0], [1.0, 1.0]])
    found = confirmed(X, two)  # the tail shows in the second output only, two numbers for two parameters
    assert found.confirmed == 200 - 2
    assert 0 in found.units


@given(st.integers(1, 10**7))
def test_the_share_unseen_is_the_rule_of_three(k):
    share = leverage.unseen_share(k)
    assert 0.0 < share <= 1.0
    assert (1.0 - share) ** k == pytest.approx(0.05, rel=1e-6)
    assert k < 100 or share == pytest.approx(3.0 / k, rel=0.02)


def test_leave_one_out_residuals_of_noise_exceed_those_of_the_fit():
    rng = np.random.default_rng(5)
    net = network(3, 2, 1, rng)
    rows = rows_of(net, 40, rng, free=NOTHING)
    J = fisher.jacobian(rows.X, net, 0, NOTHING)
    e = 1e-3 * rng.normal(size=40)
    r = e - J @ np.linalg.lstsq(J, e, rcond=None)[0]
    noisy = MemoryRows(rows.X, rows.Y + r[:, None], None, NOTHING)
    found = leverage.confirmation(noisy, model_of(net), factor_of(noisy, net, NOTHING))
    h = leverage.leverages(noisy, factor_of(noisy, net, NOTHING))[:, 0]
    assert 5.0 < found.carried[0] < 40.0
    assert found.left_out[0] == pytest.approx(np.sqrt(np.mean((r / (1 - h)) ** 2)), rel=1e-8)


@pytest.mark.parametrize(("rows", "copies"), [(0, 1), (5, 1), (5, 3), (9, 1)], ids=["none", "d+1", "copies", "more"])
@pytest.mark.parametrize("weighted", [False, True])
def test_random_targets_show_the_saturated_rows_of_a_large_fit(rows, copies, weighted):
    """What the dense factorisation finds, without one: d+1 rows behind a kink, and copies of them, are alone."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(500, 4))
    net = network(4, 4, 1, rng)
    if rows:
        s, b = np.sort(X @ net.W[0]), net.b.copy()
        b[0] = -0.5 * (s[-rows] + s[-rows - 1])
        net = net.replace(b=b)
    behind = np.flatnonzero(X @ net.W[0] + net.b[0] > 0.0) if rows else np.arange(0)
    chosen = np.concatenate([np.arange(500), *[behind] * (copies - 1)])
    X, weight = X[chosen], rng.uniform(0.2, 5.0, 500)[chosen] if weighted else None
    white = whitening(X, weight)
    inside = white.redo(net)
    wide = np.column_stack([white.apply(X), np.ones(len(X))])
    data = MemoryRows(wide, net(X).reshape(len(X), -1), weight, NOTHING)
    found = sketched_confirmation(data, model_of(inside), chosen)
    dense_found = leverage.confirmation(data, model_of(inside), factor_of(data, inside, NOTHING), chosen)
    assert found is not None
    assert (found.confirmed, found.alone) == (dense_found.confirmed, dense_found.alone)
    assert found.units == ((0,) if rows == 5 else ())


def test_how_many_rows_carry_what_is_left():
    squares = np.zeros((100, 4))
    squares[:, 0], squares[7, 1], squares[:10, 2] = 3.0, 5.0, 1e-200
    np.testing.assert_allclose(leverage.carrying(squares), [100.0, 1.0, 10.0, 100.0])


def test_an_affine_fit_can_rest_on_a_row_alone():
    X = np.concatenate([np.zeros((30, 1)), [[1.0]]]) + 0.0
    wide = np.column_stack([X, np.ones(31)])
    net = rl.Network(np.zeros((0, 1)), np.zeros(0), np.zeros((1, 0)), v=np.ones((1, 1)), c=np.zeros(1))
    rows = MemoryRows(wide, X.copy())
    found = leverage.confirmation(rows, model_of(net), factor_of(rows, net, AFFINE))
    assert found.alone == (30,)
    assert found.units == ()


@pytest.mark.parametrize("decades", [2, 8, 12])
def test_the_condition_of_a_large_matrix_is_that_of_all_its_eigenvalues(decades: int) -> None:
    size = fisher._LANCZOS + 20
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    A = (Q * np.logspace(0, -decades, size)) @ Q.T
    A = 0.5 * (A + A.T)
    assert fisher._condition(A, cholesky(A, lower=True)) == pytest.approx(10.0**decades, rel=0.05)
