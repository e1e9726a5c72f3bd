"""Exact algebra of the fit: projection, linearisation, products, what is remembered, slopes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fit.fit_problems import FREE, PLAIN, SHAPE, problem

from relumine import activations
from relumine.data.whiten import whitening
from relumine.fit import precondition
from relumine.fit.conjugate import conjugate_gradients
from relumine.fit.expected import Expected
from relumine.fit.passes import hidden
from relumine.fit.precondition import across, block, inside, on_average
from relumine.fit.projection import Linearisation, Unknowns, project
from relumine.fit.rows import Block, MemoryRows, prepare
from relumine.fit.sign_free import Shape, shape_of
from relumine.fit.solvers import ConjugateGradients, Dense
from relumine.fit.starts import (
    random_directions,
)


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


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("way", [across, inside])
def test_several_changes_at_once_are_each_of_them(outputs: int, free: slice, way) -> None:
    """Products, preconditioners and solves; a solve of several stops when all of them together are there."""
    rows, _, U = problem(2, n=300, q=outputs, weighted=True, free=free)
    lin, rng = Linearisation(rows, project(rows, SHAPE, U), np.float64), np.random.default_rng(0)
    shapes = [(4, *part.shape) for part in (U, lin.at.A, lin.at.tau)]
    x = Unknowns(*(rng.normal(size=size) for size in shapes))
    stack = Unknowns(x.U, x.A, np.zeros(shapes[2]))
    stack.tau[:, free] = x.tau[:, free]
    damping = 0.1 * lin.scale
    apply = way(lin, damping)
    solved = conjugate_gradients(lin, stack, damping, 1e-9, 500, apply)
    assert solved.converged
    for j in range(4):
        one = Unknowns(stack.U[j], stack.A[j], stack.tau[j])
        alone = conjugate_gradients(lin, one, damping, 1e-9, 500, apply).x
        for part in ("U", "A", "tau"):
            got, there = getattr(lin.product(stack), part)[j], getattr(apply(stack), part)[j]
            np.testing.assert_allclose(got, getattr(lin.product(one), part), atol=1e-12)
            np.testing.assert_allclose(there, getattr(apply(one), part), atol=1e-10)
            np.testing.assert_allclose(getattr(solved.x, part)[j], getattr(alone, part), atol=1e-5)


def test_hidden_values_known_from_the_projection_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradient, block and products do not depend on what a projection remembers."""
    monkeypatch.setattr("relumine.fit.rows._CHUNK_NUMBERS", 1)
    rows, _, U = problem(6, n=1500, d=12, m=4, q=1)
    at = project(rows, SHAPE, U)
    assert at.rows.kept[0].Z is not None
    known, fresh = Linearisation(rows, at), Linearisation(rows, replace(at, rows=rows))
    assert known.known.kept
    assert not fresh.known.kept
    np.testing.assert_allclose(known.gradient, fresh.gradient, atol=1e-14)
    np.testing.assert_array_equal(known.light[0].kept[1].D, fresh.light[0].kept[1].D)
    Q = np.zeros((13, 5))
    (Q[:-1, :-1], R), Q[-1, -1] = np.linalg.qr(U[:, :-1].T), 1.0
    np.testing.assert_allclose(block(known, Q, np.linalg.inv(R.T)), block(fresh, Q), atol=1e-11)
    other = replace(rows, X=rows.X.copy())
    assert not other.knowing(at.rows).kept, "of other samples it says nothing"


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


@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_block_of_a_preconditioner_is_the_matrix_itself(weighted: bool, free: slice) -> None:
    """In coordinates of all of R^(d+1), and in those of a subspace that holds the weights."""
    rows, _, U = problem(3, weighted=weighted, free=free)
    at = project(rows, SHAPE, U)
    J = jacobian(rows, SHAPE, at)
    lin = Linearisation(rows, at)
    np.testing.assert_allclose(block(lin, np.eye(5)), J.T @ J / rows.total, atol=1e-11)
    Q = np.zeros((5, 4))
    Q[:-1, :-1], Q[-1, -1] = np.linalg.qr(U[:, :-1].T)[0], 1.0
    (m, s), q = (len(U), Q.shape[1]), rows.outputs
    rng = np.random.default_rng(0)
    dU, dtau = rng.normal(size=(m, s)), np.zeros((s, q))
    dtau[free] = rng.normal(size=(s, q))[free]
    there = Unknowns(dU @ Q.T, np.zeros((m, q)), Q @ dtau)  # features keep their affine part across Q: left out here
    H = Linearisation(rows, at, np.float64).product(there)
    got = block(lin, Q) @ np.concatenate([dU.ravel(), np.zeros(m * q), dtau[free].ravel()])
    np.testing.assert_allclose(got[: m * s], (H.U @ Q).ravel(), atol=1e-11)
    np.testing.assert_allclose(got[m * s + m * q :], (Q.T @ H.tau)[free].ravel(), atol=1e-11)


@pytest.mark.parametrize("free", FREE)
def test_knowing_the_span_saves_products(free: slice) -> None:
    """White Gaussian inputs in 60 dimensions, 4 units: across their span the Gauss–Newton matrix is nearly K ⊗ I."""
    rows, _, U = problem(6, n=4000, d=60, m=4, q=1, free=free)
    lin = Linearisation(rows, project(rows, SHAPE, U), np.float64)
    damping = 1e-2 * lin.scale
    b = Unknowns(lin.gradient, np.zeros((4, 1)), np.zeros((61, 1)))
    ways = [conjugate_gradients(lin, b, damping, 1e-7, 500, way(lin, damping)) for way in (across, inside)]
    assert all(way.converged for way in ways)
    np.testing.assert_allclose(ways[1].x.U, ways[0].x.U, atol=1e-3 * np.abs(ways[0].x.U).max())
    assert ways[1].products < ways[0].products


@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("shape", [SHAPE, PLAIN, shape_of(activations.get("leaky_relu(0.1)"), sign_free=False)])
def test_the_expected_matrix_is_the_mean_of_many_rows(shape: Shape, free: slice) -> None:
    """Two units alike but for their sign, one whose kink passes through the middle, one with its kink far out."""
    rows, _, U = problem(7, n=200_000, d=3, m=5, q=1, free=free)
    U[1], U[2, -1], U[3, -1] = -U[0], 0.0, 1.5
    at = project(rows, shape, U, 1e-6)
    at.A[:] = np.random.default_rng(1).normal(size=at.A.shape)
    lin = Linearisation(rows, at, np.float64)
    assert Expected.knows(rows, at)
    x = Unknowns(*(np.random.default_rng(2).normal(size=(2, *part.shape)) for part in (U, at.A, at.tau)))
    x = Unknowns(x.U, x.A, np.where(np.isin(np.arange(4), np.arange(4)[free])[:, None], x.tau, 0.0))
    there, mean = lin.product(x), Expected(lin).product(x)
    for part in ("U", "A", "tau"):
        np.testing.assert_allclose(getattr(mean, part), getattr(there, part), atol=0.015 * np.abs(there.U).max())


@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("apart", [1.0, 1e-4, 1e-9])
def test_the_expected_matrix_saves_products(free: slice, apart: float) -> None:
    """As many units as inputs, four rows per parameter; two of them almost or quite equal, as students have them."""
    rows, _, U = problem(6, n=3600, d=30, m=30, q=1, free=free)
    U[1] = U[0] + apart * U[5]
    lin = Linearisation(rows, project(rows, SHAPE, U, 1e-10))
    damping = 1e-6 * (lin.scale + 1e-2 * lin.scale.mean())
    b = Unknowns(lin.gradient, np.zeros((30, 1)), np.zeros((31, 1)))
    ways = [conjugate_gradients(lin, b, damping, 1e-3, 100, way(lin, damping)) for way in (across, on_average)]
    assert ways[1].converged
    assert ways[1].products <= 0.75 * ways[0].products
    assert b.dot(ways[1].x) == pytest.approx(b.dot(ways[0].x), rel=1e-2)


def test_the_expected_matrix_holds_for_gaussian_inputs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heavy tails and weights along a few inputs: there it would take far more products, and is not used."""
    monkeypatch.setattr("relumine.fit.precondition._PASS", 0.0)
    chosen: list[str] = []
    for way in (on_average, across):
        monkeypatch.setattr(precondition, way.__name__, lambda *_, name=way.__name__: chosen.append(name))
    rng = np.random.default_rng(0)
    for draw in (rng.normal, lambda size: np.exp(rng.normal(size=size))):
        X = draw(size=(5000, 20))
        rows, _ = prepare(whitening(X).apply(X), rng.normal(size=(5000, 1)))
        U = np.eye(20, 21) + 1e-3 * rng.normal(size=(20, 21)) + 0.1 * np.eye(20, 21)[::-1]
        lin = Linearisation(rows, project(rows, SHAPE, U))
        precondition.precondition(lin, lin.scale)
    assert chosen == ["on_average", "across"]


def test_the_expected_matrix_is_known_for_one_output_and_kinked_lines() -> None:
    for name, outputs in (("relu", 2), ("tanh", 1), ("squared_relu", 1)):
        rows, _, U = problem(0, q=outputs)
        assert not Expected.knows(rows, project(rows, shape_of(activations.get(name)), U))


@pytest.mark.parametrize("free", FREE)
def test_a_unit_whose_kink_no_row_passes_does_not_stop_the_preconditioner(free: slice) -> None:
    """It is affine on the rows: without its affine part nothing is left of it but rounding error."""
    rows, _, U = problem(6, n=2000, d=60, m=4, q=1, free=free)
    for seed in range(5):
        U[2] = 0.1 * np.random.default_rng(seed).normal(size=61)
        U[2, -1] = 30.0
        lin = Linearisation(rows, project(rows, SHAPE, U))
        for damping in (1e-2 * lin.scale, np.zeros(4)):
            x = inside(lin, damping)(Unknowns(lin.gradient, np.zeros((4, 1)), np.zeros((61, 1))))
            assert np.isfinite(x.U).all()


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


def test_inputs_in_single_precision_are_made_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _, U = problem(5, m=4)
    at = project(rows, SHAPE, U)
    first, second = (Linearisation(rows, at).light[0].kept[0].X for _ in range(2))
    assert first is not None
    assert np.shares_memory(first, second)
    assert first.dtype == np.float32
    other = rows.centred(np.ones(1)).over(np.array([2.0]))
    assert np.shares_memory(first, other.remember(partial(hidden, U=U), 4, np.float32, 1).kept[0].X)
    assert Linearisation(rows, at, np.float64).light[0].kept[0].X is None
    monkeypatch.setattr("relumine.fit.rows._SINGLE", rows.X.size - 1)
    assert Linearisation(replace(rows, X=rows.X.copy()), at).light[0].kept[0].X is None


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, _, _ = problem(5)
    U = random_directions(np.random.default_rng(0), 11, 5)

    def remembers(shape: Shape, m: int) -> bool:
        kept = Linearisation(rows, project(rows, shape, U[:m])).light[0].kept
        return any(values is not None for block in kept for values in block[:3])

    assert remembers(SHAPE, 11), "little enough"
    monkeypatch.setattr("relumine.fit.rows._KEPT_ALWAYS", 100)
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
        alone = Linearisation(replace(rows, crew=one), project(rows, SHAPE, U)).gradient
    with cores(3) as three:
        shared = replace(rows, crew=three)
        together = Linearisation(shared, project(shared, SHAPE, U)).gradient
        elsewhere = pickle.loads(pickle.dumps(three))  # noqa: S301
    assert (one.workers, three.workers, elsewhere.workers) == (1, 3, 1)
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-14)
