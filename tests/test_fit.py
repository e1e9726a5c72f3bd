"""Variable projection: every formula against finite differences, dense linear algebra or scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relumine as rl
from relumine import activations
from relumine.data.whiten import whitening
from relumine.fit.inference import infer, parameter_count, structure_score
from relumine.fit.levenberg import Schedule, minimise
from relumine.fit.passes import Model
from relumine.fit.projection import Linearisation, Unknowns, project
from relumine.fit.prune import POLISH, prune
from relumine.fit.rows import AFFINE, CONSTANT, NOTHING, Block, MemoryRows, prepare
from relumine.fit.sign_free import Shape, shape_of
from relumine.fit.solvers import ConjugateGradients, Dense
from relumine.fit.starts import (
    looks_gaussian,
    moment_directions,
    random_directions,
    second_moment_span,
    span_directions,
    third_moment_directions,
)
from relumine.network import Network

SHAPE = shape_of(activations.RELU)
PLAIN = shape_of(activations.RELU, sign_free=False)
FREE = (NOTHING, CONSTANT, AFFINE)


def problem(
    seed: int, n: int = 120, d: int = 4, m: int = 3, q: int = 2, *, weighted: bool = False, free: slice = AFFINE
):
    """Rows of a random least squares problem with no exact answer, and directions to try."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    weight = rng.uniform(0.2, 2.0, size=n) if weighted else None
    white = whitening(X, weight)
    rows, tau = prepare(white.apply(X), rng.normal(size=(n, q)), weight, free=free)
    return rows, tau, random_directions(rng, m, d + 1)


def design(rows: MemoryRows, shape, U: np.ndarray) -> np.ndarray:
    F = shape.value(rows.X @ U.T)
    return np.hstack([F, rows.X[:, rows.free]])


@pytest.mark.parametrize("shape", [SHAPE, PLAIN])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("free", FREE)
def test_projection_is_least_squares(shape, weighted: bool, free: slice) -> None:
    rows, _, U = problem(0, weighted=weighted, free=free)
    at = project(rows, shape, U)
    B = design(rows, shape, U)
    root = np.ones((rows.n, 1)) if rows.weight is None else np.sqrt(rows.weight)[:, None]
    solution, *_ = np.linalg.lstsq(root * B, root * rows.Y, rcond=None)
    np.testing.assert_allclose(at.A, solution[:3], atol=1e-11)
    np.testing.assert_allclose(at.tau[free], solution[3:], atol=1e-11)
    assert np.count_nonzero(at.tau) == solution[3:].size
    R = rows.Y - B @ solution
    np.testing.assert_allclose(at.model.residual(Block(rows.X, rows.Y)).T, R, atol=1e-11)
    np.testing.assert_allclose(at.squares, (root**2 * R**2).sum(axis=0), rtol=1e-12)
    assert at.loss == pytest.approx(float(at.squares.sum()), rel=1e-12)


def test_drop_costs_are_the_loss_of_leaving_out() -> None:
    rows, _, U = problem(1, m=4)
    at = project(rows, SHAPE, U)
    for i, cost in enumerate(at.drop_costs()):
        without = project(rows, SHAPE, np.delete(U, i, axis=0))
        assert (without.loss - at.loss) / rows.total == pytest.approx(cost, rel=1e-8)


def test_cheapest_units_are_those_found_one_by_one() -> None:
    rows, _, U = problem(1, m=4)
    U = np.vstack([U, U[:1], random_directions(np.random.default_rng(3), 3, U.shape[1])])  # one twice
    at = project(rows, SHAPE, U, 1e-10)
    left, one_by_one = np.arange(len(U)), []
    for _ in range(5):
        least = int(np.argmin(project(rows, SHAPE, U[left], 1e-10).drop_costs()))
        one_by_one.append(int(left[least]))
        left = np.delete(left, least)
    found = at.cheapest(5, np.inf)
    twin = {4: 0}  # of two equal ones either may go
    assert [twin.get(i, i) for i in found] == [twin.get(i, i) for i in one_by_one]
    assert len(at.cheapest(5, 0.0)) == 1
    growth = (project(rows, SHAPE, np.delete(U, found[:3], axis=0), 1e-10).loss - at.loss) / rows.total
    assert len(at.cheapest(5, 1.001 * growth)) == 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("free", FREE)
def test_gradient_by_finite_differences(weighted: bool, free: slice) -> None:
    rows, _, U = problem(2, weighted=weighted, free=free)
    gradient = Linearisation(rows, project(rows, SHAPE, U)).gradient
    h = 1e-7
    for index in np.ndindex(*U.shape):
        step = np.zeros_like(U)
        step[index] = h
        slope = (project(rows, SHAPE, U + step).loss - project(rows, SHAPE, U - step).loss) / (2 * h)
        assert -0.5 * slope / rows.total == pytest.approx(gradient[index], abs=2e-6)


def jacobian(rows: MemoryRows, shape, at) -> np.ndarray:
    """Columns of the joint linearisation, outputs stacked, weights applied."""
    Z = rows.X @ at.U.T
    slope, F = shape.derivative(Z), shape.value(Z) - rows.X[:, rows.free] @ at.C[:, rows.free].T
    m, D, q = *at.U.shape, at.A.shape[1]
    root = np.ones(rows.n) if rows.weight is None else np.sqrt(rows.weight)
    blocks = []
    for o in range(q):
        dU = (slope * at.A[:, o])[:, :, None] * rows.X[:, None, :]
        dA = np.einsum("nm,p->nmp", F, np.eye(q)[o])
        dtau = np.einsum("nd,p->ndp", rows.X[:, rows.free], np.eye(q)[o])
        parts = [dU.reshape(-1, m * D), dA.reshape(-1, m * q), dtau.reshape(rows.n, -1)]
        blocks.append(root[:, None] * np.hstack(parts))
    return np.concatenate(blocks)


def flat(x: Unknowns, free: slice) -> np.ndarray:
    return np.concatenate([x.U.ravel(), x.A.ravel(), x.tau[free].ravel()])


@given(
    seed=st.integers(0, 10**6),
    weighted=st.booleans(),
    free=st.sampled_from(FREE),
    outputs=st.sampled_from([1, 2]),
    name=st.sampled_from(["relu", "squared_relu", "tanh"]),
    m=st.sampled_from([3, 7]),
    chunk=st.sampled_from([1, 7, 50, 10**6]),
)
@settings(max_examples=60, deadline=None)
def test_product_is_the_gauss_newton_product_for_any_chunking(
    seed: int, weighted: bool, free: slice, outputs: int, name: str, m: int, chunk: int
) -> None:
    """Also with one output, where homogeneous units take a shorter way, and with remembered hidden values (m ≤ d+1)."""
    rows, _, U = problem(seed, n=60, m=m, q=outputs, weighted=weighted, free=free)
    shape, rng = shape_of(activations.get(name)), np.random.default_rng(seed)
    x = Unknowns(rng.normal(size=U.shape), rng.normal(size=(m, outputs)), np.zeros((5, outputs)))
    x.tau[free] = rng.normal(size=x.tau[free].shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("relumine.fit.rows._CHUNK_NUMBERS", chunk)
        patch.setattr("relumine.fit.rows._CHUNK_ROWS", 1)
        at = project(rows, shape, U)
        y, single = Linearisation(rows, at, np.float64).product(x), Linearisation(rows, at).product(x)
    J = jacobian(rows, shape, at)
    expected = J.T @ (J @ flat(x, free)) / rows.total
    np.testing.assert_allclose(flat(y, free), expected, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(flat(single, free), expected, atol=1e-5 * np.abs(expected).max())
    assert single.U.dtype == np.float64
    y.tau[free] = 0.0
    assert not y.tau.any(), "what is not free does not move"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("free", FREE)
def test_normal_matrix_is_the_schur_complement(weighted: bool, free: slice) -> None:
    rows, _, U = problem(3, weighted=weighted, free=free)
    at = project(rows, SHAPE, U)
    J = jacobian(rows, SHAPE, at)
    k = U.size
    Q = np.linalg.qr(J[:, k:])[0]
    reduced = J[:, :k] - Q @ (Q.T @ J[:, :k])
    np.testing.assert_allclose(Linearisation(rows, at).normal_matrix(), reduced.T @ reduced / rows.total, atol=1e-10)


@pytest.mark.parametrize("free", FREE)
def test_the_two_solvers_take_the_same_step(free: slice) -> None:
    rows, _, U = problem(4, n=400, free=free)
    lin = Linearisation(rows, project(rows, SHAPE, U), np.float64)
    damping = 0.1 * lin.scale
    dense, iterative = Dense(lin)(damping), ConjugateGradients(lin, tolerance=1e-10, cap=500)(damping)
    assert dense is not None
    assert iterative is not None
    np.testing.assert_allclose(iterative.step, dense.step, atol=1e-7)
    assert iterative.predicted == pytest.approx(dense.predicted, rel=1e-6)


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu", "polynomial(0,0,0,1)"])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_remembering_changes_nothing(name: str, outputs: int, precision: type) -> None:
    """Twice: what is remembered is not written to."""
    rows, _, U = problem(5, m=4, q=outputs)
    at = project(rows, shape_of(activations.get(name)), U)
    kept, fresh = Linearisation(rows, at, precision), Linearisation(rows, at, precision)
    assert kept.light[0].kept
    fresh.light = rows, kept.light[1]
    rng = np.random.default_rng(0)
    x = Unknowns(rng.normal(size=U.shape), rng.normal(size=at.A.shape), rng.normal(size=at.tau.shape))
    for _ in range(2):
        for part in ("U", "A", "tau"):
            np.testing.assert_allclose(getattr(fresh.product(x), part), getattr(kept.product(x), part), atol=1e-12)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _, _ = problem(5)
    U = random_directions(np.random.default_rng(0), 11, 5)

    def remembers(shape: Shape, m: int) -> bool:
        return bool(Linearisation(rows, project(rows, shape, U[:m])).light[0].kept)

    assert remembers(SHAPE, 10)
    assert not remembers(SHAPE, 11), "more than the data, in single precision"
    tanh = shape_of(activations.get("tanh"))
    assert remembers(tanh, 11)
    monkeypatch.setattr("relumine.fit.rows._KEPT", 100)
    assert not remembers(tanh, 11)


@pytest.mark.parametrize("name", ["relu", "leaky_relu(0.1)", "leaky_relu(2)", "leaky_relu(-1)", "squared_relu", "tanh"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_slopes_are_those_of_the_values(name: str, dtype: type) -> None:
    """Also where e(z) = κ|z| with a negative κ, in place, and in the precision of z."""
    shape, z = shape_of(activations.get(name)), np.array([-2.0, -0.5, 0.25, 3.0])
    expected = (shape.value(z + 1e-6) - shape.value(z - 1e-6)) / 2e-6
    Z = z.astype(dtype)
    found = shape.derivative(Z, np.empty_like(Z))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert found.dtype == shape.value(Z).dtype == dtype


def test_several_workers_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    from relumine.fit.parallel import cores

    monkeypatch.setattr("relumine.fit.rows._CHUNK_NUMBERS", 64)
    monkeypatch.setattr("relumine.fit.rows._CHUNK_ROWS", 1)
    rows, _, U = problem(9, n=1000)
    with cores(1) as one:
        alone = Linearisation(rows, project(rows, SHAPE, U)).gradient
    with cores(3) as three:
        together = Linearisation(rows, project(rows, SHAPE, U)).gradient
    assert (one, three) == (1, 3)
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-14)


def test_the_loss_never_rises_and_loops_are_capped() -> None:
    rows, _, U = problem(6, m=5)
    fit = minimise(rows, SHAPE, U, Schedule(steps=30))
    assert all(after <= before for before, after in zip(fit.history, fit.history[1:]))
    assert len(fit.history) <= 31
    assert minimise(rows, SHAPE, U, Schedule(steps=0)).reason == "step limit"


def test_a_plateau_is_not_the_end() -> None:
    """A fit that gains 1 % in 40 steps goes on; one that gains nothing stops."""
    rows, _, U = problem(7)
    patient = minimise(rows, SHAPE, U, Schedule(plateau=40))
    hasty = minimise(rows, SHAPE, U, Schedule(plateau=2, gain=0.9))
    assert len(hasty.history) < len(patient.history)


def test_non_finite_steps_are_refused() -> None:
    rows, _, U = problem(8)

    class Broken:
        def __init__(self, lin: Linearisation) -> None:
            self.shape = lin.at.U.shape

        def __call__(self, damping: np.ndarray):
            from relumine.fit.solvers import Solution

            return Solution(np.full(self.shape, np.nan), 1.0, 1)

    fit = minimise(rows, SHAPE, U, solver=Broken)
    assert fit.reason == "no further decrease"
    assert np.isfinite(fit.at.U).all()


def planted_rows(seed: int, d: int = 6, m: int = 4, ratio: int = 12):
    net = rl.planted.network(d, m, rng=seed)
    X, y = rl.planted.sample(net, ratio * m * (d + 1), rng=seed + 1)
    white = whitening(X)
    rows, tau = prepare(white.apply(X), y[:, None])
    return net, white, rows, tau


def test_over_parameterised_start_collapses_and_prunes_to_the_truth() -> None:
    net, white, rows, tau = planted_rows(0)
    U = random_directions(np.random.default_rng(0), 6, 7)
    student = minimise(rows, SHAPE, U, Schedule(tol=1e-8))
    assert student.loss < 1e-8
    small = minimise(rows, SHAPE, prune(rows, SHAPE, student, 4).at.U, POLISH)
    found = white.undo(SHAPE.network(small.at.U, small.at.A, tau + small.at.tau))
    found = Network(found.W, found.b, found.a[0], "relu", found.v[0], found.c[0])
    assert rl.metrics.parameter_error(net, found) < 1e-10


def test_sign_free_form_is_the_network() -> None:
    rng = np.random.default_rng(0)
    U, A, tau = rng.normal(size=(3, 5)), rng.normal(size=(3, 2)), rng.normal(size=(5, 2))
    X = rng.normal(size=(20, 4))
    wide = np.column_stack([X, np.ones(20)])
    expected = SHAPE.value(wide @ U.T) @ A + wide @ tau
    np.testing.assert_allclose(SHAPE.network(U, A, tau)(X), expected, atol=1e-12)
    np.testing.assert_allclose(SHAPE.value(wide @ -U.T), SHAPE.value(wide @ U.T))


def test_second_moment_shows_the_span() -> None:
    net = rl.planted.network(12, 3, rng=0)
    X, y = rl.planted.sample(net, 20_000, rng=1)
    rows, _ = prepare(whitening(X).apply(X), y[:, None])
    span = second_moment_span(rows, 3)
    np.testing.assert_allclose(np.linalg.norm(net.W @ span.T, axis=1), 1.0, atol=0.03)
    start = span_directions(np.random.default_rng(0), 7, span)
    np.testing.assert_allclose(np.linalg.norm(start[:, :-1] @ span.T, axis=1), np.linalg.norm(start[:, :-1], axis=1))


@pytest.mark.parametrize("outputs", [1, 2])
def test_higher_moments_show_orthonormal_weights(outputs: int) -> None:
    """f̂₂ ∝ I says nothing about them; T₄ does."""
    net = rl.planted.network(5, 5, rng=0, family="orthonormal", outputs=outputs)
    X, y = rl.planted.sample(net, 40_000, rng=1)
    rows, _ = prepare(whitening(X).apply(X), y)
    start = moment_directions(np.random.default_rng(0), 8, rows, 5)
    W = start[:, :-1] / np.linalg.norm(start[:, :-1], axis=1, keepdims=True)
    assert start.shape == (8, 6)
    assert np.abs(net.W @ W.T).max(axis=1).min() > 0.95


def test_gaussian_inputs_are_told_from_others() -> None:
    rng = np.random.default_rng(0)
    assert looks_gaussian(rng.normal(size=(2000, 5)))[0]
    assert not looks_gaussian(rng.uniform(-(3**0.5), 3**0.5, size=(2000, 5)))[0]
    assert not looks_gaussian(rng.standard_t(4, size=(2000, 5)) / 2**0.5)[0]


def test_structure_score_tells_noise_from_a_missing_unit() -> None:
    _, _, rows, _ = planted_rows(3, ratio=40)
    at = project(rows, SHAPE, random_directions(np.random.default_rng(0), 1, 7))
    noise = np.random.default_rng(1).normal(size=rows.Y.shape)
    noise -= rows.X @ (rows.X.T @ noise) / rows.n
    nothing = Model(SHAPE, at.U, np.zeros((1, 1)))
    assert structure_score(MemoryRows(rows.X, noise), SHAPE, nothing) < 4.5
    assert structure_score(rows, SHAPE, at.model) > 8.0


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("free", FREE)
def test_standard_errors_by_simulation(outputs: int, free: slice) -> None:
    """σ²(JᵀJ)⁻¹ against the covariance from a brute-force Jacobian of the user's parameters."""
    rng = np.random.default_rng(0)
    net = rl.planted.network(3, 2, rng=1, outputs=outputs)
    rest = np.zeros((outputs, 4))
    rest[:, free] = rng.normal(size=rest[:, free].shape)
    net = net.replace(v=rest[:, :-1], c=rest[:, -1])
    X = rng.normal(size=(600, 3)) @ np.diag([1.0, 3.0, 0.5]) + [1.0, 0.0, -2.0]
    white, sigma = whitening(X), 0.3
    rows, _ = prepare(white.apply(X), np.zeros((600, outputs)))
    R = sigma * rng.normal(size=(600, outputs))
    inside = white.redo(net)
    result = infer(rows, (R**2).sum(axis=0), inside, white, np.ones(outputs), free)
    assert result.errors is not None

    def parameters(flat: np.ndarray) -> Network:
        W, b, a = flat[:6].reshape(2, 3), flat[6:8], flat[8 : 8 + 2 * outputs].reshape(outputs, 2)
        affine = np.zeros((outputs, 4))
        affine[:, free] = flat[8 + 2 * outputs :].reshape(outputs, -1)
        return Network(W, b, a, v=affine[:, :-1], c=affine[:, -1])

    base = np.concatenate([net.W.ravel(), net.b, net.a.ravel(), rest[:, free].ravel()])
    h = 1e-6
    J = np.stack(
        [(parameters(base + h * e)(X) - parameters(base - h * e)(X)).ravel() / (2 * h) for e in np.eye(base.size)]
    )
    # keep |w| = 1: remove radial changes of each w
    keep = np.eye(base.size)
    for i in range(2):
        keep[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] -= np.outer(net.W[i], net.W[i])
    U, s, _ = np.linalg.svd(keep)
    basis = U[:, s > 0.5]
    spread2 = (R**2).sum(axis=0) / (600 - parameter_count(net, free) / outputs)
    weights = np.tile(spread2, 600)
    JB = (basis.T @ J).T
    inverse = np.linalg.inv(JB.T @ JB)
    covariance = basis @ inverse @ (JB.T * weights) @ JB @ inverse @ basis.T
    expected = np.sqrt(np.diag(covariance))
    affine = np.column_stack([result.errors.v, result.errors.c])
    mine = [result.errors.W.ravel(), result.errors.b, result.errors.a.ravel(), affine[:, free].ravel()]
    np.testing.assert_allclose(np.concatenate(mine), expected, rtol=2e-3)
    assert np.count_nonzero(affine) == affine[:, free].size


def test_the_third_moment_shows_odd_units() -> None:
    truth = rl.planted.network(12, 12, rng=0, family="orthonormal", activation="tanh")
    X, y = rl.planted.sample(truth, 6000, rng=1)
    white = whitening(X)
    rows, _ = prepare(white.apply(X), y[:, None])
    U = third_moment_directions(np.random.default_rng(2), 18, rows)
    W = white.redo(truth).W
    cosines = np.abs(W @ U[:, :-1].T) / np.linalg.norm(W, axis=1, keepdims=True) / np.linalg.norm(U[:, :-1], axis=1)
    assert (cosines.max(axis=1) > 0.8).all()
    assert U.shape == (18, 13)
    # one step is T(·, v, v) of the Hermite tensor, normalised
    V = random_directions(np.random.default_rng(2), 72, 12)
    Z, P = rows.X[:, :-1], rows.X[:, :-1] @ V.T
    T = ((P**2 * rows.Y).T @ Z - (Z.T @ rows.Y).T - 2.0 * (P.T @ rows.Y) * V) / rows.n
    T /= np.linalg.norm(T, axis=1, keepdims=True)
    once = third_moment_directions(np.random.default_rng(2), 18, rows, steps=1)
    once /= np.linalg.norm(once, axis=1, keepdims=True)
    assert (np.abs(once[:5, :-1] @ T.T).max(axis=1) > 1.0 - 1e-9).all()
