"""The search: its rounds one by one on exact input, what it counts, why it ends, and how few samples it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.catalogue.base import generic

import relumine as rl
from relumine.activations import RELU, get
from relumine.data.sources import as_samples
from relumine.fit.levenberg import Fit, State, minimise
from relumine.fit.projection import Linearisation, project
from relumine.fit.prune import POLISH, SEARCH
from relumine.fit.rows import MemoryRows, prepare
from relumine.fit.sign_free import shape_of
from relumine.fit.starts import (
    few_inside,
    inside,
    lifted,
    random_directions,
    rest_span,
    second_moment_span,
    with_slopes,
)
from relumine.recovery import rounds, search, spare, widths
from relumine.recovery.task import MemoryTask, make_task
from relumine.results import Status
from relumine.run import Run

EXACT = 1e-8


def task_of(d: int, m: int, ratio: float, seed: int, noise: float = 0.0) -> tuple[rl.Network, MemoryTask]:
    truth, X, y = generic(d, m, ratio)(seed)
    y = y + noise * np.random.default_rng(seed).normal(size=y.shape)
    task = make_task(as_samples(X, y), RELU, np.random.default_rng(seed))
    return task.white.redo(truth), task


def directions(net: rl.Network) -> np.ndarray:
    return np.column_stack([net.W, net.b])


# -- parts ------------------------------------------------------------------------------------------------------------


def test_a_unit_inside_a_span_is_the_lifted_unit() -> None:
    """u·(Vz, 1) = (Vᵀw, b)·(z, 1), and rows inside an orthonormal span are white as well."""
    _, task = task_of(8, 3, 20, 0)
    V = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 3)))[0].T
    U, small = random_directions(np.random.default_rng(2), 5, 4), inside(task.rows, V)
    np.testing.assert_allclose(small.X @ U.T, task.rows.X @ lifted(U, V).T, atol=1e-13)
    np.testing.assert_allclose(small.X.T @ small.X / small.n, np.eye(4), atol=1e-12)
    assert small.Y is task.rows.Y
    assert small.weight is task.rows.weight


def test_few_rows_inside_a_span_are_white_and_their_units_are_lifted() -> None:
    _, task = task_of(8, 3, 20, 0)
    V = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 3)))[0].T
    few, back, _ = few_inside(task.rows, V, 100)
    U = random_directions(np.random.default_rng(2), 5, 4)
    np.testing.assert_allclose(few.X @ U.T, task.rows.X[:100] @ (U @ back).T, atol=1e-12)
    np.testing.assert_allclose(few.X.T @ few.X / few.n, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(few.X.T @ few.Y, 0.0, atol=1e-12)
    everything, back, _ = few_inside(task.rows, V, 10**6)
    np.testing.assert_allclose(everything.X @ U.T, task.rows.X @ (U @ back).T, atol=1e-12)


@pytest.mark.parametrize("most", [100, 10**6])
def test_an_affine_part_inside_a_span_is_known_of_a_few_rows(most: int) -> None:
    """Y of the few and their affine part are Y and the affine part of all, for an affine part of the span alone."""
    _, task = task_of(8, 3, 20, 0)
    V = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 3)))[0].T
    tau = np.vstack([V.T @ [[1.0], [2.0], [3.0]], [[4.0]]])
    few = few_inside(task.rows, V, most)
    n = few.rows.n
    whole = task.rows.Y[:n] + task.rows.X[:n] @ tau
    np.testing.assert_allclose(few.rows.Y + few.rows.X @ few.affine(tau), whole, atol=1e-12)
    plain = few_inside(task.plain.centred(task.tau[-1]), V, most)
    np.testing.assert_allclose(plain.rows.X, few.rows.X, atol=1e-14)
    np.testing.assert_allclose(plain.tau[:-1], 0.0)  # a bias alone is free there


@pytest.mark.parametrize("seed", range(12))
def test_a_column_that_the_few_rows_do_not_show_asks_for_all(seed: int) -> None:
    """An indicator of three rows behind them: among the first its direction is that of the others, to rounding."""
    X = np.random.default_rng(seed).normal(size=(400, 4))
    X = np.column_stack([X, np.arange(400) >= 397])
    task = make_task(as_samples(X, np.abs(X[:, 0])), RELU, np.random.default_rng(0))
    few = few_inside(task.rows, np.eye(5), 200)
    assert few.rows.n == task.rows.n
    np.testing.assert_array_equal(few.back, np.eye(6))
    assert few_inside(task.rows, np.eye(5)[:2], 200).rows.n == 200


def test_the_rest_shows_a_unit_too_weak_for_the_second_moment_of_y() -> None:
    """Two units, one of a fiftieth of the other's weight: seen once the other is fitted, and across it."""
    rng = np.random.default_rng(0)
    Z, W = rng.normal(size=(8000, 40)), np.linalg.qr(rng.normal(size=(40, 2)))[0].T
    rows, _ = prepare(Z, np.abs(Z @ W.T) @ np.array([[1.0], [0.02]]))
    assert np.linalg.norm(second_moment_span(rows, 2) @ W[1]) < 0.7
    model = project(rows, shape_of(RELU), np.column_stack([W[:1], [0.0]])).model
    rest = rest_span(rows, model, 1)
    assert abs(rest @ W[1])[0] > 0.9
    assert abs(rest @ W[0])[0] < 1e-12


def test_many_units_of_very_different_weight_are_found_through_their_span(monkeypatch: pytest.MonkeyPatch) -> None:
    """(80,18), output weights from 0.01 to 1: the second moment of y shows half of them; the first start ends."""
    truth = rl.planted.network(80, 18, rng=3)
    truth = truth.replace(a=np.sign(truth.a) * np.geomspace(0.01, 1.0, 18))
    X, y = rl.planted.sample(truth, 6 * 18 * 81, rng=4)
    turns: list[int] = []
    shown = rounds.rest_span
    monkeypatch.setattr(rounds, "rest_span", lambda *args: turns.append(1) or shown(*args))
    found = rl.recover(X, y, width=18, rng=5)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) <= EXACT
    assert found.search.starts == 1
    assert turns


def test_fewer_units_are_tried_only_where_the_rows_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """|z| is (|z + tv·x̃| + |z − tv·x̃|)/2 at the rows, if none lies between the two kinks: then a unit can go."""
    truth, task = task_of(10, 5, 5, 0)
    rows, U, rng = task.rows, directions(truth), np.random.default_rng(1)
    looks: list[int] = []
    prune = spare.prune
    monkeypatch.setattr(spare, "prune", lambda *args: looks.append(args[3]) or prune(*args))

    def left(U: np.ndarray) -> int:
        fit = minimise(rows, task.shape, U, POLISH)
        found = spare.without_spare_units(task, fit, Run(rng))
        assert task.is_exact(fit.at.squares)
        assert task.is_exact(found.at.squares)
        return len(found.at.U)

    assert left(U) == 5
    assert not looks, "every pair of kinks has rows between"
    V = rng.normal(size=(200, 11))
    room = np.abs(rows.X @ U[0])[:, None] / np.abs(rows.X @ V.T)
    widest = int(np.argmax(room.min(axis=0) * np.linalg.norm(V, axis=1)))
    t = 0.9 * room[:, widest].min() * V[widest]
    assert left(np.vstack([U[0] + t, U[0] - t, U[1:]])) == 5
    assert looks[0] == 5


def test_a_path_that_passes_the_smallest_width_goes_back_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps of 2 from 8 units near a network of 5: 6 are exact and 4 are not; the sixth does nothing."""
    truth, task = task_of(10, 5, 8, 0)
    rng = np.random.default_rng(1)
    near = directions(truth) + 0.01 * rng.normal(size=(5, 11))
    fit = minimise(task.rows, task.shape, np.vstack([near, random_directions(rng, 3, 11)]), replace(SEARCH, steps=0))
    assert fit.loss > 10.0 * SEARCH.tol, "not collapsed, so units go several at a time"
    monkeypatch.setattr(widths, "_STRIDE", 3)
    looked = search.Search(task, 1, Run.of(0))
    found = widths._walk(looked, fit)
    assert found is not None
    assert task.is_exact(found.at.squares)
    assert len(found.at.U) == 5
    assert {4, 5, 6} <= set(looked.evidence)
    assert looked.best is found


@pytest.mark.parametrize("weighted", [False, True])
def test_the_span_without_the_matrix_is_that_of_the_matrix(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """y = (z·v_1)² − 2(z·v_2)²: two eigenvalues far from the others, of either sign."""
    rng = np.random.default_rng(0)
    Z, V = rng.normal(size=(6000, 150)), np.linalg.qr(rng.normal(size=(150, 2)))[0].T
    y = ((Z @ V.T) ** 2) @ [1.0, -2.0] + 1.0
    rows = MemoryRows(
        np.column_stack([Z, np.ones(6000)]), y[:, None], rng.uniform(0.5, 1.5, 6000) if weighted else None
    )
    by_krylov = second_moment_span(rows, 2)
    monkeypatch.setattr("relumine.fit.starts._KRYLOV", 10**9)
    dense = second_moment_span(rows, 2)
    cosines = np.linalg.svd(by_krylov @ dense.T, compute_uv=False)
    assert cosines.min() > 0.999
    assert np.linalg.svd(by_krylov @ V.T, compute_uv=False).min() > 0.9
    np.testing.assert_allclose(by_krylov @ by_krylov.T, np.eye(2), atol=1e-12)


def test_slopes_of_y_lie_in_the_span_of_the_weights() -> None:
    """E[y z] = Σ a_i c_1(b_i) w_i, known far better than the second moment; several outputs bring several of them."""
    truth, task = task_of(200, 2, 4, 0)
    weights = np.linalg.qr(truth.W.T)[0]
    span = second_moment_span(task.rows, 2)
    both = with_slopes(span, task.tau)
    np.testing.assert_allclose(both @ both.T, np.eye(3), atol=1e-12)
    before, after = (np.linalg.svd(V @ weights, compute_uv=False) for V in (span, both))
    assert after[0] > 0.95 > before[0]
    assert after[1] > before[1]
    assert with_slopes(span, np.random.default_rng(0).normal(size=(201, 5))).shape == (4, 200)


def test_few_units_among_many_inputs_are_found_without_affine_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """(150,2) at n/p = 4: the first start ends, and a fit with an affine part, a third more, is not made."""
    truth, X, y = generic(150, 2, 4)(2)

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(rounds, "refined", never)
    found = rl.recover(X, y, width=2, rng=0)
    assert found.search.starts == 1
    assert rl.metrics.parameter_error(truth, found.network) < EXACT


def test_an_affine_part_that_is_there_is_found_from_the_span() -> None:
    """Then the fit without it sticks, and the sign-free form goes on."""
    truth, X, y = generic(60, 2, 8)(0)
    slopes = np.random.default_rng(5).normal(size=60)
    found = rl.recover(X, y + X @ slopes + 3.0, width=2, rng=0)
    assert found.status is Status.EXACT
    fresh = np.random.default_rng(6).normal(size=(50, 60))
    np.testing.assert_allclose(found.network(fresh), truth(fresh) + fresh @ slopes + 3.0, atol=1e-8)


def test_the_gradient_has_nothing_along_a_unit_itself() -> None:
    """The loss does not change with the length of u_i, so that part of the gradient is rounding error."""
    truth, task = task_of(10, 5, 10, 0)
    at = project(task.rows, task.shape, directions(truth))
    gradient = Linearisation(task.rows, at).gradient
    along = np.einsum("ij,ij->i", gradient, at.U) / np.linalg.norm(at.U, axis=1)
    assert np.abs(along).max() <= 1e-12 * np.abs(gradient).max()


def test_a_cycle_keeps_the_units_that_matter_most() -> None:
    truth, task = task_of(6, 3, 10, 0)
    fit = minimise(task.rows, task.shape, directions(truth), POLISH)
    without = [project(task.rows, task.shape, np.delete(fit.at.U, i, axis=0)).loss for i in range(3)]
    U = rounds.renewed(fit, 2, 5, np.random.default_rng(0))
    assert U.shape == (5, 7)
    np.testing.assert_array_equal(U[:2], np.delete(fit.at.U, int(np.argmin(without)), axis=0))


def test_a_cycle_that_keeps_all_units_begins_where_they_are() -> None:
    truth, task = task_of(6, 3, 10, 0)
    fit = minimise(task.rows, task.shape, directions(truth), POLISH)
    U = rounds.renewed(fit, 3, 5, np.random.default_rng(0))
    assert U.shape == (5, 7)
    np.testing.assert_array_equal(U[:3], fit.at.U)
    assert project(task.rows, task.shape, U).loss <= fit.at.loss + 1e-20 * task.rows.norm2


# -- signs as soon as a fit comes close -------------------------------------------------------------------------------


def near(truth: rl.Network, task: MemoryTask, off: float):
    """A fit with affine part whose directions are off by so much."""
    U = directions(truth)
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    U = U + off * random_directions(np.random.default_rng(5), *U.shape)
    return minimise(task.rows, task.shape, U, replace(POLISH, steps=0))


def test_signs_make_a_near_fit_exact() -> None:
    """30 inputs, 2 units, 2.5 samples per parameter: the affine part is a third of all parameters."""
    truth, task = task_of(30, 2, 2.5, 0)
    fit = near(truth, task, 0.1)
    assert 1e-6 < fit.loss < rounds._NEAR
    better = rounds.signed(task, fit, Run.of(0), "")
    assert better is not None
    assert task.is_exact(better.at.squares)
    assert better.loss == better.history[-1]
    assert better.at.A.shape == (2, 1)


def test_signs_are_not_tried_where_they_cannot_help() -> None:
    run = Run.of(0)
    truth, task = task_of(5, 8, 10, 0)  # more units than a linear system has equations
    assert rounds.signed(task, near(truth, task, 1e-3), run, "") is None
    truth, task = task_of(30, 2, 2.5, 0)  # far from any network
    assert (
        rounds.signed(
            task, minimise(task.rows, task.shape, random_directions(run.rng, 2, 31), replace(POLISH, steps=0)), run, ""
        )
        is None
    )
    _, X, y = generic(10, 2, 10, activation="tanh")(0)  # σ(−z) = −σ(z): no affine part comes or goes
    odd = make_task(as_samples(X, y), get("tanh"), np.random.default_rng(0))
    assert (
        rounds.signed(
            odd, minimise(odd.rows, odd.shape, random_directions(run.rng, 2, 11), replace(POLISH, steps=40)), run, ""
        )
        is None
    )


def test_signs_never_make_a_fit_worse() -> None:
    """A target with an affine part of its own: no signs remove it."""
    truth, X, y = generic(12, 3, 8)(3)
    y = y + X @ np.linspace(1.0, 2.0, 12)
    task = make_task(as_samples(X, y), RELU, np.random.default_rng(3))
    fit = near(task.white.redo(truth), task, 0.05)
    better = rounds.signed(task, fit, Run.of(0), "")
    assert better is None or better.at.loss < fit.at.loss


# -- chains -----------------------------------------------------------------------------------------------------------


def searched(task: MemoryTask, width: int, starts: int, seed: int = 0) -> search.Search:
    looking = search.Search(task, starts, Run.of(seed))
    widths.best_fit(looking, width)
    return looking


def test_cycles_are_no_independent_witnesses() -> None:
    """One start, however often it goes on from its own network, is one witness."""
    _, task = task_of(6, 4, 30, 0, noise=0.3)
    looking = searched(task, 2, starts=1)  # too few units, so that it does go on
    assert looking.cycles > 0
    assert looking.used == 1
    assert looking.agreeing == 1


def test_a_cycle_from_a_network_below_the_tolerance_takes_steps() -> None:
    truth, task = task_of(6, 3, 20, 0)
    fit = near(truth, task, 0.005)
    assert 1e-6 < fit.loss < rounds.STUDENT.tol
    student = search.Search(task, 1, Run.of(0)).student(5, 3, fit)
    assert len(student.history) > 1
    assert student.loss < 0.1 * fit.loss


def test_two_starts_agree_on_noise() -> None:
    _, task = task_of(6, 3, 40, 1, noise=0.1)
    looking = searched(task, 3, starts=20)
    assert looking.agreeing == 2
    assert looking.used <= 6


def test_chains_that_do_not_agree_end_sooner_where_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    _, task = task_of(4, 3, 16.0, seed=0, noise=0.5)
    monkeypatch.setattr(search.Search, "_same", lambda *_: False)
    monkeypatch.setattr(search.Search, "is_noise", lambda *_: True)
    monkeypatch.setattr(search, "_WORK", 1e12)
    assert searched(task, 3, 20).rounds > 20
    monkeypatch.setattr(search, "_WORK", 0.0)
    assert searched(task, 3, 20).rounds == 20
    assert searched(task, 3, 21).rounds > 20  # more than the usual number was asked for


def test_a_search_says_why_it_went_on_or_stopped() -> None:
    _, task = task_of(6, 4, 30, 0, noise=0.3)
    looking = searched(task, 2, starts=4)
    ends = [stage.note for stage in looking.stages if "ends: " in stage.note]
    assert len(ends) == looking.used, "each start has its reason"
    assert len([s for s in looking.stages if ", cycle " in s.name]) == looking.cycles
    assert looking.used + looking.cycles <= search._ROUNDS * 4 + 1
    assert looking.record.starts == looking.used
    assert looking.record.cycles == looking.cycles


def test_hope_ends_where_every_start_ends_at_one_network() -> None:
    """Too few units for the target, and one best network of so few: twenty starts would all find it."""
    _, task = task_of(4, 2, 100, 2)
    looking = searched(task, 1, starts=20)
    assert looking.used < 20
    assert looking.best is not None
    assert not looking.is_exact(looking.best)


def test_a_width_that_is_too_small_is_left() -> None:
    """Students of 1.5 times five or more units explain more than five do; on the way down from them eight are exact."""
    _, task = task_of(6, 8, 4, 3)
    looked = search.Search(task, 20, Run(np.random.default_rng(5)))
    assert (found := widths._in_turn(looked, 5, task.widest(0.7))) is not None
    assert looked.is_exact(found)
    assert len(found.at.U) == 8
    assert "widths" in {stage.name for stage in looked.stages}


@pytest.mark.parametrize("rounds_done", [1, 2, 4])
def test_a_search_that_is_stopped_returns_a_network_of_the_width(rounds_done: int) -> None:
    """In the middle of a cycle there are more units than were asked for; what is returned is what was contracted."""
    _, X, y = generic(10, 10, 2)(42000)
    polishes = []

    def progress(p: rl.results.Progress) -> None:
        if p.stage == "polish" and p.iteration == 1:
            polishes.append(p)
        if len(polishes) >= rounds_done and p.stage != "polish":
            raise KeyboardInterrupt

    found = rl.recover(X, y, width=10, rng=3, progress=progress, on_failure="return")
    assert found.status is Status.INTERRUPTED
    assert found.network.m == 10


# -- few samples ------------------------------------------------------------------------------------------------------


def hits(d: int, m: int, ratio: float, seeds: range, width: int | None = -1) -> int:
    """How many planted networks come back; none may be called exact and be wrong."""
    found = 0
    for seed in seeds:
        truth, X, y = generic(d, m, ratio)(seed)
        result = rl.recover(X, y, width=m if width == -1 else width, rng=seed + 2, on_failure="return")
        error = rl.metrics.parameter_error(truth, result.network)
        assert result.status is not Status.EXACT or error < 1e-6
        found += bool(error < EXACT)
    return found


def test_five_units_from_two_and_a_half_samples_per_parameter() -> None:
    assert hits(10, 5, 2.5, range(42000, 42005)) >= 4


def test_many_inputs_and_few_units_from_three_samples_per_parameter() -> None:
    """Students of 1.5 times the units have as many parameters as there are rows; inside the span they have few."""
    assert hits(200, 2, 3.0, range(3)) == 3


def test_the_span_is_not_needed() -> None:
    """Uniform inputs show no span; random starts and cycles find the network."""
    rng = np.random.default_rng(0)
    truth = rl.planted.network(40, 3, rng=0)
    X = rng.uniform(-2.0, 2.0, size=(5 * 3 * 41, 40))
    found = rl.recover(X, truth(X), width=3, rng=0)
    assert found.status is Status.EXACT
    assert rl.metrics.parameter_error(truth, found.network) < EXACT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "m", "ratio", "least"),
    [(10, 5, 2.0, 14), (10, 10, 2.0, 12), (10, 20, 2.0, 4), (10, 5, 2.5, 18), (10, 10, 2.5, 18), (10, 20, 2.5, 18)],
)
def test_rates_at_few_samples(d: int, m: int, ratio: float, least: int) -> None:
    assert hits(d, m, ratio, range(42000, 42020)) >= least


@pytest.mark.slow
def test_thirty_units_from_three_samples_per_parameter() -> None:
    assert hits(30, 30, 3.0, range(42000, 42005)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("m", [5, 10])
def test_width_unknown_takes_half_a_sample_more(m: int) -> None:
    assert hits(10, m, 3.0, range(42000, 42010), width=None) >= 9


@pytest.mark.slow
def test_fifty_units_are_found_although_the_bic_rises_before() -> None:
    assert hits(50, 50, 4.0, range(82000, 82001), width=None) == 1


# -- evidence ---------------------------------------------------------------------------------------------------------


def test_the_fisher_matrix_of_an_exact_fit_is_formed_where_it_may_be_singular() -> None:
    """(20,20) has 440 parameters: a few targets do, unless an input takes few values or a unit has few rows behind."""
    truth, X, y = generic(20, 20, 5)(0)
    clear = rl.recover(X, y, width=20, rng=0)
    assert clear.status is Status.EXACT
    assert clear.standard_errors is None
    assert clear.certificate.confirmed == len(X)
    X[:, 3] = np.round(X[:, 3])
    coarse = rl.recover(X, truth(X), width=20, rng=0)
    assert coarse.status is Status.EXACT
    assert coarse.standard_errors is not None
    assert coarse.certificate.condition < 1e8


def test_of_many_widths_all_about_the_best_one_are_looked_at() -> None:
    """A wide student is walked down in strides, and then unit by unit where it matters."""
    truth, task = task_of(4, 44, 8, 0, noise=0.01)
    U = np.vstack([directions(truth), random_directions(np.random.default_rng(0), 16, 5)])
    looked = search.Search(task, 1, Run.of(0))
    fits = widths._widths(looked, minimise(task.rows, task.shape, U, SEARCH))
    assert fits is not None
    best = min(fits, key=lambda width: looked.bic(fits[width]))
    assert 33 < best < 60
    assert {best - 1, best + 1} <= set(fits)
    assert not set(range(min(fits), 61)) <= set(fits)  # but not all of them


# -- far more rows than are needed ------------------------------------------------------------------------------------


def test_a_student_of_many_rows_begins_on_some_of_them_and_ends_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted rows, too: the first ones would show no kink."""
    truth = rl.planted.network(3, 2, rng=0)
    X, y = rl.planted.sample(truth, 12_000, rng=1)
    order = np.argsort(X[:, 0])
    task = make_task(as_samples(X[order], y[order]), RELU, np.random.default_rng(0))
    seen: list[int] = []
    monkeypatch.setattr(
        search, "minimise", lambda rows, *rest, **how: seen.append(rows.n) or minimise(rows, *rest, **how)
    )
    looking = search.Search(task, 20, Run(np.random.default_rng(0)))
    fit = looking.student(4, 4, schedule=SEARCH)
    assert seen == [5000, task.rows.n]
    assert fit.loss <= SEARCH.tol
    assert fit.loss == pytest.approx(fit.at.loss / task.rows.norm2, rel=1e-9)
    assert len(fit.history) > 2


def test_a_cycle_of_many_rows_begins_on_some_of_them_at_the_units_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows have white coordinates of their own; the question whether only noise is left is one for all rows."""
    truth = rl.planted.network(3, 2, rng=0)
    X, y = rl.planted.sample(truth, 12_000, rng=1)
    task = make_task(as_samples(X, y), RELU, np.random.default_rng(0))
    seen: list[tuple[int, float]] = []

    def watched(rows: MemoryRows, *rest: Any, **how: Any) -> Fit:
        fit = minimise(rows, *rest, **how)
        seen.append((rows.n, fit.history[0]))
        return fit

    monkeypatch.setattr(search, "minimise", watched)
    looking = search.Search(task, 20, Run(np.random.default_rng(0)))
    before = looking.student(4, 4, schedule=SEARCH)
    assert before.loss <= SEARCH.tol
    seen.clear()
    looking.student(5, 4, before, share=0.9)  # of four units all
    assert [rows for rows, _ in seen] == [5000, task.rows.n]
    assert seen[0][1] < 1e-6
    seen.clear()
    looking.student(5, 4, before, SEARCH, 1.0)
    assert [rows for rows, _ in seen] == [task.rows.n]


@pytest.mark.parametrize(("n", "stride", "settled"), [(600, 16, 1.0), (12_000, 8, 0.1 * 4.0 * np.log(11_760))])
def test_the_path_of_widths_is_coarser_where_there_are_far_more_rows_than_needed(
    n: int, stride: int, settled: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=(n, 3))
    task = make_task(as_samples(X, np.sin(3.0 * X[:, 0])), RELU, np.random.default_rng(0))
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(widths, "path", lambda *_, **how: asked.append(how))
    fit = minimise(task.rows, task.shape, random_directions(np.random.default_rng(1), 8, 4), replace(SEARCH, steps=1))
    assert widths._widths(search.Search(task, 20, Run(np.random.default_rng(0))), fit) is None
    assert (asked[0]["stride"], asked[0]["settled"]) == (stride, pytest.approx(settled))


@pytest.mark.parametrize(
    ("losses", "units", "given_up"),
    [
        ((0.10, 0.07), 64, True),  # two hidden layers
        ((0.07, 0.024), 64, False),  # a network of 100 units
        ((0.10, 0.07), 32, False),  # wider ones cost little
    ],
)
def test_a_slow_fall_of_the_loss_ends_the_search_for_the_width(
    losses: tuple[float, float], units: int, given_up: bool
) -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 8))
    task = make_task(as_samples(X, np.abs(X[:, 0])), RELU, np.random.default_rng(0))
    at = project(task.rows, task.shape, random_directions(np.random.default_rng(1), units, 9))
    narrow, wide = (Fit(at, State(at.U, 1.0, 2.0, (loss,))) for loss in losses)
    assert widths._too_wide(search.Search(task, 20, Run(np.random.default_rng(0))), [narrow, wide]) is given_up


@pytest.mark.parametrize(
    ("loss", "units", "wider"),
    [
        (0.15, 32, True),  # fifty units are there, and four numbers for each of their parameters
        (0.03, 32, False),  # a student that has enough units, and sticks
        (0.15, 8, False),  # so many numbers that the BIC can be believed
    ],
)
def test_one_rise_of_the_bic_is_believed_unless_numbers_are_few_and_much_is_left(
    loss: float, units: int, wider: bool
) -> None:
    X = np.random.default_rng(0).normal(size=(10_000, 50))
    task = make_task(as_samples(X, np.abs(X[:, 0])), RELU, np.random.default_rng(0))
    at = project(task.rows, task.shape, random_directions(np.random.default_rng(1), units, 51))
    fit = Fit(at, State(at.U, 1.0, 2.0, (loss,)))
    assert widths._may_be_wider(search.Search(task, 20, Run(np.random.default_rng(0))), fit) is wider


def test_a_search_without_hope_is_not_repeated_with_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hidden layers, 70 000 rows: 20 000 of them tell, and what was not looked for is said."""
    monkeypatch.setattr(widths, "_TOLD", 8)  # instead of 64 units
    monkeypatch.setattr(widths, "_DEAR", 0.0)
    truth = rl.planted.deep((4, 12, 12, 1), rng=3)
    X = np.random.default_rng(4).normal(size=(70_000, 4))
    found = rl.recover(X, truth(X), rng=0, on_failure="return")
    assert found.status is Status.NOT_RECOVERED
    assert [stage.note for stage in found.stages if stage.name == "sample"] == ["20000 of 70000 rows"]
    assert any("width= looks for a wider one" in note for note in found.certificate.notes)
