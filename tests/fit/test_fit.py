"""Variable projection: every formula against finite differences, dense linear algebra or scipy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.fit.fit_problems import FREE, SHAPE, problem

import relumine as rl
from relumine.data.whiten import whitening
from relumine.fit.fisher import parameter_count
from relumine.fit.inference import Fitted, infer, structure_score
from relumine.fit.levenberg import INTERRUPTED, Schedule, _finished, minimise, step
from relumine.fit.passes import Model
from relumine.fit.projection import Linearisation, Projection, project
from relumine.fit.prune import POLISH, prune
from relumine.fit.rows import MemoryRows, prepare
from relumine.fit.sign_free import shape_of
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
from relumine.run import Run


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


def test_a_minimisation_is_its_states() -> None:
    """Stepping by hand, or stopping and going on from any state, ends at the same bits."""
    rows, _, U = problem(7)
    schedule = Schedule(steps=25)
    whole = minimise(rows, SHAPE, U, schedule)
    fit = minimise(rows, SHAPE, U, Schedule(steps=0)).ended("")
    while not fit.reason:
        fit = step(rows, SHAPE, fit, schedule)
        fit = replace(fit, at=project(rows, SHAPE, fit.state.U, schedule.ridge))  # all that a checkpoint holds
    np.testing.assert_array_equal(fit.at.U, whole.at.U)
    assert fit.state.history == whole.history
    assert (fit.state.damping, fit.state.products, fit.reason) == (
        whole.state.damping,
        whole.state.products,
        whole.reason,
    )


def test_a_run_that_is_over_takes_no_step() -> None:
    rows, _, U = problem(7)
    run = Run.of(0)
    run.progress = lambda progress: run.stop.set() if progress.iteration == 3 else None
    stopped = minimise(rows, SHAPE, U, run=run, stage="a stage")
    assert stopped.reason == INTERRUPTED
    assert len(stopped.history) == 4
    assert minimise(rows, SHAPE, U, run=run).history == stopped.history[:1]
    late = Run.of(0, seconds=1e-9)
    assert minimise(rows, SHAPE, U, run=late).reason == INTERRUPTED
    assert minimise(rows, SHAPE, U, run=late.unhurried()).reason != INTERRUPTED


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


@pytest.mark.parametrize("solver", [Dense, ConjugateGradients])
def test_units_that_are_off_everywhere_have_nowhere_to_go(solver) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    rows, _ = prepare(X, np.abs(X[:, :1]))
    off = np.column_stack([1e-3 * rng.normal(size=(2, 4)), [-1.0, -1.0]])
    fit = minimise(rows, shape_of(rl.activations.get("squared_relu")), off, POLISH, solver=solver)
    assert fit.reason == "converged"
    assert not fit.at.A.any()


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


def test_damping_goes_down_with_success() -> None:
    """Otherwise each step would leave a good part of the way, and there would be no digits in a few of them."""
    net, white, rows, _ = planted_rows(0)
    inside = white.redo(net)
    U = np.column_stack([inside.W, inside.b]) + 1e-3 * np.random.default_rng(0).normal(size=(4, 7))
    fit = minimise(rows, SHAPE, U, Schedule(damping=1.0, ridge=0.0, tol=1e-20))
    assert fit.loss <= 1e-20
    assert len(fit.history) < 15


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        ((1.0, 5e-25, 2e-25), "rounding error"),  # a step that hardly helps at that level was the last
        ((5e-30,), "rounding error"),  # where it begins
        ((1.0, 1e-27), ""),
        ((1.0, 5e-25, 2e-26), ""),
        ((1.0, 5e-23, 2e-23), ""),
        ((2e-25,), ""),
    ],
)
def test_at_the_level_of_rounding_a_step_must_help_much(history: tuple[float, ...], reason: str) -> None:
    rows, _, U = problem(1)
    fit = minimise(rows, SHAPE, U, Schedule(steps=0))
    fit = replace(fit, state=replace(fit.state, history=history, reason=""))
    assert _finished(fit, Schedule(tol=0.0)) == reason


def test_units_whose_absence_is_noticed_after_all_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Gram matrix may be wrong about what can go together: what the rows then show decides."""
    net, white, rows, _ = planted_rows(0)
    inside = white.redo(net)
    U = np.repeat(np.column_stack([inside.W, inside.b]), 2, axis=0)  # every unit twice
    honest = Projection.cheapest

    def too_many(self: Projection, most: int, allowance: float) -> list[int]:
        first = honest(self, 1, allowance)
        return [*first, *(i for i in range(len(self.U)) if i not in first)][:most]

    monkeypatch.setattr(Projection, "cheapest", too_many)
    fit = minimise(rows, SHAPE, U, Schedule(steps=0))
    assert prune(rows, SHAPE, fit, 4).loss < 1e-8  # the ridge of the search leaves 1e-10


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
    """G⁻¹(Σ j jᵀσ²/(1 − h))G⁻¹ against the same from a brute-force Jacobian of the user's parameters."""
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
    nothing = Model(SHAPE, np.zeros((0, 4)), np.zeros((0, outputs)))
    fitted = Fitted(rows, inside, nothing, (R**2).sum(axis=0), free)
    result = infer(fitted, white, np.ones(outputs))
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
    JB = (basis.T @ J).T
    inverse = np.linalg.inv(JB.T @ JB)
    weights = np.tile(spread2, 600) / (1.0 - np.einsum("np,pq,nq->n", JB, inverse, JB))
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
